"""States of which an iteration writes most are written beside the last ones: which these are, and that values stay as they are."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.ir.graph import Graph
from bwcompiler.passes.memory import write_beside as module
from bwcompiler.passes.memory.write_beside import write_beside
from bwcompiler.passes.rewriting.simplify import simplify
from tests.support.derivatives import check_derivatives
from tests.support.loop_passes import rewritten

ROW = np.cos(np.arange(12.0)) + 1.5
GRID = np.cos(np.arange(120.0)).reshape(10, 12) + 1.5


@pytest.fixture(autouse=True)
def small_arrays_too(monkeypatch) -> None:
    monkeypatch.setattr(module, "LEAST_ELEMENTS", 1)


def beside(fun, *args) -> int:
    """How many states the pass makes of arrays that hold nothing."""
    return unset(rewritten(lambda graph: write_beside(simplify(graph).graph), fun, *args)[1])


def unset(graph: Graph) -> int:
    return sum((value.op is ops.unset) + sum([unset(value.attrs[region]) for region in value.op.regions]) for value in graph.body)


# ----- written beside
def neighbours(u):
    for _ in range(9):
        w = u.copy()
        u[1:-1] = w[1:-1] * 0.5 + w[:-2] * w[2:] * 0.2
    return u


def one_side(u):
    for _ in range(9):
        u[1:] = u[1:] - 0.1 * u[1:] * (u[1:] - u[:-1])
    return u


def at_the_end(u):
    """The slice that is copied begins where the other one has its size, and the other way round."""
    for _ in range(40):
        u[:-2] = 0.3 * u[:-2] + 0.4 * u[2:]
    return u


def grid(u):
    for _ in range(9):
        u[1:-1, 2:-1] = u[1:-1, 2:-1] * 0.5 + 0.1 * u[:-2, 2:-1] * u[2:, 1:-2]
    return u


def border_set_behind(u):
    for _ in range(9):
        u[1:-1] = u[1:-1] * 0.5 + 0.2 * u[:-2] * u[2:]
        u[0] = u[1]
        u[-1] += u[-2]
    return u


def until_small(u):
    while np.sum(u * u) > 1.0:
        u[1:-1] = 0.4 * u[1:-1] + 0.02 * u[:-2] * u[2:]
        u[0] = 0.5 * u[0]
        u[-1] = 0.5 * u[-1]
    return u


def two_states(u):
    v = u * 0.5
    for _ in range(9):
        a, b = u[1:-1] * 0.5 + 0.1 * v[2:] * u[:-2], v[1:-1] - 0.1 * u[1:-1] * v[:-2]
        u[1:-1] = a
        v[1:-1] = b
    return u + v


def read_behind(u):
    """The last version is read after the next one was begun."""
    total = np.zeros_like(u)
    for _ in range(9):
        w = u.copy()
        u[1:-1] = 0.5 * w[1:-1] + 0.1 * w[:-2] * w[2:]
        total = total + w * u
    return total


def zeros_around(u):
    for _ in range(40):
        w = np.zeros_like(u)
        w[1:-1] = 0.5 * u[1:-1] + 0.1 * u[:-2] * u[2:]
        u = w
    return u


# ----- left as they are
def small_part(u):
    for _ in range(9):
        u[1:5] = u[1:5] * 0.5 + u[:4] * u[2:6] * 0.2
    return u


def every_second(u):
    for _ in range(9):
        u[1:-1:2] = u[1:-1:2] * 0.5 + 0.2 * u[:-2:2] * u[2::2]
    return u


def whole(u):
    for _ in range(9):
        u[:] = np.roll(u, 1) * u * 0.3
    return u


def moving(u):
    for i in range(3):
        u[i + 1:] = u[i + 1:] * 0.5 + u[i:-1] * 0.2 * u[i + 1:]
    return u


def not_a_state(u):
    for _ in range(9):
        w = u.copy()
        w[1:-1] = u[:-2] * u[2:] * 0.3
        u = w * 0.9
    return u


BESIDE = [(neighbours, ROW, 1), (one_side, ROW, 1), (at_the_end, ROW, 1), (grid, GRID, 1), (border_set_behind, ROW, 1), (until_small, ROW, 1), (two_states, ROW, 2),
          (read_behind, ROW, 1), (zeros_around, ROW, 1)]
KEPT = [(small_part, ROW, 0), (every_second, ROW, 0), (whole, ROW, 0), (moving, ROW, 0), (not_a_state, ROW, 0)]


def name_of(one: object) -> str | None:
    return getattr(one, "__name__", "")


@pytest.mark.parametrize("fun, u, count", [*BESIDE, *KEPT], ids=name_of)
def test_states_that_are_written_beside(fun, u, count) -> None:
    assert beside(lambda u: fun(u * 1.0), u) == count


@pytest.mark.parametrize("fun, u, count", [*BESIDE, *KEPT], ids=name_of)
def test_values_and_derivatives(fun, u, count) -> None:
    np.testing.assert_allclose(bw.jit(lambda u: fun(u * 1.0))(u), fun(u.copy()), rtol=1e-13)
    check_derivatives(lambda u: fun(u * 1.0), u, order=2)


def test_arguments_that_are_assigned_to() -> None:
    """The state is the caller's array, which gets the result."""
    u, expected = ROW.copy(), neighbours(ROW.copy())
    found = bw.jit(neighbours)(u)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    np.testing.assert_allclose(u, expected, rtol=1e-13)


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_any_number_of_steps(steps) -> None:
    def run(u):
        for _ in range(steps):
            u[1:-1] = u[1:-1] * 0.5 + u[:-2] * u[2:] * 0.2
        return u
    np.testing.assert_allclose(bw.jit(lambda u: run(u * 1.0))(ROW), run(ROW.copy()), rtol=1e-13)


def test_small_states_are_not(monkeypatch) -> None:
    monkeypatch.undo()
    assert beside(lambda u: neighbours(u * 1.0), ROW) == 0


def test_one_kernel_writes_the_state() -> None:
    def run(u):
        for _ in range(50):
            u[1:-1] = u[1:-1] * 0.5 + u[:-2] * np.sin(u[2:]) * 0.2 + np.where(u[1:-1] > 0.0, u[:-2], u[2:]) * 0.1
        return u
    text = bw.jit(lambda u: run(u * 1.0)).as_text("loops", np.cos(np.arange(1000.0)))
    forward = text[:text.index("b1b.k0")]
    assert forward.count(" in 0..998 vector") == 1 and ".ct" not in forward


def diffused(u):
    for _ in range(50):
        u[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
    return u


def diffused_in_two_directions(u):
    for _ in range(50):
        u[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1])
    return u


@pytest.mark.parametrize("fun, shape", [(diffused, (10_000,)), (diffused_in_two_directions, (100, 100))])
def test_derivatives_of_stencils_are_gathered(fun, shape) -> None:
    """One loop over the new cotangent reads what neighbours add to it; no addition goes through the array."""
    u = np.cos(np.arange(10_000.0)).reshape(shape)
    text = bw.jit(bw.grad(lambda u: np.sum(fun(u * 1.0) ** 2))).as_text("loops", u)
    backward = text[text.index("kernel b1b."):]
    assert "store" in backward and "add=" not in backward.partition("kernel k")[0]
    check_derivatives(lambda u: fun(u * 1.0), u[tuple([slice(0, 12)] * len(shape))].copy())


def test_loops_that_never_run():
    """What the first iteration around keeps of the loop inside are no rows at all."""
    def triangle(a, y):
        y = y.copy()
        for i in range(7):
            for j in range(i):
                y[j] = np.sin(y[j] * np.sin(y[i])) / (2.0 + a[j, j] ** 2)
        return np.sum(y * y)

    bw.check_grads(triangle, (GRID[:7, :7] - 1.5, GRID[:7] - 1.5), order=1)
