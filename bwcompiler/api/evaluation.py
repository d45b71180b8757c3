"""Functions of `bw.nn` and `bw.scipy.special` on plain arrays: compiled like any other, one compilation per signature."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from bwcompiler.api.functions import JitFunction


@functools.cache
def _compiled(fun: Callable[..., Any], static: tuple[str, ...]) -> JitFunction:
    return JitFunction(fun, static_argnames=static, mutates=False)


def evaluate(fun: Callable[..., Any], arguments: dict[str, Any], static: tuple[str, ...]) -> Any:
    """fun(**arguments) through compiled code; arguments named in `static` are options."""
    options = {name: _hashable(arguments[name]) for name in static}
    return _compiled(fun, tuple(sorted(static)))(**{**arguments, **options})


def _hashable(option: Any) -> Any:
    """Lists of numbers, such as kernel sizes, as tuples."""
    return tuple([_hashable(item) for item in option]) if isinstance(option, list) else option
