"""Results of branches and loops that may, depending on data, be the same array as one from outside.

`y = a if test else b` makes y another name of one of two arrays.  The graph has a copy instead, which is correct until one of the
arrays is assigned to: reading y after that is an error.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterable, Sequence

from bwcompiler.errors import UnsupportedError, at, located
from bwcompiler.frontend.tracing.policy import Recapture, Site
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.storages.region import WRITTEN_TO_KEPT, Region, Storage, active_region, open_region
from bwcompiler.frontend.tracing.storages.shapes import Shape
from bwcompiler.frontend.tracing.storages.views import BroadcastView
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.op import Value

_WRITTEN = ("{0} may be another name of an array that was assigned to since a branch or a loop gave it: which array it is depends on data\n"
            "  hint: take a copy there, x.copy(), or make new arrays (x = x + y) where x += y assigns to elements")


class SharedView(BroadcastView):
    """All of a storage, as long as none of its `sources` was assigned to since; writable: whether it may be assigned to itself.

    homes  the region where it was made, and those around that; seen: what was assigned to each source in each of them until then.
    site   of the loop that is unrolled if it is read after that, or assigned to; None where that is an error.
    """

    __slots__ = ("homes", "name", "seen", "site", "sources", "writable")

    def __init__(self, shape: Shape, why: str, name: str, sources: Iterable[Storage], writable: bool, site: Site | None = None) -> None:
        super().__init__(shape, why)
        self.site = site
        self.name = name
        self.homes = _regions_from(open_region())
        self.sources = tuple(sources)
        self.seen = [[_written(source, home) for home in self.homes] for source in self.sources]
        self.writable = writable

    def read(self, value: Value) -> Value:
        for source, seen in zip(self.sources, self.seen, strict=True):
            if _is_written_since(source, self.homes, seen):
                home = self.homes[0]
                error = located(UnsupportedError(_WRITTEN.format(self.name)), home.record.source or current_source(home.outer))
                raise error if self.site is None else Recapture(self.site, error)
        for region in itertools.takewhile(lambda region: region not in self.homes, _regions_from(active_region())):
            region.shared.update(self.sources)
        return value

    def over(self, shape: Shape) -> SharedView:
        """The same of an array whose rows are such arrays."""
        made = copy.copy(self)
        made.shape = shape
        return made

    def write(self, base: Value, new: Value) -> Value:
        if self.writable:
            return new
        try:
            return super().write(base, new)
        except ValueError as error:
            if self.site is None:
                raise
            raise Recapture(self.site, error) from None


def _written(storage: Storage, region: Region) -> Value | None:
    """What was assigned to a storage in a region; what it holds in its own."""
    if storage.region is region:
        return storage.value
    found = None if storage.inner is None else storage.inner.get(region)
    return None if any(found is value for value in region.lifted_inputs) else found


def is_written(storage: Storage, region: Region) -> bool:
    """Whether something in a region has assigned to a storage from outside of it."""
    return storage.region is not region and _written(storage, region) is not None


def _is_written_since(storage: Storage, homes: Sequence[Region], seen: Sequence[Value | None]) -> bool:
    """Whether a storage was assigned to since `seen` was what had been, in regions that are open, or that have been left since."""
    for region in _regions_from(active_region()):
        place = next((place for place, home in enumerate(homes) if home is region), None)
        if place is None:
            if _written(storage, region) is not None:
                return True
            continue
        left = zip(homes[:place], seen, strict=False)          # a body that writes does so in its next iteration, too
        return _written(storage, region) is not seen[place] or any(
            _written(storage, home) is not (was if storage.region is home else None) for home, was in left)
    return False


def _regions_from(region: Region | None) -> list[Region]:
    """A region, and those around it."""
    found = []
    while region is not None:
        found.append(region)
        region = region.parent
    return found


def share(tracer: Tracer, sources: Iterable[Storage], name: str, why: str = "", site: Site | None = None) -> None:
    """Make an array one that may be others, and is read-only therefore; site: of the loop that gave it, if it can be unrolled."""
    found = dict.fromkeys(source for source in sources if source is not tracer._storage and not source.region.closed)
    tracer._storage.version = math.nan             # no handle keeps what it has read: it has to look again
    tracer._chain = (SharedView(tracer.shape, why, name, found, False, site),)


def origins(tracer: Tracer) -> list[Storage]:
    """The storages that a handle may show: its own, and what that is a copy of."""
    return [tracer._storage, *[source for step in tracer._chain if isinstance(step, SharedView) for source in step.sources]]


def possible(storage: Storage) -> list[Storage]:
    """A storage, and all those that it may be, as data decides."""
    found = [storage]
    for one in found:
        for link in one.links or ():
            other = link.storage()
            if other is not None and other not in found:
                found.append(other)
    return found


def keep(x: Tracer, site: Site | bool = True) -> None:
    """A list gets a copy of an array: raises where an iteration around has written to the array, as the next one will.

    site    of the loop that is to be unrolled where somebody writes to the array later; True where that cannot be.
    """
    for storage in {one for origin in origins(x) for one in possible(origin)}:
        if storage.writable and is_written_around(storage):
            raise UnsupportedError(at(current_source(open_region().outer), WRITTEN_TO_KEPT))
        storage.kept = storage.kept or site


def is_written_around(storage: Storage) -> bool:
    """Whether something that is being traced has written to a storage which it has not made itself."""
    region: Region | None = open_region()
    while region is not None and region is not storage.region:
        if is_written(storage, region):
            return True
        region = region.parent
    return is_argument_written(storage)


def is_argument_written(storage: Storage) -> bool:
    """Whether it is what an iteration or a side began with, and holds something else now."""
    region = storage.region
    return region.parent is not None and storage in region.arguments and (
        storage.value is not region.argument_inputs[region.arguments.index(storage)])
