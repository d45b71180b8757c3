"""Arrays as long as data says (np.arange(n), np.ones(n), np.linspace(a, b, n)), and what is assigned to parts of selections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerIndexError


def gini(x):
    v = np.sort(x[x > 0])
    n = len(v)
    i = np.arange(1, n + 1)
    return ((2 * i - n - 1) * v).sum() / (n * v.sum())


def distribution(x):
    v = np.sort(x[x > 0])
    share = np.arange(1, v.size + 1) / v.size
    return np.interp(0.4, share, v), share.max(), np.trapezoid(share, v), (share * v)[-1]


def lines(x):
    v = x[x > -0.5]
    design = np.column_stack([np.ones(len(v)), v])
    return np.linalg.lstsq(design, v ** 2, rcond=None)[0]


def many_makers(x):
    n = (x > 0).sum()
    return (np.full(n, x[0]).sum(), np.arange(n, 0, -1) @ x[x > 0], np.arange(2 * n + 1)[::2].sum(), np.arange(5, 5 + n), np.arange(3, n).size,
            np.arange(0, n, 2), np.zeros((n, 2)).shape[0], np.ones((2, n)) @ x[x > 0], np.empty(int(np.sum(x > 9))).size, np.zeros(n, int),
            np.arange(np.argmax(x)), np.ones(np.argmin(x) + 1), np.arange(min(n, 3)), np.arange(n, dtype=float))


def spaces(x):
    n = np.count_nonzero(x > 0)
    none = np.count_nonzero(x > 9)
    return (np.linspace(x[0], 1, n), np.linspace(0, x[1], n + 1).sum(), np.linspace(2, 1, n + 3, endpoint=False), np.linspace(0, 1, none).sum(),
            np.linspace(3, 1, none + 1), np.linspace(0, 1, n) @ x[x > 0])


def slices_assigned(x):
    v = x[x > 0]
    w, y = np.zeros_like(v), x[x > 0]
    w[1:] = v[:-1]
    w[:1] += 3.0
    y[::2] = -1.0
    y[-2:] *= 2.0
    y[1:-1] = v[1:-1] + w[1:-1]
    y[9:] = 5.0
    return w @ v, w[0], y.sum(), y[-1], np.sort(y)[0]


def columns_assigned(x):
    m = x > 0
    w, a = np.zeros((m.sum(), 3)), np.outer(x, np.arange(1.0, 4))[m]
    w[:, 0] = x[m]
    w[:, 1] = 1
    w[1:, 2] += w[:-1, 0]
    w[0, 1] = x[0]
    w[-1] = np.array([1.0, 2.0, 3.0])
    a[:, 1:] *= 2
    a[0] = 7.0
    a[1:, 0] = x[m][1:] ** 2
    return w.sum(axis=0), (w * w[:, :1]).sum(), a.sum(axis=0), a[0], (a.T @ w).sum()


def recursions(x):
    v = x[x > 0]
    n = len(v)
    w, y = np.empty(n), np.zeros(n)
    w[0] = v[0]
    for i in range(1, n):
        w[i] = 0.5 * w[i - 1] + v[i]
    for i in range(n - 2, -1, -1):
        y[i] = y[i + 1] * 0.3 + w[i] * v[i]
    return w.sum(), w[-1], y @ w, y[0]


class Histogram:
    """State of objects, as long as data says."""

    def __init__(self, count):
        self.weights = np.zeros(count)

    def put(self, place, weight):
        self.weights[place] += weight


def state_of_objects(x):
    v, changing = x[x > 0], x.copy()
    histogram = Histogram(len(v))
    for i in range(len(v)):
        histogram.put(i // 2, v[i] ** 2)
    for k in range(3):
        m = changing > 0
        changing[m] -= changing[m][::-1] * 0.1
        u = changing[m]
        u[0] = k
        changing[m] = u
    return histogram.weights.sum(), histogram.weights[0], changing


def assigned_in_branches(x):
    v = x[x > 0]
    if v.sum() > 3.0:
        v[0] = 9.0
        v[1:] -= x[0]
    else:
        v[-1] = x[1]
    for k in range(2):
        if x[k] > 1:
            v[k] = x[k] ** 2
            v *= 1.5
    if x[2] < 0.0:
        v.sort()
    return v.sum(), v[0], v[-1]


def a_view_that_is_gone(x):
    y = x[x > 0]
    w = y[1:] * 2
    y += 1
    z = y.ravel()
    z[0] = 5.0
    return w.sum(), y.sum(), z[0]


def filling_arrays(x):
    """Parts of arrays of known sizes, of which there must be as many elements as a mask selects, or one is selected."""
    ranked = x[np.argsort(x) < 4]
    found, table, pairs, picked = np.zeros(4), np.ones((2, 4)), np.zeros((4, 2)), np.zeros(6)
    found[:] = ranked
    table[1] = ranked * 2
    table[:, [0, 2, 1, 3]] = ranked
    pairs[:] = np.stack([x, x * x], 1)[np.argsort(x) < 4]
    pairs[::2, 0] += ranked[:2]
    picked[np.arange(6) % 3 != 1] = ranked ** 2
    picked[1:3] = x[x == x[1]]
    return found, table, pairs, picked


def searched(x):
    v = np.sort(x[x > 0])
    steps = np.unique(np.floor(x))
    k = np.searchsorted(v, 1.0)
    return (v[max(k - 1, 0)], np.searchsorted(v, [0.0, 0.95, 9.0, np.inf], side="right"), np.searchsorted(steps, np.floor(x)),
            np.searchsorted(steps, 0, side="right"), np.searchsorted(np.array([0.0, 1.0, 2.0]), v), np.searchsorted(v, v, "right"),
            np.searchsorted(v, np.nan), np.searchsorted(np.flatnonzero(x > 0), 1.5))


PROGRAMS = [searched, filling_arrays, gini, distribution, lines, many_makers, spaces, slices_assigned, columns_assigned, recursions, state_of_objects, assigned_in_branches, a_view_that_is_gone]


def parts(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def points(rng: np.random.Generator) -> np.ndarray:
    x = rng.standard_normal(9) * 1.3
    x[:4] = 0.9, 2.1, -0.3, -1.4
    return x


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_numpy(program: Callable[[Any], Any], rng: np.random.Generator) -> None:
    compiled = bw.jit(program)
    for _ in range(3):
        x = points(rng)
        for found, expected in zip(parts(compiled(x)), parts(program(x)), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
            assert np.asarray(found).dtype == np.asarray(expected).dtype


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_gradients(program: Callable[[Any], Any], rng: np.random.Generator) -> None:
    def loss(x):
        return sum([np.sum(part) for part in parts(program(x)) if np.result_type(part).kind == "f"], 0.0)
    x, direction = points(rng), rng.standard_normal(9)
    numeric = (loss(x + 1e-6 * direction) - loss(x - 1e-6 * direction)) / 2e-6
    assert bw.grad(loss)(x) @ direction == pytest.approx(numeric, rel=1e-5, abs=1e-6)


def behind_the_end(x):
    y = np.zeros((x > 0).sum())
    y[4] = 1.0
    return y.sum()


def does_not_fill(x):
    y = np.zeros(9)
    y[:7] = x[x > 0]
    return y


def too_many(x):
    y = np.zeros((x > 0).sum())
    y[1:] = np.ones(4)
    return y.sum()


@pytest.mark.parametrize("program", [
    lambda x: np.ones(len(x[x > 0]) - 5).sum(), lambda x: np.linspace(0, 1, (x > 0).sum() - 5).sum(),
    behind_the_end, does_not_fill, too_many,
    lambda x: (np.arange((x > 0).sum()) * x[x < 0]).sum()])
def test_what_numpy_refuses_when_numbers_are_known(program: Callable[[Any], Any]) -> None:
    x = np.array([1.0, 2.0, 3.0, -1.0, -2.0])
    with pytest.raises((ValueError, IndexError)) as expected:
        program(x)
    with pytest.raises((ValueError, IndexError)) as found:
        bw.jit(program)(x)
    assert type(found.value) is type(expected.value)


@pytest.mark.parametrize("program", [lambda x: np.arange(int(x[0])).sum(), lambda x: np.ones(int(x[0])).sum(),
                                     lambda x: np.linspace(0, 1, int(x[0])).sum()])
def test_without_a_largest_number(program: Callable[[Any], Any]) -> None:
    with pytest.raises(TracerIndexError, match=r"(?s)test_counted.py.*a traced value as a size.*nor an upper bound.*np.minimum"):
        bw.compile(program, np.array([3.0, 4.0]))


def test_with_a_largest_number() -> None:
    def program(x):
        n = min(int(x[0]), 10)
        return np.arange(n).sum() + np.ones(np.minimum(n, 4)).sum()

    compiled = bw.jit(program)
    for first in (3.2, 25.0, 0.0):
        assert compiled(np.array([first])) == program(np.array([first]))
