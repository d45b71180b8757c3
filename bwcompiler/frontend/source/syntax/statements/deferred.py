"""What a `return` in a loop gives, put together behind the loop: `return Result(x, k, "converged")`.

A loop that ends as data say carries numbers and arrays.  So its iterations bind the parts that they compute, and the object, tuple or text
is made of these when the loop has ended.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection

from bwcompiler.frontend.source.syntax.nodes import children, copied

_DISPLAYS = (ast.Tuple, ast.List, ast.Dict)


def deferred(value: ast.expr | None, bound: Collection[str], name: Callable[[], str]) -> tuple[list[tuple[str, ast.expr]], ast.expr] | None:
    """What an iteration binds, and the expression behind the loop; None where what is returned need not be put together there.

    bound: variables that the loop binds; name: makes a name.
    """
    if value is None or not _is_put_together(value) or any(
            isinstance(part, ast.Starred | ast.NamedExpr | ast.Await) for part in ast.walk(value)):
        return None
    made = copied(value)
    binds: list[tuple[str, ast.expr]] = []
    return binds, _Parts(bound, name, binds).placed(made)


def _is_put_together(value: ast.expr) -> bool:
    """Whether it is an object of a class, or a display that holds texts, None or such objects, or nothing."""
    if isinstance(value, ast.Call):
        called = value.func.attr if isinstance(value.func, ast.Attribute) else value.func.id if isinstance(value.func, ast.Name) else ""
        return called[:1].isupper() and isinstance(value.func, ast.Name | ast.Attribute)
    if isinstance(value, ast.JoinedStr):
        return True
    if isinstance(value, _DISPLAYS):
        keys = value.keys if isinstance(value, ast.Dict) else []
        parts = [part for part in children(value) if isinstance(part, ast.expr) and part not in keys]
        return not parts or any(_is_put_together(part) or (isinstance(part, ast.Constant) and isinstance(part.value, str | None))
                                for part in parts)
    return False


class _Parts:
    """Names in the place of what an iteration computes."""

    def __init__(self, bound: Collection[str], name: Callable[[], str], binds: list[tuple[str, ast.expr]]) -> None:
        self.bound = bound
        self.name = name
        self.binds = binds

    def placed(self, node: ast.expr) -> ast.expr:
        """The expression, with names in the place of its parts."""
        if isinstance(node, ast.Constant):
            return node
        if isinstance(node, ast.Call) and _is_put_together(node):
            node.args = [self.placed(part) for part in node.args]
            for keyword in node.keywords:
                keyword.value = self.placed(keyword.value)
            return node
        if isinstance(node, ast.Tuple | ast.List):
            node.elts = [self.placed(part) for part in node.elts]
            return node
        if isinstance(node, ast.Dict):
            node.values = [self.placed(part) for part in node.values]
            return node
        if isinstance(node, ast.JoinedStr):
            for part in node.values:
                if isinstance(part, ast.FormattedValue):
                    part.value = self.placed(part.value)
            return node
        if isinstance(node, ast.Name) and node.id not in self.bound:
            return node                            # as it is behind the loop, too: a list that grows in it, perhaps
        self.binds.append((self.name(), node))
        return ast.copy_location(ast.Name(self.binds[-1][0], ast.Load()), node)
