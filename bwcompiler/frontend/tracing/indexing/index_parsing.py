"""What an index expression means: `parse` turns x[...] into basic items per axis and advanced indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler.errors import DTypeError, TracerIndexError
from bwcompiler.frontend.tracing.indexing.data_windows import Window, window_of
from bwcompiler.frontend.tracing.indexing.index_handle import IndexTracer, extent_of
from bwcompiler.frontend.tracing.indexing.index_sides import chosen_extent, is_at_least_zero
from bwcompiler.frontend.tracing.operands import assembled, known, known_parts, stack_objects
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.frontend.tracing.storages.strided_views import BasicItem, Slice, StridedView
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.extent import Affine, Extent, add_extents, known_le, scale_extent

TRACED_BOUND = ("a slice with a traced bound: the number of elements is not known while tracing\n"
                "  hint: a loop over its elements, `for k in range(start, stop)`, whose bounds may be data; or index with "
                "start + np.arange(size), or make the bound static (static_argnums); the index of a loop, and sums with it, may be bounds; "
                "x[a:b] or x[:, a:b] with steps of 1 can be computed with, and be summed")


class TracedSizeError(TracerIndexError):
    """How many elements an index takes is data: perhaps it is one that can be computed with (`data_slices`)."""


class ParsedIndex:
    """An index, normalised.

    items     one basic item per axis of x (a whole Slice where an advanced index will act) and None for new axes.
    arrays    the advanced indices: (axis of the array that `items` give, index array or tracer, whether it is known to
              be in range and nobody else's).
    place     axis of the result where the axes of the advanced indices go.
    windows   slices of a known size at places that are data, by the axis of the array that `items` give, which has it whole.
    scalar    integers only: NumPy gives a scalar, not a view.
    view      of a whole array, once it was asked for (`cached_parse` shares parsed indices).
    """

    __slots__ = ("arrays", "items", "place", "scalar", "view", "windows")

    def __init__(self, items: list[BasicItem], arrays: list[tuple[int, Any, bool]], place: int, scalar: bool,
                 windows: dict[int, Window]) -> None:
        self.items = items
        self.arrays = arrays
        self.windows = windows
        self.place = place
        self.scalar = scalar
        self.view: StridedView | None = None


class _Array:
    """An advanced index of one axis; `safe` where it is in range and private; `new` where that axis is a new one."""

    __slots__ = ("index", "new", "safe")

    def __init__(self, index: Any, safe: bool, new: bool = False) -> None:
        self.index = index
        self.safe = safe
        self.new = new


def entries_of(index: Any) -> list[Any]:
    """The index as a list of entries, sequences and object arrays converted."""
    entries = list(index) if isinstance(index, tuple) else [index]
    for position, entry in enumerate(entries):
        if isinstance(entry, list | tuple | range):
            entry = np.zeros(0, np.intp) if len(entry) == 0 else assembled(entry)
            if isinstance(entry, np.ndarray) and not entry.size and entry.dtype == np.float64:         # [[]]: nothing says of which dtype
                entry = entry.astype(np.intp)
        if isinstance(entry, np.ndarray) and entry.dtype == object:
            entry = stack_objects(entry)
        entries[position] = entry
    return entries


def is_mask(entry: Any) -> bool:
    """Whether an entry is a boolean array (or traced boolean)."""
    return (isinstance(entry, bool | np.bool_) or (isinstance(entry, np.ndarray) and entry.dtype == bool)
            or (isinstance(entry, Tracer) and entry.dtype == bool))


_parsed: dict[Any, ParsedIndex] = {}
_LIMIT = 20_000
_BOUNDS = (int, type(None))


def cached_parse(index: Any, shape: tuple[int, ...]) -> ParsedIndex:
    """`parse`, remembered for indices made of integers, slices, None and `...`."""
    entries = index if type(index) is tuple else (index,)
    key: list[Any] = [shape]
    for entry in entries:
        if type(entry) is slice:
            if not (type(entry.start) in _BOUNDS and type(entry.stop) in _BOUNDS and type(entry.step) in _BOUNDS):
                return parse(index, shape)
            key.append((entry.start, entry.stop, entry.step))
        elif type(entry) is int or entry is None or entry is Ellipsis:
            key.append(entry)
        else:
            return parse(index, shape)
    lookup = tuple(key)
    found = _parsed.get(lookup)
    if found is None:
        if len(_parsed) > _LIMIT:
            _parsed.clear()
        found = _parsed[lookup] = parse(index, shape)
    return found


def parse(index: Any, shape: tuple[int, ...], unsure: bool = False) -> ParsedIndex:
    """What x[index] means for an x of that shape; raises IndexError as NumPy does.

    unsure: slices of a known size at places that are data are taken, even if it is not known that they fit (`data_windows`).
    """
    entries = entries_of(index)
    consumed = sum(_axes_used(entry) for entry in entries)
    if consumed > len(shape):
        raise IndexError(f"too many indices for array: array is {len(shape)}-dimensional, but {consumed} were indexed")
    if sum(entry is Ellipsis for entry in entries) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if not any(entry is Ellipsis for entry in entries):
        scalar = consumed == len(shape) and all(_is_integer(entry) for entry in entries)
        entries.append(Ellipsis)
    else:
        scalar = False
    expanded = _expand(entries, shape, len(shape) - consumed, unsure)
    return _assemble(expanded, scalar)


def _axes_used(entry: Any) -> int:
    if entry is None or entry is Ellipsis:
        return 0
    return int(np.ndim(entry)) if is_mask(entry) and not isinstance(entry, Tracer) else 1


def _is_integer(entry: Any) -> bool:
    if isinstance(entry, IndexTracer):
        return True
    if isinstance(entry, bool | np.bool_ | Tracer):
        return False
    return isinstance(entry, int | np.integer) or (isinstance(entry, np.ndarray) and entry.ndim == 0 and entry.dtype.kind in "iu")


def _expand(entries: list[Any], shape: tuple[int, ...], missing: int, unsure: bool) -> list[Any]:
    """One expanded entry per axis or new axis; `...` is kept as a marker where it stands for nothing."""
    expanded: list[Any] = []
    axis = 0
    for entry in entries:
        if entry is Ellipsis:
            expanded.extend([Slice(0, extent, 1) for extent in shape[axis:axis + missing]] or [Ellipsis])
            axis += missing
        elif entry is None:
            expanded.append(None)
        elif is_mask(entry):
            arrays = _mask_arrays(entry, shape, axis)
            expanded.extend(arrays)
            axis += sum(not array.new for array in arrays)
        else:
            expanded.append(_one(entry, shape[axis], axis, unsure))
            axis += 1
    return expanded


def _mask_arrays(mask: Any, shape: tuple[int, ...], axis: int) -> list[_Array]:
    if isinstance(mask, Tracer):
        raise TracedSizeError("x[mask] with a traced mask: the number of elements is not known while tracing\n"
                               "  hint: np.where(mask, x, 0), or np.sum(x, where=mask) for reductions; y[mask] = scalar works")
    if np.ndim(mask) == 0:
        return [_Array(np.zeros(int(bool(mask)), np.int64), True, new=True)]           # all of a new axis of extent 1, or none
    for k, extent in enumerate(mask.shape):
        if extent != shape[axis + k]:
            raise IndexError(f"boolean index did not match indexed array along axis {axis + k}; size of axis is "
                             f"{shape[axis + k]} but size of corresponding boolean axis is {extent}")
    return [_Array(found, True) for found in mask.nonzero()]


def _one(entry: Any, extent: Any, axis: int, unsure: bool) -> Any:
    """What an axis of that extent is indexed with."""
    if isinstance(entry, slice):
        if isinstance(extent, int):
            entry = known_parts(entry)
            if not any(isinstance(bound, Tracer) for bound in (entry.start, entry.stop, entry.step)):
                return _slice(entry, extent)
        return _slice_by_data(entry, extent, unsure)
    if isinstance(entry, IndexTracer) or (not isinstance(extent, int) and _is_integer(entry)):
        found = _symbolic_position(entry, extent)
        return _Array(entry, False) if found is None else found
    if _is_integer(entry):
        return _position(int(entry), extent, axis)
    if isinstance(entry, Tracer):
        if entry._type.dtype.is_integer:
            return _Array(entry, False)
        raise DTypeError(f"arrays used as indices must be of integer (or boolean) type, not {entry.dtype}")
    if isinstance(entry, np.ndarray):
        if entry.dtype.kind not in "iu":
            raise IndexError("arrays used as indices must be of integer (or boolean) type")
        if isinstance(extent, int) and entry.size and (entry.min() < -extent or entry.max() >= extent):
            bad = entry[(entry < -extent) | (entry >= extent)].flat[0]
            raise IndexError(f"index {bad} is out of bounds for axis {axis} with size {extent}")
        return _Array(entry, False)
    if hasattr(entry, "__index__"):
        return _position(entry.__index__(), extent, axis)
    named = "\n  hint: data frames and records are arrays in here; pass their columns in a dict" if isinstance(entry, str) else ""
    raise IndexError("only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are "
                     f"valid indices, not {entry!r}{named}")


def _position(position: int, extent: int, axis: int) -> int:
    if not -extent <= position < extent:
        raise IndexError(f"index {position} is out of bounds for axis {axis} with size {extent}")
    return position + extent if position < 0 else position


def _slice(entry: slice, extent: int) -> Slice:
    start, stop, step = entry.indices(extent)
    return Slice(start, len(range(start, stop, step)), step)


def _slice_by_data(entry: slice, extent: Any, unsure: bool) -> Slice | Window:
    try:
        return _symbolic_slice(entry, extent)
    except TracedSizeError:
        window = window_of(entry, extent)
        if window is None or not (window.fits or unsure):
            raise
        return window


# ----- positions that depend on loop indices
def _symbolic_position(entry: Any, extent: Extent) -> Extent | None:
    """The place counted from the start; None where the bounds of the indices do not say on which side it is, or that it is inside."""
    place = extent_of(entry)
    assert place is not None
    if known_le(0, place) and known_le(add_extents(place, 1), extent):
        return place
    if known_le(place, -1) and known_le(0, add_extents(place, extent)):
        return add_extents(place, extent)
    if known_le(extent, place) or known_le(add_extents(place, extent), -1):
        raise IndexError(f"index {place} is out of bounds for an axis with size {extent}")
    return None


def _symbolic_slice(entry: slice, extent: Extent) -> Slice:
    """A slice of which a bound, or the extent of the axis, depends on loop indices."""
    step = 1 if entry.step is None else known(entry.step)
    if not isinstance(step, int | np.integer):
        raise TracerIndexError("a slice with a traced step: the number of elements is not known while tracing")
    step = int(step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    first, last = (0, extent) if step > 0 else (add_extents(extent, -1), -1)
    start = first if entry.start is None else _bound(entry.start, extent, step)
    stop = last if entry.stop is None else _bound(entry.stop, extent, step)
    distance = add_extents(stop, scale_extent(start, -1)) if step > 0 else add_extents(start, scale_extent(stop, -1))
    if isinstance(distance, int):
        return Slice(start, len(range(0, distance, abs(step))), step)
    if known_le(distance, 0):
        return Slice(0, 0, 1)
    if abs(step) != 1:
        raise TracerIndexError(f"a slice of {distance} elements in steps of {step}: the number of elements is not affine in the loop "
                               "indices\n  hint: index with start + step * np.arange(size)")
    policy = open_region().policy
    if policy is not None and policy.as_data:
        raise TracedSizeError(TRACED_BOUND)
    if is_at_least_zero(distance) is None:
        raise TracerIndexError(f"a slice of {distance} elements, which may be negative: Python then gives none\n"
                               "  hint: choose the bounds of the loop such that it is never negative")
    return Slice(start, distance, step)


def _bound(bound: Any, extent: Extent, step: int) -> Extent:
    """A bound of a slice as Python understands it: counted from the end where negative, cut to the axis."""
    place = extent_of(known(bound))
    if place is None and isinstance(bound, Tracer):
        place = chosen_extent(bound)
    if place is None:
        raise TracedSizeError(TRACED_BOUND)
    is_from_start = is_at_least_zero(place)
    if is_from_start is False:
        place = add_extents(place, extent)
    elif is_from_start is None:
        raise TracerIndexError(f"the bound {place} of a slice may be negative or not: Python counts negative ones from the end\n"
                               "  hint: choose the bounds of the loop such that one is sure")
    low, high = (0, extent) if step > 0 else (-1, add_extents(extent, -1))
    if known_le(place, low):
        return low
    if known_le(low, place) and known_le(place, high):
        return place
    if known_le(high, place):
        return high
    for number in (add_extents(place, scale_extent(low, -1)), add_extents(high, scale_extent(place, -1))):
        is_at_least_zero(number)                    # or loops in parts, in which that is known
    raise TracerIndexError(f"the bound {place} of a slice may be inside of the axis of extent {extent} or not\n"
                           "  hint: choose the bounds of the loop such that it never is outside")


def _assemble(expanded: list[Any], scalar: bool) -> ParsedIndex:
    advanced = [k for k, entry in enumerate(expanded) if isinstance(entry, _Array)]
    items: list[BasicItem] = []
    arrays: list[tuple[int, Any, bool]] = []
    windows: dict[int, Window] = {}
    axis = 0
    for entry in expanded:
        if entry is Ellipsis:
            continue
        if isinstance(entry, _Array):
            index = entry.index
            arrays.append((axis, index, entry.safe))
            items.append(None if entry.new else Slice(0, -1, 1))       # the extent is filled in by `fill_whole_axes`
        elif isinstance(entry, Window):
            windows[axis] = entry
            items.append(Slice(0, -1, 1))
        else:
            items.append(entry)
        axis += not isinstance(entry, int | Affine)
    return ParsedIndex(items, arrays, _place(expanded, advanced), scalar, windows)


def _place(expanded: list[Any], advanced: list[int]) -> int:
    """Where NumPy puts the axes of the advanced indices: in their place if they stand together, else first."""
    if not advanced:
        return 0
    together = [k for k, entry in enumerate(expanded) if isinstance(entry, _Array | int | Affine)]
    if together != list(range(together[0], together[-1] + 1)):
        return 0
    return sum(entry is not Ellipsis for entry in expanded[:together[0]])


def fill_whole_axes(parsed: ParsedIndex, shape: tuple[int, ...]) -> list[BasicItem]:
    """The basic items, with the axes of advanced indices and of windows taken whole."""
    extents = iter(shape)
    items: list[BasicItem] = []
    for item in parsed.items:
        if item is None:
            items.append(None)
            continue
        extent = next(extents)
        items.append(Slice(0, extent, 1) if isinstance(item, Slice) and item.size == -1 else item)
    return items
