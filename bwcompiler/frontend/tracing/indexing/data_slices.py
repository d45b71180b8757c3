"""`x[start:stop]`, `x[:, start:stop]` with bounds that are data: a slice whose number of elements is not known while tracing.

It supports what a selection by a mask does (`masked_selection`), where the mask contains the positions between the bounds.  It is a view:
later writes to the array are seen in it, and what is written into it is written into the array.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import DTypeError, TracerIndexError
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.indexing.data_windows import window_of
from bwcompiler.frontend.tracing.indexing.grids import Grid, Line
from bwcompiler.frontend.tracing.indexing.index_handle import IndexTracer
from bwcompiler.frontend.tracing.indexing.index_parsing import TRACED_BOUND, is_mask
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection, SizedByData, selection
from bwcompiler.frontend.tracing.operands import known, value_as
from bwcompiler.frontend.tracing.registry import TAKING
from bwcompiler.frontend.tracing.storages.region import Region, open_region
from bwcompiler.frontend.tracing.tracer import Tracer, fresh
from bwcompiler.ir.extent import lower, upper
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import I64


class DataSlice(Selection):
    """What `array[start:stop]` gives, behind `lead` axes, as the array is when it is asked for; start and stop as numbers from 0 to the
    extent of the axis."""

    __slots__ = ("start", "stop")

    def __init__(self, source: Tracer, start: Tracer, stop: Tracer, lead: int = 0) -> None:
        positions = fresh(ops.iota(shape=source.shape[lead:lead + 1], axis=0, dtype=I64))
        super().__init__(source, np.logical_and(positions >= start, positions < stop), lead)
        self.start = start
        self.stop = stop

    @property
    def number(self) -> Any:
        """How many elements there are."""
        return np.maximum(self.stop - self.start, 0)


TAKING.append(DataSlice)
MOST_FOR_KNOWN_SIZES = 256     # iterations of loops that are unrolled so that slices have known sizes; each is program text


def sized_by_data(x: Tracer, entries: list[Any]) -> SizedByData:
    """x[...] where data says how many elements there are: with a mask, or with a slice."""
    if not any(isinstance(entry, Tracer) and is_mask(entry) for entry in entries):
        return data_slices(x, entries)
    if any(map(_is_sized_by_data, entries)):       # x[:k, mask]: first by the mask
        entries = spelled_out(entries, x.ndim)
        part = sized_by_data(x, [slice(None) if _is_sized_by_data(entry) else entry for entry in entries])
        return part[tuple([entry if _is_sized_by_data(entry) else slice(None) for entry in entries if not is_number(entry)])]  # type: ignore[no-any-return]
    found = masked(x, entries)
    if found is None:
        raise TracerIndexError("x[mask, ...] with a traced mask: the number of elements is not known while tracing\n"
                               "  hint: np.where(mask, x, 0), or np.sum(x, where=mask) for reductions; beside one traced mask there may be "
                               "slices, None, and numbers next to it")
    return selection(*found)


def masked(x: Tracer, entries: list[Any], anywhere: bool = False) -> tuple[Tracer, Tracer, int] | None:
    """Of x[i, :, mask, None, :k]: the part of x that the other indices leave, the mask, and how many axes are in front of the mask's;
    None where there are indices of another kind, or NumPy would put the axis of the mask elsewhere, unless it may be `anywhere`."""
    entries = spelled_out(entries, x.ndim)
    place = next((place for place, entry in enumerate(entries) if isinstance(entry, Tracer) and is_mask(entry)), None)
    if place is None or not all(is_number(entry) or isinstance(entry, slice | None) for entry in (*entries[:place], *entries[place + 1:])):
        return None
    before, mask, behind = entries[:place], entries[place], entries[place + 1:]
    numbers = [number for number, entry in enumerate(entries) if number == place or not isinstance(entry, slice | None)]
    lead = sum(isinstance(entry, slice | None) for entry in before)
    if lead and not anywhere and numbers != list(range(numbers[0], numbers[-1] + 1)):
        return None
    others = (*before, *[slice(None)] * mask.ndim, *behind)
    return (x[others] if before or behind else x), mask, lead


def spelled_out(entries: list[Any], rank: int) -> list[Any]:
    """An index with slices in the place of `...`."""
    others = [entry for entry in entries if entry is not Ellipsis]
    place = next((place for place, entry in enumerate(entries) if entry is Ellipsis), None)
    if place is None or len(others) < len(entries) - 1:
        return entries
    taken = sum([int(np.ndim(entry)) if is_mask(entry) else int(entry is not None) for entry in others])
    return [*others[:place], *[slice(None)] * (rank - taken), *others[place:]]


def is_number(entry: Any) -> bool:
    """Whether an index is one number, known or traced."""
    return isinstance(entry, int | np.integer | Tracer) and not isinstance(entry, bool) and np.ndim(entry) == 0 and not is_mask(entry)


def _is_plain(entry: Any) -> bool:
    """Whether it is an index beside the slice that leaves a view of which the size is known."""
    return not _is_sized_by_data(entry) if isinstance(entry, slice) else entry is None or is_number(entry)


def _is_sized_by_data(entry: Any) -> bool:
    """Whether it is a slice whose bounds are data."""
    return isinstance(entry, slice) and any(isinstance(bound, Tracer) for bound in (entry.start, entry.stop, entry.step))


def data_slice(x: Tracer, entries: list[Any]) -> DataSlice:
    """x[...] with one slice whose bounds are data; its array is the part of x that the other indices leave."""
    entries = spelled_out(entries, x.ndim)
    place = next(number for number, entry in enumerate(entries) if _is_sized_by_data(entry))
    bounds, before, behind = entries[place], entries[:place], entries[place + 1:]
    if known(bounds.step) not in (None, 1) or not all(map(_is_plain, [*before, *behind])) or is_known_in_each_iteration([bounds]):
        raise TracerIndexError(TRACED_BOUND)
    source = x[(*before, slice(None), *behind)] if before or behind else x
    lead = sum([isinstance(entry, slice | None) for entry in before])
    size = source._type.shape[lead]
    if not isinstance(size, int):
        raise TracerIndexError(TRACED_BOUND)
    _look_for_a_window(bounds, size)
    return DataSlice(source, _bound(bounds.start, 0, size), _bound(bounds.stop, size, size), lead)


def data_slices(x: Tracer, entries: list[Any]) -> SizedByData:
    """x[...] with slices whose bounds are data, a view: along one axis, or a grid.  Blocks of known sizes are windows (`data_windows`)."""
    entries = spelled_out(entries, x.ndim)
    places = [place for place, entry in enumerate(entries) if _is_sized_by_data(entry)]
    if len(places) == 1:
        return data_slice(x, entries)
    slices = [data_slice(x, [slice(None) if other in places and other != place else entry for other, entry in enumerate(entries)])
              for place in places]
    if all(window_of(entries[place], one.array._type.shape[one.lead]) is not None for place, one in zip(places, slices, strict=True)):
        raise TracerIndexError(TRACED_BOUND)
    return Grid(slices[0].array, {one.lead: Line(one.where, None) for one in slices}, is_view=True)


def _look_for_a_window(bounds: slice, size: int) -> None:
    """Note that the slice can be a window (`data_windows`), if it can; raises TracerIndexError where it is to be one."""
    policy = open_region().policy
    if policy is None or window_of(bounds, size) is None:
        return
    policy.may_be_cut = True
    if policy.windows:
        raise TracerIndexError(TRACED_BOUND)


def _bound(bound: Any, default: int, size: int) -> Tracer:
    """A bound as Python understands it: counted from the end where negative, cut to the axis."""
    if isinstance(bound, Tracer) and (bound.ndim or not bound._type.dtype.is_integer):
        raise DTypeError(f"slice indices must be integers or None, not {bound.dtype} of shape {bound.shape}")
    found: Any = fresh(value_as(default if bound is None else bound, I64))
    return np.clip(np.where(found < 0, found + size, found), 0, size)  # type: ignore[no-any-return]


def is_known_in_each_iteration(slices: list[slice]) -> bool:
    """Whether the bounds of slices are known once the loops are unrolled, all of which can be, and are short: then so are the sizes."""
    region = open_region()
    if region.policy is not None and region.policy.as_data:
        return False
    scopes = [] if region.policy is None else region.policy.scopes
    trips = 1
    for scope in scopes:
        index = None if scope.loop is None else scope.loop.index
        if index is None:
            return False
        trips *= upper(index.hi) - lower(index.lo) + 1
    if not scopes or trips > MOST_FOR_KNOWN_SIZES:
        return False
    bounds = [bound for entry in slices for bound in (entry.start, entry.stop)]
    traced = [bound for bound in bounds if isinstance(bound, Tracer) and not isinstance(bound, IndexTracer)]
    return all(_is_known(value_of(bound), region) for bound in traced)


def _is_known(value: Value, region: Region) -> bool:
    """Whether a value is computed from indices of loops and known arrays alone."""
    stack, seen = [value], {value}
    while stack:
        one = stack.pop()
        if one.op.kind == "input" and not any(one is known_one for known_one in region.capture_inputs):
            return False
        new = [operand for operand in one.operands if operand not in seen]
        seen.update(new)
        stack += new
    return True
