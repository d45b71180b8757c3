"""`bw.nn`: activations and softmax, with PyTorch's defaults; axes count as in NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.api.inside.eager import network_function
from bwcompiler.errors import DTypeError, ShapeError
from bwcompiler.frontend.numpy.axes import normalize_axis, reduction_axes
from bwcompiler.frontend.numpy.reductions.reductions import keep_axes, reduce_value
from bwcompiler.frontend.tracing.operands import cast, constant, filled, is_traced, number_value, real_value, value_as
from bwcompiler.frontend.tracing.promotion import requested
from bwcompiler.frontend.tracing.storages.views import broadcast_value
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.op import Op, Value


def reduced(op: Op, x: Value, axes: tuple[int, ...]) -> Value:
    """The reduction with the reduced axes kept, broadcast back to x's shape."""
    return broadcast_value(keep_axes(op(x, axes=axes), x, axes), x.shape)


# ----- activations
@network_function
def relu(x: Any) -> Any:
    """max(x, 0), of x's shape and dtype; the derivative at 0 is 0.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.relu(np.array([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    value = value_as(x)
    zero = constant(0, value)
    return fresh(ops.select(ops.less_equal(value, zero), zero, value))


@network_function
def leaky_relu(x: Any, negative_slope: float = 0.01) -> Any:
    """x where positive, else negative_slope * x.  Integers become float64.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.leaky_relu(np.array([-1.0, 2.0])).tolist()
    [-0.01, 2.0]
    """
    value = real_value(x)
    positive = ops.greater(value, constant(0, value))
    return fresh(ops.select(positive, value, ops.multiply(value, constant(negative_slope, value))))


@network_function
def elu(x: Any, alpha: float = 1.0) -> Any:
    """x where positive, else alpha * (exp(x) - 1).  Integers become float64.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.elu(np.array([-1.0, 2.0])).round(4).tolist()
    [-0.6321, 2.0]
    """
    value = real_value(x)
    below = ops.multiply(ops.expm1(value), constant(alpha, value))
    return fresh(ops.select(ops.greater(value, constant(0, value)), value, below))


@network_function
def gelu(x: Any, approximate: str = "none") -> Any:
    """x Φ(x), with Φ the normal distribution function; approximate="tanh" gives its approximation by tanh.

    Raises ValueError for any other `approximate` than "none" and "tanh".

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.gelu(np.array([-1.0, 2.0])).round(4).tolist()
    [-0.1587, 1.9545]
    """
    value = real_value(x)
    half = ops.multiply(value, constant(0.5, value))
    if approximate == "tanh":
        cube = ops.multiply(ops.multiply(ops.multiply(value, value), value), constant(0.044715, value))
        inner = ops.tanh(ops.multiply(ops.add(value, cube), constant(math.sqrt(2.0 / math.pi), value)))
    elif approximate == "none":
        inner = ops.erf(ops.multiply(value, constant(math.sqrt(0.5), value)))
    else:
        raise ValueError(f"gelu: approximate must be 'none' or 'tanh', got {approximate!r}")
    return fresh(ops.multiply(half, ops.add(inner, constant(1, value))))


@network_function
def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), without overflow.  Integers become float64.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.sigmoid(np.array([0.0, 800.0])).tolist()
    [0.5, 1.0]
    """
    return fresh(ops.sigmoid(real_value(x)))


@network_function
def silu(x: Any) -> Any:
    """x sigmoid(x).  Also of complex numbers; integers become float64.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.silu(np.array([0.0, 1.0])).round(4).tolist()
    [0.0, 0.7311]
    """
    value = number_value(x)
    if value.dtype.is_complex:
        return fresh(ops.divide(value, ops.add(ops.exp(ops.negative(value)), constant(1, value))))
    return fresh(ops.multiply(value, ops.sigmoid(value)))


@network_function
def softplus(x: Any, beta: float = 1.0, threshold: float | None = None) -> Any:
    """log(1 + exp(beta x)) / beta, without overflow; x itself where beta x is above a threshold.  Integers become float64.

    Without a threshold the function is exact everywhere (PyTorch has 20, where x differs by 2e-9).

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.softplus(np.array([0.0, 800.0])).round(4).tolist()
    [0.6931, 800.0]
    """
    value = real_value(x)
    scales = is_traced(beta) or beta != 1.0
    scaled = ops.multiply(value, constant(beta, value)) if scales else value
    result = ops.logaddexp(scaled, constant(0, value))
    result = ops.divide(result, constant(beta, value)) if scales else result
    return fresh(result if threshold is None else ops.select(ops.greater(scaled, constant(threshold, scaled)), value, result))


@network_function
def tanh(x: Any) -> Any:
    """Hyperbolic tangent.  Integers become float64.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.tanh(np.array([0.0, 1.0])).round(4).tolist()
    [0.0, 0.7616]
    """
    return fresh(ops.tanh(real_value(x)))


@network_function
def logsigmoid(x: Any) -> Any:
    """log(1 / (1 + exp(-x))), without overflow.  Integers become float64.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.logsigmoid(np.array([0.0, -800.0])).round(4).tolist()
    [-0.6931, -800.0]
    """
    value = real_value(x)
    return fresh(ops.negative(ops.logaddexp(ops.negative(value), constant(0, value))))


@network_function
def mish(x: Any) -> Any:
    """x tanh(softplus(x)).  Integers become float64.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.mish(np.array([0.0, 1.0])).round(4).tolist()
    [0.0, 0.8651]
    """
    value = real_value(x)
    return fresh(ops.multiply(value, ops.tanh(ops.logaddexp(value, constant(0, value)))))


@network_function
def softsign(x: Any) -> Any:
    """x / (1 + |x|).  Also of complex numbers; integers become float64.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.softsign(np.array([-1.0, 3.0])).tolist()
    [-0.5, 0.75]
    """
    value: Any = fresh(number_value(x))
    return value / (1 + np.abs(value))


@network_function
def tanhshrink(x: Any) -> Any:
    """x - tanh(x).  Also of complex numbers; integers become float64.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.tanhshrink(np.array([0.0, 1.0])).round(4).tolist()
    [0.0, 0.2384]
    """
    value = number_value(x)
    return fresh(ops.subtract(value, ops.tanh(value)))


@network_function
def glu(x: Any, axis: int = -1) -> Any:
    """a * sigmoid(b), where a and b are the halves of x along an axis.  Integers become float64.

    Raises ShapeError for an odd extent.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.glu(np.array([2.0, 4.0, 0.0, 0.0])).tolist()
    [1.0, 2.0]
    """
    value = real_value(x)
    place = normalize_axis(axis, value.rank)
    if not value.rank or value.shape[place] % 2:
        raise ShapeError(f"glu: the extent of axis {axis} of x of shape {value.shape} must be even")
    half = value.shape[place] // 2
    return fresh(ops.multiply(ops.slice_axis(value, place, 0, half), ops.sigmoid(ops.slice_axis(value, place, half, half))))


# ----- softmax
def _as_dtype(x: Any, dtype: Any) -> Value:
    """x as a float value, of the dtype that is asked for."""
    value = real_value(x)
    target = requested(dtype)
    if target is not None and not target.is_float:
        raise DTypeError(f"softmax of {target.numpy} is not defined")
    return value if target is None else cast(value, target)


def _maximum(x: Value, axes: tuple[int, ...]) -> Value:
    """The maximum over axes, without derivative; 0 of no elements."""
    if 0 in [x.shape[axis] for axis in axes]:
        return filled(0, x.dtype, tuple([extent for axis, extent in enumerate(x.shape) if axis not in axes]))
    return ops.stop_gradient(reduce_value(ops.max, x, axes))


def _axes(axis: Any, rank: int) -> tuple[int, ...]:
    """One axis or several, also as a list."""
    return reduction_axes(tuple(axis) if isinstance(axis, list) else axis, rank)


def _shifted(x: Value, axes: tuple[int, ...]) -> Value:
    return ops.subtract(x, broadcast_value(keep_axes(_maximum(x, axes), x, axes), x.shape))


@network_function
def softmax(x: Any, axis: Any = -1, dtype: Any = None) -> Any:
    """exp(x) / sum(exp(x)) along an axis or axes (None: over all), of x's shape, without overflow; computed in dtype, if given.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.softmax(np.array([[0.0, 0.0], [1000.0, 0.0]]), axis=1).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    value = _as_dtype(x, dtype)
    axes = _axes(axis, value.rank)
    weights = ops.exp(_shifted(value, axes))
    return fresh(ops.divide(weights, reduced(ops.sum, weights, axes)))


@network_function
def softmin(x: Any, axis: Any = -1, dtype: Any = None) -> Any:
    """softmax(-x).

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.softmin(np.array([0.0, 1000.0])).tolist()
    [1.0, 0.0]
    """
    return softmax(fresh(ops.negative(real_value(x))), axis, dtype)


def _finite_maximum(x: Value, axes: tuple[int, ...]) -> Value:
    """The maximum over axes, 0 if it is not finite; without derivative."""
    largest = _maximum(x, axes)
    return ops.select(ops.isfinite(largest), largest, constant(0, largest))


def _log_of_sum(distance: Value, axes: tuple[int, ...]) -> Value:
    """log(sum(exp(distance))) where the largest distance is 0 (or none is finite).

    The maxima count 1 each and are left out of the sum: log1p of the rest keeps the digits of terms that are small beside 1.
    """
    attained = cast(ops.equal(distance, constant(0, distance)), distance.dtype)
    rest = reduce_value(ops.sum, ops.subtract(ops.exp(distance), attained), axes)
    count = reduce_value(ops.sum, attained, axes)
    return ops.log1p(ops.add(rest, ops.subtract(count, constant(1, count))))


def log_softmax_value(x: Value, axes: tuple[int, ...]) -> Value:
    """log(softmax(x)) of a value."""
    distance = ops.subtract(x, broadcast_value(keep_axes(_finite_maximum(x, axes), x, axes), x.shape))
    return ops.subtract(distance, broadcast_value(keep_axes(_log_of_sum(distance, axes), x, axes), x.shape))


@network_function
def log_softmax(x: Any, axis: Any = -1, dtype: Any = None) -> Any:
    """log(softmax(x)) along an axis or axes (None: over all), of x's shape, without overflow; computed in dtype, if given.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.log_softmax(np.array([0.0, 1000.0]), axis=0).tolist()
    [-1000.0, 0.0]
    """
    value = _as_dtype(x, dtype)
    return fresh(log_softmax_value(value, _axes(axis, value.rank)))


def logsumexp_value(x: Value, axes: tuple[int, ...]) -> Value:
    """log(sum(exp(x))) over axes; -inf where all of x is."""
    largest = _finite_maximum(x, axes)
    distance = ops.subtract(x, broadcast_value(keep_axes(largest, x, axes), x.shape))
    return ops.add(_log_of_sum(distance, axes), largest)


@network_function
def logsumexp(x: Any, axis: Any = -1, keepdims: bool = False) -> Any:
    """log(sum(exp(x))) along an axis or axes (None: over all), without overflow; these axes are dropped or kept as 1.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.logsumexp(np.array([[0.0, 0.0], [1000.0, 0.0]]), axis=1).round(4).tolist()
    [0.6931, 1000.0]
    """
    value = real_value(x)
    axes = _axes(axis, value.rank)
    result = logsumexp_value(value, axes)
    return fresh(keep_axes(result, value, axes) if keepdims else result)

