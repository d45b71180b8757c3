"""Arrays that an iteration assigns to before it rebinds their names: `h[1:-1] += flux; h = np.maximum(h, 0)`.

The first iteration assigns to the array from before the loop, which may have other names; each further one to an array that the previous
iteration has made.  If that array has no other name, the write is not visible elsewhere, and the array is carried as a copy.  The contents
that the first iteration left in its array are carried too, and become the contents of the array from before the loop.  If it depends on
data whether an iteration makes an array (in an inner loop that may have no iterations), the carried contents are those left by all
iterations that still had the array from before.  `loop` is a `capture.Traceable`.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import CellType
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.frontend.source.array_backed.appended import Row
from bwcompiler.frontend.source.carried import same_arrays
from bwcompiler.frontend.source.concrete.makers import require_traced
from bwcompiler.frontend.source.syntax.statements.jumps import PREFIX
from bwcompiler.frontend.source.variables import Again, not_capturable
from bwcompiler.frontend.tracing.storages.region import Storage
from bwcompiler.frontend.tracing.tracer import Tracer

KEPT = PREFIX + "kept "        # before the name of a variable: what the first iteration left in the array that it had
LATER = PREFIX + "later"       # whether it is not the first iteration
_REFUSED = "an array is assigned to that the loop rebinds, and that has another name as well"


def look_for_first_writes(loop: Any) -> None:
    """Carry what the first iteration leaves in the arrays that it assigns to.  Raises Again where that is new."""
    exchanged: Any = {} if loop.exchange is None else loop.exchange.after
    written = [name for name in loop.order() if name not in exchanged
               and any(isinstance(leaf, Tracer) and leaf._storage.written for leaf in tree.leaves(loop.given[name]))]
    if not written:
        return
    for name in written:
        require_traced(loop.entry[name], loop.given[name])
        if not _leaves_alone(loop, name) or not _begins_alone(loop, name):
            not_capturable(_REFUSED, peel=_leaves_alone(loop, name))
    undecided = [name for name in written if _linked(loop.ends[name]._storage)]
    flags = same_arrays.missing_flags(loop, undecided)
    missing = [name for name in written if KEPT + name not in loop.carried]
    for name in missing:
        loop.names.add(KEPT + name, CellType(loop.entry[name]))
        loop.add(KEPT + name, loop.entry[name])
    if LATER not in loop.carried:
        loop.names.add(LATER, CellType(False))
        loop.add(LATER, False)
    if missing or flags:
        raise Again(loop, {*[KEPT + name for name in missing], *flags})
    for name in written:
        later = np.logical_not(same_arrays.flag_of(loop, name)) if name in undecided else loop.given[LATER]
        loop.ends[KEPT + name] = np.where(later, loop.given[KEPT + name], loop.given[name])
    loop.ends[LATER] = True


def _begins_alone(loop: Any, name: str) -> bool:
    """Whether no other variable of the loop has the array that one has before it, or one that may be the same."""
    start = loop.entry[name]
    if not isinstance(start, Tracer) or not start._storage.writable:
        return False
    others = [leaf for other in loop.order() if other not in (name, KEPT + name) for leaf in tree.leaves(loop.entry[other])]
    tables = [*loop.joined.values(), *loop.indexed.values(), *loop.histories.values()]         # made before the loop of what lists hold
    others += [leaf for one in tables for leaf in tree.leaves(one.elements())]
    return not any(storage in loop.region.lifted or storage in loop.region.shared or storage.region is not start._storage.region
                   or _has(others, storage) for storage in _reached(start._storage))


def _leaves_alone(loop: Any, name: str) -> bool:
    """Whether an iteration makes the array that a variable has after it, and nobody else has that."""
    end = loop.ends[name]
    if not isinstance(end, Tracer) or end._chain:
        return False
    made, given = end._storage, loop.given[name]._storage
    if made.region is not loop.region or made in loop.region.arguments or not made.writable:
        return False
    if any(one.storage() is not given or one.chain or one.twin for one in _linked(made)):
        return False
    appended = [leaf.storage for _, elements in loop.elements for one in elements for leaf in one.leaves if isinstance(leaf, Row)]
    others = [leaf for other in loop.names if other != name for leaf in tree.leaves(loop.names[other])]
    return not any(one in appended or _has(others, one) for one in ([made, given] if _linked(made) else [made]))


def _linked(storage: Storage) -> list[Any]:
    """Links with arrays that somebody still has; nobody has those of bodies that have been traced."""
    return [one for one in storage.links or () if (held := one.storage()) is not None and not held.region.closed]


def _reached(storage: Storage) -> list[Storage]:
    """An array and all that may be the same one."""
    found = [storage]
    for one in found:
        found += [other for other in dict.fromkeys(one.storage() for one in _linked(one)) if other not in found]
    return found


def _has(leaves: list[Any], storage: Storage) -> bool:
    return any(isinstance(leaf, Tracer) and leaf._storage is storage for leaf in leaves)


def seen_by(loop: Any, read: Iterable[Storage]) -> bool:
    """Whether what a test of the loop reads, by another name, is an array from before the loop that the first iteration assigns to."""
    storages = [one for name in loop.order() if name.startswith(KEPT) for one in _reached(loop.entry[name]._storage)]
    return any(one in storages for one in read)


def settle_first_writes(loop: Any) -> None:
    """After the loop: the arrays from before it hold what the first iteration left in them."""
    for name in loop.order():
        if name.startswith(KEPT):
            loop.entry[name][...] = loop.names[name]
