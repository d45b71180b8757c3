"""`next` of a generator: the first element that data choose."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import bwcompiler as bw

LINE = np.linspace(0.23, 1.9, 12)


def number_below(x):
    below = next((k for k, r in enumerate(x) if r < 1.0), len(x))
    return below * x[0]


def in_brackets(x):
    return x[next(i for i, v in enumerate(x) if v > 1.5)] * 2


def perhaps_none(x):
    best = next((v for v in [x[0], 2 * x[1], 3 * x[2]] if v > 2.0), None)
    if best is None:
        return x[0]
    return best * 3


def endless(x):
    k = 7
    n = next(k * k for k in itertools.count() if k * k > 50)
    return x[0] * n + k


def bin_of(x):
    edges = np.linspace(0, 2, 30)
    i = next((i for i in range(29) if edges[i] <= x[0] < edges[i + 1]), 28)
    return x[0] * edges[i]


def added(x):
    total = 0.0
    for q in x:
        total += next((w * q for w in (1.0, 2.0, 3.0) if w * q > 1.0), -1.0)
    return total


@pytest.mark.parametrize("fun", [number_below, in_brackets, perhaps_none, endless, bin_of, added])
def test_first_of_a_generator(fun) -> None:
    for x in (np.linspace(1.9, 0.23, 12), np.linspace(0.23, 1.9, 12), np.full(12, 0.3)):
        try:
            expected = fun(x)
        except StopIteration:
            with pytest.raises(StopIteration):
                bw.jit(fun)(x)
            continue
        assert bw.jit(fun)(x) == pytest.approx(expected, rel=1e-12)
        slope = (fun(x + 1e-6) - fun(x - 1e-6)) / 2e-6
        assert np.sum(bw.grad(fun)(x)) == pytest.approx(slope, rel=1e-6, abs=1e-8)


def test_what_is_known_stays_known() -> None:
    names, table = [f"a{k}" for k in range(40)], np.linspace(0, 1, 40)

    def sizes(x):
        i = next(i for i, name in enumerate(names) if name == "a7")
        j = next((j for j, v in enumerate(table) if v > 0.3), None)
        k = next(k for k in range(100) if 2 ** k >= x.size)
        return np.ones((i, j, k)).sum() * x.sum()

    assert bw.jit(sizes)(LINE) == pytest.approx(sizes(LINE), rel=1e-12)
    table[:] = table[::-1].copy()
    assert bw.jit(sizes)(LINE) == pytest.approx(sizes(LINE), rel=1e-12)


def test_iterators_lose_what_was_asked() -> None:
    def twice(x):
        waiting = iter([x[0], x[1], x[2]])
        return next(v for v in waiting if v > 0.3) * next(waiting)

    with pytest.raises(bw.errors.TracerBoolError):
        bw.jit(twice)(LINE)
