"""Private names: in the body of a class `Model`, Python reads `self.__scale` as `self._Model__scale`.

A method's syntax tree is rewritten and compiled without its class around it; so these names are written out before.
"""

from __future__ import annotations

import ast
from typing import Any

from bwcompiler.frontend.source.syntax.nodes import children, copied, walk

# the fields that hold names which Python reads in this way: not those of keyword arguments, nor of attributes in a pattern
_FIELDS: dict[type[ast.AST], str] = {
    ast.Name: "id", ast.Attribute: "attr", ast.arg: "arg", ast.FunctionDef: "name", ast.AsyncFunctionDef: "name", ast.ClassDef: "name",
    ast.ExceptHandler: "name", ast.alias: "asname", ast.Global: "names", ast.Nonlocal: "names", ast.MatchAs: "name", ast.MatchStar: "name",
    ast.MatchMapping: "rest",
}


def with_class_names(module: ast.Module) -> ast.Module:
    """The module, with the names of their class in private names; the module itself where no class has any."""
    classes = [part for part in walk(module) if isinstance(part, ast.ClassDef)]
    if not any(_is_private(name) for part in walk(*classes) for name in _names(part)):
        return module
    made = copied(module)
    stack: list[tuple[ast.AST, str]] = [(part, "") for part in made.body]
    while stack:
        node, owner = stack.pop()
        inside = node.name.lstrip("_") if isinstance(node, ast.ClassDef) else ""
        if owner:
            _write_out(node, owner)
        if isinstance(node, ast.ClassDef):
            stack += [(part, inside if part in node.body else owner) for part in children(node)]
        else:
            stack += [(part, owner) for part in children(node)]
    return made


def _write_out(node: ast.AST, owner: str) -> None:
    field = _FIELDS.get(type(node), "")
    if any(_is_private(name) for name in _names(node)):
        written = [f"_{owner}{name}" if _is_private(name) else name for name in _names(node)]
        setattr(node, field, written if isinstance(getattr(node, field), list) else written[0])


def _names(node: ast.AST) -> list[str]:
    """The names in a node that Python reads in this way, if they are private."""
    value: Any = getattr(node, _FIELDS.get(type(node), ""), None)
    return value if isinstance(value, list) else [] if value is None else [value]


def _is_private(name: str) -> bool:
    return name.startswith("__") and not name.endswith("__") and "." not in name
