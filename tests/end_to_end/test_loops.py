"""Loop functions called with plain arrays and numbers: compiled once per body and signature, results as NumPy's."""

from __future__ import annotations

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

    def step(c, v):
        traces.append(1)
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


def test_errors_name_the_line():
    with pytest.raises(errors.ShapeError, match=r"test_loops.py:\d+: .*\n  scan: xs\['b'\]|xs\['a'\] says 4 iterations, but xs\['b'\] says 3"):
        bw.scan(lambda c, v: (c, v), 0.0, {"a": X, "b": X[1:]})
