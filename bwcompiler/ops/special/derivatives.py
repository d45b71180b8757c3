"""Partial derivatives of the functions of scipy.special that are computed by SciPy's own loops; families of them have files of their own.

A rule takes the result (a list, where there are several) and the operands, and gives the partial derivative by one operand.  Numbers in
parentheses are equations of the NIST Digital Library of Mathematical Functions (https://dlmf.nist.gov).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from bwcompiler.ir.op import Value
from bwcompiler.ops.broadcasting import broadcast, reduce_sum
from bwcompiler.ops.creation import iota
from bwcompiler.ops.elementwise import (
    bitwise_and,
    bitwise_or,
    cast,
    cos,
    cosh,
    equal,
    exp,
    floor,
    full_like,
    greater,
    greater_equal,
    invert,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    log,
    log1p,
    maximum,
    power,
    select,
    sign,
    sin,
    sinh,
    sqrt,
    stop_gradient,
)
from bwcompiler.ops.special.functions import digamma, erf, erfcx, lgamma
from bwcompiler.ops.special.loops import Rule, function, known
from bwcompiler.ops.special.series import polynomial, with_series


def _times_log(x: Value, y: Value) -> Value:
    """x log(y), 0 where x is 0 and the logarithm is not finite."""
    outside = bitwise_or(less_equal(y, full_like(y, 0.0)), isinf(y))
    zero = bitwise_and(equal(x, full_like(x, 0.0)), outside)
    return select(zero, full_like(x, 0.0), x * log(select(zero, full_like(y, 1.0), y)))


def _one_at_zero(x: Value, otherwise: Callable[[Value], Value]) -> Value:
    """otherwise(x), but 1 where x is 0, of which otherwise sees 1."""
    zero = equal(x, full_like(x, 0.0))
    return select(zero, full_like(x, 1.0), otherwise(select(zero, full_like(x, 1.0), x)))


# ----- error functions and the normal distribution
ROOT_PI = math.sqrt(math.pi)
known("erfcinv", lambda out, x: exp(out * out) * (-ROOT_PI / 2))
known("erfi", lambda out, x: exp(x * x) * (2 / ROOT_PI))
known("dawsn", lambda out, x: 1.0 - x * out * 2.0)
known("ndtri", lambda out, x: exp(out * out * 0.5) * math.sqrt(2 * math.pi))
known("log_ndtr", lambda out, x: math.sqrt(2 / math.pi) / erfcx(x * -math.sqrt(0.5)))
known("ndtri_exp", lambda out, x: erfcx(out * -math.sqrt(0.5)) * math.sqrt(math.pi / 2))
known("fresnel", lambda out, x: (sin(x * x * (math.pi / 2)), cos(x * x * (math.pi / 2))))
known("owens_t", lambda out, h, a: exp(h * h * -0.5) * erf(a * h * math.sqrt(0.5)) * (-0.5 / math.sqrt(2 * math.pi)),
       lambda out, h, a: exp(h * h * (a * a + 1.0) * -0.5) / ((a * a + 1.0) * (2 * math.pi)))


# ----- exponential integrals
def _expn_slope(out: Value, n: Value, x: Value) -> Value:
    """-E(n - 1, x) (8.19.13); E(-1, x) = exp(-x) (1 + 1/x) / x."""
    below = less(n, full_like(n, 0.5))
    previous = function("expn")(select(below, full_like(n, 1.0), n) - 1.0, x)
    return -select(below, exp(-x) * (1.0 / x + 1.0) / x, previous)


known("expi", lambda out, x: exp(x) / x)
known("exp1", lambda out, x: -(exp(-x) / x))
known("expn", None, _expn_slope)
known("sici", lambda out, x: (_one_at_zero(x, lambda y: sin(y) / y), cos(x) / x))
known("shichi", lambda out, x: (_one_at_zero(x, lambda y: sinh(y) / y), cosh(x) / x))
known("spence", lambda out, x: -_one_at_zero(x - 1.0, lambda y: log1p(y) / y))


# ----- integrals over v > 0 of functions that fall off like exp(-v / scale)
NODES, FIRST_NODE, NODE_DISTANCE = 96, -3.6, 0.09375


def _spread(x: Value) -> Value:
    """x once for each node, along a new last axis."""
    return broadcast(x, shape=(*x.shape, NODES), axes=tuple(range(x.rank)))


def _integral(integrand: Callable[[Value], Value], scale: Value) -> Value:
    """By the double exponential rule v = scale exp(t - exp(-t)), trapezoidal in t (H. Takahasi and M. Mori, 1974).

    The nodes count as constants for derivatives: those of an integral do not depend on how it is computed.
    """
    shape = (*scale.shape, NODES)
    t = iota(shape=shape, axis=scale.rank, dtype=scale.dtype) * NODE_DISTANCE + FIRST_NODE
    fading = exp(-t)
    v = _spread(stop_gradient(scale)) * exp(t - fading)
    return reduce_sum(integrand(v) * v * (fading + 1.0), axes=(scale.rank,)) * NODE_DISTANCE


def _inside(condition: Value, x: Value, instead: float) -> Value:
    return select(condition, x, full_like(x, instead))


def _gamma_by_shape(a: Value, x: Value) -> Value:
    """∂P(a, x)/∂a = ∫₀ˣ (log t - ψ(a)) f(t) dt with f the density, t = x exp(-v); for x beyond a and 1 minus ∫ₓ^∞, t = x + v."""
    one = full_like(x, 1.0)
    finite = bitwise_and(greater(x, full_like(x, 0.0)), isfinite(x))
    y = _inside(finite, x, 1.0)
    upper = bitwise_and(greater_equal(y, a), greater_equal(y, one))
    psi, log_gamma = digamma(a), lgamma(a)
    high, low = _inside(upper, y, 1.0), select(upper, one, y)
    high_a, low_a = _inside(upper, a, 1.0), select(upper, one, a)

    def above(v: Value) -> Value:
        t = _spread(high) + v
        log_t = log(t)
        return (log_t - _spread(psi)) * exp(_spread(high_a - 1.0) * log_t - t - _spread(log_gamma))

    def below(v: Value) -> Value:
        log_t = _spread(log(low)) - v
        return (log_t - _spread(psi)) * exp(_spread(low_a) * log_t - exp(log_t) - _spread(log_gamma))

    more = _inside(greater(high_a, one), high_a - 1.0, 0.0)
    beyond = _integral(above, 1.0 / (_inside(less(more, high), 1.0 - more / high, 0.0) + sqrt(more) / high))
    small = less(low, one)
    up_to = _integral(below, 1.0 / select(small, low_a, _inside(less(low, low_a), low_a - low, 0.0) + sqrt(low)))
    found = select(finite, select(upper, -beyond, up_to), full_like(x, 0.0))
    return select(bitwise_or(isnan(x), less_equal(a, full_like(a, 0.0))), full_like(x, math.nan), found)


def _lower_beta(a: Value, b: Value, x: Value, by_first: bool) -> Value:
    """∂I/∂a or ∂I/∂b of I = Iₓ(a, b) for x up to the mean: ∫₀ˣ (log t - ψ(a) + ψ(a + b)) f(t) dt, or of log(1 - t); t = x exp(-v)."""
    one = full_like(x, 1.0)
    rest = one - x
    slope = _inside(greater(b, one), (b - 1.0) * x / rest, 0.0)
    scale = 1.0 / (_inside(less(slope, a), a - slope, 0.0) + sqrt(slope / rest))
    log_x, shift = log(x), digamma(a if by_first else b) - digamma(a + b)
    log_scale = function("betaln")(a, b)

    def integrand(v: Value) -> Value:
        log_t = _spread(log_x) - v
        log_rest = log1p(-exp(log_t))
        weight = exp(_spread(a) * log_t + _spread(b - 1.0) * log_rest - _spread(log_scale))
        return ((log_t if by_first else log_rest) - _spread(shift)) * weight

    return _integral(integrand, scale)


def _beta_by_shape(a: Value, b: Value, x: Value, by_first: bool) -> Value:
    """Where x is beyond the mean by Iₓ(a, b) = 1 - I(b, a) at 1 - x."""
    zero, one = full_like(x, 0.0), full_like(x, 1.0)
    valid = bitwise_and(greater(a, zero), greater(b, zero))
    a, b = _inside(valid, a, 1.0), _inside(valid, b, 1.0)
    inside = bitwise_and(greater(x, zero), less(x, one))
    y = _inside(inside, x, 0.5)
    low = less_equal(y * (a + b), a)
    first, second, place = select(low, a, b), select(low, b, a), select(low, y, one - y)
    by_a, by_b = (_lower_beta(first, second, place, kind) for kind in (True, False))
    found = select(low, by_a, -by_b) if by_first else select(low, by_b, -by_a)
    known = bitwise_and(valid, bitwise_and(greater_equal(x, zero), less_equal(x, one)))
    return select(known, select(inside, found, zero), full_like(x, math.nan))


# ----- gamma and beta distributions
def _gamma_density(a: Value, x: Value) -> Value:
    """x**(a - 1) exp(-x) / Γ(a)."""
    return exp(_times_log(a - 1.0, x) - x - lgamma(a))


def _beta_density(a: Value, b: Value, x: Value) -> Value:
    """x**(a - 1) (1 - x)**(b - 1) / B(a, b)."""
    rest, one = b - 1.0, full_like(x, 1.0)
    zero = bitwise_and(equal(rest, full_like(rest, 0.0)), greater_equal(x, one))
    other = select(zero, full_like(rest, 0.0), rest * log1p(-select(zero, full_like(x, 0.0), x)))
    return exp(_times_log(a - 1.0, x) + other - function("betaln")(a, b))


known("betaln", lambda out, a, b: digamma(a) - digamma(a + b), lambda out, a, b: digamma(b) - digamma(a + b))
known("gammainc", lambda out, a, x: _gamma_by_shape(a, x), lambda out, a, x: _gamma_density(a, x))
known("gammaincc", lambda out, a, x: -_gamma_by_shape(a, x), lambda out, a, x: -_gamma_density(a, x))
for _name, _sign in (("gammaincinv", 1.0), ("gammainccinv", -1.0)):
    known(_name, lambda out, a, y: -(_gamma_by_shape(a, out) / _gamma_density(a, out)),
           lambda out, a, y, sign=_sign: sign / _gamma_density(a, out))
known("betainc", lambda out, a, b, x: _beta_by_shape(a, b, x, True), lambda out, a, b, x: _beta_by_shape(a, b, x, False),
       lambda out, a, b, x: _beta_density(a, b, x))
known("betaincc", lambda out, a, b, x: -_beta_by_shape(a, b, x, True), lambda out, a, b, x: -_beta_by_shape(a, b, x, False),
       lambda out, a, b, x: -_beta_density(a, b, x))
for _name, _sign in (("betaincinv", 1.0), ("betainccinv", -1.0)):
    known(_name, lambda out, a, b, y: -(_beta_by_shape(a, b, out, True) / _beta_density(a, b, out)),
           lambda out, a, b, y: -(_beta_by_shape(a, b, out, False) / _beta_density(a, b, out)),
           lambda out, a, b, y, sign=_sign: sign / _beta_density(a, b, out))
known("loggamma", lambda out, x: digamma(x))


def _is_pole(x: Value) -> Value:
    """Whether Γ(x) is infinite: x = 0, -1, -2, ..."""
    return bitwise_and(less_equal(x, full_like(x, 0.0)), equal(x, floor(x)))


def _past_poles(name: str, slope: Rule, at: Callable[[Value, Value], Value], operand: int) -> Rule:
    """slope(out, x, y), a difference of digammas times out; where these are infinite (`at`) and out is 0, the mean of the slopes a small
    step to both sides along an operand, whose error is of the order of the step squared."""
    def rule(out: Value, x: Value, y: Value) -> Value:
        pole = at(x, y)
        step = select(pole, full_like(x, 1e-5 if x.dtype.itemsize == 8 else 1e-2), full_like(x, 0.0))
        sides = []
        for moved in (step, -step):
            place = (x + moved, y) if operand == 0 else (x, y + moved)
            sides.append(slope(function(name)(*place), *place))
        return select(pole, (sides[0] + sides[1]) * 0.5, slope(out, x, y))
    return rule


known("poch", _past_poles("poch", lambda out, a, m: out * (digamma(a + m) - digamma(a)),
                           lambda a, m: _is_pole(a), 0), lambda out, a, m: out * digamma(a + m))
known("binom", _past_poles("binom", lambda out, n, k: out * (digamma(n + 1.0) - digamma(n - k + 1.0)),
                            lambda n, k: bitwise_or(_is_pole(n + 1.0), _is_pole(n - k + 1.0)), 0),
       _past_poles("binom", lambda out, n, k: out * (digamma(n - k + 1.0) - digamma(k + 1.0)),
                   lambda n, k: bitwise_and(bitwise_or(_is_pole(k + 1.0), _is_pole(n - k + 1.0)), invert(_is_pole(n + 1.0))), 1))
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798)


def _zeta_by_order(out: Value | None, s: Value, q: Value) -> Value:
    """-Σ log(q + k) / (q + k)ˢ: ten terms, and the rest by the formula of Euler and Maclaurin (25.11.28), differentiated by s."""
    total = None
    for k in range(10):
        place = q + float(k)
        term = -(log(place) * power(place, -s))
        total = term if total is None else total + term
    place = q + 10.0
    logarithm, falling = log(place), power(place, -s)
    tail = falling * place * (1.0 / (1.0 - s) - logarithm) / (s - 1.0) - falling * logarithm * 0.5
    rising, slope = s, full_like(s, 1.0)                                        # s (s + 1) ... (s + 2j - 2), and its derivative by s
    scale = falling / place
    for j, bernoulli in enumerate(_BERNOULLI, 1):
        tail = tail + (slope - rising * logarithm) * scale * (bernoulli / math.factorial(2 * j))
        for step in (2.0 * j - 1.0, 2.0 * j):
            slope = slope * (s + step) + rising
            rising = rising * (s + step)
        scale = scale / (place * place)
    assert total is not None
    return total + tail


known("_zeta", _zeta_by_order, lambda out, x, q: -(x * function("_zeta")(x + 1.0, q)))                                    # 25.11.17
def _riemann_slope(out: Value | None, s: Value) -> Value:
    """For s < 0 of ζ(s) = 2ˢ πˢ⁻¹ sin(πs/2) Γ(1 - s) ζ(1 - s) (25.4.1), as the terms cancel there."""
    left = less(s, full_like(s, 0.0))
    mirrored = select(left, 1.0 - s, full_like(s, 2.0))
    value, slope = function("_riemann_zeta")(mirrored), _zeta_by_order(None, mirrored, full_like(s, 1.0))
    half = (1.0 - mirrored) * (math.pi / 2)
    scale = exp((1.0 - mirrored) * math.log(2 * math.pi) + lgamma(mirrored)) * (1 / math.pi)
    odd = sin(half) * ((math.log(2 * math.pi) - digamma(mirrored)) * value - slope)
    reflected = scale * (odd + cos(half) * value * (math.pi / 2))
    return select(left, reflected, _zeta_by_order(None, select(left, full_like(s, 0.5), s), full_like(s, 1.0)))


known("_riemann_zeta", _riemann_slope)


# ----- distribution functions
def _student_density(df: Value, t: Value) -> Value:
    half = df * 0.5
    scale = exp(lgamma(half + 0.5) - lgamma(half)) / sqrt(df * math.pi)
    return scale * exp((half + 0.5) * -log1p(t * t / df))


def _student_by_freedom(df: Value, t: Value) -> Value:
    """For t < 0 the distribution function is half of I(df/2, 1/2) at df / (df + t²), and 1 minus that of -t."""
    half, other, total = df * 0.5, full_like(t, 0.5), df + t * t
    place = df / total
    density = _beta_density(half, other, _inside(less(place, full_like(t, 1.0)), place, 0.5))
    slope = _beta_by_shape(half, other, place, True) * 0.5 + density * (t * t / (total * total))
    return slope * sign(t) * -0.5


def _f_by_freedom(dfn: Value, dfd: Value, x: Value, first: bool) -> Value:
    """I(dfn/2, dfd/2) at dfn x / (dfd + dfn x)."""
    total = dfd + dfn * x
    place = dfn * x / total
    moved = (dfd if first else -dfn) * x / (total * total)
    return _beta_by_shape(dfn * 0.5, dfd * 0.5, place, first) * 0.5 + _beta_density(dfn * 0.5, dfd * 0.5, place) * moved


def _f_density(dfn: Value, dfd: Value, x: Value) -> Value:
    ratio = dfn / (dfn * x + dfd)
    return _beta_density(dfn * 0.5, dfd * 0.5, ratio * x) * ratio * dfd / (dfn * x + dfd)


def _poisson_mass(k: Value, m: Value) -> Value:
    whole = floor(k)
    return exp(_times_log(whole, m) - m - lgamma(whole + 1.0))


known("chdtr", lambda out, v, x: _gamma_by_shape(v * 0.5, x * 0.5) * 0.5, lambda out, v, x: _gamma_density(v * 0.5, x * 0.5) * 0.5)
known("chdtrc", lambda out, v, x: _gamma_by_shape(v * 0.5, x * 0.5) * -0.5, lambda out, v, x: _gamma_density(v * 0.5, x * 0.5) * -0.5)
known("chdtri", lambda out, v, p: -(_gamma_by_shape(v * 0.5, out * 0.5) / _gamma_density(v * 0.5, out * 0.5)),
       lambda out, v, p: -2.0 / _gamma_density(v * 0.5, out * 0.5))
known("gdtr", lambda out, a, b, x: x * _gamma_density(b, a * x), lambda out, a, b, x: _gamma_by_shape(b, a * x),
       lambda out, a, b, x: a * _gamma_density(b, a * x))
known("gdtrc", lambda out, a, b, x: -(x * _gamma_density(b, a * x)), lambda out, a, b, x: -_gamma_by_shape(b, a * x),
       lambda out, a, b, x: -(a * _gamma_density(b, a * x)))
known("fdtr", lambda out, n, d, x: _f_by_freedom(n, d, x, True), lambda out, n, d, x: _f_by_freedom(n, d, x, False),
       lambda out, dfn, dfd, x: _f_density(dfn, dfd, x))
known("fdtrc", lambda out, n, d, x: -_f_by_freedom(n, d, x, True), lambda out, n, d, x: -_f_by_freedom(n, d, x, False),
       lambda out, dfn, dfd, x: -_f_density(dfn, dfd, x))
known("fdtri", lambda out, n, d, p: -(_f_by_freedom(n, d, out, True) / _f_density(n, d, out)),
       lambda out, n, d, p: -(_f_by_freedom(n, d, out, False) / _f_density(n, d, out)),
       lambda out, dfn, dfd, p: 1.0 / _f_density(dfn, dfd, out))
known("stdtr", lambda out, df, t: _student_by_freedom(df, t), lambda out, df, t: _student_density(df, t))
known("stdtrit", lambda out, df, p: -(_student_by_freedom(df, out) / _student_density(df, out)),
       lambda out, df, p: 1.0 / _student_density(df, out))
known("pdtr", None, lambda out, k, m: -_poisson_mass(k, m))
known("pdtrc", None, lambda out, k, m: _poisson_mass(k, m))


# ----- powers
_EXPONENTIAL = [(k + 1) / math.factorial(k + 2) for k in range(9)]     # the slope of (exp(x) - 1) / x


def _power_transform(log_x: Value, out: Value, power_of: Value, exponent: Value) -> Value:
    """By the exponent p: with z = p log x, log(x)² times the slope of (exp(z) - 1) / z; that is (xᵖ log x - out) / p."""
    finite = isfinite(log_x)
    z = exponent * select(finite, log_x, full_like(log_x, 0.0))
    near = bitwise_or(bitwise_and(less(z * z, full_like(z, 0.0025)), finite), equal(exponent, full_like(exponent, 0.0)))
    product = power_of * select(equal(power_of, full_like(power_of, 0.0)), full_like(log_x, 0.0), log_x)
    rest = (product - out) / select(near, full_like(exponent, 1.0), exponent)
    return select(near, log_x * log_x * polynomial(select(near, z, full_like(z, 0.0)), _EXPONENTIAL), rest)


def _inverse_transform(out: Value, y: Value, exponent: Value) -> Value:
    """By the exponent p, of (1 + p y)**(1/p): with u = p y, out y² times the slope of log(1 + u) / u."""
    def by(u: Value) -> Value:
        return (1.0 / (u + 1.0) - log1p(u) / u) / u
    return out * y * y * with_series(exponent * y, [(-1.0) ** (k + 1) * (k + 1) / (k + 2) for k in range(18)], by)


known("boxcox", lambda out, x, p: power(x, p - 1.0), lambda out, x, p: _power_transform(log(x), out, power(x, p), p))
known("boxcox1p", lambda out, x, p: exp((p - 1.0) * log1p(x)), lambda out, x, p: _power_transform(log1p(x), out, exp(p * log1p(x)), p))
known("inv_boxcox", lambda out, y, p: out / (p * y + 1.0), lambda out, y, p: _inverse_transform(out, y, p))
known("inv_boxcox1p", lambda out, y, p: (out + 1.0) / (p * y + 1.0), lambda out, y, p: _inverse_transform(out + 1.0, y, p))


def _relative_exponential(out: Value, x: Value) -> Value:
    """((x - 1) exp(x) + 1) / x²; near 0 its series."""
    return with_series(x, _EXPONENTIAL, lambda x: (exp(x) - out) / x)


known("exprel", _relative_exponential)
known("cosm1", lambda out, x: -sin(x))
for _name, _slope, _factor in (("sindg", "cosdg", 1.0), ("cosdg", "sindg", -1.0)):
    known(_name, lambda out, x, slope=_slope, factor=_factor: function(slope)(x) * (factor * math.pi / 180))
known("tandg", lambda out, x: (out * out + 1.0) * (math.pi / 180))
known("cotdg", lambda out, x: (out * out + 1.0) * (-math.pi / 180))
known("wrightomega", lambda out, x: out / (out + 1.0))
known("wright_bessel", None, None, lambda out, a, b, x: function("wright_bessel")(a, a + b, x))


# ----- orthogonal polynomials, by their argument (18.9.15 - 18.9.21)
def _polynomial(lower: str, factor: Callable[..., Value], *middle: Callable[..., Value], inner: float = 1.0,
                mirror: tuple[float, float] | None = None) -> Rule:
    """factor(n, parameters) times the polynomial of degree n - 1 of another family, of which x is multiplied by inner.

    The degree n may be any number: these are functions of hypergeometric type.  mirror = (c, s): that of degree -n is s times that of
    degree n - c; without it polynomials of degrees -1, -2, ... are zero.
    """
    def rule(out: Value, n: Value, *rest: Value) -> Value:
        *parameters, x = rest
        side = full_like(n, 1.0)
        if mirror is not None:
            below = bitwise_and(less(n, full_like(n, 0.0)), equal(n, floor(n)))
            n, side = select(below, -n - mirror[0], n), select(below, full_like(n, mirror[1]), side)
        constant = bitwise_and(less_equal(n, full_like(n, 0.0)), equal(n, floor(n)))
        degree = select(constant, full_like(n, 1.0), n) - 1.0
        slope = function(lower)(degree, *[one(n, *parameters) for one in middle], x * inner if inner != 1.0 else x)
        return select(constant, full_like(x, 0.0), side * factor(n, *parameters) * slope)
    return rule


def _constant(value: float) -> Callable[..., Value]:
    return lambda n, *parameters: full_like(n, value)


def _hermite(name: str, factor: float) -> Callable[..., Value]:
    """factor n times the polynomial of degree n - 1; n is an integer."""
    def rule(out: Value, n: Value, x: Value) -> Value:
        below = maximum(n - full_like(n, 1), full_like(n, 0))
        return cast(n, dtype=x.dtype) * factor * function(name)(below, x)
    return rule


known("eval_hermite", None, _hermite("eval_hermite", 2.0), of_integers=True)
known("eval_hermitenorm", None, _hermite("eval_hermitenorm", 1.0), of_integers=True)
known("eval_chebyt", None, _polynomial("eval_chebyu", lambda n: n, mirror=(0.0, 1.0)))
known("eval_chebyu", None, _polynomial("eval_gegenbauer", _constant(2.0), _constant(2.0), mirror=(2.0, -1.0)))
known("eval_chebyc", None, _polynomial("eval_chebyu", lambda n: n, inner=0.5, mirror=(0.0, 1.0)))
known("eval_chebys", None, _polynomial("eval_gegenbauer", _constant(1.0), _constant(2.0), inner=0.5, mirror=(2.0, -1.0)))
known("eval_legendre", None, _polynomial("eval_gegenbauer", _constant(1.0), _constant(1.5), mirror=(1.0, 1.0)))
known("eval_gegenbauer", None, None, _polynomial("eval_gegenbauer", lambda n, a: a * 2.0, lambda n, a: a + 1.0))
known("eval_jacobi", None, None, None, _polynomial("eval_jacobi", lambda n, a, b: (n + a + b + 1.0) * 0.5, lambda n, a, b: a + 1.0,
                                                    lambda n, a, b: b + 1.0))
known("eval_sh_jacobi", None, None, None, _polynomial("eval_sh_jacobi", lambda n, p, q: n, lambda n, p, q: p + 2.0,
                                                       lambda n, p, q: q + 1.0))
known("eval_laguerre", None, _polynomial("eval_genlaguerre", _constant(-1.0), _constant(1.0)))
known("eval_genlaguerre", None, None, _polynomial("eval_genlaguerre", _constant(-1.0), lambda n, a: a + 1.0))

# ----- statistics of several variables, tests of distributions
known("kolmogorov", lambda out, x: function("_kolmogp")(x))
known("kolmogi", lambda out, p: 1.0 / function("_kolmogp")(out))
known("smirnov", None, lambda out, n, d: function("_smirnovp")(n, d))
known("smirnovi", None, lambda out, n, p: 1.0 / function("_smirnovp")(n, out))
known("chndtr", lambda out, x, df, nc: function("_ncx2_pdf")(x, df, nc), None,
       lambda out, x, df, nc: (function("chndtr")(x, df + 2.0, nc) - out) * 0.5)
known("_ncx2_pdf", lambda out, x, df, nc: (out * (df - 2.0 - x) + nc * function("_ncx2_pdf")(x, df + 2.0, nc)) / (2.0 * x), None,
       lambda out, x, df, nc: (function("_ncx2_pdf")(x, df + 2.0, nc) - out) * 0.5)
known("nctdtr", None, None, lambda out, df, nc, t: function("_nct_pdf")(t, df, nc))
known("ncfdtr", None, None, None, lambda out, dfn, dfd, nc, f: function("_ncf_pdf")(f, dfn, dfd, nc))
known("powm1", lambda out, x, y: y * power(x, y - 1.0), lambda out, x, y: _times_log(power(x, y), x))
