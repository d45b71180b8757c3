"""Sets of numbers that data put in them: `if u not in seen: seen.add(u)`.

The elements are in an array in the order in which they came; one is compared with all.  In which order Python goes over a set depends on
its table: only what does not depend on that can be had of it (`len`, `in`, `min`, `max`, `sorted`, and the set as a result).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.frontend.source.bounded import sites
from bwcompiler.frontend.source.bounded.store import Bounded, Store, kind_of, refused
from bwcompiler.frontend.source.changes import own
from bwcompiler.frontend.source.effects.places import scopes_around
from bwcompiler.frontend.source.undecided.lists import gaps
from bwcompiler.frontend.source.variables import is_number
from bwcompiler.frontend.tracing.indexing.index_handle import extent_of
from bwcompiler.frontend.tracing.policy import Site
from bwcompiler.frontend.tracing.tracer import Tracer

_HINT = "\n  hint: a mask of those that are in it: seen = np.zeros(n, bool), and seen[k] = True for seen.add(k)"
_CHANGING = frozenset(("add", "discard", "remove"))


def changing(items: Any, name: str, method: Callable[..., Any], check: Callable[[], Any]) -> Callable[..., Any] | None:
    """What is called in the place of a method of a set that changes it; check: that it may be called where it is."""
    if type(items) is not set or name not in _CHANGING:
        return None

    def changed(*args: Any) -> Any:
        if len(args) == 1:
            _want(items, args[0])
        check()
        return method(*args)
    return changed


def _want(items: set[Any], x: Any) -> None:
    """A set may get an element that data say, or where data say: trace the function again with one that has room, where that can be."""
    parts = x if type(x) is tuple else (x,)
    is_traced = any(isinstance(part, Tracer) and extent_of(part) is None for part in parts)
    if (not is_traced and not scopes_around(items)) or not all(_is_number(part) for one in (*items, x) for part in (
            one if type(one) is tuple else (one,))):
        return
    kinds = tree.structure(x), [kind_of(leaf) for leaf in tree.leaves(x)]
    if is_traced:
        sites.want(items, kinds, refused(f"{x} may be a new element of a set: data say which{_HINT}"), may_hold=True)
    else:
        sites.wish(items, kinds)                   # if the loop around cannot be unrolled either


def _is_number(x: Any) -> bool:
    return is_number(x) and type(x) is not bool and not np.iscomplexobj(x) and not np.shape(x)


class Set(Bounded):
    """A set with room."""

    kind = set

    def __init__(self, site: Site, plan: sites.Plan, of: Iterable[Any]) -> None:
        own(self)
        self.kind = set
        self.store = Store(self, site, plan.room, plan.kinds)
        for x in of:
            self.add(x)

    def _found(self, x: Any) -> tuple[Any, Any]:
        """Whether an element is there, and where."""
        if any(np.shape(part) for part in tree.leaves(x)):
            raise TypeError("unhashable type: 'numpy.ndarray'")
        if tree.structure(x) != self.store.structure:
            return False, 0
        return self.store.find(tree.leaves(x))

    def contains(self, x: Any) -> Any:
        return self._found(x)[0]

    def add(self, x: Any) -> None:
        self.store.put_once(x, len(tree.leaves(x)))

    def update(self, *others: Iterable[Any]) -> None:
        for x in [x for other in others for x in other]:
            self.add(x)

    def discard(self, x: Any) -> None:
        found, place = self._found(x)
        self.store.without(place, found)

    def remove(self, x: Any) -> None:
        found, place = self._found(x)
        gaps.require(found, lambda: f"{x}", KeyError)
        self.store.without(place)

    def clear(self) -> None:
        self.store.count = 0

    def listed(self) -> list[Any]:
        raise refused("the elements of a set that data fill, in their order\n"
                      "  hint: sorted() of it, min, max, len, `in`; or a mask of what is in it: seen = np.zeros(n, bool)")

    def in_any_order(self) -> list[Any]:
        return self.store.elements()

    elements = in_any_order


def made(container: Any) -> Any:
    """A set that was just made, or one with room in its place."""
    found = sites.note(container) if type(container) is set else None
    return container if found is None else Set(*found, container)
