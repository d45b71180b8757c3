"""Arrays that exchange their names in a loop, `a, b = b, a`, and names of arrays that a loop copies.  `loop` is a `capture.Traceable`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from bwcompiler import tree
from bwcompiler.frontend.source.variables import not_capturable, same
from bwcompiler.frontend.tracing.storages.region import Storage
from bwcompiler.frontend.tracing.tracer import Tracer

MOST_REPEATED = 6              # iterations are made one


class Exchange(NamedTuple):
    """Arrays that are assigned to and exchange their names.

    after   the name whose array each name has after an iteration; after `period` of them all have their own.
    """

    after: dict[str, str]
    period: int

    def names_after(self, iterations: int) -> dict[str, str]:
        """Whose array each name has after some iterations."""
        found = {name: name for name in self.after}
        for _ in range(iterations):
            found = {name: self.after[place] for name, place in found.items()}
        return found


def exchange_of(loop: Any, rebound: set[str]) -> Exchange | None:
    """The arrays that are assigned to and exchange their names, if there are any."""
    names = [name for name in rebound if isinstance(loop.entry[name], Tracer) and loop.entry[name]._storage.writable]
    after = {name: next((other for other in names if same(loop.ends[name], loop.entry[other])), "") for name in names}
    moved = [name for name in names if after[name]]
    if not any(_assigned(loop, loop.entry[name]._storage) for name in moved):
        return None
    period = 1
    for name in moved:
        found, place = 1, after[name]
        while place not in (name, "") and found <= MOST_REPEATED:
            found, place = found + 1, after[place]
        if place != name:
            return None
        period = math.lcm(period, found)
    return Exchange({name: after[name] for name in moved}, period) if period <= MOST_REPEATED else None


def look_for_aliases(loop: Any) -> None:
    """Carried arrays are copies in each iteration: refuse where somebody could see a write to one of them by another name."""
    exchanged: Any = {} if loop.exchange is None else loop.exchange.after
    _look_for_exchanged(loop, exchanged)
    ends = [leaf for name in loop.order() for leaf in tree.leaves(loop.ends[name]) if isinstance(leaf, Tracer)]
    starts = [leaf for name in loop.order() for leaf in tree.leaves(loop.entry[name]) if isinstance(leaf, Tracer)]
    for leaf in (*starts, *ends):
        storage = leaf._storage
        if storage.region is not loop.region and storage.writable and _assigned(loop, storage):
            not_capturable("the loop rebinds a variable to an array that it also assigns to")


def _look_for_exchanged(loop: Any, exchanged: dict[str, str]) -> None:
    """Arrays that exchange their names are carried: nobody else may see them in the loop."""
    storages = [loop.entry[name]._storage for name in exchanged]
    if any(loop.entry[name]._chain or not same(loop.ends[name], loop.given[after]) for name, after in exchanged.items()) or (
            len(set(storages)) < len(storages)) or any(storage in loop.region.lifted for storage in storages):
        not_capturable("arrays that are assigned to change their names in it, and have others as well")


def _assigned(loop: Any, storage: Storage) -> bool:
    region = loop.region
    return storage in region.lifted and region.read(storage) is not region.lifted_inputs[region.lifted.index(storage)]
