"""Fusion group -> loop tree.

Row order (the last axis is inner): one iteration of the outer loops handles one row in passes.

    for outer axes                      outer lets: scalars
      for inner axes: pass 0            reductions into accumulators, stores
      outer lets that read totals
      for inner axes: pass 1 ...

Column order (the last axis is outer): the same with the last axis cut into panels that stay in cache; outer values and
accumulators are arrays over the panel, and the panel is the innermost, vector, loop of every pass.  Short rows with expensive
elements (a softmax over 10 classes), or with expensive outer values, are handled like columns: a panel is a number of rows.  Passes
with cheap elements that are contiguous along such rows still go through one row after the other.

Scalar members are computed outside of all loops: before them, or after them if they depend on reductions of the loops.

A member that several passes need is computed in the first, stored and read back if recomputing it is expensive.

An example: rows are divided by their sums.  This group

    graph shares(%x: f64[5,40]) -> f64[5,40] {
      %e: f64[5,40] = exp %x
      %total: f64[5] = sum %e {axes=[1]}
      %scale: f64[5] = divide 1.0, %total
      %wide: f64[5,40] = broadcast %scale {shape=[5,40], axes=[0]}
      %share: f64[5,40] = multiply %e, %wide
      return %share
    }

becomes this kernel.  `%wide` is no member: its elements are those of `%scale` at another index.

    kernel shares(%x: in f64[5,40], %e.row: scratch f64[40], %share: out f64[5,40])
      for i0 in 0..5                        ; the outer axis
        reduce total: f64 = add
        for i1 in 0..40 vector              ; pass 0: the inner axis, for the sum
          let e = exp(%x[i0, i1])
          store %e.row[i1], e               ; pass 1 needs it as well, and exp is expensive
          total add= e
        let scale = 1.0 / total             ; the gap before pass 1: outer members
        for i1 in 0..40 vector              ; pass 1: what needs the sum
          let e = %e.row[i1]
          let share = e * scale
          store %share[i0, i1], share

`KernelLayout` decides the axes, passes and buffers first; `_Tree` then writes gap 0, pass 0, gap 1, pass 1 ..., and puts the outer loops
around them.
"""

from __future__ import annotations

from collections.abc import Sequence

from bwcompiler import ops
from bwcompiler.errors import InternalError
from bwcompiler.ir.access import section_of
from bwcompiler.ir.contracts.fusion import FusionGroup, Member
from bwcompiler.ir.extent import Extent, Index, add_extents, scale_extent, upper
from bwcompiler.ir.loop import (
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
from bwcompiler.ir.semantics.reduction_tree import SHORT
from bwcompiler.ir.types import C64, C128, F32, F64
from bwcompiler.lowering.loops.building.kernel_layout import KernelLayout
from bwcompiler.lowering.loops.building.loop_order import panel_width
from bwcompiler.lowering.loops.split_guards import split_guards
from bwcompiler.lowering.loops.unread_panels import without_unread

DEEP = 64                      # members of a group in which each may be made of all others


def build_kernel(name: str, group: FusionGroup, stored: set[Value], forced: set[Value]) -> tuple[Kernel, list[Value | None]]:
    """The kernel of a group, and per parameter the value that it is the memory of (None for scratch)."""
    layout = KernelLayout(group, stored, forced)
    before = layout.compute_numbers(after=False)
    body: list[Statement] = []
    if layout.lane_axis is None:
        body = _Tree(layout).nest(layout.outer)
    elif not isinstance(columns := group.extents[layout.lane_axis], int):
        body = _moving_panel(layout, layout.lane_axis, columns)
    else:
        width = panel_width(group, layout.inner, layout.lane_axis)
        whole, rest = divmod(columns, width)
        if whole:
            body += _panels(layout, layout.lane_axis, whole, width, 0)
        if rest:
            body += _panels(layout, layout.lane_axis, 1, rest, whole * width)
    after = layout.compute_numbers(after=True)
    before += layout.fills.values()
    after = [*layout.flushes, *after]
    body, unread = without_unread(body, after, layout.panels)
    layout.used = [buffer for buffer in layout.used if buffer not in unread]
    kernel = Kernel(name, layout.used, [*before, *split_guards(body, [*before, *after], layout.renewed), *after])
    owners = {buffer: value for value, buffer in layout.buffers.items()} | layout.results
    return kernel, [owners.get(buffer) for buffer in layout.used]


def _panels(layout: KernelLayout, lane_axis: int, count: int, width: int, start: int) -> list[Statement]:
    """The tree over `count` panels of `width` columns (or short rows) from number `start`."""
    panel, lane = Index(0, count - 1, "p"), Index(0, width - 1, "l")
    layout.positions[lane_axis] = panel.extent() * width + lane.extent() + start
    outer = [axis for axis in layout.outer if axis != lane_axis]
    return _Tree(layout, lane, width).nest(outer, panel, count)


def _moving_panel(layout: KernelLayout, lane_axis: int, width: Extent) -> list[Statement]:
    """The tree over one panel of all columns, whose number depends on the index of an enclosing loop."""
    lane = Index(0, add_extents(width, -1), "l")
    layout.positions[lane_axis] = lane.extent()
    return _Tree(layout, lane, width).nest([axis for axis in layout.outer if axis != lane_axis])


class _Tree:
    """The statements of one loop tree."""

    def __init__(self, layout: KernelLayout, lane: Index | None = None, width: Extent = 0) -> None:
        self.layout = layout
        self.lane = lane
        self.width = width
        self.by_row = False                                         # whether the pass goes through the rows of a panel one by one
        self.known = dict(layout.known)                             # scalar members; inside the outer loops also outer members and totals
        self.behind_gap: dict[Value, Scalar] = {}                   # outer members of a gap over lanes: where the next loops find them
        self.written: set[Value] = set()
        self.prologue: dict[int, list[Statement]] = {}
        self.epilogue: dict[int, list[Statement]] = {}
        self.after_pass: dict[int, list[tuple[Member, Scalar]]] = {}

    def nest(self, outer: list[int], panel: Index | None = None, count: int = 0) -> list[Statement]:
        """The whole tree: outer loops around gaps and passes."""
        body: list[Statement] = []
        for number in range(self.layout.steps):
            body += self._gap(number)
            if number < self.layout.passes:
                body += self._pass(number)
        if panel is not None:
            body = [Loop(panel, count, body)]
        for depth in reversed(range(len(outer) + 1)):
            body = [*self.prologue.get(depth, []), *body, *self.epilogue.get(depth, [])]
            if depth:
                axis = outer[depth - 1]
                body = [Loop(self.layout.axes[axis], self.layout.group.extents[axis], body)]
        return body

    # ----- gaps: outer members and totals
    def _gap(self, number: int) -> list[Statement]:
        statements: list[Statement] = []
        for member, total in self.after_pass.get(number, []):
            self._terminal(member, total, statements)
        for member in self.layout.group.members:
            value = member.value
            if value in self.layout.numbers:
                continue
            if self.layout.is_total(member):
                if self.layout.when[value] + 1 == number and value in self.layout.stored:
                    statements.append(self._store(value, member.axes, self.known[value]))
            elif not self.layout.is_inner(member) and self.layout.when[value] == number:
                self._outer_member(member, statements)
        self.known.update(self.behind_gap)
        self.behind_gap.clear()
        return self._over_lanes(statements)

    def _over_lanes(self, statements: list[Statement]) -> list[Statement]:
        if self.lane is None or not statements:
            return statements
        return [Loop(self.lane, self.width, statements, "vector")]

    def _store(self, value: Value, axes: tuple[int, ...], scalar: Scalar) -> Store:
        return Store(self.layout.memory(value), linear_offset(value.shape, self.layout.at(axes)), scalar)

    def _write_slice(self, member: Member, scalar: Scalar) -> Statement:
        """value[start + step * k] = or += scalar."""
        value, section = member.value, section_of(member.value)
        at = [add_extents(scale_extent(position, step), start)
              for position, step, start in zip(self.layout.at(member.domain), section.steps, section.starts, strict=True)]
        target = self.layout.buffer(value), linear_offset(value.shape, tuple(at))
        return Accumulate(target, "add", scalar) if value.op is ops.slice_add else Store(*target, scalar)

    def _outer_member(self, member: Member, statements: list[Statement]) -> None:
        value = member.value
        scalar = self.layout.expand(member, self._outer_leaf)
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
            panel = self.layout.scratch_for(value, (self.width,), value.dtype)
            statements.append(Store(panel, Offset(self.lane.extent()), let.ref()))
            self.layout.panels.add(panel)
            self.behind_gap[value] = load(panel, Offset(self.lane.extent()))
        if value in self.layout.stored:
            statements.append(self._store(value, member.axes, let.ref()))

    def _outer_leaf(self, value: Value, index: tuple[IndexExpression, ...]) -> Scalar:
        if value in self.layout.members:
            return self.known[value]
        return load(self.layout.buffer(value), linear_offset(value.shape, index))

    # ----- one pass over the inner axes
    def _pass(self, number: int) -> list[Statement]:
        before: list[Statement] = []
        body: list[Statement] = []
        after: list[Statement] = []
        memo: dict[Value, Scalar] = {}
        members = [member for member in self.layout.group.members
                   if self.layout.is_inner(member) and self.layout.when[member.value] == number]
        by_row = self.by_row = self.lane is not None and _goes_along_rows(self.layout, members, self.lane)
        is_deep = len(self.layout.group.members) > DEEP
        behind = [member for member in members if member.after]
        for member in [member for member in members if not member.after] if behind else members:
            value = member.value
            if is_deep and (member.reduced or member.update or value in self.layout.stored):
                self._compute_operands(value, memo, body, number)
            if member.reduced:
                self._inner_reduction(member, self._inner_scalar(member, memo, body, number), before, body, after)
            elif member.update:
                body.append(self._write_slice(member, self._inner_scalar(member, memo, body, number)))
            elif value in self.layout.stored:
                self._compute(value, memo, body, number)
        body += self._write_behind(behind, [self._inner_scalar(member, memo, body, number) for member in behind])
        self.by_row = False
        if not body:
            return []
        nest = body if by_row else self._over_lanes(body)
        searching = any(isinstance(statement, Accumulate) and statement.position is not None for statement in body)
        for axis in reversed(self.layout.inner):
            vector = axis == self.layout.inner[-1] and (by_row or self.lane is None) and not searching
            nest = [Loop(self.layout.axes[axis], self.layout.group.extents[axis], nest, "vector" if vector else "serial")]
        if by_row and self.lane is not None:
            return [Loop(self.lane, self.width, [*before, *nest, *after])]
        return [*self._over_lanes(before), *nest]

    def _write_behind(self, members: Sequence[Member], scalars: Sequence[Scalar]) -> list[Statement]:
        """Updates of arrays that members (also other updates) read: all values are computed before any is written."""
        if len(members) < 2:
            return [self._write_slice(member, scalar) for member, scalar in zip(members, scalars, strict=True)]
        lets = [Let(member.value.label, scalar, member.value) for member, scalar in zip(members, scalars, strict=True)]
        return [*lets, *[self._write_slice(member, let.ref()) for member, let in zip(members, lets, strict=True)]]

    def _inner_scalar(self, member: Member, memo: dict[Value, Scalar], body: list[Statement], number: int) -> Scalar:
        def leaf(value: Value, index: tuple[IndexExpression, ...]) -> Scalar:
            if value not in self.layout.members:
                return load(self.layout.buffer(value), linear_offset(value.shape, index))
            if self.layout.computes_inside(value):
                return self._compute(value, memo, body, number)
            return self.known[value]
        return self.layout.expand(member, leaf)

    def _compute_operands(self, value: Value, memo: dict[Value, Scalar], body: list[Statement], number: int) -> None:
        """Compute the operands of a value in the order of recursive evaluation, but without deep recursion."""
        reads: dict[Value, list[Value]] = {}
        pending = [value]
        while pending:
            last = pending[-1]
            if last not in reads:
                reads[last] = self._reads_inside(last)
            missing = [operand for operand in reads[last] if operand not in memo]
            if missing:
                pending += missing[::-1]
                continue
            pending.pop()
            if last is not value:
                self._compute(last, memo, body, number)

    def _reads_inside(self, value: Value) -> list[Value]:
        """The members that a value reads within the same iteration."""
        if value in self.written and value in self.layout.saved:
            return []
        found: dict[Value, None] = {}

        def leaf(value: Value, index: tuple[IndexExpression, ...]) -> Scalar:
            if value in self.layout.members and self.layout.computes_inside(value):
                found[value] = None
            return const(0, value.dtype)
        self.layout.expand(self.layout.members[value], leaf)
        return list(found)

    def _compute(self, value: Value, memo: dict[Value, Scalar], body: list[Statement], number: int) -> Scalar:
        found = memo.get(value)
        if found is not None:
            return found
        member = self.layout.members[value]
        written = value in self.written
        if written and value in self.layout.saved:
            scalar = load(*self._home(value, member))
        else:
            scalar = self._inner_scalar(member, memo, body, number)
        let = Let(value.label, scalar, value)
        body.append(let)
        memo[value] = let.ref()
        if not written and (value in self.layout.saved or (value in self.layout.stored and self.layout.when[value] == number)):
            self.written.add(value)
            body.append(Store(*self._home(value, member), let.ref()))
        return memo[value]

    def _home(self, value: Value, member: Member) -> tuple[Buffer, Offset]:
        """The buffer in which an inner member is stored: its own, or scratch for one row or panel."""
        if value in self.layout.stored:
            return self.layout.buffer(value), linear_offset(value.shape, self.layout.at(member.axes))
        shape = tuple(self.layout.group.extents[axis] for axis in self.layout.inner)
        index: tuple[IndexExpression, ...] = self.layout.at(self.layout.inner)
        if self.lane is not None:
            shape, index = (*shape, self.width), (*index, self.lane.extent())
        return self.layout.scratch_for(value, shape, value.dtype), linear_offset(shape, index)

    # ----- reductions
    def _inner_reduction(self, member: Member, scalar: Scalar, before: list[Statement], body: list[Statement],
                         after: list[Statement]) -> None:
        """Statements in the pass; before: what precedes a row or panel, after: what follows a row of a panel."""
        value, combine = member.value, _combine(member.value)
        if not self.layout.is_total(member):
            if not set(self.layout.inner) <= set(member.reduced):
                self._into_memory(member, scalar, body)
                return
            if self.lane is not None:
                total = self._panel_total(value, self.lane, scalar, before, body, after)
            else:
                row = Accumulator(f"{value.label}.row", combine, scalar.dtype)
                before.append(Reduce(row))
                body.append(Accumulate(row, combine, scalar))
                total = row.total()
            self.after_pass.setdefault(self.layout.when[value] + 1, []).append((member, total))
        elif self.lane is not None:
            self.known[value] = self._panel_total(value, self.lane, scalar, before, body, after)
        else:
            accumulator = Accumulator(value.label, combine, scalar.dtype, value)
            before.append(Reduce(accumulator))
            body.append(Accumulate(accumulator, combine, scalar, self._position(member)))
            self.known[value] = _total(accumulator, value)

    def _panel_total(self, value: Value, lane: Index, scalar: Scalar, before: list[Statement], body: list[Statement],
                     after: list[Statement]) -> Scalar:
        """Reduce over the inner axes into one element per column, or row, of the panel."""
        combine, at = _combine(value), Offset(lane.extent())
        panel = self.layout.scratch_for(value, (self.width,), scalar.dtype)
        if self.by_row:
            row = Accumulator(f"{value.label}.row", combine, scalar.dtype)
            before.append(Reduce(row))
            body.append(Accumulate(row, combine, scalar))
            after.append(Store(panel, at, row.total()))
        else:
            before.append(Store(panel, at, const(identity_of(combine, scalar.dtype), scalar.dtype)))
            body.append(Accumulate((panel, at), combine, scalar))
        return load(panel, at)

    def _position(self, member: Member) -> Scalar | None:
        """For argmax and argmin, the position along the searched axis."""
        if member.value.op not in ops.SEARCHES:
            return None
        return index_value(self.layout.positions[member.reduced[0]])

    def _terminal(self, member: Member, scalar: Scalar, statements: list[Statement]) -> None:
        """Feed a reduction over outer axes: it is complete only after the loops it reduces."""
        value, combine = member.value, _combine(member.value)
        kept = [axis for axis in member.axes if axis >= 0]
        if self.lane is not None or kept != self.layout.outer[:len(kept)]:
            self._into_memory(member, scalar, statements)
            return
        # Terms are added one after the other: a sum of f32 in double precision, as a long one would lose digits.
        dtype = {F32: F64, C64: C128}.get(scalar.dtype, scalar.dtype) if combine == "add" else scalar.dtype
        accumulator = Accumulator(value.label, combine, dtype, value)
        self.prologue.setdefault(len(kept), []).append(Reduce(accumulator))
        statements.append(Accumulate(accumulator, combine, cast(scalar, dtype), self._position(member)))
        total = cast(_total(accumulator, value), value.dtype)
        if value in self.layout.stored:
            self.epilogue.setdefault(len(kept), []).append(self._store(value, member.axes, total))
        if not kept:
            self.layout.known[value] = total

    def _into_memory(self, member: Member, scalar: Scalar, statements: list[Statement]) -> None:
        value, combine = member.value, _combine(member.value)
        if value.op in ops.SEARCHES:
            raise InternalError(f"{value.op.name} cannot be accumulated in memory")
        buffer, zero = self.layout.memory(value), const(identity_of(combine, value.dtype), value.dtype)
        self.layout.fills[buffer] = Fill(buffer, zero)
        kept = [axis for axis in member.axes if axis >= 0]
        lane = None if self.by_row else self.lane
        if lane is not None and self.layout.lane_axis in member.reduced and set(kept) <= set(self.layout.inner):
            self._into_lanes(member, kept, lane, scalar, statements)
            return
        offset = linear_offset(value.shape, self.layout.at(member.axes))
        statements.append(Accumulate((buffer, offset), combine, scalar))

    def _into_lanes(self, member: Member, kept: list[int], lane: Index, scalar: Scalar, statements: list[Statement]) -> None:
        """Reduce over the lanes too: every lane has a partial result, and these are combined after the whole tree."""
        value, combine = member.value, _combine(member.value)
        shape = (*[self.layout.group.extents[axis] for axis in kept], self.width)
        partial = self.layout.scratch_for(value, shape, value.dtype, "lanes")
        self.layout.fills[partial] = Fill(partial, const(identity_of(combine, value.dtype), value.dtype))
        here = linear_offset(shape, (*self.layout.at(kept), lane.extent()))
        statements.append(Accumulate((partial, here), combine, scalar))
        loops = [Index(0, extent - 1, f"f{k}") for k, extent in enumerate(shape)]
        position = {axis: loop.extent() for axis, loop in zip(kept, loops, strict=False)}
        target = linear_offset(value.shape, tuple([position.get(axis, 0) for axis in member.axes]))
        source = linear_offset(shape, tuple([loop.extent() for loop in loops]))
        total = Accumulator(f"{value.label}.lanes", combine, value.dtype)
        body: list[Statement] = [Reduce(total), Loop(loops[-1], self.width, [Accumulate(total, combine, load(partial, source))], "vector"),
                                 Accumulate((self.layout.memory(value), target), combine, total.total())]
        for loop, extent in zip(reversed(loops[:-1]), reversed(shape[:-1]), strict=True):
            body = [Loop(loop, extent, body)]
        self.layout.flushes += body


def _goes_along_rows(layout: KernelLayout, members: Sequence[Member], lane: Index) -> bool:
    """Whether the elements of a pass are cheap and contiguous along the rows of a panel, and the rows are long enough."""
    if len(layout.inner) > 1 or upper(layout.group.extents[layout.inner[0]]) < SHORT:
        return False
    elements = [base for member in members for base in (member.value, *layout.reads[member.value])]
    if any(layout.computes_inside(value) and not value.op.cheap for value in elements):
        return False
    along, across = layout.axes[layout.inner[0]], lane
    steps: list[tuple[int, int]] = []

    def goes_through(value: Value, index: tuple[IndexExpression, ...]) -> None:
        offset = linear_offset(value.shape, index).affine
        terms = {} if isinstance(offset, int) else dict(offset.terms)
        steps.append((abs(terms.get(along, 0)), abs(terms.get(across, 0))))

    def leaf(value: Value, index: tuple[IndexExpression, ...]) -> Scalar:
        if value not in layout.members:
            goes_through(value, index)
        elif layout.computes_inside(value):
            layout.expand(layout.members[value], leaf)
        return const(0, value.dtype)

    for member in members:
        layout.expand(member, leaf)
        if member.update:
            goes_through(member.value, layout.at(member.domain))
    return (1, 1) not in steps and any(step == 1 for step, _ in steps) and all(step in (0, 1) for step, _ in steps)


def _combine(value: Value) -> str:
    combine = value.op.combine
    if combine is None:
        raise InternalError(f"{value.op.name} is not a reduction")
    return combine


def _total(accumulator: Accumulator, value: Value) -> Scalar:
    """The result of a reduction: the combined value, or for argmax and argmin the position."""
    if value.op in ops.SEARCHES:
        return Scalar("found", (), value.dtype, accumulator)
    return accumulator.total()
