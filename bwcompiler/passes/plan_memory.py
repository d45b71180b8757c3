"""Memory plan: where every stored value lives.

Arguments stay where the caller has them, results go straight into the arrays that are returned, everything else shares
one arena.  Offsets come from lists of free blocks by size, in execution order; live ranges end at the last step that
reads a value.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence

from bwcompiler.ir.access import root
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.memory import Copied, Location, MemoryPlan, StepUse
from bwcompiler.ir.op import Value

ALIGNMENT = 64

# Why an update gets a copy of its operand `{0}` instead of the operand's memory, in words about the update.
RULES = {
    "argument": "{0} is an argument, and the caller's array stays as it is",
    "result": "{0} is returned, and stays as it is",
    "taken": "another update already has the memory of {0}",
    "returned": "it is returned, and goes straight into the array that is returned",
    "overlap": "it also reads {0} as it was before",
    "read later": "{0} is read again afterwards",
}


def plan_memory(graph: Graph, steps: Sequence[StepUse]) -> MemoryPlan:
    """Assign memory to everything the steps touch."""
    plan = MemoryPlan()
    for number, value in enumerate(graph.inputs):
        plan.locations[value] = Location("argument", number)
    for number, output in enumerate(graph.outputs):
        base = root(output)
        if base in plan.locations:
            plan.copies.append((base, number))
        else:
            plan.locations[base] = Location("result", number)
    last: dict[Value, int] = {}
    for position, step in enumerate(steps):
        for value in (*step.reads, *step.writes):
            last[value] = position
    _allocate(plan, steps, last)
    return plan


def _allocate(plan: MemoryPlan, steps: Sequence[StepUse], last: dict[Value, int]) -> None:
    arena = _Arena()
    blocks: dict[Value, tuple[int, int]] = {}
    for position, step in enumerate(steps):
        for operand, result, separate in step.updates:
            obstacle = _obstacle(plan, operand, result, separate, operand in blocks)
            if obstacle is None and last[operand] != position:
                obstacle = "read later"
            if obstacle is not None:
                plan.copied[result] = Copied(operand, obstacle, last[operand] if obstacle == "read later" else None)
                continue
            blocks[result] = blocks.pop(operand)
            plan.locations[result] = Location("arena", blocks[result][0])
            plan.in_place.add(result)
        for value in step.writes:
            if value not in plan.locations:
                blocks[value] = arena.take(value.type.nbytes)
                plan.locations[value] = Location("arena", blocks[value][0])
        scratch = [arena.take(size) for size in step.scratch]
        plan.scratch.append([offset for offset, _ in scratch])
        for block in scratch:
            arena.give(block)
        for value in dict.fromkeys((*step.reads, *step.writes)):
            if value in blocks and last[value] == position:
                arena.give(blocks.pop(value))
    plan.arena_bytes = arena.size


def _obstacle(plan: MemoryPlan, operand: Value, result: Value, separate: bool, is_free: bool) -> str | None:
    """The rule that keeps a result from taking over its operand's memory, whoever reads the operand later."""
    if not is_free:
        kind = plan.locations[operand].kind
        return kind if kind in ("argument", "result") else "taken"
    if result in plan.locations:
        return "returned"
    return "overlap" if separate else None


class _Arena:
    """Blocks of one growing arena; freed blocks are kept by size."""

    def __init__(self) -> None:
        self.size = 0
        self.free: dict[int, list[int]] = {}
        self.sizes: list[int] = []

    def take(self, size: int) -> tuple[int, int]:
        size = -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
        at = bisect.bisect_left(self.sizes, size)
        if at < len(self.sizes):
            found = self.sizes[at]
            offsets = self.free[found]
            offset = offsets.pop()
            if not offsets:
                del self.free[found], self.sizes[at]
            if found > size:
                self.give((offset + size, found - size))
            return offset, size
        offset = self.size
        self.size += size
        return offset, size

    def give(self, block: tuple[int, int]) -> None:
        offset, size = block
        if size not in self.free:
            self.free[size] = []
            bisect.insort(self.sizes, size)
        self.free[size].append(offset)
