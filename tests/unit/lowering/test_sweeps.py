"""Kernels that go through one axis are one where that is allowed and pays; what only they read shrinks; numbers stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.api.programs.executables import lower
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.ir.texts.loop_printer import kernel_to_text
from bwcompiler.lowering import join_sweeps
from bwcompiler.lowering.loops.sweeps import profit as sweep_profit
from bwcompiler.lowering.loops.sweeps import sweep as sweeps
from bwcompiler.lowering.steps import LoweredStep
from bwcompiler.passes.derivatives.autodiff import ONE, differentiate
from bwcompiler.passes.rewriting.simplify import simplify
from tests.support.gradcheck import central_differences
from tests.support.threads import with_threads

Array = np.ndarray[Any, Any]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of any size are worth a sweep."""
    for module, name, number in ((sweep_profit, "LEAST_SHARED", 1), (join_sweeps, "LEAST_SHARED", 1), (sweeps, "LEAST_BLOCKS", 2), (sweep_profit, "LEAST_BLOCKS", 2),
                                 (sweep_profit, "LEAST_ELEMENTS", 1), (sweep_profit, "LEAST_ROWS", 2)):
        monkeypatch.setattr(module, name, number)


def steps_of(fun: Callable[..., Any], *arguments: Array) -> list[LoweredStep]:
    """The kernels of a function's value."""
    return [step for step in lower(trace(fun, arguments, autoloop=False).graph).steps if step.kernel is not None]


def normalized(x: Array, axis: int | tuple[int, ...]) -> Array:
    d = x - np.mean(x, axis=axis, keepdims=True)
    return d / np.sqrt(np.mean(d * d, axis=axis, keepdims=True) + 1e-5)


def rows_and_columns(x: Array) -> Array:
    y = normalized(x, -1)
    return y - np.mean(y, axis=1, keepdims=True)


def three_depths(x: Array) -> Array:
    y = rows_and_columns(x)
    return y / np.sqrt(np.mean(y * y, axis=(1, 2), keepdims=True) + 1e-5)


def spread(x: Array) -> Any:
    z = normalized(x, 1)
    m = np.max(z, axis=2, keepdims=True)
    return np.sum(np.log(np.sum(np.exp(z - m), axis=(1, 2))))


def with_totals(x: Array) -> Any:
    y = normalized(x, -1)
    z = np.tanh(y - np.mean(y, axis=1, keepdims=True))
    return np.sum(z, axis=0), np.sum(z ** 2), z


def test_three_depths_are_one_sweep(small: None, golden: Callable[..., None]) -> None:
    [step] = steps_of(rows_and_columns, np.ones((8, 3, 4)))
    assert step.kernel is not None
    assert step.positions == (0, 1)
    golden(kernel_to_text(step.kernel), "loops")


def test_what_only_the_sweep_reads_takes_no_memory() -> None:
    """Normalized rows, their exponentials and two cotangents of 32 MB each are 16 KB."""
    x = np.ones((2000, 32, 64))
    joint = differentiate(trace(spread, (x,), autoloop=False).graph, (0,), [ONE]).graph
    assert lower(simplify(joint).graph).plan.arena_bytes < x.nbytes / 64


@pytest.mark.parametrize("fun", [rows_and_columns, three_depths, with_totals])
@pytest.mark.parametrize("shape", [(8, 3, 4), (48, 5, 64), (30, 1, 7), (16, 33, 2)])
def test_values(fun: Callable[[Array], Any], shape: tuple[int, ...], small: None, rng: np.random.Generator) -> None:
    x = rng.uniform(-2, 2, shape)
    found, wanted = bw.jit(fun)(x), fun(x)
    for one, other in zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]:
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("fun", [spread, lambda x: np.sum(np.sin(three_depths(x)) ** 2)], ids=["spread", "three_depths"])
def test_gradients(fun: Callable[[Array], Any], small: None, rng: np.random.Generator) -> None:
    x = rng.uniform(-2, 2, (6, 3, 4))
    np.testing.assert_allclose(bw.grad(fun)(x), central_differences(fun, x), rtol=1e-6, atol=1e-7)


def test_threads_share_a_sweep(rng: np.random.Generator) -> None:
    """To the last bit, as each has its own part of what shrinks."""
    x = rng.uniform(-2, 2, (2000, 32, 64))
    program = bw.jit(lambda x: (*with_totals(x), bw.grad(spread)(x)))
    for one, other in zip(*[with_threads(count, program, x) for count in (1, 2)], strict=True):
        np.testing.assert_array_equal(one, other)


# ----- where it is not allowed, or does not pay
def positions(fun: Callable[..., Any], *arguments: Array) -> list[tuple[int, ...]]:
    return [step.positions for step in steps_of(fun, *arguments)]


def test_rows_of_other_iterations_are_not_there_yet(small: None) -> None:
    def shifted(x: Array) -> Array:
        y = normalized(x, -1)
        return y[1:] - np.mean(y, axis=1, keepdims=True)[:-1]
    assert all(len(one) == 1 for one in positions(shifted, np.ones((8, 3, 4))))


def test_sums_over_the_axis_are_not_there_yet(small: None) -> None:
    def centered(x: Array) -> Array:
        y = normalized(x, -1)
        return y - np.mean(y, axis=0)
    assert all(len(one) == 1 for one in positions(centered, np.ones((400, 30, 40))))


def test_small_arrays_are_left_alone() -> None:
    assert positions(rows_and_columns, np.ones((100, 3, 4))) == [(0,), (1,)]
    assert positions(rows_and_columns, np.ones((2000, 32, 64))) == [(0, 1)]


def test_repeated_steps_share_their_sweep(small: None) -> None:
    def repeated(x: Array, w: Array) -> Array:
        for k in range(6):
            x = rows_and_columns(x @ w) * (k + 1.0)
        return x
    kernels = [step for step in steps_of(repeated, np.ones((8, 3, 64)), np.ones((64, 64))) if step.joined]
    assert len(kernels) == 4
    assert len({id(step.kernel) for step in kernels}) == 2


def test_explanations_name_the_sweep() -> None:
    text = str(bw.compile(rows_and_columns, np.ones((2000, 32, 64))).explain())
    assert "in one sweep with k0, a few iterations at a time" in text
