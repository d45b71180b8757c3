"""Sine, cosine, tangent and their inverses as IR.

Start at `quadrant_function`.  Angles below 2^20 are reduced by subtraction of n pi/2, with pi/2 in three parts (Cody and Waite, 1980:
`near_angle_f64`); in vectors that have others, these are reduced by Payne and Hanek's method (1983), which is exact to double length for
every finite angle, and takes three times as long (`far_angle_f64`).  f32 angles are computed in f64 arithmetic, where short polynomials
suffice.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

from bwcompiler.lowering.math import coefficients as table
from bwcompiler.lowering.math.emitter import (
    F32,
    F64,
    Body,
    FloatFormat,
    Value,
    two_product,
    two_sum,
    two_sum_ordered,
)
from bwcompiler.lowering.math.exponential import coefficients

HALF_PI = (float.fromhex("0x1.921fb54442d18p+0"), float.fromhex("0x1.1a62633145c07p-54"), float.fromhex("-0x1.f1976b7ed8fbcp-110"))
HALF_PI_SHORT = (float.fromhex("0x1.921fb544p+0"), float.fromhex("0x1.0b46p-34"))     # HALF_PI[0] in parts of 33 and 17 bits
NEAR = 2.0**20  # so n has 20 bits: its products with these parts are exact
ROUNDING_MAGIC = 1.5 * 2.0**52  # n + this holds the integer n in its low bits, |n| < 2^51
PLACES = 1344  # binary places of table.TWO_OVER_PI
ROW_SHIFT_F64 = 5
ROW_STEP_F64, FIRST_F64 = 1 << ROW_SHIFT_F64, 1023 + 29  # row 0: |x| < 2^29; each further row 32 exponents
ROWS_F64 = (2047 - FIRST_F64 + ROW_STEP_F64) // ROW_STEP_F64 + 1
SHORT_WORDS = 5  # of 29 bits: the product of an angle below 2^128 with what follows is below 2^-19


def rounded_word(value: int) -> tuple[float, int]:
    """(mantissa, shift): mantissa 2^shift is `value` rounded to the 53 bits of a float64."""
    shift = max(value.bit_length() - 53, 0)
    mantissa = (value + (1 << shift >> 1)) >> shift
    return float(mantissa), shift


@functools.cache
def two_over_pi_f64() -> tuple[tuple[float, ...], ...]:
    """Four words of each row i: (2/pi mod 2^(2 - e)) 2^(32 i), 2^e being the last bit of the row's least angle."""
    rows = []
    for row in range(ROWS_F64):
        scale = ROW_STEP_F64 * row
        rest = table.TWO_OVER_PI
        if row:
            least_bit = FIRST_F64 - ROW_STEP_F64 + scale - 1023 - 52
            rest %= 1 << (PLACES + 2 - least_bit)
        words = []
        for _ in range(4):
            sign, magnitude = (-1, -rest) if rest < 0 else (1, rest)
            mantissa, shift = rounded_word(magnitude)
            words.append(sign * math.ldexp(mantissa, shift - PLACES + scale))
            rest -= sign * (int(mantissa) << shift)
        rows.append(tuple(words))
    return tuple(zip(*rows, strict=True))


@functools.cache
def quarter_words_f32() -> tuple[float, ...]:
    """1/(2 pi) cut into words of 29 bits, whose products with f32 angles are exact, and a last word of 53 bits."""
    places = [PLACES - 29 * (index + 1) for index in range(SHORT_WORDS)]
    words = [math.ldexp(float((table.TWO_OVER_PI >> low) % (1 << 29)), low - PLACES - 2) for low in places]
    mantissa, shift = rounded_word(table.TWO_OVER_PI % (1 << places[-1]))
    return (*words, math.ldexp(mantissa, shift - PLACES - 2))


@dataclass(frozen=True)
class Angle:
    """x = (n + multiple of 4) pi/2 + high + low, |high| <= pi/4; `quadrant` holds n mod 4 in its low bits."""

    high: Value
    low: Value
    quadrant: Value


def quadrant_bits(n: Value) -> Value:
    """The integer n, |n| < 2^51, in the low bits."""
    return (n + ROUNDING_MAGIC).bits()


def row_index(body: Body, x: Value) -> Value:
    """The row of `two_over_pi_f64` for x; the last one for inf and NaN."""
    least = FIRST_F64 - ROW_STEP_F64
    size = body.at_least(body.fabs(x), math.ldexp(1.0, least - F64.bias))
    return ((size.bits() >> F64.mantissa_bits) - least) >> ROW_SHIFT_F64


def reduce_angle(body: Body, x: Value, single: bool) -> Angle:
    """The reduction of an angle; single: it is one of f32."""
    near, far = (near_angle_f32, far_angle_f32) if single else (near_angle_f64, far_angle_f64)
    found = near(body, x)

    def others() -> tuple[Value, Value, Value]:
        angle = far(body, x)
        return angle.high, angle.low, angle.quadrant

    return Angle(*body.unless(~(body.fabs(x) > NEAR), [found.high, found.low, found.quadrant], others))


def near_angle_f64(body: Body, x: Value) -> Angle:
    """x - n pi/2 to double length for |x| <= NEAR, -0 for -0; none of these is nearer than 2^-61 to another multiple of pi/2 than 0.

    The difference from n HALF_PI[0] is exact, as a multiple of 2^-53 below 1.  What is left has an error of 2^-138, from the term before
    the last.
    """
    n, quadrant = nearest_quadrant(body, x)
    first = minus_multiple(body, x, n)
    product, product_low = two_product(n, body.constant(HALF_PI[1]))
    high, low = two_sum(first, -product)
    return Angle(high, body.multiply_add(-n, HALF_PI[2], low - product_low), quadrant)


def near_angle_f32(body: Body, x: Value) -> Angle:
    """x - n pi/2 in f64: angles of f32 below NEAR are not nearer than 2^-28 to another multiple of pi/2 than 0."""
    n, quadrant = nearest_quadrant(body, x)
    return Angle(body.multiply_add(-n, HALF_PI[1], minus_multiple(body, x, n)), body.constant(0.0, F64), quadrant)


def nearest_quadrant(body: Body, x: Value) -> tuple[Value, Value]:
    """(n, n in low bits): x 2/pi rounded to an integer."""
    shifted = body.multiply_add(x, 2.0 / math.pi, ROUNDING_MAGIC)
    return shifted - ROUNDING_MAGIC, shifted.bits()


def minus_multiple(body: Body, x: Value, n: Value) -> Value:
    """x - n HALF_PI[0], exactly."""
    if body.has_fma:
        return body.fma(-n, HALF_PI[0], x)
    return (x - n * HALF_PI_SHORT[0]) - n * HALF_PI_SHORT[1]


def far_angle_f64(body: Body, x: Value) -> Angle:
    """x 2/pi mod 4 from four words of 2/pi that start where their product with x is below 2^87.

    Bits of 2/pi whose product with every angle of the row is a multiple of 4 are left out, so the product's head is
    small enough for the rest to keep more than 120 bits after the point.
    """
    index = row_index(body, x)
    words = [
        body.load(f"bw.two_over_pi.f64.{i}", column, index, F64) for i, column in enumerate(two_over_pi_f64())
    ]
    scaled = (x.bits() - (index << (F64.mantissa_bits + ROW_SHIFT_F64))).as_float()
    head, head_low = two_product(scaled, words[0])
    middle, middle_low = two_product(scaled, words[1])
    tail, tail_low = two_product(scaled, words[2])
    head = body.multiply_add(body.roundeven(head * 0.25), -4.0, head)
    middle, middle_rest = two_sum(head_low, middle)
    middle = body.multiply_add(body.roundeven(middle * 0.25), -4.0, middle)
    total, total_rest = two_sum(head, middle)
    n = body.roundeven(total)
    fraction, fraction_rest = two_sum(total - n, middle_rest)
    second, second_rest = two_sum(tail, middle_low)
    fraction, more = two_sum(fraction, second)
    rest = total_rest + fraction_rest + more
    fraction, rest = two_sum(fraction, rest)
    rest = rest + (second_rest + body.multiply_add(scaled, words[3], tail_low))
    fraction, rest = two_sum_ordered(fraction, rest)
    high, low = two_product(fraction, body.constant(HALF_PI[0]))
    low = body.multiply_add(fraction, HALF_PI[1], body.multiply_add(rest, HALF_PI[0], low))
    high, low = two_sum_ordered(high, low)
    return Angle(high, low, quadrant_bits(n))


def far_angle_f32(body: Body, x: Value) -> Angle:
    """x / (2 pi) word by word, each exact product less its nearest integer; NaN where x is infinite.

    Added from the first word on, a sum rounds only once the remaining words are below 2^-29, which no f32 angle's
    distance from a multiple of pi/2 is.
    """
    *words, last = quarter_words_f32()
    products = [x * word for word in words]
    turns = [product - body.roundeven(product) for product in products]
    turns.append(x * last)
    total = turns[-1]
    for turn in reversed(turns[:-1]):
        total = turn + total
    shifted = body.multiply_add(total, 4.0, ROUNDING_MAGIC)
    fraction = -(shifted - ROUNDING_MAGIC)
    for turn in turns:
        fraction = body.multiply_add(turn, 4.0, fraction)
    return Angle(fraction * HALF_PI[0], body.constant(0.0, F64), shifted.bits())


def sine_cosine_f64(body: Body, angle: Angle) -> tuple[Value, Value]:
    """sin(r + l) = r + (r^3 S(r^2) + l (1 - r^2/2)), cos(r + l) = 1 - r^2/2 + (r^4 C(r^2) - r l)."""
    r, low = angle.high, angle.low
    z = r * r
    half = z * 0.5
    sine = r + body.multiply_add(r * z, body.polynomial(z, table.SIN_F64), body.multiply_add(-half, low, low))
    head = 1.0 - half
    tail = body.multiply_add(z * z, body.polynomial(z, table.COS_F64), -(r * low))
    return sine, head + (((1.0 - head) - half) + tail)


def sine_cosine_f32(body: Body, angle: Angle) -> tuple[Value, Value]:
    """r (1 + z S(z)) keeps the sign of a zero; the error of f64 arithmetic does not show."""
    r = angle.high
    z = r * r
    sine = r * body.multiply_add(z, body.polynomial(z, table.SIN_WIDE), 1.0)
    return sine, body.multiply_add(z, body.polynomial(z, (-0.5, *table.COS_WIDE)), 1.0)


def quadrant_function(body: Body, x: Value, name: str) -> Value:
    """sin, cos or tan of x by quadrants; NaN for inf and NaN."""
    wide = x.converted(F64)
    single = x.format is F32
    angle = reduce_angle(body, wide, single)
    sine, cosine = sine_cosine_f32(body, angle) if single else sine_cosine_f64(body, angle)
    even = (angle.quadrant & 1).is_zero()
    if name == "tan":
        top, bottom = body.select(even, sine, cosine), body.select(even, cosine, -sine)
        result = top / bottom
    else:
        first, second = (sine, cosine) if name == "sin" else (cosine, sine)
        turn = angle.quadrant if name == "sin" else angle.quadrant + 1
        result = (body.select(even, first, second).bits() ^ (((turn >> 1) & 1) << 63)).as_float()
    result = result.converted(x.format)
    size = body.fabs(x)
    if not single:
        result = body.select(size < math.inf, result, x - x)
    # Next to 0, the angle itself: also where it is subnormal or -0.
    return result if name == "cos" else body.select(size < 2.0 ** -(x.format.mantissa_bits // 2 + 1), x, result)


def sin(body: Body, x: Value) -> Value:
    return quadrant_function(body, x, "sin")


def cos(body: Body, x: Value) -> Value:
    return quadrant_function(body, x, "cos")


def tan(body: Body, x: Value) -> Value:
    return quadrant_function(body, x, "tan")


def arctangent_pair(body: Body, offset: tuple[Value, Value], t: Value) -> Value:
    """offset + atan(t) for |t| <= 1/2."""
    z = t * t
    tail = body.multiply_add(t * z, body.polynomial(z, coefficients("ATAN", t.format)), offset[1])
    total = offset[0] + t
    # |offset| >= pi/4 > |t|, or offset = 0 and the sum is exact.
    return total + ((t - (total - offset[0])) + tail)


def arctan(body: Body, x: Value) -> Value:
    """atan(a) = atan(t) + {0, pi/4, pi/2}, t = a, (a-1)/(a+1) or -1/a, for a = |x| below 1/2, 2, and above."""
    a = body.fabs(x)
    near, far = a < 0.5, a > 2.0
    top = body.select(near, a, body.select(far, -1.0, a - 1.0))
    bottom = body.select(near, 1.0, body.select(far, a, a + 1.0))
    offset = [
        body.select(near, 0.0, body.select(far, half, quarter))
        for half, quarter in zip(half_pi(x.format), half_pi(x.format, 0.5), strict=True)
    ]
    return body.copysign(arctangent_pair(body, (offset[0], offset[1]), top / bottom), x)


def half_pi(format_: FloatFormat, factor: float = 1.0) -> tuple[float, float]:
    """factor pi/2 to double length, for a factor that is a power of two."""
    if format_ is F64:
        return HALF_PI[0] * factor, HALF_PI[1] * factor
    high = F32.round(HALF_PI[0])
    return high * factor, F32.round(HALF_PI[0] - high) * factor


def arctan2(body: Body, y: Value, x: Value) -> Value:
    """Angle of (x, y): atan(smaller/larger) in the first octant, mirrored by y > x, then by x < 0, then by y < 0."""
    a, b = body.fabs(y), body.fabs(x)
    steep = a > b
    larger, smaller = body.select(steep, a, b), body.select(steep, b, a)
    both_infinite = smaller.equals(math.inf)
    larger = body.select(both_infinite | larger.equals(0.0), 1.0, larger)
    smaller = body.select(both_infinite, 1.0, smaller)
    huge = larger > 2.0 ** (x.format.bias - 2)
    scale = body.select(huge, 0.25, 1.0)
    larger, smaller = larger * scale, smaller * scale
    diagonal = smaller > larger * 0.5
    t = body.select(diagonal, smaller - larger, smaller) / body.select(diagonal, smaller + larger, larger)
    # The mirrors only change the sign of t and the offset, a multiple of pi/4.
    left = is_negative(x)
    flip = (steep & ~left) | (~steep & left)
    signed = body.select(flip, -t, t)
    quarters = body.select(steep, body.select(left, body.select(diagonal, 3.0, 2.0), body.select(diagonal, 1.0, 2.0)),
                           body.select(left, body.select(diagonal, 3.0, 4.0), body.select(diagonal, 1.0, 0.0)))
    high, low = half_pi(x.format, 0.5)
    product = quarters * high
    result = arctangent_pair(body, (product, body.multiply_add(quarters, low, body.fma(quarters, high, -product))), signed)
    result = body.select(x.unordered(y), x + y, result)
    return body.copysign(result, y)


def is_negative(x: Value) -> Value:
    """The sign bit, also of a zero."""
    return ~(x.bits() >> (x.format.mantissa_bits + (8 if x.format is F32 else 11))).is_zero()


def arcsine_parts(body: Body, x: Value) -> tuple[Value, Value, Value, Value]:
    """(inner, s, tail, s_low): asin(s + s_low) = s + tail, s = |x| where inner = |x| <= 1/2, else sqrt((1 - |x|)/2)."""
    a = body.fabs(x)
    inner = a <= 0.5
    half = body.multiply_add(a, -0.5, 0.5)
    root = body.sqrt(half)
    positive = body.select(root > 0.0, root, 1.0)
    root_low = body.fma(-root, root, half) * (0.5 / positive)
    z = body.select(inner, a * a, half)
    s = body.select(inner, a, root)
    low = body.select(inner, 0.0, root_low)
    return inner, s, body.multiply_add(s * z, body.polynomial(z, coefficients("ASIN", x.format)), low), low


def arcsin(body: Body, x: Value) -> Value:
    """asin(a), or pi/2 - 2 asin(sqrt((1 - a)/2)) for a = |x| > 1/2; NaN outside [-1, 1] from the root."""
    inner, s, tail, _ = arcsine_parts(body, x)
    high, low = half_pi(x.format)
    outer = body.constant(high) - 2.0 * s
    rest = (high - outer) - 2.0 * s
    outer = outer + (rest + body.multiply_add(tail, -2.0, low))
    return body.copysign(body.select(inner, s + tail, outer), x)


def arccos(body: Body, x: Value) -> Value:
    """pi/2 - asin(x) for |x| <= 1/2; 2 asin(sqrt((1 - x)/2)) above; pi - that of -x below."""
    inner, s, tail, _ = arcsine_parts(body, x)
    negative = x < 0.0
    # result = offset + factor (s + tail)
    factor = body.select(inner, body.select(negative, 1.0, -1.0), body.select(negative, -2.0, 2.0))
    high, low = half_pi(x.format)
    offset, offset_low = (
        body.select(inner, part, body.select(negative, 2.0 * part, 0.0)) for part in (high, low)
    )
    step = factor * s
    total, rest = two_sum(offset, step)
    return total + (rest + body.multiply_add(factor, tail, offset_low))
