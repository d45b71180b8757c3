"""`bw.scipy.special`, and the same functions as targets of scipy's ufuncs (dispatched by name, scipy is not imported)."""

from __future__ import annotations

import math
from typing import Any

from bwcompiler.frontend.eager import graph_function
from bwcompiler.frontend.nn_functions import log_softmax_value, logsumexp_value, real_value
from bwcompiler.frontend.nn_functions import softmax as nn_softmax
from bwcompiler.frontend.numpy_elementwise import evaluate, special_ufunc, ufunc_named
from bwcompiler.frontend.numpy_reductions import keep_axes, normalize_axes
from bwcompiler.frontend.operands import broadcast_shapes, constant, value_as
from bwcompiler.frontend.tracer import fresh
from bwcompiler.frontend.views import broadcast_value
from bwcompiler.ir.op import Value
from bwcompiler.ops import elementwise as ops
from bwcompiler.ops import special


def _logit(x: Value) -> Value:
    return ops.subtract(ops.log(x), ops.log1p(ops.negative(x)))


def _log_sigmoid(x: Value) -> Value:
    return ops.negative(ops.logaddexp(ops.negative(x), constant(0, x)))


def _times_log(x: Value, y: Value, log: Any) -> Value:
    """x log(y), 0 where x is 0 and y is not nan."""
    zero = ops.bitwise_and(ops.equal(x, constant(0, x)), ops.invert(ops.isnan(y)))
    return ops.select(zero, constant(0, x), ops.multiply(x, log(ops.select(zero, constant(1, y), y))))


def _normal_distribution(x: Value) -> Value:
    half = ops.multiply(special.erfc(ops.multiply(x, constant(-math.sqrt(0.5), x))), constant(0.5, x))
    return half


def _entropy(x: Value) -> Value:
    inside = ops.negative(_times_log(x, x, ops.log))
    return ops.select(ops.less(x, constant(0, x)), constant(-math.inf, x), inside)


def _relative_entropy(x: Value, y: Value) -> Value:
    both = ops.bitwise_and(ops.greater(x, constant(0, x)), ops.greater(y, constant(0, y)))
    ratio = ops.divide(ops.select(both, x, constant(1, x)), ops.select(both, y, constant(1, y)))
    zero = ops.bitwise_and(ops.equal(x, constant(0, x)), ops.greater_equal(y, constant(0, y)))
    nan = ops.bitwise_or(ops.isnan(x), ops.isnan(y))
    other = ops.select(nan, constant(math.nan, x), ops.select(zero, constant(0, x), constant(math.inf, x)))
    return ops.select(both, ops.multiply(x, ops.log(ratio)), other)


_RULES: dict[str, Any] = {
    "erf": special.erf, "erfc": special.erfc, "erfinv": special.erfinv, "expit": special.sigmoid, "logit": _logit,
    "log_expit": _log_sigmoid, "gammaln": special.lgamma, "psi": special.digamma, "digamma": special.digamma,
    "xlogy": lambda x, y: _times_log(x, y, ops.log), "xlog1py": lambda x, y: _times_log(x, y, ops.log1p),
    "ndtr": _normal_distribution, "entr": _entropy, "rel_entr": _relative_entropy,
    "exp10": lambda x: ops.exp(ops.multiply(x, constant(math.log(10.0), x))),
}
for _name, _rule in _RULES.items():
    special_ufunc(_name, _rule)


def _function(name: str, arity: int) -> Any:
    entry = ufunc_named(name)
    if arity == 1:
        def function(x: Any) -> Any:
            return fresh(evaluate(entry, (x,)))
    else:
        def function(x: Any, y: Any) -> Any:  # type: ignore[misc]
            return fresh(evaluate(entry, (x, y)))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"As scipy.special.{name}."
    return graph_function(function)


erf, erfc, erfinv, expit, logit, log_expit, gammaln, psi, digamma, ndtr, entr = (
    _function(_name, 1) for _name in ("erf", "erfc", "erfinv", "expit", "logit", "log_expit", "gammaln", "psi", "digamma", "ndtr",
                                      "entr"))
xlogy, xlog1py, rel_entr = (_function(_name, 2) for _name in ("xlogy", "xlog1py", "rel_entr"))


@graph_function
def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False) -> Any:
    """log(sum(b * exp(a))), as scipy.special.logsumexp."""
    value = real_value(a)
    weights = None
    if b is not None:
        shape = broadcast_shapes([value.shape, value_as(b).shape])
        value, weights = broadcast_value(value, shape), broadcast_value(value_as(b, value.dtype), shape)
    axes = normalize_axes(axis, value.rank)
    result = logsumexp_value(value, axes, weights)
    return fresh(keep_axes(result, value, axes) if keepdims else result)


@graph_function
def softmax(x: Any, axis: Any = None) -> Any:
    """exp(x) / sum(exp(x)), as scipy.special.softmax (over all axes by default)."""
    return nn_softmax(x, axis)


@graph_function
def log_softmax(x: Any, axis: Any = None) -> Any:
    """log(softmax(x)), as scipy.special.log_softmax."""
    value = real_value(x)
    return fresh(log_softmax_value(value, normalize_axes(axis, value.rank)))
