"""Generators that a function keeps in a variable until a loop goes over them: `points = grid(n)`, and later `for p in points`.

They are marked as those that a loop goes over at once (`rewriting.header`), where the loop is all that reads the variable, and runs once.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import Any

from bwcompiler.frontend.source.syntax.nodes import walk
from bwcompiler.frontend.source.syntax.notes import IS_SOURCE


def mark_stored(node: ast.FunctionDef) -> None:
    """Mark calls whose results are kept for one loop: they may be of generator functions."""
    parts = walk(*node.body)
    loops = [part for part in parts if isinstance(part, ast.For) and _source(part)]
    if not loops:
        return
    uses = Counter(part.id for part in parts if isinstance(part, ast.Name))
    declared = {name for part in parts if isinstance(part, ast.Global | ast.Nonlocal) for name in part.names}
    declared |= {part.arg for part in walk(node.args) if isinstance(part, ast.arg)}
    for part in [node, *parts]:
        for field in ("body", "orelse", "finalbody"):
            block = getattr(part, field, None)
            if isinstance(block, list):
                _mark(block, {name for name, count in uses.items() if count == 2 and name not in declared})


def _mark(block: list[Any], names: set[str]) -> None:
    """In a block: names that are bound once, and then gone over."""
    calls: dict[str, Any] = {}
    for one in block:
        if isinstance(one, ast.For) and _source(one) in calls:
            IS_SOURCE.put(calls[_source(one)], True)
        elif isinstance(one, ast.Assign) and len(one.targets) == 1:
            calls.update({target.id: value for target, value in _pairs(one.targets[0], one.value) if isinstance(value, ast.Call)
                          and isinstance(target, ast.Name) and target.id in names})


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """What is assigned to what: `a, b = f(x), 0.0`."""
    if not (isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts)):
        return [(target, value)]
    return list(zip(target.elts, value.elts, strict=True))


def _source(loop: ast.For) -> str:
    """The variable that a loop goes over, perhaps by `enumerate`."""
    given = loop.iter
    if isinstance(given, ast.Call) and isinstance(given.func, ast.Name) and given.func.id == "enumerate" and given.args:
        given = given.args[0]
    return given.id if isinstance(given, ast.Name) else ""
