"""The contents of concrete arrays when a trace read them: compared with their memory at every call, if others can also write to it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bwcompiler.frontend.tracing.storages.contents import owner_of
from bwcompiler.ir.source import Source


class ArrayContents:
    """What the arrays that one trace reads hold."""

    def __init__(self) -> None:
        self._memory: dict[tuple[int, int], Memory] = {}
        self._arrays: dict[int, Any] = {}          # of these by their ids, those that are no views

    def note(self, array: np.ndarray[Any, Any], source: Callable[[], Source | None]) -> None:
        """What an array holds is read."""
        if id(array) in self._arrays or array.size == 0 or array.dtype.hasobject or _is_frozen(array):
            return
        if array.base is None:
            self._arrays[id(array)] = array
        if type(array) is not np.ndarray:
            mask = getattr(array, "_mask", None)   # of np.ma
            if isinstance(mask, np.ndarray):
                self.note(mask, source)
            array = array.view(np.ndarray)
        memory = memory_of(array)
        key = (memory.__array_interface__["data"][0], memory.size)
        if key not in self._memory:
            self._memory[key] = Memory(owner_of(array), memory, memory.tobytes(), source())

    def settle(self) -> list[Memory]:
        """What others may write to: not what the function itself made, that is gone."""
        self._arrays.clear()
        found = [memory for memory in self._memory.values() if not _is_alone(memory)]
        self._memory.clear()
        return found


class Memory(NamedTuple):
    """Memory that is read: view is of its bytes, owner the array whose it is, content what it held."""

    owner: Any
    view: np.ndarray[Any, Any]
    content: bytes
    source: Source | None


def _is_frozen(array: Any) -> bool:
    """Whether nobody can write to an array."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return array is None or isinstance(array, bytes)


def memory_of(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """From the first byte of an array to its last, gaps included."""
    if array.flags.c_contiguous:
        return array.reshape(-1).view(np.uint8)
    forwards = array[tuple([slice(None, None, -1 if stride < 0 else 1) for stride in array.strides])]
    length = sum((extent - 1) * stride for extent, stride in zip(forwards.shape, forwards.strides, strict=True)) + array.itemsize
    first = forwards[(slice(0, 1),) * array.ndim].reshape(-1).view(np.uint8)
    return np.lib.stride_tricks.as_strided(first, (length,), (1,), writeable=False)


def _is_alone(memory: Memory) -> bool:
    """Whether nobody else has the array: what the function made, that is gone."""
    return sys.getrefcount(memory.owner) <= _ALONE and memory.owner.base is None


def _references() -> int:
    array = np.zeros(2)
    made = Memory(array, memory_of(array), b"", None)
    del array
    return sys.getrefcount(made.owner)


_ALONE = _references()
