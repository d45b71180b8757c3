"""Elements that the next iteration reads are carried: where they may be, with the same bits, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.frontend import trace
from bwcompiler.ir.extent import Index
from bwcompiler.ir.graph import cut
from bwcompiler.ir.op import Record, input_value, item
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.ir.types import C128, F32, F64, I64, tensor
from bwcompiler.passes.loops.carried.carry_elements import carry_elements
from tests.support.graph_strategies import run_compiled
from tests.support.loop_passes import rewritten
from tests.support.targets import on_each, require_agreement

N = 40
LINE = np.linspace(0.5, 2.0, N)
GRID = np.sin(np.arange(108.0)).reshape(9, 12)


def loops_of(graph):
    """The loops of a graph and of their bodies, each after the pass, outermost first."""
    found = []
    for value in carry_elements(graph).body:
        if value.op is ops.loop:
            found += [value, *loops_of(value.attrs["body"])]
    return found


def carried(fun, *args):
    """How many elements the innermost loop carries; the function gives NumPy's bits."""
    traced, _ = rewritten(carry_elements, fun, *args)
    last = loops_of(traced)[-1]
    before = [value for value in loops_before(traced) if value.attrs["body"].index is last.attrs["body"].index]
    return last.attrs["carried"] - before[0].attrs["carried"]


def loops_before(graph):
    found = []
    for value in graph.body:
        if value.op is ops.loop:
            found += [value, *loops_before(value.attrs["body"])]
    return found


def first_order(x):
    y = x.copy()
    for t in range(1, x.shape[0]):
        y[t] = 0.5 * y[t - 1] + x[t]
    return y


def second_order(x):
    y = x.copy()
    for t in range(2, x.shape[0]):
        y[t] = 0.5 * y[t - 1] - 0.25 * y[t - 2] + x[t]
    return y


def backwards(x):
    y = x.copy()
    for t in range(x.shape[0] - 2, -1, -1):
        y[t] = y[t] - 0.5 * y[t + 1]
    return y


def sweep(x):
    y = x.copy()
    for i in range(1, x.shape[0]):
        for j in range(1, x.shape[1]):
            y[i, j] = (y[i, j] + y[i - 1, j] + y[i, j - 1]) / 3.0
    return y


def triangle(x):
    y = x.copy()
    for i in range(2, x.shape[0]):
        for j in range(1, i):
            y[i, j] = y[i, j] + 0.5 * y[i, j - 1]
    return y


def one_place(x):
    y = np.zeros((3,))
    for t in range(x.shape[0]):
        y[1] += x[t] * x[t]
    return y


def added_to_its_neighbour(x):
    y = x.copy()
    for t in range(x.shape[0] - 1):
        y[t] = y[t] * 0.5
        y[t + 1] += 0.25 * y[t]
    return y


def every_second(x):
    y = x.copy()
    for t in range(2, x.shape[0], 2):
        y[t] = y[t] - 0.5 * y[t - 2]
    return y


def two_arrays(x):
    y, z = x.copy(), 2.0 * x
    for t in range(1, x.shape[0]):
        y[t] = 0.5 * y[t - 1] + 0.1 * z[t - 1]
        z[t] = 0.25 * z[t - 1] - y[t]
    return y + z


@pytest.mark.parametrize("fun, x, count", [
    (first_order, LINE, 1), (first_order, LINE.astype(np.float32), 1), (first_order, LINE + 1j * LINE[::-1].copy(), 1), (second_order, LINE, 2),
    (backwards, LINE, 1), (sweep, GRID, 1), (triangle, GRID, 1), (one_place, LINE, 1), (added_to_its_neighbour, LINE, 1),
    (every_second, LINE, 1), (two_arrays, LINE, 2), (first_order, np.array([-0.0, -0.0, np.nan, 1.0] * 10), 1)])
def test_what_the_next_iteration_reads_is_carried(fun, x, count):
    assert carried(fun, x) == count


def without_the_neighbour(x):
    y = x.copy()
    for t in range(2, x.shape[0]):
        y[t] = 0.5 * y[t - 2] + x[t]
    return y


def read_ahead(x):
    y = x.copy()
    for t in range(x.shape[0] - 1):
        y[t] = 0.5 * y[t + 1] + x[t]
    return y


def written_as_a_row(x):
    y = x.copy()
    for t in range(1, x.shape[0] - 2):
        y[t] = 0.5 * y[t - 1]
        y[t - 1:t + 2] = 2.0 * y[t - 1:t + 2]
    return y


def rows(x):
    y = x.copy()
    for t in range(1, x.shape[0]):
        y[t] = 0.5 * y[t - 1] + x[t]
    return y


def outside_without_iterations(x):
    y = x.copy()
    for i in range(x.shape[0]):
        for j in range(i, x.shape[0]):
            y[i, j] = y[i, j] + 0.5 * y[i, j - i]
    return y


@pytest.mark.parametrize("fun, x", [(without_the_neighbour, LINE), (read_ahead, LINE), (written_as_a_row, LINE), (rows, GRID),
                                    (outside_without_iterations, GRID)])
def test_what_is_not_known_is_read(fun, x):
    assert carried(fun, x) == 0


def test_nothing_changes_where_nothing_is_carried():
    graph = trace(rows, (GRID,)).graph
    assert carry_elements(graph) is graph
    assert carry_elements(trace(lambda x: x + 1.0, (LINE,)).graph).body


def test_the_cotangent_of_a_recurrence_is_carried():
    loops = [loop for fun in (first_order, sweep) for loop in loops_of(
        bw.value_and_grad(lambda x, fun=fun: np.sum(fun(x) ** 2)).lower(LINE if fun is first_order else GRID).adjoint)]
    innermost = [loop for loop in loops if not any(value.op is ops.loop for value in loop.attrs["body"].body)]
    assert innermost and all(any(type_.shape in ((1,), (1, 1)) for type_ in loop.type.items) for loop in innermost)


def test_gradients_are_the_same_on_every_target():
    found = on_each(lambda: [array for fun, x in ((second_order, LINE), (sweep, GRID))
                             for array in bw.value_and_grad(lambda x, fun=fun: np.sum(fun(x) ** 2))(x)])
    require_agreement(found, "carried elements")


def test_arguments_stay_as_they_are():
    x = LINE.copy()
    bw.jit(first_order)(x)
    np.testing.assert_array_equal(x, LINE)


# ----- random bodies
def random_loop(rng):
    """A loop over statements a[i + p] = f(elements of two arrays near i), a[i + p] += ..., rows among them now and then."""
    dtype = [F64, F64, F32, I64, C128][rng.integers(5)]
    step = int(rng.choice([1, 1, 1, -1, -1, 2, -2]))
    index = Index(3, 3 + int(rng.integers(0, 12)))
    arrays = [input_value(tensor(dtype, (20,)), name) for name in "ab"]
    state = list(arrays)

    def place():
        return (index.extent() + int(rng.integers(-2, 3)) if rng.random() < 0.9 else int(rng.integers(0, 19)),)

    with Record() as record:
        for _ in range(rng.integers(1, 5)):
            k = int(rng.integers(2))
            size = 1 if rng.random() < 0.9 else 2
            read = [ops.slice(state[rng.integers(2)], starts=place(), sizes=(size,), steps=(1,)) for _ in range(rng.integers(1, 4))]
            value = read[0]
            for one in read[1:]:
                value = ops.subtract(one, value)
            update = ops.slice_update if rng.random() < 0.6 else ops.slice_add
            state[k] = update(state[k], value, starts=place(), steps=(1,))
    body = cut("body", arrays, record.values, state, index=index)
    inputs = [input_value(array.type, array.name) for array in arrays]
    with Record() as record:
        made = ops.loop(*inputs, lo=index.lo, hi=index.hi, step=step, carried=2, body=body)
        outputs = [item(made, index=k) for k in range(2)]
    return cut("random", inputs, record.values, outputs)


def test_random_bodies_compute_the_same():
    carrying = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        graph = random_loop(rng)
        type_ = graph.inputs[0].dtype
        arguments = [rng.integers(-9, 9, 20).astype(type_.numpy) / (1 if type_ is I64 else 4) for _ in range(2)]
        arguments = [np.asarray(argument, type_.numpy) for argument in arguments]
        expected = interpret(graph, arguments)
        made = carry_elements(graph)
        verify(made)
        carrying += made is not graph
        for found in (interpret(made, arguments), *([run_compiled(graph, arguments)] if seed < 25 else [])):
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other, str(seed))
    assert carrying > 30
