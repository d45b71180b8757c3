"""Generator functions, rewritten as functions that hand what they yield to another one.

    def batches(x, size):                               def batches(x, size, *, __bw_take__):
        for start in range(0, len(x), size):    ->          for start in range(0, len(x), size):
            yield x[start:start + size]                         __bw_take__(x[start:start + size])

A loop over such a generator is the generator's own loop, with the body of the first one in it.  Where that body may end the loop, the
function returns as soon as it did: `if __bw_take__(...): return`.
"""

from __future__ import annotations

import ast

from bwcompiler.frontend.source.syntax.nodes import OWN_SCOPE, copied, walk
from bwcompiler.frontend.source.syntax.statements.jumps import PREFIX

TAKE = f"{PREFIX}take__"
_YIELDS = (ast.Yield, ast.YieldFrom, ast.Await)


class _OtherwiseError(Exception):
    """It gets something back from `yield`, or yields where an exception or a `with` looks at what the other body does."""


def handing(node: ast.FunctionDef) -> ast.FunctionDef | None:
    """The generator function as one that calls `TAKE`; None where it cannot be."""
    return _rewritten(node, may_end=False)


def handing_until(node: ast.FunctionDef) -> ast.FunctionDef | None:
    """Likewise, and it ends as soon as `TAKE` says so."""
    return _rewritten(node, may_end=True)


def _rewritten(node: ast.FunctionDef, may_end: bool) -> ast.FunctionDef | None:
    made = copied(node)
    try:
        made.body = _Yields(may_end).block(made.body)
    except _OtherwiseError:
        return None
    made.args.kwonlyargs = [*made.args.kwonlyargs, ast.copy_location(ast.arg(TAKE), node)]
    made.args.kw_defaults = [*made.args.kw_defaults, None]
    return made


class _Yields:
    def __init__(self, may_end: bool) -> None:
        self.may_end = may_end

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [made for node in body for made in self.statement(node)]

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, OWN_SCOPE):
            return [node]
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield):
            value = node.value.value or ast.copy_location(ast.Constant(None), node)
            return self._given(value, node)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.YieldFrom):
            return self._all_given(node.value.value, node)
        if isinstance(node, ast.Return) and node.value is not None:            # what nobody gets
            _require_none([node.value])
            return [ast.copy_location(ast.Expr(node.value), node), ast.copy_location(ast.Return(None), node)]
        if isinstance(node, ast.For | ast.While | ast.If):
            _require_none([node.iter, node.target] if isinstance(node, ast.For) else [node.test])
            node.body, node.orelse = self.block(node.body), self.block(node.orelse)
            return [node]
        _require_none([node])
        return [node]

    def _given(self, value: ast.expr, node: ast.stmt) -> list[ast.stmt]:
        _require_none([value])
        call = ast.copy_location(ast.Call(ast.copy_location(ast.Name(TAKE, ast.Load()), node), [value], []), node)
        if self.may_end:
            return [ast.copy_location(ast.If(call, [ast.copy_location(ast.Return(None), node)], []), node)]
        return [ast.copy_location(ast.Expr(call), node)]

    def _all_given(self, values: ast.expr, node: ast.stmt) -> list[ast.stmt]:
        _require_none([values])
        name = f"{PREFIX}yielded__"
        body = self._given(ast.copy_location(ast.Name(name, ast.Load()), node), node)
        return [ast.copy_location(ast.For(ast.copy_location(ast.Name(name, ast.Store()), node), values, body, []), node)]


def _require_none(nodes: list[ast.AST]) -> None:
    """There is no `yield` in these, but in functions of their own."""
    for node in nodes:
        if any(isinstance(part, _YIELDS) for part in walk(node)):
            raise _OtherwiseError
