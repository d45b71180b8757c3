"""`bw.scipy.integrate` against SciPy: sums over samples, Gauss's method, differential equations and their derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg

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


def test_derivatives_of_solutions(rng: np.random.Generator) -> None:
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


# ----- SciPy's integrators
def oscillator(t: Any, y: Any, k: Any) -> Any:
    return np.array([y[1], k * (1 - y[0] ** 2) * y[1] - y[0]])


def slopes(t: Any, y: Any, k: Any) -> Any:
    return np.array([[0.0, 1.0], [-2 * k * y[0] * y[1] - 1.0, k * (1 - y[0] ** 2)]])


@pytest.mark.parametrize("method", ["RK45", "DOP853", "Radau", "BDF", "LSODA"])
def test_solve_ivp(method: str) -> None:
    given = {"jac": slopes} if method in ("Radau", "BDF", "LSODA") else {}
    found, expected = (m.solve_ivp(oscillator, (0.0, 40.0), [2.0, 0.0], method, args=(20.0,), rtol=1e-6, **jac) for m, jac in (
        (integrate, {}), (scipy.integrate, given)))
    assert (found.status, found.nfev, found.njev) == (expected.status, expected.nfev, expected.njev)
    np.testing.assert_allclose(found.y, expected.y, rtol=1e-3, atol=1e-3)       # steps amplify last bits


def test_options_of_solve_ivp_go_to_scipy() -> None:
    crossing = lambda t, y, k: y[0]
    crossing.terminal = True
    found, expected = (m.solve_ivp(oscillator, (0.0, 9.0), [2.0, 0.0], args=(2.0,), events=crossing, dense_output=True, t_eval=[0.5, 1.0]) for m in (
        integrate, scipy.integrate))
    np.testing.assert_allclose(found.t_events, expected.t_events, rtol=1e-12)
    np.testing.assert_allclose(found.sol(0.7), expected.sol(0.7), rtol=1e-12)
    assert found.t.tolist() == [0.5, 1.0]
    turning = integrate.solve_ivp(lambda t, z: 1j * z, (0.0, 1.0), [1.0 + 0.0j], "BDF", rtol=1e-8)
    np.testing.assert_allclose(turning.y[0, -1], np.exp(1j), rtol=1e-5)
    as_list = integrate.solve_ivp(lambda t, y: [y[1], -y[0]], (0.0, 1.0), [0.0, 1.0], "Radau", rtol=1e-8)
    np.testing.assert_allclose(as_list.y[0, -1], np.sin(1.0), rtol=1e-6)


def test_sparse_jacobians_where_they_pay() -> None:
    def heat(t: Any, u: Any) -> Any:
        around = np.pad(u, 1)
        return around[2:] - 2 * u + around[:-2] - u**3

    start = np.sin(np.linspace(0.0, 3.0, 300))
    chosen, dense = (integrate.solve_ivp(heat, (0.0, 2.0), start, "BDF", **jac) for jac in ({}, {"jac": "dense"}))
    np.testing.assert_allclose(chosen.y, dense.y, rtol=1e-9)
    slopes = bw.scipy.integrate.solve_ivp.__globals__["slopes"](heat, None, "BDF", 0.0, start, ())
    assert slopes.products(0.0, start) == 3
    sparse = integrate.solve_ivp(heat, (0.0, 2.0), start[:9], "Radau", jac="sparse")
    assert sparse.success


def test_solve_ivp_inside_of_traced_functions() -> None:
    times = np.array([0.0, 0.5, 2.0])
    at = lambda y0, k, times: integrate.solve_ivp(oscillator, (0.0, 2.0), y0, t_eval=times, args=(k,), rtol=1e-10, atol=1e-12).y
    found = bw.jit(at)(np.array([2.0, 0.0]), 1.5, times)
    expected = scipy.integrate.solve_ivp(oscillator, (0.0, 2.0), [2.0, 0.0], t_eval=times, args=(1.5,), rtol=1e-10, atol=1e-12).y
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    last = lambda k: np.sum(integrate.solve_ivp(lambda t, y: oscillator(t, y, k), (0.0, 2.0), np.array([2.0, 0.0]), rtol=1e-10, atol=1e-12).y[:, -1])
    evaluate = bw.jit(last)
    np.testing.assert_allclose(bw.grad(last)(1.5), (evaluate(1.5001) - evaluate(1.4999)) / 2e-4, rtol=1e-6)
    for keywords, hint in (({"method": "Euler"}, "method='RK45'"), ({"events": lambda t, y: y[0]}, "brentq"), ({"min_step": 0.1}, "leave it out")):
        with pytest.raises(UnsupportedError, match=f"hint: .*{hint}"):
            bw.jit(lambda k, keywords=keywords: integrate.solve_ivp(lambda t, y: -k * y, (0.0, 1.0), np.ones(1), **keywords).y[:, -1])(1.0)


@pytest.mark.parametrize("method", ["RK45", "BDF"])
def test_steps_are_at_most_the_longest(method: str) -> None:
    """Else they go past a pulse, for whose forcing the solution is 0 before and after."""
    def last(k: Any, **options: Any) -> Any:
        pulse = lambda t, y: np.array([np.where((t > 1.0) & (t < 1.05), 20.0, 0.0) - k * y[0]])
        return scipy.integrate.solve_ivp(pulse, (0.0, 3.0), np.zeros(1), method, rtol=1e-6, atol=1e-9, **options).y[0, -1]

    exact = lambda k: 20.0 / k * (np.exp(-1.95 * k) - np.exp(-2.0 * k))
    for options in ({"max_step": 0.02}, {"max_step": 0.02, "first_step": 0.005}):
        value, slope = bw.value_and_grad(lambda k, options=options: last(k, **options))(0.7)
        np.testing.assert_allclose((value, slope), (exact(0.7), (exact(0.7001) - exact(0.6999)) / 2e-4), rtol=1e-3)
    np.testing.assert_allclose(bw.jit(lambda k, longest: last(k, max_step=longest))(0.7, 0.02), exact(0.7), rtol=1e-3)


def test_each_element_may_have_its_tolerance() -> None:
    def last(k: Any, atol: Any) -> Any:
        robertson = lambda t, y: [-k * y[0] + 1e4 * y[1] * y[2], k * y[0] - 1e4 * y[1] * y[2] - 3e7 * y[1] ** 2, 3e7 * y[1] ** 2]
        return scipy.integrate.solve_ivp(robertson, (0.0, 0.3), [1.0, 0.0, 0.0], t_eval=[0.3], rtol=1e-6, atol=atol).y[1, -1]

    each = lambda k: last(k, [1e-8, 1e-12, 1e-8])
    reference = (last(0.0401, 1e-12) - last(0.0399, 1e-12)) / 2e-4
    np.testing.assert_allclose(bw.grad(each)(0.04), reference, rtol=3e-3)
    np.testing.assert_allclose(bw.jvp(each, (0.04,), (1.0,))[1], reference, rtol=3e-3)


def test_messages_can_be_shown() -> None:
    """`raise RuntimeError(sol.message)` is what most people write after it."""
    def last(k: Any) -> Any:
        found = scipy.integrate.solve_ivp(lambda t, y: -k * y, (0.0, 1.0), np.ones(1), rtol=1e-9)
        if not found.success or found.status != 0:
            raise RuntimeError("failed: " + found.message)
        assert found.sol is None and found.t_events is None
        return found.y[0, -1]

    np.testing.assert_allclose(bw.value_and_grad(last)(0.5), (np.exp(-0.5), -np.exp(-0.5)), rtol=1e-5)
    with pytest.raises(RuntimeError, match="failed: <result.message, which is known when the program runs>"):
        bw.jit(last)(np.nan)
    with pytest.raises(UnsupportedError, match=r"hint: result\.success says"):
        bw.jit(lambda k: k if scipy.integrate.solve_ivp(lambda t, y: -k * y, (0.0, 1.0), np.ones(1)).message == "ok" else -k)(0.5)


def test_steps_that_the_integrator_chooses_are_known_at_the_ends_only() -> None:
    """What would differ from SciPy, whose steps are as many as data make them, is refused."""
    solved = lambda k: scipy.integrate.solve_ivp(oscillator, (0.5, 2.0), [2.0, 0.0], args=(k,), rtol=1e-9, atol=1e-11)

    def ends(k: Any) -> Any:
        found = solved(k)
        position, speed = found.y
        return np.hstack([found.y[:, -1], found.y[0, 0], found.y[:, 0], found.y.T[-1], found.y[0][-1], found.y[..., -1], found.y[:, -1:].ravel(),
                          found.t[-1], found.t[0], position[-1], speed[0], len(found.y), k * found.success])

    np.testing.assert_allclose(bw.jit(ends)(1.5), ends(1.5), rtol=1e-6)
    for use in (lambda found: np.max(found.y[0]), lambda found: np.trapezoid(found.y[0], found.t), lambda found: found.y[0, 1], lambda found: len(found.t),
                lambda found: found.y.sum(), lambda found: 2.0 * found.y, lambda found: np.array(found.t), lambda found: found.y[:, 1:],
                lambda found: list(found.t), lambda found: found.y.shape[1], lambda found: found.y[:, found.y[0] > 0]):
        with pytest.raises(UnsupportedError, match=r"hint: t_eval=np.linspace"):
            bw.jit(lambda k, use=use: use(solved(k)))(1.5)


@pytest.mark.parametrize("method", ["RK45", "BDF"])
def test_equations_of_complex_numbers(method: str) -> None:
    matrix = np.array([[-0.3 + 0.1j, 0.5], [-0.2j, 0.4j]])

    def solution(y0: Any, c: Any, **keywords: Any) -> Any:
        return scipy.integrate.solve_ivp(lambda t, y: (c * matrix) @ y, (0.0, 1.0), y0, method, t_eval=[0.5, 1.0], rtol=1e-9, atol=1e-9, **keywords).y

    y0, c = np.array([1.0 + 0.5j, -2.0j]), 0.8 + 0.3j
    expected = np.stack([scipy.linalg.expm(c * matrix * t) @ y0 for t in (0.5, 1.0)], -1)
    np.testing.assert_allclose(bw.jit(solution)(y0, c), expected, rtol=1e-6)
    np.testing.assert_allclose(bw.jit(lambda y0: solution(y0, c, jac=lambda t, y: c * matrix))(y0), expected, rtol=1e-6)
    exactly = lambda y0, c: np.sum(np.abs(scipy.linalg.expm(c * matrix) @ y0) ** 2)
    for found, wanted in zip(bw.grad(lambda y0, c: np.sum(np.abs(solution(y0, c)[:, 1]) ** 2), (0, 1))(y0, c), bw.grad(exactly, (0, 1))(y0, c), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    of_real = lambda c: scipy.integrate.solve_ivp(lambda t, y: np.real(c * c) * y, (0.0, 1.0), np.ones(1), method, rtol=1e-9, atol=1e-9).y[0, -1]
    np.testing.assert_allclose(bw.grad(of_real)(c), 2 * c * np.exp((c * c).real), rtol=1e-5)


def robertson(t: Any, y: Any, rates: Any) -> Any:
    slow, fast = -rates[0] * y[0] + rates[1] * y[1] * y[2], rates[2] * y[1] ** 2
    return np.array([slow, -slow - fast, fast])


def test_stiff_equations_inside_of_traced_functions() -> None:
    rates, start, times = np.array([0.04, 1e4, 3e7]), np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 1e4])
    at = lambda rates, times: integrate.solve_ivp(robertson, (0.0, 1e4), start, "Radau", times, args=(rates,), rtol=1e-9, atol=1e-12).y
    exact = lambda rates: scipy.integrate.solve_ivp(robertson, (0.0, 1e4), start, "Radau", times, args=(rates,), rtol=1e-11, atol=1e-14).y
    np.testing.assert_allclose(bw.jit(at)(rates, times), exact(rates), rtol=1e-7)
    last = lambda rates, times: at(rates, times)[0, -1]
    found, of_times = bw.grad(last, (0, 1))(rates, times)
    for k, h in enumerate(rates * 1e-4):
        near = [exact(rates + sign * h * np.eye(3)[k])[0, -1] for sign in (1, -1)]
        np.testing.assert_allclose(found[k], (near[0] - near[1]) / (2 * h), rtol=1e-5)
    np.testing.assert_allclose(of_times[2], robertson(0.0, exact(rates)[:, -1], rates)[0], rtol=1e-6)
    assert np.abs(of_times[:2]).max() < 1e-9                                   # where a solution is read does not move it


@pytest.mark.parametrize("method", ["RK45", "BDF"])
def test_both_kinds_of_methods_in_every_mode(method: str) -> None:
    """Towards smaller times, from a start that is a list, to a function that gives one."""
    last = lambda k: integrate.solve_ivp(lambda t, y: [-k * y[0]], (0.7, 0.0), [1.0], method, rtol=1e-8, atol=1e-10).y[0, -1]
    expected = np.exp(0.7 * 1.3) * np.array([1.0, 0.7, 0.49])
    slope = bw.jacfwd(last)
    np.testing.assert_allclose([*bw.value_and_grad(last)(1.3), bw.jacfwd(slope)(1.3)], expected, rtol=1e-6)
    np.testing.assert_allclose(slope(1.3), expected[1], rtol=1e-6)
    at = lambda k, t: integrate.solve_ivp(lambda t, y: -k * y, (0.0, 3.0), np.ones(1), method, dense_output=True, rtol=1e-8, atol=1e-10).sol(t)
    times = np.array([2.0, 1.0, 3.0])
    np.testing.assert_allclose(bw.jit(at)(0.5, times), [np.exp(-0.5 * times)], rtol=1e-6)


def test_reverse_over_reverse_of_an_implicit_method() -> None:
    last = lambda k: integrate.solve_ivp(lambda t, y: -k * y, (0.0, 1.0), np.ones(1), "Radau", rtol=1e-6).y[0, -1]
    np.testing.assert_allclose(bw.grad(bw.grad(last))(0.5), np.exp(-0.5), rtol=1e-4)


def test_times_of_events_are_roots() -> None:
    def fall(g: Any) -> Any:
        y = lambda t: integrate.solve_ivp(lambda t, y: np.array([y[1], -g + 0 * y[0]]), (0.0, t), np.array([10.0, 0.0]), rtol=1e-9, atol=1e-9).y
        return bw.scipy.optimize.brentq(lambda t: y(t)[0, -1], 0.1, 5.0)
    np.testing.assert_allclose(bw.value_and_grad(fall)(9.81), [np.sqrt(20 / 9.81), -0.5 * np.sqrt(20) * 9.81**-1.5], rtol=1e-7)


def test_lsoda() -> None:
    stiff = lambda y, t, k: -k * (y - np.cos(t)) * np.array([1.0, 2.0])
    slope = lambda y, t, k: np.diag([-k, -2.0 * k])
    times = np.linspace(0.0, 5.0, 6)
    by_rounding = [scipy.integrate.odeint(lambda y, t, k, error=error: stiff(y, t, k) * (1.0 + error), np.zeros(2), times, (1e4,), Dfun=slope,
                                          full_output=True) for error in (0.0, 2.0**-52, 2.0**-46, -(2.0**-46))]
    expected = by_rounding[0][0]
    counts = {(report["nje"][-1], report["nfe"][-1]) for _, report in by_rounding}          # a last bit decides about a step of SciPy's, too
    for keywords in ({"Dfun": True}, {"Dfun": slope}, {}, {"col_deriv": True}):
        found, mine = integrate.odeint(stiff, np.zeros(2), times, (1e4,), full_output=True, **keywords)
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
        assert min(abs(mine["nfe"][-1] - calls) for _, calls in counts) <= 30 and min(abs(mine["nje"][-1] - calls) for calls, _ in counts) <= 4
    first = integrate.odeint(lambda t, y, k: stiff(y, t, k), np.zeros(2), times, (1e4,), tfirst=True)
    np.testing.assert_allclose(first, expected, rtol=1e-6, atol=1e-8)
    inside = bw.jit(lambda k: integrate.odeint(stiff, np.zeros(2), times, (k,), Dfun=slope, hmax=0.1, h0=1e-3))(1.0)
    np.testing.assert_allclose(inside, integrate.odeint(stiff, np.zeros(2), times, (1.0,)), atol=1e-6)
    with pytest.raises(UnsupportedError, match="col_deriv cannot be given"):
        bw.jit(lambda k: integrate.odeint(stiff, np.zeros(2), times, (k,), Dfun=True, col_deriv=True))(1.0)


def test_what_right_hand_sides_read_from_outside_has_derivatives() -> None:
    end = lambda k, by: integrate.odeint(*by(k), rtol=1e-11, atol=1e-11)[-1, 0]
    given = lambda k: (lambda y, t, k: -k["a"] * y, np.ones(1), np.array([0.0, 1.0]), (k,))
    closed = lambda k: (lambda y, t: -k["a"] * y, np.ones(1), np.array([0.0, 1.0]))
    for by in (given, closed):
        np.testing.assert_allclose(bw.grad(end)({"a": 0.7}, by)["a"], -np.exp(-0.7), rtol=1e-8)
        np.testing.assert_allclose(bw.grad(bw.grad(lambda a, by=by: end({"a": a}, by)))(0.7), np.exp(-0.7), rtol=1e-7)


def test_quad() -> None:
    gauss = lambda x, k: np.exp(-k * x * x)
    for ends in ((-np.inf, np.inf), (0.0, 3.0)):
        found, expected = (m.quad(gauss, *ends, args=(2.0,), full_output=True) for m in (integrate, scipy.integrate))
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
        assert found[2]["neval"] == expected[2]["neval"]


def test_quad_inside_of_traced_functions() -> None:
    """Limits, arguments, what is read from outside; infinite limits; against formulas, and SciPy's values."""
    def fun(a: Any, b: Any, k: Any, c: Any) -> Any:
        return integrate.quad(lambda x, k: np.exp(-k * x) * np.sin(c[0] * x) + c[1] * x, a, b, (k,), epsabs=1e-12)[0]

    point = (0.2, 1.7, 1.3, np.array([2.0, 0.4]))
    expected = scipy.integrate.quad(lambda x: np.exp(-1.3 * x) * np.sin(2.0 * x) + 0.4 * x, 0.2, 1.7)[0]
    np.testing.assert_allclose(bw.jit(fun)(*point), expected, rtol=1e-12)
    bw.check_grads(fun, point, order=2)
    gauss = lambda k: integrate.quad(lambda x: np.exp(-k * x * x), -np.inf, np.inf)[0]
    np.testing.assert_allclose([bw.grad(gauss)(2.0), bw.hessian(gauss)(2.0)], np.sqrt(np.pi) * np.array([-0.5 * 2**-1.5, 0.75 * 2**-2.5]), rtol=1e-9)
    np.testing.assert_allclose(bw.vmap(bw.grad(gauss))(np.array([1.0, 2.0])), -0.5 * np.sqrt(np.pi) * np.array([1.0, 2**-1.5]), rtol=1e-9)
    upper = bw.grad(lambda b: integrate.quad(lambda x: 3.0, 0.0, b, points=[0.5])[0])
    assert upper(2.0) == 3.0


def test_double_integrals() -> None:
    fun = lambda k, m: m.dblquad(lambda y, x: np.exp(-k * x * y) * x, 0.0, 1.0, 0.0, lambda x: 2 * k * x)[0]
    np.testing.assert_allclose([fun(1.2, integrate), bw.jit(lambda k: fun(k, integrate))(1.2)], fun(1.2, scipy.integrate), rtol=1e-10)
    slope = (fun(1.20001, scipy.integrate) - fun(1.19999, scipy.integrate)) / 2e-5
    np.testing.assert_allclose(bw.grad(lambda k: fun(k, integrate))(1.2), slope, rtol=1e-6)


@pytest.mark.parametrize(("keywords", "hint"), [({"weight": "cos", "wvar": 1.0}, "multiply"), ({"full_output": 1}, "leave it out")])
def test_what_quad_does_not_take_in_traced_functions(keywords: dict[str, Any], hint: str) -> None:
    with pytest.raises(UnsupportedError, match=f"hint: {hint}"):
        bw.jit(lambda k: integrate.quad(lambda x: k * x, 0.0, 1.0, **keywords)[0])(1.0)
    with pytest.raises(ShapeError, match="one number is expected"):
        bw.jit(lambda k: integrate.quad(lambda x: k * np.ones(2), 0.0, 1.0)[0])(1.0)
