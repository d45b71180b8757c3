"""`join_sweeps`: joins steps that loop over the same axis into one step (which, and how: `loops/sweeps/sweep.py`)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from bwcompiler.ir.access import root
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.loop import INPUT, Kernel
from bwcompiler.ir.op import Value
from bwcompiler.ir.texts.graph_printer import TakenNames
from bwcompiler.lowering.loops.building.group_shapes import WordValue
from bwcompiler.lowering.loops.sweeps.kernel import sweep_kernel
from bwcompiler.lowering.loops.sweeps.profit import LEAST_SHARED, MOST_KERNELS, pays
from bwcompiler.lowering.loops.sweeps.sweep import OneLoop, Part, Sweep, one_loop, part_of
from bwcompiler.lowering.polls import statements_work
from bwcompiler.lowering.steps import LoweredStep, product_forms

LOOK_AHEAD = 4                 # steps after a product that are searched for a loop to match
MOST_PASSED = 8                # most steps between those of a sweep that are moved behind it,
SMALL_WORK = 1 << 16           # each with fewer operations than this


def join_sweeps(steps: Sequence[LoweredStep], graph: Graph, pairs: Mapping[Value, Value] = MappingProxyType({}),
                prefix: str = "") -> list[LoweredStep]:
    """The steps, with runs of compatible steps joined.

    pairs: results -> the inputs whose memory they are written to; prefix: of kernel names.
    """
    return _Joiner(steps, graph, pairs, prefix).steps()


class _Run(NamedTuple):
    """Steps that can be joined, and steps between them that are moved behind them (`passed`)."""

    steps: list[LoweredStep]
    passed: list[LoweredStep]


class _Joiner:
    """kept: arrays with memory of their own in any case (inputs and outputs).  loops: by ids of kernels; parts: by ids of steps.
    known: cache of joined kernels by their parts, for steps that repeat; products: cache of the loops of matrix products.
    """

    def __init__(self, steps: Sequence[LoweredStep], graph: Graph, pairs: Mapping[Value, Value], prefix: str) -> None:
        self.given = steps
        self.kept = {*graph.inputs, *[root(output) for output in graph.outputs]}
        self.pairs = pairs
        self.prefix = prefix
        self.users: dict[Value, set[int]] = {}
        self.loops: dict[int, OneLoop | None] = {}
        self.found: dict[tuple[int, int | None], list[LoweredStep]] = {}
        self.parts: dict[int, Part | None] = {}
        self.known: dict[Hashable, tuple[Kernel, list[int | None]]] = {}
        self.products: dict[Hashable, list[Kernel]] = {}
        self.names = TakenNames()

    def steps(self) -> list[LoweredStep]:
        """The steps, with each run joined into one step and followed by the steps that it passed."""
        made: list[LoweredStep] = []
        start = 0
        while start < len(self.given):
            run, passed = self._run(start)
            made += [self._joined(run), *passed] if len(run) > 1 else [self.given[start]]
            start += max(len(run) + len(passed), 1)
        return made

    def _run(self, start: int) -> _Run:
        """The longest run that begins with a step, up to the last step that shares enough memory with the steps before it."""
        runs = [self._run_from(start, first) for first in self._first_forms(start)]
        return max(runs, key=lambda run: len(run.steps), default=_Run([], []))

    def _first_forms(self, start: int) -> list[LoweredStep]:
        """The first step of a run as kernels; a product also in as many blocks as following loops have iterations."""
        step = self.given[start]
        if not any(root(value).type.nbytes >= LEAST_SHARED for value in (*step.reads, *step.writes, *step.owners) if value is not None):
            return []
        found = self._forms(step)
        if step.kernel is None and found:
            loops = [self._loop(one.kernel) for one in self.given[start + 1:start + LOOK_AHEAD] if one.kernel is not None]
            for iterations in dict.fromkeys([loop.extent for loop in loops if loop is not None]):
                found = [*found, *self._forms(step, iterations)]
        return found

    def _run_from(self, start: int, first: LoweredStep) -> _Run:
        part = self._part(first)
        if part is None:
            return _Run([], [])
        sweep, run, found = Sweep(part), _Run([first], []), _Run([first], [])
        for place in range(start + 1, len(self.given)):
            if len(run.steps) == MOST_KERNELS:
                break
            step = self.given[place]
            forms = self._forms(step, sweep.extent) if self._may_pass(run.passed, step) else []
            taken = next((form for form in forms if self._is_taken(form, sweep, run.steps)), None)
            if taken is None and (len(run.passed) == MOST_PASSED or not _is_small(step)):
                break
            if taken is None:
                run.passed.append(step)
                continue
            run.steps.append(taken)
            if pays(sweep):
                found = _Run(run.steps[:], run.passed[:])
        return found

    def _may_pass(self, passed: Sequence[LoweredStep], step: LoweredStep) -> bool:
        """Whether the step may run before the passed ones: neither side writes an array that the other touches."""
        mine, written = _touched(step), self._written(step)
        return all(mine.isdisjoint(self._written(one)) and written.isdisjoint(_touched(one)) for one in passed)

    def _written(self, step: LoweredStep) -> set[Value]:
        """The arrays whose memory a step writes."""
        written = {root(value) for value in step.writes} | {root(update.operand) for update in step.updates}
        if step.kernel is not None:
            written |= {root(owner) for owner, buffer in zip(step.owners, step.kernel.buffers, strict=True)
                        if owner is not None and buffer.role != INPUT}
        return written | {self.pairs[value] for value in written if value in self.pairs}

    def _is_taken(self, step: LoweredStep, sweep: Sweep, run: Sequence[LoweredStep]) -> bool:
        part = self._part(step)
        return part is not None and self._may_be_one(run, step) and sweep.take(part)

    def _forms(self, step: LoweredStep, iterations: int | None = None) -> list[LoweredStep]:
        """Alternative kernels for the step: its own for a fusion group, or loops with `iterations` blocks for a matrix product."""
        if step.kernel is not None and step.value is None:
            return [step]
        key = step.position, iterations
        found = self.found.get(key)
        if found is None:
            found = self.found[key] = product_forms(step, f"{self.prefix}k{step.position}", iterations, self.products)
        return found

    def _may_be_one(self, run: Sequence[LoweredStep], step: LoweredStep) -> bool:
        """Whether the step overwrites no array of the run, and words that it shares with the run have equal values."""
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
        """The kernel of a step as part of a sweep, if it is one loop."""
        if id(step) not in self.parts:
            assert step.kernel is not None
            loop = self._loop(step.kernel)
            arrays = [None if owner is None else root(owner) for owner in step.owners]
            self.parts[id(step)] = None if loop is None else part_of(loop, arrays)
        return self.parts[id(step)]

    def _loop(self, kernel: Kernel) -> OneLoop | None:
        if id(kernel) not in self.loops:
            self.loops[id(kernel)] = one_loop(kernel)
        return self.loops[id(kernel)]

    def _joined(self, run: Sequence[LoweredStep]) -> LoweredStep:
        """The joined step of a run."""
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
            kernel, owners = sweep_kernel(sweep, inner)
            kernel.name = self.names.new(kernel.name)
            found = self.known[key] = kernel, [None if array is None else number[array] for array in owners]
        kernel, places = found
        told = {word: value for step in run if step.kernel is not None for word, value in zip(step.kernel.words, step.words, strict=True)}
        return LoweredStep(
            position=run[0].position, joined=tuple([position for step in run for position in step.positions][1:]), kernel=kernel,
            owners=[None if place is None else arrays[place] for place in places], words=[told[word] for word in kernel.words],
            is_complex=any(step.is_complex for step in run), updates=[update for step in run for update in step.updates])

    def _inner(self, run: Sequence[LoweredStep]) -> set[Value]:
        """The arrays that only the steps of the run use."""
        if not self.users:
            for step in self.given:
                for value in (*step.reads, *step.owners, *[update.operand for update in step.updates]):
                    if value is not None:
                        self.users.setdefault(root(value), set()).add(step.position)
        own = {step.position for step in run}
        touched = {root(owner) for step in run for owner in step.owners if owner is not None}
        return {array for array in touched - self.kept if self.users[array] <= own}


def _touched(step: LoweredStep) -> set[Value]:
    """The arrays that a step reads or writes."""
    updated = [value for update in step.updates for value in (update.operand, update.result)]
    return {root(value) for value in (*step.reads, *step.writes, *step.owners, *updated) if value is not None}


def _is_small(step: LoweredStep) -> bool:
    """Whether a step is a kernel with little work, which can be moved at no cost."""
    return step.kernel is not None and statements_work(step.kernel.body) < SMALL_WORK
