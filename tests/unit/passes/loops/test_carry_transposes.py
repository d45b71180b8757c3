"""Matrices that loops go through by columns are carried transposed, also through the loops inside."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.frontend import trace
from bwcompiler.passes.loops.carried.carry_transposes import carry_transposes
from tests.support.loop_passes import rewritten

A = np.random.default_rng(0).standard_normal((40, 24))
X = np.linspace(0.5, 1.5, 24)


def recurrence(a, x):
    b = a.copy()
    for t in range(9):
        for k in range(1, 24):
            b[:, k] = b[:, k - 1] * x[k] * 0.25 + b[:, k] * 0.5 + t
    return b


def added(a, x):
    """Elements too, and parts of columns."""
    b = a.copy()
    for t in range(9):
        for k in range(24):
            b[t, k] += x[k]
            b[t:, k] += x[t] * a[t:, 23 - k]
    return b


def handed_on(a, x):
    """The loop inside reads what the loop around updates, and what it carries itself has another shape."""
    b, y = a.copy(), np.zeros(40)
    for t in range(1, 24):
        for k in range(t):
            y = y * 0.5 + b[:, k] * x[k] * 0.1
        b[:, t] = y * 0.1 + b[:, t - 1]
    return b + y[:, None]


def two_matrices(a, x):
    b, q = a.copy(), np.zeros((40, 24))
    for k in range(24):
        q[:, k] = b[:, k] / x[k]
        for j in range(k + 1, 24):
            b[:, j] -= q[:, k] * x[j] * 0.1
    return q + b


def gram_schmidt(a, x):
    b, q = a.copy(), np.zeros((40, 24))
    for k in range(24):
        q[:, k] = b[:, k] / np.sqrt(np.sum(b[:, k] * b[:, k]))
        for j in range(k + 1, 24):
            b[:, j] -= q[:, k] * np.sum(q[:, k] * b[:, j]) * x[k]
    return q + b


def mostly_columns(a, x):
    b = a.copy()
    for t in range(1, 9):
        for k in range(1, 24):
            b[:, k] = b[:, k] * 0.5 + b[:, k - 1]
        b[t] = b[t - 1] * x
    return b


def once(a, x):
    b = a.copy()
    for k in range(1, 24):
        b[:, k] = b[:, k - 1] * x[k]
    return b


def back_and_forth(a, x):
    """The first loop changes it with a step of its own; after the loops it is as it was."""
    b = a.copy()
    for t in range(9):
        for k in range(23, 0, -1):
            b[:, k - 1] = b[:, k] * x[k] * 0.25 + b[:, k - 1] * 0.5 + t
    return b * 2.0 + b[:, ::-1]


def shapes(graph):
    """Of the matrices that loops carry."""
    found = [item.shape for value in graph.body if value.op is ops.loop for item in value.type.items if len(item.shape) == 2]
    return found + [one for value in graph.body for name in value.op.regions for one in shapes(value.attrs[name])]


TURNED = (recurrence, added, handed_on, two_matrices, mostly_columns, back_and_forth, once)


@pytest.mark.parametrize("fun", TURNED, ids=lambda fun: fun.__name__)
def test_the_transpose_is_carried(fun):
    before, graph = rewritten(carry_transposes, fun, A, X)
    assert set(shapes(before)) == {(40, 24)} and set(shapes(graph)) == {(24, 40)}
    assert carry_transposes(graph) is graph


@pytest.mark.parametrize("fun", [added, gram_schmidt], ids=lambda fun: fun.__name__)
def test_gradients_are_those_of_differences(fun):
    bw.check_grads(fun, (A, X), order=1)


def adds_to_columns(a, x):
    y = np.zeros((40, 40))
    for i in range(40):
        for k in range(24):
            y[i, :i + 1] += a[i, k] * a[:i + 1, k] * x[k]
    return y


def test_cotangents_that_are_added_to_by_columns():
    joint = trace(bw.grad(lambda a, x: np.sum(adds_to_columns(a, x) ** 2)).fun, (A, X)).graph
    assert (40, 24) in shapes(joint)
    assert (40, 24) not in shapes(carry_transposes(joint)) and (24, 40) in shapes(carry_transposes(joint))


def rows(a, x):
    b = a.copy()
    for i in range(1, 40):
        b[i] = b[i - 1] * x
    return b


def rows_and_columns(a, x):
    b = a[:24].copy()
    for t in range(9):
        for k in range(1, 24):
            b[:, k] = b[:, k - 1] * x[k] + t
            b[k] = b[k - 1] * 0.5
    return b


def once_in_a_loop(a, x):
    """The loop around would carry it both ways."""
    b = a.copy()
    for t in range(9):
        b = b * 0.5 + t
        for k in range(1, 24):
            b[:, k] = b[:, k - 1] * x[k]
    return b


def also_whole(a, x):
    b = a.copy()
    for _ in range(9):
        for k in range(1, 24):
            b[:, k] = b[:, k - 1] * x[k] + np.max(b)
    return b


def returned_by_a_loop(a, x):
    """The loop inside carries a version of the matrix as another state."""
    b = c = a
    for _ in range(9):
        b, c = c * 0.5, b
        for k in range(24):
            x = x + b[5, k]
    return b + x


@pytest.mark.parametrize("fun", [rows, rows_and_columns, once_in_a_loop, also_whole, returned_by_a_loop], ids=lambda fun: fun.__name__)
def test_others_stay(fun):
    graph = trace(fun, (A, X)).graph
    assert carry_transposes(graph) is graph


CUBE = np.random.default_rng(1).standard_normal((6, 5, 20))


def along_the_last_axis(a, x):
    """Updates before, between and behind the loops are of the transpose too; what is new needs none before."""
    b, c = a.copy(), np.zeros(a.shape)
    b[:, :, 0] = x[0]
    for k in range(1, 20):
        b[:, :, k] = b[:, :, k - 1] * x[k] * 0.5 + 1.0 / (2.0 + b[:, :, k] ** 2)
        c[:, 1:, k] = b[:, :-1, k]
    b[:, :, 19] += x[1]
    for k in range(18, -1, -1):
        b[:, :, k] += b[:, :, k + 1] * c[:, :, k]
    return b + c


def test_arrays_of_three_axes():
    before, graph = rewritten(carry_transposes, along_the_last_axis, CUBE, X)

    def carried(graph):
        return {item.shape for value in graph.body if value.op is ops.loop for item in value.type.items}
    assert carried(before) == {(6, 5, 20)} and carried(graph) == {(20, 6, 5)}
    moved = [value for value in graph.body if value.op is ops.transpose and 1 not in value.shape]
    assert len(moved) == 3                                   # a before the loops, b and c behind them
    np.testing.assert_allclose(bw.jit(along_the_last_axis)(CUBE, X), along_the_last_axis(CUBE, X), rtol=1e-14)
    bw.check_grads(along_the_last_axis, (CUBE, X), order=1)


def read_between(a, x):
    """Somebody else reads what an update between the loops is made of."""
    b = a.copy()
    for k in range(1, 20):
        b[:, :, k] += b[:, :, k - 1] * x[k]
    c = b.copy()
    c[:, :, 3] = x[3]
    for k in range(1, 20):
        c[:, :, k] += c[:, :, k - 1] * x[k]
    return b * c


def test_what_is_read_between_is_there():
    rewritten(carry_transposes, read_between, CUBE, X)
    np.testing.assert_allclose(bw.jit(read_between)(CUBE, X), read_between(CUBE, X), rtol=1e-14)
