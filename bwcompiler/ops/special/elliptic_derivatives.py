"""Partial derivatives of elliptic integrals and elliptic functions, as in `derivatives`."""

from __future__ import annotations

import math
from collections.abc import Callable

from bwcompiler.ir.op import Value
from bwcompiler.ops.broadcasting import broadcast, reduce_sum
from bwcompiler.ops.creation import iota
from bwcompiler.ops.elementwise import cosh, equal, exp, full_like, less, log, select, sin, sinh, sqrt, stop_gradient
from bwcompiler.ops.special.loops import function, known

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
    near = less(m * m, full_like(m, 0.0025))
    small, large = select(near, m, full_like(m, 0.0)), select(near, full_like(m, 0.5), m)
    series, share = full_like(m, 0.0), 1.0
    coefficients = []
    for n in range(1, 14):                                       # π/2 Σ ((2n - 1)!! / (2n)!!)² 2n / (2n - 1) mⁿ⁻¹
        share *= (2 * n - 1) / (2 * n)
        coefficients.append(math.pi / 2 * share * share * 2 * n / (2 * n - 1))
    for coefficient in reversed(coefficients):
        series = series * small + coefficient
    return select(near, series, (first(large) - second(large)) / large)


def ellipk_slope(out: Value, m: Value) -> Value:
    """(K - D) / (2 (1 - m))."""
    return (out - _complete_difference(m, ellipk, ellipe)) / ((1.0 - m) * 2.0)


known("ellipk", ellipk_slope)
known("ellipkm1", lambda out, p: -((out - _complete_difference(1.0 - p, lambda _: _near_one(p), ellipe)) / (p * 2.0)))
known("ellipe", lambda out, m: _complete_difference(m, ellipk, ellipe) * -0.5)


def _agm_slope(out: Value, x: Value, y: Value) -> Value:
    """By x: the mean is π x / (2 K(m)) with m = 1 - (y / x)² (19.8.5)."""
    ratio = y / x
    m = 1.0 - ratio * ratio
    first = ellipk(m)
    return out / x * (1.0 - ellipk_slope(first, m) / first * ratio * ratio * 2.0)


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


known("elliprc", _degenerate, lambda out, x, y: -((out * 0.5 + x * _degenerate(out, x, y)) / y))              # homogeneous of degree -1/2
known("elliprd", *[_second(k) for k in range(3)])
known("elliprj", *[_third(k) for k in range(4)])
known("elliprf", *[lambda out, *xs, k=k: elliprd(xs[k - 1], xs[k - 2], xs[k]) * (-1.0 / 6.0) for k in range(3)])
known("elliprg", *[lambda out, *xs, k=k: (function("elliprf")(*xs) * 3.0 - xs[k] * elliprd(xs[k - 1], xs[k - 2], xs[k])) * (1.0 / 12.0)
                    for k in range(3)])
