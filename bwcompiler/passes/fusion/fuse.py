"""Fusion: group values into loop trees.

Grouping takes the values in topological order.  A value joins the group of an operand, or one that reads what it reads, if the
group's loop structure can hold it (see `Attempt`) and no cycle arises: groups and calls are the nodes of a graph of their own,
whose order is kept as it grows (`StepOrder`).  Else it opens a new group.  All decisions look at the value's neighbourhood only,
so a periodic trace gives periodic groups.

Numbers open no groups.  They wait, and are placed when everything else is: in every group that reads them, in front of its
loops, where that is cheap or the only one; else where they have memory (`_place_numbers`).

Scheduling gives the steps their order, and with it their positions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.errors import InternalError
from bwcompiler.ir.access import ArrayView, is_alias, is_virtual, matrix_view, plain_axes, root, view_of, whole
from bwcompiler.ir.contracts.fusion import Call, FusedProgram, FusionGroup, Member, Refusal, starts_filled, update_section
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value
from bwcompiler.ir.routine import Fourier, InnerLoop, Native
from bwcompiler.passes.fusion.attempt import GROW, Attempt, section_read
from bwcompiler.passes.fusion.axis_order import in_memory_order
from bwcompiler.passes.fusion.in_step import reads_in_step
from bwcompiler.passes.fusion.step_order import StepOrder
from bwcompiler.passes.memory.find_updates import find_updates

MOST_INLINED = 3                               # values between one that is picked and what the loop has
MOST_REPEATED = 8                              # operations of a number that more than one group computes for itself
LEAST_EXPANDED = 1 << 16                       # bytes of an array that is computed again rather than stored,
EXPANSION = 4                                  # if it has so many times the bytes of what it is made of

_FUSABLE = frozenset(("elementwise", "layout", "reduction", "constant", "index"))


def fuse(graph: Graph, reasons: bool = False, mutable: Sequence[Value] = ()) -> FusedProgram:
    """Decide which values are computed together; `reasons` also records why values did not join groups (`refusals`).

    mutable: inputs whose memory may be written to once they are not read any more.
    """
    return _Fusion(graph, [] if reasons else None, mutable).run()


def is_fusable(value: Value) -> bool:
    """Whether value has an element rule or is a reduction of one."""
    return value.op.kind in _FUSABLE and value.op is not ops.normalize_index


class _Number(NamedTuple):
    """A number that waits for its place.

    sources  the steps that compute what it reads; numbers: the waiting numbers that it reads.
    work     operations to compute it, with these; dear ones count many.
    """

    attempt: Attempt
    sources: frozenset[int]
    numbers: tuple[Value, ...]
    work: int


class _Fusion:
    """steps, step_of  are numbered as they are opened; `order` knows in which order they can run."""

    def __init__(self, graph: Graph, refusals: list[Refusal] | None, mutable: Sequence[Value]) -> None:
        self.graph = graph
        self.refusals = refusals
        self.steps: list[FusionGroup | Call] = []
        self.order = StepOrder()
        self.step_of: dict[Value, FusionGroup | Call] = {}
        self.views = {value: _operand_views(value) for value in graph.body if not is_fusable(value) and value.op is not ops.item}
        self.forced = _forced(graph, self.views)
        self.stored: set[Value] = set(graph.inputs)
        self.last_reader: dict[Value, FusionGroup] = {}
        self.updates = find_updates(graph, mutable)
        self.forced.update([array for array in self.updates.arrays if array.op is ops.full])
        self.readers: dict[Value, dict[int, None]] = {array: {} for array in self.updates.arrays}    # steps, per array to be written to
        self.made_of: dict[Value, list[Value]] = {}                   # what a cheap value reads where nothing is computed again
        self.numbers: dict[Value, _Number] = {}
        self.number_readers: dict[Value, dict[int, None]] = {}        # steps, per waiting number
        self.number_groups: list[int] = []
        self.latest: FusionGroup | None = None
        self.attempts: dict[Value, Attempt] = {}

    def run(self) -> FusedProgram:
        for value in self.graph.body:
            if value in self.forced:
                self.stored.add(value)
            if is_alias(value):
                continue
            if value.op is ops.item:                       # written by the loop or choice that it is a result of
                self.step_of[value] = self.step_of[value.operands[0]]
                self.stored.add(value)
            elif not is_fusable(value):
                self._call(value)
            elif value in self.forced or not is_virtual(value):
                self._place(value)
        self._place_numbers()
        for step in self.steps:
            if isinstance(step, FusionGroup):
                in_memory_order(step, self.attempts, self.stored)
        self._schedule()
        return FusedProgram(self.steps, self.stored, self.forced, self.step_of, self.refusals or [])

    # ----- grouping
    def _call(self, value: Value) -> None:
        views = self.views[value]
        call = Call(len(self.steps), value, views)
        self.steps.append(call)
        self.order.add(self._sources(view.base for view in views))
        for view in views:
            self.stored.add(view.base)
            if view.base in self.numbers:
                self.number_readers.setdefault(view.base, {})[call.position] = None
            if view.base in self.readers:
                self.readers[view.base][call.position] = None
        self.step_of[value] = call
        self.stored.add(value)

    def _place(self, value: Value) -> None:
        attempt = Attempt(value, self.is_leaf, update=value in self.updates.values)
        if attempt.update and attempt.reads_what_it_writes():
            attempt = Attempt(value, self.is_leaf)
        if value.op.cheap and not attempt.update:
            self.made_of[value] = [base for base, _ in attempt.reads]
        if self._joins_inlined(attempt):
            return
        attempt = self._inlined(attempt)
        if self._joins(attempt) or self._waits(attempt):
            return
        attempt = self._expanded(attempt, None)
        group = self.latest = self._open(self._needed(attempt, None))
        self._add(attempt, group, attempt.found(group))

    def _joins(self, attempt: Attempt) -> bool:
        """Put the value into the latest group that can hold it, if any; into one with fewer axes only where there is no other.

        (What runs over fewer axes is small: that it is stored and read again costs less than a second loop over all of them.)
        """
        growing = []
        for group, sources, moved in self._candidates(attempt):
            forms = dict.fromkeys((self._expanded(attempt, group), attempt))
            for form in forms:
                member = form.join(group, grow=False)
                if member is not None:
                    return self._joined(form, member, group, sources, moved)
            if attempt.refusal is GROW:
                growing.append((forms, group, sources, moved))
            else:
                self._refuse(attempt, group, *attempt.refusal)
        for forms, group, sources, moved in growing:
            for form in forms:
                member = form.join(group)
                if member is not None:
                    return self._joined(form, member, group, sources, moved)
            self._refuse(attempt, group, *attempt.refusal)
        return False

    def _joined(self, attempt: Attempt, member: Member, group: FusionGroup, sources: set[int], moved: Sequence[int]) -> bool:
        self.order.put_after(group.position, sources, moved)
        self._add(attempt, group, member)
        return True

    def _joins_inlined(self, attempt: Attempt) -> bool:
        """Put elements picked from cheap values into a group that computes what these are made of.

        So the element z[i, label[i]] of z = x - max(x, axis=1) is picked in the loop that finds the maximum of row i.
        """
        if attempt.value.op is not ops.gather:
            return False
        inlined, moved = attempt, frozenset[Value]()
        for _ in range(MOST_INLINED):
            shifted = [base for base, index in inlined.reads if plain_axes(index) is None and root(base) not in self.stored]
            if not shifted:
                break
            if not all(self._is_cheap(base) for base in shifted):
                return False
            moved |= frozenset(shifted)
            inlined = Attempt(attempt.value, self.is_leaf, moved)
        return bool(moved) and any(isinstance(self.step_of.get(base), FusionGroup) for base, _ in inlined.reads) and self._joins(inlined)

    def _open(self, sources: Iterable[int]) -> FusionGroup:
        group = FusionGroup(self.order.add(sources))
        self.steps.append(group)
        return group

    def _add(self, attempt: Attempt, group: FusionGroup, member: Member, in_front: bool = False) -> None:
        group.add(member, in_front)
        self.attempts[member.value] = attempt
        self.step_of.setdefault(member.value, group)
        if attempt.update:
            self._record_update(member.value, group)
        for base, index in attempt.reads:
            array = root(base)
            if base in group.by_value:
                continue
            if array in self.numbers:
                self.number_readers.setdefault(array, {})[group.position] = None
                continue
            group.loads.add(array)
            self.stored.add(array)
            self.last_reader[base] = group
            if array in self.readers:
                group.touched.setdefault(array, []).append(section_read(base, index, attempt.number))
                self.readers[array][group.position] = None

    def _inlined(self, attempt: Attempt) -> Attempt:
        """The attempt with what it reads at shifted indices computed again where that is cheap, and reads nothing it writes."""
        if attempt.aligned:
            return attempt
        moved = frozenset(base for base, index in attempt.reads if attempt.is_shifted(base, index) and self._is_inlinable(base))
        if not moved:
            return attempt
        inlined = Attempt(attempt.value, self.is_leaf, moved, attempt.update)
        return attempt if inlined.update and inlined.reads_what_it_writes() else inlined

    def _expanded(self, attempt: Attempt, group: FusionGroup | None) -> Attempt:
        """The attempt with what it would have to load, but is cheaply made of much smaller arrays, or of these and one stored array that
        is loaded in its place, computed again.

        So the differences x[:, None] - x[None, :] are never stored, however many loops read them, nor is x - mean(x, axis=0).
        """
        inside = {} if group is None else group.by_value
        again: frozenset[Value] = frozenset()
        for base, _ in attempt.reads:
            if base not in inside and base.type.nbytes >= LEAST_EXPANDED:
                again |= self._expansion(base)
        return Attempt(attempt.value, self.is_leaf, attempt.inlined | again, attempt.update) if again else attempt

    def _expansion(self, value: Value) -> frozenset[Value]:
        """What has to be computed to have the value again, none of it stored, from much smaller arrays and at most one like it that is;
        nothing if it is not so."""
        found: dict[Value, None] = {}
        leaves: dict[Value, None] = {}
        likes: dict[Value, None] = {}
        waiting = [value]
        while waiting:
            array = waiting.pop()
            if not self._is_cheap(array) or array in self.numbers:
                return frozenset()
            found[array] = None
            for base in self.made_of[array]:
                leaf = root(base)
                if leaf in self.readers:                   # an array that is written to later may be another one by then
                    return frozenset()
                if leaf.type.nbytes * EXPANSION <= value.type.nbytes:
                    leaves[leaf] = None
                elif leaf in self.stored:
                    if base is not leaf or leaf not in array.operands or leaf.shape != value.shape:
                        return frozenset()
                    likes[leaf] = None
                elif base not in found:
                    waiting.append(base)
            if len(found) + len(waiting) > MOST_INLINED:
                return frozenset()
        small = sum([leaf.type.nbytes for leaf in leaves]) * EXPANSION <= value.type.nbytes
        return frozenset(found) if small and len(likes) <= 1 else frozenset()

    def _record_update(self, value: Value, group: FusionGroup) -> None:
        """The value has the memory of the array it updates, from here on."""
        array = root(value.operands[0])
        written = group.updated.setdefault(array, [])
        written.append(update_section(value))
        group.updated[value] = written
        group.touched[value] = group.touched.setdefault(array, [])
        self.stored.add(value)
        if array not in group.by_value:
            group.loads.add(array)
            self.stored.add(array)

    def is_leaf(self, value: Value) -> bool:
        """Whether reads of value stop at it: it is stored, computed, or an alias of stored memory."""
        return value in self.forced or not is_virtual(value)

    def _is_inlinable(self, value: Value) -> bool:
        """Whether a reader at shifted indices may compute value again instead of having it stored: one cheap operation."""
        if not self._is_cheap(value):
            return False
        found = [root(base) for base in self.made_of[value]]
        if not self.readers.keys().isdisjoint(found):
            return False
        if len(found) == 1 and found[0].type.nbytes <= value.type.nbytes:          # that is stored in its place
            return True
        return len(found) <= 2 and all(base in self.stored or base in self.numbers for base in found)

    def _is_cheap(self, value: Value) -> bool:
        return value in self.made_of and value.op.kind == "elementwise" and value not in self.stored

    def _sources(self, bases: Iterable[Value]) -> set[int]:
        """The steps that have to be done before these values can be read."""
        found: set[int] = set()
        for base in bases:
            array = root(base)
            number = self.numbers.get(array)
            if number is not None:
                found |= number.sources
                continue
            step = self.step_of.get(array)
            if step is not None:
                found.add(step.position)
        return found

    def _needed(self, attempt: Attempt, group: FusionGroup | None) -> set[int]:
        """The steps that have to be done before `group`, or a new one, can compute the value."""
        inside = {} if group is None else group.by_value
        found = self._sources(base for base, _ in attempt.reads if base not in inside)
        if attempt.update:                                 # the array is complete, and what reads it has run or runs with it
            array = root(attempt.value.operands[0])
            found |= {step for step in (*self._sources((array,)), *self.readers.get(array, ())) if group is None or step != group.position}
        return found

    def _candidates(self, attempt: Attempt) -> Iterator[tuple[FusionGroup, set[int], Sequence[int]]]:
        """The groups that the value may join, the latest first: with what they have to come after then, and what moves for that."""
        found: dict[int, FusionGroup] = {}
        for base, _ in attempt.reads:
            step = self.step_of.get(base)
            if isinstance(step, FusionGroup):
                found[step.position] = step
            reader = self.last_reader.get(base)
            if reader is not None:
                found[reader.position] = reader
        if self.latest is not None and attempt.reads:      # siblings over the same elements share loops and loads
            found.setdefault(self.latest.position, self.latest)
        for position in sorted(found, key=self.order.rank.__getitem__, reverse=True):
            group = found[position]
            sources = self._needed(attempt, group)
            moved = self.order.moved_before(position, sources)
            if moved is None:
                self._refuse_order(attempt, group)
            elif not self._respects_updates(attempt, group):
                self._refuse(attempt, group, "versions")
            else:
                yield group, sources, moved

    def _refuse(self, attempt: Attempt, group: FusionGroup, rule: str, about: tuple[Value, ...] = ()) -> None:
        if self.refusals is not None:
            self.refusals.append(Refusal(attempt.value, group.position, rule, about))

    def _refuse_order(self, attempt: Attempt, group: FusionGroup) -> None:
        if self.refusals is not None:
            late = [base for base, _ in attempt.reads
                    if base not in group.by_value and self.order.moved_before(group.position, self._sources((base,))) is None]
            self._refuse(attempt, group, "order" if late else "versions", tuple(dict.fromkeys(late)))

    def _respects_updates(self, attempt: Attempt, group: FusionGroup) -> bool:
        """Whether in this group no element is read and written that belongs to two versions of an array."""
        for base, index in attempt.reads:
            array = root(base)
            written = group.updated.get(array)
            if written is None:
                continue
            section = section_read(base, index, attempt.number)
            if array in group.by_value or section is None or not all(section.is_apart(other) for other in written):
                return False
        if not attempt.update:
            return True
        array, mine = root(attempt.value.operands[0]), update_section(attempt.value)
        made_here = array in group.by_value
        if made_here != (array in group.updated):          # made by a fused value, or another update has its memory already
            return False
        if made_here and array not in self.updates.passed_on:
            return False
        written = group.updated.get(array, [])
        if attempt.reads_what_it_writes([version for version, other in group.updated.items() if other is written]):
            return False
        if not all(mine.is_apart(section) for section in written):
            return False
        apart = all(section is not None and mine.is_apart(section) for section in group.touched.get(array, []))
        return apart or (not made_here and reads_in_step(attempt, group, array, self.attempts))

    # ----- numbers
    def _waits(self, attempt: Attempt) -> bool:
        """Whether the value is a number that can be computed whenever it is needed: then it waits.

        One that is written to, or that reads what is, has its place in the order.
        """
        bases = [root(base) for base, _ in attempt.reads]
        if not attempt.is_number or any(base in self.readers for base in (attempt.value, *bases)):
            return False
        numbers = tuple([base for base in dict.fromkeys(bases) if base in self.numbers])
        own = 1 if attempt.value.op.cheap else 1 + MOST_REPEATED
        work = own + sum(self.numbers[number].work for number in numbers)
        self.numbers[attempt.value] = _Number(attempt, frozenset(self._sources(bases)), numbers, work)
        return True

    def _place_numbers(self) -> None:
        """Compute each number that something reads in the groups that read it, or in one step that keeps it in memory."""
        wanted: dict[Value, dict[int, None]] = {value: dict(steps) for value, steps in self.number_readers.items()}
        held: dict[int, list[Value]] = {}
        for value, number in reversed(self.numbers.items()):
            readers = wanted.get(value, {})
            holders = tuple(readers)
            if value in self.forced or (len(readers) > 1 and number.work > MOST_REPEATED):
                self.stored.add(value)
                holders = (self._holder(number, readers),)
            for step in holders:
                held.setdefault(step, []).append(value)
                for source in number.numbers:
                    wanted.setdefault(source, {})[step] = None
        for step, values in held.items():
            group = self.steps[step]
            assert isinstance(group, FusionGroup)
            for value in values:                           # those that read others first, and each in front of them
                attempt = self.numbers[value].attempt
                self._add(attempt, group, attempt.as_number(), in_front=True)

    def _holder(self, number: _Number, readers: Iterable[int]) -> int:
        """The one step that computes a number, before all that read it: the first of these groups, or one for numbers alone."""
        groups = sorted([step for step in readers if isinstance(self.steps[step], FusionGroup)], key=self.order.rank.__getitem__)
        for step in (*groups[:1], *self.number_groups[-1:]):
            if self._comes_after(step, number.sources) and all(self._comes_after(reader, (step,)) for reader in readers if reader != step):
                return step
        step = self._open(number.sources).position
        self.number_groups.append(step)
        if not all(self._comes_after(reader, (step,)) for reader in readers):
            raise InternalError("a number cannot be computed before what reads it")
        return step

    def _comes_after(self, step: int, sources: Collection[int]) -> bool:
        """Let a step come after others, if it can."""
        moved = self.order.moved_before(step, sources)
        if moved is None:
            return False
        self.order.put_after(step, sources, moved)
        return True

    def _schedule(self) -> None:
        """Number the steps in the order in which they run, without groups of which all is computed again where it is read."""
        kept = [step for step in self.steps if isinstance(step, Call) or any(member.value in self.stored for member in step.members)]
        self.steps = sorted(kept, key=lambda step: self.order.rank[step.position])
        place = {step.position: number for number, step in enumerate(self.steps)}
        self.step_of = {value: step for value, step in self.step_of.items() if step.position in place}
        for step in self.steps:
            step.position = place[step.position]
        if self.refusals is not None:
            self.refusals = [refusal._replace(group=place[refusal.group]) for refusal in self.refusals if refusal.group in place]


def _operand_views(value: Value) -> tuple[ArrayView, ...]:
    """How a call reads its operands: matrix products, factorisations and windows that are added through layout ops, others whole arrays."""
    routine = value.op.library
    if value.op is ops.matmul:
        return tuple([view_of(operand) or whole(operand) for operand in value.operands])
    if value.op is ops.windows_add:
        return (_rows_of_windows(value),)
    if isinstance(routine, Native):
        return tuple([matrix_view(operand) or whole(operand) for operand in value.operands])
    if isinstance(routine, Fourier) or (isinstance(routine, InnerLoop) and routine.core and routine.operands is None):
        return tuple([view_of(operand) or whole(operand) for operand in value.operands])
    return tuple([whole(operand) for number, operand in enumerate(value.operands) if not starts_filled(value, number)])


def _rows_of_windows(value: Value) -> ArrayView:
    """The operand of windows_add where it lies, if its rows, along the last axis that windows slide along, lie along memory there."""
    operand = value.operands[0]
    view = view_of(operand)
    return view if view is not None and view.strides[value.rank - 1] == 1 else whole(operand)


def _forced(graph: Graph, views: dict[Value, tuple[ArrayView, ...]]) -> set[Value]:
    """Values that need memory of their own whatever fusion does: outputs, operands of calls and of merging reshapes."""
    forced = {root(value.operands[0]) for value in graph.body if is_alias(value)}
    for operands in views.values():
        forced.update([view.base for view in operands])
    forced.update(graph.outputs)
    forced.update([root(value) for value in graph.outputs])
    return forced
