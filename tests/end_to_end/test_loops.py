"""Loop functions called with plain arrays and numbers: compiled once per body and signature, results as NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import errors

X = np.linspace(0.5, 2.0, 4)


def test_plain_arrays_and_numbers():
    total, running = bw.scan(lambda c, v: (c + v, c * v), 0, X)
    assert float(total) == X.sum() and isinstance(running, np.ndarray)
    np.testing.assert_allclose(running, np.concatenate([[0], np.cumsum(X)[:-1]]) * X)
    assert bw.fori_loop(0, 5, lambda i, c: c + i, 0) == 10
    assert bw.fori_loop(np.int64(1), np.array(4), lambda i, c: c * i, 1) == 6
    assert float(bw.while_loop(lambda c: c < 20.0, lambda c: 2.0 * c, 1.0)) == 32.0
    np.testing.assert_array_equal(bw.map(lambda v: (v, -v), X)[1], -X)
    np.testing.assert_array_equal(bw.cond(True, lambda a: a, lambda a: -a, X), X)
    np.testing.assert_array_equal(bw.cond(0, lambda a: a, lambda a: -a, X), -X)
    np.testing.assert_array_equal(bw.switch(7, [lambda a: a, lambda a: a * 2], X), X * 2)
    np.testing.assert_allclose(bw.associative_scan(np.multiply, X, reverse=True), np.cumprod(X[::-1])[::-1])


def test_trees_and_what_the_caller_has():
    init = {"a": X.copy(), "b": [1.0, None]}

    def step(i, c):
        c["a"][i] = 0.0
        return {"a": c["a"], "b": [c["b"][0] + 1.0, None]}
    found = bw.fori_loop(0, 2, step, init)
    np.testing.assert_array_equal(init["a"], X)
    assert found["a"].tolist() == [0.0, 0.0, *X[2:]] and float(found["b"][0]) == 3.0


def test_a_body_is_traced_once_per_signature():
    traces = []
    note = traces.append           # which nobody follows: a list is put back where a trace is given up

    def step(c, v):
        note(1)
        return c + v, None
    for _ in range(3):
        bw.scan(step, np.float64(0.0), X)
    assert len(traces) == 1
    bw.scan(step, np.float64(0.0), X[:2])
    assert len(traces) == 2


def test_transforms_of_compiled_loops():
    def program(x, w):
        return bw.scan(lambda h, v: (np.tanh(h * w + v), h), 0.1, x)[1]
    w = np.float64(0.7)

    def unrolled(x, w):
        h, found = 0.1, []
        for k in range(4):
            found.append(h)
            h = np.tanh(h * w + x[k])
        return np.stack([np.asarray(v) if isinstance(v, float) else v for v in found]) if isinstance(x, np.ndarray) else found
    np.testing.assert_allclose(bw.jit(program)(X, w), unrolled(X, w), rtol=1e-14)
    gradient = bw.grad(lambda x: np.sum(program(x, w) ** 2))
    step = 1e-6
    for k, value in enumerate(gradient(X)):
        moved = [np.sum(unrolled(X + sign * step * np.eye(4)[k], w) ** 2) for sign in (1, -1)]
        assert value == pytest.approx((moved[0] - moved[1]) / (2 * step), abs=1e-8)
    np.testing.assert_allclose(bw.jacfwd(program)(X, w), bw.jacrev(program)(X, w), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(bw.vmap(gradient)(np.stack([X, 2 * X]))[1], gradient(2 * X), rtol=1e-12)
    hessian = bw.hessian(lambda x: np.sum(program(x, w) ** 2))(X)
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-12, atol=1e-15)


def test_programs_with_loops():
    def loss(x, w):
        return bw.fori_loop(0, 4, lambda i, c: np.sin(c * w) + x[i], x[0])
    program = bw.compile(loss, X, np.float64(0.3))
    value, gradients = program.value_and_backward(X, np.float64(0.3))
    out, pullback = program.vjp(X, np.float64(0.3))
    assert value == out == program(X, np.float64(0.3))
    for one, other in zip(gradients, pullback(1.0), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)
    assert "loop" in program.as_text("forward") and "step=-1" in program.as_text("adjoint")


@pytest.mark.parametrize("fun", [
    lambda x: bw.scan(lambda c, v: (np.sin(c * v), c), 1.0, x)[1],
    lambda x: bw.while_loop(lambda c: np.sum(c) < 40.0, lambda c: c * 1.5 + np.sin(c), x),
    lambda x: bw.cond(x[0] > 0.1, lambda: np.sin(x) * x, lambda: x),
    lambda x: bw.checkpoint(lambda v: np.exp(np.sin(v)))(x)], ids=["scan", "while", "cond", "checkpoint"])
def test_derivatives_at_a_point(fun):
    """linearize and vjp: the program for the values is apart from that of the derivative."""
    direction, seed = np.array([0.3, -1.0, 0.2, 0.5]), np.array([1.0, 0.5, -2.0, 0.1])
    value, tangent = bw.jvp(fun, (X,), (direction,))
    out, derivative = bw.linearize(fun, X)
    np.testing.assert_allclose(out, value, rtol=1e-13)
    np.testing.assert_allclose(derivative(direction), tangent, rtol=1e-12)
    out, pullback = bw.vjp(fun, X)
    assert np.sum(seed * tangent) == pytest.approx(np.sum(pullback(seed)[0] * direction), rel=1e-11)


def test_arguments_that_loops_assign_to_are_the_callers():
    def double(x):
        def step(i, _):
            x[i] *= 2.0
        bw.fori_loop(0, 3, step, None)
    mine = X.copy()
    bw.jit(double)(mine)
    np.testing.assert_array_equal(mine, [*(X[:3] * 2), X[3]])


def test_complex_carries():
    z = np.array([1 + 2j, 0.5 - 1j, 0.3 + 0.1j])

    def horner(z):
        return bw.scan(lambda c, v: (c * v + 1, None), 1.0 + 0j, z)[0]
    assert horner(z) == pytest.approx(((z[0] + 1) * z[1] + 1) * z[2] + 1)
    gradient, step = bw.grad(lambda z: np.abs(horner(z)) ** 2)(z), 1e-6
    for k in range(3):
        moved = [abs(((w[0] + 1) * w[1] + 1) * w[2] + 1) ** 2 for w in (z + d * np.eye(3)[k] for d in (step, -step, 1j * step, -1j * step))]
        assert gradient[k] == pytest.approx((moved[0] - moved[1] - 1j * (moved[2] - moved[3])) / (2 * step), abs=1e-7)


def test_custom_rules_in_bodies_and_loops_in_custom_rules():
    weights = np.arange(3.0)

    @bw.custom_vjp
    def scaled(a, b):
        return np.sin(a) * b
    scaled.defvjp(lambda a, b: (scaled(a, b), (a, b)), lambda kept, ct: (2.0 * ct * np.cos(kept[0]) * kept[1], ct * np.sin(kept[0]) + weights))
    w, x = np.linspace(-1.0, 1.0, 9).reshape(3, 3), np.linspace(0.0, 1.0, 12).reshape(4, 3)

    def looped(w, x):
        h, hs = bw.scan(lambda c, row: (scaled(c @ w, row),) * 2, np.ones(3), x)
        return hs.sum() + (h ** 2).sum()

    def unrolled(w, x):
        c, total = np.ones(3), 0.0
        for k in range(4):
            c = scaled(c @ w, x[k])
            total = total + c.sum()
        return total + (c ** 2).sum()
    for one, other in zip(bw.grad(looped, argnums=(0, 1))(w, x), bw.grad(unrolled, argnums=(0, 1))(w, x), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    second = [bw.grad(lambda w, f=f: np.sum(bw.grad(f)(w, x) ** 2))(w) for f in (looped, unrolled)]
    np.testing.assert_allclose(second[0], second[1], rtol=1e-11)

    @bw.custom_vjp
    def product(x):
        return bw.scan(lambda c, v: (c * v, None), 1.0, x)[0]
    product.defvjp(lambda x: (product(x), x), lambda x, ct: (ct * bw.scan(lambda c, v: (c + v, c), 0.0, x)[1],))
    np.testing.assert_allclose(bw.grad(product)(X), np.concatenate([[0.0], np.cumsum(X)[:-1]]))


def test_derivatives_inside_of_bodies():
    def train(start):
        return bw.fori_loop(0, 50, lambda i, w: w - 0.1 * bw.grad(lambda w: np.sum((w - 3.0) ** 2))(w), start)
    np.testing.assert_allclose(train(np.zeros(2)), 3.0 * (1 - 0.8 ** 50))
    np.testing.assert_allclose(bw.jacobian(train)(np.zeros(2)), 0.8 ** 50 * np.eye(2), rtol=1e-9)


def test_errors_name_the_line():
    with pytest.raises(errors.ShapeError, match=r"test_loops.py:\d+: .*\n  scan: xs\['b'\]|xs\['a'\] says 4 iterations, but xs\['b'\] says 3"):
        bw.scan(lambda c, v: (c, v), 0.0, {"a": X, "b": X[1:]})


# ----- Python control flow in functions that are handed over
def halved(x: Any) -> Any:
    while np.sum(x * x) > 0.2:
        x = 0.5 * np.sin(x)
    return x


HANDED_OVER: dict[str, Any] = {
    "scan": lambda x: bw.scan(lambda c, e: (halved(c + e), halved(e)), x, np.stack([x, 2 * x]))[1],
    "scan in segments": lambda x: bw.scan(lambda c, e: (halved(c + e), halved(e)), x, np.stack([x, 2 * x, x, x]), checkpoint=2)[0],
    "map": lambda x: bw.map(halved, np.stack([x, 2 * x])),
    "fori_loop": lambda x: bw.fori_loop(0, 3, lambda k, c: halved(c + k), x),
    "fori_loop whose end is data": lambda x: bw.fori_loop(0, np.argmax(x) + 2, lambda k, c: halved(c + k), x),
    "while_loop": lambda x: bw.while_loop(lambda c: np.sum(halved(c)) > 0.01, lambda c: halved(c) * 0.5, x),
    "cond": lambda x: bw.cond(np.sum(x) > 0, halved, lambda x: halved(2 * x), x),
    "cond that is decided": lambda x: bw.cond(True, halved, np.sin, x),
    "switch": lambda x: bw.switch(np.argmax(x), [np.sin, np.cos, halved], x),
    "checkpoint": lambda x: bw.checkpoint(halved)(x),
    "associative_scan": lambda x: bw.associative_scan(lambda a, b: a + halved(b) * 0.0 + b, np.stack([x, x])),
    "fixed_quad": lambda x: bw.scipy.integrate.fixed_quad(lambda t: halved(t * x[0]), 0.0, 2.0)[0],
}


@pytest.mark.parametrize("name", HANDED_OVER)
def test_control_flow_of_functions_that_are_handed_over_is_captured(name: str) -> None:
    function, x = HANDED_OVER[name], np.array([0.3, -0.5, 1.5])
    found = bw.jit(function)(x)
    np.testing.assert_allclose(function(x), found, rtol=1e-14)
    slope = bw.jvp(function, (x,), (np.ones(3),))[1]
    np.testing.assert_allclose(slope, (bw.jit(function)(x + 1e-6) - bw.jit(function)(x - 1e-6)) / 2e-6, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("wrong", [
    lambda x: bw.while_loop(lambda c: c, lambda c: c + 1, x), lambda x: bw.cond(True, lambda x: x, lambda x: np.stack([x, x]), x),
    lambda x: bw.scan(lambda c, y: (c, y), x, None), lambda x: bw.fori_loop(0, 5, lambda i, c: c + np.ones(2), x),
    lambda x: bw.associative_scan(lambda a, b: a + b, ()),
], ids=["while_loop", "cond", "scan", "fori_loop", "associative_scan"])
def test_errors_of_loops_over_plain_arrays_name_the_line(wrong):
    with pytest.raises(errors.BwError, match=r"^[^\n]*test_loops.py:\d+: "):
        wrong(np.ones(3))
