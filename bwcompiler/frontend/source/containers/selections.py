"""Variables that hold what data select, `near = x[x > 0.1 * k]`: bound anew in a loop or branch, the elements and the mask are carried."""

from __future__ import annotations

from typing import Any, NamedTuple

from bwcompiler.frontend.numpy.selected.packing import as_view, merged
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.tracer import fresh

KEYS = ("elements", "mask")


class Layout(NamedTuple):
    """What two selections must have in common to be carried as one: the extents, with room for all elements, and where the mask's is."""

    extents: tuple[Any, ...]
    lead: int
    of_rows: bool


def layout_of(x: Any) -> Layout | None:
    """The layout of a selection that can be carried: of one that is no view of an array."""
    if type(x) is not Selection:
        return None
    extents, rank = x.array.shape, x.where.ndim
    return Layout((*extents[:x.lead], x.where.size, *extents[x.lead + rank:]), x.lead, x.of_rows)


def parts_of(x: Selection) -> list[Any]:
    """The elements and the mask, as they are now."""
    rows = merged(x)
    return [fresh(value_of(as_tracer(rows.array))), fresh(value_of(as_tracer(rows.where)))]


def whole(layout: Layout, elements: Any, mask: Any) -> Selection:
    """The selection with these parts."""
    found = Selection(fresh(value_of(elements)), fresh(value_of(mask)), layout.lead)
    found.of_rows = layout.of_rows
    return found


def stands_for(found: Selection, *others: Any) -> None:
    """A selection holds what one of others does, and may be that one: neither is to be changed in place while there are both."""
    for one in others:
        if isinstance(one, Selection):
            as_view(one, found)
