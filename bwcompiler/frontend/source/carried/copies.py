"""Arrays of which a captured loop returns copies, and which may have other names: which of them become read-only, and what cannot be
captured.
"""

from __future__ import annotations

from typing import Any

from bwcompiler import tree
from bwcompiler.frontend.source.undecided.choices import VALUE, Choice
from bwcompiler.frontend.source.variables import not_capturable
from bwcompiler.frontend.tracing.control_flow.shared_arrays import possible
from bwcompiler.frontend.tracing.storages.region import Storage
from bwcompiler.frontend.tracing.storages.views import BroadcastView
from bwcompiler.frontend.tracing.tracer import Tracer

_APPENDED = (": the array was appended to a list in a loop that may be left early, and may be an element of it\n"
             "  hint: write to a copy, or append one")


def look_for_shared_choices(loop: Any) -> None:
    """Arrays in choices are copies: refuse where they may have other names, which are read after the iteration."""
    for name in loop.order():
        for leaf in tree.leaves(loop.ends[name]) if type(loop.entry[name]) is Choice else ():
            if isinstance(leaf, Tracer) and leaf._storage.writable and not _is_alone(loop, name, leaf._storage):
                not_capturable(f"{name} may be another name of an array, as data decides: give it a copy of that, x.copy()")


def _is_alone(loop: Any, name: str, storage: Storage) -> bool:
    """Whether an array that a variable holds at the end of an iteration is what iterations have made, and nothing else holds it then."""
    if storage.region is not loop.region or not storage.links:
        return storage.region is loop.region
    before = loop.entry[name].which
    if isinstance(before, Tracer) or before == VALUE or loop.growths or loop.found_growths:     # from before, or in a list
        return False
    others = [loop.ends[other] for other in {*loop.order(), *loop.variables.results} if other != name]
    held = {one for leaf in tree.leaves(others) if isinstance(leaf, Tracer) for one in possible(leaf._storage)}
    return all(one not in held and loop.region.encloses(one.region) for one in possible(storage))


def protect_rows(loop: Any) -> None:
    """What a loop that may be left early has appended are copies: neither they nor the variables that had them are written to."""
    for storage, rows in loop.buffers.items() if loop.index is None else ():
        if not storage.writable:
            continue
        rows._chain = (BroadcastView(rows.shape, _APPENDED),)
        for name in loop.order():
            if isinstance(loop.ends[name], Tracer) and loop.ends[name]._storage is storage:
                loop.names[name]._chain = (BroadcastView(loop.names[name].shape, _APPENDED),)
