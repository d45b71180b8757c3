"""Dictionaries whose keys depend on data: `counts[int(k)] = counts.get(int(k), 0) + 1`, `collections.Counter`, `defaultdict(float)`.

One array holds the keys in order of insertion, another the values.  To look up a key, it is compared with all of them.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.frontend.source.bounded import sites
from bwcompiler.frontend.source.bounded.groups import Forms, Groups
from bwcompiler.frontend.source.bounded.store import Bounded, Store, form_of, kind_of, refused
from bwcompiler.frontend.source.bounded.views import View
from bwcompiler.frontend.source.changes import own
from bwcompiler.frontend.source.undecided.lists import gaps, keyed, moved
from bwcompiler.frontend.tracing.indexing.index_handle import extent_of
from bwcompiler.frontend.tracing.policy import Site
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer

KINDS = (dict, collections.defaultdict, collections.Counter)
_NOTHING = object()
_HINT = "\n  hint: an array whose indices are the keys, np.zeros(n), or np.unique and masks"


def is_asked(items: Any, key: Any) -> bool:
    """Whether a dictionary is asked by a key that data say, no index of a loop."""
    parts = key if type(key) is tuple else (key,)
    return type(items) in KINDS and any(isinstance(part, Tracer) and extent_of(part) is None for part in parts)


def want(items: Any, key: Any, value: Any) -> None:
    """A dictionary may get a key that data say: trace the function again with one that has room, where that can be."""
    if not is_asked(items, key):
        return
    refusal = refused(f"{key} may be a new key of a dictionary: data say which{_HINT}")
    factory = _missing(items)
    if _may_be_group(items, factory, value) and all(_is_number(part) for one in (*items, key) for part in (
            one if type(one) is tuple else (one,))):
        sites.want(items, Forms(form_of(key)), refusal)
    if factory not in (None, int, float):
        raise refused(f"{key} is a key of a dictionary of {factory.__name__}s: data say which\n"
                      "  hint: masks, x[labels == k], or a list of pairs that is sorted by its keys")
    numbers = all(_is_number(one) for one in items.values()) and all(
        _is_number(part) for one in items for part in (one if type(one) is tuple else (one,)))
    if numbers:
        sites.want(items, (tree.structure((key, value)), list(map(kind_of, tree.leaves((key, value))))), refusal)


def _may_be_group(items: Any, factory: Any, value: Any) -> bool:
    """Whether the values of a dictionary are lists that are empty at first."""
    if factory is list:
        return True
    return type(items) is dict and type(value) is list and all(type(one) is list for one in items.values())


def _missing(items: Any) -> Callable[[], Any] | None:
    """What makes the value of a key that is not there."""
    if type(items) is collections.defaultdict:
        return items.default_factory
    return int if type(items) is collections.Counter else None


def _is_number(x: Any) -> bool:
    return isinstance(x, int | float | np.number | Tracer) and type(x) is not bool and not np.shape(x)


class Dictionary(Bounded):
    """A dictionary with room; missing: what makes the value of a key that is not there, of a `defaultdict` or a `Counter`."""

    def __init__(self, site: Site, plan: sites.Plan, of: Any) -> None:
        own(self)
        self.kind = type(of)
        self.missing = _missing(of)
        self.store = Store(self, site, plan.room, plan.kinds)
        for key, value in of.items():
            self[key] = value

    # ----- places
    def _found(self, key: Any) -> tuple[Any, Any]:
        """Whether a key is there, and where."""
        if tree.structure((key, 0)) != self.store.structure:
            return False, 0
        return self.store.find(tree.leaves(key))

    def _value(self, place: Any) -> Any:
        return self.store.row(place)[1]

    def _put(self, key: Any, value: Any) -> None:
        if not _is_number(value):
            raise refused(f"a {type(value).__name__} as a value of a dictionary whose keys data say: there may be numbers{_HINT}")
        self.store.put_once((key, value), len(tree.leaves(key)))

    # ----- as of a dictionary
    def __getitem__(self, key: Any) -> Any:
        if self.kind is collections.defaultdict and self.missing is not None:
            self.setdefault(key, self.missing())
        if self.kind is collections.Counter:
            return self.get(key, 0)
        found, place = self._found(key)
        gaps.require(found, lambda: f"{key}", KeyError)
        return self._value(place)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._put(key, value)

    def __delitem__(self, key: Any) -> None:
        found, place = self._found(key)
        if self.kind is collections.Counter:       # which knows all keys
            self.store.without(place, found)
            return
        gaps.require(found, lambda: f"{key}", KeyError)
        self.store.without(place)

    def contains(self, key: Any) -> Any:
        return self._found(key)[0]

    def get(self, key: Any, default: Any = None) -> Any:
        found, place = self._found(key)
        return HANDLERS["choose"](found, lambda: self._value(place), lambda: default)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        self._put(key, self.get(key, default))
        return self._value(self._found(key)[1])

    def pop(self, key: Any, default: Any = _NOTHING) -> Any:
        found, place = self._found(key)
        if default is _NOTHING:
            gaps.require(found, lambda: f"{key}", KeyError)
        value = self._value(place) if default is _NOTHING else HANDLERS["choose"](found, lambda: self._value(place), lambda: default)
        self.store.without(place, found)
        return value

    def keys(self) -> View:
        return View(self, type({}.keys()), lambda row: row[0])

    def values(self) -> View:
        return View(self, type({}.values()), lambda row: row[1])

    def items(self) -> View:
        return View(self, type({}.items()), lambda row: row)

    def listed(self) -> list[Any]:
        return self.keys().listed()

    in_any_order = listed

    def made_as(self) -> tuple[type, Any]:
        return self.kind, self.missing if self.kind is collections.defaultdict else None

    def elements(self) -> list[Any]:
        return self.store.elements()

    def most_common(self, n: int | None = None) -> list[Any]:
        found = keyed.in_order(self.items().listed(), key=lambda pair: -pair[1])
        return found if n is None else moved.item(found, slice(0, n))

    def total(self) -> Any:
        return gaps.total(self.values().listed())


def made(container: Any) -> Any:
    """A dictionary that was just made, or one with room in its place."""
    found = sites.note(container) if type(container) in KINDS else None
    if found is None:
        return container
    return Groups(*found, container) if isinstance(found[1].kinds, Forms) else Dictionary(*found, container)


class Asking:
    """In the place of a defaultdict or Counter that is assigned to: it may be asked by a key that data say."""

    __slots__ = ("changed", "items")

    def __init__(self, items: Any, changed: Any) -> None:
        self.items = items
        self.changed = changed

    def __getitem__(self, key: Any) -> Any:
        missing = _missing(self.items)
        want(self.items, key, 0 if missing is None else missing())
        return self.changed[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        want(self.items, key, value)
        self.changed[key] = value

    def __delitem__(self, key: Any) -> None:
        del self.changed[key]


HANDLERS["want_bounded"] = want
HANDLERS["asking"] = Asking
