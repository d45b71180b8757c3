"""Distributions on the line, each a function of uniform numbers and so differentiable in its parameters.

Names, arguments and algorithms are those of `jax.random`; `dtype=float` is float64.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.api.inside.eager import graph_function
from bwcompiler.errors import DTypeError, ShapeError
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.tracer import Tracer, fresh
from bwcompiler.ir.op import Value, constant
from bwcompiler.ir.types import F32, F64, I32, I64, DType, component_of, dtype_of
from bwcompiler.random.keys import Shape, Words, joined, key_words, random_words, shape_of, split_words, words_of

MANTISSA = {32: 23, 64: 52}


def float_dtype(dtype: Any, name: str) -> DType:
    """float32 or float64; DTypeError for others."""
    found = dtype_of(dtype)
    if not found.is_float:
        raise DTypeError(f"random.{name} gives floating-point numbers; got dtype {found.numpy}")
    if found not in (F32, F64):
        raise DTypeError(f"random.{name} gives float32 or float64; got dtype {found.numpy}\n"
                         f"  hint: random.{name}(..., dtype=np.float32).astype(np.{found.numpy})")
    return found


def common_shape(shape: Shape | None, name: str, *parameters: Any) -> tuple[int, ...]:
    """The shape asked for, to which the parameters can be broadcast; theirs where none is asked for."""
    natural = np.broadcast_shapes(*[np.shape(parameter) for parameter in parameters])
    if shape is None:
        return natural
    found = shape_of(shape)
    try:
        fits = np.broadcast_shapes(found, natural) == found
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(f"random.{name}: parameters of shape {natural} cannot be broadcast to the shape {found}")
    return found


def as_float(parameter: Any, dtype: DType) -> Any:
    """A parameter in the dtype of the samples."""
    return parameter.astype(dtype.numpy) if isinstance(parameter, Tracer) else np.asarray(parameter, dtype.numpy)[()]


# ----- in terms of words
def unit(words: Words, dtype: DType) -> Value:
    """Uniform numbers in [0, 1), of random words: multiples of the distance between numbers next to 1."""
    bits = joined(words, dtype.bits)
    kept = ops.right_shift(bits, constant(dtype.bits - MANTISSA[dtype.bits], bits.type))
    number = ops.cast(ops.cast(kept, dtype=I64 if dtype.bits == 64 else I32), dtype=dtype)      # no sign: below 2**52
    return ops.multiply(number, constant(2.0 ** -MANTISSA[dtype.bits], number.type))


def between(words: Words, dtype: DType, low: Any = 0.0, high: Any = 1.0) -> Any:
    """low + (high - low) u, at least low: a handle."""
    low, high = as_float(low, dtype), as_float(high, dtype)
    found = fresh(unit(words, dtype)) * (high - low) + low
    return np.maximum(low, found)


def standard_normal(words: Words, dtype: DType) -> Any:
    """√2 erf⁻¹(u) with u in (-1, 1): a handle."""
    low = np.nextafter(dtype.numpy.type(-1.0), dtype.numpy.type(0.0))
    return as_float(math.sqrt(2), dtype) * inverse_erf(between(words, dtype, low, 1.0))


def inverse_erf(x: Any) -> Any:
    """erf⁻¹ of a handle."""
    return fresh(ops.erfinv(value_of(x)))


def tiny(dtype: DType) -> float:
    """The least positive normal number."""
    return float(np.finfo(dtype.numpy).tiny)


# ----- distributions
@graph_function
def uniform(key: Any, shape: Shape = (), dtype: type = float, minval: Any = 0.0, maxval: Any = 1.0) -> Any:
    """Numbers in [minval, maxval), all equally likely.  Arguments as in every function here:

    key    a key, an array of two uint32 numbers.
    shape  of the result; parameters are broadcast to it.
    dtype  float32 or float64 (float).

    Raises ShapeError for a key or parameters of another shape, DTypeError for another dtype.

    >>> import bwcompiler as bw
    >>> bw.random.uniform(bw.random.key(42), (2,)).round(6).tolist()
    [0.426728, 0.01501]
    """
    kind = float_dtype(dtype, "uniform")
    return between(words_of(key, "uniform", common_shape(shape, "uniform", minval, maxval)), kind, minval, maxval)


@graph_function
def normal(key: Any, shape: Shape = (), dtype: type = float) -> Any:
    """Standard normal numbers; multiply and add for another deviation and mean.  A complex dtype: both parts of variance 1/2.

    >>> import bwcompiler as bw
    >>> bw.random.normal(bw.random.key(42), (2,)).round(6).tolist()
    [-0.184712, -2.169825]
    """
    kind, words, found = dtype_of(dtype), key_words(key, "normal"), shape_of(shape)
    if not kind.is_complex:
        return standard_normal(random_words(words, found), float_dtype(dtype, "normal"))
    re, im = (standard_normal(random_words(one, found), component_of(kind)) for one in split_words(words, 2))
    return (re + 1j * im) / as_float(math.sqrt(2), component_of(kind))


@graph_function
def truncated_normal(key: Any, lower: Any, upper: Any, shape: Shape | None = None, dtype: type = float) -> Any:
    """Standard normal numbers between lower and upper.

    >>> import bwcompiler as bw
    >>> bw.random.truncated_normal(bw.random.key(42), -1.0, 2.0, (2,)).round(6).tolist()
    [0.019985, -0.950448]
    """
    kind = float_dtype(dtype, "truncated_normal")
    found = common_shape(shape, "truncated_normal", lower, upper)
    root = as_float(math.sqrt(2), kind)
    low, high = (as_float(bound, kind) for bound in (lower, upper))
    a, b = (_erf(bound / root) for bound in (low, high))
    out = root * inverse_erf(between(words_of(key, "truncated_normal", found), kind, a, b))
    above = np.nextafter(low, as_float(np.inf, kind))
    below = np.nextafter(high, as_float(-np.inf, kind))
    return np.minimum(np.maximum(out, above), below)


def _erf(x: Any) -> Any:
    return fresh(ops.erf(value_of(as_tracer(x)))) if isinstance(x, Tracer) or x.ndim else type(x)(math.erf(x))


@graph_function
def exponential(key: Any, shape: Shape = (), dtype: type = float) -> Any:
    """Exponentially distributed numbers of mean 1.

    >>> import bwcompiler as bw
    >>> bw.random.exponential(bw.random.key(42), (2,)).round(6).tolist()
    [0.556394, 0.015124]
    """
    return -np.log1p(-between(words_of(key, "exponential", shape_of(shape)), float_dtype(dtype, "exponential")))


@graph_function
def gumbel(key: Any, shape: Shape = (), dtype: type = float) -> Any:
    """Numbers of the standard Gumbel distribution, the limit of maxima.

    >>> import bwcompiler as bw
    >>> bw.random.gumbel(bw.random.key(42), (2,)).round(6).tolist()
    [0.160627, -1.434854]
    """
    kind = float_dtype(dtype, "gumbel")
    return standard_gumbel(words_of(key, "gumbel", shape_of(shape)), kind)


def standard_gumbel(words: Words, dtype: DType) -> Any:
    """−log(−log u): a handle."""
    return -np.log(-np.log(between(words, dtype, tiny(dtype), 1.0)))


@graph_function
def laplace(key: Any, shape: Shape = (), dtype: type = float) -> Any:
    """Numbers of the standard Laplace distribution.

    >>> import bwcompiler as bw
    >>> bw.random.laplace(bw.random.key(42), (2,)).round(6).tolist()
    [0.158462, 3.505887]
    """
    kind = float_dtype(dtype, "laplace")
    u = between(words_of(key, "laplace", shape_of(shape)), kind, -1.0 + float(np.finfo(kind.numpy).epsneg), 1.0)
    return np.sign(u) * np.log1p(-np.abs(u))


@graph_function
def logistic(key: Any, shape: Shape = (), dtype: type = float) -> Any:
    """Numbers of the standard logistic distribution.

    >>> import bwcompiler as bw
    >>> bw.random.logistic(bw.random.key(42), (2,)).round(6).tolist()
    [-0.295215, -4.18391]
    """
    kind = float_dtype(dtype, "logistic")
    u = between(words_of(key, "logistic", shape_of(shape)), kind, tiny(kind), 1.0)
    return np.log(u) - np.log1p(-u)


@graph_function
def cauchy(key: Any, shape: Shape = (), dtype: type = float) -> Any:
    """Numbers of the standard Cauchy distribution.

    >>> import bwcompiler as bw
    >>> bw.random.cauchy(bw.random.key(42), (2,)).round(6).tolist()
    [-0.234346, -21.190702]
    """
    kind = float_dtype(dtype, "cauchy")
    u = between(words_of(key, "cauchy", shape_of(shape)), kind, float(np.finfo(kind.numpy).eps), 1.0)
    return np.tan(as_float(np.pi, kind) * (u - as_float(0.5, kind)))


@graph_function
def lognormal(key: Any, sigma: Any = 1.0, shape: Shape | None = None, dtype: type = float) -> Any:
    """Numbers whose logarithm is normal, of deviation sigma.

    >>> import bwcompiler as bw
    >>> bw.random.lognormal(bw.random.key(42), 0.5, (2,)).round(6).tolist()
    [0.911781, 0.337931]
    """
    kind = float_dtype(dtype, "lognormal")
    words = words_of(key, "lognormal", common_shape(shape, "lognormal", sigma))
    return np.exp(standard_normal(words, kind) * as_float(sigma, kind))


@graph_function
def pareto(key: Any, b: Any, shape: Shape | None = None, dtype: type = float) -> Any:
    """Numbers of density b / x^(b+1) from 1 on.

    >>> import bwcompiler as bw
    >>> bw.random.pareto(bw.random.key(42), 2.0, (2,)).round(6).tolist()
    [1.320747, 1.007591]
    """
    kind = float_dtype(dtype, "pareto")
    return np.exp(_exponential(key, common_shape(shape, "pareto", b), kind, "pareto") / as_float(b, kind))


@graph_function
def rayleigh(key: Any, scale: Any, shape: Shape | None = None, dtype: type = float) -> Any:
    """Lengths of vectors of two normal numbers of deviation scale.

    >>> import bwcompiler as bw
    >>> bw.random.rayleigh(bw.random.key(42), 2.0, (2,)).round(6).tolist()
    [2.610149, 5.795884]
    """
    kind = float_dtype(dtype, "rayleigh")
    u = between(words_of(key, "rayleigh", common_shape(shape, "rayleigh", scale)), kind)
    return as_float(scale, kind) * np.sqrt(np.log(u) * as_float(-2.0, kind))


@graph_function
def weibull_min(key: Any, scale: Any, concentration: Any, shape: Shape | None = None, dtype: type = float) -> Any:
    """Numbers x such that (x / scale)^concentration is exponentially distributed.

    >>> import bwcompiler as bw
    >>> bw.random.weibull_min(bw.random.key(42), 2.0, 3.0, (2,)).round(6).tolist()
    [1.644968, 0.494596]
    """
    kind = float_dtype(dtype, "weibull_min")
    draws = _exponential(key, common_shape(shape, "weibull_min", scale, concentration), kind, "weibull_min")
    exponent = as_tracer(as_float(1.0, kind) / as_float(concentration, kind))       # no known number: a square root has other bits
    return np.power(draws, exponent) * as_float(scale, kind)


def _exponential(key: Any, shape: tuple[int, ...], dtype: DType, name: str) -> Any:
    return -np.log1p(-between(words_of(key, name, shape), dtype))


@graph_function
def triangular(key: Any, left: Any, mode: Any, right: Any, shape: Shape | None = None, dtype: type = float) -> Any:
    """Numbers between left and right whose density rises linearly up to mode, and falls after it.

    >>> import bwcompiler as bw
    >>> bw.random.triangular(bw.random.key(42), 0.0, 1.0, 3.0, (2,)).round(6).tolist()
    [1.145375, 0.212203]
    """
    kind = float_dtype(dtype, "triangular")
    u = between(words_of(key, "triangular", common_shape(shape, "triangular", left, mode, right)), kind)
    left, mode, right = (as_float(parameter, kind) for parameter in (left, mode, right))
    rising = u < (mode - left) / (right - left)            # the root of what is chosen alone: its slope at 0 is infinite
    root = np.sqrt(np.where(rising, u * (right - left) * (mode - left), (1 - u) * (right - left) * (right - mode)))
    return np.where(rising, left + root, right - root)


@graph_function
def maxwell(key: Any, shape: Shape = (), dtype: type = float) -> Any:
    """Lengths of vectors of three normal numbers.

    >>> import bwcompiler as bw
    >>> bw.random.maxwell(bw.random.key(42), (2,)).round(6).tolist()
    [2.185681, 0.866467]
    """
    return _lengths(key_words(key, "maxwell"), shape_of(shape), float_dtype(dtype, "maxwell"))


def _lengths(words: Words, shape: tuple[int, ...], dtype: DType) -> Any:
    draws = standard_normal(random_words(words, (*shape, 3)), dtype)
    return np.sqrt(np.sum(draws * draws, axis=-1))


@graph_function
def double_sided_maxwell(key: Any, loc: Any, scale: Any, shape: Shape = (), dtype: type = float) -> Any:
    """loc + scale x, where x or -x are as of `maxwell`; `shape` is put before that of the parameters, as by jax.random.

    >>> import bwcompiler as bw
    >>> bw.random.double_sided_maxwell(bw.random.key(42), 0.0, 1.0, (2,)).round(6).tolist()
    [-1.847818, -2.343898]
    """
    kind, natural = float_dtype(dtype, "double_sided_maxwell"), np.broadcast_shapes(np.shape(loc), np.shape(scale))
    found = (*(shape_of(shape) or natural), *natural)
    one, two = split_words(key_words(key, "double_sided_maxwell"), 2)
    return random_signs(two, found, kind) * _lengths(one, found, kind) * as_float(scale, kind) + as_float(loc, kind)


def random_signs(words: Words, shape: tuple[int, ...], dtype: DType) -> Any:
    """1 and -1, equally likely: a handle."""
    return np.where(between(random_words(words, shape), F64) < 0.5, as_float(1.0, dtype), as_float(-1.0, dtype))


@graph_function
def wald(key: Any, mean: Any, shape: Shape | None = None, dtype: type = float) -> Any:
    """Numbers of the inverse Gaussian distribution of this mean, and of scale 1.

    >>> import bwcompiler as bw
    >>> bw.random.wald(bw.random.key(42), 2.0, (2,)).round(6).tolist()
    [5.324021, 1.386284]
    """
    kind, found = float_dtype(dtype, "wald"), common_shape(shape, "wald", mean)
    one, two = split_words(key_words(key, "wald"), 2)
    mean, normals = as_float(mean, kind), standard_normal(random_words(one, found), kind)
    y = normals * normals
    x = mean + mean * mean * y / 2 - mean / 2 * np.sqrt(4 * mean * y + mean * mean * (y * y))
    return np.where(between(random_words(two, found), kind) <= mean / (mean + x), x, mean * mean / x)
