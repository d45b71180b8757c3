"""`while (y := f(x)) > 0: ...` as `y = f(x)` before the loop and at the end of its iterations, so that its test binds nothing."""

from __future__ import annotations

import ast
import copy

from bwcompiler.frontend.source.syntax.expressions import OWN_SCOPE


def without_named_tests(node: ast.FunctionDef) -> None:
    """Take assignments out of the tests of a function's `while` loops, where they run in every test."""
    node.body = _block(node.body)


def _block(body: list[ast.stmt]) -> list[ast.stmt]:
    made: list[ast.stmt] = []
    for node in body:
        for name in () if isinstance(node, OWN_SCOPE) else ("body", "orelse", "finalbody"):
            inner = getattr(node, name, None)
            if isinstance(inner, list) and inner and isinstance(inner[0], ast.stmt):
                setattr(node, name, _block(inner))
        for handler in getattr(node, "handlers", ()):
            handler.body = _block(handler.body)
        made += _taken_out(node) if isinstance(node, ast.While) else []
        made.append(node)
    return made


def _taken_out(node: ast.While) -> list[ast.stmt]:
    """The assignments of a loop's test, which the loop then has at the end of its iterations."""
    found: list[ast.NamedExpr] = []
    if not _collect(node.test, found) or not found or _continues_inside_of_try(node.body):
        return []
    assignments: list[ast.stmt] = [ast.copy_location(ast.Assign([ast.Name(one.target.id, ast.Store())], one.value), one) for one in found]
    node.test = _Names().visit(node.test)
    node.body = [*_before_continue(node.body, assignments), *copy.deepcopy(assignments)]
    return [ast.fix_missing_locations(one) for one in assignments]


def _collect(node: ast.expr, found: list[ast.NamedExpr]) -> bool:
    """Collect assignments in the order in which they run; whether all of them run in every test, and nothing before them matters."""
    if isinstance(node, ast.NamedExpr):
        found.append(node)
        return not any(isinstance(part, ast.NamedExpr) for part in ast.walk(node.value))
    if not any(isinstance(part, ast.NamedExpr) for part in ast.walk(node)):
        return True
    parts: list[ast.expr] = []
    match node:
        case ast.Compare(left=left, comparators=[right]):
            parts = [left, right]
        case ast.UnaryOp(operand=operand):
            parts = [operand]
        case ast.Attribute(value=value) | ast.Subscript(value=value, slice=ast.Constant() | ast.Name()):
            parts = [value]
        case ast.BoolOp(values=[first, *rest]) if not any(isinstance(part, ast.NamedExpr) for one in rest for part in ast.walk(one)):
            parts = [first]
        case ast.BinOp(left=left, right=right):
            parts = [left, right]
        case ast.Call(func=ast.Name() | ast.Attribute(value=ast.Name()), args=parts, keywords=[]):
            pass
        case _:
            return False
    last = max(place for place, part in enumerate(parts) if any(isinstance(one, ast.NamedExpr) for one in ast.walk(part)))
    targets = {one.target.id for part in parts for one in ast.walk(part) if isinstance(one, ast.NamedExpr)}
    return all(_is_before(part, targets) for part in parts[:last]) and all(_collect(part, found) for part in parts)


def _is_before(part: ast.expr, targets: set[str]) -> bool:
    """Whether something that is evaluated before an assignment may as well be evaluated behind it."""
    return isinstance(part, ast.Constant) or (isinstance(part, ast.Name) and part.id not in targets) or isinstance(part, ast.NamedExpr)


class _Names(ast.NodeTransformer):
    """The variables in the places of assignments to them."""

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        return ast.copy_location(ast.Name(node.target.id, ast.Load()), node)


def _before_continue(body: list[ast.stmt], assignments: list[ast.stmt]) -> list[ast.stmt]:
    made: list[ast.stmt] = []
    for node in body:
        if isinstance(node, ast.Continue):
            made += copy.deepcopy(assignments)
        elif isinstance(node, ast.If | ast.With):
            node.body = _before_continue(node.body, assignments)
            if isinstance(node, ast.If):
                node.orelse = _before_continue(node.orelse, assignments)
        made.append(node)
    return made


def _continues_inside_of_try(body: list[ast.stmt]) -> bool:
    """Whether iterations may end where an assignment cannot be put."""
    return any(isinstance(inner, ast.Continue) for node in body for part in ast.walk(node) if isinstance(part, ast.Try | ast.Match)
               for inner in ast.walk(part))
