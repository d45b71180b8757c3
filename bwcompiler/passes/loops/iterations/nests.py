"""Nests of two loops: a loop over rows, which are loops over columns, with what is done before and after the columns of a row.

    for i:                        rows
        a = before(a, i)
        for j: a = inside(a, i, j)            columns
        a = after(a, i)

Arrays are values, of which each update makes another one.  The analysis (`nest_of`) follows the *versions* of each array that the outer
loop carries: which values are that array, after some of its updates.  So it finds which array each slice and each update touches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.ir.access import section_of
from bwcompiler.ir.extent import Affine, Index, Section
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Value

ELEMENTWISE = ("elementwise", "layout", "constant", "index")


class Access(NamedTuple):
    """A part of array `number` of the outer loop that is read or written; added: both, as something is added to it."""

    number: int
    section: Section
    writes: bool
    added: bool = False


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
        return _index(self.outer)

    @property
    def columns(self) -> Index:
        return _index(self.inner)

    @property
    def inside(self) -> Graph:
        """The body of the inner loop."""
        body: Graph = self.inner.attrs["body"]
        return body


def _index(loop: Value) -> Index:
    index: Index = loop.attrs["body"].index
    return index


def nest_of(outer: Value) -> Nest | None:
    """The nest that a loop with one loop inside is; None where its parts cannot be told from each other, or touch arrays unknown where."""
    body: Graph = outer.attrs["body"]
    inside = [value for value in body.body if value.op.regions]
    if len(inside) != 1 or inside[0].op is not ops.loop or not _is_within_rows(inside[0], body.index):
        return None
    inner = inside[0]
    entries = body.inputs[:outer.attrs["carried"]]
    if any(output in entries for output in body.outputs):
        return None
    constants = _constants(body, entries)
    fixed = {*constants, *body.inputs[len(entries):]}
    needed = set(live_values(body.body, [inner]))
    rest = [value for value in body.body if value not in constants and value is not inner]
    before, after = [value for value in rest if value in needed], [value for value in rest if value not in needed]

    versions = {value: number for number, value in enumerate(entries)}
    touched_before = _touched(before, versions)
    carried = [versions.get(operand) for operand in inner.operands[:inner.attrs["carried"]]]
    known = [number for number in carried if number is not None]
    latest = list({number: value for value, number in versions.items()}.values())         # the last version of each array
    if touched_before is None or len(known) < len(carried) or not _is_given(inner, known, latest, fixed):
        return None

    touched_inside = _touched_inside(inner, known)
    versions = {value: number for number, value in enumerate(latest) if number not in known}
    versions.update((value, known[value.attrs["index"]]) for value in after if value.op is ops.item and value.operands[0] is inner)
    after = [value for value in after if value not in versions]
    touched_after = _touched(after, versions) if _needs_only(after, {*versions, *fixed}) else None
    if touched_inside is None or touched_after is None or [versions.get(output) for output in body.outputs] != list(range(len(entries))):
        return None
    return Nest(outer, inner, known, [value for value in body.body if value in constants], before, after, latest,
                (touched_before, touched_inside, touched_after))


def _is_within_rows(inner: Value, rows: Index | None) -> bool:
    """Whether the bounds of the columns are numbers but for the index of the row."""
    return all(isinstance(end, int) or [index for index, _ in end.terms] == [rows] for end in (inner.attrs["lo"], inner.attrs["hi"]))


def slope(end: object, index: Index) -> int:
    """How much an extent grows from one index to the next."""
    return dict(end.terms).get(index, 0) if isinstance(end, Affine) else 0


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
            found.append(Access(numbers[0], section_of(value), True, value.op is ops.slice_add))
            versions[value] = numbers[0]
        else:
            return None
    return found


def _touched_inside(inner: Value, carried: Sequence[int]) -> list[Access] | None:
    body: Graph = inner.attrs["body"]
    versions = dict(zip(body.inputs, carried, strict=False))
    found = _touched(body.body, versions)
    return found if all(versions.get(output) == number for output, number in zip(body.outputs, carried, strict=True)) else None
