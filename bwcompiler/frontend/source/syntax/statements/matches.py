"""`match` whose cases are values, rewritten as branches: `case "a" | "b" if p:` becomes `if (x == "a" or x == "b") and p:`.

A name that takes whatever comes, `case other if p:`, is bound before its guard is asked for.  Patterns that match sequences, mappings and
classes are not rewritten.  Likewise `(left if p else right).append(x)` becomes a branch, each side of which changes one of the two.
"""

from __future__ import annotations

import ast
import copy

from bwcompiler.frontend.source.syntax.notes import IS_STATEMENT

_SUBJECT = "__bw_subject"      # what is matched; asked for by the tests of the cases only, so that one name is enough


def without_matches(node: ast.FunctionDef) -> None:
    """Write the `match` statements of a function as branches, where they can be."""
    found = _Matches()
    node.body = [made for statement in node.body for made in found.statements(statement)]


class _Matches(ast.NodeTransformer):
    def statements(self, node: ast.stmt) -> list[ast.stmt]:
        """What stands in the place of a statement."""
        made = self.visit(node)
        return made if isinstance(made, list) else [made]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node                                # functions and classes inside have texts of their own

    visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = visit_FunctionDef  # type: ignore[assignment]

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        call = node.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return node
        chosen = call.func.value
        if isinstance(chosen, ast.Subscript):
            IS_STATEMENT.put(call, True)
        if not isinstance(chosen, ast.IfExp):
            return node
        sides = [ast.Expr(ast.Call(ast.Attribute(part, call.func.attr, ast.Load()), *parts)) for part, parts in (
            (chosen.body, (call.args, call.keywords)), (chosen.orelse, copy.deepcopy((call.args, call.keywords))))]
        return _at(ast.If(chosen.test, *[[self.visit(_at(side, node))] for side in sides]), node)

    def visit_Match(self, node: ast.Match) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        simple = isinstance(node.subject, ast.Name)
        subject = node.subject.id if isinstance(node.subject, ast.Name) else _SUBJECT
        tests = [test for case in node.cases if (test := _test(case.pattern, subject)) is not None]
        if len(tests) < len(node.cases):
            return node
        rest: list[ast.stmt] = []
        for case, test in zip(reversed(node.cases), reversed(tests), strict=True):
            whole = test if case.guard is None else case.guard if _always(test) else ast.BoolOp(ast.And(), [test, case.guard])
            rest = case.body if _always(whole) else [_at(ast.If(whole, case.body, rest), case.pattern)]
            if isinstance(case.pattern, ast.MatchAs) and case.pattern.name not in (None, subject):
                rest = [_bound(case.pattern.name, ast.Name(subject, ast.Load()), case.pattern), *rest]
        return [*([] if simple else [_bound(subject, node.subject, node)]), *rest]


def _bound(name: str | None, value: ast.expr, like: ast.AST) -> ast.stmt:
    assert name is not None
    return _at(ast.Assign([ast.Name(name, ast.Store())], value), like)


def _at(node: ast.stmt, like: ast.AST) -> ast.stmt:
    return ast.fix_missing_locations(ast.copy_location(node, like))


def _always(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and test.value is True


def _test(pattern: ast.pattern, subject: str) -> ast.expr | None:
    """Whether a subject is what a pattern says; None of a pattern that is not of values."""
    name = ast.Name(subject, ast.Load())
    if isinstance(pattern, ast.MatchValue):
        return ast.Compare(name, [ast.Eq()], [pattern.value])
    if isinstance(pattern, ast.MatchSingleton):
        return ast.Compare(name, [ast.Is()], [ast.Constant(pattern.value)])
    if isinstance(pattern, ast.MatchAs) and pattern.pattern is None:
        return ast.Constant(True)
    if isinstance(pattern, ast.MatchOr):
        parts = [_test(part, subject) for part in pattern.patterns]
        known = [part for part in parts if part is not None]
        if len(known) == len(parts):
            return ast.Constant(True) if any(map(_always, known)) else ast.BoolOp(ast.Or(), known)
    return None
