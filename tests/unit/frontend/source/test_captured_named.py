"""Assignments in the tests of loops and branches: `while (y := f(x)) > 0`."""

import numpy as np
import pytest

from bwcompiler.frontend.tracing.trace import trace
from tests.unit.frontend.comparing import as_python

X = np.array([0.7, -0.4, 1.3, 0.2, -1.1, 0.9, 0.35, 1.7, -0.6, 0.45, 0.15, -0.25])


def of_a_comparison(x):
    count, total = 0, 0.0
    while (y := (2.0 + x[0]) * 0.9 ** count) > 0.051:
        total += y
        count += 1
    return total * count + y


def with_continue(x):
    count, y = 0, x[0]
    while abs(d := np.cos(y) - y) > 1e-6 + 1e-8 * x[1]:
        count += 1
        if count % 3 == 0:
            y += 0.25 * d
            continue
        y += 0.5 * d
    return y + count + np.sum(x) * d


def of_an_attribute(x):
    y = x * 1.0
    while (z := 1.1 * y + 0.3)[0] < 9.0:
        y = z
    else:
        y = y + 1.0
    return np.sum(y * z)


def around_each_other(x):
    total, k = 0.0, 0
    while (k := k + 1) < 12:
        j = 0
        while (t := x[k] * j) < 2.03 and j < 9:
            total += t
            j += 1
    return total


def of_a_branch(x):
    t, total = x[0], 0.0
    for k in range(12):
        if (m := 1.1 * t + x[k]) > 0.53:
            total += m
        else:
            total -= m * m
        t = 0.7 * m
    return total + m


PROGRAMS = [of_a_comparison, with_continue, of_an_attribute, of_a_branch]


@pytest.mark.parametrize("program", [*PROGRAMS, around_each_other], ids=lambda program: program.__name__)
def test_as_python(program) -> None:
    as_python(program, X)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_loops_are_native(program) -> None:
    assert not trace(program, (X,)).notes
