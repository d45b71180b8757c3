"""Arrays with several names in the body of a loop, of which the loop carries copies: what nobody can see, and what somebody may."""

from __future__ import annotations

from typing import Any

from bwcompiler import tree
from bwcompiler.frontend.source.jumps import PREFIX
from bwcompiler.frontend.source.variables import not_capturable, same
from bwcompiler.frontend.tracing.region import Storage
from bwcompiler.frontend.tracing.shared_arrays import share, sources_of
from bwcompiler.frontend.tracing.tracer import Tracer


def assigned(loop: Any, storage: Storage) -> bool:
    """Whether the body of a loop assigns to an array from outside of it."""
    region = loop.region
    return storage in region.lifted and region.read(storage) is not region.lifted_inputs[region.lifted.index(storage)]


def look_for_aliases(loop: Any) -> None:
    """Carried arrays are copies in each iteration: refuse where somebody could see a write to one of them by another name."""
    exchanged: Any = {} if loop.exchange is None else loop.exchange.after
    given = [leaf for name in loop.order() if name not in exchanged for leaf in _arrays(loop.given[name])]
    _look_for_exchanged(loop, exchanged)
    ends = [leaf for name in loop.order() for leaf in _arrays(loop.ends[name])]
    if any(leaf._storage.written for leaf in given):
        not_capturable("an array is assigned to that the loop rebinds")
    starts = [leaf for name in loop.order() for leaf in _arrays(loop.entry[name])]
    outside = {source for leaf in (*starts, *ends) for source in sources_of(leaf) if source.region is not loop.region}
    if any(assigned(loop, source) for source in outside):
        not_capturable("the loop rebinds a variable to an array that it also assigns to")
    for storage in list(loop.region.lifted):
        if storage.sources and any(assigned(loop, source) for source in storage.sources):
            not_capturable("it assigns to an array of which another one that it reads may be another name, as data decides")


def _look_for_exchanged(loop: Any, exchanged: dict[str, str]) -> None:
    """Arrays that exchange their names are carried: nobody else may see them in the loop."""
    storages = [loop.entry[name]._storage for name in exchanged]
    if any(loop.entry[name]._chain or not same(loop.ends[name], loop.given[after]) for name, after in exchanged.items()) or (
            len(set(storages)) < len(storages)) or any(storage in loop.region.lifted for storage in storages):
        not_capturable("arrays that are assigned to change their names in it, and have others as well")


def shared_after(loop: Any) -> dict[str, list[list[Storage]]]:
    """Of which storages the leaves of carried variables may be other names after an iteration; arrays that exchange theirs are known."""
    exchanged: Any = {} if loop.exchange is None else loop.exchange.after
    return {name: [[] if name in exchanged else sources_of(leaf) for leaf in tree.leaves(loop.ends[name])] for name in loop.order()}


def share_after(loop: Any, made: dict[Storage, Tracer]) -> None:
    """After a loop: note of which arrays those may be other names that it has carried."""
    after: dict[Storage, list[Storage]] = {storage: [handle._storage] for storage, handle in made.items()}
    for name in loop.order():
        for given, start, end, leaf in zip(*[tree.leaves(held[name]) for held in (loop.given, loop.entry, loop.ends)],
                                           tree.leaves(loop.names[name]), strict=True):
            if isinstance(end, Tracer) and isinstance(leaf, Tracer) and end._storage.region is loop.region:
                after.setdefault(end._storage, []).append(leaf._storage)
            if isinstance(given, Tracer):
                after.setdefault(given._storage, []).extend(sources_of(start))
    for storage, rows in loop.buffers.items():
        if loop.count is None and storage.writable and after.get(storage):
            share(rows, after[storage], "an element of a list", writable=True)
    for name in loop.order():
        for leaf, sources in zip(tree.leaves(loop.names[name]), loop.sources[name], strict=True):
            found = [one for source in sources for one in after.get(source, [] if source.region.closed else [source])]
            if isinstance(leaf, Tracer) and not leaf._chain and any(one is not leaf._storage for one in found):
                share(leaf, found, "it" if name.startswith(PREFIX) else name, writable=True)


def _arrays(held: Any) -> list[Tracer]:
    return [leaf for leaf in tree.leaves(held) if isinstance(leaf, Tracer)]
