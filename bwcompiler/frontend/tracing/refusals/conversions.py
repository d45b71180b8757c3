"""Advice for lines that ask for the numbers behind a traced value: `np.asarray(x)`, `A[0] = x`, `cdist(x, y)`, ...

Python tells which part of the user's line is running; that expression is parsed, and the advice is about it alone.
"""

from __future__ import annotations

import ast
import dis
import linecache
import sys
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from bwcompiler import lazy
from bwcompiler.frontend.tracing.provenance.source import calls_users, is_library, is_ours, is_rewritten, positions_of

_MAKE = "if {0} is an array, make it with np.zeros_like(x), or with bwcompiler.numpy.zeros(n), which can be assigned to"
_COPY = ("{0} comes from outside of the function, or others have it, too: write to a copy, made with {0}.copy(), or to an array that is "
         "made in the function (np.zeros_like(x), np.zeros(n))")
_OBJECTS = ("np.array([...]) of traced numbers is to NumPy an array of Python objects: make it with bwcompiler.numpy.array([...]), "
            "or np.stack([...])")
_UNREAD = ("\n  note: the text of {0} is not at hand (exec, a program from a pipe): in a file, a notebook or at the prompt its "
           "loops and branches are captured, and its arrays take traced values")
_WATCHED = ("\n  note: loops and branches of this function are not captured, nor the arrays that it makes, since it calls {0}(), which may "
            "read and change any of its variables: call it in another function")
_GENERAL = "write it with NumPy's functions, which take traced arrays, or do it outside of the traced function"
_CONVERTING = ("asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "asarray_chkfinite", "require")

_FRAMES = ("pandas", "polars", "xarray")
_FRAME_HINT = "take the arrays out first, frame[name].to_numpy(): traced arrays go with arrays of NumPy"

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

_SPACES = ("special", "linalg", "stats", "signal", "integrate", "fft", "optimize", "interpolate")   # of bwcompiler.scipy, in this order

# Functions of the module math that NumPy has under another name.
_NOT_MATH = {"fsum": "np.sum", "dist": "np.linalg.norm of the difference", "lgamma": "bwcompiler.scipy.special.gammaln",
             "comb": "bwcompiler.scipy.special.binom"}

# Python's own functions that ask for the truth of what they compare.
_TRUTH_FUNCTIONS = {"any": "np.any({})", "all": "np.all({})", "sorted": "np.sort({})", "bool": "leave the bool() away"}


class Request(NamedTuple):
    """The expression of the user's line that is being run, and what runs it.

    node      the parsed expression (or `a += b`), or None where there is no source.
    stores    whether it is the target of an assignment.
    library   the package that the user called (`scipy`), or "" where NumPy's or Python's own C code was called.
    operation the name of Python's instruction.
    keyword   the first word of the line (`while`, `assert`), or `raise` (`_keyword`).
    function  what is called, if that is a plain name.
    captured  whether it is code that was captured from source, in which arrays that the function makes take traced values.
    unread    the function of which the text is not at hand, so that neither it nor what it calls could be captured; "" where there is none.
    watched   a function that sees the variables of its caller, and is called there, so that the code could not be captured.
    """

    node: ast.expr | ast.AugAssign | None
    stores: bool
    library: str
    operation: str = ""
    keyword: str = ""
    function: Any = None
    captured: bool = False
    unread: str = ""
    watched: str = ""

    @property
    def note(self) -> str:
        """The last line of the message."""
        return _UNREAD.format(self.unread) if self.unread else _WATCHED.format(self.watched) if self.watched else ""

    def writable(self, array: str) -> str:
        """What to write so that an array takes traced values."""
        return (_COPY if self.captured else _MAKE).format(array)


def request() -> Request:
    """What the user's innermost line asks for."""
    frame: FrameType | None = sys._getframe(1)
    library = ""
    while frame is not None and is_library(frame.f_code):
        if not is_ours(frame.f_code):
            library = str(frame.f_globals.get("__name__", "")).split(".")[0]
        frame = frame.f_back
    return Request(None, False, library) if frame is None else request_of(frame, library)


def request_of(frame: FrameType, library: str = "") -> Request:
    """What the line that this frame is at asks for."""
    operation, node, captured = dis.opname[frame.f_code.co_code[frame.f_lasti]], _expression(frame), is_rewritten(frame.f_code)
    return Request(node, operation in ("STORE_SUBSCR", "STORE_SLICE"), library, operation, _keyword(frame), _function(frame, node),
                   captured, "" if captured else _unread(frame), "" if captured else _seeing_frames(frame.f_code))


def _seeing_frames(code: CodeType) -> str:
    """The name of a function that a code calls, and which sees the frame it is called in."""
    names = ("locals", "globals", "eval", "exec")
    return next((one.argval for one in dis.get_instructions(code) if one.argval in names and one.opname == "LOAD_GLOBAL"), "")


def _unread(frame: FrameType) -> str:
    """The function of a frame, or the last one of those that led to its call, of which the text is not at hand."""
    around: FrameType | None = frame
    while around is not None and not calls_users(around.f_code):
        if not is_library(around.f_code) and not is_rewritten(around.f_code) and not _has_text(around):
            return "this function" if around is frame else f"{around.f_code.co_name}(), which led to this call,"
        around = around.f_back
    return ""


def _has_text(frame: FrameType) -> bool:
    """Whether there is a line for it: what Python 3.13 keeps as "<string>" is the program behind -c, whatever else `exec` was given."""
    file = frame.f_code.co_filename
    return file != "<string>" and bool(linecache.getline(file, frame.f_lineno))


def _function(frame: FrameType, node: ast.AST | None) -> Any:
    """What a call in this frame calls by a plain name, such as `f`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    return frame.f_locals.get(node.func.id, frame.f_globals.get(node.func.id))


def _keyword(frame: FrameType) -> str:
    """The first word of a frame's line; `raise` where it decides whether the next line raises."""
    line, following = (linecache.getline(frame.f_code.co_filename, frame.f_lineno + k).split() for k in (0, 1))
    return "raise" if line[:1] == ["if"] and "raise" in (*line, *following[:1]) else line[0] if line else ""


def _expression(frame: FrameType) -> ast.expr | ast.AugAssign | None:
    """The expression or augmented assignment at a frame's instruction, parsed; None where the source is not at hand."""
    first, last, start, end = positions_of(frame.f_code)[frame.f_lasti // 2]
    if first is None or last is None or start is None or end is None:
        return None
    lines = [linecache.getline(frame.f_code.co_filename, number).encode() for number in range(first, last + 1)]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    text = b"".join(lines)
    if not text:
        return None
    try:
        return ast.parse(b"(" + text + b")", mode="eval").body
    except (SyntaxError, ValueError):
        pass
    try:
        statements = ast.parse(text).body
    except (SyntaxError, ValueError):
        return None
    return statements[0] if len(statements) == 1 and isinstance(statements[0], ast.AugAssign) else None


def array_advice(truths: bool = False) -> str:
    """The message of a traced array, of booleans or of numbers, that was to become a concrete one."""
    asked = request()
    what, hint = _array_advice(asked, truths)
    return f"{what}: the elements of a traced array are not known while tracing\n  hint: {hint}{asked.note}"


def _array_advice(asked: Request, truths: bool = False) -> tuple[str, str]:
    node = asked.node
    if asked.library in _FRAMES and node is not None and not asked.stores:
        return f"{ast.unparse(node)} is computed by {asked.library}, which makes a concrete array of a traced one", _FRAME_HINT
    if isinstance(node, ast.Subscript):
        array = ast.unparse(node.value)
        name = array.rpartition(".")[2]
        entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        index = ", ".join([ast.unparse(entry) for entry in entries])
        if asked.stores:
            return f"{array}[{index}] = ... assigns a traced value to a concrete array", asked.writable(array)
        if name in ("r_", "c_"):
            return f"{array}[...] makes a concrete array", f"bwcompiler.numpy.{name}[{index}], or np.concatenate, np.column_stack"
        if truths:
            return (f"{array}[{index}] selects from a concrete array by a traced mask",
                    f"where it is reduced, bwcompiler.numpy.array({array})[{index}]; else np.where({index}, ..., 0), whose shape is known")
        taken = "" if isinstance(node.slice, ast.Tuple) else f"bwcompiler.numpy.take({array}, {index}, axis=0), or "
        return (f"{array}[{index}] indexes a concrete array with a traced one",
                f"{taken}bwcompiler.numpy.array({array})[{index}]")
    if isinstance(node, ast.BinOp) and asked.library == "scipy":
        return (f"{ast.unparse(node)} of a sparse matrix makes a concrete array",
                "np.bincount(rows, data * x[columns], minlength=n) of its coordinates, or its toarray(), if that is small")
    if not isinstance(node, ast.Call):
        if asked.stores:
            return "a traced value is assigned to a concrete array", asked.writable("it")
        return "a concrete array is asked for", _GENERAL
    function = _named_function(node.func)
    called, name = ast.unparse(function), ast.unparse(function).rpartition(".")[2]
    arguments = ", ".join([ast.unparse(argument) for argument in (*node.args, *node.keywords)])
    text = called if len(called) < 60 else name
    if name == "__setitem__":
        return f"{text}(...) assigns a traced value to a concrete array", asked.writable("it")
    if called.startswith(("np.random.", "numpy.random.")) or callable(getattr(np.random.Generator, name, None)):
        return (f"{text}(...) draws random numbers with a traced parameter",
                "draw standard ones outside, pass them as an argument, and scale them here (mean + sigma * z); or use bw.random with a key")
    if str(getattr(asked.function, "__module__", "")).startswith("numpy.ma") or ".ma." in f".{called}":
        return (f"{text}(...) makes a masked array of a traced one",
                "the mask by itself, good = np.isfinite(x): x[good], np.where(good, x, 0.0), np.mean(x, where=good)")
    library = asked.library or called.partition(".")[0]
    if asked.library not in ("", "numpy") or library == "scipy":
        return f"{text}(...) converts its arguments to concrete arrays", _library_hint(library, called, name, asked.function)
    return f"{text}(...) makes a concrete array", _numpy_hint(node, called, name, arguments)


def _named_function(function: ast.expr) -> ast.expr:
    """What is called by its name: `interpolate.CubicSpline` of `interpolate.CubicSpline(x, y)(z)`."""
    while isinstance(function, ast.Call | ast.Subscript):
        function = function.func if isinstance(function, ast.Call) else function.value
    return function


def _public_name(function: Any) -> list[str]:
    """`["special", "erf"]` of a function or object of SciPy's, which the user may call otherwise; nothing for what is not SciPy's."""
    owner = function if hasattr(function, "__name__") else type(function)
    package, *space = str(getattr(owner, "__module__", "")).split(".")[:2]
    if isinstance(function, np.ufunc):
        return [function.__name__]
    return [*space, owner.__name__] if package == "scipy" else []


def _counterpart(parts: list[str]) -> str:
    """Where bwcompiler.scipy has a function that is called `scipy.linalg.norm`, `stats.norm.cdf` or `norm.cdf`; "" where it has not."""
    for space in _SPACES:
        path = parts[parts.index(space) + 1:] if space in parts else parts if len(parts) == 1 or space == "stats" else []
        found = getattr(lazy.stand_in("scipy"), space) if path else None
        for part in path:
            found = getattr(found, part, None)
        if found is not None:
            return ".".join([space, *path])
    return ""


def _library_hint(library: str, called: str, name: str, function: Any = None) -> str:
    parts = called.split(".")
    if function is not None:
        parts = _public_name(function)
        name = parts[-1] if parts else ""
    if library == "scipy":
        counterpart = _counterpart(parts)
        if counterpart:
            return f"bwcompiler.scipy.{counterpart}"
    for known in (".".join(called.split(".")[-2:]), name):
        if known in _REWRITES:
            return _REWRITES[known]
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
    if name == "ndenumerate":
        return f"for index in np.ndindex({arguments}.shape), and {arguments}[index]"
    if name == "dot" and isinstance(node.func, ast.Attribute):
        return f"{ast.unparse(node.func.value)} @ {arguments}"
    if name == "as_strided":
        return f"np.lib.stride_tricks.sliding_window_view({ast.unparse(first) if first else ''}, n)[::step], or np.broadcast_to"
    if "vectorize" in called:
        return "call the function on the array itself; where it branches, np.where(condition, a, b)"
    if name in ("matrix", "asmatrix", "bmat"):
        return (f"{'np.block' if name == 'bmat' else 'np.atleast_2d'}({arguments}), an array: A @ B for the product A * B of matrices, "
                "np.linalg.inv(A) for A.I, A.conj().T for A.H, A.ravel() for A.A1, x[:, None] for a column")
    if name in ("tensor", "Tensor", "DataFrame", "Series"):
        return "return the array from the function first"
    if called not in (f"np.{name}", f"numpy.{name}"):                                       # np.polynomial.polynomial.polyval is another
        return _GENERAL
    numpy, ours = getattr(np, name, None), getattr(lazy.stand_in("numpy"), name, None)
    if isinstance(numpy, type) and issubclass(numpy, np.generic):
        return f"x.astype({called})"
    return f"bwcompiler.numpy.{name}({arguments})" if ours is not numpy else _GENERAL


def output_advice(name: str) -> str:
    """The message of a concrete array that NumPy's function is to write a traced result into."""
    asked = request()
    node = asked.node
    if isinstance(node, ast.AugAssign):
        target = ast.unparse(node.target)
        if asked.captured:
            return f"{ast.unparse(node)} changes a concrete array, but the result is traced\n  hint: {asked.writable(target)}"
        return (f"{ast.unparse(node)} changes a concrete array, but the result is traced\n"
                f"  hint: {target} = {target} + ... and so on, or make {target} with np.zeros_like(x) of a traced x, "
                "or with bwcompiler.numpy.zeros(n), zeros_like(A), array(A)")
    return (f"np.{name}: out= is a concrete array, but the result is traced\n"
            f"  hint: leave out= away and use the result, or make the array with np.zeros_like(x) or bwcompiler.numpy.zeros(n){asked.note}")


def index_advice() -> str:
    """The message of a traced value that was to become a Python integer: a size, an axis, a position."""
    asked = request()
    if isinstance(asked.node, ast.Subscript) and isinstance(asked.node.slice, ast.Slice) and not asked.stores:
        return _slice_advice(asked.node, asked.node.slice)
    if isinstance(asked.node, ast.Subscript) and not asked.stores:
        what, hint = _array_advice(asked)
        return f"{what}: the position is not known while tracing\n  hint: {hint}; index an array instead of a list"
    if isinstance(asked.node, ast.BinOp) and isinstance(asked.node.op, ast.Mult):
        return (f"{ast.unparse(asked.node)} multiplies a text or another sequence by a traced value: how often to repeat it is not known "
                "while tracing\n  hint: numbers in a sequence become an array by np.array(...); texts do not compute")
    if isinstance(asked.node, ast.Call) and (better := _with_all_operands(asked.node)):
        return f"{ast.unparse(asked.node.func)}(...): the second argument is an axis, not an operand\n  hint: {better}"
    return ("a traced value as a size, axis, range() or list index: the number is not known while tracing\n"
            "  hint: pass the number as a Python int, index an array instead of a list, or loop with bw.fori_loop(0, n, body, init)"
            + asked.note)


def _with_all_operands(node: ast.Call) -> str:
    """`np.maximum(a, b)` for `np.max(a, b)`, `np.stack([a, b])` for `np.stack(a, b)`; "" for what is no such mistake."""
    space, _, name = ast.unparse(node.func).rpartition(".")
    if space not in ("np", "numpy") or len(node.args) < 2 or node.keywords:
        return ""
    arguments = ", ".join([ast.unparse(argument) for argument in node.args])
    if name in ("max", "min") and len(node.args) == 2:
        return f"np.{name}imum({arguments})"
    return f"np.{name}([{arguments}])" if name in ("concatenate", "stack") else ""


def _slice_advice(node: ast.Subscript, part: ast.Slice) -> str:
    start = ast.unparse(part.lower) if part.lower is not None else "0"
    return (f"{ast.unparse(node)} is a slice with a traced bound: how many elements it has is not known while tracing\n"
            f"  hint: {ast.unparse(node.value)}[{start} + np.arange(n)], where n is the number of elements")


def number_advice(kind: str) -> str:
    """The message of a traced value that was to become a Python number of this kind (float, complex)."""
    asked = request()
    node = asked.node
    if asked.stores or (isinstance(node, ast.Call) and ast.unparse(node.func).endswith("__setitem__")):
        what, hint = _array_advice(asked)
        return f"{what}: the number behind it is not known while tracing\n  hint: {hint}{asked.note}"
    what, hint = f"{kind}() of a traced value", f"use NumPy's functions and leave the {kind}() away"
    if isinstance(node, ast.Call):
        called = ast.unparse(node.func)
        space, _, name = called.rpartition(".")
        if space in ("math", "cmath"):
            better = _NOT_MATH.get(name, "NumPy's function")
            if hasattr(np, name) or hasattr(lazy.stand_in("scipy").special, name):
                better = f"np.{name}" if hasattr(np, name) else f"bwcompiler.scipy.special.{name}"
            what, hint = f"{called}() takes Python's numbers", f"{better} instead of {called}"
        elif asked.library == "scipy" or space.partition(".")[0] == "scipy":
            what, hint = f"{called}() asks for a number", _library_hint("scipy", called, name, asked.function)
        elif called == kind:
            hint = f"drop the {kind}(): a traced value takes part in computations as it is"
        elif space in ("np", "numpy") and hasattr(np, name) and isinstance(getattr(np, name), type):
            what, hint = f"{called}() makes a concrete number", f"x.astype({called}), or leave it away"
        elif name in ("full", "arange", "linspace", "array"):
            what, hint = f"{called}() asks for a number", _array_advice(asked)[1]
        elif kind == "float" and (space in ("np", "numpy") or isinstance(node.func, ast.Attribute)):
            what, hint = f"{called}() asks for a number", _objects_hint(node, called)
        else:
            what = f"{called}() asks for a number"
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        hint = 'an f-string, f"{x}", says what is known while tracing; print numbers after the call'
    return f"{what}: the number behind a traced value is not known while tracing\n  hint: {hint}{asked.note}"


def _objects_hint(node: ast.Call, called: str) -> str:
    """For a function of NumPy's that met an array of tracers, which NumPy does not dispatch."""
    name = called.rpartition(".")[2]
    if called in (f"np.{name}", f"numpy.{name}") and node.args and isinstance(node.args[0], ast.List | ast.Tuple):
        return f"bwcompiler.numpy.{name}({', '.join([ast.unparse(one) for one in (*node.args, *node.keywords)])})"
    if name == "fill":
        return f"bwcompiler.numpy.full(n, {', '.join([ast.unparse(one) for one in node.args])})"
    return _OBJECTS


def truth_advice(has_several: bool) -> str:
    """The message of a traced value, or of an array of several, whose truth is asked for."""
    asked = request()
    what, hint = _truth_advice(asked)
    if not has_several:
        return f"{what}: the truth of a traced value is not known while tracing\n  hint: {hint}{asked.note}"
    if what in ("if", "if or while", "while"):
        hint = "np.where(test, a, b) chooses for each element"
    elsewise = "" if what in ("assert", "raise") else f"; {hint}"
    return f"{what}: an array of more than one element has no truth value, as in NumPy\n  hint: .any() or .all() of it{elsewise}"


def _truth_advice(asked: Request) -> tuple[str, str]:
    node = asked.node
    called_here = "CALL" in asked.operation or asked.library not in ("", "numpy")                  # else it is the test of an `if`
    if isinstance(node, ast.Call) and called_here:
        called = ast.unparse(node.func)
        name = called.rpartition(".")[2]
        if asked.library not in ("", "numpy"):
            return f"{called}(...) decides by the elements of its arguments", _library_hint(asked.library, called, name, asked.function)
        arguments = ", ".join([ast.unparse(argument) for argument in node.args])
        if called in ("max", "min"):
            many = f"np.{name}imum({arguments})" if len(node.args) == 2 else f"np.{name}({arguments})"
            return f"{called}() compares traced values", many if len(node.args) < 3 else f"bwcompiler.numpy.{name}([{arguments}])"
        if called in _TRUTH_FUNCTIONS:
            return f"{called}() of traced values", _TRUTH_FUNCTIONS[called].format(arguments)
        if "." in called:
            return f"{called}() compares traced values one by one", _objects_hint(node, called)
    if isinstance(node, ast.Compare) and asked.operation == "COMPARE_OP" and sys.version_info < (3, 13):
        return f"{ast.unparse(node)} compares traced values one by one", _OBJECTS      # from 3.13 on, it is also the test of an `if`
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        places = [node.left, *node.comparators]
        pairs = [ast.unparse(ast.Compare(left, [comparison], [right]))
                 for left, comparison, right in zip(places, node.ops, places[1:], strict=False)]
        return f"{ast.unparse(node)} is an `and`", " & ".join([f"({pair})" for pair in pairs])
    if isinstance(node, ast.BoolOp):
        sign = " & " if isinstance(node.op, ast.And) else " | "
        return ast.unparse(node), f"{sign.join([f'({ast.unparse(one)})' for one in node.values])} of booleans, or np.where"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return ast.unparse(node), f"np.logical_not({ast.unparse(node.operand)})"
    if asked.keyword in ("assert", "raise"):
        return asked.keyword, ("check what is known while tracing (x.shape, x.dtype); numbers are checked before the call, or in its "
                               "result")
    if asked.keyword == "while":
        return "while", "for _ in range(n): x = np.where(condition, step(x), x), with enough steps; or bw.while_loop"
    return ("if or while" if asked.unread else "if",
            "np.where(condition, a, b), np.maximum or np.minimum; bw.cond for whole branches; for and/or/not: & | ~")


_MEMORY = "the memory of a traced array is not known while tracing: leave it away, or ask the array before the call"
_NUMBERS = "return the array from the function, and do it with the result"
_METHOD_HINTS = {
    "resize": "a new array, x = np.append(x, np.zeros(n)) or x = x[:n]; np.resize(x, shape) repeats the elements",
    **dict.fromkeys(("base", "flags", "setflags", "data", "ctypes", "device", "to_device"), _MEMORY),
    **dict.fromkeys(("tobytes", "tofile", "dump", "dumps"), _NUMBERS),
    **dict.fromkeys(("byteswap", "getfield", "setfield"),
                    "x.astype for other numbers; other readings of the same bits are for outside of the function"),
}


def method_advice(name: str) -> str:
    """What to write for a method or attribute of arrays that traced ones do not have, or of a library's function that asks for it."""
    asked = request()
    if asked.library not in ("", "numpy") and isinstance(asked.node, ast.Call):
        called = ast.unparse(_named_function(asked.node.func))
        return f"; {called} asks for it\n  hint: {_library_hint(asked.library, called, called.rpartition('.')[2], asked.function)}"
    hint = _METHOD_HINTS.get(name)
    return f"\n  hint: {hint}" if hint else ""
