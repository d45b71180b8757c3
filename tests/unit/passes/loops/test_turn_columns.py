"""Columns that loops read are rows of a transpose, made as far outside as the matrix stays as it is."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.frontend import trace
from bwcompiler.passes.loops.carried.promote_elements import promote_elements
from bwcompiler.passes.loops.carried.turn_columns import turn_columns
from bwcompiler.passes.loops.vectorize_loops import vectorize_loops
from tests.support.loop_passes import rewritten

A = np.sin(np.arange(960.0)).reshape(40, 24)
X = np.linspace(0.5, 1.5, 24)


def product(a, x):
    y = np.zeros(40)
    for k in range(24):
        y += a[:, k] * x[k]
    return y


def powers(a, x):
    """A loop in a loop."""
    y = np.zeros(40)
    for t in range(9):
        for k in range(24):
            y = y * 0.5 + a[:, k] * x[k] + t
    return y


def triangle(a, x):
    """Parts of columns, of another extent in each iteration of the loop around."""
    y = np.zeros((40, 40))
    for i in range(40):
        for k in range(24):
            y[i, :i + 1] += a[i, k] * a[:i + 1, k] * x[k]
    return y


def two_loops(a, x):
    y = np.zeros(40)
    for k in range(24):
        y += a[:, k] * x[k]
    for k in range(23, -1, -1):
        y = y * a[:, k] + 1.0
    return y


def backwards(a, x):
    y = np.zeros(38)
    for k in range(24):
        y = y * 0.9 + a[2:, 23 - k]
    return y


def changed_around(a, x):
    """The transpose is made in every iteration of the loop that changes the matrix."""
    y, b = np.zeros(40), a
    for t in range(9):
        for k in range(24):
            y += b[:, k] * x[k]
        b = b * 0.5 + t
    return y


def test_the_matrix_is_given_to_loops_that_read_more_of_it():
    def rows_too(a, x):
        y = np.zeros(24)
        for k in range(24):
            y = y * 0.5 + a[:24, k] * x[k] + a[k]
        return y

    for fun, count in ((product, 1), (powers, 1), (rows_too, 2)):
        _, graph = rewritten(turn_columns, fun, A, X)
        [loop] = [value for value in graph.body if value.op is ops.loop]
        assert len([operand for operand in loop.operands if operand.rank == 2]) == count, fun.__name__


def test_the_matrix_is_given_to_loops_that_carry_it_on():
    def carried_on(a, b, x):
        total, y = 0.0, np.zeros(40)
        for k in range(24):
            y = np.sin(y * 0.5 + a[:, k] * x[k])
            total = total + b[0, k] * y[0]
            b = a
        return total, y, b

    for found, expected in zip(bw.jit(carried_on)(A, A + 1.0, X), carried_on(A, A + 1.0, X), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def places(graph, depth=0):
    """How many loops are around each transpose of a matrix."""
    found = [depth for value in graph.body if value.op is ops.transpose and 1 not in value.shape]
    return found + [one for value in graph.body for name in value.op.regions for one in places(value.attrs[name], depth + 1)]


@pytest.mark.parametrize("fun, expected", [(product, [0]), (powers, [0]), (triangle, [0]), (two_loops, [0]), (backwards, [0]),
                                           (changed_around, [1])], ids=lambda one: getattr(one, "__name__", ""))
def test_the_transpose_is_made_outside(fun, expected):
    _, graph = rewritten(turn_columns, fun, A, X)
    assert places(graph) == expected
    assert turn_columns(graph) is graph


@pytest.mark.parametrize("fun", [triangle, changed_around], ids=lambda fun: fun.__name__)
def test_gradients_are_those_of_differences(fun):
    bw.check_grads(fun, (A, X), order=1)


def literal(a, x):
    """As it is written element by element: what is mapped over the rows reads columns."""
    y = np.zeros(40)
    for t in range(9):
        for i in range(40):
            s = 0.0
            for k in range(24):
                s += a[i, k] * x[k] * t
            y[i] += s
    return y


def test_loops_over_elements():
    graph = vectorize_loops(promote_elements(trace(literal, (A, X)).graph).graph).graph
    assert places(turn_columns(graph)) == [0]
    np.testing.assert_array_equal(bw.jit(literal)(A, X), literal(A, X))


def rows(a, x):
    y = np.zeros(24)
    for i in range(40):
        y += a[i] * x
    return y


def few_rows(a, x):
    y = np.zeros(9)
    for k in range(24):
        y += a[:9, k]
    return y


def few_columns(a, x):
    y = np.zeros(40)
    for k in range(9):
        y = y * 0.5 + a[:, k]
    return y


def written(a, x):
    """The matrix changes."""
    b = a.copy()
    for k in range(1, 24):
        b[:, k] = b[:, k - 1] * x[k] + b[:, k]
    return b


@pytest.mark.parametrize("fun", [rows, few_rows, few_columns, written], ids=lambda fun: fun.__name__)
def test_others_stay(fun):
    graph = trace(fun, (A, X)).graph
    assert turn_columns(graph) is graph


def test_arrays_of_three_axes(rng):
    """Two parts of a column that lie beside each other are two parts of a row; other axes stay as they are."""
    cube = rng.standard_normal((7, 5, 20))

    def layers(a, x):
        y = np.zeros((6, 5))
        for k in range(20):
            y = y * 0.5 + (a[1:, :, k] + a[:-1, :, k]) * x[k]
        return y

    def middle(a, x):
        y = np.zeros((7, 20))
        for k in range(5):
            y = y * 0.5 + a[:, k] * x[k]
        return y
    before, graph = rewritten(turn_columns, layers, cube, X)
    assert places(before) == [] and places(graph) == [0]
    np.testing.assert_allclose(bw.jit(layers)(cube, X), layers(cube, X), rtol=1e-14)
    bw.check_grads(layers, (cube, X), order=1)
    graph = trace(middle, (cube, X)).graph
    assert turn_columns(graph) is graph
