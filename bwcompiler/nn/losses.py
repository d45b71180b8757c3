"""`bw.nn`: losses, with PyTorch's layouts, defaults and reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.api.inside.eager import network_function
from bwcompiler.errors import ShapeError
from bwcompiler.frontend.numpy.manipulation.indexing import gather, index_value
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.operands import align, cast, constant, count_value, is_traced, real_value, value_as
from bwcompiler.frontend.tracing.storages.views import broadcast_value
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import F64, I64
from bwcompiler.nn.activations import log_softmax_value


def reduce_loss(loss: Value, reduction: str) -> Any:
    axes = tuple(range(loss.rank))
    if reduction == "none":
        return fresh(loss)
    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction must be 'none', 'mean' or 'sum', got {reduction!r}")
    total = ops.sum(loss, axes=axes) if axes else loss
    return fresh(total if reduction == "sum" else ops.divide(total, count_value(loss.shape, total.dtype)))


def float_pair(x: Any, y: Any) -> list[Value]:
    """x and y broadcast, of their common float dtype; integers take that of the other one."""
    both = [value_as(one) for one in (x, y)]
    floats = [one.dtype for one in both if one.dtype.is_float]
    return align([fresh(one) for one in both], floats[0] if len(floats) == 1 else None if floats else F64)


def number_pair(x: Any, y: Any) -> list[Value]:
    """The same where x or y may be complex."""
    if any(value_as(one).dtype.is_complex for one in (x, y)):
        return align([fresh(value_as(one)) for one in (x, y)], None)
    return float_pair(x, y)


def _weighed(loss: Value, weight: Any) -> Value:
    """loss times a weight that broadcasts to its shape."""
    return loss if weight is None else ops.multiply(loss, broadcast_value(value_as(weight, loss.dtype), loss.shape))


def positive_part(x: Value) -> Value:
    """max(x, 0), with derivative 1 at 0, as PyTorch's clamps."""
    return ops.select(ops.less(x, constant(0, x)), constant(0, x), x)


def _of_elements(loss: Value, weight: Any, x: Any, reduction: str, by_weight: bool) -> Any:
    """The reduced loss of elements that have weights, as many as x; a mean is divided by the sum of these, or by their number."""
    if weight is None:
        return reduce_loss(loss, reduction)
    given = value_as(weight, loss.dtype)
    if given.shape != value_as(x).shape:
        raise ValueError("Weights and input must have the same size.")
    shares = broadcast_value(given, loss.shape)
    if reduction != "mean" or not by_weight:
        return reduce_loss(ops.multiply(loss, shares), reduction)
    total: Any = reduce_loss(ops.multiply(loss, shares), "sum")
    return total / reduce_loss(given, "sum")


@network_function
def mse_loss(x: Any, y: Any, reduction: str = "mean", weight: Any = None) -> Any:
    """(x - y)², x and y broadcast.  reduction: "mean" or "sum" (a scalar) or "none" (an array).

    weight   of the elements, shaped as x: factors of theirs, and a mean is divided by their sum.  Raises ValueError for other shapes.

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.nn.mse_loss(np.array([1.0, 2.0]), np.array([1.0, 4.0])))
    2.0
    """
    a, b = float_pair(x, y)
    distance = ops.subtract(a, b)
    return _of_elements(ops.multiply(distance, distance), weight, x, reduction, True)


@network_function
def l1_loss(x: Any, y: Any, reduction: str = "mean", weight: Any = None) -> Any:
    """|x - y|, x and y broadcast, complex too.  reduction: "mean" or "sum" (a scalar) or "none" (an array); weight: see `mse_loss`.

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.nn.l1_loss(np.array([1.0, 2.0]), np.array([1.0, 4.0])))
    1.0
    """
    distance: Any = np.abs(fresh(ops.subtract(*number_pair(x, y))))
    return _of_elements(value_of(distance), weight, x, reduction, True)


@network_function
def huber_loss(x: Any, y: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None) -> Any:
    """½ d² for |d| <= delta, else delta (|d| - ½ delta), with d = x - y.  reduction: "mean" or "sum" (a scalar) or "none" (an array).

    weight   of the elements, shaped as x: factors of theirs; a mean is divided by their number, as PyTorch's.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.huber_loss(np.array([0.5, 4.0]), np.zeros(2), reduction="none").tolist()
    [0.125, 3.5]
    """
    distance = ops.subtract(*float_pair(x, y))
    size = ops.absolute(distance)
    inside = ops.multiply(ops.multiply(distance, distance), constant(0.5, distance))
    outside = ops.multiply(ops.subtract(size, constant(0.5 * delta, size)), constant(delta, size))
    return _of_elements(ops.select(ops.less_equal(size, constant(delta, size)), inside, outside), weight, x, reduction, False)


@network_function
def smooth_l1_loss(x: Any, y: Any, reduction: str = "mean", beta: float = 1.0) -> Any:
    """½ d² / beta for |d| < beta, else |d| - ½ beta, with d = x - y.  reduction: "mean" or "sum" (a scalar) or "none" (an array).

    Raises ValueError for a negative beta.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.smooth_l1_loss(np.array([0.5, 4.0]), np.zeros(2), reduction="none").tolist()
    [0.125, 3.5]
    """
    known = not is_traced(beta)
    if known and beta < 0:
        raise ValueError("smooth_l1_loss does not support negative values for beta")
    distance = ops.subtract(*float_pair(x, y))
    size = ops.absolute(distance)
    if known and not beta:
        return reduce_loss(size, reduction)
    inside = ops.multiply(ops.multiply(distance, distance), constant(0.5 / beta, distance))
    outside = ops.subtract(size, constant(0.5 * beta, size))
    return reduce_loss(ops.select(ops.less(size, constant(beta, size)), inside, outside), reduction)


@network_function
def binary_cross_entropy(x: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Any:
    """-(y log x + (1 - y) log(1 - x)) times weight, for probabilities x; logarithms count as -100 below that.

    reduction: "mean" or "sum" (a scalar) or "none" (an array).

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.nn.binary_cross_entropy(np.array([0.5, 0.0]), np.array([1.0, 1.0])).round(4))
    50.3466
    """
    a, b = float_pair(x, target)
    one, least = constant(1, a), constant(-100, a)
    logs = [ops.select(ops.less(log, least), least, log) for log in (ops.log(a), ops.log1p(ops.negative(a)))]
    loss = ops.add(ops.multiply(b, logs[0]), ops.multiply(ops.subtract(one, b), logs[1]))
    return reduce_loss(_weighed(ops.negative(loss), weight), reduction)


@network_function
def binary_cross_entropy_with_logits(x: Any, y: Any, weight: Any = None, reduction: str = "mean", pos_weight: Any = None) -> Any:
    """-(p y log σ(x) + (1 - y) log(1 - σ(x))) without overflow, for logits x and y in [0, 1]; p = pos_weight (1), times weight.

    reduction: "mean" or "sum" (a scalar) or "none" (an array).

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.nn.binary_cross_entropy_with_logits(np.array([0.0, 800.0]), np.array([1.0, 1.0])).round(4))
    0.3466
    """
    a, b = float_pair(x, y)
    if pos_weight is None:
        loss = ops.subtract(ops.logaddexp(a, constant(0, a)), ops.multiply(a, b))
    else:                                           # (1 - y) x + (1 + (p - 1) y) log(1 + exp(-x))
        one = constant(1, a)
        extra = ops.subtract(broadcast_value(value_as(pos_weight, a.dtype), a.shape), one)
        share = ops.add(ops.multiply(extra, b), one)
        loss = ops.add(ops.multiply(ops.subtract(one, b), a), ops.multiply(share, ops.logaddexp(ops.negative(a), constant(0, a))))
    return reduce_loss(_weighed(loss, weight), reduction)


@network_function
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
    counters = [safe if k == axis else ops.iota(shape=expected, axis=k - (k > axis), dtype=I64) for k in range(logs.rank)]
    chosen = gather(logs, counters, tuple(range(logs.rank)))
    scale = cast(counted, logs.dtype)
    if weight is not None:
        scale = ops.multiply(scale, gather(value_as(weight, logs.dtype), [safe], (0,)))
    loss = ops.multiply(chosen, scale)
    if is_traced(smoothing) or smoothing:
        even = ops.sum(_weighted(logs, weight, axis), axes=(axis,))
        share = constant(smoothing / logs.shape[axis], even)
        loss = ops.add(ops.multiply(loss, constant(1.0 - smoothing, loss)), ops.multiply(even, share))
    loss = ops.negative(ops.select(counted, loss, constant(0, chosen)))
    if reduction != "mean":
        return reduce_loss(loss, reduction)
    axes = tuple(range(loss.rank))
    total, weights = (ops.sum(part, axes=axes) if axes else part for part in (loss, scale))
    return fresh(ops.divide(total, weights))


def _weighted(logs: Value, weight: Any, axis: int) -> Value:
    """The weight of its class times every element."""
    if weight is None:
        return logs
    return ops.multiply(logs, ops.broadcast(value_as(weight, logs.dtype), shape=logs.shape, axes=(axis,)))


@network_function
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
        raise ShapeError(f"cross_entropy: class probabilities must have shape {logs.shape}, got {goal.shape}\n"
                         "  hint: numbers of classes are integers, labels.astype(int)")
    if is_traced(label_smoothing) or label_smoothing:
        goal = ops.add(ops.multiply(goal, constant(1.0 - label_smoothing, goal)), constant(label_smoothing / count, goal))
    loss = ops.negative(ops.sum(ops.multiply(goal, _weighted(logs, weight, axis)), axes=(axis,)))
    return reduce_loss(loss, reduction if loss.rank else "none")
