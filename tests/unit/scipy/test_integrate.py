"""`bw.scipy.integrate` against SciPy: sums over samples, Gauss's method, differential equations and their derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate

import bwcompiler as bw
from bwcompiler.errors import ShapeError, UnsupportedError
from tests.support.derivatives import check_derivatives
from tests.unit.frontend.comparing import run_traced

integrate = bw.scipy.integrate
rng = np.random.default_rng(22)
Y, X = rng.normal(size=(3, 7)), np.cumsum(rng.uniform(0.2, 1, 7))


def traced(fun: Any, *args: Any) -> Any:
    return run_traced(fun, *args)[0]


@pytest.mark.parametrize("name", ["trapezoid", "simpson", "cumulative_trapezoid"])
def test_sums_over_samples(name: str) -> None:
    ours, theirs = getattr(integrate, name), getattr(scipy.integrate, name)
    for count in (7, 6, 3, 2):
        y, x = Y[:, :count], X[:count]
        np.testing.assert_allclose(traced(ours, y), theirs(y), rtol=1e-12)
        np.testing.assert_allclose(traced(lambda y: ours(y, dx=0.3), y), theirs(y, dx=0.3), rtol=1e-12)
        np.testing.assert_allclose(traced(lambda y, x: ours(y, x=x), y, x), theirs(y, x=x), rtol=1e-11)
        np.testing.assert_allclose(traced(lambda y, x: ours(y.T, x=x, axis=0), y, x), theirs(y.T, x=x, axis=0), rtol=1e-11)
        np.testing.assert_allclose(traced(lambda y, x: ours(y, x=x), y, y + x), theirs(y, x=y + x), rtol=1e-9)
        check_derivatives(lambda y, x: ours(y, x=x), y, x, tolerance=1e-5)
    with pytest.raises(ShapeError, match="does not fit"):
        ours(Y, X[:3])


def test_the_first_integral() -> None:
    expected = scipy.integrate.cumulative_trapezoid(Y, X, initial=0)
    np.testing.assert_allclose(traced(lambda y, x: integrate.cumulative_trapezoid(y, x, initial=0), Y, X), expected, rtol=1e-12)
    np.testing.assert_allclose(traced(lambda y: integrate.romb(y[:, :5], 0.5), Y), scipy.integrate.romb(Y[:, :5], 0.5), rtol=1e-12)
    with pytest.raises(ValueError, match="power of 2"):
        integrate.romb(Y)
    found = traced(lambda a, b: integrate.fixed_quad(np.exp, a, b, n=7)[0], np.float64(0.3), np.float64(1.7))
    np.testing.assert_allclose(found, np.exp(1.7) - np.exp(0.3), rtol=1e-12)


# ----- differential equations
def force(y: Any, t: Any, a: Any, b: Any) -> Any:
    return -np.sqrt(t) - y + a - np.mean((y + b) ** 2)


Y0, TIMES = np.array([0.3, -0.2, 0.5]), np.array([0.1, 0.13, 0.2, 0.5])
ARGS = np.array([0.2, -0.1, 0.4]), np.array([0.1, 0.3, -0.5])


def test_solutions() -> None:
    found = bw.jit(lambda y0, t, a, b: integrate.odeint(force, y0, t, (a, b)))(Y0, TIMES, *ARGS)
    np.testing.assert_allclose(found, scipy.integrate.odeint(force, Y0, TIMES, ARGS), rtol=1e-6)
    np.testing.assert_allclose(integrate.odeint(force, Y0, TIMES, ARGS), found, rtol=1e-14)
    back = integrate.odeint(lambda y, t: np.array([1.0, -2.0]) * y[::-1], found[-1, :2], np.array([1.0, 0.5, 0.0]))
    np.testing.assert_allclose(back, scipy.integrate.odeint(lambda y, t: np.array([1.0, -2.0]) * y[::-1], found[-1, :2], [1.0, 0.5, 0.0]), rtol=1e-6)
    stiff = integrate.odeint(lambda y, t, k: -k * (y - np.cos(t)), np.zeros(1), np.array([0.0, 1.0]), (200.0,))
    np.testing.assert_allclose(stiff, scipy.integrate.odeint(lambda y, t: -200.0 * (y - np.cos(t)), np.zeros(1), [0.0, 1.0]), rtol=1e-6)
    assert np.isnan(integrate.odeint(force, Y0, TIMES, ARGS, mxstep=1)[1:]).all()
    with pytest.raises(ShapeError, match="one axis"):
        integrate.odeint(force, Y0[None], TIMES, ARGS)


def test_derivatives_of_solutions() -> None:
    weights = rng.normal(size=(4, 3))

    def loss(y0: Any, t: Any, a: Any, b: Any) -> Any:
        return np.sum(weights * integrate.odeint(force, y0, t, (a, b), rtol=1e-11, atol=1e-11))

    gradients = bw.grad(loss, argnums=(0, 1, 2, 3))(Y0, TIMES, *ARGS)
    evaluate = bw.jit(loss)
    for k, gradient in enumerate(gradients):
        direction = rng.normal(size=gradient.shape)
        moved = [[x + h * direction if j == k else x for j, x in enumerate((Y0, TIMES, *ARGS))] for h in (1e-5, -1e-5)]
        expected = (evaluate(*moved[0]) - evaluate(*moved[1])) / 2e-5
        np.testing.assert_allclose((gradient * direction).sum(), expected, rtol=1e-6, atol=1e-8)


def test_arguments_may_be_trees() -> None:
    def fall(y: Any, t: Any, constants: Any, steps: Any) -> Any:
        return -constants["rate"] * y * steps
    found = bw.value_and_grad(lambda c: integrate.odeint(fall, np.ones(1), np.array([0.0, 1.0]), (c, 2))[1, 0])({"rate": 0.7})
    np.testing.assert_allclose(found[0], np.exp(-1.4), rtol=1e-7)
    np.testing.assert_allclose(found[1]["rate"], -2 * np.exp(-1.4), rtol=1e-6)


def test_a_traced_value_that_odeint_is_not_given_is_an_error() -> None:
    solve = lambda rate: bw.scipy.integrate.odeint(lambda y, t: -rate * y, np.ones(1), np.array([0.0, 1.0]))[-1, 0]  # noqa: E731
    np.testing.assert_allclose(bw.jit(solve)(0.5), np.exp(-0.5), rtol=1e-6)
    with pytest.raises(UnsupportedError, match="odeint: fwd reads a traced value from outside\n  hint: pass it as an argument") as caught:
        bw.grad(solve)(0.5)
    assert not hasattr(caught.value, "__notes__")               # no report of a pass that failed: the error is the user's
