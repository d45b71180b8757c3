"""Loops whose index decides a choice: parts without it, with the same bits; and where the order of the parts is not known."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.frontend import trace
from bwcompiler.ir.graph import Graph
from bwcompiler.passes.loops.iterations.split_loops import split_loops
from bwcompiler.passes.loops.vectorize_loops import vectorize_loops
from tests.support.gradcheck import central_differences
from tests.support.loop_passes import rewritten

LINE = np.sin(3.0 * np.arange(21.0)) + 0.1
GRID = np.cos(np.arange(11.0 * 13)).reshape(11, 13)


def count(graph: Graph, op) -> int:
    return sum((value.op is op) + sum(count(value.attrs[region], op) for region in value.op.regions) for value in graph.body)


def parts(fun, *args):
    """How many choices and loops there are afterwards; bits are NumPy's, compiled too, and gradients those of differences."""
    traced, graph = rewritten(lambda graph: split_loops(graph).graph, fun, *args)
    assert count(traced, ops.cond) > 0
    found = bw.grad(lambda x: np.sum(np.sin(fun(x))))(args[0])
    np.testing.assert_allclose(found, central_differences(lambda x: np.sum(np.sin(fun(x))), args[0]), rtol=1e-6, atol=1e-8)
    return count(graph, ops.cond), count(graph, ops.loop)


def differences(x):
    y = np.zeros_like(x)
    for i in range(len(x)):
        before = 0.0
        if i > 0:
            before = x[i - 1]
        y[i] = x[i] - before
    return y


def both_ends(x):
    y = x.copy()
    for i in range(len(x)):
        if i == 0:
            y[i] = x[i + 1]
        elif i == len(x) - 1:
            y[i] = x[i - 1]
        else:
            y[i] = x[i + 1] * x[i - 1]
    return y


def backwards(x):
    y = x.copy()
    for i in range(len(x) - 1, -1, -1):
        if i < len(x) - 1:
            y[i] = x[i] + 0.5 * y[i + 1]
    return y


def from_the_end(x):
    y = x.copy()
    for i in range(2, len(x)):
        if 12 - i >= 0:
            y[i] = x[12 - i] * x[i]
        else:
            y[i] = x[i - 12]
    return y


def all_but_one(x):
    y = x.copy()
    for i in range(len(x)):
        if i != 7:
            y[i] = x[i] * x[7]
    return y


@pytest.mark.parametrize("fun, loops", [(differences, 2), (both_ends, 3), (backwards, 2), (from_the_end, 2), (all_but_one, 3)])
def test_one_loop_for_each_range(fun, loops):
    assert parts(fun, LINE) == (0, loops)


def borders(x):
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if i == 0 or j == 0 or i == x.shape[0] - 1 or j == x.shape[1] - 1:
                y[i, j] = x[i, j]
            else:
                y[i, j] = x[i - 1, j] + x[i + 1, j] * x[i, j - 1] - x[i, j + 1]
    return y


def neighbours(x):
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            total = x[i, j]
            if i > 0:
                total += x[i - 1, j]
            if j < x.shape[1] - 1 and i > 0:
                total *= x[i, j + 1]
            y[i, j] = total
    return y


@pytest.mark.parametrize("fun", [borders, neighbours])
def test_nests_become_operations_on_arrays(fun):
    assert parts(fun, GRID)[0] == 0
    assert count(vectorize_loops(split_loops(trace(fun, (GRID,)).graph).graph).graph, ops.loop) == 0


def triangles(x):
    """Where the loop inside is to be split moves with the one around, and is at its end in some iterations."""
    y = x.copy()
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if j > i:
                y[i, j] = 1.5 * x[i, j - 1]
            else:
                y[i, j] = x[i, j] * 1.5 * x[i, j]
    return y


def inner_triangles(x):
    y = x.copy()
    for i in range(1, x.shape[0] - 1):
        for j in range(x.shape[1]):
            if j > i:
                y[i, j] = 1.5 * x[i, j - 1]
            else:
                y[i, j] = x[i, j] * 1.5 * x[i, j]
    return y


def empty_in_a_part(x):
    """The loop inside has no iterations in the first part of the one around; it reads the row below, which the last one has not."""
    n = x.shape[0]
    y = x.copy()
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            if i + 1 < n:
                y[i, j] = max(y[i + 1, j], y[i, j - 1]) * 0.5
            if i + 1 < n and i < j - 1:
                y[i, j] += y[i + 1, j - 1]
    return y


@pytest.mark.parametrize("fun", [triangles, inner_triangles, empty_in_a_part])
def test_parts_that_move_with_the_loop_around(fun):
    assert parts(fun, GRID)[0] == 0


def of_data(x):
    y = x.copy()
    for i in range(1, len(x)):
        if x[i] > 0.3:
            y[i] = 1.5 * y[i - 1]
    return y


def with_data(x):
    """What the index decides is decided; what data decides stays."""
    y = x.copy()
    for i in range(len(x)):
        if i > 3 and x[i] > 0.3:
            y[i] = 1.5 * x[i - 4]
    return y


def scored(x):
    """The first row and column, what is below the diagonal and the last column: the choices inside are decided once i is split."""
    c = np.zeros((9, 9))
    for i in range(9):
        for j in range(9):
            if i == 0:
                c[i, j] = x[i, j] if j == 0 else c[i, j - 1] * 0.5 + x[i, j]
            elif j == 0:
                c[i, j] = c[i - 1, j] * 0.5
            elif i > j:
                c[i, j] = 0.3 * c[i - 1, j] + c[i, j - 1] * x[i, j]
            else:
                c[i, j] = c[i - 1, j] if j == 8 else 0.25 * (c[i, j - 1] + c[i - 1, j - 1]) + x[i, j]
    return c


def test_choices_inside_that_a_part_decides():
    """In one go, so that derivatives are of loops without choices."""
    traced, graph = rewritten(lambda graph: split_loops(graph).graph, scored, GRID[:9, :9])
    assert count(traced, ops.cond) > 0 and count(graph, ops.cond) == count(graph, ops.gather) == 0
    bw.check_grads(scored, (GRID[:9, :9],), order=1)


def test_choices_of_data_stay():
    assert parts(of_data, LINE) == (1, 1)
    assert parts(with_data, LINE) == (1, 2)


def test_many_parts_stay_one_loop():
    def steps(x):
        y = x.copy()
        for i in range(len(x)):
            if i == 3 or i == 6 or i == 9:
                y[i] = x[i] * x[i - 1]
        return y
    assert parts(steps, LINE)[1] == 1


def test_an_element_of_a_row_is_an_element():
    """What is read at i - 1 wraps in the first iteration; where it is known not to, it is a slice of the array."""
    graph = split_loops(trace(borders, (GRID,)).graph).graph
    assert count(graph, ops.gather) == 0 and count(graph, ops.normalize_index) == 0


def test_parts_of_one_iteration():
    """No element is carried from there: the next place is none of the array."""
    def one(x):
        y = x.copy()
        for i in range(x.shape[0] - 1, -1, -1):
            for j in range(i):
                if j - i >= 2:
                    y[i, j] = x[i, j]
                if i > 1 and j > 1:
                    y[i, j] += y[i - 1, j] - x[i, j - 1]
        return y
    assert parts(one, GRID)[0] == 0


def chosen_bounds(x):
    """The bounds of the loop inside are chosen by the index of the one around."""
    y = x.copy()
    for i in range(x.shape[0]):
        for k in range(max(0, i - 3), i):
            y[i, 0] -= 0.1 * y[k, 0] * x[i, k]
        for k in range(i + 1, min(x.shape[0], i + 4)):
            y[k, i] = y[k, i] * 0.5 + x[i, k]
    return y


def bounds_in_bounds(x):
    """A band: the bounds of the innermost loop are chosen by an index whose bounds are chosen."""
    y = x.copy()
    n = x.shape[0]
    for j in range(n):
        for i in range(j, min(n, j + 4)):
            for k in range(max(0, i - 3), j):
                y[i, j] -= 0.1 * y[i, k] * y[j, k]
            y[i, j] *= 0.9
    return y


def empty_between_bounds(x):
    y = x.copy()
    for i in range(x.shape[0]):
        for k in range(max(2, i - 2), min(i, 7)):
            y[i] += 0.5 * y[k] * x[k]
    return y


def as_bounds(fun, *args):
    """How many while loops there are before, and afterwards; bits and gradients as above."""
    traced, graph = rewritten(split_loops, fun, *args)
    found = bw.grad(lambda x: np.sum(np.sin(fun(x))))(args[0])
    np.testing.assert_allclose(found, central_differences(lambda x: np.sum(np.sin(fun(x))), args[0]), rtol=1e-6, atol=1e-8)
    return count(traced, ops.while_loop), count(graph, ops.while_loop)


@pytest.mark.parametrize("fun, left", [(chosen_bounds, 0), (bounds_in_bounds, 0)])
def test_bounds_that_the_index_around_chooses(fun, left):
    before, after = as_bounds(fun, GRID[:, :11].copy())
    assert before > 0 and after == left
    graph = split_loops(trace(fun, (GRID[:, :11].copy(),)).graph).graph
    assert count(graph, ops.gather) == count(graph, ops.scatter_update) == 0


def test_bounds_that_may_be_the_wrong_way_round_stay():
    """Where the second bound may be below the first one there is no iteration: no loop counts so."""
    assert as_bounds(empty_between_bounds, GRID[:, 0].copy())[1] > 0


def test_bounds_of_data_stay():
    def rows(starts, x):
        y = np.zeros(len(starts) - 1)
        for i in range(len(starts) - 1):
            for k in range(starts[i], starts[i + 1]):
                y[i] = 0.5 * y[i] + x[k]
        return y
    _, graph = rewritten(split_loops, rows, np.array([0, 3, 3, 8, 21, 21, 21, 2, 4, 8, 9, 12]), LINE)
    assert count(graph, ops.while_loop) == 1


def test_bodies_that_stay_are_not_looked_at_again():
    """Each pass, and each graph around, asks for the bodies of loops: what was found out of one is noted with it."""
    def function(x):
        for _ in range(20):
            for i in range(1, len(x)):
                x[i] = np.sin(x[i]) + x[i - 1]
        return x
    graph = trace(function, (LINE,)).graph
    assert split_loops(graph).graph is graph
    body = next(value.attrs["body"] for value in graph.body if value.op is ops.loop)
    assert body.is_settled(split_loops) and not body.is_settled(vectorize_loops)


def test_parts_that_have_no_elements_where_the_loop_is_split(rng):
    """In the part of the loop where j is 0, and in that where it is the last, the slices that move with it are empty."""
    def triangle(a):
        a, s = a.copy(), 0.0
        for j in range(12):
            a[j, :j] = np.sin(a[12 - j:, j])
            a[j, j + 1:] *= np.cos(a[j + 1:, 0])
            s = s + a[0, j] * (0.1 if j == 0 else 0.5 if j == 11 else 0.3)
        return np.sum(a) + s

    bw.check_grads(triangle, (rng.uniform(-1, 1, (12, 12)),), order=1)
