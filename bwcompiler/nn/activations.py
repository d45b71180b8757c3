"""`bw.nn`: activations and softmax, with PyTorch's defaults; axes count as in NumPy."""

from __future__ import annotations

import math
from typing import Any

from bwcompiler import ops
from bwcompiler.api.eager import graph_function
from bwcompiler.frontend.numpy.reductions import keep_axes, normalize_axes, reduce_value, reduction_axes
from bwcompiler.frontend.tracing.operands import cast, constant, value_as
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.frontend.tracing.views import broadcast_value
from bwcompiler.ir.op import REGISTRY, Value
from bwcompiler.ir.types import F64


def real_value(x: Any) -> Value:
    """x as a float value; integers become float64."""
    value = value_as(x)
    return value if value.dtype.is_float else cast(value, F64)


def reduced(name: str, x: Value, axes: tuple[int, ...]) -> Value:
    """The reduction with the reduced axes kept, broadcast back to x's shape."""
    return broadcast_value(keep_axes(REGISTRY[name](x, axes=axes), x, axes), x.shape)


# ----- activations
@graph_function
def relu(x: Any) -> Any:
    """max(x, 0), of x's shape and dtype; the derivative at 0 is 0.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.relu(np.array([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    value = value_as(x)
    zero = constant(0, value)
    return fresh(ops.select(ops.less_equal(value, zero), zero, value))


@graph_function
def leaky_relu(x: Any, negative_slope: float = 0.01) -> Any:
    """x where positive, else negative_slope * x.  Integers become float64.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.leaky_relu(np.array([-1.0, 2.0])).tolist()
    [-0.01, 2.0]
    """
    value = real_value(x)
    positive = ops.greater(value, constant(0, value))
    return fresh(ops.select(positive, value, ops.multiply(value, constant(negative_slope, value))))


@graph_function
def elu(x: Any, alpha: float = 1.0) -> Any:
    """x where positive, else alpha * (exp(x) - 1).  Integers become float64.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.elu(np.array([-1.0, 2.0])).round(4).tolist()
    [-0.6321, 2.0]
    """
    value = real_value(x)
    below = ops.multiply(ops.expm1(value), constant(alpha, value))
    return fresh(ops.select(ops.greater(value, constant(0, value)), value, below))


@graph_function
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


@graph_function
def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), without overflow.  Integers become float64.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.sigmoid(np.array([0.0, 800.0])).tolist()
    [0.5, 1.0]
    """
    return fresh(ops.sigmoid(real_value(x)))


@graph_function
def silu(x: Any) -> Any:
    """x sigmoid(x).  Integers become float64.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.silu(np.array([0.0, 1.0])).round(4).tolist()
    [0.0, 0.7311]
    """
    value = real_value(x)
    return fresh(ops.multiply(value, ops.sigmoid(value)))


@graph_function
def softplus(x: Any, beta: float = 1.0) -> Any:
    """log(1 + exp(beta x)) / beta, without overflow.  Integers become float64.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.softplus(np.array([0.0, 800.0])).round(4).tolist()
    [0.6931, 800.0]
    """
    value = real_value(x)
    value = ops.multiply(value, constant(beta, value)) if beta != 1.0 else value
    result = ops.logaddexp(value, constant(0, value))
    return fresh(ops.divide(result, constant(beta, value)) if beta != 1.0 else result)


@graph_function
def tanh(x: Any) -> Any:
    """Hyperbolic tangent.  Integers become float64.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.tanh(np.array([0.0, 1.0])).round(4).tolist()
    [0.0, 0.7616]
    """
    return fresh(ops.tanh(real_value(x)))


# ----- softmax
def _shifted(x: Value, axes: tuple[int, ...]) -> Value:
    return ops.subtract(x, broadcast_value(keep_axes(ops.stop_gradient(ops.max(x, axes=axes)), x, axes), x.shape))


@graph_function
def softmax(x: Any, axis: Any = -1) -> Any:
    """exp(x) / sum(exp(x)) along an axis or axes (None: over all), of x's shape, without overflow.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.softmax(np.array([[0.0, 0.0], [1000.0, 0.0]]), axis=1).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    value = real_value(x)
    axes = normalize_axes(axis, value.rank)
    weights = ops.exp(_shifted(value, axes))
    return fresh(ops.divide(weights, reduced("sum", weights, axes)))


def log_softmax_value(x: Value, axes: tuple[int, ...]) -> Value:
    """log(softmax(x)) of a value."""
    distance = _shifted(x, axes)
    total = ops.log(ops.sum(ops.exp(distance), axes=axes))
    return ops.subtract(distance, broadcast_value(keep_axes(total, x, axes), x.shape))


@graph_function
def log_softmax(x: Any, axis: Any = -1) -> Any:
    """log(softmax(x)) along an axis or axes (None: over all), of x's shape, without overflow.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.log_softmax(np.array([0.0, 1000.0]), axis=0).tolist()
    [-1000.0, 0.0]
    """
    value = real_value(x)
    return fresh(log_softmax_value(value, normalize_axes(axis, value.rank)))


def logsumexp_value(x: Value, axes: tuple[int, ...], weights: Value | None = None) -> Value:
    """log(sum(weights * exp(x))) over axes; -inf where all of x is."""
    largest = ops.stop_gradient(reduce_value("max", x, axes))
    largest = ops.select(ops.isfinite(largest), largest, constant(0, largest))
    terms = ops.exp(ops.subtract(x, broadcast_value(keep_axes(largest, x, axes), x.shape)))
    if weights is not None:
        terms = ops.multiply(terms, weights)
    return ops.add(ops.log(reduce_value("sum", terms, axes)), largest)


@graph_function
def logsumexp(x: Any, axis: Any = -1, keepdims: bool = False) -> Any:
    """log(sum(exp(x))) along an axis or axes (None: over all), without overflow; these axes are dropped or kept as 1.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.logsumexp(np.array([[0.0, 0.0], [1000.0, 0.0]]), axis=1).round(4).tolist()
    [0.6931, 1000.0]
    """
    value = real_value(x)
    axes = reduction_axes(axis, value.rank)
    result = logsumexp_value(value, axes)
    return fresh(keep_axes(result, value, axes) if keepdims else result)


# ----- layers
