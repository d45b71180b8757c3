"""Simplification: canonical spelling, algebraic identities, constant folding and common subexpressions (`simplify_rules`)."""

from __future__ import annotations

from bwcompiler.ir.graph import Graph
from bwcompiler.passes.rewriting.rewriter import Rewritten, rewrite
from bwcompiler.passes.rewriting.simplify_rules import RULES


def simplify(graph: Graph) -> Rewritten:
    """The graph with equal values merged, constants folded and algebraic identities applied."""
    return rewrite(graph, RULES)
