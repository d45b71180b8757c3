"""Iterations before their loop that become iterations of it: which they are, and that no result changes by a bit."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.errors import BwError
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.passes.loops.iterations.reroll_loops import reroll_loops
from tests.support.gradcheck import central_differences
from tests.support.loop_passes import rewritten

X, A = np.linspace(0.2, 1.4, 9), np.linspace(-0.5, 0.5, 9)


# ----- found
def until_it_rests(x, a):
    """The first test is of Python's number."""
    error, steps = 1.0, 0
    while error > 1e-6:
        y = np.cos(x) * 0.5 + a
        error = np.max(np.abs(y - x))
        x = y
        steps += 1
    return x + steps


def until_it_rests_at_once(x, a):
    """There is one iteration."""
    error = 1.0
    while error > 1e3:
        error = np.sum(x)
    while error > 0:
        x = np.sin(x) + a
        error = np.sum(x * 0.0)
    return x


def slices_and_an_inner_loop(x, a):
    """Both the loop and the one inside begin with an iteration of their own."""
    difference = 1
    u = x.copy()
    while difference > 1e-3:
        before = u.copy()
        for _ in range(40):
            last = u.copy()
            u[1:-1] = 0.5 * (last[2:] + last[:-2]) + 0.01 * a[1:-1]
            u[0], u[-1] = u[1], u[-2]
        difference = np.max(np.abs(u - before))
    return u


def written_by_the_user(x, a):
    """The recurrence begins with what is no loop."""
    y = np.sin(x) * a + x
    return bw.fori_loop(0, 8, lambda _, c: np.sin(c) * a + c, y)


def several_before(x, a):
    y = x
    for _ in range(2):
        y = np.sin(y) * a + y
    return bw.fori_loop(0, 8, lambda _, c: np.sin(c) * a + c, y)


def counted_with_its_index(x, a):
    """The part that is read and written moves with the index."""
    u = x.copy()
    u[1] = u[0] * a[1] + u[1]

    def step(i, u):
        u[i] = u[i - 1] * a[i] + u[i]
        return u
    return bw.fori_loop(2, 9, step, u)


def a_counter_beside(x, a):
    """What it was before is known of what it is."""
    y, n = np.sin(x) * a, 1
    return bw.while_loop(lambda c: c[1] < 7, lambda c: (np.sin(c[0]) * a, c[1] + 1), (y, n))[0]


FOUND = [until_it_rests, until_it_rests_at_once, slices_and_an_inner_loop, written_by_the_user, several_before, counted_with_its_index,
         a_counter_beside]


def operations(graph):
    """On elements, in a graph and in its regions."""
    inside = [operations(value.attrs[region]) for value in graph.body for region in value.op.regions]
    return sum([value.op.kind in ("elementwise", "reduction") for value in graph.body]) + sum(inside)


@pytest.mark.parametrize("fun", FOUND)
def test_iterations_before_a_loop_are_in_it(fun):
    """There is one for the flag of a while."""
    before, after = rewritten(reroll_loops, fun, X, A)
    loops = [value for value in after.body if value.op.regions]
    assert operations(after) < operations(before)
    assert operations(after) - sum([operations(loop.attrs["body"]) for loop in loops]) <= 4


@pytest.mark.parametrize("fun", FOUND)
def test_derivatives_are_those_of_differences(fun):
    def loss(x, a):
        return np.sum(np.sin(fun(x, a)))

    found = bw.grad(loss, argnums=(0, 1))(X, A)
    for k, one in enumerate(found):
        expected = central_differences(lambda z, k=k: loss(*[z if j == k else other for j, other in enumerate((X, A))]), (X, A)[k], eps=1e-6)
        np.testing.assert_allclose(one, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("fun", [until_it_rests, slices_and_an_inner_loop, counted_with_its_index])
def test_second_derivatives_and_tangents(fun):
    def loss(x):
        return np.sum(np.sin(fun(x, A)))

    direction = np.linspace(1.0, -0.5, 9)
    slope = bw.grad(loss)
    expected = central_differences(lambda t: np.sum(slope(X + t * direction) * direction), np.array(0.0), eps=1e-5)
    np.testing.assert_allclose(np.sum(bw.hvp(loss)(X, direction) * direction), expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(bw.jvp(loss, (X,), (direction,))[1], np.sum(slope(X) * direction), rtol=1e-10)


def test_a_batch_ends_each_by_itself():
    rows = np.stack([X, 2.0 * X, 0.1 * X])
    found = bw.vmap(until_it_rests, in_axes=(0, None))(rows, A)
    np.testing.assert_allclose(found, [until_it_rests(row, A) for row in rows], rtol=1e-12)


# ----- left alone
def another_first_iteration(x, a):
    return bw.fori_loop(0, 8, lambda _, c: np.sin(c) * a + c, np.cos(x) * a + x)


def another_constant(x, a):
    return bw.fori_loop(0, 8, lambda _, c: c * a + 0.0, x * a + -0.0)


def another_order(x, a):
    """Two states that do not come of one another."""
    return bw.fori_loop(0, 8, lambda _, c: (np.sin(c[1]), c[0] * a), (np.sin(x), a * x * 2.0))[0]


def read_behind_the_loop(x, a):
    y = np.sin(x) * a
    return bw.fori_loop(0, 8, lambda _, c: np.sin(c) * a, y) + y


def the_index_of_another_place(x, a):
    y = np.sin(x) * a + 2
    return bw.fori_loop(4, 9, lambda i, c: np.sin(c) * a + i, y)


LEFT = [another_first_iteration, another_constant, another_order, read_behind_the_loop, the_index_of_another_place]


@pytest.mark.parametrize("fun", LEFT)
def test_what_is_no_iteration_stays(fun):
    before, after = rewritten(reroll_loops, fun, X, A)
    assert after is before


def test_a_loop_that_may_have_fewer_than_no_iterations_stays():
    def program(x, a, n):
        y = np.sin(x) * a
        k = 1
        while k < n:
            y = np.sin(y) * a
            k += 1
        return y

    for n in (-3, 0, 1, 5):
        expected = program(X, A, n)
        np.testing.assert_allclose(bw.jit(program)(X, A, np.int64(n)), expected, rtol=1e-14)


def test_what_is_called_is_called_as_often():
    """A call of the user's function is no value that could be computed somewhere else."""
    seen = []

    def shape(x):
        seen.append(1)
        return np.sin(x)

    def program(x):
        y = bw.pure_callback(shape, x, x)
        return bw.fori_loop(0, 3, lambda _, c: bw.pure_callback(shape, c, c), y)

    try:
        found = bw.jit(program)(X)
    except BwError:
        pytest.fail("a callback in a loop")
    np.testing.assert_allclose(found, np.sin(np.sin(np.sin(np.sin(X)))), rtol=1e-14)
    assert len(seen) == 4


def test_the_condition_of_the_first_iteration_does_not_count():
    """The first test held whatever the condition says of what was carried before."""
    def program(x):
        y = np.sin(x) + 1.0
        return bw.while_loop(lambda c: np.sum(c) > 100.0, lambda c: np.sin(c) + 1.0, y)

    before, after = rewritten(reroll_loops, program, X)
    assert operations(after) < operations(before)


def test_the_pass_walks_deep_chains():
    def program(x):
        def step(_, c):
            for k in range(1500):
                c = c * 0.999 + k
            return c
        return bw.fori_loop(0, 2, step, step(None, x))

    graph = reroll_loops(trace(program, (X,)).graph).graph
    assert not any(value.op is ops.multiply for value in graph.body)
