"""Numbers before, between and after loops: they open no loops, and what loops sum up is used after them."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.ir.contracts.fusion import Call
from tests.unit.passes.fused_programs import W, X, lowered, ops_of, steps_of


def test_numbers_open_no_loops():
    """A step of Runge-Kutta whose step size is an argument, and one of Adam."""
    def rk4(y, h):
        k1 = -y
        k2 = -(y + h / 2 * k1)
        return y + h / 6 * (k1 + 2 * k2)

    def adam(p, g, m, v, t):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return p - 1e-3 * (m / (1 - 0.9 ** t)) / (np.sqrt(v / (1 - 0.999 ** t)) + 1e-8), m, v
    assert len(steps_of(rk4, X, 0.1)) == 1
    assert len(steps_of(adam, X, X, X, X, 3.0)) == 1


def test_a_loop_whose_values_are_computed_again_elsewhere_is_none():
    """Not even for a number that it reads from memory."""
    def pick(x):
        chosen = np.where(x[::-1], 1, x[:-1, -2, -1:])
        return np.sum(chosen[1:3, :, [2, 1]] * 2.0, axis=0)
    x = np.random.default_rng(0).random((2, 4, 3)) < 0.5
    fused = lowered(pick, x, gradient=False).fused
    assert all(any(member.value in fused.stored for member in step.members) for step in fused.steps if not isinstance(step, Call))
    assert np.array_equal(bw.jit(pick)(x), pick(x))


def test_a_dear_number_is_computed_once_and_a_cheap_one_where_it_is_read():
    def function(x, w, a):
        return np.sin(x) * np.exp(a), np.cos(w) * np.exp(a), np.tanh(x.T) * (a + 1.0), np.tanh(w.T) * (a + 1.0)
    found = [op for step in steps_of(function, X, W, 0.3) for op in step]
    assert found.count("exp") == 1 and found.count("add") > 1


def test_a_number_that_is_returned_lies_in_memory_and_is_read_from_there():
    def function(x, a):
        b = np.exp(a)
        return b, b * x
    [step] = steps_of(function, X, 0.3)
    assert step == ["exp", "multiply"]


def test_what_loops_sum_up_is_used_after_them():
    def function(x):
        return np.mean(x * x), x + 1.0
    [step] = steps_of(function, X)
    assert step == ["multiply", "sum", "divide", "add"]


def test_a_value_joins_a_loop_across_a_call_that_does_not_need_it():
    def function(x, w):
        gate = np.tanh(x[:, :5])
        return gate * (x @ w)
    assert steps_of(function, X, W) == ["matmul", ["tanh", "multiply"]]


def test_a_loss_and_its_gradient_are_one_sweep():
    def loss(x, labels):
        z = x - np.max(x, axis=1, keepdims=True)
        return -np.mean(z[np.arange(6), labels] - np.log(np.sum(np.exp(z), axis=1)))
    sweep, check = ops_of(bw.compile(loss, X, np.arange(6)).lowered().fused)
    assert check == "check_range" and isinstance(sweep, list)


SHAPES = {"long": (1 << 18,), "rows": (300, 40), "columns": (400, 700), "short rows": (5000, 3), "one": (1, 1), "none": (0, 4)}


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_numbers_before_and_after_loops_of_every_kind(shape, axis):
    """Against the interpreter's NumPy, on one thread and on two."""
    def function(x, a):
        scale = np.exp(a) / 3.0
        y = np.sin(x) * scale + a
        parts = np.sum(y * y, axis=axis)
        total = np.sum(parts) / x.size if x.size else np.sum(parts)
        return y, parts, total, np.sqrt(total + 1.0) * a, scale
    x = np.random.default_rng(0).normal(size=shape)
    found = []
    before = bw.get_num_threads()
    for threads in (1, 2):
        bw.set_num_threads(threads)
        try:
            found.append([np.array(result) for result in bw.jit(function)(x, 0.7)])
        finally:
            bw.set_num_threads(before)
    for one, two, wanted in zip(*found, function(x, 0.7), strict=True):
        np.testing.assert_array_equal(one, two)
        np.testing.assert_allclose(one, wanted, rtol=1e-12, atol=1e-14)
