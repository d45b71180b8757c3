"""States of loops that are equal in every iteration are carried once: which these are, and which are not."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.frontend import trace
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.passes.loops.carried.share_states import share_states
from bwcompiler.passes.rewriting.simplify import simplify
from tests.support.derivatives import check_derivatives

X = np.cos(np.arange(60.0)).reshape(12, 5) + 1.5


def states(graph: Graph) -> list[int]:
    """How many states each loop carries."""
    found = [value.attrs["carried"] for value in graph.body if value.op is ops.loop]
    return found + [one for value in graph.body for name in value.op.regions for one in states(value.attrs[name])]


def before_and_after(fun) -> tuple[list[int], list[int]]:
    graph = simplify(trace(fun, (X,)).graph).graph
    made = share_states(graph).graph
    verify(made)
    assert share_states(made).graph is made
    return states(graph), states(made)


def twins(x):
    a = b = x[0]
    for i in range(1, 12):
        a = np.sin(a) * x[i]
        b = np.sin(b) * x[i]
    return a + b * b


def of_each_other(x):
    """Each is made of the other: they are equal because they are."""
    a = b = x[0]
    for i in range(1, 12):
        a, b = np.sin(b) * x[i], np.sin(a) * x[i]
    return a + b * b


def in_a_loop_inside(x):
    a = b = x[0]
    for i in range(1, 12):
        for k in range(1, 12):
            a = np.sin(a) * x[k] * 0.2 + x[i]
            b = np.sin(b) * x[k] * 0.2 + x[i]
        a, b = np.cos(a), np.cos(b)
    return a + b * b


def three_of_which_two(x):
    a = b = c = x[0]
    for i in range(1, 12):
        a, b, c = np.sin(a) * x[i], np.sin(b) * x[i], np.cos(c) * x[i]
    return a + b * b - c


@pytest.mark.parametrize("fun, count", [(twins, 1), (of_each_other, 1), (three_of_which_two, 2)], ids=lambda one: getattr(one, "__name__", ""))
def test_equal_states_are_one(fun, count):
    before, after = before_and_after(fun)
    assert max(before) > count and max(after) == count


def test_equal_states_of_loops_inside_are_one():
    before, after = before_and_after(in_a_loop_inside)
    assert before == [2, 2] and after == [1, 1]


def told_apart_late(x):
    """They are equal for one iteration, and then one of them is made of what differs."""
    a = b = c = x[0]
    for i in range(1, 12):
        a, b, c = np.sin(b) * x[i], np.sin(c) * x[i], np.cos(c) * x[i]
    return a + b * b - c


def from_other_values(x):
    a, b = x[0], x[1]
    for i in range(1, 12):
        a = np.sin(a) * x[i]
        b = np.sin(b) * x[i]
    return a + b * b


def of_signed_zeros(x):
    """Equal numbers are no equal values."""
    a = b = x[0]
    for i in range(1, 12):
        a = np.sin(a) * np.copysign(x[i], 0.0)
        b = np.sin(b) * np.copysign(x[i], -0.0)
    return a + b


@pytest.mark.parametrize("fun", [told_apart_late, from_other_values, of_signed_zeros], ids=lambda fun: fun.__name__)
def test_others_stay(fun):
    before, after = before_and_after(fun)
    assert before == after


FUNCTIONS = (twins, of_each_other, in_a_loop_inside, three_of_which_two, told_apart_late, from_other_values)


@pytest.mark.parametrize("fun", FUNCTIONS, ids=lambda fun: fun.__name__)
def test_values_and_derivatives(fun):
    assert np.allclose(bw.jit(fun)(X), fun(X), rtol=1e-13)
    check_derivatives(fun, X)


def test_two_results_of_one_state_are_two_arrays():
    one, other = bw.jit(lambda x: _both(x))(X)
    assert np.array_equal(one, other) and not np.shares_memory(one, other)


def _both(x):
    a = b = x[0]
    for i in range(1, 12):
        a, b = np.sin(a) * x[i], np.sin(b) * x[i]
    return a, b


def terms_of_a_sum(x, y):
    s = np.zeros(5)
    for i in range(12):
        s = np.sin(s) + x[i] + y[i]
    return np.sum(s)


def test_cotangents_of_terms_are_one():
    graph = simplify(trace(bw.grad(terms_of_a_sum, (0, 1)), (X, X + 1.0)).graph).graph
    assert max(states(share_states(graph).graph)) == max(states(graph)) - 1
    first, second = bw.grad(terms_of_a_sum, (0, 1))(X, X + 1.0)
    assert np.array_equal(first, second)
    check_derivatives(terms_of_a_sum, X, X + 1.0)
