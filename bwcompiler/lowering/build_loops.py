"""Fusion group -> loop tree.

Row order (the last axis is inner): one iteration of the outer loops handles one row in passes.

    for outer axes                      outer lets: scalars
      for inner axes: pass 0            reductions into accumulators, stores
      outer lets that read totals
      for inner axes: pass 1 ...

Column order (the last axis is outer): the same with the last axis cut into panels that stay in cache; outer values and
accumulators are arrays over the panel, and the panel is the innermost, vector, loop of every pass.  Short rows of dear
elements (a softmax over 10 classes) are handled like columns: a panel is a number of rows.

Numbers stand outside of all loops: before them, or after them if they are made of what the loops sum up.

A member needed in a later pass than the one that first needs it is stored and read back when recomputing is dear.
"""

from __future__ import annotations

from collections.abc import Iterable

from bwcompiler.errors import InternalError
from bwcompiler.ir.access import Leaf, element, expand, is_virtual, root
from bwcompiler.ir.extent import Extent, Index, add_extents, scale_extent, upper
from bwcompiler.ir.fusion import FusionGroup, Member, update_region
from bwcompiler.ir.graph_printer import first_free
from bwcompiler.ir.loop import (
    INPUT,
    OUTPUT,
    SCRATCH,
    UPDATED,
    Accumulate,
    Accumulator,
    Buffer,
    Fill,
    Kernel,
    Let,
    Loop,
    Offset,
    Reduce,
    Statement,
    Store,
    identity_of,
    linear_offset,
    load,
)
from bwcompiler.ir.op import Value
from bwcompiler.ir.scalar import IndexExpression, Scalar, cast, const, index_value
from bwcompiler.ir.types import C64, C128, F32, F64, DType
from bwcompiler.lowering.loop_order import SEARCHES, inner_axes, lane_axis, panel_width
from bwcompiler.lowering.split_guards import split_guards

RECOMPUTE_WEIGHT = 8          # members up to this many cheap operations are recomputed in a later pass


def build_kernel(name: str, group: FusionGroup, stored: set[Value], forced: set[Value]) -> tuple[Kernel, list[Value | None]]:
    """The kernel of a group, and per parameter the value whose memory it is (None for scratch)."""
    return _Builder(name, group, stored, forced).build()


class _Builder:
    """Buffers and loop structure of one kernel; `_Tree` fills in the statements."""

    def __init__(self, name: str, group: FusionGroup, stored: set[Value], forced: set[Value]) -> None:
        self.name = name
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
        self.flushes: list[Statement] = []        # what has to follow the whole tree
        self.numbers: dict[Value, bool] = {}      # those outside of the loops: whether they are computed after these
        self.buffers: dict[Value, Buffer] = {}
        self.scratch: dict[tuple[Value, tuple[Extent, ...], str], Buffer] = {}
        self.used: list[Buffer] = []
        self.taken: set[str] = set()              # names of buffers
        self.results: dict[Buffer, Value] = {}
        self.fills: dict[Buffer, Statement] = {}
        self.when: dict[Value, int] = {}          # pass of inner members; gap (before the pass) of outer members
        self.saved: set[Value] = set()            # inner members read back from memory in later passes
        self.reads: dict[Value, list[Value]] = {}
        self._open_updated()

    def _open_updated(self) -> None:
        """One parameter per array that updates write: before, in between and after it is the same memory."""
        for operand, result in self.group.written_arrays():
            made = self._new_buffer(result.label, result.dtype, result.shape, UPDATED, result)
            version = result
            while version is not operand:
                self.buffers[version] = made
                version = root(version.operands[0])
            self.buffers[operand] = made
            self.results[made] = result

    def build(self) -> tuple[Kernel, list[Value | None]]:
        axes = [Index(0, extent - 1, f"i{k}") for k, extent in enumerate(self.group.extents)]
        self.positions: list[Extent] = [axis.extent() for axis in axes]
        self.known: dict[Value, Scalar] = {}      # the numbers so far
        self._find_numbers()
        before = self._compute_numbers(after=False)
        self._assign_passes()
        passes = 1 + max((self.when[m.value] for m in self.group.members if self.is_inner(m)), default=-1)
        self._choose_saved(passes)
        steps = max([passes + 1, *[1 + when for when in self.when.values()]]) if self.when else 0
        body: list[Statement] = []
        if self.lane_axis is None:
            body = _Tree(self, axes, steps, passes).nest(self.outer, axes)
        else:
            width = panel_width(self.group, self.inner, self.lane_axis)
            whole, rest = divmod(upper(self.group.extents[self.lane_axis]), width)
            if whole:
                body += self._panels(axes, self.lane_axis, steps, passes, whole, width, 0)
            if rest:
                body += self._panels(axes, self.lane_axis, steps, passes, 1, rest, whole * width)
        after = self._compute_numbers(after=True)
        kernel = Kernel(self.name, self.used, [*before, *self.fills.values(), *split_guards(body), *self.flushes, *after])
        owners = {buffer: value for value, buffer in self.buffers.items()} | self.results
        return kernel, [owners.get(buffer) for buffer in self.used]

    def _panels(self, axes: list[Index], lane_axis: int, steps: int, passes: int, count: int, width: int,
                start: int) -> list[Statement]:
        """The tree over `count` panels of `width` columns (or short rows) from number `start`."""
        panel, lane = Index(0, count - 1, "p"), Index(0, width - 1, "l")
        self.positions[lane_axis] = panel.extent() * width + lane.extent() + start
        tree = _Tree(self, axes, steps, passes, lane, width)
        outer = [axis for axis in self.outer if axis != lane_axis]
        return tree.nest(outer, axes, panel, count)

    def _find_numbers(self) -> None:
        if self.outer:
            for member in self.group.members:
                if member.is_number:
                    self.numbers[member.value] = any(self.numbers.get(base, True) for base in self._group_reads(member))

    def _compute_numbers(self, after: bool) -> list[Statement]:
        """The numbers that are computed before the loops, or after them: where they read what loops sum up, from memory."""
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
        """Where value lies: scratch for a number that only this kernel reads."""
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
        if value.op.name in SEARCHES and not member.reduced:
            return const(0, value.dtype)
        return expand(value.operands[0], at, leaf, self._is_leaf)

    def _inlining(self, member: Member, leaf: Leaf) -> Leaf:
        def through(value: Value, index: tuple[IndexExpression, ...]) -> Scalar:
            if value in member.inlined:
                return element(value, index, through, self._is_leaf)
            return leaf(value, index)
        return through

    def _is_leaf(self, value: Value) -> bool:
        return value in self.forced or not is_virtual(value)

    def computes_inside(self, value: Value) -> bool:
        member = self.members[value]
        return self.is_inner(member) and not member.reduced

    def _choose_saved(self, passes: int) -> None:
        """Members needed by a later pass than their first are saved if stored anyway, or dear to recompute."""
        weight: dict[Value, int] = {}
        for member in self.group.members:
            if member.value in self.numbers:
                continue
            inside = [base for base in self.reads[member.value] if self.computes_inside(base)]
            weight[member.value] = (1 if member.value.op.cheap else 20) + sum(weight[base] for base in inside)
        first: dict[Value, int] = {}
        for number in range(passes):
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
                pending += [base for base in self.reads[value] if self.computes_inside(base)]

    # ----- buffers
    def buffer(self, value: Value) -> Buffer:
        """The parameter that is value's memory."""
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

    def _new_buffer(self, name: str, dtype: DType, shape: tuple[Extent, ...], role: str,
                    origin: Value | None = None) -> Buffer:
        made = Buffer(first_free(name, self.taken), dtype, shape, role, origin)
        self.taken.add(made.name)
        self.used.append(made)
        return made


class _Tree:
    """The statements of one loop tree."""

    def __init__(self, builder: _Builder, axes: list[Index], steps: int, passes: int, lane: Index | None = None,
                 width: int = 0) -> None:
        self.b = builder
        self.axes = axes
        self.steps = steps
        self.passes = passes
        self.lane = lane
        self.width = width
        self.known = dict(builder.known)                             # numbers; outer members and totals, inside the outer loops
        self.written: set[Value] = set()
        self.prologue: dict[int, list[Statement]] = {}
        self.epilogue: dict[int, list[Statement]] = {}
        self.after_pass: dict[int, list[tuple[Member, Scalar]]] = {}

    def nest(self, outer: list[int], axes: list[Index], panel: Index | None = None, count: int = 0) -> list[Statement]:
        """The whole tree: outer loops around gaps and passes."""
        body: list[Statement] = []
        for number in range(self.steps):
            body += self._gap(number)
            if number < self.passes:
                body += self._pass(number)
        if panel is not None:
            body = [Loop(panel, count, body)]
        for depth in reversed(range(len(outer) + 1)):
            body = [*self.prologue.get(depth, []), *body, *self.epilogue.get(depth, [])]
            if depth:
                axis = outer[depth - 1]
                body = [Loop(axes[axis], self.b.group.extents[axis], body)]
        return body

    # ----- gaps: outer members and totals
    def _gap(self, number: int) -> list[Statement]:
        statements: list[Statement] = []
        for member, total in self.after_pass.get(number, []):
            self._terminal(member, total, statements)
        for member in self.b.group.members:
            value = member.value
            if value in self.b.numbers:
                continue
            if self.b.is_total(member):
                if self.b.when[value] + 1 == number and value in self.b.stored:
                    statements.append(self._store(value, member.axes, self.known[value]))
            elif not self.b.is_inner(member) and self.b.when[value] == number:
                self._outer_member(member, statements)
        return self._over_lanes(statements)

    def _over_lanes(self, statements: list[Statement]) -> list[Statement]:
        if self.lane is None or not statements:
            return statements
        return [Loop(self.lane, self.width, statements, "vector")]

    def _store(self, value: Value, axes: tuple[int, ...], scalar: Scalar) -> Store:
        return Store(self.b.memory(value), linear_offset(value.shape, self.b.at(axes)), scalar)

    def _write_slice(self, member: Member, scalar: Scalar) -> Statement:
        """value[start + step * k] = or += scalar."""
        value, region = member.value, update_region(member.value)
        at = [add_extents(scale_extent(position, step), start)
              for position, step, start in zip(self.b.at(member.domain), region.steps, region.starts, strict=True)]
        target = self.b.buffer(value), linear_offset(value.shape, tuple(at))
        return Accumulate(target, "add", scalar) if value.op.name == "slice_add" else Store(*target, scalar)

    def _outer_member(self, member: Member, statements: list[Statement]) -> None:
        value = member.value
        scalar = self.b.expand(member, self._outer_leaf)
        if member.reduced:
            self._terminal(member, scalar, statements)
            return
        if member.update:
            statements.append(self._write_slice(member, scalar))
            return
        let = Let(value.label, scalar, value)
        statements.append(let)
        self.known[value] = let.ref()
        if self.lane is not None:
            panel = self.b.scratch_for(value, (self.width,), value.dtype)
            statements.append(Store(panel, Offset(self.lane.extent()), let.ref()))
            self.known[value] = load(panel, Offset(self.lane.extent()))
        if value in self.b.stored:
            statements.append(self._store(value, member.axes, let.ref()))

    def _outer_leaf(self, value: Value, index: tuple[IndexExpression, ...]) -> Scalar:
        if value in self.b.members:
            return self.known[value]
        return load(self.b.buffer(value), linear_offset(value.shape, index))

    # ----- one pass over the inner axes
    def _pass(self, number: int) -> list[Statement]:
        before: list[Statement] = []
        body: list[Statement] = []
        memo: dict[Value, Scalar] = {}
        for member in self.b.group.members:
            value = member.value
            if not self.b.is_inner(member) or self.b.when[value] != number:
                continue
            if member.reduced:
                self._inner_reduction(member, self._inner_scalar(member, memo, body, number), before, body)
            elif member.update:
                body.append(self._write_slice(member, self._inner_scalar(member, memo, body, number)))
            elif value in self.b.stored:
                self._compute(value, memo, body, number)
        if not body:
            return []
        nest = self._over_lanes(body)
        searching = any(isinstance(statement, Accumulate) and statement.position is not None for statement in body)
        for axis in reversed(self.b.inner):
            vector = axis == self.b.inner[-1] and self.lane is None and not searching
            nest = [Loop(self.axes[axis], self.b.group.extents[axis], nest, "vector" if vector else "serial")]
        return [*self._over_lanes(before), *nest]

    def _inner_scalar(self, member: Member, memo: dict[Value, Scalar], body: list[Statement], number: int) -> Scalar:
        def leaf(value: Value, index: tuple[IndexExpression, ...]) -> Scalar:
            if value not in self.b.members:
                return load(self.b.buffer(value), linear_offset(value.shape, index))
            if self.b.computes_inside(value):
                return self._compute(value, memo, body, number)
            return self.known[value]
        return self.b.expand(member, leaf)

    def _compute(self, value: Value, memo: dict[Value, Scalar], body: list[Statement], number: int) -> Scalar:
        found = memo.get(value)
        if found is not None:
            return found
        member = self.b.members[value]
        written = value in self.written
        if written and value in self.b.saved:
            scalar = load(*self._home(value, member))
        else:
            scalar = self._inner_scalar(member, memo, body, number)
        let = Let(value.label, scalar, value)
        body.append(let)
        memo[value] = let.ref()
        if not written and (value in self.b.saved or (value in self.b.stored and self.b.when[value] == number)):
            self.written.add(value)
            body.append(Store(*self._home(value, member), let.ref()))
        return memo[value]

    def _home(self, value: Value, member: Member) -> tuple[Buffer, Offset]:
        """Where an inner member is stored: its own buffer, or scratch for one row or panel."""
        if value in self.b.stored:
            return self.b.buffer(value), linear_offset(value.shape, self.b.at(member.axes))
        shape = tuple(self.b.group.extents[axis] for axis in self.b.inner)
        index: tuple[IndexExpression, ...] = self.b.at(self.b.inner)
        if self.lane is not None:
            shape, index = (*shape, self.width), (*index, self.lane.extent())
        return self.b.scratch_for(value, shape, value.dtype), linear_offset(shape, index)

    # ----- reductions
    def _inner_reduction(self, member: Member, scalar: Scalar, before: list[Statement], body: list[Statement]) -> None:
        value, combine = member.value, _combine(member.value)
        if not self.b.is_total(member):
            if not set(self.b.inner) <= set(member.reduced):
                self._into_memory(member, scalar, body)
                return
            if self.lane is not None:
                total = self._panel_total(value, self.lane, scalar, before, body)
            else:
                row = Accumulator(f"{value.label}.row", combine, scalar.dtype)
                before.append(Reduce(row))
                body.append(Accumulate(row, combine, scalar))
                total = row.total()
            self.after_pass.setdefault(self.b.when[value] + 1, []).append((member, total))
        elif self.lane is not None:
            self.known[value] = self._panel_total(value, self.lane, scalar, before, body)
        else:
            accumulator = Accumulator(value.label, combine, scalar.dtype, value)
            before.append(Reduce(accumulator))
            body.append(Accumulate(accumulator, combine, scalar, self._position(member)))
            self.known[value] = _total(accumulator, value)

    def _panel_total(self, value: Value, lane: Index, scalar: Scalar, before: list[Statement], body: list[Statement]) -> Scalar:
        """Reduce over the inner axes into one element per column of the panel."""
        combine, at = _combine(value), Offset(lane.extent())
        panel = self.b.scratch_for(value, (self.width,), scalar.dtype)
        before.append(Store(panel, at, const(identity_of(combine, scalar.dtype), scalar.dtype)))
        body.append(Accumulate((panel, at), combine, scalar))
        return load(panel, at)

    def _position(self, member: Member) -> Scalar | None:
        """For argmax and argmin, the position along the searched axis."""
        if member.value.op.name not in SEARCHES:
            return None
        return index_value(self.b.positions[member.reduced[0]])

    def _terminal(self, member: Member, scalar: Scalar, statements: list[Statement]) -> None:
        """Feed a reduction over outer axes: it is complete only after the loops it reduces."""
        value, combine = member.value, _combine(member.value)
        kept = [axis for axis in member.axes if axis >= 0]
        if self.lane is not None or kept != self.b.outer[:len(kept)]:
            self._into_memory(member, scalar, statements)
            return
        # One term after the other: a sum of f32 in double precision, or a long one would lose digits.
        dtype = {F32: F64, C64: C128}.get(scalar.dtype, scalar.dtype) if combine == "add" else scalar.dtype
        accumulator = Accumulator(value.label, combine, dtype, value)
        self.prologue.setdefault(len(kept), []).append(Reduce(accumulator))
        statements.append(Accumulate(accumulator, combine, cast(scalar, dtype), self._position(member)))
        total = cast(_total(accumulator, value), value.dtype)
        self.epilogue.setdefault(len(kept), []).append(self._store(value, member.axes, total))

    def _into_memory(self, member: Member, scalar: Scalar, statements: list[Statement]) -> None:
        value, combine = member.value, _combine(member.value)
        if value.op.name in SEARCHES:
            raise InternalError(f"{value.op.name} cannot be accumulated in memory")
        buffer, zero = self.b.memory(value), const(identity_of(combine, value.dtype), value.dtype)
        self.b.fills[buffer] = Fill(buffer, zero)
        kept = [axis for axis in member.axes if axis >= 0]
        if self.lane is not None and self.b.lane_axis in member.reduced and set(kept) <= set(self.b.inner):
            self._into_lanes(member, kept, self.lane, scalar, statements)
            return
        offset = linear_offset(value.shape, self.b.at(member.axes))
        statements.append(Accumulate((buffer, offset), combine, scalar))

    def _into_lanes(self, member: Member, kept: list[int], lane: Index, scalar: Scalar, statements: list[Statement]) -> None:
        """Reduce over the lanes too: every lane has a partial result of its own, and they meet after the whole tree."""
        value, combine = member.value, _combine(member.value)
        shape = (*[self.b.group.extents[axis] for axis in kept], self.width)
        partial = self.b.scratch_for(value, shape, value.dtype, "lanes")
        self.b.fills[partial] = Fill(partial, const(identity_of(combine, value.dtype), value.dtype))
        here = linear_offset(shape, (*self.b.at(kept), lane.extent()))
        statements.append(Accumulate((partial, here), combine, scalar))
        loops = [Index(0, extent - 1, f"f{k}") for k, extent in enumerate(shape)]
        position = {axis: loop.extent() for axis, loop in zip(kept, loops, strict=False)}
        target = linear_offset(value.shape, tuple([position.get(axis, 0) for axis in member.axes]))
        source = linear_offset(shape, tuple([loop.extent() for loop in loops]))
        body: list[Statement] = [Accumulate((self.b.memory(value), target), combine, load(partial, source))]
        for loop, extent in zip(reversed(loops), reversed(shape), strict=True):
            body = [Loop(loop, extent, body)]
        self.b.flushes += body


def _combine(value: Value) -> str:
    combine = value.op.combine
    if combine is None:
        raise InternalError(f"{value.op.name} is no reduction")
    return combine


def _total(accumulator: Accumulator, value: Value) -> Scalar:
    """The result: the combined value, or for a search its position."""
    if value.op.name in SEARCHES:
        return Scalar("found", (), value.dtype, accumulator)
    return accumulator.total()
