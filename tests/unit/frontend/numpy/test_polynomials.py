"""np.roots, np.poly, np.emath, np.i0, np.sinc and np.polynomial on traced values against NumPy, with derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
from numpy.polynomial import (
    Chebyshev,
    Hermite,
    HermiteE,
    Laguerre,
    Legendre,
    Polynomial,
    chebyshev,
    hermite,
    hermite_e,
    laguerre,
    legendre,
    polynomial,
)

import bwcompiler as bw
from bwcompiler.errors import TracerBoolError
from tests.support.derivatives import check_derivatives

X, C = np.array([0.3, 0.7, -1.4]), np.array([1.0, -2.0, 0.5, 0.3])
TABLE = np.arange(8.0).reshape(4, 2)
VALUES = [polynomial.polyval, chebyshev.chebval, legendre.legval, hermite.hermval, hermite_e.hermeval, laguerre.lagval]
CLASSES = [Polynomial, Chebyshev, Legendre, Hermite, HermiteE, Laguerre]


def same(function: Callable[..., Any], *args: Any, ordered: bool = True) -> None:
    with np.errstate(all="ignore"):
        found, expected = np.asarray(bw.jit(function)(*args)), np.asarray(function(*args))
    assert found.shape == expected.shape
    if not ordered:
        found, expected = np.sort_complex(found), np.sort_complex(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("value", VALUES, ids=lambda one: one.__name__)
def test_series(value: Any) -> None:
    same(lambda x, c: value(x, c), X, C)
    same(lambda x: (value(x, TABLE), value(x[:2], TABLE, tensor=False).sum(), value(x[0], TABLE))[0], X)
    same(lambda x: value(x, TABLE[:2], tensor=False), X[:2])
    for count in (1, 2):
        same(lambda c, n=count: value(X, c[:n]), C)
    same(lambda x: value(x, C), np.arange(3))
    check_derivatives(bw.jit(lambda x, c: value(x, c)), X, C)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda one: one.__name__)
def test_objects_that_are_known(kind: Any) -> None:
    series = kind(C, domain=[-2, 3])
    same(lambda x: series(x) * series.deriv()(x) + series.integ()(X), X)
    np.testing.assert_allclose(bw.grad(lambda x: series(x).sum())(X), series.deriv()(X), rtol=1e-9)


def test_objects_without_a_hash_are_called() -> None:
    cubic, quadratic = scipy.special.legendre(3), np.poly1d([1.0, 2.0, 3.0])

    def total(x):
        found = 0.0
        for k in range(4):
            found = found + quadratic(x * k).sum() + cubic(x).sum()
        return found

    same(total, X)


def test_roots_and_their_polynomials() -> None:
    same(np.roots, C, ordered=False)
    same(np.roots, np.array([1.0, 0.0, 1.0, 0.0]), ordered=False)                       # with a root at 0
    same(np.roots, np.array([1, -3, 2]), ordered=False)
    assert bw.jit(np.roots)(C[:1]).shape == (0,)
    check_derivatives(lambda c: (lambda r: r.real * r.real - r.imag * r.imag)(np.roots(c)).sum() + np.abs(np.roots(c)).sum(), C, tolerance=1e-5)
    matrix = np.outer(X, X) + np.diag([1.0, 2.0, 3.0]) + np.triu(np.ones((3, 3)))
    for given in (C, matrix, matrix + 1j, C + 1j):
        same(np.poly, given)
    assert bw.jit(np.poly)(matrix).dtype == np.float64
    check_derivatives(np.poly, matrix, tolerance=1e-5)
    with pytest.raises(ValueError, match="square"):
        bw.jit(np.poly)(np.ones((2, 3)))


@pytest.mark.parametrize("name", ["sqrt", "log", "log2", "log10", "arccos", "arcsin", "arctanh"])
def test_emath(name: str) -> None:
    function = getattr(np.emath, name)
    for x in (X, np.array(0.5), np.array([-2, 3]), X + 0.1j):
        same(function, x)
    assert bw.jit(function)(np.array([0.5])).dtype == np.complex128                     # whether it is real is not known
    check_derivatives(lambda x: function(x).real + function(x).imag, X)


def test_emath_of_two() -> None:
    same(lambda x: np.emath.logn(2, x), X)
    for power in (2, -1, 1.5, np.array([2.0, 0.5, 3.0])):
        same(lambda x, p=power: np.emath.power(x, p), X)


def test_i0_and_sinc() -> None:
    for function in (np.i0, np.sinc):
        for x in (X, np.array(0.0), np.array([0, 2]), np.array([1e-9, 0.07, 0.0796, 0.08, 5.0, -30.5])):
            same(function, x)
        check_derivatives(function, np.array([0.0, 0.05, 0.4, -2.0]))
    same(np.sinc, np.array([0.1 + 0.2j, 0, 3j]))
    assert bw.grad(bw.grad(np.sinc))(0.0) == pytest.approx(-np.pi**2 / 3, rel=1e-12)
    with pytest.raises(TypeError, match="complex"):
        bw.jit(np.i0)(X + 1j)


# ----- traced coefficients
SPACES = {"poly": polynomial, "cheb": chebyshev, "leg": legendre, "herm": hermite, "herme": hermite_e, "lag": laguerre}
PLACES = np.linspace(-1.0, 1.0, 8)
HEIGHTS = np.cos(2 * PLACES)
WITH_OBJECTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "value": lambda kind, c, x: kind(c)(x), "in a domain": lambda kind, c, x: kind(c, domain=[-2, 3])(x), "coefficients": lambda kind, c, x: kind(c).coef,
    "derivative": lambda kind, c, x: kind(c).deriv(2)(x), "integral": lambda kind, c, x: kind(c).integ(1, k=[0.5], lbnd=0.1)(x),
    "sums": lambda kind, c, x: (kind(c) + kind([1.0, 2.0]))(x) + (kind([1.0, 2.0]) + kind(c))(x) + (kind(c) - x[0])(x) + (1.0 - kind(c))(x),
    "products": lambda kind, c, x: (kind(c) * kind([1.0, 2.0]))(x) + (kind([1.0, 2.0]) * kind(c))(x) + (2.0 * kind(c))(x) + (-kind(c))(x) + (kind(c) / 2.0)(x),
    "power": lambda kind, c, x: (kind(c) ** 2)(x), "from roots": lambda kind, c, x: kind.fromroots(c[:3])(x), "truncated": lambda kind, c, x: kind(c).truncate(2)(x),
    "fit": lambda kind, c, x: kind.fit(PLACES, HEIGHTS * c[0], 3)(x), "fit at traced places": lambda kind, c, x: kind.fit(PLACES * c[0], HEIGHTS, 2)(x),
    "known": lambda kind, c, x: (kind([1.0, 2.0]) * kind([1.0, 3.0]))(x),
}


@pytest.mark.parametrize("name", WITH_OBJECTS)
@pytest.mark.parametrize("kind", [Polynomial, Chebyshev], ids=lambda one: one.__name__)
def test_objects(kind: Any, name: str) -> None:
    fun = WITH_OBJECTS[name]
    same(lambda c, x: fun(kind, c, x), C, X)
    if kind is Chebyshev:
        check_derivatives(bw.jit(lambda c, x: fun(kind, c, x)), C, X, order=1, tolerance=1e-5)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda one: one.__name__)
def test_roots_of_objects(kind: Any) -> None:
    """From NumPy 2.5 on some of them ask whether all roots are real: that is refused, and `np.roots` says it without asking."""
    asks = np.lib.NumpyVersion(np.__version__) >= "2.5.0" and kind in (Polynomial, Hermite, Laguerre)
    if asks:
        with pytest.raises(TracerBoolError):
            bw.jit(lambda c: kind(c).roots())(C)
        return
    same(lambda c: kind(c).roots(), C, ordered=False)


def test_poly1d_of_traced_coefficients() -> None:
    for fun in (lambda c, x: np.poly1d(c)(x), lambda c, x: (np.poly1d(c) * np.poly1d([1.0, 2.0]) + np.poly1d(c) - 2.0)(x), lambda c, x: np.poly1d(c).deriv()(x),
                lambda c, x: np.poly1d(c).integ(2, k=[1.0, 2.0])(x), lambda c, x: np.poly1d(c, True)(x), lambda c, x: np.poly1d(c).coeffs, lambda c, x: np.poly1d(c)[1],
                lambda c, x: np.poly1d(c).order + x, lambda c, x: (np.poly1d(c) ** 2)(x), lambda c, x: (2.0 * np.poly1d(c))(x), lambda c, x: (-np.poly1d(c) / 2.0)(x)):
        same(fun, C, X)
    same(lambda c: np.poly1d(c).roots, C, ordered=False)
    check_derivatives(bw.jit(lambda c, x: (np.poly1d(c) * np.poly1d(c).deriv())(x)), C, X)


@pytest.mark.parametrize("name", SPACES)
def test_fits_and_conversions(name: str) -> None:
    """By all spellings of the degree and with weights, of traced heights and places; functions that look for zeros."""
    space = SPACES[name]
    fit, weights = getattr(space, f"{name}fit"), PLACES + 2.0
    for call in (lambda x, y: fit(x, y, 3), lambda x, y: fit(x, np.stack([y, x], 1), [0, 2]), lambda x, y: fit(x, y, 3, w=weights), lambda x, y: fit(x, y, 2, rcond=1e-9),
                 lambda x, y: fit(x, y, 2, full=True)[0], lambda x, y: fit(x, y, 2, full=True)[1][2], lambda x, y: fit(PLACES, y, [1])):
        same(call, PLACES, HEIGHTS)
    check_derivatives(bw.jit(lambda x, y: fit(x, y, 2)), PLACES, HEIGHTS, tolerance=1e-4)
    same(lambda c: getattr(space, f"{name}mulx")(c), C)
    same(lambda c: getattr(space, f"{name}mulx")(c[:1]), C)
    same(lambda c: getattr(space, f"{name}line")(c[0], c[1]), C)
    if name != "poly":
        same(lambda c: getattr(space, f"{name}2poly")(c), C)
        same(lambda c: getattr(space, f"poly2{name}")(c), C)
    with pytest.raises(ValueError, match="deg"):
        bw.jit(lambda y: fit(PLACES, y, -1))(HEIGHTS)
    with pytest.raises(TypeError, match="same length"):
        bw.jit(lambda y: fit(PLACES[:3], y, 1))(HEIGHTS)


def test_polyfit_with_its_covariance() -> None:
    weights = PLACES + 2.0
    for call in (lambda y: np.polyfit(PLACES, y, 2, cov=True)[1], lambda y: np.polyfit(PLACES, y, 2, cov="unscaled", w=weights)[1],
                 lambda y: np.polyfit(PLACES, np.stack([y, y * y], 1), 2, cov=True)[1], lambda y: np.polyfit(PLACES, y, 2, cov=True)[0],
                 *[lambda y, k=k: np.polyfit(PLACES, y, 2, full=True)[k] for k in range(5)]):
        same(call, HEIGHTS)
    check_derivatives(bw.jit(lambda x, y: np.polyfit(x, y, 2, cov=True)[1]), PLACES, HEIGHTS, tolerance=1e-4)
    with pytest.raises(ValueError, match="exceed"):
        bw.jit(lambda y: np.polyfit(PLACES[:3], y[:3], 2, cov=True)[0])(HEIGHTS)
