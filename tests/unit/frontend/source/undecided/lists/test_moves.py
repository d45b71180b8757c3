"""Lists with gaps whose elements are counted or moved: slices, reversed, enumerate, zip, sorted, items at places that data decide."""

import itertools
from typing import NamedTuple

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.tracing.trace import trace
from tests.unit.frontend.comparing import as_python

X = np.array([0.7, -0.4, 1.3, 0.2, -1.1, 0.9, 0.35, 1.7, -0.6, 0.45, 0.15, -0.25, 0.8, 0.05, -0.9, 1.05]) + 0.0137


def of_a_loop(x):
    kept = []
    for k in range(16):
        if x[k] > 0.25:
            kept.append(x[k] * (k + 1.0))
    return kept


def of_branches(x):
    kept = [x[0]]
    for k in range(1, 5):
        if x[k] > 0.25:
            kept.append(x[k] * 2)
    kept.append(1.0)
    return kept


def of_both(x):
    return [*of_branches(x), *of_a_loop(x)]


def pairs(x):
    kept = []
    for k in range(16):
        if x[k] > 0.25:
            kept.append((k, x[k] * 2))
    return kept


MAKERS = [of_a_loop, of_branches, of_both]


def weighed(values):
    total = 0.0
    for v in values:
        total = 0.9 * total + v
    return total


def turned(x, make):
    kept = make(x)
    total = weighed(kept[::-1]) + weighed(reversed(kept)) * 2
    kept.reverse()
    return total + weighed(kept) * 3 + weighed(list(reversed(kept))) + sum([v * v for v in iter(reversed(kept))]) + weighed(sorted(kept)) + weighed(sorted(kept, reverse=True)[:2])


def numbered(x, make):
    kept, total = make(x), 0.0
    for k, v in enumerate(kept):
        total = 0.9 * total + k * v
    for k, v in enumerate(kept[1:], start=3):
        total = 0.9 * total + v / k
    return total + sum([v / (k + 1) for k, v in enumerate(kept)])


def neighbours(x, make):
    kept, total = make(x), 0.0
    for a, b in zip(kept[:-1], kept[1:]):  # noqa: B905, RUF007
        total += (b - a) * a
    for a, b, c in zip(kept, kept[1:], [0.5, 0.25, 2.0], strict=False):
        total += a * b * c
    for a, w in zip(kept, x, strict=False):
        total += a * w
    ratios = [b / (1 + a * a) for a, b in zip(kept, kept[1:])]  # noqa: B905, RUF007
    return total + sum(ratios) + len(list(zip(kept, ratios)))  # noqa: B905


def at_places(x, make):
    kept, total = make(x), 0.0
    for k in range(len(kept)):
        total = 0.9 * total + kept[k] * kept[-k - 1]
    for k in range(1, len(kept)):
        for j in range(k):
            total += (kept[k] - kept[j]) / (k + j)
    middle = len(kept) // 2
    return total + kept[middle] + sum(kept[middle:]) * 2 + len(kept[:middle])


def popped(x, make):
    kept = make(x)
    last = kept.pop()
    first = kept.pop(0)
    kept.append(2.5)
    return last * 3 + first + weighed(kept) + len(tuple(kept))


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("program", [turned, numbered, neighbours, at_places, popped], ids=lambda program: program.__name__)
def test_as_python(program, make):
    as_python(lambda x: program(x, make), X, X[::-1].copy(), 0.5 * X + 1, 0.9 * X + 0.1)


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_slices_are_as_python_cuts_them(make):
    bounds, steps = (None, 0, 2, 30, -3, -30), (None, -2)
    slices = [slice(*parts) for parts in itertools.product(bounds, bounds, steps)]

    def program(x):
        kept = make(x)
        return [(np.sum(np.array(kept[one])), len(kept[one])) for one in slices]
    compiled = bw.jit(program)
    for x in (X, 0.5 * X + 1):
        for one, found, expected in zip(slices, compiled(x), program(x), strict=True):
            assert found == pytest.approx(expected, rel=1e-12), one


def test_slices_whose_bounds_are_data():
    def program(x, k):
        kept = of_a_loop(x)
        n = int(k[0])
        return weighed(kept[n:]), weighed(kept[:n]), weighed(kept[n::-1]), weighed(kept[:n:-1]), kept[n]
    compiled = bw.jit(program)
    for k in (0, 2, 5, -1, -4):
        np.testing.assert_allclose(compiled(X, np.array([k])), program(X, np.array([k])), rtol=1e-12)
    for k in (16, -16):
        for run in (program, compiled):
            with pytest.raises(IndexError, match="list index out of range"):
                run(X, np.array([k]))


def test_comprehensions_over_what_a_loop_has_appended_are_loops():
    def program(x):
        kept = []
        for k in range(200):
            if x[k] > 0.25:
                kept.append(0.1 * k + x[k])
        waits = [(b - a) ** 2 for a, b in zip(kept[:-1], kept[1:])]  # noqa: B905, RUF007
        return sum(waits) + len(waits) + sum([v for v in kept if v > 3.0])
    x = np.cos(np.arange(200.0))
    assert len(trace(program, (x,)).graph.body) < 400         # unrolled it has thousands
    assert bw.jit(program)(x) == pytest.approx(program(x), rel=1e-12)


class Event(NamedTuple):
    time: float
    size: float


def test_tuples_are_rows_of_an_array_and_columns():
    def program(x):
        kept = pairs(x)
        times, sizes = zip(*kept)  # noqa: B905
        total = 0.0
        for k, v in kept[::-1]:
            total = 0.9 * total + v * x[k]
        table = np.array(kept)
        events = []
        for k in range(16):
            if x[k] > 0.5:
                events.append(Event(0.1 * k, x[k]))
        waits = np.diff(np.array([e.time for e in events]))
        return total, table[:, 0] @ table[:, 1], np.array(sizes) @ np.array(times), len(times), waits.sum(), events[::-1][1].size
    for x in (X, X[::-1].copy()):
        np.testing.assert_allclose(bw.jit(program)(x), program(x), rtol=1e-12)

    def gradient_of(x):
        return program(x)[0]
    direction, h = np.sin(np.arange(16.0)), 1e-6
    difference = (gradient_of(X + h * direction) - gradient_of(X - h * direction)) / (2 * h)
    assert bw.grad(gradient_of)(X) @ direction == pytest.approx(difference, rel=1e-6)


def test_columns_of_no_tuples_raise():
    def program(x):
        times, sizes = zip(*pairs(x))  # noqa: B905
        return np.array(sizes).sum() + len(times)
    for run in (program, bw.jit(program)):
        with pytest.raises(ValueError, match="not enough values to unpack"):
            run(-np.abs(X))


def test_iterators_are_used_up():
    def program(x):
        kept = of_a_loop(x)
        both = zip(kept, kept[1:])  # noqa: B905, RUF007
        first = list(both)
        return len(first), len(list(both))
    assert bw.jit(program)(X) == program(X)


def test_a_path_that_a_loop_follows_back():
    def program(a, b):
        n, m = len(a), len(b)
        d = np.full((n + 1, m + 1), np.inf)
        d[0, 0] = 0
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                d[i, j] = (a[i - 1] - b[j - 1]) ** 2 + min(d[i - 1, j], d[i, j - 1], d[i - 1, j - 1])
        i, j, path = n, m, []
        while i > 0 and j > 0:
            path.append((i - 1, j - 1))
            step = np.argmin([d[i - 1, j - 1], d[i - 1, j], d[i, j - 1]])
            if step == 0:
                i, j = i - 1, j - 1
            elif step == 1:
                i -= 1
            else:
                j -= 1
        mean, weight = np.zeros(n), np.zeros(n)
        for i, j in path[::-1]:
            mean[i] += b[j]
            weight[i] += 1
        return np.sum((mean / weight) ** 2) + d[n, m]
    a, b = np.sin(np.arange(5.0)), np.cos(np.arange(6.0) * 0.8)
    value, gradient = bw.value_and_grad(program, 1)(a, b)
    assert value == pytest.approx(program(a, b), rel=1e-12)
    numeric = [(program(a, b + 1e-6 * e) - program(a, b - 1e-6 * e)) / 2e-6 for e in np.eye(6)]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-8)


def arrays(x):
    kept = []
    for k in range(14):
        if x[k] > 0.25:
            kept.append(x[k:k + 3] * 1.0)
    return kept


def few_arrays(x):
    kept = []
    for k in range(4):
        if x[k] > 0.25:
            kept.append(x[k:k + 3] * 1.0)
    return kept


@pytest.mark.parametrize("make", [arrays, few_arrays])
def test_arrays_of_which_data_decides_which_they_are_cannot_be_written_to(make):
    def first(x):
        kept = make(x)
        kept[0][0] = 5.0
        return sum(v[0] for v in kept)

    def at_a_place(x):
        kept = make(x)
        kept[int(x[1] > 0)][0] = 5.0
        return sum(v[0] for v in kept)

    def beside_others(x):
        kept = make(x)
        for u, v in zip(kept[:-1], kept[1:]):  # noqa: B905, RUF007
            v[0] += u[0]
        return sum(v[0] for v in kept)

    for program in (first, at_a_place, beside_others):
        with pytest.raises(ValueError, match="read-only: data decides which element"):
            bw.jit(program)(X)


def test_arrays_are_written_to_where_they_lie():
    def program(x):
        kept = arrays(x)
        for v in kept[::-1]:
            v[0] = 5.0
        last = kept.pop()
        last[1] += 1.0
        return sum(v[0] + v[1] for v in kept) + last.sum()
    assert bw.jit(program)(X) == pytest.approx(program(X), rel=1e-12)


def test_what_was_moved_is_not_read_after_its_arrays_were_written_to():
    def program(x):
        kept = arrays(x)
        both = list(zip(kept, kept[1:]))  # noqa: B905, RUF007
        kept[-1][:] = 7.0
        return sum(u @ v for u, v in both)
    with pytest.raises(UnsupportedError, match="an element of a list may be another name"):
        bw.jit(program)(X)
