"""Lists of numbers that grow in a loop which also reads them as a whole: `max(moments)`, `sum(log)`, `np.mean(log)`.

What such a list holds is in an array, too, with room for everything (`histories`); functions get the part of it that is filled.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler.frontend.source.array_backed.growth import is_growing, length, numbers, refuse_whole
from bwcompiler.frontend.source.effects.checks import raise_where
from bwcompiler.frontend.tracing.indexing.index_handle import extent_of
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.extent import lower


def _sum(base: list[Any], start: Any = 0) -> Any:
    found = numbers(base)
    return None if found is None else _number(np.sum(found)) + start


def _extreme(name: str, place: Callable[[Any], Any], worst: float) -> Callable[..., Any]:
    def extreme(base: list[Any]) -> Any:
        count = length(base)
        extent = extent_of(count)
        if extent is not None and lower(extent) > 0:
            found = numbers(base)
            return None if found is None else _number(found[place(found)])         # of several the first one, as in Python
        found = numbers(base, with_room=True)
        if found is None:
            return None
        raise_where(count < 1, ValueError(f"{name}() iterable argument is empty"))
        return _number(found[place(np.where(np.arange(len(found)) < count, found, worst))])
    return extreme


def _number(x: Any) -> Any:
    if isinstance(x, Tracer):
        x._kind = float
    return x


_OF_PYTHON: dict[Any, Callable[..., Any]] = {
    builtins.sum: _sum, builtins.max: _extreme("max", np.argmax, -np.inf), builtins.min: _extreme("min", np.argmin, np.inf)}


def with_whole(function: Any, found: Callable[..., Any]) -> Callable[..., Any]:
    """A function that may get lists that grow, as what is called; others than numbers are refused."""
    def called(*args: Any, **kwargs: Any) -> Any:
        of_python = _OF_PYTHON.get(function) if isinstance(function, type(len)) else None
        if of_python is not None and len(args) == 1 and not kwargs and is_growing(args[0]):
            made = of_python(args[0])
            if made is not None:
                return made
        is_of_arrays = _is_of_arrays(function)
        given = [_held(arg, is_of_arrays) for arg in args]
        return found(*given, **{key: _held(arg, is_of_arrays) for key, arg in kwargs.items()})
    return called


def _held(arg: Any, is_of_arrays: bool) -> Any:
    """An argument; a list that grows as an array, if it may be one."""
    held = numbers(arg) if is_of_arrays and is_growing(arg) else None
    if held is None:
        refuse_whole(arg)
    return arg if held is None else held


def _is_of_arrays(function: Any) -> bool:
    """Whether it is a function of NumPy's, for which a list of numbers is the array of them."""
    return isinstance(function, np.ufunc) or (getattr(function, "__module__", None) or "").partition(".")[0] == "numpy"
