"""Tail-recursive functions, rewritten as loops.

def f(x, n):                        def f(x, n):
    if x < 1e-3:                        while True:
        return n             ->             if x < 1e-3:
    return f(x / 2, n + 1)                      return n
                                            arg_1 = x / 2; arg_2 = n + 1
                                            x = arg_1; n = arg_2; continue
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from bwcompiler.frontend.source.syntax.analysis.liveness import annotate
from bwcompiler.frontend.source.syntax.nodes import OWN_SCOPE, copied, walk
from bwcompiler.frontend.source.syntax.recursive_sums import Itself, OtherwiseError, as_sum
from bwcompiler.frontend.source.syntax.statements.jumps import PREFIX

_SCOPES = (*OWN_SCOPE, ast.GeneratorExp)
_CONSTANTS = (bool, int, float, str, type(None))


def as_loop(node: ast.FunctionDef, receiver: str, defaults: Sequence[Any]) -> ast.FunctionDef | None:
    """The function as a loop; None where it does not call itself, or elsewhere than at its end, or not by its name and all its parameters.

    receiver: what stands before its name where it is a method; defaults: of its last parameters.  Where it adds what it gives for other
    arguments, it is a loop over what is to be done (`recursive_sums`).
    """
    given = node.args
    names = [arg.arg for arg in (*given.posonlyargs, *given.args)]
    if given.vararg or given.kwarg or given.kwonlyargs or any(isinstance(part, _SCOPES) for part in walk(*node.body)):
        return None
    known = {name: value for name, value in zip(reversed(names), reversed(defaults), strict=False) if type(value) in _CONSTANTS}
    itself = Itself(node.name, receiver, names[1:] if names[:1] == [receiver] else names, known)
    if not itself.is_named(*node.body) or (receiver and any(
            isinstance(part, ast.Name) and part.id == receiver and not isinstance(part.ctx, ast.Load) for part in walk(*node.body))):
        return None
    if annotate(copied(node).body) - set(names):   # each call has its own variables: of a loop they would be those of the call before
        return None
    made = copied(node)
    try:
        body = [part for one in made.body for part in _Calls(itself).statement(one)]
    except OtherwiseError:
        return _as_sum(node, itself)
    if itself.is_named(*body):
        return _as_sum(node, itself)
    first = made.body[0]
    end = ast.copy_location(ast.Return(None), made.body[-1])
    loop = ast.copy_location(ast.While(ast.copy_location(ast.Constant(True), first), [*body, end], []), first)
    made.body = [_read(itself, first), loop]
    return made


def _read(itself: Itself, place: ast.stmt) -> ast.stmt:
    """A statement that reads what stands for the function."""
    return ast.copy_location(ast.Expr(ast.copy_location(itself.read(), place)), place)


def _as_sum(node: ast.FunctionDef, itself: Itself) -> ast.FunctionDef | None:
    made = copied(node)
    try:
        body = as_sum(node, itself)
    except OtherwiseError:
        return None
    made.body = [_read(itself, made.body[0]), *body]
    return made


class _Calls:
    """What stands for statements, in which the function returns what it gives for other arguments."""

    def __init__(self, itself: Itself) -> None:
        self.itself = itself

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, ast.Return) and node.value is not None:
            return self._returned(node, node.value)
        if isinstance(node, ast.If):
            node.body = [part for one in node.body for part in self.statement(one)]
            node.orelse = [part for one in node.orelse for part in self.statement(one)]
        return [node]

    def _returned(self, node: ast.Return, value: ast.expr) -> list[ast.stmt]:
        if not self.itself.is_named(value):
            return [ast.copy_location(ast.Return(value), node)]
        if isinstance(value, ast.IfExp):
            return [ast.copy_location(ast.If(value.test, self._returned(node, value.body), self._returned(node, value.orelse)), value)]
        if not isinstance(value, ast.Call) or not self.itself.is_call(value):
            raise OtherwiseError
        return self._again(value)

    def _again(self, call: ast.Call) -> list[ast.stmt]:
        """The parameters get the arguments, and the next iteration begins."""
        arguments = self.itself.arguments(call)
        changed = {name: value for name, value in arguments.items() if not (isinstance(value, ast.Name) and value.id == name)}
        first = [_bind(f"{PREFIX}argument_{name}", value, call) for name, value in changed.items()]
        then = [_bind(name, ast.copy_location(ast.Name(f"{PREFIX}argument_{name}", ast.Load()), call), call) for name in changed]
        return [*first, *then, ast.copy_location(ast.Continue(), call)]


def _bind(name: str, value: ast.expr, node: ast.AST) -> ast.stmt:
    return ast.copy_location(ast.Assign([ast.copy_location(ast.Name(name, ast.Store()), node)], value), node)
