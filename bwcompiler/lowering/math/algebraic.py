"""Roots as IR: sqrt, cbrt, hypot."""

from __future__ import annotations

import math

from bwcompiler.lowering.math import coefficients as table
from bwcompiler.lowering.math.emitter import F32, F64, Body, Value, two_product


def sqrt(body: Body, x: Value) -> Value:
    return body.sqrt(x)


def cbrt(body: Body, x: Value) -> Value:
    """x = 2^(3 q) t m with m in [1/2, 1), t in {1/2, 1, 2}: 2^q (t m)^(1/3), by steps towards (t m)^(-1/3)."""
    format_ = x.format
    width = format_.mantissa_bits
    magic = 1.5 * 2.0**width  # n + this holds the integer n in its low bits
    lift = 54 if format_ is F64 else 24
    magnitude = body.fabs(x)
    small = magnitude < format_.smallest_normal
    bits = body.select(small, magnitude * 2.0**lift, magnitude).bits()
    mantissa = ((bits & ((1 << width) - 1)) | format_.bits_of(0.5)).as_float()
    exponent = ((bits >> width) | format_.bits_of(2.0**width)).as_float() - (2.0**width + format_.bias - 1)
    # q = exponent / 3 rounded, in the low bits of `shifted`
    shifted = body.multiply_add(exponent, 1.0 / 3.0, magic)
    remainder = body.multiply_add(shifted - magic, -3.0, exponent)
    above, below = remainder > 0.0, remainder < 0.0
    scaled = mantissa * body.select(above, 2.0, body.select(below, 0.5, 1.0))
    factor = body.select(above, 2.0 ** (-1 / 3), body.select(below, 2.0 ** (1 / 3), 1.0))
    inverse = body.polynomial(mantissa, table.CBRT) * factor
    for _ in range(1 if format_ is F32 else 2):
        # r (1 - e)^(-1/3) with e = 1 - m r^3
        error = body.multiply_add(-scaled, inverse * inverse * inverse, 1.0)
        inverse = body.multiply_add(inverse * error, body.multiply_add(error, 2.0 / 9.0, 1.0 / 3.0), inverse)
    square = inverse * inverse
    root = scaled * square
    root_square, root_square_low = two_product(root, root)
    residual = body.multiply_add(-root_square_low, root, body.fma(-root_square, root, scaled))
    root = body.multiply_add(residual * square, 1.0 / 3.0, root)
    power = ((shifted.bits() + format_.bias) << width).as_float()
    result = root * power * body.select(small, 2.0 ** (-lift // 3), 1.0)
    passes = x.equals(0.0) | ~(magnitude < math.inf)
    return body.select(passes, x, body.copysign(result, x))


def hypot(body: Body, x: Value, y: Value) -> Value:
    """sqrt(x^2 + y^2); f32 in f64 arithmetic, f64 with both operands scaled by a power of two."""
    infinite = body.fabs(x).equals(math.inf) | body.fabs(y).equals(math.inf)
    if x.format is F32:
        a, b = x.converted(F64), y.converted(F64)
        return body.select(infinite, math.inf, body.sqrt(body.multiply_add(a, a, b * b)).converted(F32))
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
    root = body.multiply_add(body.fma(-root, root, total) + rest, 0.5 / positive, root)
    return body.select(infinite, math.inf, root * back)
