"""Lists of lists, tuples and objects of numbers that the function has computed one by one, read at places that move with a loop: their
numbers are put together before it."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import BwError
from tests.support.gradcheck import central_differences

INPUTS = [np.array(x) for x in ([0.5, 0.7, 0.2], [0.5, 1.3, 0.2], [1.5, 0.7, 0.6], [0.5, 0.7, 0.2])]


def rows_of(x):
    return [[x[0] * 2, x[1], np.sin(x[2])], [x[1] * x[2], 3.0 * x[0], x[2]], [np.exp(x[0]), x[2], x[1] - x[0]]]


def row_by_row(x):
    rows, total = rows_of(x), 0.0
    weights = [(x[0], 1.0), (x[1] * x[2], 2.0), (x[2], x[0])]
    for it in range(4):
        for k in range(3):
            for one, j in zip(rows[k], range(3), strict=True):
                total = total * 0.9 + one * weights[k][0] * j
            total += weights[2 - k][1] * rows[k][it % 3]
    return total


def in_many_iterations(x):
    rows, total = rows_of(x), 0.0
    for it in range(200):
        first, second, third = rows[it % 3]
        total = total * 0.9 + first * second - third * it * 0.01
    for k in range(len(rows)):
        total += sum(rows[k]) * k
    return total


def with_arrays(x):
    class Piece:
        def __init__(self, v, w):
            self.v, self.w = v, w

    pieces, total = [Piece(x * 2, x[0]), Piece(np.sin(x), x[1] * x[2]), Piece(x[::-1] * 1.0, x[2])], 0.0
    for _ in range(12):
        for k in range(3):
            total = total * 0.9 + np.sum(pieces[k].v * x) * pieces[k].w
    return total


@pytest.mark.parametrize("fun", [row_by_row, in_many_iterations, with_arrays], ids=lambda fun: fun.__name__)
def test_values_and_gradients(fun):
    compiled = bw.value_and_grad(fun)
    for x in INPUTS:
        value, slope = compiled(x)
        np.testing.assert_allclose(value, fun(x), rtol=1e-12)
        np.testing.assert_allclose(slope, central_differences(fun, x), rtol=1e-6, atol=1e-8)


def changed_in_the_loop(x):
    rows, total = rows_of(x), 0.0
    for it in range(9):
        total = total * 0.9 + sum(rows[it % 3])
        rows[1][0] = rows[1][0] * 0.5
        rows[it % 3][2] = total
    return total + rows[0][2] - rows[1][0]


def changed_by_another_name(x):
    rows, total = rows_of(x), 0.0
    first = rows[0]
    for k in range(3):
        total = total * 0.9 + sum(rows[k])
        first[1] = total
    return total + rows[0][1]


def a_row_in_another_place(x):
    rows, total = rows_of(x), 0.0
    for it in range(9):
        total = total * 0.9 + sum(rows[it % 3])
        rows[1] = [total, x[0], x[1]]
    return total + sum(rows[1])


def arrays_that_are_written_to(x):
    rows, total = [(x * 1.0, x[0]), (x * 2.0, x[1]), (x * x, x[2])], 0.0
    first = rows[0][0]
    for it in range(9):
        v, w = rows[it % 3]
        total = total * 0.9 + np.sum(v * x) * w
        first[1] = first[1] * 0.5
    return total


@pytest.mark.parametrize("fun", [changed_in_the_loop, changed_by_another_name, a_row_in_another_place, arrays_that_are_written_to],
                         ids=lambda fun: fun.__name__)
def test_changes_are_seen_or_refused(fun):
    compiled = bw.value_and_grad(fun)
    for x in INPUTS:
        try:
            value, slope = compiled(x)
        except BwError:
            continue
        np.testing.assert_allclose(value, fun(x), rtol=1e-12)
        np.testing.assert_allclose(slope, central_differences(fun, x), rtol=1e-6, atol=1e-8)
