"""Short loops that are unrolled, and which of them had better be recorded as loops: those whose iterations record much.

That is known when the first iteration has been traced, or part of it: the function is then traced again with the loop recorded from its
first iteration on (`Reconsidered`), or the others are recorded behind this one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bwcompiler.frontend.source.bodies import iteration
from bwcompiler.frontend.source.bodies.capture import SHORT
from bwcompiler.frontend.tracing.policy import Policy, Reconsidered, Site
from bwcompiler.frontend.tracing.storages.region import Region, open_region
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value

SHORTEST = 3                   # loops of fewer iterations are always unrolled
HEAVY = 400                    # values that the iterations of a short loop record, in all of its copies: then it is not
HEAVY_FEW = 600                # those behind the first iteration of a loop of two or three
HEAVY_TABLE = 150              # those of a longer loop over known numbers, one by one: up to then it compiles and runs as fast unrolled;
HEAVY_THINGS = 1500            # over texts and functions, too: what is computed of one of these is a branch for each
SOLID = 64                     # values of a body beside which what a loop costs does not count
TRACED = 3                     # values that are traced while one is compiled


@dataclass(slots=True, eq=False)
class Unrolled:
    """A loop that is being unrolled, how often as loops around it are, and the number of the iteration that is being traced.

    region, before: of the first one of a short loop, where it is recorded, and behind how many values.
    """

    site: Site
    elements: Any
    copies: int
    number: int = 0
    region: Region | None = None
    before: int = 0

    def begin(self) -> None:
        self.region = open_region()
        self.before = len(self.region.record.values)


@contextmanager
def unrolling(policy: Policy | None, elements: iteration.Elements | None, site: Site) -> Iterator[Unrolled]:
    """What runs inside is traced once per iteration: noted for the loops in it."""
    unrolled = Unrolled(site, elements, 1 if policy is None else policy.copies)
    if policy is None or elements is None or not isinstance(elements.count, int):
        yield unrolled
        return
    before, policy.copies = policy.copies, policy.copies * max(1, elements.count)
    policy.unrolling.append(unrolled)
    try:
        yield unrolled
    finally:
        policy.copies = before
        policy.unrolling.pop()


def _size(value: Value) -> int:
    return 1 + sum(_size(part) for inside in value.attrs.values() if isinstance(inside, Graph) for part in inside.body)


def recorded(before: int) -> int:
    """How many values the region has recorded behind some, those in loops and branches too."""
    return sum(map(_size, open_region().record.values[before:]))


def is_long_enough(count: int, body: Graph, policy: Policy) -> bool:
    """Whether a loop is to be recorded whose body has been traced already: it has many iterations, or a few that are long."""
    if count >= SHORT:
        return True
    least, saved = _least(count)
    return sum(map(_size, body.body)) * saved * policy.copies > least


def is_short(elements: iteration.Elements, policy: Policy) -> bool:
    """Whether a loop is unrolled only for its few iterations, or because it goes over numbers that are known."""
    return policy.loops and isinstance(elements.count, int) and elements.count >= 2 and (elements.count <= SHORT or elements.is_table)


def is_heavy_behind(loop: Unrolled, policy: Policy, size: int) -> bool:
    """Whether what comes behind the first iteration, which recorded `size` values, is to be recorded as a loop.

    Raises Reconsidered where the first had better be part of that loop, too.
    """
    if not _is_heavy(loop, policy, size):
        return False
    if _had_better_begin_anew(policy, size):
        raise Reconsidered(loop.site, _heavy_around(policy, policy.unrolling[:-1], size))
    return bool(loop.elements.count > SHORTEST)


def reconsider_around(policy: Policy) -> None:
    """Raises Reconsidered for a loop around whose first iteration, which is being traced, is too long already: the rest of it would be
    traced in vain."""
    region = open_region()
    for place, loop in enumerate(policy.unrolling[:-1]):
        size = len(region.record.values) - loop.before
        if loop.region is region and size >= SOLID and _is_heavy(loop, policy, size) and _had_better_begin_anew(policy, size):
            raise Reconsidered(loop.site, _heavy_around(policy, policy.unrolling[:place], size))


def _is_heavy(loop: Unrolled, policy: Policy, size: int) -> bool:
    """Whether such a loop, an iteration of which records `size` values, is long enough to be recorded."""
    least, saved = _least(loop.elements.count)
    if loop.elements.is_table and loop.elements.count >= SHORT:
        least = HEAVY_THINGS if loop.elements.has_things else HEAVY_TABLE
    return size * saved * loop.copies > least and _may_be_heavy(loop, policy)


def _least(count: int) -> tuple[int, int]:
    """How many values a short loop has to record, in how many of its `count` iterations, to be a long one."""
    return (HEAVY, count) if count > SHORTEST else (HEAVY_FEW, count - 1)


def _may_be_heavy(loop: Unrolled, policy: Policy) -> bool:
    return loop.site not in policy.unrolled and loop.site not in policy.notes and loop.site not in policy.heavy


def _heavy_around(policy: Policy, loops: Sequence[Unrolled], size: int) -> list[Site]:
    """The loops around one that will be found heavy, too, as soon as that one is recorded with `size` values.

    So are all of a nest whose body is so long that what a loop costs does not count beside it.
    """
    around = [one for one in loops if not one.number and is_short(one.elements, policy)]
    return [one.site for one in around if _is_heavy(one, policy, size) or (size >= SOLID and _may_be_heavy(one, policy))]


def _had_better_begin_anew(policy: Policy, size: int) -> bool:
    """Whether the `size` values that the first iteration recorded are worth to trace all again without them."""
    region: Region | None = open_region()
    recorded = policy.recorded
    while region is not None:
        recorded += len(region.record.values)
        region = region.parent
    return size * policy.copies * TRACED >= recorded
