"""`full_output=True` of SciPy's solvers, unchanged in traced functions: roots with derivatives, and SciPy's own counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize as so

import bwcompiler as bw
from bwcompiler.errors import UnsupportedError

POINTS = [np.array([1.2, 2.0, 0.5]), np.array([0.9, 0.3, 2.0]), np.array([3.0, 2.1, 1.0])]
BRACKETING = [so.brentq, so.brenth, so.bisect, so.ridder, so.toms748]


def cubic(t: Any, a: Any, b: Any) -> Any:
    return t**3 + a * t - b


def system(t: Any, x: Any) -> Any:
    return np.array([t[0] ** 3 + x[0] * t[0] - x[1], t[1] + t[0] - x[2]])


def check(program: Any, derivative: Any = None) -> None:
    """The value is NumPy's; the derivative that of what is differentiable in it."""
    compiled = bw.value_and_grad(program)
    for x in (*POINTS, POINTS[0]):
        value, slope = compiled(x)
        np.testing.assert_allclose(value, program(x), rtol=1e-9)
        smooth = derivative or program
        near = [(smooth(x + step) - smooth(x - step)) / 2e-5 for step in np.eye(3) * 1e-5]
        np.testing.assert_allclose(slope, near, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("find", BRACKETING)
def test_between_two_places(find: Any) -> None:
    def program(x: Any) -> Any:
        _, told = find(cubic, -5, 5, args=(x[0], x[1]), full_output=True, xtol=1e-4)
        if not told.converged or told.flag != "converged":
            return 0.0
        return told.root + told.iterations + 0.1 * told.function_calls          # SciPy's, as far as rounding does not decide

    compiled = bw.value_and_grad(program)
    for x in POINTS:
        value, slope = compiled(x)
        root = find(cubic, -5, 5, args=(x[0], x[1]), xtol=1e-4)
        np.testing.assert_allclose(value, program(x), rtol=1e-12)
        np.testing.assert_allclose(slope, np.array([-root, 1.0, 0.0]) / (3 * root**2 + x[0]), rtol=1e-8)


def test_in_loops_branches_and_classes() -> None:
    class Solver:
        def solve(self, a: Any, b: Any) -> Any:
            self.root, self.told = so.brentq(lambda t: cubic(t, a, b), -6.0, 6.0, full_output=True, disp=False)
            return self.root if self.told.converged else 0.0

    def program(x: Any) -> Any:
        solver, total = Solver(), 0.0
        for k in range(3):
            total += solver.solve(x[k], x[1])
        if x[0] > 1:
            root, told = so.brentq(cubic, -5, 5, (x[0], x[1]), full_output=True)
            total = total * root if told.converged else 0.0
        return total

    check(program)


def test_what_was_not_found_is_known_when_the_program_runs() -> None:
    def program(a: Any) -> Any:
        root, told = so.brentq(lambda t: t**3 - a, 0.0, 10.0, maxiter=4, full_output=True, disp=False)
        return root if told.converged else -1.0

    assert bw.jit(program)(8.0) == program(8.0) == -1.0
    with pytest.raises(RuntimeError, match="Failed to converge after 4 iterations"):
        bw.jit(lambda a: so.brentq(lambda t: t**3 - a, 0.0, 10.0, maxiter=4, full_output=True)[0])(8.0)
    with pytest.raises(UnsupportedError, match=r"flag, which is known when the program runs.*\n.*result.converged"):
        bw.jit(lambda a: a if so.brentq(lambda t: t**3 - a, 0.0, 9.0, full_output=True, disp=False)[1].flag == "converged" else 0.0)(8.0)


@pytest.mark.parametrize("slope", [None, lambda t, a, b: 3 * t**2 + a])
def test_newton(slope: Any) -> None:
    def program(x: Any) -> Any:
        root, told = so.newton(cubic, 1.0, slope, (x[0], x[1]), full_output=True)
        return root + 0.01 * told.iterations + told.function_calls if told.converged else 0.0

    check(program, lambda x: so.newton(cubic, 1.0, slope, (x[0], x[1])))


def test_newton_of_each_element() -> None:
    def program(x: Any) -> Any:
        roots, converged, flat = so.newton(lambda t: t**3 + t - x, np.ones(3), full_output=True, tol=1e-12)
        return np.sum(roots**2 * converged) + np.sum(flat)

    check(program)


@pytest.mark.parametrize("start", [[1.0, 1.0], np.ones(2)])
def test_fsolve(start: Any) -> None:
    def program(x: Any) -> Any:
        root, told, flag, message = so.fsolve(system, start, (x,), full_output=True)
        if flag != 1:
            raise RuntimeError(f"failed: {message}")
        return root[0] * root[1] + 0.01 * told["nfev"] + np.sum(told["fvec"]) + told["fjac"].size

    check(program, lambda x: np.prod(so.fsolve(system, start, (x,))))


def test_the_message_of_fsolve_is_a_text_that_data_decide() -> None:
    def program(a: Any) -> Any:
        root, _, flag, message = so.fsolve(lambda t: t**2 + a, 1.0, full_output=True)
        if flag != 1:
            raise RuntimeError(message)
        return root[0]

    assert bw.jit(program)(-4.0) == pytest.approx(2.0)
    with pytest.raises(RuntimeError, match="the message of fsolve, which is known when the program runs"):
        bw.jit(program)(4.0)
    with pytest.raises(UnsupportedError, match="ier == 1 says whether a root was found"):
        bw.jit(lambda a: a if "converged" in so.fsolve(lambda t: t**2 + a, 1.0, full_output=True)[3] else 0.0)(-4.0)


def test_fixed_points() -> None:
    def program(x: Any) -> Any:
        one = so.fixed_point(lambda t: 0.3 * np.cos(t) + 0.1 * x[0], 0.5, xtol=1e-13)
        both = so.fixed_point(lambda t, b: np.array([0.3 * np.cos(t[1]) + 0.1 * x[0], 0.2 * np.sin(t[0]) + 0.1 * b]), np.array([0.5, 0.5]),
                              (x[1],), 1e-13)
        return one * np.sum(both * x[:2])

    check(program)
    assert bw.scipy.optimize.fixed_point(lambda t, a: np.sqrt(a * t), 1.0, (4.0,)) == pytest.approx(4.0)
