"""Arithmetic of complex scalars as pairs (re, im) of real scalars: products, quotients, powers, comparisons, extrema.

The formulas are NumPy's, so that infinities, nan and signs of zeros agree.  exp, log and their relatives:
`complex_functions.py`.  Start reading at `ARITHMETIC`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from bwcompiler.ir.scalar import Scalar, cast, const, operation, select
from bwcompiler.ir.types import F64

Pair: TypeAlias = tuple[Scalar, Scalar]


def where(condition: Scalar, z: Pair, w: Pair) -> Pair:
    """z where condition else w."""
    return select(condition, z[0], w[0]), select(condition, z[1], w[1])


def either(a: Scalar, b: Scalar) -> Scalar:
    return operation("bitwise_or", a, b)


def negated(a: Scalar) -> Scalar:
    return operation("invert", a)


def apart(a: Scalar, b: float | Scalar) -> Scalar:
    """a != b."""
    return operation("not_equal", a, b)


def pair_of(re: float, im: float, like: Scalar) -> Pair:
    """A constant."""
    return const(re, like.dtype), const(im, like.dtype)


def in_double(formula: Callable[..., Pair]) -> Callable[..., Pair]:
    """A formula that is computed in double precision for any precision: without loss, and without intermediate overflow."""
    def rule(*numbers: Pair) -> Pair:
        dtype = numbers[0][0].dtype
        re, im = formula(*[(cast(x, F64), cast(y, F64)) for x, y in numbers])
        return cast(re, dtype), cast(im, dtype)
    return rule


# ----- the field
def add(z: Pair, w: Pair) -> Pair:
    return z[0] + w[0], z[1] + w[1]


def subtract(z: Pair, w: Pair) -> Pair:
    return z[0] - w[0], z[1] - w[1]


def multiply(z: Pair, w: Pair) -> Pair:
    return z[0] * w[0] - z[1] * w[1], z[0] * w[1] + z[1] * w[0]


def divide(z: Pair, w: Pair) -> Pair:
    """Smith's algorithm, which divides by the larger part first; by zero: each part divided by it."""
    (a, b), (c, d) = z, w
    size_c, size_d = operation("absolute", c), operation("absolute", d)
    first = size_c >= size_d
    big, small = select(first, c, d), select(first, d, c)
    ratio = small / big
    scale = 1.0 / (big + small * ratio)
    re = select(first, a + b * ratio, a * ratio + b) * scale
    im = select(first, b - a * ratio, b * ratio - a) * scale
    zero = size_c.equals(0.0) & size_d.equals(0.0)
    return where(zero, (a / size_c, b / size_c), (re, im))


def reciprocal(z: Pair) -> Pair:
    """1 / z, by the larger part first."""
    a, b = z
    first = operation("absolute", b) <= operation("absolute", a)
    big, small = select(first, a, b), select(first, b, a)
    ratio = small / big
    below = big + small * ratio
    return select(first, const(1.0, a.dtype), ratio) / below, -select(first, ratio, const(1.0, a.dtype)) / below


def negative(z: Pair) -> Pair:
    return -z[0], -z[1]


def conjugate(z: Pair) -> Pair:
    return z[0], -z[1]


def rint(z: Pair) -> Pair:
    return operation("rint", z[0]), operation("rint", z[1])


# ----- order: by real parts, equal ones by imaginary parts
def _ordered(strict: str, last: str) -> Callable[[Pair, Pair], Scalar]:
    def rule(z: Pair, w: Pair) -> Scalar:
        (a, b), (c, d) = z, w
        known = negated(either(operation("isnan", b), operation("isnan", d)))
        return either(operation(strict, a, c) & known, a.equals(c) & operation(last, b, d))
    return rule


def equal(z: Pair, w: Pair) -> Scalar:
    return z[0].equals(w[0]) & z[1].equals(w[1])


def not_equal(z: Pair, w: Pair) -> Scalar:
    return either(apart(z[0], w[0]), apart(z[1], w[1]))


less, less_equal = _ordered("less", "less"), _ordered("less", "less_equal")
greater, greater_equal = _ordered("greater", "greater"), _ordered("greater", "greater_equal")


def isnan(z: Pair) -> Scalar:
    return either(operation("isnan", z[0]), operation("isnan", z[1]))


def isinf(z: Pair) -> Scalar:
    return either(operation("isinf", z[0]), operation("isinf", z[1]))


def isfinite(z: Pair) -> Scalar:
    return operation("isfinite", z[0]) & operation("isfinite", z[1])


def maximum(z: Pair, w: Pair) -> Pair:
    """The larger number; the first nan."""
    return where(either(isnan(z), greater_equal(z, w)), z, w)


def minimum(z: Pair, w: Pair) -> Pair:
    """The smaller number; the first nan."""
    return where(either(isnan(z), less_equal(z, w)), z, w)


def better(combine: str) -> Callable[[Pair, Pair], Scalar]:
    """Whether a number replaces the best one in a search: a nan is better than any number, and the first nan wins."""
    order = greater if combine == "argmax" else less
    return lambda new, best: negated(isnan(best)) & either(order(new, best), isnan(new))


# ----- parts
def modulus(z: Pair) -> Scalar:
    return operation("hypot", z[0], z[1])


def truth(z: Pair) -> Scalar:
    """z != 0."""
    return either(apart(z[0], 0.0), apart(z[1], 0.0))


ARITHMETIC: dict[str, Callable[..., Pair]] = {
    "add": add, "subtract": subtract, "multiply": multiply, "divide": divide, "reciprocal": reciprocal,
    "negative": negative, "conjugate": conjugate, "rint": rint, "maximum": maximum, "minimum": minimum,
}
TO_REAL: dict[str, Callable[..., Scalar]] = {
    "equal": equal, "not_equal": not_equal, "less": less, "less_equal": less_equal, "greater": greater, "greater_equal": greater_equal,
    "isnan": isnan, "isinf": isinf, "isfinite": isfinite, "modulus": modulus, "real": lambda z: z[0], "imag": lambda z: z[1],
}
