"""Lists, dictionaries and objects that are arguments: what the function puts into them goes into stand-ins, which are dropped after the
trace.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Container, Iterator
from typing import Any

from bwcompiler import tree
from bwcompiler.frontend.tracing.outside.repeated import warn
from bwcompiler.ir.source import Source


class ArgumentContents:
    """What the containers hold that stand for arguments, before the function runs."""

    def __init__(self, args: dict[str, Any]) -> None:
        self.held = [(container, path, _items(container)) for name, value in args.items() for container, path in _containers(value, name)]
        self.changed: list[tuple[Any, str]] = []

    def look_again(self) -> None:
        """Find the containers that hold something else now, while what was replaced for the trace still is."""
        self.changed = [(container, path) for container, path, before in self.held if not _same(before, _items(container))]

    def warn_of_changes(self, result: Any, fun: Any) -> None:
        """Warn of those that are no part of the result."""
        changed = self.changed
        returned = {id(one) for one, _ in _containers(result, "")} if changed else set()
        code = getattr(getattr(fun, "__func__", fun), "__code__", None)
        source = None if code is None else Source(code.co_filename, code.co_firstlineno, 0, code.co_name)
        for container, path in changed:
            if id(container) not in returned:
                kind = type(container).__name__
                warn(source, f"{path} is changed while the function is traced: compiled calls do not change the caller's {kind}, only "
                     "arrays in place\n  hint: return what is to be kept, and put it there after the call")


def stand_ins(x: Any, users: Container[int]) -> Iterator[Any]:
    """The lists, dictionaries and objects that were made for this trace, in the place of those of the arguments; `users`: the ids of
    compile-time values, which are the user's own."""
    if id(x) in users:
        return
    attributes = tree.attributes_of(x)
    if attributes is not None:
        yield x
        parts = [getattr(x, name) for name in attributes.names]
    elif isinstance(x, list | tuple | dict):
        yield x
        parts = list(x.values() if isinstance(x, dict) else x)
    else:
        return
    for part in parts:
        yield from stand_ins(part, users)


def _containers(x: Any, path: str) -> Iterator[tuple[Any, str]]:
    if isinstance(x, list | dict) or (dataclasses.is_dataclass(x) and not isinstance(x, type)):
        yield x, path
    if isinstance(x, list | tuple | dict) or (dataclasses.is_dataclass(x) and not isinstance(x, type)):
        for key, part in _items(x).items():
            yield from _containers(part, f"{path}.{key}" if dataclasses.is_dataclass(x) else f"{path}[{key!r}]")


def _items(x: Any) -> dict[Any, Any]:
    if isinstance(x, dict):
        return dict(x)
    if isinstance(x, list | tuple):
        return dict(enumerate(x))
    fields = {field.name: getattr(x, field.name, None) for field in dataclasses.fields(x)}
    cached = functools.cached_property             # which the trace may fill: every call computes it
    return fields | {name: value for name, value in getattr(x, "__dict__", {}).items()
                     if not isinstance(getattr(type(x), name, None), cached)}


def _same(before: dict[Any, Any], after: dict[Any, Any]) -> bool:
    return before.keys() == after.keys() and all(one is after[key] for key, one in before.items())
