"""Memory plan: the memory location of every stored value.

Arguments stay in the caller's memory, results are written directly into the arrays that are returned, everything else shares
one arena.  Offsets come from lists of free blocks by size, in execution order.  Live ranges end at the last step that
reads a value; that step writes a large result over it if possible.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence

from bwcompiler.ir.access import root
from bwcompiler.ir.contracts.memory import ALIGNMENT, Copied, Location, MemoryPlan, StepUse
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value

PAGE = 4096                    # bytes: addresses that are the same modulo this share a set of the first cache

# Why an update gets a copy of its operand `{0}` instead of the operand's memory, in words about the update.
RULES = {
    "argument": "{0} is an argument, and the caller's array stays as it is",
    "result": "{0} is returned, and stays as it is",
    "taken": "another update already has the memory of {0}",
    "returned": "it is returned, and goes straight into the array that is returned",
    "overlap": "it also reads {0} as it was before",
    "read later": "{0} is read again afterwards",
}


def plan_memory(graph: Graph, steps: Sequence[StepUse], into: Sequence[int | None] = ()) -> MemoryPlan:
    """Assign memory to everything the steps touch; result k has the memory of input into[k], where that is a number."""
    return _Planner(graph, steps, into).run()


class _Planner:
    """holder: the value that lies in the memory of an input that a result is written to; `shared` has the result's number.

    final: the holders that are these results themselves, and stay.
    early: the values that lie in the memory of a result that is made of them by updates.
    begun: likewise per value the result that waits for the memory of an input.
    """

    def __init__(self, graph: Graph, steps: Sequence[StepUse], into: Sequence[int | None]) -> None:
        self.graph = graph
        self.steps = steps
        self.plan = MemoryPlan()
        self.arena = _Arena()
        self.blocks: dict[Value, tuple[int, int]] = {}
        self.last: dict[Value, int] = {}
        for position, step in enumerate(steps):
            for value in (*step.reads, *step.writes):
                self.last[value] = position
        self.shared = {graph.inputs[number]: result for result, number in enumerate(into) if number is not None}
        self.holder = {source: source for source in self.shared}
        self.waiting: dict[Value, Value] = {}      # result -> the input whose memory it is written to, until it is placed
        self.final: set[Value] = set()
        self.early: set[Value] = set()
        self.begun: dict[Value, Value] = {}

    def run(self) -> MemoryPlan:
        plan = self.plan
        for number, value in enumerate(self.graph.inputs):
            plan.locations[value] = Location("argument", number)
        source_of = {result: source for source, result in self.shared.items()}
        for number, output in enumerate(self.graph.outputs):
            base = root(output)
            source = source_of.get(number)
            if base in plan.locations or base in self.waiting:
                if base is not source:
                    plan.copies.append((base, number))
                else:                              # it stays as it is, whatever else is made of it
                    self.final.add(base)
                    self.last[base] = len(self.steps)
            elif source is not None:
                self.waiting[base] = source
            else:
                plan.locations[base] = Location("result", number)
        for base, _ in plan.copies:                # read when all steps are done
            self.last[base] = len(self.steps)
        self._place_early()
        self._save()
        self._allocate()
        plan.arena_bytes = self.arena.size
        return plan

    def _place_early(self) -> None:
        """What a returned array is an update of is made where that is returned, if nothing reads it afterwards; and so on, backwards."""
        locations = self.plan.locations
        for position in reversed(range(len(self.steps))):
            for operand, result, separate in self.steps[position].updates:
                if separate or self.last[operand] != position or operand in locations or operand in self.waiting:
                    continue
                place = locations.get(result)
                if place is not None and place.kind == "result":
                    locations[operand] = place
                    self.early.add(operand)
                    self.plan.in_place.add(result)
                elif result in self.waiting or result in self.begun:
                    self.begun[operand] = self.begun.get(result, result)

    def _allocate(self) -> None:
        plan, arena, blocks, last = self.plan, self.arena, self.blocks, self.last
        for position, step in enumerate(self.steps):
            for operand, result, separate in step.updates:
                if result in plan.in_place:
                    continue
                obstacle = self._obstacle(operand, result, separate, position)
                if obstacle is not None:
                    plan.copied[result] = Copied(operand, obstacle, last[operand] if obstacle == "read later" else None)
                    continue
                self._take_over(operand, result)
            for value in step.writes:
                if value not in plan.locations and not self._written_into_argument(value, step, position):
                    blocks[value] = self._left_by(value, step, position) or arena.take(value.type.nbytes)
                    plan.locations[value] = Location("arena", blocks[value][0])
            scratch = [arena.take(size) for size in step.scratch]
            plan.scratch.append([offset for offset, _ in scratch])
            for block in scratch:
                arena.give(block)
            for value in dict.fromkeys((*step.reads, *step.writes)):
                if value in blocks and last[value] == position:
                    arena.give(blocks.pop(value))

    def _left_by(self, value: Value, step: StepUse, position: int) -> tuple[int, int] | None:
        """The memory of what the step reads last, if it may write the value there: its lines are in a cache."""
        updated = [update.operand for update in step.updates]
        for read, written in step.sharing:
            if written is value and read in self.blocks and self.last[read] == position and read not in updated:
                return self.blocks.pop(read)
        return None

    # ----- updates
    def _obstacle(self, operand: Value, result: Value, separate: bool, position: int) -> str | None:
        """The rule that keeps a result from taking over its operand's memory."""
        if operand in self.final:
            return "result"
        source = self._source_held_by(operand)
        if operand in self.early:
            return "taken" if self.last[operand] == position else "read later"
        if source is None and operand not in self.blocks:
            kind = self.plan.locations[operand].kind
            return kind if kind in ("argument", "result") else "taken"
        if result in self.plan.locations or self.waiting.get(result, source) is not source:
            return "returned"
        if separate:
            return "overlap"
        return "read later" if self.last[operand] != position else None

    def _source_held_by(self, value: Value) -> Value | None:
        """The input whose memory the value lies in, if a result is written there in the end."""
        return next((source for source, holder in self.holder.items() if holder is value), None)

    def _take_over(self, operand: Value, result: Value) -> None:
        source = self._source_held_by(operand)
        if source is not None:
            self.holder[source] = result
            if self.waiting.pop(result, None) is not None:
                self.final.add(result)
            self.plan.locations[result] = Location("result", self.shared[source])
        else:
            self.blocks[result] = self.blocks.pop(operand)
            self.plan.locations[result] = Location("arena", self.blocks[result][0])
        self.plan.in_place.add(result)

    # ----- results that are written to arguments
    def _written_into_argument(self, value: Value, step: StepUse, position: int) -> bool:
        """Whether a result goes straight to the argument it belongs to: nothing reads what lies there any more.

        Else it gets memory of its own, and is copied at the end.
        """
        begun = self.begun.get(value)
        source = self.waiting.pop(value, None) if begun is None else self.waiting.get(begun)
        if source is None:
            return False
        holder, number = self.holder[source], self.shared[source]
        read = self.last.get(holder, -1)
        if read > position or (read == position and (holder, value) not in step.sharing):
            if begun is None:
                self.plan.copies.append((value, number))
                self.last[value] = len(self.steps)
            return False
        self.holder[source] = value
        if begun is None:
            self.final.add(value)
        self.plan.locations[value] = Location("result", number)
        return True

    def _save(self) -> None:
        """Arguments that a copy at the end reads, and that are written to by then, are copied at the start, to memory that no step gets."""
        copied = {base for base, _ in self.plan.copies}
        for source in self.shared:
            if source in copied:
                offset, _ = self.arena.take(source.type.nbytes)
                self.plan.saved.append((source, offset))


def _length(size: int) -> int:
    """The length of a block: whole cache lines.

    Loops go through many arrays of one size together.  If that is a multiple of 4096 bytes (grids of 64 x 64, 128 x 96), all their elements
    would share one set of the first cache, and a load would wait for a store to another array at the same address modulo 4096.  So large
    blocks have an odd number of lines: arrays one behind the other begin in different sets, a few lines apart.
    """
    lines = -(-max(size, 1) // ALIGNMENT)
    return (lines + (5 - lines) % 8 if lines * ALIGNMENT >= PAGE else lines) * ALIGNMENT


class _Arena:
    """Blocks of one growing arena; freed blocks are kept by size."""

    def __init__(self) -> None:
        self.size = 0
        self.free: dict[int, list[int]] = {}
        self.sizes: list[int] = []

    def take(self, size: int) -> tuple[int, int]:
        size = _length(size)
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
