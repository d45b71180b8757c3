"""`return`, `break` and `continue` inside branches and loops, rewritten without jumps.

Statements after a branch that ends with a jump move into its other side, so an early `return` becomes the value of a branch at the end of
the function.  Where both sides would need them, and they are long, they stay behind the branch, under a flag that says that it was not
left.  A loop with a jump gets a flag, which ends the loop; statements after the jump in its body, and the `else` of the loop, run only if
the flag is not set.  So do statements after a `try` that is left by a jump, in the body of a loop.  Jumps out of `with` and `finally` are
not rewritten, and neither is the loop that contains them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, NamedTuple

from bwcompiler.frontend.source.syntax.analysis.bound import bound_by_breaks
from bwcompiler.frontend.source.syntax.nodes import OWN_SCOPE, children, copied, copies, walk
from bwcompiler.frontend.source.syntax.notes import FLAG, IS_TAIL
from bwcompiler.frontend.source.syntax.statements.deferred import deferred

PREFIX = "__bw_"
DONE = PREFIX + "done_"        # of flags that end a loop;
RETURNING = DONE + "returning_"                # of those where the function returns, too, and nobody can ask for its variables then
ALONE = PREFIX + "returned_alone_"             # of those that say that such a function returns
_LIMIT = 400                   # nodes of what follows a branch, to stand in both of its sides
_JUMPS = (ast.Return, ast.Break, ast.Continue)
_SHARING = (*OWN_SCOPE, ast.Nonlocal, ast.Global)      # variables, with those who may read them later


class _GiveUp(Exception):
    """A jump out of a statement that keeps its form."""


def without_jumps(node: ast.FunctionDef) -> None:
    """Take the jumps out of a function, where they can be."""
    is_alone = not any(isinstance(one, _SHARING) or getattr(one, "finalbody", None) for part in node.body for one in ast.walk(part))
    node.body = _Jumps(is_alone).function(node.body)


def jumps(nodes: list[Any], loop: bool = False) -> bool:
    """Whether control can leave statements by a jump; in a loop `break` and `continue` stay inside."""
    for node in nodes:
        if isinstance(node, ast.Return) or (isinstance(node, ast.Break | ast.Continue) and not loop):
            return True
        if isinstance(node, OWN_SCOPE):
            continue
        if isinstance(node, ast.For | ast.While):
            if jumps(list(node.body), True) or jumps(list(node.orelse), loop):
                return True
        elif jumps(children(node), loop):
            return True
    return False


def falls_through(body: list[ast.stmt]) -> bool:
    """Whether control can reach the end of a block."""
    if not body:
        return True
    last = body[-1]
    if isinstance(last, (*_JUMPS, ast.Raise)):
        return False
    if isinstance(last, ast.With):
        return falls_through(last.body)
    if isinstance(last, ast.Try) and not last.finalbody:
        return (falls_through(last.body) and falls_through(last.orelse)) or any(falls_through(one.body) for one in last.handlers)
    return not isinstance(last, ast.If) or falls_through(last.body) or falls_through(last.orelse)


class _Returned(NamedTuple):
    """How a loop says that it returns: a flag, and the variable of what it gives; later: flags, with what is made behind the loop.

    bound: the variables that the loop binds.
    """

    flag: str
    value: str | None
    bound: frozenset[str]
    later: list[tuple[str, ast.expr]]


class _Jumps:
    """is_alone: nobody but the function itself reads its variables."""

    def __init__(self, is_alone: bool) -> None:
        self.is_alone = is_alone
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
            taken = self._without(node)
            if taken is not None:
                return [*before, *taken[0], *self.function([*taken[1], *rest])]
            if not jumps([node]):
                self._deeper(node)
                continue
            if isinstance(node, ast.Try) and _can_be_last(node, rest):
                return [*before, self._last_try(node, rest)]
            if isinstance(node, ast.With | ast.Try) and not falls_through(node.body):
                node.body = self.function(node.body)       # the rest is for those who suppress exceptions
                continue
            if not isinstance(node, ast.If):
                continue                                   # its jumps stay
            first, second = falls_through(node.body), falls_through(node.orelse)
            if first and second and _size(rest) > _LIMIT:
                flagged = self._flagged(node)
                if flagged is None:
                    continue
                return [*before, *flagged[0], *self.function([*flagged[1], *rest])]
            again = copies(rest) if second else []  # before the first side changes it
            node.body = self.function([*node.body, *(rest if first else [])])
            node.orelse = self.function([*node.orelse, *again])
            IS_TAIL.put(node, True)
            return [*before, node]
        return body

    def _flagged(self, node: ast.If) -> tuple[list[ast.stmt], list[ast.stmt]] | None:
        """A branch that says by a flag that the function returns, and the branches that do; None where a jump cannot be taken out of it."""
        node = copied(node)
        result, left = self._result([node], _names_bound(node)), self._name("left")
        try:
            self._sides(node, left, result)
        except _GiveUp:
            return None
        return [_set(left, False, node), *self._flags(result, node), node], self._returning(result, [node], node)

    def _last_try(self, node: ast.Try, rest: list[ast.stmt]) -> ast.Try:
        """A `try` at whose end the function ends: what follows it stands behind each of its blocks that is not left."""
        if falls_through(node.body):
            again = copies(rest)
            node.body = self._inside(node.body)
            node.orelse = self.function([*node.orelse, *(again if falls_through(node.orelse) else [])])
        else:
            node.body, node.orelse = self.function(node.body), []
        for handler in node.handlers:
            again = copies(rest) if falls_through(handler.body) else []
            handler.body = self.function([*handler.body, *again])
        IS_TAIL.put(node, True)
        return node

    def _deeper(self, node: ast.stmt | ast.ExceptHandler) -> None:
        """Loops inside of a statement without jumps out of it."""
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and not isinstance(node, OWN_SCOPE):
                setattr(node, name, self._inside(block))
        for handler in getattr(node, "handlers", ()):
            self._deeper(handler)

    def _inside(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """A block that is not left by jumps, and the loops in it."""
        made: list[ast.stmt] = []
        for node in body:
            taken = self._without(node)
            if taken is not None:
                made += [*taken[0], *self._inside(taken[1])]
            else:
                self._deeper(node)
                made.append(node)
        return made

    # ----- of loops
    def _without(self, node: ast.stmt) -> tuple[list[ast.stmt], list[ast.stmt]] | None:
        """A loop without jumps, and what follows it; None where it has none, or they cannot be taken out."""
        if not _is_left(node):
            return None
        try:
            return self.loop(copied(node))  # type: ignore[arg-type]
        except _GiveUp:
            return None

    def loop(self, node: ast.For | ast.While) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """A loop that is left by jumps, or has an `else`: with a flag; and what follows it where it returns, or has ended by itself."""
        returns = jumps(node.body, loop=True)
        done = self._name("done_returning" if returns and self.is_alone and not _has_breaks(node.body) else "done")
        otherwise, node.orelse = node.orelse, []
        is_left_by_returns = _is_endless(node) and not _has_breaks(node.body)
        result = self._result(node.body, _names_bound(node)) if returns else None
        keeps = {name: self._name(f"kept_{name}") for name in bound_by_breaks(node.body)} if _ends_by_breaks(node, otherwise) else {}
        node.body = self._block(_keeping(node.body, keeps), done, result)
        if not any(isinstance(part, ast.Name) and part.id == done for part in walk(*node.body)):
            return [node], otherwise                       # `continue` alone: every iteration runs
        before = [_set(done, False, node), *(self._flags(result, node) if result else [])]
        if isinstance(node, ast.While):
            test: ast.expr = ast.copy_location(ast.UnaryOp(ast.Not(), _load(done, node)), node.test)
            node.test = ast.copy_location(ast.BoolOp(ast.And(), [test, node.test]), node.test)
        else:
            FLAG.put(node, done)
        after: list[ast.stmt] = []
        if result is not None:
            after += self._returning(result, node.body, node)
            if is_left_by_returns:
                after[-1:] = after[-1].body        # type: ignore[attr-defined]
        if otherwise:
            ended = ast.copy_location(ast.UnaryOp(ast.Not(), _load(done, node)), node)
            after.append(ast.copy_location(ast.If(ended, otherwise, []), node))
        after += [_bind(name, _load(kept, node), node) for name, kept in keeps.items()]
        return [*before, node], after

    def _result(self, body: list[ast.stmt], bound: frozenset[str]) -> _Returned:
        value = None if _returns_nothing(body) else self._name("value")
        return _Returned(self._name("returned_alone" if self.is_alone else "returned"), value, bound, [])

    def _flags(self, result: _Returned, node: ast.stmt) -> list[ast.stmt]:
        return [_set(name, False, node) for name in (result.flag, *[flag for flag, _ in result.later])]

    def _returning(self, result: _Returned, body: list[ast.stmt], node: ast.stmt) -> list[ast.stmt]:
        """The branches behind a block that return, where its flags say so."""
        made = [_if(flag, ast.copy_location(ast.Return(value), value), node) for flag, value in result.later]
        if any(isinstance(part, ast.Name) and part.id == result.flag for part in walk(*body)):
            back = ast.copy_location(ast.Return(None if result.value is None else _load(result.value, node)), node)
            made.append(_if(result.flag, back, node))
        return made

    def _block(self, body: list[ast.stmt], done: str, result: _Returned | None) -> list[ast.stmt]:
        """A block of a loop's body, to the end of the iteration; or of a branch, to its end."""
        for place, node in enumerate(body):
            before, rest = body[:place], body[place + 1:]
            if isinstance(node, ast.Continue):
                return before
            if isinstance(node, ast.Break):
                return [*before, _set(done, True, node)]
            if isinstance(node, ast.Return):
                assert result is not None
                return [*before, *self._return(node, result), _set(done, True, node)]
            taken = self._without(node)
            if taken is not None:                          # what follows it: it returned, and so do we
                return [*before, *taken[0], *self._block([*taken[1], *rest], done, result)]
            if not jumps([node]):
                self._deeper(node)
                continue
            if isinstance(node, ast.Try) and not jumps(node.finalbody):
                return [*before, *self._try(node, rest, done, result)]
            if not isinstance(node, ast.If):
                raise _GiveUp
            return [*before, *self._branch(node, rest, done, result)]
        return body

    def _return(self, node: ast.Return, result: _Returned) -> list[ast.stmt]:
        """A `return` in a loop: what it gives is bound, or what this is made of behind the loop."""
        later = deferred(node.value, result.bound, lambda: self._name("value"))
        if later is not None:
            result.later.append((self._name("returned"), later[1]))
            return [*[_bind(name, value, node) for name, value in later[0]], _set(result.later[-1][0], True, node)]
        value = node.value or ast.copy_location(ast.Constant(None), node)
        kept = [] if result.value is None else [_bind(result.value, value, node)]
        return [*kept, _set(result.flag, True, node)]

    def _try(self, node: ast.Try, rest: list[ast.stmt], done: str, result: _Returned | None) -> list[ast.stmt]:
        """A `try` with jumps: what follows it in the iteration, and its `else`, where it was not left by one."""
        left = self._name("left")
        for block in (node.body, node.orelse, *[handler.body for handler in node.handlers]):
            block[:] = self._block(_noting(block, left), done, result) or [ast.copy_location(ast.Pass(), node)] if block else []
        if node.orelse:
            node.orelse = [_unless(left, node.orelse, node)]
        return [_set(left, False, node), node, *self._unless_left(left, rest, done, result, node)]

    def _unless_left(self, left: str, rest: list[ast.stmt], done: str, result: _Returned | None, node: ast.stmt) -> list[ast.stmt]:
        following = self._block(rest, done, result)
        return [_unless(left, following, node)] if following else []

    def _sides(self, node: ast.If, done: str, result: _Returned | None) -> None:
        node.body = self._block(node.body, done, result) or [ast.copy_location(ast.Pass(), node)]
        node.orelse = self._block(node.orelse, done, result)

    def _branch(self, node: ast.If, rest: list[ast.stmt], done: str, result: _Returned | None) -> list[ast.stmt]:
        """A branch with jumps: what follows it moves into its sides, or is for where it was not left, if it is long."""
        first, second = falls_through(node.body), falls_through(node.orelse)
        if first and second and _size(rest) > _LIMIT:
            left = self._name("left")
            node.body, node.orelse = _noting(node.body, left), _noting(node.orelse, left)
            self._sides(node, done, result)
            return [_set(left, False, node), node, *self._unless_left(left, rest, done, result, node)]
        again = copies(rest) if second else []      # before the first side changes it
        node.body = self._block([*node.body, *(rest if first else [])], done, result) or [ast.copy_location(ast.Pass(), node)]
        node.orelse = self._block([*node.orelse, *again], done, result)
        return [node]


def _can_be_last(node: ast.Try, rest: list[ast.stmt]) -> bool:
    """Whether a function may end with a `try`: what follows it is short, or is to follow one of its blocks alone."""
    if not node.handlers or node.finalbody or (falls_through(node.body) and jumps(node.body)):
        return False
    falling = [handler for handler in node.handlers if falls_through(handler.body)]
    follows = falls_through(node.body) and falls_through(node.orelse)
    return len(falling) + follows < 2 or _size(rest) <= _LIMIT


def _ends_by_breaks(node: ast.For | ast.While, otherwise: list[ast.stmt]) -> bool:
    """Whether what follows a loop is reached by `break` alone."""
    return _is_endless(node) or (bool(otherwise) and not falls_through(otherwise))


def _is_endless(node: ast.For | ast.While) -> bool:
    return isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and bool(node.test.value)


def _has_breaks(body: list[Any]) -> bool:
    """Whether a loop with this body is left by `break`."""
    for node in body:
        if isinstance(node, ast.Break):
            return True
        if isinstance(node, OWN_SCOPE):
            continue
        if _has_breaks(list(node.orelse) if isinstance(node, ast.For | ast.While) else children(node)):
            return True
    return False


def _keeping(body: list[ast.stmt], keeps: dict[str, str]) -> list[ast.stmt]:
    """The body of a loop, in which variables are kept in front of each `break`: what is bound at no other end of an iteration."""
    def kept(node: ast.stmt) -> list[ast.stmt]:
        return [*[_bind(name, _load(one_name, node), node) for one_name, name in keeps.items()], node]
    return _in_front(body, ast.Break, kept) if keeps else body


def _noting(body: list[ast.stmt], left: str) -> list[ast.stmt]:
    """A block in which a flag is set in front of each jump out of it."""
    return _in_front(body, _JUMPS, lambda node: [_set(left, True, node), node])


def _in_front(body: list[ast.stmt], kinds: Any, made: Callable[[ast.stmt], list[ast.stmt]], loop: bool = False) -> list[ast.stmt]:
    """A block with others in the place of its jumps of some kinds; loop: `break` and `continue` stay inside."""
    found: list[ast.stmt] = []
    for node in body:
        is_jump = isinstance(node, kinds) and (isinstance(node, ast.Return) or not loop)
        found += made(node) if is_jump else [node]
        if isinstance(node, OWN_SCOPE):
            continue
        inner = loop or isinstance(node, ast.For | ast.While)
        for part in (node, *getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            for name in ("body", "orelse", "finalbody"):
                block = getattr(part, name, None)
                if isinstance(block, list):
                    setattr(part, name, _in_front(block, kinds, made, loop if name == "orelse" and inner else inner))
    return found


def _unless(flag: str, body: list[ast.stmt], node: ast.stmt) -> ast.stmt:
    test = ast.copy_location(ast.UnaryOp(ast.Not(), _load(flag, node)), node)
    return ast.copy_location(ast.If(test, body, []), node)


def _if(flag: str, then: ast.stmt, node: ast.stmt) -> ast.stmt:
    return ast.copy_location(ast.If(_load(flag, node), [then], []), node)


def _names_bound(node: ast.stmt) -> frozenset[str]:
    return frozenset([part.id for part in walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)])


def _returns_nothing(body: list[ast.stmt]) -> bool:
    """Whether each `return` in it gives None."""
    found = [part for part in _own_parts(body) if isinstance(part, ast.Return)]
    return all(part.value is None or (isinstance(part.value, ast.Constant) and part.value.value is None) for part in found)


def _own_parts(body: list[Any]) -> list[ast.AST]:
    """The nodes of a block that are in no function or class of its own."""
    found: list[ast.AST] = [node for node in body if not isinstance(node, OWN_SCOPE)]
    for node in found:                             # which grows
        found += [part for part in children(node) if not isinstance(part, OWN_SCOPE)]
    return found


def _size(body: list[ast.stmt]) -> int:
    return sum(1 for part in body for _ in ast.walk(part))


def _is_left(node: ast.stmt) -> bool:
    """Whether it is a loop whose body has jumps of its own loop, or returns, or that has an `else`."""
    return isinstance(node, ast.For | ast.While) and (bool(node.orelse) or jumps(node.body))


def _load(name: str, node: ast.AST) -> ast.expr:
    return ast.copy_location(ast.Name(name, ast.Load()), node)


def _set(name: str, value: bool, node: ast.AST) -> ast.stmt:
    return _bind(name, ast.copy_location(ast.Constant(value), node), node)


def _bind(name: str, value: ast.expr, node: ast.AST) -> ast.stmt:
    return ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], value), node)
