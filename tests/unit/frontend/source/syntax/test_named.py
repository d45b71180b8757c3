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


def behind_and_in_a_loop(x):
    total, k = 0.0, 0
    while k < 12 and (v := x[k] * 1.01) < 1.6:
        total += v * v
        k += 1
    return total * (k + 1.0)


def behind_and_of_a_branch(x):
    total = 0.0
    for v in x:
        if v > 0.1 and (w := v * v) > 0.2 and (u := w * 2.01) < 3.1:
            total = total + u * w
        else:
            total = total - v
    return total


def behind_or(x):
    total = 0.0
    for v in x:
        if v < 0.21 or ((w := v * v) > 0.5 and (u := w * 2.0) < 1.7 and u > 0.0):
            total = total + v
        elif not (v > 0.6 and (q := v - 0.6) > 0.01):
            total = total - 1.0
        else:
            total += q
    return total


def behind_or_of_a_loop_with_continue_and_else(x):
    n, y = 0, x[0]
    while not (n >= 5 or (y := x[n] * 2.02) > 2.5):
        n += 1
        if x[n] < 0.1:
            continue
        x = x * 1.01
    else:
        y = y + n
    return np.sum(x) * y


def with_large_sides(x):
    total, w = 0.0, 0.3
    for v in x:
        if (v > 0.1 and (w := v * 1.1) > 0.2) or (v < -0.5 and (w := v * 1.2) < -0.7) or (v > 1.5 and (w := 2.2 * v) > 3.0):
            total = (total + w * v + np.sin(w) * np.cos(v) + np.sin(2 * w) * np.cos(2 * v) + np.sin(3 * w) * np.cos(3 * v)
                     + np.sin(4 * w) * np.cos(4 * v) + np.sin(5 * w) * np.cos(5 * v) + np.sin(6 * w) * np.cos(6 * v))
        else:
            total = (total - w * v + np.cos(w) * np.cos(v) + np.cos(2 * w) * np.cos(2 * v) + np.cos(3 * w) * np.cos(3 * v)
                     + np.cos(4 * w) * np.cos(4 * v) + np.cos(5 * w) * np.cos(5 * v) + np.cos(6 * w) * np.cos(6 * v))
    return total


PROGRAMS = [of_a_comparison, with_continue, of_an_attribute, of_a_branch, behind_and_in_a_loop, behind_and_of_a_branch, behind_or,
            behind_or_of_a_loop_with_continue_and_else, with_large_sides]


@pytest.mark.parametrize("program", [*PROGRAMS, around_each_other], ids=lambda program: program.__name__)
def test_as_python(program) -> None:
    as_python(program, X)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_loops_are_native(program) -> None:
    assert not trace(program, (X,)).notes
