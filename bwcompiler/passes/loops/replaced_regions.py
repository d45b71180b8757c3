"""The walk that passes over loops and branches share: it replaces the results of these by other values."""

from __future__ import annotations

from collections.abc import Callable

from bwcompiler import ops
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value
from bwcompiler.passes.rewriting.rewriter import NO_RULES, Rewriter, Rewritten, rebuilt
from bwcompiler.passes.rewriting.simplify_rules import RULES


def with_regions_replaced(graph: Graph, inside: Callable[[Graph], Rewritten],
                          replacement: Callable[[Value], list[Value] | None], merges: bool = False) -> Rewritten:
    """The graph with other values in the places of the results of loops and choices.

    inside       does the same to the bodies of loops and branches, before.
    replacement  emits the values that are the results of a loop or choice; None where it stays.
    merges       equal values become one, and nothing else is simplified.
    """
    if not any(value.op.regions for value in graph.body):
        return Rewritten(graph, {})

    known: dict[Graph, Graph] = {}                 # several loops may have one body

    def body_of(body: Graph) -> Graph:
        if body.is_settled(inside):
            return body
        found = known.get(body)
        if found is None:
            found = known[body] = inside(body).graph
            if found is body:
                body.settled.append(inside)
        return found

    mapping: dict[Value, Value] = {}
    results: dict[Value, list[Value]] = {}
    record = Rewriter(NO_RULES if merges else RULES)
    with record:
        for value in graph.body:
            if not (mapping or results or merges or value.op.regions):
                record.values.append(value)
                continue
            if value.op is ops.item and value.operands[0] in results:
                mapping[value] = results[value.operands[0]][value.attrs["index"]]
                continue
            operands = tuple([mapping.get(operand, operand) for operand in value.operands]) if mapping else value.operands
            copy = value.with_operands(operands).with_regions(body_of)
            if copy.op.regions:
                record.source, record.forward = value.source, value.forward
                found = replacement(copy)
                if found is not None:
                    results[value] = found
                    continue
            if merges:
                copy = record.visit(copy, copy.operands)
            else:
                record.values.append(copy)
            if copy is not value:
                mapping[value] = copy
    return Rewritten(rebuilt(graph, record.values, mapping), mapping)
