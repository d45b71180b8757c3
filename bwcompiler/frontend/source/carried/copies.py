"""Arrays of which a captured loop returns copies, and which may have other names: which of them become read-only, and what cannot be
captured.
"""

from __future__ import annotations

from typing import Any

from bwcompiler import tree
from bwcompiler.frontend.source.undecided.kinds.choices import Choice
from bwcompiler.frontend.source.undecided.kinds.two_shapes import TwoShapes
from bwcompiler.frontend.source.variables import not_capturable
from bwcompiler.frontend.tracing.control_flow.shared_arrays import possible
from bwcompiler.frontend.tracing.storages.views import BroadcastView
from bwcompiler.frontend.tracing.tracer import Tracer

_APPENDED = (": the array was appended to a list in a loop that may be left early, and may be an element of it\n"
             "  hint: write to a copy, or append one")


def look_for_shared_choices(loop: Any) -> None:
    """Arrays in choices are copies: where they may have other names nobody writes to them, in the loop (`kept.look_for_written`) or later.

    Refuse those that may be arrays from outside.
    """
    for name in loop.order():
        for leaf in tree.leaves(loop.ends[name]) if type(loop.entry[name]) in (Choice, TwoShapes) else ():
            if not isinstance(leaf, Tracer) or not leaf._storage.writable:
                continue
            among = [one for one in possible(leaf._storage) if one is leaf._storage or not (
                one.region.closed or _is_forgotten(loop, name, one))]
            if any(one.region is not loop.region for one in among):
                not_capturable(f"{name} may be another name of an array, as data decides: give it a copy of that, x.copy()")
            for one in among if len(among) > 1 else ():
                one.kept = one.kept or loop.site


def _is_forgotten(loop: Any, name: str, storage: Any) -> bool:
    """Whether an array that a variable held before the iteration has no name any more: `y += x` of a number or an array."""
    def holds(held: Any) -> bool:
        return any(isinstance(leaf, Tracer) and leaf._storage is storage for leaf in tree.leaves(held))
    return type(loop.ends[name]) is TwoShapes and holds(loop.given[name]) and not any(
        holds(end) for other, end in loop.ends.items() if other != name)


def protect_rows(loop: Any) -> None:
    """What a loop that may be left early has appended are copies: neither they nor the variables that had them are written to."""
    for storage, rows in loop.buffers.items() if loop.index is None else ():
        if not storage.writable:
            continue
        rows._chain = (BroadcastView(rows.shape, _APPENDED),)
        for name in loop.order():
            if isinstance(loop.ends[name], Tracer) and loop.ends[name]._storage is storage:
                loop.names[name]._chain = (BroadcastView(loop.names[name].shape, _APPENDED),)
