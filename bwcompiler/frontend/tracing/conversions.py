"""What to write instead where a line asks for the numbers behind a traced value: `np.asarray(x)`, `A[0] = x`, `cdist(x, y)`, ...

Python tells which part of the user's line is being run; that expression is parsed, and the advice is about it alone.
"""

from __future__ import annotations

import ast
import dis
import linecache
import sys
from types import FrameType
from typing import NamedTuple

import numpy as np

from bwcompiler.frontend.tracing.source import is_library, is_ours

_MAKE = "make it with np.zeros_like(x), or with bwcompiler.numpy.zeros(n), which can be assigned to"
_GENERAL = "write it with NumPy's functions, which take traced arrays, or do it outside of the traced function"
_CONVERTING = ("asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "asarray_chkfinite", "require")

# SciPy's functions that have no counterpart here, and NumPy code that does the same.
_REWRITES = {
    "cdist": "np.sqrt(np.sum((x[:, None] - y[None]) ** 2, -1)), which is the Euclidean one",
    "pdist": "np.sqrt(np.sum((x[i] - x[j]) ** 2, -1)) with i, j = np.triu_indices(n, 1)",
    "cho_factor": "L = np.linalg.cholesky(a)",
    "cho_solve": "np.linalg.solve(a, b)",
    "solve_triangular": "np.linalg.solve(a, b)",
    "solve": "np.linalg.solve(a, b)",
    "inv": "np.linalg.inv(a)",
    "det": "np.linalg.det(a)",
    "norm": "np.linalg.norm(x)",
    "cholesky": "np.linalg.cholesky(a), which gives the lower factor",
    "simpson": "np.sum of the weighted samples",
    "trapezoid": "np.trapezoid(y, x)",
}


class Request(NamedTuple):
    """The expression of the user's line that is being run, and what runs it.

    node      the parsed expression, or None where there is no source.
    stores    whether it is the target of an assignment.
    library   the package that the user called (`scipy`), or "" where NumPy's or Python's own C code was called.
    """

    node: ast.expr | None
    stores: bool
    library: str


def request() -> Request:
    """What the user's innermost line asks for."""
    frame: FrameType | None = sys._getframe(1)
    library = ""
    while frame is not None and is_library(frame.f_code):
        if not is_ours(frame.f_code):
            library = str(frame.f_globals.get("__name__", "")).split(".")[0]
        frame = frame.f_back
    if frame is None:
        return Request(None, False, library)
    operation = dis.opname[frame.f_code.co_code[frame.f_lasti]]
    return Request(_expression(frame), operation in ("STORE_SUBSCR", "STORE_SLICE"), library)


def _expression(frame: FrameType) -> ast.expr | None:
    """The expression at a frame's instruction, parsed; None where the source is not at hand."""
    first, last, start, end = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    if first is None or last is None or start is None or end is None:
        return None
    lines = [linecache.getline(frame.f_code.co_filename, number).encode() for number in range(first, last + 1)]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    try:
        return ast.parse(b"(" + b"".join(lines) + b")", mode="eval").body
    except (SyntaxError, ValueError):
        return None


def array_advice() -> str:
    """The message of a traced array that was to become a concrete one."""
    asked = request()
    what, hint = _array_advice(asked)
    return f"{what}: the elements of a traced array are not known while tracing\n  hint: {hint}"


def _array_advice(asked: Request) -> tuple[str, str]:
    node = asked.node
    if isinstance(node, ast.Subscript):
        array = ast.unparse(node.value)
        entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        index = ", ".join([ast.unparse(entry) for entry in entries])
        if asked.stores:
            return f"{array}[{index}] = ... assigns a traced value to a concrete array", f"if {array} is an array, {_MAKE}"
        taken = "" if isinstance(node.slice, ast.Tuple) else f"bwcompiler.numpy.take({array}, {index}, axis=0), or "
        return (f"{array}[{index}] indexes a concrete array with a traced one",
                f"{taken}bwcompiler.numpy.array({array})[{index}]")
    if not isinstance(node, ast.Call):
        return "a concrete array is asked for", _GENERAL
    called = ast.unparse(node.func)
    name = called.rpartition(".")[2]
    arguments = ", ".join([ast.unparse(argument) for argument in (*node.args, *node.keywords)])
    text = called if len(called) < 60 else name
    if name == "__setitem__":
        return f"{text}(...) assigns a traced value to a concrete array", f"if it is an array, {_MAKE}"
    library = asked.library or called.partition(".")[0]
    if asked.library not in ("", "numpy") or library == "scipy":
        return f"{text}(...) converts its arguments to concrete arrays", _library_hint(library, called, name)
    return f"{text}(...) makes a concrete array", _numpy_hint(node, called, name, arguments)


def _library_hint(library: str, called: str, name: str) -> str:
    if library == "scipy":
        for space in ("special", "linalg", "stats", "fft", "signal"):
            module = sys.modules.get(f"bwcompiler.scipy.{space}")
            if module is not None and hasattr(module, name) and (space in called or "." not in called):
                return f"bwcompiler.scipy.{space}.{name}"
    if name in _REWRITES:
        return _REWRITES[name]
    return f"write it with NumPy's functions, or call {called} outside of the traced function"


def _numpy_hint(node: ast.Call, called: str, name: str, arguments: str) -> str:
    first = node.args[0] if node.args else None
    if name == "array" and isinstance(first, ast.List | ast.Tuple):
        return f"np.stack({ast.unparse(first)}), or bwcompiler.numpy.array({arguments}); np.array takes traced numbers, not arrays"
    if name == "array":
        return f"np.copy({arguments}), or bwcompiler.numpy.array({arguments})"
    if name in _CONVERTING:
        return f"leave np.{name} away where the argument is an array already, or bwcompiler.numpy.asarray({arguments})"
    if name == "full":
        return f"bwcompiler.numpy.full({arguments}), or np.full_like(x, ...) of a traced x"
    if name in ("arange", "fromiter"):
        return "the number of elements has to be known: bind or make static what it comes from; index with start + np.arange(n)"
    if name == "dot" and isinstance(node.func, ast.Attribute):
        return f"{ast.unparse(node.func.value)} @ {arguments}"
    if "vectorize" in called:
        return "call the function on the array itself; where it branches, np.where(condition, a, b)"
    if name in ("tensor", "Tensor", "DataFrame", "Series"):
        return "return the array from the function first"
    return f"bwcompiler.numpy.{name}({arguments})" if hasattr(sys.modules.get("bwcompiler.numpy"), name) and called.startswith(
        ("np.", "numpy.")) else _GENERAL


def number_advice(kind: str) -> str:
    """The message of a traced value that was to become a Python number of this kind (float, complex)."""
    asked = request()
    node = asked.node
    if asked.stores or (isinstance(node, ast.Call) and ast.unparse(node.func).endswith("__setitem__")):
        what, hint = _array_advice(asked)
        return f"{what}: the number behind it is not known while tracing\n  hint: {hint}"
    what, hint = f"{kind}() of a traced value", f"use NumPy's functions and leave the {kind}() away"
    if isinstance(node, ast.Call):
        called = ast.unparse(node.func)
        space, _, name = called.rpartition(".")
        if space in ("math", "cmath"):
            special = sys.modules.get("bwcompiler.scipy.special")
            better = "NumPy's function"
            if hasattr(np, name) or hasattr(special, name):
                better = f"np.{name}" if hasattr(np, name) else f"bwcompiler.scipy.special.{name}"
            what, hint = f"{called}() takes Python's numbers", f"{better} instead of {called}"
        elif called == kind:
            hint = f"leave the {kind}() away: traced values can be computed with as they are"
        elif space in ("np", "numpy") and hasattr(np, name) and isinstance(getattr(np, name), type):
            what, hint = f"{called}() makes a concrete number", f"x.astype({called}), or leave it away"
        elif name in ("full", "arange", "linspace", "array"):
            what, hint = f"{called}() asks for a number", _array_advice(asked)[1]
        else:
            what = f"{called}() asks for a number"
    return f"{what}: the number behind a traced value is not known while tracing\n  hint: {hint}"
