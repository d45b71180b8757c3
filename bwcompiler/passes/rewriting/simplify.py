"""Simplification: canonical spelling, algebraic identities, constant folding and common subexpressions (`simplify_rules`)."""

from __future__ import annotations

from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value
from bwcompiler.passes.rewriting.rewriter import rewrite
from bwcompiler.passes.rewriting.simplify_rules import RULES


def simplify(graph: Graph) -> Graph:
    """The graph with equal values merged, constants folded and algebraic identities applied."""
    return simplify_with_mapping(graph)[0]


def simplify_with_mapping(graph: Graph) -> tuple[Graph, dict[Value, Value]]:
    """The simplified graph, and what stands in it for each value that was replaced."""
    return rewrite(graph, RULES)
