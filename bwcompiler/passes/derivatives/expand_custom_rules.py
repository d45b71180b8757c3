"""Custom rules where a derivative is taken: calls of functions with their own derivative are replaced by their fwd, linked to the rule.

A `custom_call` is replaced by fwd's graph, and a `custom_link` links the outputs to the primals; its VJP is bwd's graph, or the
transpose of the rule for tangents (`TransposedRule`).  Calls that no derivative passes through stay (`inline_custom_rules`).
"""

from __future__ import annotations

from collections.abc import Sequence

from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value
from bwcompiler.ops.calls.custom import custom_call, custom_link, inline_with_captured
from bwcompiler.passes.derivatives.activity import active_values
from bwcompiler.passes.derivatives.expansion import Expanded, expanded
from bwcompiler.passes.derivatives.transposed_rule import Regions, TransposedRule
from bwcompiler.passes.derivatives.unlink_custom_rules import unlink_custom_rules
from bwcompiler.passes.rewriting.simplify import simplify


def expand_custom_rules(graph: Graph, wrt: Sequence[int], regions: Regions | None = None) -> Expanded:
    """Replace every custom_call through which an output depends on the inputs `wrt`.

    With `regions` rules for tangents may have loops and branches where reverse mode is taken of them.
    """
    if not any(value.op is custom_call for value in graph.body):
        return Expanded(graph)
    active = active_values(graph, [graph.inputs[k] for k in wrt])

    def replace(value: Value, operands: tuple[Value, ...]) -> Value | None:
        return _expand(value, operands, regions) if value.op is custom_call and value in active else None

    return expanded(graph, replace)


def expand_moved_rules(graph: Graph, wrt: Sequence[int], regions: Regions | None = None) -> Expanded:
    """As `expand_custom_rules`, simplified, of calls that stood in loops before: these have been unrolled, or compute them once."""
    found = expand_custom_rules(graph, wrt, regions)
    if found.graph is graph:
        return found
    simplified, merged = simplify(found.graph)
    mapping = {value: merged.get(now, now) for value, now in found.mapping.items()}
    return Expanded(simplified, found.arrays, {**merged, **mapping})


def _expand(call: Value, operands: tuple[Value, ...], regions: Regions | None) -> Value:
    rule = call.attrs["rule"]
    if not rule.has_cotangents:
        rule = TransposedRule(rule, expand_custom_rules, regions)
    primals = operands[:rule.primals]
    graph, arrays = rule.forward([operand.type for operand in primals])
    results = inline_with_captured(unlink_custom_rules(graph).graph, primals, arrays)
    return custom_link(*primals, *results, rule=rule, primals=len(primals), outputs=len(call.type.items))
