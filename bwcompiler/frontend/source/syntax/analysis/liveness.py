"""Which variables of a function are read later: at the head of each loop, and after each loop and branch.

`annotate` notes `live_out` (names that may be read after the statement) to loops, branches, `try` and `del`, `live_head` (names that an
iteration may read from the one before it) to loops, and `live_caught` (names that may be read where it has failed) to `try`.  Names that
inner functions read are live everywhere.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable

from bwcompiler.frontend.source.syntax.nodes import children, walk
from bwcompiler.frontend.source.syntax.notes import FLAG, LIVE_CAUGHT, LIVE_HEAD, LIVE_OUT

Names = frozenset[str]
_NONE: Names = frozenset()
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def annotate(body: list[ast.stmt]) -> Names:
    """Of all statements of a function's body; the names that it binds and may read before."""
    everywhere = frozenset(name for node in walk(*body) if isinstance(node, _FUNCTIONS) for name in _free(node))
    others = frozenset(name for node in walk(*body) if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names)
    return (_Liveness(everywhere).block(body, everywhere) & frozenset(stores(body))) - others


def live_behind(body: list[ast.stmt]) -> dict[ast.stmt, Names]:
    """Of the statements of a function's body that are no others' parts in a `match`: which names may be read behind them."""
    everywhere = _NONE.union(*[_free(node) for node in walk(*body) if isinstance(node, _FUNCTIONS)])
    walked = _Behind(everywhere)
    walked.block(body, everywhere)
    return walked.behind


def loads(node: ast.AST | None) -> Names:
    """The names that are read anywhere in it, but for those that functions and comprehensions in it bind themselves."""
    found: set[str] = set()
    stack = [] if node is None else [node]
    while stack:
        part = stack.pop()
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            found.add(part.id)
        if isinstance(part, _FUNCTIONS):
            found |= _free(part)
            stack += [*part.args.defaults, *filter(None, part.args.kw_defaults), *getattr(part, "decorator_list", ())]
        elif isinstance(part, _COMPREHENSIONS):
            found |= _free_in_comprehension(part)
            stack.append(part.generators[0].iter)
        else:
            stack += children(part)
    return frozenset(found)


def _free(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Names:
    """The names that a function reads of those around it; its own name, by which it calls itself, is bound whenever it runs."""
    given = node.args
    bound = {arg.arg for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg)))}
    body = [node.body] if isinstance(node, ast.Lambda) else node.body
    outer = {name for one in walk(*body) if isinstance(one, ast.Nonlocal) for name in one.names}
    bound |= set(stores(body)) - outer
    return _NONE.union(*map(loads, body)) - bound - {getattr(node, "name", "")}


def _free_in_comprehension(node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> Names:
    """The names that it reads of those around it, but for what it goes over: that is read where the comprehension stands."""
    results = [part for part in children(node) if not isinstance(part, ast.comprehension)]
    inside = [*results, *[part.iter for part in node.generators[1:]], *[test for part in node.generators for test in part.ifs],
              *[part.target for part in node.generators]]
    return _NONE.union(*map(loads, inside)) - frozenset(stores([part.target for part in node.generators]))


def stores(nodes: Iterable[ast.AST]) -> list[str]:
    """The names that statements bind in the function they are in, in order."""
    found: dict[str, None] = {}
    stack: list[ast.AST] = list(nodes)[::-1]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found[node.id] = None
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = None
            continue
        elif isinstance(node, ast.Lambda):
            continue
        elif isinstance(node, _COMPREHENSIONS):
            found.update(dict.fromkeys(part.target.id for part in walk(node) if isinstance(part, ast.NamedExpr)))
            continue
        elif isinstance(node, ast.alias):
            found[(node.asname or node.name).partition(".")[0]] = None
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found[node.name] = None
        stack += children(node)[::-1]
    return list(found)


def changed(nodes: Iterable[ast.AST]) -> list[str]:
    """The names of what statements always assign to elements of, in order: of `x` in `x[k] = y` and in `x[i][:, k] += y`."""
    found: dict[str, None] = {}
    stack = list(nodes)[::-1]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            inner: ast.AST = node
            while isinstance(inner, ast.Subscript):
                inner = inner.value
            if isinstance(inner, ast.Name):
                found[inner.id] = None
        if not isinstance(node, ast.If | ast.Match | ast.Try | ast.FunctionDef):
            stack += children(node)[::-1]
    return list(found)


_AS_IT_IS = frozenset(("asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "require"))       # an array that is one already


def rebound(nodes: Iterable[ast.AST], flags: str) -> list[str]:
    """The names that statements always bind, each time, to what is computed then: `y` of `y = y + dt * f(y)`; of `new = f(y)`, `y = new`.

    Also those behind a `break`, which are a side of a branch here; the other one sets a variable whose name begins with `flags`.
    """
    found: dict[str, None] = {}
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                found.update(dict.fromkeys(_bound_anew(target, node.value, found)))
        elif isinstance(node, ast.If) and node.orelse:
            sides = [side for side in (node.body, node.orelse) if not all(_sets_flag(one, flags) for one in side)]
            found.update(dict.fromkeys(rebound(sides[0], flags) if len(sides) == 1 else []))
    return list(found)


def _sets_flag(node: ast.stmt, flags: str) -> bool:
    return isinstance(node, ast.Assign) and all(isinstance(one, ast.Name) and one.id.startswith(flags) for one in node.targets)


def _bound_anew(target: ast.expr, value: ast.expr, found: Container[str]) -> list[str]:
    """found: names that were bound anew before."""
    if isinstance(target, ast.Tuple | ast.List):
        is_display = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
        values = value.elts if is_display else [value] * len(target.elts)  # type: ignore[attr-defined]
        return [name for one, of in zip(target.elts, values, strict=True) for name in _bound_anew(one, of, found)]
    if isinstance(value, ast.Call):
        is_new = getattr(value.func, "attr", getattr(value.func, "id", "")) not in _AS_IT_IS
    else:
        is_new = isinstance(value, ast.BinOp | ast.UnaryOp) or (isinstance(value, ast.Name) and value.id in found)
    return [target.id] if is_new and isinstance(target, ast.Name) else []


class _Liveness:
    """A walk from the end of a block to its beginning."""

    def __init__(self, everywhere: Names) -> None:
        self.everywhere = everywhere
        self.loops: list[tuple[Names, Names]] = []       # of each loop around: live at its head, live behind it
        self.handlers: Names = _NONE                     # live where exceptions are handled

    def block(self, body: list[ast.stmt], out: Names) -> Names:
        for node in reversed(body):
            out = self.statement(node, out | self.handlers) | self.everywhere
        return out

    def statement(self, node: ast.stmt, out: Names) -> Names:
        """The names live before a statement, from those live behind it."""
        match node:
            case ast.Return() | ast.Raise():
                return loads(node) | self.handlers
            case ast.Break():
                return self.loops[-1][1]
            case ast.Continue():
                return self.loops[-1][0]
            case ast.For() | ast.While():
                return self._loop(node, out)
            case ast.If():
                LIVE_OUT.put(node, out)
                return loads(node.test) | self.block(node.body, out) | self.block(node.orelse, out)
            case ast.Delete(targets=targets):
                LIVE_OUT.put(node, out)
                return out | loads(node) | frozenset(target.id for target in targets if isinstance(target, ast.Name))
            case ast.Assign(targets=targets):
                killed = frozenset(target.id for target in targets if isinstance(target, ast.Name))
                return (out - killed - _unpacked(targets)) | loads(node)
            case ast.AugAssign(target=ast.Name(id=name)):
                return out | loads(node) | {name}
            case ast.AnnAssign(target=ast.Name(id=name), value=value):
                return (out - {name} if value is not None else out) | loads(value)
            case ast.With(items=items, body=body):
                inside = self.block(body, out)
                return inside | frozenset(name for item in items for name in loads(item))
            case ast.Try():
                return self._try(node, out)
            case ast.FunctionDef():
                around = [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]
                return (out - {node.name}) | _free(node) | frozenset().union(*map(loads, around))
            case ast.ClassDef():
                return (out - {node.name}) | loads(node)
            case _:
                return out | loads(node)

    def _loop(self, node: ast.For | ast.While, out: Names) -> Names:
        LIVE_OUT.put(node, out)
        after = self.block(node.orelse, out)
        read, bound, placed = loads(getattr(node, "test", None)), _NONE, _NONE
        if isinstance(node, ast.For):
            bound = frozenset(stores([node.target]))
            placed = loads(node.target)                  # of `for A[k] in ...`
            read |= {flag} if (flag := FLAG.of(node)) is not None else _NONE
        again: Names = read
        for _ in range(2):                               # the second round sees what the first found at the head
            self.loops.append((after | again, out))
            again = read | placed | (self.block(node.body, after | again) - bound)
            self.loops.pop()
        LIVE_HEAD.put(node, again)
        return after | again | loads(getattr(node, "iter", None))

    def _try(self, node: ast.Try, out: Names) -> Names:
        final = self.block(node.finalbody, out)
        LIVE_OUT.put(node, final)
        caught = frozenset(name for handler in node.handlers for name in self.block(handler.body, final) | loads(handler.type))
        caught |= self.block(node.finalbody, self.handlers)            # for what no handler here is for
        LIVE_CAUGHT.put(node, caught)
        outside, self.handlers = self.handlers, self.handlers | caught
        inside = self.block(node.body, self.block(node.orelse, final))
        self.handlers = outside
        return inside | caught


class _Behind(_Liveness):
    """Keeps what is live behind each statement; of those in loops what was found last, and most."""

    def __init__(self, everywhere: Names) -> None:
        super().__init__(everywhere)
        self.behind: dict[ast.stmt, Names] = {}

    def statement(self, node: ast.stmt, out: Names) -> Names:
        self.behind[node] = out
        return super().statement(node, out)


def _unpacked(targets: Iterable[ast.expr]) -> Names:
    """The names that are certainly bound by assigning to targets."""
    return frozenset(name for target in targets if isinstance(target, ast.Tuple | ast.List) for name in stores([target])) | frozenset(
        target.id for target in targets if isinstance(target, ast.Name))
