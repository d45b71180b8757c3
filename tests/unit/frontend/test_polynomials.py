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
