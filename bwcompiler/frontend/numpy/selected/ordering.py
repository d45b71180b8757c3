"""Functions that depend on the order of selected elements: slices, cumulative sums, differences, sorting, quantiles, joining."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler.frontend.numpy.levels import levels_of, place_dtype, quantile_dtype
from bwcompiler.frontend.numpy.selected.elementwise import elementwise, of_selections, require_unshared
from bwcompiler.frontend.numpy.selected.packing import (
    aligned,
    as_view,
    cut,
    filled,
    fixed,
    flat,
    lowest,
    merged,
    number,
    packed,
    prefix,
    require,
    selected,
    selected_axis,
    with_all,
)
from bwcompiler.frontend.numpy.selected.shapes import transpose
from bwcompiler.frontend.tracing.indexing.data_slices import DataSlice
from bwcompiler.frontend.tracing.indexing.masked_selection import SELECTED, Selection, refuse
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.types import dtype_of


def sliced(x: Selection, part: slice) -> Selection:
    """A copy of x[..., part] along its axis."""
    step = 1 if part.step is None else part.step
    if isinstance(step, Tracer) or step == 0:
        refuse("a slice with such a step")
    if part.start is None and part.stop is None and step == 1:
        return x
    given, x = x, packed(x)
    size, count = x.array.shape[x.lead], x.count
    first, last = (0, count) if step > 0 else (-1, count - 1)

    def bound(place: Any, default: Any) -> Any:
        if place is None:
            return default
        if isinstance(place, Tracer):
            place = np.where(place < 0, place + count, place)
        elif place < 0:
            place = place + count
        return np.clip(place, first, last)
    start, stop = bound(part.start, first if step > 0 else last), bound(part.stop, last if step > 0 else first)
    if isinstance(given, DataSlice) and step == 1:
        return DataSlice(given.array, given.start + start, given.start + np.maximum(stop, start), given.lead)
    left = np.maximum((stop - start + step - (1 if step > 0 else -1)) // step, 0)
    room = -(-size // abs(step))
    if step > 0 and isinstance(part.stop, int | np.integer) and part.stop >= 0:
        room = min(room, -(-int(part.stop) // step))
    places = np.clip(start + np.arange(room) * step, 0, max(size - 1, 0))
    return as_view(given, prefix(np.take(x.array, places, axis=x.lead) if size else x.array, left, x.lead))


def _along_own(x: Selection, axis: Any) -> Selection | None:
    """x with one axis for its mask, if a function works along that axis; None if it works along another."""
    if axis is None:
        return flat(x)
    return merged(x) if selected_axis(x, axis) == x.lead else None


def _running(function: Any, neutral: int) -> Any:
    def handler(a: Selection, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        if out is not None:
            refuse(f"np.{function.__name__} with out=")
        x = _along_own(a, axis)
        if x is None:
            x = merged(a)
            return with_all(x, function(x.array, axis=selected_axis(x, axis), dtype=dtype))
        return with_all(x, function(filled(x, np.asarray(neutral, x.dtype)[()]), axis=x.lead, dtype=dtype))
    return handler


SELECTED.update({np.cumsum: _running(np.cumsum, 0), np.cumprod: _running(np.cumprod, 1)})


@selected(np.diff)
def diff(a: Selection, n: Any = 1, axis: Any = -1, prepend: Any = np._NoValue, append: Any = np._NoValue) -> Any:
    if prepend is not np._NoValue or append is not np._NoValue:
        refuse("np.diff with prepend= or append=")
    x = _along_own(a, axis)
    if x is None:
        x = merged(a)
        return with_all(x, np.diff(x.array, n, axis=selected_axis(x, axis)))
    for _ in range(n):
        x = of_selections("not_equal" if x.dtype == bool else "subtract", sliced(x, slice(1, None)), sliced(x, slice(None, -1)))
    return x


@selected(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    if not isinstance(y, Selection):
        array = as_tracer(y)
        return np.trapezoid(array, fixed(x, array.shape[axis]), axis=axis)
    y, axis = merged(y), selected_axis(y, axis)
    if axis != y.lead:
        if isinstance(x, Selection):
            refuse("np.trapezoid along another axis")
        return with_all(y, np.trapezoid(y.array, x, dx, axis), y.lead - (axis < y.lead))
    steps = dx if x is None else _steps(x, axis, y.ndim - axis - 1)
    means = (sliced(y, slice(1, None)) + sliced(y, slice(None, -1))) / 2.0
    return np.sum(of_selections("multiply", steps, means), axis=axis)


def _steps(x: Any, axis: int, behind: int) -> Any:
    """Between points along an axis; of points that all others share, with as many axes `behind` it."""
    x = x if isinstance(x, Selection) else as_tracer(x)
    if x.ndim != 1:
        return np.diff(x, axis=axis)
    return np.diff(x)[(slice(None), *[None] * behind)]


@selected(np.flip)
def flip(m: Selection, axis: Any = None) -> Any:
    if m.ndim > 1 and (axis is None or selected_axis(m, axis) != m.lead):
        refuse("np.flip along other axes")
    return sliced(m, slice(None, None, -1))


# ----- sorting
def _last(dtype: Any) -> Any:
    """An element that is sorted after all selected ones, or equals the largest."""
    return dtype.type(np.nan) if dtype.kind == "f" else lowest(dtype, False)


@selected(np.sort)
def sort(a: Selection, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Selection:
    x = _along_own(a, axis)
    if x is None:
        x = merged(a)
        return with_all(x, np.sort(x.array, axis=selected_axis(x, axis)))
    return prefix(np.sort(filled(x, _last(x.dtype)), axis=x.lead), number(x), x.lead)


@selected(np.argsort)
def argsort(a: Selection, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Selection:
    x = _along_own(a, axis)
    if x is None:
        refuse("np.argsort along another axis")
    x = packed(x)
    return prefix(np.argsort(filled(x, _last(x.dtype)), axis=x.lead, kind="stable"), x.count, x.lead)


@selected(np.searchsorted)
def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    if sorter is not None:
        refuse("np.searchsorted with sorter=")
    if isinstance(v, Selection):
        return elementwise(lambda array: np.searchsorted(a, array, side), v)
    x = packed(a)
    if x.ndim != 1:
        raise ValueError("object too deep for desired array")
    return np.minimum(np.searchsorted(filled(x, _last(x.dtype)), v, side), x.count)


@selected(np.lexsort)
def lexsort(keys: Any, axis: Any = -1) -> Selection:
    columns = list(keys)
    if any(not isinstance(x, Selection) or x.ndim != 1 for x in columns) or int(axis) not in (0, -1):
        refuse("np.lexsort with other arrays, or of rows")
    found = [packed(x) for x in aligned(columns)]
    is_behind = np.arange(found[0].array.shape[0]) >= found[0].count
    return prefix(np.lexsort((*[x.array for x in found], is_behind)), found[0].count, 0)


def sort_in_place(x: Selection, axis: Any, kind: Any) -> None:
    """x.sort()."""
    require_unshared(x)
    HANDLERS["set_item_of_selection"](x, slice(None), sort(x, axis, kind))


HANDLERS["sort_selection"] = sort_in_place


def _at(x: Selection, place: Any) -> Any:
    return np.take(x.array, np.clip(place, 0, max(x.array.shape[x.lead] - 1, 0)), axis=x.lead)


def _ordered(a: Selection, axis: Any, name: str) -> tuple[Selection, Any] | None:
    """The elements in order, and whether there is no number for them: one is nan, or there are none."""
    x = _along_own(a, axis)
    if x is not None and x.dtype.kind not in "fiub":
        refuse(f"np.{name} of {x.dtype} numbers")
    if x is not None and x.dtype.kind != "f":
        x = with_all(x, x.array.astype(np.float64))
    if x is None:
        return None
    ordered = sort(x, x.lead)
    return ordered, np.logical_or(np.any(np.isnan(filled(x, x.dtype.type(0))), axis=x.lead), ordered.count == 0)


def _or_nan(dtype: Any, missing: Any, found: Any) -> Any:
    return np.where(missing, np.nan, found)[()].astype(dtype)


@selected(np.median)
def median(a: Selection, axis: Any = None, out: Any = None, overwrite_input: Any = False, keepdims: Any = False) -> Any:
    if out is not None or keepdims:
        refuse("np.median with out= or keepdims=")
    found = _ordered(a, axis, "median")
    if found is None:
        x = merged(a)
        place = selected_axis(x, axis)
        return with_all(x, np.median(x.array, axis=place), x.lead - (place < x.lead))
    x, missing = found
    middle = _at(x, np.stack([(x.count - 1) // 2, x.count // 2]))           # both are found together
    return _or_nan(x.dtype, missing, np.sum(middle, axis=x.lead) / 2)


@selected(np.quantile)
def quantile(a: Selection, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, method: Any = "linear",
             keepdims: Any = False, **options: Any) -> Any:
    if out is not None or keepdims or method != "linear" or options:
        refuse("np.quantile with such options")
    found = _ordered(a, axis, "quantile")
    if found is None or found[0].ndim != 1:
        refuse("np.quantile of rows")
    x, missing = found
    if not isinstance(q, Tracer) and not np.all((np.asarray(q) >= 0) & (np.asarray(q) <= 1)):
        raise ValueError("Quantiles must be in the range [0, 1]")
    dtype, levels = quantile_dtype(dtype_of(x.dtype), q).numpy, place_dtype(q).numpy
    position = (q.astype(levels) if isinstance(q, Tracer) else np.asarray(q, levels)) * (x.count - 1).astype(levels)
    low = np.floor(position)
    share = (position - low).astype(dtype)
    places = low.astype(np.int64)
    below, above = [_at(x, place).astype(dtype) for place in (places, places + np.where(low < x.count - 1, 1, 0))]
    step = above - below
    return _or_nan(dtype, missing, np.where(share >= 0.5, above - step * (1 - share), below + step * share))


@selected(np.percentile)
def percentile(a: Selection, q: Any, *args: Any, **options: Any) -> Any:
    return quantile(a, levels_of(q, dtype_of(a.dtype)), *args, **options)


# ----- joining
def _parts(arrays: Any, lead: int) -> list[Selection]:
    found = []
    for x in arrays:
        if not isinstance(x, Selection):
            array = as_tracer(x)
            x = prefix(array, array.shape[lead], lead)
        found.append(merged(x))
    return found


@selected(np.concatenate)
def concatenate(arrays: Any, axis: Any = 0, out: Any = None, **options: Any) -> Selection:
    arrays = list(arrays)
    first = next(x for x in arrays if isinstance(x, Selection))
    if out is not None or options or (axis is None and first.ndim != 1):
        refuse("np.concatenate of rows into one, or with out=,")
    if any(np.ndim(x) != first.ndim or (isinstance(x, Selection) and x.lead != first.lead) for x in arrays):
        refuse("np.concatenate with arrays of other axes")
    place = 0 if axis is None else selected_axis(first, axis)
    if place == first.lead:
        parts = _parts(arrays, first.lead)
        return Selection(np.concatenate([x.array for x in parts], axis=place), np.concatenate([x.where for x in parts]), place)
    if not all(isinstance(x, Selection) for x in arrays):
        refuse("np.concatenate along another axis, with arrays of known size,")
    parts = [merged(x) for x in aligned(arrays)]
    return with_all(parts[0], np.concatenate([x.array for x in parts], axis=place))


@selected(np.hstack)
def hstack(tup: Any, **options: Any) -> Selection:
    parts = [x if isinstance(x, Selection) else np.atleast_1d(as_tracer(x)) for x in tup]
    if any(x.ndim != 1 for x in parts):
        refuse("np.hstack of rows")
    return concatenate(parts, **options)


@selected(np.append)
def append(arr: Any, values: Any, axis: Any = None) -> Selection:
    parts = [x if isinstance(x, Selection) else np.atleast_1d(as_tracer(x)) for x in (arr, values)]
    return concatenate([flat(x) if isinstance(x, Selection) else x.ravel() for x in parts] if axis is None else parts, axis=axis or 0)


@selected(np.stack)
def stack(arrays: Any, axis: Any = 0, out: Any = None, **options: Any) -> Selection:
    if out is not None or options:
        refuse("np.stack with options")
    parts = list(arrays)
    if any(not isinstance(x, Selection) or x.ndim != 1 for x in parts):
        refuse("np.stack with other arrays")
    parts = [merged(x) for x in aligned(parts)]
    found = with_all(parts[0], np.stack([x.array for x in parts]), 1)
    return found if axis in (0, -2) else SELECTED[np.transpose](found)


@selected(np.column_stack)
def column_stack(tup: Any) -> Any:
    parts = list(tup)
    size = max([x.shape[0] for x in parts if not isinstance(x, Selection)], default=None)
    if size is not None or any(x.ndim != 1 for x in parts):
        refuse("np.column_stack with other arrays")
    return stack(parts, axis=1)


@selected(np.vstack)
def vstack(tup: Any, **options: Any) -> Any:
    parts = list(tup)
    if all(isinstance(x, Selection) and x.ndim == 1 for x in parts):
        return stack(parts, **options)
    return concatenate([x if isinstance(x, Selection) else np.atleast_2d(as_tracer(x)) for x in parts], **options)


# Of a list whose elements are the rows of a selection.
def stacked_rows(x: Selection, axis: Any = 0) -> Any:
    """np.stack(list(x), axis)."""
    x, place = merged(x), selected_axis(x, axis)
    return with_all(x, np.moveaxis(x.array, 0, place), place)


def concatenated_rows(x: Selection, axis: Any = 0) -> Any:
    """np.concatenate(list(x), axis)."""
    x = merged(x)
    if axis is None or x.ndim == 2:
        return flat(x)
    place = range(x.ndim - 1)[axis]
    array = np.moveaxis(x.array, 0, place)         # the selected axis in front of that along which its elements are joined
    extents = array.shape
    whole = array.reshape((*extents[:place], extents[place] * extents[place + 1], *extents[place + 2:]))
    return Selection(whole, np.repeat(x.where, extents[place + 1]), place)


def rows_below_rows(x: Selection) -> Any:
    """np.vstack(list(x))."""
    return x[:, None] if x.ndim == 1 else x if x.ndim == 2 else concatenated_rows(x)


def rows_beside_rows(x: Selection) -> Any:
    """np.hstack(list(x))."""
    return x if x.ndim == 1 else concatenated_rows(x, 0 if x.ndim == 2 else 1)


def rows_as_columns(x: Selection) -> Any:
    """np.column_stack(list(x))."""
    return x[None, :] if x.ndim == 1 else transpose(x) if x.ndim == 2 else concatenated_rows(x, 1)


@selected(np.repeat)
def repeat(a: Selection, repeats: Any, axis: Any = None) -> Selection:
    x = merged(flat(a) if axis is None else a)
    place = selected_axis(x, 0 if axis is None else axis)
    if place != x.lead:
        return with_all(x, np.repeat(x.array, repeats, axis=place))
    if not isinstance(repeats, int | np.integer) or x.count is not None:
        refuse("np.repeat with several numbers")
    return Selection(np.repeat(x.array, repeats, axis=place), np.repeat(x.where, repeats), x.lead)


# ----- others
@selected(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    if not isinstance(xp, Selection) and not isinstance(fp, Selection):
        return elementwise(lambda array: np.interp(array, xp, fp, left, right, period), x)
    if isinstance(x, Selection) or not isinstance(xp, Selection) or not isinstance(fp, Selection) or period is not None:
        refuse("np.interp with period=, or of selections at the points of others,")
    places, values = [packed(one) for one in aligned([xp, fp])]
    require(places.count > 0, ValueError("array of sample points is empty: none is selected"))
    size = min(places.array.shape[0], values.array.shape[0])
    last = np.minimum(np.arange(size), places.count - 1)           # the last element, repeated
    return np.interp(x, np.take(cut(places, size).array, last), np.take(cut(values, size).array, last), left, right)


@selected(np.astype)
def astype(x: Selection, dtype: Any, /, **options: Any) -> Any:
    return x.astype(dtype, **options)
