"""`joined`: a nest of two loops that walks through memory as one loop would, as that loop.

    for i in 0..8                                                     for k in 0..24
      for c in 0..3                                             ->      y[k] = x[k - 3] if in_range(k - 3, 0, 18) else 0
        y[3*i + c] = x[3*i + c - 3] if in_range(i - 1, 0, 6) else 0

A guard on the outer index is one on the joined index:  low <= i + a < high  <=>  n low <= k + n a < n high  for i = floor(k / n), since
both bounds are multiples of n.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bwcompiler.ir.extent import Extent, Index, add_extents, scale_extent
from bwcompiler.ir.loop import Accumulate, Accumulator, Fill, Let, Loop, Offset, Statement, Store
from bwcompiler.ir.scalar import Scalar
from bwcompiler.lowering.loops.split_guards import Copy

SHORT_GUARDED = 16             # rows under guards are joined below this many elements: longer ones fill vectors, which then need no masks

_Guard = tuple[Extent, Extent, Extent]


def joined(outer: Loop, inner: Loop, kind: str) -> Loop | None:
    """The loop over all iterations of `inner`, the only loop in `outer`; None if the nest is not one walk."""
    count = inner.extent
    if not isinstance(count, int) or not count or not outer.extent:
        return None
    for extent in _extents(inner.body, set()):
        guards = count < SHORT_GUARDED and isinstance(extent, tuple)
        if _guard_of(extent, outer.index, inner.index, count) is None if guards else not _is_walk(extent, outer.index, inner.index, count):
            return None
    extent = scale_extent(outer.extent, count)
    index = Index(0, add_extents(extent, -1), inner.index.name)
    return Loop(index, extent, _Joined(outer.index, inner.index, count, index).statements(inner.body), kind)


def _is_walk(extent: Extent | _Guard, outer: Index, inner: Index, count: int) -> bool:
    """Whether one step of the outer loop moves as far as `count` steps of the inner one; so for all parts of a guard."""
    if isinstance(extent, tuple):
        return all(_is_walk(part, outer, inner, count) for part in extent)
    return _step(extent, outer) == count * _step(extent, inner)


def _guard_of(guard: Extent | _Guard, outer: Index, inner: Index, count: int) -> _Guard | None:
    """The guard with positions counted in steps of the inner loop, if it is one on the outer index, or a walk; otherwise None."""
    assert isinstance(guard, tuple)
    position, low, high = guard
    if _is_walk(guard, outer, inner, count):
        return guard
    if _step(position, outer) != 1 or any(_step(extent, index) for extent, index in
                                          ((position, inner), (low, outer), (low, inner), (high, outer), (high, inner))):
        return None
    return add_extents(scale_extent(position, count), inner.extent()), scale_extent(low, count), scale_extent(high, count)


def _step(extent: Extent, index: Index) -> int:
    return 0 if isinstance(extent, int) else dict(extent.terms).get(index, 0)


class _Joined(Copy):
    """The body of the inner loop for the joined index."""

    def __init__(self, outer: Index, inner: Index, count: int, index: Index) -> None:
        super().__init__({outer: 0, inner: index.extent()}, in_place=True)
        self.outer, self.inner, self.count = outer, inner, count

    def guard(self, position: Extent, low: Extent, high: Extent) -> Scalar:
        """Written as `count i + c`, of which the copy keeps the joined index."""
        counted = _guard_of((position, low, high), self.outer, self.inner, self.count)
        assert counted is not None
        return super().guard(*counted)


def _extents(body: Sequence[Statement], seen: set[int]) -> Iterator[Extent | _Guard]:
    """All extents in the statements, those of a guard together.  seen: ids of visited scalars."""
    for statement in body:
        if isinstance(statement, Loop):
            yield statement.extent
            yield from _extents(statement.body, seen)
        elif isinstance(statement, Let | Store | Accumulate | Fill):
            yield from _of_scalar(statement.value, seen)
            if isinstance(statement, Store):
                yield from _of_offset(statement.offset, seen)
            elif isinstance(statement, Accumulate):
                if not isinstance(statement.target, Accumulator):
                    yield from _of_offset(statement.target[1], seen)
                if statement.position is not None:
                    yield from _of_scalar(statement.position, seen)


def _of_offset(offset: Offset, seen: set[int]) -> Iterator[Extent | _Guard]:
    yield offset.affine
    for term, _ in offset.terms:
        yield from _of_scalar(term, seen)


def _of_scalar(scalar: Scalar, seen: set[int]) -> Iterator[Extent | _Guard]:
    if id(scalar) in seen:
        return
    seen.add(id(scalar))
    if scalar.op == "index":
        yield scalar.data
    elif scalar.op == "in_range":
        yield tuple(scalar.data)
    elif scalar.op == "load":
        yield scalar.data[1].affine
    for arg in scalar.args:
        yield from _of_scalar(arg, seen)
