"""Exponentials and logarithms as IR: exp, exp2, expm1, log, log2, log10, log1p and pow.

Start at `reduce_exponential` (x = n ln2 + r, e^r - 1 = r + r^2 q(r)) and `split_exponent` (x = 2^k m, m near 1).
A pair (high, low) of values stands for their unevaluated sum.
"""

from __future__ import annotations

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

# ln2 = high + low: high is short enough for n * high to be exact for every |n| < 2^11 (f64), 2^8 (f32).
LN2_HIGH = {"f32": float.fromhex("0x1.62e4p-1"), "f64": float.fromhex("0x1.62e42fefa3p-1")}
LN2_LOW = {"f32": float.fromhex("0x1.7f7d1cp-20"), "f64": float.fromhex("0x1.3de6af278ece6p-42")}
SQRT_HALF = math.sqrt(0.5)


@dataclass(frozen=True)
class PowerOfTwo:
    """2^n for integers n kept in the low bits of `code`, as n + 2 bias."""

    body: Body
    code: Value
    format: FloatFormat

    def value(self, offset: int = 0) -> Value:
        """2^(n + offset), where that is a normal number."""
        return ((self.code + (offset - self.format.bias)) << self.format.mantissa_bits).as_float()

    def scale(self, x: Value, offset: int = 0) -> Value:
        """x 2^(n + offset) in two steps: rounded once, also where the result is subnormal or the power overflows."""
        first, second = self._halves(offset)
        return x * first * second

    def scale_next_to_one(self, fraction: Value) -> Value:
        """`scale` of 1 + fraction: the first step is that of the sum, since a power of two changes no bits of it."""
        first, second = self._halves(0)
        return self.body.multiply_add(fraction, first, first) * second

    def _halves(self, offset: int) -> tuple[Value, Value]:
        """Two powers whose product is 2^(n + offset), both normal numbers."""
        code = self.code + offset if offset else self.code
        half = code >> 1
        return (half << self.format.mantissa_bits).as_float(), ((code - half) << self.format.mantissa_bits).as_float()


def round_to_power(body: Body, x: Value, factor: float) -> tuple[Value, PowerOfTwo]:
    """(n, 2^n) with n = x factor rounded to an integer, for |n| < 3 bias / 2.

    Adding 1.5 2^52 leaves n in the low mantissa bits: no conversion to integers is needed.
    """
    magic = 1.5 * 2.0**x.format.mantissa_bits + 2 * x.format.bias
    shifted = body.multiply_add(x, factor, magic) if factor != 1.0 else x + magic
    return shifted - magic, PowerOfTwo(body, shifted.bits(), x.format)


def coefficients(name: str, format_: FloatFormat) -> tuple[float, ...]:
    values: tuple[float, ...] = getattr(table, f"{name}_{format_.dtype.upper()}")
    return values


@dataclass(frozen=True)
class Exponential:
    """e^x = 2^n (1 + r + tail), with |r + tail| < 0.42 and tail = r^2 factor < r^2."""

    power: PowerOfTwo
    r: Value
    square: Value
    factor: Value
    n: Value

    @property
    def tail(self) -> Value:
        return self.square * self.factor

    @property
    def fraction(self) -> Value:
        """e^r - 1."""
        return self.r.body.multiply_add(self.square, self.factor, self.r)

    def pair(self) -> tuple[Value, Value]:
        """e^r as (high, low)."""
        minus_one, low = two_sum_ordered(self.r, self.tail)
        high, more = two_sum_ordered(minus_one.body.constant(1.0), minus_one)
        return high, low + more


def reduce_exponential(body: Body, x: Value, low: Value | None = None) -> Exponential:
    """The reduction of e^(x + low), with x clamped so that n stays in range; NaN passes through r."""
    dtype = x.format.dtype
    n, power = round_to_power(body, x, math.log2(math.e))
    r = body.multiply_add(-n, LN2_LOW[dtype], body.multiply_add(-n, LN2_HIGH[dtype], x))
    if low is not None:
        r = r + low
    return Exponential(power, r, r * r, body.polynomial(r, coefficients("EXP", x.format)), n)


def clamp(body: Body, x: Value, low: float, high: float) -> Value:
    """x within [low, high]; NaN stays."""
    return body.at_least(body.at_most(x, high), low)


def exponent_limits(format_: FloatFormat) -> tuple[float, float]:
    """Below the first e^x is 0, above the second it is inf."""
    return (-104.0, 89.0) if format_ is F32 else (-746.0, 710.0)


def exp(body: Body, x: Value) -> Value:
    """Beyond the limits, where n is no integer of this size, what has been computed is put aside: that is known before."""
    low, high = exponent_limits(x.format)
    parts = reduce_exponential(body, x)
    result = parts.power.scale_next_to_one(parts.fraction)
    return body.select(x < low, 0.0, body.select(x > high, math.inf, result))


def exp2(body: Body, x: Value) -> Value:
    x = clamp(body, x, -151.0, 129.0) if x.format is F32 else clamp(body, x, -1076.0, 1025.0)
    n, power = round_to_power(body, x, 1.0)
    r = x - n
    return power.scale(body.multiply_add(r, body.polynomial(r, coefficients("EXP2", x.format)), 1.0))


def expm1(body: Body, x: Value) -> Value:
    """2 (2^(n-1) (e^r - 1) + (2^(n-1) - 1/2)); e^x - 1 is -1 where 2^n is below an ulp of 1."""
    parts = reduce_exponential(body, clamp(body, x, -18.0 if x.format is F32 else -40.0, exponent_limits(x.format)[1]))
    half_power = parts.power.value(-1)
    high, low = two_sum_ordered(parts.r, parts.tail)
    shifted = half_power - 0.5
    result = body.multiply_add(high, half_power, shifted) + low * half_power
    return body.copysign(body.select(parts.n.equals(0.0), high, 2.0 * result), x)


@dataclass(frozen=True)
class Logarithm:
    """log(2^k (1 + f)), 1 + f in [sqrt(1/2), sqrt(2)): `f - half_square + tail` is log(1 + f)."""

    k: Value
    f: Value
    half_square: Value
    tail: Value


def split_exponent(body: Body, x: Value, subnormal: bool = True) -> tuple[Value, Value, Value]:
    """(k, m, code) with x = 2^k m, sqrt(1/2) <= m < sqrt(2), for x > 0 finite; code = k + bias as an integer."""
    format_ = x.format
    width = format_.mantissa_bits
    base = 2.0**width + format_.bias
    normal, offset = x, body.constant(base, format_)
    if subnormal:
        lifted = [x * 2.0 ** (width + 2), body.constant(base + width + 2, format_)]
        normal, offset = body.unless(~(x < format_.smallest_normal), [normal, offset], lambda: lifted)
    shift = format_.bits_of(1.0) - format_.bits_of(SQRT_HALF)
    moved = normal.bits() + shift
    code = moved >> width
    mantissa = (moved & ((1 << width) - 1)) + format_.bits_of(SQRT_HALF)
    # code in the low bits of 2^52 becomes a float without a conversion.
    exponent = (code | format_.bits_of(2.0**width)).as_float()
    return exponent - offset, mantissa.as_float(), code


def logarithm_parts(body: Body, k: Value, f: Value, m: Value | None = None) -> Logarithm:
    """f32: f^3 P(f). f64: s (f^2/2 + z R(z)) with s = f / (2 + f), z = s^2, from log(1+f) = 2 atanh(s); m: 1 + f, exactly."""
    half_square = f * f * 0.5
    if f.format is F32:
        return Logarithm(k, f, half_square, f * f * (f * body.polynomial(f, coefficients("LOG", F32))))
    s = f / (2.0 + f if m is None else 1.0 + m)
    z = s * s
    return Logarithm(k, f, half_square, s * body.multiply_add(z, body.polynomial(z, coefficients("LOG", F64)), half_square))


def logarithm_specials(body: Body, x: Value, result: Value) -> Value:
    """-inf at 0, NaN below, inf at inf, for a logarithm of x."""
    def others() -> list[Value]:
        return [body.select(x.equals(math.inf), x, body.select(x.equals(0.0), -math.inf, math.nan))]

    return body.unless((x > 0.0) & (x < math.inf), [result], others)[0]


def natural(body: Body, parts: Logarithm, correction: Value | None = None) -> Value:
    """k ln2 + log(1 + f) + correction."""
    dtype = parts.f.format.dtype
    small = body.multiply_add(parts.k, LN2_LOW[dtype], parts.tail)
    if correction is not None:
        small = small + correction
    return body.multiply_add(parts.k, LN2_HIGH[dtype], parts.f - (parts.half_square - small))


def log(body: Body, x: Value) -> Value:
    k, m, _ = split_exponent(body, x)
    return logarithm_specials(body, x, natural(body, logarithm_parts(body, k, m - 1.0, m)))


def log_of_pair(body: Body, x: Value, offset: float) -> Value:
    """log(x) + offset for finite x > 0, a small constant offset kept to double length by its f64 value."""
    k, m, _ = split_exponent(body, x, subnormal=False)
    high = x.format.round(offset)
    parts = logarithm_parts(body, k, m - 1.0, m)
    small = body.multiply_add(k, LN2_LOW[x.format.dtype], parts.tail) + x.format.round(offset - high)
    large = body.multiply_add(k, LN2_HIGH[x.format.dtype], high)
    return large + (parts.f - (parts.half_square - small))


def log_in_base(body: Body, x: Value, base: int) -> Value:
    """(k ln2 + log(1+f)) / ln(base), the product with 1/ln(base) in double length."""
    k, m, _ = split_exponent(body, x)
    parts = logarithm_parts(body, k, m - 1.0, m)
    f = parts.f
    high = f - parts.half_square
    low = body.multiply_add(f * -0.5, f, f - high) + parts.tail
    factor, factor_low = split_constant(INVERSE_LN[base], x.format)
    product = high * factor
    rest = body.fma(high, factor, -product) + body.multiply_add(low, factor, high * factor_low)
    if base == 2:
        total, error = two_sum_ordered(k, product)
        total, error = body.select(k.equals(0.0), product, total), body.select(k.equals(0.0), 0.0, error)
        return logarithm_specials(body, x, total + (error + rest))
    step, step_low = LOG10_2_HIGH[x.format.dtype], LOG10_2_LOW[x.format.dtype]
    total, error = two_sum(k * step, product)
    return logarithm_specials(body, x, total + (error + body.multiply_add(k, step_low, rest)))


# 1/ln(2) and 1/ln(10) to double length; log10(2) with a head that k multiplies exactly.
INVERSE_LN = {
    2: (float.fromhex("0x1.71547652b82fep+0"), float.fromhex("0x1.777d0ffda0d24p-56")),
    10: (float.fromhex("0x1.bcb7b1526e50ep-2"), float.fromhex("0x1.95355baaafad3p-57")),
}
LOG10_2_HIGH = {"f32": float.fromhex("0x1.344p-2"), "f64": float.fromhex("0x1.34413509f7p-2")}
LOG10_2_LOW = {"f32": float.fromhex("0x1.3509f8p-18"), "f64": float.fromhex("0x1.3fde623e2566bp-43")}


def split_constant(pair: tuple[float, float], format_: FloatFormat) -> tuple[float, float]:
    """A double-length f64 constant as a double-length constant of `format_`."""
    if format_ is F64:
        return pair
    high = F32.round(pair[0])
    return high, F32.round(pair[0] - high + pair[1])


def log2(body: Body, x: Value) -> Value:
    return log_in_base(body, x, 2)


def log10(body: Body, x: Value) -> Value:
    return log_in_base(body, x, 10)


def log1p_of_pair(body: Body, x: Value, low: Value | None) -> Value:
    """log(1 + x + low) for finite 1 + x > 0; f = x 2^-k + (2^-k - 1) is rounded once, and exact where k = 0."""
    format_ = x.format
    u = 1.0 + x
    k, m, code = split_exponent(body, u, subnormal=False)
    scale = ((2 * format_.bias - code) << format_.mantissa_bits).as_float()
    offset = scale - 1.0
    huge = x > 2.0 ** (format_.bias - 2)
    f = body.select(huge, m - 1.0, body.multiply_add(x, scale, offset))
    parts = logarithm_parts(body, k, f)
    if low is None:
        return natural(body, parts)
    # d log(1+f) = df / (1+f), and 1/(1+f) to 2% is enough for a correction below an ulp.
    slope = body.multiply_add(body.multiply_add(f, 0.85, -1.0), f, 1.0)
    return natural(body, parts, body.select(huge, 0.0, low * scale * slope))


def log1p(body: Body, x: Value) -> Value:
    result = log1p_of_pair(body, x, None)
    result = body.select(x > -1.0, result, body.select(x.equals(-1.0), -math.inf, math.nan))
    passes = body.fabs(x) < x.format.smallest_normal
    return body.select(passes | x.equals(math.inf), x, result)


@dataclass(frozen=True)
class PowerSpecials:
    """C99's special cases of pow(x, y), applied to |x|^y as it is for finite |x| > 0."""

    x: Value
    y: Value

    def apply(self, body: Body, magnitude: Value) -> Value:
        x, y = self.x, self.y
        is_plain = (x > 0.0) & (x < math.inf) & (body.fabs(y) < math.inf)
        return body.unless(is_plain, [magnitude], lambda: [self._others(body, magnitude)])[0]

    def _others(self, body: Body, magnitude: Value) -> Value:
        x, y = self.x, self.y
        whole = body.roundeven(y).equals(y)
        half = y * 0.5
        odd = whole & ~body.roundeven(half).equals(half)
        size = body.fabs(x)
        grows = y > 0.0
        magnitude = body.select(size.equals(0.0), body.select(grows, 0.0, math.inf), magnitude)
        magnitude = body.select(size.equals(math.inf), body.select(grows, math.inf, 0.0), magnitude)
        signed = body.select(odd, body.copysign(magnitude, x), magnitude)
        undefined = (x < 0.0) & ~whole & ~size.equals(math.inf)
        result = body.select(undefined, math.nan, signed)
        result = body.select(x.unordered(y), x + y, result)
        one = y.equals(0.0) | x.equals(1.0) | (size.equals(1.0) & body.fabs(y).equals(math.inf))
        return body.select(one, 1.0, result)


def log2_pair(body: Body, x: Value) -> tuple[Value, Value]:
    """log2(x) as (high, low), relative error about 2^-65, for f64 x > 0 finite.

    s = f/(2+f) in double length; log2(1+f) = s (c0 + z (c1 + z R(z))) with z = s^2, c0 = 2/ln2, c1 = c0/3.
    """
    k, m, _ = split_exponent(body, x)
    f = m - 1.0
    bottom, bottom_low = two_sum_ordered(body.constant(2.0), f)
    inverse = 1.0 / bottom
    s = f * inverse
    s_low = body.multiply_add(-s, bottom_low, body.fma(-s, bottom, f)) * inverse
    z, z_low = two_product(s, s)
    z_low = body.multiply_add(s + s, s_low, z_low)
    tail = z * body.paired(z, table.LOG2_TAIL)
    inner, inner_low = two_sum_ordered(body.constant(LOG2_C1[0]), tail)
    inner_low = inner_low + LOG2_C1[1]
    term, term_low = two_product(z, inner)
    term_low = body.multiply_add(z_low, inner, body.multiply_add(z, inner_low, term_low))
    outer, outer_low = two_sum_ordered(body.constant(LOG2_C0[0]), term)
    outer_low = outer_low + (term_low + LOG2_C0[1])
    value, value_low = two_product(s, outer)
    value_low = body.multiply_add(s_low, outer, body.multiply_add(s, outer_low, value_low))
    # |k| >= 1 > |value| or k = 0, so the sum is ordered unless k = 0, if it is exact anyway.
    total = k + value
    error = value - (total - k)
    return two_sum_ordered(total, error + value_low)


LOG2_C0 = (float.fromhex("0x1.71547652b82fep+1"), float.fromhex("0x1.777d0ffda0d24p-55"))
LOG2_C1 = (float.fromhex("0x1.ec709dc3a03fdp-1"), float.fromhex("0x1.d27f05548af0cp-55"))


def pow_f64(body: Body, x: Value, y: Value) -> Value:
    """2^(y log2|x|), the logarithm and the product in double length."""
    size = body.fabs(x)
    high, low = log2_pair(body, size)
    product = y * high
    rest = body.multiply_add(y, low, body.fma(y, high, -product))
    if not body.has_fma:
        rest = body.select(product.equals(0.0), 0.0, rest)      # the halves of a y next to overflow are infinite: matters only for x = -1
    n, power = round_to_power(body, product, 1.0)
    r = (product - n) + rest
    value = power.scale(body.multiply_add(r, body.paired(r, table.EXP2_F64), 1.0))
    value = body.select(product > 1030.0, math.inf, body.select(product < -1080.0, 0.0, value))
    return PowerSpecials(x, y).apply(body, value)


def pow_f32(body: Body, x: Value, y: Value) -> Value:
    """2^(y log2|x|) in f64 arithmetic, with polynomials that are as short as f32 results allow."""
    size = body.fabs(x)
    wide = size.converted(F64)
    k, m, _ = split_exponent(body, wide, subnormal=False)
    f = m - 1.0
    s = f / (2.0 + f)
    logarithm = body.multiply_add(s, body.polynomial(s * s, table.LOG2_WIDE), k)
    product = clamp(body, y.converted(F64) * logarithm, -160.0, 130.0)
    n, power = round_to_power(body, product, 1.0)
    r = product - n
    value = body.multiply_add(r, body.polynomial(r, table.EXP2_WIDE), 1.0) * power.value()
    return PowerSpecials(x, y).apply(body, value.converted(F32))


def pow_(body: Body, x: Value, y: Value) -> Value:
    return pow_f64(body, x, y) if x.format is F64 else pow_f32(body, x, y)
