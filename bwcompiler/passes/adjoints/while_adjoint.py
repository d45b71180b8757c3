"""Reverse mode of `while_loop`, whose number of iterations is data: residuals in rings of K rows, and earlier iterations run again.

    forward   c, n, rings = while condition(c): residuals of iteration n go to row n mod K;  n counts the iterations
    adjoint   while iterations are left: unless the rings hold their residuals, the loop is run again from the start up to there, which
              fills the rings with the last ones; then the adjoint body goes back over these, at most K iterations, row by row

So memory has a size that is known when the program is made, and residuals of a constant shape may leave the program.  Up to K
iterations nothing is computed twice; n of them cost about n / (2 K) forward loops more.  K is as large as `BUDGET` bytes allow, and for
large residuals up to `ENOUGH` rows, as far as `LARGEST` bytes allow.  In the body of a loop the rings are not kept from one iteration to
the next: there the loop is run again first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from bwcompiler import ops
from bwcompiler.errors import InternalError
from bwcompiler.ir.graph import Graph, cut, inline
from bwcompiler.ir.op import Record, Value, constant, current_record, input_value
from bwcompiler.ir.types import I64, TensorType, tensor
from bwcompiler.passes.adjoints.cut_body import SAFE, CutBody, cut_body
from bwcompiler.passes.adjoints.loop_adjoint import or_zero, stack_inputs, totals, zeros
from bwcompiler.passes.region_bodies import padded

BUDGET, LARGEST = 1 << 20, 1 << 25     # bytes of the rings of one loop
FEWEST, ENOUGH, MOST = 8, 64, 1024     # rows

COUNT = tensor(I64)


def rows(types: Sequence[TensorType]) -> int:
    """How many iterations' residuals the rings hold."""
    size = max(sum([type_.nbytes for type_ in types]), 1)
    return max(FEWEST, min(MOST, BUDGET // size), min(ENOUGH, LARGEST // size))


class _Loop(NamedTuple):
    """The loop that fills the rings, until a condition over (carried, count, limit, rings, fixed) ends it.

    again   the body; limit is the number of iterations where the loop is run again, and not read by the first run.
    """

    carried: int
    size: int
    types: tuple[TensorType, ...]
    body: Graph
    fixed: tuple[TensorType, ...]

    def run(self, condition: Graph, carried: Sequence[Value], count: Value, limit: Value, rings: Sequence[Value],
            fixed: Sequence[Value]) -> list[Value]:
        """What is carried, the count, and the rings afterwards."""
        start = [*carried, count, *rings]
        looped = ops.while_loop(*start, limit, *fixed, carried=len(start), condition=condition, body=self.body)
        return [ops.item(looped, index=k) for k in range(len(start))]


class WhileRule:
    """The reverse derivative of one while_loop, for `region_link`: its residuals are the count, the fixed operands of the forward body,
    and the rings if they are kept."""

    content_key = ""
    backwards = None                   # restores no array

    def __init__(self, value: Value, parts: CutBody, loop: _Loop, keeps_rings: bool) -> None:
        self.value = value
        self.parts = parts
        self.loop = loop
        self.keeps_rings = keeps_rings

    def __repr__(self) -> str:
        return f"adjoint of {self.value!r}"

    def pull(self, present: Sequence[Value | None], cts: Sequence[Value | None], operands: Sequence[Value], results: Sequence[Value],
             residuals: Sequence[Value], needs: Sequence[bool]) -> list[Value | None]:
        """The iterations backwards: cotangents of the operands, added to those present."""
        loop, parts = self.loop, self.parts
        carried, end = loop.carried, 1 + len(loop.fixed)
        count, fixed, rings = residuals[0], residuals[1:end], residuals[end:]
        start = [or_zero(cts[k] if k < carried else present[k], operands[k]) for k in parts.active]
        filled = count if self.keeps_rings else constant(0, COUNT)
        rings = list(rings) if self.keeps_rings else [zeros(type_) for type_ in loop.types]
        state = [count, filled, *start, *rings]
        given = [*operands[:carried], *fixed]
        condition, body = _chunks(self.value, parts, loop, [value.type for value in state], [value.type for value in given])
        backwards = ops.while_loop(*state, *given, carried=len(state), condition=condition, body=body)
        return totals(present, parts.active, carried, backwards, 2)


def expand_while(value: Value, operands: Sequence[Value], body: Graph, arrays: Sequence[Any], flags: Sequence[bool],
                 keeps_rings: bool) -> Value:
    """Emit the loop that counts its iterations and keeps residuals, and what ties its results to its operands.

    body, its inputs behind the operands being `arrays`, is prepared for a derivative with respect to the inputs flagged.
    """
    record = current_record()
    if record is None:
        raise InternalError(f"{value!r} is expanded outside of any record")
    carried = value.attrs["carried"]
    parts = cut_body(body, carried, flags, [k for k in range(carried) if flags[k]], SAFE)
    fixed = parts.fixed_operands(operands[carried:], arrays, record)
    kinds = [tensor(stored.dtype, padded(stored.shape)) for stored in parts.stored()]
    size = rows(kinds)
    types = tuple([tensor(type_.dtype, (size, *type_.shape)) for type_ in kinds])
    loop = _Loop(carried, size, types, _storing(parts, carried, size, types), tuple([one.type for one in fixed]))
    zero = constant(0, COUNT)
    found = loop.run(_first_condition(value, loop), operands[:carried], zero, zero, [zeros(type_) for type_ in types], fixed)
    residuals = [found[carried], *fixed, *(found[carried + 1:] if keeps_rings else ())]
    rule = WhileRule(value, parts, loop, keeps_rings)
    return ops.region_link(*operands, *found[:carried], *residuals, rule=rule, given=len(operands), results=carried)


# ----- the loop forwards
def _storing(parts: CutBody, carried: int, size: int, types: Sequence[TensorType]) -> Graph:
    """(carried, count, rings, limit, fixed) -> what is carried, count + 1, rings with the residuals in row count mod size."""
    graph = parts.forward
    rings = stack_inputs(parts, types)
    count, limit = input_value(COUNT, "count"), input_value(COUNT, "limit")
    with Record() as record:
        row = ops.remainder(count, constant(size, COUNT))
        filled = [ops.scatter_update(ring, residual, row, axes=(0,)) for ring, residual in zip(rings, parts.stored(), strict=True)]
        after = count + 1
    return graph.replace(inputs=[*graph.inputs[:carried], count, *rings, limit, *graph.inputs[carried:]],
                         body=[*graph.body, *record.values], outputs=[*graph.outputs[:carried], after, *filled])


def _first_condition(value: Value, loop: _Loop) -> Graph:
    """The user's condition over the operands of the loop that fills the rings."""
    graph: Graph = value.attrs["condition"]
    own = len(graph.inputs) - loop.carried
    middle = [input_value(type_) for type_ in (COUNT, *loop.types, COUNT)]
    behind = [input_value(type_) for type_ in loop.fixed[own:]]
    return graph.replace(inputs=[*graph.inputs[:loop.carried], *middle, *graph.inputs[loop.carried:], *behind])


def _below_limit(loop: _Loop, carried: Sequence[TensorType]) -> Graph:
    """count < limit over the operands of the loop that fills the rings."""
    inputs = [input_value(type_) for type_ in (*carried, COUNT, *loop.types, COUNT, *loop.fixed)]
    with Record() as record:
        less = ops.less(inputs[loop.carried], inputs[loop.carried + 1 + len(loop.types)])
    return cut("again", inputs, record.values, [less])


# ----- backwards
def _chunks(value: Value, parts: CutBody, loop: _Loop, state: Sequence[TensorType], given: Sequence[TensorType]) -> tuple[Graph, Graph]:
    """Condition and body of the loop over chunks: (left, filled, cotangents, rings; carried on entry, fixed).

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
    entry, fixed = inputs[len(state):len(state) + loop.carried], inputs[len(state) + loop.carried:]
    with Record() as record:
        begin = ops.select(ops.equal(filled, left), left, constant(0, COUNT))
        again = loop.run(_below_limit(loop, [one.type for one in entry]), entry, begin, left, rings, fixed)
        rings = again[loop.carried + 1:]
        size = constant(loop.size, COUNT)
        start = ops.multiply(ops.floor_divide(ops.subtract(left, constant(1, COUNT)), size), size)
        back = _backwards(parts, loop, left, start, cotangents, rings, [fixed[k] for k in parts.kept])
        none = constant(-1, COUNT)
    return condition, cut("chunk", inputs, record.values, [start, none, *back, *rings])


def _backwards(parts: CutBody, loop: _Loop, left: Value, start: Value, cotangents: Sequence[Value], rings: Sequence[Value],
               kept: Sequence[Value]) -> list[Value]:
    """The adjoint body for iterations left - 1, ..., start: the cotangents afterwards."""
    def regions(types: Sequence[TensorType]) -> list[Value]:
        return [input_value(type_) for type_ in types]

    state, given = [left, *cotangents], [start, *rings, *kept]
    inputs = regions([value.type for value in (*state, *given)])
    with Record() as record:
        test = ops.less(inputs[len(state)], inputs[0])
    condition = cut("back", inputs, record.values, [test])
    inputs = regions([value.type for value in (*state, *given)])
    with Record() as record:
        last = ops.subtract(inputs[0], constant(1, COUNT))
        row = ops.remainder(last, constant(loop.size, COUNT))
        first = len(state) + 1
        read = [ops.gather(ring, row, axes=(0,)) for ring in inputs[first:first + len(rings)]]
        found = inline(parts.adjoint, [*inputs[1:len(state)], *read, *inputs[first + len(rings):]])
    body = cut("step", inputs, record.values, [last, *found])
    looped = ops.while_loop(*state, *given, carried=len(state), condition=condition, body=body)
    return [ops.item(looped, index=k) for k in range(1, len(state))]


