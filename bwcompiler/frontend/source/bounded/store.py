"""Rows of numbers in arrays with room for more: the representation of stacks, heaps and dictionaries.

Row k exists if k < count.  The arrays are assigned to in place; loops and branches carry them like all arrays.  Elements that are arrays
are copies, which is correct as long as nobody writes to what was put in (`carried.kept`) or to what is handed out, which is read-only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.errors import TracerError, at
from bwcompiler.frontend.source.bounded import forms, sites
from bwcompiler.frontend.source.bounded.forms import Form, Kind
from bwcompiler.frontend.source.changes import own
from bwcompiler.frontend.source.effects.checks import raise_where
from bwcompiler.frontend.source.undecided.kinds.choices import Choice
from bwcompiler.frontend.source.undecided.lists import gaps
from bwcompiler.frontend.source.variables import open_policy
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.control_flow.shared_arrays import keep
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.policy import Site
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.frontend.tracing.truths import note_truth
from bwcompiler.ir.op import Value
from bwcompiler.operators import Operators

_CAN_BE = ("real numbers, traced arrays, texts and the like that are known, and tuples of these, can be in it\n"
           "  hint: numbers in the place of texts, lists and objects: their places in a table")
_ALIKE = "tuples of as many items, with arrays of one shape and dtype: (time, kind, place), with None where there is nothing"


def refused(text: str) -> TracerError:
    return TracerError(at(current_source(open_region().outer), text))


def shown(key: Any) -> str:
    """A key in messages; of which data say what it is: of what."""
    return repr(key) if type(key) is Choice or isinstance(key, str) else f"{key}"


def kind_of(leaf: Any) -> Kind:
    """Python's type of a number, or None; dtype and shape."""
    if not forms.can_be_leaf(leaf):
        raise refused(f"a {type(leaf).__name__} in a list or dictionary that data fill: {_CAN_BE}")
    return forms.kind_of(leaf)


def form_of(x: Any) -> Form:
    """The form of an element: its structure, and the kinds of its leaves."""
    return _form_of(pattern_of(x))


def _form_of(pattern: Any) -> Form:
    try:
        return forms.form_of(pattern)
    except forms.NoElement as error:
        raise refused(f"{error} in a list or dictionary that data fill: {_CAN_BE}") from None


def pattern_of(x: Any) -> Any:
    """What an element is like (`forms`), which can be one."""
    try:
        return forms.pattern_of(x)
    except forms.NoElement as error:
        raise refused(f"{error} in a list or dictionary that data fill: {_CAN_BE}") from None


def covering(pattern: Any, other: Any) -> Any:
    """What covers elements of both patterns."""
    try:
        return forms.covering(pattern, other)
    except forms.NoElement as error:
        raise refused(f"{error} in a list or dictionary that data fill\n  hint: {_ALIKE}") from None


def sought(x: Any, pattern: Any) -> list[Any] | None:
    """The leaves of what is looked up (`forms.sought`)."""
    try:
        return forms.sought(x, pattern)
    except forms.NoElement as error:
        raise refused(f"{error} of a dictionary or set that data fill") from None


class Store:
    """Rows of one structure.  `owner`: the container that they are the elements of, made in the line `site`."""

    def __init__(self, owner: Any, site: Site, room: int, form: Form) -> None:
        policy = open_policy()
        assert policy is not None
        policy.gaps = True
        gaps.maybe(False, None)                    # lists of what is in it have gaps
        self.owner = owner
        self.site = site
        self.room = room
        self.structure, self.kinds = form
        self.pattern = forms.pattern(self.structure, self.kinds)
        self.met: set[type] = set()                # classes of what was put in
        self.arrays = [_zeros((room, *shape), dtype) for _, dtype, shape in self.kinds]
        self.counter = _zeros((1,), "int64")
        # Which elements there were, when those were asked for of containers that are made in the same line.
        self.flags: set[Value] = policy.given.setdefault(site, set())

    def copied(self) -> Store:
        """Another one with the same elements.  It is planned together with this one: what is added to it may come back here, in a loop."""
        found = Store(self.owner, self.site, self.room, (self.structure, self.kinds))
        found.arrays = [array.copy() for array in self.arrays]
        found.counter = self.counter.copy()
        found.met = set(self.met)
        return found

    @property
    def count(self) -> Any:
        found = self.counter[0]
        found._kind = int
        return found

    @count.setter
    def count(self, value: Any) -> None:
        self.counter[0] = value

    def leaves(self, value: Any) -> list[Any]:
        """The leaves of an element, which is to be of the form that the others have."""
        self._require(pattern_of(value))
        return tree.leaves(forms.fitted(value, self.pattern))

    def _require(self, pattern: Any) -> None:
        """What comes in is of the form that the others have."""
        self.pattern = forms.renewed(self.pattern, pattern, self.met)
        self.structure = tree.structure(self.pattern)
        self.met |= forms.kinds_in(pattern)
        form = _form_of(covering(self.pattern, pattern))
        if form != (self.structure, self.kinds):
            self.again(sites.Plan(self.room, form))

    def again(self, plan: sites.Plan) -> None:
        sites.widen(self.site, plan, refused("what a list or dictionary holds that data fill does not settle"))

    def make_room(self, most: int = 1, number: Any = 1, in_all: int | None = None) -> None:
        """So many elements more, `most` at most: raises, when the program runs, where there is no room left.

        in_all: the most that there can ever be.
        """
        needed = sites.added(self.owner, most)
        self._require_room(needed if in_all is None else min(needed, in_all + 1))      # one may be there already
        if open_region().parent is not None:       # elsewhere each element was counted
            self._check_room(self.count + number)

    def _require_room(self, needed: int) -> None:
        if needed > self.room:
            self.again(sites.Plan(min(max(needed, 2 * self.room), sites.MOST), (self.structure, self.kinds)))

    def _check_room(self, count: Any) -> None:
        text = (f"a list or dictionary gets more than {self.room} elements: compiled code has room for {self.room}\n"
                "  hint: an array that is made before, with as much room as it needs")
        raise_where(count > self.room, TracerError(text))

    def extend(self, block: gaps.Block) -> None:
        """Put the elements of a block that are there behind the others."""
        self._put_behind(block, lambda number: self.make_room(block.count, number))

    def hold(self, block: gaps.Block, rest: int | None) -> None:
        """Hold the elements of a block that are there, instead of its own.

        rest: how many of these are not taken of its own; None where all are.
        """
        needed = sites.held(self.owner, block.count) if rest is None else sites.added(self.owner, rest)

        def require(number: Any) -> None:
            self._require_room(needed)
            if rest is not None:
                self._check_room(number)
        self.count = 0
        self._put_behind(block, require)

    def _put_behind(self, block: gaps.Block, require: Callable[[Any], None]) -> None:
        """require: is told how many elements come."""
        self._require(forms.pattern_of_rows(block))
        leaves = [call(as_tracer, leaf) for leaf in tree.leaves(forms.fitted(block.value, self.pattern, block.count))]
        rank = np.cumsum(block.present)
        require(rank[-1])
        places = np.arange(self.room) - self.count
        chosen = np.minimum(np.searchsorted(rank, places + 1), block.count - 1)
        is_new = np.logical_and(places >= 0, places < rank[-1])
        for array, leaf in zip(self.arrays, leaves, strict=True):
            array[...] = np.where(is_new.reshape((self.room,) + (1,) * (leaf.ndim - 1)), leaf[chosen], array)
        self.count = self.count + rank[-1]

    def replace(self, other: Store) -> None:
        """Hold what another one holds, instead."""
        self._require(other.pattern)
        form = self.structure, self.kinds
        if (other.structure, other.kinds) != form:
            other.again(sites.Plan(other.room, form))
        self._require_room(max(other.room, sites.bound(self.owner) if other.owner is self.owner else sites.held(
            self.owner, sites.bound(other.owner))))
        for array, others in zip(self.arrays, other.arrays, strict=True):
            array[:other.room] = others
        self.count = other.count

    def put(self, place: Any, leaves: Sequence[Any]) -> None:
        for array, leaf in zip(self.arrays, leaves, strict=True):
            if array.ndim > 1 and isinstance(leaf, Tracer):    # no zeros in the place of an array that is not there
                keep(leaf)
            array[place] = leaf

    def find(self, leaves: Sequence[Any]) -> tuple[Any, Any]:
        """Whether there is an element that begins with these leaves, and where."""
        equal = self.are_like(leaves)
        return np.any(equal), np.argmax(equal)

    def find_key(self, key: Any, pattern: Any) -> tuple[Any, Any]:
        """Whether there is an element that begins with a key, and where; pattern: of the keys that there are."""
        leaves = sought(key, pattern)
        return (False, 0) if leaves is None else self.find(leaves)

    def are_like(self, leaves: Sequence[Any]) -> Any:
        """Which elements begin with these leaves."""
        equal = self.is_there()
        for array, leaf in zip(self.arrays, leaves, strict=False):
            equal = np.logical_and(equal, array == leaf)
        return equal

    def put_once(self, value: Any, key: int) -> None:
        """Put an element in the place of the one with the same first `key` leaves, or behind the others."""
        leaves = self.leaves(value)
        self.make_room(in_all=forms.different(self.pattern if key == len(leaves) else self.pattern[0]))
        found, place = self.find(leaves[:key])
        place = np.where(found, place, self.count)
        self.put(place, leaves)
        self.count = np.maximum(self.count, place + 1)

    def row(self, place: Any) -> Any:
        """The element at a place."""
        found = []
        for array, (kind, _, _) in zip(self.arrays, self.kinds, strict=True):
            leaf = _read_only(array[place])
            if kind is not None:
                leaf._kind = kind
            elif not leaf.ndim and leaf.dtype.kind == "b":
                note_truth(leaf, None)             # which may have been put in as Python's
            found.append(leaf)
        return tree.unflatten(self.structure, found)

    def is_there(self) -> Any:
        return np.arange(self.room) < self.count

    def without(self, place: Any, there: Any = True) -> None:
        """The element at a place goes, if it is there; those behind it move up."""
        numbers = np.arange(self.room)
        order = np.minimum(numbers + np.logical_and(numbers >= place, there), self.room - 1)
        for array in self.arrays:
            array[...] = array[order]
        self.count = self.count - np.where(there, 1, 0)

    def elements(self, chosen: Callable[[Any], Any] = lambda row: row) -> list[Any]:
        """All elements, or something of each, as a list with gaps: as they are now."""
        columns = tree.unflatten(self.structure, [_read_only(array) if array.ndim > 1 else array.copy() for array in self.arrays])
        value, there = chosen(columns), self.is_there()
        self.flags.add(call(value_of, there))
        kinds = tuple([leaf.kind[0] for leaf in tree.leaves(chosen(self.pattern))])
        return own(gaps.unpacked([gaps.Block(there, value, self.room, True, kinds)]))  # type: ignore[no-any-return]


class Bounded(Operators):
    """What all containers with room have; kind: the type that they stand for."""

    is_bounded = True
    store: Store
    kind: type

    def made_as(self) -> tuple[type, Any]:
        """What a result of the program is made as: its type, and what a `defaultdict` makes, or the `maxlen` of a `deque`."""
        return self.kind, None

    def elements(self) -> list[Any]:
        """What such a result is made of."""
        return self.listed()  # type: ignore[no-any-return]

    def __eq__(self, other: Any) -> Any:
        if type(other) is self.kind and not other:
            return self.store.count == 0
        return self._refuse(other)

    def __ne__(self, other: Any) -> Any:
        return np.logical_not(self == other)

    def _refuse(self, *_: Any) -> Any:
        raise refused(f"a {self.kind.__name__} that data fill is compared, combined with another, or taken apart\n"
                      "  hint: a loop over it; arrays of fixed sizes, and how many of their rows are in use")

    _operate = as_dictionary = _refuse
    __iter__ = __len__ = __bool__ = __contains__ = __reversed__ = __format__ = __array__ = __copy__ = __deepcopy__ = _refuse

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__") and "kind" in self.__dict__ and hasattr(self.kind, name):
            return self._refuse()
        raise AttributeError(name)


def _read_only(x: Any) -> Any:
    """A number; or a copy of an array, to which nobody writes: that would be one to the element."""
    if x.ndim:
        x = x.copy()
        gaps.share_copy(x, ())
    return x


def _zeros(shape: tuple[int, ...], dtype: str) -> Tracer:
    return call(as_tracer, np.zeros(shape, dtype)).copy()  # type: ignore[no-any-return]
