"""Arrays that a choice updates: the results that both branches compute from the same operand, by updating it or leaving it unchanged.

Such a result is in the memory of the operand (`lowering/regions.py`), and the operand's cotangent is that of the result, also updated.
"""

from __future__ import annotations

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
