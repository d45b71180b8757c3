"""Walks over syntax trees, and copies of them: what `ast` and `copy.deepcopy` do, several times as fast.

Nodes that other nodes may share (`ast.Load()`, `ast.Add()`) are skipped in walks, and are not copied.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

Node = TypeVar("Node", bound=ast.AST)

OWN_SCOPE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)      # whose statements run in a frame of their own

_SIGNS = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
_PLAIN = frozenset(("attr", "arg", "asname", "ctx", "id", "kind", "level", "module", "names", "op", "ops", "type_comment"))
_parts: dict[type, tuple[str, ...]] = {}               # class of nodes -> fields that may hold other nodes
_is_placed: dict[type, bool] = {}                      # whether nodes of a class have lines and columns


def _parts_of(cls: type[ast.AST]) -> tuple[str, ...]:
    plain = _PLAIN - {"names"} if cls in (ast.Import, ast.ImportFrom) else _PLAIN
    found = _parts[cls] = tuple([name for name in cls._fields if name not in plain])
    return found


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes that a node holds, in order."""
    names = _parts.get(type(node))
    if names is None:
        names = _parts_of(type(node))
    found: list[ast.AST] = []
    for name in names:
        part = getattr(node, name, None)
        if type(part) is list:
            found += [one for one in part if isinstance(one, ast.AST)]
        elif isinstance(part, ast.AST):
            found.append(part)
    return found


def walk(*nodes: ast.AST) -> list[ast.AST]:
    """The nodes, and all inside of them; in no order to rely on."""
    found = list(nodes)
    for node in found:                                 # which grows
        found += children(node)
    return found


def with_statements(body: list[ast.stmt], replaced: Callable[[ast.stmt], ast.stmt]) -> list[ast.stmt]:
    """A block with what `replaced` makes of each of its statements, and of those of the blocks in it that run in this frame."""
    made: list[ast.stmt] = []
    for node in body:
        for part in [] if isinstance(node, OWN_SCOPE) else [node, *getattr(node, "handlers", ()), *getattr(node, "cases", ())]:
            for name in ("body", "orelse", "finalbody"):
                inner = getattr(part, name, None)
                if isinstance(inner, list):
                    setattr(part, name, with_statements(inner, replaced))
        made.append(replaced(node))
    return made


def copied(node: Node) -> Node:
    """A copy of a tree, with what was noted on its nodes."""
    cls = type(node)
    made = cls.__new__(cls)
    values = made.__dict__
    for name, part in node.__dict__.items():
        if isinstance(part, ast.AST):
            values[name] = part if isinstance(part, _SIGNS) else copied(part)
        elif type(part) is list:
            values[name] = [copied(one) if isinstance(one, ast.AST) and not isinstance(one, _SIGNS) else one for one in part]
        else:
            values[name] = part
    return made


def copies(nodes: Iterable[Node]) -> list[Node]:
    """Copies of trees."""
    return [copied(node) for node in nodes]


def placed(node: Node) -> Node:
    """The tree, whose nodes without a line have that of the node around, as `ast.fix_missing_locations` has it."""
    stack: list[Any] = [(node, 1, 0, 1, 0)]
    while stack:
        one, line, column, last, end = stack.pop()
        cls = type(one)
        has_place = _is_placed.get(cls)
        if has_place is None:
            has_place = _is_placed[cls] = "lineno" in cls._attributes
        if has_place:
            own = one.__dict__
            line, column = own.setdefault("lineno", line), own.setdefault("col_offset", column)
            if own.get("end_lineno") is None:
                own["end_lineno"] = last
            if own.get("end_col_offset") is None:
                own["end_col_offset"] = end
            last, end = own["end_lineno"], own["end_col_offset"]
        stack += [(child, line, column, last, end) for child in children(one)]
    return node


def around_star(targets: list[ast.expr]) -> tuple[int, int]:
    """How many of some targets stand before the one with a star, and how many behind it: -1 where there is none."""
    star = next((place for place, one in enumerate(targets) if isinstance(one, ast.Starred)), len(targets))
    return star, len(targets) - star - 1


def functions_read(nodes: list[ast.expr], names: list[str]) -> bool:
    """Whether functions that are made in expressions read variables, of which Python has one for all of them."""
    functions = [part for node in nodes for part in walk(node) if isinstance(part, ast.Lambda)]
    return any(isinstance(part, ast.Name) and part.id in names for function in functions for part in walk(function.body))
