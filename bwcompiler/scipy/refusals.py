"""Functions of SciPy that are refused."""

from __future__ import annotations

from typing import Any, NoReturn

from bwcompiler.errors import UnsupportedError


def refused(name: str, why: str, instead: str) -> Any:
    """A function, named as `scipy.<name>`, that raises UnsupportedError: why traced values cannot go there, and what to do."""
    def function(*_: Any, **__: Any) -> NoReturn:
        raise UnsupportedError(f"scipy.{name} of traced values: {why}\n  hint: {instead}")

    function.__name__ = function.__qualname__ = name.rpartition(".")[2]
    function.__doc__ = f"Refused with UnsupportedError: {why}."
    return function
