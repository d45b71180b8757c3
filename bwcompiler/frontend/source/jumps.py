"""`return`, `break` and `continue` inside of branches and loops, written without jumps.

What follows a branch that is left moves into its other side; an early `return` so becomes the value of a branch at the end of the
function.  A loop that is left gets a flag, which ends it, and which what follows a jump in its body is behind.  Statements with jumps
out of `with` or `try` stay as they are.
"""

from __future__ import annotations

import ast
import copy
from typing import Any

PREFIX = "__bw_"
_LIMIT = 400                   # nodes of what follows a branch, if both of its sides need it
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_JUMPS = (ast.Return, ast.Break, ast.Continue)


class _GiveUp(Exception):
    """A jump out of a statement that keeps its form."""


def without_jumps(node: ast.FunctionDef) -> None:
    """Take the jumps out of a function; where one of them cannot be, out of none."""
    try:
        body = _Jumps().function(copy.deepcopy(node.body))
    except _GiveUp:
        return
    node.body = body


def jumps(nodes: list[Any], loop: bool = False) -> bool:
    """Whether control can leave statements by a jump; in a loop `break` and `continue` stay inside."""
    for node in nodes:
        if isinstance(node, ast.Return) or (isinstance(node, ast.Break | ast.Continue) and not loop):
            return True
        if isinstance(node, _SCOPES):
            continue
        inside = loop or isinstance(node, ast.For | ast.While)
        if jumps(list(ast.iter_child_nodes(node)), inside):
            return True
    return False


def falls_through(body: list[ast.stmt]) -> bool:
    """Whether control can reach the end of a block."""
    if not body:
        return True
    last = body[-1]
    if isinstance(last, (*_JUMPS, ast.Raise)):
        return False
    return not isinstance(last, ast.If) or falls_through(last.body) or falls_through(last.orelse)


class _Jumps:
    def __init__(self) -> None:
        self.count = 0

    def _name(self, what: str) -> str:
        self.count += 1
        return f"{PREFIX}{what}_{self.count}"

    # ----- of functions
    def function(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """A block at whose end the function ends: branches that return are its last statements."""
        for place, node in enumerate(body):
            rest = body[place + 1:]
            before = body[:place]
            if isinstance(node, ast.Return | ast.Raise):
                return [*before, node]
            if isinstance(node, ast.For | ast.While) and not node.orelse and _leaves(node.body):
                found, after = self.loop(node)
                return [*before, *found, *self.function([*after, *rest])]
            if isinstance(node, ast.For | ast.While):
                node.body = self._inside(node.body)
                continue
            if not jumps([node]):
                self._deeper(node)
                continue
            if not isinstance(node, ast.If):
                raise _GiveUp
            first, second = falls_through(node.body), falls_through(node.orelse)
            if first and second and sum(1 for part in rest for _ in ast.walk(part)) > _LIMIT:
                raise _GiveUp
            node.body = self.function([*node.body, *(rest if first else [])])
            node.orelse = self.function([*node.orelse, *(copy.deepcopy(rest) if second else [])])
            node.is_tail = True  # type: ignore[attr-defined]
            return [*before, node]
        return body

    def _deeper(self, node: ast.stmt) -> None:
        """Loops inside of a statement without jumps out of it."""
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and not isinstance(node, _SCOPES):
                setattr(node, name, self._inside(block))

    def _inside(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """A block that is not left by jumps, and the loops in it."""
        made: list[ast.stmt] = []
        for node in body:
            if isinstance(node, ast.For | ast.While) and not node.orelse and _leaves(node.body):
                made += self.loop(node)[0]
            else:
                self._deeper(node)
                made.append(node)
        return made

    # ----- of loops
    def loop(self, node: ast.For | ast.While) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """A loop that is left by jumps: with a flag; and what follows it where it returns."""
        done = self._name("done")
        returns = jumps(node.body, loop=True)
        result = (self._name("returned"), self._name("value")) if returns else None
        node.body = self._block(node.body, done, result)
        if not any(isinstance(part, ast.Name) and part.id == done for statement in node.body for part in ast.walk(statement)):
            return [node], []                              # `continue` alone: every iteration runs
        before = [_set(name, False, node) for name in ([done, result[0]] if result else [done])]
        if isinstance(node, ast.While):
            test: ast.expr = ast.copy_location(ast.UnaryOp(ast.Not(), _load(done, node)), node.test)
            node.test = ast.copy_location(ast.BoolOp(ast.And(), [test, node.test]), node.test)
        else:
            node.flag = done  # type: ignore[attr-defined]
        if result is None:
            return [*before, node], []
        back = ast.copy_location(ast.Return(_load(result[1], node)), node)
        return [*before, node], [ast.copy_location(ast.If(_load(result[0], node), [back], []), node)]

    def _block(self, body: list[ast.stmt], done: str, result: tuple[str, str] | None) -> list[ast.stmt]:
        """A block of a loop's body, to the end of the iteration."""
        for place, node in enumerate(body):
            before, rest = body[:place], body[place + 1:]
            if isinstance(node, ast.Continue):
                return before
            if isinstance(node, ast.Break):
                return [*before, _set(done, True, node)]
            if isinstance(node, ast.Return):
                assert result is not None
                value = node.value or ast.copy_location(ast.Constant(None), node)
                kept = ast.copy_location(ast.Assign([ast.Name(result[1], ast.Store())], value), node)
                return [*before, kept, _set(result[0], True, node), _set(done, True, node)]
            if isinstance(node, ast.For | ast.While) and not node.orelse and _leaves(node.body):
                found, after = self.loop(node)             # `after`: it returned, and so do we
                return [*before, *found, *self._block([*after, *rest], done, result)]
            if not jumps([node]):
                self._deeper(node)
                continue
            if not isinstance(node, ast.If):
                raise _GiveUp
            return [*before, *self._branch(node, rest, done, result)]
        return body

    def _branch(self, node: ast.If, rest: list[ast.stmt], done: str, result: tuple[str, str] | None) -> list[ast.stmt]:
        first, second = falls_through(node.body), falls_through(node.orelse)
        if first and second and sum(1 for part in rest for _ in ast.walk(part)) > _LIMIT:
            raise _GiveUp
        node.body = self._block([*node.body, *(rest if first else [])], done, result) or [ast.copy_location(ast.Pass(), node)]
        node.orelse = self._block([*node.orelse, *(copy.deepcopy(rest) if second else [])], done, result)
        return [node]


def _leaves(body: list[ast.stmt]) -> bool:
    """Whether a loop's body has jumps of its own loop, or returns."""
    return jumps(body)


def _load(name: str, node: ast.AST) -> ast.expr:
    return ast.copy_location(ast.Name(name, ast.Load()), node)


def _set(name: str, value: bool, node: ast.AST) -> ast.stmt:
    return ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], ast.copy_location(ast.Constant(value), node)), node)
