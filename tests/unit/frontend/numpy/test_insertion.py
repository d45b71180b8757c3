"""np.insert and np.delete at positions that data decide: how many elements there are is known, where they are is not."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import UnsupportedError
from tests.support.gradcheck import central_differences
from tests.unit.frontend.comparing import as_python

INPUTS = [np.array(x) for x in ([0.5, 0.7, 0.2], [0.5, 1.3, 0.2], [1.5, 0.7, 0.6], [0.5, 0.7, 0.2])]


def a_number_where_it_belongs(x):
    knots = np.sort(x)
    return np.sum(np.insert(knots, np.searchsorted(knots, 0.65), 0.65) * x[0] * np.arange(4))


def as_python_integer(x):
    k = int(np.argmax(x))
    return np.sum(np.insert(x, k + 1, x[0] * x[1]) ** 2 * np.arange(4))


def a_block(x):
    rows = np.outer(x, x)
    k = np.argmin(x)
    return np.sum(np.insert(rows, k, x * x, axis=1) * np.arange(12).reshape(3, 4)) + np.sum(
        np.insert(rows, [k], rows[:, :2] * 2, axis=1) * np.arange(15).reshape(3, 5)) + np.sum(
        np.insert(rows, k, rows[:2], axis=0) * np.arange(15).reshape(5, 3)) + np.sum(
        np.insert(rows, -k, [x[0], 3.0]) * np.arange(11))


def at_several_positions(x):
    places = [np.argmax(x), int(np.searchsorted(x, 0.6)), 0, -1]
    return np.sum(np.insert(x, places, [2.0, x[0], x[1], 4.0]) * np.arange(7)) + np.sum(
        np.insert(np.outer(x, x), np.argsort(x)[:2], x[:2, None], axis=0) * np.arange(15).reshape(5, 3))


def at_equal_positions(x):
    k = np.argmax(x)
    return np.sum(np.insert(x, np.array([k, 0, k]), x) * np.arange(6) ** 2)


def in_loops(x):
    grown, total = x, 0.0
    for k in range(3):
        grown = np.insert(grown, k + np.argmin(x), x[0] * k)
    for k in range(9):
        total = total * 0.5 + np.sum(np.insert(x, k % 4, x[1]) * np.arange(4)) + np.sum(np.delete(x, k % 3) * np.arange(2))
    return total + np.sum(grown * np.arange(6))


def integers_keep_their_type(x):
    counts = np.insert(np.array([1, 2, 3]), np.argmax(x), 2.7)
    assert counts.dtype == np.int64
    return np.sum(counts * np.arange(4)) * x[0]


def deleted_at_several_positions(x):
    order = np.argsort(x)
    return np.sum(np.delete(x, order[:2]) ** 2) + np.sum(np.delete(np.outer(x, x), np.array([order[0], 0]), axis=1) * x[:, None]) + len(
        np.delete(x, [order[0], order[1] - 3]))


@pytest.mark.parametrize("fun", [a_number_where_it_belongs, as_python_integer, a_block, at_several_positions, at_equal_positions, in_loops,
                                 integers_keep_their_type, deleted_at_several_positions], ids=lambda fun: fun.__name__)
def test_values_and_gradients(fun):
    compiled = bw.value_and_grad(fun)
    for x in INPUTS:
        value, slope = compiled(x)
        np.testing.assert_allclose(value, fun(x), rtol=1e-13)
        np.testing.assert_allclose(slope, central_differences(fun, x), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("places", [lambda k: k + 4, lambda k: np.array([0, k - 9])], ids=["one", "several"])
def test_positions_outside_raise_when_the_program_runs(places):
    compiled = bw.jit(lambda x, k: np.insert(x, places(k), 1.0))
    with pytest.raises(IndexError, match="out of bounds for axis 0 with size 3"):
        compiled(INPUTS[0], np.int64(0))


@pytest.mark.parametrize("compile", [lambda fun: fun, bw.jit], ids=["numpy", "compiled"])
def test_what_numpy_refuses(compile):
    with pytest.raises(ValueError, match="one dimensional or scalar"):
        compile(lambda x, k: np.insert(x, np.array([[0, k]]), 1.0))(INPUTS[0], np.int64(1))
    with pytest.raises((TypeError, IndexError), match="indices must be integers|positions must be integers"):
        compile(lambda x, k: np.insert(x, k * 0.5, 1.0))(INPUTS[0], np.int64(1))


def test_a_number_of_positions_that_data_decide_is_refused():
    with pytest.raises(UnsupportedError, match="data decide how many"):
        bw.jit(lambda x: np.insert(x, x > 0.6, 1.0).sum())(INPUTS[0])


def grown_by_one(x):
    a = np.zeros(0)
    for k in range(len(x)):
        a.resize(a.size + 1, refcheck=False)
        a[k] = x[k] * 2
        a = a + 0.1 * np.flipud(a)
    other = a
    other.resize(3, refcheck=False)
    return a.sum() * len(a) + np.sum(a[::-1] * np.arange(len(a)))


def grown_in_a_long_loop(x):
    a = x[:1] * 1.0
    for k in range(12):
        a.resize((a.size + 1,), refcheck=False)
        a[-1] = x[k % len(x)] * a[-2]
    return np.sum(a * np.arange(len(a)))


@pytest.mark.parametrize("program", [grown_by_one, grown_in_a_long_loop])
def test_resize(program):
    as_python(program, np.array([1.0, 1.5, 0.5, 1.25]), np.array([0.5, 0.25, 1.75, 0.4]))


def test_resize_is_refused_of_arguments_and_views():
    with pytest.raises(UnsupportedError, match=r"ndarray.resize is not supported(.|\n)*np.append"):
        bw.jit(lambda x: x.resize(3))(np.ones(2))
    with pytest.raises(ValueError, match="does not own its data"):
        bw.jit(lambda x: (x * 2)[1:].resize(3))(np.ones(2))
