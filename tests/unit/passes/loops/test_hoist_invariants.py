"""What does not change in a loop is computed before it: which values these are, which stay, and that nothing but their time changes."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.compiler.pipeline import derive, lower
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.passes.derivatives.autodiff import ONE
from bwcompiler.passes.loops.hoist_invariants import hoist_invariants
from tests.support.derivatives import check_derivatives

N = 4
A = np.eye(N) * N + np.cos(np.arange(N * N)).reshape(N, N)
Y = np.linspace(0.5, 1.5, N)


def ops_in_loops(graph: Graph, depth: int = 0) -> list[str]:
    """The names of the ops in the bodies of loops, each as often as there are loops around it."""
    found = []
    for value in graph.body:
        found += [value.op.name] * depth
        for region in value.op.regions:
            found += ops_in_loops(value.attrs[region], depth + (value.op in (ops.loop, ops.while_loop)))
    return found


# ----- what moves
def exponentials(a, y):
    for _ in range(12):
        y = np.exp(-a) @ y
    return y


def an_inverse(a, y):
    for _ in range(12):
        y = np.linalg.inv(a) @ y
    return y


def a_cholesky_factor(a, y):
    for _ in range(12):
        y = np.linalg.cholesky(a @ a.T) @ y * 0.1
    return y


def a_determinant(a, y):
    for k in range(12):
        y = y * np.log(np.linalg.det(a)) * 0.1 + k
    return y


def a_sum_in_two_loops(a, y):
    for _ in range(12):
        for k in range(N):
            y = y * 0.1 + np.sum(a * a) * np.sin(y[k]) * 1e-3
    return y


def what_the_outer_loop_changes(a, y):
    for i in range(12):
        b = a * (i + 1.0)
        for _ in range(12):
            y = np.tanh(np.exp(-b) @ np.sin(y))
    return y


def while_it_grows(a, y):
    while np.sum(y) < 30 * np.max(a * a):
        y = y * 1.5 + np.sum(a * a)
    return y


def scanned(a, y):
    return bw.scan(lambda c, k: (np.arctan(a) @ c + k, np.exp(a)[0] * k), y, np.arange(12.0))


def with_a_choice(a, y):
    for _ in range(12):
        if y[0] > 1.0:
            y = y - np.sum(np.sin(a)) * y * 0.01
        y = y * np.sum(np.sin(a))
    return y


MOVED = [(exponentials, ("exp", "negative")), (an_inverse, ("inv",)), (a_cholesky_factor, ("cholesky",)), (a_determinant, ("det", "log")),
         (a_sum_in_two_loops, ("sum",)), (what_the_outer_loop_changes, ()), (while_it_grows, ("max",)), (scanned, ("arctan", "exp")),
         (with_a_choice, ())]


@pytest.mark.parametrize("fun, moved", MOVED, ids=lambda thing: getattr(thing, "__name__", ""))
def test_what_is_the_same_is_computed_before(fun, moved) -> None:
    traced = trace(fun, (A, Y))
    graph = hoist_invariants(traced.graph).graph
    verify(graph)
    assert len(ops_in_loops(graph)) < len(ops_in_loops(traced.graph))
    assert set(moved) <= set(ops_in_loops(traced.graph)) and set(moved).isdisjoint(ops_in_loops(graph))
    inputs = [A, Y, *traced.captured]
    for one, other in zip(interpret(graph, inputs), interpret(traced.graph, inputs), strict=True):
        np.testing.assert_array_equal(one, other)
    check_derivatives(fun, A, Y, order=1)


@pytest.mark.parametrize("fun", [an_inverse, while_it_grows, scanned, with_a_choice], ids=lambda fun: fun.__name__)
def test_compiled(fun) -> None:
    for found, expected in zip(bw.tree.leaves(bw.jit(fun)(A, Y)), bw.tree.leaves(fun(A, Y)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


# ----- factors
def solves(a, y):
    for _ in range(12):
        y = np.linalg.solve(a, y)
    return y


def solves_in_two_loops(a, y):
    for i in range(12):
        for _ in range(12):
            y = np.linalg.solve(a, y) + np.linalg.solve(a.T, y) * i
    return y


def solves_until(a, y):
    while np.sum(y) > 0.01:
        y = np.linalg.solve(a, y)
    return y


def solves_and_inverts(a, y):
    for k in range(12):
        y = np.linalg.solve(a, y) + k
    return y + np.linalg.inv(a)[0] + np.linalg.det(a)


def solves_many(a, y):
    return bw.vmap(lambda y: solves(a, y))(np.stack([y, 2 * y]))


@pytest.mark.parametrize("fun", [solves, solves_in_two_loops, solves_until, solves_and_inverts, solves_many], ids=lambda fun: fun.__name__)
def test_a_matrix_is_factored_once_for_a_loop_and_the_loop_backwards(fun) -> None:
    expected = np.stack([solves(A, Y), solves(A, 2 * Y)]) if fun is solves_many else fun(A, Y)
    np.testing.assert_allclose(bw.jit(fun)(A, Y), expected, rtol=1e-12)
    joint = derive(trace(lambda a, y: np.sum(fun(a, y) ** 2), (A, Y)).graph, (0, 1), [ONE])
    legal = lower(joint.graph).simplified
    assert "lu" not in ops_in_loops(legal) and "lu_solve" in ops_in_loops(legal)
    assert sum(value.op is ops.lu for value in legal.body) == 1
    check_derivatives(lambda a, y: np.asarray(fun(a, y)), A, Y)


def test_a_matrix_that_changes_is_factored_again() -> None:
    def fun(a, y):
        for k in range(12):
            y = np.linalg.solve(a + k * np.outer(y, y), y)
        return y

    assert "lu" in ops_in_loops(lower(trace(fun, (A, Y)).graph).simplified)
    np.testing.assert_allclose(bw.jit(fun)(A, Y), fun(A, Y), rtol=1e-12)


# ----- what stays
def test_what_is_as_cheap_to_compute_as_to_read_stays() -> None:
    def fun(a, y):
        for _ in range(12):
            a = a * (y[:, None] - y[None, :]) + (np.arange(N)[:, None] <= np.arange(N))
        return a

    graph = trace(fun, (A, Y)).graph
    assert hoist_invariants(graph).graph is graph


def test_without_loops_nothing_changes() -> None:
    graph = trace(lambda a, y: np.exp(a) @ y, (A, Y)).graph
    assert hoist_invariants(graph).graph is graph


def until_small(a, y):
    while np.sum(y) > 100.0:
        y = np.linalg.solve(a, y)
    return y


def until_small_with_inverses(a, y):
    while np.sum(y) > 100.0:
        y = np.linalg.inv(a) @ y
    return y


def counted_by_data(a, y):
    return bw.fori_loop(0, np.sum(y < 0), lambda k, y: np.linalg.solve(a, np.linalg.cholesky(a) @ y), y)


@pytest.mark.parametrize("fun", [until_small, until_small_with_inverses, counted_by_data], ids=lambda fun: fun.__name__)
def test_a_body_that_never_runs_does_not_fail(fun) -> None:
    """The matrix is singular, and not positive definite: the loop would fail in its first iteration, which there is none of."""
    singular = -np.ones((N, N))
    np.testing.assert_array_equal(bw.jit(fun)(singular, Y), Y)
    np.testing.assert_array_equal(bw.grad(lambda a, y: np.sum(fun(a, y)), 1)(singular, Y), np.ones(N))
    with pytest.raises(np.linalg.LinAlgError):
        bw.jit(fun)(singular, -1000 * Y if fun is counted_by_data else 1000 * Y)


def test_failures_are_still_failures() -> None:
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        bw.jit(solves)(np.ones((N, N)), Y)
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        bw.jit(lambda a, y: bw.scan(lambda c, _: (np.linalg.cholesky(a) @ c, None), y, length=2)[0])(-A, Y)
