"""Arrays of one number whose rows a loop writes parts of are filled in that loop: which these are, and that values stay as they are."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.frontend import trace
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.passes.loops.carried import fill_rows as module
from bwcompiler.passes.loops.carried.fill_rows import fill_rows
from bwcompiler.passes.loops.carried.set_once import set_once
from bwcompiler.passes.rewriting.simplify import simplify
from tests.support.derivatives import check_derivatives

N = 24
A = np.cos(np.arange(float(N * N))).reshape(N, N) * 0.1 + np.eye(N) * 3.0
B = np.sin(np.arange(float(N))) + 1.5


@pytest.fixture(autouse=True)
def small_arrays_too(monkeypatch) -> None:
    monkeypatch.setattr(module, "LEAST_BYTES", 1)


def filled(fun, *args) -> tuple[int, list[tuple[object, ...]]]:
    """How many arrays the pass leaves unset before their loops, and the shapes that it fills in loops instead."""
    traced = trace(fun, args)
    before = set_once(simplify(traced.graph).graph).graph
    after = fill_rows(before)
    verify(after)
    for one, other in zip(interpret(before, [*args, *traced.captured]), interpret(after, [*args, *traced.captured]), strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(np.signbit(one), np.signbit(other))
    bodies = [value.attrs["body"] for value in after.body if value.op is ops.loop]
    return count(after) - count(before), [value.shape for body in bodies for value in body.body if value.op is ops.full and value.rank > 1]


def count(graph: Graph) -> int:
    return sum(value.op is ops.unset for value in graph.body)


def written(x, write, rows=N, begin=0.0):
    """A loop that cannot be array code, and writes to another array on the way."""
    total, y = np.full((N, N), begin), x[0]
    for i in range(rows):
        y = np.sin(y) * x[i]
        write(total, i, y)
    return total * 2.0


def beginnings(x):
    def write(total, i, y):
        total[i, :i] = y[:i]
    return written(x, write)


def beginnings_and_diagonal(x):
    def write(total, i, y):
        total[i, :i] = y[:i]
        total[i, i] = y[0]
    return written(x, write)


def ends_backwards(x):
    def write(total, i, y):
        total[N - 1 - i, i:] = y[i:]
    return written(x, write)


def middles(x):
    def write(total, i, y):
        total[i, 1:5] = y[1:5]
    return written(x, write, begin=2.0)


def two_parts(x):
    def write(total, i, y):
        total[i, 1:5] = y[1:5]
        total[i, 7] = y[0]
    return written(x, write)


def all_but_the_last_rows(x):
    def write(total, i, y):
        total[i, :i] = y[:i]
    return written(x, write, rows=N - 2)


def few_rows(x):
    def write(total, i, y):
        total[i, :i] = y[:i]
    return written(x, write, rows=N // 2)


def every_second_row(x):
    def write(total, i, y):
        total[2 * i, :i] = y[:i]
    return written(x, write, rows=N // 2)


def one_row(x):
    def write(total, i, y):
        total[3, i] = y[0]
    return written(x, write)


def columns(x):
    def write(total, i, y):
        total[:i, i] = y[:i]
    return written(x, write)


def neighbours(x):
    def write(total, i, y):
        total[i, :i] = y[:i]
        total[i + 1, i] = y[0]
    return written(x, write, rows=N - 1)


def read_again(x):
    def write(total, i, y):
        total[i, :i] = y[:i] + np.sum(total[:i, :i], 0)
    return written(x, write)


def whole_rows(x):
    def write(total, i, y):
        total[i] = y
    return written(x, write)


FILLED = [beginnings, beginnings_and_diagonal, ends_backwards, middles, two_parts, all_but_the_last_rows]
KEPT = [few_rows, every_second_row, one_row, columns, neighbours, read_again, whole_rows]


@pytest.mark.parametrize("fun", FILLED, ids=lambda fun: fun.__name__)
def test_arrays_whose_rows_are_written_are_filled_there(fun) -> None:
    unset, shapes = filled(fun, A)
    assert unset == 1 and len(shapes) == 1
    assert (shapes[0] == (1, N)) == (fun in (middles, two_parts))       # else what the parts leave


@pytest.mark.parametrize("fun", KEPT, ids=lambda fun: fun.__name__)
def test_others_are_filled_before(fun) -> None:
    assert filled(fun, A) == (0, [])


@pytest.mark.parametrize("fun", [*FILLED, *KEPT], ids=lambda fun: fun.__name__)
def test_values_and_derivatives(fun) -> None:
    np.testing.assert_array_equal(bw.jit(fun)(A), fun(A))
    check_derivatives(fun, A)


def forward_substitution(a, b):
    x = np.zeros_like(b)
    for i in range(len(b)):
        x[i] = (b[i] - a[i, :i] @ x[:i]) / a[i, i]
    return np.sum(x * x)


def backward_substitution(a, b):
    x = np.zeros_like(b)
    for i in range(len(b) - 1, -1, -1):
        x[i] = (b[i] - a[i, i + 1:] @ x[i + 1:]) / a[i, i]
    return np.sum(x * x)


@pytest.mark.parametrize("fun", [forward_substitution, backward_substitution], ids=lambda fun: fun.__name__)
def test_cotangents_of_triangular_matrices(fun) -> None:
    gradient = bw.grad(fun, (0, 1))
    assert filled(gradient, A, B)[0] >= 1
    expected = bw.grad(fun, (0, 1), autoloop=False)(A, B)
    for one, other in zip(gradient(A, B), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-14)
    triangle = np.tril if fun is forward_substitution else np.triu
    np.testing.assert_array_equal(gradient(A, B)[0], triangle(gradient(A, B)[0]))
    check_derivatives(fun, A, B, order=2)


def test_small_arrays_are_filled_before(monkeypatch) -> None:
    monkeypatch.undo()
    assert filled(beginnings, A) == (0, [])
