"""Twins: arrays that are one array or two, depending on data, after `if p: x = y` or a loop that may have no iterations.

The result of the branch has its own storage.  While `where` is true it is the same array as `other`: a write to one of them
is then also done to the other, so that both read as in NumPy.
"""

from __future__ import annotations

from typing import NamedTuple
from weakref import ReferenceType

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import UnsupportedError, at
from bwcompiler.frontend.tracing.handles import assign, value_of
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.storages.region import Storage, open_region
from bwcompiler.frontend.tracing.storages.undecided_views import is_undecided
from bwcompiler.frontend.tracing.storages.views import BroadcastView, Chain, ConcreteView, PickedView, broadcast_value, same_chain
from bwcompiler.frontend.tracing.tracer import Tracer, handle
from bwcompiler.ir.types import TensorType

MOST_WRITTEN = 5000            # twins, in a whole program: each is an operation or more
_TOO_MANY = ("an array is assigned to of which data decide in very many ways by which other names it is known: lists or variables have one "
             "of two arrays, again and again\n  hint: copies in the branches, a[k] = b.copy(); or one array with a row for each element")


class Link(NamedTuple):
    """What a storage may be, seen from there: of `chain` in it the elements are those of `twin` where a traced truth value holds.

    twin  the other storage and its chain, as long as somebody has a handle of it; held: where others can be reached through it only.
    is_through_outside  whether they are the same only where both are one array from outside of their region.
    """

    chain: Chain
    storage: ReferenceType[Storage]
    twin: Chain
    type: TensorType
    where: Tracer
    held: Storage | None
    is_through_outside: bool = False

    def handles(self, storage: Storage) -> tuple[Tracer, Tracer] | None:
        """Of both."""
        other = self.storage()
        return None if other is None else (handle(storage, self.chain, self.type), handle(other, self.twin, self.type))


def can_link(one: Tracer, other: Tracer) -> bool:
    """Whether a write to one of them can be written to the other one: their elements are the same ones wherever that happens."""
    fixed = not any(isinstance(step, BroadcastView | ConcreteView | PickedView) or is_undecided(step) for step in other._chain)
    return fixed and one._type == other._type and one._type.is_fixed


def link(one: Tracer, other: Tracer, where: Tracer) -> None:
    """From now on they are the same array where that holds; and `one`, which is new, is what the other one is the same as."""
    known = [(found, pair[1]) for found in other._storage.links or () if (pair := found.handles(other._storage)) is not None
             and not pair[1]._storage.region.closed and not found.where._storage.region.closed]
    is_outside = other._storage.region is not one._storage.region
    further = [(twin, found.where, is_outside or found.is_through_outside) for found, twin in known
               if same_chain(found.chain, other._chain) and twin._storage is not one._storage]
    held = len(further) < len(known)
    _link(one, other, where, held, False)
    for twin, also, is_through_outside in further:
        _link(one, twin, np.logical_and(where, also), False, is_through_outside)


def _link(one: Tracer, other: Tracer, where: Tracer, held: bool, is_through_outside: bool) -> None:
    """One link of the two; of two ways from one to the other either may hold."""
    before = next((found for found in one._storage.links or () if found.storage() is other._storage
                   and same_chain(found.chain, one._chain) and same_chain(found.twin, other._chain)), None)
    if before is not None:
        where = np.logical_or(before.where, where)
        is_through_outside = is_through_outside and before.is_through_outside
    for mine, twin in ((one, other), (other, one)):
        others = [found for found in mine._storage.links or () if found.storage() not in (None, twin._storage) or (
            found.storage() is twin._storage and not (same_chain(found.chain, mine._chain) and same_chain(found.twin, twin._chain)))]
        made = Link(mine._chain, ReferenceType(twin._storage), twin._chain, mine._type, where, twin._storage if held else None,
                    is_through_outside)
        mine._storage.links = [*others, made]


def same_array(one: Tracer, other: Tracer) -> Tracer | bool | None:
    """Whether two handles are of one array, as data say, perhaps; None where nobody knows."""
    for found in one._storage.links or ():
        if found.storage() is other._storage and same_chain(found.chain, one._chain) and same_chain(found.twin, other._chain):
            return None if found.where._storage.region.closed else found.where
    return None if any(_is_any(handle) for handle in (one, other)) else False


def _is_any(x: Tracer) -> bool:
    """Whether it may be one of several arrays: a copy of one of them, or what a loop carries, or perhaps that."""
    linked = [found.storage() for found in x._storage.links or ()]
    return any(isinstance(step, BroadcastView) and hasattr(step, "sources") for step in x._chain) or any(
        one is not None and one.region.site is not None and any(one is given for given in one.region.arguments)
        for one in (x._storage, *linked))


def write_twins(storage: Storage) -> None:
    """After a write to a storage: write to what is the same.

    Every two of a number of arrays that may be one have a link, so what is linked with the storage itself is not reached through others
    of these as well (there would be a way for each order of them); and what is being written has no links meanwhile.
    """
    region = open_region()
    if region.policy is not None:
        region.policy.twins_written += 1
        if region.policy.twins_written > MOST_WRITTEN:
            raise UnsupportedError(at(current_source(region.outer), _TOO_MANY))
    links = storage.links or []
    direct = {id(other): other for link in links if (other := link.storage()) is not None and other.links is not None}
    before = [(other, other.links) for other in direct.values()]
    storage.links = None
    for other in direct.values():
        other.links = [link for link in other.links or () if link.storage() is not storage and id(link.storage()) not in direct]
    try:
        for one in links:
            both = one.handles(storage)
            if both is None:
                continue
            mine, twin = both
            held = twin._storage
            if held.links is None or held.region.closed or not held.region.encloses(region) or one.where._storage.region.closed:
                continue
            old = value_of(twin)
            assign(twin, ops.select(broadcast_value(value_of(one.where), old.shape), value_of(mine), old))
    finally:
        storage.links = links or None
        for other, theirs in before:
            other.links = theirs


HANDLERS["write_twins"] = write_twins
