"""Copies of arrays that lie in memory like the original, gaps and reversed axes included (`x.copy()` makes them dense)."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from bwcompiler import tree


def strided_copy(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A writable copy with x's strides."""
    if 0 in x.shape or x.ndim == 0 or 0 in x.strides or any(step % x.itemsize for step in x.strides):
        return x.copy()
    lengths = [(n - 1) * step // x.itemsize for n, step in zip(x.shape, x.strides, strict=True)]
    first = -sum(min(length, 0) for length in lengths)
    memory = np.zeros(first + sum(max(length, 0) for length in lengths) + 1, x.dtype)
    made: np.ndarray[Any, Any] = np.lib.stride_tricks.as_strided(memory[first:], x.shape, x.strides)
    made[...] = x
    return made


def copies(args: Any) -> Any:
    """A copy of a container of arrays and other things."""
    return tree.map(lambda leaf: strided_copy(leaf) if type(leaf) is np.ndarray else copy.deepcopy(leaf), args)
