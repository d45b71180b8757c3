"""Loops and branches whose results other values stand for: the walk that passes over them share."""

from __future__ import annotations

from collections.abc import Callable

from bwcompiler import ops
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value
from bwcompiler.passes.rewriting.rewriter import Rewriter, Rewritten, rebuilt
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
    mapping: dict[Value, Value] = {}
    results: dict[Value, list[Value]] = {}
    record = Rewriter({} if merges else RULES)
    with record:
        for value in graph.body:
            if value.op is ops.item and value.operands[0] in results:
                mapping[value] = results[value.operands[0]][value.attrs["index"]]
                continue
            operands = tuple([mapping.get(operand, operand) for operand in value.operands])
            copy = value.with_operands(operands).with_regions(lambda body: inside(body).graph)
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
