"""Functions of scipy.special that are composed of ops: what its ufuncs do on traced arrays (by name, SciPy is not imported).

`COMPOSED` is the table; `bw.scipy.special` has the same functions for plain arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bwcompiler import ops
from bwcompiler.frontend.numpy.elementwise.ufuncs import special_ufunc
from bwcompiler.frontend.tracing.operands import cast, constant
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import F64


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
    first = ops.greater_equal(a, b)
    z, s = ops.select(first, a, b), ops.select(first, b, a)                 # not by maximum, which has a kink where they are equal
    far = ops.bitwise_and(ops.greater_equal(z, constant(LARGE, z)), ops.greater(s, constant(0, s)))
    both = ops.equal(s, constant(math.inf, s))                              # nan, as in SciPy
    rising = ops.bitwise_and(ops.equal(z, constant(math.inf, z)), ops.less(s, constant(0, s)))
    z, s = ops.select(far, z, constant(LARGE, z)), ops.select(far, s, constant(1, s))
    total = ops.add(z, s)
    growth = ops.multiply(ops.subtract(total, constant(0.5, z)), ops.log1p(ops.divide(s, z)))
    # log Γ(z) - log Γ(z + s) = s - s log z - (z + s - ½) log(1 + s/z) + rest(z) - rest(z + s)
    parts = ops.subtract(ops.subtract(s, ops.multiply(s, ops.log(z))), growth)
    found = ops.add(ops.add(ops.lgamma(s), parts), ops.subtract(_stirling_rest(z), _stirling_rest(total)))
    infinite = ops.select(ops.isinf(z), constant(-math.inf, z), found)
    found = ops.select(far, infinite, ops.select(rising, constant(math.inf, z), plain))
    return _at_poles(a, b, ops.select(both, constant(math.nan, z), found), lambda log, sign: log)


def _at_poles(a: Value, b: Value, otherwise: Value, result: Callable[[Value, Value], Value]) -> Value:
    """Where a or b is a pole of Γ: infinite, but finite where the other one is a whole number n > 0 and the pole is at most -n.

    There B(-m, n) = (-1)ⁿ B(m + 1 - n, n).  result(log, sign): what is wanted of that.
    """
    pole_a, pole_b = _pole(a), _pole(b)
    pole = ops.bitwise_or(pole_a, pole_b)
    m, n = ops.select(pole_a, ops.negative(a), ops.negative(b)), ops.select(pole_a, b, a)
    first = ops.subtract(ops.add(m, constant(1, m)), n)
    whole = ops.bitwise_and(ops.equal(n, ops.floor(n)), ops.greater(n, constant(0, n)))
    finite = ops.bitwise_and(ops.bitwise_and(pole, ops.isfinite(m)), ops.bitwise_and(whole, ops.greater(first, constant(0, m))))
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
    return ops.power(constant(10.0, x), x)         # to the last digit, which exp(x log 10) is not


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

for _name, _composed in COMPOSED.items():
    special_ufunc(_name, _composed.rule)
