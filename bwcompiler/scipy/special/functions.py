"""`bw.scipy.special`: `FUNCTIONS` has all that are not computed by SciPy's loops.

These are ops that declare a name of scipy.special, functions of one element composed of ops (`frontend/numpy/elementwise/special.py`), and
those below that have axes or an order.
"""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np

from bwcompiler import lazy, ops
from bwcompiler.api.inside.eager import graph_function
from bwcompiler.api.transforms.reverse import stop_gradient
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.numpy.axes import normalize_axes, reduction_axes
from bwcompiler.frontend.numpy.elementwise.special import COMPOSED
from bwcompiler.frontend.numpy.elementwise.ufunc_calls import evaluate
from bwcompiler.frontend.numpy.elementwise.ufuncs import ufunc_named
from bwcompiler.frontend.numpy.reductions.reductions import keep_axes
from bwcompiler.frontend.numpy.selected.elementwise import elementwise
from bwcompiler.frontend.numpy.selected.packing import filled as unselected_as
from bwcompiler.frontend.numpy.selected.reducing import along
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection, taking_selections
from bwcompiler.frontend.tracing.operands import align, cast, constant, filled, number_value, real_value, reshape
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.op import UFUNC_OPS
from bwcompiler.ir.types import F64
from bwcompiler.nn.activations import log_softmax_value, logsumexp_value
from bwcompiler.nn.activations import softmax as nn_softmax
from bwcompiler.ops.special.loops import PARTIAL_DERIVATIVES

scipy_special = lazy.module("scipy.special")

# Ops that are a function of scipy.special (and not of NumPy), by its name.
OPS = {name: op for name, op in UFUNC_OPS.items() if not hasattr(np, name)}


def _function(name: str, arity: int, meaning: str, at_half: float) -> Any:
    entry = ufunc_named(name)
    if arity == 1:
        def function(x: Any) -> Any:
            return fresh(evaluate(entry, (x,)))
    else:
        def function(x: Any, y: Any) -> Any:  # type: ignore[misc]
            return fresh(evaluate(entry, (x, y)))
    arguments = ", ".join(["np.array([0.5])"] * arity)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{meaning}  As scipy.special.{name}: element by element, integers become float64.

    >>> import numpy as np, bwcompiler as bw
    >>> (bw.scipy.special.{name}({arguments}).round(4) + 0.0).tolist()
    [{at_half}]
    """
    return graph_function(function)


def _elementwise_functions() -> dict[str, Any]:
    half = np.array([0.5])
    found = {}
    for name, op in OPS.items():
        arity = len(op.vjp) if isinstance(op.vjp, tuple) else 1
        found[name] = _function(name, arity, op.doc, float((op.reference(*[half] * arity).round(4) + 0.0)[0]))
    for name, composed in COMPOSED.items():
        found[name] = _function(name, composed.arity, composed.doc, composed.at_half)
    return found


# ----- by SciPy's loops
BY_LOOP = sorted([name for name in {*PARTIAL_DERIVATIVES, "jn"} if not name.startswith("_")])


def function_by_loop(name: str) -> Any:
    """A ufunc of scipy.special as a function of traced and plain arrays; None if there is none, or SciPy is not installed."""
    try:
        ufunc = getattr(scipy_special, name, None)
    except ImportError:
        if name in BY_LOOP:
            raise UnsupportedError(f"bw.scipy.special.{name} is computed by SciPy's loops, and SciPy is not installed") from None
        return None
    if not isinstance(ufunc, np.ufunc):
        return None
    entry = ufunc_named(ufunc.__name__, ufunc)
    names = [f"x{k}" for k in range(ufunc.nin)] if ufunc.nin > 1 else ["x"]

    def function(*xs: Any, **named: Any) -> Any:
        found = evaluate(entry, (*xs, *[named[one] for one in names if one in named]))
        return tuple([fresh(one) for one in found]) if isinstance(found, tuple) else fresh(found)

    function.__name__ = function.__qualname__ = name
    parameters = [inspect.Parameter(one, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation="Any") for one in names]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__doc__ = f"As scipy.special.{name}, by SciPy's loop: element by element, integers become float64.\n\n{ufunc.__doc__}"
    return graph_function(function)


@graph_function
def polygamma(n: int, x: Any) -> Any:
    """The derivative of order n of digamma, as scipy.special.polygamma; n is a number.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.special.polygamma(1, np.array([1.0])).round(4).tolist()
    [1.6449]
    """
    value = cast(real_value(x), F64)                                    # as SciPy, also of float32
    if not isinstance(n, int | np.integer) or n < 0:
        raise UnsupportedError("polygamma: the order must be an integer that is known while tracing, not negative")
    return fresh(ops.digamma(value) if n == 0 else ops.polygamma(value, n=int(n)))


@graph_function
def multigammaln(a: Any, d: int) -> Any:
    """The logarithm of the gamma function of dimension d, as scipy.special.multigammaln.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.special.multigammaln(np.array([2.0]), 2).round(4).tolist()
    [0.4516]
    """
    value = cast(real_value(a), F64)                                    # as SciPy, also of float32
    total = constant(d * (d - 1) * 0.25 * math.log(math.pi), value)
    for k in range(d):
        total = ops.add(total, ops.lgamma(ops.subtract(value, constant(0.5 * k, value))))
    return fresh(total)


def by_loop(name: str, *xs: Any) -> Any:
    """A function of scipy.special of handles or numbers, inside a trace; SciPy is loaded for it.

    Numbers do not widen float32 here, as they do in some of SciPy's own calls.
    """
    kinds = {x.dtype for x in xs if not isinstance(x, int | float)}
    if kinds == {np.dtype(np.float32)}:
        xs = tuple([np.float32(x) if isinstance(x, int | float) else x for x in xs])
    return fresh(evaluate(ufunc_named(name, getattr(scipy_special._ufuncs, name)), xs))


@graph_function
def zeta(x: Any, q: Any = None) -> Any:
    """Σ 1 / (q + k)**x over k = 0, 1, ... (q = 1 by default), as scipy.special.zeta; of Riemann's function derivatives for x > -2.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.special.zeta(np.array([2.0])).round(4).tolist()
    [1.6449]
    """
    value = fresh(real_value(x))
    return by_loop("_riemann_zeta", value) if q is None else by_loop("_zeta", value, q)


@graph_function
def factorial(n: Any, exact: bool = False) -> Any:
    """Γ(n + 1), 0 for negative n, as scipy.special.factorial with exact=False.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.special.factorial(np.array([0.0, 3.0])).tolist()
    [1.0, 6.0]
    """
    if exact:
        raise UnsupportedError("factorial: exact=True gives Python integers of any size, which traced arrays do not have\n"
                               "  hint: exact=False")
    value = cast(real_value(n), F64)                                       # also for float32: SciPy's are float64
    below = ops.less(value, constant(0, value))
    above = ops.add(ops.select(below, constant(0, value), value), constant(1, value))
    return fresh(ops.select(below, constant(0, value), COMPOSED["gamma"].rule(above)))


@graph_function
def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:
    """The number of ways to choose k of N, as scipy.special.comb with exact=False; 0 for k > N and negative arguments.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.special.comb(np.array([5.0]), np.array([2.0])).tolist()
    [10.0]
    """
    if exact:
        raise UnsupportedError("comb: exact=True gives Python integers of any size, which traced arrays do not have\n  hint: exact=False")
    n, few = fresh(real_value(N)), fresh(real_value(k))
    if repetition:
        return comb(n + few - 1, few)
    inside = (few <= n) & (n >= 0) & (few >= 0)
    return np.where(inside, by_loop("binom", np.where(inside, n, 1.0), np.where(inside, few, 0.0)), 0.0)


@taking_selections
@graph_function
def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """log(sum(b * exp(a))) over an axis or axes (None: over all) without overflow, as scipy.special.logsumexp.

    a and b may be complex.  With return_sign it is (log |sum|, sign of the sum; its direction, if it is complex).

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.special.logsumexp(np.array([[0.0, 0.0], [1000.0, 0.0]]), axis=1).round(4).tolist()
    [0.6931, 1000.0]
    """
    if isinstance(a, Selection) and b is None and not return_sign and a.dtype.kind == "f":
        return along(lambda rows, axes: logsumexp(rows, axes, keepdims=keepdims), a, axis, keepdims,
                     lambda x, axes: logsumexp(lowered(x), axes, keepdims=keepdims))
    value, weights = number_value(a), None
    if b is not None:
        value, weights = align([fresh(value), b])
    if not value.rank:                                                     # which has one axis for SciPy
        value, weights = reshape(value, (1,)), None if weights is None else reshape(weights, (1,))
    axes = normalize_axes(axis, value.rank)
    if 0 in [value.shape[k] for k in axes]:                                # the logarithm of an empty sum
        kept = tuple([1 if k in axes else extent for k, extent in enumerate(value.shape) if keepdims or k not in axes])
        none, nothing = (fresh(filled(one, value.dtype, kept)) for one in (-math.inf, 0.0))
        return (none, nothing) if return_sign else none
    if value.dtype.is_complex or return_sign or weights is not None:
        return _log_of_sum(fresh(value), axes, None if weights is None else fresh(weights), keepdims, return_sign)
    result = logsumexp_value(value, axes)
    return fresh(keep_axes(result, value, axes) if keepdims else result)


def _log_of_sum(a: Any, axes: tuple[int, ...], weights: Any, keepdims: bool, with_sign: bool) -> Any:
    """The same where the sum may be negative or complex, and with weights.

    What has the weight 0 does not count, whatever it is: it is no largest element, and is bounded, so that 0 times its exponential is 0.
    The derivative by such a weight is the exponential, which there must be as it is.
    """
    counts = True if weights is None else weights != 0
    largest = stop_gradient(np.max(np.where(counts, a.real, -math.inf), axes, keepdims=True))
    largest = np.where(np.isfinite(largest), largest, 0.0)
    distance = a - largest
    if weights is None:
        total = np.sum(np.exp(distance), axes, keepdims=True)
    else:
        limit = math.log(np.finfo(distance.dtype).max) - 1.0
        bounded = np.where(counts | (distance.real < limit), distance, limit)
        total = np.sum(weights * np.exp(bounded), axes, keepdims=True)
    found = [np.log(np.abs(total)) + largest, np.sign(total)] if with_sign else [np.log(total) + largest]
    kept = found if keepdims else [np.squeeze(one, axes)[()] for one in found]
    return tuple(kept) if with_sign else kept[0]


def _below_largest(x: Any, axis: Any) -> Any:
    """Complex numbers without the largest of them, in NumPy's order."""
    largest: Any = stop_gradient(np.max(x, axis, keepdims=True))
    return x - np.where(np.isfinite(largest), largest, 0)


@taking_selections
@graph_function
def softmax(x: Any, axis: Any = None) -> Any:
    """exp(x) / sum(exp(x)), as scipy.special.softmax (over all axes by default).

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.special.softmax(np.array([0.0, 0.0])).tolist()
    [0.5, 0.5]
    """
    if isinstance(x, Selection) and x.ndim == 1 and x.dtype.kind == "f":
        return elementwise(lambda _: softmax(lowered(x), axis), x)
    if not number_value(x).dtype.is_complex:
        return nn_softmax(x, axis)
    weights = np.exp(_below_largest(x, axis))
    return weights / np.sum(weights, axis, keepdims=True)


@graph_function
def log_softmax(x: Any, axis: Any = None) -> Any:
    """log(softmax(x)), as scipy.special.log_softmax (over all axes by default).

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.special.log_softmax(np.array([0.0, 1000.0])).tolist()
    [-1000.0, 0.0]
    """
    value = number_value(x)
    if value.dtype.is_complex:
        distances = _below_largest(x, axis)
        return distances - np.log(np.sum(np.exp(distances), axis, keepdims=True))
    return fresh(log_softmax_value(value, normalize_axes(axis, value.rank) if value.rank else reduction_axes(axis, 0)))


def lowered(x: Selection) -> Any:
    """All elements; of those that are not selected the exponential is 0."""
    return unselected_as(x, -math.inf)


FUNCTIONS = {**_elementwise_functions(), **{function.__name__: function for function in (
    polygamma, multigammaln, zeta, factorial, comb, logsumexp, softmax, log_softmax)}}
