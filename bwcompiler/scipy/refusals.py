"""Functions and options of SciPy that are refused."""

from __future__ import annotations

from typing import Any, NoReturn

from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.tracing.registry import same_option


def refused(name: str, why: str, instead: str) -> Any:
    """A function, named as `scipy.<name>`, that raises UnsupportedError: why traced values cannot go there, and what to do."""
    def function(*_: Any, **__: Any) -> NoReturn:
        raise UnsupportedError(f"scipy.{name} of traced values: {why}\n  hint: {instead}")

    function.__name__ = function.__qualname__ = name.rpartition(".")[2]
    function.__doc__ = f"Refused with UnsupportedError: {why}."
    return function


def refuse_options(name: str, **options: tuple[Any, Any]) -> None:
    """Raise UnsupportedError for each option, given as (value, supported value), that has another value."""
    for key, (value, supported) in options.items():
        if not same_option(value, supported):
            raise UnsupportedError(f"scipy.{name}: {key}={value!r} is not supported on traced arrays")
