"""Shapes, strides and shadows: strided arrays over one dummy element, from which NumPy itself tells what is a view."""

from __future__ import annotations

import functools
from typing import Any, TypeAlias

import numpy as np

from bwcompiler.errors import UnsupportedError
from bwcompiler.ir.extent import Extent, known_le, upper

Shape: TypeAlias = tuple[int, ...]             # extents that depend on loop indices go where integers go, but for shadows
DUMMY = np.zeros((), np.int8)                  # itemsize 1: strides are counted in elements


def known_shape(shape: Shape) -> Shape:
    """The shape with the largest integers that extents may be in the places of those that depend on loop indices."""
    return shape if all(type(extent) is int for extent in shape) else tuple(map(upper, shape))


def c_strides(shape: Shape) -> tuple[int, ...]:
    """Strides in elements of an array in C order."""
    shape = known_shape(shape)
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * max(shape[axis + 1], 1)
    return tuple(strides)


def fortran_strides(shape: Shape) -> tuple[int, ...]:
    """Strides in elements of an array in Fortran order."""
    return c_strides(shape[::-1])[::-1]


def reshaped_shadow(base: np.ndarray[Any, Any], shape: Shape) -> np.ndarray[Any, Any] | None:
    """The shadow of base.reshape(shape); None where NumPy would copy."""
    try:
        return np.reshape(base, known_shape(shape), copy=False)
    except ValueError:
        return None


@functools.lru_cache(maxsize=4096)
def always_viewed(old: Shape, new: Shape) -> bool:
    """Whether reshaping gives a view whatever the strides are: axes are split, or axes of extent 1 come and go."""
    if 0 in old:
        return True
    old = known_shape(old)
    unlike = tuple(range(1, len(old) + 1))                      # ascending: no two axes can be merged
    return reshaped_shadow(np.lib.stride_tricks.as_strided(DUMMY, old, unlike), new) is not None


def diagonal_length(rows: Extent, columns: Extent) -> Any:
    """The lesser of the two, 0 if that is negative."""
    for less, more in ((rows, columns), (columns, rows)):
        if known_le(less, more):
            if known_le(0, less):
                return less
            if known_le(less, 0):
                return 0
    raise UnsupportedError(f"the diagonal of a matrix of which {rows} rows and {columns} columns count: how long it is depends on a loop "
                           "index in more than one way")
