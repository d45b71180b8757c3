"""Which NumPy functions take arrays whose extents depend on loop indices: those that never count elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler.errors import UnsupportedError, at
from bwcompiler.frontend.tracing.source import current_source
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.ir.types import TensorType

# What takes arrays whose extents depend on loop indices, besides operators, ufuncs, indexing and assignment.
_OF_ANY_EXTENT = frozenset((np.sum, np.max, np.min, np.any, np.all, np.matmul, np.dot, np.transpose, np.flip, np.copy, np.where, np.imag,
                            np.concatenate, np.append, np.vstack, np.hstack, np.zeros_like, np.ones_like, np.clip, np.matrix_transpose,
                            np.swapaxes, np.ndarray.clip, np.ndarray.copy,
                            *[getattr(np.ndarray, name) for name in "sum max min any all dot transpose swapaxes".split()]))


def require_fixed(function: Any, operands: Sequence[Any]) -> None:
    """Raise UnsupportedError where a function that has to count gets an array whose extents depend on a loop index."""
    for operand in operands:
        type_ = getattr(operand, "_type", None)
        if isinstance(type_, TensorType) and not type_.is_fixed and not _takes_any_extent(function):
            message = f"{getattr(function, '__name__', function)} of an array of shape {type_.shape}, which depends on a loop index"
            raise UnsupportedError(at(current_source(open_region().outer), f"{message}, is not supported\n"
                                      "  hint: compute on the whole array, with zeros (np.where) where it is not to count"))


def _takes_any_extent(function: Any) -> bool:
    try:
        return function in _OF_ANY_EXTENT
    except TypeError:                              # a method of a ufunc object
        return False
