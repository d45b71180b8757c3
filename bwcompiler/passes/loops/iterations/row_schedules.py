"""In which order the columns of a few rows run, if the rows run together, and whether that keeps what has to be kept.

Row r of a block has column t at time t, or |r * delay| columns after row 0 has it.  At the times at which all rows of the block have a
column they run together.  The columns that a row has before run before, row after row, and those that it has after that run afterwards:

    rows 0..3, delay 1          row 0:  c c c|c c c c
                                row 1:    c c|c c c c|c            | where running together begins and ends
                                row 2:      c|c c c c|c c
                                row 3:       |c c c c|c c c

(The columns may also begin, or end, at another place in each row.)  What is done before the columns of a row is done right before the
first of them; what is done after them, right after the last.

With d = delay * direction, row r is at column c - r d while row 0 is at column c.  It has this column if lo_r <= c - r d <= hi_r.  Bounds
are affine, lo_r = lo_0 + r slope, so this is lo_0 + r (slope_lo + d) <= c <= hi_0 + r (slope_hi + d).  All rows 0..R have theirs if

    lo_0 + R max(0, slope_lo + d)  <=  c  <=  hi_0 + R min(0, slope_hi + d)

(`shared`; `_shift` is slope + d).

If an iteration of a row and one of a later row touch something in common, and one of them writes it, the first one has to run first.  That
is so if inequalities have no solution: those of indices within their bounds, of parts that have an element in common, and of the second one
being the first to run (`may_swap`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from bwcompiler.ir.extent import Extent, Index, Section, add_extents, known_le, scale_extent, substitute
from bwcompiler.passes.loops.inequalities import have_solution
from bwcompiler.passes.loops.iterations.nests import Access, Nest, slope


class Columns(NamedTuple):
    """Columns lo..hi of a row."""

    lo: Extent
    hi: Extent


class RowSchedule(NamedTuple):
    """`together` rows of a nest that run together, each `delay` columns behind the one before.  base: the index of the first one."""

    nest: Nest
    together: int
    delay: int

    # ----- rows and columns
    @property
    def direction(self) -> int:
        """Of the columns: 1 for upwards, -1 for downwards."""
        return 1 if self.nest.inner.attrs["step"] > 0 else -1

    def row(self, base: Extent, number: Extent) -> Extent:
        """The index of a row of the block."""
        return add_extents(base, scale_extent(number, 1 if self.nest.outer.attrs["step"] > 0 else -1))

    def all_of(self, base: Extent, number: Extent) -> Columns:
        """The columns of a row."""
        there = {self.nest.rows: self.row(base, number)}
        lo, hi = [substitute(self.nest.inner.attrs[name], there) for name in ("lo", "hi")]
        return Columns(lo, hi)

    def behind(self, number: Extent) -> Extent:
        """How much less a row's column is than that of the first row."""
        return scale_extent(number, self.direction * self.delay)

    def shared(self, base: Extent) -> Columns:
        """The columns of the first row at the times at which the rows run together."""
        lo, hi = self.all_of(base, 0)
        last = self.together - 1
        return Columns(add_extents(lo, max(0, self._shift("lo")) * last), add_extents(hi, min(0, self._shift("hi")) * last))

    def shared_of(self, base: Extent, number: Extent) -> Columns:
        """The columns of a row at these times."""
        return Columns(*[add_extents(end, scale_extent(self.behind(number), -1)) for end in self.shared(base)])

    def below(self, base: Extent, number: Extent) -> Columns:
        """The columns of a row under these."""
        return Columns(self.all_of(base, number).lo, add_extents(self.shared_of(base, number).lo, -1))

    def above(self, base: Extent, number: Extent) -> Columns:
        """The columns of a row over these."""
        return Columns(add_extents(self.shared_of(base, number).hi, 1), self.all_of(base, number).hi)

    def first(self, base: Extent, number: Extent) -> Columns:
        """The columns that a row has before the rows run together."""
        return self.below(base, number) if self.direction > 0 else self.above(base, number)

    def last(self, base: Extent, number: Extent) -> Columns:
        """The columns that a row has after that."""
        return self.above(base, number) if self.direction > 0 else self.below(base, number)

    def without_first(self) -> int | None:
        """The row that has no columns before the rows run together, the first or the last of the block; None where no row has any."""
        return self._without("lo" if self.direction > 0 else "hi")

    def without_last(self) -> int | None:
        """The row that has no columns after the rows run together."""
        return self._without("hi" if self.direction > 0 else "lo")

    def _without(self, end: str) -> int | None:
        change = self._shift(end)
        if not change:
            return None
        return self.together - 1 if (change > 0) == (end == "lo") else 0

    def _shift(self, end: str) -> int:
        """How much later, in columns of the first row, the columns of a row begin or end than those of the row before."""
        step = 1 if self.nest.outer.attrs["step"] > 0 else -1
        return slope(self.nest.inner.attrs[end], self.nest.rows) * step + self.direction * self.delay

    def fits(self, bases: Index) -> bool:
        """Whether no row of any block ends before all have begun."""
        shared = self.shared(bases.extent())
        return known_le(add_extents(shared.lo, -1), shared.hi) is True

    def keeps_order(self, bases: Index) -> bool:
        """Whether all that has to run first does; nor does a row read what another one has just computed."""
        before, inside, after = self.nest.touched
        pairs = _Pairs(self, bases)
        return not (any(pairs.may_swap(first, second, True, True) for first, second in _conflicts(inside, inside))
                    or any(pairs.may_swap(first, second, True, False) for first, second in _conflicts(inside, before))
                    or any(pairs.may_swap(first, second, False, True) for first, second in _conflicts(after, inside))
                    or any(pairs.may_swap(first, second, False, False) for first, second in _conflicts(after, before)))


def waits(nest: Nest) -> bool:
    """Whether an iteration reads what the one before it in its row has written."""
    step = 1 if nest.inner.attrs["step"] > 0 else -1
    after = {nest.columns: add_extents(nest.columns.extent(), step)}
    pairs = [(first, second) for first, second in _conflicts(nest.touched[1], nest.touched[1])
             if first.writes and (second.added or not second.writes)]
    return any(have_solution(_in_common(first.section, _substituted(second.section, after))) for first, second in pairs)


class _Pairs:
    """Two rows of a block, the second one a later one, with a column of each."""

    def __init__(self, schedule: RowSchedule, bases: Index) -> None:
        self.schedule = schedule
        self.base = bases.extent()
        last = schedule.together - 1
        self.number, self.later = Index(0, last - 1, "row").extent(), Index(1, last, "later").extent()
        self.column, self.other = Index(0, 0, "column").extent(), Index(0, 0, "other").extent()
        self.second = add_extents(self.number, self.later)
        self.bounds = [*_between(self.base, bases.lo, bases.hi), self.number, add_extents(self.later, -1), last - self.second]

    def may_swap(self, first: Access, second: Access, moves: bool, other_moves: bool) -> bool:
        """Whether what the first row touches first may be touched by the second one before.

        moves, other_moves: whether it is touched in a column, rather than before or after the columns.
        """
        schedule, rows, columns = self.schedule, self.schedule.nest.rows, self.schedule.nest.columns
        here = {rows: schedule.row(self.base, self.number), columns: self.column}
        there = {rows: schedule.row(self.base, self.second), columns: self.other}
        system = [*self.bounds, *_in_common(_substituted(first.section, here), _substituted(second.section, there))]
        if moves:
            system += [*_between(self.column, *schedule.all_of(self.base, self.number)), self._is_not_in_first()]
        if other_moves:
            system += [*_between(self.other, *schedule.all_of(self.base, self.second)), self._is_not_in_last()]
        if moves and other_moves:
            ahead = add_extents(self.other, scale_extent(self.column, -1))
            time = add_extents(scale_extent(ahead, schedule.direction), scale_extent(self.later, schedule.delay))
            waits = first.writes and not second.writes           # a value that was just computed is there one iteration later
            system.append(add_extents(scale_extent(time, -1), 0 if waits else -1))
        return have_solution(system)

    def _is_not_in_first(self) -> Extent:
        shared = self.schedule.shared_of(self.base, self.number)
        return _difference(self.column, shared.lo) if self.schedule.direction > 0 else _difference(shared.hi, self.column)

    def _is_not_in_last(self) -> Extent:
        shared = self.schedule.shared_of(self.base, self.second)
        return _difference(shared.hi, self.other) if self.schedule.direction > 0 else _difference(self.other, shared.lo)


def _conflicts(first: Sequence[Access], second: Sequence[Access]) -> Iterator[tuple[Access, Access]]:
    """Pairs that touch one array, of which one writes."""
    return ((one, other) for one in first for other in second if one.number == other.number and (one.writes or other.writes))


def _substituted(section: Section, extents: Mapping[Index, Extent]) -> Section:
    return section._replace(starts=tuple([substitute(start, extents) for start in section.starts]),
                            sizes=tuple([substitute(size, extents) for size in section.sizes]))


def _in_common(first: Section, second: Section) -> list[Extent]:
    """What is >= 0 if two parts have an element in common."""
    found = []
    for axis in range(len(first.starts)):
        (low, high), (other_low, other_high) = first.bounds(axis), second.bounds(axis)
        found += [_difference(high, other_low), _difference(other_high, low)]
    return found


def _between(place: Extent, lo: Extent, hi: Extent) -> list[Extent]:
    return [_difference(place, lo), _difference(hi, place)]


def _difference(first: Extent, second: Extent) -> Extent:
    return add_extents(first, scale_extent(second, -1))
