"""Loops that fill an array slice by slice: each step touches its slice only, whatever else reads the array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.api.programs.executables import lower
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.texts.graph_parser import parse_graph
from bwcompiler.passes.derivatives.autodiff import ONE, differentiate
from bwcompiler.passes.memory.find_updates import find_updates
from bwcompiler.passes.memory.plan_memory import plan_memory
from bwcompiler.passes.rewriting.simplify import simplify
from tests.support.gradcheck import central_differences
from tests.support.lowered_programs import lowered_steps


def recurrence(x, a):
    y = np.zeros_like(x)
    y[0] = x[0]
    for t in range(1, len(x)):
        y[t] = y[t - 1] * a + np.sin(x[t])
    return y


def scalars(x, a):
    y = np.zeros_like(x)
    for i in range(len(x)):
        y[i, 0] = x[i, 1] * a[0]
        y[i, 1] = y[i, 0] + x[i - 1, 0]
    return y


def keeps_old_versions(x, a):
    y = x * 2.0
    kept = []
    for t in range(6):
        kept.append(y[t] * 1.0)
        before = y[t + 1]
        y[t] = a + t
        y[t + 1] = before * a
    return sum(kept) + y[:6]


def reads_the_whole_array_between(x, a):
    y = x * 1.0
    for t in range(6):
        y[t] = np.sum(y, axis=0) * 0.1 + a
    return y


def reads_a_version_after_the_next(x, a):
    y = x * 1.0
    sums = []
    for t in range(6):
        old = y * 1.0
        view = y[t:t + 2]
        y[t] = a * t
        sums.append(old[t] + view[1])
    return y + np.sum(np.stack(sums), axis=0)


def shifts(x, a):
    y = x * 1.0
    for t in range(5):
        y[t + 1, 1:] = y[t + 1, :-1] + a[1:]
        y[t + 1, :-1] = y[t + 1, 1:] * 0.5
    return y


def two_arrays(x, a):
    u, v = np.zeros_like(x), np.ones_like(x)
    for t in range(1, len(x)):
        u[t] = u[t - 1] + 0.1 * v[t - 1]
        v[t] = v[t - 1] - 0.1 * np.sin(u[t]) * a
    return u * v


def columns(x, a):
    y = np.zeros_like(x)
    for j in range(1, x.shape[1]):
        y[:, j] = y[:, j - 1] * 0.5 + x[:, j]
    return y * a


def adds(x, a):
    y = np.ones_like(x)
    for t in range(len(x) - 1):
        y[t] += x[t] * a
        y[t + 1] += y[t]
    return y


def strided(x, a):
    y = x * 1.0
    for t in range(3):
        y[t::4, ::2] = y[t + 1::4, ::2] * a[::2]
        y[t::4, 1::2] *= 2.0
    return y


def backwards(x, a):
    y = x * 1.0
    for t in reversed(range(len(x) - 1)):
        y[t] = y[t + 1] * a + y[t, ::-1]
    return y


def reads_what_it_writes(x, a):
    y = x * 1.0
    for t in range(4):
        y[t:t + 4] = y[t:t + 4][::-1] * a
        y[t:t + 3] += y[t + 1:t + 4]
        y[t] = y[t] * a[::-1]
        y[t:t + 2] = y[t:t + 2, ::-1]
    return y


def overwrites_what_was_read(x, a):
    y, total = x * 1.0, 0.0
    for t in range(0, 5, 2):
        y[t:t + 2] = x[t:t + 2] * a
        read = y[t + 1:t + 3, ::-1] * a
        y[t + 3:t + 5] = x[t:len(y[t + 3:t + 5]) + t] * a
        y[t + 1:t + 3] = np.sin(x[t:t + 2])
        total = total + read
    return y + np.sum(total)


def reverses_what_it_computes_from(x, a):
    y = x * 1.0
    for t in range(7):
        y[t:t + 2] = (y[t:t + 2] * a)[:, ::-1]
    return y


def two_copies(x, a):
    y = np.zeros_like(x)
    y[0], y[1] = a, a * 2.0
    z = y.copy()
    for t in range(2, len(x)):
        y[t] = a * t
        z[9 - t] = a * (t + 1)
    return y * z + z


def reads_another_shape(x, a):
    y = x * 1.0
    for t in range(4):
        y[1:3] = a + t
        y[1, :4] = y.reshape(12, 4)[1]
        y[2, 1:5] = y.reshape(12, 4)[2] * 0.5
    return y


def moves_a_version_before_the_last(x, a):
    """What is read lies apart from the last update, in the version before it, which has the same memory."""
    y = x * 1.0
    y[1:3] = a
    y[5:6] = a * 2
    y[0:1] = a * 3
    y[4:6] = 2.0
    y[1:3] = y[0:2]
    return y


def reverses_a_version_before_the_last(x, a):
    y = moves_a_version_before_the_last(x, a)
    y[6:7] = a
    y[3:4] = a * 2
    y[0:2] = 3.0
    y[4:6, ::-1] = y[3:5]
    return y


def scales_a_version_before_the_last(x, a):
    y = moves_a_version_before_the_last(x, a)
    y[3:4] = a * 2
    y[0:2] = 3.0
    y[3:5] *= 2.0
    return y


PROGRAMS = [moves_a_version_before_the_last, reverses_a_version_before_the_last, scales_a_version_before_the_last, overwrites_what_was_read, reverses_what_it_computes_from, two_copies, reads_another_shape, reads_what_it_writes,
            recurrence, scalars, keeps_old_versions, reads_the_whole_array_between, reads_a_version_after_the_next, shifts, two_arrays,
            columns, adds, strided, backwards]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_values_and_gradients(program: Callable[..., Any], rng: np.random.Generator) -> None:
    x, a = rng.standard_normal((8, 6)), rng.standard_normal(6)
    expected = program(x.copy(), a)
    np.testing.assert_allclose(bw.jit(program, mutates=False)(x, a), expected, rtol=1e-12)
    weights = rng.standard_normal(expected.shape)

    def loss(x, a):
        return np.sum(program(x, a) * weights)

    dx, da = bw.grad(loss, argnums=(0, 1))(x, a)
    np.testing.assert_allclose(dx, central_differences(lambda x: loss(x, a), x), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(da, central_differences(lambda a: loss(x, a), a), rtol=1e-6, atol=1e-7)


def joint(program: Callable[..., Any], steps: int) -> Graph:
    x, a = np.ones((steps, 64)), np.ones(64)
    graph = trace(lambda x, a: np.sum(np.sin(program(x, a))), (x, a), autoloop=False).graph      # cotangents that no step knows as numbers
    return simplify(differentiate(graph, (0, 1), [ONE]).graph).graph


@pytest.mark.parametrize("program", [recurrence, two_arrays, adds], ids=lambda program: program.__name__)
def test_a_step_costs_its_slice(program: Callable[..., Any]) -> None:
    """No step copies the array, and the number of distinct functions does not grow with the number of steps."""
    kernels = []
    for steps in (40, 80):
        graph = joint(program, steps)
        lowered = lowered_steps(graph)
        plan = plan_memory(graph, lowered)
        copied = [update for step in lowered for update in step.updates if update.result not in plan.in_place]
        assert len(copied) <= 2, "only results that are returned are copied, once"
        kernels.append(lower(graph).program.kernels)
    assert abs(kernels[1] - kernels[0]) <= 4


def test_which_updates_are_done_in_place() -> None:
    updates = find_updates(trace(recurrence, (np.ones((10, 64)), np.ones(64)), autoloop=False).graph)
    assert len(updates.values) == 9            # the first of the chain makes the array

    def short(x):
        y = np.zeros_like(x)
        y[0], y[1] = x[1], x[0]
        return y

    def wide(x):
        y = np.zeros_like(x)
        for _ in range(8):
            y[1:] = y[:-1] + x[1:]
        return y

    for function in (short, wide):
        assert not find_updates(trace(function, (np.ones((10, 64)),), autoloop=False).graph).values


@pytest.mark.parametrize(("body", "found"), [
    ("%n: f64[9] = slice_add %s, %v {starts=[1], steps=[1]}", 1),
    ("%m: f64[9] = slice_add %s, %v {starts=[1], steps=[1]}\n  %n: f64[9] = slice_add %m, %w {starts=[0], steps=[1]}", 2),
    ("%m: f64[9] = slice_add %s, %v {starts=[1], steps=[1]}\n  %n: f64[9] = slice_add %m, %v {starts=[0], steps=[1]}", 0),
    ("%p: f64[8] = slice %s {starts=[0], sizes=[8], steps=[1]}\n  %q: f64[8] = add %p, %v\n  %n: f64[9] = slice_add %s, %q {starts=[1], steps=[1]}", 0),
    ("%z: f64[8] = full {value=0.0, shape=[8], dtype=f64}\n  %m: f64[9] = slice_update %s, %z {starts=[1], steps=[1]}\n  %n: f64[9] = multiply %m, 2.0", 0),
    ("%z: f64[8] = full {value=0.0, shape=[8], dtype=f64}\n  %n: f64[9] = slice_update %s, %z {starts=[1], steps=[1]}", 1),
], ids=["added", "two_added", "one_added_twice", "made_of_the_state", "constant_read", "constant_kept"])
def test_large_parts_of_states(body: str, found: int) -> None:
    """%s: the state of a loop, which may be overwritten."""
    graph = parse_graph(f"graph g(%s: f64[9], %v: f64[8], %w: f64[8]) -> (f64[9]) {{\n  {body}\n  return %n\n}}\n")
    assert len(find_updates(graph, graph.inputs[:1]).values) == found


def patched_by_its_sums(x):
    for _ in range(9):
        y = np.where(x > 0.1, x * 0.5, 0.25 * x)
        y[0] += 0.01 * np.sum(x, axis=0)
        y[:, 1] -= np.max(x, axis=1)
        x = y
    return x


@pytest.mark.parametrize("begin, found", [("unset {shape=[9], dtype=f64}", 2), ("full {value=0.0, shape=[9], dtype=f64}", 0), ("negative %a", 0)])
def test_arrays_that_hold_nothing_are_updated_where_they_lie(begin: str, found: int) -> None:
    """Also where most of them is written: there is nothing to be copied."""
    graph = parse_graph(f"""graph g(%a: f64[9]) -> f64[9] {{
  %s: f64[9] = {begin}
  %v: f64[7] = slice %a {{starts=[0], sizes=[7], steps=[1]}}
  %w: f64[2] = slice %a {{starts=[7], sizes=[2], steps=[1]}}
  %t: f64[9] = slice_update %s, %v {{starts=[2], steps=[1]}}
  %u: f64[9] = slice_update %t, %w {{starts=[0], steps=[1]}}
  return %u
}}
""")
    assert len(find_updates(graph).values) == found


def test_sums_are_written_into_what_is_computed_with_them(rng):
    x = rng.normal(size=(20, 20))
    np.testing.assert_allclose(bw.jit(patched_by_its_sums)(x), patched_by_its_sums(x), rtol=1e-13)
    lowered = lower(trace(patched_by_its_sums, (x,)).graph)
    body = next(step for step in lowered.steps if step.bodies).bodies[0]
    patches = [result for step in body.steps for _, result, _ in step.updates]
    assert len(patches) == 2 and body.plan.in_place.intersection(patches)


@pytest.mark.parametrize("part", [np.s_[0], np.s_[:, 3], np.s_[2:9, 1::4]], ids=str)
def test_parts_of_transposed_copies_are_written_after_these(part: Any, rng: np.random.Generator) -> None:
    """A loop that does both reads or writes a column of memory in each iteration."""
    x = rng.normal(size=(256, 264))

    def turned(x):
        y = np.array(x.T)
        y[part] = np.sin(y[part])
        return y

    graph = trace(turned, (x,)).graph
    assert len(find_updates(graph).values) == 1
    assert "  for b in" in bw.jit(turned).as_text("loops", x)
    np.testing.assert_allclose(bw.jit(turned)(x), turned(x), rtol=1e-14)


def test_what_is_read_again_or_known_at_once_is_no_patch(rng):
    x = rng.normal(size=(20, 20))

    def read_again(x):
        y = x * 2.0
        z = y.copy()
        z[0] += np.sum(x, axis=0)
        return y * z

    def at_once(x):
        y = x * 2.0
        y[0] += x[1]
        return y
    for fun in (read_again, at_once):
        assert not find_updates(trace(fun, (x,)).graph).values
        np.testing.assert_allclose(bw.jit(fun)(x), fun(x), rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_arrays_of_few_elements_that_are_written_to_late(dtype: Any, size: int) -> None:
    """A single element is a number, computed where it is needed; but where it is written to, it must lie in memory before."""
    rng = np.random.default_rng(size)
    weights = rng.normal(size=size)

    def program(x: Any, y: Any) -> Any:
        return np.real(np.sum(x * np.sum(y[size:])) + np.sum(x * np.sum(y[:size // 2])) + np.sum(y * weights))

    x, y = [rng.normal(size=n) + (1j * rng.normal(size=n) if dtype is np.complex128 else 0) for n in (2, size)]
    expected = weights + np.where(np.arange(size) < size // 2, np.sum(x), 0)
    np.testing.assert_allclose(bw.grad(program, argnums=1)(x, y), expected, rtol=1e-13)


@pytest.mark.parametrize("index", [np.s_[::3, ::5], np.s_[:, ::-2], np.s_[1::2, 3], np.s_[::-1, 4:5]], ids=str)
def test_steps_are_written_into_zeros_and_not_asked_for_at_each_element(index: Any, rng: np.random.Generator) -> None:
    x = rng.standard_normal((30, 41))
    expected = np.zeros_like(x)
    expected[index] = np.cos(x[index])
    np.testing.assert_allclose(bw.grad(lambda x: np.sum(np.sin(x[index])))(x), expected, rtol=1e-13)


@pytest.mark.parametrize("function", [np.trace, lambda x: np.sum(np.diagonal(x)), lambda x: np.sum(x[::3, ::5]) + np.sum(x[1::3, ::5])])
def test_no_loop_over_an_array_divides_for_the_steps_of_a_slice(function: Callable[..., Any], rng: np.random.Generator) -> None:
    x = rng.standard_normal((40, 40))
    gradient = bw.grad(lambda x: function(x) ** 2)
    assert "remainder" not in gradient.as_text("loops", x)
    seeds = np.array([[function(np.eye(40)[:, [i]] * np.eye(40)[[j]]) for j in range(40)] for i in range(40)])
    np.testing.assert_allclose(gradient(x), 2 * function(x) * seeds, rtol=1e-13)
