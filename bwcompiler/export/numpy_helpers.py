"""Helper functions in exported NumPy modules: references of ops that NumPy does not have, copied without annotations.

A function is copied with the functions and constants of this package that it uses; `np`, `math` and `itertools` are imported.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
import types
from collections.abc import Callable, Iterable
from typing import Any

from bwcompiler.errors import InternalError
from bwcompiler.ir.declaration import WITHOUT_NUMPY, is_plain_function, numpy_name
from bwcompiler.ir.op import REGISTRY
from bwcompiler.ops.numpy_text import copied_name, float_text

Function = Callable[..., Any]
MODULES = ("itertools", "math")                   # np is imported by every exported module


def helper_source(functions: Iterable[Function]) -> tuple[list[str], str]:
    """(modules to import, source) of these functions and their dependencies, callees before callers."""
    needed = _needed(sorted(functions, key=copied_name))
    modules = {name for part in needed.values() for name in part.modules}
    constants = {name: value for part in needed.values() for name, value in part.constants.items()}
    lines = ["\n    ".join(textwrap.wrap(f"{name} = {_literal(constants[name])}", 110)) for name in sorted(constants)]
    sources = [_plain_source(function) for function in needed]
    return [module for module in MODULES if module in modules], "\n\n\n".join([*(["\n".join(lines)] if lines else []), *sources])


def reserved_names() -> frozenset[str]:
    """The names that copied functions and constants may have in an exported module."""
    return _reserved(len(REGISTRY))


@functools.cache
def _reserved(count: int) -> frozenset[str]:
    """These names, while there are so many ops: more may be declared later."""
    references = [op.reference for op in REGISTRY.values()
                  if op.numpy is None and op.kind not in WITHOUT_NUMPY
                  and numpy_name(op.reference) is None and is_plain_function(op.reference)]
    needed = _needed(references)
    return frozenset(map(copied_name, needed)) | {name for part in needed.values() for name in part.constants}


class _Names:
    """The global names that a function uses."""

    def __init__(self, function: Function) -> None:
        self.functions: list[Function] = []
        self.constants: dict[str, Any] = {}
        self.modules: set[str] = set()
        around = getattr(function, "__globals__", {})
        nodes = list(ast.walk(_tree_of(function)))
        local = {node.arg for node in nodes if isinstance(node, ast.arg)}
        local |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        for name in sorted({node.id for node in nodes if isinstance(node, ast.Name)} - local):
            found = around.get(name)
            if isinstance(found, types.ModuleType):
                self.modules.add(name)
            elif isinstance(found, types.FunctionType):
                self.functions.append(found)
            elif isinstance(found, int | float | tuple):
                self.constants[name] = found
            elif found is not None:
                raise InternalError(f"{copied_name(function)} cannot be copied into NumPy source: it uses {name}, {type(found).__name__}")


def _needed(functions: Iterable[Function]) -> dict[Function, _Names]:
    """The functions and those they call, callees first."""
    found: dict[Function, _Names] = {}
    open_: set[Function] = set()

    def visit(function: Function) -> None:
        if function in found or function in open_:
            return
        open_.add(function)
        names = _names_of(function)
        for callee in names.functions:
            visit(callee)
        found[function] = names

    for function in functions:
        visit(function)
    names = [copied_name(function) for function in found]
    doubled = {name for name in names if names.count(name) > 1}
    if doubled:
        raise InternalError(f"several functions are called {', '.join(sorted(doubled))} in NumPy source")
    return found


@functools.cache
def _names_of(function: Function) -> _Names:
    return _Names(function)


@functools.cache
def _tree_of(function: Function) -> ast.FunctionDef:
    """The function without annotations, under the names it has in exported modules."""
    parsed = ast.parse(inspect.getsource(function)).body[0]
    assert isinstance(parsed, ast.FunctionDef)
    plain = _WithoutAnnotations().visit(parsed)
    assert isinstance(plain, ast.FunctionDef)
    return plain


class _WithoutAnnotations(ast.NodeTransformer):
    """Drops the annotations of a function and of its variables."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(node.arg)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        assert node.value is not None
        return ast.Assign([node.target], self.visit(node.value), lineno=node.lineno)


class _Renamed(ast.NodeTransformer):
    """Gives copied functions the names they have in exported modules."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(self.names.get(node.id, node.id), node.ctx)


def _plain_source(function: Function) -> str:
    names = {callee.__name__: copied_name(callee) for callee in _names_of(function).functions}
    tree = ast.parse(ast.unparse(_tree_of(function))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    tree.name = copied_name(function)
    return ast.unparse(_Renamed(names).visit(tree))


def _literal(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_literal, value))}{',' if len(value) == 1 else ''})"
    return float_text(value) if isinstance(value, float) else repr(value)
