"""Integers, choices, permutations; names, arguments and algorithms of `jax.random`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.api.inside.eager import graph_function
from bwcompiler.errors import DTypeError, ShapeError
from bwcompiler.frontend.tracing.operands import value_as
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import F32, F64, I32, I64, DType, dtype_of
from bwcompiler.random.continuous import as_float, between, common_shape, standard_gumbel, tiny
from bwcompiler.random.keys import Shape, Words, key_words, random_bits, random_words, shape_of, split_words, words_of


def _dtype_beside(dtype: Any) -> DType:
    """The dtype of the uniform numbers that parameters of this dtype are compared with."""
    return F32 if np.dtype(dtype) in (np.float16, np.float32) else F64


@graph_function
def bernoulli(key: Any, p: Any = 0.5, shape: Shape | None = None) -> Any:
    """Booleans that are true with probability p.

    >>> import bwcompiler as bw
    >>> bw.random.bernoulli(bw.random.key(42), 0.3, (4,)).tolist()
    [False, True, False, False]
    """
    dtype = _dtype_beside(getattr(p, "dtype", F64.numpy))
    words = words_of(key, "bernoulli", common_shape(shape, "bernoulli", p))
    return between(words, dtype) < as_float(p, dtype)


@graph_function
def rademacher(key: Any, shape: Shape = (), dtype: type = int) -> Any:
    """1 and -1, equally likely.

    >>> import bwcompiler as bw
    >>> bw.random.rademacher(bw.random.key(42), (4,)).tolist()
    [1, 1, -1, -1]
    """
    heads = between(words_of(key, "rademacher", shape_of(shape)), F64) < 0.5
    return (2 * heads.astype(dtype) - 1).astype(dtype)


@graph_function
def randint(key: Any, shape: Shape, minval: Any, maxval: Any, dtype: type = int) -> Any:
    """Integers from minval to maxval - 1.

    >>> import bwcompiler as bw
    >>> bw.random.randint(bw.random.key(42), (6,), -3, 10).tolist()
    [4, 3, 5, 6, -3, 5]
    """
    kind = dtype_of(dtype)
    if not kind.is_integer:
        raise DTypeError(f"random.randint gives integers; got dtype {kind.numpy}")
    found, words = common_shape(shape, "randint", minval, maxval), key_words(key, "randint")
    if kind.bits >= 32:
        return fresh(_integers(words, found, minval, maxval, kind))
    limits = np.iinfo(kind.numpy)                                      # small integers are drawn as 32-bit ones
    low, high = _within(minval, limits.min, limits.max), _within(maxval, limits.min, limits.max + 1)
    return fresh(_integers(words, found, low, high, I32)).astype(kind.numpy)


def _within(bound: Any, low: int, high: int) -> Any:
    return min(max(bound, low), high) if isinstance(bound, int) else np.clip(bound, low, high).astype(np.int32)


def _integers(key: Words, shape: tuple[int, ...], minval: Any, maxval: Any, kind: DType) -> Value:
    """High bits and low bits, as digits of a number twice as long, modulo how many integers there are."""
    high, low = (fresh(random_bits(one, kind.bits, shape)) for one in split_words(key, 2))
    least, span, factor, every = _range(minval, maxval, kind)
    offset = np.remainder(np.remainder(high, span) * factor + np.remainder(low, span), span)
    if every is not False:
        offset = np.where(every, low, offset)
    return value_as(least + offset.astype(kind.numpy))


def _range(minval: Any, maxval: Any, kind: DType) -> tuple[Any, Any, Any, Any]:
    """The least integer, how many there are (at least 1), 2**bits modulo that, and whether it is every number of the dtype."""
    limits, unsigned = np.iinfo(kind.numpy), np.dtype(f"u{kind.itemsize}")
    half = 1 << (kind.bits // 2)
    if isinstance(minval, int) and isinstance(maxval, int):
        low = min(max(minval, limits.min), limits.max)
        count = max(min(maxval, limits.max + 1) - low, 1)
        every = count == 1 << kind.bits
        count = 1 if every else count
        return kind.numpy.type(low), unsigned.type(count), unsigned.type((half % count) ** 2 % (1 << kind.bits) % count), every
    least, most = (np.clip(bound, limits.min, limits.max).astype(kind.numpy) for bound in (minval, maxval))
    some = most > least
    span = np.where(some, (most - least).astype(unsigned), unsigned.type(1)).astype(unsigned)
    span = span + np.logical_and(maxval > limits.max, some).astype(unsigned)
    every = span == 0
    span = np.where(every, unsigned.type(1), span)
    factor = np.remainder(unsigned.type(half), span)
    return least, span, np.remainder(factor * factor, span), every


# ----- orders and choices
@graph_function
def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Any:
    """The numbers below x, or the array x along an axis, in random order; independent: every lane in its own.

    >>> import bwcompiler as bw
    >>> bw.random.permutation(bw.random.key(42), 10).tolist()
    [7, 4, 2, 5, 3, 6, 8, 9, 0, 1]
    """
    words = key_words(key, "permutation")
    if np.ndim(x) == 0:
        return _shuffled(words, _counted(_count(x, "permutation")), 0)
    if not -np.ndim(x) <= axis < np.ndim(x):
        raise ShapeError(f"random.permutation: axis {axis} of an array with {np.ndim(x)} axes")
    axis %= np.ndim(x)
    if independent or np.ndim(x) == 1:
        return _shuffled(words, x, axis)
    return np.take(x, _shuffled(words, _counted(x.shape[axis]), 0), axis=axis)


def _counted(count: int) -> Any:
    return fresh(ops.iota(shape=(count,), axis=0, dtype=I64))


def _count(x: Any, name: str) -> int:
    number = int(x)                                # of a traced integer argument: the function is traced again with its number
    if number < 0:
        raise ShapeError(f"random.{name}: {number} numbers")
    return number


def _shuffled(key: Words, x: Any, axis: int) -> Any:
    """x, sorted by random numbers, as often as it takes for ties not to matter."""
    rounds = math.ceil(3 * math.log(max(1, x.size)) / math.log(0xFFFFFFFF))
    for _ in range(rounds):
        key, subkey = split_words(key, 2)
        order = np.argsort(fresh(random_bits(subkey, 32, x.shape)), axis=axis, kind="stable")
        x = np.take_along_axis(x, order, axis)
    return x


@graph_function
def choice(key: Any, a: Any, shape: Shape = (), replace: bool = True, p: Any = None, axis: int = 0) -> Any:
    """Elements of the array a along an axis, or of the numbers below a; with probabilities p; without replacement, each at most once.

    >>> import bwcompiler as bw
    >>> bw.random.choice(bw.random.key(42), 10, (3,), replace=False).tolist()
    [7, 4, 2]
    """
    found = shape_of(shape)
    whole = np.ndim(a) == 0
    count = _count(a, "choice") if whole else a.shape[axis]
    draws = math.prod(found)
    if count == 0 and draws:
        raise ShapeError("random.choice: there is nothing to choose from")
    if not replace and draws > count:
        raise ShapeError(f"random.choice: {draws} of {count} elements without replacement")
    if p is not None and np.shape(p) != (count,):
        raise ShapeError(f"random.choice: p has shape {np.shape(p)}, but there are {count} elements")
    words = key_words(key, "choice")
    index: Any
    if p is None and replace:
        index = fresh(_integers(words, found, 0, count, I64))
    elif p is None:
        index = np.reshape(_shuffled(words, _counted(count), 0)[:draws], found)
    elif replace:
        total = np.cumsum(as_float(p, F64))
        threshold = total[-1] * (1.0 - between(random_words(words, found), F64))
        index = np.sum(total < threshold[..., None], axis=-1)        # np.searchsorted
    else:
        scores = standard_gumbel(random_words(words, (count,)), F64) + np.log(as_float(p, F64))
        index = np.reshape(np.argsort(-scores, kind="stable")[:draws], found)
    return index if whole else np.take(a, index, axis=axis)


@graph_function
def categorical(key: Any, logits: Any, axis: int = -1, shape: Shape | None = None, replace: bool = True) -> Any:
    """Positions along an axis, with probabilities proportional to exp(logits); `shape` is that of the result.

    replace  False: what is drawn along the leading axes of `shape` differs, each position at most once.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.random.categorical(bw.random.key(42), np.log(np.array([0.1, 0.2, 0.7])), shape=(8,)).tolist()
    [2, 2, 2, 2, 2, 2, 1, 2]
    """
    dtype = _dtype_beside(logits.dtype)
    axis = axis % logits.ndim
    batch = tuple([extent for k, extent in enumerate(logits.shape) if k != axis])
    found = batch if shape is None else shape_of(shape)
    if found[len(found) - len(batch):] != batch:
        raise ShapeError(f"random.categorical: the shape {found} does not end in that of the logits without axis {axis}, {batch}")
    leading = len(found) - len(batch)
    words = key_words(key, "categorical")
    if not replace:
        count = math.prod(found[:leading])
        if count > logits.shape[axis]:
            raise ShapeError(f"random.categorical: {count} of {logits.shape[axis]} positions without replacement")
        scores = np.moveaxis(standard_gumbel(random_words(words, logits.shape), dtype) + as_float(logits, dtype), axis, 0)
        return np.reshape(np.argsort(-scores, axis=0, kind="stable")[:count], found)
    noise = standard_gumbel(random_words(words, (*found[:leading], *logits.shape)), dtype)
    return np.argmax(noise + as_float(logits, dtype), axis=axis + leading)


@graph_function
def geometric(key: Any, p: Any, shape: Shape | None = None, dtype: type = int) -> Any:
    """Numbers of trials of probability p up to the first success.

    >>> import bwcompiler as bw
    >>> bw.random.geometric(bw.random.key(42), 0.3, (5,)).tolist()
    [3, 12, 2, 1, 2]
    """
    u = between(words_of(key, "geometric", common_shape(shape, "geometric", p)), F64, tiny(F64), 1.0)
    return np.floor(np.log(u) / np.log1p(-as_float(p, F64)) + 1.0).astype(dtype)
