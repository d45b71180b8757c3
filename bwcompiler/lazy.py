"""Imports on first use: what is not needed by every program is not imported with bwcompiler.

    __getattr__, __dir__ = loader(__name__, {"dump": "render write"})    # in the __init__ of a package: the names that its modules have
    nx = module("networkx")                                              # at the top of a module: a dependency that few programs need

Users of such a package write `from bwcompiler import inspect` at the top, and `inspect.render(...)` where they need it.  Both
functions are called at the top of a module, where an import would stand, never inside functions; nothing else imports late, but
`imported`, of modules whose names are computed.

A fork waits until such an import is done, since a module in the middle of its import stays locked in the child for ever.  No module of
ours asks for what comes late while it is imported itself: then no thread waits for that lock with a module in its hands.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from bwcompiler.collector import collector_paused
from bwcompiler.locks import importing


def loader(package: str, homes: Mapping[str, str], modules: str = "",
           missing: Callable[[str], Any] | None = None) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package.

    homes    per module of the package: names that it has, and that are names of the package.
    modules  modules of the package that are names of it themselves.
    missing  what any other name is: raises, where it is nothing.
    """
    home_of = {name: f"{package}.{home}" for home, names in homes.items() for name in names.split()}
    parts = frozenset(modules.split())

    def load(name: str) -> Any:
        if name in parts:
            return imported(f"{package}.{name}")
        if name in home_of:
            value = getattr(imported(home_of[name]), name)
            setattr(sys.modules[package], name, value)
            return value
        if missing is not None:
            return missing(name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)

    def listed() -> list[str]:
        here = vars(sys.modules[package])
        public = here.get("__all__", here)                          # what the package imports for itself is nothing to complete to
        return sorted({*public, *home_of, *parts, *[name for name in here if name.startswith("__")]})

    return load, listed


def module(name: str) -> Any:
    """The module of that name, imported when one of its attributes is first read; ModuleNotFoundError, then, if it is not installed."""
    return _Module(name)


# What stands for other libraries in traced functions: modules of layers above those that ask for them, which the package itself names.
_stand_ins: dict[str, str] = {}


def set_stand_ins(**modules: str) -> None:
    """Say which modules stand for which libraries."""
    _stand_ins.update(modules)


@functools.cache
def stand_in(library: str) -> Any:
    """The module that stands for a library in traced functions, imported when it is first asked for."""
    return imported(_stand_ins[library])


class _Module:
    __slots__ = ("_found", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._found: Any = None

    def __getattr__(self, attribute: str) -> Any:
        if self._found is None:
            self._found = imported(self._name)
        return getattr(self._found, attribute)


def imported(name: str) -> Any:
    """The module of that name, now; ModuleNotFoundError that says what to install, if its package is not there."""
    try:
        with importing, collector_paused(for_ever=True):
            return import_module(name)
    except ModuleNotFoundError as error:
        package = name.partition(".")[0]
        if error.name != package:
            raise
        message = f"{package} is not installed, and is needed for this\n  hint: pip install {package}"
        raise ModuleNotFoundError(message, name=package) from None
