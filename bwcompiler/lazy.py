"""Imports on first use: what running a program does not need is not imported with bwcompiler.

    __getattr__ = loader(__name__, {"render": "dump"})       # in the __init__ of a package: its modules are loaded when used
    nx = module("networkx")                                  # at the top of a module: a dependency that few programs need

Users of such a package write `from bwcompiler import inspect` at the top, and `inspect.render(...)` where they need it.  Both
functions are called at the top of a module, where an import would stand, never inside functions; nothing else imports late.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from bwcompiler.locks import held_at_fork

_lock = held_at_fork()          # a child of a fork in the middle of an import would wait for that module for ever


def loader(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package: names and the modules of the package they are in."""
    def load(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with _lock:
            value = getattr(import_module(f"{package}.{home}"), name)
        setattr(sys.modules[package], name, value)
        return value
    return load


def module(name: str) -> Any:
    """The module of that name, imported when one of its attributes is first read."""
    return _Module(name)


class _Module:
    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        with _lock:
            return getattr(import_module(self._name), attribute)
