"""What loops and branches make that gets no cotangent, or depends on nothing that is differentiated: nothing is kept for it."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.compiler.pipeline import derive, split
from bwcompiler.frontend import trace
from bwcompiler.passes.derivatives.activity import active_values, seeded_results
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED
from tests.support.loop_programs import check_gradients

N = 12


def relaxed(x, source):
    """A linear iteration until it changes little: how much is a number of its own, which is tested and told."""
    def step(c):
        y, _, n = c
        after = 0.25 * (np.roll(y, 1) + np.roll(y, -1) + source)
        return after, np.max(np.abs(after - y)), n + 1
    return bw.while_loop(lambda c: c[1] > 1e-2, step, (x, 1.0, 0))


def marched(x, source):
    """The same a number of times, with the largest element so far beside it."""
    def step(_, c):
        return 0.5 * c[0] + source, np.maximum(c[1], np.max(np.sin(c[0]) * c[0]))
    return bw.fori_loop(0, 5, step, (x, 0.0))


def nested(x, source):
    """The inner loop's error is carried around by the outer loop, and neither is read by what is carried."""
    def outer(_, c):
        y, _, before = c
        y, error, _ = relaxed(y, source)
        return y, error * before, error
    return bw.fori_loop(0, 3, outer, (x, 1.0, 1.0))


def chosen(x, source):
    """Both sides also give a number that nobody derives."""
    def step(_, c):
        return bw.cond(c[1] < 3.0, lambda y: (y + source, np.sum(np.tanh(y))), lambda y: (0.5 * y, np.mean(np.cos(y) * y)), c[0])
    return bw.fori_loop(0, 4, step, (x, 0.0))


PROGRAMS = (relaxed, marched, nested, chosen)


def joint_of(program, args, seeds):
    traced = trace(lambda *given: bw.tree.leaves(program(*given)), args)
    return derive(traced.graph, (0, 1), seeds)


def kept(program, args, seeds):
    joint = joint_of(program, args, seeds)
    return split(joint.graph, [place for place in joint.seeds if place is not None], len(seeds)).residuals


@pytest.fixture
def args(rng):
    return rng.standard_normal(N), rng.standard_normal(N)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_linear_iteration_keeps_no_arrays(program, args):
    """Not even of a loop that tests, or tells, what is not linear."""
    count = len(bw.tree.leaves(program(*args)))
    found = kept(program, args, [INPUT_SEED, *[None] * (count - 1)])
    assert not [value for value in found if value.dtype.is_differentiable and value.type.size >= N and value.op.kind != "input"]
    seeded = kept(program, args, [INPUT_SEED] * count)
    assert [value for value in seeded if value.dtype.is_differentiable and value.type.size >= N]


@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients_of_all_and_of_the_first_result(program, args):
    check_gradients(lambda _, *given: program(*given), *args, order=1)
    check_gradients(lambda _, *given: program(*given)[0], *args, order=1 if program is nested else 2)


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_told_beside_the_value_costs_nothing(program, args):
    def loss(x, source):
        first, *others = program(x, source)
        return np.sum(first ** 2), others

    (value, others), gradient = bw.value_and_grad(loss, has_aux=True)(*args)
    expected, *told = program(*args)
    np.testing.assert_allclose(value, np.sum(expected ** 2), rtol=1e-12)
    for one, other in zip(others, told, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    np.testing.assert_allclose(gradient, bw.grad(lambda x, source: np.sum(program(x, source)[0] ** 2))(*args), rtol=1e-12)


def test_what_the_condition_reads_is_seeded_where_it_comes_back():
    """The error of this iteration scales the next one: it is no number that is only tested."""
    def program(x):
        def step(c):
            y, error = c
            after = y * (1.0 - 0.1 * error)
            return after, np.sum((after - y) ** 2)
        return bw.while_loop(lambda c: c[1] > 1e-3, step, (x, 1.0))

    x = np.array([0.7, -0.4, 1.1])
    [loop] = [value for value in trace(program, (x,)).graph.body if value.op is ops.while_loop]
    carried = range(loop.attrs["carried"])
    assert seeded_results(loop, {0})[0] == set(carried)
    check_gradients(lambda _, x: program(x)[0], x)


@pytest.mark.parametrize("results, expected", [({0}, {0}), ({1}, {0, 1}), ({0, 1}, {0, 1})])
def test_numbers_of_seeded_results(results, expected, args):
    [loop] = [value for value in trace(marched, args).graph.body if value.op is ops.loop]
    assert seeded_results(loop, results)[0] == expected


# ----- results that depend on nothing that is differentiated
def factors_beside(x):
    """The coefficients of a tridiagonal solve are made again in every sweep, beside the solution, and of no argument."""
    p, q, u = np.zeros(N), np.zeros(N), x.copy()
    for _ in range(5):
        p[0] = 0.5
        q[0] = u[0]
        for j in range(1, N):
            p[j] = 1.0 / (3.0 - p[j - 1])
            q[j] = (u[j] + q[j - 1]) * p[j]
        for j in range(N - 2, -1, -1):
            u[j] = q[j] + p[j] * u[j + 1]
    return u


def counted_beside(x):
    """What a `while` counts is of no argument."""
    y, n = x.copy(), 0.0
    while n < 4.0:
        n += 1.0 if n < 2.0 else 0.5
        for j in range(1, N):
            y[j] = y[j] * 0.1 * n + np.sin(y[j - 1])
    return y


def items_of(graph, op):
    """The results of the first of some ops: by number."""
    first = next(value for value in graph.body if value.op is op)
    return {value.attrs["index"]: value for value in graph.body if value.op is ops.item and value.operands[0] is first}


def test_results_that_depend_on_what_is_differentiated(rng):
    """The factors are the first that the loop carries, what is made of x the second."""
    graph = trace(factors_beside, (rng.standard_normal(N),)).graph
    active, items = active_values(graph, [graph.inputs[0]]), items_of(graph, ops.loop)
    assert items[0] not in active and items[1] in active
    [sweeps] = [value for value in derive(graph, (0,), [INPUT_SEED]).graph.body if value.op is ops.loop and value.attrs["step"] < 0][-1:]
    assert sweeps.attrs["carried"] == 2                               # cotangents of q and x; none of p


def test_results_of_branches_that_depend_on_what_is_differentiated(rng):
    def program(x, y):
        return bw.cond(x[0] > 0.0, lambda x, y: (np.sin(y), y * 2.0, x), lambda x, y: (x * y, np.cos(y), x * 0.0), x, y)

    graph = trace(lambda *given: list(program(*given)), (rng.standard_normal(N), rng.standard_normal(N))).graph
    active, items = active_values(graph, [graph.inputs[0]]), items_of(graph, ops.cond)
    assert [items[k] in active for k in range(3)] == [True, False, True]
    active = active_values(graph, [graph.inputs[1]])
    assert [items[k] in active for k in range(3)] == [True, True, False]


@pytest.mark.parametrize("program", [factors_beside, counted_beside])
def test_gradients_beside_what_depends_on_no_argument(program, rng):
    bw.check_grads(program, (rng.uniform(0.5, 1.5, N),), order=1)
