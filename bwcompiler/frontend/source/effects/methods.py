"""Assignments that call methods of the user's classes, `grid[i] = v` with a `__setitem__` and `x.rate = v` with a setter: these are
captured.
"""

from __future__ import annotations

import functools
import types
from typing import Any

from bwcompiler.frontend.source.concrete.contents import user_method
from bwcompiler.frontend.source.effects.places import Holder, assigned_to, part_of
from bwcompiler.frontend.source.variables import open_policy
from bwcompiler.frontend.tracing.provenance.source import is_library
from bwcompiler.frontend.tracing.registry import HANDLERS


class ByMethods(Holder):
    """An object of which something is assigned to, by methods of its class where it has them."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        return part_of(_called(self._bw_shared, "__getitem__", key))

    def __setitem__(self, key: Any, value: Any) -> None:
        if user_method(type(self._bw_shared), "__setitem__") is None:
            _plain(self._bw_shared)[key] = value
        else:
            _called(self._bw_shared, "__setitem__", key, value)

    def __delitem__(self, key: Any) -> None:
        if user_method(type(self._bw_shared), "__delitem__") is None:
            del _plain(self._bw_shared)[key]
        else:
            _called(self._bw_shared, "__delitem__", key)

    def __setattr__(self, name: str, value: Any) -> None:
        x = self._bw_shared
        setter = _setters(_class(x)).get(name)
        if setter is not None:
            HANDLERS["call_of"](types.MethodType(setter, x))(value)
        elif user_method(type(x), "__setattr__") is not None:
            _called(x, "__setattr__", name, value)
        else:
            setattr(_plain(x), name, value)


def by_methods(x: Any) -> Any:
    """x, of which something is assigned to, where methods of the user's may do that; None where there are none."""
    return ByMethods(x) if _has_methods(_class(x)) else None


def _class(x: Any) -> Any:
    return type(x)


@functools.lru_cache(maxsize=1 << 10)
def _has_methods(kind: type) -> bool:
    return bool(_setters(kind)) or any(user_method(kind, name) is not None for name in ("__setitem__", "__delitem__", "__setattr__"))


@functools.lru_cache(maxsize=1 << 10)
def _setters(kind: type) -> dict[str, types.FunctionType]:
    """The setters of a class's properties, of the user's, by their names."""
    found = {name: defined.fset for base in reversed(kind.__mro__) for name, defined in vars(base).items() if isinstance(defined, property)}
    return {name: setter for name, setter in found.items() if isinstance(setter, types.FunctionType) and not is_library(setter.__code__)}


def _called(x: Any, name: str, *args: Any) -> Any:
    method = user_method(type(x), name)
    return HANDLERS["item_of"](x, *args) if method is None else HANDLERS["call_of"](types.MethodType(method, x))(*args)


def _plain(x: Any) -> Any:
    """What is assigned to where no method does it."""
    policy = open_policy()
    return assigned_to(x) if policy is not None and policy.depth else x
