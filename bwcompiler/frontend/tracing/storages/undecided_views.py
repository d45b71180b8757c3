"""Reshapes for which it stays open whether they are views or copies, until something is written.

NumPy decides this by memory order, which for an argument may differ from call to call.  As long as neither the array nor its
reshape is written to, both cases read the same; so the handle has a `ReshapeView` with a `Choice`, and the storage remembers the
handle.  The next write to the storage first decides: if it is a copy, the handle gets its own storage.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler.frontend.tracing.storages.memory_order import C_ORDER, UnknownOrderError
from bwcompiler.frontend.tracing.storages.region import Region, Storage
from bwcompiler.frontend.tracing.storages.views import Chain, ReshapeView, Step, shadow
from bwcompiler.ir.op import Value

Array = np.ndarray[Any, Any]


class Choice:
    """What a reshape gives if NumPy copies, kept while nobody needed to know whether it does.

    value, region, source  of the copy: what was read when the function was called, where, and by which line.
    copy                   its storage, once it is known that there is one.
    """

    __slots__ = ("copy", "region", "source", "value")

    def __init__(self, region: Region, value: Value) -> None:
        self.region = region
        self.value = value
        self.source = region.record.source
        self.copy: Storage | None = None

    def copied(self) -> Storage:
        """The storage of the copy, one for all handles."""
        if self.copy is None:
            self.copy = Storage(self.region, self.value)
            self.copy.layout = C_ORDER
        return self.copy


def is_undecided(step: Step) -> bool:
    """Whether it is not known yet whether a step of a chain is a view."""
    return isinstance(step, ReshapeView) and step.choice is not None


def decide_views(storage: Storage) -> None:
    """Find out which handles are views of the storage: what is written to it next is seen by those and by no others."""
    for reference in storage.undecided or ():
        tracer = reference()
        if tracer is not None:
            _decide(tracer)
    storage.undecided = None


def _decide(tracer: Any) -> None:
    storage: Storage = tracer._storage
    chain: list[Step] = []
    base: Array | None = None                      # the shadow of what the chain leads to so far, once somebody asked
    for step in tracer._chain:
        if isinstance(step, ReshapeView) and step.choice is not None:
            choice: Choice = step.choice
            if choice.copy is None:
                base = _shadow(choice, storage, tuple(chain)) if base is None else base
            if choice.copy is None and base is not None and step.viewed(base) is not None:
                step.choice = None
            else:
                storage, chain, base = choice.copied(), [], None
                continue
        chain.append(step)
        base = None if base is None else step.shadow(base)
    if storage is not tracer._storage:
        tracer._storage, tracer._chain, tracer._version = storage, tuple(chain), -1


def _shadow(choice: Choice, storage: Storage, chain: Chain) -> Array:
    layout = C_ORDER if storage.layout is None else storage.layout
    try:
        return shadow(storage.type.shape, layout.strides(), chain)  # type: ignore[arg-type]
    except UnknownOrderError as error:
        made = choice.source.short if choice.source is not None else "an earlier line"
        raise UnknownOrderError(f"an array is written to of which {made} made a reshape: is that a view, which changes too, or a "
                                f"copy? {error}\n  hint: reshape a copy (x.copy().reshape(...)), or write to a copy") from None
