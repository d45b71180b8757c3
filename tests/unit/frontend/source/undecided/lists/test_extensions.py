"""`items.extend(x for ... in ...)`: a list takes one element after the other, as data decide which; as Python's."""

from collections import deque

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import BwError
from tests.unit.frontend.comparing import as_python

X = np.array([0.317, -0.923, 1.811, 0.731, -0.419, 1.263, 0.547, 1.629, -0.753, 0.159, 1.137, 0.941])
PLACES = (-X, np.roll(X, 3) - 0.53, 0.91 * X + 0.213)


def pairs_of_neighbours(x):
    pairs = []
    for i in range(len(x) - 1):
        near = np.nonzero(np.abs(x[i + 1:] - x[i]) < 0.7)[0]
        pairs.extend((i, i + 1 + int(j)) for j in near)
    i, j = np.array(pairs, dtype=int).reshape(-1, 2).T
    return np.sum(np.exp(-(x[i] - x[j]) ** 2)) + len(pairs)


def what_is_selected(x):
    found = [x[0]]
    found.extend(k * x[1] for k in np.flatnonzero(x > 0.5) if k != 3)
    return np.sum(found) + len(found)


def what_a_test_of_data_keeps(x):
    found = []
    for k in range(6):
        found.extend(x[k] * y for y in x if y > 0.1 * k)
    found.extend(y for row in np.outer(x, x)[:3] for y in row if y > 0)
    return sum(found) + found[-1]


def on_one_side(x):
    found = []
    for k in range(10):
        if x[k] > 0:
            found.extend(x[k] * j for j in range(3))
    return np.sum(found) + len(found)


def it_reads_the_list_that_it_extends(x):
    found = [x[0], x[1]]
    found.extend(found[-1] * 0.5 + found[-2] for _ in range(9))
    found.extend(len(found) * v for v in x)
    return found[-1] + sum(found)


class Row:
    def __init__(self):
        self.first, self.rest = 0.0, []

    def extend(self, values):
        self.first = next(values)
        self.rest.extend(values)


def others_take_the_generator(x):
    row, queue = Row(), deque(maxlen=3)
    row.extend(2 * v for v in x)
    queue.extend(v * v for v in x)
    return row.first * sum(row.rest) + sum(queue) * queue[0]


def lists_in_a_list(x):
    rows = [[] for _ in range(3)]
    for k in range(3):
        rows[k].extend(v * k for v in x if v > 0.2)
    return sum(sum(row) for row in rows) + len(rows[1])


@pytest.mark.parametrize("program", [
    pairs_of_neighbours, what_is_selected, what_a_test_of_data_keeps, on_one_side, it_reads_the_list_that_it_extends,
    others_take_the_generator, lists_in_a_list], ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, X, *PLACES, X)


def test_elements_before_an_error_stay():
    def program(x):
        found = []
        try:
            found.extend(x[k] for k in (0, 1, 2, 99, 3))
        except IndexError:
            found.append(x[5])
        return sum(found)
    as_python(program, X)


def test_reading_the_list_where_data_extend_it_is_right_or_refused():
    def program(x):
        found = [1.0]
        found.extend(found[-1] * x[k] for k in np.flatnonzero(x > 0.5))
        return found[-1] + sum(found)
    try:
        found = bw.jit(program)(X)
    except BwError as refused:
        assert "hint" in str(refused)
    else:
        assert found == pytest.approx(program(X), rel=1e-12)
