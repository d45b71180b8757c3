"""The exceptions a user may see; every message starts with the user's own line.

`at(source)` prefixes a message with file, line and source text.  Errors of the compiler itself (verifier failures)
are `InternalError`: they are our bugs, not the user's.
"""

from __future__ import annotations

import linecache
import re
from typing import Protocol, TypeVar

import numpy as np

Error = TypeVar("Error", bound=Exception)


class SourceLike(Protocol):
    """What an error needs to know of a place in the user's program."""

    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...


class BwError(Exception):
    """Base of all errors that bwcompiler raises on purpose."""


class ShapeError(BwError, ValueError):
    """Operands whose shapes (or an attribute such as an axis) do not fit together."""


class MatrixError(ShapeError, np.linalg.LinAlgError):
    """An array that is no matrix, or not a square one, where linear algebra needs one: what NumPy raises LinAlgError for."""


class DTypeError(BwError, TypeError):
    """An operand of a dtype that the operation does not take."""


class TracerError(BwError, TypeError):
    """Python asked a traced value for something only a concrete array has."""


class TracerBoolError(TracerError):
    """`if`, `while`, `and`, `max` ... on a traced value."""


class TracerArrayError(TracerError):
    """`np.asarray(x)`, `A[0] = x` and other conversions of a traced value to a concrete array."""


class TracerIndexError(TracerError):
    """`range(x)`, `list[x]`, `int(x)` on a traced value."""


class EscapedTracerError(TracerError):
    """A traced value used after, or outside of, the function call that made it."""


class TargetError(BwError, ValueError):
    """A text that names no CPU to compile for (BW_TARGET, `bwc dump --target`), or one whose code this machine cannot run."""


class UnsupportedError(BwError, NotImplementedError):
    """A function, keyword or combination that is not supported; the message says what to write instead."""


class GradientError(BwError, TypeError):
    """A derivative that was asked of something that has none (integer argument, non-scalar output ...)."""


class SeedError(BwError, ValueError):
    """A seed (`grad_outputs`) of wrong shape, dtype or structure, or a missing one."""


class TangentError(BwError, TypeError, ValueError):
    """A tangent of wrong shape, dtype or structure, or one of an integer."""


class DerivativeError(BwError, AssertionError):
    """A derivative that disagrees with differences, as `check_grads` found."""


class CallbackError(BwError, TypeError, ValueError):
    """A Python function that a program calls back returned something else than it declares."""


class SignatureError(BwError, TypeError):
    """Arguments that do not fit a compiled program."""


class CompileError(BwError, RuntimeError):
    """Lowering or code generation failed."""


class InternalError(BwError, AssertionError):
    """An invariant of an intermediate representation does not hold: a bug in bwcompiler."""


class StaleValueWarning(UserWarning):
    """A compiled function will go on with something that it read while it was traced, and that plain Python would read again."""


class LeftOutWarning(UserWarning):
    """A message of the function (`print`, `warnings.warn`, a logger) in a loop or branch that was compiled as one: it is not told."""


class RecompileWarning(UserWarning):
    """A function is traced again and again; the message says what differed."""


def at(source: SourceLike | None, message: str) -> str:
    """`message` below the user's line it is about; just `message` where the line is unknown."""
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
    """Whether the text of an error begins with a line of the user's."""
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
