"""Python's bisect over traced numbers, and np.fromiter of them."""

import bisect
import itertools

import numpy as np
import pytest

import bwcompiler as bw


def in_sorted(x, t):
    ordered = sorted(x)
    return bisect.bisect(ordered, t) + ordered[bisect.bisect_left(ordered, t) % 12] + 100.0 * bisect.bisect_right(ordered, t, 2, 9)


def spline(x, t):
    """The numbers in the list are known, the one that is looked for is not."""
    knots = [0.0, 0.5, 1.0, 2.0]
    k = bisect.bisect_right(knots, t) - 1
    return x[k] + (t - knots[k]) * x[k + 1]


def in_a_loop(x, t):
    total, places = 0.0, [0.1 * i for i in range(12)]
    for i in range(10):
        total += x[min(bisect.bisect(places, t * i / 10), 11)] * i
    return total


def by_key(x, t):
    return bisect.bisect_left([(v, 1.0) for v in sorted(x)], t, key=lambda pair: pair[0]) + bisect.bisect([1, 2, 3], 2)


def from_iterators(x, t):
    doubled = np.fromiter(map(np.negative, x), float)
    doubled[1] = t
    return doubled * np.sum(np.fromiter((v * t for v in x), dtype=float, count=3)) + np.fromiter(itertools.count(), float, 12)


@pytest.mark.parametrize("t", [0.7, 1.0, 0.5])
@pytest.mark.parametrize("function", [in_sorted, spline, in_a_loop, by_key, from_iterators], ids=lambda one: one.__name__)
def test_values(function, t, rng):
    x = rng.standard_normal(12)
    np.testing.assert_allclose(bw.jit(function)(x, t), function(x, t), rtol=1e-14)


def test_derivatives(rng):
    x = rng.standard_normal(12)
    for function in (in_sorted, spline, in_a_loop, from_iterators):
        bw.check_grads(function, (x, 0.77), order=1)


def test_too_few():
    with pytest.raises(ValueError, match="iterator too short"):
        bw.jit(lambda x: np.fromiter(iter([x[0]]), float, 2))(np.ones(2))
