"""Which integers a function surely asks for their numbers, according to its text: they are known from its first tracing on.

Else each of them would be found when it is asked for, as a size or in a test, and the function would be traced once more.  An integer
that is not surely asked for may stay an operand, for which another number needs no other program.  So only statements count that always
run: not those in loops and branches, nor what stands behind a `return` that data may decide about; but functions that are called there do.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable
from types import FunctionType
from typing import Any

import numpy as np

from bwcompiler.frontend.source.classes import is_plain_class
from bwcompiler.frontend.source.syntax.analysis.liveness import stores
from bwcompiler.frontend.source.syntax.definitions.lookup import definitions_at
from bwcompiler.frontend.source.syntax.functions import form
from bwcompiler.frontend.source.syntax.nodes import children, walk
from bwcompiler.frontend.source.variables import among
from bwcompiler.frontend.tracing.provenance.source import is_ours, is_rewritten, original_code
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.ir.source import Source

Roots = frozenset[str]                             # the integers that a number is computed of, by the names of the function's leaves

_DEEPEST = 6                                       # functions that call each other
_NOTHING: Roots = frozenset()
_SIZES: dict[Any, tuple[int | str, ...]] = {       # NumPy's functions, and which of their arguments are sizes
    np.zeros: (0, "shape"), np.ones: (0, "shape"), np.empty: (0, "shape"), np.full: (0, "shape"), np.eye: (0, 1), np.identity: (0,),
    np.linspace: (2, "num"), np.arange: (0, 1, 2)}
_ABSENT = object()


def surely_asked(fun: Any, names: Iterable[str]) -> dict[str, Source]:
    """Of integers that are arguments, or items of dictionaries that are (`params.steps`): those that are asked for, and where."""
    while type(fun) is FunctionType and is_ours(fun.__code__) and hasattr(fun, "__wrapped__"):     # what a transform traces
        fun = fun.__wrapped__
    if type(fun) is not FunctionType:
        return {}
    found: dict[str, Source] = {}
    _Reading(fun, {name: frozenset((name,)) for name in names}, found, ()).run()
    return found


HANDLERS["surely_asked"] = surely_asked


class _Reading:
    """A function that runs.  held: its variables that are integers, and of which they are computed; found: what was asked for."""

    def __init__(self, fun: FunctionType, held: dict[str, Roots], found: dict[str, Source], around: tuple[FunctionType, ...]) -> None:
        self.fun = fun
        self.held = held
        self.found = found
        self.around = (*around, fun)
        self.stored: frozenset[str] = frozenset()

    def run(self) -> None:
        code = self.fun.__code__
        original = original_code(code) if is_rewritten(code) else code if form(self.fun).is_known else None
        nodes = [] if original is None else definitions_at(original)
        if len(nodes) != 1 or not isinstance(nodes[0], ast.FunctionDef):
            return
        node = nodes[0]
        if any(isinstance(part, ast.Global | ast.Nonlocal | ast.Yield | ast.YieldFrom | ast.Await) for part in walk(*node.body)):
            return
        given = node.args
        self.stored = frozenset(stores(node.body)) | {
            one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg)))}
        self.block(node.body)

    # ----- statements
    def block(self, body: Iterable[ast.stmt]) -> bool:
        """Whether what comes behind these statements runs surely, too."""
        return all(self.statement(node) for node in body)

    def statement(self, node: ast.stmt) -> bool:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self.visit(value)
                roots = self.integer(value)
                self.forget([node])
                if roots is not None:
                    self.held[name] = roots
                return True
            case ast.Assign(value=value) | ast.AugAssign(value=value) | ast.Expr(value=value):
                self.visit(value)
            case ast.Return(value=value):
                self.visit(value)
                return False
            case ast.Assert(test=test):
                self.test(test)
            case ast.With(items=items, body=body):
                for item in items:
                    self.visit(item.context_expr)
                return self.block(body)
            case ast.If(test=test, body=body, orelse=orelse):
                self.test(test)
                return self.behind(node, [] if not orelse and isinstance(body[-1], ast.Raise) else [*body, *orelse])
            case ast.While(test=test, body=body):
                self.forget([node])
                self.test(test)
                return self.behind(node, body)
            case ast.For(iter=source, body=body):
                self.visit(source)
                return self.behind(node, body)
            case ast.FunctionDef() | ast.Pass() | ast.Import() | ast.ImportFrom():
                pass
            case _:
                return False
        self.forget([node])
        return True

    def behind(self, node: ast.stmt, body: Iterable[ast.stmt]) -> bool:
        """Whether what comes behind a loop or branch runs surely: not where its statements may leave the function."""
        self.forget([node])
        return not any(isinstance(part, ast.Return | ast.Raise) for part in walk(*body))

    def forget(self, nodes: list[Any]) -> None:
        """Variables that are bound there hold something else now, and those whose items are assigned to may."""
        holders = [part.value for part in walk(*nodes) if isinstance(part, ast.Subscript | ast.Attribute) and not isinstance(
            part.ctx, ast.Load)]
        for name in (*stores(nodes), *[one.id for one in holders if isinstance(one, ast.Name)]):
            for one in [one for one in self.held if one == name or one.startswith(f"{name}.")]:
                del self.held[one]

    # ----- expressions
    def visit(self, node: ast.AST | None) -> None:
        """What is asked for when an expression is evaluated."""
        match node:
            case None | ast.Lambda():
                return
            case ast.Call():
                for part in children(node):
                    self.visit(part)
                self.call(node)
            case ast.IfExp(test=test):
                self.test(test)
            case ast.BoolOp(values=[first, *_]):
                self.test(first)
            case ast.Compare(left=left, comparators=[first, *_]):
                self.visit(left)
                self.visit(first)
            case ast.Subscript(value=value, slice=index, ctx=ast.Load()):
                self.visit(value)
                self.visit(index)
                self.bounds(index)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self.visit(node.generators[0].iter)
            case _:
                for part in children(node):
                    self.visit(part)

    def bounds(self, index: ast.expr) -> None:
        """Of slices that have one bound: it says how long they are."""
        for one in index.elts if isinstance(index, ast.Tuple) else [index]:
            if isinstance(one, ast.Slice) and one.step is None and (one.lower is None) != (one.upper is None):
                self.ask(*filter(None, (one.lower, one.upper)))

    def call(self, node: ast.Call) -> None:
        function = self.value(node.func)
        if any(isinstance(one, ast.Starred) for one in node.args) or any(one.arg is None for one in node.keywords):
            return
        if function is builtins.range:
            self.ask(*node.args)
        elif among(function, _SIZES):
            places = _SIZES[function]
            sizes = [one for place, one in enumerate(node.args) if place in places]
            self.ask(*sizes, *[one.value for one in node.keywords if one.arg in places])
        elif type(function) is FunctionType:
            self.enter(function, node, ())
        elif isinstance(function, type) and is_plain_class(function) and type(function.__dict__.get("__init__")) is FunctionType:
            self.enter(function.__dict__["__init__"], node, (None,))

    def enter(self, function: FunctionType, node: ast.Call, before: tuple[None, ...]) -> None:
        """A function of the user's that is called, with integers among its arguments."""
        code = function.__code__
        names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
        given = [*zip(names[:code.co_argcount], (*before, *node.args), strict=False), *[(one.arg, one.value) for one in node.keywords]]
        known: dict[str, Roots] = {}
        for name, value in [(str(name), value) for name, value in given if value is not None and name in names]:
            roots = self.integer(value)
            if roots is not None:
                known[name] = roots
            elif isinstance(value, ast.Name):
                parts = [one for one in self.held if one.startswith(f"{value.id}.")]
                known.update({name + one.removeprefix(value.id): self.held[one] for one in parts})
        if any(known.values()) and len(self.around) < _DEEPEST and function not in self.around:
            _Reading(function, known, self.found, self.around).run()

    def test(self, node: ast.expr) -> None:
        """What decides about a branch, of which nothing but integers is part: then it is decided while tracing."""
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self.test(operand)
            case ast.BoolOp(values=[first, *_]):
                self.test(first)
            case ast.Compare(left=left, ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE() | ast.Eq() | ast.NotEq()], comparators=[right]):
                self.visit(left)
                self.visit(right)
                if self.integer(left) is not None and self.integer(right) is not None:
                    self.ask(left, right)
            case _:
                self.visit(node)
                self.ask(node)

    def ask(self, *nodes: ast.expr) -> None:
        """Numbers are asked for, if these are computed of nothing but integers."""
        for node in nodes:
            if isinstance(node, ast.Tuple | ast.List):
                self.ask(*node.elts)
                continue
            place = Source(self.fun.__code__.co_filename, node.lineno, node.col_offset, self.fun.__name__)
            for root in self.integer(node) or ():
                self.found.setdefault(root, place)

    def integer(self, node: ast.expr) -> Roots | None:
        """Of which integers a number is computed; None of anything that is not computed of such numbers alone."""
        match node:
            case ast.Constant(value=int()):
                return _NOTHING
            case ast.Name(id=name):
                return self.held.get(name)
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key))):
                return self.held.get(f"{name}.{key}")
            case ast.Attribute(value=ast.Name(id=name), attr=key):
                return self.held.get(f"{name}.{key}")
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
                return self.integer(operand)
            case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv() | ast.Mod(), left=left, right=right):
                first, second = self.integer(left), self.integer(right)
                return None if first is None or second is None else first | second
            case ast.Call(func=ast.Name(id="len"), args=[_], keywords=[]) if self.value(node.func) is len:
                return _NOTHING
            case ast.Subscript(value=ast.Attribute(attr="shape"), slice=ast.Constant(value=int())):
                return _NOTHING
            case _:
                return None

    def value(self, node: ast.expr) -> Any:
        """What a name stands for that is no variable of the function, or an attribute of a module."""
        if isinstance(node, ast.Attribute):
            return getattr(np, node.attr, None) if self.value(node.value) is np else None
        if not isinstance(node, ast.Name) or node.id in self.stored:
            return None
        cells = dict(zip(self.fun.__code__.co_freevars, self.fun.__closure__ or (), strict=True))
        if node.id in cells:
            try:
                return cells[node.id].cell_contents
            except ValueError:
                return None
        found = self.fun.__globals__.get(node.id, _ABSENT)
        return getattr(builtins, node.id, None) if found is _ABSENT else found
