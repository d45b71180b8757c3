"""Functions with a cache, of `functools`: what they remember of traced numbers is of one trace, and of the body that it was made in."""

from functools import cache, lru_cache

import numpy as np
import pytest

import bwcompiler as bw

X = np.array([0.3, 1.2, -0.4, 0.8, -0.1])
calls = []


@cache
def fibonacci(n, x):
    calls.append(n)
    return x if n < 2 else fibonacci(n - 1, x) + np.sin(fibonacci(n - 2, x))


@cache
def by_sign(x):
    if x > 0:
        return x * x
    return 3.0 * x


@cache
def table():
    return {"scale": 2.0}


def chain(x):
    """The cheapest order of products: a memoised recursion over a variable of the function around it."""
    @lru_cache(None)
    def cost(i, j):
        if i >= j:
            return abs(x[i])
        best = np.inf
        for k in range(i, j):
            found = cost(i, k) + cost(k + 1, j) * (1.0 + x[k] ** 2)
            if found < best:
                best = found
        return best
    return cost(0, len(x) - 1) + min(cost(k, k + 1) for k in range(len(x) - 1))


def in_a_loop(x):
    total = 0.0
    for k in range(12):
        total = total + by_sign(x[k % 5]) * by_sign(x[0])
    return total + by_sign(x[0])


def in_a_branch(x):
    """What a body remembers is not there after it."""
    if x[0] > 0.0:
        y = by_sign(x[1])
    else:
        y = 2.0 * by_sign(x[1])
    return y + by_sign(x[1])


class Model:
    def __init__(self, x):
        self.x = x

    @lru_cache  # noqa: B019  (it is about such methods)
    def power(self, n):
        return self.x if n == 1 else self.x * self.power(n - 1)


FUNCTIONS = [chain, in_a_loop, in_a_branch, lambda x: np.sum(Model(x).power(4) + Model(2 * x).power(2)),
             lambda x: by_sign(x=x[1]) * by_sign(x=x[2]), lambda x: table()["scale"] * x]


@pytest.mark.parametrize("place", range(len(FUNCTIONS)))
def test_values_and_derivatives(place):
    function = FUNCTIONS[place]
    for x in (X, -X):
        np.testing.assert_allclose(bw.jit(function)(x), function(x), rtol=1e-12)
    bw.check_grads(function, (X,), order=1)


def test_calls_are_remembered():
    calls.clear()
    compiled = bw.jit(lambda x: fibonacci(30, x))
    assert np.isfinite(compiled(1.0)) and sorted(calls) == list(range(31))
    assert compiled(1.0) == bw.jit(lambda x: fibonacci(30, x))(1.0)        # nothing of the first trace is left


def test_one_object_for_all():
    table()["scale"] = 5.0
    try:
        assert bw.jit(lambda x: table()["scale"] * x)(1.0) == 5.0
    finally:
        table()["scale"] = 2.0
