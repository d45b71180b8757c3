"""Checks that the arguments of a call have the structure, shapes, dtypes and layouts that a program was compiled for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.api.programs.arguments.forms import layout_of
from bwcompiler.errors import SignatureError
from bwcompiler.frontend.tracing.boundary.arguments import Arguments, foreign_dtype, unwrapped
from bwcompiler.frontend.tracing.boundary.known_arrays import contents_key
from bwcompiler.frontend.tracing.boundary.trace_result import TraceResult
from bwcompiler.ir.contracts.call_signature import Layout, same_plain


def fitting_leaves(function: str, compiled: Arguments, traced: TraceResult, layouts: Sequence[Layout], args: Sequence[Any]) -> list[Any]:
    """The dynamic leaves of a call; SignatureError if the arguments do not fit."""
    leaves, treedef = tree.flatten((tuple(args), {}))
    if treedef != compiled.treedef:
        if len(args) != len(compiled.args):
            raise SignatureError(f"{function} was compiled for {len(compiled.args)} arguments, got {len(args)}")
        raise _other_structure(function, compiled, args)
    _check_key_orders(function, compiled, args)
    for position in compiled.static:
        expected, name = compiled.leaves[position], compiled.names()[position]
        given, expected = unwrapped(leaves[position]), unwrapped(expected)
        if type(expected) is np.ndarray:
            if type(given) is not np.ndarray or contents_key(given) != contents_key(expected):
                raise SignatureError(f"{name} holds other numbers than those that the program was compiled for, which are compiled in\n"
                                     "  hint: bw.compile again for these, or bw.jit and bw.grad, which do that by themselves")
        elif not (same_plain(given, expected) or given == expected):
            raise SignatureError(f"{name} is {given!r}, but the program was compiled for {expected!r}")
    dynamic = [leaves[position] for position in compiled.dynamic]
    rows = zip(dynamic, traced.argument_types, traced.input_names, layouts, strict=True)
    for leaf, argument, name, layout in rows:
        shape, dtype = np.shape(leaf), foreign_dtype(leaf) if hasattr(leaf, "dtype") else None
        if shape != argument.type.shape or (dtype is not None and dtype.newbyteorder("=") != argument.type.dtype.numpy):
            raise SignatureError(f"{name} has shape {shape} and dtype {dtype}, but the program was compiled for shape "
                                 f"{argument.type.shape} and dtype {argument.type.dtype.numpy}\n"
                                 "  hint: bw.compile again for these, or bw.jit and bw.grad, which compile for every new kind of arguments")
        if layout is not None and layout_of(leaf) != layout:
            raise SignatureError(f"{name} has another memory layout (strides) than the program was compiled for, and what it "
                                 "computes depends on that\n  hint: pass np.ascontiguousarray(...), here and to bw.compile")
    return dynamic


def _check_key_orders(function: str, compiled: Arguments, args: Sequence[Any]) -> None:
    for place, (mine, given) in enumerate(zip(compiled.args, args, strict=True)):
        for wanted, found in zip(tree.key_orders(mine), tree.key_orders(given), strict=True):
            if wanted != found:
                raise SignatureError(f"{function}: argument {place} has a dict with the keys {list(found[0])}, but the program was "
                                     f"compiled for the order {list(wanted[0])}, in which it goes over them\n"
                                     "  hint: {key: given[key] for key in expected}; or bw.jit and bw.grad, which compile for every order")


def _other_structure(function: str, compiled: Arguments, args: Sequence[Any]) -> SignatureError:
    """The error for the first argument whose structure (array, number, container) differs from that of the compiled program."""
    expected = compiled.treedef.children()[0].children()
    found = [tree.structure(arg) for arg in args]
    place = next(k for k, (mine, given) in enumerate(zip(expected, found, strict=True)) if mine != given)
    mine, given = expected[place], found[place]
    what, wanted = ["an array or a number" if one.is_leaf() else f"{tree.treedef_text(one)} (* for arrays and numbers)"
                    for one in (given, mine)]
    hint = "np.asarray(...) of it" if mine.is_leaf() and isinstance(args[place], list | tuple) else (
        "bw.compile again for such arguments, or bw.jit and bw.grad, which compile for every new kind of them")
    return SignatureError(f"{function}: argument {place} is {what}, but the program was compiled for {wanted}\n  hint: {hint}")
