"""Partial derivatives of Bessel functions, and of what is made of them (Struve, Airy, Kelvin, parabolic cylinder), as in `derivatives`."""

from __future__ import annotations

import math

from bwcompiler.ir.op import Value
from bwcompiler.ops.elementwise import full_like, power, sign
from bwcompiler.ops.special.loops import Rule, function, known


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
known("it2j0y0", lambda out, x: ((1.0 - j0(x)) / x, -(y0(x) / x)))
known("it2i0k0", lambda out, x: ((i0(x) - 1.0) / x, -(k0(x) / x)))
known("itstruve0", lambda out, x: struve(full_like(x, 0.0), x))
known("it2struve0", lambda out, x: -(struve(full_like(x, 0.0), x) / x))
known("itmodstruve0", lambda out, x: modstruve(full_like(x, 0.0), x))
for _value, _slope in (("ber", "berp"), ("bei", "beip"), ("ker", "kerp"), ("kei", "keip")):
    known(_value, lambda out, x, slope=_slope: function(slope)(x))


# ----- derivatives of Kelvin functions, by their differential equation (10.61.3)
def _kelvin(even: str, odd: str, sign_: float) -> Rule:
    return lambda out, x: function(odd)(x) * sign_ - out / x


for _name, _even, _odd in (("ber", "ber", "bei"), ("ker", "ker", "kei")):
    known(f"{_name}p", _kelvin(_even, _odd, -1.0))
    known(f"{_odd}p", _kelvin(_odd, _even, 1.0))
