"""Nests of two loops over elements: what an iteration touches, and how far behind a row its next one has to stay if both run together.

A nest is a loop over rows, which are loops over columns, with what is done before and after the columns of a row.

Let an iteration of one row, and one of the row `rows` after it, touch something in common, and one of them write it, where the later row is
`columns` ahead (behind, if negative).  Rows that each run `delay` columns behind the one before keep the order of the two iterations if
columns >= -rows * delay: see `skew_loops`.  What is done before the columns of a row must not touch what earlier rows have yet to reach,
and what is done after them nothing that later rows have reached already.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.ir.access import section_of
from bwcompiler.ir.extent import Affine, Extent, Index, Section, add_extents, scale_extent, substitute
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Value

ELEMENTWISE = ("elementwise", "layout", "constant", "index")
EVERYWHERE = (-math.inf, math.inf)


class Access(NamedTuple):
    """A part of array `number` of the outer loop that is read or written; an addition is both, one after the other."""

    number: int
    section: Section
    writes: bool


class Nest(NamedTuple):
    """A loop over rows and the loop over columns in it.

    carried     per array that the inner loop carries, its number among those that the outer loop carries.
    constants   values that depend on nothing but the index of the row: they may be computed again anywhere.
    before, after       the other values, that the columns of a row need, and that need them.
    latest      the arrays that the outer loop carries, all of which change, when the columns of a row begin.
    touched     what is touched before, in and after the columns.
    """

    outer: Value
    inner: Value
    carried: Sequence[int]
    constants: Sequence[Value]
    before: Sequence[Value]
    after: Sequence[Value]
    latest: Sequence[Value]
    touched: tuple[Sequence[Access], Sequence[Access], Sequence[Access]]

    @property
    def rows(self) -> Index:
        return index_of(self.outer)

    @property
    def columns(self) -> Index:
        return index_of(self.inner)


def index_of(loop: Value) -> Index:
    """The index of a loop."""
    index: Index = loop.attrs["body"].index
    return index


def nest_of(outer: Value) -> Nest | None:
    """The nest that a loop with one loop inside is; None where its parts cannot be told from each other, or touch arrays unknown where."""
    body: Graph = outer.attrs["body"]
    inside = [value for value in body.body if value.op.regions]
    if len(inside) != 1 or inside[0].op is not ops.loop:
        return None
    inner = inside[0]
    entries = body.inputs[:outer.attrs["carried"]]
    if any(output in entries for output in body.outputs):
        return None
    constants = _constants(body, entries)
    needed = set(live_values(body.body, [inner]))
    rest = [value for value in body.body if value not in constants and value is not inner]
    before, after = [value for value in rest if value in needed], [value for value in rest if value not in needed]

    versions = {value: k for k, value in enumerate(entries)}
    first = _touched(before, versions)
    carried = [versions.get(operand) for operand in inner.operands[:inner.attrs["carried"]]]
    found = [number for number in carried if number is not None]
    latest = list({number: value for value, number in versions.items()}.values())
    if first is None or len(found) < len(carried) or not _is_given(inner, found, latest, {*constants, *body.inputs[len(entries):]}):
        return None
    middle = _touched_inside(inner, found)
    versions = {value: number for number, value in enumerate(latest) if number not in found}
    versions.update((value, found[value.attrs["index"]]) for value in after if value.op is ops.item and value.operands[0] is inner)
    allowed = {*versions, *constants, *body.inputs[len(entries):]}
    after = [value for value in after if value not in versions]
    last = _touched(after, versions) if _needs_only(after, allowed) else None
    if middle is None or last is None or [versions.get(output) for output in body.outputs] != list(range(len(entries))):
        return None
    return Nest(outer, inner, found, [value for value in body.body if value in constants], before, after, latest, (first, middle, last))


def _constants(body: Graph, states: Sequence[Value]) -> set[Value]:
    """The values of a body that no array that the loop changes goes into."""
    found = set(body.inputs).difference(states)
    for value in body.body:
        if value.op.kind in ELEMENTWISE and value.op.pure and found.issuperset(value.operands):
            found.add(value)
    return found.difference(body.inputs)


def _is_given(inner: Value, carried: Sequence[int], latest: Sequence[Value], constants: set[Value]) -> bool:
    """Whether a row begins with the latest versions of different arrays, and reads nothing else that the outer loop changes."""
    states, fixed = inner.operands[:len(carried)], inner.operands[len(carried):]
    return (len({*carried}) == len(carried) and all(latest[number] is value for number, value in zip(carried, states, strict=True))
            and constants.issuperset(fixed))


def _needs_only(values: Sequence[Value], given: set[Value]) -> bool:
    known = set(given)
    for value in values:
        if not known.issuperset(value.operands):
            return False
        known.add(value)
    return True


# ----- what is touched
def _touched(values: Sequence[Value], versions: dict[Value, int]) -> list[Access] | None:
    """What values touch of arrays; None where that is not known.  The versions that they make are added to those given."""
    found = []
    for value in values:
        numbers = [versions[operand] for operand in value.operands if operand in versions]
        if not numbers:
            continue
        if value.op is ops.slice:
            found.append(Access(numbers[0], section_of(value), False))
        elif value.op in ops.UPDATES and value.operands[0] in versions and len(numbers) == 1:
            part = section_of(value)
            found += [Access(numbers[0], part, False)] * (value.op is ops.slice_add) + [Access(numbers[0], part, True)]
            versions[value] = numbers[0]
        else:
            return None
    return found


def _touched_inside(inner: Value, carried: Sequence[int]) -> list[Access] | None:
    body: Graph = inner.attrs["body"]
    versions = dict(zip(body.inputs, carried, strict=False))
    found = _touched(body.body, versions)
    return found if all(versions.get(output) == number for output, number in zip(body.outputs, carried, strict=True)) else None


# ----- in which order
def waits(nest: Nest) -> bool:
    """Whether an iteration reads what the one before it in its row has written."""
    columns, step = nest.columns, nest.inner.attrs["step"]
    for first, second in _conflicts(nest.touched[1], nest.touched[1]):
        apart = _common(first.section, second.section, columns, step) if first.writes and not second.writes else None
        if apart is not None and apart[0] <= 1 <= apart[1]:
            return True
    return False


def delay_of(nest: Nest, together: int) -> int | None:
    """How many columns a row must be behind the one before, if `together` rows run together; None where no number is enough."""
    delay = 0
    for rows in range(1, together):
        for first, second in _conflicts(nest.touched[1], nest.touched[1]):
            common = _common(first.section, _rows_later(nest, second.section, rows), nest.columns, nest.inner.attrs["step"])
            if common is None:
                continue
            if common[0] == -math.inf:
                return None
            waiting = first.writes and not second.writes         # a value that was just computed is there one iteration later
            delay = max(delay, math.floor(-common[0] / rows) + 1 if waiting else math.ceil(-common[0] / rows))
    return delay if all(_ends_are_apart(nest, rows, delay) for rows in range(1, together)) else None


def _ends_are_apart(nest: Nest, rows: int, delay: int) -> bool:
    """Whether what is done before and after the columns of a row keeps its order with what is done in rows before and after it."""
    before, inside, after = nest.touched
    lo, hi, step = [nest.inner.attrs[name] for name in ("lo", "hi", "step")]
    start, count = {nest.columns: lo if step > 0 else hi}, hi - lo + 1

    for early, late in _conflicts(inside, before):               # the earlier row has run at least rows * delay columns
        section = _rows_later(nest, late.section, rows)
        common = _common(section, _substituted(early.section, start), nest.columns, step, early.section)
        if common is not None and common[1] >= rows * delay:
            return False
    for early, late in _conflicts(after, inside):                # the later row has as many still to run
        section = _rows_later(nest, late.section, rows)
        common = _common(early.section, _substituted(section, start), nest.columns, step, section)
        if common is not None and common[0] < count - rows * delay:
            return False
    return all(_common(early.section, _rows_later(nest, late.section, rows), nest.columns, step) is None
               for early, late in _conflicts(after, before))


def _conflicts(first: Sequence[Access], second: Sequence[Access]) -> Iterator[tuple[Access, Access]]:
    """Pairs that touch one array, of which one writes."""
    return ((one, other) for one in first for other in second if one.number == other.number and (one.writes or other.writes))


def _rows_later(nest: Nest, section: Section, rows: int) -> Section:
    return _substituted(section, {nest.rows: add_extents(nest.rows.extent(), rows * nest.outer.attrs["step"])})


def _substituted(section: Section, extents: Mapping[Index, Extent]) -> Section:
    return section._replace(starts=tuple([substitute(start, extents) for start in section.starts]))


def _common(first: Section, second: Section, columns: Index, step: int, moving: Section | None = None) -> tuple[float, float] | None:
    """Between which numbers of columns ahead the second part may have something in common with the first; None where it never has.

    moving: the part which moves with the columns, if the second one is given for the first column; else both do.
    """
    low, high = EVERYWHERE
    for axis in range(len(first.starts)):
        if any(abs(part.steps[axis]) != 1 and part.sizes[axis] != 1 for part in (first, second)):
            continue
        start, size = _ascending(first, axis)
        other, other_size = _ascending(second, axis)
        apart = add_extents(other, scale_extent(start, -1))
        if not isinstance(apart, int) or not isinstance(size, int) or not isinstance(other_size, int):
            continue
        factor = _factor((second if moving is None else moving).starts[axis], columns) * step
        least, most = -other_size - apart + 1, size - apart - 1              # of factor * columns
        if least > most or (factor == 0 and not least <= 0 <= most):
            return None
        if factor:
            ends = sorted((least / factor, most / factor))
            low, high = max(low, math.ceil(ends[0])), min(high, math.floor(ends[1]))
    return (low, high) if low <= high else None


def _ascending(section: Section, axis: int) -> tuple[Extent, Extent]:
    """Where a part begins along an axis, and its size."""
    return section.bounds(axis)[0], section.sizes[axis]


def _factor(start: Extent, index: Index) -> int:
    return dict(start.terms).get(index, 0) if isinstance(start, Affine) else 0
