"""Where a loop adds to zeros, to no element twice, it sets: which additions these are, and which stay."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.frontend import trace
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.passes.loops.carried.set_once import set_once
from bwcompiler.passes.rewriting.simplify import simplify
from tests.support.derivatives import check_derivatives

X = np.cos(np.arange(60.0)).reshape(12, 5) + 1.5


def additions(fun) -> int:
    """How many additions to parts are left."""
    made = set_once(simplify(trace(fun, (X,)).graph).graph).graph
    verify(made)
    return count(made)


def count(graph: Graph) -> int:
    return sum((value.op is ops.slice_add) + sum([count(value.attrs[region]) for region in value.op.regions]) for value in graph.body)


def carried(x, add, begin=0.0):
    """A loop that cannot be array code, and adds to another array on the way."""
    total, y = np.full((12, 5), begin), x[0]
    for i in range(1, 11):
        y = np.sin(y) * x[i]
        add(total, i, y)
    return total + y


def rows(x):
    def add(total, i, y):
        total[i] += y
    return carried(x, add)


def rows_backwards(x):
    def add(total, i, y):
        total[11 - i] += y
    return carried(x, add)


def twice(x):
    def add(total, i, y):
        total[i] += y
        total[i] += y * y
    return carried(x, add)


def neighbours(x):
    def add(total, i, y):
        total[i:i + 2] += y
    return carried(x, add)


def one_row(x):
    def add(total, i, y):
        total[3] += y
    return carried(x, add)


def to_ones(x):
    def add(total, i, y):
        total[i] += y
    return carried(x, add, 1.0)


@pytest.mark.parametrize("fun", [rows, rows_backwards, twice, neighbours, one_row, to_ones], ids=lambda fun: fun.__name__)
def test_values_and_derivatives(fun):
    assert np.allclose(bw.jit(fun)(X), fun(X), rtol=1e-13)
    check_derivatives(fun, X)


def row_cotangents(x):
    """Every iteration of the derivative adds to a row of its own."""
    y = x[0]
    for i in range(1, 12):
        y = np.sin(y) * x[i]
    return np.sum(y * y)


def pair_cotangents(x):
    y = x[0]
    for i in range(1, 12):
        y = np.sin(y) * x[i] * x[i - 1]
    return np.sum(y * y)


def test_cotangents_of_rows_are_set():
    assert additions(bw.grad(row_cotangents)) <= 1                # that of the first row, behind the loop


def test_cotangents_that_meet_are_added():
    assert additions(bw.grad(pair_cotangents)) >= 2


def reading(parts):
    """A loop that cannot be array code, of whose reads every one adds to the cotangent of the matrix."""
    def fun(x):
        y = x[0, 0]
        for i in range(1, 11):
            y = np.sin(y) + parts(x, i)
        return y * y
    return fun


parts_of_rows = reading(lambda x, i: np.sum(x[i, :2]) * x[i, 2] * np.prod(x[i, 3:]))
parts_that_grow = reading(lambda x, i: np.sum(x[1:, 1][:i] ** 2) * 0.1 + x[i, 0] * x[0, 4])
parts_of_two_rows_apart = reading(lambda x, i: np.sum(x[i, 2:]) * np.prod(x[i + 1, :2]))
parts_that_meet = reading(lambda x, i: np.sum(x[i, :3]) * np.prod(x[i, 2:]))
parts_of_two_rows = reading(lambda x, i: np.sum(x[i]) * np.prod(x[i + 1, :2]))


@pytest.mark.parametrize("fun, least, most", [
    (parts_of_rows, 0, 1), (parts_of_two_rows_apart, 0, 1), (parts_that_meet, 2, 9), (parts_of_two_rows, 2, 9), (parts_that_grow, 1, 9),
], ids=["parts of rows", "of two rows, apart", "that meet", "of two rows", "that grow"])
def test_several_parts_in_an_iteration(fun, least, most):
    assert least <= additions(bw.grad(fun)) <= most
    assert np.allclose(bw.grad(fun)(X), bw.grad(fun, autoloop=False)(X), rtol=1e-10)
    check_derivatives(fun, X)


def row_behind(x, row):
    """The cotangent of a row that is read behind the loop is there before those of the others."""
    y = x[0]
    for i in range(1, 11):
        y = np.sin(y) * x[i]
    return np.sum(y * y * x[row])


@pytest.mark.parametrize("row, left", [(11, 1), (10, 2)])
def test_cotangents_are_set_beside_others(row, left):
    assert additions(bw.grad(lambda x: row_behind(x, row))) == left
    check_derivatives(lambda x: row_behind(x, row), X)


def test_rows_that_are_left_are_zero():
    gradient = bw.grad(lambda x: np.sum(rows(x) ** 2))
    assert np.all(gradient(X)[11] == 0.0)
    given = X.copy()
    given[11] = np.nan
    assert np.all(gradient(given)[11] == 0.0)
