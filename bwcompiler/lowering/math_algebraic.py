"""Roots as IR: sqrt, cbrt, hypot."""

from __future__ import annotations

import math

from bwcompiler.lowering import math_coefficients as table
from bwcompiler.lowering.math_emitter import F32, F64, Body, Value, two_product

ROUNDING_MAGIC = 1.5 * 2.0**52  # n + this holds the integer n in its low bits


def sqrt(body: Body, x: Value) -> Value:
    return body.sqrt(x)


def cbrt(body: Body, x: Value) -> Value:
    """x = 2^(3 q) t m with m in [1/2, 1), t in {1/2, 1, 2}: 2^q (t m)^(1/3), by steps towards (t m)^(-1/3)."""
    wide = x.converted(F64)
    magnitude = body.fabs(wide)
    small = magnitude < F64.smallest_normal
    normal = body.select(small, magnitude * 2.0**54, magnitude) if x.format is F64 else magnitude
    bits = normal.bits()
    code = bits >> 52  # exponent + 1022, x = m 2^exponent
    mantissa = ((bits & ((1 << 52) - 1)) | F64.bits_of(0.5)).as_float()
    exponent = (code | F64.bits_of(2.0**52)).as_float() - (2.0**52 + 1022)
    # q = exponent / 3 rounded, in the low bits of `shifted`
    shifted = body.fma(exponent, 1.0 / 3.0, ROUNDING_MAGIC)
    q = shifted - ROUNDING_MAGIC
    remainder = body.fma(q, -3.0, exponent)
    one = body.constant(1.0, F64)
    above, below = remainder > 0.0, remainder < 0.0
    scaled = mantissa * body.select(above, 2.0, body.select(below, 0.5, one))
    factor = body.select(above, 2.0 ** (-1 / 3), body.select(below, 2.0 ** (1 / 3), one))
    inverse = body.polynomial(mantissa, table.CBRT) * factor
    for _ in range(1 if x.format is F32 else 2):
        # r (1 - e)^(-1/3) with e = 1 - m r^3
        error = body.fma(-scaled, inverse * inverse * inverse, 1.0)
        inverse = body.fma(inverse * error, body.fma(error, 2.0 / 9.0, 1.0 / 3.0), inverse)
    square = inverse * inverse
    root = scaled * square
    root_square, root_square_low = two_product(root, root)
    residual = body.fma(-root_square_low, root, body.fma(-root_square, root, scaled))
    root = body.fma(residual * square, 1.0 / 3.0, root)
    power = ((shifted.bits() + F64.bias) << 52).as_float()
    result = root * power
    if x.format is F64:
        result = body.select(small, result * 2.0**-18, result)
    passes = x.equals(0.0) | ~(body.fabs(x) < math.inf)
    return body.select(passes, x, body.copysign(result.converted(x.format), x))


def hypot(body: Body, x: Value, y: Value) -> Value:
    """sqrt(x^2 + y^2); f32 in f64 arithmetic, f64 with both operands scaled by a power of two."""
    infinite = body.fabs(x).equals(math.inf) | body.fabs(y).equals(math.inf)
    if x.format is F32:
        a, b = x.converted(F64), y.converted(F64)
        return body.select(infinite, math.inf, body.sqrt(body.fma(a, a, b * b)).converted(F32))
    a, b = body.fabs(x), body.fabs(y)
    first = a > b
    larger, smaller = body.select(first, a, b), body.select(first, b, a)
    scale = body.select(larger > 2.0**500, 2.0**-600, body.select(larger < 2.0**-400, 2.0**600, 1.0))
    back = body.select(larger > 2.0**500, 2.0**600, body.select(larger < 2.0**-400, 2.0**-600, 1.0))
    larger, smaller = larger * scale, smaller * scale
    square, square_low = two_product(larger, larger)
    other = smaller * smaller
    total = square + other
    rest = (other - (total - square)) + square_low
    root = body.sqrt(total)
    positive = body.select(root > 0.0, root, 1.0)
    root = body.fma(body.fma(-root, root, total) + rest, 0.5 / positive, root)
    return body.select(infinite, math.inf, root * back)
