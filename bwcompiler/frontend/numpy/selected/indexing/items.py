"""Items of selections, selections as indices, and assignments at masked positions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.frontend.numpy.selected.elementwise import of_selections, require_unshared
from bwcompiler.frontend.numpy.selected.indexing.crossed import are_crossed, by_crossed
from bwcompiler.frontend.numpy.selected.indexing.rows import row_of
from bwcompiler.frontend.numpy.selected.ordering import sliced
from bwcompiler.frontend.numpy.selected.packing import (
    aligned,
    as_part,
    fixed,
    guarded,
    has_mask_of,
    merged,
    number,
    packed,
    part_of,
    require,
    with_all,
)
from bwcompiler.frontend.tracing.handles import assign, value_of
from bwcompiler.frontend.tracing.indexing.data_slices import DataSlice, is_number
from bwcompiler.frontend.tracing.indexing.grids import Grid, Line
from bwcompiler.frontend.tracing.indexing.index_handle import IndexTracer
from bwcompiler.frontend.tracing.indexing.index_parsing import is_mask
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection, SizedByData, refuse, same_value, selection, spread
from bwcompiler.frontend.tracing.operands import as_tracer, materialise, operand, without_imaginary_part
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import ScalarTracer, Tracer, fresh
from bwcompiler.ir.op import Value


# ----- x[mask][index]
def item(x: Selection, index: Any) -> Any:
    """Rows by number, slice or selection, and columns; IndexError at run time if there are fewer rows."""
    index = _as_tuple(index)
    if x.of_rows and (x.lead or sum(one is not None and one is not Ellipsis for one in index) > 1):
        wrong = "index 0 is out of bounds for axis 0 with size 0" if x.lead else (
            "too many indices for array: array is 1-dimensional, but 2 were indexed")
        require(number(x) > 0, IndexError(wrong))
    found = _item_across(x, index) if _is_across(x, index) else item_along(*_with_other_axes(x, index))
    return _of_one(x, found) if any(one is Ellipsis for one in index) and isinstance(found, ScalarTracer) else found


def _of_one(x: Selection, element: Any) -> Any:
    """x[..., 0] of one axis: an array without axes, which is a view."""
    return refuse("a view of an element of it") if isinstance(x, DataSlice) else as_part(x, element)


def _is_across(x: Selection, index: tuple[Any, ...]) -> bool:
    """Whether axes that are not the mask's are indexed by positions, masks, or what is not known while tracing."""
    entries = [entry for entry in whole_index(x, list(index)) if entry is not None] if x.ndim > 1 else []
    return any(axis != x.lead and not _is_known(entry) for axis, entry in enumerate(entries))


def _is_known(entry: Any) -> bool:
    if isinstance(entry, slice):
        return not any(isinstance(bound, Tracer) for bound in (entry.start, entry.stop, entry.step))
    return isinstance(entry, int | np.integer)


def _item_across(x: Selection, index: tuple[Any, ...]) -> Any:
    """As of a grid with one line; views of a slice whose bounds are data are those of the array."""
    entries = whole_index(x, list(index))
    if not isinstance(x, DataSlice) or not all(isinstance(entry, slice) or entry is None or is_number(entry) for entry in entries):
        return HANDLERS["item_of_grid"](as_grid(x), index)
    place = [place for place, entry in enumerate(entries) if entry is not None][x.lead]
    own = item_along(x, entries[place])
    if not isinstance(own, DataSlice):             # a number, or a copy
        entries[place:place + 1] = [] if is_number(entries[place]) else [slice(None)]
        return own[tuple(entries)]
    entries[place] = slice(own.start, own.stop)
    return own.array[tuple(entries)]


def as_grid(x: Selection) -> Grid:
    """With one line."""
    merged_ = merged(x)
    found = Grid(merged_.array, {x.lead: Line(merged_.where, x.count)})
    found.viewed, found.views = x.viewed, x.views
    return found


def item_along(x: Selection, own: Any) -> Any:
    """Indexed along the axis of the mask alone."""
    if isinstance(own, slice):
        return sliced(x, own)
    if isinstance(own, Selection):
        return _by_selection(x, own)
    if isinstance(own, list):
        own = as_tracer(own)
    if is_mask(own):
        array = as_tracer(own)
        return selection(fixed(x, array.shape[0]), array, x.lead)
    return _at(x, own)


def _as_tuple(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def rows(x: Selection) -> Iterator[Any]:
    """The items for iteration or unpacking, if the first axis has a known extent."""
    count = x.array.shape[0]
    if x.of_rows:
        require(number(x) > 0, ValueError(f"not enough values to unpack (expected {count}, got 0)"))
    return iter([item(x, k) for k in range(count)])


HANDLERS["rows_of_selection"] = rows


def _with_other_axes(x: Selection, index: tuple[Any, ...]) -> tuple[Selection, Any]:
    """x with the other axes indexed, and the index of its own axis."""
    consumed = sum(one is not None and one is not Ellipsis for one in index)
    if not any(one is Ellipsis for one in index):
        index = (*index, Ellipsis)
    place = next(number for number, one in enumerate(index) if one is Ellipsis)
    whole = (*index[:place], *[slice(None)] * (x.ndim - consumed), *index[place + 1:])
    axes = [number for number, one in enumerate(whole) if one is not None]
    if len(axes) != x.ndim:
        raise IndexError(f"too many indices for array: array is {x.ndim}-dimensional, but {len(axes)} were indexed")
    own = whole[axes[x.lead]]
    others = [one for number, one in enumerate(whole) if number != axes[x.lead]]
    if all(isinstance(one, slice) and one == slice(None) for one in others):
        return x, own
    given, x = x, merged(x)
    if not all(one is None or isinstance(one, int | np.integer | slice) for one in others):
        refuse("an index by arrays along other axes")
    array = x.array[tuple([slice(None) if number == axes[x.lead] else one for number, one in enumerate(whole)])]
    return part_of(given, array, sum(one is None or isinstance(one, slice) for one in whole[:axes[x.lead]])), own


def _by_selection(x: Selection, index: Selection) -> Selection:
    """x[x > 0], x[order] for selections."""
    if index.ndim != 1:
        refuse("an index of several axes")
    if index.dtype == bool:
        x, index = aligned([x, merged(index)])
        return Selection(fresh(value_of(x.array)), np.logical_and(x.where, index.array), x.lead)
    if index.dtype.kind not in "iu":
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    return with_all(merged(index), _taken(packed(x), merged(index)), x.lead)


def _taken(x: Selection, index: Selection) -> Any:
    """The elements of a packed selection at the positions of another selection."""
    places = _from_start(index, number(x), "an index is out of bounds: fewer elements are selected")
    return np.take(x.array, np.clip(places, 0, max(x.array.shape[x.lead] - 1, 0)), axis=x.lead)


def place_among(x: Selection, index: Any) -> Any:
    """The positions among all elements for given positions among the selected ones."""
    rank = np.cumsum(x.where) if x.count is None else None
    count = x.count if rank is None else rank[-1] if x.where.shape[0] else 0
    wanted = np.where(np.less(index, 0), index + count, index) if not isinstance(index, int) else index if index >= 0 else count + index
    inside = np.logical_and(wanted >= 0, wanted < count)
    require(np.all(inside), IndexError(f"index {index} is out of bounds: fewer elements are selected" if isinstance(index, int) else
                                       "an index is out of bounds: fewer elements are selected"))
    last = max(x.where.shape[0] - 1, 0)
    return np.clip(wanted, 0, last) if rank is None else np.minimum(np.searchsorted(rank, wanted + 1), last)


def _at(x: Selection, index: Any) -> Any:
    given, x = x, merged(x)
    if isinstance(index, np.integer):
        index = int(index)
    if isinstance(index, float | str) or (isinstance(index, Tracer | np.ndarray) and index.dtype.kind not in "iu"):
        raise IndexError("only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are valid "
                         f"indices, not {index!r}")
    if not x.where.shape[0]:
        raise IndexError(f"index {index} is out of bounds: no element is selected")
    place = place_among(x, index)
    if np.ndim(place) or x.ndim == 1:
        return guarded(x)[(*[slice(None)] * x.lead, place)]
    is_copy = given.viewed is not None and given.array._storage is not given.viewed.array._storage
    return as_part(given, row_of(x, place)) if is_copy else row_of(x, place)


def set_item(x: Selection, index: Any, value: Any) -> None:
    """x[index] = value for a selection, which is a copy, or a slice, which is a view."""
    require_unshared(x)
    if x.where.ndim == 1 and index is not Ellipsis and _is_across(x, _as_tuple(index)):
        HANDLERS["set_item_of_grid"](as_grid(x), index, value)
        x.places = None
        return
    part, own = (x, slice(None)) if index is Ellipsis else _with_other_axes(x, _as_tuple(index))
    if x.where.ndim > 1 and part is not x:
        refuse("an assignment to columns of what a mask of several axes selects")
    if isinstance(own, Selection) and own.dtype == bool and own.ndim == 1 and has_mask_of(own, part):
        set_where(part.array, np.logical_and(own.array, own.where), part.lead, value)
    elif isinstance(own, slice) and own == slice(None):
        zeros = with_all(part, np.zeros_like(part.array))
        found = of_selections("add", zeros, value) if not isinstance(value, Selection) else value
        set_where(part.array, part.where, part.lead, found)
    elif isinstance(own, slice) and part.where.ndim == 1:
        set_where(part.array, of_slice(part, own), part.lead, value)
    elif isinstance(own, int | np.integer | ScalarTracer) and part.where.ndim == 1 and not is_mask(own):
        part.array[(*[slice(None)] * part.lead, place_among(part, int(own) if isinstance(own, np.integer) else own))] = value
    else:
        refuse("an assignment to a part of it")
    x.places = None


def of_slice(x: Selection, part: slice) -> Any:
    """The mask of the elements in a slice of the selected ones."""
    step = 1 if part.step is None else part.step
    if isinstance(step, Tracer) or step < 1:
        refuse("an assignment to a slice with such a step")
    count = number(x)
    rank = np.arange(x.where.shape[0]) if x.count is not None else np.cumsum(x.where) - 1

    def bound(place: Any) -> Any:
        return np.maximum(np.where(np.less(place, 0), place + count, place), 0)
    found = x.where if part.stop is None else np.logical_and(x.where, rank < bound(part.stop))
    if part.start is None and step == 1:
        return found
    start = bound(part.start or 0)
    return np.logical_and(found, np.logical_and(rank >= start, (rank - start) % step == 0))


HANDLERS.update(item_of_selection=item, set_item_of_selection=set_item)


# ----- x[positions that a mask selects]
def is_selecting(entries: Sequence[Any]) -> bool:
    """Whether one of the indices is a selection, a grid, or one row of positions."""
    return any(isinstance(entry, SizedByData) or _in_a_row(entry) is not None for entry in entries)


def _in_a_row(entry: Any) -> Selection | None:
    """The positions in an index of shape (1, n): those in a sequence by themselves, as np.where(test) has them, or behind a new axis."""
    if isinstance(entry, tuple | list) and len(entry) == 1 and isinstance(entry[0], Selection) and entry[0].ndim == 1:
        return entry[0]
    is_row = isinstance(entry, Selection) and entry.lead == 1 and entry.ndim == 2 and entry.array.shape[0] == 1
    return with_all(entry, entry.array[0], 0) if is_row else None


def _without_rows(entries: list[Any]) -> tuple[list[Any], bool]:
    """The entries, rows of positions as positions, and whether there are rows: then an axis of extent 1 is in front of the selected one."""
    rows = [_in_a_row(entry) for entry in entries]
    return [entry if row is None else row for entry, row in zip(entries, rows, strict=True)], any(row is not None for row in rows)


def whole_index(x: Any, entries: list[Any]) -> list[Any]:
    """The entries, one for each axis of x and each new axis."""
    rest = [slice(None)] * (x.ndim - sum(entry is not None and entry is not Ellipsis for entry in entries))
    place = next((k for k, entry in enumerate(entries) if entry is Ellipsis), len(entries))
    return [*entries[:place], *rest, *entries[place + 1:]]


def by_selections(x: Any, entries: list[Any]) -> Any:
    """x[entries] with entries that are positions or booleans selected by a mask."""
    if are_crossed(entries, _in_a_row):
        return by_crossed(x, whole_index(x, entries))
    entries, has_parts = _without_rows(entries)
    if has_parts:
        inner = by_selections(x, entries)
        return with_all(inner, inner.array[(*[slice(None)] * inner.lead, None)], inner.lead + 1)
    found = mask_of_places(x, entries)
    if found is not None:
        return selection(x, found)
    entries, where, lead = _adjacent(whole_index(x, entries))
    positions = [np.where(where, entry.array, 0) if isinstance(entry, Selection) else entry for entry in entries]
    return Selection(x[tuple(positions)], where, lead)


def _adjacent(entries: list[Any]) -> tuple[list[Any], Any, int]:
    """The entries with selections by one mask of one axis, the mask, and the position of the axis in the result."""
    selections = [entry for entry in entries if isinstance(entry, Selection)]
    if any(entry.dtype.kind not in "iu" or entry.ndim != 1 for entry in selections):
        refuse("an index of another kind")
    found = iter([merged(entry) for entry in aligned(selections)])
    entries = [next(found) if isinstance(entry, Selection) else entry for entry in entries]
    if not all(isinstance(entry, Selection | slice) or entry is None or is_number(entry) for entry in entries):
        refuse("an index of other arrays beside it")
    advanced = [place for place, entry in enumerate(entries) if not (isinstance(entry, slice) or entry is None)]
    together = advanced == list(range(advanced[0], advanced[-1] + 1))
    where = next(entry.where for entry in entries if isinstance(entry, Selection))
    return entries, where, advanced[0] if together else 0


def mask_of_places(x: Any, entries: list[Any]) -> Any:
    """The mask if the entries are np.nonzero(mask) for the leading axes of x; None otherwise."""
    first = entries[0]
    if not isinstance(first, Selection) or first.places is None or len(entries) != first.where.ndim or (
            first.where.shape != x.shape[:len(entries)]):
        return None
    mask = value_of(first.where)
    same = all(isinstance(entry, Selection) and entry.places == place and entry.where.shape == first.where.shape
               and same_value(value_of(entry.where), mask) for place, entry in enumerate(entries))
    return first.where if same else None


def set_selected(x: Any, entries: list[Any], value: Any) -> None:
    """x[entries] = value."""
    if are_crossed(entries, _in_a_row):
        HANDLERS["set_crossed"](x, whole_index(x, entries), value)
        return
    entries, has_parts = _without_rows(entries)
    part, chosen, lead = focused(x, entries)
    if has_parts:
        value = _of_row(value, part.ndim - lead - len(chosen) + 2)
    front = part if not lead else np.moveaxis(part, range(lead, lead + len(chosen)), range(len(chosen)))
    mask = mask_of_places(front, chosen)
    if mask is not None:
        set_where(part, mask, lead, value)
        return
    write_selected(front, chosen, _in_front(value, lead, front.ndim - len(chosen) + 1) if lead else value, operator.setitem)


def _in_front(value: Any, lead: int, ndim: int) -> Any:
    """What is assigned, with so many axes, the selected one first."""
    if isinstance(value, Selection):
        value = merged(value)
        if value.lead != lead or value.ndim != ndim:
            refuse("an assignment of another shape")
        return with_all(value, np.moveaxis(value.array, lead, 0), 0)
    if not np.ndim(value):
        return value
    array = as_tracer(value)
    return np.moveaxis(array.reshape((*[1] * (ndim - array.ndim), *array.shape)), lead, 0)


def _of_row(value: Any, axes: int) -> Any:
    """What is assigned without the axis of extent 1 in front of the selected one, which with those behind it makes so many axes."""
    if isinstance(value, Selection):
        return with_all(value, value.array[(*[slice(None)] * (value.lead - 1), 0)], value.lead - 1) if value.lead else value
    if np.ndim(value) < axes:
        return value
    array = as_tracer(value)
    if array.shape[-axes] != 1:
        raise ValueError(f"shape mismatch: value array of shape {array.shape} could not be broadcast to indexing result of one row")
    return array[(..., 0, *[slice(None)] * (axes - 1))]


def focused(x: Any, entries: list[Any]) -> tuple[Any, list[Any], int]:
    """(view of x, positions along neighbouring axes of it, number of axes in front of them): what entries with positions stand for."""
    positions = [entry for entry in entries if isinstance(entry, Selection)]
    if any(one.ndim != 1 or one.dtype.kind not in "iu" for one in positions) or not all(
            isinstance(entry, Selection | slice) or entry is Ellipsis or is_number(entry) for entry in entries):
        refuse("an assignment at such positions")
    whole = whole_index(x, entries)
    where = positions[0].where                     # a number that is data, along with positions, is one for each of them
    whole = [Selection(np.zeros(where.shape, np.int64) + entry, where) if isinstance(entry, Tracer) and not isinstance(entry, IndexTracer)
             else entry for entry in whole]
    part = x[tuple([slice(None) if isinstance(entry, Selection) else entry for entry in whole])]
    advanced = [k for k, entry in enumerate(whole) if not isinstance(entry, slice)]
    lead = advanced[0] if advanced == list(range(advanced[0], advanced[-1] + 1)) else 0
    axes = [k for k, entry in enumerate([entry for entry in whole if isinstance(entry, slice | Selection)]) if isinstance(entry, Selection)]
    if axes != list(range(lead, lead + len(axes))):
        part = np.moveaxis(part, axes, range(len(axes)))
    return part, [entry for entry in whole if isinstance(entry, Selection)], lead


def write_selected(x: Any, entries: list[Any], value: Any, write: Callable[[Any, Any, Any], object]) -> None:
    """Call `write(x, index, value)` for positions that a mask selects, along the first axes of x."""
    selections = [entry for entry in entries if isinstance(entry, Selection)]
    if len(selections) != len(entries) or any(one.ndim != 1 or one.dtype.kind not in "iu" for one in selections) or (
            isinstance(value, Selection) and value.lead):
        refuse("an assignment at such positions")
    if not x._type.is_fixed:
        refuse("an assignment to an array whose extents depend on the index of a loop")
    indices, size = [merged(one) for one in selections], x.shape[0]
    if isinstance(value, Selection):
        *indices, value = aligned([*indices, merged(value)])
        value = guarded(value)
    elif np.ndim(value) == x.ndim - len(indices) + 1 and np.shape(value)[0] != 1:
        indices, count = [packed(one) for one in aligned(indices)], np.shape(value)[0]
        require(indices[0].count == count, ValueError(f"cannot assign {count} values: another number of elements is selected"))
        indices = [Selection(one.array[:count], one.where[:count]) for one in indices]
    else:
        indices = aligned(indices)
    places = [_inside(one, axis, x.shape[axis]) for axis, one in enumerate(indices)]
    places[0] = np.where(indices[0].where, places[0], size)
    room = np.concatenate([x, x[:1]])              # an extra last row receives unselected values
    write(room, tuple(places), value)
    x[...] = room[:size]


def _inside(index: Selection, axis: int, size: int) -> Any:
    """Positions counted from the start of an axis, 0 for unselected ones; IndexError at run time if one is out of range."""
    return np.where(index.where, _from_start(index, size, f"an index is out of bounds for axis {axis} with size {size}"), 0)


def _from_start(index: Selection, count: Any, text: str) -> Any:
    """Positions among `count` elements, possibly negative; IndexError at run time if a selected one is out of range."""
    outside = np.logical_or(index.array >= count, index.array < -count)
    require(np.logical_not(np.any(np.logical_and(index.where, outside))), IndexError(text))
    return np.where(index.array < 0, index.array + count, index.array)


# ----- x[..., mask] = value
def set_where(x: Any, mask: Any, lead: int, value: Any) -> None:
    """x[..., mask] = value after `lead` slices, for numbers, arrays and selections."""
    if mask.shape != x.shape[lead:lead + mask.ndim]:
        raise IndexError(f"boolean index did not match indexed array: shapes {mask.shape} and {x.shape[lead:]}")
    target = Selection(x, mask, lead)
    behind = x.ndim - lead - mask.ndim
    payload = _of_places(target, value, behind) if np.ndim(value) > behind else operand(value)[0]
    if isinstance(payload, Value):
        payload = without_imaginary_part(payload, x._type.dtype)
    assign(x, ops.select(value_of(spread(target)), materialise(payload, x._type.dtype, x.shape), value_of(x)))


def filling(x: Any, shape: tuple[Any, ...]) -> Any:
    """What is assigned to a part of that shape: of a selection, as many elements as that has along the axis, or one for all of them."""
    if not isinstance(x, Selection):
        return x
    x, axis = packed(x), len(shape) - (x.ndim - x.lead)
    if axis < 0 or not isinstance(shape[axis], int) or not x.array.shape[x.lead]:
        refuse("an assignment of it")
    require(np.logical_or(x.count == shape[axis], x.count == 1), ValueError(
        f"could not broadcast input array: {shape[axis]} elements are assigned to, and another number is selected"))
    places = np.where(x.count == 1, 0, np.minimum(np.arange(shape[axis]), x.array.shape[x.lead] - 1))
    return np.take(x.array, places, axis=x.lead)


HANDLERS["filling"] = filling


def _of_places(target: Selection, value: Any, behind: int) -> Value:
    """Values, one per selected element, at the positions of these."""
    if not isinstance(value, Selection):
        array = as_tracer(value)
        extents, size = array.shape[array.ndim - behind:], array.shape[array.ndim - behind - 1]
        if size == 1:
            shape = (*array.shape[:array.ndim - behind - 1], *[1] * target.where.ndim, *extents)
            while len(shape) > target.array.ndim and shape[0] == 1:
                shape = shape[1:]
            return value_of(array.reshape(shape))
        require(number(target) == size, ValueError(
            f"NumPy boolean array indexing assignment cannot assign {size} input values to the output values where the mask is true: "
            "another number is selected"))
        if not size:                               # nothing to write
            return value_of(target.array)
        return value_of(_expanded(target, array, array.ndim - behind - 1))
    if value.array.ndim - value.lead - value.where.ndim != behind or value.lead > target.lead:
        refuse("an assignment of another shape")
    if has_mask_of(value, target):
        return value_of(value.array)
    value = merged(value)
    if has_mask_of(value, merged(Selection(target.where, target.where))):
        axes = value.array.shape
        return value_of(value.array.reshape((*axes[:value.lead], *target.where.shape, *axes[value.lead + 1:])))
    value = packed(value)
    require(np.logical_or(value.count == 1, value.count == number(target)),
            ValueError("different numbers of elements are selected on both sides of an assignment"))
    return value_of(_expanded(target, value.array, value.lead, value.count))


def _expanded(target: Selection, values: Any, axis: int, count: Any = None) -> Any:
    """The values along an axis, distributed in order over the true places of the mask."""
    ranks = np.cumsum(target.where.ravel()) - 1
    last = values.shape[axis] - 1
    ranks = ranks if count is None else np.where(count == 1, 0, ranks)
    found = np.take(values, np.clip(ranks, 0, max(last, 0)), axis=axis)
    return found.reshape((*values.shape[:axis], *target.where.shape, *values.shape[axis + 1:]))
