"""Positions of true elements, and functions with results of that size: np.nonzero, where, argwhere, compress, extract, delete, unique."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.numpy.selected.indexing.items import mask_of_places
from bwcompiler.frontend.numpy.selected.ordering import argsort, sort
from bwcompiler.frontend.numpy.selected.packing import merged, number, packed, prefix, selected, with_all
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection, refuse, selection
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.extent import upper
from bwcompiler.ir.types import BOOL, I64


def _mask(condition: Any) -> Any:
    found = as_tracer(condition)
    return found if found.dtype == bool else found != 0


def _with_room(mask: Any) -> Any:
    """A mask of fixed extents: one whose extents depend on the index of a loop is the leading part of the largest."""
    if mask._type.is_fixed:
        return mask
    room = ops.full(value=False, shape=tuple(map(upper, mask._type.shape)), dtype=BOOL)
    return fresh(ops.slice_update(room, value_of(mask), starts=(0,) * mask.ndim, steps=(1,) * mask.ndim))


def nonzero(a: Any) -> tuple[Selection, ...]:
    """The positions of true elements, along each axis."""
    mask = _with_room(_mask(a))
    if not mask.ndim:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead.")
    return tuple([Selection(fresh(ops.iota(shape=mask.shape, axis=axis, dtype=I64)), mask, places=axis) for axis in range(mask.ndim)])


@selected(np.nonzero)
def nonzero_of_selection(a: Selection) -> tuple[Selection, ...]:
    if a.ndim != 1:
        refuse("np.nonzero of rows")
    x = merged(a)
    return (Selection(np.cumsum(x.where) - 1, np.logical_and(x.where, x.array != 0)),)


@selected(np.flatnonzero)
def flatnonzero(a: Any) -> Selection:
    if isinstance(a, Selection):
        return nonzero_of_selection(a)[0]
    return nonzero(as_tracer(a).ravel())[0]


@selected(np.argwhere)
def argwhere(a: Any) -> Selection:
    if isinstance(a, Selection):
        refuse("np.argwhere")
    if not np.ndim(a):                              # one position without coordinates, or none
        return Selection(as_tracer(np.zeros((1, 0), np.int64)), _mask(a).reshape(1))
    found = nonzero(a)
    return Selection(np.stack([merged(one).array for one in found], axis=-1), merged(found[0]).where)


@selected(np.compress)
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    if out is not None or isinstance(a, Selection) != isinstance(condition, Selection):
        refuse("np.compress with out=, or of an array that it is not of,")
    if isinstance(a, Selection):
        return a[condition]
    x, mask = as_tracer(a), _mask(condition)
    if mask.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    if axis is None:
        x, axis = x.ravel(), 0
    lead = axis % x.ndim
    return selection(x[(slice(None),) * lead + (slice(0, mask.shape[0]),)], mask, lead)


@selected(np.extract)
def extract(condition: Any, arr: Any) -> Any:
    if isinstance(arr, Selection) or isinstance(condition, Selection):
        return compress(condition, arr)
    return selection(as_tracer(arr).ravel(), _mask(condition).ravel())


def delete(x: Any, obj: Any, axis: Any) -> Selection:
    """np.delete at selected positions, or by a mask."""
    if axis is None:
        x, axis = x.ravel(), 0
    lead = axis % x.ndim
    if isinstance(obj, tuple) and len(obj) == 1:
        obj, = obj
    mask = mask_of_places(np.moveaxis(x, lead, 0), [obj]) if isinstance(obj, Selection) else _mask(obj)
    if mask is None:
        refuse("np.delete at such positions")
    return selection(x, np.logical_not(mask), lead)


@selected(np.delete)
def delete_from_selection(arr: Any, obj: Any, axis: Any = None) -> Any:
    if isinstance(arr, Selection):
        refuse("np.delete")
    return delete(as_tracer(arr), obj, axis)


@selected(np.unique)
def unique(ar: Any, return_index: Any = False, return_inverse: Any = False, return_counts: Any = False, axis: Any = None, *,
           equal_nan: Any = True, **options: Any) -> Any:
    """np.unique: the distinct numbers in order; the first index, the inverse and the count of each."""
    if axis is not None or options:
        raise UnsupportedError("np.unique of a traced array with axis=: the number of results is not known while tracing\n"
                               "  hint: np.lexsort of its columns, and a mask of the rows that differ from the one before")
    x = _in_one_row(ar)
    if x.dtype.kind not in "fiub":
        refuse("np.unique of complex numbers")
    if not (return_index or return_inverse or return_counts):
        ordered = sort(x, None)
        return Selection(ordered.array, np.logical_and(ordered.where, _is_new(ordered.array, equal_nan)))
    x = packed(x)
    size, order = x.array.shape[0], argsort(x).array
    numbers, positions = np.take(x.array, order), np.arange(size)
    rank = np.cumsum(np.logical_and(x.where, _is_new(numbers, equal_nan))) - 1     # the inverse: the rank among the distinct numbers
    count = rank[-1] + 1 if size else 0
    starts = np.searchsorted(rank, positions)
    found = [prefix(np.take(numbers, np.minimum(starts, max(size - 1, 0))), count, 0)]
    if return_index:
        found.append(prefix(np.take(order, np.minimum(starts, max(size - 1, 0))), count, 0))
    if return_inverse:
        which = with_all(x, np.take(rank, np.argsort(order)))
        found.append(which if isinstance(ar, Selection) else which.array.reshape(np.shape(ar)))
    if return_counts:
        ends = np.searchsorted(rank, positions, side="right")
        found.append(prefix(np.minimum(ends, number(x)) - np.minimum(starts, number(x)), count, 0))
    return tuple(found)


def _in_one_row(ar: Any) -> Selection:
    if isinstance(ar, Selection):
        if ar.ndim > 1:
            refuse("np.unique of rows")
        return merged(ar)
    array = as_tracer(ar).ravel()
    return prefix(array, array.shape[0], 0)


def _is_new(ordered: Any, equal_nan: Any) -> Any:
    """The mask of numbers that differ from the one before."""
    if not ordered.shape[0]:
        return np.zeros(0, bool)
    new = ordered[1:] != ordered[:-1]
    if equal_nan and ordered.dtype.kind == "f":
        new = np.logical_and(new, np.logical_not(np.logical_and(np.isnan(ordered[1:]), np.isnan(ordered[:-1]))))
    return np.concatenate([np.ones(1, bool), new])
