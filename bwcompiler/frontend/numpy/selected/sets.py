"""NumPy's set functions: distinct numbers in order; their count is data-dependent."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler.frontend.numpy.selected.indexing.positions import unique
from bwcompiler.frontend.numpy.selected.packing import selected
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.registry import implements


def _in_one_dtype(*arrays: Any) -> list[Any]:
    given = [array if isinstance(array, Selection) else as_tracer(array) for array in arrays]
    dtype = np.result_type(*[array.dtype for array in given])
    return [array.astype(dtype) for array in given]


def _apart(numbers: Any, others: Any) -> Any:
    """The different numbers that are not among others."""
    found: Any = unique(numbers)
    return found[np.logical_not(np.isin(found, others))]


@selected(np.union1d)
def union1d(ar1: Any, ar2: Any) -> Any:
    return unique(np.concatenate([unique(one) for one in _in_one_dtype(ar1, ar2)]))


@selected(np.intersect1d)
def intersect1d(ar1: Any, ar2: Any, assume_unique: Any = False, return_indices: Any = False) -> Any:
    one, other = _in_one_dtype(ar1, ar2)
    if not return_indices:
        found: Any = unique(one)
        return found[np.isin(found, other)]
    (first, places), (second, others) = unique(one, return_index=True), unique(other, return_index=True)
    both = np.isin(first, other)
    return first[both], places[both], others[np.isin(second, one)]


@selected(np.setdiff1d)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: Any = False) -> Any:
    if not assume_unique:
        return _apart(ar1, ar2)
    numbers: Any = ar1 if isinstance(ar1, Selection) else as_tracer(ar1).ravel()
    return numbers[np.logical_not(np.isin(numbers, ar2))]


@selected(np.setxor1d)
def setxor1d(ar1: Any, ar2: Any, assume_unique: Any = False) -> Any:
    one, other = _in_one_dtype(ar1, ar2)
    return np.sort(np.concatenate([_apart(one, other), _apart(other, one)]))


@selected(np.unique_values)
def unique_values(x: Any) -> Any:
    return unique(x, equal_nan=False)


@selected(np.unique_counts)
def unique_counts(x: Any) -> Any:
    return _as_named(np.unique_counts, unique(x, return_counts=True, equal_nan=False))


@selected(np.unique_inverse)
def unique_inverse(x: Any) -> Any:
    return _as_named(np.unique_inverse, unique(x, return_inverse=True, equal_nan=False))


@selected(np.unique_all)
def unique_all(x: Any) -> Any:
    return _as_named(np.unique_all, unique(x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False))


def _as_named(function: Any, found: tuple[Any, ...]) -> Any:
    return type(function([0]))(*found)


implements(np.unique)(unique)
implements(np.union1d)(union1d)
implements(np.intersect1d)(intersect1d)
implements(np.setdiff1d)(setdiff1d)
implements(np.setxor1d)(setxor1d)
implements(np.unique_values)(unique_values)
implements(np.unique_counts)(unique_counts)
implements(np.unique_inverse)(unique_inverse)
implements(np.unique_all)(unique_all)
