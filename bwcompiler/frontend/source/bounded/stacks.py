"""Lists, deques and heaps whose number of elements depends on data: `while stack: a, b = stack.pop(); ... stack.append((m, b))`.

Elements that are lists, dictionaries or objects are stored as their parts (`array_backed.boxes`): what was put in, and what is taken out,
is not to be changed from then on.

The only query of a heap is for its smallest element.  This does not depend on the order of the others, since equal ones are
indistinguishable.  Objects, which their methods compare, may be distinguishable: they lie in the list as Python's `heapq` puts them.
"""

from __future__ import annotations

import collections
import functools
import heapq
import operator
import types
from collections.abc import Iterable
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.frontend.source.array_backed.boxes import boxed, shared_box, unboxed
from bwcompiler.frontend.source.array_backed.grown_rows import depends
from bwcompiler.frontend.source.array_backed.growth import POISON, refuse_whole
from bwcompiler.frontend.source.bounded import forms, sites
from bwcompiler.frontend.source.bounded.store import Bounded, Store, refused
from bwcompiler.frontend.source.changes import own
from bwcompiler.frontend.source.concrete.contents import binary
from bwcompiler.frontend.source.containers.parts import containers
from bwcompiler.frontend.source.effects.doubles import note_taken
from bwcompiler.frontend.source.effects.places import scopes_around
from bwcompiler.frontend.source.library import plain
from bwcompiler.frontend.source.undecided.kinds.orders import columns
from bwcompiler.frontend.source.undecided.kinds.unbound import narrowed
from bwcompiler.frontend.source.undecided.lists import gaps, moved
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.indexing.index_handle import extent_of, index_handle
from bwcompiler.frontend.tracing.policy import Site
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.operators import Operation

KINDS = (list, collections.deque)
_HINT = f"\n  hint: {moved.STACK}"
_OF_HANDLERS = ('a text in the place of a method or of a function that is made here: (t, n, "arrival"), and behind it handlers[name](t), '
                'with handlers = {"arrival": self.on_arrival}')


def wish(items: Any, *more: Any) -> None:
    """A list is refused of which data decide how many elements it has: one that has room may do, if one form is for all its elements.

    more: what else it is to hold.
    """
    known = [one for one in (*items, *more) if one is not POISON]
    if type(items) not in KINDS or not known:
        return
    try:
        form = forms.form_of(functools.reduce(forms.covering, list(map(_pattern_of, known))))
    except forms.NoElement:
        return
    sites.wish(items, form)


def hint(items: Iterable[Any], otherwise: str) -> str:
    """What to write instead, of a list with these items that is refused: methods and functions that are made anew cannot have room."""
    parts = [part for item in items for part in (item if isinstance(item, tuple | list) else (item,))]
    is_made = any(isinstance(part, types.MethodType) or "<locals>" in getattr(part, "__qualname__", "") for part in parts)
    return _OF_HANDLERS if is_made else otherwise


def _pattern_of(item: Any) -> Any:
    """The pattern of an item of a list, which may be there or not."""
    if type(item) is not gaps.Maybe:
        return forms.pattern_of(boxed(item))
    return forms.pattern_of(item.value) if item._block is None else forms.pattern_of_rows(item._block[0])


class Stack(Bounded):
    """A list with room; most: elements of a `deque` with `maxlen`, of which the first goes where one more comes."""

    otherwise = 0                                  # elements that were appended otherwise than to a heap

    def __init__(self, site: Site, plan: sites.Plan, of: Any) -> None:
        own(self)
        self.kind = type(of)
        self.most: int | None = getattr(of, "maxlen", None)
        self.store = Store(self, site, plan.room if self.most is None else self.most, plan.kinds)
        self.freed: tuple[Any, int] = (None, 0)    # in which body elements were taken last, and how many have not been replaced there
        if self.most is None and gaps.has_gaps(of):
            self.hold(list(of))
        else:
            self.extend(of)

    def append(self, element: Any) -> None:
        self.otherwise += sites.times(self)
        leaves = self.store.leaves(_known(element))
        if self.most is None:
            self._make_room()
        else:
            self.store.without(0, self.store.count == self.most)
        count = self.store.count
        self.store.put(count, leaves)
        self.store.count = count + 1

    def _make_room(self) -> None:
        """For one element more than there were: not where the same run of a body has taken one before."""
        body, number = self.freed
        if body is open_region() and number:
            self.freed = body, number - 1
        else:
            self.store.make_room()

    def _note_taken(self) -> None:
        body, number = self.freed
        self.freed = open_region(), number + 1 if body is open_region() else 1

    def extend(self, elements: Any) -> None:
        if gaps.has_gaps(elements):
            self.otherwise += sites.times(self)
            self.store.extend(moved.whole(list(elements)))
            return
        for element in elements:
            self.append(element)

    def hold(self, elements: list[Any]) -> None:
        """Hold these instead of its own, of which some may be such."""
        self.clear()
        if not elements:
            return
        self.otherwise += sites.times(self)
        rests = [len(elements) - part.count for part in gaps.segments(elements) if isinstance(part, gaps.Block) and self._gave(part)]
        known = [one if type(one) is gaps.Maybe else _known(one) for one in elements]
        self.store.hold(moved.whole(known), rests[0] if rests else None)

    def _gave(self, block: gaps.Block) -> bool:
        """Whether a block is of what it gave when it was asked for its elements, or one that was made in the same line."""
        return isinstance(block.present, Tracer) and depends(call(value_of, block.present), self.store.flags)

    def appendleft(self, element: Any) -> None:
        self.insert(0, element)

    def insert(self, place: Any, element: Any) -> None:
        if self.most is not None:
            raise refused(f"an element at the beginning of a deque with maxlen that data fill{_HINT}")
        count, rows = self.store.count, np.arange(self.store.room)
        at = np.clip(np.where(place < 0, place + count, place), 0, count)
        self.append(element)
        order = np.where(rows == at, count, np.where(rows > at, np.maximum(rows - 1, 0), rows))
        for array in self.store.arrays:
            array[...] = array[order]

    def pop(self, place: Any = -1) -> Any:
        is_whole = type(place) is not int or (place != -1 and self.kind is list)
        found = self._place(place, "pop index out of range" if is_whole else f"pop from an empty {self.kind.__name__}")
        value = self._row(found)
        note_taken(*containers(value))
        if type(place) is int and place == -1:
            self.store.count = self.store.count - 1
        else:
            self.store.without(found)
        self._note_taken()
        return value

    def popleft(self) -> Any:
        return self.pop(0)

    def clear(self) -> None:
        self.store.count = 0

    def _place(self, place: Any, text: str) -> Any:
        """A place that is there, counted from the beginning."""
        count = self.store.count
        if type(place) is int:
            gaps.require(count > place if place >= 0 else count >= -place, text, IndexError)
            return place if place >= 0 else count + place
        gaps.require(np.logical_and(place >= -count, place < count), text, IndexError)
        return np.where(place < 0, place + count, place)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return moved.item(self.listed(), place)
        return self._row(self._place(place, "list index out of range"))

    def _row(self, place: Any) -> Any:
        return unboxed(self.store.row(place), double=True)

    def __setitem__(self, place: Any, element: Any) -> None:
        if isinstance(place, slice):
            raise refused(f"assignments to slices of a list that data fill{_HINT}")
        leaves = self.store.leaves(_known(element))
        self.store.put(self._place(place, "list assignment index out of range"), leaves)

    def __delitem__(self, place: Any) -> None:
        if isinstance(place, slice):
            raise refused(f"a slice is deleted from a list that data fill{_HINT}")
        self.store.without(self._place(place, "list assignment index out of range"))

    def __iadd__(self, elements: Iterable[Any]) -> Stack:  # type: ignore[misc]
        self.extend(elements)
        return self

    def _operate(self, operation: Operation, *operands: Any) -> Any:
        if operation is operator.add and all(type(one) is list or getattr(one, "kind", None) is list for one in operands):
            return own([element for one in operands for element in gaps.taken(one)])
        return self._refuse()

    def listed(self) -> list[Any]:
        return self.store.elements()

    in_any_order = listed

    def made_as(self) -> tuple[type, Any]:
        return self.kind, self.most

    # ----- as a heap
    def smallest(self) -> Any:
        """The place of the smallest element, of the first of those that are alike."""
        gaps.require(self.store.count > 0, "index out of range", IndexError)
        among = self.store.is_there()
        for column in columns(self._columns()) or ():
            low = np.min(np.where(among, column.numbers, _largest(column.numbers)))
            is_lowest = np.logical_and(among, column.numbers == low)
            column.require_alike(np.all(is_lowest == among), gaps.require)
            among = is_lowest
        return np.argmax(among)

    def _columns(self) -> Any:
        """An element of the arrays that hold all elements."""
        return tree.unflatten(self.store.structure, self.store.arrays)

    def by(self, function: Any, *args: Any) -> Any:
        """What a function of `heapq` does."""
        if not self.store.kinds:
            raise refused("a heap of what is known alone, which data fill\n  hint: tuples of numbers, (priority, number)")
        if columns(self._columns()) is None:
            return self._by_comparing(function, *args)
        if type(self) is Stack and function is not heapq.heapify and self.otherwise > 1:
            raise refused("a list that may be no heap is given to a function of heapq\n  hint: heapq.heapify(heap) before")
        if any(shape for _, _, shape in self.store.kinds):
            raise refused("arrays in a heap of traced numbers\n  hint: their numbers in a table in the place of arrays, (priority, number)")
        self.__class__ = Heap
        if function is heapq.heapify:
            return None
        if function is heapq.heapreplace:
            found = self.taken()
        if function is not heapq.heappop:
            Stack.append(self, *args)
        return found if function is heapq.heapreplace else self.taken() if function is not heapq.heappush else None

    def _by_comparing(self, function: Any, *args: Any) -> Any:
        """The same of objects, whose methods compare them: step by step as `heapq`, since those that are alike can be told apart."""
        if function is heapq.heappushpop:
            raise refused("heapq.heappushpop() of objects in a heap that data decide about\n  hint: heapq.heappush, and heapq.heappop")
        if function is heapq.heapify:
            return HANDLERS["call_of"](plain.put_in_heap)(self)
        if function is heapq.heappush:
            self.append(*args)
            return HANDLERS["call_of"](plain.sift_towards_first)(self, 0, self.store.count - 1)
        gaps.require(self.store.count > 0, "index out of range", IndexError)
        found = self.at(0)
        if function is heapq.heappop:
            self.put(0, self.at(self.store.count - 1))
            self.store.count = self.store.count - 1
            self._note_taken()
        else:
            self[0] = args[0]
        HANDLERS["call_of"](plain.sift_towards_last)(self, 0)
        value = unboxed(found, double=True)
        note_taken(*containers(value))
        return value

    def at(self, place: Any) -> Any:
        """An element, boxed."""
        return self.store.row(place)

    def put(self, place: Any, element: Any) -> None:
        self.store.put(place, tree.leaves(element))

    def is_less(self, one: Any, other: Any) -> Any:
        """Whether an element, boxed, is less than another one."""
        return HANDLERS["truth_of"](binary("lt", unboxed(one, double=True), unboxed(other, double=True)))

    def taken(self) -> Any:
        """The smallest element, which goes."""
        place = self.smallest()
        value = self._row(place)
        last = self.store.row(self.store.count - 1)
        self.store.put(place, tree.leaves(last))
        self.store.count = self.store.count - 1
        return value


def _largest(array: Any) -> Any:
    return np.inf if array.dtype.kind == "f" else np.iinfo(array.dtype).max


def _known(element: Any) -> Any:
    """An element, boxed, with the indices of loops as numbers."""
    def known(leaf: Any) -> Any:
        extent = extent_of(leaf) if isinstance(leaf, Tracer) else None
        return leaf if extent is None else call(index_handle, extent)
    return tree.map(known, shared_box(narrowed(element)))


class Heap(Stack):
    """A list that is a heap: its first element is the smallest, and others are not asked for."""

    def __getitem__(self, place: Any) -> Any:
        if type(place) is not int or place != 0:
            raise refused("another element of a heap of traced numbers than the first one\n  hint: sorted(heap)[k]")
        return self._row(self.smallest())

    def _changed(self, *_: Any) -> Any:
        raise refused("a heap of traced numbers is changed otherwise than by functions of heapq\n  hint: heapq.heappush, heapq.heappop")

    append = extend = appendleft = insert = pop = popleft = __iadd__ = _changed  # type: ignore[assignment]

    def listed(self) -> list[Any]:
        raise refused("the elements of a heap of traced numbers in their order\n  hint: sorted(heap)")

    def __setitem__(self, place: Any, element: Any) -> None:
        raise refused("an element of a heap of traced numbers is assigned to\n  hint: heapq.heapreplace, heapq.heappushpop")


def made(container: Any) -> Any:
    """A list that was just made, or one with room in its place."""
    if type(container) not in KINDS or getattr(container, "maxlen", None) == 0:
        return container
    found = sites.note(container, gaps.has_gaps(container))
    return container if found is None else Stack(*found, container)


def handed_over(x: Any, is_private: bool) -> Any:
    """A list that a variable gives away, where nobody can tell a copy from it; is_private: to a variable whose list nothing else holds."""
    if type(x) is list and scopes_around(x):       # which the body that is being traced may give away or not
        wish(x)
        refuse_whole(x)
        return made(own(list(x)))
    if type(x) is not Stack:
        return x
    if not is_private:
        return made(own(x.listed()))
    found = object.__new__(Stack)
    found.kind, found.most, found.otherwise, found.freed = x.kind, x.most, x.otherwise, (None, 0)
    found.store = x.store.copied()
    return own(found)


def wish_like(items: Any, *others: Any) -> None:
    """A list is refused in the place of which there is one with room, as data decide: with room it may do, too."""
    found = next((other for other in others if type(other) is Stack), None)
    if type(items) in KINDS and found is not None:
        sites.wish(items, (found.store.structure, found.store.kinds))


def taken_over(x: Any, other: Any) -> bool:
    """Whether one is a list with room, and the other one a list; then x holds what that does, which nothing else can tell apart."""
    if x is other or type(x) is not Stack or x.most is not None:
        return False
    if type(other) is list:
        x.hold(other)
    elif type(other) is Stack and other.most is None:
        x.store.replace(other.store)
        x.otherwise = max(x.otherwise, other.otherwise)
    else:
        return False
    x.freed = None, 0
    return True


HANDLERS["wish_for_stack"] = wish
HANDLERS["hint_for_stack"] = hint
