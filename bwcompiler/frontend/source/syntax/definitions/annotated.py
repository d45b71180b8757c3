"""Annotations of variables, taken out of a function: nothing evaluates them there, and a variable that a body shares can have none.

`x: float = f(y)` is `x = f(y)`.  `x: float` alone makes x a variable of the function, and is said once, at its beginning.
"""

from __future__ import annotations

import ast

from bwcompiler.frontend.source.syntax.nodes import walk, with_statements


def without_annotations(node: ast.FunctionDef) -> None:
    """Take the annotations of its variables out of a definition."""
    if not any(isinstance(part, ast.AnnAssign) for part in walk(*node.body)):
        return
    alone: dict[str, ast.AnnAssign] = {}
    body = with_statements(node.body, lambda part: _plain(part, alone) if isinstance(part, ast.AnnAssign) else part)
    parameters = {part.arg for part in walk(node.args) if isinstance(part, ast.arg)}
    node.body = [*[one for name, one in alone.items() if name not in parameters], *body]


def _plain(node: ast.AnnAssign, alone: dict[str, ast.AnnAssign]) -> ast.stmt:
    if node.value is not None:
        return ast.copy_location(ast.Assign([node.target], node.value), node)
    if isinstance(node.target, ast.Name):
        alone.setdefault(node.target.id, node)
    return ast.copy_location(ast.Pass(), node)
