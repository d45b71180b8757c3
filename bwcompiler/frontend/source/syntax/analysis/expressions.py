"""The possible effects of statements and expressions: leaving a block, creating an array, keeping a reference to an operand."""

from __future__ import annotations

import ast
from typing import Any

from bwcompiler.frontend.source.syntax.nodes import OWN_SCOPE, children
from bwcompiler.frontend.source.syntax.notes import IS_GLOBALS, IS_TEST

RUNTIME = "__bw__"             # by which rewritten functions name what they call

HEADERS = frozenset(("range", "enumerate", "zip", "reversed", "map", "arange"))    # what loops go over may be calls of these
LEAVING = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal, ast.Delete, ast.AsyncFor, ast.AsyncWith, ast.Match)


def inside(nodes: Any) -> list[ast.AST]:
    """All nodes that run in this frame: not those of functions and classes defined in it."""
    found: list[ast.AST] = []
    stack = list(nodes)
    while stack:
        node = stack.pop()
        found.append(node)
        if not isinstance(node, OWN_SCOPE):
            stack += children(node)
    return found


def leaves(body: list[ast.stmt], is_tail: bool = False) -> bool:
    """Whether control can leave a block otherwise than at its end or by an exception, or something in it cannot be put in a function.

    is_tail: the function ends with the block, so that a `return` in it is one of the block.
    """
    def leaving(node: ast.AST) -> bool:
        return isinstance(node, LEAVING) and not (is_tail and isinstance(node, ast.Return)) and not _deletes_items(node)

    for node in body:
        if isinstance(node, ast.Break | ast.Continue) or leaving(node):
            return True
        if isinstance(node, OWN_SCOPE):
            continue
        if isinstance(node, ast.For | ast.While):
            if any(map(leaving, inside(node.body))) or leaves(node.orelse, is_tail):
                return True
        elif any(map(leaving, inside([node]))) or any(
                leaves(getattr(part, name, []), is_tail) for part in (node, *getattr(node, "handlers", ()))
                for name in ("body", "orelse", "finalbody")):
            return True
    return False


def _deletes_items(node: ast.AST) -> bool:
    """Whether it is `del x[k]`, which calls a method."""
    return isinstance(node, ast.Delete) and all(isinstance(target, ast.Subscript) for target in node.targets)


def makes(node: ast.expr | None) -> bool | tuple[Any, ...]:
    """Whether an expression may make a new array; which elements of a tuple or list do."""
    if isinstance(node, ast.Tuple | ast.List):
        return tuple(map(makes, node.elts))
    return isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare | ast.Call | ast.Subscript | ast.IfExp)


def why_kept(body: list[ast.stmt]) -> str:
    """Why a loop with this body keeps its form."""
    for part in inside(body):
        if isinstance(part, LEAVING) and not isinstance(part, ast.Return) and not _deletes_items(part):
            return f"it has `{words(part)}`"
    return "it is left from inside of `with` or `try`"


def called(node: ast.expr) -> str:
    """The name of a function that an expression calls, also of `np.arange`."""
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Attribute):
        return function.attr if function.attr == "arange" else ""
    return function.id if isinstance(function, ast.Name) else ""


_KEEPING = frozenset(("append", "insert", "setdefault", "update", "dict"))


def keeps(node: ast.Call) -> bool:
    """Whether a call keeps what it gets: it adds to a container, or makes an object of a class (by its name, as these are written)."""
    function = node.func
    name = function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    return name in _KEEPING or name[:1].isupper()


def words(node: ast.AST) -> str:
    """How a statement is written."""
    names = {ast.Delete: "del", ast.ImportFrom: "import", ast.ClassDef: "class", ast.YieldFrom: "yield from"}
    return names.get(type(node), type(node).__name__.lower())


def conjuncts(test: ast.expr) -> list[ast.expr]:
    """The parts of a test that all have to hold."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return [part for value in test.values for part in conjuncts(value)]
    return [test]


def mark_test(test: ast.expr) -> ast.expr:
    """The test: of `and` and `or` in it, and behind `not`, only whether they are true is asked, which is noted as `is_test`."""
    parts = [test]
    for part in parts:
        if isinstance(part, ast.BoolOp):
            IS_TEST.put(part, True)
            parts += part.values
        elif isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not):
            parts.append(part.operand)
    return test


def is_pure(node: ast.AST) -> bool:
    """Whether an expression can be put in a function: it binds nothing, and waits for nothing."""
    return not any(isinstance(part, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom) for part in inside([node]))


_OF_FRAMES = frozenset(("locals", "vars", "globals", "eval", "exec", "dir"))      # functions that see the frame they are called in


def sees_its_frame(scope: list[Any]) -> bool:
    """Whether a function asks for its own variables; vars(x) and dir(x) ask for those of an object."""
    others = {id(part.func) for part in inside(scope) if isinstance(part, ast.Call) and (IS_GLOBALS.of(part) or (
        part.args and isinstance(part.func, ast.Name) and part.func.id in ("vars", "dir")))}
    return any(isinstance(part, ast.Name) and part.id in _OF_FRAMES and id(part) not in others for part in inside(scope))


def length_bounds(test: ast.expr) -> list[ast.expr]:
    """How long a list may get in a loop: `while ... and len(kept) < bound`."""
    parts = conjuncts(test)
    if len(parts) > 1:
        return [bound for part in parts for bound in length_bounds(part)][:1]
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Lt | ast.LtE) or called(test.left) != "len":
        return []
    return [test.comparators[0]] if isinstance(test.comparators[0], ast.Constant | ast.Name | ast.Attribute) else []


def nesting(target: ast.expr) -> int:
    """How often what is assigned to a target is taken apart."""
    return 1 + max(map(nesting, target.elts), default=0) if isinstance(target, ast.Tuple | ast.List) else 0


def bracketed(node: ast.expr) -> ast.expr:
    """What is in brackets, as an expression."""
    if isinstance(node, ast.Tuple):
        return ast.copy_location(ast.Tuple([bracketed(part) for part in node.elts], ast.Load()), node)
    if not isinstance(node, ast.Slice):
        return node
    function = ast.Attribute(ast.Name(RUNTIME, ast.Load()), "slice", ast.Load())
    return ast.copy_location(ast.Call(function, [part or ast.Constant(None) for part in (node.lower, node.upper, node.step)], []), node)
