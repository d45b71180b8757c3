"""`bw.nn`: elements moved between channels and space: patches, shuffles; in PyTorch's layouts."""

from __future__ import annotations

import math
from typing import Any

from bwcompiler import ops
from bwcompiler.api.inside.eager import network_function
from bwcompiler.errors import ShapeError
from bwcompiler.frontend.numpy.linalg.linear import permuted
from bwcompiler.frontend.tracing.operands import reshape, value_as
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.nn.convolutions import Option, sizes_of, windows_of, with_batch


@network_function
def unfold(x: Any, kernel_size: Option, dilation: Option = 1, padding: Option = 0, stride: Option = 1) -> Any:
    """The patches of images x (batch, channels, height, width) or without batch: (batch, channels * kernel, places).

    Raises ShapeError if the kernel does not fit.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.unfold(np.ones((2, 3, 8, 8)), 3).shape
    (2, 27, 36)
    """
    value, batched = with_batch(value_as(x), 2, "unfold")
    kernel, dilations = sizes_of(kernel_size, 2, "kernel_size"), sizes_of(dilation, 2, "dilation")
    margin, strides = sizes_of(padding, 2, "padding"), sizes_of(stride, 2, "stride")
    found = permuted(windows_of(value, kernel, strides, margin, margin, dilations), (0, 1, 4, 5, 2, 3))
    shape = (value.shape[0], value.shape[1] * math.prod(kernel), math.prod(found.shape[4:]))
    return fresh(reshape(found, shape if batched else shape[1:]))


@network_function
def fold(x: Any, output_size: Option, kernel_size: Option, dilation: Option = 1, padding: Option = 0, stride: Option = 1) -> Any:
    """The images of output_size whose patches, as `unfold` gives them, are x; where patches overlap they are added.

    Raises ShapeError where x has another number of patches or elements of them.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.fold(np.ones((2, 27, 36)), 8, 3).shape
    (2, 3, 8, 8)
    """
    value = value_as(x)
    batched = value.rank == 3
    value = value if batched else reshape(value, (1, *value.shape))
    sizes, kernel, dilations = (sizes_of(one, 2, "size") for one in (output_size, kernel_size, dilation))
    margin, strides = sizes_of(padding, 2, "padding"), sizes_of(stride, 2, "stride")
    places = tuple([(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in
                    zip(sizes, kernel, dilations, margin, strides, strict=True)])
    patch = math.prod(kernel)
    if value.rank != 3 or value.shape[1] % patch or value.shape[2] != math.prod(places):
        raise ShapeError(f"fold: x of shape {value.shape} must be (batch, channels * {patch}, {math.prod(places)}) for output_size {sizes}")
    channels = value.shape[1] // patch
    windows = permuted(reshape(value, (value.shape[0], channels, *kernel, *places)), (0, 1, 4, 5, 2, 3))
    found = ops.windows_add(windows, shape=(value.shape[0], channels, *sizes), sizes=kernel, strides=strides, low=margin, high=margin,
                            dilations=dilations)
    return fresh(found if batched else reshape(found, found.shape[1:]))


@network_function
def pixel_shuffle(x: Any, upscale_factor: int) -> Any:
    """(..., channels r², height, width) as (..., channels, height r, width r), r = upscale_factor.  Raises ShapeError for other channels.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.pixel_shuffle(np.arange(4.0).reshape(1, 4, 1, 1), 2).tolist()
    [[[[0.0, 1.0], [2.0, 3.0]]]]
    """
    value, r = value_as(x), upscale_factor
    if value.rank < 3 or value.shape[-3] % (r * r):
        raise ShapeError(f"pixel_shuffle: x of shape {value.shape} must be (..., channels, height, width) with a multiple of "
                         f"{r * r} channels")
    *lead, channels, height, width = value.shape
    rank = len(lead)
    split = reshape(value, (*lead, channels // (r * r), r, r, height, width))
    order = (*range(rank + 1), rank + 3, rank + 1, rank + 4, rank + 2)
    return fresh(reshape(permuted(split, order), (*lead, channels // (r * r), height * r, width * r)))


@network_function
def pixel_unshuffle(x: Any, downscale_factor: int) -> Any:
    """The inverse of `pixel_shuffle`.  Raises ShapeError where height and width are no multiples of the factor.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.pixel_unshuffle(np.arange(4.0).reshape(1, 1, 2, 2), 2).ravel().tolist()
    [0.0, 1.0, 2.0, 3.0]
    """
    value, r = value_as(x), downscale_factor
    if value.rank < 3 or value.shape[-2] % r or value.shape[-1] % r:
        raise ShapeError(f"pixel_unshuffle: x of shape {value.shape} must be (..., channels, height, width) with multiples of {r}")
    *lead, channels, height, width = value.shape
    rank = len(lead)
    split = reshape(value, (*lead, channels, height // r, r, width // r, r))
    order = (*range(rank + 1), rank + 2, rank + 4, rank + 1, rank + 3)
    return fresh(reshape(permuted(split, order), (*lead, channels * r * r, height // r, width // r)))


@network_function
def channel_shuffle(x: Any, groups: int) -> Any:
    """x (batch, channels, ...) with channel g n + k (n per group) at k groups + g.  Raises ShapeError for other channels.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.channel_shuffle(np.arange(6.0).reshape(1, 6, 1), 2).ravel().tolist()
    [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]
    """
    value = value_as(x)
    if value.rank < 2 or value.shape[1] % groups:
        raise ShapeError(f"channel_shuffle: x of shape {value.shape} must be (batch, channels, ...) with a multiple of {groups} channels")
    batch, channels, *rest = value.shape
    split = reshape(value, (batch, groups, channels // groups, *rest))
    return fresh(reshape(permuted(split, (0, 2, 1, *range(3, split.rank))), (batch, channels, *rest)))
