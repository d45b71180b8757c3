"""Which arrays of a function are filled with values computed from some of its variables, according to its source alone."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from bwcompiler.frontend.source.syntax.analysis.liveness import loads, stores
from bwcompiler.frontend.source.syntax.nodes import children, walk

Names = frozenset[str]
_ABOUT = frozenset(("shape", "ndim", "size", "dtype", "nbytes"))            # attributes that say nothing of an array's elements
_ASKING = frozenset(("len", "isinstance", "type", "hasattr", "range", "zeros_like", "ones_like", "empty_like", "full_like"))


def filled(body: Sequence[ast.stmt], known: Names) -> list[ast.expr]:
    """The expressions that make arrays, to elements of which something is assigned that is computed of the variables `known`.

    So `np.zeros(n)` of `y = np.zeros(n)` where `y[k] = 2 * x` and x is known; what a known variable is used for makes others known.
    Not of arrays that are made to hold integers, which are places more often than values.  Of a variable of which only parts are known,
    an attribute or an item with a name, `known` has these (`part_of`), and `some_of`.
    """
    steps = [step for node in walk(*body) for step in _steps(node)]
    changing = True
    while changing:
        more = frozenset(name for names, read in steps if read & known for name in names) - known
        known, changing = known | more, bool(more)
    elements = frozenset(name for node in walk(*body) for name, read in _elements(node) if read & known)
    return [value for node in walk(*body) for name, value in _values(node)
            if name in elements and not isinstance(value, ast.Constant) and not _of_integers(value)]


def part_of(name: str, part: str) -> str:
    """What stands in `known` for an attribute of a variable, or an item of a dictionary."""
    return f"{name}.{part}"


def some_of(name: str) -> str:
    """What stands there for a variable of which some part is known."""
    return part_of(name, "*")


def _of_integers(value: ast.expr) -> bool:
    named = [part.id if isinstance(part, ast.Name) else part.attr for part in walk(value) if isinstance(part, ast.Name | ast.Attribute)]
    return any(name.startswith(("int", "uint", "bool")) for name in named)


def _steps(node: ast.AST) -> Iterator[tuple[Names, Names]]:
    """Per binding: the names, and what their values are computed of."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _taken_apart(target, value)
        case ast.AugAssign(target=target, value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
            yield from _taken_apart(target, value)
        case ast.NamedExpr(target=target, value=value):
            yield frozenset((target.id,)), _computed_of(value)
        case ast.For(target=target, iter=source) | ast.comprehension(target=target, iter=source):
            yield from _items(target, source)
        case _:
            pass


def _items(target: ast.expr, source: ast.expr) -> Iterator[tuple[Names, Names]]:
    """Of what a loop binds: numbers of `enumerate`, and the parts of `zip` each for itself."""
    match target, source:
        case ast.Tuple(elts=[_, item]), ast.Call(func=ast.Name(id="enumerate"), args=[inner, *_]):
            yield from _items(item, inner)
        case ast.Tuple(elts=items), ast.Call(func=ast.Name(id="zip"), args=parts) if len(items) == len(parts):
            for item, part in zip(items, parts, strict=True):
                yield from _items(item, part)
        case _:
            yield frozenset(stores([target])), _computed_of(source)


def _taken_apart(target: ast.expr, value: ast.expr) -> Iterator[tuple[Names, Names]]:
    pairs = _pairs(target, value)
    for one, of in pairs:
        base = _base(one)
        yield (frozenset(stores([one])) if base is None else frozenset((base,))), _computed_of(of)


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """`a, b = c, d` as two assignments, and so is `a[k], b[k] = f(x)`."""
    if not isinstance(target, ast.Tuple | ast.List):
        return [(target, value)]
    is_display = isinstance(value, ast.Tuple | ast.List) and len(target.elts) == len(value.elts)
    values = value.elts if is_display else [value] * len(target.elts)  # type: ignore[attr-defined]
    return [pair for one, of in zip(target.elts, values, strict=True) for pair in _pairs(one, of)]


def _elements(node: ast.AST) -> Iterator[tuple[str, Names]]:
    """Names of arrays to elements of which is assigned, and what that is computed of."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
    for target in targets:
        for one, value in _pairs(target, node.value):  # type: ignore[attr-defined]
            base = _base(one)
            if base is not None:
                yield base, _computed_of(value)


def _base(target: ast.expr) -> str | None:
    """x of `x[i]` and of `x[i][:, k]`; None of anything else."""
    inner = target
    while isinstance(inner, ast.Subscript):
        inner = inner.value
    return inner.id if isinstance(inner, ast.Name) and inner is not target else None


def _values(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Names, and the expressions that are assigned to them; the first of `x = y = ...` stands for all."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from ((one.id, of) for one, of in _pairs(target, value) if isinstance(one, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value
        case _:
            pass


def _computed_of(node: ast.AST) -> Names:
    """The names that a value is computed of: not those of which it asks the shape or the type alone."""
    return frozenset().union(*map(_names, _parts(node)))


def _names(node: ast.AST) -> Iterable[str]:
    match node:
        case ast.Attribute(value=ast.Name(id=name), attr=part):
            return name, part_of(name, part)
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(part))):
            return name, part_of(name, part)
        case _:
            found = loads(node)
            return (*found, *map(some_of, found))


def _parts(node: ast.AST) -> Iterable[ast.AST]:
    match node:
        case ast.Attribute(attr=name) if name in _ABOUT:
            return ()
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _ASKING:
            return ()
        case ast.Attribute(value=ast.Name()) | ast.Subscript(value=ast.Name(), slice=ast.Constant(value=str())):
            return (node,)
        case ast.Name() | ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return (node,)
        case _:
            return [found for part in children(node) for found in _parts(part)]
