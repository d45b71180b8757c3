"""Lists that grow in captured loops: `kept.append(x)` in every iteration.

Each array that an iteration appends becomes a row of a buffer, an array that the loop assigns to; after the loop the list holds views of
the rows.  While the body is traced the list as a whole is unknown: its old elements are followed by the marker `POISON`.  Its last
elements can be read, `kept[-1]`; the loop carries them.  A list that grows in front, `path.insert(0, x)`, is one that grows at its end,
read from the other side.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from bwcompiler.frontend.source.array_backed import invariant_lists
from bwcompiler.frontend.source.array_backed.boxes import boxed, unboxed
from bwcompiler.frontend.source.array_backed.histories import at_place, from_end, from_history, history_of
from bwcompiler.frontend.source.array_backed.schedules import Iterations, happening
from bwcompiler.frontend.source.containers.queues import is_queue
from bwcompiler.frontend.source.effects.places import Place, assign_place, note_change, scopes_around, short, taking_along
from bwcompiler.frontend.source.undecided.kinds.unbound import narrowed
from bwcompiler.frontend.source.undecided.lists.gaps import Maybe, Tail
from bwcompiler.frontend.source.variables import Again, NotCapturable, not_capturable, open_policy
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.indexing.index_handle import extent_of, index_handle
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.ir.extent import Extent, add_extents, lower, scale_extent
from bwcompiler.operators import Operators

WINDOW = 4                     # of the last elements can be read
MOST_IN_SIDE = 64              # elements that a side of a branch adds


class Unbounded(NotCapturable):
    """A list grows in a loop of nobody knows how many iterations."""


def unbounded() -> Unbounded:
    return Unbounded("it appends to a list, which gets nobody knows how long (in `for k in range(n)` with a `break` it may; or write "
                     "into an array that is made before, kept[k] = x)", current_source())


class _Poison(Operators):
    """In the place of the elements of a list that grows."""

    is_poison = True

    def _refuse(self, *_args: Any, **_options: Any) -> Any:
        not_capturable("it reads a list that grows in it as a whole")

    __array__ = __array_ufunc__ = __array_function__ = _refuse
    __getattr__ = __getitem__ = __setitem__ = __call__ = __iter__ = __len__ = __bool__ = __contains__ = __format__ = __str__ = _refuse
    __hash__ = __float__ = __int__ = __index__ = _operate = _refuse


POISON = _Poison()


class Growth:
    """A list from outside of a loop that grows in it.

    front   whether it grows in front: then the others are in the order in which elements are added, too, the reverse of the list's.
    entry   what it held before; items: what the iteration that is being traced has appended.
    each    how many elements an iteration appends, as far as is known.
    has_gaps  whether data decides if elements are appended.
    is_guess  whether nothing was appended yet: a loop inside reads it at a place that moves.
    count   how many of the last elements an iteration reads; `last` are these, a variable of the body.
    """

    def __init__(self, base: list[Any], front: bool = False) -> None:
        self.base = base
        self.front = front
        self.entry = base[::-1] if front else list(base)
        self.items: list[Any] = []
        self.before: list[Any] = []                # items when the iteration was traced the last time
        self.each = 0
        self.has_gaps = False
        self.is_guess = False
        self.count = 0
        self.last: tuple[Any, ...] = ()
        self.name = ""

    @property
    def cell_contents(self) -> Any:
        return self.last

    @cell_contents.setter
    def cell_contents(self, value: Any) -> None:
        self.last = value

    def begin(self) -> None:
        """Before an iteration."""
        self.before = self.items or self.before
        self.items = []
        self.base[:] = [POISON, *self.entry[::-1]] if self.front else [*self.entry, POISON]

    def end(self) -> None:
        """After an iteration: what the next one reads."""
        if self.count:
            self.last = (*self.last, *map(boxed, self.items))[-self.count:]

    def expect_read(self, count: int) -> None:
        """So many of the last elements will be read, if there are so many before the loop."""
        if count <= len(self.entry) and not any(one is POISON for one in self.entry[-count:]):
            self.count = max(self.count, count)

    def restore(self) -> None:
        """Give the list what it held."""
        self.base[:] = self.entry[::-1] if self.front else self.entry


# ----- in the body
def growing(base: list[Any], name: str, queue: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a list from outside, whose items are a variable of the body then (`queue`), unless it only grows in front in loops."""
    def insert(place: Any, value: Any) -> Any:
        in_loops = all(scope.loop is not None and scope.loop.capacity is not None for scope in scopes_around(base))
        if type(place) is not int or place or is_queue(base) or not in_loops:
            return queue(place, value)
        return append(base, value, front=True)
    return insert if name == "insert" else queue


def append(base: list[Any], *values: Any, front: bool = False) -> None:
    """Append to a list, which may be from outside of the bodies that are being traced; or put something in front of it."""
    scopes = scopes_around(base)
    if not scopes or is_queue(base):
        taking_along(base, functools.partial(_put_in_front, base) if front else base.extend)(values)
        return
    note_change(scopes)
    if len(values) > MOST_IN_SIDE and scopes[-1].tails is not None:       # each would be a result of the branch
        HANDLERS["wish_for_stack"](base, *values[:1])
        not_capturable(f"it adds {len(values)} elements to a list, or less, as data say", hint="kept[count:count + n] = ..., in an array "
                       "that is made before")
    loops = [scope.loop for scope in scopes if scope.loop is not None]
    if any(loop.capacity is None for loop in loops):
        raise unbounded()
    if any(scope.loop is None and scope.tails is None for scope in scopes):
        not_capturable(f"it calls list.append(), which may change list {short(base)}")
    indexed = next((loop for loop in loops if id(base) in loop.indexed), None)
    if indexed is not None:                          # it was read at places that move before it grew
        indexed.indexed.pop(id(base)).restore()
        indexed.kept.add(id(base))
    target, values = base, tuple(map(narrowed, values))
    for loop in loops:
        if id(base) not in loop.growths:
            loop.found_growths.setdefault(id(base), Growth(base, front))
        growth = loop.growths.get(id(base)) or loop.found_growths[id(base)]
        if growth.front is not front:
            HANDLERS["only_queue"](base)
        growth.is_guess = False
        growth.has_gaps |= scopes[-1].tails is not None or any(type(value) is Maybe for value in values)
        target = growth.items
    if indexed is not None:
        raise Again(indexed)
    if scopes[-1].tails is not None:
        scopes[-1].tails.setdefault(id(base), Tail(base, target))
    if loops and id(base) in loops[0].histories:
        loops[0].histories[id(base)].append(length(base), values, len(_growths(base)))
    target.extend(values)


HANDLERS["append_to_list"] = append


def _put_in_front(base: list[Any], values: Sequence[Any]) -> None:
    """One after the other."""
    base[:0] = values[::-1]


def expect(base: list[Any]) -> None:
    """A list is read at a place that moves with a loop: that can be had if it grows with the loop."""
    scopes = scopes_around(base)
    if not scopes or is_queue(base) or is_growing(base) or any(
            scope.loop is None or not isinstance(scope.loop.count, int) for scope in scopes):
        return
    for scope in scopes:
        if id(base) not in scope.loop.found_growths:
            growth = scope.loop.found_growths[id(base)] = Growth(base)
            growth.is_guess = True
    raise Again(scopes[-1].loop)


def note_read(base: list[Any], index: Any) -> None:
    """An element near an end of a list is read, which may turn out to grow later in the body: loops will carry that then."""
    policy = open_policy()
    if type(index) is not int or not -WINDOW <= index < WINDOW or policy is None or not policy.depth:
        return
    key, place = (id(base), index >= 0), index + 1 if index >= 0 else -index
    for scope in scopes_around(base):
        if scope.loop is not None and id(base) not in scope.loop.found_growths:
            scope.loop.read_at_ends[key] = max(place, scope.loop.read_at_ends.get(key, 0))


def _growths(base: Any) -> list[tuple[Any, Growth]]:
    """The loops in which a list grows, outermost first."""
    if type(base) is not list:
        return []
    return [(scope.loop, scope.loop.growths[id(base)]) for scope in scopes_around(base)
            if scope.loop is not None and id(base) in scope.loop.growths]


def is_growing(base: Any) -> bool:
    """Whether a list grows in a loop that is being traced."""
    policy = open_policy()
    return policy is not None and bool(policy.depth) and bool(_growths(base))


def require_noted(base: Any) -> None:
    """A list is assigned to: a loop in which it was just found to grow is traced again, as one that knows."""
    for scope in scopes_around(base):
        if scope.loop is not None and id(base) in scope.loop.found_growths:
            raise Again(scope.loop)


def refuse_whole(base: Any) -> None:
    """Something needs all elements of a list."""
    if is_growing(base):
        not_capturable("it reads a list that grows in it as a whole")
    if HANDLERS["is_tabled"](base):
        not_capturable("it reads a dictionary that it fills as a whole")


def length(base: list[Any]) -> Any:
    """len of a list that grows."""
    growths = _growths(base)
    if all(loop.index is not None for loop, _ in growths):
        return call(index_handle, _length(growths))
    _refuse_gaps(growths)
    found: Any = len(growths[0][1].entry)
    for loop, growth in growths:
        number = loop.names[loop.counter] if loop.index is None else call(index_handle, loop.index.extent())
        found = found + number * growth.each + len(growth.items)
    return found


def _refuse_gaps(growths: Sequence[tuple[Any, Growth]]) -> None:
    if any(growth.has_gaps for _, growth in growths):
        HANDLERS["wish_for_stack"](growths[0][1].base, *[one for _, growth in growths for one in (*growth.before, *growth.items)])
        not_capturable("it reads a list to which it appends as data decides")


def _length(growths: Sequence[tuple[Any, Growth]]) -> Extent:
    _refuse_gaps(growths)
    found: Extent = len(growths[0][1].entry)
    for loop, growth in growths:
        found = add_extents(found, add_extents(scale_extent(loop.index.extent(), growth.each), len(growth.items)))
    return found


def numbers(base: list[Any], with_room: bool = False) -> Any:
    """The numbers that a list that grows in one loop holds now, as an array; None where they cannot be in one.

    with_room: with all that may follow.
    """
    growths = _growths(base)
    growth = growths[0][1]
    if growth.front and with_room:
        return None
    history = history_of(base, growth) if len(growths) == 1 and not growth.has_gaps else None
    found = None if history is None else history.numbers(None if with_room else length(base))
    return found[::-1] if found is not None and growth.front else found


def element(base: list[Any], index: Any) -> Any:
    """base[index] of a list that grows."""
    growths = _growths(base)
    _refuse_gaps(growths)
    if growths[0][1].front:
        if isinstance(index, slice) and index.start is None and index.step is None and type(index.stop) is int and index.stop > 0:
            return _last(growths, index.stop)[::-1]
        index = _from_front(growths, index)
    if isinstance(index, slice) and type(index.start) is int and index.start < 0 and index.stop is None and index.step is None:
        return _last(growths, -index.start)
    extent = None if isinstance(index, slice) else extent_of(index)
    if extent is None:
        found = at_place(base, growths[0][1], index, length(base)) if len(growths) == 1 else None
        return _refuse_place(growths) if found is None else found
    if isinstance(extent, int) and extent < 0:
        return _from_end(growths, -extent)
    if isinstance(extent, int) and extent < len(growths[0][1].entry):
        return growths[0][1].entry[extent]
    if lower(extent) >= 0 and invariant_lists.is_read(growths[0][1].entry, index):      # else from the end, which moves
        return invariant_lists.element(growths[0][1].entry, index, base)
    if any(loop.index is None for loop, _ in growths):
        return _refuse_place(growths)
    distance = add_extents(_length(growths), scale_extent(extent, -1))
    if isinstance(distance, int) and distance > 0:
        return _from_end(growths, distance)
    found = from_history(base, growths[0][1], extent, _length(growths)) if len(growths) == 1 else None
    return _refuse_place(growths) if found is None else found


def _from_front(growths: Sequence[tuple[Any, Growth]], index: Any) -> Any:
    """The place of an element in the order in which they were added, of a list that grows in front."""
    if isinstance(index, slice):
        return _refuse_place(growths, "from front to back")
    return -1 - index


def _refuse_place(growths: Sequence[tuple[Any, Growth]], place: str = "at places that are not known") -> NoReturn:
    if growths[-1][1].is_guess:                    # it was thought to grow, as this is where it is read
        not_capturable("it reads a list at places that move, whose elements are not alike, or change meanwhile")
    not_capturable(f"it reads a list that grows in it {place}")


def _last(growths: Sequence[tuple[Any, Growth]], count: int) -> list[Any]:
    """The last elements, so many: of a list that is shorter a slice is as long as the list."""
    is_long = len(growths) == 1 and _is_long(*growths[0], count)
    return [_from_end(growths, place, is_checked=is_long) for place in range(count, 0, -1)]


def _is_long(loop: Any, growth: Growth, count: int) -> bool:
    """Whether a list has so many elements in all iterations that come here, as far as tests of the iteration's number tell."""
    if not isinstance(loop.capacity, int):
        return False
    numbers = np.arange(loop.capacity)
    iterations = Iterations({} if loop.index is None else {loop.index: numbers})
    if loop.index is None:
        counter = call(value_of, loop.names[loop.counter])
        iterations.found[iterations.given.get(counter, counter)] = numbers
    tests = [(scope.test, scope.side) for scope in scopes_around(growth.base) if scope.test is not None]
    happens, _ = happening(iterations, tests, loop.capacity)
    return not np.any(happens & (len(growth.entry) + numbers * growth.each + len(growth.items) < count))


def _from_end(growths: Sequence[tuple[Any, Growth]], place: int, is_checked: bool = True) -> Any:
    """The last element for place 1, the one before it for 2 ...

    is_checked: that a list has it which does not at first is checked when the program runs; else such iterations are traced apart.
    """
    loop, growth = growths[-1]
    if place <= len(growth.items):
        return growth.items[-place]
    place -= len(growth.items)
    if place > WINDOW or (1 < place > growth.count and len(growths) == 1 and len(growth.entry) < place):
        found = from_end(growth, place + len(growth.items), length(growth.base)) if len(growths) == 1 and is_checked else None
        if found is None and place > WINDOW:
            _refuse_place(growths, f"more than {WINDOW} elements from its end")
        if found is not None:
            return found
    if place > growth.count:
        growth.count = place
        raise Again(loop)
    return unboxed(growth.last[-place], double=True)


def write(base: list[Any], index: Any, value: Any) -> None:
    """base[index] = value of a list that grows: of an element that this iteration has appended."""
    growths = _growths(base)
    _refuse_gaps(growths)
    _, growth = growths[-1]
    index = _from_front(growths, index) if growth.front else index
    extent = None if isinstance(index, slice) or any(loop.index is None for loop, _ in growths) else extent_of(index)
    place = -index if type(index) is int and index < 0 else None if extent is None else add_extents(
        _length(growths), scale_extent(extent, -1))
    if not isinstance(place, int) or not 0 < place <= len(growth.items):
        not_capturable("it assigns to an element of a list that grows in it, which it has not appended in the same iteration")
    growths[-1][0].scope.own[id(growth.items)] = growth.items
    assign_place(Place(growth.items, "item", len(growth.items) - place), value)
    history = growths[0][0].histories.get(id(base))
    if history is not None:
        history.append(length(base) - place, [value], len(growths))


def last_on_entry(loop: Any, growth: Growth) -> tuple[Any, ...]:
    """The last elements before the first iteration."""
    around = [(other, outer) for other, outer in _growths(growth.base) if other is not loop]
    if not around and len(growth.entry) < growth.count:
        raise NotCapturable(f"its first iteration reads {growth.count} elements of a list of {len(growth.entry)}", peel=True)
    return tuple([boxed(_from_end(around, place) if around else growth.entry[-place]) for place in range(growth.count, 0, -1)])
