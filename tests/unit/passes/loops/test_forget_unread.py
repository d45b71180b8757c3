"""What loops write to arrays, and nobody reads afterwards: which writes are left out, and which stay."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.frontend import trace
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.passes.loops.carried.forget_unread import forget_unread
from bwcompiler.passes.rewriting.simplify import simplify
from tests.support.derivatives import check_derivatives

X = np.cos(np.arange(60.0)).reshape(12, 5) + 1.5


def updates(graph: Graph) -> int:
    """How many updates there are inside of loops."""
    return sum([value.op in ops.UPDATES for loop in graph.body if loop.op is ops.loop for value in loop.attrs["body"].body])


def backwards(x, also=lambda c: 0.0, rows=slice(0, 1)):
    """The way back of a recurrence: an iteration reads a row, clears it, and adds to the one before."""
    c = x * 2.0
    for i in range(10, -1, -1):
        row = c[i + 1] * x[i]
        c[i + 1] = 0.0
        c[i] += np.sin(row)
    return c[rows] * 3.0 + also(c)


def reads_cleared_rows_later(x):
    c, total = x * 2.0, x[0]
    for i in range(10, -1, -1):
        row = c[i + 1] * x[i]
        c[i + 1] = 0.0
        c[i] += np.sin(row)
        total = total * c[11] + row
    return c[:1] + total


def reads_in_the_same_iteration(x):
    c, total = x * 2.0, x[0]
    for i in range(10, -1, -1):
        row = c[i + 1] * x[i]
        c[i + 1] = x[i] * row
        c[i] += np.sin(c[i:i + 2].sum(axis=0))
        total = total * 0.5 + row
    return c[:1] + total


def forwards(x):
    c = x * 2.0
    for i in range(11):
        row = c[i] * x[i]
        c[i] = 0.0
        c[i + 1] += np.sin(row)
    return c[11:]


def reads_what_was_cleared(x):
    return backwards(x, rows=slice(0, 2))


def is_returned(x):
    return backwards(x, also=lambda c: c)


@pytest.mark.parametrize(("fun", "left"), [
    (backwards, 1), (forwards, 1), (reads_cleared_rows_later, 2), (reads_in_the_same_iteration, 2), (reads_what_was_cleared, 2),
    (is_returned, 2)], ids=lambda one: getattr(one, "__name__", None))
def test_which_writes_are_left(fun, left):
    graph = simplify(trace(fun, (X,)).graph).graph
    made = forget_unread(graph).graph
    verify(made)
    assert (updates(graph), updates(made)) == (2, left)
    np.testing.assert_allclose(bw.jit(fun)(X), fun(X), rtol=1e-13)


@pytest.mark.parametrize("fun", [backwards, forwards, reads_cleared_rows_later, reads_in_the_same_iteration, reads_what_was_cleared])
def test_gradients_are_those_of_differences(fun):
    check_derivatives(fun, X)


def thomas(a, d):
    """Elimination and substitution along rows: both have such cotangents."""
    c, y, x = np.zeros_like(d), np.zeros_like(d), np.zeros_like(d)
    c[0], y[0] = a[0], d[0]
    for i in range(1, 12):
        pivot = 4.0 - a[i] * c[i - 1]
        c[i] = a[i] / pivot
        y[i] = (d[i] - a[i] * y[i - 1]) / pivot
    x[11] = y[11]
    for i in range(10, -1, -1):
        x[i] = y[i] - c[i] * x[i + 1]
    return x


def test_the_way_back_of_a_solve_is_one_kernel_per_loop():
    def loss(a, d):
        return np.sum(np.sin(thomas(a, d)))

    check_derivatives(loss, X, X[::-1].copy())
    text = bw.grad(loss, (0, 1)).as_text("loops", X, X[::-1].copy())
    bodies = [line.split("(")[0] for line in text.splitlines() if line.startswith("kernel b")]
    assert bodies == ["kernel b0b.k0", "kernel b1b.k0", "kernel b2b.k0", "kernel b3b.k0"]
