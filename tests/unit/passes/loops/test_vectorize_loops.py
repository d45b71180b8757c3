"""Loops over elements as operations on arrays: where iterations are independent, with the same bits, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.ir.extent import Index
from bwcompiler.ir.graph import cut
from bwcompiler.ir.op import Record, input_value, item
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.ir.types import F64, I64, tensor
from bwcompiler.passes.loops.carried.promote_elements import promote_elements
from bwcompiler.passes.loops.vectorize_loops import vectorize_loops
from tests.support.graph_strategies import run_compiled
from tests.support.loop_passes import loops_in, rewritten
from tests.support.targets import on_each, require_agreement

N = 20
LINE = np.linspace(0.5, 2.0, N)
GRID = np.sin(np.arange(12.0 * N)).reshape(12, N)


def left(fun, *args):
    """How many loops are left; the function gives NumPy's bits, compiled too."""
    traced, graph = rewritten(lambda graph: vectorize_loops(promote_elements(graph).graph).graph, fun, *args)
    assert loops_in(traced) > 0
    return loops_in(graph)


def line(x):
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        y[i] = 2.0 * x[i] + i
    return y


def reversed_line(x):
    y = x.copy()
    for i in range(x.shape[0] - 3, 0, -2):
        y[i] = x[x.shape[0] - 1 - i] * x[i + 1]
    return y


def stencil(x):
    y = x.copy()
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            y[i, j] = 0.25 * (x[i, j - 1] + x[i, j + 1] + x[i - 1, j] + x[i + 1, j])
    return y


def steps_of_a_stencil(x):
    a, b = x.copy(), x.copy()
    for _ in range(9):
        for i in range(1, x.shape[0] - 1):
            for j in range(1, x.shape[1] - 1):
                b[i, j] = 0.25 * (a[i, j - 1] + a[i, j + 1] + a[i - 1, j] + a[i + 1, j])
        for i in range(1, x.shape[0] - 1):
            for j in range(1, x.shape[1] - 1):
                a[i, j] = b[i, j]
    return a


def transposed(x):
    y = np.zeros((x.shape[1], x.shape[0]))
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[j, i] = x[i, j] * x[0, j]
    return y


def rows_below(x):
    y = x.copy()
    for i in range(1, x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] + 0.5 * y[i - 1, j]
    return y


def two_statements(x):
    y, z = x.copy(), x.copy()
    for i in range(x.shape[0]):
        y[i] = np.sin(x[i])
        z[i] = y[i] * y[i] + z[i]
        y[i] = z[i] - 1.0
    return y * z


def triangle(x):
    y = x.copy()
    for i in range(x.shape[0]):
        for j in range(i):
            y[i, j] = 2.0 * x[i, j] + x[j, i]
    return y


def product(x):
    y = np.zeros((x.shape[0], x.shape[0]))
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            for k in range(x.shape[1]):
                y[i, j] += x[i, k] * x[j, k]
    return y


def convolution(x):
    y = np.zeros(x.shape[0] - 4)
    for i in range(y.shape[0]):
        total = 0.0
        for k in range(4):
            total = total + x[i + k] * x[k]
        y[i] = total
    return y


def blocks_of_rows(x):
    y = x.copy()
    for i in range(x.shape[0]):
        y[i, 1:] = 2.0 * x[i, 1:] - y[i, :-1] * i
    return y


def read_ahead(x):
    y = x.copy()
    for i in range(x.shape[0] - 1):
        y[i] = y[i] + y[i + 1]
    return y


def read_behind(x):
    """Backwards, by steps, and what is read is written by later iterations only."""
    y = x.copy()
    for i in range(x.shape[0] - 1, 2, -2):
        y[i] = y[i - 1] * y[i] + y[i - 2]
    return y


def shrinking(x):
    """As the values of an option: each time one element less."""
    y = x.copy()
    for t in range(x.shape[0] - 1, 0, -1):
        for i in range(t):
            y[i] = max(0.5 * y[i + 1] + 0.4 * y[i], x[i])
    return y


def moved_up(x):
    """Rows that are written later are read by a loop inside."""
    y = x.copy()
    for j in range(x.shape[1]):
        for i in range(x.shape[0] - 1):
            y[i, j] = y[i + 1, j] - y[i, j]
    return y


@pytest.mark.parametrize("fun, x, count", [
    (read_ahead, LINE, 0), (read_behind, LINE, 0), (shrinking, LINE, 1), (moved_up, GRID, 0),
    (line, LINE, 0), (line, LINE.astype(np.float32), 0), (line, LINE + 1j, 0), (reversed_line, LINE, 0), (stencil, GRID, 0),
    (steps_of_a_stencil, GRID, 1), (transposed, GRID, 0), (rows_below, GRID, 1), (two_statements, LINE, 0), (triangle, GRID, 1),
    (product, GRID, 2), (convolution, LINE, 0), (blocks_of_rows, GRID, 0)])
def test_independent_iterations_are_arrays(fun, x, count):
    assert left(fun, x) == count


def recurrence(x):
    y = x.copy()
    for i in range(1, x.shape[0]):
        y[i] = y[i] + y[i - 1]
    return y


def written_before(x):
    """What a later iteration writes is read after it was written to itself."""
    y = x.copy()
    for i in range(x.shape[0] - 1):
        y[i + 1] = x[i]
        y[i] = y[i] + y[i + 1] * y[i]
    return y


def backwards(x):
    y = x.copy()
    for i in range(x.shape[0] - 2, -1, -1):
        y[i] = y[i] + y[i + 1]
    return y


def one_element_for_all(x):
    y = x.copy()
    for i in range(1, x.shape[0]):
        y[i] = x[i] * y[0]
        y[0] = x[i]
    return y


def windows(x):
    y = x.copy()
    for i in range(x.shape[0] - 2):
        y[i:i + 2] = x[i:i + 2] * 2.0 + i
    return y


def number(x):
    total = 0.0
    for i in range(x.shape[0]):
        total = total + x[i]
    return np.array(total)


def diagonal(x):
    y = x.copy()
    for i in range(x.shape[0]):
        y[i, i] = 2.0 * x[i, i]
    return y


def neighbours_in_both(x):
    y, z = x.copy(), x.copy()
    for i in range(1, x.shape[0]):
        y[i] = 0.5 * z[i - 1]
        z[i] = 0.5 * y[i]
    return y + z


@pytest.mark.parametrize("fun, x", [(recurrence, LINE), (written_before, LINE), (backwards, LINE), (one_element_for_all, LINE), (windows, LINE), (number, LINE),
                                    (diagonal, GRID), (neighbours_in_both, LINE)])
def test_what_depends_on_other_iterations_stays_a_loop(fun, x):
    assert left(fun, x) == 1


def test_the_gradient_of_element_loops_has_no_loops():
    program = bw.value_and_grad(lambda x: np.sum(stencil(x) ** 2)).lower(GRID)
    assert not loops_in(program.graph) and not loops_in(program.adjoint)
    value, gradient = bw.value_and_grad(lambda x: np.sum(stencil(x) ** 2))(GRID)

    def whole(x):
        y = x.copy()
        y[1:-1, 1:-1] = 0.25 * (x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1])
        return np.sum(y ** 2)
    expected = bw.value_and_grad(whole)(GRID)
    np.testing.assert_allclose(value, expected[0], rtol=1e-14)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-13)


def test_derivatives_of_what_is_left(rng):
    for fun, x in ((product, GRID), (triangle, GRID), (rows_below, GRID), (two_statements, LINE)):
        bw.check_grads(lambda x, fun=fun: np.sum(np.sin(fun(x))), (x,), order=1)


def test_the_same_bits_on_every_target():
    require_agreement(on_each(lambda: [bw.jit(fun)(x) for fun, x in ((stencil, GRID), (two_statements, LINE), (product, GRID))]), "arrays")


def test_no_iteration_at_all():
    def none(x, n):
        y = x.copy()
        for i in range(n, n):
            y[i] = x[i] * 2.0
        return y
    np.testing.assert_array_equal(bw.jit(none, static_argnums=1)(LINE, N), LINE)


# ----- random nests
def random_nest(rng):
    """Loops i and j over statements p[i + a, j + b] = f(elements near), with places that are the same ones, apart or not."""
    dtype = F64 if rng.random() < 0.8 else I64
    outer = Index(3, int(rng.integers(3, 8)))
    bounds = [(3, 7), (outer.extent(), 8), (3, outer.extent())][rng.integers(3)]
    inner = Index(*bounds)
    by = [int(rng.choice([1, -1, 2])) if isinstance(bounds[0], int) and isinstance(bounds[1], int) else 1, int(rng.choice([1, -1]))]
    arrays = [input_value(tensor(dtype, (12, 12)), name) for name in "abx"]
    shifts = [tuple(int(k) for k in rng.integers(-1, 2, 2)) for _ in range(2)]

    def place(k):
        if rng.random() < 0.7:
            row, column = shifts[k % 2]
        else:
            row, column = (int(step) for step in rng.integers(-3, 4, 2))
        if rng.random() < 0.1:
            return (outer.extent() + row, int(rng.integers(0, 2)))
        first, second = (outer, inner) if k < 2 or rng.random() < 0.7 else (inner, outer)
        return (first.extent() + row, second.extent() + column)

    state = list(arrays)
    with Record() as record:
        for _ in range(rng.integers(1, 4)):
            k = int(rng.integers(2))
            value = None
            for which in rng.choice([0, 1, 2, 2], rng.integers(1, 4)):
                read = ops.slice(state[which], starts=place(which % 2 if which < 2 else 2), sizes=(1, 1), steps=(1, 1))
                value = read if value is None else ops.subtract(value, read)
            if rng.random() < 0.3:
                number = ops.cast(ops.index_value(extent=inner.extent() * 2 + 1), dtype=dtype)
                value = ops.add(value, ops.reshape(number, shape=(1, 1)))
            where = (outer.extent() + shifts[k][0], inner.extent() + shifts[k][1])
            update = ops.slice_update if rng.random() < 0.8 else ops.slice_add
            state[k] = update(state[k], value, starts=where, steps=(1, 1))
    body = cut("inner", arrays, record.values, state[:2], index=inner)
    middle = [input_value(array.type, array.name) for array in arrays]
    with Record() as record:
        made = ops.loop(*middle, lo=inner.lo, hi=inner.hi, step=by[0], carried=2, body=body)
        outputs = [item(made, index=k) for k in range(2)]
    whole = cut("outer", middle, record.values, outputs, index=outer)
    inputs = [input_value(array.type, array.name) for array in arrays]
    with Record() as record:
        made = ops.loop(*inputs, lo=outer.lo, hi=outer.hi, step=by[1], carried=2, body=whole)
        outputs = [item(made, index=k) for k in range(2)]
    return cut("random", inputs, record.values, outputs)


def test_random_nests_compute_the_same():
    left_over = [0, 0, 0]
    for seed in range(200):
        rng = np.random.default_rng(seed)
        graph = random_nest(rng)
        arguments = [np.asarray(rng.integers(-9, 9, (12, 12)), graph.inputs[0].dtype.numpy) for _ in range(3)]
        expected = interpret(graph, arguments)
        made = vectorize_loops(graph).graph
        verify(made)
        left_over[loops_in(made)] += 1
        for found in (interpret(made, arguments), *([run_compiled(graph, arguments)] if seed < 20 else [])):
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other, str(seed))
    assert min(left_over) > 5


def test_parts_without_elements():
    """Their cotangents are added to no element, in a loop that writes to others."""
    def program(a, b):
        a = a.copy()
        for i in range(len(a)):
            a[i] -= b[i] * np.sum(a[:0]) + np.sum(b[3:1])
        return np.sum(a * b)

    a, b = np.arange(12.0), np.linspace(1.0, 2.0, 12)
    assert bw.jit(program)(a, b) == program(a, b)
    found = bw.grad(program, argnums=(0, 1))(a, b)
    np.testing.assert_array_equal(found, (b, a))


# ----- elements that data choose
PLACES = np.array([3, 0, 3, 19, -1, 7, 3, 0, 5, 5])
WHOLE = np.round(np.sin(np.arange(10.0)) * 8)          # sums of these have no rounding error


def looked_up(x, place):
    y = np.zeros(place.shape[0])
    for k in range(place.shape[0]):
        y[k] = x[place[k]] * k + x[int(x[k])]
    return y


def rows_looked_up(x, place):
    y = np.zeros((place.shape[0], x.shape[1]))
    for k in range(place.shape[0]):
        y[k] = 2.0 * x[place[k] % 12]
    return y


def histogram(x, place):
    h = np.zeros(20)
    for k in range(place.shape[0]):
        h[place[k]] += x[k] * x[k]
    return h


def edges(x, place):
    h = np.ones(20)
    for k in range(place.shape[0]):
        force, one = x[k] * 2.0, place[k]
        h[one] = force + h[one]
        h[place[place.shape[0] - 1 - k]] -= force
    return h


def sums_of_rows(x, place):
    h = np.zeros((20, x.shape[1]))
    for k in range(place.shape[0]):
        h[place[k]] += x[k]
    return h


def last_one(x, place):
    h = np.zeros(20)
    for k in range(place.shape[0]):
        h[place[k]] = x[k]
    return h


def first_one(x, place):
    h = np.zeros(20)
    for k in range(place.shape[0] - 1, -1, -1):
        h[place[k]] = x[k]
    return h


def read_again(x, place):
    h = np.zeros(20)
    for k in range(place.shape[0]):
        h[place[k]] = h[place[k]] * 0.5 + x[k]
    return h


def read_elsewhere(x, place):
    h = np.zeros(20)
    for k in range(place.shape[0]):
        h[place[k]] += x[k] + h[0]
    return h


@pytest.mark.parametrize(("fun", "x"), [(looked_up, LINE), (rows_looked_up, GRID), (histogram, WHOLE), (edges, WHOLE), (sums_of_rows, GRID),
                                        (last_one, WHOLE), (first_one, WHOLE)])
def test_elements_that_data_choose(fun, x):
    assert left(fun, x, PLACES) == 0
    bw.check_grads(lambda x: fun(x, PLACES), (x + 0.01,), order=2, modes=("rev", "fwd"))


def test_data_may_choose_no_element():
    for fun, wrong in [(looked_up, 20), (histogram, -21), (last_one, 20)]:
        with pytest.raises(IndexError, match=f"index {wrong} is out of bounds for axis"):
            bw.jit(fun)(LINE, np.where(PLACES == 7, wrong, PLACES))


@pytest.mark.parametrize("fun", [read_again, read_elsewhere])
def test_what_depends_on_the_order_stays_a_loop(fun):
    assert left(fun, WHOLE, PLACES) == 1
