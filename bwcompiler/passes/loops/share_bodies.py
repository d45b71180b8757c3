"""Loops whose bodies differ only in a few numbers get one body, with these numbers as operands.

    while t < 1.0: ... t + min(h, 1.0 - t)                          while t < end: ... t + min(h, end - t)      with end = 1.0
    while t < 4.0: ... t + min(h, 4.0 - t)              ->          the same body                               with end = 4.0

An example is a helper that a function calls with several known numbers (an integrator, from one event to the next).  Everything derived
from the body, its adjoint and its code, is then made once: the loops have equal graphs, which the caches by graph and by content both
find.

Numbers that simplify a body if they are known (`x * 1.0`, exponents) stay in it, and so do integers, and numbers in inner bodies.  An
error that a body may raise names lines of the program, so bodies that may raise at different lines are not merged.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.ir.graph import Graph, all_values
from bwcompiler.ir.op import Record, Value, input_value
from bwcompiler.ir.semantics.content_hash import body_form
from bwcompiler.ir.types import tensor
from bwcompiler.passes.rewriting.rewriter import Rewritten, attribute_key, rebuilt

LEAST = 24                     # values of a body and of the regions in it: what is made of smaller ones costs little
MOST_NUMBERS = 8               # that become operands

# What a number is read by where it is as good as any other number but these, which make the op simpler.
_SIMPLER = {ops.add: (0.0,), ops.subtract: (0.0,), ops.multiply: (0.0, 1.0, -1.0, 2.0), ops.divide: (0.0, 1.0, -1.0, 2.0),
            ops.minimum: (), ops.maximum: (), ops.less: (), ops.less_equal: (), ops.equal: (), ops.not_equal: (), ops.select: ()}


def may_name_line(value: Value) -> bool:
    """Whether an error at run time may name the value's line."""
    op = value.op
    return (op.kind in ("library", "check") and op not in ops.PRODUCTS) or op is ops.normalize_index


class _Loop(NamedTuple):
    """A loop; per region its numbers in the order in which they are read: the reader, the place among its operands, and the constant."""

    value: Value
    reads: tuple[tuple[tuple[Value, int, Value], ...], ...]

    def numbers(self) -> list[Value]:
        return [number for region in self.reads for _, _, number in region]


def share_bodies(graph: Graph) -> Rewritten:
    """The graph with such bodies shared; the same graph where there are none."""
    groups: dict[tuple[object, ...], list[Value]] = {}
    for value in graph.body:
        if value.op in ops.LOOPS and _is_large(value):
            groups.setdefault(_outline(value), []).append(value)
    shared: dict[Value, tuple[Value, list[Value]]] = {}
    for loops in groups.values():
        if len(loops) > 1:
            shared.update(_of_outline(loops))
    return _with(graph, shared) if shared else Rewritten(graph, {})


def _is_large(loop: Value) -> bool:
    values = itertools.chain.from_iterable([all_values(loop.attrs[name]) for name in loop.op.regions])
    return len(list(itertools.islice(values, LEAST))) == LEAST


def _outline(value: Value) -> tuple[object, ...]:
    """What loops with one body have in common that is soon said."""
    regions = [value.attrs[name] for name in value.op.regions]
    others = {name: attribute for name, attribute in value.attrs.items() if name not in value.op.regions}
    return (value.op, attribute_key(others), tuple([operand.type for operand in value.operands]),
            *[(len(region.body), region.index is None) for region in regions])


def _of_outline(loops: Sequence[Value]) -> dict[Value, tuple[Value, list[Value]]]:
    """What loops of one outline become: (the first of those with one body, whose regions they get; the numbers that are operands)."""
    alike: dict[tuple[str, ...], list[_Loop]] = {}
    for value in loops:
        forms = [body_form(value.attrs[name], may_name_line, _is_open) for name in value.op.regions]
        alike.setdefault(tuple([form.hash for form in forms]), []).append(_Loop(value, tuple([tuple(form.open) for form in forms])))
    found = {}
    for group in alike.values():
        columns = list(zip(*[[_bits(number) for number in loop.numbers()] for loop in group], strict=True))
        several = list(dict.fromkeys([column for column in columns if len(set(column)) > 1]))
        if len(group) == 1 or len(several) > MOST_NUMBERS or all(
                loop.value.attrs[name] is group[0].value.attrs[name] for loop in group for name in loop.value.op.regions):
            continue
        first = _opened(group[0], columns, several)
        for loop in group:
            numbers = loop.numbers()
            found[loop.value] = first, [numbers[columns.index(column)] for column in several]
    return found


def _is_open(reader: Value, number: Value) -> bool:
    """Whether a number may be an operand."""
    simpler = _SIMPLER.get(reader.op)
    return simpler is not None and type(number.attrs["value"]) is float and number.attrs["value"] not in simpler


def _bits(number: Value) -> str:
    return f"{number.dtype.name} {number.attrs['value'].hex()}"


def _opened(loop: _Loop, columns: Sequence[tuple[str, ...]], several: Sequence[tuple[str, ...]]) -> Value:
    """The loop, with regions that have inputs for the numbers of which there are several; its operands are still its own."""
    if not several:
        return loop.value
    value, regions = loop.value, {}
    dtypes = {column: number.dtype for number, column in zip(loop.numbers(), columns, strict=True)}
    left = iter(columns)
    for name, reads in zip(value.op.regions, loop.reads, strict=True):
        inputs = {column: input_value(tensor(dtypes[column], ())) for column in several}
        places = {(reader, place): inputs[column] for (reader, place, _), column in zip(reads, left, strict=False) if column in inputs}
        regions[name] = _with_inputs(value.attrs[name], places, list(inputs.values()))
    return Value(value.op, value.operands, {**value.attrs, **regions}, value.type, value.name, value.source, value.forward)


def _with_inputs(region: Graph, places: dict[tuple[Value, int], Value], inputs: Sequence[Value]) -> Graph:
    """The region with more inputs behind its own, numbers that values read at these places."""
    mapping: dict[Value, Value] = {}
    with Record() as record:
        for value in region.body:
            operands = [mapping.get(operand, operand) for operand in value.operands]
            for place, operand in enumerate(value.operands):
                number = places.get((value, place))
                if number is not None:
                    operands[place] = ops.broadcast(number, shape=operand.shape, axes=()) if operand.shape else number
            copy = value.with_operands(tuple(operands))
            if copy is not value:
                mapping[value] = copy
            record.values.append(copy)
    return rebuilt(region, record.values, mapping).replace(inputs=[*region.inputs, *inputs])


def _with(graph: Graph, shared: dict[Value, tuple[Value, list[Value]]]) -> Rewritten:
    mapping: dict[Value, Value] = {}
    with Record() as record:
        for value in graph.body:
            copy = value.with_operands(tuple([mapping.get(operand, operand) for operand in value.operands]))
            if value in shared:
                first, numbers = shared[value]
                record.source, record.forward = value.source, value.forward
                given = [ops.full(value=number.attrs["value"], shape=(), dtype=number.dtype) for number in numbers]
                copy = Value(value.op, (*copy.operands, *given), first.attrs, value.type, value.name, value.source, value.forward)
            if copy is not value:
                mapping[value] = copy
            record.values.append(copy)
    return Rewritten(rebuilt(graph, record.values, mapping), mapping)
