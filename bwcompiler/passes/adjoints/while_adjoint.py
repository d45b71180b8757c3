"""Reverse mode of `while_loop`, whose number of iterations is data: residuals in rings of K rows, and earlier iterations run again.

    forward   c, n, rings, snapshots = while condition(c): a snapshot of c;  up to `every` iterations, while condition(c):
              residuals of iteration n go to row n mod K;  n counts the iterations
    adjoint   while iterations are left: unless the rings hold their residuals, the loop is run again from the last snapshot before, which
              fills the rings with up to K iterations; then the adjoint body goes back over these, row by row

So the size of memory is known at compile time, and residuals of a constant shape can be returned by the program.  Up to K iterations
nothing is computed twice.  Snapshots of the carried state are `every` iterations apart, K at first.  When all slots are used, the distance
doubles and every second snapshot is dropped.  So up to K iterations per slot each iteration is computed twice, and n iterations, with S
slots, about 1 + n / (2 K S) times more.  K is as large as `BUDGET` bytes allow, of which only those that are used ever become memory: to
write residuals and read them again takes less time than another run, also where they are larger than caches.  If the `while` is in the body
of a loop, the rings are not kept from one outer iteration to the next: the adjoint first runs the loop again.  There are no snapshots then,
on which short loops would spend most of their time: iterations that are not in the rings are computed from the start.

A loop that ends after a known number of iterations at the latest (`for k in range(9): ... break`: while k < 9 and not done) has rings with
as many rows, if that is not too much: then nothing is ever computed again, there are no snapshots, and in the body of a loop such rings
are values that it keeps, like others.

Counters (`k = k + 1`) are known on the way back, and values that depend only on them and on what the loop does not change are computed
there (`counted_adjoint`).  If the adjoint reads nothing else, there are no rings.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any, NamedTuple

from bwcompiler import ops
from bwcompiler.errors import InternalError
from bwcompiler.ir.extent import Extent
from bwcompiler.ir.graph import Graph, cut, inline
from bwcompiler.ir.op import Record, Value, constant, current_record, input_value
from bwcompiler.ir.types import I64, TensorType, tensor
from bwcompiler.passes.adjoints.bodies.cut_body import SAFE, CutBody, Cutting, cut_body
from bwcompiler.passes.adjoints.counted_adjoint import Counter, counters_in, expand_counted
from bwcompiler.passes.adjoints.loop_adjoint import or_zero, stack_inputs, totals
from bwcompiler.passes.loops.region_bodies import padded

BUDGET = 1 << 26                       # bytes of the rings of one loop
FEWEST, MOST = 8, 4096                 # rows
SNAPSHOTS, LEAST = 16, 2               # of what is carried, as far as BYTES allow
BYTES = 1 << 25
FEW, SMALL = 8, 1 << 10                # most iterations, and bytes of their residuals, that are kept in each iteration of a loop around

COUNT = tensor(I64)


def rows(types: Sequence[TensorType]) -> int:
    """How many iterations' residuals the rings hold."""
    size = max(sum([type_.nbytes for type_ in types]), 1)
    return max(FEWEST, min(MOST, BUDGET // size))


def unset(type_: TensorType) -> Value:
    """Rows that are read after they were written."""
    return ops.unset(shape=type_.shape, dtype=type_.dtype)


def slots(types: Sequence[TensorType]) -> int:
    """How many snapshots of what a loop carries there are: an even number."""
    size = max(sum([type_.nbytes for type_ in types]), 1)
    return max(LEAST, min(SNAPSHOTS, BYTES // size) // 2 * 2)


class _Loop(NamedTuple):
    """The loop that fills the rings, until a condition over (carried, count, limit, rings, fixed) ends it.

    again    the body.
    is_whole whether the rings hold all iterations.
    kept     types of the numbers of the iterations of which there are snapshots (-1: none), and of these; nothing where there are none.
    """

    carried: tuple[TensorType, ...]
    size: int
    types: tuple[TensorType, ...]
    again: Graph
    fixed: tuple[TensorType, ...]
    kept: tuple[TensorType, ...]
    is_whole: bool

    def run(self, condition: Graph, carried: Sequence[Value], count: Value, limit: Value, rings: Sequence[Value],
            fixed: Sequence[Value]) -> list[Value]:
        """What is carried, the count, and the rings afterwards."""
        start = [*carried, count, *rings]
        return _items(ops.while_loop(*start, limit, *fixed, carried=len(start), condition=condition, body=self.again))

    def run_with_snapshots(self, condition: Graph, carried: Sequence[Value], limit: Value, fixed: Sequence[Value]) -> list[Value]:
        """The same from the start, with empty rings: what is carried, the count, the rings, and the snapshots afterwards.

        condition: over (carried, count, rings, limit, fixed), as of `run`.
        """
        every = constant(self.size, COUNT)
        none = ops.full(value=-1, shape=self.kept[0].shape, dtype=I64)
        empty = [unset(type_) for type_ in self.types]
        start = [*carried, constant(0, COUNT), *empty, none, *[unset(type_) for type_ in self.kept[1:]], every]
        given = [limit, *fixed]
        looped = ops.while_loop(*start, *given, carried=len(start), condition=_with_snapshots(self, condition),
                                body=_between_snapshots(self, condition))
        return _items(looped)[:-1]

    def inputs(self) -> list[Value]:
        return [input_value(type_) for type_ in (*self.carried, COUNT, *self.types, COUNT, *self.fixed)]


def _items(looped: Value) -> list[Value]:
    return [ops.item(looped, index=k) for k in range(looped.attrs["carried"])]


class WhileRule:
    """The reverse derivative of one while_loop, for `region_link`: its residuals are the count, the fixed operands of the forward body,
    and the rings and snapshots if they are kept."""

    content_key = ""
    reached: Set[int] | None = None    # the numbers of the results that depend on what is differentiated; None: all may
    backwards = None                   # restores no array

    def __init__(self, value: Value, parts: CutBody, loop: _Loop, counters: Sequence[Counter], keeps_rings: bool) -> None:
        self.value = value
        self.parts = parts
        self.loop = loop
        self.counters = counters
        self.keeps_rings = keeps_rings
        self.masked = parts.masked

    def __repr__(self) -> str:
        return f"adjoint of {self.value!r}"

    def pull(self, present: Sequence[Value | None], cts: Sequence[Value | None], operands: Sequence[Value], results: Sequence[Value],
             residuals: Sequence[Value], needs: Sequence[bool]) -> list[Value | None]:
        """The iterations backwards: cotangents of the operands, added to those present."""
        loop, parts = self.loop, self.parts
        carried, end = len(loop.carried), 1 + len(loop.fixed)
        count, fixed, kept = residuals[0], residuals[1:end], residuals[end:]
        start = [or_zero(cts[k] if k < carried else present[k], operands[k]) for k in parts.active]
        if loop.is_whole:
            begun, read = [operands[counter.number] for counter in self.counters], [fixed[k] for k in parts.kept]
            backwards = _backwards(parts, loop, count, constant(0, COUNT), start, kept, read, self.counters, begun)
            return totals(present, parts.active, range(carried), backwards, 1)
        rings, snapshots, filled = kept[:len(loop.types)], kept[len(loop.types):], count
        if not self.keeps_rings:
            rings, snapshots, filled = [unset(type_) for type_ in loop.types], operands[:carried], constant(0, COUNT)
        state = [count, filled, *start, *rings]
        given = [*[operands[counter.number] for counter in self.counters], *snapshots, *fixed]
        condition, body = _chunks(parts, loop, self.counters, [value.type for value in state], [value.type for value in given])
        backwards = ops.while_loop(*state, *given, carried=len(state), condition=condition, body=body)
        return totals(present, parts.active, range(carried), backwards, 2)


class WhileCut(NamedTuple):
    """The body of a loop, and of all that have this body, cut in two; what it captured, and the counters that the adjoint reads."""

    parts: CutBody
    arrays: Sequence[Any]
    counters: Sequence[Counter]
    keeps_rings: bool


def cut_while(value: Value, body: Graph, arrays: Sequence[Any], flags: Sequence[bool], masked: Set[int], keeps_rings: bool) -> WhileCut:
    """Cut the body of a loop in two.

    body, its inputs behind the operands being `arrays`, is prepared for a derivative with respect to the inputs flagged; masked: the
    outputs of whose cotangents a choice may mask parts.
    """
    carried = value.attrs["carried"]
    counters = counters_in(body, carried)
    how = Cutting(SAFE, masked=masked, known={counter.number for counter in counters}, sparing=True, products=not keeps_rings)
    parts = cut_body(body, carried, flags, [k for k in range(carried) if flags[k]], how)
    return WhileCut(parts, arrays, [counter for counter in counters if counter.number in parts.counted], keeps_rings)


def expand_while(value: Value, operands: Sequence[Value], cut: WhileCut) -> Value:
    """Emit the loop that counts its iterations and keeps residuals, and what ties its results to its operands."""
    record = current_record()
    if record is None:
        raise InternalError(f"{value!r} is expanded outside of any record")
    carried, parts = value.attrs["carried"], cut.parts
    fixed = parts.fixed_operands(operands[carried:], cut.arrays, record)
    if not parts.residuals:
        return expand_counted(value, operands, fixed, parts, cut.counters)
    kinds = [tensor(stored.dtype, padded(stored.shape)) for stored in parts.stored()]
    most = most_iterations(value)
    is_whole = most is not None and _fit(most, kinds, cut.keeps_rings)
    size = most if is_whole and most is not None else rows(kinds)
    types = tuple([tensor(type_.dtype, (size, *type_.shape)) for type_ in kinds])
    states = tuple([operand.type for operand in operands[:carried]])
    count, zero = slots(states), constant(0, COUNT)
    kept = tuple([tensor(type_.dtype, (count, *type_.shape)) for type_ in (COUNT, *states)]) if cut.keeps_rings and not is_whole else ()
    loop = _Loop(states, size, types, _storing(parts, carried, None if is_whole else size, types), tuple([one.type for one in fixed]), kept,
                 is_whole)
    condition = _first_condition(value, loop)
    if kept:
        found = loop.run_with_snapshots(condition, operands[:carried], zero, fixed)
    else:
        found = loop.run(condition, operands[:carried], zero, zero, [unset(type_) for type_ in types], fixed)
    residuals = [found[carried], *fixed, *(found[carried + 1:] if cut.keeps_rings or is_whole else ())]
    rule = WhileRule(value, parts, loop, cut.counters, cut.keeps_rings)
    return ops.region_link(*operands, *found[:carried], *residuals, rule=rule, given=len(operands), results=carried)


def most_iterations(value: Value) -> int | None:
    """How many iterations a loop has at most, by a counter that its condition compares with a number; None if it does not."""
    condition, carried = value.attrs["condition"], value.attrs["carried"]
    steps = {counter.number: counter.step for counter in counters_in(value.attrs["body"], carried)}
    found: list[int] = []
    pending = [condition.outputs[0]]
    while pending:
        test = pending.pop()
        if test.op is ops.bitwise_and:
            pending += test.operands
        elif test.op is ops.less and test.operands[0] in condition.inputs:
            number = condition.inputs.index(test.operands[0])
            first, last = [_number(one, condition, value.operands) for one in (condition.inputs[number], test.operands[1])]
            if steps.get(number, 0) > 0 and first is not None and last is not None:
                found.append(max(0, -((first - last) // steps[number])))
    return min(found, default=None)


def _number(value: Value, condition: Graph, operands: Sequence[Value]) -> int | None:
    """What an integer of a condition is at the start, if the program says it."""
    source = operands[condition.inputs.index(value)] if value in condition.inputs else value
    return source.attrs["value"] if source.op is ops.full and source.type == COUNT and isinstance(source.attrs["value"], int) else None


def _fit(most: int, kinds: Sequence[TensorType], keeps_rings: bool) -> bool:
    """Whether rings hold the residuals of so many iterations; of one at least, as there are no rings without rows."""
    size = sum([type_.nbytes for type_ in kinds])
    return 0 < most <= rows(kinds) if keeps_rings else 0 < most <= FEW and most * size <= SMALL


# ----- the loop forwards
def _storing(parts: CutBody, carried: int, size: int | None, types: Sequence[TensorType]) -> Graph:
    """(carried, count, rings, limit, fixed) -> what is carried, count + 1, rings with the residuals in row count mod size; None: in row
    count, of which there always is one."""
    graph = parts.forward
    rings = stack_inputs(parts, types)
    count, limit = input_value(COUNT, "count"), input_value(COUNT, "limit")
    with Record() as record:
        row = count if size is None else ops.remainder(count, constant(size, COUNT))
        filled = [ops.scatter_update(ring, _widened(residual), row, axes=(0,))
                  for ring, residual in zip(rings, parts.stored(), strict=True)]
        after = count + 1
    return graph.replace(inputs=[*graph.inputs[:carried], count, *rings, limit, *graph.inputs[carried:]],
                         body=[*graph.body, *record.values], outputs=[*graph.outputs[:carried], after, *filled])


def _widened(residual: Value) -> Value:
    """A residual with the largest extents that its shape may have, which the index of a loop around may decide."""
    shape, rank = padded(residual.shape), residual.rank
    if shape == residual.shape:
        return residual
    return ops.slice_update(unset(tensor(residual.dtype, shape)), residual, starts=(0,) * rank, steps=(1,) * rank)


def _narrowed(row: Value, shape: tuple[Extent, ...]) -> Value:
    """What was widened, in its own shape."""
    return row if row.shape == shape else ops.slice(row, starts=(0,) * row.rank, sizes=shape, steps=(1,) * row.rank)


def _first_condition(value: Value, loop: _Loop) -> Graph:
    """The user's condition over the operands of the loop that fills the rings."""
    graph: Graph = value.attrs["condition"]
    own, carried = len(graph.inputs) - len(loop.carried), len(loop.carried)
    middle = [input_value(type_) for type_ in (COUNT, *loop.types, COUNT)]
    behind = [input_value(type_) for type_ in loop.fixed[own:]]
    return graph.replace(inputs=[*graph.inputs[:carried], *middle, *graph.inputs[carried:], *behind])


def _below_limit(loop: _Loop) -> Graph:
    """count < limit over the operands of the loop that fills the rings."""
    inputs = loop.inputs()
    with Record() as record:
        less = ops.less(inputs[len(loop.carried)], inputs[len(loop.carried) + 1 + len(loop.types)])
    return cut("again", inputs, record.values, [less])


def _snapshot_inputs(loop: _Loop) -> tuple[list[Value], list[Value], list[Value]]:
    """Inputs for (carried, count, rings), (numbers, snapshots, every) and (limit, fixed)."""
    inputs, behind = loop.inputs(), len(loop.carried) + 1 + len(loop.types)
    return inputs[:behind], [input_value(type_) for type_ in (*loop.kept, COUNT)], inputs[behind:]


def _with_snapshots(loop: _Loop, condition: Graph) -> Graph:
    """A condition over the operands of the loop that also carries snapshots."""
    state, kept, given = _snapshot_inputs(loop)
    with Record() as record:
        [test] = inline(condition, [*state, *given])
    return cut("while", [*state, *kept, *given], record.values, [test])


def _between_snapshots(loop: _Loop, condition: Graph) -> Graph:
    """A snapshot, and the iterations up to the next one, while the condition holds."""
    state, (numbers, *snapshots, every), given = _snapshot_inputs(loop)
    count, rings = state[len(loop.carried)], state[len(loop.carried) + 1:]
    with Record() as record:
        room = ops.any(_free(numbers, every), axes=(0,))
        after = ops.select(room, every, ops.multiply(every, constant(2, COUNT)))
        slot = ops.argmax(ops.cast(_free(numbers, after), dtype=I64), axes=(0,))
        filled = [ops.scatter_update(whole, one, slot, axes=(0,))
                  for whole, one in zip((numbers, *snapshots), (count, *state[:len(loop.carried)]), strict=True)]
        inputs = loop.inputs()
        own = [input_value(type_) for type_ in (COUNT, *[value.type for value in given])]
        with Record() as tested:
            [goes_on] = inline(condition, [*inputs[:len(state)], *own[1:]])
            test = ops.bitwise_and(goes_on, ops.less(inputs[len(loop.carried)], own[0]))
        until = cut("until", [*inputs[:len(state)], *own], tested.values, [test])
        body = loop.again.replace(inputs=[*loop.again.inputs[:len(state)], input_value(COUNT), *loop.again.inputs[len(state):]])
        start = [*state[:len(loop.carried)], count, *rings]
        looped = _items(ops.while_loop(*start, ops.add(count, after), *given, carried=len(start), condition=until, body=body))
    return cut("snapshot", [*state, numbers, *snapshots, every, *given], record.values, [*looped, *filled, after])


def _free(numbers: Value, every: Value) -> Value:
    """The slots that hold no snapshot, or one that is not needed where they are `every` iterations apart."""
    apart = ops.broadcast(every, shape=numbers.shape, axes=())
    zero = ops.full(value=0, shape=numbers.shape, dtype=I64)
    return ops.bitwise_or(ops.less(numbers, zero), ops.not_equal(ops.remainder(numbers, apart), zero))


# ----- backwards
def _chunks(parts: CutBody, loop: _Loop, counters: Sequence[Counter], state: Sequence[TensorType],
            given: Sequence[TensorType]) -> tuple[Graph, Graph]:
    """Condition and body of the loop over chunks: (left, filled, cotangents, rings; what counters start with, snapshots or what is
    carried on entry, fixed).

    left     iterations that are still to be gone back over; filled: the rings hold the residuals of the iterations up to there.
    """
    inputs = [input_value(type_) for type_ in (*state, *given)]
    with Record() as record:
        test = ops.less(constant(0, COUNT), inputs[0])
    condition = cut("left", inputs, record.values, [test])
    inputs = [input_value(type_) for type_ in (*state, *given)]
    left, filled = inputs[:2]
    first = 2 + len(parts.active)
    cotangents, rings = inputs[2:first], inputs[first:len(state)]
    starts, behind = inputs[len(state):len(state) + len(counters)], len(inputs) - len(loop.fixed)
    snapshots, fixed = inputs[len(state) + len(counters):behind], inputs[behind:]
    with Record() as record:
        size = constant(loop.size, COUNT)
        start = ops.multiply(ops.floor_divide(ops.subtract(left, constant(1, COUNT)), size), size)
        number, *entry = _last_before(start, snapshots) if loop.kept else (constant(0, COUNT), *snapshots)
        begin = ops.select(ops.equal(filled, left), left, number)
        again = loop.run(_below_limit(loop), entry, begin, left, rings, fixed)
        rings = again[len(loop.carried) + 1:]
        looped = _backwards(parts, loop, left, start, cotangents, rings, [fixed[k] for k in parts.kept], counters, starts)
        back = [ops.item(looped, index=k) for k in range(1, looped.attrs["carried"])]
        none = constant(-1, COUNT)
    return condition, cut("chunk", inputs, record.values, [start, none, *back, *rings])


def _last_before(start: Value, kept: Sequence[Value]) -> list[Value]:
    """The last snapshot of the iterations up to `start`: its number and what was carried."""
    numbers = kept[0]
    before = ops.less_equal(numbers, ops.broadcast(start, shape=numbers.shape, axes=()))
    slot = ops.argmax(ops.select(before, numbers, ops.full(value=-1, shape=numbers.shape, dtype=I64)), axes=(0,))
    return [ops.gather(whole, slot, axes=(0,)) for whole in kept]


def _backwards(parts: CutBody, loop: _Loop, left: Value, start: Value, cotangents: Sequence[Value], rings: Sequence[Value],
               kept: Sequence[Value], counters: Sequence[Counter], starts: Sequence[Value]) -> Value:
    """The adjoint body for iterations left - 1, ..., start, in a loop that carries the number left and cotangents.  starts: of the
    counters."""
    def regions(types: Sequence[TensorType]) -> list[Value]:
        return [input_value(type_) for type_ in types]

    state, given = [left, *cotangents], [start, *rings, *kept, *starts]
    inputs = regions([value.type for value in (*state, *given)])
    with Record() as record:
        test = ops.less(inputs[len(state)], inputs[0])
    condition = cut("back", inputs, record.values, [test])
    inputs = regions([value.type for value in (*state, *given)])
    with Record() as record:
        last = ops.subtract(inputs[0], constant(1, COUNT))
        row = last if loop.is_whole else ops.remainder(last, constant(loop.size, COUNT))
        first = len(state) + 1
        read = [_narrowed(ops.gather(ring, row, axes=(0,)), residual.shape)
                for ring, residual in zip(inputs[first:first + len(rings)], parts.stored(), strict=True)]
        behind = len(inputs) - len(counters)
        counted = [counter.after(begin, last) for counter, begin in zip(counters, inputs[behind:], strict=True)]
        found = inline(parts.adjoint, [*inputs[1:len(state)], *read, *inputs[first + len(rings):behind], *counted])
    body = cut("step", inputs, record.values, [last, *found])
    return ops.while_loop(*state, *given, carried=len(state), condition=condition, body=body)


