"""Lists of numbers that loops read or assign to at varying positions: `values[j] = 0.5 * (values[j] + values[j + 1])`.

For the outermost loop that does so to a list from outside, the numbers are copied to an array, which the loop assigns to; afterwards the
list holds the array's elements.  While the body is traced it holds `POISON`, like a list that grows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler.frontend.source.array_backed.growth import POISON, is_growing, require_noted, row
from bwcompiler.frontend.source.array_backed.growth import write as write_in_growing
from bwcompiler.frontend.source.containers.queues import is_queue
from bwcompiler.frontend.source.effects.places import scopes_around
from bwcompiler.frontend.source.variables import Again, is_number, not_capturable
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.indexing.index_handle import IndexTracer
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer


class IndexedList:
    """A list whose numbers are in an array while a loop is traced."""

    def __init__(self, base: list[Any]) -> None:
        self.base = base
        self.entry = list(base)
        self.array: Any = None

    def prepare(self) -> None:
        """Before each attempt: the array, in the region around the loop."""
        self.array = np.stack([call(as_tracer, number) for number in self.entry]).astype(float)

    def begin(self) -> None:
        """Before an iteration."""
        self.base[:] = [POISON] * len(self.entry)

    def known_arrays(self) -> list[Any]:
        """Arrays that hold known numbers alone before the loop, which the loop need not be recorded for."""
        return []

    def end(self) -> None:
        """After an iteration."""

    def restore(self) -> None:
        """Give the list what it held."""
        self.base[:] = self.entry

    def settle(self) -> None:
        """After the loop: the list holds the numbers of the array."""
        if not self.array._storage.written:
            self.restore()
            return
        found = self.array
        element = found[0]
        self.base[:] = [row(found, number, element._storage, _scalar(element)) for number in range(len(self.entry))]


def _scalar(element: Tracer) -> Tracer:
    element._chain = ()
    element._kind = float
    return element


def indexed_list(base: list[Any]) -> IndexedList | None:
    """The list as an array, if it is one in the body that is being traced, or shall be: then the loop is traced again."""
    scopes = scopes_around(base)
    for scope in scopes:
        if scope.loop is not None and id(base) in scope.loop.indexed:
            found: IndexedList = scope.loop.indexed[id(base)]
            return found
    if not scopes or not base or is_queue(base) or not all(map(_is_real, base)) or all(isinstance(number, bool | int) for number in base):
        return None
    if scopes[0].loop is None or id(base) in scopes[0].loop.kept:
        return None
    if any(scope.loop is not None and id(base) in scope.loop.growths for scope in scopes):
        return None
    scopes[0].loop.indexed[id(base)] = IndexedList(base)
    raise Again(scopes[0].loop)


def _is_real(number: Any) -> bool:
    kind = number.dtype.kind if isinstance(number, Tracer | np.generic) else ""
    return is_number(number) and (kind in "fi" if kind else type(number) in (int, float))


def read(indexed: Any, index: Any) -> Any:
    """base[index]."""
    if isinstance(index, slice):
        not_capturable("it takes a slice of a list that it assigns to at places that move")
    found = indexed.array[index]
    found._kind = float
    return found


def write(indexed: IndexedList, index: Any, value: Any) -> None:
    """base[index] = value."""
    if isinstance(index, slice) or not is_number(value) or not _is_real(value):
        not_capturable("it assigns something else than numbers to a list, at places that move")
    indexed.array[index] = value


def assign(base: Any, index: Any, value: Any) -> bool:
    """base[index] = value, if the numbers of base are in an array, or shall be, or it is a list that grows."""
    require_noted(base)
    if is_growing(base):
        write_in_growing(base, index, value)
        return True
    indexed = indexed_list(base) if is_indexed(base) or (type(base) is list and isinstance(index, IndexTracer)) else None
    if indexed is not None:
        write(indexed, index, value)
    return indexed is not None


HANDLERS["assign_to_list"] = assign


def is_indexed(base: Any) -> bool:
    """Whether the numbers of a list are in an array in a loop that is being traced."""
    return type(base) is list and any(scope.loop is not None and id(base) in scope.loop.indexed for scope in scopes_around(base))
