"""Functions that add what they give for several other arguments, rewritten as loops over what is still to be done.

def f(a, b):                                     def f(a, b):
    m = (a + b) / 2                                  total = 0; waiting = [(a, b)]
    if abs(rule(a, b)) < 1e-3:                       while waiting:
        return rule(a, b)                ->              a, b = waiting.pop()
    return f(a, m) + f(m, b)                             m = (a + b) / 2
                                                         if abs(rule(a, b)) < 1e-3:
                                                             total = total + rule(a, b)
                                                         else:
                                                             waiting.append((m, b)); waiting.append((a, m))
                                                     return total

The terms are added in another order.
"""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from bwcompiler.frontend.source.syntax.nodes import copied, walk
from bwcompiler.frontend.source.syntax.statements.jumps import PREFIX, falls_through

_LISTS = (ast.List, ast.ListComp)
TOTAL, WAITING = PREFIX + "total", PREFIX + "waiting"


class OtherwiseError(Exception):
    """It calls itself elsewhere, or in another way."""


class Itself(NamedTuple):
    """How a function calls itself: by its name, or as a method of its first parameter, or of its class, which is the receiver.

    parameters  that such a call gives; defaults: of these, what stands for those that it leaves out.
    """

    name: str
    receiver: str
    parameters: list[str]
    defaults: dict[str, Any]

    def is_named(self, *nodes: ast.AST) -> bool:
        """Whether it is named in some code."""
        return any(map(self._is, walk(*nodes)))

    def is_call(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Call) and self._is(node.func)

    def _is(self, node: ast.AST) -> bool:
        if not self.receiver:
            return isinstance(node, ast.Name) and node.id == self.name
        return isinstance(node, ast.Attribute) and node.attr == self.name and (
            isinstance(node.value, ast.Name) and node.value.id == self.receiver)

    def arguments(self, call: ast.Call) -> dict[str, ast.expr]:
        """The arguments of a call by the names of the parameters, which are all given, or have defaults that are constants."""
        given = dict(zip(self.parameters, call.args, strict=False)) | {one.arg: one.value for one in call.keywords if one.arg}
        found = {name: ast.copy_location(ast.Constant(value), call) for name, value in self.defaults.items() if name not in given} | given
        if len(call.args) > len(self.parameters) or found.keys() != set(self.parameters) or len(given) != len(
                call.args) + len(call.keywords) or any(isinstance(one, ast.Starred) for one in call.args):
            raise OtherwiseError
        return found

    def read(self) -> ast.expr:
        """What stands for it, or has it, which is read: as it was before."""
        return ast.Name(self.receiver or self.name, ast.Load())


def as_sum(node: ast.FunctionDef, itself: Itself) -> list[ast.stmt]:
    """The body of the function as such a loop; raises OtherwiseError."""
    body = copied(node).body
    sums = _Sums(itself, body)
    if not sums.moving or falls_through(body):
        raise OtherwiseError
    place = body[0]
    sums.block(body)
    start = [_bind(TOTAL, ast.Constant(0), place), _bind(WAITING, ast.List([sums.row({})], ast.Load()), place)]
    taken = ast.Assign([sums.row({}, ast.Store())], _method("pop", []))
    loop = ast.While(_load(WAITING), [_at(taken, place), *body], [])
    return [*start, _at(loop, place), _at(ast.Return(_load(TOTAL)), place)]


class _Sums:
    """What stands for the statements of a function.

    moving  the parameters that its calls of itself give other arguments; lists: its variables that are lists.
    """

    def __init__(self, itself: Itself, body: list[ast.stmt]) -> None:
        self.itself = itself
        calls = [itself.arguments(part) for part in walk(*body) if itself.is_call(part)]  # type: ignore[arg-type]
        self.lists = {target.id for part in walk(*body) if isinstance(part, ast.Assign)
                      for target, value in _bound(part) if isinstance(target, ast.Name) and isinstance(value, _LISTS)}
        bound = {part.id for part in walk(*body) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        self.moving = [one for one in itself.parameters if one in bound or any(
            not (isinstance(given[one], ast.Name) and given[one].id == one) for given in calls)]  # type: ignore[attr-defined]

    def _is_list(self, node: ast.expr) -> bool:
        return isinstance(node, _LISTS) or (isinstance(node, ast.Name) and node.id in self.lists)

    def row(self, given: dict[str, ast.expr], context: ast.expr_context | None = None) -> ast.expr:
        """The arguments that move, as an element of what is to be done."""
        context = context or ast.Load()
        parts = [given.get(name) or ast.Name(name, context) for name in self.moving]
        return parts[0] if len(parts) == 1 else ast.Tuple(parts, context)

    def block(self, body: list[ast.stmt]) -> None:
        """A block, changed in place: what it returns is added, or waits."""
        self._inlined(body)
        for place, node in enumerate(body):
            if isinstance(node, ast.Return) and node.value is not None:
                body[place:] = [*self._returned(node.value), _at(ast.Continue(), node)]
                return
            if isinstance(node, ast.If) and not self.itself.is_named(node.test):
                self.block(node.body)
                self.block(node.orelse)
            elif self.itself.is_named(node) or any(isinstance(part, ast.Return) for part in walk(node)):
                raise OtherwiseError

    def _inlined(self, body: list[ast.stmt]) -> None:
        """`left = f(a, m); right = f(m, b); return left + right` without these variables."""
        last = body[-1] if body else None
        if not isinstance(last, ast.Return) or last.value is None:
            return
        while len(body) > 1:
            before = body[-2]
            if not isinstance(before, ast.Assign) or not self.itself.is_call(before.value) or not isinstance(before.targets[0], ast.Name):
                return
            used = [part for part in walk(last.value) if isinstance(part, ast.Name) and part.id == before.targets[0].id]
            if len(used) != 1 or len(before.targets) > 1:
                return
            last.value = _Instead(used[0], before.value).visit(last.value)
            del body[-2]

    def _returned(self, value: ast.expr) -> list[ast.stmt]:
        if isinstance(value, ast.IfExp):
            return [_at(ast.If(value.test, self._returned(value.body), self._returned(value.orelse)), value)]
        terms = _terms(value)
        calls = [term for term in terms if self.itself.is_call(term)]
        others = [term for term in terms if not self.itself.is_call(term)]
        if any(map(self._is_list, others)):        # whose sum has an order
            raise OtherwiseError
        if self.itself.is_named(*others) or any(self.itself.is_named(*one.args, *one.keywords) for one in calls):  # type: ignore[attr-defined]
            raise OtherwiseError
        rows = [self.row(self.itself.arguments(one)) for one in calls]  # type: ignore[arg-type]
        return [*[_bind(TOTAL, ast.BinOp(_load(TOTAL), ast.Add(), one), value) for one in others],
                *[_at(ast.Expr(_method("append", [row])), value) for row in reversed(rows)]]


class _Instead(ast.NodeTransformer):
    """Another expression in the place of a name."""

    def __init__(self, name: ast.Name, value: ast.expr) -> None:
        self.name = name
        self.value = value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.value if node is self.name else node


def _bound(node: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    """What is bound to what, where that stands there: a = x; a, b = x, y."""
    found: list[tuple[ast.expr, ast.expr]] = []
    for target in node.targets:
        are_parts = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
        found += zip(target.elts, node.value.elts, strict=False) if are_parts else [(target, node.value)]  # type: ignore[attr-defined]
    return found


def _terms(value: ast.expr) -> list[ast.expr]:
    """What a sum adds."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        return [*_terms(value.left), *_terms(value.right)]
    return [value]


def _load(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _method(name: str, arguments: list[ast.expr]) -> ast.Call:
    return ast.Call(ast.Attribute(_load(WAITING), name, ast.Load()), arguments, [])


def _bind(name: str, value: ast.expr, place: ast.AST) -> ast.stmt:
    return _at(ast.Assign([ast.Name(name, ast.Store())], value), place)


def _at(node: ast.stmt, place: ast.AST) -> ast.stmt:
    """A statement, with the line of another node where it has none."""
    for part in ast.walk(node):
        if isinstance(part, ast.expr | ast.stmt) and not hasattr(part, "lineno"):
            ast.copy_location(part, place)
    return node
