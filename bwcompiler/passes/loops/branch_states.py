"""Arrays that a choice updates: the results that both branches compute from the same operand, by updating it or leaving it unchanged.

Such a result is in the memory of the operand (`lowering/regions.py`), and the operand's cotangent is that of the result, also updated.
"""

from __future__ import annotations

from collections.abc import Iterable

from bwcompiler import ops
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value


def passed_through(item: Value) -> Value | None:
    """What a result of a loop or branch starts as: the operand that the loop carries, or that both branches update or leave as it is."""
    region, number = item.operands[0], item.attrs["index"]
    if region.op in ops.LOOPS:
        return region.operands[number]
    place = _state(region, number) if region.op is ops.cond else None
    return None if place is None else region.operands[place + 1]


def branch_states(cond: Value) -> dict[int, int]:
    """Per result of a choice that both branches make of the same array, by updates or by nothing: the number of that input."""
    found: dict[int, int] = {}
    for number, type_ in enumerate(cond.type.items):
        place = _state(cond, number) if type_.size > 1 else None
        if place is not None and place not in found.values():
            found[number] = place
    return found


def _state(cond: Value, number: int) -> int | None:
    places = _begins(cond.attrs["then_branch"], number)
    return min(places & _begins(cond.attrs["else_branch"], number), default=None) if places else None


def _begins(graph: Graph, number: int) -> set[int]:
    """The numbers of the inputs that an output may be made of by updates, or by adding to all of one."""
    pending, found = [graph.outputs[number]], set()
    while pending:
        value = pending.pop()
        if value.op.kind == "input":
            found.add(graph.inputs.index(value))
        elif value.op in ops.WRITES:
            pending.append(value.operands[0])
        elif value.op is ops.add:
            pending += value.operands
        elif value.op is ops.item and (before := passed_through(value)) is not None:
            pending.append(before)
    return found


def changed_versions(graph: Graph, carried: int, changed: Iterable[int]) -> set[Value]:
    """The versions of arrays that a body changes where the undo log of a loop cannot restore them, so that what is read of them later has
    to be kept: of what it carries if choices change it, and of the inputs that are `changed`.
    """
    found = {graph.inputs[number] for number in changed}
    for number in range(carried):
        found |= _chosen_versions(graph.outputs[number], graph.inputs[number])
    for value in graph.body:
        before = value.operands[0] if value.op in ops.WRITES else passed_through(value) if value.op is ops.item else None
        if before in found:
            found.add(value)
    return found


def _chosen_versions(last: Value, entry: Value) -> set[Value]:
    """The versions of a carried array, the first to the last; none if no choice makes one of them, or something else does."""
    versions, value, chosen = {entry}, last, False
    while value is not entry:
        versions.add(value)
        chosen |= value.op is ops.item and value.operands[0].op is ops.cond
        before = value.operands[0] if value.op in ops.WRITES else passed_through(value) if value.op is ops.item else None
        if before is None:
            return set()
        value = before
    return versions if chosen else set()
