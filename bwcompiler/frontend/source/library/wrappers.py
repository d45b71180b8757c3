"""Functions of Python's library, and of others, that stand around one of the user's: in them his function is captured, too.

`functools.lru_cache` and `cache` remember, per trace, what the user's function gave: what it gives for traced numbers is of one trace.
Others, as `contextlib.contextmanager`, hold his function in a cell, and have it as `__wrapped__`.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from bwcompiler.frontend.source.variables import held_in, not_capturable
from bwcompiler.frontend.tracing.indexing.index_handle import IndexTracer
from bwcompiler.frontend.tracing.policy import Policy
from bwcompiler.frontend.tracing.provenance.source import is_convertible, is_library
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.storages.region import Region, open_region
from bwcompiler.frontend.tracing.tracer import Tracer


def around_users(function: Any, policy: Policy) -> Callable[..., Any] | None:
    """What is called in the place of such a function; None of another one."""
    if type(function) is types.MethodType:
        found = around_users(function.__func__, policy)
        return None if found is None else functools.partial(found, function.__self__)
    if isinstance(function, functools._lru_cache_wrapper):
        return functools.partial(_remembered, function, policy) if _is_users(function.__wrapped__) else None
    inner = getattr(function, "__wrapped__", None)
    if type(function) is not types.FunctionType or not is_library(function.__code__) or not _is_users(inner):
        return None
    only_calls = function.__globals__.get("__name__") == "contextlib"      # of others it is not known what else they do
    places = [place for place, cell in enumerate(function.__closure__ or ()) if held_in(cell) is inner]
    return _with_cells(function, dict.fromkeys(places, HANDLERS["call_of"](inner))) if places and (only_calls or not policy.depth) else None


def _is_users(function: Any) -> bool:
    return type(function) is types.FunctionType and is_convertible(function.__code__)


def _with_cells(function: types.FunctionType, contents: dict[int, Any]) -> types.FunctionType:
    """The function, with other contents of some of its cells."""
    cells = [types.CellType(contents[place]) if place in contents else cell for place, cell in enumerate(function.__closure__ or ())]
    made = types.FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, tuple(cells))
    made.__kwdefaults__ = function.__kwdefaults__
    return made


class _Same:
    """A traced number in a key: equal to itself alone."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer

    def __hash__(self) -> int:
        return id(self.tracer)

    def __eq__(self, other: object) -> bool:
        return type(other) is _Same and other.tracer is self.tracer


def _remembered(function: Any, policy: Policy, *args: Any, **kwargs: Any) -> Any:
    """What the function gave for these arguments, in this body or in one around it; otherwise what it gives.

    Where nothing can be traced in it, it remembers by itself, as it does outside: it may give the same object in every trace.
    """
    if function.__wrapped__.__closure__ is None and all(map(_is_plain, (*args, *kwargs.values()))):
        return function(*args, **kwargs)
    key = function, *map(_key, args), *[(name, _key(value)) for name, value in kwargs.items()]
    region = open_region()
    kept: list[tuple[Region, Any]] = policy.remembered.setdefault(key, [])
    around: Region | None = region
    while around is not None:
        for where, value in kept:
            if where is around:
                return value
        around = around.parent
    if function in policy.remembering and any(isinstance(value, IndexTracer) for value in (*args, *kwargs.values())):
        not_capturable(f"{function.__name__}, which remembers what it gave, calls itself in it")   # for a number, which it may remember
    policy.remembering.append(function)
    try:
        value = HANDLERS["call_of"](function.__wrapped__)(*args, **kwargs)
    finally:
        policy.remembering.pop()
    kept.append((region, value))
    return value


def _is_plain(value: Any) -> bool:
    return all(map(_is_plain, value)) if type(value) is tuple else value is None or type(value) in (bool, bytes, complex, float, int, str)


def _key(value: Any) -> Any:
    return _Same(value) if isinstance(value, Tracer) else value
