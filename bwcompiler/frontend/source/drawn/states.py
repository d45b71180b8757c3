"""The state of a generator of random numbers as an array of integers, which programs carry."""

from __future__ import annotations

import copy
import random
import struct
from typing import Any

import numpy as np

from bwcompiler.locks import RenewedLock

_WORD = (1 << 32) - 1
_BITS = 128                    # of the longest integers in a state


class State:
    """How the state of one kind of generators is written into words of 32 bits; of NumPy's, or Python's `random.Random`."""

    def __init__(self, generator: Any) -> None:
        self.generator = copy.deepcopy(generator)      # which is drawn from
        self.kind = _kind(generator)
        self.lock = RenewedLock()                      # programs may draw in several threads
        self._last = b""                               # the words of the state that it is in; empty while it draws

    def words(self, generator: Any) -> np.ndarray[Any, Any]:
        """The state that a generator is in."""
        found = _packed(_get(generator))
        if generator is self.generator:
            self._last = found.tobytes()
        return found

    def at(self, words: np.ndarray[Any, Any]) -> Any:
        """A generator in the state that words say."""
        if words.tobytes() != self._last:
            state, rest = _unpacked(_get(self.generator), [int(word) for word in words])
            assert not rest
            _set(self.generator, state)
        self._last = b""
        return self.generator


def _kind(generator: Any) -> str:
    return "random" if isinstance(generator, random.Random) else str(_get(generator)["bit_generator"])


def _get(generator: Any) -> Any:
    if isinstance(generator, random.Random):
        return generator.getstate()
    return generator.get_state(legacy=False) if isinstance(generator, np.random.RandomState) else generator.bit_generator.state


def _set(generator: Any, state: Any) -> None:
    if isinstance(generator, random.Random):
        generator.setstate(state)
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(state)
    else:
        generator.bit_generator.state = state


def _packed(state: Any) -> np.ndarray[Any, Any]:
    words: list[int] = []
    arrays: list[np.ndarray[Any, Any]] = []        # before these words
    _pack(state, words, arrays)
    last = np.array(words, np.int64)
    return np.concatenate([*arrays, last]) if arrays else last


def _pack(part: Any, words: list[int], arrays: list[np.ndarray[Any, Any]]) -> None:
    """Integers of up to 128 bits, floats, None, and arrays, tuples and dictionaries of them; texts stay what they are."""
    if isinstance(part, dict):
        for inner in part.values():
            _pack(inner, words, arrays)
    elif isinstance(part, np.ndarray):
        arrays += [np.array(words, np.int64), (part if part.itemsize <= 4 else part.astype(np.uint64).view(np.uint32)).astype(np.int64)]
        words.clear()
    elif isinstance(part, tuple):
        if len(part) > _LONG:
            words.extend(part)
        else:
            for inner in part:
                _pack(inner, words, arrays)
    elif isinstance(part, float) or part is None:
        words.extend((int(part is None), *struct.unpack("<2I", struct.pack("<d", part or 0.0))))
    elif not isinstance(part, str):
        words.extend([int(part) >> shift & _WORD for shift in range(0, _BITS, 32)])


_LONG = 8                      # a tuple of more is one of integers of 32 bits


def _unpacked(like: Any, words: list[int]) -> tuple[Any, list[int]]:
    """The state that words say, in the form of `like`; and the words behind it."""
    if isinstance(like, dict):
        found = {}
        for name, inner in like.items():
            found[name], words = _unpacked(inner, words)
        return found, words
    if isinstance(like, np.ndarray):
        count = like.size * max(like.itemsize // 4, 1)
        return np.array(words[:count], np.uint32).view(like.dtype), words[count:]
    if isinstance(like, tuple):
        if len(like) > _LONG:
            return tuple(words[:len(like)]), words[len(like):]
        parts = []
        for inner in like:
            part, words = _unpacked(inner, words)
            parts.append(part)
        return tuple(parts), words
    if isinstance(like, float) or like is None:
        return None if words[0] else struct.unpack("<d", struct.pack("<2I", *words[1:3]))[0], words[3:]
    if isinstance(like, str):
        return like, words
    count = _BITS // 32
    return sum([word << 32 * place for place, word in enumerate(words[:count])]), words[count:]
