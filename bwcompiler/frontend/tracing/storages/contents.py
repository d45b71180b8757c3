"""The contents of concrete arrays when a program took them, kept to see whether they have changed."""

from __future__ import annotations

from typing import Any

import numpy as np

_COPIED_BYTES = 1 << 24        # captured arrays up to this size are copied while tracing, to see whether they change
_COMPARED_BYTES = 1 << 13      # up to this size as bytes objects, which takes well below a microsecond


def owner_of(array: Any) -> Any:
    """The array that owns the memory of a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


class Contents:
    """What an array held: a copy, of a large one only sums over its bits (then `copy` is None)."""

    __slots__ = ("copy", "data", "sums")

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        small = array.nbytes <= _COPIED_BYTES
        self.copy = array.copy() if small else None
        self.data = array.tobytes() if array.nbytes <= _COMPARED_BYTES else None
        self.sums = None if small else _sums(array)

    def matches(self, array: np.ndarray[Any, Any]) -> bool:
        """Whether the array still holds this."""
        if self.data is not None:
            return array.tobytes() == self.data
        if self.copy is None:
            return _sums(array) == self.sums
        return array is self.copy or np.array_equal(_bits(array), _bits(self.copy))


def _bits(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The elements as integers (so that nan equals itself)."""
    if array.dtype.kind == "c":
        array = array.view(array.real.dtype) if array.flags.c_contiguous else np.stack([array.real, array.imag])
    return array.view(f"u{array.itemsize}")


def _sums(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    bits = _bits(array)
    return int(np.add.reduce(bits, axis=None, dtype=np.uint64)), int(np.bitwise_xor.reduce(bits, axis=None))
