"""Custom rules where a derivative is taken: calls of functions with their own derivative become their fwd, tied to their rule.

A `custom_call` is replaced by fwd's graph, and a `custom_link` ties the outputs to the primals; its VJP is bwd's graph, or the
transpose of the rule for tangents (`TransposedRule`).  What no derivative passes through stays (`inline_custom_rules`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Record, Value
from bwcompiler.ops.custom import custom_call, custom_link, inline_with_captured
from bwcompiler.passes.adjoints.transposed_rule import TransposedRule
from bwcompiler.passes.autodiff import active_values
from bwcompiler.passes.rewriting import rebuilt


class Expanded(NamedTuple):
    """The graph; arrays: what the rules captured, its last captured inputs; mapping: what stands for values that were replaced."""

    graph: Graph
    arrays: Sequence[Any] = ()
    mapping: Mapping[Value, Value] = {}


def expand_custom_rules(graph: Graph, wrt: Sequence[int]) -> Expanded:
    """Replace every custom_call through which an output depends on the inputs `wrt`."""
    if not any(value.op is custom_call for value in graph.body):
        return Expanded(graph)
    active = active_values(graph, [graph.inputs[k] for k in wrt])
    mapping: dict[Value, Value] = {}
    record = Record()
    with record:
        for value in graph.body:
            operands = tuple([mapping.get(operand, operand) for operand in value.operands])
            if value.op is custom_call and value in active:
                record.source, record.forward = value.source, value.forward
                mapping[value] = _expand(value, operands)
                continue
            kept = value.with_operands(operands)
            if kept is not value:
                mapping[value] = kept
            record.values.append(kept)
    captured = list(record.captured.values())
    inputs = [*graph.inputs, *[value for _, value in captured]]
    expanded = rebuilt(graph, record.values, mapping).replace(inputs=inputs, captured=graph.captured + len(captured))
    return Expanded(expanded, [array for array, _ in captured], mapping)


def _expand(call: Value, operands: tuple[Value, ...]) -> Value:
    rule = call.attrs["rule"]
    if not rule.has_cotangents:
        rule = TransposedRule(rule, expand_custom_rules)
    primals = operands[:rule.primals]
    graph, arrays = rule.forward([operand.type for operand in primals])
    results = inline_with_captured(graph, primals, arrays)
    return custom_link(*primals, *results, rule=rule, primals=len(primals), outputs=len(call.type.items))
