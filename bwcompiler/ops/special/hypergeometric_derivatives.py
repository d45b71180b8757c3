"""Partial derivatives of hypergeometric functions, also by their parameters, and of Mathieu's functions, as in `derivatives`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from bwcompiler.ir.op import Value
from bwcompiler.ops.broadcasting import broadcast, reduce_sum
from bwcompiler.ops.creation import iota
from bwcompiler.ops.elementwise import absolute, cos, cosh, equal, exp, full_like, greater, less, less_equal, log1p, select, stop_gradient
from bwcompiler.ops.layout import reshape, slice_
from bwcompiler.ops.scan import cumprod, cumsum
from bwcompiler.ops.special.loops import function, known, part, special_function


# ----- derivatives of the series Σ (a₁)ₙ (a₂)ₙ ... / ((b₁)ₙ ...) zⁿ / n! by one of the parameters
def _spread(x: Value, terms: int) -> Value:
    """x once for each term, along a new last axis."""
    return broadcast(x, shape=(*x.shape, terms), axes=tuple(range(x.rank)))


def _slope_of_series(above: Sequence[Value], below: Sequence[Value], z: Value, number: int, terms: int) -> Value:
    """The derivative by one of the parameters (their number, those above first), of which each term has the factors p, p + 1, ...

    The logarithmic derivative of a product of factors is the sum of their reciprocals.  Where a factor is 0 (p = 0, -1, ...), the product
    of the others is the derivative; what vanishes there is written down, for second derivatives.  It is nan where the terms are too few.
    """
    last = z.rank
    n = iota(shape=(*z.shape, terms), axis=last, dtype=z.dtype)
    ratio = _spread(z, terms) / (n + 1.0)
    sums = zero = None
    for k, p in enumerate([*above, *below]):
        inverted, factor = k >= len(above), _spread(p, terms) + n
        if k == number:
            none = equal(factor, full_like(factor, 0.0))
            factor = select(none, full_like(factor, 1.0), factor)
            reciprocals = select(none, full_like(factor, 0.0), 1.0 / factor)
            sums = cumsum(reciprocals, axis=last, reverse=False) * (-1.0 if inverted else 1.0)
            zero = cumsum(select(none, full_like(factor, 1.0), full_like(factor, 0.0)), axis=last, reverse=False)
        ratio = ratio / factor if inverted else ratio * factor
    assert sums is not None and zero is not None
    by = [*above, *below][number]
    vanishing = _spread(by - stop_gradient(by), terms)
    slopes = cumprod(ratio, axis=last, reverse=False) * select(greater(zero, full_like(zero, 0.0)), vanishing * sums + 1.0, sums)
    total = reduce_sum(slopes, axes=(last,))
    end = slice_(slopes, starts=(*[0] * last, terms - 1), sizes=(*z.shape, 1), steps=(1,) * (last + 1))
    enough = less_equal(absolute(reshape(end, shape=z.shape)), absolute(total) * 1e-12 + 1e-300)
    return select(enough, total, full_like(total, math.nan))


# ----- confluent functions (13.3.15, 13.3.22)
CONFLUENT_TERMS, TERMS = 240, 480                 # for arguments up to 100; for those up to 0.93


def _confluent(a: Value, b: Value, x: Value, by_first: bool) -> Value:
    """For x < 0 of exp(x) ₁F₁(b - a, b, -x) (13.2.39), where all terms have one sign."""
    turned = less(x, full_like(x, 0.0))
    first, size = select(turned, b - a, a), absolute(x)
    scale = select(turned, exp(select(turned, x, full_like(x, 0.0))), full_like(x, 1.0))
    by_a = _slope_of_series([first], [b], size, 0, CONFLUENT_TERMS)
    if by_first:
        return scale * select(turned, -by_a, by_a)
    by_b = _slope_of_series([first], [b], size, 1, CONFLUENT_TERMS)
    return scale * (by_b + select(turned, by_a, full_like(x, 0.0)))


known("hyp0f1", lambda out, v, z: _slope_of_series([], [v], z, 0, CONFLUENT_TERMS),
       lambda out, v, z: function("hyp0f1")(v + 1.0, z) / v)
known("hyp1f1", lambda out, a, b, x: _confluent(a, b, x, True), lambda out, a, b, x: _confluent(a, b, x, False),
       lambda out, a, b, x: a / b * function("hyp1f1")(a + 1.0, b + 1.0, x))
known("hyperu", None, None, lambda out, a, b, x: -(a * function("hyperu")(a + 1.0, b + 1.0, x)))


# ----- Gauss's function (15.5.1)
def _gauss(out: Value, a: Value, b: Value, c: Value, z: Value, by: str) -> Value:
    """For z < 0 of (1 - z)⁻ᵃ ₂F₁(a, c - b, c, z / (z - 1)) (15.8.1)."""
    zero, one = full_like(z, 0.0), full_like(z, 1.0)
    turned = less(z, zero)
    outside = select(turned, z, zero)
    second, place = select(turned, c - b, b), select(turned, outside / (outside - 1.0), z)
    scale = select(turned, exp(a * -log1p(-outside)), one)

    def slope(number: int) -> Value:
        return _slope_of_series([a, second], [c], place, number, TERMS) * scale
    if by == "a":
        return slope(0) - log1p(-outside) * out
    by_second = slope(1)
    return select(turned, -by_second, by_second) if by == "b" else slope(2) + select(turned, by_second, zero)


known("hyp2f1", lambda out, a, b, c, z: _gauss(out, a, b, c, z, "a"), lambda out, a, b, c, z: _gauss(out, a, b, c, z, "b"),
       lambda out, a, b, c, z: _gauss(out, a, b, c, z, "c"),
       lambda out, a, b, c, z: a * b / c * function("hyp2f1")(a + 1.0, b + 1.0, c + 1.0, z))

# ----- Mathieu's functions: the argument in degrees, the slope by radians; of their orders there is no derivative
PLACES = 64                                       # of the trapezoidal rule over a period
RADIAN = math.pi / 180


def _mathieu(wave: str) -> Callable[..., Value]:
    """∂a/∂q = 2 ∫ cos(2 t) y(t)² dt / ∫ y² dt, of the characteristic value a of y'' + (a - 2 q cos(2 t)) y = 0."""
    def rule(out: Value, m: Value, q: Value) -> Value:
        shape = (*q.shape, PLACES)
        t = iota(shape=shape, axis=q.rank, dtype=q.dtype) * (360.0 / PLACES)
        y = part(special_function(_spread(m, PLACES), _spread(q, PLACES), t, name=wave, results=2), 0, 2)
        above, below = (reduce_sum(one, axes=(q.rank,)) for one in (cos(t * (2 * RADIAN)) * y * y, y * y))
        return above * 2.0 / below
    return rule


for _letter, _wave in (("a", "mathieu_cem"), ("b", "mathieu_sem")):
    known(f"mathieu_{_letter}", None, _mathieu(_wave))
    known(_wave, None, None, lambda out, m, q, x, value=f"mathieu_{_letter}": (
        out[1] * RADIAN, (q * 2.0 * cos(x * (2 * RADIAN)) - function(value)(m, q)) * out[0] * RADIAN))
    for _kind in ("mod" + _wave[8:] + "1", "mod" + _wave[8:] + "2"):
        known(f"mathieu_{_kind}", None, None, lambda out, m, q, x, value=f"mathieu_{_letter}": (
            out[1], (function(value)(m, q) - q * 2.0 * cosh(x * 2.0)) * out[0]))
