"""`bw.scipy.special`, and the same functions as targets of scipy's ufuncs (dispatched by name, scipy is not imported).

`FUNCTIONS` has them all: ops that declare a name of scipy.special, functions of one element composed of ops (`COMPOSED`), and those
below that have axes or an order.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bwcompiler import ops
from bwcompiler.api.eager import graph_function
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.numpy.elementwise import evaluate, special_ufunc, ufunc_named
from bwcompiler.frontend.numpy.reductions import keep_axes, normalize_axes
from bwcompiler.frontend.tracing.operands import broadcast_shapes, cast, constant, value_as
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.frontend.tracing.views import broadcast_value
from bwcompiler.ir.op import UFUNC_OPS, Value
from bwcompiler.ir.types import F64
from bwcompiler.nn.activations import log_softmax_value, logsumexp_value, real_value
from bwcompiler.nn.activations import softmax as nn_softmax
from bwcompiler.ops.special_derivatives import PARTIAL_DERIVATIVES


def _logit(x: Value) -> Value:
    return ops.subtract(ops.log(x), ops.log1p(ops.negative(x)))


def _log_sigmoid(x: Value) -> Value:
    return ops.negative(ops.logaddexp(ops.negative(x), constant(0, x)))


def _times_log(x: Value, y: Value, log: Any, pole: float) -> Value:
    """x log(y); 0 where x is 0 and the logarithm is not finite (y at most `pole`, or infinite) but y is not nan."""
    inside = ops.bitwise_and(ops.greater(y, constant(pole, y)), ops.isfinite(y))
    zero = ops.bitwise_and(ops.equal(x, constant(0, x)), ops.invert(ops.bitwise_or(inside, ops.isnan(y))))
    return ops.select(zero, constant(0, x), ops.multiply(x, log(ops.select(zero, constant(1, y), y))))


def _normal_distribution(x: Value) -> Value:
    half = ops.multiply(ops.erfc(ops.multiply(x, constant(-math.sqrt(0.5), x))), constant(0.5, x))
    return half


def _entropy(x: Value) -> Value:
    zero = ops.equal(x, constant(0, x))
    inside = ops.negative(_times_log(x, x, ops.log, 0.0))
    inside = ops.select(zero, ops.sqrt(ops.select(zero, x, constant(1, x))), inside)       # which is 0 there too, with slope inf
    return ops.select(ops.less(x, constant(0, x)), constant(-math.inf, x), inside)


def _relative_entropy(x: Value, y: Value) -> Value:
    both = ops.bitwise_and(ops.greater(x, constant(0, x)), ops.greater(y, constant(0, y)))
    positive_x, positive_y = ops.select(both, x, constant(1, x)), ops.select(both, y, constant(1, y))
    logarithm = _log_of_ratio(positive_x, positive_y)
    zero = ops.bitwise_and(ops.equal(x, constant(0, x)), ops.greater_equal(y, constant(0, y)))
    nan = ops.bitwise_or(ops.isnan(x), ops.isnan(y))
    other = ops.select(nan, constant(math.nan, x), ops.select(zero, constant(0, x), constant(math.inf, x)))
    return ops.select(both, ops.multiply(x, logarithm), other)


def _kullback_leibler(x: Value, y: Value) -> Value:
    both = ops.bitwise_and(ops.greater(x, constant(0, x)), ops.greater(y, constant(0, y)))
    positive_x, positive_y = ops.select(both, x, constant(1, x)), ops.select(both, y, constant(1, y))
    inside = ops.add(ops.subtract(ops.multiply(x, _log_of_ratio(positive_x, positive_y)), x), y)
    zero = ops.bitwise_and(ops.equal(x, constant(0, x)), ops.greater_equal(y, constant(0, y)))
    nan = ops.bitwise_or(ops.isnan(x), ops.isnan(y))
    other = ops.select(nan, constant(math.nan, x), ops.select(zero, y, constant(math.inf, x)))
    return ops.select(both, inside, other)


def _huber(delta: Value, r: Value) -> Value:
    size = ops.absolute(r)
    half = constant(0.5, r)
    inside = ops.multiply(ops.multiply(r, r), half)
    outside = ops.multiply(delta, ops.subtract(size, ops.multiply(delta, half)))
    found = ops.select(ops.less_equal(size, delta), inside, outside)
    return ops.select(ops.less(delta, constant(0, r)), constant(math.inf, r), found)


def _pseudo_huber(delta: Value, r: Value) -> Value:
    """δ² (√(1 + (r/δ)²) - 1) as δ r (r / (√(δ² + r²) + δ)), which neither cancels nor overflows."""
    zero = ops.bitwise_and(ops.equal(delta, constant(0, r)), ops.equal(r, constant(0, r)))
    size = ops.select(zero, constant(1, delta), delta)
    found = ops.multiply(ops.multiply(delta, r), ops.divide(r, ops.add(ops.hypot(size, r), size)))
    infinite = ops.bitwise_and(ops.isinf(r), ops.greater(delta, constant(0, r)))
    found = ops.select(ops.bitwise_or(infinite, ops.less(delta, constant(0, r))), constant(math.inf, r), found)
    return ops.select(zero, constant(0, r), found)


def _log_of_ratio(x: Value, y: Value) -> Value:
    """log(x / y) of positive numbers; from the difference where they are near, from two logarithms where x / y is out of range."""
    ratio = ops.divide(x, y)
    one = constant(1, x)
    near = ops.bitwise_and(ops.greater(ratio, constant(0.5, x)), ops.less(ratio, constant(2, x)))
    tiny = constant(float(np.finfo(x.dtype.numpy).tiny), x)
    inside = ops.bitwise_and(ops.greater(ratio, tiny), ops.isfinite(ratio))
    plain = ops.log(ops.select(inside, ratio, one))
    apart = ops.subtract(ops.log(ops.select(inside, one, x)), ops.log(ops.select(inside, one, y)))
    difference = ops.divide(ops.select(near, ops.subtract(x, y), constant(0, x)), ops.select(near, y, one))
    return ops.select(near, ops.log1p(difference), ops.select(inside, plain, apart))


def _sign_of_gamma(x: Value) -> Value:
    """-1 where Γ is negative: between -1 and 0, -3 and -2, ...; at 0 the sign of 0."""
    below = ops.floor(x)
    odd = ops.not_equal(ops.remainder(below, constant(2, x)), constant(0, x))
    negative = ops.bitwise_and(ops.less(x, constant(0, x)), odd)
    sign = ops.select(negative, constant(-1, x), ops.select(ops.isnan(x), x, constant(1, x)))
    return ops.select(ops.equal(x, constant(0, x)), ops.copysign(constant(1, x), x), sign)


def _below_zero(x: Value) -> Value:
    """nan at -1, -2, ... and -inf, else 0."""
    pole = ops.bitwise_and(_pole(x), ops.less(x, constant(0, x)))
    return ops.select(pole, constant(math.nan, x), constant(0, x))


def _gammasgn(x: Value) -> Value:
    return ops.add(_sign_of_gamma(x), _below_zero(x))


def _in_double(rule: Callable[..., Value]) -> Callable[..., Value]:
    """The rule computed in f64: exp(log Γ) multiplies the error of an f32 logarithm by up to 88."""
    return lambda *xs: cast(rule(*[cast(x, F64) for x in xs]), xs[0].dtype)


def _pole(x: Value) -> Value:
    """Whether Γ has a pole: at 0, -1, -2, ..."""
    return ops.bitwise_and(ops.less_equal(x, constant(0, x)), ops.equal(x, ops.floor(x)))


def _gamma(x: Value) -> Value:
    return ops.add(ops.multiply(_sign_of_gamma(x), ops.exp(ops.lgamma(x))), _below_zero(x))


def _reciprocal_gamma(x: Value) -> Value:
    """Below 1/2 by sin(πx) Γ(1 - x) / π, which has no poles and the right slope at those of Γ."""
    one, zero = constant(1, x), constant(0, x)
    low, vanished = ops.less(x, constant(0.5, x)), ops.greater(x, constant(200, x))
    above = ops.exp(ops.negative(ops.lgamma(ops.select(ops.bitwise_or(low, vanished), one, x))))
    beyond = ops.bitwise_and(_pole(x), ops.less(x, constant(-170, x)))                  # where Γ(1 - x) overflows
    y = ops.select(ops.bitwise_and(low, ops.invert(beyond)), x, zero)
    nearest = ops.rint(y)
    odd = ops.not_equal(ops.remainder(nearest, constant(2, y)), zero)
    sine = ops.sin(ops.multiply(ops.subtract(y, nearest), constant(math.pi, y)))
    size = ops.multiply(ops.multiply(sine, constant(1 / math.pi, y)), ops.exp(ops.lgamma(ops.subtract(one, y))))
    below = ops.select(beyond, zero, ops.select(odd, ops.negative(size), size))
    return ops.select(low, below, ops.select(vanished, zero, above))


# Stirling's series: log Γ(z) - (z - ½) log z + z - ½ log 2π = Σ B_2k / (2k (2k - 1) z^(2k - 1))  (NIST DLMF 5.11.1)
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
LARGE = 10.0


def _stirling_rest(z: Value) -> Value:
    inverse = ops.divide(constant(1, z), z)
    square = ops.multiply(inverse, inverse)
    series = constant(STIRLING[-1], z)
    for coefficient in reversed(STIRLING[:-1]):
        series = ops.add(ops.multiply(series, square), constant(coefficient, z))
    return ops.multiply(series, inverse)


def _log_beta(a: Value, b: Value) -> Value:
    """log |B(a, b)|; where the larger one, z, is large the logarithms of Γ(z) and Γ(z + s) are not subtracted: they would cancel."""
    plain = ops.subtract(ops.add(ops.lgamma(a), ops.lgamma(b)), ops.lgamma(ops.add(a, b)))
    z, s = ops.maximum(a, b), ops.minimum(a, b)
    far = ops.bitwise_and(ops.greater_equal(z, constant(LARGE, z)), ops.greater(s, constant(0, s)))
    z, s = ops.select(far, z, constant(LARGE, z)), ops.select(far, s, constant(1, s))
    total = ops.add(z, s)
    growth = ops.multiply(ops.subtract(total, constant(0.5, z)), ops.log1p(ops.divide(s, z)))
    # log Γ(z) - log Γ(z + s) = s - s log z - (z + s - ½) log(1 + s/z) + rest(z) - rest(z + s)
    parts = ops.subtract(ops.subtract(s, ops.multiply(s, ops.log(z))), growth)
    found = ops.add(ops.add(ops.lgamma(s), parts), ops.subtract(_stirling_rest(z), _stirling_rest(total)))
    infinite = ops.select(ops.isinf(z), constant(-math.inf, z), found)
    return _at_poles(a, b, ops.select(far, infinite, plain), lambda log, sign: log)


def _at_poles(a: Value, b: Value, otherwise: Value, result: Callable[[Value, Value], Value]) -> Value:
    """Where a or b is a pole of Γ: infinite, but finite where the other one is a whole number n > 0 and the pole is at most -n.

    There B(-m, n) = (-1)ⁿ B(m + 1 - n, n).  result(log, sign): what is wanted of that.
    """
    pole_a, pole_b = _pole(a), _pole(b)
    pole = ops.bitwise_or(pole_a, pole_b)
    m, n = ops.select(pole_a, ops.negative(a), ops.negative(b)), ops.select(pole_a, b, a)
    first = ops.subtract(ops.add(m, constant(1, m)), n)
    whole = ops.bitwise_and(ops.equal(n, ops.floor(n)), ops.greater(n, constant(0, n)))
    finite = ops.bitwise_and(pole, ops.bitwise_and(whole, ops.greater(first, constant(0, m))))
    first, n = ops.select(finite, first, constant(1, m)), ops.select(finite, n, constant(1, n))
    log = ops.subtract(ops.add(ops.lgamma(first), ops.lgamma(n)), ops.lgamma(ops.add(first, n)))
    odd = ops.not_equal(ops.remainder(n, constant(2, n)), constant(0, n))
    found = result(log, ops.select(odd, constant(-1, n), constant(1, n)))
    nan = ops.bitwise_or(ops.isnan(a), ops.isnan(b))
    at_pole = ops.select(finite, found, ops.select(nan, constant(math.nan, a), constant(math.inf, a)))
    return ops.select(pole, at_pole, otherwise)


def _beta(a: Value, b: Value) -> Value:
    sign = ops.multiply(ops.multiply(_sign_of_gamma(a), _sign_of_gamma(b)), _sign_of_gamma(ops.add(a, b)))
    return _at_poles(a, b, ops.multiply(sign, ops.exp(_log_beta(a, b))), lambda log, sign: ops.multiply(sign, ops.exp(log)))


def _power_of_ten(x: Value) -> Value:
    return ops.exp(ops.multiply(x, constant(math.log(10.0), x)))


def _xlogy(x: Value, y: Value) -> Value:
    return _times_log(x, y, ops.log, 0.0)


def _xlog1py(x: Value, y: Value) -> Value:
    return _times_log(x, y, ops.log1p, -1.0)


class Composed(NamedTuple):
    """A function composed of ops: its rule, meaning, and the value where all arguments are 0.5, rounded (for its example)."""

    rule: Callable[..., Value]
    doc: str
    at_half: float
    arity: int = 1


COMPOSED = {
    "logit": Composed(_logit, "log(x / (1 - x)).", 0.0),
    "log_expit": Composed(_log_sigmoid, "log(1 / (1 + exp(-x))), without overflow.", -0.4741),
    "gamma": Composed(_in_double(_gamma), "The gamma function.", 1.7725),
    "gammasgn": Composed(_gammasgn, "The sign of the gamma function.", 1.0),
    "rgamma": Composed(_in_double(_reciprocal_gamma), "1 / Γ(x), 0 at the poles of Γ.", 0.5642),
    "beta": Composed(_in_double(_beta), "Γ(x) Γ(y) / Γ(x + y).", 3.1416, arity=2),
    "betaln": Composed(_log_beta, "log |beta(x, y)|.", 1.1447, arity=2),
    "xlogy": Composed(_xlogy, "x log(y), 0 where x is 0.", -0.3466, arity=2),
    "xlog1py": Composed(_xlog1py, "x log(1 + y), 0 where x is 0.", 0.2027, arity=2),
    "ndtr": Composed(_in_double(_normal_distribution), "The normal distribution function.", 0.6915),
    "entr": Composed(_entropy, "-x log(x), 0 at 0, -inf below.", 0.3466),
    "rel_entr": Composed(_relative_entropy, "x log(x / y), 0 where x is 0, inf for negative arguments.", 0.0, arity=2),
    "kl_div": Composed(_kullback_leibler, "x log(x / y) - x + y, y where x is 0, inf for negative arguments.", 0.0, arity=2),
    "huber": Composed(_huber, "r**2 / 2 where |r| <= delta, else delta (|r| - delta / 2); inf for negative delta.", 0.125, arity=2),
    "pseudo_huber": Composed(_pseudo_huber, "delta**2 (sqrt(1 + (r / delta)**2) - 1), inf for negative delta.", 0.1036, arity=2),
    "exp10": Composed(_power_of_ten, "10**x.", 3.1623),
}
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
        special_ufunc(name, composed.rule)
        found[name] = _function(name, composed.arity, composed.doc, composed.at_half)
    return found


# ----- by SciPy's loops
BY_LOOP = sorted([name for name in {*PARTIAL_DERIVATIVES, "jn"} if not name.startswith("_")])


def function_by_loop(name: str) -> Any:
    """A ufunc of scipy.special as a function of traced and plain arrays; None if there is none, or SciPy is not installed."""
    try:
        import scipy.special
    except ImportError:
        if name in BY_LOOP:
            raise UnsupportedError(f"bw.scipy.special.{name} is computed by SciPy's loops, and SciPy is not installed") from None
        return None
    ufunc = getattr(scipy.special, name, None)
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
    value = real_value(x)
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
    value = real_value(a)
    total = constant(d * (d - 1) * 0.25 * math.log(math.pi), value)
    for k in range(d):
        total = ops.add(total, ops.lgamma(ops.subtract(value, constant(0.5 * k, value))))
    return fresh(total)


def by_loop(name: str, *xs: Any) -> Any:
    """A function of scipy.special of handles or numbers, inside a trace; SciPy is loaded for it."""
    import scipy.special

    return fresh(evaluate(ufunc_named(name, getattr(scipy.special._ufuncs, name)), xs))


@graph_function
def zeta(x: Any, q: Any = None) -> Any:
    """Σ 1 / (q + k)**x over k = 0, 1, ... (q = 1 by default), as scipy.special.zeta; the derivative by x is not known.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.special.zeta(np.array([2.0])).round(4).tolist()
    [1.6449]
    """
    value = fresh(real_value(x))
    return by_loop("_riemann_zeta", value) if q is None else by_loop("_zeta", value, q)


@graph_function
def factorial(n: Any) -> Any:
    """Γ(n + 1), 0 for negative n, as scipy.special.factorial with exact=False.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.special.factorial(np.array([0.0, 3.0])).tolist()
    [1.0, 6.0]
    """
    value = real_value(n)
    below = ops.less(value, constant(0, value))
    above = ops.add(ops.select(below, constant(0, value), value), constant(1, value))
    return fresh(ops.select(below, constant(0, value), _in_double(_gamma)(above)))


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


@graph_function
def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False) -> Any:
    """log(sum(b * exp(a))) over an axis or axes (None: over all) without overflow, as scipy.special.logsumexp.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.special.logsumexp(np.array([[0.0, 0.0], [1000.0, 0.0]]), axis=1).round(4).tolist()
    [0.6931, 1000.0]
    """
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
    """exp(x) / sum(exp(x)), as scipy.special.softmax (over all axes by default).

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.special.softmax(np.array([0.0, 0.0])).tolist()
    [0.5, 0.5]
    """
    return nn_softmax(x, axis)


@graph_function
def log_softmax(x: Any, axis: Any = None) -> Any:
    """log(softmax(x)), as scipy.special.log_softmax (over all axes by default).

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.special.log_softmax(np.array([0.0, 1000.0])).tolist()
    [-1000.0, 0.0]
    """
    value = real_value(x)
    return fresh(log_softmax_value(value, normalize_axes(axis, value.rank)))


FUNCTIONS = {**_elementwise_functions(), **{function.__name__: function for function in (
    polygamma, multigammaln, zeta, factorial, comb, logsumexp, softmax, log_softmax)}}
