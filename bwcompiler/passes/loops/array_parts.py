"""The parts of arrays that values, including inner loops, read and write, given as affine positions.

versions_of     of a carried array in a body: the array before and after each update of it
written_parts   where the next version differs from the one before
read_parts      what else a value reads of a version
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.ir.access import section_of
from bwcompiler.ir.extent import Index, Section
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value


class Part(NamedTuple):
    """A part of an array, for all values of the indices of loops inside."""

    section: Section
    inner: frozenset[Index]


def versions_of(last: Value, entry: Value) -> list[Value] | None:
    """From the entry to the last; None where something else than updates and loops inside is on the way."""
    found = [last]
    while found[-1] is not entry:
        before = version_before(found[-1])
        if before is None:
            return None
        found.append(before)
    return found[::-1]


def version_before(value: Value) -> Value | None:
    """What an update, or a loop that carries it, made a value of; None where it is neither's."""
    if value.op in ops.UPDATES:
        return value.operands[0]
    return value.operands[0].operands[value.attrs["index"]] if _is_result(value) else None


def _is_result(value: Value) -> bool:
    return value.op is ops.item and value.operands[0].op is ops.loop and value.attrs["index"] < value.operands[0].attrs["carried"]


def written_parts(after: Value) -> list[Part] | None:
    """The parts that an update, or a loop inside, writes; None where that is not known."""
    if after.op in ops.UPDATES:
        return [Part(section_of(after), frozenset())]
    body, number = after.operands[0].attrs["body"], after.attrs["index"]
    between = versions_of(body.outputs[number], body.inputs[number])
    return None if between is None else _inside(body, [written_parts(version) for version in between[1:]])


def _inside(body: Graph, found: Iterable[list[Part] | None]) -> list[Part] | None:
    """The parts of all iterations of a loop inside."""
    parts = list(found)
    if body.index is None or any(one is None for one in parts):
        return None
    return [Part(part.section, part.inner | {body.index}) for one in parts if one is not None for part in one]


def read_parts(user: Value, array: Value) -> list[Part] | None:
    """The parts of an array that a value reads; None where that is not known, or all of it."""
    if user.op is ops.slice:
        return [Part(section_of(user), frozenset())]
    if user.op is not ops.loop or array in user.operands[:user.attrs["carried"]]:
        return None
    body, places = user.attrs["body"], [k for k, operand in enumerate(user.operands) if operand is array]
    inputs = [body.inputs[k] for k in places]
    if not set(inputs).isdisjoint(body.outputs):
        return None
    return _inside(body, [read_parts(value, one) for one in inputs for value in body.body if one in value.operands])
