"""Reverse derivatives of loops and branches: against differences, to second order; what they keep and what they compute."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.compiler.pipeline import derive, lower, split
from bwcompiler.frontend import trace
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.passes.adjoints import while_adjoint
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED
from tests.support.loop_programs import PROGRAMS, check_gradients, weighted

NOT_SMOOTH = ("promoted_carries",)             # float32: differences say nothing


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in NOT_SMOOTH])
def test_gradients_are_those_of_differences(name):
    program, args = PROGRAMS[name]
    check_gradients(program, *args)


@pytest.mark.parametrize("rows", [1, 3, 7, 20])
@pytest.mark.parametrize("name", ["many_iterations", "while_below", "newton_in_a_scan", "while_in_a_while", "while_over_parts",
                                  "while_of_few_iterations", "while_of_few_iterations_in_loops"])
def test_more_iterations_than_the_rings_hold(name, rows, monkeypatch):
    monkeypatch.setattr(while_adjoint, "rows", lambda types: rows)
    program, args = PROGRAMS[name]
    check_gradients(program, *args, order=2 if rows == 3 else 1)


@pytest.mark.parametrize("start, limit, step, most", [(0, 7, 1, 7), (1, 16, 3, 5), (5, 5, 1, 0), (9, 2, 1, 0), (0, 7, -1, None)])
def test_most_iterations(start, limit, step, most):
    def loop(x):
        return bw.while_loop(lambda c: (np.sum(c[0]) < 9.0) & (c[1] < limit), lambda c: (c[0] * x, c[1] + step), (x, start))[0]

    graph = trace(loop, (np.ones(3),)).graph
    [found] = [value for value in graph.body if value.op is ops.while_loop]
    assert while_adjoint.most_iterations(found) == most


def test_nothing_is_computed_again_of_few_iterations(monkeypatch):
    """In a loop, too: the sine of each iteration is computed once, forwards, and its cosine once, backwards."""
    def program(x):
        def until(y):
            return bw.while_loop(lambda c: (c[1] < 6) & (np.sum(c[0]) < 2.0), lambda c: (np.sin(c[0]) * c[0] + x, c[1] + 1), (y, 0))[0]
        return until(bw.fori_loop(0, 5, lambda _, y: until(y) * 0.2, x))

    joint = derive(trace(program, (np.float64(0.3),)).graph, (0,), [INPUT_SEED])
    calls = []
    monkeypatch.setattr(ops.cos, "reference", lambda x: (calls.append(1), np.cos(x))[1])
    monkeypatch.setattr(ops.sin, "reference", lambda x: (calls.append(0), np.sin(x))[1])
    interpret(joint.graph, [np.float64(0.3), np.float64(1.0)])
    assert len(calls) > 30 and calls.count(0) <= 2 * calls.count(1) and not any(value.op is ops.argmax for value in joint.graph.body)


def test_rings_have_the_size_that_the_budget_allows():
    types = [[while_adjoint.tensor(while_adjoint.COUNT.dtype, (size,))] for size in (3, 1 << 11, 1 << 15, 1 << 17, 1 << 21)]
    assert [while_adjoint.rows(one) for one in types] == [while_adjoint.MOST, while_adjoint.MOST, 256, 64, while_adjoint.FEWEST]


def test_many_iterations_are_computed_a_few_times(monkeypatch):
    """Twice while there are snapshots for all that the rings hold, and once more for every time that their distance has doubled."""
    monkeypatch.setattr(while_adjoint, "rows", lambda types: 2)
    monkeypatch.setattr(while_adjoint, "slots", lambda types: 8)
    steps = 100

    def program(x):
        return bw.while_loop(lambda c: c[1] < steps, lambda c: (np.sin(c[0]) + x, c[1] + 1), (x, 0))[0]

    traced = trace(program, (np.float64(0.3),))
    joint = derive(traced.graph, (0,), [INPUT_SEED])
    calls = []
    monkeypatch.setattr(ops.sin, "reference", lambda x: (calls.append(1), np.sin(x))[1])
    _, found = interpret(joint.graph, [np.float64(0.3), np.float64(1.0)])
    assert len(calls) < 12 * steps
    ahead, behind = (program(0.3 + sign * 1e-6) for sign in (1.0, -1.0))
    np.testing.assert_allclose(found, (ahead - behind) / 2e-6, rtol=1e-6)


def test_snapshots_take_what_the_budget_allows():
    types = [[while_adjoint.tensor(while_adjoint.COUNT.dtype, (size,))] for size in (3, 1 << 18, 1 << 19, 1 << 22)]
    assert [while_adjoint.slots(one) for one in types] == [while_adjoint.SNAPSHOTS, 16, 8, while_adjoint.LEAST]


def upwind(bw, u, a):
    """Every element is updated by one branch or the other, which reads its neighbours."""
    u = u.copy()

    def cell(i, _):
        def left(_):
            u[i] -= a[i] * np.sin(u[i] - u[i - 1])

        def right(_):
            u[i] -= a[i] * np.exp(u[i] * u[i + 1])
        bw.cond(a[i] > 0, left, right, None)
    bw.fori_loop(1, len(u) - 1, cell, None)
    return u


def best_of(bw, u, a):
    """One branch updates, the other does nothing; what was written is read again."""
    u = u.copy()

    def cell(i, _):
        def better(_):
            u[i] = u[i - 1] * a[i]
            u[i - 1] += u[i] * u[i]

        bw.cond(u[i - 1] > u[i], better, lambda _: None, None)
    bw.fori_loop(1, len(u), cell, None)
    return u * a


def aligned(bw, u, a):
    """A branch in a branch that updates the array reads other elements of it."""
    u = u.copy()

    def cell(i, _):
        def step(_):
            before = bw.cond(a[i] > 0.2, lambda _: u[i - 1] * a[i], lambda _: np.sin(u[i - 2]), None)
            u[i] += before * u[i + 1]
            again = bw.cond(u[i] > 0, lambda _: u[i] * u[i - 1], lambda _: 0.5 * u[i + 1], None)
            u[i - 1] = again * u[i]
        bw.cond(i == 4, lambda _: None, step, None)
    bw.fori_loop(2, len(u) - 1, cell, None)
    return u


@pytest.mark.parametrize("program", [upwind, best_of, aligned])
def test_branches_that_update_an_array(program, rng):
    check_gradients(program, rng.standard_normal(9), rng.standard_normal(9))


@pytest.mark.parametrize("program", [upwind, best_of, aligned])
def test_what_branches_read_of_an_array_is_kept_and_not_all_of_it(program, rng):
    n = 60
    traced = trace(lambda u, a: np.sum(program(bw, u, a)), (rng.standard_normal(n), rng.standard_normal(n)))
    joint = derive(traced.graph, (0, 1), [INPUT_SEED])
    parts = split(joint.graph, [place for place in joint.seeds if place is not None], 1)
    assert sum([value.type.nbytes for value in parts.residuals]) <= 10 * 8 * n


def test_the_cotangent_of_an_array_that_branches_update_is_updated(rng):
    """In the adjoint of an iteration nothing has as many elements as the array, but what is updated in place."""
    args = rng.standard_normal(300), rng.standard_normal(300)
    traced = trace(lambda u, a: np.sum(upwind(bw, u, a) ** 2), args)
    (loop,) = [step for step in lower(derive(traced.graph, (0,), [INPUT_SEED]).graph).steps if step.bodies and step.value.attrs["step"] < 0]
    body = loop.bodies[0]
    assert not [k for k in body.swapped if body.graph.inputs[k].type.size > 1] and not body.plan.copies
    for inner in (body, *[branch for step in body.steps for branch in step.bodies]):
        assert all(result in inner.plan.in_place for step in inner.steps for _, result, _ in step.updates)
        assert inner.plan.arena_bytes < 300 * 8


@pytest.mark.parametrize("name", ["many_iterations", "newton_in_a_scan", "while_in_a_while"])
def test_rings_are_not_filled_before_they_are_written(name):
    """What a loop fills is a few numbers."""
    program, args = PROGRAMS[name]
    largest = filled(lambda *given: weighted(program, bw, *given), *args)
    assert largest <= max(while_adjoint.SNAPSHOTS, *[np.size(one) for one in args])


def filled(program, *args):
    """The size of the largest array that loops of the gradient fill with one number."""
    steps = list(lower(derive(trace(program, args).graph, (0,), ["one"]).graph).steps)
    found = []
    while steps:
        step = steps.pop()
        found += [item.type.size for item, _ in step.fills]
        steps += [inner for body in step.bodies for inner in body.steps]
    return max(found, default=0)


def test_stacks_are_not_filled_before_they_are_written():
    def program(x):
        return bw.fori_loop(0, 50, lambda _, c: np.sin(c) * x, x).sum()

    def triangle(x):
        """The rows differ in length: what they lack is zero."""
        y = x.copy()

        def step(i, y):
            y[i] = np.sum(np.sin(y[:i + 1]) * x[:i + 1])
            return y
        return bw.fori_loop(0, 12, step, y).sum()

    x = np.linspace(-0.4, 1.3, 12)
    assert filled(program, x) <= 12
    poison = bw.jit(lambda n: np.cumsum(np.full(40000, np.nan)) * n)
    for loss in (program, triangle):
        gradient = bw.grad(loss)
        expected = gradient(x)
        poison(np.float64(1.0))
        np.testing.assert_array_equal(gradient(x), expected)
        np.testing.assert_allclose(expected, [(loss(x + d) - loss(x - d)) / 2e-6 for d in 1e-6 * np.eye(12)], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("rows", [2, 20])
def test_garbage_in_memory_changes_no_derivative(rows, monkeypatch):
    """Calls with more iterations leave their rows for calls with fewer, and other programs what they had there."""
    monkeypatch.setattr(while_adjoint, "rows", lambda types: rows)

    def program(x, limit):
        return bw.while_loop(lambda c: c[1] < limit, lambda c: (np.sin(c[0]) * c[0] + x, c[1] + 1), (x, 0))[0].sum()

    gradient = bw.grad(program)
    x = np.array([0.3, -0.8, 1.2])
    poison = bw.jit(lambda n: np.cumsum(np.full(40000, np.nan)) * n)
    expected = {limit: gradient(x, limit) for limit in (0, 1, 2, 3, 17, 40)}
    for limit in (40, 3, 17, 0, 2, 1):
        poison(np.float64(limit))
        np.testing.assert_array_equal(gradient(x, limit), expected[limit])
        ahead = [(program(x + d, limit) - program(x - d, limit)) / 2e-6 for d in 1e-6 * np.eye(3)]
        np.testing.assert_allclose(expected[limit], ahead, rtol=1e-4, atol=1e-6)


def test_second_derivatives_where_a_branch_depends_on_nothing_that_is_differentiated():
    """What stands for a loop whose first result depends on A, and the second one does not: the branch that reads that one stays as it is."""
    def program(A, x, w):
        out, s = np.zeros(len(x)), 0.0
        for k in range(1, len(x)):
            out[-1 - k] = np.linalg.det(A[k + 1:, k + 1:] @ A[k + 1:, k + 1:].T + np.eye(len(x) - k - 1))
            if s > 0:
                continue
            if x[k] > 1:
                out[k:] += x[k:]
            s += w[k] ** 2
        return out, s

    def loss(A, x, w):
        out, s = program(A, x, w)
        return np.sum(out) + 2 * s

    generator = np.random.default_rng(1)
    args = generator.normal(size=(14, 14)) * 0.2, generator.normal(size=14), generator.normal(size=14)

    def along(A, x, w):
        return sum(np.sum(part) for part in bw.grad(loss, (0, 1, 2))(A, x, w))

    for number, found in enumerate(bw.grad(along, (0, 1, 2))(*args)):
        there, back = (along(*[arg + h * (k == number) for k, arg in enumerate(args)]) for h in (1e-5, -1e-5))
        np.testing.assert_allclose(np.sum(found), (there - back) / 2e-5, rtol=1e-4, atol=1e-4)
