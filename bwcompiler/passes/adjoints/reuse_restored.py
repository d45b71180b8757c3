"""An array that the adjoint of one loop restores is the array that the adjoint of the loop before it starts from.

    forward   a1 = loop1(a0)    a2 = a1 with v at s    a3 = loop2(a2)
    adjoint   a2 = restored by loop2 backwards    a1 = a2 with what was at s    loop1 backwards, from a1

Otherwise a1 would have to be kept in addition to a3: loop2 could not update it in place, and would begin with a copy of it.  Undo logs
inside loop bodies are in `undo_log`; this pass is about consecutive loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Record, Value


class Restoring(NamedTuple):
    """A loop backwards, the arrays as it restores them, and which results they are; it begins with the operands of these numbers."""

    backwards: Value
    arrays: tuple[Value, ...]
    places: tuple[int, ...]


def restoring_loops(linked: Graph, mapping: Mapping[Value, Value]) -> list[Restoring]:
    """The loops backwards of a joint graph with links that restore arrays, in terms of what a mapping says stands for its values."""
    found = []
    for link in linked.body:
        rule = link.attrs["rule"] if link.op is ops.region_link else None
        if rule is not None and rule.backwards is not None:
            numbers = rule.undone()
            operands = [link.operands[number] for number, _ in numbers]
            found.append(Restoring(mapping.get(rule.backwards, rule.backwards), tuple([mapping.get(one, one) for one in operands]),
                                   tuple([place for _, place in numbers])))
    return found


def reuse_restored(graph: Graph, loops: list[Restoring]) -> Graph:
    """The graph in which these loops restore arrays from what others have restored; the same graph where there is nothing of the kind."""
    by_value = {loop.backwards: loop for loop in loops if loop.places}
    if len(by_value) < 2:
        return graph
    there: dict[Value, Value] = {}                             # versions of arrays that are restored up to here
    after: dict[Value, Value] = {}                             # what updates made of versions, if that is restored somewhere
    for restoring in by_value.values():
        for array in restoring.arrays:
            while array.op in ops.UPDATES:
                after.setdefault(array.operands[0], array)
                array = array.operands[0]
    mapping: dict[Value, Value] = {}
    record = Record()
    for value in graph.body:
        operands = [mapping.get(operand, operand) for operand in value.operands]
        loop = by_value.get(value)
        if loop is not None:
            with record:
                record.source, record.forward = value.source, value.forward
                for place in loop.places:
                    operands[place] = _restored(value.operands[place], there, after) or operands[place]
        copy = value.with_operands(tuple(operands))
        if copy is not value:
            mapping[value] = copy
        record.values.append(copy)
        if loop is not None:
            with record:
                for array, place in zip(loop.arrays, loop.places, strict=True):
                    there[array] = ops.item(copy, index=place)
                    there[array].name = array.name
    if not mapping:
        return graph
    outputs = [mapping.get(output, output) for output in graph.outputs]
    return graph.replace(body=live_values(record.values, outputs), outputs=outputs)


def _restored(version: Value, there: Mapping[Value, Value], after: Mapping[Value, Value]) -> Value | None:
    """A version of an array, from a later one that is there: what updates overwrote is put back, the last first."""
    updates: list[Value] = []
    while version not in there:
        if version not in after:
            return None
        updates.append(after[version])
        version = after[version]
    found = there[version]
    for update in reversed(updates):
        before, part = update.operands
        place = {"starts": update.attrs["starts"], "steps": update.attrs["steps"]}
        found = ops.slice_update(found, ops.slice(before, sizes=part.shape, **place), **place)
    return found
