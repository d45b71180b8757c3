"""Ranges that begin or end where the remainder of an index says, as colours of a grid: two (three, four) iterations are recorded as one."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.semantics.graph_interpreter import interpret
from tests.support.derivatives import check_derivatives


def red_and_black(x):
    n = 12
    u = np.tile(x, (n, 1))
    for color in range(2):
        for i in range(1, n - 1):
            for j in range(1 + (i + color) % 2, len(x) - 1, 2):
                u[i, j] = 0.2 * u[i, j] + 0.2 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - x[j] ** 2)
    return u


def from_the_end(x):
    y = x.copy()
    for i in range(len(x) - 1, -1, -1):
        for j in range(i % 2, len(x), 2):
            y[j] = y[j] * 0.5 + x[i]
    return y


def of_two_indices(x):
    y = x.copy()
    for i in range(10):
        for j in range(len(x)):
            for k in range((i + j) % 3, len(x), 3):
                y[k] = y[k] * 0.9 + 0.01 * x[j]
    return y


def ends(x):
    y = x.copy()
    for i in range(len(x)):
        for j in range(len(x) - i % 4):
            y[j] = y[j] * 0.5 + x[i]
    return y


def quotients(x):
    y = x.copy()
    for i in range(len(x)):
        for j in range(i // 2, len(x)):
            y[j] = y[j] * 0.9 + x[i]
    return y


def indices_of_numpy(x):
    y = x.copy()
    for i in np.arange(3, len(x) + 3):
        for j in range((i + 1) % 2, len(x), 2):
            y[j] = y[j] * 0.5 + x[i - 3]
    return y


PROGRAMS = [red_and_black, from_the_end, of_two_indices, ends, quotients, indices_of_numpy]


def whiles(graph: Graph) -> int:
    found = 0
    for value in graph.body:
        found += value.op.name == "while_loop"
        found += sum([whiles(value.attrs[region]) for region in value.op.regions])
    return found


@pytest.mark.parametrize("length", [9, 12, 15])
@pytest.mark.parametrize("fun", PROGRAMS, ids=lambda fun: fun.__name__)
def test_bounds_are_affine(fun, length) -> None:
    x = np.linspace(0.1, 1.0, length)
    graph = trace(fun, (x,)).graph
    assert not whiles(graph)
    np.testing.assert_allclose(interpret(graph, [x])[0], fun(x), rtol=1e-14)


@pytest.mark.parametrize("fun", PROGRAMS, ids=lambda fun: fun.__name__)
def test_derivatives(fun) -> None:
    check_derivatives(fun, np.linspace(0.1, 1.0, 10), order=1)


def test_compiled() -> None:
    x = np.linspace(0.1, 1.0, 13)
    np.testing.assert_allclose(bw.jit(red_and_black)(x), red_and_black(x), rtol=1e-13)


def until_large(x):
    y = x.copy()
    for i in range(len(x)):
        for j in range(i % 2, len(x), 2):
            y[j] = y[j] * 0.5 + x[i]
        if y[0] > 1.2:
            break
    return y


def many_colours(x):
    y = x.copy()
    for i in range(len(x)):
        for j in range(i % 5, len(x), 5):
            y[j] = y[j] * 0.5 + x[i]
    return y


@pytest.mark.parametrize("fun", [until_large, many_colours], ids=lambda fun: fun.__name__)
def test_other_bounds_are_data(fun) -> None:
    x = np.linspace(0.1, 1.0, 12)
    graph = trace(fun, (x,)).graph
    assert whiles(graph)
    np.testing.assert_allclose(interpret(graph, [x])[0], fun(x), rtol=1e-14)


def test_numbers_of_indices() -> None:
    """Remainders and quotients that are the same in all iterations, or affine; others are data."""
    def fun(x):
        y = np.zeros(60)
        for i in range(10):
            k = 6 * i - 4
            y[6 * i + k % 3] += x[i]
            y[6 * i + 3] += k // 3 + k % 4 + (i % 3) * x[i] + (-i) // 2 + i % -3
        return y

    x = np.linspace(0.0, 1.0, 10)
    np.testing.assert_allclose(bw.jit(fun)(x), fun(x), rtol=1e-14)
