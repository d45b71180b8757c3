"""Keys and random bits: the block cipher threefry-2x32 in counter mode.

Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011.  The bits of element i of an array are those of counter i, whatever
the shape: as `jax.random` computes them (jax_threefry_partitionable).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.api.inside.eager import graph_function
from bwcompiler.errors import DTypeError, ShapeError
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.operands import value_as
from bwcompiler.frontend.tracing.tracer import Tracer, fresh
from bwcompiler.ir.op import Value, constant
from bwcompiler.ir.types import U32, U64, dtype_of
from bwcompiler.spellings import says_instead

Shape = int | Sequence[int]
Words = tuple[Value, Value]                        # two u32 values of one shape

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


@says_instead
def key(seed: Any) -> Any:
    """The key of a seed: an array of two uint32 numbers, the high and the low half of the seed.

    seed  an integer of at most 64 bits, or one that is traced.

    >>> import bwcompiler as bw
    >>> bw.random.key(42).tolist()
    [0, 42]
    """
    if isinstance(seed, Tracer):
        return _key_of(seed)
    number = np.asarray(seed)
    if number.shape != () or number.dtype.kind not in "biu":
        raise DTypeError(f"random.key: the seed is an integer, got {seed!r}")
    whole = int(number)
    return np.array([whole >> 32 & 0xFFFFFFFF, whole & 0xFFFFFFFF], np.uint32)


PRNGKey = key


@graph_function
def _key_of(seed: Any) -> Any:
    value = value_as(seed)
    if value.shape or not value.dtype.is_integer:
        raise DTypeError(f"random.key: the seed is an integer, got {value.dtype.numpy} of shape {value.shape}")
    wide = ops.cast(value, dtype=U64)
    high = ops.cast(ops.right_shift(wide, constant(32, wide.type)), dtype=U32)
    return fresh(_stacked((high, ops.cast(wide, dtype=U32))))


@graph_function
def split(key: Any, num: Shape = 2) -> Any:
    """New keys made of one, an array of shape (num, 2), or (*num, 2).

    >>> import bwcompiler as bw
    >>> bw.random.split(bw.random.key(42)).tolist()
    [[1832780943, 270669613], [64467757, 2916123636]]
    """
    return fresh(_stacked(words_of(key, "split", shape_of(num))))


@graph_function
def fold_in(key: Any, data: Any) -> Any:
    """A new key made of a key and an integer (of 32 bits: the number of a step, say).

    >>> import bwcompiler as bw
    >>> bw.random.fold_in(bw.random.key(42), 7).tolist()
    [2547012911, 1371500959]
    """
    value = value_as(data)
    if value.shape or not value.dtype.is_integer:
        raise DTypeError(f"random.fold_in: data is an integer, got {value.dtype.numpy} of shape {value.shape}")
    low = ops.cast(value, dtype=U32)
    return fresh(_stacked(threefry(key_words(key, "fold_in"), (constant(0, low.type), low))))


@graph_function
def bits(key: Any, shape: Shape = (), dtype: type = np.uint32) -> Any:
    """Random bits: integers of an unsigned dtype, every number equally likely.

    >>> import bwcompiler as bw
    >>> bw.random.bits(bw.random.key(42), (2,)).tolist()
    [2098992034, 2919706841]
    """
    chosen = dtype_of(dtype)
    if chosen.kind != "u":
        raise DTypeError(f"random.bits: the dtype is unsigned, got {chosen.numpy}")
    return fresh(random_bits(key_words(key, "bits"), chosen.bits, shape_of(shape)))


# ----- in terms of values
def key_words(key: Any, name: str) -> Words:
    """The two halves of one key."""
    value = value_of(key) if isinstance(key, Tracer) else value_as(key)
    if value.dtype is not U32 or value.shape != (2,):
        hint = "bw.vmap maps over arrays of keys" if value.dtype is U32 else "the key comes first, and is an argument of what uses it"
        raise ShapeError(f"random.{name}: a key is an array of two uint32 numbers (bw.random.key(seed)), got {value.dtype.numpy} of shape "
                         f"{value.shape}\n  hint: {hint}")
    halves = [ops.reshape(ops.slice(value, starts=(k,), sizes=(1,), steps=(1,)), shape=()) for k in range(2)]
    return halves[0], halves[1]


def threefry(key: Words, counter: Words) -> Words:
    """20 rounds; all words have one shape."""
    schedule = (*key, _xor(_xor(*key), constant(_PARITY, key[0].type)))
    x, y = ops.add(counter[0], schedule[0]), ops.add(counter[1], schedule[1])
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x = ops.add(x, y)
            y = _xor(x, _rotated(y, rotation))
        x = ops.add(x, schedule[(group + 1) % 3])
        y = ops.add(y, ops.add(schedule[(group + 2) % 3], constant(group + 1, y.type)))
    return x, y


def _xor(x: Value, y: Value) -> Value:
    return ops.bitwise_xor(x, y)


def _rotated(x: Value, by: int) -> Value:
    return ops.bitwise_or(ops.left_shift(x, constant(by, x.type)), ops.right_shift(x, constant(32 - by, x.type)))


def random_words(key: Words, shape: tuple[int, ...]) -> Words:
    """Two random words for every element of an array."""
    size = math.prod(shape)
    if size >= 1 << 32:
        raise ShapeError(f"random: an array of shape {shape} has 2**32 elements or more; split the key")
    low = ops.reshape(ops.iota(shape=(size,), axis=0, dtype=U32), shape=shape)
    keys = [ops.broadcast(word, shape=shape, axes=()) for word in key]
    return threefry((keys[0], keys[1]), (constant(0, low.type), low))


def random_bits(key: Words, width: int, shape: tuple[int, ...]) -> Value:
    """Random integers of so many bits."""
    return joined(random_words(key, shape), width)


def joined(words: Words, width: int) -> Value:
    """Two words as one integer of so many bits."""
    if width == 64:
        high, low = (ops.cast(word, dtype=U64) for word in words)
        return ops.bitwise_or(ops.left_shift(high, constant(32, high.type)), low)
    mixed = _xor(*words)
    return mixed if width == 32 else ops.cast(mixed, dtype=dtype_of(f"uint{width}"))


def split_words(key: Words, number: int) -> list[Words]:
    """Keys made of one key, or of arrays of keys, element by element."""
    zero = constant(0, key[0].type)
    return [threefry(key, (zero, constant(k, key[0].type))) for k in range(number)]


def _stacked(words: Words) -> Value:
    axis = words[0].rank
    parts = [ops.reshape(word, shape=(*word.shape, 1)) for word in words]
    return ops.concatenate(*parts, axis=axis)


def words_of(key: Any, name: str, shape: tuple[int, ...]) -> Words:
    """The random words of a key, two for each element of a shape; name: of the function that draws, for errors."""
    return random_words(key_words(key, name), shape)


def shape_of(shape: Shape) -> tuple[int, ...]:
    """A shape given as NumPy takes it.  A traced integer argument becomes a compile-time value: the function is traced again."""
    extents = list(shape) if isinstance(shape, Sequence) else [shape]
    found = tuple([operator.index(extent) for extent in extents])
    if any(extent < 0 for extent in found):
        raise ShapeError(f"random: a shape is made of numbers that are not negative, got {found}")
    return found
