"""Notes added to errors that the user's code raises only because it is traced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bwcompiler.errors import at
from bwcompiler.frontend.tracing.refusals.tracebacks import recursive_call

RECURSION_NOTE = ("a recursion that ends by traced values has no end while it is traced\n"
                  "  hint: write it as a loop (`while`); where a call makes two, with what is still to do in an array:\n"
                  "      todo, n = np.zeros((1000, 3)), 1; todo[0] = a, b, tolerance\n"
                  "      while n > 0: n -= 1; a, b, tolerance = todo[n]; ...; todo[n] = ...; todo[n + 1] = ...; n += 2\n"
                  "  or end it by what is known while tracing, a shape or an integer argument; for an order, sorted(x) or np.sort(x)")

_LIST_NOTE = ("bwcompiler: an argument that is a list or a tuple is a container of arguments, as it is in Python\n"
              "  hint: pass np.array(...) of it, or begin with x = np.array(x)")


def _of_sequences(error: Exception, arguments: Sequence[Any]) -> bool:
    """Whether an error says that a list is no array, where an argument is one."""
    text = str(error)
    return any(sign in text for sign in ("'list'", "'tuple'", "sequence by", "list indices", "tuple indices")) and any(
        type(argument) in (list, tuple) for argument in arguments)


# What NumPy says of an array of objects, of which nothing here hears.
_OBJECT_ERRORS = ("dtype('O')", "not supported for the input types", "which has no callable")
_OBJECT_NOTE = ("bwcompiler: an array of traced numbers, np.array([...]), is to NumPy an array of Python objects\n"
                "  hint: make it with bwcompiler.numpy.array([...]), or np.stack([...])")


def add_notes(error: Exception, arguments: Sequence[Any], is_outermost: bool) -> None:
    """Below an error of Python's or NumPy's in the user's function: what tracing has to do with it."""
    found = []
    if isinstance(error, TypeError) and any(text in str(error) for text in _OBJECT_ERRORS):
        found.append(_OBJECT_NOTE)
    if isinstance(error, AttributeError | TypeError) and _of_sequences(error, arguments):
        found.append(_LIST_NOTE)
    if isinstance(error, RecursionError) and is_outermost:
        found.append(f"bwcompiler: {at(recursive_call(error.__traceback__), RECURSION_NOTE)}")
    for note in found:
        if note not in getattr(error, "__notes__", ()):    # a function that is traced inside of another one has added it
            error.add_note(note)
