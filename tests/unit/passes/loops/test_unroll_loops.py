"""Short loops over large arrays that are written out: which they are, and that nothing but their time changes."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.ir.graph import Graph
from bwcompiler.passes.loops.iterations import unroll_loops as module
from bwcompiler.passes.loops.iterations.unroll_loops import unroll_loops

X, C = np.linspace(-1.0, 1.0, 3000), np.linspace(0.5, 1.5, 12)


def horner(x, c):
    y = 0 * x
    for k in range(12):
        y = y * x + c[k]
    return y


def newton(x, c):
    y = x + 3.0
    for _ in range(10):
        y = y - (y * y - 2.0 - c[0]) / (2.0 * y)
    return y


def counting_down(x, c):
    y = x
    for k in range(7, -1, -1):
        y = np.where(x > 0.1 * k, y * 0.9 + k, y)
    return y


def two_states(x, c):
    y, z = x, np.cos(x)
    for k in range(9):
        y, z = z * 0.5, y + c[k]
    return y * z


def a_number_and_an_array(x, c):
    y, t = x, 1.0
    for _ in range(9):
        t = t * 0.5 + c[1]
        y = np.sin(y) * t
    return y + t


def rows_of_a_constant(x, c):
    table = np.arange(36000.0).reshape(12, 3000)
    y = x
    for row in table:
        y = np.maximum(y, row * 1e-5) - x
    return y


def columns(x, c):
    y = np.zeros((250, 12))
    for k in range(1, 12):
        y[:, k] = y[:, k - 1] * 0.5 + x[12 * k:12 * k + 250] * c[k]
    return y


WRITTEN_OUT = [columns, horner, newton, counting_down, two_states, a_number_and_an_array, rows_of_a_constant]


def rolled(x, c):
    for _ in range(9):
        x = np.roll(x, 1) * 0.5
    return x


def summed(x, c):
    for _ in range(9):
        x = x / np.sum(x * x)
    return x


def long(x, c):
    for _ in range(100):
        x = x * 0.5 + 1.0
    return x


def multiplied(x, c):
    y = np.ones((60, 60))
    for _ in range(9):
        y = y @ y * 0.01 + x[0]
    return y


def elements(x, c):
    y = x.copy()
    for k in range(1, 12):
        y[k] = y[k - 1] * 0.5 + c[k]
    return y


def stencil(x, c):
    """Nothing of a step can be computed with the next one: that reads neighbours."""
    y = x.copy()
    for _ in range(12):
        y[1:-1] = y[1:-1] + 0.1 * (y[2:] - 2.0 * y[1:-1] + y[:-2])
    return y


def dear_columns(x, c):
    y = np.zeros((250, 12))
    for k in range(1, 12):
        y[:, k] = np.sin(y[:, k - 1]) + x[12 * k:12 * k + 250] * c[k]
    return y


LOOPS = [stencil, dear_columns, elements, rolled, summed, long, multiplied]


def loops(graph: Graph) -> int:
    return sum(value.op is ops.loop for value in graph.body)


@pytest.mark.parametrize("function", WRITTEN_OUT)
def test_a_few_operations_on_each_element_are_written_out(function, monkeypatch) -> None:
    graph = trace(function, (X, C)).graph
    assert loops(graph) == 1 and loops(unroll_loops(graph).graph) == 0
    value, gradients = bw.value_and_grad(lambda x, c: np.sum(np.sin(function(x, c))), (0, 1))(X, C)
    whole = bw.jit(function)(X, C)
    np.testing.assert_allclose(whole, function(X, C), rtol=1e-13)
    monkeypatch.setattr(module, "LEAST_BYTES", 1 << 40)
    as_loop, slopes = bw.value_and_grad(lambda x, c: np.sum(np.sin(function(x, c))), (0, 1))(X, C)
    np.testing.assert_array_equal(bw.jit(lambda x, c: function(x, c))(X, C), whole)
    np.testing.assert_allclose(value, as_loop, rtol=1e-12)
    for one, other in zip(gradients, slopes, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("function", LOOPS)
def test_other_loops_stay(function) -> None:
    graph = trace(function, (X, C)).graph
    assert loops(graph) == loops(unroll_loops(graph).graph) == 1


def test_small_arrays_stay_in_loops() -> None:
    graph = trace(horner, (X[:100], C)).graph
    assert loops(graph) == loops(unroll_loops(graph).graph) == 1


def test_loops_in_loops() -> None:
    """The inner one is written out, for every iteration of the outer one."""
    def function(x, c):
        for k in range(20):
            y = x
            for m in range(10):
                y = y * 0.5 + c[m] * k
            x = x + np.roll(y, 1) * 1e-3
        return x
    graph = unroll_loops(trace(function, (X, C)).graph).graph
    [outer] = [value for value in graph.body if value.op is ops.loop]
    assert loops(outer.attrs["body"]) == 0
    np.testing.assert_allclose(bw.jit(function)(X, C), function(X, C), rtol=1e-12)
