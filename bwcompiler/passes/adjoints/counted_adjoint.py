"""Reverse mode of `while_loop` if the adjoint needs only counters from an iteration: nothing is kept.

    forward   k, c = while k < bound: k + 1, body(k, c; v)            n = bound - k0 iterations
    adjoint   n, c̄, v̄ = while n > 0: n - 1, adjoint(c̄, v̄; k0 + n - 1, v)

Loops between bounds that are data are of this form (`for k in range(start[i], start[i + 1]): total += a[k] * x[column[k]]`).  A loop with
a different condition counts its iterations.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.ir.graph import Graph, cut, inline
from bwcompiler.ir.op import Record, Value, constant, input_value
from bwcompiler.ir.types import I64, tensor
from bwcompiler.passes.adjoints.bodies.cut_body import CutBody
from bwcompiler.passes.adjoints.loop_adjoint import or_zero, totals

COUNT = tensor(I64)


class Counter(NamedTuple):
    """A carried number that grows by `step` in every iteration."""

    number: int
    step: int

    def after(self, start: Value, iterations: Value) -> Value:
        """What it is after a number of iterations."""
        more = iterations if self.step == 1 else ops.multiply(iterations, constant(self.step, COUNT))
        return ops.add(start, more)


def counters_in(body: Graph, carried: int) -> list[Counter]:
    """The counters among what a body carries."""
    found = []
    for number in range(carried):
        entry, left = body.inputs[number], body.outputs[number]
        if entry.type != COUNT or left.op is not ops.add or entry not in left.operands:
            continue
        step = left.operands[1] if left.operands[0] is entry else left.operands[0]
        if step.op is ops.full:
            found.append(Counter(number, int(step.attrs["value"])))
    return found


class CountedRule:
    """The reverse derivative of one while_loop, for `region_link`: its residuals are how many iterations there were, and fixed operands."""

    content_key = ""
    reached: Set[int] | None = None    # the numbers of the results that depend on what is differentiated; None: all may
    backwards = None                   # restores no array

    def __init__(self, value: Value, parts: CutBody, counters: Sequence[Counter]) -> None:
        self.value = value
        self.parts = parts
        self.counters = counters
        self.masked = parts.masked

    def __repr__(self) -> str:
        return f"adjoint of {self.value!r}"

    def pull(self, present: Sequence[Value | None], cts: Sequence[Value | None], operands: Sequence[Value], results: Sequence[Value],
             residuals: Sequence[Value], needs: Sequence[bool]) -> list[Value | None]:
        """The iterations backwards: cotangents of the operands, added to those present."""
        parts, carried = self.parts, self.value.attrs["carried"]
        left, *fixed = residuals
        start = [or_zero(cts[k] if k < carried else present[k], operands[k]) for k in parts.active]
        state, given = [left, *start], [*fixed, *[operands[counter.number] for counter in self.counters]]
        inputs = [input_value(value.type) for value in (*state, *given)]
        with Record() as record:
            test = ops.less(constant(0, COUNT), inputs[0])
        condition = cut("left", inputs, record.values, [test])
        inputs = [input_value(value.type) for value in (*state, *given)]
        behind = len(state) + len(fixed)
        with Record() as record:
            last = ops.subtract(inputs[0], constant(1, COUNT))
            counted = [counter.after(begin, last) for counter, begin in zip(self.counters, inputs[behind:], strict=True)]
            found = inline(parts.adjoint, [*inputs[1:behind], *counted])
        body = cut("step", inputs, record.values, [last, *found])
        backwards = ops.while_loop(*state, *given, carried=len(state), condition=condition, body=body)
        return totals(present, parts.active, range(carried), backwards, 1)


def expand_counted(value: Value, operands: Sequence[Value], fixed: Sequence[Value], parts: CutBody, counters: Sequence[Counter]) -> Value:
    """Emit the loop, which counts its iterations unless its operands say how many there are, and what ties its results to its operands.

    fixed      the values for the fixed inputs of the body that is cut in these parts, which keep nothing.
    counters   those that the adjoint reads.
    """
    carried = value.attrs["carried"]
    trips = _trips(value, operands)
    start = [*operands[:carried], *([constant(0, COUNT)] if trips is None else [])]
    condition, body = _with_inputs(value.attrs["condition"], carried, start, fixed), parts.forward
    if trips is None:
        body = _counting(body, carried)
    looped = ops.while_loop(*start, *fixed, carried=len(start), condition=condition, body=body)
    found = [ops.item(looped, index=k) for k in range(len(start))]
    residuals = [found[carried] if trips is None else trips, *[fixed[number] for number in parts.kept]]
    rule = CountedRule(value, parts, counters)
    return ops.region_link(*operands, *found[:carried], *residuals, rule=rule, given=len(operands), results=carried)


def _trips(value: Value, operands: Sequence[Value]) -> Value | None:
    """How many iterations a loop has, in the current record, if it counts up to a bound that it does not change; else None."""
    carried, condition = value.attrs["carried"], value.attrs["condition"]
    [test] = condition.outputs
    if test.op is not ops.less:
        return None
    place = {one: number for number, one in enumerate(condition.inputs)}
    counter, bound = [place.get(operand, -1) for operand in test.operands]
    if Counter(counter, 1) not in counters_in(value.attrs["body"], carried):
        return None
    if test.operands[1].op is ops.full:
        last = constant(test.operands[1].attrs["value"], COUNT)
    elif bound >= carried:
        last = operands[bound]
    else:
        return None
    return ops.maximum(ops.subtract(last, operands[counter]), constant(0, COUNT))


def _with_inputs(condition: Graph, carried: int, start: Sequence[Value], fixed: Sequence[Value]) -> Graph:
    """The condition over the operands of a loop that carries more, and to which more is fixed."""
    own = condition.inputs[carried:]
    middle = [input_value(value.type) for value in start[carried:]]
    behind = [input_value(value.type) for value in fixed[len(own):]]
    return condition.replace(inputs=[*condition.inputs[:carried], *middle, *own, *behind])


def _counting(body: Graph, carried: int) -> Graph:
    """The body that carries a count of its iterations behind what it carries."""
    count = input_value(COUNT, "count")
    with Record() as record:
        after = ops.add(count, constant(1, COUNT))
    return body.replace(inputs=[*body.inputs[:carried], count, *body.inputs[carried:]], body=[*body.body, *record.values],
                        outputs=[*body.outputs, after])
