"""Custom rules: replace calls of functions with their own derivative by fwd and bwd, or by their bodies.

Differentiating replaces a `custom_call` by fwd's graph, and ties the outputs to the primals by a `custom_link` whose VJP
is bwd's graph.  Where no derivative is taken, the body is inlined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from bwcompiler import ops
from bwcompiler.ir.graph import Graph, inline, live_values
from bwcompiler.ir.op import Record, Value
from bwcompiler.ops.custom import custom_call, custom_link, inline_with_captured


class Expanded(NamedTuple):
    """A graph without custom calls; arrays: what the rules captured; mapping: what stands for values that were replaced."""

    graph: Graph
    arrays: list[Any]
    mapping: dict[Value, Value]


def expand_custom_rules(graph: Graph, active: set[Value]) -> Expanded:
    """Replace every custom_call that the derivative passes through by its fwd, tied to its bwd."""
    mapping: dict[Value, Value] = {}
    if not any(value.op is custom_call and value in active for value in graph.body):
        return Expanded(graph, [], mapping)
    record = Record()
    with record:
        for value in graph.body:
            operands = tuple(mapping.get(operand, operand) for operand in value.operands)
            if value.op is custom_call and value in active:
                record.source = value.source
                mapping[value] = _expand(value, operands)
            elif operands != value.operands:
                mapping[value] = Value(value.op, operands, value.attrs, value.type, value.name, value.source, value.forward)
                record.values.append(mapping[value])
            else:
                record.values.append(value)
    outputs = [mapping.get(output, output) for output in graph.outputs]
    captured = list(record.captured.values())
    inputs = [*graph.inputs, *[value for _, value in captured]]
    expanded = graph.replace(inputs=inputs, body=live_values(record.values, outputs), outputs=outputs,
                             captured=graph.captured + len(captured))
    return Expanded(expanded, [array for array, _ in captured], mapping)


def _expand(call: Value, operands: tuple[Value, ...]) -> Value:
    rule = call.attrs["rule"]
    primals = operands[:rule.primals]
    graph, arrays = rule.forward([operand.type for operand in primals])
    results = inline_with_captured(graph, primals, arrays)
    return custom_link(*primals, *results, rule=rule, primals=len(primals), outputs=len(call.type.items))


def inline_calls(graph: Graph) -> Graph:
    """Replace every remaining custom_call by its body and every custom_link by its outputs."""
    if not any(value.op is custom_call or value.op is custom_link for value in graph.body):
        return graph
    results: dict[Value, Sequence[Value]] = {}
    mapping: dict[Value, Value] = {}
    item = ops.item
    record = Record()
    with record:
        for value in graph.body:
            operands = tuple(mapping.get(operand, operand) for operand in value.operands)
            if value.op is custom_call:
                results[value] = inline(inline_calls(value.attrs["body"]), operands)
            elif value.op is custom_link:
                start = value.attrs["primals"]
                results[value] = operands[start:start + value.attrs["outputs"]]
            elif value.op is item and value.operands[0] in results:
                mapping[value] = results[value.operands[0]][value.attrs["index"]]
            elif operands != value.operands:
                mapping[value] = Value(value.op, operands, value.attrs, value.type, value.name, value.source, value.forward)
                record.values.append(mapping[value])
            else:
                record.values.append(value)
    outputs = [mapping.get(output, output) for output in graph.outputs]
    return graph.replace(body=live_values(record.values, outputs), outputs=outputs)
