"""SciPy functions that are not supported on traced values, as functions that raise UnsupportedError with a hint."""

from __future__ import annotations

from typing import Any, NoReturn

from bwcompiler.errors import UnsupportedError


def refused(name: str, why: str, instead: str) -> Any:
    """A function named like `scipy.<name>` that raises UnsupportedError: why traced values are not supported, and what to write instead."""
    def function(*_: Any, **__: Any) -> NoReturn:
        raise UnsupportedError(f"scipy.{name} of traced values: {why}\n  hint: {instead}")

    function.__name__ = function.__qualname__ = name.rpartition(".")[2]
    function.__doc__ = f"Refused with UnsupportedError: {why}."
    return function
