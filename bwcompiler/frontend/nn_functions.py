"""`bw.nn`: activations, normalisation, embeddings and losses, with PyTorch's layouts, defaults and reductions.

Convolutions and pooling are in `convolution_functions`.
"""

from __future__ import annotations

import math
from typing import Any

from bwcompiler.errors import DTypeError, ShapeError, UnsupportedError
from bwcompiler.frontend.eager import graph_function
from bwcompiler.frontend.numpy_elementwise import operator
from bwcompiler.frontend.numpy_indexing import gather, index_value
from bwcompiler.frontend.numpy_linear import contract, pair
from bwcompiler.frontend.numpy_reductions import keep_axes, mean_value, normalize_axes, variance
from bwcompiler.frontend.operands import align, as_tracer, cast, constant, value_as
from bwcompiler.frontend.promotion import requested
from bwcompiler.frontend.tracer import fresh
from bwcompiler.frontend.views import broadcast_value
from bwcompiler.ir.extent import element_count
from bwcompiler.ir.op import REGISTRY, Value
from bwcompiler.ir.types import BOOL, F64, I64
from bwcompiler.ops import elementwise as ops
from bwcompiler.ops import special


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
        inner = special.erf(ops.multiply(value, constant(math.sqrt(0.5), value)))
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
    return fresh(special.sigmoid(real_value(x)))


@graph_function
def silu(x: Any) -> Any:
    """x sigmoid(x).  Integers become float64.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.silu(np.array([0.0, 1.0])).round(4).tolist()
    [0.0, 0.7311]
    """
    value = real_value(x)
    return fresh(ops.multiply(value, special.sigmoid(value)))


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
    return ops.subtract(x, broadcast_value(keep_axes(ops.stop_gradient(REGISTRY["max"](x, axes=axes)), x, axes), x.shape))


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
    total = ops.log(REGISTRY["sum"](ops.exp(distance), axes=axes))
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
    largest = ops.stop_gradient(REGISTRY["max"](x, axes=axes))
    largest = ops.select(ops.isfinite(largest), largest, constant(0, largest))
    terms = ops.exp(ops.subtract(x, broadcast_value(keep_axes(largest, x, axes), x.shape)))
    if weights is not None:
        terms = ops.multiply(terms, weights)
    return ops.add(ops.log(REGISTRY["sum"](terms, axes=axes)), largest)


@graph_function
def logsumexp(x: Any, axis: Any = -1, keepdims: bool = False) -> Any:
    """log(sum(exp(x))) along an axis or axes (None: over all), without overflow; these axes are dropped or kept as 1.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.logsumexp(np.array([[0.0, 0.0], [1000.0, 0.0]]), axis=1).round(4).tolist()
    [0.6931, 1000.0]
    """
    value = real_value(x)
    axes = normalize_axes(axis, value.rank)
    result = logsumexp_value(value, axes)
    return fresh(keep_axes(result, value, axes) if keepdims else result)


# ----- layers
@graph_function
def linear(x: Any, w: Any, b: Any = None) -> Any:
    """x @ w.T + b: x is (..., in), w is (out, in), b is (out,), the result (..., out).

    Raises ShapeError where these do not fit.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.linear(np.ones((5, 3)), np.ones((2, 3)), np.zeros(2)).shape
    (5, 2)
    """
    left, right = pair(x, w)
    if right.rank != 2 or left.rank < 1 or left.shape[-1] != right.shape[-1]:
        raise ShapeError(f"linear: x of shape {left.shape} and w of shape {right.shape} do not fit; w is (out, in)")
    product = fresh(contract(left, right, (left.rank - 1,), (1,)))
    return product if b is None else operator("add", product, b)


@graph_function
def layer_norm(x: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """(x - mean) / sqrt(var + eps) over the last axes, times weight, plus bias.

    normalized_shape is the shape of these axes (or the extent of the last); weight and bias have that shape.  Raises ShapeError
    where x does not end in it.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.layer_norm(np.array([[1.0, 3.0], [5.0, 5.0]]), 2).round(4).tolist()
    [[-1.0, 1.0], [0.0, 0.0]]
    """
    value = real_value(x)
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if value.shape[value.rank - len(shape):] != shape:
        raise ShapeError(f"layer_norm: x of shape {value.shape} does not end in {shape}")
    axes = tuple(range(value.rank - len(shape), value.rank))
    centred = ops.subtract(value, broadcast_value(keep_axes(mean_value(value, axes), value, axes), value.shape))
    spread = variance(value, axes, 0)
    scale = ops.sqrt(ops.add(spread, constant(eps, spread)))
    result = fresh(ops.divide(centred, broadcast_value(keep_axes(scale, value, axes), value.shape)))
    result = result if weight is None else operator("multiply", result, weight)
    return result if bias is None else operator("add", result, bias)


@graph_function
def embedding(x: Any, weight: Any) -> Any:
    """The rows of weight (count, ...) at the integer indices x: shape x.shape + weight.shape[1:].

    Raises IndexError for an index out of range.  The gradient of weight adds up rows that were used more than once.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.embedding(np.array([2, 0]), np.array([[1.0], [2.0], [3.0]])).tolist()
    [[3.0], [1.0]]
    """
    table = value_as(weight)
    return fresh(gather(table, [index_value(as_tracer(x), table.shape[0])], (0,)))


@graph_function
def one_hot(x: Any, num_classes: int, dtype: Any = None) -> Any:
    """1 at the class, 0 elsewhere, along a new last axis of num_classes; int64 unless a dtype is given.

    Raises DTypeError for classes that are no integers.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.one_hot(np.array([1, 0]), 3).tolist()
    [[0, 1, 0], [1, 0, 0]]
    """
    index = value_as(x)
    if not index.dtype.is_integer:
        raise DTypeError(f"one_hot: classes must be integers, got {index.dtype.numpy}")
    hot = _hot(cast(index, I64), index.rank, num_classes)
    return fresh(cast(hot, requested(dtype) or I64))


def _hot(index: Value, axis: int, count: int) -> Value:
    shape = (*index.shape[:axis], count, *index.shape[axis:])
    spread = REGISTRY["broadcast"](index, shape=shape, axes=tuple([k for k in range(len(shape)) if k != axis]))
    return ops.equal(REGISTRY["iota"](shape=shape, axis=axis, dtype=I64), spread)


@graph_function
def dropout(x: Any, p: float = 0.5, training: bool = True, mask: Any = None) -> Any:
    """x with zeros where mask is false, the others times 1 / (1 - p); x itself if not training.

    Raises UnsupportedError without a mask: random numbers drawn while tracing would be the same in every call.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.dropout(np.array([1.0, 2.0]), 0.5, mask=np.array([True, False])).tolist()
    [2.0, 0.0]
    """
    if not training or p == 0.0:
        return fresh(value_as(x))
    if mask is None:
        raise UnsupportedError("dropout: random numbers cannot be drawn while tracing (they would be frozen)\n"
                               "  hint: pass the mask as an argument: dropout(x, p, mask=rng.random(x.shape) >= p)")
    value = real_value(x)
    keep = broadcast_value(value_as(mask, BOOL), value.shape)
    return fresh(ops.select(keep, ops.multiply(value, constant(1.0 / (1.0 - p), value)), constant(0, value)))


# ----- losses
def _reduction(loss: Value, reduction: str) -> Any:
    axes = tuple(range(loss.rank))
    if reduction == "none":
        return fresh(loss)
    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction must be 'none', 'mean' or 'sum', got {reduction!r}")
    total = REGISTRY["sum"](loss, axes=axes) if axes else loss
    return fresh(total if reduction == "sum" else ops.divide(total, constant(element_count(loss.shape), total)))


def _float_pair(x: Any, y: Any) -> list[Value]:
    a, b = align([x, y])
    dtype = a.dtype if a.dtype.is_float else F64
    return [cast(a, dtype), cast(b, dtype)]


@graph_function
def mse_loss(x: Any, y: Any, reduction: str = "mean") -> Any:
    """(x - y)², x and y broadcast.  reduction: "mean" or "sum" (a scalar) or "none" (an array).

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.nn.mse_loss(np.array([1.0, 2.0]), np.array([1.0, 4.0])))
    2.0
    """
    a, b = _float_pair(x, y)
    distance = ops.subtract(a, b)
    return _reduction(ops.multiply(distance, distance), reduction)


@graph_function
def l1_loss(x: Any, y: Any, reduction: str = "mean") -> Any:
    """|x - y|, x and y broadcast.  reduction: "mean" or "sum" (a scalar) or "none" (an array).

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.nn.l1_loss(np.array([1.0, 2.0]), np.array([1.0, 4.0])))
    1.0
    """
    return _reduction(ops.absolute(ops.subtract(*_float_pair(x, y))), reduction)


@graph_function
def huber_loss(x: Any, y: Any, reduction: str = "mean", delta: float = 1.0) -> Any:
    """½ d² for |d| <= delta, else delta (|d| - ½ delta), with d = x - y.  reduction: "mean" or "sum" (a scalar) or "none" (an array).

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.huber_loss(np.array([0.5, 4.0]), np.zeros(2), reduction="none").tolist()
    [0.125, 3.5]
    """
    distance = ops.subtract(*_float_pair(x, y))
    size = ops.absolute(distance)
    inside = ops.multiply(ops.multiply(distance, distance), constant(0.5, distance))
    outside = ops.multiply(ops.subtract(size, constant(0.5 * delta, size)), constant(delta, size))
    return _reduction(ops.select(ops.less_equal(size, constant(delta, size)), inside, outside), reduction)


@graph_function
def binary_cross_entropy_with_logits(x: Any, y: Any, reduction: str = "mean") -> Any:
    """-(y log σ(x) + (1 - y) log(1 - σ(x))) without overflow, for logits x and y in [0, 1].

    reduction: "mean" or "sum" (a scalar) or "none" (an array).

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.nn.binary_cross_entropy_with_logits(np.array([0.0, 800.0]), np.array([1.0, 1.0])).round(4))
    0.3466
    """
    a, b = _float_pair(x, y)
    return _reduction(ops.subtract(ops.logaddexp(a, constant(0, a)), ops.multiply(a, b)), reduction)


@graph_function
def nll_loss(x: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> Any:
    """-x at the target class; x holds log-probabilities, classes along axis 1 (axis 0 if x has one axis).

    target holds integers and has x's shape without the axis of classes; those equal to ignore_index do not count.  weight has one
    factor per class; "mean" divides by the sum of the factors.  Raises ShapeError for other targets, IndexError out of range.

    >>> import numpy as np, bwcompiler as bw
    >>> x = np.log(np.array([[0.5, 0.5], [0.2, 0.8]]))
    >>> float(bw.nn.nll_loss(x, np.array([0, 1])).round(4))
    0.4581
    """
    value = real_value(x)
    return _class_loss(value, value_as(target), weight, ignore_index, reduction, 1 if value.rank > 1 else 0)


def _class_loss(logs: Value, target: Value, weight: Any, ignore_index: int, reduction: str, axis: int, smoothing: float = 0.0) -> Any:
    """With w the weights and C the number of classes: (1 - smoothing) w_y (-log p_y) + smoothing / C Σ w_c (-log p_c)."""
    expected = tuple([extent for k, extent in enumerate(logs.shape) if k != axis])
    if not target.dtype.is_integer or target.shape != expected:
        raise ShapeError(f"class targets for scores of shape {logs.shape} must be integers of shape {expected}, got "
                         f"{target.dtype.numpy} of shape {target.shape}")
    target = cast(target, I64)
    counted = ops.not_equal(target, constant(ignore_index, target))
    safe = index_value(fresh(ops.select(counted, target, constant(0, target))), logs.shape[axis])
    counters = [safe if k == axis else REGISTRY["iota"](shape=expected, axis=k - (k > axis), dtype=I64) for k in range(logs.rank)]
    chosen = gather(logs, counters, tuple(range(logs.rank)))
    scale = cast(counted, logs.dtype)
    if weight is not None:
        scale = ops.multiply(scale, gather(value_as(weight, logs.dtype), [safe], (0,)))
    loss = ops.multiply(chosen, scale)
    if smoothing:
        even = REGISTRY["sum"](_weighted(logs, weight, axis), axes=(axis,))
        share = constant(smoothing / logs.shape[axis], even)
        loss = ops.add(ops.multiply(loss, constant(1.0 - smoothing, loss)), ops.multiply(even, share))
    loss = ops.negative(ops.select(counted, loss, constant(0, chosen)))
    if reduction != "mean" or not loss.rank:
        return _reduction(loss, reduction if loss.rank else "none")
    axes = tuple(range(loss.rank))
    return fresh(ops.divide(REGISTRY["sum"](loss, axes=axes), REGISTRY["sum"](scale, axes=axes)))


def _weighted(logs: Value, weight: Any, axis: int) -> Value:
    """The weight of its class times every element."""
    if weight is None:
        return logs
    return ops.multiply(logs, REGISTRY["broadcast"](value_as(weight, logs.dtype), shape=logs.shape, axes=(axis,)))


@graph_function
def cross_entropy(x: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Any:
    """nll_loss of log_softmax(x); the arguments are those of `nll_loss`, x holds scores.

    A float target of x's shape holds class probabilities.  label_smoothing mixes the target with equal probabilities.

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.nn.cross_entropy(np.zeros((4, 10)), np.arange(4)).round(4))
    2.3026
    """
    scores, goal = real_value(x), value_as(target)
    axis = 1 if scores.rank > 1 else 0
    logs = log_softmax_value(scores, (axis,))
    if goal.dtype.is_integer:
        return _class_loss(logs, goal, weight, ignore_index, reduction, axis, label_smoothing)
    count = logs.shape[axis]
    goal = cast(goal, logs.dtype)
    if goal.shape != logs.shape:
        raise ShapeError(f"cross_entropy: class probabilities must have shape {logs.shape}, got {goal.shape}")
    if label_smoothing:
        goal = ops.add(ops.multiply(goal, constant(1.0 - label_smoothing, goal)), constant(label_smoothing / count, goal))
    loss = ops.negative(REGISTRY["sum"](ops.multiply(goal, _weighted(logs, weight, axis)), axes=(axis,)))
    return _reduction(loss, reduction if loss.rank else "none")


__all__ = ["binary_cross_entropy_with_logits", "cross_entropy", "dropout", "elu", "embedding", "gelu", "huber_loss", "l1_loss",
           "layer_norm", "leaky_relu", "linear", "log_softmax", "logsumexp", "mse_loss", "nll_loss", "one_hot", "relu", "sigmoid",
           "silu", "softmax", "softplus", "tanh"]
