"""`KernelLayout`: the passes of a kernel, the members that are saved between passes, and its buffers; decided before any statement."""

from __future__ import annotations

from collections.abc import Iterable

from bwcompiler import ops
from bwcompiler.ir.access import Leaf, element, expand, is_leaf, root
from bwcompiler.ir.contracts.fusion import FusionGroup, Member
from bwcompiler.ir.extent import Extent, Index
from bwcompiler.ir.loop import INPUT, OUTPUT, SCRATCH, UPDATED, Buffer, Let, Offset, Statement, Store, linear_offset, load
from bwcompiler.ir.op import Value
from bwcompiler.ir.scalar import IndexExpression, Scalar, const
from bwcompiler.ir.texts.graph_printer import TakenNames
from bwcompiler.ir.types import DType
from bwcompiler.lowering.loops.building.loop_order import inner_axes, lane_axis

RECOMPUTE_WEIGHT = 8          # members up to this many cheap operations are recomputed in a later pass


class KernelLayout:
    """Buffers and passes of one kernel; `build_loops` fills in the statements.

    axes      the loops' indices; positions: the position of the current iteration along each axis of the group.
    when      the pass of each inner member; the gap (before the pass) of each outer member.  passes, steps: the numbers of both.
    saved     inner members that later passes read back from memory; last: the last pass that computes each.
    numbers   members outside of the loops -> whether they are computed after these.  known: the scalars of those already computed.
    panels    scratch for outer members of a panel, which the gap that computes them does not read.
    fills     statements before the whole tree; flushes: statements after it.

    For the example of `build_loops.py`: outer [0], inner [1]; passes 2, steps 3 (gaps 0, 1, 2); when {e: 0, total: 0, scale: 1, share: 1},
    of which e, total and share are inner members, so that these numbers are passes; saved {e}.
    """

    def __init__(self, group: FusionGroup, stored: set[Value], forced: set[Value]) -> None:
        self.group = group
        self.stored = stored
        self.forced = forced
        self.members = group.by_value
        count = len(group.extents)
        inner = group.inner
        if inner is None:
            inner = inner_axes(group)
        self.inner = sorted(inner)
        self.outer = [axis for axis in range(count) if axis not in inner]
        self.lane_axis = lane_axis(group, self.inner, self.outer)
        self.flushes: list[Statement] = []
        self.numbers: dict[Value, bool] = {}
        self.known: dict[Value, Scalar] = {}
        self.buffers: dict[Value, Buffer] = {}
        self.scratch: dict[tuple[Value, tuple[Extent, ...], str], Buffer] = {}
        self.panels: set[Buffer] = set()
        self.used: list[Buffer] = []
        self.taken = TakenNames()                 # of buffers
        self.results: dict[Buffer, Value] = {}
        self.fills: dict[Buffer, Statement] = {}
        self.when: dict[Value, int] = {}
        self.saved: set[Value] = set()
        self.last: dict[Value, int] = {}
        self.passes = 0
        self.reads: dict[Value, list[Value]] = {}
        self.axes = [Index(0, extent - 1, f"i{k}") for k, extent in enumerate(group.extents)]
        self.positions: list[Extent] = [axis.extent() for axis in self.axes]
        self._open_updated()
        self._find_numbers()
        self._assign_passes()
        self._choose_saved()
        while self._updates_are_early():
            self._choose_saved()
        self.steps = max([self.passes + 1, *[1 + when for when in self.when.values()]]) if self.when else 0

    def _open_updated(self) -> None:
        """One parameter per updated array: all its versions are the same memory."""
        for operand, result in self.group.written_arrays():
            made = self._new_buffer(result.label, result.dtype, result.shape, UPDATED, result)
            version = result
            while version is not operand:
                self.buffers[version] = made
                version = root(version.operands[0])
            self.buffers[operand] = made
            self.results[made] = result

    def _find_numbers(self) -> None:
        if self.outer:
            for member in self.group.members:
                if member.is_number:
                    self.numbers[member.value] = any(self.numbers.get(base, True) for base in self._group_reads(member))

    def compute_numbers(self, after: bool) -> list[Statement]:
        """Compute the members outside of the loops: those before them, or those after them, which read their reductions."""
        def leaf(value: Value, index: tuple[IndexExpression, ...]) -> Scalar:
            known = self.known.get(value)
            return load(self.memory(value), linear_offset(value.shape, index)) if known is None else known

        statements: list[Statement] = []
        for value, late in self.numbers.items():
            if late is after:
                let = Let(value.label, self.expand(self.members[value], leaf), value)
                statements.append(let)
                self.known[value] = let.ref()
                if value in self.stored:
                    statements.append(Store(self.buffer(value), Offset(0), let.ref()))
        return statements

    def memory(self, value: Value) -> Buffer:
        """The buffer of a value: scratch for a number that only this kernel reads."""
        if value in self.members and value not in self.stored:
            return self.scratch_for(value, value.shape, value.dtype, "total")
        return self.buffer(value)

    def is_inner(self, member: Member) -> bool:
        return any(axis in member.domain for axis in self.inner)

    def is_total(self, member: Member) -> bool:
        """Whether member is a reduction over exactly the inner axes, available to later members."""
        return bool(member.reduced) and self.is_inner(member) and set(member.reduced) == set(self.inner)

    def _assign_passes(self) -> None:
        for member in self.group.members:
            if member.value in self.numbers:
                continue
            self.reads[member.value] = [base for base in self._group_reads(member) if base not in self.numbers]
            time = 0
            for base in self.reads[member.value]:
                time = max(time, self.when[base] + self.is_total(self.members[base]))
            self.when[member.value] = time

    def _group_reads(self, member: Member) -> list[Value]:
        found: dict[Value, None] = {}

        def leaf(value: Value, index: tuple[IndexExpression, ...]) -> Scalar:
            if value in self.members:
                found[value] = None
            return const(0, value.dtype)

        self.expand(member, leaf)
        return list(found)

    def at(self, axes: Iterable[int]) -> tuple[Extent, ...]:
        return tuple(0 if axis < 0 else self.positions[axis] for axis in axes)

    def expand(self, member: Member, leaf: Leaf) -> Scalar:
        """The scalar a member computes (or, for a reduction, combines) at its position."""
        value, at = member.value, self.at(member.domain)
        if member.inlined:
            leaf = self._inlining(member, leaf)
        if member.update:
            return expand(value.operands[1], at, leaf, self._is_leaf)
        if value.op.kind != "reduction":
            return element(value, at, leaf, self._is_leaf)
        if value.op in ops.SEARCHES and not member.reduced:
            return const(0, value.dtype)
        return expand(value.operands[0], at, leaf, self._is_leaf)

    def _inlining(self, member: Member, leaf: Leaf) -> Leaf:
        def through(value: Value, index: tuple[IndexExpression, ...]) -> Scalar:
            if value in member.inlined:
                return element(value, index, through, self._is_leaf)
            return leaf(value, index)
        return through

    def _is_leaf(self, value: Value) -> bool:
        return is_leaf(value, self.forced)

    def computes_inside(self, value: Value) -> bool:
        member = self.members[value]
        return self.is_inner(member) and not member.reduced

    def _choose_saved(self) -> None:
        """Members needed by a later pass than their first are saved if they are stored anyway, or expensive to recompute."""
        self.passes = 1 + max((self.when[m.value] for m in self.group.members if self.is_inner(m)), default=-1)
        self.saved.clear()
        self.last.clear()
        weight: dict[Value, int] = {}
        for member in self.group.members:
            if member.value in self.numbers:
                continue
            inside = [base for base in self.reads[member.value] if self.computes_inside(base)]
            weight[member.value] = (1 if member.value.op.cheap else 20) + sum(weight[base] for base in inside)
        first: dict[Value, int] = {}
        for number in range(self.passes):
            pending = [m.value for m in self.group.members if self.is_inner(m) and self.when[m.value] == number
                       and (m.reduced or m.update or m.value in self.stored)]
            seen: set[Value] = set()
            while pending:
                value = pending.pop()
                if value in seen:
                    continue
                seen.add(value)
                earlier = first.setdefault(value, number) < number
                if earlier and (value in self.stored or weight[value] > RECOMPUTE_WEIGHT):
                    self.saved.add(value)
                    continue
                self.last[value] = number
                pending += [base for base in self.reads[value] if self.computes_inside(base)]

    def _updates_are_early(self) -> bool:
        """Whether an update was in an earlier pass than members that read what it overwrites: then it is in that pass now."""
        early = False
        for member in self.group.members:
            last = max([self.last.get(value, self.when.get(value, 0)) for value in member.after], default=0)
            if last > self.when.get(member.value, last):
                self.when[member.value] = last
                early = True
        return early

    # ----- buffers
    def buffer(self, value: Value) -> Buffer:
        """The parameter for the memory of a value."""
        base = root(value)
        found = self.buffers.get(base)
        if found is None:
            role = OUTPUT if base in self.members else INPUT
            found = self.buffers[base] = self._new_buffer(base.label, base.dtype, base.shape, role, base)
        return found

    def scratch_for(self, value: Value, shape: tuple[Extent, ...], dtype: DType, purpose: str = "row") -> Buffer:
        key = (value, shape, purpose)
        found = self.scratch.get(key)
        if found is None:
            found = self.scratch[key] = self._new_buffer(f"{value.label}.{purpose}", dtype, shape, SCRATCH)
        return found

    def renewed(self, scratch: Buffer) -> Buffer:
        """A new scratch buffer like this one."""
        return self._new_buffer(scratch.name, scratch.dtype, scratch.shape, SCRATCH)

    def _new_buffer(self, name: str, dtype: DType, shape: tuple[Extent, ...], role: str,
                    origin: Value | None = None) -> Buffer:
        made = Buffer(self.taken.new(name), dtype, shape, role, origin)
        self.used.append(made)
        return made
