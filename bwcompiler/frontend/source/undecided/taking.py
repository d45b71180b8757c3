"""Which functions and methods of lists take lists with gaps (`gaps`), and what is called in their place."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler.frontend.source.undecided import moved
from bwcompiler.frontend.source.undecided.gaps import Maybe, as_array, extreme, has_gaps, length, refuse, total
from bwcompiler.frontend.tracing.indexing.masked_selection import SELECTED

_KEEPING = frozenset(("append", "clear", "copy", "extend"))     # methods of lists that need not know of gaps
_METHODS: dict[str, Callable[..., Any]] = {"pop": moved.popped, "reverse": moved.turn, "sort": moved.put_in_order}
_TAKING: dict[Any, Callable[..., Any]] = {
    len: length, sum: total, list: builtins.list, tuple: builtins.tuple, np.array: moved.array_of, np.asarray: moved.array_of,
    np.stack: as_array, sorted: moved.in_order,
    min: lambda items: extreme(items, lambda x, y: x < y, "min"), max: lambda items: extreme(items, lambda x, y: x > y, "max"),
}
_ITERATORS: dict[Any, Callable[..., Any]] = {reversed: moved.turned, enumerate: moved.numbered, zip: moved.zipped}
_KEYWORDS: dict[Any, set[str]] = {sorted: {"reverse"}, np.array: {"dtype"}, np.asarray: {"dtype"}}


def taking(function: Any, found: Callable[..., Any]) -> Callable[..., Any]:
    """What is called in the place of a function, `found`, where it may get a list with gaps."""
    owner = getattr(function, "__self__", None)
    if has_gaps(owner) and function.__name__ not in _KEEPING:
        method = _METHODS.get(function.__name__) if type(owner) is builtins.list else None
        return refuse(f"{function.__name__}()") if method is None else functools.partial(method, owner)
    if type(owner) is builtins.list:
        return found

    def checked(*args: Any, **kwargs: Any) -> Any:
        found_items = gone_over(function, args, kwargs)
        if found_items is not None:
            return iter(found_items)
        if not any(map(has_gaps, (*args, *kwargs.values()))):
            return found(*args, **kwargs)
        handler = _handler(function)
        if handler is not None and kwargs.keys() <= _KEYWORDS.get(function, set()):
            return handler(*args, **kwargs)
        if handler is None and _among(function, SELECTED):
            return function(*[as_array(arg) if has_gaps(arg) else arg for arg in args], **kwargs)
        return refuse(f"{getattr(function, '__name__', 'a function')}()")
    return checked


def gone_over(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The elements of reversed(...), enumerate(...) or zip(...) of lists with gaps, as a list; None of all else."""
    if function is zip and any(type(arg) is Maybe for arg in args):        # zip(*items)
        return moved.columns(args)
    return _ITERATORS[function](*args, **kwargs) if _among(function, _ITERATORS) and any(map(has_gaps, args)) else None


def _handler(function: Any) -> Callable[..., Any] | None:
    try:
        return _TAKING.get(function)
    except TypeError:                              # something that cannot be hashed
        return None


def _among(function: Any, known: Any) -> bool:
    try:
        return function in known
    except TypeError:
        return False
