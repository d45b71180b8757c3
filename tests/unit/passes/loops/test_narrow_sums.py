"""Sums over slices between bounds that are data: a few elements are gone through one by one."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.frontend import trace
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.passes.loops.narrow_sums import FEWEST, narrow_sums

SIZE = 20 * 16                                                                  # slices of fewer than 20 elements are short
START = np.array([0, 3, 3, 40, 41, 60, 61, 70, SIZE, SIZE, SIZE])                             # some short, some long, some empty
RNG = np.random.default_rng(5)
COLUMN = RNG.integers(-9, 9, SIZE)
VALUES, TABLE = RNG.standard_normal(SIZE), RNG.standard_normal(9)


def sparse_rows(start, column, values, table):
    y = np.empty(start.size - 1)
    for i in range(start.size - 1):
        y[i] = values[start[i]:start[i + 1]] @ table[column[start[i]:start[i + 1]]]
    return y


def means(start, values):
    y = np.zeros(start.size - 1)
    for i in range(start.size - 1):
        part = values[start[i]:start[i + 1]]
        y[i] = np.sum(np.exp(part) * 2.0 - 1.0) / (start[i + 1] - start[i] + 1)
    return y


def moments(start, values):
    total = 0.0
    for i in range(start.size - 1):
        if start[i] != start[i + 1]:
            part = values[start[i]:start[i + 1]]
            total += np.sum(part * part)
    return total


def integers(start, column):
    y = np.zeros(start.size - 1, np.int64)
    for i in range(start.size - 1):
        y[i] = column[start[i]:start[i + 1]].sum()
    return y


CASES = {sparse_rows: (START, COLUMN, VALUES, TABLE), means: (START, VALUES), moments: (START, VALUES), integers: (START, COLUMN)}


def loops_inside(graph):
    found = [value.op for value in graph.body if value.op is ops.while_loop]
    return found + [op for value in graph.body for name in value.op.regions for op in loops_inside(value.attrs[name])]


@pytest.mark.parametrize("fun", CASES, ids=lambda fun: fun.__name__)
def test_short_slices_are_gone_through(fun):
    traced = trace(fun, CASES[fun])
    graph = narrow_sums(traced.graph).graph
    verify(graph)
    assert len(loops_inside(graph)) == 1
    assert narrow_sums(graph).graph is graph, "what sums up the whole array stays"
    for found in (interpret(graph, [*CASES[fun], *traced.captured])[0], bw.jit(fun)(*CASES[fun])):
        np.testing.assert_allclose(found, fun(*CASES[fun]), rtol=1e-12)


@pytest.mark.parametrize("fun", [sparse_rows, means, moments], ids=lambda fun: fun.__name__)
def test_gradients_are_those_of_differences(fun):
    bw.check_grads(fun, CASES[fun])


def above_all(start, values):
    """Not in a loop: one mask."""
    return np.sum(values[start[0]:start[1]])


def few(start, values):
    """The array is short."""
    total = 0.0
    for i in range(start.size - 1):
        total += np.sum(values[:FEWEST - 1][start[i]:start[i + 1]])
    return total


def computed(start, values):
    """What is summed up is computed in the iteration."""
    total = 0.0
    for i in range(start.size - 1):
        total += np.sum(np.cumsum(values * total)[start[i]:start[i + 1]])
    return total


def masked(start, values):
    """The elements that count are in no slice."""
    total = 0.0
    for i in range(start.size - 1):
        total += np.sum(values[values > start[i]])
    return total


@pytest.mark.parametrize("fun", [above_all, few, computed, masked], ids=lambda fun: fun.__name__)
def test_others_stay(fun):
    graph = trace(fun, (START, VALUES)).graph
    assert narrow_sums(graph).graph is graph


def test_gradients_keep_no_array_for_each_row():
    """The sum over the whole array is computed again, and both cotangents are updated where they lie."""
    rows, size = 400, 6400
    start, column = np.arange(rows + 1) * 16, np.arange(size) % 9
    program = bw.compile(lambda values, table: np.sum(sparse_rows(start, column, values, table) ** 2), np.ones(size), np.ones(9))
    used = program.memory_analysis()
    assert used["temporary_bytes"] + used["residual_bytes"] < 10 * 8 * size


def test_long_loops_over_known_bounds_are_not_unrolled():
    """Bounds that the function reads from outside are data, as those of its arguments are."""
    start = np.arange(1001) * 2
    values, table, column = np.ones(2000), np.arange(9.0), np.arange(2000) % 9
    program = bw.compile(lambda values, table: sparse_rows(start, column, values, table), values, table)
    assert len(program.graph) < 100
    np.testing.assert_allclose(program(values, table), sparse_rows(start, column, values, table))
