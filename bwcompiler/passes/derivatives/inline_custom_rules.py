"""Custom rules where no (further) derivative is taken: calls are replaced by their bodies, links by the outputs that they link."""

from __future__ import annotations

from collections.abc import Sequence

from bwcompiler import ops
from bwcompiler.ir.graph import Graph, inline
from bwcompiler.ir.op import Value
from bwcompiler.ops.calls.custom import custom_call, custom_link
from bwcompiler.passes.rewriting.rewriter import NO_RULES, Rewriter, rebuilt


def inline_custom_rules(graph: Graph) -> Graph:
    """Replace every custom_call by its body and every custom_link by its outputs, in bodies of loops too; equal values are merged then."""
    if not _has_custom_rules(graph):
        return graph
    results: dict[Value, Sequence[Value]] = {}
    mapping: dict[Value, Value] = {}
    record = Rewriter(NO_RULES)
    with record:
        for value in graph.body:
            operands = tuple([mapping.get(operand, operand) for operand in value.operands])
            record.source, record.forward = value.source, value.forward
            if value.op is custom_call or value.op is ops.checkpoint:
                results[value] = inline(inline_custom_rules(value.attrs["body"]), operands)
            elif value.op is custom_link:
                start = value.attrs["primals"]
                results[value] = operands[start:start + value.attrs["outputs"]]
            elif value.op is ops.item and value.operands[0] in results:
                mapping[value] = results[value.operands[0]][value.attrs["index"]]
            else:
                mapping[value] = record.visit(value.with_regions(inline_custom_rules), operands)
    return rebuilt(graph, record.values, mapping)


def _has_custom_rules(graph: Graph) -> bool:
    return any(value.op in (custom_call, custom_link, ops.checkpoint)
               or any(_has_custom_rules(value.attrs[name]) for name in value.op.regions) for value in graph.body)
