"""Dictionaries of lists whose keys depend on data: a `defaultdict(list)`, `groups[int(k)].append(x)`, or `groups.setdefault(k, [])`.

One store holds the keys, in order of insertion; another one all elements of all lists, each with its key, in the order in which they came.
A list (`Group`) is its key: its elements are those whose key is equal.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from bwcompiler import tree
from bwcompiler.errors import TracerError
from bwcompiler.frontend.source.bounded import sites
from bwcompiler.frontend.source.bounded.store import Bounded, Store, form_of, refused, shown, sought
from bwcompiler.frontend.source.bounded.views import View
from bwcompiler.frontend.source.changes import own
from bwcompiler.frontend.source.undecided.lists import gaps, moved
from bwcompiler.frontend.tracing.policy import Site

_HINT = "\n  hint: masks, x[labels == k], or a list of pairs that is sorted by its keys"


class Forms(NamedTuple):
    """The forms of the keys, and of the elements with their keys; None until one is appended."""

    key: Any
    pair: Any = None


class _Part(Store):
    """The keys, or the elements: what one of them needs is planned together with what the other one needs."""

    def __init__(self, of: Groups, name: str) -> None:
        super().__init__(own([]), of.site, of.plan.room, getattr(of.plan.kinds, name))
        self.of = of
        self.name = name

    def again(self, plan: sites.Plan) -> None:
        kinds = self.of.plan.kinds._replace(**{self.name: plan.kinds})
        super().again(sites.Plan(max(plan.room, self.of.plan.room), kinds))


class Groups(Bounded):
    """A dictionary of lists with room."""

    __hash__ = object.__hash__

    def __init__(self, site: Site, plan: sites.Plan, of: Any) -> None:
        own(self)
        _register()
        self.kind = type(of)
        self.site = site
        self.plan = plan
        self.store = _Part(self, "key")
        self.pairs = None if plan.kinds.pair is None else _Part(self, "pair")

    def find(self, key: Any) -> tuple[Any, Any]:
        """Whether a key is there, and where."""
        return self.store.find_key(key, self.store.pattern)

    def contains(self, key: Any) -> Any:
        return self.find(key)[0]

    def _group(self, key: Any) -> Group:
        """The list of a key, which is there from now on."""
        self.store.put_once(key, len(tree.leaves(self.store.pattern)))
        return Group(key, self)

    def __getitem__(self, key: Any) -> Group:
        if self.kind is collections.defaultdict:
            return self._group(key)
        gaps.require(self.contains(key), lambda: shown(key), KeyError)
        return Group(key, self)

    def __setitem__(self, key: Any, value: Any) -> None:
        if type(value) is Group and value.of is self and value.key is key:      # groups[k] += values
            return
        if type(value) is not list:
            raise refused(f"a {type(value).__name__} as a value of a dictionary of lists whose keys data say{_HINT}")
        text = ("a dictionary gets a list for a key that it has: compiled code takes that for new keys only\n"
                "  hint: if k not in groups: groups[k] = []")
        gaps.require(np.logical_not(self.contains(key)), text, TracerError)
        self._group(key).extend(value)

    def setdefault(self, key: Any, default: Any = None) -> Group:
        if type(default) is not list or default:
            raise refused(f"setdefault() of a dictionary of lists with something else than an empty list{_HINT}")
        return self._group(key)

    def __delitem__(self, key: Any) -> None:
        raise refused(f"a list is deleted from a dictionary whose keys data say{_HINT}")

    def keys(self) -> View:
        return View(self, type({}.keys()), lambda key: key)

    def values(self) -> View:
        return View(self, type({}.values()), lambda key: Group(key, self))

    def items(self) -> View:
        return View(self, type({}.items()), lambda key: (key, Group(key, self)))

    def listed(self) -> list[Any]:
        return self.store.elements()

    in_any_order = listed

    def made_as(self) -> tuple[type, Any]:
        return self.kind, list if self.kind is collections.defaultdict else None

    def elements(self) -> list[Any]:
        return self.items().listed()


@dataclasses.dataclass(eq=False)
class Group(Bounded):
    """The list of a key."""

    key: Any
    of: Groups = dataclasses.field(metadata={"static": True})

    kind = list

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__") and hasattr(list, name):
            return self._refuse()
        raise AttributeError(name)

    def append(self, element: Any) -> None:
        pairs = self.of.pairs
        if pairs is None:
            plan = self.of.plan._replace(kinds=self.of.plan.kinds._replace(pair=form_of((self.key, element))))
            sites.widen(self.of.site, plan, refused("what a dictionary of lists holds does not settle"))
        leaves = pairs.leaves((self.key, element))
        pairs.make_room()
        pairs.put(pairs.count, leaves)
        pairs.count = pairs.count + 1

    def extend(self, elements: Iterable[Any]) -> None:
        for element in elements:
            self.append(element)

    def __setitem__(self, place: Any, element: Any) -> None:
        raise refused(f"an element is assigned to, of a list in a dictionary whose keys data say{_HINT}")

    def __delitem__(self, place: Any) -> None:
        raise refused(f"an element is deleted from a list in a dictionary whose keys data say{_HINT}")

    def __iadd__(self, elements: Iterable[Any]) -> Group:  # type: ignore[misc]
        self.extend(elements)
        return self

    @property
    def store(self) -> Any:  # type: ignore[override]
        return self

    @property
    def count(self) -> Any:
        """How many elements there are."""
        found = self.listed()
        return gaps.length(found) if found else 0

    def listed(self) -> list[Any]:
        pairs = self.of.pairs
        if pairs is None:
            return []
        leaves = sought(self.key, pairs.pattern[0])
        there = np.logical_and(pairs.is_there(), False) if leaves is None else pairs.are_like(leaves)
        found = pairs.elements(lambda pair: pair[1])
        block = gaps.segments(found)[0]
        assert isinstance(block, gaps.Block)
        return own(gaps.unpacked([dataclasses.replace(block, present=there, is_prefix=False)]))  # type: ignore[no-any-return]

    in_any_order = listed

    def __iter__(self) -> Any:
        return iter(self.listed())

    def __getitem__(self, place: Any) -> Any:
        return moved.item(self.listed(), place)


@functools.cache
def _register() -> None:
    tree.register_dataclass(Group)
