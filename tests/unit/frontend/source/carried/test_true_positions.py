"""Positions of true elements in arrays whose extents depend on the index of a loop, `np.nonzero(x[i + 1:] > x[i])`: the loop is recorded."""

import numpy as np
import pytest

from bwcompiler.frontend.tracing.trace import trace
from tests.unit.frontend.comparing import as_python

X = np.array([0.317, -0.923, 1.811, 0.731, -0.419, 1.263, 0.547, 1.629, -0.753, 0.159, 1.137, 0.941])


def gone_over(x):
    total = 0.0
    for i in range(11):
        for j in np.nonzero(x[i + 1:] > x[i])[0]:
            total += x[i + 1 + j] * x[i]
    return total


def read_at(x):
    total = 0.0
    for i in range(11):
        y = x[i + 1:]
        k = (y > x[i]).nonzero()[0]
        total += np.sum(y[k] ** 2) + len(k) + k.sum() + np.sum(x[k])
    return total


def ends(x):
    total = 0.0
    for i in range(1, 11):
        y = x[:i]
        k = np.where(y > -2)[0]
        total += np.sum(y[k] * np.arange(len(k))) + y[k[0]] * y[k[-1]]
    return total


def along_two_axes(x):
    total, a = 0.0, np.outer(x, x)
    for i in range(1, 11):
        rows, columns = np.nonzero(a[:i, i:] > 0.3)
        total += np.sum(a[rows, columns + i] * i) + np.sum(a[:i, i:][rows, columns])
    return total


def extending_a_list(x):
    found = []
    for i in range(11):
        found.extend(x[i] * x[i + 1 + j] for j in np.flatnonzero(x[i + 1:] > x[i]))
    return np.sum(found) + len(found)


def written_at(x):
    total = 0.0
    for i in range(11):
        y = x[i + 1:] * 1.0
        y[np.nonzero(y > x[i])[0]] = x[i]
        total += np.sum(y ** 2)
    return total


PROGRAMS = [gone_over, read_at, ends, along_two_axes, extending_a_list]


@pytest.mark.parametrize("program", [*PROGRAMS, written_at], ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, X, -X, np.roll(X, 5) + 0.017, X)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_recorded(program):
    assert not trace(program, (X,)).notes
