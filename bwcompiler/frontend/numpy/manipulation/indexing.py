"""Reading and writing items: x[...], x[...] = v, np.take, np.take_along_axis, np.add.at."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import DTypeError, ShapeError, TracerIndexError, UnsupportedError
from bwcompiler.frontend.numpy.axes import normalize_axis
from bwcompiler.frontend.numpy.elementwise.ufunc_calls import store
from bwcompiler.frontend.numpy.manipulation.layout import flat_view, indexed, is_flat, reshaped, viewed
from bwcompiler.frontend.numpy.selected.grids.items import fill_between
from bwcompiler.frontend.numpy.selected.indexing.items import by_selections, filling, is_selecting, set_selected, set_where
from bwcompiler.frontend.numpy.selected.indexing.positions import nonzero
from bwcompiler.frontend.tracing.calls import lying_as
from bwcompiler.frontend.tracing.handles import assign, value_of
from bwcompiler.frontend.tracing.indexing.data_slices import data_slices, is_known_in_each_iteration, masked, sized_by_data
from bwcompiler.frontend.tracing.indexing.data_windows import WindowsView
from bwcompiler.frontend.tracing.indexing.index_parsing import (
    ParsedIndex,
    TracedSizeError,
    cached_parse,
    entries_of,
    fill_whole_axes,
    is_mask,
    parse,
)
from bwcompiler.frontend.tracing.indexing.masked_selection import SizedByData, selection
from bwcompiler.frontend.tracing.operands import (
    Payload,
    as_tracer,
    broadcast_shapes,
    cast,
    filled,
    kind_of,
    laid_out,
    materialise,
    operand,
    reshape,
    value_as,
    without_imaginary_part,
    wrapping,
)
from bwcompiler.frontend.tracing.promotion import common_dtype
from bwcompiler.frontend.tracing.registry import HANDLERS, implements
from bwcompiler.frontend.tracing.storages.region import active_region, open_region
from bwcompiler.frontend.tracing.storages.strided_views import whole
from bwcompiler.frontend.tracing.storages.views import PickedView, broadcast_value, same_chain
from bwcompiler.frontend.tracing.tracer import Tracer, fresh, fresh_array
from bwcompiler.ir.op import Op, Value
from bwcompiler.ir.types import BOOL, I64


# ----- reading
def getitem(x: Tracer, index: Any) -> Any:
    """x[index]: a view for basic indices, else a copy."""
    if isinstance(index, Tracer) and is_mask(index):
        return selection(x, index)
    if isinstance(index, SizedByData | tuple | list):
        given = list(index) if type(index) is tuple else [index]
        if is_selecting(given):
            return by_selections(x, given)
    try:
        parsed = cached_parse(index, x.shape)
    except TracedSizeError:
        entries = entries_of(index)
        try:
            return sized_by_data(x, entries)
        except TracerIndexError as error:
            parsed = _with_windows(x, entries, error)
    base = basic_part(x, parsed)
    picked = _picked(base, parsed)
    if picked is not None:
        value_of(picked)                                                    # read here, to have the user's line
        return picked
    if parsed.arrays:
        made = _gathered(value_of(base), parsed)
        return lying_as(made, [(made, ())] if made.ndim else [], np.ndarray.__getitem__, (x, index), {})
    if parsed.scalar or is_flat(x):
        return fresh(value_of(base))
    return base if base._storage.writable else fresh_array(value_of(base))        # for a NumPy scalar: a new array


def _with_windows(x: Tracer, entries: list[Any], refusal: TracerIndexError) -> ParsedIndex:
    """The index with data-dependent slices of known sizes; raises the error for other data-dependent slices."""
    if is_known_in_each_iteration([entry for entry in entries if isinstance(entry, slice)]):
        raise refusal
    try:
        parsed = parse(tuple(entries), x.shape, unsure=True)
    except TracedSizeError:
        raise refusal from None
    policy = open_region().policy
    if policy is not None:
        policy.may_be_cut = True
    return parsed


def basic_part(x: Tracer, parsed: ParsedIndex) -> Tracer:
    """The view that the integers, slices and new axes of an index give."""
    found = _strided_part(x, parsed)
    if not parsed.windows:
        return found
    step = WindowsView(found.shape, parsed.windows)
    return viewed(found, (*found._chain, step), step.shape)


def _strided_part(x: Tracer, parsed: ParsedIndex) -> Tracer:
    if not parsed.items:
        return viewed(x, x._chain, x.shape)
    if x._chain:
        return indexed(x, fill_whole_axes(parsed, x.shape))
    view = parsed.view
    if view is None:
        view = parsed.view = whole(x.shape).indexed(fill_whole_axes(parsed, x.shape))
        assert view is not None
    return viewed(x, (view,), view.shape)


def _picked(base: Tracer, parsed: ParsedIndex) -> Tracer | None:
    """The view for data-dependent integers; None if there are other index arrays, or the result is a number."""
    indices = tuple([index for _, index, _ in parsed.arrays])
    numbers = all(isinstance(index, Tracer) and not index.ndim and not index._storage.writable for index in indices)
    if not indices or not numbers or base.ndim == len(indices):
        return None
    axes = tuple([axis for axis, _, _ in parsed.arrays])
    positions = [fresh(value) for value in _index_values(parsed, base.shape)]
    step = PickedView(base.shape, axes, indices, lambda: [value_of(position) for position in positions])
    return viewed(base, (*base._chain, step), step.shape)


def _index_values(parsed: ParsedIndex, shape: tuple[int, ...]) -> list[Value]:
    """The advanced indices as i64 values in range, of one shape."""
    shapes = [tuple(index.shape) for _, index, _ in parsed.arrays]
    try:
        common = broadcast_shapes(shapes)
    except ShapeError:
        raise IndexError("shape mismatch: indexing arrays could not be broadcast together with shapes "
                         f"{' '.join(map(str, shapes))}") from None
    return [broadcast_value(index_value(index, shape[axis], safe), common) for axis, index, safe in parsed.arrays]


def index_value(index: Any, extent: Any, safe: bool = False) -> Value:
    """An index array as i64 in 0..extent-1; `safe` if it is known to be in range."""
    if isinstance(index, np.ndarray):
        if safe:
            return value_as(index.astype(np.int64, copy=False), I64)
        if _is_count(index, extent):
            return ops.iota(shape=index.shape, axis=0, dtype=I64)
    return ops.normalize_index(value_as(index, I64), extent=extent)


def _is_count(index: np.ndarray[Any, Any], extent: Any) -> bool:
    """Whether an index is `np.arange(n)` for the whole axis, so that nothing has to be gathered or checked."""
    region = active_region()
    if region is None or region.policy is None or not region.policy.has_made(index) or index.ndim != 1 or not isinstance(extent, int):
        return False
    return 0 < len(index) <= extent and index.dtype.kind in "iu" and bool(np.array_equal(index, np.arange(len(index))))


def _gathered(x: Value, parsed: ParsedIndex) -> Tracer:
    """A new array."""
    axes = tuple([axis for axis, _, _ in parsed.arrays])
    indices = _index_values(parsed, x.shape)
    found = gather(x, indices, axes)
    order = _result_order(indices[0].rank, found.rank, parsed.place)
    if order is None:
        return fresh(found)
    return fresh(ops.transpose(found, axes=order))


def gather(x: Value, indices: list[Value], axes: tuple[int, ...]) -> Value:
    """x at the indices along axes; the axes of the indices come first."""
    return ops.gather(x, *indices, axes=axes)


def _result_order(index_rank: int, rank: int, place: int) -> tuple[int, ...] | None:
    """The permutation of the axes of gather's result to NumPy's order; None for the identity."""
    if place == 0 or index_rank == 0:
        return None
    return (*range(index_rank, index_rank + place), *range(index_rank), *range(index_rank + place, rank))


# ----- writing
def setitem(x: Tracer, index: Any, value: Any) -> None:
    """x[index] = value."""
    value = value.data if getattr(type(value), "is_masked", False) else value          # what is masked is assigned, too
    if is_flat(x):
        value = HANDLERS["repeated_for"](x, index, value)
        if value is None:
            return
    given = list(index) if isinstance(index, tuple) else [index]
    if is_selecting(given) and not any(isinstance(entry, Tracer) and is_mask(entry) for entry in given):
        set_selected(x, given, value)
        return
    entries = entries_of(index)
    masks = [entry for entry in entries if isinstance(entry, Tracer) and is_mask(entry)]
    if masks:
        part = masked(x, entries, anywhere=not np.ndim(value))
        if part is None:
            raise UnsupportedError("x[..., mask] = v: with a traced mask, the other indices must be slices, None, or numbers next to it\n"
                                   "  hint: np.where(mask, v, x)")
        set_where(*part, value)
        return
    try:
        parsed = cached_parse(tuple(entries), x.shape)
    except TracedSizeError:
        try:
            found = data_slices(x, entries)
        except TracerIndexError as error:
            parsed = _with_windows(x, entries, error)
        else:
            fill_between(found, value)
            return
    base = basic_part(x, parsed)
    if isinstance(value, Tracer) and value._storage is x._storage and _is_view_by(parsed, base, value):
        return                      # the second half of `x[index] += v`
    if parsed.arrays:
        _scatter(ops.scatter_update, base, parsed, value)
        return
    value = value.item() if isinstance(value, np.generic) else filling(value, base.shape)       # it must fit as a number
    assign(base, fitted(operand(value)[0], x, base.shape))


def _is_view_by(parsed: ParsedIndex, base: Tracer, value: Tracer) -> bool:
    """Whether a view of the same storage came from the same index; base: the view by its integers, slices and new axes."""
    if not parsed.arrays:
        return same_chain(value._chain, base._chain)
    last = value._chain[-1] if value._chain else None
    return (type(last) is PickedView and last.axes == tuple([axis for axis, _, _ in parsed.arrays])
            and all(mine is index for mine, (_, index, _) in zip(last.indices, parsed.arrays, strict=True))
            and same_chain(value._chain[:-1], base._chain))


def fitted(payload: Payload, x: Tracer, shape: tuple[int, ...]) -> Value:
    """A value to store, converted to x's dtype and the given shape; it may have extra leading axes of extent 1."""
    own = payload.shape
    extra = len(own) - len(shape)
    if extra > 0 and isinstance(payload, Value) and all(extent == 1 for extent in own[:extra]):
        payload = reshape(payload, own[extra:])
    if len(payload.shape) > len(shape) or not _fits(payload.shape, shape):
        raise ShapeError(f"could not broadcast input array from shape {own} into shape {shape}")
    if isinstance(payload, Value):
        payload = without_imaginary_part(payload, x._type.dtype)
    return materialise(payload, x._type.dtype, shape)


def _fits(own: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return all(extent in (1, target) for extent, target in zip(reversed(own), reversed(shape), strict=False))


def _scatter(op: Op, base: Tracer, parsed: ParsedIndex, value: Any) -> None:
    x = value_of(base)
    axes = tuple([axis for axis, _, _ in parsed.arrays])
    indices = _index_values(parsed, x.shape)
    index_shape = indices[0].shape
    rest = tuple([extent for axis, extent in enumerate(x.shape) if axis not in axes])
    result_shape = (*rest[:parsed.place], *index_shape, *rest[parsed.place:])
    if len(index_shape) == 0 or parsed.place == 0:
        result_shape = (*index_shape, *rest)
    updates = fitted(operand(filling(value, result_shape))[0], base, result_shape)
    order = _result_order(len(index_shape), len(result_shape), parsed.place)
    if order is not None:
        updates = ops.transpose(updates, axes=tuple(sorted(range(len(order)), key=order.__getitem__)))
    assign(base, op(x, updates, *indices, axes=axes))


def scatter_add(x: Tracer, index: Any, value: Any) -> None:
    """np.add.at(x, index, value)."""
    parsed = parse(tuple(entries_of(index)), x.shape)
    base = basic_part(x, parsed)
    if parsed.arrays:
        _scatter(ops.scatter_add, base, parsed, value)
    else:
        assign(base, ops.add(value_of(base), fitted(operand(filling(value, base.shape))[0], x, base.shape)))


# ----- functions
@implements(np.take)
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Any:
    x = as_tracer(a)
    if axis is None or not x.ndim:
        x, axis = reshaped(x, (x.size,)), 0 if axis is None else axis
    axis = normalize_axis(axis, x.ndim)
    found = _taken(x, indices, axis, mode)
    if out is None:
        return found
    store(out, value_as(found), "same_kind", "take")
    return out


def _taken(x: Tracer, indices: Any, axis: int, mode: str) -> Any:
    entry = indices
    if isinstance(indices, list | tuple) or (isinstance(indices, np.ndarray) and indices.dtype == object):
        entry = entries_of((indices,))[0]
    if is_mask(entry):
        entry = fresh(value_as(entry, I64)) if isinstance(entry, Tracer) else np.asarray(entry, np.int64)         # 0 and 1 here
    if mode != "raise":
        extent: Any = x.shape[axis]
        if not isinstance(extent, int):
            raise UnsupportedError(f"np.take: mode={mode!r} along an axis of {extent} elements, which depend on a loop index")
        if mode not in ("clip", "wrap"):
            raise ValueError(f"np.take: mode must be 'raise', 'wrap' or 'clip', got {mode!r}")
        index = value_as(entry)
        if index.dtype.kind not in "iub":
            raise DTypeError(f"np.take: the indices must be integers, got {index.dtype.numpy}")
        if not extent and 0 not in index.shape:
            raise IndexError("cannot do a non-empty take from an empty axes.")
        index = cast(index, I64)
        low, high = filled(0, I64, index.shape), filled(extent - 1, I64, index.shape)
        bounded = (ops.minimum(ops.maximum(index, low), high) if mode == "clip"
                   else ops.remainder(index, filled(extent, I64, index.shape)))
        return _moved(value_of(x), bounded, axis)
    return fresh(value_as(getitem(x, (*[slice(None)] * axis, entry))))


def _moved(x: Value, index: Value, axis: int) -> Tracer:
    found = gather(x, [index], (axis,))
    order = _result_order(index.rank, found.rank, axis)
    return fresh(found if order is None else ops.transpose(found, axes=order))


@implements(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    x = as_tracer(a)
    if axis is None:
        return fresh_array(reshape(value_of(roll(reshaped(x, (x.size,)), shift, 0)), x.shape))
    shifts, axes = _numbers(shift), _numbers(axis)
    count = max(len(shifts), len(axes)) if shifts and axes else 0
    if not {len(shifts), len(axes)} <= {1, count}:
        raise ValueError(f"np.roll: {len(shifts)} shifts of {len(axes)} axes")
    for amount, one in zip(shifts * (count if len(shifts) == 1 else 1), axes * (count if len(axes) == 1 else 1), strict=True):
        x = _rolled(x, amount, normalize_axis(one, x.ndim))
    return fresh(value_of(x))


def _numbers(given: Any) -> list[Any]:
    """The parts of an argument that may be one number or a sequence of them."""
    if np.ndim(given) > 1:
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
    return list(given) if isinstance(given, list | tuple) or np.ndim(given) else [given]


def _rolled(x: Tracer, amount: Any, axis: int) -> Tracer:
    """Two parts that change places; the elements at places that are counted from the shift, if data say how far it is."""
    extent: Any = x.shape[axis]
    if isinstance(amount, Tracer):
        if amount.dtype.kind not in "iub":
            raise TypeError("np.roll: the shift must be an integer")
        return x if extent == 0 else _taken(x, np.arange(extent) - amount.astype(np.int64), axis, "wrap")
    offset = operator.index(amount) % extent if extent else 0
    if offset == 0:
        return x
    value = value_of(x)
    moved = ops.slice_axis(value, axis, extent - offset, offset), ops.slice_axis(value, axis, 0, extent - offset)
    return fresh(ops.concatenate(*moved, axis=axis))


def along_axis(x: Value, indices: Any, axis: int) -> tuple[list[Value], tuple[int, ...]]:
    """Index values of every axis for the `..._along_axis` functions, and the shape they select from.

    Axes of extent 1 are broadcast, in x and in the indices.
    """
    index = value_as(indices)
    if not index.dtype.is_integer:
        raise IndexError(f"`indices` must be an integer array, got {index.dtype.numpy}")
    if index.rank != x.rank:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    shape = list(broadcast_shapes([tuple([1 if k == axis else n for k, n in enumerate(x.shape)]),
                                   tuple([1 if k == axis else n for k, n in enumerate(index.shape)])]))
    shape[axis] = index.shape[axis]
    target = tuple(shape)
    index = broadcast_value(index_value(fresh(index), x.shape[axis]), target)
    counters = [index if k == axis else filled(0, I64, target) if extent == 1 else ops.iota(shape=target, axis=k, dtype=I64)
                for k, extent in enumerate(x.shape)]
    return counters, target


@implements(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    x = value_as(arr)
    if axis is None:
        x, axis = reshape(x, (int(np.prod(x.shape)),)), 0
    counters, _ = along_axis(x, indices, normalize_axis(axis, x.rank))
    return fresh(gather(x, counters, tuple(range(x.rank))))


@implements(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    if not isinstance(arr, Tracer):
        raise UnsupportedError("np.put_along_axis into a concrete array\n  hint: make it with np.zeros_like(x)")
    target = flat_view(arr) if axis is None else arr
    counters, shape = along_axis(value_of(target), indices, normalize_axis(0 if axis is None else axis, target.ndim))
    updates = fitted(operand(values)[0], target, shape)
    assign(target, ops.scatter_update(value_of(target), updates, *counters, axes=tuple(range(target.ndim))))


@implements(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if not len(condlist):
        raise ValueError("select with an empty condition list is not possible")
    for number, condition in enumerate(condlist):
        if kind_of(condition) is not BOOL:
            raise TypeError(f"invalid entry {number} in condlist: should be boolean ndarray")
    payloads, kinds = zip(*[operand(choice) for choice in (*choicelist, default)], strict=True)
    dtype = common_dtype(tuple(kinds))                              # common to all choices, so that Python numbers stay weak
    shape = broadcast_shapes([value_as(condition).shape for condition in condlist] + [payload.shape for payload in payloads[:-1]])
    result = materialise(wrapping(payloads[-1]), dtype, shape)      # only the default, with which NumPy fills an array
    for condition, choice in zip(reversed(condlist), reversed(payloads[:-1]), strict=True):
        result = ops.select(broadcast_value(value_as(condition), shape), materialise(choice, dtype, shape), result)
    return fresh_array(result)


@implements(np.where, states_layout=True)
def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    if (x is None) != (y is None):
        raise ValueError("either both or neither of x and y should be given\n  hint: np.where(condition, a, b); np.where(condition, a, 0)")
    if x is None or y is None:
        return nonzero(condition)
    (chosen, kind_x), (other, kind_y) = operand(x), operand(y)
    flag = operand(condition)[0]
    mask = value_as(condition) if isinstance(flag, Value) else materialise(flag, BOOL, ())
    dtype = common_dtype((kind_x, kind_y))
    shape = broadcast_shapes([mask.shape, chosen.shape, other.shape])
    if mask.dtype is not BOOL:
        mask = ops.not_equal(mask, filled(0, mask.dtype, mask.shape))
    made = ops.select(broadcast_value(mask, shape), *[materialise(wrapping(payload), dtype, shape) for payload in (chosen, other)])
    return laid_out(fresh_array(made), (condition, x, y))


HANDLERS.update(getitem=getitem, setitem=setitem)
