"""Dictionaries whose keys depend on data: `counts[int(k)] = counts.get(int(k), 0) + 1`, `collections.Counter`, `defaultdict(float)`.

One array holds the keys in order of insertion, another the values.  To look up a key, it is compared with all of them.
"""

from __future__ import annotations

import collections
import functools
import operator
from collections.abc import Callable, Iterable
from typing import Any

from bwcompiler import tree
from bwcompiler.frontend.source.array_backed.growth import POISON
from bwcompiler.frontend.source.bounded import forms, sites
from bwcompiler.frontend.source.bounded.forms import Form
from bwcompiler.frontend.source.bounded.groups import Forms, Groups
from bwcompiler.frontend.source.bounded.store import Bounded, Store, refused, shown
from bwcompiler.frontend.source.bounded.views import View
from bwcompiler.frontend.source.changes import changed, own
from bwcompiler.frontend.source.effects.places import refuse_change, scopes_around
from bwcompiler.frontend.source.library import plain
from bwcompiler.frontend.source.undecided.kinds.choices import Choice
from bwcompiler.frontend.source.undecided.lists import gaps, keyed, moved
from bwcompiler.frontend.source.variables import UNBOUND, parts_of
from bwcompiler.frontend.tracing.indexing.index_handle import extent_of
from bwcompiler.frontend.tracing.policy import Site
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer

KINDS = (dict, collections.defaultdict, collections.Counter)
_NOTHING = object()
_HINT = "\n  hint: an array whose indices are the keys, np.zeros(n), or np.unique and masks"


def is_asked(items: Any, key: Any) -> bool:
    """Whether a dictionary is asked by a key that data say, no index of a loop; by one of several that it may not have."""
    parts = key if type(key) is tuple else (key,)
    if type(items) not in KINDS:
        return False
    if any(isinstance(part, Tracer) and extent_of(part) is None for part in parts):
        return True
    if type(key) is Choice:
        return key.has_value or any(thing is not UNBOUND and thing not in items for thing in key.options.things)
    return any(type(part) is Choice for part in parts)


def want(items: Any, key: Any, value: Any) -> None:
    """A dictionary may get a key that data say: trace the function again with one that has room, where that can be."""
    if not is_asked(items, key):
        return
    factory = _missing(items)
    if isinstance(factory, type) and factory not in (int, float, list):
        raise refused(f"{shown(key)} is a key of a dictionary of {factory.__name__}s: data say which\n"
                      "  hint: masks, x[labels == k], or a list of pairs that is sorted by its keys")
    refusal = refused(f"{shown(key)} may be a new key of a dictionary: data say which{_HINT}")
    kinds = _kinds(items, [(key, value)])
    if kinds is not None:
        sites.want(items, kinds, refusal, may_hold=not isinstance(kinds, Forms))


def wish(items: Any, *pairs: tuple[Any, Any]) -> None:
    """A dictionary is refused of which data decide whether it has some keys: one that has room may do.

    pairs: of keys and values that it is to get.
    """
    kinds = _kinds(items, pairs) if type(items) in KINDS and (items or pairs) else None
    if kinds is not None:
        known = None if isinstance(kinds, Forms) else forms.different(forms.pattern(*kinds)[0])
        sites.wish(items, kinds, may_hold=not isinstance(kinds, Forms), in_all=known)


def _kinds(items: Any, pairs: Iterable[tuple[Any, Any]]) -> Form | Forms | None:
    """The form of all elements of a dictionary, and of what else it is to have; None where there is none for all."""
    found = [(key, value) for key, value in (*items.items(), *pairs) if key is not POISON and value is not POISON]
    try:
        if _missing(items) is list or all(type(value) in (list, gaps.Items) for _, value in found):
            return Forms(forms.form_of(_covering([key for key, _ in found])))
        return forms.form_of(_covering(found)) if all(_is_value(value) for _, value in found) else None
    except forms.NoElement:
        return None


def _covering(elements: Iterable[Any]) -> Any:
    return functools.reduce(forms.covering, map(forms.pattern_of, elements))


def _is_value(x: Any) -> bool:
    """Whether something can be a value: what nobody can change, and arrays, which are copied."""
    return all(map(_is_value, x)) if isinstance(x, tuple) else type(x) is Choice or forms.can_be_leaf(x) or isinstance(x, str | None)


def _missing(items: Any) -> Callable[[], Any] | None:
    """What makes the value of a key that is not there."""
    if type(items) is collections.defaultdict:
        return items.default_factory
    return int if type(items) is collections.Counter else None


def supplied(items: Any, key: Any) -> None:
    """A dictionary of another kind is asked for a key in a body: that puts it there, where there is none."""
    if type(items) in (dict, collections.Counter) or not hasattr(type(items), "__missing__") or not scopes_around(items):
        return
    if any(isinstance(part, Tracer | Choice) for part in parts_of(key)) or key in items:
        return
    if type(items) is not collections.defaultdict:
        refuse_change(items)
    elif items.default_factory is not None:
        changed(items)[key] = HANDLERS["call_of"](items.default_factory)()


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
        return self.store.find_key(key, self.store.pattern[0])

    def _value(self, place: Any) -> Any:
        return self.store.row(place)[1]

    def _put(self, key: Any, value: Any) -> None:
        if not _is_value(value):
            raise refused(f"a {type(value).__name__} as a value of a dictionary whose keys data say: there may be numbers{_HINT}")
        self.store.put_once((key, value), len(tree.leaves(self.store.pattern[0])))

    # ----- as of a dictionary
    def __getitem__(self, key: Any) -> Any:
        if self.kind is collections.defaultdict and self.missing is not None:
            self.setdefault(key, self.missing())
        if self.kind is collections.Counter:
            return self.get(key, 0)
        found, place = self._found(key)
        gaps.require(found, lambda: shown(key), KeyError)
        return self._value(place)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._put(key, value)

    def __delitem__(self, key: Any) -> None:
        found, place = self._found(key)
        if self.kind is collections.Counter:       # which knows all keys
            self.store.without(place, found)
            return
        gaps.require(found, lambda: shown(key), KeyError)
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
            gaps.require(found, lambda: shown(key), KeyError)
        value = self._value(place) if default is _NOTHING else HANDLERS["choose"](found, lambda: self._value(place), lambda: default)
        self.store.without(place, found)
        return value

    def update(self, other: Any = (), **more: Any) -> None:
        if type(other) is Dictionary:
            HANDLERS["call_of"](plain.updated)(self, other)
            other = {}
        if isinstance(other, Bounded) or gaps.has_gaps(other):
            self._refuse()
        for key, value in dict(other, **more).items():
            self[key] = value

    def copy(self) -> Dictionary:
        found: Dictionary = own(object.__new__(Dictionary))
        found.kind, found.missing, found.store = self.kind, self.missing, self.store.copied()
        return found

    __copy__ = copy

    def __deepcopy__(self, _: Any) -> Dictionary:
        return self.copy()

    def as_dictionary(self, more: Any) -> Dictionary:
        """dict(self, **more)."""
        found = self.copy()
        found.kind, found.missing = dict, None
        found.update(more)
        return found

    def _operate(self, operation: Any, one: Any, other: Any) -> Any:
        if operation is not operator.or_ or self.kind is collections.Counter or not {type(one), type(other)} <= {Dictionary, *KINDS}:
            return self._refuse()
        found = merged((one,), (other,))
        found.kind, found.missing = (one.kind, one.missing) if type(one) is Dictionary else (type(one), _missing(one))
        return found

    def __ior__(self, other: Any) -> Dictionary:
        self.update(other)
        return self

    def clear(self) -> None:
        self.store.count = 0

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


def merged(*parts: tuple[Any, ...]) -> Any:
    """{key: value, **other}, of (key, value) and (other,), one after the other."""
    first = next((part[0] for part in parts if len(part) == 1 and type(part[0]) is Dictionary), None)
    if first is None:
        if any(len(part) == 2 and is_asked({}, part[0]) for part in parts):
            return HANDLERS["call_of"](plain.merged)(parts)
        return plain.merged(parts)
    found = first.as_dictionary({})
    rest = parts[1:]
    if parts[0][0] is not first:
        found.clear()
        rest = parts
    plain.put_parts(found, rest)
    return found


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


HANDLERS["dictionary_made"] = made
HANDLERS["want_bounded"] = want
HANDLERS["wish_for_dictionary"] = wish
HANDLERS["asking"] = Asking
