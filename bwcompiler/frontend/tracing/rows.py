"""Rows of one array that are put together again: `np.array(kept)` of a list that grew in a loop is a part of the array that the loop
wrote to, and no operation for each of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from bwcompiler.frontend.tracing.storages.region import Storage
from bwcompiler.frontend.tracing.storages.views import Slice, StridedView, same_chain
from bwcompiler.frontend.tracing.tracer import Tracer, handle
from bwcompiler.ir.types import tensor


class _Row(NamedTuple):
    """x[number], as `views[0]` of a storage gives it, seen through the other views."""

    storage: Storage
    number: int
    views: Sequence[StridedView]

    def follows(self, other: _Row, step: int) -> bool:
        return (self.storage is other.storage and self.number - other.number == step
                and _across(self.views[0]) == _across(other.views[0]) and same_chain(tuple(self.views[1:]), tuple(other.views[1:])))


def _across(view: StridedView) -> Any:
    """What a row takes of the other axes."""
    return view.axes, [(part.start, part.size, part.step) for part in view.slices[1:]]


def _row(item: Any) -> _Row | None:
    if not isinstance(item, Tracer) or not item._chain or item._storage.undecided is not None:
        return None
    views = [step for step in item._chain if type(step) is StridedView]
    if len(views) < len(item._chain) or not views[0].slices or 0 in views[0].axes:
        return None
    first = views[0].slices[0]
    return _Row(item._storage, first.start, views) if type(first.start) is int and first.size == 1 else None


def together(items: Sequence[Any]) -> list[tuple[Any, bool]]:
    """The items, but one array in the place of rows that lie one after another at equal distances, and whether it is one."""
    found: list[tuple[Any, bool]] = []
    rows = [_row(item) for item in items]
    start = 0
    while start < len(items):
        end = _end(rows, start)
        first, second = rows[start:start + 2] if end > start + 1 else (None, None)
        if first is None or second is None:
            found.append((items[start], False))
        else:
            found.append((_joined(first, second.number - first.number, end - start), True))
        start = end
    return found


def are_rows(items: Sequence[Any]) -> bool:
    """Whether most of the items are such rows."""
    return len(items) > 1 and any(_row(item) for item in items[:2]) and 2 * len(together(items)) <= len(items)


def _end(rows: Sequence[_Row | None], start: int) -> int:
    """Where the rows end that begin at `start`."""
    end, step = start + 1, 0
    while end < len(rows):
        row, before = rows[end], rows[end - 1]
        if row is None or before is None:
            break
        step = step or row.number - before.number
        if step == 0 or not row.follows(before, step):
            break
        end += 1
    return end


def _joined(row: _Row, step: int, count: int) -> Tracer:
    first, *others = row.views
    slices = (Slice(row.number, count, step), *first.slices[1:])
    views = [StridedView(first.base_shape, slices, (0, *first.axes))]
    for view in others:                            # of each row
        axes = tuple([None if axis is None else axis + 1 for axis in view.axes])
        views.append(StridedView((count, *view.base_shape), (Slice(0, count, 1), *view.slices), (0, *axes)))
    return handle(row.storage, tuple(views), tensor(row.storage.type.dtype, views[-1].shape))
