"""Variables of a module that a function assigns to, `global calls`: items of the dictionary that holds them, `globals()["calls"]`.

So the bodies of its loops and branches change them like items of any other dictionary (`effects.places`).  A function may write
`globals()` itself, which shows nothing of its own variables.
"""

from __future__ import annotations

import ast
from typing import Any

from bwcompiler.frontend.source.syntax.analysis.expressions import inside
from bwcompiler.frontend.source.syntax.notes import IS_GLOBALS


def without_globals(node: ast.FunctionDef) -> None:
    """Take the `global` statements out of a definition, but for those of functions in it; not where statements bind them by name alone."""
    parts = inside(node.body)
    for part in parts:
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == "globals":
            IS_GLOBALS.put(part, True)             # as the user writes it
    names = {name for part in parts if isinstance(part, ast.Global) for name in part.names}
    if names and names.isdisjoint(_bound_by_name(parts)):
        node.body = [_AsItems(names).visit(part) for part in node.body]


def _bound_by_name(parts: list[ast.AST]) -> set[str]:
    """What definitions, imports, `except ... as`, `match` and `:=` bind."""
    found: set[str] = set()
    for part in parts:
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(part.name)
        elif isinstance(part, ast.alias):
            found.add((part.asname or part.name).partition(".")[0])
        elif isinstance(part, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and part.name:
            found.add(part.name)
        elif isinstance(part, ast.NamedExpr):
            found.add(part.target.id)
    return found


class _AsItems(ast.NodeTransformer):
    def __init__(self, names: set[str]) -> None:
        self.names = names

    def visit_Global(self, node: ast.Global) -> ast.stmt:
        return ast.copy_location(ast.Pass(), node)

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id not in self.names:
            return node
        held = ast.Call(ast.Name("globals", ast.Load()), [], [])
        IS_GLOBALS.put(held, True)
        found = ast.Subscript(held, ast.Constant(node.id), node.ctx)
        for part in (held.func, held, found.slice, found):
            ast.copy_location(part, node)
        return found

    def _kept(self, node: Any) -> Any:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _kept
