"""Cotangents that an adjoint body sets to zero and then adds again: they are left unchanged.

    ct = c[s];  c = c with 0 at s;  c = c with p added at t;  c = c with ct added at s         ->         c = c with p added at t

This is the derivative of `x[s] += f(x)`: x[s] is assigned a sum or difference of which it is itself a term.  The additions may be of parts
of what was set to zero, and of sums that contain them.  The elements are then added in another order.  If something is first added to
zeros, it is assigned instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bwcompiler import ops
from bwcompiler.ir.access import section_of
from bwcompiler.ir.extent import Extent, Section, add_extents, known_le, scale_extent
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Record, Value, is_constant

LONGEST = 64                   # updates after one that makes zeros that are looked at


def keep_cotangents(graph: Graph, cotangents: int) -> Graph:
    """The graph whose first results, so many, keep what they can; the same graph where there is nothing of the kind."""
    if not any(value.op is ops.slice_update for value in graph.body):
        return graph
    users: dict[Value, int] = {}
    for value in (*[operand for one in graph.body for operand in one.operands], *graph.outputs):
        users[value] = users.get(value, 0) + 1
    outputs = list(graph.outputs)
    with Record() as record:
        for number, output in enumerate(outputs[:cotangents]):
            outputs[number] = _kept(output, users, record)
    if outputs == list(graph.outputs):
        return graph
    return graph.replace(body=live_values([*graph.body, *record.values], outputs), outputs=outputs)


@dataclass
class _Step:
    """One update of a cotangent: it makes zero, adds or sets a part; None for what is done no more."""

    value: Value
    place: Section
    makes_zero: bool
    part: Value | None
    sets: bool = False

    @property
    def adds(self) -> bool:
        return not self.makes_zero and not self.sets


def _kept(total: Value, users: Mapping[Value, int], record: Record) -> Value:
    """The cotangent, in the current record where it is made in another way."""
    steps: list[_Step] = []
    end = total
    while end.op in ops.UPDATES and users[end] == 1 and (end.op is ops.slice_add or _is_zero(end.operands[1])):
        steps.append(_Step(end, section_of(end), end.op is ops.slice_update, end.operands[1]))
        end = end.operands[0]
    steps.reverse()
    changed = False
    for number, step in enumerate(steps):
        if step.makes_zero:
            behind = steps[number + 1:number + 1 + LONGEST]
            changed |= _keep_again(step, behind, record)
            changed |= _set_first(step, behind, record)
    return _made(end, steps, record) if changed else total


def _made(base: Value, steps: Sequence[_Step], record: Record) -> Value:
    """An array after these steps, in the current record."""
    for step in steps:
        if step.part is None:
            continue
        value = step.value
        record.source, record.forward = value.source, value.forward
        update = ops.slice_add if step.adds else ops.slice_update
        same = value.op is update and value.operands == (base, step.part)
        base = value if same else update(base, step.part, starts=step.place.starts, steps=step.place.steps)
        base.name = value.name
    return base


def _keep_again(zero: _Step, behind: Sequence[_Step], record: Record) -> bool:
    """Leave what is added again as it is, rather than making it zero before; whether there is something of the kind."""
    again: list[tuple[_Step, Value | None]] = []
    for number, step in enumerate(behind):
        if step.adds and step.part is not None and _is_within(step.place, zero.place):
            found, rest = _without_itself(step.part, zero.value.operands[0], step.place, record)
            if found and all(other.adds or other.place.is_apart(step.place) for other in behind[:number]):
                again.append((step, rest))
    left = _without(zero.place, [step.place for step, _ in again])
    if not again or left is zero.place:
        return False
    for step, rest in again:
        step.part = rest
    _leave(zero, left, record)
    return True


def _set_first(zero: _Step, behind: Sequence[_Step], record: Record) -> bool:
    """Set what is added to zeros before anything else is; whether there is something of the kind."""
    left: Section | None = zero.place if zero.part is not None else None
    sets = []
    for number, step in enumerate(behind):
        if left is None:
            break
        if step.adds and step.part is not None and _is_within(step.place, left):
            rest = _difference(left, step.place)
            if rest is not left and all(other.part is None or other.place.is_apart(step.place) for other in behind[:number]):
                sets.append(step)
                left = rest
    if not sets or left is not None:
        return False
    for step in sets:
        step.sets = True
    _leave(zero, left, record)
    return True


def _leave(zero: _Step, left: Section | None, record: Record) -> None:
    """Make no more than this zero."""
    zero.part = None
    if left is not None:
        record.source, record.forward = zero.value.source, zero.value.forward
        zero.part = ops.full(**{**zero.value.operands[1].attrs, "shape": left.sizes})
        zero.place = left


def _is_zero(value: Value) -> bool:
    return is_constant(value) and value.attrs["value"] == 0


def _without_itself(part: Value, array: Value, place: Section, record: Record) -> tuple[bool, Value | None]:
    """Whether what is added contains that section of the array, and the rest of it, if there is one."""
    if _reads(part, array, place):
        return True, None
    if part.op is ops.add:
        for one, other in (part.operands, part.operands[::-1]):
            if _reads(one, array, place):
                return True, other
    if part.op is ops.subtract and _reads(part.operands[0], array, place):
        record.source, record.forward = part.source, part.forward
        return True, ops.negative(part.operands[1])
    return False, None


def _reads(part: Value, array: Value, place: Section) -> bool:
    """Whether it is that section of the array, or of an earlier version that is the same there."""
    while part.op is ops.reshape:
        part = part.operands[0]
    if part.op is not ops.slice or section_of(part) != place:
        return False
    while array is not part.operands[0]:
        if array.op not in ops.UPDATES or not section_of(array).is_apart(place):
            return False
        array = array.operands[0]
    return True


def _is_within(inner: Section, outer: Section) -> bool:
    if any(step != 1 for step in (*inner.steps, *outer.steps)):
        return inner == outer
    bounds = [(*inner.bounds(axis), *outer.bounds(axis)) for axis in range(len(inner.starts))]
    return all(known_le(low, first) is True and known_le(last, high) is True for first, last, low, high in bounds)


def _without(cleared: Section, again: Sequence[Section]) -> Section | None:
    """What is left of a section without others in it, None where that is nothing; the section itself where it is no section."""
    left: Section | None = cleared
    for one in sorted(again, key=lambda section: section.sizes == cleared.sizes):
        if left is None:                               # an element would be added twice
            return cleared
        rest = _difference(left, one)
        if rest is left:
            return cleared
        left = rest
    return left


def _difference(whole: Section, part: Section) -> Section | None:
    """A section without its beginning or its end along an axis; None where that is all of it, itself where the part is no such."""
    if whole == part:
        return None
    axes = [axis for axis in range(len(whole.starts)) if (whole.starts[axis], whole.sizes[axis]) != (part.starts[axis], part.sizes[axis])]
    if len(axes) != 1 or whole.steps[axes[0]] != 1 or not _is_within(part, whole):
        return whole
    axis = axes[0]
    size = add_extents(whole.sizes[axis], scale_extent(part.sizes[axis], -1))
    if part.starts[axis] == whole.starts[axis]:
        start: Extent = add_extents(part.starts[axis], part.sizes[axis])
    elif add_extents(part.starts[axis], part.sizes[axis]) == add_extents(whole.starts[axis], whole.sizes[axis]):
        start = whole.starts[axis]
    else:
        return whole
    starts, sizes = [*whole.starts], [*whole.sizes]
    starts[axis], sizes[axis] = start, size
    return Section(tuple(starts), tuple(sizes), whole.steps)
