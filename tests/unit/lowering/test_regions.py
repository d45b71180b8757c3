"""Loops and choices natively: the function that runs their bodies, and what these do with memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.api.programs.executables import compile_graph
from bwcompiler.compiler.pipeline import lower
from bwcompiler.errors import CompileError, ShapeError
from bwcompiler.ir.extent import Extent, Index
from bwcompiler.ir.graph import Graph, cut
from bwcompiler.ir.op import Record, Value, input_value, item
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.types import BOOL, C128, F32, F64, I64, TensorType, tensor
from bwcompiler.lowering.steps import LoweredBody
from tests.support.graph_strategies import run_compiled
from tests.unit.ir.region_graphs import cond_graph, nested_loop, while_graph

Step = Callable[..., tuple[Value, ...]]
ROW, MATRIX, NUMBER = tensor(F64, (7,)), tensor(F64, (6, 7)), tensor(F64)


def region(name: str, types: list[TensorType], step: Step, index: Index | None = None) -> Graph:
    inputs = [input_value(type_, f"{name}{k}") for k, type_ in enumerate(types)]
    with Record() as record:
        outputs = step(*inputs) if index is None else step(index.extent(), *inputs)
    return cut(name, inputs, record.values, outputs, index=index)


def looped(types: list[TensorType], step: Step, hi: Extent = 5, lo: Extent = 0, by: int = 1, read: list[int] | None = None) -> Graph:
    """The graph of one loop that carries as many values as step gives; read: which of its results are read."""
    index = Index(lo, hi)
    body = region("body", types, step, index)
    carried = len(body.outputs)
    inputs = [input_value(type_, f"x{k}") for k, type_ in enumerate(types)]
    with Record() as record:
        made = ops.loop(*inputs, lo=lo, hi=hi, step=by, carried=carried, body=body)
        outputs = [item(made, index=k) for k in (range(carried) if read is None else read)]
    return cut("looped", inputs, record.values, outputs)


def check(graph: Graph, *arguments: object) -> None:
    """Native code computes what the graph means, and leaves the arguments as they are."""
    arrays = [np.array(argument) for argument in arguments]
    kept = [array.copy() for array in arrays]
    for found, expected in zip(run_compiled(graph, arrays), interpret(graph, kept), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13)
        assert np.asarray(found).dtype == expected.dtype
    for array, before in zip(arrays, kept, strict=True):
        np.testing.assert_array_equal(array, before)


def rolled(x: Value) -> Value:
    """Reads every element until the end, so that the next state needs a place of its own."""
    size = x.shape[0]
    left = ops.slice(x, starts=(0,), sizes=(size - 1,), steps=(1,))
    right = ops.slice(x, starts=(size - 1,), sizes=(1,), steps=(1,))
    return ops.concatenate(right, left, axis=0)


def written(x: Value, i: Extent, value: Value) -> Value:
    return ops.slice_update(x, value, starts=(i,), steps=(1,))


def element(x: Value, i: Extent) -> Value:
    return ops.slice(x, starts=(i,), sizes=(1,), steps=(1,))


def part(x: Value, starts: tuple[Extent, ...], sizes: tuple[Extent, ...]) -> Value:
    return ops.slice(x, starts=starts, sizes=sizes, steps=(1,) * len(starts))


def put(x: Value, value: Value, *starts: Extent) -> tuple[Value]:
    return (ops.slice_update(x, value, starts=starts, steps=(1,) * len(starts)),)


def substitution(i: Extent, x: Value, a: Value, b: Value) -> tuple[Value]:
    """x[i] = (b[i] - a[i, :i] @ x[:i]) / a[i, i]."""
    product = ops.reshape(part(a, (i, 0), (1, i)), shape=(i,)) * part(x, (0,), (i,))
    known = ops.reshape(ops.sum(product, axes=(0,)), shape=(1,))
    return put(x, (part(b, (i,), (1,)) - known) / ops.reshape(part(a, (i, i), (1, 1)), shape=(1,)), i)


X = np.linspace(1, 2, 7)
LARGE, L = tensor(F64, (60, 70)), np.linspace(1, 2, 4200).reshape(60, 70)
M = np.random.default_rng(3).uniform(0.5, 1, (6, 7))
EXTENTS: dict[str, tuple[Graph, tuple[object, ...]]] = {
    "elementwise": (looped([ROW], lambda i, x: put(x, ops.exp(part(x, (1,), (i,))), 0), hi=6), (X,)),
    "two axes": (looped([MATRIX], lambda i, m: put(m, part(m, (0, 0), (i, i)) + part(m, (0, 1), (i, i)), 0, 0)), (M,)),
    "broadcast": (looped([MATRIX], lambda i, m: put(m, ops.broadcast(ops.reshape(part(m, (i, 0), (1, i)), shape=(i,)), shape=(i, i),
                                                                    axes=(1,)), 0, 0)), (M,)),
    "sum": (looped([ROW, NUMBER], lambda i, x, n: (x, n + ops.sum(part(x, (0,), (i,)), axes=(0,))), hi=6), (X, 1.0)),
    "sum of single precision": (looped([tensor(F32, (70,)), tensor(F32)], lambda i, x, n: (
        x, n + ops.sum(part(x, (0,), (i,)), axes=(0,))), hi=69), (np.linspace(0, 1, 70, dtype=np.float32), np.float32(1))),
    "long sum": (looped([tensor(F64, (5000,)), NUMBER], lambda i, x, n: (
        x, n + ops.sum(part(x, (0,), (i,)), axes=(0,))), hi=4999, by=997), (np.linspace(0, 1, 5000), 1.0)),
    "maximum": (looped([ROW, NUMBER], lambda i, x, n: (x, n + ops.max(part(x, (0,), (i + 1,)), axes=(0,)))), (X, 1.0)),
    "sums of rows": (looped([MATRIX], lambda i, m: put(m, ops.reshape(ops.sum(part(m, (0, 0), (i, i)), axes=(1,)), shape=(i, 1)), 0, 6)), (M,)),
    "sums of columns": (looped([MATRIX], lambda i, m: put(
        m, ops.reshape(ops.sum(part(m, (0, 0), (i, i)), axes=(0,)), shape=(1, i)), 5, 0)), (M,)),
    "cumulative sum": (looped([ROW], lambda i, x: put(x, ops.cumsum(part(x, (0,), (i,)), axis=0, reverse=False), 0), hi=6), (X,)),
    "flip": (looped([ROW], lambda i, x: put(x, ops.flip(part(x, (0,), (i,)), axes=(0,)), 0), hi=6), (X,)),
    "matrix and vector": (looped([MATRIX, ROW], lambda i, m, x: (m, *put(x, ops.reshape(ops.matmul(
        part(m, (0, 0), (i, i)), ops.reshape(part(x, (0,), (i,)), shape=(i, 1))), shape=(i,)), 0))), (M, X)),
    "matrix product": (looped([MATRIX], lambda i, m: put(m, ops.matmul(part(m, (0, 0), (i, i)), part(m, (0, 1), (i, i))) * 0.1, 0, 0)), (M,)),
    "gather": (looped([ROW, tensor(I64, (7,))], lambda i, x, k: (*put(x, ops.gather(
        x, ops.normalize_index(part(k, (0,), (i,)), extent=7), axes=(0,)), 0), k), hi=6), (X, np.array([3, -1, 0, 6, -7, 2, 2]))),
    "pieces": (looped([ROW], lambda i, x: put(x, ops.concatenate(part(x, (i,), (1,)), part(x, (0,), (i,)), axis=0), 0), hi=6), (X,)),
    "substitution": (looped([ROW, tensor(F64, (7, 7)), ROW], substitution, hi=6), (np.zeros(7), np.eye(7) + np.tril(np.ones((7, 7))), X)),
}
LOOPS: dict[str, tuple[Graph, tuple[object, ...]]] = {
    "in place": (looped([ROW], lambda i, x: (x * 0.5 + 1.0,)), (X,)),
    "swapped, an odd number of times": (looped([ROW], lambda i, x: (rolled(x) * 1.5,), hi=4), (X,)),
    "swapped, an even number of times": (looped([ROW], lambda i, x: (rolled(x) * 1.5,), hi=5), (X,)),
    "no iteration": (looped([ROW], lambda i, x: (x * 2.0,), hi=-1), (X,)),
    "one iteration": (looped([ROW], lambda i, x: (rolled(x),), hi=0), (X,)),
    "by steps": (looped([tensor(I64)], lambda i, x: (x * ops.full(value=3, shape=(), dtype=I64) + ops.index_value(extent=i),),
                        hi=11, lo=2, by=3), (1,)),
    "backwards": (looped([tensor(I64)], lambda i, x: (x * ops.full(value=3, shape=(), dtype=I64) + ops.index_value(extent=i),),
                         hi=11, lo=2, by=-3), (1,)),
    "states change places": (looped([ROW, ROW], lambda i, x, y: (y, x * 2.0)), (X, X + 1)),
    "a state is kept": (looped([ROW, ROW], lambda i, x, y: (x, x + y)), (X, X + 1)),
    "an invariant": (looped([ROW, ROW], lambda i, x, y: (x * y,)), (X, X + 1)),
    "a result that nothing reads": (looped([ROW, NUMBER], lambda i, x, n: (x * 2.0, n + 1.0), read=[1]), (X, 0.0)),
    "a result that is read twice": (looped([ROW], lambda i, x: (x * 2.0,), read=[0, 0]), (X,)),
    "stores into a state": (looped([ROW], lambda i, x: (written(x, i + 1, element(x, i) * 2.0),)), (X,)),
    "stores what it read before": (looped([ROW], lambda i, x: (written(x, i, ops.exp(element(x, i + 1))),)), (X,)),
    "reads a row": (looped([ROW, MATRIX], lambda i, x, m: (
        x + ops.reshape(ops.slice(m, starts=(i, 0), sizes=(1, 7), steps=(1, 1)), shape=(7,)),)), (X, np.arange(42.0).reshape(6, 7))),
    "a matrix product": (looped([tensor(F64, (40, 40))], lambda i, x: (ops.matmul(x, x),), hi=2), (np.full((40, 40), 0.02),)),
    "counts": (nested_loop(), (3,)),
    "while": (while_graph(), (1.0, 100.0)),
    "while never": (while_graph(), (100.0, 1.0)),
    "then": (cond_graph(), (1.0, 2.0)),
    "else": (cond_graph(), (2.0, 1.0)),
}


@pytest.mark.parametrize("name", LOOPS)
def test_native(name):
    graph, arguments = LOOPS[name]
    check(graph, *arguments)


@pytest.mark.parametrize("name", EXTENTS)
def test_extents_that_move_with_the_loop(name):
    graph, arguments = EXTENTS[name]
    check(graph, *arguments)


def test_what_is_not_compiled_is_said():
    sorted_part = looped([ROW], lambda i, x: put(x, ops.sort(part(x, (0,), (i,)), axis=0, kind=0), 0), hi=6)
    with pytest.raises(CompileError, match=r"sort of f64\[i\], whose shape moves with the index of a loop, is not compiled yet"):
        compile_graph(sorted_part)
    with pytest.raises(ShapeError, match=r"cannot reshape array of shape \(3, i\) into shape \(i, 3\)"):     # of which elements depends on i
        looped([MATRIX], lambda i, m: put(m, ops.reshape(part(m, (0, 0), (3, i)), shape=(i, 3)) * 2.0, 0, 0))


def test_the_operand_of_a_loop_may_be_an_invariant_too():
    index = Index(0, 3)
    body = region("body", [ROW, ROW], lambda i, x, y: (x + y,), index)
    x = input_value(ROW, "x")
    with Record() as record:
        start = ops.exp(x)
        made = item(ops.loop(start, start, lo=0, hi=3, step=1, carried=1, body=body), index=0)
        out = made + start
    check(cut("g", [x], record.values, [out]), X)


def test_long_bodies_are_tables_too():
    def step(i: Extent, x: Value) -> tuple[Value]:
        for _ in range(60):
            x = ops.cumsum(x * 0.5, axis=0, reverse=False)
        return (written(x, i, element(x, i) * 2.0),)

    graph = looped([ROW], step, hi=3)
    assert ".table = " in lower(graph).program.text
    check(graph, X)


def test_code_does_not_depend_on_the_number_of_iterations():
    short, long = [lower(looped([ROW], lambda i, x: (rolled(x) * 0.5,), hi=hi)).program.text for hi in (10, 10_000)]
    assert len(long.splitlines()) <= len(short.splitlines()) + 20           # a look for signals


def test_a_check_that_fails_inside_of_a_loop_ends_the_program():
    def step(i: Extent, x: Value, k: Value) -> tuple[Value, ...]:
        where = ops.normalize_index(k, extent=7)
        return (ops.gather(x, where, axes=(0,)), k + ops.full(value=1, shape=(7,), dtype=I64))

    graph = looped([ROW, tensor(I64, (7,))], step, hi=9)
    compiled = compile_graph(graph)
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis with size 7"):
        compiled.executable.run([X, np.zeros(7, np.int64)], compiled.raise_error, [])


def test_a_store_into_a_state_costs_its_elements():
    """No copy of the array per iteration: the kernel writes one element."""
    graph = looped([tensor(F64, (1000,))], lambda i, x: (written(x, i + 2, element(x, i) * 0.5),), hi=997)
    (step,) = [step for step in lower(graph).steps if step.bodies]
    body = step.bodies[0]
    assert body.swapped == () and not body.plan.copies and body.plan.arena_bytes <= 64
    check(graph, np.tile([1.0, -1.0], 500))


def halved(i: Extent, x: Value, *more: Value) -> tuple[Value, ...]:
    """Half of it, with sums added to a row and to a column, which are known when all of it is."""
    half = x * 0.5
    row, column = ops.sum(half, axes=(0,)), ops.sum(half, axes=(1,))
    found = ops.slice_add(half, ops.reshape(row, shape=(1, 70)), starts=(i, 0), steps=(1, 1))
    return (ops.slice_add(found, ops.reshape(column, shape=(60, 1)), starts=(0, i), steps=(1, 1)), *more)


UPDATED: dict[str, tuple[Graph, tuple[object, ...], int]] = {          # the last: how many arrays may be copied, or have a second place
    "all of it, then parts": (looped([LARGE], halved), (L,), 0),
    "beside another": (looped([LARGE, LARGE], lambda i, x, y: halved(i, x * y, y * 1.5)), (L, L + 1), 0),
    "it is read by the other": (looped([LARGE, LARGE], lambda i, x, y: halved(i, x, y + x)), (L, L + 1), 1),
    "other elements are read": (looped([LARGE], lambda i, x: halved(i, ops.flip(x, axes=(0,)))), (L,), 2),
    "two change places": (looped([LARGE, LARGE], lambda i, x, y: (*halved(i, y), *halved(i, x))), (L, L + 1), 4),
}


@pytest.mark.parametrize("name", UPDATED)
def test_states_that_are_made_anew_and_updated_are_made_where_they_lie(name):
    """No second place, and no copy of all that was made, because of the elements that are written afterwards."""
    graph, arguments, copies = UPDATED[name]
    check(graph, *arguments)
    (step,) = [step for step in lower(graph).steps if step.bodies]
    body = step.bodies[0]
    assert _copied_in(body) + len(body.swapped) <= copies


def test_choices_of_predicates_that_are_computed():
    then, other = [region(name, [ROW], lambda x, f=f: (x * f,)) for name, f in (("then", 2.0), ("other", 3.0))]
    x = input_value(ROW, "x")
    with Record() as record:
        low = ops.less(ops.sum(x, axes=(0,)), ops.full(value=5.0, shape=(), dtype=F64))
        out = item(ops.cond(low, x, then_branch=then, else_branch=other), index=0)
    graph = cut("g", [x], record.values, [out])
    assert low.type == tensor(BOOL)
    check(graph, X)
    check(graph, X / 10)


def chosen(i: Extent, given: list[Value], then: Step, other: Step) -> tuple[Value, ...]:
    """What a choice in iteration i makes of what is given, the first of which decides."""
    types = [value.type for value in given]
    branches = [region(name, types, step) for name, step in (("then", then), ("other", other))]
    low = ops.less(ops.reshape(element(given[0], i), shape=()), ops.full(value=1.5, shape=(), dtype=F64))
    made = ops.cond(low, *given, then_branch=branches[0], else_branch=branches[1])
    return tuple([item(made, index=k) for k in range(len(branches[0].outputs))])


def same(*states: Value) -> tuple[Value, ...]:
    return states


def changed(x: Value, i: Extent, value: Value) -> Value:
    """With a function that is too dear to be computed where it does not count."""
    return written(x, i, ops.sin(value))


CHOICES: dict[str, tuple[Graph, tuple[object, ...], int]] = {          # the last: how many arrays may be copied, or have a second place
    "both update": (looped([ROW], lambda i, x: chosen(
        i, [x], lambda a: (changed(a, i + 1, element(a, i) * 3.0),), lambda a: (changed(a, i, element(a, i + 1) * 0.5),))), (X,), 0),
    "one updates": (looped([ROW], lambda i, x: chosen(
        i, [x], lambda a: (changed(a, i + 1, element(a, i) * 3.0),), same)), (X,), 0),
    "two arrays": (looped([ROW, ROW], lambda i, x, y: chosen(
        i, [x, y], lambda a, b: (changed(a, i + 1, element(b, i)), changed(b, i, element(a, i + 1))),
        lambda a, b: (a, changed(b, i, element(a, i))))), (X, X + 1), 0),
    "the results change places": (looped([ROW, ROW], lambda i, x, y: chosen(
        i, [x, y], lambda a, b: (changed(b, i, element(a, i)), changed(a, i, element(b, i))),
        lambda a, b: (b, changed(a, i, element(a, i) * 0.5)))), (X, X + 1), 4),
    "one makes another array": (looped([ROW], lambda i, x: chosen(
        i, [x], lambda a: (rolled(a) * 0.75,), lambda a: (changed(a, i, element(a, i) * 0.5),))), (X,), 1),
    "one updates what the other does not": (looped([ROW, ROW], lambda i, x, y: (chosen(
        i, [x, y], lambda a, b: (changed(a, i, element(b, i)),), lambda a, b: (changed(b, i, element(a, i)),))[0], y)), (X, X + 1), 1),
    "the array is read later": (looped([ROW, ROW], lambda i, x, y: (y + x, chosen(
        i, [x], lambda a: (changed(a, i + 1, element(a, i) * 3.0),), same)[0])), (X, X + 1), 2),
    "the array is given twice": (looped([ROW], lambda i, x: chosen(
        i, [x, x], lambda a, b: (changed(changed(a, i, element(a, i) * 2.0), i + 1, element(b, i)),), lambda a, b: (a,))), (X,), 0),
    "a choice in a choice": (looped([ROW, ROW], lambda i, x, y: (chosen(
        i, [x, y], lambda a, b: chosen(i, [b, a], lambda c, d: (changed(d, i, element(c, i)),), lambda c, d: (d,)),
        lambda a, b: (changed(a, i + 1, element(b, i)),))[0], y)), (X, X - 0.75), 0),
}


@pytest.mark.parametrize("name", CHOICES)
def test_branches_update_arrays_where_they_lie(name):
    graph, arguments, copies = CHOICES[name]
    check(graph, *arguments)
    (step,) = [step for step in lower(graph).steps if step.bodies]
    body = step.bodies[0]
    assert any(len(inner.bodies) == 2 for inner in body.steps)
    assert _copied_in(body) + len([k for k in body.swapped if body.graph.inputs[k].type.size > 1]) <= copies


def _copied_in(body: LoweredBody) -> int:
    """How many arrays are copied in an iteration, at most."""
    found = len(body.plan.copies)
    for step in body.steps:
        found += sum([result not in body.plan.in_place for _, result, _ in step.updates])
        found += max([_copied_in(inner) for inner in step.bodies], default=0)
    return found


@pytest.mark.parametrize("dtype, number", [(F64, 1.5), (F64, -0.0), (I64, 3), (BOOL, True), (C128, 1 + 2j)])
def test_states_that_start_as_one_number_are_filled(dtype, number):
    """No array of that number is made, and none is copied."""
    row = tensor(dtype, (7,))
    body = region("body", [row, row], lambda i, x, y: (y, ops.flip(x, axes=(0,))), Index(0, 2))
    with Record() as record:
        start = ops.full(value=number, shape=(7,), dtype=dtype)
        made = ops.loop(start, start, lo=0, hi=2, step=1, carried=2, body=body)
        outputs = [item(made, index=k) for k in range(2)]
    graph = cut("g", [], record.values, outputs)
    (step,) = lower(graph).steps
    assert len(step.fills) == 2 and not step.updates and not step.reads
    check(graph)


def _bodies(graph: Graph) -> list[LoweredBody]:
    return [body for step in lower(graph).steps for body in step.bodies]


def _two_loops(first: Step, second: Step, rows: tuple[Index, Index] | None = None) -> Graph:
    """A loop behind another one, over an array of 7 numbers."""
    indices = rows or (Index(0, 4), Index(0, 4))
    x = input_value(ROW, "x")
    with Record() as record:
        state = x
        for index, step in zip(indices, (first, second), strict=True):
            made = ops.loop(state, lo=index.lo, hi=index.hi, step=1, carried=1, body=region("body", [ROW], step, index))
            state = item(made, index=0)
    return cut("two_loops", [x], record.values, [state])


def _stepping(factor: float, distance: int = 1) -> Step:
    """A recurrence: each element becomes a multiple of itself and the one before."""
    return lambda i, x: (written(x, i + distance, element(x, i) * element(x, i + distance) * factor),)


def test_bodies_that_compute_the_same_are_lowered_once() -> None:
    graph = _two_loops(_stepping(0.5), _stepping(0.5))
    first, second = _bodies(graph)
    assert first is second
    check(graph, np.arange(7.0))


def test_bodies_that_differ_are_lowered_each() -> None:
    for graph in (_two_loops(_stepping(0.5), _stepping(0.25)), _two_loops(_stepping(0.5), _stepping(0.5, 2)),
                  _two_loops(_stepping(0.5), _stepping(0.5), (Index(0, 4), Index(1, 4)))):
        first, second = _bodies(graph)
        assert first is not second
        check(graph, np.arange(7.0))


def _around(factor: float, is_told: bool) -> Step:
    """A loop around an inner one, which adds to its elements one at the outer index, or a number."""
    def step(index: Extent, x: Value) -> tuple[Value, ...]:
        def inner(k: Extent, y: Value) -> tuple[Value, ...]:
            return (written(y, k + 1, ops.tanh(element(y, k)) + (element(y, index) if is_told else 1.0)),)
        made = ops.loop(written(x, index, element(x, index) * factor), lo=0, hi=3, step=1, carried=1,
                        body=region("inner", [ROW], inner, Index(0, 3)))
        return (item(made, index=0),)
    return step


@pytest.mark.parametrize("is_told", [False, True])
def test_inner_bodies_are_shared_where_they_name_no_outer_index(is_told: bool) -> None:
    graph = _two_loops(_around(2.0, is_told), _around(3.0, is_told))
    first, second = _bodies(graph)
    inner = [body for outer in (first, second) for step in outer.steps for body in step.bodies]
    assert first is not second and len(inner) == 2 and (inner[0] is inner[1]) is not is_told
    check(graph, np.arange(7.0))


def test_errors_in_equal_bodies_name_their_own_lines() -> None:
    def picked(x, i, j):
        total = 0.0
        for k in range(12):
            total += x[i[k]]
        for k in range(12):
            total += x[j[k]]
        return total

    compiled, good, bad = bw.jit(picked), np.arange(12), np.where(np.arange(12) == 3, 40, 0)
    x = np.arange(12.0)
    assert compiled(x, good, good) == 132.0
    for arguments, line in (((x, bad, good), r"x\[i\[k\]\]"), ((x, good, bad), r"x\[j\[k\]\]")):
        with pytest.raises(IndexError, match=line):
            compiled(*arguments)
