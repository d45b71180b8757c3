"""Choices between a few numbers in loops: both sides computed, with the same bits and derivatives; and what has to stay a choice."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend import trace
from bwcompiler.ir.graph import Graph
from bwcompiler.passes.loops.select_branches import select_branches
from tests.support.gradcheck import central_differences
from tests.support.loop_passes import rewritten

N = 17
X = np.sin(3.0 * np.arange(N)) + 0.11
GRID = np.cos(np.arange(6.0 * N)).reshape(6, N)


def ops_in(graph: Graph) -> list[str]:
    return [name for value in graph.body for name in (value.op.name, *[name for region in value.op.regions for name in ops_in(value.attrs[region])])]


def choices_left(fun, *args):
    """How many choices are left; the function gives NumPy's bits, compiled too, and gradients are those of differences."""
    traced, graph = rewritten(lambda graph: select_branches(graph).graph, fun, *args)
    gradient = bw.grad(lambda x: np.sum(np.sin(fun(x, *args[1:]))))
    expected = central_differences(lambda x: np.sum(np.sin(fun(x, *args[1:]))), args[0])
    np.testing.assert_allclose(gradient(*args[:1]), expected, rtol=1e-6, atol=1e-8)
    assert "cond" in ops_in(traced)
    return ops_in(graph).count("cond")


def upwind(x):
    y = x.copy()
    for i in range(1, len(x) - 1):
        if x[i] > 0:
            y[i] = x[i] * (x[i] - x[i - 1])
        else:
            y[i] = x[i] * (x[i + 1] - x[i])
    return y


def largest(x):
    y = np.zeros(len(x))
    for i in range(len(x)):
        best = x[i, 0]
        for j in range(1, x.shape[1]):
            if x[i, j] > best:
                best = x[i, j] * 1.5
        y[i] = best
    return y


def one_side(x):
    y = x.copy()
    for i in range(1, len(x)):
        if y[i - 1] < y[i]:
            y[i] = y[i - 1] * y[i]
    return y


def swaps(x):
    """Two places are written by one side, others by the other one, and what was written is read."""
    y = x.copy()
    z = np.zeros_like(x)
    for i in range(1, len(x) - 1):
        if y[i - 1] > y[i]:
            last = y[i - 1]
            y[i - 1] = y[i]
            y[i] = last
        else:
            y[i + 1] += y[i]
            z[i] = y[i + 1] * y[i - 1]
    return y + z


def nested(x):
    y = np.zeros_like(x)
    for i in range(len(x)):
        if x[i] > 0.5:
            y[i] = x[i]
        elif x[i] > 0:
            y[i] = -x[i]
        else:
            y[i] = x[i] * x[i]
    return y


def in_a_while(x):
    y = x.copy()
    total = x[0] - x[0]
    while total < 5.0:
        total += 1.0
        if y[3] > 0:
            total += 0.25
            y[3] -= 0.2 * y[4]
    return y


def signs(x):
    """-0.0 stays what it is where nothing is added."""
    y = -0.0 * np.abs(x)
    for i in range(len(x)):
        if x[i] > 0:
            y[i] += 0.0
    return y


@pytest.mark.parametrize("fun, x", [(upwind, X), (largest, GRID), (one_side, X), (swaps, X), (nested, X), (in_a_while, X), (signs, X)])
def test_both_sides_are_computed(fun, x):
    assert choices_left(fun, x) == 0


def reads_what_is_not_there(x):
    y = x.copy()
    for i in range(len(x)):
        if x[i] > 2.0 * i:
            y[i] = x[i + 1] if i + 1 < len(x) else x[i]
    return y


def dear(x):
    y = x.copy()
    for i in range(len(x)):
        if x[i] > 0:
            y[i] = np.exp(np.sin(x[i]))
    return y


def rows(x):
    y = x.copy()
    for i in range(1, len(x)):
        if x[i, 0] > 0:
            y[i] = x[i - 1] * 2.0
    return y


@pytest.mark.parametrize("fun, x", [(dear, X), (rows, GRID.T.copy())])
def test_what_stays_a_choice(fun, x):
    assert choices_left(fun, x) == 1


def test_places_that_only_one_side_has_are_not_touched():
    found = bw.jit(reads_what_is_not_there)(X)
    np.testing.assert_array_equal(found, reads_what_is_not_there(X))
    np.testing.assert_allclose(bw.grad(lambda x: np.sum(reads_what_is_not_there(x) ** 2))(X),
                               central_differences(lambda x: np.sum(reads_what_is_not_there(x) ** 2), X), rtol=1e-6, atol=1e-8)


def test_a_choice_outside_of_loops_stays():
    traced = trace(lambda x: bw.cond(x > 0, lambda v: v * 2.0, lambda v: v * 3.0, x), (1.0,))
    assert select_branches(traced.graph).graph is traced.graph


def test_the_side_that_does_not_count_has_no_derivative():
    """sqrt has none at 0, and none that is a number below."""
    def roots(x):
        y = np.zeros_like(x)
        for i in range(len(x)):
            if x[i] > 0:
                y[i] = np.sqrt(x[i]) / x[i]
        return y

    x, expected = np.tile([4.0, 0.0, -1.0, 0.25], 5), np.tile([-0.0625, 0.0, 0.0, -4.0], 5)
    traced = trace(roots, (x,))
    assert "cond" in ops_in(traced.graph) and "cond" not in ops_in(select_branches(traced.graph).graph)
    np.testing.assert_array_equal(bw.grad(lambda x: np.sum(roots(x)))(x), expected)
    np.testing.assert_array_equal(bw.jvp(roots, (x,), (np.ones(20),))[1], expected)
