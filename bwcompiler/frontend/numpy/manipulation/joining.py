"""NumPy's functions that join, split and repeat arrays."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import ShapeError
from bwcompiler.frontend.numpy.axes import normalize_axis
from bwcompiler.frontend.numpy.elementwise.ufunc_calls import delivered
from bwcompiler.frontend.numpy.manipulation.layout import everything, indexed, moveaxis
from bwcompiler.frontend.numpy.selected.counted import repeated, settled
from bwcompiler.frontend.tracing.handles import assign, value_of
from bwcompiler.frontend.tracing.indexing.index_handle import index_handle
from bwcompiler.frontend.tracing.operands import as_tracer, cast, reshape, stack_all, value_as
from bwcompiler.frontend.tracing.promotion import common_dtype, requested, require_cast
from bwcompiler.frontend.tracing.registry import implements
from bwcompiler.frontend.tracing.rows import are_rows
from bwcompiler.frontend.tracing.storages.strided_views import Slice
from bwcompiler.frontend.tracing.storages.views import broadcast_value
from bwcompiler.frontend.tracing.tracer import Tracer, fresh, fresh_array
from bwcompiler.ir.extent import add_extents, mentions_index
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import DType
from bwcompiler.ops.rules import zero_of


# ----- joining
def _items(arrays: Any) -> list[Value]:
    items = list(arrays)
    if not items:
        raise ValueError("need at least one array to concatenate")
    return [value_as(item) for item in items]


def _rows(arrays: Any) -> Value | None:
    """The arrays stacked along a new first axis, if most of them are rows of one array."""
    alike = isinstance(arrays, list | tuple) and are_rows(arrays) and len({np.shape(item) for item in arrays}) == 1
    return value_of(stack_all(arrays)) if alike else None


def join(values: Sequence[Value], axis: Any, dtype: DType | None = None, casting: str = "same_kind") -> Value:
    """np.concatenate of values."""
    rank = values[0].rank
    if rank == 0:
        raise ShapeError("zero-dimensional arrays cannot be concatenated")
    if any(value.rank != rank for value in values):
        raise ShapeError("all the input array dimensions except for the concatenation axis must match: got shapes "
                         f"{', '.join(str(value.shape) for value in values)}")
    dtype = dtype or common_dtype(tuple([value.dtype for value in values]))
    for value in values:
        require_cast(value.dtype, dtype, casting, "np.concatenate")
    converted = [cast(value, dtype) for value in values]
    if len(converted) == 1:
        return converted[0]
    axis = normalize_axis(axis, rank)
    if any(mentions_index({"shape": value.shape}) for value in converted):
        return _put_together(converted, axis)
    return ops.concatenate(*converted, axis=axis)


def _put_together(values: Sequence[Value], axis: int) -> Value:
    """Concatenation of values whose extents depend on loop indices."""
    before, after = values[0].shape[:axis], values[0].shape[axis + 1:]
    if any(value.shape[:axis] != before or value.shape[axis + 1:] != after for value in values):
        raise ShapeError("all the input array dimensions except for the concatenation axis must match: got shapes "
                         f"{', '.join(str(value.shape) for value in values)}")
    ends = list(itertools.accumulate([value.shape[axis] for value in values], add_extents))
    dtype = values[0].dtype
    found = fresh_array(ops.full(value=zero_of(dtype), shape=(*before, ends[-1], *after), dtype=dtype))
    for value, start, end in zip(values, [0, *ends], ends, strict=False):
        assign(found[(*[slice(None)] * axis, slice(index_handle(start), index_handle(end)))], value)
    return value_of(found)


def _requested(dtype: Any, out: Any) -> DType | None:
    if dtype is not None and out is not None:
        raise TypeError("concatenate() only takes `out` or `dtype` as an argument, but both were provided.")
    return requested(dtype)


@implements(np.concatenate)
def concatenate(arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    rows = _rows(arrays)
    if rows is not None and rows.rank > 1 and axis in (0, 1 - rows.rank):
        joined = reshape(rows, (rows.shape[0] * rows.shape[1], *rows.shape[2:]))
        return delivered("concatenate", join([joined], 0, _requested(dtype, out), casting), out, casting)
    values = _items(arrays)
    if axis is None:
        values, axis = [value if value.rank == 1 else reshape(value, (math.prod(value.shape),)) for value in values], 0
    axis = normalize_axis(axis, values[0].rank)
    return delivered("concatenate", join(values, axis, _requested(dtype, out), casting), out, casting)


@implements(np.stack)
def stack(arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    rows = _rows(arrays)
    if rows is not None:
        place = normalize_axis(axis, rows.rank)
        order = (*range(1, place + 1), 0, *range(place + 1, rows.rank))
        moved = rows if place == 0 else ops.transpose(rows, axes=order)
        return delivered("stack", join([moved], 0, _requested(dtype, out), casting), out, casting)
    values = _items(arrays)
    shape = values[0].shape
    if any(value.shape != shape for value in values):
        raise ShapeError(f"np.stack: all input arrays must have the same shape, got {[value.shape for value in values]}")
    place = normalize_axis(axis, len(shape) + 1)
    return delivered("stack", join([reshape(value, (*shape[:place], 1, *shape[place:])) for value in values], place,
                                    _requested(dtype, out), casting), out, casting)


def _raised(values: Sequence[Value], rank: int) -> list[Value]:
    function = {1: np.atleast_1d, 2: np.atleast_2d, 3: np.atleast_3d}[rank]
    return [value if value.rank >= rank else value_of(as_tracer(function(fresh(value)))) for value in values]


@implements(np.vstack)
def vstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    rows = _rows(tup)
    if rows is not None and rows.rank == 2:
        return fresh(join([rows], 0, requested(dtype), casting))
    return fresh(join(_raised(_items(tup), 2), 0, requested(dtype), casting))


@implements(np.hstack)
def hstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    values = _raised(_items(tup), 1)
    return fresh(join(values, 0 if values[0].rank == 1 else 1, requested(dtype), casting))


@implements(np.dstack)
def dstack(tup: Any) -> Any:
    return fresh(join(_raised(_items(tup), 3), 2))


@implements(np.column_stack)
def column_stack(tup: Any) -> Any:
    return fresh(join([value if value.rank >= 2 else reshape(value, (*(value.shape or (1,)), 1)) for value in _items(tup)], 1))


@implements(np.append)
def append(arr: Any, values: Any, axis: Any = None) -> Any:
    return concatenate([arr, values], axis)


@implements(np.block)
def block(arrays: Any) -> Any:
    depth = _depth(arrays)
    return fresh(_block(arrays, depth, max(depth, _most_axes(arrays))))


def _depth(arrays: Any) -> int:
    return 1 + max(map(_depth, arrays)) if isinstance(arrays, list) else 0


def _most_axes(arrays: Any) -> int:
    return max(map(_most_axes, arrays), default=0) if isinstance(arrays, list) else np.ndim(arrays)


def _block(arrays: Any, depth: int, levels: int) -> Value:
    if not isinstance(arrays, list):
        value = value_as(arrays)
        return reshape(value, (1,) * (levels - value.rank) + value.shape)
    parts = [_block(item, depth - 1, levels) for item in arrays]
    return join(parts, -depth)


# ----- splitting: views, as in NumPy
def _split_points(x: Tracer, sections: Any, axis: int, exact: bool) -> list[int]:
    extent = x.shape[axis]
    if not isinstance(sections, int | np.integer):
        return [0, *[int(point) for point in sections], extent]
    count = int(sections)
    if count <= 0:
        raise ValueError("number sections must be larger than 0.")
    if exact and extent % count:
        raise ValueError("array split does not result in an equal division")
    sizes = [extent // count + (k < extent % count) for k in range(count)]
    return [0, *np.cumsum(sizes).tolist()]


def _split(a: Any, sections: Any, axis: Any, exact: bool) -> list[Tracer]:
    x = as_tracer(a)
    place = normalize_axis(axis, x.ndim)
    points = _split_points(x, sections, place, exact)
    pieces = []
    for start, stop in itertools.pairwise(points):
        first, last, _ = slice(start, stop).indices(x.shape[place])
        cut = Slice(first, max(last - first, 0), 1)
        pieces.append(indexed(x, [cut if k == place else everything(extent) for k, extent in enumerate(x.shape)]))
    return pieces


@implements(np.split)
def split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    return _split(ary, indices_or_sections, axis, True)


@implements(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    return _split(ary, indices_or_sections, axis, False)


@implements(np.hsplit)
def hsplit(ary: Any, indices_or_sections: Any) -> Any:
    if not as_tracer(ary).ndim:
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    return _split(ary, indices_or_sections, 0 if as_tracer(ary).ndim == 1 else 1, True)


@implements(np.vsplit)
def vsplit(ary: Any, indices_or_sections: Any) -> Any:
    if as_tracer(ary).ndim < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return _split(ary, indices_or_sections, 0, True)


@implements(np.dsplit)
def dsplit(ary: Any, indices_or_sections: Any) -> Any:
    if as_tracer(ary).ndim < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return _split(ary, indices_or_sections, 2, True)


@implements(np.unstack)
def unstack(x: Any, /, *, axis: Any = 0) -> Any:
    return tuple(moveaxis(x, axis, 0))


# ----- repeating
@implements(np.tile)
def tile(A: Any, reps: Any) -> Any:
    x = value_as(A)
    counts = tuple(reps) if isinstance(reps, tuple | list | np.ndarray) else (reps,)
    counts = (1,) * (x.rank - len(counts)) + tuple(int(count) for count in counts)
    shape = (1,) * (len(counts) - x.rank) + x.shape
    spread = reshape(x, tuple([extent for one in shape for extent in (1, one)]))
    repeated = broadcast_value(spread, tuple([extent for both in zip(counts, shape, strict=True) for extent in both]))
    return fresh_array(reshape(repeated, tuple([count * one for count, one in zip(counts, shape, strict=True)])))


@implements(np.repeat)
def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    x = value_as(a)
    if axis is None or not x.rank:
        x, axis = reshape(x, (math.prod(x.shape),)), 0 if axis is None else axis
    place = normalize_axis(axis, x.rank)
    repeats = settled(repeats)
    if isinstance(repeats, Tracer):
        return repeated(fresh(x), repeats, place)
    counts = np.asarray(repeats)
    if counts.size and counts.min() < 0:
        raise ValueError("repeats may not contain negative values.")
    if counts.size == 1:
        count = int(counts.reshape(()))
        shape = (*x.shape[:place + 1], count, *x.shape[place + 1:])
        spread = broadcast_value(reshape(x, (*x.shape[:place + 1], 1, *x.shape[place + 1:])), shape)
        return fresh(reshape(spread, (*x.shape[:place], x.shape[place] * count, *x.shape[place + 1:])))
    positions = np.repeat(np.arange(x.shape[place]), counts)
    return np.take(fresh(x), positions, place)
