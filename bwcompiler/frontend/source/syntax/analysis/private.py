"""Which variables hold lists that nothing else can hold: `kept = []` in a branch does to such a list what `kept.clear()` does.

Every binding is a display (`kept = []`, `kept, n = [x], 0`), and every other mention takes elements out, puts some in, or asks for
something that is no list: nothing else ever gets the list itself.  So it does not matter which object it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from bwcompiler.frontend.source.syntax.nodes import walk

_METHODS = frozenset(("append", "extend", "pop", "clear", "insert", "sort", "reverse", "index", "count", "remove",
                      "copy"))
_BUILTIN = frozenset(("len", "sum", "min", "max", "sorted", "any", "all", "list", "tuple", "set", "bool", "print"))
_LIBRARIES = frozenset(("np", "numpy", "math"))
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def private_lists(body: list[ast.stmt], known: Iterable[str]) -> frozenset[str]:
    """The variables of a function that are such; known: its parameters, and variables of functions around."""
    parents = {child: node for statement in body for node in walk(statement) for child in ast.iter_child_nodes(node)}
    found: set[str] = set()
    others = set(known)
    for statement in body:
        for node in walk(statement):
            if isinstance(node, _SCOPES):
                others.update([part.id for part in ast.walk(node) if isinstance(part, ast.Name)])
            elif isinstance(node, ast.Global | ast.Nonlocal):
                others.update(node.names)
            elif isinstance(node, ast.Name):
                is_bound = isinstance(node.ctx, ast.Store)
                (found if is_bound and _is_display(node, parents) else others if is_bound or not _is_used(node, parents) else set()).add(
                    node.id)
    return frozenset(found - others)


def _is_display(node: ast.Name, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether a variable is bound to a list that is made there."""
    parent = parents.get(node)
    if isinstance(parent, ast.AugAssign):
        return isinstance(parent.op, ast.Add) and isinstance(parent.value, ast.List)
    if isinstance(parent, ast.Tuple):
        statement = parents.get(parent)
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or not isinstance(statement.value, ast.Tuple):
            return False
        pairs = zip(parent.elts, statement.value.elts, strict=False)
        return len(parent.elts) == len(statement.value.elts) and any(
            target is node and isinstance(value, ast.List) for target, value in pairs)
    return isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.value, ast.List)


def _is_used(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether a mention of a list is one that does not give it to anything."""
    parent = parents.get(node)
    if isinstance(parent, ast.Attribute):
        call = parents.get(parent)
        return parent.attr in _METHODS and isinstance(call, ast.Call) and call.func is parent
    if isinstance(parent, ast.Call):
        return node in parent.args and _is_asking(parent.func)
    if isinstance(parent, ast.For):
        return parent.iter is node and not any(isinstance(part, ast.Name) and part.id == getattr(node, "id", "") and isinstance(
            part.ctx, ast.Store) for statement in parent.body for part in walk(statement))
    if isinstance(parent, ast.Return):
        return True
    return isinstance(parent, ast.Subscript | ast.comprehension | ast.Compare) or _is_tested(node, parents)


def _is_asking(function: ast.expr) -> bool:
    """Whether it is a function that does not keep what it is given."""
    if isinstance(function, ast.Name):
        return function.id in _BUILTIN
    while isinstance(function, ast.Attribute):
        function = function.value
    return isinstance(function, ast.Name) and function.id in _LIBRARIES


def _is_tested(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether only its truth is asked for."""
    parent = parents.get(node)
    if isinstance(parent, ast.BoolOp):
        return _is_tested(parent, parents)
    if isinstance(parent, ast.UnaryOp):
        return isinstance(parent.op, ast.Not)
    return isinstance(parent, ast.If | ast.While | ast.IfExp | ast.Assert) and parent.test is node
