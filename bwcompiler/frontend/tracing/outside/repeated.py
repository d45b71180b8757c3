"""Reads from outside that every call of a compiled program repeats, and warnings about those that cannot be repeated."""

from __future__ import annotations

import collections
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from bwcompiler.errors import StaleValueWarning, at
from bwcompiler.frontend.tracing.provenance.source import levels_to_the_user
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.contracts.call_signature import Read
from bwcompiler.ir.source import Source

_CONTAINERS = (list, tuple, dict, collections.deque)

LIMIT = 4096                   # reads that are repeated; a warning tells if there are more


class OutsideRead(NamedTuple):
    """A read that is repeated at every call.  path: how the user writes it; source: where."""

    read: Read
    path: str
    source: Source | None


class RepeatedReads:
    """What one trace found, to be looked at again at every call.

    reads      by what is read (`Read.place`).
    stand_ins  containers of handles, by their ids, that are in the place of others while the function is traced.
    assigned   (file, function, path) that are assigned to before they are read.
    written    containers that are only written to, by their ids, with how many traced values were in them before.
    """

    def __init__(self) -> None:
        self.reads: dict[Any, OutsideRead] = {}
        self.stand_ins: dict[int, Any] = {}
        self.assigned: set[tuple[str, str, str]] = set()
        self.written: dict[int, tuple[Any, int, str, Source | None]] = {}
        self.told: set[str] = set()                # paths that were warned of
        self._once: dict[Any, tuple[Source | None, str]] = {}          # what gives something else in each call: clocks, what reads files
        self._beyond: tuple[Source | None, str] | None = None          # the first read that there was no room for

    def guard(self, read: Read, path: str, source: Source | None) -> Any:
        """Note the read, and give what it finds."""
        key = read.place
        own = isinstance(read.expected, Tracer) or id(read.base) in self.stand_ins or id(read.expected) in self.stand_ins
        if key not in self.reads and not own:
            if len(self.reads) < LIMIT:
                self.reads[key] = OutsideRead(read, path, source)
            elif self._beyond is None:
                self._beyond = (source, path)
        return read.expected

    def note_once(self, key: Any, path: str, source: Source | None) -> None:
        """What is called here gives something else in each call."""
        self._once.setdefault(key, (source, path))

    def note_written(self, container: Any, path: str, source: Source | None) -> None:
        """Something is put into a container that is not read."""
        if id(container) not in self.written:
            self.written[id(container)] = (container, _traced_in(container), path, source)

    def settle(self, is_stored_to: Callable[[Read], bool]) -> list[OutsideRead]:
        """The reads to repeat.  Warns of what changed while the function was traced, unless what was there before was never read."""
        kept = []
        for found in self.reads.values():
            if found.read.holds():
                kept.append(found)
            elif not (isinstance(found.read.look(), Tracer) and (is_stored_to(found.read) or self._is_assigned_first(found))):
                self.told.add(found.path)
                warn(found.source, f"{found.path} is assigned to while the function is traced: compiled calls neither repeat that nor "
                     "read it again\n  hint: return the new value instead of storing it, and pass the old one as an argument")
        return kept

    def warn(self) -> None:
        """Warn of what is not read again, as there was no room for it or it gives something else each time; of traced values left."""
        for container, before, path, source in self.written.values():
            if path not in self.told and _traced_in(container) > before:
                warn(source, f"{path} keeps traced values that are put into it while the function is traced: compiled calls put none into "
                     "it\n  hint: return the values, and put them into it after the call")
        if self._beyond is not None:
            source, path = self._beyond
            warn(source, f"the function reads more than {LIMIT} things from outside: calls do not see if {path} and what follows change\n"
                 "  hint: keep numbers in arrays instead of objects, or pass them as arguments")
        for once, (source, path) in self._once.items():
            warn(source, f"{path} is {'gone over' if hasattr(type(once), '__next__') else 'called'} while the function is traced only: "
                 "compiled calls go on with what it gave then\n  hint: call it outside, and pass the result as an argument")

    def _is_assigned_first(self, found: OutsideRead) -> bool:
        return found.source is not None and (found.source.file, found.source.function, found.path) in self.assigned


def _traced_in(container: Any, levels: int = 2) -> int:
    """How many traced values are in a container, or in those that it holds."""
    if isinstance(container, dict):
        container = container.values()
    return sum([_traced_in(one, levels - 1) if levels and isinstance(one, _CONTAINERS) else isinstance(one, Tracer) for one in container])


def warn(source: Source | None, message: str) -> None:
    """A StaleValueWarning that begins with the user's line."""
    warnings.warn(at(source, message), StaleValueWarning, stacklevel=levels_to_the_user())
