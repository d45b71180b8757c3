"""Arrays that loops update in place are restored on the way back: what is kept grows as what is written, not as what is read."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.compiler.pipeline import derive, split
from bwcompiler.frontend import trace
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Record, input_value
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.ir.types import F64, tensor
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED
from bwcompiler.passes.memory.delay_updates import delay_updates
from tests.support.loop_programs import PROGRAMS, check_gradients


def lu(bw, given):
    a = given.copy()
    n = len(a)

    def row(i, _):
        def left(j, _):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]

        def right(j, _):
            a[i, j] -= a[i, :i] @ a[:i, j]
        bw.fori_loop(0, i, left, None)
        bw.fori_loop(i, n, right, None)
    bw.fori_loop(0, n, row, None)
    return a


def cholesky(bw, given):
    a = given.copy()

    def row(i, _):
        def column(j, _):
            a[i, j] -= a[i, :j] @ a[j, :j]
            a[i, j] /= a[j, j]
        bw.fori_loop(0, i, column, None)
        a[i, i] -= a[i, :i] @ a[i, :i]
        a[i, i] = np.sqrt(a[i, i])
    bw.fori_loop(0, len(a), row, None)
    return a


def durbin(bw, r):
    y = np.zeros_like(r)
    y[0] = -r[0]

    def step(k, c):
        alpha, beta = c
        beta = beta * (1 - alpha * alpha)
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
        return alpha, beta
    bw.fori_loop(1, len(r), step, (-r[0], 1.0))
    return y


def nonlinear_sweep(bw, given):
    a = given.copy()
    n = len(a)

    def row(i, _):
        def column(j, _):
            a[i, j] = np.sin(a[i, j]) * a[i - 1, j] + a[i, j - 1] * np.sum(a[i - 1, :j])
        bw.fori_loop(1, n, column, None)
    bw.fori_loop(1, n, row, None)
    return a


def linear_sweep(bw, given):
    a = given.copy()
    n = len(a)

    def row(i, _):
        def column(j, _):
            a[i, j] = (a[i, j - 1] + a[i - 1, j] + 2.0 * a[i, j]) / 4.0
        bw.fori_loop(1, n, column, None)
    bw.fori_loop(1, n, row, None)
    return a


def rows_of_recurrences(bw, given):
    """One loop inside writes a row of p, and the next one reads it: that p is restored pays in the loop around."""
    n = len(given)
    p, x = np.zeros_like(given), np.zeros_like(given)

    def row(k, _):
        p[k, 0] = given[k, 0]

        def forth(i, _):
            p[k, i] = given[k, i] / (4.0 - p[k, i - 1])

        def back(i, _):
            x[k, n - 2 - i] = p[k, n - 2 - i] - p[k, n - 1 - i] * x[k, n - 1 - i]
        bw.fori_loop(1, n, forth, None)
        x[k, n - 1] = p[k, n - 1]
        bw.fori_loop(0, n - 1, back, None)
    bw.fori_loop(0, n, row, None)
    return x


def matrix(n):
    a = np.random.default_rng(n).standard_normal((n, n))
    return a @ a.T + n * np.eye(n)


def joint_of(program, x):
    traced = trace(lambda given: np.sum(program(bw, given)), (x,))
    return derive(traced.graph, [0], [INPUT_SEED])


def kept(program, x):
    """The bytes of what the forward program hands to the adjoint one, without arguments."""
    joint = joint_of(program, x)
    parts = split(joint.graph, [place for place in joint.seeds if place is not None], 1)
    verify(parts.adjoint)
    return sum(value.type.nbytes for value in parts.residuals if value.op.kind != "input")


@pytest.mark.parametrize("program, make, most", [
    (cholesky, matrix, 2.0), (lu, matrix, 3.0), (nonlinear_sweep, matrix, 5.0), (linear_sweep, matrix, 0.0),
    (rows_of_recurrences, matrix, 8.0)])
def test_what_is_kept_grows_as_the_matrix(program, make, most):
    """JAX keeps N³ of the first three."""
    for n in (8, 16):
        assert kept(program, make(n)) <= most * 8 * n * n


def test_a_vector_that_is_updated_in_growing_parts():
    n = 24
    assert kept(durbin, 0.5 ** np.arange(1, n + 1)) <= 8 * (n * n + 4 * n)


@pytest.mark.parametrize("program, x", [
    (lu, matrix(4)), (cholesky, matrix(4)), (durbin, 0.5 ** np.arange(1.0, 6.0)), (nonlinear_sweep, matrix(4) / 4), (linear_sweep, matrix(4)),
    (rows_of_recurrences, matrix(4) / 8)])
def test_gradients(program, x):
    check_gradients(program, x)


def bodies(graph: Graph):
    for value in graph.body:
        for name in value.op.regions:
            yield value.attrs[name]
            yield from bodies(value.attrs[name])


@pytest.mark.parametrize("program", [cholesky, lu, nonlinear_sweep])
def test_a_step_back_costs_its_slices(program):
    """Inside of loops there is no operation on the whole array but updates of slices, which are in place."""
    n = 12
    joint = joint_of(program, matrix(n))
    seen = 0
    for body in bodies(joint.graph):
        for value in body.body:
            whole = getattr(value.type, "shape", ()) == (n, n)
            seen += whole
            assert not whole or value.op.name in ("slice_update", "slice_add", "item"), f"{value!r} in {body.name}"
    assert seen


@pytest.mark.parametrize("program", [cholesky, lu])
def test_updates_come_behind_what_reads_the_array_before(program):
    """So each can be done in place: nothing reads a version of an array behind the next one."""
    joint = joint_of(program, matrix(5))
    for body in bodies(joint.graph):
        order = {value: number for number, value in enumerate(body.body)}
        for value in body.body:
            if value.op.name not in ("slice_update", "slice_add"):
                continue
            readers = [other for other in body.body if value.operands[0] in other.operands and other is not value]
            assert all(order[reader] < order[value] for reader in readers), f"{value!r} in {body.name}"


def test_linear_updates_keep_nothing():
    assert kept(linear_sweep, matrix(6)) == 0
    program, args = PROGRAMS["seidel"]
    assert kept(lambda namespace, x: program(namespace, x), args[0]) <= 8 * 4 * 25


def test_a_version_that_is_read_after_the_inner_loop_is_kept():
    """Where an earlier version is needed before the inner loop has gone back, nothing is restored: the gradient is right all the same."""
    def program(bw, x):
        a = x.copy()

        def outer(i, total):
            before = a.copy()

            def inner(j, _):
                a[j] = a[j] * a[j - 1] + a[i]
            bw.fori_loop(1, 4, inner, None)
            return total + np.sum(np.sin(before) * a)
        total = bw.fori_loop(0, 3, outer, 0.0)
        return total, a
    check_gradients(program, np.array([0.3, -0.4, 0.5, 0.8]))


def test_what_one_array_loses_another_one_gets():
    """The old value of one update is the new one of another: it is kept once, and both arrays are restored."""
    def program(bw, x, y):
        a, b = x.copy(), y.copy()

        def swap(i, s):
            a[i], b[i] = b[i] * 1.0, a[i] * 1.0
            return np.sin(s + a[i] * b[i - 1] + np.sum(a[:i + 1] * b[0]))
        return bw.fori_loop(1, 4, swap, 0.5), a, b
    check_gradients(program, np.array([0.3, -0.4, 0.5, 0.8]), np.array([1.0, 0.2, -0.7, 0.1]))


def test_an_update_waits_for_its_readers():
    x, v = input_value(tensor(F64, (4,)), "x"), input_value(tensor(F64, (1,)), "v")
    with Record() as record:
        first = ops.slice_update(x, v, starts=(0,), steps=(1,))
        second = ops.slice_add(first, v, starts=(1,), steps=(1,))
        before = ops.slice(x, starts=(0,), sizes=(1,), steps=(1,))
        product = ops.multiply(before, v)
    graph = Graph("updates", [x, v], record.values, [second, product])
    assert delay_updates(graph).body == (before, product, first, second)
    reading = Graph("reading", [x, v], [first, before], [first, before])
    assert delay_updates(reading).body == (before, first)
    done = delay_updates(reading)
    assert delay_updates(done) is done


@pytest.mark.parametrize("read", [(1, 1), (0, 1), (1, 0), (2, 0), (2, 1, 0), (0, 2, 2, 1)], ids=str)
def test_updates_that_one_value_reads_stand_in_order(read):
    """In whatever order it reads them, and however often."""
    x, v = input_value(tensor(F64, (4,)), "x"), input_value(tensor(F64, (1,)), "v")
    with Record() as record:
        versions = [ops.slice_update(x, v, starts=(0,), steps=(1,))]
        versions.append(ops.slice_add(versions[0], v, starts=(1,), steps=(1,)))
        versions.append(ops.slice_update(versions[1], ops.slice(versions[0], starts=(2,), sizes=(1,), steps=(1,)), starts=(3,), steps=(1,)))
        joined = ops.concatenate(*[versions[k] for k in read], axis=0)
    graph = Graph("joined", [x, v], record.values, [joined])
    delayed = delay_updates(graph)
    verify(delayed)
    assert set(delayed.body) == set(graph.body)


def test_a_side_of_a_branch_reads_an_update_twice():
    def program(x, t):
        if x[0] > 0.4:
            total = x.sum()
        else:
            y = x * t
            y[1:] *= 0.5
            total = np.sum(y * y)
        return total
    x = np.linspace(0.1, 0.9, 4)
    for first in (0.1, 0.9):
        x[0] = first
        bw.check_grads(program, (x, 0.7))
