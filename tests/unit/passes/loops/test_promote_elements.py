"""One element of an array in the place of the array: where a loop touches nothing else of it."""

from __future__ import annotations

import numpy as np
import pytest

from bwcompiler import ops
from bwcompiler.frontend import trace
from bwcompiler.passes.loops.carried.promote_elements import promote_elements
from tests.support.loop_passes import rewritten

LINE = np.linspace(0.5, 2.0, 20)
GRID = np.sin(np.arange(240.0)).reshape(12, 20)


def carried(fun, *args):
    """The shapes of what the innermost loop carries; results are as before, and as NumPy's."""
    _, graph = rewritten(lambda graph: promote_elements(graph).graph, fun, *args)
    shapes: list[tuple[int, ...]] = []
    while loops := [value for value in graph.body if value.op is ops.loop]:
        shapes, graph = [type_.shape for type_ in loops[-1].type.items], loops[-1].attrs["body"]
    return shapes


def sums(x):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            y[i] += x[i, k] * x[i, k]
    return y


def two_loops(x):
    y = np.zeros(3)
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            y[2] = 0.5 * y[2] + x[i, k]
    return y


def written_twice(x):
    y = x.copy()
    for k in range(1, x.shape[0]):
        y[0] = y[0] + x[k]
        y[0] *= x[k]
    return y


def perhaps_none(x):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        for k in range(i):
            y[i] -= x[i, k]
    return y


def reads_another_one(x):
    y = x.copy()
    for k in range(2, x.shape[0]):
        y[0] = y[0] + y[1] * x[k]
    return y


def reads_what_is_before(x):
    y = x.copy()
    for j in range(1, x.shape[0]):
        y[j] = y[j] * 0.5                  # the loop is no reader of an array between two updates
        for k in range(j):
            y[j] -= y[k] * x[j - k]
    return y


def factors(x):
    a = x.copy()
    for i in range(a.shape[0]):
        for j in range(i):
            for k in range(j):
                a[i, j] -= a[i, k] * a[j, k]
    return a


def a_loop_inside_reads(x):
    a = x.copy()
    for j in range(1, a.shape[0]):
        for k in range(j):
            total = 0.0
            for m in range(j):
                total = 0.7 * total + a[k, m]
            a[j, 0] = a[j, 0] * 0.5 + total
    return a


@pytest.mark.parametrize("fun, x", [(sums, GRID), (two_loops, GRID), (written_twice, LINE), (perhaps_none, GRID), (reads_another_one, LINE),
                                    (reads_what_is_before, LINE), (factors, GRID[:, :12])])
def test_the_element_is_carried(fun, x):
    assert all(np.prod(shape) == 1 for shape in carried(fun, x))


def test_a_loop_inside_reads_the_rest_of_the_array():
    _, graph = rewritten(promote_elements, a_loop_inside_reads, GRID)
    outer = next(value for value in graph.body if value.op is ops.loop)
    middle = next(value for value in outer.attrs["body"].body if value.op is ops.loop)
    assert [type_.shape for type_ in middle.type.items] == [(1, 1)]


def test_a_loop_between_two_updates_reads_the_array_before_both():
    _, graph = rewritten(promote_elements, reads_what_is_before, LINE)
    body = next(value for value in graph.body if value.op is ops.loop).attrs["body"]
    inner = next(value for value in body.body if value.op is ops.loop)
    assert inner.operands[-1] in body.inputs or inner.operands[1] in body.inputs


def also_read_whole(x):
    y = x.copy()
    for _ in range(1, x.shape[0]):
        y[0] = y[0] * 0.5 + np.max(y)
    return y


def moving(x):
    y = x.copy()
    for k in range(1, x.shape[0]):
        y[k] = y[k] + x[k - 1]
    return y


def perhaps_read(x):
    y = x.copy()
    for j in range(1, x.shape[0]):
        for k in range(j + 1):
            y[j] -= y[k] * x[j - k]
    return y


def read_by_a_loop_inside(x):
    y = x.copy()
    for _ in range(1, x.shape[0]):
        total = 0.0
        for m in range(8):
            total = 0.7 * total + y[m]
        y[2] = 0.5 * y[2] + total
    return y


def a_row(x):
    y = x.copy()
    for k in range(1, x.shape[0]):
        y[0] = y[0] + x[k]
    return y


@pytest.mark.parametrize("fun, x", [(also_read_whole, LINE), (moving, LINE), (perhaps_read, LINE), (a_row, GRID)])
def test_the_array_is_carried_where_more_of_it_is_touched(fun, x):
    assert carried(fun, x) == [x.shape]


def test_the_array_is_carried_where_a_loop_inside_may_read_the_element():
    _, graph = rewritten(promote_elements, read_by_a_loop_inside, LINE)
    assert [value.type.items[0].shape for value in graph.body if value.op is ops.loop] == [LINE.shape]


def test_nothing_changes_without_such_loops():
    graph = trace(moving, (LINE,)).graph
    assert promote_elements(graph).graph is graph
