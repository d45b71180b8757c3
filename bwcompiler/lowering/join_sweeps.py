"""Steps that go through the same axis one after the other, as one step: `join_sweeps` (what that is, and when: `loops/sweeps.py`)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from types import MappingProxyType

from bwcompiler.ir.access import root
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.loop import Kernel
from bwcompiler.ir.op import Value
from bwcompiler.lowering.loops.group_shapes import WordValue
from bwcompiler.lowering.loops.sweeps import LEAST_SHARED, MOST_KERNELS, OneLoop, Part, Sweep, one_loop, part_of
from bwcompiler.lowering.steps import LoweredStep


def join_sweeps(steps: Sequence[LoweredStep], graph: Graph, pairs: Mapping[Value, Value] = MappingProxyType({})) -> list[LoweredStep]:
    """The steps, those that can be one joined.  pairs: results -> the inputs whose memory they are written to."""
    joiner = _Joiner(steps, graph, pairs)
    return [joiner.joined(run) for run in joiner.runs()]


class _Joiner:
    """kept: arrays that are there whatever the steps read.  loops: of kernels, by their ids; parts: by step.
    known: the joined kernels, by what they are made of, for steps that repeat.
    """

    def __init__(self, steps: Sequence[LoweredStep], graph: Graph, pairs: Mapping[Value, Value]) -> None:
        self.steps = steps
        self.kept = {*graph.inputs, *[root(output) for output in graph.outputs]}
        self.pairs = pairs
        self.users: dict[Value, set[int]] = {}
        self.loops: dict[int, OneLoop | None] = {}
        self.parts: dict[int, Part | None] = {}
        self.known: dict[Hashable, tuple[Kernel, list[int | None]]] = {}

    def runs(self) -> Iterator[list[LoweredStep]]:
        """The steps in groups, which are to be one step each."""
        start = 0
        while start < len(self.steps):
            count = self._length(start)
            yield list(self.steps[start:start + count])
            start += count

    def _length(self, start: int) -> int:
        """How many steps, from one on, can be one: up to the last that reads or writes much of what those before it do."""
        first = self.steps[start]
        part = self._part(first) if _touches_much(first) else None
        if part is None:
            return 1
        sweep, count = Sweep(part), 1
        for number, step in enumerate(self.steps[start + 1:start + MOST_KERNELS], 2):
            part = self._part(step)
            if part is None or not self._may_be_one(self.steps[start:start + number - 1], step) or not sweep.take(part):
                break
            if sweep.pays():
                count = number
        return count

    def _may_be_one(self, run: Sequence[LoweredStep], step: LoweredStep) -> bool:
        """Whether the step writes no memory that others of the run read as something else, and its words mean the same."""
        told: dict[object, WordValue] = {}
        for one in (*run, step):
            assert one.kernel is not None
            for word, number in zip(one.kernel.words, one.words, strict=True):
                if told.setdefault(word, number) != number:
                    return False
        touched = {root(owner) for one in run for owner in one.owners if owner is not None}
        mine = {root(owner) for owner in step.owners if owner is not None}
        overwritten = {root(update.operand) for update in step.updates} | {self.pairs[owner] for owner in mine if owner in self.pairs}
        before = {root(update.operand) for one in run for update in one.updates}
        return touched.isdisjoint(overwritten) and mine.isdisjoint(before)

    def _part(self, step: LoweredStep) -> Part | None:
        """The step as part of a sweep, if it is one of the kernels that fusion makes, and one loop."""
        if step.kernel is None or step.value is not None:
            return None
        if step.position not in self.parts:
            if id(step.kernel) not in self.loops:
                self.loops[id(step.kernel)] = one_loop(step.kernel)
            loop = self.loops[id(step.kernel)]
            arrays = [None if owner is None else root(owner) for owner in step.owners]
            self.parts[step.position] = None if loop is None else part_of(loop, arrays)
        return self.parts[step.position]

    def joined(self, run: Sequence[LoweredStep]) -> LoweredStep:
        """The steps of a run as one."""
        if len(run) == 1:
            return run[0]
        parts = [part for part in map(self._part, run) if part is not None]
        inner = self._inner(run)
        arrays = list(dict.fromkeys(array for part in parts for array in part.arrays if array is not None))
        number = {array: k for k, array in enumerate(arrays)}
        key = tuple([(id(part.of.kernel), *[None if array is None else (number[array], array in inner) for array in part.arrays])
                     for part in parts])
        found = self.known.get(key)
        if found is None:
            sweep = Sweep(parts[0])
            for part in parts[1:]:
                sweep.take(part)
            kernel, owners = sweep.kernel(inner)
            found = self.known[key] = kernel, [None if array is None else number[array] for array in owners]
        kernel, places = found
        told = {word: value for step in run if step.kernel is not None for word, value in zip(step.kernel.words, step.words, strict=True)}
        return LoweredStep(
            position=run[0].position, joined=tuple([position for step in run for position in step.positions][1:]), kernel=kernel,
            owners=[None if place is None else arrays[place] for place in places], words=[told[word] for word in kernel.words],
            is_complex=any(step.is_complex for step in run), updates=[update for step in run for update in step.updates])

    def _inner(self, run: Sequence[LoweredStep]) -> set[Value]:
        """The arrays that nothing but the run reads."""
        if not self.users:
            for step in self.steps:
                for value in (*step.reads, *step.owners, *[update.operand for update in step.updates]):
                    if value is not None:
                        self.users.setdefault(root(value), set()).add(step.position)
        own = {step.position for step in run}
        touched = {root(owner) for step in run for owner in step.owners if owner is not None}
        return {array for array in touched - self.kept if self.users[array] <= own}


def _touches_much(step: LoweredStep) -> bool:
    """Whether the step is a kernel that touches large arrays."""
    return step.kernel is not None and any(owner is not None and owner.type.nbytes >= LEAST_SHARED for owner in step.owners)
