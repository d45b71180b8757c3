"""NumPy functions that accept arrays whose extents depend on loop indices: those that use extents only symbolically, never as numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from bwcompiler.errors import UnsupportedError, at
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.ir.types import TensorType

_METHODS = ("sum prod mean var std max min any all argmax argmin cumsum cumprod dot trace diagonal transpose swapaxes reshape ravel "
            "flatten squeeze clip round copy conj conjugate take astype")

# What takes arrays whose extents depend on loop indices, besides operators, ufuncs, indexing and assignment.
_OF_ANY_EXTENT = frozenset((
    np.sum, np.prod, np.mean, np.var, np.std, np.average, np.max, np.min, np.amax, np.amin, np.ptp, np.any, np.all, np.count_nonzero,
    np.nansum, np.nanprod, np.nanmean, np.nanvar, np.nanstd, np.nanmax, np.nanmin, np.argmax, np.argmin,
    np.cumsum, np.cumprod, np.cumulative_sum, np.cumulative_prod, np.diff, np.trapezoid, np.gradient,
    np.matmul, np.dot, np.vdot, np.inner, np.outer, np.tensordot, np.einsum, np.linalg.norm, np.linalg.vector_norm, np.linalg.matrix_norm,
    np.linalg.vecdot, np.linalg.outer, np.linalg.matmul, np.linalg.tensordot, np.trace, np.linalg.trace, np.diag, np.diagonal,
    np.linalg.diagonal, np.tril, np.triu,
    np.transpose, np.matrix_transpose, np.linalg.matrix_transpose, np.swapaxes, np.moveaxis, np.rollaxis, np.flip, np.flipud, np.fliplr,
    np.reshape, np.ravel, np.squeeze, np.expand_dims, np.atleast_1d, np.atleast_2d, np.atleast_3d, np.broadcast_to, np.broadcast_arrays,
    np.concatenate, np.append, np.stack, np.vstack, np.hstack, np.dstack, np.column_stack, np.block, np.pad, np.take,
    np.zeros_like, np.ones_like, np.empty_like, np.full_like, np.array, np.asarray, np.copy, np.astype, np.where, np.select, np.clip,
    np.nonzero, np.flatnonzero, np.ndarray.nonzero,
    np.round, np.real, np.imag, np.angle, np.nan_to_num, np.isclose, np.allclose, np.array_equal, np.shape, np.ndim, np.size,
    *[getattr(np.ndarray, name) for name in _METHODS.split()]))
_OF_UFUNCS = {"__call__": frozenset((np.matmul, np.vecdot)),
              "reduce": frozenset((np.add, np.multiply, np.maximum, np.minimum, np.logical_or, np.logical_and)),
              "accumulate": frozenset((np.add, np.multiply, np.maximum, np.minimum))}


def require_fixed(function: Any, operands: Iterable[Any]) -> None:
    """Raise UnsupportedError where a function that has to count gets an array whose extents depend on a loop index."""
    found = next(_moving(operands), None)
    if found is not None and not _takes_any_extent(function):
        message = f"{getattr(function, '__name__', function)} of an array of shape {found.shape}, which depends on a loop index"
        raise UnsupportedError(at(current_source(open_region().outer), f"{message}, is not supported\n"
                                  "  hint: compute on the whole array, with zeros (np.where) where it is not to count"))


def _moving(operands: Iterable[Any]) -> Iterator[TensorType]:
    """The types of operands, and of arrays in lists of them, whose extents depend on a loop index."""
    for operand in operands:
        if isinstance(operand, list | tuple):
            yield from _moving(operand)
            continue
        type_ = getattr(operand, "_type", None)
        if isinstance(type_, TensorType) and not type_.is_fixed:
            yield type_


def _takes_any_extent(function: Any) -> bool:
    ufunc = getattr(function, "__self__", None)
    if isinstance(ufunc, np.ufunc):
        return function.__name__ == "outer" or ufunc in _OF_UFUNCS.get(function.__name__, ())
    return function in _OF_ANY_EXTENT
