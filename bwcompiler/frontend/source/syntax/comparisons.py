"""Comparisons of several operands, taken apart.

    a < f() < c   ->   (lambda a: (lambda b: bw.and_(a < b, lambda: b < c))(f()))(a)
    a < b < c     ->   bw.and_(a < b, lambda: b < c)            where evaluating b twice makes no difference
"""

from __future__ import annotations

import ast
import copy
from typing import Any

from bwcompiler.frontend.source.syntax.analysis.expressions import is_pure
from bwcompiler.frontend.source.syntax.nodes import walk


def compared(rewriter: Any, node: ast.Compare) -> ast.expr | None:
    """What stands for such a comparison; None if it keeps its form.  `rewriter` rewrites what is in it."""
    if not is_pure(node):
        return None
    sides = [node.left, *node.comparators]
    if not any(isinstance(part, ast.Call) for one in sides[1:-1] for part in walk(one)):
        again = [copy.deepcopy(side) for side in sides]          # what is between two comparisons stands in both
        pairs: list[ast.expr] = [_pair(node, place, again[place], sides[place + 1]) for place in range(len(node.ops))]
        found: ast.expr = rewriter.visit(ast.copy_location(ast.BoolOp(ast.And(), pairs), node))
        return found
    names = [f"__bw_side_{place}__" for place in range(len(node.ops))]
    values = [ast.copy_location(ast.Name(name, ast.Load()), side) for name, side in zip(names, sides, strict=False)]
    found = rewriter.visit(_pair(node, len(names) - 1, values[-1], sides[-1]))
    for place in reversed(range(1, len(names))):
        first = rewriter.visit(_pair(node, place - 1, *values[place - 1:place + 1]))
        found = _with(rewriter, names[place], sides[place], rewriter.runtime("and_", node, first, rewriter.later(found)))
    return _with(rewriter, names[0], sides[0], found)


def _pair(node: ast.Compare, place: int, left: ast.expr, right: ast.expr) -> ast.Compare:
    return ast.copy_location(ast.Compare(left, [node.ops[place]], [right]), node)


def _with(rewriter: Any, name: str, value: ast.expr, found: ast.expr) -> ast.expr:
    """What is found where a name is bound to a value."""
    return ast.copy_location(ast.Call(rewriter.function_of(name, found), [rewriter.visit(value)], []), value)
