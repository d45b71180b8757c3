"""Selections with their elements in another shape: np.ravel, transpose, reshape."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler.frontend.numpy.selected.packing import (
    as_part,
    as_view,
    flat,
    merged,
    packed,
    part_of,
    prefix,
    require,
    selected,
    selected_axis,
    with_all,
)
from bwcompiler.frontend.tracing.indexing.data_slices import DataSlice
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection, refuse
from bwcompiler.frontend.tracing.tracer import Tracer


@selected(np.ravel)
def ravel(a: Selection, order: Any = "C") -> Selection:
    if order not in ("C", "K", "A") or (order != "C" and a.ndim > 1):
        refuse("np.ravel in another order")
    return as_view(a, flat(a))


@selected(np.transpose)
def transpose(a: Selection, axes: Any = None) -> Selection:
    if a.ndim == 1:
        return a
    x = merged(a)
    order = tuple(reversed(range(x.ndim))) if axes is None else tuple([selected_axis(x, one) for one in axes])
    found = part_of(a, np.transpose(x.array, order), order.index(x.lead))
    found.of_rows = a.of_rows
    return found


@selected(np.reshape)
def reshape(a: Selection, /, shape: Any = None, order: Any = "C", **options: Any) -> Any:
    """With one axis whose extent is data, written as -1 or as that number; or of known extents, which the elements must fill."""
    given = [shape] if isinstance(shape, int | np.integer | Tracer) else list(shape or ())
    places = [place for place, extent in enumerate(given) if isinstance(extent, Tracer) or extent == -1]
    if order != "C" or options or len(places) > 1:
        refuse("a reshape in another order, or to more than one extent that is data,")
    place = places[0] if places else len(given)
    front, back = tuple(map(int, given[:place])), tuple(map(int, given[place + 1:]))
    size = math.prod(front) * math.prod(back)
    if min((*front, *back), default=1) < 0 or (places and not size):
        raise ValueError(f"cannot reshape an array of selected elements into shape {_written(given)}")
    extent = given[place] if places else 1
    is_free = not isinstance(extent, Tracer) and bool(places)
    if not is_free or size > 1:
        require(a.size % size == 0 if is_free else a.size == size * extent,
                ValueError(f"cannot reshape an array of selected elements into shape {_written(given)}: they are fewer or more"))
    if not places:
        return _of_known_extents(a, front)
    found = _by_rows(a, front, back)
    return as_view(a, _taken_apart(a, a.size // size, front, back) if found is None else found)


def _written(shape: list[Any]) -> tuple[Any, ...]:
    return tuple([-1 if isinstance(extent, Tracer) else extent for extent in shape])


def _of_known_extents(a: Selection, shape: tuple[int, ...]) -> Any:
    if isinstance(a, DataSlice):
        refuse("a view of it")
    room, size = packed(flat(a)).array, math.prod(shape)
    if room.shape[0] < size:
        raise ValueError(f"cannot reshape an array of at most {room.shape[0]} elements into shape {shape}")
    return as_part(a, room[:size].reshape(shape))


def _by_rows(a: Selection, front: tuple[int, ...], back: tuple[int, ...]) -> Selection | None:
    """The elements where they are, if those that are selected together make whole rows of the new shape; else None."""
    x, size = merged(a), math.prod(back)
    together = x.array.size // x.where.size if x.where.size else 0
    if math.prod(front) != 1 or not together or together % size or (x.lead and together > 1):
        return None
    rows = together // size
    array = x.array.reshape((*front, x.where.size * rows, *back))
    return with_all(x, array, len(front)) if rows == 1 else Selection(array, np.repeat(x.where, rows), len(front))


def _taken_apart(a: Selection, extent: Any, front: tuple[int, ...], back: tuple[int, ...]) -> Selection:
    """The elements in order, so many along the axis whose extent is data."""
    room, before, behind = packed(flat(a)).array, math.prod(front), math.prod(back)
    most = room.shape[0] // (before * behind)
    if not most:
        return prefix(room[:0].reshape((*front, 0, *back)), extent, len(front))
    rows = np.arange(before)[:, None] * extent + np.arange(most)
    places = rows[:, :, None] * behind + np.arange(behind)
    return prefix(np.take(room, np.minimum(places, room.shape[0] - 1)).reshape((*front, most, *back)), extent, len(front))
