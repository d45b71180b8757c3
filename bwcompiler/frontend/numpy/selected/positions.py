"""Positions that a mask gives, and what has as many elements: np.nonzero, where, argwhere, compress, extract, delete, unique."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.numpy.selected.items import mask_of_places
from bwcompiler.frontend.numpy.selected.ordering import sort
from bwcompiler.frontend.numpy.selected.packing import merged, prefix, selected
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection, refuse, selection
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.types import I64


def _mask(condition: Any) -> Any:
    found = as_tracer(condition)
    return found if found.dtype == bool else found != 0


def nonzero(a: Any) -> tuple[Selection, ...]:
    """The positions of what is true, along each axis."""
    mask = _mask(a)
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
    """np.delete at positions that a mask gives, or a mask."""
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
           equal_nan: Any = True, **options: Any) -> Selection:
    """The different numbers, in order."""
    if return_index or return_inverse or return_counts or axis is not None or options:
        raise UnsupportedError("np.unique of a traced array with return_index=, return_inverse=, return_counts= or axis=: the number of "
                               "results is not known while tracing\n  hint: np.sort, and a mask of the elements that differ from the one "
                               "before; np.bincount(x, minlength=n) of integers")
    if isinstance(ar, Selection):
        x = sort(ar, None)
    else:
        array = np.sort(as_tracer(ar), axis=None)
        x = prefix(array, array.shape[0], 0)
    if x.dtype.kind not in "fiub":
        refuse("np.unique of complex numbers")
    if not x.array.shape[0]:
        return x
    new = x.array[1:] != x.array[:-1]
    if equal_nan and x.dtype.kind == "f":
        new = np.logical_and(new, np.logical_not(np.logical_and(np.isnan(x.array[1:]), np.isnan(x.array[:-1]))))
    return Selection(x.array, np.logical_and(x.where, np.concatenate([np.ones(1, bool), new])))
