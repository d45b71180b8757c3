"""The keys that loops add to a dictionary, in their order: found by replaying with numbers what was recorded of the bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bwcompiler.frontend.source.array_backed.schedules import Iterations, happening
from bwcompiler.ir.extent import Affine, Extent, Index
from bwcompiler.ir.op import Value

MOST = 1 << 18                 # times that something is read or assigned


class Event(NamedTuple):
    """A key is read that has to be there, or assigned to, or neither.

    key    its parts, extents; None: not known.  indices: of the loops around, outermost first; tests: of the branches around, and which
           side it is in.
    """

    table: Any
    key: tuple[Extent | None, ...]
    indices: tuple[Index, ...]
    tests: tuple[tuple[Value, int], ...]
    is_read: bool
    is_assignment: bool


def order_of_keys(events: Sequence[Event], entry: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], bool] | None:
    """The keys that there are afterwards, of which `entry` were there before, in their order, with whether anything is assigned to them;
    None where that is not known.

    It is not where data decides whether a key is new, or one is read that is not there.
    """
    found = [_Instances(serial, event) for serial, event in enumerate(events) if event.is_read or event.is_assignment]
    found = _without_sides(found)
    if any(not one.prepare(found) for one in found) or sum(one.count for one in found) > MOST:
        return None
    depth = max([one.times.shape[1] for one in found], default=0)
    times = [np.pad(one.times, ((0, 0), (0, depth - one.times.shape[1])), constant_values=-1) for one in found]
    order: Any = np.lexsort(np.concatenate(times).T[::-1]) if found else []
    keys = [key for one in found for key in one.keys]
    kinds = [(one.is_sure, one.event.is_assignment) for one in found for _ in one.keys]
    there = dict.fromkeys(entry, False)
    for place in order:
        is_sure, is_assignment = kinds[place]
        if keys[place] not in there and not (is_assignment and is_sure):
            return None
        there[keys[place]] = is_assignment or there[keys[place]]
    return there


class _Instances:
    """All times that something happens: the keys, and when, as numbers that are compared from the first one on.

    is_sure  whether it is known that it happens then: no test on data is around.
    """

    def __init__(self, serial: int, event: Event) -> None:
        self.serial = serial
        self.event = event
        self.is_sure = True
        self.keys: list[tuple[int, ...]] = []
        self.times: Any = None

    @property
    def count(self) -> int:
        return len(self.keys)

    def prepare(self, others: Sequence[_Instances]) -> bool:
        """Whether all that is known: with the numbers that the indices have."""
        places: dict[Index, Any] = {}
        times: list[Any] = []
        count = 1
        for level, index in enumerate(self.event.indices):
            low, high = (_numbers(bound, places, count) for bound in (index.lo, index.hi))
            if low is None or high is None:
                return False
            sizes = np.maximum(high - low + 1, 0)
            if sizes.sum() > MOST:
                return False
            begun = min(one.serial for one in others if one.event.indices[level:level + 1] == (index,))
            rows = np.repeat(np.arange(count), sizes)
            places = {one: numbers[rows] for one, numbers in places.items()}
            places[index] = low[rows] + np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            times = [column[rows] for column in times]
            count = len(rows)
            times += [np.full(count, begun), places[index]]
        happens, self.is_sure = happening(Iterations(places), self.event.tests, count)
        parts = [_numbers(part, places, count) for part in self.event.key]
        if any(part is None for part in parts):
            return False
        self.keys = list(zip(*[part[happens].tolist() for part in parts], strict=True))
        self.times = np.stack([*times, np.full(count, self.serial)], axis=1)[happens]
        return True


def _numbers(extent: Extent | None, places: dict[Index, Any], count: int) -> Any:
    """What an extent is at all times; None where it depends on another index."""
    if isinstance(extent, int):
        return np.full(count, extent)
    if not isinstance(extent, Affine) or any(index not in places for index, _ in extent.terms):
        return None
    return extent.constant + sum(factor * places[index] for index, factor in extent.terms)


def _without_sides(found: list[_Instances]) -> list[_Instances]:
    """What both sides of a branch assign is assigned whatever its test says."""
    pending, left = list(found), list[_Instances]()
    while pending:
        one = pending.pop()
        others: list[_Instances] = []
        if one.event.is_assignment and one.event.tests:
            *around, (test, side) = one.event.tests
            opposite = one.event._replace(tests=(*around, (test, 1 - side)))
            others = [other for other in (*pending, *left) if other.event[1:] == opposite[1:]]
        if not others:
            left.append(one)
            continue
        joined = _Instances(max(one.serial, *[other.serial for other in others]), one.event._replace(tests=tuple(around)))
        pending, left = [other for other in pending if other not in others], [other for other in left if other not in others]
        pending.append(joined)
    return left
