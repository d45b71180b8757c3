"""np.insert and np.delete, at known positions and at traced ones; x.resize(n), which changes an array itself.

Both are a gather along the axis: of the elements of an array, and those that are inserted behind them, in the order of the result.  How
many are inserted must be known.  Elements deleted at several traced positions may be one and the same: what is left is a selection.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler.errors import UnsupportedError, located
from bwcompiler.frontend.numpy.axes import normalize_axis
from bwcompiler.frontend.numpy.manipulation.indexing import getitem
from bwcompiler.frontend.numpy.manipulation.joining import concatenate
from bwcompiler.frontend.numpy.manipulation.layout import moveaxis, reshaped
from bwcompiler.frontend.numpy.manipulation.selection import fitting
from bwcompiler.frontend.numpy.selected.indexing import positions as selected
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection
from bwcompiler.frontend.tracing.operands import as_tracer, cast, is_traced, known, reshape, value_as
from bwcompiler.frontend.tracing.policy import Recapture
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.refusals.conversions import method_advice
from bwcompiler.frontend.tracing.registry import HANDLERS, implements
from bwcompiler.frontend.tracing.storages.region import Region, open_region
from bwcompiler.frontend.tracing.tracer import Tracer, fresh, fresh_array


@implements(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    x, axis = _along_axis(arr, axis)
    extent = x.shape[axis]
    places = _traced(obj, extent, axis) if is_traced(obj) else _known(obj, extent, axis)
    new = fresh(cast(value_as(fitting(values, x)), x._type.dtype))
    number, block = places.size, not places.ndim or places.size == 1
    if block:                                             # inserted at one position
        new = _raised(new, x.ndim)
        new = new if places.ndim else moveaxis(new, 0, axis)
        number = new.shape[axis]
    while new.ndim > x.ndim and new.shape[0] == 1:
        new = getitem(new, 0)
    both = concatenate([x, np.broadcast_to(new, (*x.shape[:axis], number, *x.shape[axis + 1:]))], axis)
    return _taken(both, axis, _order(extent, np.repeat(places, number) if block else places, block))


def _along_axis(arr: Any, axis: Any) -> tuple[Tracer, int]:
    """An array and the axis, which is that of the flat array where there is none."""
    x = as_tracer(arr)
    if axis is None:
        x, axis = reshaped(x, (x.size,)), 0
    return x, normalize_axis(axis, x.ndim)


def _known(obj: Any, extent: int, axis: int) -> Any:
    """Positions from the beginning of the axis."""
    places = np.arange(extent)[obj] if isinstance(obj, slice) else np.asarray(obj)
    if places.dtype == bool:
        places = np.flatnonzero(places)
    places = _integers(places)
    if ((places < -extent) | (places > extent)).any():
        raise IndexError(f"index {np.atleast_1d(places)[0]} is out of bounds for axis {axis} with size {extent}")
    return np.where(places < 0, places + extent, places)


def _traced(obj: Any, extent: int, axis: int) -> Any:
    """Likewise of positions that are data, which are checked when the program runs."""
    if as_tracer(obj).dtype == bool:
        raise UnsupportedError("np.insert at positions of which data decide how many there are\n"
                               "  hint: np.concatenate of x and what is inserted, in the order of np.argsort, or a list: "
                               "kept.append(x[k]) in a loop")
    places = _integers(as_tracer(obj))
    HANDLERS["raise_where"](np.any(np.logical_or(places < -extent, places > extent)),
                            IndexError(f"np.insert: an index is out of bounds for axis {axis} with size {extent}"))
    return np.where(places < 0, places + extent, places)


def _integers(places: Any) -> Any:
    if places.size and places.dtype.kind not in "iu":
        raise IndexError(f"np.insert: positions must be integers, slices or booleans, got {places.dtype}")
    if places.ndim > 1:
        raise ValueError("index array argument obj to insert must be one dimensional or scalar")
    return places.astype(np.int64)


def _order(extent: int, places: Any, block: bool) -> Any:
    """Which elements of the array and, behind them, of those inserted before these positions are where in the result.

    block: all are inserted before the same one.
    """
    count = places.shape[0]
    if not isinstance(places, Tracer):
        return np.insert(np.arange(extent), places, extent + np.arange(count))
    # among those inserted, of which each moves the following ones
    rank = np.arange(count) if block else np.argsort(np.argsort(places, kind="stable"))
    is_new = as_tracer(np.zeros(extent + count, bool)).copy()
    is_new[places + rank] = True
    order = np.arange(extent + count) - np.cumsum(is_new)
    order[places + rank] = extent + np.arange(count)
    return order


def _taken(x: Tracer, axis: int, entry: Any) -> Any:
    return np.take(x, entry, axis) if isinstance(entry, Tracer) else getitem(x, (*[slice(None)] * axis, entry))


def _raised(x: Tracer, rank: int) -> Tracer:
    """x with leading axes of extent 1 up to at least this rank."""
    return fresh(reshape(value_of(x), (1,) * max(rank - x.ndim, 0) + x.shape))


@implements(np.delete)
def delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    x, axis = _along_axis(arr, axis)
    if _is_selected(obj):
        return selected.delete(x, obj, axis)
    if not is_traced(obj):
        return _taken(x, axis, np.delete(np.arange(x.shape[axis]), obj))
    places = as_tracer(obj)
    if places.dtype == bool:
        return selected.delete(x, places, axis)
    if not places.ndim and x.shape[axis]:
        deleted = as_tracer(np.arange(x.shape[axis]))[places]
        left = np.arange(x.shape[axis] - 1)
        return np.take(x, left + (left >= deleted), axis)
    is_deleted = as_tracer(np.zeros(x.shape[axis], bool)).copy()
    is_deleted[places] = True
    return selected.delete(x, is_deleted, axis)


def _is_selected(positions: Any) -> bool:
    """What `np.nonzero` gives of a mask, or the positions in it."""
    return isinstance(positions, Selection) or (isinstance(positions, tuple) and any(isinstance(one, Selection) for one in positions))


def resize(x: Tracer, *shape: Any, refcheck: bool = True) -> None:
    """x.resize(n): the array itself gets another memory, with its first elements, and zeros behind them.

    refcheck  whether NumPy sees to it that there are no other arrays of that memory; if not, they must not be used any more.
    """
    extents = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    new, storage, here = tuple([int(known(extent)) for extent in extents]), x._storage, open_region()
    if x._chain:
        raise ValueError("cannot resize this array: it does not own its data")
    refusal = UnsupportedError(f"ndarray.resize is not supported on traced arrays{method_advice('resize')}")
    if storage.region is not here:                 # the body of a loop cannot carry it: its shape changes
        inner: Region | None = here
        while inner is not None and inner is not storage.region:
            if inner.site is not None:
                raise Recapture(inner.site, located(refusal, current_source(here.outer)))
            inner = inner.parent
        raise refusal
    if x.ndim != 1 or len(new) != 1 or any(storage is one for one in here.arguments) or storage.links:
        raise refusal
    if new[0] < 0:
        raise ValueError("negative dimensions not allowed")
    size = x.shape[0]
    found = x[:new[0]] if new[0] <= size else np.concatenate([x, np.zeros(new[0] - size, x.dtype)])
    made = fresh_array(value_as(found))
    x._storage, x._type, x._value, x._version = made._storage, made._type, None, -1


HANDLERS["resize_method"] = resize
