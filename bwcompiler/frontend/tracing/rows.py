"""Rows of one array that are stacked again: `np.array(kept)` of a list that grew in a loop is a part of the array that the loop
wrote to, without an operation for each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from bwcompiler.frontend.tracing.storages.region import Storage
from bwcompiler.frontend.tracing.storages.strided_views import Slice, StridedView
from bwcompiler.frontend.tracing.storages.views import Chain
from bwcompiler.frontend.tracing.tracer import Tracer, handle
from bwcompiler.ir.types import tensor


class _Row(NamedTuple):
    """A part of a storage: `places`, those that it has on the axes of the storage that it does not walk along."""

    storage: Storage
    places: tuple[int | None, ...]
    view: StridedView

    def step_from(self, other: _Row) -> tuple[int, int] | None:
        """How far it lies behind another one, and on which axis; None where it does on several, or is another part."""
        if self.storage is not other.storage or not _alike(self.view, other.view):
            return None
        steps = [(axis, x - y) for axis, (x, y) in enumerate(zip(self.places, other.places, strict=True)) if
                 x is not None and y is not None and x != y]
        return steps[0] if len(steps) == 1 else None


def _alike(x: StridedView, y: StridedView) -> bool:
    """Whether two views take the same of the axes that they walk along."""
    return x.axes == y.axes and all((a.start, a.size, a.step) == (b.start, b.size, b.step) for axis, (a, b) in enumerate(
        zip(x.slices, y.slices, strict=True)) if axis in x.axes)


def _row(item: Any) -> _Row | None:
    if not isinstance(item, Tracer) or not item._chain or item._storage.undecided is not None:
        return None
    view = _composed(item._chain)
    if view is None:
        return None
    places = tuple([None if axis in view.axes else part.start for axis, part in enumerate(view.slices)])
    if all(place is None for place in places) or any(place is not None and type(place) is not int for place in places):
        return None
    return _Row(item._storage, places, view)


def _composed(chain: Chain) -> StridedView | None:
    """One view that is all of a chain; None where there is none."""
    found = chain[0]
    if not isinstance(found, StridedView):
        return None
    for step in chain[1:]:
        if not isinstance(step, StridedView):
            return None
        cut = found.indexed([part if axis in step.axes else part.start for axis, part in enumerate(step.slices)])
        if cut is None:
            return None
        kept = [axis for axis in range(len(step.slices)) if axis in step.axes]        # which axis of `cut` each of them is
        found = StridedView(cut.base_shape, cut.slices, tuple([None if axis is None else cut.axes[kept.index(axis)] for axis in step.axes]))
    return found


def together(items: Sequence[Any]) -> list[tuple[Any, bool]]:
    """The items, but one array in the place of rows that lie one after another at equal distances, and whether it is one."""
    found: list[tuple[Any, bool]] = []
    rows = [_row(item) for item in items]
    start = 0
    while start < len(items):
        step, end = _end(rows, start)
        first = rows[start]
        if first is None or step is None:
            found.append((items[start], False))
        else:
            found.append((_joined(first, *step, end - start), True))
        start = end
    return found


def are_rows(items: Sequence[Any]) -> bool:
    """Whether most of the items are such rows."""
    return len(items) > 1 and any(_row(item) for item in items[:2]) and 2 * len(together(items)) <= len(items)


def _end(rows: Sequence[_Row | None], start: int) -> tuple[tuple[int, int] | None, int]:
    """The axis and the step of the rows that begin at `start`, if there are several, and where they end."""
    end, step = start + 1, None
    while end < len(rows):
        row, before = rows[end], rows[end - 1]
        further = None if row is None or before is None else row.step_from(before)
        if further is None or step not in (None, further):
            break
        step = further
        end += 1
    return step, end


def _joined(row: _Row, axis: int, step: int, count: int) -> Tracer:
    view, first = row.view, row.places[axis]
    slices = (*view.slices[:axis], Slice(first, count, step), *view.slices[axis + 1:])
    made = StridedView(view.base_shape, slices, (axis, *view.axes))
    return handle(row.storage, (made,), tensor(row.storage.type.dtype, made.shape))
