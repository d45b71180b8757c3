"""np.repeat with traced counts: a selection with room for as many elements as there may be, if that has a bound."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import UnsupportedError
from tests.unit.frontend.comparing import as_python

X = np.array([1.25, 2.1, 0.55, -0.3, 0.9, 3.1])
PLACES = (X, np.array([-1.1, 0.3, 2.2, 0.7, -2.1, 0.1]), np.array([3.1, -2.2, 1.3, 1.15, 0.2, -0.7]))
TIMES = np.array([1, 2, 3, 0, 1, 2])


def by_mask(x):
    return np.sum(np.repeat(x, x > 0) ** 2)


def by_table(x):
    found = np.repeat(x, TIMES[np.argsort(x)])
    return found.sum() * found.mean() + found[0] + found[-1] ** 2


def by_method(x):
    found = x.repeat((x > 0.5).astype(int) + 1)
    return len(found) * x[0] + found.max()


def along_axes(x):
    rows, columns = x.reshape(3, 2), x.reshape(2, 3)
    tall = np.repeat(rows, np.where(rows[:, 0] > 0.5, 2, 1), axis=0)
    return np.sum(tall.sum(axis=0) ** 2) + np.sum(np.repeat(columns, np.where(columns[0] > 0.5, 2, 0), axis=-1) ** 2)


def one_count(x):
    return np.repeat(x, int(np.sum(x > 0.5))).sum()


def in_a_loop(x):
    total = 0.0
    for k in range(4):
        total = total + np.repeat(x, np.where(x > 0.2 * k, k, 1)).sum()
    return total


def of_labels(x):
    counts = np.where(x > 0.5, 2, 1)
    labels = np.repeat(np.arange(6), counts)
    places = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.sum(x[labels] ** 3) + np.sum(np.repeat(x, counts) * (places + 1))


def at_most(x):
    return np.repeat(x, np.minimum(np.abs(x * 3).astype(int), 5)).sum()


@pytest.mark.parametrize("program", [by_mask, by_table, by_method, along_axes, one_count, in_a_loop, of_labels, at_most],
                         ids=lambda one: one.__name__)
def test_values_and_derivatives(program):
    as_python(program, *PLACES)


def test_results():
    compiled = bw.jit(lambda x: np.repeat(x, np.where(x > 0.5, 2, 0)))
    for x in (*PLACES, -np.abs(X)):
        np.testing.assert_array_equal(compiled(x), np.repeat(x, np.where(x > 0.5, 2, 0)))


def test_a_table_from_outside_may_change():
    times = np.array([1, 0, 1, 0, 1, 0])
    compiled = bw.jit(lambda x: np.repeat(x, times[np.argsort(x)]))
    for _ in range(2):
        np.testing.assert_array_equal(compiled(X), np.repeat(X, times[np.argsort(X)]))
        times[:] = 7


def test_what_is_refused():
    with pytest.raises(UnsupportedError, match=r"nor an upper bound of it\n.*np.searchsorted\(np.cumsum\(repeats\), np.arange\(n\)"):
        bw.jit(lambda x: np.repeat(x, np.abs(x * 10).astype(int)))(X)
    with pytest.raises(ValueError, match="repeats may not contain negative values"):
        bw.jit(lambda x: np.repeat(x, np.where(x > 0, 1, -1)))(X)
    with pytest.raises(ValueError, match="could not be broadcast"):
        bw.jit(lambda x: np.repeat(x, x[:3] > 0))(X)
    with pytest.raises(TypeError, match="Cannot cast"):
        bw.jit(lambda x: np.repeat(x, x))(X)
