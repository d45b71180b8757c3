"""Assignments in tests (`:=`), rewritten as statements before the test.

`while (y := f(x)) > 0: ...` becomes `y = f(x)` before the loop and at the end of its iterations.  If an assignment may not run, branches
are nested in Python's order of evaluation: `if a and (y := f(x)) > 0: ...` becomes `if a: if (y := f(x)) > 0: ...`, so that y has a value
where it is read.  If that would copy much code, and in loops, the test is computed stepwise: `t = a`, `if t: t = (y := f(x)) > 0`, `if t:
...`.
"""

from __future__ import annotations

import ast
import functools

from bwcompiler.frontend.source.syntax.analysis.expressions import inside
from bwcompiler.frontend.source.syntax.nodes import OWN_SCOPE, copies


def without_named_tests(node: ast.FunctionDef) -> None:
    """Take assignments out of the tests of a function's `while` loops and branches."""
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
        if isinstance(node, ast.While):
            made += _taken_out(node)
            if _binds_at_times(node.test) and not any(isinstance(part, ast.Break | ast.Continue) for part in inside(node.orelse)):
                test = _put_together(node.test)
                leave = ast.If(ast.UnaryOp(ast.Not(), _test()), [*node.orelse, ast.Break()], [])
                node.orelse = []
                node.body = [ast.fix_missing_locations(ast.copy_location(one, node.test)) for one in (*test, leave)] + node.body
                node.test = ast.copy_location(ast.Constant(True), node.test)
        elif isinstance(node, ast.If) and _binds_at_times(node.test):
            if _copies(node.test, len(inside(node.body)), len(inside(node.orelse))) <= MOST_COPIED:
                made += _nested(node.test, node.body, node.orelse)
                continue
            made += [ast.fix_missing_locations(ast.copy_location(one, node.test)) for one in _put_together(node.test)]
            node.test = ast.copy_location(_test(), node.test)
        made.append(node)
    return made


# ----- assignments that may not run
_TEST = "__bw_test"            # what a test has given so far; used at once, so that one name is enough


def _test(context: ast.expr_context | None = None) -> ast.Name:
    return ast.Name(_TEST, context or ast.Load())


def _binds_at_times(node: ast.expr) -> bool:
    """Whether there is an assignment behind an `and` or `or`."""
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not) and _binds_at_times(node.operand)
    return isinstance(node, ast.BoolOp) and any(isinstance(part, ast.NamedExpr) for part in ast.walk(node))


MOST_COPIED = 400              # parts of the syntax tree that nested branches may have in all


def _copies(node: ast.expr, then: int, otherwise: int) -> int:
    """How much nested branches for a test have, of sides with so many parts."""
    if isinstance(node, ast.UnaryOp) and _binds_at_times(node):
        return _copies(node.operand, otherwise, then)
    if not isinstance(node, ast.BoolOp):
        return 1 + then + otherwise
    if isinstance(node.op, ast.And):
        return functools.reduce(lambda inner, part: _copies(part, inner, otherwise), reversed(node.values), then)
    return functools.reduce(lambda inner, part: _copies(part, then, inner), reversed(node.values), otherwise)


def _nested(node: ast.expr, then: list[ast.stmt], otherwise: list[ast.stmt]) -> list[ast.stmt]:
    """Branches that run one of two sides, as a test decides; each is a copy."""
    if isinstance(node, ast.UnaryOp) and _binds_at_times(node):
        return _nested(node.operand, otherwise, then)
    if not isinstance(node, ast.BoolOp):
        body = copies(then) or [ast.copy_location(ast.Pass(), node)]
        return [ast.copy_location(ast.If(node, body, copies(otherwise)), node)]
    if isinstance(node.op, ast.And):
        return functools.reduce(lambda inner, part: _nested(part, inner, otherwise), reversed(node.values), then)
    return functools.reduce(lambda inner, part: _nested(part, then, inner), reversed(node.values), otherwise)


def _put_together(node: ast.expr) -> list[ast.stmt]:
    """Statements that leave the truth of a test in its variable, each part of which runs where Python runs it."""
    if isinstance(node, ast.UnaryOp) and _binds_at_times(node):
        return [*_put_together(node.operand), _assigned(ast.UnaryOp(ast.Not(), _test()), node)]
    if not isinstance(node, ast.BoolOp):
        return [_assigned(node, node)]
    first, *rest = node.values
    made = _put_together(first)
    inner = made
    for part in rest:
        more = _put_together(part)
        test = _test() if isinstance(node.op, ast.And) else ast.UnaryOp(ast.Not(), _test())
        inner.append(ast.copy_location(ast.If(test, more, []), part))
        inner = more
    return made


def _assigned(value: ast.expr, node: ast.expr) -> ast.stmt:
    return ast.copy_location(ast.Assign([_test(ast.Store())], value), node)


# ----- assignments that run in every test
def _taken_out(node: ast.While) -> list[ast.stmt]:
    """The assignments of a loop's test, which the loop then has at the end of its iterations."""
    found: list[ast.NamedExpr] = []
    if not _collect(node.test, found) or not found or _continues_inside_of_try(node.body):
        return []
    assignments: list[ast.stmt] = [ast.copy_location(ast.Assign([ast.Name(one.target.id, ast.Store())], one.value), one) for one in found]
    node.test = _Names().visit(node.test)
    node.body = [*_before_continue(node.body, assignments), *copies(assignments)]
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
            made += copies(assignments)
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
