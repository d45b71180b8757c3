"""Python's built-in functions, written in Python, for lists whose length depends on data, and attributes that data bind or not: captured
like the user's functions.

Callers pass lists; numbers that the functions in their arguments return may be traced.  `lists.taking` says which function each one
replaces.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any


def listed(items: Any) -> Any:
    """list(items)."""
    return [item for item in items]  # noqa: C416  (this is what stands for that)


def sorted_by(items: Any, key: Callable[[Any], Any], reverse: bool) -> Any:
    """sorted(items, key=..., reverse=...)."""
    return sorted([item for item in items], key=key, reverse=reverse)  # noqa: C416


def mapped(function: Callable[[Any], Any], items: Any) -> Any:
    """map(function, items)."""
    return [function(item) for item in items]


def filtered(function: Callable[[Any], Any] | None, items: Any) -> Any:
    """filter(function, items)."""
    if function is None:
        return [item for item in items if item]
    return [item for item in items if function(item)]


def left_out(function: Callable[[Any], Any] | None, items: Any) -> Any:
    """itertools.filterfalse(function, items)."""
    if function is None:
        return [item for item in items if not item]
    return [item for item in items if not function(item)]


def taken_while(function: Callable[[Any], Any], items: Any) -> Any:
    """itertools.takewhile(function, items)."""
    found, goes_on = [], True
    for item in items:
        if goes_on and function(item):
            found.append(item)
        else:
            goes_on = False
    return found


def dropped_while(function: Callable[[Any], Any], items: Any) -> Any:
    """itertools.dropwhile(function, items)."""
    found, is_dropped = [], True
    for item in items:
        if not (is_dropped and function(item)):
            is_dropped = False
            found.append(item)
    return found


def any_of(items: Any) -> Any:
    """any(items)."""
    found = False
    for item in items:
        if item:
            found = True
    return found


def are_equal(items: Any, others: Any) -> Any:
    """items == others, of sequences of one type."""
    if len(items) != len(others):
        return False
    found = True
    for item, other in zip(items, others, strict=True):
        if item != other:
            found = False
    return found


def all_of(items: Any) -> Any:
    """all(items)."""
    found = True
    for item in items:
        if not item:
            found = False
    return found


def first_of(items: Any, *default: Any) -> Any:
    """next(iter(items), default)."""
    if len(items) > 0:
        return items[0]
    if default:
        return default[0]
    raise StopIteration


def counted(counts: Any, items: Any) -> Any:
    """counts.update(items), of a Counter."""
    for item in items:
        counts[item] += 1
    return counts


def product(items: Any, *, start: Any = 1) -> Any:
    """math.prod(items, start=...)."""
    for item in items:
        start = start * item
    return start


def pairs(items: Any) -> Any:
    """itertools.pairwise(items)."""
    return list(zip(items, items[1:], strict=False))  # noqa: RUF007  (this is what stands for that)


def accumulated(items: Any, function: Callable[[Any, Any], Any] | None = None, *, initial: Any = None) -> Any:
    """itertools.accumulate(items, function, initial=...)."""
    add = operator.add if function is None else function
    found = []
    if initial is not None:
        total, others = initial, items
        found.append(total)
    else:
        total, others = (items[0] if len(items) > 0 else 0.0), items[1:]
        if len(items) > 0:
            found.append(total)
    for item in others:
        total = add(total, item)
        found.append(total)
    return found


def reduced(function: Callable[[Any, Any], Any], items: Any, *initial: Any) -> Any:
    """functools.reduce(function, items, ...)."""
    total, others = (initial[0], items) if initial else (items[0], items[1:])
    for item in others:
        total = function(total, item)
    return total


def smallest(n: int, iterable: Any, key: Callable[[Any], Any] | None = None) -> Any:
    """heapq.nsmallest(n, iterable, key)."""
    return sorted(iterable, key=key)[:max(n, 0)]


def largest(n: int, iterable: Any, key: Callable[[Any], Any] | None = None) -> Any:
    """heapq.nlargest(n, iterable, key)."""
    return sorted(iterable, key=key, reverse=True)[:max(n, 0)]


def first_place(items: Any, x: Any) -> Any:
    """Where an item that equals x is for the first time; -1 where there is none."""
    found = -1
    for number, item in enumerate(items):
        if found < 0 and item == x:
            found = number
    return found


def place_of(items: Any, x: Any) -> Any:
    """items.index(x)."""
    found = first_place(items, x)
    if found < 0:
        raise ValueError("list.index(x): x not in list")
    return found


def popped_at(items: Any, place: Any) -> Any:
    """items.pop(place), of a list whose length is known."""
    count = len(items)
    if place < -count or place >= count:
        raise IndexError("pop index out of range")
    at = place + count if place < 0 else place
    found = items[at]
    for number in range(count - 1):
        if number >= at:
            items[number] = items[number + 1]
    del items[count - 1]
    return found


def inserted_at(items: Any, place: Any, x: Any) -> None:
    """items.insert(place, x), of a list whose length is known."""
    count = len(items)
    at = min(max(place + count, 0) if place < 0 else place, count)
    items.append(x)
    for number in range(count, 0, -1):
        if number > at:
            items[number] = items[number - 1]
    items[at] = x


def removed(items: Any, x: Any) -> None:
    """items.remove(x), of a list whose length is known."""
    at = first_place(items, x)
    if at < 0:
        raise ValueError("list.remove(x): x not in list")
    popped_at(items, at)


def repeated(items: Any, times: Any) -> Any:
    """items * times."""
    found = []
    for _ in range(times):
        for item in items:
            found.append(item)
    return found


def number_of(items: Any, x: Any) -> Any:
    """items.count(x)."""
    found = 0
    for item in items:
        if item == x:
            found += 1
    return found


def attribute_or(x: Any, name: str, default: Any) -> Any:
    """getattr(x, name, default)."""
    if hasattr(x, name):
        return getattr(x, name)
    return default


def updated(found: Any, other: Any) -> Any:
    """found.update(other), of a dictionary whose keys data decide."""
    for key, value in other.items():
        found[key] = value


def merged(parts: Any) -> Any:
    """{key: value, **other}, of (key, value) and (other,)."""
    found: Any = {}
    put_parts(found, parts)
    return found


def put_parts(found: Any, parts: Any) -> None:
    """Put (key, value) and (other,) into a dictionary, one after the other."""
    for part in parts:
        if len(part) == 1:
            found.update(part[0])
        else:
            found[part[0]] = part[1]


# ----- heaps of things that are compared by their methods, as in Python's `heapq`
def sift_towards_first(heap: Any, start: Any, place: Any) -> None:
    """The element at a place goes before those above it, up to `start`, that it is less than."""
    item, moves = heap.at(place), True
    while moves and place > start:
        above = (place - 1) // 2
        if heap.is_less(item, heap.at(above)):
            heap.put(place, heap.at(above))
            place = above
        else:
            moves = False
    heap.put(place, item)


def sift_towards_last(heap: Any, place: Any) -> None:
    """The smaller ones of the elements below a place move up, to the end; the element at the place then goes where it belongs."""
    end, start, item, below = heap.store.count, place, heap.at(place), 2 * place + 1
    while below < end:
        if below + 1 < end and not heap.is_less(heap.at(below), heap.at(below + 1)):
            below = below + 1
        heap.put(place, heap.at(below))
        place, below = below, 2 * below + 1
    heap.put(place, item)
    sift_towards_first(heap, start, place)


def put_in_heap(heap: Any) -> None:
    """heapq.heapify(heap)."""
    place = heap.store.count // 2 - 1
    while place >= 0:
        sift_towards_last(heap, place)
        place = place - 1
