"""custom_linear_solve and custom_root: derivatives without those of the solver, in values that the functions read from outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import GradientError, ShapeError

RNG = np.random.default_rng(0)
M = RNG.standard_normal((4, 4))
A, B, V = M @ M.T + 4 * np.eye(4), RNG.standard_normal(4), RNG.standard_normal(4)


def conjugate_gradients(matvec: Any, b: Any) -> Any:
    """A loop whose derivative would be wrong: the number of steps depends on b."""
    def step(state: Any) -> Any:
        x, r, p, rr = state
        q = matvec(p)
        alpha = rr / (p @ q)
        x, r = x + alpha * p, r - alpha * q
        new = r @ r
        return x, r, r + new / rr * p, new

    return bw.while_loop(lambda state: state[3] > 1e-28, step, (np.zeros_like(b), b, b, b @ b))[0]


def symmetric(a: Any, b: Any) -> Any:
    return bw.custom_linear_solve(lambda x: a @ x, b, conjugate_gradients, symmetric=True)


def general(a: Any, b: Any) -> Any:
    dense = lambda matvec, b: np.linalg.solve(bw.jacobian(matvec)(b), b)
    return bw.custom_linear_solve(lambda x: a @ x, b, dense, transpose_solve=dense)


@pytest.mark.parametrize("solve, a", [(symmetric, A), (general, M + 3 * np.eye(4))], ids=["conjugate gradients", "dense"])
def test_linear_solve(solve: Any, a: Any) -> None:
    direct = lambda a, b: np.linalg.solve(a, b)
    symmetrised = (lambda g: (g + g.T) / 2) if solve is symmetric else (lambda g: g)
    np.testing.assert_allclose(bw.jit(solve)(a, B), direct(a, B), rtol=1e-10)
    for f in (lambda x: np.sum(np.sin(x)), lambda x: x[0]):
        found, expected = (bw.grad(lambda a, b, s=s, f=f: f(s(a, b)), (0, 1))(a, B) for s in (solve, direct))
        np.testing.assert_allclose(symmetrised(found[0]), symmetrised(expected[0]), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-9)
    change = np.outer(V, V)
    np.testing.assert_allclose(bw.jvp(solve, (a, B), (change, V))[1], bw.jvp(direct, (a, B), (change, V))[1], rtol=1e-9)
    np.testing.assert_allclose(bw.jvp(solve, (a, B), (None, V))[1], direct(a, V), rtol=1e-9)
    np.testing.assert_allclose(bw.jacfwd(solve, 1)(a, B), np.linalg.inv(a), rtol=1e-9)
    np.testing.assert_allclose(bw.jacrev(solve, 1)(a, B), np.linalg.inv(a), rtol=1e-9)
    np.testing.assert_allclose(bw.vmap(bw.grad(lambda b: np.sum(solve(a, b) ** 2)))(np.stack([B, V])),
                               [bw.grad(lambda b: np.sum(direct(a, b) ** 2))(b) for b in (B, V)], rtol=1e-9)


@pytest.mark.parametrize("solve", [symmetric, general])
def test_second_derivatives_of_solves(solve: Any) -> None:
    of = lambda solve: lambda s: np.sum(solve(A + s * np.outer(V, V), B) ** 3)
    expected = bw.grad(bw.grad(of(np.linalg.solve)))(0.3)
    np.testing.assert_allclose(bw.grad(bw.grad(of(solve)))(0.3), expected, rtol=1e-8)
    np.testing.assert_allclose(bw.jvp(bw.grad(of(solve)), (0.3,), (1.0,))[1], expected, rtol=1e-8)


def test_trees_and_plain_arrays() -> None:
    solve = lambda matvec, b: {"u": b["u"] / 2.0, "v": b["v"] / 4.0}
    function = lambda b: bw.custom_linear_solve(lambda x: {"u": 2.0 * x["u"], "v": 4.0 * x["v"]}, b, solve, symmetric=True)
    b = {"u": B, "v": 3.0}
    assert function(b)["v"] == 0.75
    gradient = bw.grad(lambda b: np.sum(function(b)["u"]) * function(b)["v"])(b)
    np.testing.assert_allclose(gradient["u"], np.full(4, 0.375))
    np.testing.assert_allclose(gradient["v"], np.sum(B) / 8)


def test_errors() -> None:
    with pytest.raises(GradientError, match="transpose_solve="):
        bw.grad(lambda b: np.sum(bw.custom_linear_solve(lambda x: 2 * x, b, lambda m, b: b / 2)))(B)
    np.testing.assert_allclose(bw.jvp(lambda b: bw.custom_linear_solve(lambda x: 2 * x, b, lambda m, b: b / 2), (B,), (V,))[1], V / 2)
    with pytest.raises(ShapeError, match="solve must return an x like b"):
        bw.jit(lambda b: bw.custom_linear_solve(lambda x: 2 * x, b, lambda m, b: b[:2]))(B)
    with pytest.raises(ShapeError, match="f.x. must be like x"):
        bw.jit(lambda x: bw.custom_root(lambda x: x[:2], x, lambda f, x: x, lambda g, y: y))(B)


# ----- roots
def newton(f: Any, x: Any) -> Any:
    return bw.fori_loop(0, 30, lambda k, x: x - np.linalg.solve(bw.jacobian(f)(x), f(x)), x)


def fixed_point(theta: Any) -> Any:
    """x = tanh(W x) + c."""
    return bw.custom_root(lambda x: x - np.tanh(theta["w"] @ x) - theta["c"], np.zeros(4), newton,
                          lambda g, y: np.linalg.solve(bw.jacobian(g)(y), y))


def test_roots() -> None:
    theta = {"w": 0.3 * M, "c": B}
    x = bw.jit(fixed_point)(theta)
    np.testing.assert_allclose(x, np.tanh(0.3 * M @ x) + B, rtol=1e-12)
    loss = lambda theta: np.sum(fixed_point(theta) ** 2)
    change = {"w": np.outer(V, B), "c": V}
    moved = lambda h: bw.tree.map(lambda a, b: a + h * b, theta, change)
    expected = (bw.jit(loss)(moved(1e-5)) - bw.jit(loss)(moved(-1e-5))) / 2e-5
    gradient = bw.grad(loss)(theta)
    np.testing.assert_allclose(sum(np.sum(gradient[k] * change[k]) for k in change), expected, rtol=1e-8)
    np.testing.assert_allclose(bw.jvp(loss, (theta,), (change,))[1], expected, rtol=1e-8)
    second = (bw.jvp(loss, (moved(1e-5),), (change,))[1] - bw.jvp(loss, (moved(-1e-5),), (change,))[1]) / 2e-5
    np.testing.assert_allclose(bw.jvp(lambda theta: bw.jvp(loss, (theta,), (change,))[1], (theta,), (change,))[1], second, rtol=1e-7)
    np.testing.assert_allclose(sum(np.sum(one * change[k]) for k, one in bw.hvp(loss)(theta, change).items()), second, rtol=1e-7)


def test_roots_of_functions_with_loops() -> None:
    def f(x: Any, a: Any) -> Any:
        return bw.fori_loop(0, 3, lambda k, y: y * x * 0.5 + a, x) - 2.0

    def root(a: Any) -> Any:
        return bw.custom_root(lambda x: f(x, a), 0.5, lambda g, x: bw.fori_loop(0, 60, lambda k, x: x - g(x) * 0.5, x), lambda g, y: y / g(1.0))
    h = 1e-5
    ends = [bw.jit(root)(1.0 + k * h) for k in (-1, 0, 1)]
    for slope in (bw.grad(root), bw.jacfwd(root)):
        np.testing.assert_allclose(slope(1.0), (ends[2] - ends[0]) / (2 * h), rtol=1e-8)
    np.testing.assert_allclose(bw.hessian(root)(1.0), (bw.grad(root)(1.0 + h) - bw.grad(root)(1.0 - h)) / (2 * h), rtol=1e-7)


def test_a_root_by_bisection() -> None:
    """A solver without any derivative."""
    def bisect(f: Any, x: Any) -> Any:
        def step(state: Any) -> Any:
            low, high = state
            middle = (low + high) / 2
            positive = f(middle) > 0
            return np.where(positive, low, middle), np.where(positive, middle, high)
        return bw.while_loop(lambda state: state[1] - state[0] > 1e-13, step, (x - 10.0, x + 10.0))[0]

    cube_root = lambda a: bw.custom_root(lambda x: x**3 - a, 0.0, bisect, lambda g, y: y / g(1.0))
    np.testing.assert_allclose(bw.jit(cube_root)(5.0), 5.0 ** (1 / 3))
    np.testing.assert_allclose(bw.grad(cube_root)(5.0), 5.0 ** (-2 / 3) / 3)
    np.testing.assert_allclose(bw.grad(bw.grad(cube_root))(5.0), -2 * 5.0 ** (-5 / 3) / 9, rtol=1e-9)


# ----- Python control flow in functions that are given
def branching(x: Any) -> Any:
    total = 0.0
    for k in range(x.shape[0]):
        if x[k] > 0:
            total = total + np.sin(x[k]) * total + x[k]
        else:
            total = total - x[k] ** 2
    return total


def test_branches_on_data_wherever_functions_are_called() -> None:
    hessian = bw.hessian(branching)(B)
    np.testing.assert_allclose(bw.sparse_hessian(branching)(B).toarray(), hessian)
    np.testing.assert_allclose(bw.jit(lambda x: bw.linearize(branching, x)[1](V))(B), bw.grad(branching)(B) @ V)
    np.testing.assert_allclose(bw.jit(lambda x: bw.vjp(branching, x)[1](1.0)[0])(B), bw.grad(branching)(B))

    def newton(f: Any, x: Any) -> Any:
        while np.abs(f(x)) > 1e-12:
            x = x - f(x) / (2 * x)
        return x

    root = lambda a: bw.custom_root(lambda x: x * x - a, 1.0, newton, lambda g, y: y / g(1.0))
    np.testing.assert_allclose(bw.grad(root)(2.0), 0.5 / np.sqrt(2.0))
