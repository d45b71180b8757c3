"""Integers that a function surely asks for are known from its first tracing on; others stay operands, as long as nobody asks."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend.source import asked
from bwcompiler.frontend.tracing import trace as tracing
from bwcompiler.frontend.tracing.trace import trace

X = np.linspace(0.5, 1.5, 12)


def sizes(x, n, m):
    return np.sum(np.zeros((n, m))) + np.sum(np.linspace(0, 1, num=m + 1)) + x[0]


def steps(x, n, m):
    count = 2 * n - m // 2
    y = x
    for _ in range(count):
        y = 0.9 * y
    return np.sum(y)


def helper(x, size, scale=1.0):
    parts = [scale * k for k in range(size)]
    return np.sum(x[:size]) + sum(parts)


def in_functions(x, n, m):
    return helper(x, n) + helper(x, size=m, scale=0.5)


class Grid:
    def __init__(self, count):
        self.places = np.arange(count)


def in_classes(x, n, m):
    grid = Grid(n)
    return np.sum(grid.places) * x[0] + np.sum(x[m:])


def in_closures(x, n, m):
    def inner(y, size):
        return np.sum(y) + np.sum(np.ones(size))
    return inner(x, n) + np.sum(np.eye(m))


def in_tests(x, n, m):
    if n < 1:
        raise ValueError("n")
    total = np.sum(x)
    if not m:
        total = total * 2
    return total


def with_items(x, n, m):
    with np.errstate(all="ignore"):
        y = np.zeros(len(x) + n)
    assert m > 0
    return np.sum(y) + np.sum(x[1:, None][:m])


SURE = [sizes, steps, in_functions, in_classes, in_tests, with_items]


def scaled(x, n, m):
    return np.sum(x) * n + m


def behind_a_return(x, n, m):
    for k in range(3):
        if k > n - m:
            return np.sum(x)
    return np.sum(x) + np.sum(np.zeros(n))


def in_a_branch(x, n, m):
    if x.shape[0] > 100:
        return np.sum(np.zeros(n))
    return np.sum(x) + len([0] * m)


def in_a_loop(x, n, m):
    total = np.sum(x)
    for _ in []:
        total = total + np.sum(np.zeros(n))
    return total * m


def bound_anew(x, n, m):
    n, m = 3, x[0]
    return np.sum(np.zeros(n)) + m


def of_another_range(x, n, m):
    def range(k):
        return [k]
    return sum([1.0 * k for k in range(n)]) * x[0] + m


def never_called(x, n, m):
    return np.sum(x) if True else helper(x, n) + m


NOT_SURE = [scaled, behind_a_return, in_a_branch, in_a_loop, bound_anew, of_another_range, never_called, in_closures]


@pytest.mark.parametrize("program", [*SURE, *NOT_SURE], ids=lambda program: program.__name__)
def test_nothing_is_compiled_in_that_is_not_asked_for(program, monkeypatch) -> None:
    found = set(trace(program, (X, 2, 5)).demanded)
    monkeypatch.setitem(tracing.HANDLERS, "surely_asked", lambda fun, names: {})
    assert found == set(trace(program, (X, 2, 5)).demanded)
    np.testing.assert_allclose(bw.jit(program)(X, 2, 5), program(X, 2, 5))


@pytest.mark.parametrize("program", SURE, ids=lambda program: program.__name__)
def test_integers_that_are_surely_asked_for(program) -> None:
    assert set(asked.surely_asked(program, ["n", "m"])) == {"n", "m"}
    value, gradient = bw.value_and_grad(program)(X, 2, 5)
    np.testing.assert_allclose(value, program(X, 2, 5))
    assert gradient.shape == X.shape


@pytest.mark.parametrize("program", [scaled, behind_a_return, in_a_branch, in_a_loop, bound_anew, of_another_range, never_called],
                         ids=lambda program: program.__name__)
def test_integers_that_need_not_be_asked_for(program) -> None:
    assert "n" not in asked.surely_asked(program, ["n", "m"])


def test_items_of_dictionaries_are_found_by_their_names() -> None:
    def made(options, x):
        return np.sum(np.zeros(options["count"])) + np.sum(x)

    def program(x, options):
        return made(options, x) * options["scale"]

    def changing(x, options):
        options["count"] = 4
        return made(options, x)

    names = ["options.count", "options.scale"]
    assert set(asked.surely_asked(program, names)) == {"options.count"}
    assert set(asked.surely_asked(changing, names)) == set()
    options = {"count": 3, "scale": 2}
    np.testing.assert_allclose(bw.jit(program)(X, options), program(X, options))


def test_the_function_is_traced_once() -> None:
    runs = []
    note = runs.append           # which nobody follows: a list is put back where a trace is given up

    def program(x, n):
        note(1)
        return np.sum(x) + np.sum(np.zeros(n))

    bw.value_and_grad(program)(X, 3)
    assert len(runs) == 1
