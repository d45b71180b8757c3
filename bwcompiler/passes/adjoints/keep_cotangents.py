"""Cotangents that an adjoint body makes zero and adds again stay where they are.

    ct = c[s];  c = c with 0 at s;  c = c with p added at t;  c = c with ct added at s         ->         c = c with p added at t

That is the derivative of `x[s] += f(x)`: what is assigned is a sum that x[s] itself is in.  The additions may be of parts of what was made
zero, and of sums that they are in.  The elements are added up in another order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.ir.extent import Extent, Section, add_extents, known_le, scale_extent
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Record, Value, is_constant


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


class _Addition(NamedTuple):
    """An addition to an array: what is added but for elements of the array itself, if anything, and where these are, if any are added."""

    value: Value
    rest: Value | None
    again: Section | None


def _kept(total: Value, users: Mapping[Value, int], record: Record) -> Value:
    """The cotangent, in the current record where it is made in another way."""
    chain: list[Value] = []
    end = total
    while end.op is ops.slice_add and users[end] == 1:
        chain.append(end)
        end = end.operands[0]
    if not chain or end.op is not ops.slice_update or users[end] != 1 or not _is_zero(end.operands[1]):
        return total
    cleared = _section(end)
    additions = [_addition(value, end.operands[0], cleared) for value in reversed(chain)]
    again = [one.again for one in additions if one.again is not None]
    left = _without(cleared, again)
    if not again or left is cleared:
        return total
    made = end.operands[0]
    if left is not None:
        record.source, record.forward = end.source, end.forward
        zeros = ops.full(**{**end.operands[1].attrs, "shape": left.sizes})
        made = ops.slice_update(made, zeros, starts=left.starts, steps=left.steps)
    for one in additions:
        if one.rest is not None:
            record.source, record.forward = one.value.source, one.value.forward
            made = ops.slice_add(made, one.rest, **one.value.attrs)
    if made is not end.operands[0]:
        made.name = total.name
    return made


def _is_zero(value: Value) -> bool:
    return is_constant(value) and value.attrs["value"] == 0


def _section(update: Value) -> Section:
    return Section(update.attrs["starts"], update.operands[1].shape, update.attrs["steps"])


def _addition(value: Value, array: Value, cleared: Section) -> _Addition:
    """An addition to an array of which a section has been cleared."""
    part, place = value.operands[1], _section(value)
    if _is_within(place, cleared):
        if _reads(part, array, place):
            return _Addition(value, None, place)
        if part.op is ops.add:
            for one, other in (part.operands, part.operands[::-1]):
                if _reads(one, array, place):
                    return _Addition(value, other, place)
    return _Addition(value, part, None)


def _reads(part: Value, array: Value, place: Section) -> bool:
    """Whether it is that section of the array."""
    attrs = part.attrs
    return part.op is ops.slice and part.operands[0] is array and Section(attrs["starts"], attrs["sizes"], attrs["steps"]) == place


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
