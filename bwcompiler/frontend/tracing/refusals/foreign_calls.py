"""Errors that other libraries (PyTorch, JAX, Numba, fractions ...) raise when they are given a traced value, and what to write instead.

Their code does not call ours before it refuses an unknown type, so the advice is found from their error and the user's line.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from types import FrameType, ModuleType, TracebackType
from typing import Any

import numpy as np

from bwcompiler.errors import DTypeError, TracerError, at
from bwcompiler.frontend.tracing.provenance.source import is_library, is_ours
from bwcompiler.frontend.tracing.refusals.conversions import Request, request_of
from bwcompiler.frontend.tracing.refusals.tracebacks import users_place
from bwcompiler.frontend.tracing.registry import CALL_BACK
from bwcompiler.ir.source import Source

_SIGNS = ("ArrayTracer", "ScalarTracer", "<traced ", "Iterator operand")       # the last is np.nditer's
_HINTS = {
    "torch": "NumPy's functions, and bw.nn for torch.nn.functional; tensor.detach().numpy() of a tensor from outside",
    "jax": "np in the place of jnp; np.asarray(array) of an array of JAX's from outside",
    "numba": "{called}.py_func(...), the Python function that it is made of, which is compiled here as any other",
}
_PACKAGES = {"torch": "torch", "jax": "jax", "jaxlib": "jax", "numba": "numba"}
_OPERAND_HINT = "traced values go with Python's numbers and NumPy's arrays: float() or np.asarray() of the other operand"
_MISSING_HINT = "None is an argument that was not given, or what a function without `return` gives"
_OF_NONE = re.compile(r"(unsupported operand type|'\S+' not supported between instances).*'NoneType'")
_CALL_HINT = f"write it with NumPy's functions; {CALL_BACK}"


def foreign_refusal(error: Exception) -> TracerError | DTypeError | None:
    """Our error in the place of another library's about a traced value; None for all other errors.

    Of an operator and None a DTypeError: Python raises TypeError for these with any numbers.
    """
    message = str(error)
    if not any(sign in message for sign in _SIGNS):
        return None
    frame, line = users_place(error.__traceback__)
    asked = request_of(frame) if frame is not None else Request(None, False, "")
    if asked.operation == "RAISE_VARARGS" or _is_assertion(error):                     # the user's own words
        return None
    source = Source(frame.f_code.co_filename, line) if frame is not None else None
    library = next((_PACKAGES[root] for root in _roots(error.__traceback__, frame, asked) if root in _PACKAGES), "")
    text = ast.unparse(asked.node) if asked.node is not None else ""
    what = text if 0 < len(text) < 80 else "what stands here" if frame is not None else "the function"
    who = f" is computed by {library}, which" if library else ""
    said = next((one for one in message.splitlines() if any(sign in one for sign in _SIGNS)), message).strip()
    kind = DTypeError if not library and _OF_NONE.match(message) else TracerError
    return kind(at(source, f"{what}{who} takes no traced values\n  hint: {_hint(library, asked, message, frame is not None)}\n"
                           f"  {type(error).__name__}: {said}"))


def _is_assertion(error: Exception) -> bool:
    """Whether it is raised by what captured code calls for the user's `assert`."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return isinstance(error, AssertionError) and traceback is not None and is_ours(traceback.tb_frame.f_code)


def _roots(traceback: TracebackType | None, frame: FrameType | None, asked: Request) -> Iterator[str]:
    """The packages whose code was running, or whose objects the user's expression names."""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if is_library(code) and not is_ours(code):
            yield str(traceback.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        traceback = traceback.tb_next
    if asked.node is None or frame is None:
        return
    for name in [node.id for node in ast.walk(asked.node) if isinstance(node, ast.Name)]:
        value = next((names[name] for names in (frame.f_locals, frame.f_globals, vars(builtins)) if name in names), None)
        for owner in (_module_of(value), _module_of(type(value))):
            yield owner.partition(".")[0]


def _module_of(value: Any) -> str:
    return value.__name__ if isinstance(value, ModuleType) else str(getattr(value, "__module__", ""))


def _hint(library: str, asked: Request, message: str, in_function: bool) -> str:
    if not in_function:
        return "the plain Python function, written with NumPy"
    if not isinstance(asked.node, ast.Call):
        return _HINTS.get(library, _MISSING_HINT if "'NoneType'" in message else _OPERAND_HINT)
    called = ast.unparse(asked.node.func)
    name = called.rpartition(".")[2]
    if name == "nditer":
        return "for element in x.ravel(), or operations on the whole array"
    if message.startswith("SeedSequence"):
        return "a seed is a number that is known, or an argument that is an integer; of what is computed, bw.random.key(seed) makes a key"
    if message.endswith("has no len()"):
        return "a number has no length: np.size(x), or np.atleast_1d(x), which has an axis"
    if message.endswith("object is not callable"):
        return f"{called} is an array: {called}[...] is an element of it"
    if library in ("torch", "jax") and "." in called and callable(getattr(np, name, None)):
        return f"np.{name}"
    return _HINTS.get(library, _CALL_HINT).format(called=called)
