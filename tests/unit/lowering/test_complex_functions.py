"""Functions of complex numbers, compiled: values as NumPy's over the plane, at infinities, nan, signed zeros and branch cuts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bwcompiler as bw

Array = np.ndarray[Any, Any]

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, np.inf, -np.inf, np.nan, 1e-300, 1e300, -1e300, 5e-324, 0.75, -3.25, 700.0,
           -700.0, 30.0, 1e-9, -1e-9, 1 + 1e-12, np.pi / 2, 1e-20, 20.0, -25.0]
UNARY = """exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh arccosh arctanh absolute angle
    sign square reciprocal conjugate negative positive rint isnan isinf isfinite""".split()
BINARY = "add subtract multiply divide power maximum minimum fmax fmin less less_equal greater greater_equal equal not_equal".split()
EXACT = frozenset("""conjugate negative positive rint isnan isinf isfinite maximum minimum fmax fmin less less_equal greater greater_equal
    equal not_equal add subtract""".split())
# C99 leaves these signs open: of an infinity or a zero whose other part is nan.
OPEN = frozenset("sin cos sinh cosh arcsin arcsinh tan tanh".split())


def numbers(*parts: list[float]) -> Array:
    """All complex numbers with such parts."""
    x, y = np.meshgrid(*parts)
    z = np.empty(x.size, complex)
    z.real, z.imag = x.ravel(), y.ravel()
    return z


def plane(seed: int, count: int) -> Array:
    """Numbers of many sizes, and some next to the unit circle and next to the branch points 1, -1, i, -i."""
    rng = np.random.default_rng(seed)
    parts = rng.normal(size=(2, count)) * np.exp(2.5 * rng.normal(size=(2, count)))
    circle = np.exp(1j * rng.uniform(0, 7, count // 4)) * (1 + 1e-9 * rng.normal(size=count // 4))
    near = rng.choice([1, -1, 1j, -1j], count // 4) + 1e-6 * (rng.normal(size=count // 4) + 1j * rng.normal(size=count // 4))
    return np.concatenate([parts[0] + 1j * parts[1], circle, near])


def parts_of(z: Array) -> Array:
    return np.stack([z.real, z.imag]) if np.iscomplexobj(z) else np.asarray(z, float)[None]


def differences(found: Array, expected: Array, tolerance: float, open_signs: bool = False) -> Array:
    """Where a result is another one: parts agree in sign, nan and infinity, finite ones within the tolerance of the modulus."""
    a, b = parts_of(found), parts_of(expected)
    unknown = np.isnan(b).any(0) if open_signs else np.zeros(b.shape[1:], bool)
    signs = (np.signbit(a) == np.signbit(b)) | unknown | (a != b)
    with np.errstate(all="ignore"):
        largest = np.max(np.where(np.isfinite(b), np.abs(b), 0), axis=0)
        close = (np.abs(a - b) <= tolerance * largest) & np.isfinite(b)
    same = (a == b) | (unknown & (np.abs(a) == np.abs(b)))
    return ~(((same | close) & signs) | (np.isnan(a) & np.isnan(b))).all(0)


def require_same(name: str, arguments: tuple[Array, ...], tolerance: float) -> None:
    function = getattr(np, name)
    found = np.asarray(bw.jit(lambda *z: function(*z))(*arguments))
    with np.errstate(all="ignore"):
        expected = np.asarray(function(*arguments))
    assert found.dtype == expected.dtype
    wrong = differences(found, expected, 0.0 if name in EXACT else tolerance, name in OPEN)
    rows = [f"{name}({', '.join(str(z[k]) for z in arguments)}) gave {found[k]}, NumPy gives {expected[k]}" for k in np.nonzero(wrong)[0]]
    assert not rows, "\n".join(rows[:10])


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    z = np.concatenate([numbers(SPECIAL, SPECIAL), plane(3, 400)])
    if name == "log1p":                            # NumPy loses the digits of small numbers
        z = z[~((np.abs(z) < 1e-3) & (np.abs(z) > 0))]
    if name == "square":                           # inf - inf, which NumPy computes with one rounding
        with np.errstate(all="ignore"):
            z = z[np.isfinite(z * z)]
    require_same(name, (z,), 2e-13)


@pytest.mark.parametrize("name", UNARY)
def test_unary_in_single_precision(name):
    z = np.concatenate([numbers([0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan, 0.5], [0.0, -0.0, 1.0, -0.5, np.inf, np.nan]), plane(5, 200)])
    z = z[~(np.abs(z) > 80) | ~np.isfinite(z)].astype(np.complex64)
    require_same(name, (z[~(np.abs(z) < 0.1)] if name == "log1p" else z,), 4e-6)


def test_log1p_of_small_numbers():
    z = np.array([1e-9 + 1e-12j, -3e-11 + 2e-7j, 1e-20 - 1e-30j, 0.05 + 0.02j])
    series = z - z**2 / 2 + z**3 / 3 - z**4 / 4 + z**5 / 5 - z**6 / 6 + z**7 / 7 - z**8 / 8
    np.testing.assert_allclose(bw.jit(np.log1p)(z), series, rtol=1e-11)


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    parts = [0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, -3.0]
    if name in ("multiply", "power"):
        parts = [0.0, -0.0, 1.0, -1.0, 0.5, -3.0, 2.0, 7.0, 40.0]
    x, y = np.meshgrid(numbers(parts, parts), numbers(parts, parts))
    rng = np.random.default_rng(8)
    more = rng.normal(size=(2, 500)) + 1j * rng.normal(size=(2, 500))
    require_same(name, (np.concatenate([x.ravel(), more[0]]), np.concatenate([y.ravel(), more[1]])), 3e-12)


@pytest.mark.parametrize("exponent", [-1, 0, 1, 2, 3, 4, 5, 0.5, -2, 31, 1.5, 2j, 1 - 1j])
def test_power_of_a_number(exponent):
    z = plane(9, 200)
    np.testing.assert_allclose(bw.jit(lambda z: z**exponent)(z), z**exponent, rtol=1e-11)


def test_overflow_on_the_way():
    """The modulus overflows, or its square does; the result does not."""
    z = np.array([1.7e308 + 1.7e308j, -1e200 + 1e200j, 1e-200 - 1e-200j, 5e-324 + 5e-324j, 720.0 + 1e-9j])
    for function in (np.log, np.sqrt, np.arcsinh, np.arccos, np.arctan, np.reciprocal, np.exp, np.sinh):
        with np.errstate(all="ignore"):
            expected = function(z)
        assert not differences(bw.jit(lambda z, f=function: f(z))(z), expected, 1e-12).any(), function
