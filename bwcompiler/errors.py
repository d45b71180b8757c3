"""The exceptions that users may see; every message starts with the user's own line.

`at(source)` prefixes a message with file, line and source text.  Errors of the compiler itself (verifier failures)
are `InternalError`: bugs of bwcompiler, not of the user's program.
"""

from __future__ import annotations

import linecache
import re
from typing import Protocol, TypeVar

import numpy as np

Error = TypeVar("Error", bound=Exception)


class SourceLike(Protocol):
    """The parts of a place in the user's program that errors use."""

    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...


class BwError(Exception):
    """Base of all errors that bwcompiler raises on purpose."""


class ShapeError(BwError, ValueError):
    """Operands whose shapes (or an attribute such as an axis) do not fit together."""


class MatrixError(ShapeError, np.linalg.LinAlgError):
    """An array that is not a matrix, or not square, where linear algebra needs one; NumPy raises LinAlgError."""


class DTypeError(BwError, TypeError):
    """An operand with a dtype that the operation does not support."""


class TracerError(BwError, TypeError):
    """Python code needs something of a traced value that only a concrete array has."""


class TracerBoolError(TracerError):
    """`if`, `while`, `and`, `max` ... on a traced value."""


class TracerArrayError(TracerError):
    """`np.asarray(x)`, `A[0] = x` and other conversions of a traced value to a concrete array."""


class TracerIndexError(TracerError):
    """`range(x)`, `list[x]`, `int(x)` on a traced value."""


class EscapedTracerError(TracerError):
    """A traced value used after, or outside of, the function call that made it."""


class TargetError(BwError, ValueError):
    """An unknown name of a CPU to compile for (BW_TARGET, `bwc dump --target`), or one whose code this machine cannot run."""


class UnsupportedError(BwError, NotImplementedError):
    """A function, keyword or combination that is not supported; the message says what to write instead."""


class GradientError(BwError, TypeError):
    """A derivative that does not exist (integer argument, non-scalar output ...)."""


class SeedError(BwError, ValueError):
    """A seed (`grad_outputs`) of wrong shape, dtype or structure, or a missing one."""


class TangentError(BwError, TypeError, ValueError):
    """A tangent of wrong shape, dtype or structure, or one of an integer."""


class DerivativeError(BwError, AssertionError):
    """`check_grads` found a derivative that disagrees with finite differences."""


class CallbackError(BwError, TypeError, ValueError):
    """A Python function that a program calls back returned another structure, shape or dtype than declared."""


class SignatureError(BwError, TypeError):
    """Arguments that do not fit a compiled program."""


class CompileError(BwError, RuntimeError):
    """Lowering or code generation failed."""


class InternalError(BwError, AssertionError):
    """An invariant of an intermediate representation does not hold: a bug in bwcompiler."""


class StaleValueWarning(UserWarning):
    """A compiled function keeps using a value that it read while tracing, and that plain Python would read again."""


class LeftOutWarning(UserWarning):
    """A message of the function (`print`, `warnings.warn`, a logger) in a captured loop or branch, which is not printed."""


class RecompileWarning(UserWarning):
    """A function is traced again and again; the message has the difference."""


def at(source: SourceLike | None, message: str) -> str:
    """`message` below the user's line; only `message` if the line is unknown."""
    if source is None:
        return message
    text = linecache.getline(source.file, source.line).strip()
    return f"{source.file}:{source.line}: {text}".rstrip() + f"\n  {message}"


def bytes_text(count: float) -> str:
    """`812 B`, `65.5 kB`, `1.2 MB`: decimal units."""
    if count < 10_000:
        return f"{count:.0f} B"
    for limit, unit in ((1e6, "kB"), (1e9, "MB"), (1e12, "GB")):
        if count < limit:
            return f"{count / limit * 1e3:.1f} {unit}"
    return f"{count / 1e12:.1f} TB"


_LINE = re.compile(r".+:\d+:[ \n]")


def is_located(error: Exception) -> bool:
    """Whether the text of an error begins with the user's line."""
    return _LINE.match(str(error)) is not None


def located(error: Error, source: SourceLike | None) -> Error:
    """The error with the user's line first, once."""
    if vars(error).get("source") is None:
        vars(error)["source"] = source
        if is_located(error):
            return error
        if isinstance(error, np.exceptions.AxisError):             # its text is not in args
            return type(error)(at(source, str(error)))
        error.args = (at(source, str(error.args[0]) if error.args else ""), *error.args[1:])
    return error
