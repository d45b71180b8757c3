"""tanh, sinh, cosh and their inverses, sigmoid and logaddexp as IR: made of the parts in `exponential.py`."""

from __future__ import annotations

import math

from bwcompiler.lowering.math.emitter import F32, Body, Value, two_sum, two_sum_ordered
from bwcompiler.lowering.math.exponential import (
    coefficients,
    exponent_limits,
    log1p_of_pair,
    log_of_pair,
    reduce_exponential,
)


def divide_pair(body: Body, top: tuple[Value, Value], bottom: tuple[Value, Value]) -> tuple[Value, Value]:
    """(top) / (bottom) as quotient and correction."""
    inverse = 1.0 / bottom[0]
    quotient = top[0] * inverse
    residual = body.fma(-quotient, bottom[0], top[0]) + body.multiply_add(-quotient, bottom[1], top[1])
    return quotient, residual * inverse


def rounded_quotient(body: Body, top: tuple[Value, Value], bottom: tuple[Value, Value]) -> Value:
    quotient, correction = divide_pair(body, top, bottom)
    return quotient + correction


def tanh(body: Body, x: Value) -> Value:
    """|x| < 0.55: x + x^3 P(x^2); above: 1 - 2 / (1 + e^(2|x|)), where an ulp of 1 bounds the quotient's error."""
    magnitude = body.fabs(x)
    z = x * x
    small = body.multiply_add(x * z, body.polynomial(z, coefficients("TANH", x.format)), x)
    parts = reduce_exponential(body, body.at_most(magnitude, 10.0 if x.format is F32 else 20.0) * 2.0)
    power = parts.power.value()
    large = 1.0 - 2.0 / body.multiply_add(parts.fraction, power, power + 1.0)
    return body.copysign(body.select(magnitude < 0.55, small, large), x)


def sigmoid(body: Body, x: Value) -> Value:
    """1 / (1 + z) for x >= 0, z / (1 + z) for x < 0, with z = e^-|x|."""
    magnitude = body.at_most(body.fabs(x), -exponent_limits(x.format)[0])
    parts = reduce_exponential(body, -magnitude)
    high, low = parts.pair()
    z, z_low = parts.power.scale(high), parts.power.scale(low)
    total, rest = two_sum_ordered(body.constant(1.0), z)
    negative = x < 0.0
    top = body.select(negative, z, 1.0)
    return rounded_quotient(body, (top, body.select(negative, z_low, 0.0)), (total, rest + z_low))


def half_exponential(body: Body, magnitude: Value) -> tuple[Value, Value]:
    """e^|x| / 2, possibly inf, and the correction that rounding e^r = 1 + (e^r - 1) left out, scaled alike."""
    parts = reduce_exponential(body, body.at_most(magnitude, exponent_limits(magnitude.format)[1] + 1.0))
    high, low = parts.pair()
    return parts.power.scale(high, -1), parts.power.scale(low, -1)


def cosh(body: Body, x: Value) -> Value:
    """E + 1 / (4 E) with E = e^|x| / 2."""
    half, low = half_exponential(body, body.fabs(x))
    return half + (0.25 / half + low)


def sinh(body: Body, x: Value) -> Value:
    """|x| < 1: x + x^3 P(x^2); above: E - 1 / (4 E) with E = e^|x| / 2."""
    magnitude = body.fabs(x)
    z = x * x
    small = body.multiply_add(x * z, body.polynomial(z, coefficients("SINH", x.format)), x)
    half, low = half_exponential(body, magnitude)
    large = body.copysign(half - (0.25 / half - low), x)
    return body.select(magnitude < 1.0, body.copysign(small, x), large)


def arcsinh(body: Body, x: Value) -> Value:
    """log1p(a + a^2 / (1 + sqrt(1 + a^2))) with a = |x|; log(a) + ln2 where a^2 + 1 = a^2."""
    magnitude = body.fabs(x)
    huge = magnitude > 2.0 ** (x.format.mantissa_bits // 2 + 4)
    a = body.select(huge, 1.0, magnitude)
    square = a * a
    square_low = body.fma(a, a, -square)
    root_square, root_low = two_sum(square, body.constant(1.0))
    root = body.sqrt(root_square)
    root_low = (body.fma(-root, root, root_square) + (root_low + square_low)) * (0.5 / root)
    bottom, bottom_low = two_sum_ordered(root, body.constant(1.0))
    term, term_low = divide_pair(body, (square, square_low), (bottom, bottom_low + root_low))
    total, total_low = two_sum_ordered(a, term)
    small = log1p_of_pair(body, total, total_low + term_low)
    large = log_of_pair(body, magnitude, math.log(2.0))
    result = body.select(huge, large, small)
    passes = magnitude < 2.0 ** -(x.format.mantissa_bits // 2 + 4)
    return body.copysign(body.select(passes | magnitude.equals(math.inf), magnitude, result), x)


def arccosh(body: Body, x: Value) -> Value:
    """log1p(t + sqrt(t (2 + t))) with t = x - 1; log(x) + ln2 where x^2 - 1 = x^2."""
    huge = x > 2.0 ** (x.format.mantissa_bits // 2 + 4)
    t = body.select(huge, 1.0, x - 1.0)
    square = t * t
    double = t + t
    radicand, radicand_low = two_sum(double, square)
    radicand_low = radicand_low + body.fma(t, t, -square)
    root = body.sqrt(radicand)
    positive = body.select(root > 0.0, root, 1.0)
    root_low = (body.fma(-root, root, radicand) + radicand_low) * (0.5 / positive)
    total, total_low = two_sum(root, t)
    small = log1p_of_pair(body, total, total_low + root_low)
    result = body.select(huge, log_of_pair(body, x, math.log(2.0)), small)
    result = body.select(x >= 1.0, result, math.nan)
    return body.select(x.equals(math.inf), x, result)


def arctanh(body: Body, x: Value) -> Value:
    """log1p(2a / (1 - a)) / 2 with a = |x| and the sign of x."""
    magnitude = body.fabs(x)
    inside = magnitude < 1.0
    a = body.select(inside, magnitude, 0.5)
    bottom, bottom_low = two_sum_ordered(body.constant(1.0), -a)
    quotient, low = divide_pair(body, (a + a, body.constant(0.0)), (bottom, bottom_low))
    result = 0.5 * log1p_of_pair(body, quotient, low)
    result = body.select(magnitude < 2.0 ** -(x.format.mantissa_bits // 2 + 4), magnitude, result)
    outside = body.select(magnitude.equals(1.0), math.inf, math.nan)
    return body.copysign(body.select(inside, result, outside), x)


def logaddexp(body: Body, x: Value, y: Value) -> Value:
    """max(x, y) + log1p(e^-|x - y|); where these cancel, the error is that of the larger term."""
    first = x > y
    larger, smaller = body.select(first, x, y), body.select(first, y, x)
    difference, rest = two_sum(smaller, -larger)
    equal = x.equals(y)
    difference = body.select(equal, 0.0, difference)
    bounded = body.at_least(difference, exponent_limits(x.format)[0])
    # Far apart, the rounding error of the difference is lost anyway; it may be NaN where an operand is infinite.
    rest = body.select(equal | (difference < bounded), 0.0, rest)
    parts = reduce_exponential(body, bounded)
    high, low = parts.pair()
    low = body.multiply_add(high, rest, low)
    result = larger + log1p_of_pair(body, parts.power.scale(high), parts.power.scale(low))
    return body.select(x.unordered(y), x + y, result)
