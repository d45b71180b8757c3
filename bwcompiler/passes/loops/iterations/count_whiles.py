"""A while loop that counts from one number computed from loop indices to another becomes a loop between these bounds.

    k = 0; while k < j - lo: f(lo + k); k += 1          ->          loop k in 0..j - lo - 1: f(lo + k)

Loops whose bounds are chosen are captured in this form (`range(max(0, j - 5), j)`): in a part of the surrounding loop in which the choice
is known (`split_loops`), they are affine.  Then the positions of elements are affine too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.ir.extent import Extent, Index, add_extents, known_le
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import I64
from bwcompiler.passes.loops.iterations.known_extents import Known, extent_of, known_in
from bwcompiler.passes.rewriting.rewriter import Rewriter
from bwcompiler.passes.rewriting.simplify_rules import RULES


class Counted(NamedTuple):
    """A loop that a while loop is: what it carries and reads, its body, and the number of the counter, which it does not carry."""

    operands: list[Value]
    carried: int
    body: Graph
    counter: int
    last: Value

    def results(self, looped: Sequence[Value]) -> list[Value]:
        """The results of the while loop, in the current record, given those of the loop."""
        return [*looped[:self.counter], self.last, *looped[self.counter:]]


def as_counted(value: Value) -> Counted | None:
    """The loop that a while loop is; None where it is none."""
    carried, condition, body = value.attrs["carried"], value.attrs["condition"], value.attrs["body"]
    test = condition.outputs[0]
    if test.op is not ops.less or any(operand not in condition.inputs for operand in test.operands):
        return None
    counter, bound = [condition.inputs.index(operand) for operand in test.operands]
    if counter >= carried or bound < carried or not _counts(body, counter):
        return None
    first, last = [extent_of(value.operands[number], {}) for number in (counter, bound)]
    if first is None or last is None or not known_le(first, last):
        return None
    index = Index(first, add_extents(last, -1), "k")
    made = _with_index(value, counter, index)
    operands = [operand for number, operand in enumerate(value.operands) if number != counter]
    return Counted(operands, carried - 1, made, counter, value.operands[bound])


def _counts(body: Graph, number: int) -> bool:
    """Whether it is one more after each iteration."""
    entry, left = body.inputs[number], body.outputs[number]
    return entry.dtype == I64 and left.op is ops.add and entry in left.operands and any(
        operand.op is ops.full and operand.attrs["value"] == 1 for operand in left.operands)


def _of_extent(extent: Extent) -> Value:
    return ops.full(value=extent, shape=(), dtype=I64) if isinstance(extent, int) else ops.index_value(extent=extent)


def _with_index(value: Value, counter: int, index: Index) -> Graph:
    """The body with an index in the place of the counter, and what is made of that."""
    body: Graph = value.attrs["body"]
    known: Known = {**known_in(value, "body", {}), body.inputs[counter]: index.extent()}
    inputs = [one for number, one in enumerate(body.inputs) if number != counter]
    outputs = [one for number, one in enumerate(body.outputs) if number != counter]
    record = Rewriter(RULES)
    mapping: dict[Value, Value] = {}
    with record:
        for one in body.body:
            record.source, record.forward = one.source, one.forward
            _replace_numbers(one, known, mapping)
            extent = extent_of(one, known) if one.op in (ops.add, ops.subtract, ops.multiply) and not one.shape else None
            if extent is not None:
                mapping[one] = _of_extent(extent)
                continue
            operands = tuple([mapping.get(operand, operand) for operand in one.operands])
            made = record.emit(one.op, operands, one.attrs, one.type)
            if made.name is None:
                made.name = one.name
            mapping[one] = made
        outputs = [mapping.get(output, output) for output in outputs]
    return Graph(body.name, inputs, live_values(record.values, outputs), outputs, index)


def _replace_numbers(value: Value, known: Known, mapping: dict[Value, Value]) -> None:
    """Let what a value reads of numbers that are made of indices be these."""
    for operand in value.operands:
        if operand in known and operand not in mapping:
            mapping[operand] = _of_extent(known[operand])
