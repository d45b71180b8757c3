"""`bw.nn`: activations made of pieces: bounds, thresholds and shrinkage.  At a bound the derivative is that of the flat side."""

from __future__ import annotations

import math
from typing import Any

from bwcompiler import ops
from bwcompiler.api.inside.eager import network_function
from bwcompiler.errors import ShapeError
from bwcompiler.frontend.tracing.operands import constant, is_traced, real_value, value_as
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.op import Value


def bounded(x: Value, low: float, high: float) -> Value:
    """x between the bounds; nan stays nan."""
    below, above = (ops.less_equal(x, constant(low, x)), ops.greater_equal(x, constant(high, x)))
    return ops.select(below, constant(low, x), ops.select(above, constant(high, x), x))


@network_function
def relu6(x: Any) -> Any:
    """x between 0 and 6.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.relu6(np.array([-1.0, 2.0, 7.0])).tolist()
    [0.0, 2.0, 6.0]
    """
    return fresh(bounded(value_as(x), 0, 6))


@network_function
def hardtanh(x: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    """x between min_val and max_val.  Integers become float64.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.hardtanh(np.array([-2.0, 0.5, 7.0])).tolist()
    [-1.0, 0.5, 1.0]
    """
    return fresh(bounded(real_value(x), min_val, max_val))


@network_function
def hardsigmoid(x: Any) -> Any:
    """relu6(x + 3) / 6.  Integers become float64.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.hardsigmoid(np.array([-4.0, 0.0, 4.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    value = real_value(x)
    moved = bounded(ops.add(value, constant(3, value)), 0, 6)
    return fresh(ops.divide(moved, constant(6, moved)))


@network_function
def hardswish(x: Any) -> Any:
    """x relu6(x + 3) / 6.  Integers become float64.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.hardswish(np.array([-4.0, 1.5, 4.0])).tolist()
    [0.0, 1.125, 4.0]
    """
    value = real_value(x)
    three = constant(3, value)
    inside = ops.divide(ops.multiply(value, ops.add(value, three)), constant(6, value))
    above = ops.select(ops.greater_equal(value, three), value, inside)
    return fresh(ops.select(ops.less_equal(value, ops.negative(three)), constant(0, value), above))


@network_function
def hardshrink(x: Any, lambd: float = 0.5) -> Any:
    """x, but 0 where |x| <= lambd.  Integers become float64.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.hardshrink(np.array([-2.0, 0.5, 0.75])).tolist()
    [-2.0, 0.0, 0.75]
    """
    value = real_value(x)
    return fresh(ops.select(ops.less_equal(ops.absolute(value), constant(lambd, value)), constant(0, value), value))


@network_function
def softshrink(x: Any, lambd: float = 0.5) -> Any:
    """x moved towards 0 by lambd, at most to 0.  Integers become float64.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.softshrink(np.array([-2.0, 0.5, 0.75])).tolist()
    [-1.5, 0.0, 0.25]
    """
    value = real_value(x)
    distance = constant(lambd, value)
    low, high = ops.less(value, ops.negative(distance)), ops.greater(value, distance)
    moved = ops.select(low, ops.add(value, distance), ops.subtract(value, distance))
    outside = ops.bitwise_or(ops.bitwise_or(low, high), ops.isnan(value))
    return fresh(ops.select(outside, moved, constant(0, value)))


@network_function
def threshold(x: Any, threshold: float, value: float) -> Any:
    """x where it is above the threshold, else value.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.threshold(np.array([-2.0, 0.5]), 0.1, 20.0).tolist()
    [20.0, 0.5]
    """
    found = value_as(x)
    return fresh(ops.select(ops.less_equal(found, constant(threshold, found)), constant(value, found), found))


@network_function
def prelu(x: Any, weight: Any) -> Any:
    """x where positive, else weight * x; weight has one element, or one for each channel (axis 1 of x).

    Raises ShapeError for other weights.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.prelu(np.array([[-2.0, 4.0]]), np.array([0.25, 0.5])).tolist()
    [[-0.5, 4.0]]
    """
    value = real_value(x)
    slope = value_as(weight, value.dtype)
    channels = value.shape[1] if value.rank > 1 else 1
    if slope.rank > 1 or (slope.type.size not in (1, channels)):
        raise ShapeError(f"prelu: weight must have 1 element or {channels} (the channels of x of shape {value.shape}), "
                         f"got shape {slope.shape}")
    axes = (1,) if slope.type.size == channels and value.rank > 1 else ()
    spread = ops.broadcast(ops.reshape(slope, shape=(channels,) if axes else ()), shape=value.shape, axes=axes)
    return fresh(ops.select(ops.greater(value, constant(0, value)), value, ops.multiply(value, spread)))


# ----- combinations of smooth pieces
SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def exponential_below(x: Value, alpha: float, width: float) -> Value:
    """x where positive, else alpha * (exp(x / width) - 1)."""
    positive = ops.greater(x, constant(0, x))
    inside = ops.select(positive, constant(0, x), x)                                # exp of large x would overflow in the derivative
    scaled = ops.divide(inside, constant(width, x)) if is_traced(width) or width != 1.0 else inside
    return ops.select(positive, x, ops.multiply(ops.expm1(scaled), constant(alpha, x)))


@network_function
def selu(x: Any) -> Any:
    """scale * elu(x, alpha) with the constants of self-normalising networks (Klambauer et al., 2017).  Integers become float64.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.selu(np.array([-1.0, 2.0])).round(4).tolist()
    [-1.1113, 2.1014]
    """
    found = exponential_below(real_value(x), SELU_ALPHA, 1.0)
    return fresh(ops.multiply(found, constant(SELU_SCALE, found)))


@network_function
def celu(x: Any, alpha: float = 1.0) -> Any:
    """x where positive, else alpha * (exp(x / alpha) - 1).  Integers become float64.  Raises ValueError for alpha = 0.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.celu(np.array([-1.0, 2.0]), 2.0).round(4).tolist()
    [-0.7869, 2.0]
    """
    if not is_traced(alpha) and (not alpha or math.isnan(alpha)):
        raise ValueError(f"celu: alpha must not be {alpha}")
    return fresh(exponential_below(real_value(x), alpha, alpha))
