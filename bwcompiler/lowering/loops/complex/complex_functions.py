"""Elementary functions of complex scalars as pairs (re, im) of real ones, in double precision.

Special cases (infinities, nan, signed zeros, branch cuts) are those of C99's Annex G, which NumPy follows.  Inverse functions:
T. E. Hull, T. F. Fairgrieve and P. T. P. Tang, "Implementing the complex arcsine and arccosine functions using exception
handling", ACM TOMS 23 (1997), in the form of FreeBSD's catrig.c; tanh: W. Kahan, "Branch cuts for complex elementary functions".
Alternatives of `where` that are not selected may overflow or be nan.  Start reading at `FUNCTIONS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from bwcompiler.ir.scalar import Scalar, const, operation, select
from bwcompiler.lowering.loops.complex.complex_arithmetic import Pair, divide, either, in_double, multiply, negated, pair_of, where

_EPSILON = 2.0**-52
_LOG_2 = math.log(2.0)
_SHIFT = 700.0                     # exp(x) for x above 709: exp(x - 700) times the cosine, times exp(700)


def _abs(x: Scalar) -> Scalar:
    return operation("absolute", x)


def _signed(x: Scalar | float, sign: Scalar) -> Scalar:
    """|x| with the sign of `sign`."""
    return operation("copysign", x if isinstance(x, Scalar) else const(x, sign.dtype), sign)


def _sqrt(x: Scalar) -> Scalar:
    return operation("sqrt", x)


def _finite(x: Scalar) -> Scalar:
    return operation("isfinite", x)


def _infinite(x: Scalar) -> Scalar:
    return operation("isinf", x)


def _nan(x: Scalar) -> Scalar:
    return operation("isnan", x)


def _larger(x: Scalar, y: Scalar) -> Scalar:
    return select(x > y, x, y)


def _first(*cases: tuple[Scalar, Pair], otherwise: Pair) -> Pair:
    """The pair of the first condition that holds."""
    for condition, pair in reversed(cases):
        otherwise = where(condition, pair, otherwise)
    return otherwise


def _times_i(z: Pair) -> Pair:
    return -z[1], z[0]


def _by_i(z: Pair) -> Pair:
    """z / i."""
    return z[1], -z[0]


# ----- exponentials and logarithms
def exp(z: Pair) -> Pair:
    """exp(x) (cos y + i sin y)."""
    x, y = z
    big = x > 709.0
    size = operation("exp", select(big, x - _SHIFT, x))
    scale = select(big, math.exp(_SHIFT), const(1.0, x.dtype))
    real = y.equals(0.0)
    re = select(real, size * scale, size * operation("cos", y) * scale)
    im = select(real, y, size * operation("sin", y) * scale)
    wild = negated(_finite(y))
    return _first((wild & x.equals(-math.inf), (const(0.0, x.dtype), _signed(0.0, y))),
                  (wild & x.equals(math.inf), (x, const(math.nan, x.dtype))), otherwise=(re, im))


def exp2(z: Pair) -> Pair:
    return exp((z[0] * _LOG_2, z[1] * _LOG_2))


def expm1(z: Pair) -> Pair:
    """expm1(x) cos y - 2 sin(y / 2)**2 + i exp(x) sin y."""
    x, y = z
    half = operation("sin", y * 0.5)
    return operation("expm1", x) * operation("cos", y) - 2.0 * half * half, operation("exp", x) * operation("sin", y)


def _two_product(x: Scalar) -> Pair:
    """x * x as the rounded product and its error (Dekker, Veltkamp), for x far from overflow."""
    split = x * 134217729.0
    high = split - (split - x)
    low = x - high
    product = x * x
    return product, ((high * high - product) + 2.0 * high * low) + low * low


def log_modulus(z: Pair) -> Scalar:
    """log |z|: near 1 from |z|**2 - 1, which is computed with twice the digits; large and small numbers are scaled."""
    a, b = _abs(z[0]), _abs(z[1])
    large, small = _larger(a, b), select(a > b, b, a)
    huge, tiny = large > 1e300, large < 1e-290
    scale = select(huge, 2.0**-100, select(tiny, 2.0**200, const(1.0, a.dtype)))
    shift = select(huge, 100.0 * _LOG_2, select(tiny, -200.0 * _LOG_2, const(0.0, a.dtype)))
    plain = operation("log", operation("hypot", a * scale, b * scale)) + shift
    (p, p_error), (q, q_error) = _two_product(large), _two_product(small)
    start = p - 1.0
    total = start + q
    lost = (start - (total - (total - start))) + (q - (total - start))
    near = 0.5 * operation("log1p", total + (lost + p_error + q_error))
    return select((large > 0.5) & (large < 2.0), near, plain)


def log(z: Pair) -> Pair:
    return log_modulus(z), operation("arctan2", z[1], z[0])


def _log_to(base: float) -> Callable[[Pair], Pair]:
    def rule(z: Pair) -> Pair:
        re, im = log(z)
        return re * (1.0 / math.log(base)), im * (1.0 / math.log(base))
    return rule


def log1p(z: Pair) -> Pair:
    """log(1 + z); near 0 from |1 + z|**2 - 1 = x (2 + x) + y**2."""
    x, y = z
    re, im = log((x + 1.0, y))
    near = (_abs(x) < 0.1) & (_abs(y) < 0.1)
    return select(near, 0.5 * operation("log1p", x * (2.0 + x) + y * y), re), im


def sqrt(z: Pair) -> Pair:
    """t = sqrt((|x| + |z|) / 2) is one part, y / (2 t) the other."""
    x, y = z
    size = _larger(_abs(x), _abs(y))
    huge, tiny = size > 1e300, size < 1e-290
    scale = select(huge, 0.25, select(tiny, 2.0**200, const(1.0, x.dtype)))
    back = select(huge, 2.0, select(tiny, 2.0**-100, const(1.0, x.dtype)))
    a, b = x * scale, y * scale
    t = _sqrt((_abs(a) + operation("hypot", a, b)) * 0.5)
    other = _abs(b) / (t * 2.0)
    right = operation("invert", operation("signbit", x))
    re, im = select(right, t, other) * back, _signed(select(right, other, t) * back, y)
    zero = const(0.0, x.dtype)
    infinite = const(math.inf, x.dtype)
    return _first((_infinite(y), (infinite, y)),
                  (_nan(x), (x, const(math.nan, x.dtype))),
                  (x.equals(math.inf), (x, select(_nan(y), y, _signed(0.0, y)))),
                  (x.equals(-math.inf), (select(_nan(y), y, zero), _signed(math.inf, y))),
                  (x.equals(0.0) & y.equals(0.0), (zero, y)), otherwise=(re, im))


def _small_power(z: Pair, count: Scalar) -> Pair:
    """z multiplied with itself, by squaring, for a whole number 0 <= count < 100."""
    result = pair_of(1.0, 0.0, z[0])
    rest = count
    for step in range(7):
        half = operation("floor", rest * 0.5)
        odd = (rest - half * 2.0).equals(1.0)
        result = where(odd, multiply(result, z), result)
        rest = half
        if step < 6:
            z = multiply(z, z)
    return result


def power(z: Pair, w: Pair) -> Pair:
    """Whole exponents below 100 by products, others by exp(w log z); 0 to a power is 0, 1 or nan."""
    (a, b), (c, d) = z, w
    one, zero, nan = pair_of(1.0, 0.0, a), pair_of(0.0, 0.0, a), pair_of(math.nan, math.nan, a)
    whole = d.equals(0.0) & operation("floor", c).equals(c) & (_abs(c) < 100.0)
    product = _small_power(z, select(whole, _abs(c), 0.0))
    square = multiply(z, z)
    product = where(c < 0.0, divide(one, product), product)
    product = _first((c.equals(1.0), z), (c.equals(2.0), square), (c.equals(3.0), multiply(z, square)), otherwise=product)
    general = exp(multiply(w, log(z)))
    return _first((c.equals(0.0) & d.equals(0.0), one),
                  (a.equals(0.0) & b.equals(0.0), where((c > 0.0), zero, nan)),
                  (whole, product), otherwise=general)


# ----- hyperbolic and trigonometric functions
def _scaled(x: Scalar) -> tuple[Scalar, Scalar]:
    """x shifted so that exp does not overflow, and the factor that compensates."""
    big = _abs(x) > 700.0
    return select(big, x - _signed(_SHIFT, x), x), select(big, math.exp(_SHIFT), const(1.0, x.dtype))


def sinh(z: Pair) -> Pair:
    """sinh x cos y + i cosh x sin y."""
    x, y = z
    at, scale = _scaled(x)
    real, wild = y.equals(0.0), negated(_finite(y))
    re = select(real, operation("sinh", x), operation("sinh", at) * operation("cos", y) * scale)
    im = select(real, y, operation("cosh", at) * operation("sin", y) * scale)
    return select(wild & either(x.equals(0.0), _infinite(x)), x, re), im


def cosh(z: Pair) -> Pair:
    """cosh x cos y + i sinh x sin y."""
    x, y = z
    at, scale = _scaled(x)
    real, wild = y.equals(0.0), negated(_finite(y))
    re = select(real, operation("cosh", x), operation("cosh", at) * operation("cos", y) * scale)
    im = select(real, y * _signed(1.0, x), operation("sinh", at) * operation("sin", y) * scale)
    return select(wild & _infinite(x), _abs(x), re), select(wild & x.equals(0.0), x, im)


def tanh(z: Pair) -> Pair:
    """With t = tan y, s = sinh x: (sqrt(1 + s**2) (1 + t**2) s + i t) / (1 + (1 + t**2) s**2)."""
    x, y = z
    t, s = operation("tan", y), operation("sinh", x)
    square = 1.0 + t * t
    below = 1.0 + square * s * s
    re, im = square * _sqrt(1.0 + s * s) * s / below, t / below
    far = _abs(x) >= 22.0
    small = operation("exp", -_abs(x))
    im = select(far, 4.0 * operation("sin", y) * operation("cos", y) * small * small, im)
    re = select(far, _signed(1.0, x), re)
    turn = select(_infinite(y), y, operation("sin", y) * operation("cos", y))
    nan = const(math.nan, x.dtype)
    return _first((_nan(x), (x, select(y.equals(0.0), y, nan))),
                  (_infinite(x), (_signed(1.0, x), _signed(0.0, turn))),
                  (negated(_finite(y)), (select(x.equals(0.0), x, nan), nan)),
                  otherwise=(select(x.equals(0.0), x, re), select(y.equals(0.0), y, im)))


def sin(z: Pair) -> Pair:
    return _by_i(sinh(_times_i(z)))


def cos(z: Pair) -> Pair:
    return cosh(_times_i(z))


def tan(z: Pair) -> Pair:
    return _by_i(tanh(_times_i(z)))


# ----- their inverses
_TINY = math.sqrt(6.0 * _EPSILON) / 4.0
_LARGE = 1.0 / _EPSILON
_LEAST = 4.0 * math.sqrt(2.2250738585072014e-308)


def _half_distance(a: Scalar, b: Scalar, length: Scalar) -> Scalar:
    """(hypot(a, b) - b) / 2 without cancellation, given the hypotenuse."""
    return select(b < 0.0, (length - b) * 0.5, select(b.equals(0.0), a * 0.5, a * a / (length + b) * 0.5))


def _hard_work(x: Scalar, y: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar, Scalar]:
    """For x, y >= 0: (log(A + sqrt(A**2 - 1)), whether B is usable, B, sqrt(A**2 - y**2), y), the last two by a common factor.

    A is half the sum of the distances from i and -i to z = x + iy, and B = y / A.
    """
    up, down = y + 1.0, y - 1.0
    r, s = operation("hypot", x, up), operation("hypot", x, down)
    a = (r + s) * 0.5
    a = select(a < 1.0, 1.0, a)
    wide = x >= _EPSILON * _abs(down)
    on_cut = y.equals(1.0) & (x < _EPSILON * _EPSILON / 128.0)
    excess = _half_distance(x, up, r) + _half_distance(x, 1.0 - y, s)
    near = select(wide, operation("log1p", excess + _sqrt(excess * (a + 1.0))), select(
        y < 1.0, x / _sqrt((1.0 - y) * up), operation("log1p", down + _sqrt(down * up))))
    length = select(a < 10.0, select(on_cut, _sqrt(x), near), operation("log", a + _sqrt(a * a - 1.0)))
    b = y / a
    small = y < _LEAST
    distance = _half_distance(x, up, r) + _half_distance(x, down, s)
    on_line = y.equals(1.0) & (x < _EPSILON / 128.0)
    outside = negated(wide) & (y > 1.0)
    root = select(on_line, _sqrt(x) * _sqrt((a + y) * 0.5), select(wide, _sqrt(distance * (a + y)), select(
        y > 1.0, x * (4.0 / _EPSILON / _EPSILON) * y / _sqrt(up * down), _sqrt((1.0 - y) * up))))
    height = select(outside & negated(on_line), y * (4.0 / _EPSILON / _EPSILON), y)
    return (length, negated(small) & (b <= 0.6417), b, select(small, a * (2.0 / _EPSILON), root),
            select(small, y * (2.0 / _EPSILON), height))


def arcsinh(z: Pair) -> Pair:
    x, y = z
    ax, ay = _abs(x), _abs(y)
    length, usable, b, root, height = _hard_work(ax, ay)
    angle = select(usable, operation("arcsin", b), operation("arctan2", height, root))
    far = either(ax > _LARGE, ay > _LARGE)
    length = select(far, log_modulus(z) + _LOG_2, length)
    angle = select(far, operation("arctan2", ay, ax), angle)
    nan = const(math.nan, x.dtype)
    return _first((either(_nan(x), _nan(y)), _first((_infinite(x), (x, nan)), (_infinite(y), (y, nan)), (y.equals(0.0), (x, y)),
                                                    otherwise=(nan, nan))),
                  ((ax < _TINY) & (ay < _TINY), z), otherwise=(_signed(length, x), _signed(angle, y)))


def arcsin(z: Pair) -> Pair:
    im, re = arcsinh((z[1], z[0]))
    return re, im


def arccos(z: Pair) -> Pair:
    x, y = z
    ax, ay = _abs(x), _abs(y)
    length, usable, b, root, height = _hard_work(ay, ax)
    left, up = operation("signbit", x), negated(operation("signbit", y))
    angle = select(usable, operation("arccos", select(left, -b, b)), operation("arctan2", root, select(left, -height, height)))
    far = either(ax > _LARGE, ay > _LARGE)
    length = select(far, log_modulus(z) + _LOG_2, length)
    angle = select(far, operation("arctan2", ay, x), angle)
    tiny = (ax < _TINY) & (ay < _TINY)
    angle, length = select(tiny, math.pi / 2.0 - x, angle), select(tiny, ay, length)
    nan, quarter = const(math.nan, x.dtype), const(math.pi / 2.0, x.dtype)
    return _first((either(_nan(x), _nan(y)), _first(
                      (_infinite(x), (nan, const(-math.inf, x.dtype))), (_infinite(y), (nan, -y)), (x.equals(0.0), (quarter, nan)),
                      otherwise=(nan, nan))),
                  (x.equals(1.0) & y.equals(0.0), (const(0.0, x.dtype), -y)), otherwise=(angle, select(up, -length, length)))


def arccosh(z: Pair) -> Pair:
    re, im = arccos(z)
    both = _nan(re) & _nan(im)
    return _first((both, (im, re)), (_nan(re), (_abs(im), re)), (_nan(im), (im, re)), otherwise=(_abs(im), _signed(re, z[1])))


def _square_sum(x: Scalar, y: Scalar) -> Scalar:
    return x * x + select(y < 1.5e-154, 0.0, y * y)


def arctanh(z: Pair) -> Pair:
    x, y = z
    ax, ay = _abs(x), _abs(y)
    quarter = math.pi / 2.0
    length = operation("log1p", 4.0 * ax / _square_sum(ax - 1.0, ay)) * 0.25
    length = select(ax.equals(1.0) & (ay < _EPSILON), (_LOG_2 - operation("log", ay)) * 0.5, length)
    height = (1.0 - ax) * (1.0 + ax) - select(ay < _EPSILON, 0.0, ay * ay)
    angle = select(ax.equals(1.0), operation("arctan2", const(2.0, x.dtype), -ay), operation("arctan2", 2.0 * ay, height)) * 0.5
    # Far away the real part is that of 1 / z: by the larger part first, so that no square overflows.
    big, small = _larger(ax, ay), select(ax > ay, ay, ax)
    ratio = small / big
    far = either(ax > _LARGE, ay > _LARGE)
    infinite = either(_infinite(x), _infinite(y))
    distant = select(infinite, 0.0, ax / big / (big * (1.0 + ratio * ratio)))
    length, angle = select(far, distant, length), select(far, quarter, angle)
    nan = const(math.nan, x.dtype)
    return _first((y.equals(0.0) & (ax <= 1.0), (operation("arctanh", x), y)),
                  (x.equals(0.0), (x, operation("arctan", y))),
                  (either(_nan(x), _nan(y)), _first((_infinite(x), (_signed(0.0, x), nan)),
                                                    (_infinite(y), (_signed(0.0, x), _signed(quarter, y))), otherwise=(nan, nan))),
                  ((ax < _TINY) & (ay < _TINY), z), otherwise=(_signed(length, x), _signed(angle, y)))


def arctan(z: Pair) -> Pair:
    im, re = arctanh((z[1], z[0]))
    return re, im


_IN_DOUBLE: dict[str, Callable[..., Pair]] = {
    "exp": exp, "exp2": exp2, "expm1": expm1, "log": log, "log2": _log_to(2.0), "log10": _log_to(10.0), "log1p": log1p, "sqrt": sqrt,
    "power": power, "sin": sin, "cos": cos, "tan": tan, "sinh": sinh, "cosh": cosh, "tanh": tanh, "arcsin": arcsin,
    "arccos": arccos, "arctan": arctan, "arcsinh": arcsinh, "arccosh": arccosh, "arctanh": arctanh}
FUNCTIONS = {name: in_double(formula) for name, formula in _IN_DOUBLE.items()}
