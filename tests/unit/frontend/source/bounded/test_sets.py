"""Sets of numbers that data put in them: arrays with room, for values and derivatives."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerError
from tests.unit.frontend.comparing import as_python

X = np.array([1.1, 1.6, 2.2, 3.3, 1.7, 2.6])
PLACES = (X, X[::-1].copy(), np.array([5.2, 2.1, 2.3, 2.9, 5.8, 0.4]))


def first_of_each(x):
    seen, total = set(), 0.0
    for v in x:
        k = int(v)
        if k in seen:
            continue
        seen.add(k)
        total += v * v
    return total * len(seen)


def until_it_returns(x):
    seen, u, steps = set(), int(x[0] * 3), 0
    while u not in seen:
        seen.add(u)
        u = (u * u + int(x[1])) % 17
        steps += 1
    return x[2] * steps + len(seen) * x[0]


def spanning_tree(x):
    """Prim's algorithm."""
    w = np.abs(x[:, None] - x) ** 1.5 + np.sin(x[:, None] * x)
    seen, total = {0}, 0.0
    while len(seen) < len(x):
        least, best = np.inf, 0
        for u in range(len(x)):
            if u in seen:
                for v in range(len(x)):
                    if v not in seen and w[u, v] < least:
                        least, best = w[u, v], v
        seen.add(best)
        total += least
    return total


def taken_out(x):
    window, total = set(), 0.0
    for v in x:
        k = int(v)
        window.add(k)
        if len(window) > 2:
            window.discard(k - 1)
        if k + 1 in window or not window:
            total += v
    return total * x[1] + max(window) * x[0] + min(window) + 2 * sorted(window)[0]


def pairs(x):
    seen, total = set(), 0.0
    for v in x:
        key = int(v), int(2 * v) % 2
        if key in seen:
            total += v * x[0]
        seen.add(key)
    return total


def indices(x):
    """What is put in is known, when is not."""
    seen = set()
    for i, v in enumerate(x):
        if v > 2:
            seen.add(i)
    return len(seen) * x[0] + (2 in seen) * x[1]


def made_in_a_loop(x):
    total = 0.0
    for i in range(len(x)):
        seen = set()
        for v in x[i:]:
            if int(v) in seen:
                total += v * x[i]
            seen.add(int(v))
    return total


def in_a_function(x):
    seen = set()

    def visit(u, k):
        seen.add(u)
        return u * 2.0 + k
    total, u = 0.0, int(x[0])
    for k in range(5):
        if u not in seen:
            total += visit(u, k) * x[1]
        u = int(u + x[k % 4]) % 5
    return total


PROGRAMS = [first_of_each, until_it_returns, spanning_tree, taken_out, pairs, indices, made_in_a_loop, in_a_function]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, *PLACES)


def test_removed():
    def program(x):
        seen = set()
        for v in x:
            seen.add(int(v))
        seen.remove(2)
        return len(seen) * x[0]
    compiled = bw.jit(program)
    for x in PLACES:
        assert compiled(x) == program(x)
    with pytest.raises(KeyError):
        compiled(np.ones(6))


def test_returned():
    def program(x):
        seen = {4}
        for v in x:
            seen.add(int(v))
        return seen
    for x in PLACES:
        assert bw.jit(program)(x) == program(x)


def test_what_cannot_be_had():
    def summed(x):
        seen = set()
        for v in x:
            seen.add(int(v))
        return sum(seen)

    def gone_over(x):
        seen, total = set(), 0.0
        for v in x:
            seen.add(int(v))
        for k in seen:
            total = total * 0.5 + k
        return total

    def of_arrays(x):
        seen = set()
        for v in x:
            seen.add(v)
        return x[:1] in seen
    for program in (summed, gone_over):
        with pytest.raises(TracerError, match="(?s)the elements of a set that data fill.*hint: sorted"):
            bw.jit(program)(X)
    with pytest.raises(TypeError, match="unhashable"):
        bw.jit(of_arrays)(X)


def test_known_sets_stay_as_they_are():
    """What decides about shapes and loops is known while tracing, as long as no number of data comes in."""
    def program(x):
        seen = set()
        for k in (3, 1, 3, 2):
            seen.add(k)
        return [x[:k] * 2 for k in sorted(seen)] + [x[0]] * len(seen)
    for one, other in zip(bw.jit(program)(X), program(X), strict=True):
        np.testing.assert_allclose(one, other)
