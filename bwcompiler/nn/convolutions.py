"""Convolutions and pooling of `bw.nn`, in PyTorch's layout: x (batch, channels, ...), w (out, channels / groups, ...).

A convolution is `windows`, a transpose and a matmul.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.api.eager import graph_function
from bwcompiler.errors import ShapeError
from bwcompiler.frontend.numpy.elementwise import operator
from bwcompiler.frontend.numpy.linear import pair, permuted
from bwcompiler.frontend.tracing.operands import cast, constant, filled, reshape, value_as
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.frontend.tracing.views import broadcast_value
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import I64
from bwcompiler.nn.activations import real_value

Sizes = tuple[int, ...]


def _sizes(option: Any, rank: int, name: str) -> Sizes:
    found = (int(option),) * rank if isinstance(option, int | np.integer) else tuple(int(one) for one in option)
    if len(found) != rank:
        raise ShapeError(f"{name}={option!r} must be an integer or {rank} of them")
    return found


def _padding(padding: Any, kernel: Sizes, stride: Sizes, dilation: Sizes) -> tuple[Sizes, Sizes]:
    """Padding before and after every axis."""
    rank = len(kernel)
    if padding == "valid":
        return (0,) * rank, (0,) * rank
    if padding == "same":
        if set(stride) != {1}:
            raise ShapeError("padding='same' needs stride 1")
        total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        return tuple(one // 2 for one in total), tuple(one - one // 2 for one in total)
    both = _sizes(padding, rank, "padding")
    return both, both


def _windows(x: Value, kernel: Sizes, stride: Sizes, low: Sizes, high: Sizes, dilation: Sizes) -> Value:
    for axis, (extent, k, a, b, d) in enumerate(zip(x.shape[x.rank - len(kernel):], kernel, low, high, dilation, strict=True)):
        if extent + a + b < d * (k - 1) + 1:
            raise ShapeError(f"the kernel {kernel} does not fit x of shape {x.shape} along spatial axis {axis}")
    return ops.windows(x, sizes=kernel, strides=stride, low=low, high=high, dilations=dilation)


def convolve(x: Value, w: Value, stride: Sizes, low: Sizes, high: Sizes, dilation: Sizes, groups: int) -> Value:
    """The cross-correlation of x (batch, channels, ...) with w."""
    rank = w.rank - 2
    kernel: Sizes = w.shape[2:]
    batch, channels = x.shape[:2]
    outs, inner = w.shape[:2]
    if channels != inner * groups or outs % groups:
        raise ShapeError(f"convolution: x of shape {x.shape} and w of shape {w.shape} do not fit with groups={groups}: w is "
                         "(out channels, in channels / groups, kernel...)")
    found = _windows(x, kernel, stride, low, high, dilation)
    places = found.shape[2:2 + rank]
    rows, depth = batch * math.prod(places), inner * math.prod(kernel)
    if groups == 1:
        # (batch, channels, places, kernel) -> (batch places, channels kernel) @ (channels kernel, outs)
        order = (0, *range(2, 2 + rank), 1, *range(2 + rank, 2 + 2 * rank))
        product = ops.matmul(reshape(permuted(found, order), (rows, depth)), permuted(reshape(w, (outs, depth)), (1, 0)))
        return permuted(reshape(product, (batch, *places, outs)), (0, 1 + rank, *range(1, 1 + rank)))
    grouped = reshape(found, (batch, groups, inner, *places, *kernel))
    order = (1, 0, *range(3, 3 + rank), 2, *range(3 + rank, 3 + 2 * rank))
    left = reshape(permuted(grouped, order), (groups, rows, depth))
    right = permuted(reshape(w, (groups, outs // groups, depth)), (0, 2, 1))
    product = reshape(ops.matmul(left, right), (groups, batch, *places, outs // groups))
    back = permuted(product, (1, 0, 2 + rank, *range(2, 2 + rank)))
    return reshape(back, (batch, outs, *places))


def _with_bias(result: Value, b: Any, rank: int, batched: bool) -> Any:
    made = fresh(result if batched else reshape(result, result.shape[1:]))
    if b is None:
        return made
    bias = value_as(b)
    return operator("add", made, fresh(reshape(bias, (*bias.shape, *[1] * rank))))


def _batched(x: Value, rank: int, name: str) -> tuple[Value, bool]:
    if x.rank not in (rank + 1, rank + 2):
        raise ShapeError(f"{name}: x must have {rank + 2} axes (batch, channels, ...) or {rank + 1}, got shape {x.shape}")
    return (x, True) if x.rank == rank + 2 else (reshape(x, (1, *x.shape)), False)


def _places(rank: int, letter: str = "") -> str:
    """How docstrings write the last axes: `height, width`."""
    names = ("depth", "height", "width")[3 - rank:] if rank > 1 else ("length",)
    return ", ".join([f"{letter}{name[0]}" if letter else name for name in names])


def _convolution(rank: int) -> Callable[..., Any]:
    name = f"conv{rank}d"

    def conv(x: Any, w: Any, b: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Any:
        left, right = pair(x, w)
        if right.rank != rank + 2:
            raise ShapeError(f"{name}: w must have {rank + 2} axes (out, in / groups, kernel...), got shape {right.shape}")
        value, batched = _batched(left, rank, name)
        strides, dilations = _sizes(stride, rank, "stride"), _sizes(dilation, rank, "dilation")
        low, high = _padding(padding, right.shape[2:], strides, dilations)
        return _with_bias(convolve(value, right, strides, low, high, dilations, groups), b, rank, batched)

    conv.__name__ = conv.__qualname__ = name
    conv.__doc__ = f"""{rank}-dimensional cross-correlation, as torch.nn.functional.{name}.

    x is (batch, in, {_places(rank)}) or without batch, w (out, in / groups, {_places(rank, "k")}), b (out,).
    stride, padding and dilation are integers or one per axis; padding may be "valid" or "same".  Raises ShapeError where these do not fit.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.{name}(np.ones((2, 3{", 8" * rank})), np.ones((4, 3{", 3" * rank})), padding=1).shape
    (2, 4{", 8" * rank})
    """
    return graph_function(conv)


def _transposed_convolution(rank: int) -> Callable[..., Any]:
    name = f"conv_transpose{rank}d"

    def conv(x: Any, w: Any, b: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1,
             dilation: Any = 1) -> Any:
        left, right = pair(x, w)
        value, batched = _batched(left, rank, name)
        if right.rank != rank + 2 or value.shape[1] != right.shape[0]:
            raise ShapeError(f"{name}: x of shape {left.shape} and w of shape {right.shape} do not fit; w is "
                             "(in, out / groups, kernel...)")
        strides, dilations = _sizes(stride, rank, "stride"), _sizes(dilation, rank, "dilation")
        paddings, extra = _sizes(padding, rank, "padding"), _sizes(output_padding, rank, "output_padding")
        kernel = right.shape[2:]
        low = [d * (k - 1) - p for d, k, p in zip(dilations, kernel, paddings, strict=True)]
        spread = _dilated(value, strides)
        high = [a + e for a, e in zip(low, extra, strict=True)]
        spread = _crop(spread, low, high)
        turned = ops.flip(_swapped(right, groups), axes=tuple(range(2, rank + 2)))
        kept_low, kept_high = tuple(max(a, 0) for a in low), tuple(max(a, 0) for a in high)
        return _with_bias(convolve(spread, turned, (1,) * rank, kept_low, kept_high, dilations, groups), b, rank, batched)

    conv.__name__ = conv.__qualname__ = name
    conv.__doc__ = f"""The adjoint of conv{rank}d, as torch.nn.functional.{name}.

    x is (batch, in, {_places(rank)}) or without batch, w (in, out / groups, {_places(rank, "k")}), b (out,).
    stride, padding, output_padding and dilation are integers or one per axis.  Raises ShapeError where these do not fit.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.{name}(np.ones((2, 3{", 4" * rank})), np.ones((3, 5{", 2" * rank})), stride=2).shape
    (2, 5{", 8" * rank})
    """
    return graph_function(conv)


def _swapped(w: Value, groups: int) -> Value:
    """(in, out / groups, ...) as (out, in / groups, ...)."""
    ins, outs = w.shape[:2]
    tail = w.shape[2:]
    parts = reshape(w, (groups, ins // groups, outs, *tail))
    return reshape(permuted(parts, (0, 2, 1, *range(3, parts.rank))), (groups * outs, ins // groups, *tail))


def _dilated(x: Value, strides: Sizes) -> Value:
    """x with stride - 1 zeros between neighbours."""
    if set(strides) == {1}:
        return x
    shape = (*x.shape[:2], *[(n - 1) * s + 1 for n, s in zip(x.shape[2:], strides, strict=True)])
    zeros = filled(0, x.dtype, shape)
    return ops.slice_update(zeros, x, starts=(0,) * x.rank, steps=(1, 1, *strides))


def _crop(x: Value, low: list[int], high: list[int]) -> Value:
    """Negative padding: elements cut off."""
    starts = (0, 0, *[max(-a, 0) for a in low])
    sizes = (*x.shape[:2], *[n - max(-a, 0) - max(-b, 0) for n, a, b in zip(x.shape[2:], low, high, strict=True)])
    return x if sizes == x.shape else ops.slice(x, starts=starts, sizes=sizes, steps=(1,) * x.rank)


# ----- pooling
def _pooled_windows(x: Value, kernel: Sizes, stride: Sizes, low: Sizes, high: Sizes, dilation: Sizes) -> Value:
    """The windows with their elements along one last axis."""
    found = _windows(x, kernel, stride, low, high, dilation)
    return reshape(found, (*found.shape[:found.rank - len(kernel)], math.prod(kernel)))


def _overhang(x: Value, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Sizes:
    """ceil_mode: how far the last windows reach beyond the padding; a window must not begin there."""
    found = []
    for extent, k, s, p, d in zip(x.shape[2:], kernel, stride, padding, dilation, strict=True):
        span = d * (k - 1) + 1
        count = -(-(extent + 2 * p - span) // s) + 1
        count -= (count - 1) * s >= extent + p
        found.append(max((count - 1) * s + span - (extent + 2 * p), 0))
    return tuple(found)


def _max_pooling(rank: int) -> Callable[..., Any]:
    name = f"max_pool{rank}d"

    def pool(x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False) -> Any:
        value, batched = _batched(value_as(x), rank, name)
        kernel = _sizes(kernel_size, rank, "kernel_size")
        strides = kernel if stride is None else _sizes(stride, rank, "stride")
        paddings, dilations = _sizes(padding, rank, "padding"), _sizes(dilation, rank, "dilation")
        over = _overhang(value, kernel, strides, paddings, dilations) if ceil_mode else (0,) * rank
        if any(paddings) or any(over):
            lowest = -math.inf if value.dtype.is_float else int(np.iinfo(value.dtype.numpy).min)
            high = [p + more for p, more in zip(paddings, over, strict=True)]
            value = ops.pad(value, low=(0, 0, *paddings), high=(0, 0, *high), value=lowest)
        none = (0,) * rank
        windows = _pooled_windows(value, kernel, strides, none, none, dilations)
        result = first_largest(windows)
        return fresh(result if batched else reshape(result, result.shape[1:]))

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"""The largest element of every window, as torch.nn.functional.{name}; the first of equals gets the gradient.

    x is (batch, channels, {_places(rank)}) or without batch.  kernel_size, stride (None: the kernel's), padding and dilation are integers
    or one per axis.  Raises ShapeError for other shapes, UnsupportedError for ceil_mode=True.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.{name}(np.ones((2, 3{", 8" * rank})), 2).shape
    (2, 3{", 4" * rank})
    """
    return graph_function(pool)


def first_largest(x: Value) -> Value:
    """The maximum along the last axis, picked by position, so that one element alone gets the cotangent."""
    last = x.rank - 1
    position = ops.argmax(x, axes=(last,))
    spread = ops.broadcast(position, shape=x.shape, axes=tuple(range(last)))
    chosen = ops.equal(ops.iota(shape=x.shape, axis=last, dtype=I64), spread)
    return ops.sum(ops.select(chosen, x, constant(0, x)), axes=(last,))


def _average_pooling(rank: int) -> Callable[..., Any]:
    name = f"avg_pool{rank}d"

    def pool(x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
             count_include_pad: bool = True) -> Any:
        value, batched = _batched(real_value(x), rank, name)
        kernel = _sizes(kernel_size, rank, "kernel_size")
        strides = kernel if stride is None else _sizes(stride, rank, "stride")
        paddings, ones = _sizes(padding, rank, "padding"), (1,) * rank
        over = _overhang(value, kernel, strides, paddings, ones) if ceil_mode else (0,) * rank
        high = tuple([p + more for p, more in zip(paddings, over, strict=True)])
        windows = _pooled_windows(value, kernel, strides, paddings, high, ones)
        total = ops.sum(windows, axes=(windows.rank - 1,))
        count = constant(math.prod(kernel), total)
        if any(over) or (any(paddings) and not count_include_pad):
            margin = paddings if count_include_pad else (0,) * rank                # what counts beside the elements
            counted = filled(1, value.dtype, (1, 1, *[n + 2 * p for n, p in zip(value.shape[2:], margin, strict=True)]))
            rest = [tuple([a - b for a, b in zip(side, margin, strict=True)]) for side in (paddings, high)]
            inside = _pooled_windows(counted, kernel, strides, rest[0], rest[1], ones)
            count = broadcast_value(ops.sum(inside, axes=(inside.rank - 1,)), total.shape)
        result = ops.divide(total, cast(count, total.dtype))
        return fresh(result if batched else reshape(result, result.shape[1:]))

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"""The mean of every window, as torch.nn.functional.{name}.

    x is (batch, channels, {_places(rank)}) or without batch.  kernel_size, stride (None: the kernel's) and padding are integers or one per
    axis; padding counts as zeros unless count_include_pad is false.  Raises ShapeError, UnsupportedError for ceil_mode=True.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.{name}(np.ones((2, 3{", 8" * rank})), 2).shape
    (2, 3{", 4" * rank})
    """
    return graph_function(pool)


conv1d, conv2d, conv3d = (_convolution(_rank) for _rank in (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = (_transposed_convolution(_rank) for _rank in (1, 2, 3))
max_pool1d, max_pool2d, max_pool3d = (_max_pooling(_rank) for _rank in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = (_average_pooling(_rank) for _rank in (1, 2, 3))
