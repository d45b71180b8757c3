"""Partial derivatives of Bessel functions, and of what is made of them (Struve, Airy, Kelvin, parabolic cylinder), as in `derivatives`."""

from __future__ import annotations

import math
from collections.abc import Callable

from bwcompiler.ir.op import Value
from bwcompiler.ops.elementwise import full_like, less, power, select, sign, sqrt
from bwcompiler.ops.special.loops import Rule, function, known
from bwcompiler.ops.special.series import polynomial, with_series


# ----- derivatives by recurrence (10.6.1, 10.29.1), those by the order are not known
def _two(x: Value) -> Value:
    return full_like(x, 2.0)


def _neighbours(name: str, first: float, second: float) -> Rule:
    """(first f(v - 1, x) + second f(v + 1, x)) / 2."""
    f = function(name)
    return lambda out, v, x: (f(v - 1.0, x) * first + f(v + 1.0, x) * second) * 0.5


j0, j1, y0, y1, i0, i1, k0, k1 = (function(_name) for _name in ("j0", "j1", "y0", "y1", "i0", "i1", "k0", "k1"))
i0e, i1e, k0e, k1e, jv, yv, iv, ive, kv, kve = (function(_name) for _name in (
    "i0e", "i1e", "k0e", "k1e", "jv", "yv", "iv", "ive", "kv", "kve"))
known("j0", lambda out, x: -j1(x))
known("j1", lambda out, x: (j0(x) - jv(_two(x), x)) * 0.5)
known("y0", lambda out, x: -y1(x))
known("y1", lambda out, x: (y0(x) - yv(_two(x), x)) * 0.5)
known("i0", lambda out, x: i1(x))
known("i1", lambda out, x: (i0(x) + iv(_two(x), x)) * 0.5)
known("i0e", lambda out, x: i1e(x) - sign(x) * out)
known("i1e", lambda out, x: (i0e(x) + ive(_two(x), x)) * 0.5 - sign(x) * out)
known("k0", lambda out, x: -k1(x))
known("k1", lambda out, x: (k0(x) + kv(_two(x), x)) * -0.5)
known("k0e", lambda out, x: out - k1e(x))
known("k1e", lambda out, x: out - (k0e(x) + kve(_two(x), x)) * 0.5)
for _name in ("jv", "jve", "yv", "yve"):                            # the scaling is by imaginary parts
    known(_name, None, _neighbours(_name, 1.0, -1.0))
known("yn", None, _neighbours("yv", 1.0, -1.0))
known("iv", None, _neighbours("iv", 1.0, 1.0))
known("kv", None, _neighbours("kv", -1.0, -1.0))
known("kn", None, _neighbours("kv", -1.0, -1.0))
known("ive", None, lambda out, v, x: (ive(v - 1.0, x) + ive(v + 1.0, x)) * 0.5 - sign(x) * out)
known("kve", None, lambda out, v, x: out - (kve(v - 1.0, x) + kve(v + 1.0, x)) * 0.5)


def _struve_rest(v: Value, x: Value) -> Value:
    """(x/2)ᵛ / (√π Γ(v + 3/2))."""
    return power(x * 0.5, v) * function("rgamma")(v + 1.5) * (1.0 / math.sqrt(math.pi))


struve, modstruve = function("struve"), function("modstruve")
known("struve", None, lambda out, v, x: (struve(v - 1.0, x) - struve(v + 1.0, x) + _struve_rest(v, x)) * 0.5)             # 11.4.24
known("modstruve", None, lambda out, v, x: (modstruve(v - 1.0, x) + modstruve(v + 1.0, x) + _struve_rest(v, x)) * 0.5)    # 11.4.26
known("airy", lambda out, x: (out[1], x * out[0], out[3], x * out[2]))
known("pbdv", None, lambda out, v, x: (out[1], (x * x * 0.25 - v - 0.5) * out[0]))                   # 12.2.2, of value and slope
known("pbvv", None, lambda out, v, x: (out[1], (x * x * 0.25 - v - 0.5) * out[0]))
known("pbwa", None, lambda out, a, x: (out[1], (a - x * x * 0.25) * out[0]))                         # 12.14.1
known("lpmv", None, None, lambda out, m, v, x: (v * x * out - (v + m) * function("lpmv")(m, v - 1.0, x)) / (x * x - 1.0))     # 14.10.5
known("itj0y0", lambda out, x: (j0(x), y0(x)))
known("iti0k0", lambda out, x: (i0(x), k0(x)))
_HALVES = [1.0 / (4.0**k * math.factorial(k) ** 2) for k in range(1, 10)]             # (I₀(x) - 1) / x² by x²


def _less_one(function_of: Callable[[Value], Value], sign_: float, x: Value) -> Value:
    """(I₀(x) - 1) / x, or with sign -1 (1 - J₀(x)) / x."""
    terms = [sign_**k * coefficient for k, coefficient in enumerate(_HALVES)]
    return x * with_series(x * x, terms, lambda square: (function_of(sqrt(square)) - 1.0) * sign_ / square, reach=0.25)


known("it2j0y0", lambda out, x: (_less_one(j0, -1.0, x), -(y0(x) / x)))
known("it2i0k0", lambda out, x: (_less_one(i0, 1.0, x), -(k0(x) / x)))
known("itstruve0", lambda out, x: struve(full_like(x, 0.0), x))
_ODD = [(-1.0) ** k * 2.0 / (math.pi * math.prod(range(1, 2 * k + 2, 2)) ** 2) for k in range(10)]        # H₀(x) / x by x²
known("it2struve0", lambda out, x: -with_series(x * x, _ODD, lambda square: struve(full_like(x, 0.0), sqrt(square)) / sqrt(square), 0.25))
known("itmodstruve0", lambda out, x: modstruve(full_like(x, 0.0), x))
for _value, _slope in (("ber", "berp"), ("bei", "beip"), ("ker", "kerp"), ("kei", "keip")):
    known(_value, lambda out, x, slope=_slope: function(slope)(x))


# ----- derivatives of Kelvin functions, by their differential equation (10.61.3)
def _kelvin(other: str, sign_: float, quotient: Callable[[Value, Value], Value] = lambda out, x: out / x) -> Rule:
    return lambda out, x: function(other)(x) * sign_ - quotient(out, x)


def _kelvin_quotient(first: int) -> Callable[[Value, Value], Value]:
    """ber'(x) / x with first = 2, bei'(x) / x with 1: Σ ± n/2 (x/2)²ⁿ⁻² / n!² over n = first, first + 2, ..."""
    terms = [(-1.0) ** (k + first - 1) * (first + 2 * k) / 2 / 16.0**k / math.factorial(first + 2 * k) ** 2 for k in range(8)]

    def quotient(out: Value, x: Value) -> Value:
        square, near = x * x, less(x * x, full_like(x, 0.25))
        series = polynomial(select(near, square * square, full_like(x, 0.0)), terms)
        series = series if first == 1 else series * select(near, square, full_like(x, 0.0)) * 0.25
        return select(near, series, out / select(near, full_like(x, 1.0), x))
    return quotient


for _first, _second, _quotients in (("ber", "bei", (_kelvin_quotient(2), _kelvin_quotient(1))), ("ker", "kei", ())):
    known(f"{_first}p", _kelvin(_second, -1.0, *_quotients[:1]))
    known(f"{_second}p", _kelvin(_first, 1.0, *_quotients[1:]))
