"""Packed selections (selected elements first), selections by a common mask, and checks at run time."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.indexing.data_slices import DataSlice
from bwcompiler.frontend.tracing.indexing.grids import Grid
from bwcompiler.frontend.tracing.indexing.masked_selection import SELECTED, Selection, SizedByData, refuse, same_value, spread
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.frontend.tracing.storages.views import BroadcastView
from bwcompiler.frontend.tracing.tracer import Tracer, fresh, fresh_array, handle

Handler = TypeVar("Handler", bound=Callable[..., Any])


def selected(*functions: Any) -> Callable[[Handler], Handler]:
    """Register the decorated function as the implementation of NumPy's `functions` for selections."""
    def register(handler: Handler) -> Handler:
        SELECTED.update(dict.fromkeys(functions, handler))
        return handler
    return register


def require(holds: Any, error: Exception) -> None:
    """Raise the error at run time if `holds` is false."""
    if not isinstance(holds, Tracer):
        if not holds:
            raise error
        return
    if open_region().policy is None:
        raise UnsupportedError(f"compiled code raises {type(error).__name__} here if {error}, which needs the source of the function")
    HANDLERS["raise_where"](np.logical_not(holds), error)


def merged(x: Selection) -> Selection:
    """The selection with the axes of its mask merged into one."""
    if x.where.ndim == 1:
        return x
    extents = x.array.shape
    behind = extents[x.lead + x.where.ndim:]
    return Selection(x.array.reshape((*extents[:x.lead], x.where.size, *behind)), x.where.ravel(), x.lead)


def flat(x: Selection) -> Selection:
    """`x.ravel()`: all its elements along one axis."""
    if x.lead:
        x = Selection(np.moveaxis(x.array, range(x.lead, x.lead + x.where.ndim), range(x.where.ndim)), x.where) if x.ndim == 1 else _rows(x)
    if x.ndim == 1:
        return merged(x)
    mask = np.broadcast_to(x.where.reshape(x.where.shape + (1,) * (x.array.ndim - x.where.ndim)), x.array.shape)
    return Selection(x.array.ravel(), mask.ravel())


def _rows(x: Selection) -> Selection:
    """The selection with its mask broadcast to all axes."""
    mask = x.where.reshape((1,) * x.lead + x.where.shape + (1,) * (x.array.ndim - x.lead - x.where.ndim))
    return Selection(x.array, np.broadcast_to(mask, x.array.shape))


def number(x: Selection) -> Any:
    """The number of selected elements, a NumPy integer."""
    return np.sum(x.where) if x.count is None else x.count


def prefix(array: Any, count: Any, lead: int) -> Selection:
    """The first `count` elements along the axis `lead`."""
    return Selection(array, as_tracer(np.arange(array.shape[lead]) < count), lead, count)


def filled(x: Selection, value: Any) -> Any:
    """All elements, with `value` for those that are not selected."""
    return np.where(spread(x), x.array, value)


def lowest(dtype: Any, largest: bool) -> Any:
    """The neutral element of the maximum of a dtype (of the minimum if not `largest`)."""
    if dtype.kind == "f":
        return dtype.type(-np.inf if largest else np.inf)
    if dtype.kind == "b":
        return np.bool_(not largest)
    if dtype.kind not in "iu":
        refuse(f"the order of {dtype} numbers")
    return dtype.type(np.iinfo(dtype).min if largest else np.iinfo(dtype).max)


def zeroed(x: Selection) -> Any:
    """All elements, with 0 for those that are not selected."""
    return filled(x, np.zeros((), x.dtype)[()])


def guarded(x: Selection) -> Any:
    """All elements, of which some selected ones are taken by their positions.

    Others may be inf or nan, as in `(1 / x[x > 0])[0]`, and so may what their zero cotangents are multiplied by: these are masked zeros.
    """
    return zeroed(x) if needs_guard(x) else x.array


def needs_guard(x: Selection) -> bool:
    """Whether what is not selected may be inf or nan, and have derivatives."""
    return x.dtype.kind in "fc" and x.where.size > 0 and not isinstance(x, DataSlice)


def packed(x: Selection) -> Selection:
    """The packed selection: the selected elements first, in order."""
    x = merged(x)
    if x.count is not None:
        return with_all(x, guarded(x))
    size = x.where.shape[0]
    if isinstance(x, DataSlice) and size:
        return prefix(np.take(x.array, np.minimum(x.start + np.arange(size), size - 1), axis=x.lead), x.number, x.lead)
    if not size:
        return prefix(x.array, np.sum(x.where), x.lead)
    rank = np.cumsum(x.where)                      # the rank of each selected element, from 1
    places = np.minimum(np.searchsorted(rank, np.arange(1, size + 1)), size - 1)
    return prefix(np.take(guarded(x), places, axis=x.lead), rank[-1], x.lead)


def cut(x: Selection, size: int) -> Selection:
    """A packed selection with at most `size` elements."""
    if x.array.shape[x.lead] <= size:
        return x
    assert x.count is not None
    return prefix(x.array[(slice(None),) * x.lead + (slice(0, size),)], x.count, x.lead)


def fixed(x: Selection, size: int) -> Any:
    """The elements of a selection whose number must be `size`; raises at run time if it is not."""
    x = packed(x)
    require(x.count == size, ValueError(f"operands could not be broadcast together: {size} elements with another number of selected ones"))
    if x.array.shape[x.lead] < size:
        raise ValueError(f"operands could not be broadcast together: {size} elements, and at most {x.array.shape[x.lead]} are selected")
    return x.array[(slice(None),) * x.lead + (slice(0, size),)]


def has_mask_of(x: Selection, other: Selection) -> bool:
    """Whether both have the same mask and number of axes."""
    return x.where.shape == other.where.shape and same_value(value_of(x.where), value_of(other.where))


def aligned(selections: Sequence[Selection], broadcast: bool = False) -> list[Selection]:
    """The selections by a common mask.  Those by different masks are packed; raises at run time if their numbers of elements differ.

    broadcast: single elements may be repeated.
    """
    if all(has_mask_of(other, selections[0]) for other in selections):
        return list(selections)
    found = [merged(x) for x in selections]
    if all(has_mask_of(other, found[0]) for other in found):
        return found
    found = [packed(x) for x in found]
    if broadcast:
        return _broadcast(found)
    for other in found[1:]:
        require(found[0].count == other.count,
                ValueError("operands could not be broadcast together: different numbers of elements are selected"))
    size = min([x.array.shape[x.lead] for x in found])
    count = found[0].count
    return [prefix(cut(x, size).array, count, x.lead) for x in found]


def _broadcast(selections: list[Selection]) -> list[Selection]:
    """Packed selections with equal numbers of elements; single elements are repeated."""
    count = selections[0].count
    for x in selections[1:]:
        require(np.logical_or(np.logical_or(count == 1, x.count == 1), count == x.count),
                ValueError("operands could not be broadcast together: different numbers of elements are selected"))
        count = np.where(count == 1, x.count, count)
    size = max([x.array.shape[x.lead] for x in selections])
    found = []
    for x in selections:
        room = x.array.shape[x.lead]
        places = np.where(x.count == 1, 0, np.minimum(np.arange(size), max(room - 1, 0)))
        found.append(prefix(np.take(x.array, places, axis=x.lead) if room else x.array, count, x.lead))
    return found


def with_all(x: Selection, array: Any, lead: int | None = None) -> Selection:
    """A selection of other elements by the same mask."""
    return Selection(array, x.where, x.lead if lead is None else lead, x.count)


def part_of(x: Selection, array: Any, lead: int) -> Selection:
    """What the mask of x, merged, selects of a view of its elements: of a slice a slice, which follows later changes."""
    return DataSlice(array, x.start, x.stop, lead) if isinstance(x, DataSlice) else as_view(x, with_all(merged(x), array, lead))


def as_view(x: Selection, view: Selection) -> Selection:
    """A view of x that does not follow later changes; x must not change while it exists."""
    if isinstance(x, DataSlice):
        refuse("a view of it")
    if view is not x:
        view.viewed = x if x.viewed is None else x.viewed
        view.viewed.views.append(weakref.ref(view))
    return view


_PART = (": it is a part of x[mask] with a traced mask, of which compiled code has a copy\n"
         "  hint: assign to x[mask] itself, y[k] = ..., or change a copy: part.copy()")


def as_part(x: SizedByData, part: Any) -> Any:
    """A part of x, of known extents, that is a copy where NumPy gives a view: nobody writes to it, and x must not change meanwhile."""
    found, whole = fresh_array(value_of(part)), x if x.viewed is None else x.viewed
    whole.views.append(weakref.ref(found._storage))
    return handle(found._storage, (BroadcastView(found.shape, _PART),), found._type)


def selected_axis(x: Selection, axis: Any) -> int:
    """An axis of x, from 0."""
    found = int(axis)
    if not -x.ndim <= found < x.ndim:
        raise np.exceptions.AxisError(found, x.ndim)
    return found % x.ndim


def copied(x: SizedByData) -> Any:
    """A copy that does not change with x."""
    if isinstance(x, Selection):
        return Selection(fresh(value_of(x.array)), x.where, x.lead, x.count, x.places)
    return Grid(fresh(value_of(x.array)), x.lines) if isinstance(x, Grid) else x
