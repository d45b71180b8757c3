"""erf, erfc, erfinv, lgamma (log|gamma|) and digamma as IR."""

from __future__ import annotations

import math

from bwcompiler.lowering.math import coefficients as table
from bwcompiler.lowering.math.emitter import F32, Body, Value, two_product, two_sum_ordered
from bwcompiler.lowering.math.exponential import (
    coefficients,
    log,
    reduce_exponential,
)
from bwcompiler.lowering.math.hyperbolic import divide_pair


def erf(body: Body, x: Value) -> Value:
    """|x| < 1: x + x P(x^2); above: 1 - e^Q(|x|), Q a polynomial for log(erfc)."""
    size = body.fabs(x)
    z = size * size
    small = body.multiply_add(x, body.polynomial(z, coefficients("ERF_SMALL", x.format)), x)
    bounded = body.at_most(size, 4.0 if x.format is F32 else 6.0)
    parts = reduce_exponential(body, body.polynomial(bounded, coefficients("ERF_LARGE", x.format)))
    large = 1.0 - body.multiply_add(parts.fraction, parts.power.value(), parts.power.value())
    return body.select(size < 1.0, small, body.copysign(large, x))


def erfc(body: Body, x: Value) -> Value:
    """e^(-a^2) P(q) / (1 + 2a) with a = |x|, q = (a - c)/(a + c); 2 minus that for x < 0; 1 - erf(x) for a < 1/2."""
    single = x.format is F32
    center = 2.0 if single else 4.0
    a = body.at_most(body.fabs(x), 10.1 if single else 27.3)
    values = coefficients("ERFC", x.format)
    q = (a - center) / (a + center)
    top, top_low = two_sum_ordered(body.constant(values[0]), q * body.polynomial(q, values[1:]))
    bottom, bottom_low = two_sum_ordered(body.select(a > 0.5, a + a, 1.0), body.select(a > 0.5, 1.0, a + a))
    ratio, ratio_low = divide_pair(body, (top, top_low), (bottom, bottom_low))
    square, square_low = two_product(a, a)
    parts = reduce_exponential(body, -square, -square_low)
    high, low = parts.pair()
    value, value_low = two_product(high, ratio)
    value_low = value_low + body.multiply_add(high, ratio_low, low * ratio)
    tail = parts.power.scale(value + value_low)
    negative = (2.0 - parts.power.scale(value)) - parts.power.scale(value_low)
    z = x * x
    near = (1.0 - x) - x * body.polynomial(z, coefficients("ERF_SMALL", x.format))
    return body.select(body.fabs(x) < 0.5, near, body.select(x < 0.0, negative, tail))


def erfinv(body: Body, x: Value) -> Value:
    """x P(w) with w = -log((1 - x)(1 + x)); for large w, x Q(sqrt(w))."""
    a = body.fabs(x)
    product = body.multiply_add(-a, a, 1.0)
    product = body.select(a > 0.5, (1.0 - a) * (1.0 + a), product)
    w = -log(body, product)
    if x.format is F32:
        root = body.sqrt(body.at_least(w, 5.0))
        near = body.polynomial(w - 2.5, table.ERFINV_NEAR_F32)
        ratio = body.select(w < 5.0, near, body.polynomial(root - 3.0, table.ERFINV_FAR_F32))
    else:
        root = body.sqrt(body.at_least(w, 6.0))
        near = body.polynomial(w - 3.0, table.ERFINV_NEAR_F64)
        middle = body.polynomial(root - 3.25, table.ERFINV_MIDDLE_F64)
        far = body.polynomial(root - 5.0, table.ERFINV_FAR_F64)
        ratio = body.select(w < 6.0, near, body.select(w < 16.0, middle, far))
    return body.select(a.equals(1.0), body.copysign(math.inf, x), x * ratio)


def sine_of_pi(body: Body, a: Value) -> tuple[Value, Value]:
    """(f, |sin(pi a)|) with f = a - round(a)."""
    f = a - body.roundeven(a)
    return f, body.fabs(f * body.polynomial(f * f, coefficients("SINPI", a.format)))


def lgamma_of_positive(body: Body, a: Value) -> Value:
    """log(gamma(a)) for a >= 0.

    a < 9/2: e Q(e) + log(P) or - log(D), e the distance from 2 of a + j, j in {2, 1, 0, -1, -2}, and P or D the product
    of the steps. Above: (a - 1/2)(log a - 1) + (log(2 pi) - 1)/2 + B(1/a^2)/a.
    """
    large = a > 4.5
    below, above = a < 1.25, a > 2.5
    tiny, twice = a < 0.5, a > 3.5
    e = body.select(twice, a - 4.0, body.select(above, a - 3.0, a - 2.0))
    e = body.select(below, body.select(tiny, a, a - 1.0), e)
    steps = body.select(twice, (a - 1.0) * (a - 2.0), body.select(above, a - 1.0, 1.0))
    steps = body.select(below, body.select(tiny, body.multiply_add(a, a, a), a), steps)
    logarithm = log(body, body.select(large, a, steps))
    series = body.polynomial(e, coefficients("LGAMMA_NEAR", a.format))
    near = body.multiply_add(e, series, body.select(below, -logarithm, logarithm))
    inverse = 1.0 / a
    tail = inverse * body.polynomial(inverse * inverse, coefficients("LGAMMA_FAR", a.format))
    far = body.multiply_add(a - 0.5, logarithm - 1.0, tail + LOG_2PI_LESS_ONE_HALVED)
    return body.select(large, far, near)


LOG_2PI_LESS_ONE_HALVED = 0.5 * (math.log(2.0 * math.pi) - 1.0)


def lgamma(body: Body, x: Value) -> Value:
    """log|gamma(x)|; for x < 0: log(pi / (|x| |sin(pi x)|)) - log(gamma(|x|))."""
    a = body.fabs(x)
    positive = lgamma_of_positive(body, a)
    _, sine = sine_of_pi(body, a)
    reflected = -log(body, a * sine * (1.0 / math.pi)) - positive
    reflected = body.select(a < (2.0**-30 if x.format is F32 else 2.0**-60), positive, reflected)
    reflected = body.select(sine.equals(0.0), math.inf, reflected)
    result = body.select(x < 0.0, reflected, positive)
    return body.select(a.equals(math.inf), math.inf, result)


# The positive root of digamma less 1, to double length.
DIGAMMA_ROOT = {
    "f32": (float.fromhex("0x1.d8b618p-2"), float.fromhex("0x1.ab5f2p-27")),
    "f64": (float.fromhex("0x1.d8b618d5af8fep-2"), float.fromhex("-0x1.1e563779a1f5bp-56")),
}


def digamma_of_positive(body: Body, a: Value) -> Value:
    """a < 4: (1 + e - root) P(e) and steps 1/(..), 1 + e in [1, 2]. Above: log a - 1/(2a) - B(1/a^2)/a^2."""
    large = a > 4.0
    below, second, third = a < 1.0, a >= 2.0, a >= 3.0
    e = body.select(below, a, body.select(third, a - 3.0, body.select(second, a - 2.0, a - 1.0)))
    high, low = DIGAMMA_ROOT[a.format.dtype]
    near = ((e - high) - low) * body.polynomial(e - 0.5, coefficients("DIGAMMA_NEAR", a.format))
    # -1/a, 0, 1/(a-1), 1/(a-1) + 1/(a-2) = (2a - 3) / ((a-1)(a-2))
    top = body.select(below, -1.0, body.select(third, body.multiply_add(a, 2.0, -3.0), body.select(second, 1.0, 0.0)))
    bottom = body.select(below, a, body.select(third, (a - 1.0) * (a - 2.0), body.select(second, a - 1.0, 1.0)))
    bottom = body.select(large, a, bottom)
    quotient = body.select(large, 1.0, top) / bottom
    w = quotient * quotient
    tail = body.multiply_add(quotient, 0.5, w * body.polynomial(w, coefficients("DIGAMMA_FAR", a.format)))
    return body.select(large, log(body, a) - tail, near + quotient)


def digamma(body: Body, x: Value) -> Value:
    """digamma(-a) = digamma(a) + 1/a + pi cot(pi a)."""
    a = body.fabs(x)
    positive = digamma_of_positive(body, a)
    f, sine = sine_of_pi(body, a)
    z, (one, *rest) = f * f, coefficients("COSPI", a.format)
    cosine = body.fma(body.horner(z, rest), z, one)  # near 0 where f is near 1/2
    cotangent = math.pi * cosine / body.copysign(sine, f)
    reflected = (positive + 1.0 / a) + cotangent
    reflected = body.select(a < (2.0**-30 if x.format is F32 else 2.0**-60), 1.0 / a, reflected)
    reflected = body.select(sine.equals(0.0) | a.equals(math.inf), math.nan, reflected)
    result = body.select(x < 0.0, reflected, positive)
    result = body.select(x.equals(0.0), body.copysign(math.inf, -x), result)
    return body.select(x.equals(math.inf), x, result)
