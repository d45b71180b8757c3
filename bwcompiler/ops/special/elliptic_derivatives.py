"""Partial derivatives of elliptic integrals and elliptic functions, as in `derivatives`."""

from __future__ import annotations

import math
from collections.abc import Callable

from bwcompiler.ir.op import Value
from bwcompiler.ops.broadcasting import broadcast, reduce_sum
from bwcompiler.ops.creation import iota
from bwcompiler.ops.elementwise import (
    absolute,
    bitwise_and,
    cosh,
    equal,
    exp,
    full_like,
    less,
    less_equal,
    log,
    not_equal,
    select,
    sin,
    sinh,
    sqrt,
    stop_gradient,
)
from bwcompiler.ops.special.loops import function, known
from bwcompiler.ops.special.series import with_series

# ----- elliptic functions (19.4.1 - 19.5)
ellipk, ellipe, ellipkinc, ellipeinc = (function(_name) for _name in ("ellipk", "ellipe", "ellipkinc", "ellipeinc"))


def _root(phi: Value, m: Value) -> Value:
    return sqrt(1.0 - m * sin(phi) * sin(phi))


def _incomplete_first(out: Value, phi: Value, m: Value) -> Value:
    def by(m: Value) -> Value:
        swing = sin(phi * 2.0) / ((1.0 - m) * _root(phi, m) * 4.0)
        return (ellipeinc(phi, m) / (1.0 - m) - out) / (m * 2.0) - swing
    return _at_zero(m, (phi - sin(phi * 2.0) * 0.5) * 0.25, by)


def _at_zero(m: Value, then: Value, otherwise: Callable[[Value], Value]) -> Value:
    zero = equal(m, full_like(m, 0.0))
    return select(zero, then, otherwise(select(zero, full_like(m, 0.5), m)))


def _near_one(p: Value) -> Value:
    """K(1 - p) of p where that is used; any number where p is 1 - m for small m."""
    near = less((1.0 - p) * (1.0 - p), full_like(p, 0.0025))
    return function("ellipkm1")(select(near, full_like(p, 0.5), p))


def _complete_difference(m: Value, first: Callable[[Value], Value], second: Callable[[Value], Value]) -> Value:
    """D = (K - E) / m (19.2.6), by its series where m is small, so that no digits are lost and all derivatives are those of the limit."""
    share, coefficients = 1.0, []
    for n in range(1, 14):                                       # π/2 Σ ((2n - 1)!! / (2n)!!)² 2n / (2n - 1) mⁿ⁻¹
        share *= (2 * n - 1) / (2 * n)
        coefficients.append(math.pi / 2 * share * share * 2 * n / (2 * n - 1))
    return with_series(m, coefficients, lambda m: (first(m) - second(m)) / m)


def ellipk_slope(out: Value, m: Value) -> Value:
    """(K - D) / (2 (1 - m))."""
    return (out - _complete_difference(m, ellipk, ellipe)) / ((1.0 - m) * 2.0)


known("ellipk", ellipk_slope)
known("ellipkm1", lambda out, p: -((out - _complete_difference(1.0 - p, lambda _: _near_one(p), ellipe)) / (p * 2.0)))
known("ellipe", lambda out, m: _complete_difference(m, ellipk, ellipe) * -0.5)


def _agm_slope(out: Value, x: Value, y: Value) -> Value:
    """By x: the mean is π |y| / (2 K(m)) with m = 1 - (x / y)² where |x| < |y| (19.8.5): out / x (1 - D / K); by y it is out / y D / K."""
    smaller, one = less_equal(absolute(x), absolute(y)), full_like(x, 1.0)
    zero = equal(x, full_like(x, 0.0))
    ratio = absolute(select(smaller, x, y) / select(smaller, y, x))
    p = ratio * ratio
    none, tiny = equal(ratio, full_like(x, 0.0)), less(p, full_like(p, 1e-30))
    p = select(tiny, full_like(p, 0.5), p)
    part = function("ellipkm1")(p) / _complete_difference(1.0 - p, lambda _: _near_one(p), ellipe)
    large = log(4.0 / select(none, one, select(tiny, ratio, one)))               # K, where E is 1
    share = select(none, one, select(tiny, 1.0 - 1.0 / large, 1.0 / part))
    slope = out / select(zero, one, x) * select(smaller, 1.0 - share, share)
    return select(bitwise_and(zero, not_equal(y, full_like(y, 0.0))), 1.0 / absolute(x), slope)


known("agm", _agm_slope, lambda out, x, y: _agm_slope(out, y, x))
known("ellipkinc", lambda out, phi, m: 1.0 / _root(phi, m), _incomplete_first)
known("ellipeinc", lambda out, phi, m: _root(phi, m), lambda out, phi, m: _at_zero(
    m, (sin(phi * 2.0) * 0.5 - phi) * 0.25, lambda m: (out - ellipkinc(phi, m)) / (m * 2.0)))


def _jacobi_by_parameter(out: list[Value], u: Value, m: Value) -> tuple[Value, ...]:
    """By m, of sn, cn, dn and the amplitude φ: dn / (2m (1 - m)) ((1 - m) u - E(φ, m) + m sn cn / dn) for φ; at 0 the limit."""
    sn, cn, dn, phi = out
    slope = _at_zero(m, (sn * cn - u) * 0.25,
                     lambda m: (dn * ((1.0 - m) * u - ellipeinc(phi, m)) + m * sn * cn) / (m * (1.0 - m) * 2.0))
    return cn * slope, -(sn * slope), -(sn * (sn * 0.5 + m * cn * slope) / dn), slope


known("ellipj", lambda out, u, m: (out[1] * out[2], -(out[0] * out[2]), -(m * out[0] * out[1]), out[2]), _jacobi_by_parameter)


# ----- Carlson's symmetric integrals (19.18.1, and 19.16.1 - 19.16.5 under the integral sign)
NODES, REACH = 256, 4.0
ROOT, CUBE, FIFTH = -0.5, -1.5, -2.5


def _spread(x: Value) -> Value:
    """x once for each node, along a new last axis."""
    return broadcast(x, shape=(*x.shape, NODES), axes=tuple(range(x.rank)))


def _carlson(xs: tuple[Value, ...], powers: tuple[float, ...]) -> Value:
    """∫₀^∞ Π (s + x)ᵖ ds by the double exponential rule s = scale exp(π/2 sinh t); its derivatives are those under the integral sign."""
    scale = xs[0]
    for x in xs[1:]:
        scale = scale + x
    scale = stop_gradient(scale * (1.0 / len(xs)))
    step = 2 * REACH / (NODES - 1)
    t = iota(shape=(*scale.shape, NODES), axis=scale.rank, dtype=scale.dtype) * step - REACH
    place = _spread(scale) * exp(sinh(t) * (math.pi / 2))
    logarithm = log(place)
    for x, power_ in zip(xs, powers, strict=True):
        logarithm = logarithm + log(place + _spread(x)) * power_
    return reduce_sum(exp(logarithm) * cosh(t), axes=(scale.rank,)) * (step * math.pi / 2)


elliprd = function("elliprd")


def _second(k: int) -> Callable[..., Value]:
    """R_D by x, y or z."""
    powers = ((CUBE, ROOT, CUBE), (ROOT, CUBE, CUBE), (ROOT, ROOT, FIFTH))[k]
    return lambda out, *xs: _carlson(xs, powers) * (-2.25 if k == 2 else -0.75)


def _third(k: int) -> Callable[..., Value]:
    """R_J by x, y, z or p."""
    powers = tuple([CUBE if j == k else ROOT for j in range(3)] + [-2.0 if k == 3 else -1.0])

    def rule(out: Value, *xs: Value) -> Value:
        principal = less(xs[3], full_like(out, 0.0))
        beside = (*xs[:3], select(principal, full_like(out, 1.0), xs[3]))
        integral = _carlson(beside, powers) * (-1.5 if k == 3 else -0.75)
        return select(principal, _third_principal(k, out, *xs[:3], select(principal, xs[3], full_like(out, -1.0))), integral)
    return rule


def _third_principal(k: int, out: Value, *operands: Value) -> Value:
    """The same of principal values (p < 0), by 1 / ((s + x)(s + p)) = (1 / (s + x) - 1 / (s + p)) / (p - x); by p as of degree -3/2."""
    *xs, p = operands
    if k < 3:
        return (out - elliprd(xs[k - 1], xs[k - 2], xs[k])) / ((p - xs[k]) * 2.0)
    rest = out * -1.5
    for j in range(3):
        rest = rest - xs[j] * _third_principal(j, out, *operands)
    return rest / p


def _degenerate(out: Value, x: Value, y: Value) -> Value:
    """R_C by x; of principal values (y < 0) by its differential equation."""
    principal = less(y, full_like(y, 0.0))
    one, far = full_like(x, 1.0), full_like(x, -1.0)
    beside, below = select(principal, one, y), select(principal, y, far)
    by_equation = (out - 1.0 / sqrt(select(principal, x, one))) / ((below - x) * 2.0)
    return select(principal, by_equation, elliprd(beside, beside, x) * (-1.0 / 6.0))


def _degenerate_by_second(out: Value, x: Value, y: Value) -> Value:
    """R_C by y, being homogeneous of degree -1/2; x times what is infinite at x = 0 is 0."""
    zero = equal(x, full_like(x, 0.0))
    part = select(zero, full_like(x, 0.0), x * _degenerate(out, select(zero, full_like(x, 1.0), x), y))
    return -((out * 0.5 + part) / y)


known("elliprc", _degenerate, _degenerate_by_second)
known("elliprd", *[_second(k) for k in range(3)])
known("elliprj", *[_third(k) for k in range(4)])
known("elliprf", *[lambda out, *xs, k=k: elliprd(xs[k - 1], xs[k - 2], xs[k]) * (-1.0 / 6.0) for k in range(3)])
known("elliprg", *[lambda out, *xs, k=k: (function("elliprf")(*xs) * 3.0 - xs[k] * elliprd(xs[k - 1], xs[k - 2], xs[k])) * (1.0 / 12.0)
                    for k in range(3)])
