"""`del y` of variables that nothing reads afterwards: y is read instead, which raises the same error where it has no value.

So a block that drops what it no longer needs can be captured like any other.  A variable that may be read after it was deleted is left to
Python, and so is one of another function or module.
"""

from __future__ import annotations

import ast

from bwcompiler.frontend.source.syntax.analysis.liveness import annotate
from bwcompiler.frontend.source.syntax.nodes import walk, with_statements
from bwcompiler.frontend.source.syntax.notes import LIVE_OUT


def without_deletions(node: ast.FunctionDef) -> None:
    """Take such statements out of a definition."""
    parts = walk(*node.body)
    if not any(isinstance(part, ast.Delete) for part in parts):
        return
    others = {name for part in parts if isinstance(part, ast.Global | ast.Nonlocal) for name in part.names}
    annotate(node.body)

    def replaced(part: ast.stmt) -> ast.stmt:
        if not isinstance(part, ast.Delete):
            return part
        names = [target.id for target in part.targets if isinstance(target, ast.Name)]
        after = LIVE_OUT.of(part)
        if len(names) < len(part.targets) or not after.isdisjoint(names) or not others.isdisjoint(names):
            return part
        read: list[ast.expr] = [ast.copy_location(ast.Name(name, ast.Load()), part) for name in names]
        value = read[0] if len(read) == 1 else ast.copy_location(ast.Tuple(read, ast.Load()), part)
        return ast.copy_location(ast.Expr(value), part)

    node.body = with_statements(node.body, replaced)
