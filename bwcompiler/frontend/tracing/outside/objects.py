"""Objects that a trace met, and attributes that are read where the object is not known: these are read of all objects met."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable
from typing import Any

from bwcompiler.frontend.tracing.outside.kinds import has_own_attributes, is_plain_attribute, own_names
from bwcompiler.ir.contracts.call_signature import Read
from bwcompiler.ir.source import Source

Reader = Callable[[Any, str, str, Source], None]           # reads an attribute: object, name, path, source


class MetObjects:
    """The objects of one trace that are used as they are, and the names that are read of them.

    stored  names that attributes are assigned to by.
    """

    def __init__(self) -> None:
        self.stored: set[str] = set()
        self._objects: dict[int, tuple[Any, str]] = {}          # with their paths
        self._names: dict[str, Source] = {}        # of attributes that are read of what no place says
        self._all: Source | None = None            # where attributes are read by names that nobody sees
        self._waiting: collections.deque[tuple[Any, str, str]] = collections.deque()     # still to be read: (object, path, name)

    def is_new(self, value: Any) -> bool:
        return id(value) not in self._objects and has_own_attributes(value)

    def meet(self, value: Any, path: str) -> None:
        self._objects[id(value)] = (value, path)

    def read_attributes(self, value: Any, read: Reader) -> None:
        """Read what is read of all objects of this one, too."""
        self._wait([value], self._names if self._all is None else {*self._names, *own_names(value)}, read)

    def read_name(self, name: str, source: Source, read: Reader) -> None:
        """Read the attribute of this name of all objects, also of those that are met later."""
        if name not in self._names:
            self._names[name] = source
            self._wait([value for value, _ in self._objects.values()], [name], read)

    def read_all(self, source: Source, read: Reader) -> None:
        """Read all attributes of all objects."""
        if self._all is None:
            self._all = source
            for value, _ in list(self._objects.values()):
                self._wait([value], own_names(value), read)

    def is_stored_to(self, read: Read) -> bool:
        return read.kind == "attribute" and read.key in self.stored and id(read.base) in self._objects

    def _wait(self, owners: Iterable[Any], names: Iterable[str], read: Reader) -> None:
        """Read attributes, and what is found there: one after another, as objects may be linked to any depth."""
        running = bool(self._waiting)
        self._waiting += [(owner, self._objects[id(owner)][1], name) for owner in owners for name in names]
        while self._waiting and not running:
            owner, path, name = self._waiting[0]
            if is_plain_attribute(owner, name):
                source = self._names.get(name) or self._all
                assert source is not None
                read(owner, name, f"{path}.{name}", source)
            self._waiting.popleft()
