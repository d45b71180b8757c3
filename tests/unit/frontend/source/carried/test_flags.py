"""Arithmetic with truth values alone, which loops and branches give: Python's are numbers, of NumPy's `+` is `or`."""

import numpy as np
import pytest

import bwcompiler as bw
from tests.unit.frontend.comparing import as_python

LONG = np.array([0.513, -1.017, 2.031, 0.37, -0.29, 1.43, -2.2, 0.61, -0.83, 0.19, 1.71, -0.47])
STARTS = LONG, abs(LONG), -0.1 * abs(LONG), LONG[::-1].copy(), LONG


def of_loops(x):
    a = b = False
    for v in x:
        if v > 1:
            a = True
        if v < 0:
            b = True
    return (a + b) * x[0] + x[1]


def in_loops(x):
    a = b = False
    s = 0.0
    for v in x:
        s += (a + b) * v - (a - b) * x[0] + (a * b + a * a) * v - (-a) * x[1] + a ** 2
        if v > 1:
            a = not a
        if v < 0:
            b = not b
    return s


def in_tests(x):
    a = b = False
    k = 0
    while a + b < 2 and k < len(x):
        if x[k] > 1:
            a = True
        if x[k] < 0:
            b = True
        k += 1
    return k * x[0]


def of_branches(x):
    a = False
    if x[0] > 0:
        a = True
    b = False
    if x[1] > 0:
        b = True
    return (a + b + True) * x[2] + sum((a, b)) * x[0]


def in_dictionaries(x):
    flags = {"a": False, "b": False}
    for v in x:
        if v > 1:
            flags["a"] = True
        if v < 0:
            flags["b"] = True
    return (flags["a"] + flags["b"]) * x[0] + sum(flags.values()) * x[1]


def as_places(x):
    a = False
    for v in x:
        if v > 1:
            a = True
    return [x[0], x[1]][a] * 2 + (x[1], x[2])[not a]


def products(x):
    """Which Python's numbers are compared for: the sum of products is 2."""
    n, s = 0, 0.0
    while n < x[0] * 3:
        n += 1
        s += ((n > 1) * (n > 0) + (n > 0) * (n > 1)) * x[1]
    return s


def of_numpy(x):
    a = b = np.False_
    for v in x:
        a = v > 1
        b = v < 3
    return (a + b) * x[0] + x[1]


def of_python_at_first(x):
    """Without a loop that is recorded it is known that they are NumPy's in the end."""
    a = b = False
    for v in x:
        a = v > 1
        b = v < 3
    return (a + b) * x[0] + x[1]


@pytest.mark.parametrize("program", [of_loops, in_loops, in_tests, of_branches, in_dictionaries, as_places, products, of_numpy,
                                     of_python_at_first], ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, *STARTS)


def test_truth_values_of_which_nobody_knows_whose_they_are_are_refused():
    def program(x):
        a = b = False
        y = x[0]
        while abs(y) > 0.1:
            a, b = y > 0.3, y < 5.0
            y *= 0.7
        return (a + b) * y
    with pytest.raises(bw.errors.TracerError, match="(?s)test_flags.py.*truth values alone are computed with.*hint: int"):
        bw.jit(program)(LONG)
