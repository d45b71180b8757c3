"""Pooling of `bw.nn`, in PyTorch's layout: x (batch, channels, ...) or without batch.  Windows are `ops.windows`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.api.inside.eager import network_function
from bwcompiler.errors import ShapeError
from bwcompiler.frontend.numpy.linalg.linear import permuted
from bwcompiler.frontend.numpy.manipulation.indexing import gather, index_value
from bwcompiler.frontend.tracing.operands import cast, constant, filled, real_value, reshape, value_as
from bwcompiler.frontend.tracing.storages.views import broadcast_value
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import I64
from bwcompiler.nn.convolutions import Option, Sizes, axes_text, sizes_of, windows_of, with_batch
from bwcompiler.nn.losses import positive_part


def pooled_windows(x: Value, kernel: Sizes, stride: Sizes, low: Sizes, high: Sizes, dilation: Sizes) -> Value:
    """The windows with their elements along one last axis."""
    found = windows_of(x, kernel, stride, low, high, dilation)
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


def _unbatched(result: Value, batched: bool) -> Any:
    return fresh(result if batched else reshape(result, result.shape[1:]))


# ----- maxima
def _lowest(x: Value) -> float:
    return -math.inf if x.dtype.is_float else int(np.iinfo(x.dtype.numpy).min)


def _position(windows: Value) -> Value:
    return ops.argmax(windows, axes=(windows.rank - 1,))


def at_position(x: Value, position: Value) -> Value:
    """The elements of the last axis at positions, so that one element of each window alone gets the cotangent."""
    last = x.rank - 1
    spread = ops.broadcast(position, shape=x.shape, axes=tuple(range(last)))
    chosen = ops.equal(ops.iota(shape=x.shape, axis=last, dtype=I64), spread)
    return ops.sum(ops.select(chosen, x, constant(0, x)), axes=(last,))


def _flat_places(position: Value, kernel: Sizes, places: Sequence[Any], extents: Sizes) -> Value:
    """Where the elements at `position` of their windows are in the flat spatial axes.

    places[k]: the positions along spatial axis k, of shape (windows, kernel).
    """
    found = constant(0, position)
    rest = position
    for k in reversed(range(len(kernel))):
        inner = ops.remainder(rest, constant(kernel[k], rest))
        rest = ops.floor_divide(rest, constant(kernel[k], rest))
        window = ops.iota(shape=position.shape, axis=position.rank - len(kernel) + k, dtype=I64)
        table = value_as(np.ascontiguousarray(places[k], np.int64).ravel())
        at = gather(table, [ops.add(ops.multiply(window, constant(kernel[k], window)), inner)], (0,))
        found = ops.add(found, ops.multiply(at, constant(math.prod(extents[k + 1:]), at)))
    return found


def _max_pooling(rank: int) -> Callable[..., Any]:
    name = f"max_pool{rank}d"

    def pool(x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
             return_indices: bool = False) -> Any:
        value, batched = with_batch(value_as(x), rank, name)
        extents: Sizes = value.shape[2:]
        kernel = sizes_of(kernel_size, rank, "kernel_size")
        strides = kernel if stride is None or not np.size(stride) else sizes_of(stride, rank, "stride")
        paddings, dilations = sizes_of(padding, rank, "padding"), sizes_of(dilation, rank, "dilation")
        over = _overhang(value, kernel, strides, paddings, dilations) if ceil_mode else (0,) * rank
        if any(paddings) or any(over):
            high = [p + more for p, more in zip(paddings, over, strict=True)]
            value = ops.pad(value, low=(0, 0, *paddings), high=(0, 0, *high), value=_lowest(value))
        none = (0,) * rank
        windows = pooled_windows(value, kernel, strides, none, none, dilations)
        position = _position(windows)
        result = _unbatched(at_position(windows, position), batched)
        if not return_indices:
            return result
        places = [np.arange(n)[:, None] * s - p + np.arange(k) * d for n, s, p, k, d in
                  zip(windows.shape[2:-1], strides, paddings, kernel, dilations, strict=True)]
        return result, _unbatched(_flat_places(position, kernel, places, extents), batched)

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"""The largest element of every window, as torch.nn.functional.{name}; the first of equals gets the gradient.

    x is (batch, channels, {axes_text(rank)}) or without batch.  kernel_size, stride (None: the kernel's), padding and dilation are integers
    or one per axis.  ceil_mode keeps windows that reach beyond the padding.  With return_indices also the places of the maxima in the flat
    spatial axes.  Raises ShapeError for other shapes.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.{name}(np.ones((2, 3{", 8" * rank})), 2).shape
    (2, 3{", 4" * rank})
    """
    return network_function(pool)


def _max_unpooling(rank: int) -> Callable[..., Any]:
    name = f"max_unpool{rank}d"

    def unpool(x: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Option = None) -> Any:
        value, batched = with_batch(value_as(x), rank, name)
        places, _ = with_batch(value_as(indices), rank, name)
        if places.shape != value.shape:
            raise ShapeError(f"{name}: indices of shape {places.shape} must have the shape {value.shape} of x")
        kernel = sizes_of(kernel_size, rank, "kernel_size")
        strides = kernel if stride is None else sizes_of(stride, rank, "stride")
        paddings = sizes_of(padding, rank, "padding")
        sizes = tuple([(n - 1) * s - 2 * p + k for n, s, p, k in zip(value.shape[2:], strides, paddings, kernel, strict=True)])
        if output_size is not None:
            sizes = sizes_of(output_size if isinstance(output_size, int) else tuple(output_size)[-rank:], rank, "output_size")
        planes, count = math.prod(value.shape[:2]), math.prod(value.shape[2:])
        rows = ops.iota(shape=(planes, count), axis=0, dtype=I64)
        columns = index_value(fresh(reshape(cast(places, I64), (planes, count))), math.prod(sizes))
        zeros = filled(0, value.dtype, (planes, math.prod(sizes)))
        found = ops.scatter_update(zeros, reshape(value, (planes, count)), rows, columns, axes=(0, 1))
        return _unbatched(reshape(found, (*value.shape[:2], *sizes)), batched)

    unpool.__name__ = unpool.__qualname__ = name
    unpool.__doc__ = f"""x at the places that max_pool{rank}d(return_indices=True) gave, else zeros, as torch.nn.functional.{name}.

    The spatial extents are those that max_pool{rank}d with these arguments needs at least, or output_size.  Raises ShapeError for
    other shapes, IndexError for places out of range.

    >>> import numpy as np, bwcompiler as bw
    >>> y, places = bw.nn.max_pool{rank}d(np.ones((2, 3{", 8" * rank})), 2, return_indices=True)
    >>> bw.nn.{name}(y, places, 2).shape
    (2, 3{", 8" * rank})
    """
    return network_function(unpool)


# ----- means
def _average_pooling(rank: int) -> Callable[..., Any]:
    name = f"avg_pool{rank}d"

    def pool(x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
             count_include_pad: bool = True, divisor_override: int | None = None) -> Any:
        value, batched = with_batch(real_value(x), rank, name)
        kernel = sizes_of(kernel_size, rank, "kernel_size")
        strides = kernel if stride is None or not np.size(stride) else sizes_of(stride, rank, "stride")
        paddings, ones = sizes_of(padding, rank, "padding"), (1,) * rank
        over = _overhang(value, kernel, strides, paddings, ones) if ceil_mode else (0,) * rank
        high = tuple([p + more for p, more in zip(paddings, over, strict=True)])
        windows = pooled_windows(value, kernel, strides, paddings, high, ones)
        total = ops.sum(windows, axes=(windows.rank - 1,))
        count = constant(math.prod(kernel) if divisor_override is None else divisor_override, total)
        if divisor_override is None and (any(over) or (any(paddings) and not count_include_pad)):
            margin = paddings if count_include_pad else (0,) * rank                # what counts beside the elements
            counted = filled(1, value.dtype, (1, 1, *[n + 2 * p for n, p in zip(value.shape[2:], margin, strict=True)]))
            rest = [tuple([a - b for a, b in zip(side, margin, strict=True)]) for side in (paddings, high)]
            inside = pooled_windows(counted, kernel, strides, rest[0], rest[1], ones)
            count = broadcast_value(ops.sum(inside, axes=(inside.rank - 1,)), total.shape)
        return _unbatched(ops.divide(total, cast(count, total.dtype)), batched)

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"""The mean of every window, as torch.nn.functional.{name}.

    x is (batch, channels, {axes_text(rank)}) or without batch.  kernel_size, stride (None: the kernel's) and padding are integers or one
    per axis; padding counts as zeros unless count_include_pad is false.  ceil_mode keeps windows that reach beyond the padding.
    divisor_override replaces the number of elements.  Raises ShapeError for other shapes.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.{name}(np.ones((2, 3{", 8" * rank})), 2).shape
    (2, 3{", 4" * rank})
    """
    return network_function(pool)


def _power_pooling(rank: int) -> Callable[..., Any]:
    name = f"lp_pool{rank}d"

    def pool(x: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Any:
        powers: Any = fresh(real_value(x)) ** norm_type
        mean: Any = MEANS[rank](powers, kernel_size, stride, 0, ceil_mode)
        size: Any = fresh(positive_part(value_as(np.abs(mean))))
        return (np.sign(mean) * size * math.prod(sizes_of(kernel_size, rank, "kernel_size"))) ** (1.0 / norm_type)

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"""The root of order p of the sum of x**p in every window, p = norm_type, as torch.nn.functional.{name}.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.{name}(np.ones((2, 3{", 8" * rank})), 2.0, 2).shape
    (2, 3{", 4" * rank})
    """
    return network_function(pool)


# ----- pooling to given extents
def _adaptive_windows(x: Value, sizes: Sizes) -> tuple[Value, list[Any], Any]:
    """Windows floor(i n / m) ... ceil((i + 1) n / m) of every spatial axis: (batch, channels, m..., k); places per axis, which count.

    Windows are filled up to one length by repeating their last place, which then does not count.
    """
    places, counted = [], []
    for axis, size in enumerate(sizes):
        extent = x.shape[2 + axis]
        starts = np.arange(size) * extent // max(size, 1)
        ends = -(-(np.arange(size) + 1) * extent // max(size, 1))
        steps = np.arange(max((ends - starts).max(initial=1), 1))
        places.append(np.minimum(starts[:, None] + steps, np.maximum(ends - 1, 0)[:, None]))
        counted.append(starts[:, None] + steps < ends[:, None])
    found: Any = fresh(x)
    for axis in reversed(range(len(sizes))):
        found = np.take(found, places[axis], axis=2 + axis)
    rank = len(sizes)
    order = (0, 1, *[2 + 2 * k for k in range(rank)], *[3 + 2 * k for k in range(rank)])
    spread = permuted(value_as(found), order)
    inside: Any = np.ones((), bool)
    for axis, one in enumerate(counted):
        shape = [1] * (2 * rank)
        shape[axis], shape[rank + axis] = one.shape
        inside = inside & one.reshape(shape)
    flat = reshape(spread, (*spread.shape[:2 + rank], math.prod(spread.shape[2 + rank:])))
    return flat, places, np.ascontiguousarray(np.broadcast_to(inside, spread.shape[2:]).reshape(flat.shape[2:]))


def _adaptive_sizes(option: Any, x: Value, rank: int) -> Sizes:
    given = (option,) * rank if option is None or isinstance(option, int | np.integer) else tuple(option)
    given = given * rank if len(given) == 1 else given
    if len(given) != rank:
        raise ShapeError(f"output_size={option!r} must be an integer or {rank} of them")
    return tuple([extent if one is None else int(one) for one, extent in zip(given, x.shape[2:], strict=True)])


def _adaptive_average(rank: int) -> Callable[..., Any]:
    name = f"adaptive_avg_pool{rank}d"

    def pool(x: Any, output_size: Option) -> Any:
        value, batched = with_batch(real_value(x), rank, name)
        windows, _, inside = _adaptive_windows(value, _adaptive_sizes(output_size, value, rank))
        kept: Any = fresh(windows) if inside.all() else np.where(inside, fresh(windows), 0.0)
        mean = kept.sum(-1) / inside.sum(-1).astype(value.dtype.numpy)
        return _unbatched(value_as(mean), batched)

    return _documented(pool, name, rank, "mean", "")


def _adaptive_maximum(rank: int) -> Callable[..., Any]:
    name = f"adaptive_max_pool{rank}d"

    def pool(x: Any, output_size: Option, return_indices: bool = False) -> Any:
        value, batched = with_batch(value_as(x), rank, name)
        windows, places, inside = _adaptive_windows(value, _adaptive_sizes(output_size, value, rank))
        kept = windows if inside.all() else value_as(np.where(inside, fresh(windows), value.dtype.numpy.type(_lowest(value))))
        position = _position(kept)
        result = _unbatched(at_position(kept, position), batched)
        if not return_indices:
            return result
        kernel = tuple([one.shape[1] for one in places])
        return result, _unbatched(_flat_places(position, kernel, places, value.shape[2:]), batched)

    return _documented(pool, name, rank, "largest element", "  With return_indices also its place in the flat spatial axes.")


def _documented(pool: Callable[..., Any], name: str, rank: int, what: str, more: str) -> Callable[..., Any]:
    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"""The {what} of windows that divide x into output_size parts, as torch.nn.functional.{name}.

    x is (batch, channels, {axes_text(rank)}) or without batch.  output_size is an integer or one per axis, None for x's extent.{more}
    Raises ShapeError for other shapes.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.{name}(np.ones((2, 3{", 7" * rank})), 4).shape
    (2, 3{", 4" * rank})
    """
    return network_function(pool)


max_pool1d, max_pool2d, max_pool3d = (_max_pooling(_rank) for _rank in (1, 2, 3))
max_unpool1d, max_unpool2d, max_unpool3d = (_max_unpooling(_rank) for _rank in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = (_average_pooling(_rank) for _rank in (1, 2, 3))
MEANS = {1: avg_pool1d, 2: avg_pool2d, 3: avg_pool3d}
lp_pool1d, lp_pool2d, lp_pool3d = (_power_pooling(_rank) for _rank in (1, 2, 3))
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (_adaptive_average(_rank) for _rank in (1, 2, 3))
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (_adaptive_maximum(_rank) for _rank in (1, 2, 3))
