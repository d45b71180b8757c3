"""Arrays of which a list holds copies: nobody writes to them from then on.

`kept.append(x)` gives the list another name of x.  Where the elements of a list are rows of one array, because a loop appends as data
decide, or because the list has room for what data put in it, the list has a copy instead, which is correct until x is written to: such
a storage is marked (`Storage.kept`), and a write to it traces the loop again, as Python runs it, or is refused.  `loop` is a
`capture.Traceable`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bwcompiler import tree
from bwcompiler.frontend.source.array_backed.appended import Row
from bwcompiler.frontend.source.variables import not_capturable
from bwcompiler.frontend.tracing.control_flow.shared_arrays import is_argument_written, is_written, is_written_around, possible
from bwcompiler.frontend.tracing.policy import Site
from bwcompiler.frontend.tracing.storages.region import Storage
from bwcompiler.frontend.tracing.tracer import Tracer

_WRITTEN = "it appends an array to a list, which gets a copy of it, and assigns to that array, too"


def look_for_written(loop: Any) -> None:
    """At the end of an iteration: refuse where it writes to an array of which a list has got a copy, in this iteration or another."""
    appended = _appended(loop)
    if any(is_written_around(storage) for storage in appended):
        not_capturable(_WRITTEN)
    if any(is_written(storage, loop.region) for storage in loop.region.shared):
        not_capturable("it assigns to an array that it may read by another name: which array that is depends on data")
    if any(is_written(storage, loop.region) for storage in _had_by_variables(loop)):
        not_capturable(_WRITTEN)
    for name in loop.order():
        own = _storages(loop.given[name])
        for leaf in tree.leaves(loop.ends[name]):
            others = [one for one in possible(leaf._storage)[1:] if one not in own] if isinstance(leaf, Tracer) else []
            if any(_is_written_by(loop, one) for one in others):
                not_capturable(f"it assigns to an array that {name} may be another name of, as data decide")
        for start, given, end in zip(*[_storages(held[name]) for held in (loop.entry, loop.given, loop.ends)], strict=False):
            is_kept = (start is not None and start.kept) or (end is not None and any(
                one.kept or one in appended for one in possible(end)))
            if is_kept and given is not None and is_argument_written(given):
                not_capturable(_WRITTEN)


def _had_by_variables(loop: Any) -> dict[Storage, Site | bool]:
    """Arrays from before the loop that a variable has when an iteration begins, which puts a copy of what that is in a list; with the
    loop that is to be unrolled where somebody writes to them."""
    slots = [slot for name in loop.order() for slot in zip(*[
        _storages(held[name]) for held in (loop.entry, loop.given, loop.ends)], strict=False)]
    pending = {given: given.kept for _, given, _ in slots if given is not None and given.kept}
    found: dict[Storage, Site | bool] = {}
    for given in (followed := list(pending)):
        for start, own, end in slots:
            if own is not given:
                continue
            for one in [*([] if start is None else [start]), *([] if end is None else possible(end))]:
                if one in loop.region.arguments:
                    if one not in pending:         # what the iteration before had by another name
                        pending[one] = pending[given]
                        followed.append(one)
                elif not loop.region.encloses(one.region):
                    found[one] = pending[given]
    return found


def _is_written_by(loop: Any, storage: Storage) -> bool:
    """Whether an iteration assigns to an array from before it, which a variable has from then on by another name."""
    if storage in loop.region.arguments:
        return is_argument_written(storage)
    return not loop.region.encloses(storage.region) and is_written(storage, loop.region)


def _appended(loop: Any) -> set[Storage]:
    """The arrays of which the iteration has appended copies: as data decide, which one it is or how many there are.

    Where it is known how many, a variable has the row that the last iteration has appended (`bodies.after_loops`).
    """
    found: set[Storage] = set()
    for one in [one for _, elements in loop.elements for one in elements]:
        for leaf in [leaf for leaf in one.leaves if isinstance(leaf, Row)]:
            storage = leaf.storage if leaf.origin is None else leaf.origin
            if storage.writable and (one.present is not None or storage.links or loop.index is None or leaf.origin is not None):
                found.update(possible(storage))
    return found


def _parts(loop: Any) -> list[Storage]:
    """The buffers of what are copies of parts of arrays."""
    leaves = [leaf for _, elements in loop.elements for one in elements for leaf in one.leaves if isinstance(leaf, Row)]
    return [loop.buffers[leaf.storage]._storage for leaf in leaves if leaf.origin is not None and leaf.origin.writable]


def _storages(held: Any) -> list[Storage | None]:
    return [leaf._storage if isinstance(leaf, Tracer) else None for leaf in tree.leaves(held)]


def mark_after(loop: Any) -> None:
    """After a loop: mark what it has appended copies of, and what its variables hold of that."""
    appended, site = _appended(loop), loop.site
    _mark(_parts(loop), site)
    for storage in appended:
        if storage.region is not loop.region:
            _mark([storage], site)
    for storage, kept in _had_by_variables(loop).items():
        _mark([storage], site if isinstance(kept, bool) else kept)
    for name in (*loop.order(), *[result.name for result in loop.results]):
        for end, after in zip(_storages(loop.ends[name]), _storages(loop.names[name]), strict=False):
            among = [] if end is None else possible(end)
            if after is not None and (any(one in appended for one in among) or any(one.kept for one in among)):
                _mark([after], next((one.kept for one in among if one.kept), site))


def _mark(storages: Iterable[Storage], site: Site | bool) -> None:
    for storage in storages:
        if storage.writable:
            storage.kept = storage.kept or site
