"""Ranges of which data, or the index of a loop around, decide which one it is."""

import numpy as np
import pytest

import bwcompiler as bw
from tests.unit.frontend.comparing import as_python

X = np.array([0.7, -0.4, 1.3, 0.2, -1.1, 0.9, 0.35, 1.7, -0.6, 0.45])
N = len(X)


def sweeps(x):
    u = np.outer(x, x)
    for sweep in range(8):
        rows = range(1, N) if sweep % 4 in (0, 1) else range(1, N)[::-1]
        if sweep % 4 in (0, 2):
            columns = range(N - 1)
        else:
            columns = reversed(range(N - 1)) if sweep < 0 else range(N - 2, -1, -1)
        for i in rows:
            for j in columns:
                if u[i, j] > 0.113 * x[0]:
                    u[i, j] = np.sin(u[i - 1, j] + 0.5 * u[i, j + 1])
                else:
                    u[i, j] = 0.9 * u[i, j]
    return np.sum(u)


def by_data(x):
    order = range(0, N, 2) if x[0] > 0 else range(N - 1, -1, -2)
    total = 0.0
    for k, i in enumerate(order):
        total = total * 0.5 + x[i] * k
    for i in reversed(order):
        total = total * 0.5 + x[i]
    return total + x[order[1]] * len(order) + x[order[-1]]


def of_other_lengths(x):
    total, last = 0.0, 3
    for k in range(9):
        places = range(k) if x[k] > 0 else range(N - 1, 2, -1)
        for i in places:
            total = total * 0.9 + x[i] * k
            last = i
    return total + last


def before_and_after(x):
    places = range(N)
    total = 0.0
    for k in range(9):
        if x[k] > 0.5:
            places = range(N)[::-1]
        for i in places:
            total = 0.9 * total + x[i]
    return total


@pytest.mark.parametrize("program", [sweeps, by_data, of_other_lengths, before_and_after], ids=lambda program: program.__name__)
def test_as_python(program) -> None:
    as_python(program, X, 0.3 - X)


def test_sweeps_are_one_loop() -> None:
    def swept(x):
        total = 0.0
        for sweep in range(9):
            places = range(N) if sweep in (0, 3) else range(N)[::-1]
            for i in places:
                total = 0.9 * total + x[i]
        return total

    as_python(swept, X)
    assert "is unrolled" not in bw.jit(swept).explain(X)


def test_what_a_range_cannot_be_asked() -> None:
    for ask in (lambda places: 3 in places, np.array, lambda places: places.stop, lambda places: places[20]):
        def program(x, ask=ask):
            places = range(N) if x[0] > 0 else range(N)[::-1]
            return np.sum(ask(places) * x[0])

        with pytest.raises(bw.errors.TracerError, match="a range of which data decide which one it is"):
            bw.jit(program)(X)
