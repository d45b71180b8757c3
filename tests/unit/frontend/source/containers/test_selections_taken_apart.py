"""Selections whose elements are given to variables: `a, b = x[x > 0]`, which are as many, or an error says so."""

import numpy as np
import pytest

import bwcompiler as bw
from tests.unit.frontend.comparing import as_python

PLACES = np.array([1.0, -2.0, 3.0]), np.array([2.0, 1.5, -1.0]), np.array([-1.0, 2.5, 3.0])


def of_numbers(x):
    a, b = x[x > 0]
    return a * b ** 2


def of_positions(x):
    i, j = np.flatnonzero(x > 0)
    return x[i] * 2 + x[j] * (j - i)


def of_rows(x):
    p, q = np.outer(x, np.arange(1.0, 4.0))[x > 0]
    return np.sum(p * q) + p[0]


def in_a_loop(x):
    total = 0.0
    for k in range(3):
        a, b = (k + 1.0) * x[x > 0]
        total += a / b
    return total


@pytest.mark.parametrize("program", [of_numbers, of_positions, of_rows, in_a_loop], ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, *PLACES)


@pytest.mark.parametrize("x", [[1.0, 2.0, 3.0], [-1.0, -2.0, 3.0], [-1.0, -2.0, -3.0]])
def test_another_number(x):
    with pytest.raises(ValueError, match="values to unpack") as expected:
        of_numbers(np.array(x))
    with pytest.raises(ValueError, match=str(expected.value).split(" (")[0]):
        bw.jit(of_numbers)(np.array(x))
