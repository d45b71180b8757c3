"""Objects of ours in the place of SciPy's (splines, sparse arrays), which hold traced values."""

from __future__ import annotations

from bwcompiler.frontend.tracing.storages.region import active_region


class StandIn:
    """What is nothing but its attributes: loops and branches carry it as objects of the user's classes.  To be called by `__init__`."""

    def __init__(self) -> None:
        region = active_region()
        if region is not None and region.policy is not None:
            region.policy.own_object(self)


class KnownPart:
    """A part of these that holds no traced values and never changes; equal ones are the same object."""

    __slots__ = ()
