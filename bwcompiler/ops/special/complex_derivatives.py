"""Derivatives of the functions of scipy.special that SciPy's loops compute of complex numbers, where they are holomorphic; and those of
real functions that are written with them.

As in `derivatives`; parameters (orders, degrees) are real, and derivatives by them are not known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from bwcompiler.ir.op import Value
from bwcompiler.ops.complex_parts import imag, make_complex, real
from bwcompiler.ops.elementwise import cast, cos, cosh, equal, exp, full_like, less, log, select, sin, sinh, sqrt
from bwcompiler.ops.special import derivatives  # noqa: F401  (of which some rules are used here)
from bwcompiler.ops.special.loops import COMPLEX_DERIVATIVES, PARTIAL_DERIVATIVES, function, part, special_function

SLOPE = 2.0 / math.sqrt(math.pi)
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


def _known(name: str, *rules: Any) -> None:
    COMPLEX_DERIVATIVES[name] = rules


def _complex(x: Value, like: Value) -> Value:
    return cast(x, dtype=like.dtype)


# ----- the error function and its relatives (7.2)
_known("erf", lambda out, z: exp(-(z * z)) * SLOPE)
_known("erfc", lambda out, z: exp(-(z * z)) * -SLOPE)
_known("erfcx", lambda out, z: z * out * 2.0 - SLOPE)
_known("erfi", lambda out, z: exp(z * z) * SLOPE)
_known("dawsn", lambda out, z: 1.0 - z * out * 2.0)
_known("wofz", lambda out, z: z * out * -2.0 + SLOPE * 1j)
_known("ndtr", lambda out, z: exp(z * z * -0.5) * (1.0 / math.sqrt(2 * math.pi)))
_known("log_ndtr", lambda out, z: exp(z * z * -0.5 - out) * (1.0 / math.sqrt(2 * math.pi)))
_known("fresnel", lambda out, z: (sin(z * z * (math.pi / 2)), cos(z * z * (math.pi / 2))))


# ----- the gamma function
def trigamma(z: Value) -> Value:
    """ψ'(z): ten terms of Σ 1 / (z + k)² and an asymptotic series (5.15.8), on the left by reflection (5.15.6)."""
    left = less(real(z), full_like(real(z), 0.5))
    place = select(left, 1.0 - z, z)
    total = None
    for k in range(10):
        term = place + float(k)
        term = 1.0 / (term * term)
        total = term if total is None else total + term
    assert total is not None
    inverse = 1.0 / (place + 10.0)
    square = inverse * inverse
    series, power = inverse + square * 0.5, inverse * square
    for bernoulli in _BERNOULLI:
        series, power = series + power * bernoulli, power * square
    found = total + series
    wave = sin(z * math.pi)
    return select(left, math.pi**2 / (wave * wave) - found, found)


psi = function("psi")
_known("psi", lambda out, z: trigamma(z))
_known("gamma", lambda out, z: out * psi(z))
_known("loggamma", lambda out, z: psi(z))
_known("rgamma", lambda out, z: -(out * psi(z)))

# ----- integrals of elementary functions (6.2, 25.12)
_known("expi", lambda out, z: exp(z) / z)
_known("exp1", lambda out, z: -(exp(-z) / z))
_known("sici", lambda out, z: (sin(z) / z, cos(z) / z))
_known("shichi", lambda out, z: (sinh(z) / z, cosh(z) / z))
_known("wrightomega", lambda out, z: out / (out + 1.0))


def _spence(out: Value, z: Value) -> Value:
    one = equal(z, full_like(z, 1.0))
    return select(one, full_like(z, -1.0), log(z) / (1.0 - select(one, full_like(z, 2.0), z)))


_known("spence", _spence)


# ----- Bessel functions (10.6.1, 10.29.1, 9.2)
def _neighbours(name: str, first: float, second: float, rest: complex = 0.0) -> Callable[..., Value]:
    f = function(name)

    def rule(out: Value, v: Value, z: Value) -> Value:
        found = (f(v - 1.0, z) * first + f(v + 1.0, z) * second) * 0.5
        return found + out * rest if rest else found
    return rule


for _name in ("jv", "yv", "hankel1", "hankel2"):
    _known(_name, None, _neighbours(_name, 1.0, -1.0))
_known("hankel1e", None, _neighbours("hankel1e", 1.0, -1.0, -1j))
_known("hankel2e", None, _neighbours("hankel2e", 1.0, -1.0, 1j))
_known("iv", None, _neighbours("iv", 1.0, 1.0))
_known("kv", None, _neighbours("kv", -1.0, -1.0))
_known("kve", None, _neighbours("kve", -1.0, -1.0, 1.0))
_known("airy", lambda out, z: (out[1], z * out[0], out[3], z * out[2]))

# ----- hypergeometric and elliptic functions (13.3.15, 15.5.1, 19.18.1)
_known("hyp0f1", None, lambda out, v, z: function("hyp0f1")(v + 1.0, z) / _complex(v, z))
_known("hyp1f1", None, None, lambda out, a, b, z: _complex(a / b, z) * function("hyp1f1")(a + 1.0, b + 1.0, z))
_known("hyp2f1", None, None, None, lambda out, a, b, c, z: _complex(a * b / c, z) * function("hyp2f1")(a + 1.0, b + 1.0, c + 1.0, z))
_known("elliprc", lambda out, x, y: function("elliprd")(y, y, x) * (-1.0 / 6.0),
       lambda out, x, y: function("elliprd")(x, y, y) * (-1.0 / 3.0))
_known("elliprf", *[lambda out, *xs, k=k: function("elliprd")(xs[k - 1], xs[k - 2], xs[k]) * (-1.0 / 6.0) for k in range(3)])
_known("elliprg", *[lambda out, *xs, k=k: (function("elliprf")(*xs) * 3.0 - xs[k] * function("elliprd")(xs[k - 1], xs[k - 2], xs[k]))
                    * (1.0 / 12.0) for k in range(3)])


# ----- polynomials of a degree that is not whole, too (18.9)
def _polynomial(name: str, lower: str, factor: Callable[..., Value], *middle: Callable[..., Value]) -> None:
    def rule(out: Value, n: Value, *rest: Value) -> Value:
        *parameters, z = rest
        constant = less(n, full_like(n, 0.5))
        degree = select(constant, full_like(n, 1.0), n) - 1.0
        slope = function(lower)(degree, *[one(n, *parameters) for one in middle], z)
        return select(constant, full_like(z, 0.0), _complex(factor(n, *parameters), z) * slope)
    _known(name, *[None] * (len(middle) + 1 if name in ("eval_gegenbauer", "eval_genlaguerre", "eval_jacobi") else 1), rule)


_polynomial("eval_chebyt", "eval_chebyu", lambda n: n)
_polynomial("eval_legendre", "eval_gegenbauer", lambda n: full_like(n, 1.0), lambda n: full_like(n, 1.5))
_polynomial("eval_chebyu", "eval_gegenbauer", lambda n: full_like(n, 2.0), lambda n: full_like(n, 2.0))
_polynomial("eval_laguerre", "eval_genlaguerre", lambda n: full_like(n, -1.0), lambda n: full_like(n, 1.0))
_polynomial("eval_gegenbauer", "eval_gegenbauer", lambda n, a: a * 2.0, lambda n, a: a + 1.0)
_polynomial("eval_genlaguerre", "eval_genlaguerre", lambda n, a: full_like(n, -1.0), lambda n, a: a + 1.0)
_polynomial("eval_jacobi", "eval_jacobi", lambda n, a, b: (n + a + b + 1.0) * 0.5, lambda n, a, b: a + 1.0, lambda n, a, b: b + 1.0)


# ----- real functions
def _voigt(x: Value, sigma: Value, gamma: Value) -> tuple[Value, Value, Value]:
    """z, and w'(z) over √(2π) σ, of V = Re w(z) / (√(2π) σ) with z = (x + iγ) / (√2 σ)."""
    scale = sigma * math.sqrt(2.0)
    z = make_complex(x / scale, gamma / scale)
    slope = (z * function("wofz")(z) * -2.0 + SLOPE * 1j) / _complex(sigma * math.sqrt(2 * math.pi), z)
    return z, slope, scale


def _voigt_by_place(out: Value, *xs: Value) -> Value:
    _, slope, scale = _voigt(*xs)
    return real(slope) / scale


def _voigt_by_width(out: Value, x: Value, sigma: Value, gamma: Value) -> Value:
    z, slope, _ = _voigt(x, sigma, gamma)
    return -((out + real(z * slope)) / sigma)


def _voigt_by_decay(out: Value, *xs: Value) -> Value:
    _, slope, scale = _voigt(*xs)
    return -(imag(slope) / scale)


PARTIAL_DERIVATIVES["voigt_profile"] = (_voigt_by_place, _voigt_by_width, _voigt_by_decay)


def _airy(x: Value) -> tuple[Value, Value]:
    found = special_function(x, name="airy", results=4)
    return part(found, 0, 4), part(found, 2, 4)


def _scaled_airy(out: list[Value], x: Value) -> tuple[Value, ...]:
    """Ai and Ai' times exp(ξ), Bi and Bi' times exp(-ξ), ξ = 2/3 x^(3/2); nothing is scaled where x < 0."""
    negative = less(x, full_like(x, 0.0))
    root = select(negative, full_like(x, 0.0), sqrt(select(negative, full_like(x, 1.0), x)))
    first, first_slope, second, second_slope = out
    return first_slope + root * first, x * first + root * first_slope, second_slope - root * second, x * second - root * second_slope


PARTIAL_DERIVATIVES["airye"] = (_scaled_airy,)
PARTIAL_DERIVATIVES["itairy"] = (lambda out, x: (*_airy(x), *_airy(-x)),)
PARTIAL_DERIVATIVES["zetac"] = PARTIAL_DERIVATIVES["_riemann_zeta"]


def _shifted(name: str) -> None:
    """A polynomial of 2x - 1."""
    rule = PARTIAL_DERIVATIVES[f"eval_{name}"][-1]
    PARTIAL_DERIVATIVES[f"eval_sh_{name}"] = (None, lambda out, n, x: rule(out, n, x * 2.0 - 1.0) * 2.0)


for _name in ("legendre", "chebyt", "chebyu"):
    _shifted(_name)
