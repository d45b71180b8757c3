"""Rows of recurrences in two directions that run together: with the same bits, as far apart as they have to be, and no others."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.api.programs import executables
from bwcompiler.api.programs.executables import Executables
from bwcompiler.frontend import trace
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.passes.loops.iterations import unroll_and_jam as jamming
from bwcompiler.passes.loops.iterations.nests import nest_of
from bwcompiler.passes.loops.iterations.unroll_and_jam import unroll_and_jam
from tests.support.loop_passes import rewritten
from tests.support.targets import on_each, require_agreement

GRID = np.random.default_rng(0).uniform(0.5, 1.5, (11, 38))
SQUARE = np.random.default_rng(1).integers(0, 8, (37, 37)).astype(float)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """The interpreter is slow: rows run together from fewer iterations on than usual."""
    monkeypatch.setattr(jamming, "LEAST_ITERATIONS", 256)


def delay(fun, *args):
    """How many columns the rows of the last nest are apart; None where they do not run together.  The function gives NumPy's bits."""
    before, after = rewritten(unroll_and_jam, fun, *args)
    if after is before:
        return None
    nest = [nest_of(value) for value in before.body if value.op is ops.loop][-1]
    schedule = None if nest is None else jamming.schedule_of(nest)
    assert schedule is not None
    return schedule.delay


def sweep(x):
    y = x.copy()
    for i in range(1, x.shape[0]):
        for j in range(1, x.shape[1]):
            y[i, j] = (y[i, j] + y[i - 1, j] + y[i, j - 1]) / 3.0
    return y


def gauss_seidel(x):
    y = x.copy()
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            y[i, j] = 0.25 * (y[i - 1, j] + y[i + 1, j] + y[i, j - 1] + y[i, j + 1])
    return y


def nine_points(x):
    y = x.copy()
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            y[i, j] = (y[i - 1, j - 1] + y[i - 1, j] + y[i - 1, j + 1] + y[i, j - 1] + y[i, j] + y[i, j + 1]) / 6.0
    return y


def backwards(x):
    y = x.copy()
    for i in range(x.shape[0] - 2, -1, -1):
        for j in range(x.shape[1] - 2, -1, -1):
            y[i, j] = y[i, j] - 0.5 * y[i + 1, j] - 0.25 * y[i, j + 1]
    return y


def to_and_fro(x):
    y = x.copy()
    for i in range(1, x.shape[0]):
        for j in range(x.shape[1] - 2, -1, -1):
            y[i, j] = y[i, j] - 0.5 * y[i - 1, j] - 0.25 * y[i, j + 1]
    return y


def alignment(x):
    d = np.zeros_like(x)
    for j in range(1, x.shape[1]):
        d[0, j] = d[0, j - 1] + x[0, j]
    for i in range(1, x.shape[0]):
        d[i, 0] = d[i - 1, 0] + x[i, 0]
        for j in range(1, x.shape[1]):
            d[i, j] = x[i, j] + min(d[i - 1, j - 1], min(d[i - 1, j], d[i, j - 1]))
    return d


def one_row_for_all(x):
    """Sweeps in time over one line, of which each sees the line as the one before left it."""
    u = x[0].copy()
    for k in range(1, x.shape[0]):
        for j in range(1, x.shape[1] - 1):
            u[j] = 0.3 * u[j - 1] + 0.3 * u[j] + 0.3 * u[j + 1] + x[k, j]
    return u


def a_weight_of_the_row(x):
    y = x.copy()
    for i in range(1, x.shape[0]):
        weight = 0.5 * x[i, 0] + i
        for j in range(1, x.shape[1]):
            y[i, j] = (y[i, j] + y[i - 1, j] + y[i, j - 1]) / weight
    return y


def ends_of_rows(x):
    """Borders that are set after each row, as the rows beside it read them."""
    y = x.copy()
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            y[i, j] = 0.25 * (y[i - 1, j] + y[i + 1, j] + y[i, j - 1] + y[i, j + 1])
        y[i, x.shape[1] - 1] = y[i, x.shape[1] - 2]
    return y


def largest_of_rows(x):
    """The end of a row that no other row reads."""
    y = x.copy()
    for i in range(1, x.shape[0]):
        for j in range(1, x.shape[1]):
            y[i, j] = 0.5 * y[i, j - 1] + 0.1 * y[i - 1, j]
        y[i, 0] = np.max(y[i, 1:])
    return y


def two_arrays(x):
    y, z = x.copy(), 2.0 * x
    for i in range(1, x.shape[0]):
        for j in range(1, x.shape[1]):
            y[i, j] = 0.5 * y[i, j - 1] + 0.1 * z[i - 1, j]
            z[i, j] = 0.25 * z[i, j - 1] - y[i, j]
    return y + z


def triangle(x):
    """Rows that begin later and later."""
    y = x.copy()
    for i in range(1, x.shape[0]):
        for j in range(i, x.shape[1]):
            y[i, j] = y[i, j] + 0.5 * y[i, j - 1] + 0.25 * y[i - 1, j]
    return y


def triangle_from_below(x):
    """Intervals from short to long, as in the folding of chains: rows that begin earlier and earlier."""
    y = x.copy()
    for i in range(x.shape[0] - 2, -1, -1):
        for j in range(i + 1, x.shape[1]):
            y[i, j] = max(y[i, j - 1], y[i + 1, j]) + x[i, j]
    return y


def cholesky(g):
    """As for a Cholesky factor, of small integers: NumPy's sums have another order."""
    a = np.zeros_like(g)
    for i in range(g.shape[0]):
        for j in range(i):
            a[i, j] = (g[i, j] + np.dot(a[i, :j], a[j, :j])) % 8.0
        a[i, i] = (g[i, i] + np.dot(a[i, :i], a[i, :i])) % 8.0
    return a


def lu(g):
    """As for LU factors, which read columns, too."""
    a = g.copy()
    for i in range(g.shape[0]):
        for j in range(i):
            a[i, j] = (a[i, j] + np.dot(a[i, :j], a[:j, j])) % 8.0
        a[i, i:] = (a[i, i:] + a[i, :i] @ a[:i, i:]) % 8.0
    return a


def cholesky_factor(g):
    a = np.zeros_like(g)
    for i in range(g.shape[0]):
        for j in range(i):
            a[i, j] = (g[i, j] - np.dot(a[i, :j], a[j, :j])) / a[j, j]
        a[i, i] = np.sqrt(g[i, i] - np.dot(a[i, :i], a[i, :i]))
    return a


@pytest.mark.parametrize("fun, x, columns", [
    (sweep, GRID, 1), (gauss_seidel, GRID, 1), (nine_points, GRID, 2), (backwards, GRID, 1), (to_and_fro, GRID, 1), (alignment, GRID, 1),
    (one_row_for_all, GRID, 2), (a_weight_of_the_row, GRID, 1), (ends_of_rows, GRID, 1), (largest_of_rows, GRID, 1), (two_arrays, GRID, 1),
    (triangle_from_below, SQUARE, 0), (cholesky, SQUARE, 0), (lu, SQUARE, 0)])
def test_rows_run_together_as_many_columns_apart_as_they_have_to(fun, x, columns):
    """Columns of rows that begin elsewhere are counted from where each row begins."""
    assert delay(fun, x) == columns


@pytest.mark.parametrize("rows", [9, 10, 11, 12, 13])
def test_rows_that_are_left_run_on_their_own(rows):
    x = np.random.default_rng(rows).uniform(0.5, 1.5, (rows, 40))
    assert delay(sweep, x) == 1
    assert delay(backwards, x) == 1


def reads_the_end_of_the_last_row(x):
    y = x.copy()
    for i in range(1, x.shape[0]):
        y[i, 0] = y[i - 1, x.shape[1] - 1]
        for j in range(1, x.shape[1]):
            y[i, j] = 0.5 * y[i, j - 1] + 0.1 * y[i - 1, j]
    return y


def reads_the_row_before_from_its_end(x):
    y = x.copy()
    n = x.shape[1]
    for i in range(1, x.shape[0]):
        for j in range(1, n):
            y[i, j] = 0.5 * y[i, j - 1] + 0.1 * y[i - 1, n - 1 - j]
    return y


def one_number_for_all(x):
    y = np.zeros((1,))
    z = x.copy()
    for i in range(1, x.shape[0]):
        for j in range(1, x.shape[1]):
            y[0] = 0.5 * y[0] + x[i, j]
            z[i, j] = y[0] + z[i - 1, j]
    return z


def ends_that_the_next_row_begins_with(x):
    y = x.copy()
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[1]):
            y[i, j] = 0.5 * y[i, j - 1] + 0.1 * y[i - 1, j]
        y[i + 1, 0] = y[i, 5]
    return y


def rows_that_begin_with_the_largest(x):
    y = x.copy()
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[1]):
            y[i, j] = 0.5 * y[i, j - 1] + 0.1 * y[i - 1, j]
        y[i + 1, 0] = np.max(y[i, 1:])
    return y


def far_ahead(x):
    y = x.copy()
    for i in range(1, x.shape[0]):
        for j in range(1, x.shape[1] - 7):
            y[i, j] = 0.5 * y[i, j - 1] + 0.1 * y[i - 1, j + 7]
    return y


@pytest.mark.parametrize("fun, x", [
    (reads_the_end_of_the_last_row, GRID), (reads_the_row_before_from_its_end, GRID), (one_number_for_all, GRID),
    (ends_that_the_next_row_begins_with, GRID), (rows_that_begin_with_the_largest, GRID), (far_ahead, GRID), (triangle, SQUARE),
    (sweep, GRID[:8]), (sweep, GRID[:, :30]),
    (nine_points, GRID[:, :25])])
def test_rows_run_one_by_one(fun, x):
    """What a row needs is the whole row before; or there is too little to do."""
    assert delay(fun, x) is None


def random_nest(seed):
    """A recurrence that reads, and adds to, elements at random distances, before, in and after the columns of a row; and its rows."""
    rng = np.random.default_rng(seed)
    a, b, c, d, e, f = (int(number) for number in rng.integers(-2, 3, 6))
    g, h = (int(number) for number in rng.integers(0, 5, 2))
    k, up, right = (int(number) for number in rng.integers(0, 2, 3))

    def fun(x):
        y, n, m = x.copy(), x.shape[0] - 4, x.shape[1] - 4
        for i in range(2, n + 2) if up else range(n + 1, 1, -1):
            y[i, g] = y[i - k, g] + 0.5
            for j in range(2, m + 2) if right else range(m + 1, 1, -1):
                y[i, j] = 0.25 * (y[i, j - 1] + y[i, j + 1]) + 0.25 * (y[i + a, j + b] - 0.5 * y[i + c, j + d]) + x[i, j]
                y[i + e, j + f] += 0.125 * y[i, j]
            y[i + k, m + h - 1] += 0.25 * y[i, m]
        return y

    return fun


def test_random_nests_keep_their_bits():
    x = np.random.default_rng(1).uniform(0.5, 1.5, (12, 40))
    together = 0
    for seed in range(60):
        graph = trace(random_nest(seed), (x,)).graph
        made = unroll_and_jam(graph)
        together += made is not graph
        if made is not graph:
            verify(made)
            np.testing.assert_array_equal(interpret(made, [x])[0], interpret(graph, [x])[0], err_msg=f"seed {seed}")
    assert together > 12


@pytest.mark.parametrize("fun, x", [
    (sweep, GRID), (gauss_seidel, GRID), (nine_points, GRID), (alignment, GRID), (one_row_for_all, GRID), (ends_of_rows, GRID),
    (triangle_from_below, SQUARE + GRID[0, 0] * np.arange(37.0)), (cholesky_factor, SQUARE @ SQUARE.T / 37.0 + np.eye(37)), (lu, SQUARE)])
def test_derivatives_of_rows_that_run_together(fun, x, monkeypatch):
    """They have the bits of the derivatives of rows that run one by one, and are those of finite differences."""
    seed = np.cos(np.arange(float(np.size(fun(x))))).reshape(fun(x).shape)

    def compiled_anew():
        monkeypatch.setattr(executables, "_cache", Executables())
        gradient = bw.jit(bw.grad(lambda x: np.sum(seed * fun(x))))
        return gradient(x), gradient.as_text("loops", x)

    found, together = compiled_anew()
    monkeypatch.setattr(jamming, "LEAST_COLUMNS", 1000)
    alone, apart = compiled_anew()
    assert together != apart
    np.testing.assert_array_equal(found, alone)
    if fun is lu:                                      # of remainders, which jump
        return
    direction, step = np.sin(np.arange(float(x.size))).reshape(x.shape), 1e-6
    expected = np.sum(seed * (fun(x + step * direction) - fun(x - step * direction))) / (2.0 * step)
    np.testing.assert_allclose(np.sum(found * direction), expected, rtol=1e-6)


def test_gradients_are_the_same_on_every_target():
    found = on_each(lambda: bw.value_and_grad(lambda x: np.sum(alignment(x) ** 2))(GRID))
    require_agreement(found, "rows that run together")
