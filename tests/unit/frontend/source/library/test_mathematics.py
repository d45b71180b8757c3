"""Functions of Python's modules math and cmath of traced numbers: values, Python's types, derivatives."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend.source.library import mathematics

SMOOTH: dict[str, Callable[..., Any]] = {
    "acos": lambda x, y: math.acos(x / 10), "acosh": lambda x, y: math.acosh(1 + x * x), "asin": lambda x, y: math.asin(x / 10),
    "asinh": lambda x, y: math.asinh(x), "atan": lambda x, y: math.atan(x), "atan2": lambda x, y: math.atan2(x, y),
    "atanh": lambda x, y: math.atanh(x / 10), "cos": lambda x, y: math.cos(x), "cosh": lambda x, y: math.cosh(x),
    "degrees": lambda x, y: math.degrees(x), "dist": lambda x, y: math.dist((x, y, 1.0), [2.0, 3 * x, y]), "erf": lambda x, y: math.erf(x),
    "erfc": lambda x, y: math.erfc(x), "exp": lambda x, y: math.exp(x), "expm1": lambda x, y: math.expm1(x),
    "fabs": lambda x, y: math.fabs(x), "fmod": lambda x, y: math.fmod(x, y), "fsum": lambda x, y: math.fsum([x, y * y, 2.0]),
    "fsum of an iterator": lambda x, y: math.fsum(x * k for k in range(3)), "gamma": lambda x, y: math.gamma(1 + x * x),
    "hypot": lambda x, y: math.hypot(x, y), "hypot of one": lambda x, y: math.hypot(x), "hypot of three": lambda x, y: math.hypot(x, y, 2.0),
    "ldexp": lambda x, y: math.ldexp(1.0, 3) * x, "lgamma": lambda x, y: math.lgamma(1 + x * x), "log": lambda x, y: math.log(x * x),
    "log of a base": lambda x, y: math.log(1 + x * x, 3 + y), "log10": lambda x, y: math.log10(x * x), "log1p": lambda x, y: math.log1p(x * x),
    "log2": lambda x, y: math.log2(x * x), "modf": lambda x, y: math.modf(x)[0] * 2 + math.modf(y)[1],
    "pow": lambda x, y: math.pow(1 + x * x, y), "prod": lambda x, y: math.prod([x, y, 3.0]), "radians": lambda x, y: math.radians(x),
    "remainder": lambda x, y: math.remainder(x, y), "sin": lambda x, y: math.sin(x), "sinh": lambda x, y: math.sinh(x),
    "sqrt": lambda x, y: math.sqrt(1 + x * x), "tan": lambda x, y: math.tan(x), "tanh": lambda x, y: math.tanh(x),
    "floor": lambda x, y: math.floor(x) * y, "ceil": lambda x, y: math.ceil(x) * y, "trunc": lambda x, y: math.trunc(x) * y,
    "copysign": lambda x, y: math.copysign(x, y), "cmath": lambda x, y: abs(cmath.exp(complex(x, y)) * cmath.sqrt(x + 1j)),
    "polar": lambda x, y: cmath.polar(complex(x, y))[0] * cmath.phase(complex(x, y)), "rect": lambda x, y: cmath.rect(x, y).imag,
}
POINTS = [(0.7, 1.3), (-2.4, 0.7), (3.3, -1.7), (-0.2, -2.9)]


@pytest.mark.parametrize("name", SMOOTH)
def test_values_and_derivatives(name: str) -> None:
    function = SMOOTH[name]
    compiled = bw.value_and_grad(function, argnums=(0, 1))
    for x, y in POINTS:
        value, (dx, dy) = compiled(x, y)
        assert value == pytest.approx(function(x, y), rel=1e-13, abs=1e-15)
        assert dx == pytest.approx((function(x + 1e-6, y) - function(x - 1e-6, y)) / 2e-6, rel=1e-6, abs=1e-7)
        assert dy == pytest.approx((function(x, y + 1e-6) - function(x, y - 1e-6)) / 2e-6, rel=1e-6, abs=1e-7)


TESTS: dict[str, Callable[..., Any]] = {
    "floor": lambda x, y: math.floor(x), "ceil": lambda x, y: math.ceil(x), "trunc": lambda x, y: math.trunc(x),
    "isclose": lambda x, y: math.isclose(x, y), "isclose absolute": lambda x, y: math.isclose(x, y, rel_tol=0.0, abs_tol=0.5),
    "isnan": lambda x, y: math.isnan(x), "isinf": lambda x, y: math.isinf(x), "isfinite": lambda x, y: math.isfinite(x),
    "remainder": lambda x, y: math.remainder(x, y), "modf": lambda x, y: math.modf(x), "copysign": lambda x, y: math.copysign(x, y),
    "nextafter": lambda x, y: math.nextafter(x, y), "hypot": lambda x, y: math.hypot(x, y, 1.0),
    "cmath.isclose": lambda x, y: cmath.isclose(x + 1j, y + 1j), "cmath.isinf": lambda x, y: cmath.isinf(complex(x, y)),
}
SPECIAL = [(2.5, 1.0), (3.5, 1.0), (-2.5, 1.0), (5.0, 2.0), (7.0, 2.0), (-0.0, 3.0), (1.0, 1.0 + 1e-10), (1.0, 1.4), (math.inf, 2.0),
           (math.inf, math.inf), (1.0, math.inf), (-math.inf, math.inf), (math.nan, 1.0), (4.0, -3.0), (1e300, 1e-3)]


@pytest.mark.parametrize("name", TESTS)
def test_special_values(name: str) -> None:
    function = TESTS[name]
    compiled = bw.jit(function)
    for x, y in SPECIAL:
        try:
            expected = function(x, y)
        except (ValueError, OverflowError):
            continue
        if isinstance(expected, int) and abs(expected) > 2**62:
            continue
        np.testing.assert_allclose(np.array(compiled(x, y), float), np.array(expected, float), rtol=1e-15)
        np.testing.assert_array_equal(np.signbit(np.array(compiled(x, y), float)), np.signbit(np.array(expected, float)))


def test_what_is_an_integer_is_an_index() -> None:
    def interpolated(table, t):
        k = math.floor(t)
        return table[k] * (k + 1 - t) + table[min(math.ceil(t), 4)] * (t - k)

    table = np.array([1.0, 4.0, 9.0, 16.0, 25.0])
    for t in (0.25, 1.5, 3.75):
        assert bw.jit(interpolated)(table, t) == pytest.approx(interpolated(table, t))
        assert bw.grad(interpolated, 1)(table, t) == pytest.approx(table[int(t) + 1] - table[int(t)])
    assert bw.jit(lambda n: math.floor(n) // 2)(7) == 3


def test_arrays_are_refused() -> None:
    with pytest.raises(TypeError, match=r"math.erf takes numbers, not an array of shape \(2,\)"):
        bw.jit(lambda x: math.erf(x))(np.ones(2))


def test_every_function_of_numbers_is_there() -> None:
    """What is left takes integers that have to be known, or gives parts of their representation."""
    known = {function.__name__ for function in mathematics.MATHEMATICS if function.__module__ == "math"}
    left = {name for name in dir(math) if callable(getattr(math, name)) and not name.startswith("_")} - known
    assert left <= {"comb", "factorial", "gcd", "isqrt", "lcm", "perm", "prod", "frexp", "ldexp", "ulp", "fma"}
