"""One compiled function called from several Python threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw

THREADS, CALLS = 4, 50


def in_threads(work: Callable[[int], None]) -> None:
    """work(number) in several threads that start together; raises what any of them raises."""
    barrier = threading.Barrier(THREADS)

    def run(number: int) -> None:
        barrier.wait()
        work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        for future in [pool.submit(run, number) for number in range(THREADS)]:
            future.result()


@pytest.mark.parametrize("size", [4, 20_000])  # with and without the lock of the interpreter held
def test_compiled_function(size: int, compilations: list[str]) -> None:
    function = bw.value_and_grad(lambda x: np.sum(np.sin(x) * np.cumsum(x)[::-1]))
    rng = np.random.default_rng(size)
    inputs = [rng.standard_normal(size) for _ in range(THREADS)]
    expected = [bw.jit(function)(x) for x in inputs]
    fresh = bw.value_and_grad(lambda x: np.sum(np.sin(x) * np.cumsum(x)[::-1]))

    def work(number: int) -> None:
        for _ in range(CALLS):
            value, gradient = fresh(inputs[number])
            assert value == expected[number][0]
            assert np.array_equal(gradient, expected[number][1])

    in_threads(work)
    assert len(compilations) == 1


def test_first_call_in_all_threads_at_once(compilations: list[str]) -> None:
    traces = []
    note = traces.append           # which nobody follows: a list is put back where a trace is given up

    def cube(x):
        note(1)
        return np.sum(np.sinh(x) ** 3)

    gradient = bw.grad(cube)
    x = np.linspace(0, 1, 7)

    def work(number: int) -> None:
        np.testing.assert_allclose(gradient(x), 3 * np.sinh(x) ** 2 * np.cosh(x), rtol=1e-12)

    in_threads(work)
    assert len(traces) == 1
    assert len(compilations) == 1


def test_different_signatures_in_different_threads() -> None:
    function = bw.jit(lambda x: {"y": np.tanh(x) @ x})

    def work(number: int) -> None:
        x = np.full(number + 2, 0.5)
        for _ in range(CALLS):
            np.testing.assert_allclose(function(x)["y"], np.tanh(x) @ x)

    in_threads(work)


def test_program_with_buffers_of_each_thread() -> None:
    x = np.linspace(-1, 1, 9)
    program = bw.compile(lambda x: np.sum(x**4), x)
    buffers = [np.zeros(9) for _ in range(THREADS)]

    def work(number: int) -> None:
        for _ in range(CALLS):
            program.backward(x, into=(buffers[number],), scale=float(number))

    in_threads(work)
    for number, buffer in enumerate(buffers):
        np.testing.assert_allclose(buffer, CALLS * number * 4 * x**3, atol=1e-12)


def test_errors_stay_in_their_thread() -> None:
    pick = bw.jit(lambda x, i: x[i] * 2)
    x = np.arange(3.0)

    def work(number: int) -> None:
        for _ in range(CALLS):
            if number % 2:
                with pytest.raises(IndexError):
                    pick(x, 3 + number)
            else:
                assert pick(x, number) == 2 * number

    in_threads(work)


def test_tracing_in_several_threads() -> None:
    """The trace under way belongs to its thread."""
    def work(number: int) -> None:
        for k in range(5):
            function = bw.grad(lambda x, n=number, k=k: np.sum(bw.grad(lambda y: np.sum(y ** (n + 2)))(x) * (k + 1)))
            n = number + 2
            np.testing.assert_allclose(function(np.array([2.0])), [(k + 1) * n * (n - 1) * 2.0 ** (n - 2)])

    in_threads(work)


@pytest.mark.parametrize("rows", [slice(1, None), slice(None, -1), slice(1, -1), slice(2, -1)], ids=str)
def test_borders_of_a_sum_over_blocks(rows: slice, rng: np.random.Generator) -> None:
    """Single rows at the border of what is assigned to feed the same sum as the blocks of the others."""
    def run(u: Any) -> Any:
        u = u.copy()
        u[rows, 1:-1] = u[rows, 1:-1] * 2.0
        return np.sum(u ** 2)

    x = rng.standard_normal((160, 160))
    value, (gradient,) = bw.compile(run, x).value_and_backward(x, grad_outputs=3.0)
    twice = np.ones_like(x)
    twice[rows, 1:-1] = 2.0
    np.testing.assert_allclose(value, run(x), rtol=1e-13)
    np.testing.assert_allclose(gradient, 6.0 * x * twice ** 2, rtol=1e-13)
