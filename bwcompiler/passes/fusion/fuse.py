"""Fusion: group values into loop trees.

Grouping takes the values in topological order.  A value joins the group of an operand, or a group that reads the same values, if the
group's loop structure can hold it (`attempt.py`), no element belonging to two versions of an array is then read and written
(`versions.py`), and no cycle of steps arises (`steps.py`).  Otherwise it opens a new group.  Values may be recomputed where they are
read (`recomputation.py`), and numbers are placed last (`waiting_numbers.py`).  All decisions depend on the value's neighbourhood
only, so a periodic trace gives periodic groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bwcompiler import ops
from bwcompiler.ir.access import ArrayView, is_alias, is_leaf, is_row, matrix_view, root, view_of, whole
from bwcompiler.ir.contracts.fusion import FusedProgram, FusionGroup, Member, Refusal, starts_filled
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value
from bwcompiler.ir.routine import Fourier, InnerLoop, Native
from bwcompiler.passes.fusion.attempt import GROW, Attempt
from bwcompiler.passes.fusion.axis_order import in_memory_order
from bwcompiler.passes.fusion.computed_again import compute_where_read
from bwcompiler.passes.fusion.reads import Reads
from bwcompiler.passes.fusion.recomputation import Recomputation
from bwcompiler.passes.fusion.steps import Steps
from bwcompiler.passes.fusion.versions import Versions
from bwcompiler.passes.fusion.waiting_numbers import WaitingNumbers
from bwcompiler.passes.memory.find_updates import find_updates

LARGE_TRANSPOSE = 1 << 20          # bytes
_FUSABLE = frozenset(("elementwise", "layout", "reduction", "constant", "index"))


def fuse(graph: Graph, reasons: bool = False, mutable: Sequence[Value] = ()) -> FusedProgram:
    """Decide which values are computed together; `reasons` also records why values did not join groups (`refusals`).

    mutable: inputs whose memory may be written to once they are not read any more.
    """
    return _Fusion(graph, [] if reasons else None, mutable).run()


def is_fusable(value: Value) -> bool:
    """Whether value has an element rule or is a reduction of one."""
    return value.op.kind in _FUSABLE and value.op is not ops.normalize_index


class _Fusion:
    """stored, forced  as in `FusedProgram`; attempts: what each member reads, and where.
    last_reader, latest  the group that read a value last, and the one opened last: these may share loops and loads with what follows.
    """

    def __init__(self, graph: Graph, refusals: list[Refusal] | None, mutable: Sequence[Value]) -> None:
        self.graph = graph
        self.refusals = refusals
        self.views = {value: _operand_views(value) for value in graph.body if not is_fusable(value) and value.op is not ops.item}
        self.versions = Versions(find_updates(graph, mutable))
        updates = self.versions.updates
        self.forced = _forced(graph, self.views) | {array for array in updates.arrays if array.op in (ops.full, ops.transpose)}
        self.stored: set[Value] = set(graph.inputs)
        self.steps = Steps()
        self.numbers = WaitingNumbers(self.steps)
        self.reads = Reads(self.forced)
        self.again = Recomputation(self.stored, self.numbers, updates.arrays, self.reads)
        self.attempts: dict[Value, Attempt] = {}
        self.last_reader: dict[Value, FusionGroup] = {}
        self.latest: FusionGroup | None = None

    def run(self) -> FusedProgram:
        for value in self.graph.body:
            if value in self.forced:
                self.stored.add(value)
            if is_alias(value):
                continue
            if value.op is ops.item:                       # written by the loop or choice that it is a result of
                self.steps.of[value] = self.steps.of[value.operands[0]]
                self.stored.add(value)
            elif not is_fusable(value):
                self._call(value)
            elif is_leaf(value, self.forced):
                self._place(value)
        self._place_numbers()
        compute_where_read(self.graph, [step for step in self.steps.opened if isinstance(step, FusionGroup)], self.attempts, self.reads,
                           self.stored, self.forced, self.versions.updates.arrays)
        for step in self.steps.opened:
            if isinstance(step, FusionGroup):
                in_memory_order(step, self.attempts, self.stored)
        place = self.steps.schedule(self.stored)
        refusals = [refusal._replace(group=place[refusal.group]) for refusal in self.refusals or () if refusal.group in place]
        return FusedProgram(self.steps.opened, self.stored, self.forced, self.steps.of, refusals)

    # ----- a value's place
    def _call(self, value: Value) -> None:
        views = self.views[value]
        sources = self._sources(view.base for view in views)
        if value.op in ops.SCATTERS:                           # writes where the array lies, if all that reads it has run
            sources.update(self.versions.readers[root(value.operands[0])])
        call = self.steps.open_call(value, views, sources)
        for view in views:
            self.stored.add(view.base)
            if view.base in self.numbers:
                self.numbers.read(view.base, call.position)
            self.versions.called_with(view.base, call.position)
        self.stored.add(value)

    def _place(self, value: Value) -> None:
        attempt = Attempt(value, self.reads, update=value in self.versions.updates.values)
        if attempt.update and attempt.reads_what_it_writes():
            attempt = Attempt(value, self.reads)
        self.again.note(attempt)
        if self._joins_picked(attempt):
            return
        attempt = self.again.inlined(attempt)
        if self._joins(attempt) or self._waits(attempt):
            return
        attempt = self.again.expanded(attempt, None)
        group = self.latest = self.steps.open_group(self._needed(attempt, None))
        self._add(attempt, group, attempt.found(group))

    def _joins_picked(self, attempt: Attempt) -> bool:
        """Put elements picked from cheap values into a group that computes what these are made of."""
        picked = self.again.picked(attempt)
        if picked is None or not any(isinstance(self.steps.of.get(base), FusionGroup) for base, _ in picked.reads):
            return False
        return self._joins(picked)

    def _joins(self, attempt: Attempt) -> bool:
        """Put the value into the latest group that can hold it, if any; into one with fewer axes only where there is no other.

        (What runs over fewer axes is small: that it is stored and read again costs less than a second loop over all of them.)
        """
        growing = []
        for group, sources, moved in self._candidates(attempt):
            forms = dict.fromkeys((self.again.expanded(attempt, group), attempt))
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
        self.steps.order.put_after(group.position, sources, moved)
        self._add(attempt, group, member)
        return True

    def _waits(self, attempt: Attempt) -> bool:
        """Whether the value is a number that can be computed whenever it is needed: then it waits.

        One that is written to, or that reads what is, has its place in the order.
        """
        bases = [root(base) for base, _ in attempt.reads]
        if not attempt.is_number or self.versions.are_written((attempt.value, *bases)):
            return False
        self.numbers.add(attempt, bases, self._sources(bases))
        return True

    def _place_numbers(self) -> None:
        placement = self.numbers.place(self.forced)
        self.stored.update(placement.kept)
        for step, values in placement.held.items():
            group = self.steps.opened[step]
            assert isinstance(group, FusionGroup)
            for value in values:                           # those that read others first, and each in front of them
                attempt = self.numbers.by_value[value].attempt
                self._add(attempt, group, attempt.as_number(), in_front=True)

    def _add(self, attempt: Attempt, group: FusionGroup, member: Member, in_front: bool = False) -> None:
        if attempt.update:
            member.after = self.versions.read_before(attempt, group, self.attempts)
        group.add(member, in_front)
        self.attempts[member.value] = attempt
        self.steps.of.setdefault(member.value, group)
        if attempt.update:
            self.versions.update(member.value, group)
            self.stored.add(member.value)
            array = root(member.value.operands[0])
            if array not in group.by_value:
                self._load(array, group)
        for base, index in attempt.reads:
            array = root(base)
            if base in group.by_value:
                continue
            if array in self.numbers:
                self.numbers.read(array, group.position)
                continue
            self._load(array, group)
            self.last_reader[base] = group
            self.versions.read(base, index, attempt, group)

    def _load(self, array: Value, group: FusionGroup) -> None:
        group.loads.add(array)
        self.stored.add(array)

    # ----- the groups that may be it
    def _candidates(self, attempt: Attempt) -> Iterator[tuple[FusionGroup, set[int], Sequence[int]]]:
        """The groups that the value may join, the latest first: with what they have to come after then, and what moves for that.

        What is written into an array, as a residual into its stack, is written where it is computed rather than stored first; what is
        written after something else, beside that.
        """
        found: dict[int, FusionGroup] = {}
        fresh: set[int] = set()
        begins = attempt.update and attempt.value.operands[0].op not in ops.UPDATES
        for base, _ in attempt.reads:
            step = self.steps.of.get(base)
            if isinstance(step, FusionGroup):
                found[step.position] = step
                if begins and base not in self.stored:
                    fresh.add(step.position)
            reader = self.last_reader.get(base)
            if reader is not None:
                found[reader.position] = reader
        if self.latest is not None and attempt.reads and not _is_large_transpose(attempt.value):     # siblings share loops and loads
            found.setdefault(self.latest.position, self.latest)
        rank = self.steps.order.rank
        latest_first = sorted(found, key=lambda position: (position in fresh, rank[position]), reverse=True) if len(found) > 1 else found
        for position in latest_first:
            group = found[position]
            sources = self._needed(attempt, group)
            moved = self.steps.order.moved_before(position, sources)
            if moved is None:
                self._refuse_order(attempt, group)
            elif not self.versions.are_kept_apart(attempt, group, self.attempts):
                self._refuse(attempt, group, "versions")
            else:
                yield group, sources, moved

    def _sources(self, bases: Iterable[Value]) -> set[int]:
        """The steps that have to be done before these values can be read."""
        found: set[int] = set()
        waiting = self.numbers.by_value
        for base in bases:
            array = root(base)
            number = waiting.get(array)
            if number is not None:
                found |= number.sources
                continue
            step = self.steps.of.get(array)
            if step is not None:
                found.add(step.position)
        return found

    def _needed(self, attempt: Attempt, group: FusionGroup | None) -> set[int]:
        """The steps that have to be done before `group`, or a new one, can compute the value."""
        inside = {} if group is None else group.by_value
        found = self._sources([base for base, _ in attempt.reads if base not in inside])
        if attempt.update:                                 # the array is complete, and what reads it has run or runs with it
            array = root(attempt.value.operands[0])
            before = (*self._sources((array,)), *self.versions.readers.get(array, ()))
            found |= {step for step in before if group is None or step != group.position}
        return found

    def _refuse(self, attempt: Attempt, group: FusionGroup, rule: str, about: tuple[Value, ...] = ()) -> None:
        if self.refusals is not None:
            self.refusals.append(Refusal(attempt.value, group.position, rule, about))

    def _refuse_order(self, attempt: Attempt, group: FusionGroup) -> None:
        if self.refusals is not None:
            late = [base for base, _ in attempt.reads
                    if base not in group.by_value and self.steps.order.moved_before(group.position, self._sources((base,))) is None]
            self._refuse(attempt, group, "order" if late else "versions", tuple(dict.fromkeys(late)))


def _is_large_transpose(value: Value) -> bool:
    """Whether it goes through two arrays in two orders, which takes longer where it goes through others beside them: all of these come and
    go through the caches a line at a time."""
    return value.op is ops.transpose and value.type.is_fixed and value.type.nbytes >= LARGE_TRANSPOSE


def _operand_views(value: Value) -> tuple[ArrayView, ...]:
    """How a call reads its operands: matrix products, factorisations and windows that are added through layout ops, others whole arrays."""
    routine = value.op.library
    if value.op in ops.PRODUCTS:
        return (*[view_of(operand) or whole(operand) for operand in value.operands[:2]], *map(whole, value.operands[2:]))
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
    return forced | _copied_rows(graph)


def _copied_rows(graph: Graph) -> set[Value]:
    """Rows at positions given by data that are not read where they lie: of arrays that loops compute, or that something writes to."""
    rows = [value for value in graph.body if is_row(value)]
    if not rows:
        return set()
    written = {operand for value in graph.body if value.op in ops.WRITES or value.op.regions for operand in value.operands}
    kept = {*graph.inputs, *[value for value in graph.body if value.op is ops.item]} - written
    return {row for row in rows if row.operands[0] not in kept}
