"""Dictionaries that loops fill or read with keys made of loop indices: `d[i, j] = d[i - 1, j] + d.get((i, j - 1), 0.0)`.

While the outermost loop that does so to a dictionary from outside is traced, the numbers are in an array with room for all possible keys,
and the dictionary holds `POISON`.  Each read and assignment is recorded with its key, loops and branches (`Event`).  After an iteration
has been traced, `order_of_keys` replays these records with numbers, so that after the loop the dictionary has its keys in the right order.
A key that is read must exist.  Where the program asks for this (`in`, `get`), or it cannot be determined, flags say which keys exist.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler.frontend.source.array_backed.growth import POISON, refuse_whole
from bwcompiler.frontend.source.array_backed.histories import is_float
from bwcompiler.frontend.source.array_backed.key_order import Event, order_of_keys
from bwcompiler.frontend.source.effects.places import scopes_around
from bwcompiler.frontend.source.library.builtin_functions import choose_number
from bwcompiler.frontend.source.undecided.lists.gaps import require
from bwcompiler.frontend.source.undecided.lookups import get, is_among
from bwcompiler.frontend.source.variables import Again, is_number, not_capturable, open_policy
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.indexing.index_handle import IndexTracer, extent_of, index_handle
from bwcompiler.frontend.tracing.operands import as_tracer, stack_all
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.storages.views import index_chain
from bwcompiler.frontend.tracing.tracer import Tracer, handle
from bwcompiler.ir.extent import add_extents, lower, upper

FEW = 32                       # keys that are there, of which each may be a variable of the loop instead
MOST = 1 << 22                 # keys that there may be
_KEY = object()                # the one key of a dictionary whose numbers are in an array
_NOTHING = object()


class Table:
    """A dictionary whose numbers are in an array while a loop is traced.

    texts   per part of a key the texts that it is in all keys, which stand for their places, None of integers.
    box     the smallest and the largest of the integers and places.
    kind    of the numbers: float, int where all are Python's integers, None as long as there are none; there: flags, if has_flags.
    is_settled  whether the array has room for all that the last attempt has seen.
    """

    def __init__(self, base: dict[Any, Any], loop: Any, texts: tuple[list[str] | None, ...], is_of_tuples: bool) -> None:
        self.base = base
        self.loop = loop
        self.entry = dict(base)
        self.texts = texts
        self.box: list[tuple[int, int]] = []
        self.kind: Any = None
        self.array: Any = None
        self.there: Any = None
        self.has_flags = False
        self.is_settled = False
        self.is_of_tuples = is_of_tuples
        self.order: dict[tuple[int, ...], bool] = {}
        for key, value in self.entry.items():
            self._widen([(part, part) for part in self.numbers(key)])
            self._take_kind(value)

    # ----- keys
    def numbers(self, key: Any) -> list[Any]:
        """The parts of a key as integers, or extents."""
        parts = key if type(key) is tuple else (key,)
        found = [extent_of(part) if texts is None else _place_among(texts, part) for part, texts in zip(parts, self.texts, strict=True)]
        if any(part is None for part in found):
            not_capturable("it asks a dictionary for keys that are no integers made of the indices of loops")
        return found

    def fits(self, key: Any) -> bool:
        """Whether a key may be one of the dictionary's."""
        parts = key if type(key) is tuple else (key,)
        return form_of(key) == (self.is_of_tuples, len(self.texts)) and all(
            (type(part) is str) is (texts is not None) for part, texts in zip(parts, self.texts, strict=True))

    def _widen(self, spans: list[tuple[int, int]]) -> None:
        box = self.box or spans
        box = [(min(low, one), max(high, other)) for (low, high), (one, other) in zip(box, spans, strict=True)]
        if box != self.box:
            self.box, self.is_settled = box, False

    def _take_kind(self, value: Any) -> None:
        if not is_number(value) or not (is_float(value) or _is_integer(value)):
            not_capturable("it puts something else than floats and integers in a dictionary by keys that move")
        kind = float if is_float(value) or self.kind is float else int
        if kind is not self.kind:
            self.kind, self.is_settled = kind, False

    def _place(self, key: Any, is_read: bool, is_assignment: bool = False) -> tuple[Any, ...] | None:
        """Where a key is in the array; None in an attempt that has no such place yet."""
        if not self.fits(key):
            not_capturable(f"it asks a dictionary for keys of several forms, such as {key}")
        extents = self.numbers(key)
        self._widen([(lower(extent), upper(extent)) for extent in extents])
        policy = open_policy()
        assert policy is not None
        scopes = scopes_around(self.base)
        if any(scope.loop is not None and scope.loop.index is None for scope in scopes):
            not_capturable("it asks a dictionary for keys that move, whose numbers are in an array")
        policy.events.append(Event(self, tuple(extents), tuple(scope.loop.index for scope in scopes if scope.loop is not None), tuple(
            (scope.test, scope.side) for scope in scopes if scope.loop is None), is_read, is_assignment))
        if self.array is None or not self.is_settled:
            return None
        return tuple([call(index_handle, add_extents(extent, -low)) for extent, (low, _) in zip(extents, self.box, strict=True)])

    # ----- in the body
    def read(self, key: Any) -> Any:
        """base[key]."""
        place = self._place(key, is_read=not self.has_flags)
        if place is None:
            return self._stand_in()
        if self.has_flags:
            require(self.there[place], lambda: f"{key}", KeyError)
        return self._number(place)

    def _number(self, place: tuple[Any, ...]) -> Any:
        found = self.array[place]
        found._kind = self.kind
        return found

    def _stand_in(self) -> Any:
        """Something in the place of a number, in an attempt that is to be given up."""
        found = call(as_tracer, np.zeros(1, int if self.kind is int else float))[0]
        found._kind = int if self.kind is int else float
        return found

    def write(self, key: Any, value: Any) -> None:
        """base[key] = value."""
        self._take_kind(value)
        place = self._place(key, is_read=False, is_assignment=True)
        if place is not None:
            self.array[place] = value
            if self.has_flags:
                self.there[place] = True

    def contains(self, key: Any) -> Any:
        """key in base."""
        if not self.fits(key):
            return False
        place = self._flagged(key)
        return self._stand_in() > 0 if place is None else self.there[place]

    def get(self, key: Any, default: Any) -> Any:
        """base.get(key, default)."""
        if not is_number(default):
            not_capturable("it asks a dictionary for a key that may not be there")
        if not self.fits(key):
            return default
        place = self._flagged(key)
        return self._stand_in() if place is None else call(choose_number, self.there[place], self._number(place), default)

    def _flagged(self, key: Any) -> tuple[Any, ...] | None:
        if not self.has_flags:
            self.has_flags, self.is_settled = True, False
        return self._place(key, is_read=False)

    # ----- around the loop, as `indexed_lists.IndexedList`
    def prepare(self) -> None:
        """Before each attempt: the array, in the region around the loop."""
        if not self.box or math.prod(high - low + 1 for low, high in self.box) > MOST:
            self.array = None
            return
        shape = tuple([high - low + 1 for low, high in self.box])
        made: Any = call(as_tracer, np.zeros(shape, float if self.kind is not int else int)).copy()
        there: Any = call(as_tracer, np.zeros(shape, bool)).copy() if self.has_flags else None
        if self.entry:
            places = np.array([self._index(key) for key in self.entry]).T
            made[tuple(places)] = call(stack_all, tuple(self.entry.values()))
            if there is not None:
                there[tuple(places)] = True
        self.array, self.there, self.is_settled = made, there, True

    def _index(self, key: Any) -> list[int]:
        return [number - low for number, (low, _) in zip(self.numbers(key), self.box, strict=True)]

    def elements(self) -> Sequence[Any]:
        """What the array was made of."""
        return list(self.entry.values())

    def begin(self) -> None:
        """Before an iteration."""
        self.base.clear()
        self.base[_KEY] = POISON

    def known_arrays(self) -> list[Any]:
        """Arrays that hold known numbers alone before the loop."""
        return [] if self.array is None or any(isinstance(value, Tracer) for value in self.entry.values()) else [
            one for one in (self.array, self.there) if one is not None]

    def end(self, _region: Any) -> None:
        """After an iteration: whether it has seen all that it reads and assigns, and which keys there are after the loop."""
        policy = open_policy()
        assert policy is not None
        if math.prod(high - low + 1 for low, high in self.box) > MOST:
            not_capturable(f"there may be more than {MOST} keys in a dictionary that it fills")
        if self.kind is int:                       # of Python's, which have any number of digits
            not_capturable("it puts integers in a dictionary by keys that move")
        if not self.is_settled:
            raise Again(self.loop)
        events = [event for event in policy.events if event.table is self]
        if not any(event.is_assignment for event in events):
            not_capturable("it asks a dictionary for keys that move, which are not all there")
        found = order_of_keys(events, [tuple(self.numbers(key)) for key in self.entry])
        if found is not None:
            self.order = found
            return
        if self.has_flags:
            not_capturable("data decides, or it cannot be seen, which keys a dictionary gets")
        self.has_flags, self.is_settled = True, False
        raise Again(self.loop)

    def restore(self) -> None:
        """Give the dictionary what it held."""
        self.base.clear()
        self.base.update(self.entry)

    def settle(self) -> None:
        """After the loop: the dictionary holds the numbers of the array."""
        self.restore()
        if not self.array._storage.written:
            return
        shape: Any = self.array._type.shape
        element = self._number((0,) * len(shape))
        self.array._storage.writable = False
        old = {tuple(self.numbers(key)): key for key in self.entry}
        for place, is_assigned in self.order.items():
            if not is_assigned:
                continue
            chain = index_chain(self.array._chain, shape, [number - low for number, (low, _) in zip(place, self.box, strict=True)])
            made = handle(self.array._storage, chain, element._type)
            made._kind = self.kind
            self.base[old[place] if place in old else self._key(place)] = made

    def _key(self, place: tuple[int, ...]) -> Any:
        parts = tuple([number if texts is None else texts[number] for number, texts in zip(place, self.texts, strict=True)])
        return parts if self.is_of_tuples else parts[0]


def _is_integer(x: Any) -> bool:
    """Whether it is one of Python's integers."""
    return x._kind is int if isinstance(x, Tracer) else type(x) is int


def form_of(key: Any) -> tuple[bool, int]:
    """What keys of one table have in common."""
    return type(key) is tuple, len(key) if type(key) is tuple else 1


def tabled(base: Any) -> Table | None:
    """The table of a dictionary in a loop that is being traced."""
    if type(base) is not dict:
        return None
    for scope in scopes_around(base):
        found = None if scope.loop is None else scope.loop.indexed.get(id(base))
        if found is not None:
            return found  # type: ignore[no-any-return]
    return None


HANDLERS["is_tabled"] = lambda base: tabled(base) is not None


def table_of(base: Any, key: Any) -> Table | None:
    """The table of a dictionary that a key made of indices is asked of: a new one, where it can be."""
    found = tabled(base)
    if found is not None or type(base) is not dict:
        return found
    parts = key if type(key) is tuple else (key,)
    scopes = scopes_around(base)
    if not any(isinstance(part, IndexTracer) for part in parts) or not scopes or any(
            scope.loop is not None and not isinstance(scope.loop.index and scope.loop.capacity, int) for scope in scopes):
        return None
    loop = scopes[0].loop
    if loop is None or not isinstance(loop.count, int) or any(isinstance(part, Tracer) and extent_of(part) is None for part in parts):
        return None
    if any(type(part) is not str and extent_of(part) is None for part in parts) or any(not _alike(one, key) for one in base) or not all(
            is_number(value) and (is_float(value) or _is_integer(value)) for value in base.values()):
        return None
    texts: tuple[list[str] | None, ...] = tuple([[] if type(part) is str else None for part in parts])
    loop.indexed[id(base)] = made = Table(base, loop, texts, type(key) is tuple)
    return made


def _alike(one: Any, key: Any) -> bool:
    """Whether a key that a dictionary has is of the form of another one."""
    parts, others = one if type(one) is tuple else (one,), key if type(key) is tuple else (key,)
    return form_of(one) == form_of(key) and all(type(part) is (str if type(other) is str else int)
                                                for part, other in zip(parts, others, strict=True))


def _place_among(texts: list[str], text: str) -> int:
    """Where a text is among those that were seen; a new one is the last."""
    if text not in texts:
        texts.append(text)
    return texts.index(text)


def assign(base: Any, key: Any, value: Any) -> bool:
    """base[key] = value, if the numbers of base are in an array, or shall be."""
    found = tabled(base) or (table_of(base, key) if type(base) is dict and is_new(base, key) else None)
    if found is not None:
        found.write(key, value)
    return found is not None


HANDLERS["assign_to_table"] = assign


def is_new(base: dict[Any, Any], key: Any) -> bool:
    """Whether a dictionary may not have all keys that one made of indices can be, or has many."""
    return len(base) > FEW or not is_among(list(base), key)


def method_of(base: dict[Any, Any], name: str) -> Any:
    """What is called for a method of a dictionary; None where that is the method."""
    if name != "get":
        refuse_whole(base)
        return None

    def found(key: Any, default: Any = None, /) -> Any:
        in_table = tabled(base)
        return get(base)(key, default) if in_table is None else in_table.get(key, default)
    return found
