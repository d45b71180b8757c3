"""Items of arrays of which data say how long several axes are, and assignments to parts of them: `a[:m, m] = -1`."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.frontend.numpy.selected.elementwise import of_selections, require_unshared
from bwcompiler.frontend.numpy.selected.grids.shapes import seen_as
from bwcompiler.frontend.numpy.selected.indexing.crossed import crossed
from bwcompiler.frontend.numpy.selected.indexing.items import item_along, of_slice, place_among, set_where, whole_index
from bwcompiler.frontend.numpy.selected.lines import Parts, along, made, parts_of, spread, with_line, without_line, zeroed
from bwcompiler.frontend.numpy.selected.packing import fixed, has_mask_of, packed, require
from bwcompiler.frontend.tracing.handles import assign, value_of
from bwcompiler.frontend.tracing.indexing.data_slices import is_number
from bwcompiler.frontend.tracing.indexing.grids import Grid, Line
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection, SizedByData, refuse
from bwcompiler.frontend.tracing.operands import as_tracer, materialise, operand, without_imaginary_part
from bwcompiler.frontend.tracing.promotion import require_cast
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.ir.op import Value


def _entries(x: Grid, index: Any) -> list[Any]:
    """The entries of an index, one for each axis and each new axis."""
    entries = whole_index(x, list(index) if isinstance(index, tuple) else [index])
    count = sum([entry is not None for entry in entries])
    if count > x.ndim:
        raise IndexError(f"too many indices for array: array is {x.ndim}-dimensional, but {count} were indexed")
    return entries


def _is_all(entry: Any) -> bool:
    return isinstance(entry, slice) and entry.start is None and entry.stop is None and entry.step is None


# ----- a[index]
def item_of_grid(x: Grid, index: Any) -> Any:
    """a[i, 1:k], a[positions], of which at most one axis is indexed by positions."""
    entries = _entries(x, index)
    own = [entry for entry in entries if entry is not None]
    if sum(not (isinstance(entry, slice) or is_number(entry)) for entry in own) > 1:
        refuse("an index of several arrays")
    parts = Parts(x.array, x.lines)
    for axis in reversed(range(len(own))):
        if not _is_all(own[axis]):
            parts = _at(parts, axis, own[axis])
    found = made(*_with_new_axes(parts, entries))
    return seen_as(x, found) if all(isinstance(entry, slice) or entry is None or is_number(entry) for entry in entries) else found


def _at(parts: Parts, axis: int, entry: Any) -> Parts:
    """Indexed along one axis, whatever the others are."""
    line = parts.lines.get(axis)
    found = parts.array[(*[slice(None)] * axis, entry)] if line is None else item_along(along(parts, axis), entry)
    others = {place: one for place, one in parts.lines.items() if place != axis}
    if is_number(entry):
        return Parts(found, {place - (place > axis): one for place, one in others.items()})
    if isinstance(found, Selection):
        return with_line(Parts(found.array, others), axis, found)
    if np.ndim(found) != np.ndim(parts.array):
        refuse("an index of rows of positions")
    return Parts(found, others)


def _with_new_axes(parts: Parts, entries: list[Any]) -> Parts:
    kept = [entry for entry in entries if entry is None or not is_number(entry)]
    if not any(entry is None for entry in kept):
        return parts
    axes = [place for place, entry in enumerate(kept) if entry is not None]
    array = parts.array[tuple([None if entry is None else slice(None) for entry in kept])]
    return Parts(array, {axes[axis]: line for axis, line in parts.lines.items()})


# ----- a[index] = value
def set_item_of_grid(x: Grid, index: Any, value: Any) -> None:
    """a[i, 1:k] = value, for numbers, arrays, selections and grids."""
    require_unshared(x)
    entries = _entries(x, index)
    if any(entry is None for entry in entries) or not all(isinstance(entry, slice) or is_number(entry) for entry in entries):
        refuse("an assignment to such a part of it")
    _write(Parts(x.array, x.lines), entries, value)


def _write(parts: Parts, entries: list[Any], value: Any) -> None:
    """Assign to a part of an array: numbers and slices, one for each axis."""
    masks: dict[int, Any] = {}
    index = list(entries)
    for axis, entry in enumerate(entries):
        line = parts.lines.get(axis)
        if line is not None and is_number(entry):
            index[axis] = place_among(along(parts, axis), int(entry) if isinstance(entry, np.integer) else entry)
        elif line is not None:
            masks[axis], index[axis] = (line.where if _is_all(entry) else of_slice(along(parts, axis), entry)), slice(None)
    kept = [axis for axis, entry in enumerate(entries) if isinstance(entry, slice)]
    if not kept:
        parts.array[tuple(index)] = value
        return
    view = parts.array[tuple(index)]
    lines = {kept.index(axis): Line(mask, None) for axis, mask in masks.items()}
    if isinstance(view, SizedByData):              # beside slices with bounds that are data
        lines, view = {**lines, **parts_of(view).lines}, view.array
    fill(view, lines, value)


def fill(view: Any, lines: dict[int, Line], value: Any) -> None:
    """Assign to the elements on lines of an array."""
    given = _fitted(view, lines, parts_of(value))
    mask = spread(Parts(view, lines))
    payload = operand(given)[0]
    if isinstance(payload, Value):
        payload = without_imaginary_part(payload, view._type.dtype)
    assign(view, ops.select(value_of(mask), materialise(payload, view._type.dtype, view.shape), value_of(view)))


def fill_between(x: Any, value: Any) -> None:
    """Assign to what slices whose bounds are data are a view of."""
    if isinstance(x, Grid):
        fill(x.array, x.lines, value)
    else:
        set_where(x.array, x.where, x.lead, value)


def _fitted(view: Any, lines: dict[int, Line], given: Parts) -> Any:
    """What is assigned, as it broadcasts against all elements: along each line at the places of the elements."""
    ahead = np.ndim(view) - np.ndim(given.array)
    while ahead < 0 and np.shape(given.array)[0] == 1 and 0 not in given.lines:
        given = Parts(given.array[0], {axis - 1: line for axis, line in given.lines.items()})
        ahead += 1
    if ahead < 0:
        raise ValueError("could not broadcast input array: it has more axes than what it is assigned to")
    for axis in range(np.ndim(given.array)):
        target, line = lines.get(axis + ahead), given.lines.get(axis)
        if target is None and line is not None:
            given = without_line(given, axis, fixed(along(given, axis), view.shape[axis + ahead]))
        elif target is not None and (line is not None or np.shape(given.array)[axis] != 1):
            given = without_line(given, axis, _expanded(given, axis, target))
    return given.array


def _expanded(given: Parts, axis: int, target: Line) -> Any:
    """The elements along an axis, in order at the places where a mask is true."""
    if axis in given.lines:
        x = along(given, axis)
        if has_mask_of(x, Selection(target.where, target.where)):
            return given.array
        x = packed(x)
        array, count = x.array, x.count
    else:
        array = as_tracer(given.array)
        count = array.shape[axis]
    require(np.logical_or(count == 1, count == np.sum(target.where)), ValueError(
        "could not broadcast input array: different numbers of elements are selected on both sides of an assignment"))
    ranks = np.where(count == 1, 0, np.cumsum(target.where) - 1)
    return np.take(array, np.clip(ranks, 0, max(array.shape[axis] - 1, 0)), axis=axis)


def in_place(name: str, x: Grid, other: Any) -> Grid:
    """a += other."""
    require_unshared(x)
    found = of_selections(name, x, other)
    if np.ndim(found) != x.ndim:
        refuse("np." + name + " in place")
    dtype = (found.array if isinstance(found, Grid | Selection) else found)._type.dtype
    require_cast(dtype, x.array._type.dtype, "same_kind", f"np.{name}: in place")
    fill(x.array, x.lines, found)
    return x


HANDLERS.update(item_of_grid=item_of_grid, set_item_of_grid=set_item_of_grid, grid_in_place=in_place)


def set_crossed(x: Any, entries: list[Any], value: Any) -> None:
    """x[np.ix_(rows, columns)] = value: an extra last row receives what is assigned at positions that are not selected."""
    positions, lead, one = crossed(entries)
    if lead or any(isinstance(entry, slice) or entry is None for entry in positions[:1]):
        refuse("an assignment at such positions behind other axes")
    given, size = parts_of(one), x.shape[0]
    whole = Parts(as_tracer(np.zeros((*given.array.shape, *x.shape[len(entries) - _slices(entries):]))), given.lines)
    positions[0] = np.where(spread(given), np.where(positions[0] < 0, positions[0] + size, positions[0]), size)
    room = np.concatenate([x, x[:1]])
    chosen = parts_of(value)                       # where there are no elements, nan perhaps, there is no derivative
    room[tuple(positions)] = _fitted(whole.array, whole.lines, Parts(zeroed(chosen), chosen.lines))
    x[...] = room[:size]


HANDLERS["set_crossed"] = set_crossed


def _slices(entries: list[Any]) -> int:
    return sum([isinstance(entry, slice) for entry in entries])
