"""`bw.nn`: distances, directions, and losses that compare them with a margin, with PyTorch's defaults; axes count as in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.api.inside.eager import network_function
from bwcompiler.errors import ShapeError
from bwcompiler.frontend.tracing.calls import call_back
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.operands import as_tracer, cast, constant, number_value, real_value, value_as
from bwcompiler.frontend.tracing.tracer import Tracer, fresh
from bwcompiler.nn.losses import float_pair, number_pair, positive_part, reduce_loss


def _at_least(x: Tracer, bound: float) -> Any:
    """max(x, bound), with derivative 1 everywhere."""
    value = value_of(x)
    least = constant(bound, value)
    missing = ops.select(ops.less(value, least), ops.subtract(least, value), constant(0, value))
    return fresh(ops.add(value, ops.stop_gradient(missing)))


def _clamped(x: Any) -> Any:
    return fresh(positive_part(value_of(x)))


@network_function
def normalize(x: Any, p: float = 2.0, axis: Any = 1, eps: float = 1e-12) -> Any:
    """x, which may be complex, divided by its p-norm along an axis, or by eps where that is larger.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.normalize(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    value: Any = fresh(number_value(x))
    norm = np.linalg.vector_norm(value, axis=axis, ord=p, keepdims=True)
    return value / (_clamped(norm - eps) + eps)


@network_function
def cosine_similarity(x1: Any, x2: Any, axis: int = 1, eps: float = 1e-8) -> Any:
    """x1 · x2 / (‖x1‖ ‖x2‖) along an axis of x1 and x2, broadcast; norms are eps at least.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.cosine_similarity(np.array([[1.0, 0.0]]), np.array([[1.0, 1.0]])).round(4).tolist()
    [0.7071]
    """
    directions = []
    for one in float_pair(x1, x2):
        handle: Any = fresh(one)
        directions.append(handle / _at_least(np.linalg.vector_norm(handle, axis=axis, keepdims=True), eps))
    return (directions[0] * directions[1]).sum(axis)


@network_function
def pairwise_distance(x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdims: bool = False) -> Any:
    """The p-norm of x1 - x2 + eps along the last axis, of complex numbers too.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.pairwise_distance(np.array([[3.0, 4.0]]), np.zeros((1, 2))).round(4).tolist()
    [5.0]
    """
    a, b = number_pair(x1, x2)
    distance = fresh(ops.add(ops.subtract(a, b), constant(eps, a)))
    return np.linalg.vector_norm(distance, axis=-1, ord=p, keepdims=keepdims)


@network_function
def pdist(x: Any, p: float = 2.0) -> Any:
    """The p-norms of the differences of all pairs of rows i < j of x, (0, 1), (0, 2), ...  Raises ShapeError unless x has 2 axes.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.pdist(np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])).round(4).tolist()
    [5.0, 1.0, 4.2426]
    """
    value: Any = fresh(real_value(x))
    if value.ndim != 2:
        raise ShapeError(f"pdist: x must have 2 axes, got shape {value.shape}")
    first, second = np.triu_indices(value.shape[0], 1)
    return np.linalg.vector_norm(value[first] - value[second], axis=-1, ord=p)


# ----- losses with a margin
@network_function
def hinge_embedding_loss(x: Any, target: Any, margin: float = 1.0, reduction: str = "mean") -> Any:
    """x where the target is 1, max(0, margin - x) where it is -1.  reduction: "mean" or "sum" (a scalar) or "none" (an array).

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.hinge_embedding_loss(np.array([0.25, 0.25]), np.array([1, -1]), reduction="none").tolist()
    [0.25, 0.75]
    """
    value, goal = fresh(real_value(x)), as_tracer(target)
    apart: Any = np.where(goal == 1, 0.0, _clamped(margin - value))
    together: Any = np.where(goal == -1, 0.0, value)
    return reduce_loss(value_of(apart + together), reduction)


@network_function
def margin_ranking_loss(x1: Any, x2: Any, target: Any, margin: float = 0.0, reduction: str = "mean") -> Any:
    """max(0, margin - t (x1 - x2)) for t of 1 and -1.  reduction: "mean" or "sum" (a scalar) or "none" (an array).

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.nn.margin_ranking_loss(np.array([1.0]), np.array([3.0]), np.array([1])))
    2.0
    """
    a, b = (fresh(one) for one in float_pair(x1, x2))
    goal = fresh(cast(value_as(target), a._type.dtype))
    moved: Any = margin - goal * (a - b)
    return reduce_loss(value_of(_clamped(moved)), reduction)


@network_function
def cosine_embedding_loss(x1: Any, x2: Any, target: Any, margin: float = 0.0, reduction: str = "mean") -> Any:
    """1 - cos(x1, x2) where the target is 1, max(0, cos(x1, x2) - margin) where it is -1; vectors lie along the last axis.

    reduction: "mean" or "sum" (a scalar) or "none" (an array).

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.nn.cosine_embedding_loss(np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array(1)))
    1.0
    """
    a, b = (fresh(one) for one in float_pair(x1, x2))
    goal = as_tracer(target)
    squares = [np.sum(one * one, -1) + 1e-12 for one in (a, b)]
    cosine: Any = np.sum(a * b, -1) / np.sqrt(squares[0] * squares[1])
    loss: Any = np.where(goal == 1, 1.0 - cosine, 0.0) + np.where(goal == -1, _clamped(cosine - margin), 0.0)
    return reduce_loss(value_of(loss), reduction)


def _triplet(near: Any, far: Any, between: Any, margin: float, reduction: str) -> Any:
    far = far if between is None else np.minimum(far, between)
    return reduce_loss(value_of(_clamped(near - far + margin)), reduction)


@network_function
def triplet_margin_loss(anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
                        swap: bool = False, reduction: str = "mean") -> Any:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), d = pairwise_distance with p and eps.

    swap takes d(positive, negative) where that is smaller.  reduction: "mean" or "sum" (a scalar) or "none" (an array).

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.nn.triplet_margin_loss(np.zeros((1, 2)), np.array([[3.0, 4.0]]), np.array([[0.0, 1.0]])).round(4))
    5.0
    """
    near, far = pairwise_distance(anchor, positive, p, eps), pairwise_distance(anchor, negative, p, eps)
    return _triplet(near, far, pairwise_distance(positive, negative, p, eps) if swap else None, margin, reduction)


@network_function
def triplet_margin_with_distance_loss(anchor: Any, positive: Any, negative: Any, *, distance_function: Callable[..., Any] | None = None,
                                      margin: float = 1.0, swap: bool = False, reduction: str = "mean") -> Any:
    """`triplet_margin_loss` with a distance of one's own, a function of two arrays (None: pairwise_distance).

    >>> import numpy as np, bwcompiler as bw
    >>> distance = lambda x, y: np.abs(x - y).sum(-1)
    >>> float(bw.nn.triplet_margin_with_distance_loss(np.zeros((1, 2)), np.ones((1, 2)), np.ones((1, 2)), distance_function=distance))
    1.0
    """
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = call_back(distance, anchor, positive), call_back(distance, anchor, negative)
    return _triplet(near, far, call_back(distance, positive, negative) if swap else None, margin, reduction)


@network_function
def multi_margin_loss(x: Any, target: Any, p: int = 1, margin: float = 1.0, weight: Any = None, reduction: str = "mean") -> Any:
    """The mean over the classes i other than the target y of w_y max(0, margin - x_y + x_i)ᵖ; classes lie along the last axis.

    reduction: "mean" or "sum" (a scalar) or "none" (one loss per sample).

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.nn.multi_margin_loss(np.array([[0.0, 0.5, 2.0]]), np.array([1])).round(4))
    1.0
    """
    value: Any = np.atleast_1d(fresh(real_value(x)))
    goal = as_tracer(target)[..., None] if value.ndim > 1 else as_tracer(target).reshape(1)
    apart = _clamped(margin - np.take_along_axis(value, goal, -1) + value)
    powers = apart if p == 1 else apart**p
    if weight is not None:
        powers = powers * np.take(as_tracer(weight), goal)
    others = np.where(np.arange(value.shape[-1]) == goal, 0.0, powers)
    return reduce_loss(value_of(others.sum(-1) / value.shape[-1]), reduction)


@network_function
def multilabel_margin_loss(x: Any, target: Any, reduction: str = "mean") -> Any:
    """Σ max(0, 1 - x_j + x_i) over labels j and other classes i, divided by the number of classes, which lie along the last axis.

    target has x's shape: the labels of each sample, then -1.  reduction: "mean" or "sum" (a scalar) or "none" (one loss per sample).
    Raises ShapeError for another shape.

    >>> import numpy as np, bwcompiler as bw
    >>> x = np.array([[0.1, 0.2, 0.4, 0.8]])
    >>> float(bw.nn.multilabel_margin_loss(x, np.array([[3, 0, -1, 1]])).round(4))
    0.85
    """
    value: Any = fresh(real_value(x))
    goal: Any = as_tracer(target)
    if goal.shape != value.shape:
        raise ShapeError(f"multilabel_margin_loss: target of shape {goal.shape} must have the shape {value.shape} of x")
    listed = np.cumprod(goal >= 0, -1) > 0
    labels = np.where(listed, goal, 0)
    classes = np.arange(value.shape[-1] if value.ndim else 1)
    value, labels, listed = (np.atleast_1d(one) for one in (value, labels, listed))
    other = ~np.any((classes == labels[..., None]) & listed[..., None], -2)
    apart = _clamped(1.0 - np.take_along_axis(value, labels, -1)[..., None] + value[..., None, :])
    counted = listed[..., None] & other[..., None, :]
    return reduce_loss(value_of(np.where(counted, apart, 0.0).sum((-2, -1)) / value.shape[-1]), reduction)
