"""Partial derivatives of elliptic integrals, elliptic and hypergeometric functions, as in `derivatives`."""

from __future__ import annotations

import math
from collections.abc import Callable

from bwcompiler.ir.op import Value
from bwcompiler.ops.elementwise import equal, full_like, less, select, sin, sqrt
from bwcompiler.ops.special.derivatives import PARTIAL_DERIVATIVES, function

__all__ = ["PARTIAL_DERIVATIVES", "function"]


def _known(name: str, *rules: object) -> None:
    PARTIAL_DERIVATIVES[name] = rules


# ----- elliptic and hypergeometric functions (19.4.1 - 19.5, 13.3.15, 13.3.22, 15.5.1)
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


_known("ellipk", ellipk_slope)
_known("ellipkm1", lambda out, p: -((out - _complete_difference(1.0 - p, lambda _: _near_one(p), ellipe)) / (p * 2.0)))
_known("ellipe", lambda out, m: _complete_difference(m, ellipk, ellipe) * -0.5)


def _agm_slope(out: Value, x: Value, y: Value) -> Value:
    """By x: the mean is π x / (2 K(m)) with m = 1 - (y / x)² (19.8.5)."""
    ratio = y / x
    m = 1.0 - ratio * ratio
    first = ellipk(m)
    return out / x * (1.0 - ellipk_slope(first, m) / first * ratio * ratio * 2.0)


_known("agm", _agm_slope, lambda out, x, y: _agm_slope(out, y, x))
_known("ellipkinc", lambda out, phi, m: 1.0 / _root(phi, m), _incomplete_first)
_known("ellipeinc", lambda out, phi, m: _root(phi, m), lambda out, phi, m: _at_zero(
    m, (sin(phi * 2.0) * 0.5 - phi) * 0.25, lambda m: (out - ellipkinc(phi, m)) / (m * 2.0)))
_known("ellipj", lambda out, u, m: (out[1] * out[2], -(out[0] * out[2]), -(m * out[0] * out[1]), out[2]))
_known("hyp0f1", None, lambda out, v, z: function("hyp0f1")(v + 1.0, z) / v)
_known("hyp1f1", None, None, lambda out, a, b, x: a / b * function("hyp1f1")(a + 1.0, b + 1.0, x))
_known("hyp2f1", None, None, None, lambda out, a, b, c, z: a * b / c * function("hyp2f1")(a + 1.0, b + 1.0, c + 1.0, z))
_known("hyperu", None, None, lambda out, a, b, x: -(a * function("hyperu")(a + 1.0, b + 1.0, x)))
_known("elliprc", lambda out, x, y: function("elliprd")(y, y, x) * (-1.0 / 6.0),
       lambda out, x, y: function("elliprd")(x, y, y) * (-1.0 / 3.0))
_known("elliprf", *[lambda out, *xs, k=k: function("elliprd")(xs[k - 1], xs[k - 2], xs[k]) * (-1.0 / 6.0) for k in range(3)])     # 19.18.1
_known("elliprg", *[lambda out, *xs, k=k: (function("elliprf")(*xs) * 3.0 - xs[k] * function("elliprd")(xs[k - 1], xs[k - 2], xs[k]))
                    * (1.0 / 12.0) for k in range(3)])
