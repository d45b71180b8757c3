"""`bw.nn`: losses that are negative log-likelihoods or divergences of distributions, with PyTorch's layouts and defaults."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.api.inside.eager import network_function
from bwcompiler.errors import ShapeError
from bwcompiler.frontend.numpy.elementwise.ufunc_calls import evaluate
from bwcompiler.frontend.numpy.elementwise.ufuncs import UFUNCS
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.operands import as_tracer, cast, constant, real_value
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.nn.losses import float_pair, reduce_loss


@network_function
def kl_div(x: Any, target: Any, reduction: str = "mean", log_target: bool = False) -> Any:
    """t (log t - x) for log-probabilities x and probabilities t; with log_target the logarithms of t are given.

    reduction: "mean", "sum" or "batchmean" (the sum over the first extent), all scalars, or "none" (an array).

    >>> import numpy as np, bwcompiler as bw
    >>> p, q = np.array([0.5, 0.5]), np.array([0.25, 0.75])
    >>> float(bw.nn.kl_div(np.log(q), p, reduction="sum").round(4))
    0.1438
    """
    a, b = float_pair(x, target)
    if log_target:
        loss = ops.multiply(ops.exp(b), ops.subtract(b, a))
    else:
        zero = ops.equal(b, constant(0, b))
        own = ops.multiply(b, ops.log(ops.select(zero, constant(1, b), b)))
        loss = ops.subtract(own, ops.multiply(b, a))
    if reduction != "batchmean":
        return reduce_loss(loss, reduction)
    first = np.shape(x)[0] if np.ndim(x) else 1
    return reduce_loss(loss, "sum") / float(first)


@network_function
def poisson_nll_loss(x: Any, target: Any, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean") -> Any:
    """exp(x) - t x; without log_input x - t log(x + eps).  full adds Stirling's t log t - t + ½ log 2πt where t > 1.

    reduction: "mean" or "sum" (a scalar) or "none" (an array).

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.nn.poisson_nll_loss(np.array([0.0]), np.array([2.0])))
    1.0
    """
    a, b = float_pair(x, target)
    if log_input:
        loss = ops.subtract(ops.exp(a), ops.multiply(b, a))
    else:
        loss = ops.subtract(a, ops.multiply(b, ops.log(ops.add(a, constant(eps, a)))))
    if full:
        many = ops.greater(b, constant(1, b))
        count = ops.select(many, b, constant(1, b))
        tail = ops.multiply(ops.log(ops.multiply(count, constant(2 * math.pi, b))), constant(0.5, b))
        stirling = ops.add(ops.subtract(ops.multiply(count, ops.log(count)), count), tail)
        loss = ops.add(loss, ops.select(many, stirling, constant(0, b)))
    return reduce_loss(loss, reduction)


@network_function
def gaussian_nll_loss(x: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> Any:
    """½ (log v + (x - t)² / v) with v = max(var, eps), for which no derivative is lost; full adds ½ log 2π.

    var has x's shape, or that without the last axis or with 1 there, or is a number.  reduction: "mean" or "sum" (a scalar) or "none" (an
    array).  Raises ShapeError for another var.

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.nn.gaussian_nll_loss(np.array([1.0, 2.0]), np.array([1.0, 4.0]), np.ones(2)))
    1.0
    """
    value, goal = fresh(real_value(x)), as_tracer(target)
    spread = fresh(cast(real_value(var), value._type.dtype))
    if spread.shape and spread.shape != value.shape:
        if value.shape[:-1] == spread.shape:
            spread = np.expand_dims(spread, -1)  # type: ignore[assignment]
        elif value.shape[:-1] != spread.shape[:-1] or spread.shape[-1] != 1:
            raise ShapeError(f"gaussian_nll_loss: var of shape {spread.shape} does not fit x of shape {value.shape}")
    own = value_of(spread)
    least = constant(eps, own)
    above = fresh(ops.add(own, ops.stop_gradient(ops.select(ops.less(own, least), ops.subtract(least, own), constant(0, own)))))
    distance: Any = value - goal
    loss: Any = 0.5 * (np.log(above) + distance * distance / above)
    return reduce_loss(value_of(loss + 0.5 * math.log(2 * math.pi) if full else loss), reduction)


@network_function
def soft_margin_loss(x: Any, target: Any, reduction: str = "mean") -> Any:
    """log(1 + exp(-t x)) for t of 1 and -1, without overflow.  reduction: "mean" or "sum" (a scalar) or "none" (an array).

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.nn.soft_margin_loss(np.array([0.0, 800.0]), np.array([1.0, -1.0])).round(4))
    400.3466
    """
    a, b = float_pair(x, target)
    return reduce_loss(evaluate(UFUNCS["logaddexp"], (fresh(ops.negative(ops.multiply(a, b))), 0.0)), reduction)


@network_function
def multilabel_soft_margin_loss(x: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Any:
    """The mean over classes (the last axis) of -(t log σ(x) + (1 - t) log σ(-x)), times weight per class.

    reduction: "mean" or "sum" (a scalar) or "none" (one loss per sample).

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.nn.multilabel_soft_margin_loss(np.zeros((2, 3)), np.ones((2, 3))).round(4))
    0.6931
    """
    a, b = float_pair(x, target)
    loss = fresh(ops.subtract(ops.logaddexp(a, constant(0, a)), ops.multiply(a, b)))
    weighed: Any = loss if weight is None else loss * weight
    return reduce_loss(value_of(weighed.mean(-1)), reduction)
