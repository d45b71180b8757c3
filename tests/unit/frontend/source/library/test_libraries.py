"""SciPy's own functions and NumPy's constructors in functions that are captured from source."""

import functools
import math
import typing

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse.linalg
import scipy.special
import scipy.stats
from scipy.special import logsumexp

import bwcompiler as bw
from bwcompiler.frontend.tracing.trace import trace
from tests.support.derivatives import check_derivatives
from tests.unit.frontend.comparing import as_python

X = np.array([0.3, -0.2, 0.9])


def mixture(x):
    return logsumexp(scipy.stats.norm.logpdf(x[:, None], np.array([0.0, 1.0]), 0.5), axis=1).sum()


def quadratic(x):
    return x @ scipy.linalg.solve(np.eye(3) * 2.0 + np.outer(x, x), x)


def known(x):
    weights = scipy.special.softmax([1.0, 2.0, 3.0])         # nothing traced: SciPy's own
    return (weights * x).sum()


def built(x):
    table = np.eye(3)
    table[0, 1] = x[0]
    y = np.array([x[0], x[1] * 2])
    z = np.r_[y, 1.0] + np.c_[x, x][:, 0]
    picked = np.eye(4)[np.argmax(x)]
    grid = np.linspace(0.0, x[2], 3)
    return table @ z + grid, picked, isinstance(x, np.ndarray), f"{x.shape}" == "(3,)"


def buffers(x):
    low = np.array([1.0, 2.0, 3.0])
    view = low[1:]
    view[0] = x[0]
    low += x
    mask = np.array([True, False, True])
    full = np.zeros(3)
    full[mask] = x[mask]
    np.copyto(full, x, where=mask)
    return low, full


def nested(x):
    def make(n):
        return np.zeros(n)

    class Holder:
        def __init__(self, n):
            self.data = make(n)

    holder = Holder(3)
    holder.data[1] = x[1]
    return holder.data


@pytest.mark.parametrize("function", [mixture, quadratic, known, built, buffers, nested], ids=lambda one: one.__name__)
def test_as_numpy(function):
    expected, found = function(X.copy()), bw.jit(function)(X.copy())
    for one, other in zip(expected if isinstance(expected, tuple) else (expected,), found if isinstance(found, tuple) else (found,),
                          strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-12)


@pytest.mark.parametrize("function", [mixture, quadratic, known], ids=lambda one: one.__name__)
def test_gradient(function):
    direction, h = np.array([0.5, -1.0, 0.25]), 1e-6
    numeric = (function(X + h * direction) - function(X - h * direction)) / (2 * h)
    assert bw.grad(function)(X) @ direction == pytest.approx(numeric, rel=1e-6)


def test_objects_made_in_a_loop():
    class Ball:
        def __init__(self, position):
            self.position = position
            self.history = [position]

        def moved(self, by):
            self.position = self.position + by
            self.history.append(self.position)
            return self

    def path(x):
        total = 0.0
        for k in range(10):
            ball = Ball(x * k).moved(1.0)
            total += ball.position + ball.history[0]
        return total

    assert bw.jit(path)(0.5) == pytest.approx(path(0.5), rel=1e-14)
    assert not trace(path, (0.5,)).notes


# ----- np.polynomial: Python that calls NumPy
P = np.polynomial
TABLE = np.arange(12.0).reshape(3, 4) + 1
POLYNOMIALS = {
    **{f"{name}val of tables": (lambda x, space=space, name=name: getattr(space, f"{name}val")(x, TABLE))      # a table of results
       for space, name in ((P.polynomial, "poly"), (P.chebyshev, "cheb"), (P.legendre, "leg"), (P.hermite, "herm"), (P.laguerre, "lag"))},
    "values of coefficients": lambda x: (P.legendre.legval(0.3, x), P.hermite_e.hermeval(x, x), P.polynomial.polyvalfromroots(x, TABLE[:, :1])),
    "values in planes": lambda x: (P.polynomial.polyval2d(x, x, TABLE), P.chebyshev.chebval2d(x, x, TABLE), P.polynomial.polygrid2d(x, x, TABLE)),
    "matrices": lambda x: (P.legendre.legvander(x, 2), P.polynomial.polyvander2d(x, x, [1, 2]), P.polynomial.polycompanion(x)),
    "calculus": lambda x: (P.polynomial.polyder(x), P.chebyshev.chebder(x, 2), P.legendre.legint(x), P.polynomial.polyint(x, k=[2.0])),
    "algebra": lambda x: (P.polynomial.polymul(x, [1, 2]), P.polynomial.polyadd(x, [1, 2]), P.polynomial.polypow(x, 2), P.chebyshev.chebmul(x, x),
                          P.polynomial.polyfromroots(x), P.polynomial.polydiv(x, [1.0, 2.0])[0]),
    "objects": lambda x: (P.Polynomial([1, 2, 3])(x), P.Chebyshev([1, 2, 3], domain=[0, 2])(x), np.poly1d([1.0, 2.0, 3.0])(x)),
}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name: str) -> None:
    """As NumPy's: also what looks whether its argument is an array, and makes tables then."""
    fun = POLYNOMIALS[name]
    found, expected = bw.jit(fun)(X), fun(X)
    for one, other in zip(found, expected, strict=True) if isinstance(expected, tuple) else ((found, expected),):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_derivatives_of_polynomials() -> None:
    check_derivatives(lambda x: (P.legendre.legval(x, TABLE), P.Chebyshev([1, 2, 3], domain=[0, 2])(x), P.polynomial.polymul(x, x)), X)


CONVERSIONS = {
    "kinds": lambda x: [kind(x).convert(kind=P.Polynomial).coef for kind in (P.Chebyshev, P.Legendre, P.Hermite, P.HermiteE, P.Laguerre)],
    "domains": lambda x: [P.Chebyshev(x, domain=[0, 2]).convert(domain=[-1, 3]).coef, P.Laguerre.cast(P.Legendre(x), domain=[1, 2]).coef],
    "fits": lambda x: [P.Polynomial.fit(np.arange(3.0), x, 2).convert().coef, P.Polynomial.fit(x, x**3, 2).convert().coef,
                       P.Chebyshev.fit(x, np.exp(x), 1).convert(kind=P.Hermite, domain=[0, 1])(0.3)],
    "series of series": lambda x: [P.Legendre(x)(P.Polynomial([1.0, 2.0, 3.0])).coef, P.Polynomial(x)(P.Chebyshev(x)).coef,
                                   P.Polynomial(x[:1]).convert().coef],
}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversions_of_series(name: str) -> None:
    fun = CONVERSIONS[name]
    for one, other in zip(bw.jit(fun)(X), fun(X), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    check_derivatives(fun, X)


def test_is_scalar() -> None:
    """As of NumPy's scalars and arrays without axes."""
    found = bw.jit(lambda x, y, z: (np.isscalar(x), np.isscalar(x[0]), np.isscalar(y), np.isscalar(z), np.isscalar("")))(X, 2.0, np.array(2.0))
    assert [bool(one) for one in found] == [False, True, True, False, True]


def test_functions_that_may_give_their_argument_back() -> None:
    def fun(x):
        y = np.asanyarray(x)
        y[0] = 5.0
        z = np.ascontiguousarray([x[1], 2.0])
        z[1] = x[0]
        return x * 1, y, z
    for one, other in zip(bw.jit(fun, mutates=False)(X), fun(X.copy()), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_module_of_the_users_with_a_name_like_numpys() -> None:
    """Its functions are captured like others, not called with known numbers as NumPy's are."""
    def branching(x):
        return np.sin(x) if x[0] > 0 else np.cos(x)

    branching.__module__ = "numpy_tools"
    np.testing.assert_allclose(bw.jit(lambda x: branching(x))(X), np.sin(X))
    np.testing.assert_allclose(bw.jit(lambda x: branching(x))(-X), np.cos(X))


# ----- known factors of sparse matrices
def _sparse():
    return scipy.sparse.diags([-np.ones(4), np.arange(2.5, 7.0), -0.5 * np.ones(4)], [-1, 0, 1]).tocsc()


MATRIX = _sparse()


@pytest.mark.parametrize("solve", [
    lambda factors, b: factors.solve(b), lambda factors, b: factors.solve(b, trans="T"), lambda factors, b: factors.solve(b, "H"),
    lambda _, b: scipy.sparse.linalg.splu(MATRIX).solve(b), lambda _, b: scipy.sparse.linalg.factorized(MATRIX)(b),
    lambda _, b: scipy.sparse.linalg.spilu(MATRIX).solve(b)])
def test_known_factors_solve_for_traced_right_hand_sides(solve):
    factors = scipy.sparse.linalg.splu(MATRIX)
    for b in (np.arange(5.0), np.arange(15.0).reshape(5, 3)):
        np.testing.assert_allclose(bw.jit(lambda b: solve(factors, b))(b), solve(factors, b), rtol=1e-14)
    bw.check_grads(lambda b: solve(factors, b) ** 2, (np.arange(5.0),), order=2)


def test_known_complex_factors_and_factors_in_loops():
    factors, steps = scipy.sparse.linalg.splu((MATRIX * (1 + 0.5j)).tocsc()), scipy.sparse.linalg.splu(MATRIX)
    b = np.arange(5.0) + 1j
    for trans in "NTH":
        np.testing.assert_allclose(bw.jit(lambda b, t=trans: factors.solve(b, trans=t))(b), factors.solve(b, trans=trans), rtol=1e-14)

    def implicit(u):
        for _ in range(20):
            u = steps.solve(u + 0.1)
        return u
    np.testing.assert_allclose(bw.jit(implicit)(np.ones(5)), implicit(np.ones(5)), rtol=1e-14)


def test_matrices_that_change_in_place_are_factorised_again():
    matrix = _sparse()
    function = bw.jit(lambda b: scipy.sparse.linalg.splu(matrix).solve(b))
    before = function(np.ones(5))
    matrix.data *= 2.0
    np.testing.assert_allclose(function(np.ones(5)), before / 2.0, rtol=1e-14)


GIVEN = [scipy.special.logsumexp, scipy.special.softmax, scipy.stats.norm.logpdf, scipy.stats.norm(0.5, 2.0).logpdf,
         functools.partial(scipy.linalg.solve, np.eye(3) * 2.0), sum, abs, np.polynomial.Polynomial([1.0, 2.0, 3.0]), np.linalg.norm]


@pytest.mark.parametrize("function", GIVEN, ids=range(len(GIVEN)))
def test_functions_of_libraries_may_be_given_to_transforms(function):
    np.testing.assert_allclose(bw.jit(function)(X), function(X), rtol=1e-14)
    np.testing.assert_allclose(bw.vmap(function)(np.stack([X, X * 2])), np.stack([function(X), function(X * 2)]), rtol=1e-13)
    np.testing.assert_allclose(bw.jacobian(function)(X), bw.jacobian(lambda x: function(x))(X), rtol=1e-14)


def test_derivatives_of_functions_of_libraries():
    matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    np.testing.assert_allclose(bw.grad(scipy.linalg.det)(matrix), [[3.0, -1.0], [-1.0, 2.0]], rtol=1e-14)
    np.testing.assert_allclose(bw.grad(scipy.stats.norm.logpdf)(0.3), -0.3, rtol=1e-14)
    assert bw.value_and_grad(math.sin)(0.3) == (math.sin(0.3), pytest.approx(math.cos(0.3)))


def test_nodes_of_a_quadrature_are_computed_while_a_loop_is_traced():
    def program(x):
        total = 0.0
        for k in range(12):
            nodes, weights = np.polynomial.legendre.leggauss(5)
            nodes *= 0.5
            total += np.sum(weights * np.exp(nodes * x[k]))
        return total
    x = np.linspace(-1.0, 1.0, 12)
    as_python(program, x)
    assert "legendre.py" not in bw.jit(program).explain(x)


def test_casts_of_types_are_captured() -> None:
    def program(x):
        total = 0.0
        for k in range(12):
            y = typing.cast(np.ndarray, np.sin(x * k))
            if y[0] > 0.5:
                y = typing.cast("np.ndarray", y * x)
            total = total + np.sum(y)
        return total

    as_python(program, X)
    assert any(value.op.name == "loop" for value in trace(program, (X,)).graph.body)
