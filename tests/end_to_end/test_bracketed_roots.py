"""`brentq` and `bisect` inside of programs are native loops: SciPy's steps, its results and what it raises, and the equation's derivative."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import bwcompiler as bw

METHODS = [scipy.optimize.brentq, scipy.optimize.bisect]
P, T = np.array([0.5, 0.7, 1.0]), np.random.default_rng(0).uniform(0, 20, 60)


@pytest.mark.parametrize("find", METHODS)
def test_roots_in_a_loop(find: Any) -> None:
    def program(p: Any, t: Any) -> Any:
        total = 0.0
        for k in range(len(t)):
            total += find(lambda x: p[0] * x**3 + np.exp(p[1] * x) - t[k] + p[2] * np.tanh(20 * (x - 1)), -3.0, 4.0) ** 2
        return total

    value, slope = bw.value_and_grad(program)(P, T)
    np.testing.assert_allclose(value, program(P, T), rtol=1e-13)
    direction = np.array([1.0, 0.5, -0.3])
    near, far = (program(P + sign * 1e-4 * direction, T) for sign in (1, -1))
    np.testing.assert_allclose(slope @ direction, (near - far) / 2e-4, rtol=1e-6)
    assert "while_loop" in bw.compile(program, P, T).as_text("forward")


@pytest.mark.parametrize("find", [
    lambda f: scipy.optimize.brenth(f, -3.0, 4.0), lambda f: scipy.optimize.newton(f, 1.0), lambda f: scipy.optimize.fsolve(f, 1.0)[0],
    lambda f: scipy.optimize.root_scalar(f, x0=1.0, x1=2.0).root])
def test_solvers_whose_function_reads_what_a_loop_is_at(find: Any) -> None:
    """Where their functions are called, there is no index of that loop."""
    def program(p: Any, t: Any) -> Any:
        total, rows = 0.0, np.outer(t, p)
        for k in range(len(t)):
            row = rows[k]
            total += find(lambda x: p[0] * x**3 + x * p[1] - t[k] + 0.02 * row[0] * k) ** 2
        return total

    value, slopes = bw.value_and_grad(program, (0, 1))(P, T[:12])
    np.testing.assert_allclose(value, program(P, T[:12]), rtol=1e-6)
    near, far = (program(P, T[:12] + sign * 1e-4) for sign in (1, -1))
    np.testing.assert_allclose(slopes[1].sum(), (near - far) / 2e-4, rtol=1e-4)
    near, far = (program(P + sign * 1e-4, T[:12]) for sign in (1, -1))
    np.testing.assert_allclose(slopes[0].sum(), (near - far) / 2e-4, rtol=1e-4)


@pytest.mark.parametrize("find", METHODS)
def test_kepler_in_every_mode(find: Any) -> None:
    anomaly = lambda e, m: find(lambda x: x - e * np.sin(x) - m, 0.0, np.pi)
    x = anomaly(0.3, 1.0)
    np.testing.assert_allclose(bw.value_and_grad(anomaly)(0.3, 1.0), (x, np.sin(x) / (1 - 0.3 * np.cos(x))), rtol=1e-12)
    np.testing.assert_allclose(bw.jacfwd(anomaly)(0.3, 1.0), np.sin(x) / (1 - 0.3 * np.cos(x)), rtol=1e-12)
    slope = bw.grad(anomaly)
    np.testing.assert_allclose(bw.grad(slope)(0.3, 1.0), (slope(0.3001, 1.0) - slope(0.2999, 1.0)) / 2e-4, rtol=1e-6)
    places = np.array([0.3, 0.9, 0.5]), np.array([1.0, 0.01, 3.0])
    np.testing.assert_array_equal(bw.vmap(anomaly)(*places), [anomaly(e, m) for e, m in zip(*places, strict=True)])


@pytest.mark.parametrize("find", METHODS)
@pytest.mark.parametrize("f, options", [
    (lambda x, c: (x + 1) * c, {}), (lambda x, c: (x - 2) * c, {}), (lambda x, c: (2 - x) * c, {"xtol": 1e-3}),
    (lambda x, c: np.tanh(x - c), {"maxiter": 3, "disp": False}), (lambda x, c: (x - c) ** 9, {"xtol": 1e-4, "rtol": 1e-6}),
    (lambda x, c: x**2 + c, {}), (lambda x, c: np.exp(x) - 3 * c, {"maxiter": 2}), (lambda x, c: np.log(x) - c, {}),
    (lambda x, c: x - c, {"xtol": -1.0}), (lambda x, c: x - c, {"rtol": 1e-20})])
def test_results_and_errors_are_those_of_scipy(find: Any, f: Any, options: Any) -> None:
    program = lambda c: find(f, -1.0, 2.0, args=(c,), **options)
    try:
        with np.errstate(all="ignore"):
            expected = program(0.7)
    except (ValueError, RuntimeError) as error:
        reason = "NaN; solver cannot continue" if "NaN" in str(error) else str(error)
        with pytest.raises(type(error)) as raised:
            bw.jit(program)(0.7)
        assert reason in str(raised.value)
    else:
        np.testing.assert_allclose(bw.jit(program)(0.7), expected, rtol=1e-14)


def test_an_unknown_keyword_is_refused() -> None:
    with pytest.raises(TypeError, match="iterations"):
        bw.jit(lambda c: bw.scipy.optimize.brentq(lambda x: x - c, -1.0, 2.0, iterations=3))(0.5)
