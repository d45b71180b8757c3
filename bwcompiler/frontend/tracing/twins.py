"""Arrays of which it depends on data whether they are one: after `if p: x = y`, and after a loop that may have no iterations.

The result of the branch has a storage of its own.  While `where` holds it is the same array as `other`: what is written to one of them
is written to the other one then, so that both read as in NumPy.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from bwcompiler import ops
from bwcompiler.frontend.tracing.region import Storage, active_region
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer, assign, value_of
from bwcompiler.frontend.tracing.undecided_views import is_undecided
from bwcompiler.frontend.tracing.views import BroadcastView, ConcreteView, PickedView, broadcast_value


class Link(NamedTuple):
    """Two handles of one shape and dtype, which are the same elements where a traced truth value holds."""

    one: Tracer
    other: Tracer
    where: Tracer


def can_link(one: Tracer, other: Tracer) -> bool:
    """Whether a write to one of them can be written to the other one: their elements are the same ones wherever that happens."""
    fixed = not any(isinstance(step, BroadcastView | ConcreteView | PickedView) or is_undecided(step) for step in other._chain)
    return fixed and one._type == other._type and one._type.is_fixed


def link(one: Tracer, other: Tracer, where: Tracer) -> None:
    """From now on they are the same array where that holds."""
    made = Link(one, other, where)
    for storage in (one._storage, other._storage):
        storage.links = [*(storage.links or ()), made]


def write_twins(storage: Storage) -> None:
    """After a write to a storage: write to what is the same.  Those that are being written have no links meanwhile."""
    region = active_region()
    links, storage.links = storage.links, None
    try:
        for one, other, where in links or ():
            mine, twin = (one, other) if one._storage is storage else (other, one)
            held = twin._storage
            if held.links is None or held.region.closed or not held.region.encloses(region) or where._storage.region.closed:
                continue
            before = value_of(twin)
            assign(twin, ops.select(broadcast_value(value_of(where), before.shape), value_of(mine), before))
    finally:
        storage.links = links


def links_of(tracer: Any) -> list[Link]:
    """What the storage of a handle may be the same array as."""
    return list(tracer._storage.links or ()) if isinstance(tracer, Tracer) else []


HANDLERS["write_twins"] = write_twins
