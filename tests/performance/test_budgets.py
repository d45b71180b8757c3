"""Time budgets, for a quiet machine: `pytest -m slow tests/performance -n 0`.  What is counted is tested elsewhere, always."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.collector import collector_paused
from bwcompiler.compiler import pipeline
from bwcompiler.compiler.pipeline import lower
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED, ONE, differentiate
from bwcompiler.passes.derivatives.partition import partition
from tests.support.whole_programs import PROGRAMS, loaded

pytestmark = pytest.mark.slow


def seconds(call: Callable[[], Any], rounds: int = 5) -> float:
    """The fastest of some rounds."""
    best = np.inf
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return float(best)


def recurrence(steps: int) -> Callable[..., Any]:
    """Eight nodes a step."""
    def loss(x, w, b):
        for _ in range(steps):
            x = x + 0.01 * (np.tanh(x * w + b) - x * x)
        return np.sum(x)
    return loss


def test_call_of_a_small_function() -> None:
    x = np.linspace(-1, 1, 8)
    function = bw.value_and_grad(lambda x: np.sum(np.sin(x) * x + 2.0 * x))
    function(x)

    def thousand() -> None:
        for _ in range(1000):
            function(x)

    assert seconds(thousand, 20) < 1000 * 1e-6


@pytest.mark.parametrize("steps", [60, 500, 2500], ids=["1,000 nodes", "10,000 nodes", "50,000 nodes"])
def test_front_half_per_node(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trace, autodiff, passes, planning, lowering to text: at most 80 microseconds per node of the joint graph."""
    options = dataclasses.replace(pipeline.pass_options(), verify=False)      # the tests' default verifies after each pass
    monkeypatch.setattr(pipeline, "pass_options", lambda: options)
    arguments = [np.ones(8) * 0.1 for _ in range(3)]
    nodes = []

    def front_half() -> None:
        with collector_paused():               # as jit and compile do
            graph = differentiate(trace(recurrence(steps), arguments, autoloop=False).graph, (0, 1, 2), [ONE]).graph
            nodes.append(len(graph.body))
            lower(graph)

    front_half()
    assert seconds(front_half, 2) < nodes[0] * 80e-6


def test_partition_per_node() -> None:
    """Of a joint graph of 33,000 nodes with a choice for most of its values: at most 100 microseconds per node."""
    def function(x, y):  # type: ignore[no-untyped-def]
        for k in range(1500):
            y = (x * y + x) * (y - 0.5) * np.where(y > x, x, y)
            if k % 7 == 0:
                y = np.tanh(y)
            if k % 11 == 0:
                y = y / (1 + np.sum(y * y, axis=-1, keepdims=True))
        return y

    with collector_paused():
        joint = differentiate(trace(function, [np.ones((8, 16)), np.ones((8, 16))], autoloop=False).graph, (0, 1), [INPUT_SEED])
        assert len(joint.graph.body) > 30_000
        assert seconds(lambda: partition(joint.graph, [2], 1), 1) < len(joint.graph.body) * 100e-6


def test_first_gradient_of_an_unrolled_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BW_CACHE", "0")
    arguments = [np.ones(8) * 0.1 for _ in range(3)]
    times = [seconds(lambda steps=steps: bw.grad(recurrence(steps), (0, 1, 2))(*arguments), 1)  # type: ignore[misc]
             for steps in (1000, 4000)]
    assert times[0] < 3.0 and times[1] < 6 * times[0]


def test_a_lambda_per_batch() -> None:
    """A function made anew for each batch is traced again, and never compiled again: under 10 ms for a small network."""
    rng = np.random.default_rng(0)
    w1, w2 = rng.standard_normal((10, 20)), rng.standard_normal((20, 1))

    def step() -> None:
        x, y = rng.standard_normal((32, 10)), rng.standard_normal((32, 1))
        bw.value_and_grad(lambda w1, w2: np.mean((np.tanh(x @ w1) @ w2 - y) ** 2), (0, 1))(w1, w2)

    step()
    assert seconds(step, 20) < 10e-3


def test_calls_cost_their_slices() -> None:
    """A loop that fills an array row by row is linear in its length, and so is its gradient."""
    def fill(x, a):
        y = np.zeros_like(x)
        for t in range(1, len(x)):
            y[t] = y[t - 1] * a + x[t]
        return np.sum(y * y)

    times = []
    for steps in (100, 400):
        function, x, a = bw.value_and_grad(fill, (0, 1)), np.ones((steps, 64)), np.full(64, 0.5)
        function(x, a)
        times.append(seconds(lambda function=function, x=x, a=a: function(x, a), 20))  # type: ignore[misc]
    assert times[1] < 8 * times[0]


def kalman(f: Any, h: Any, q: Any, r: Any, measured: Any) -> Any:
    """The log-likelihood of measurements, 57 of them below."""
    x, p, total = np.zeros(4), np.eye(4), 0.0
    for z in measured:
        x, p = f @ x, f @ p @ f.T + q
        s, error = h @ p @ h.T + r, z - h @ x
        gain = np.linalg.solve(s, h @ p).T
        x, p = x + gain @ error, (np.eye(4) - gain @ h) @ p
        total = total - 0.5 * (error @ np.linalg.solve(s, error) + np.linalg.slogdet(s)[1])
    return total


def gaussian_process(theta: Any, x: Any, y: Any) -> Any:
    distance = ((x[:, None, :] - x[None, :, :]) ** 2).sum(-1)
    k = np.exp(theta[0]) * np.exp(-0.5 * distance / np.exp(theta[1]) ** 2) + np.exp(theta[2]) * np.eye(len(x))
    factor = np.linalg.cholesky(k)
    return -0.5 * y @ np.linalg.solve(factor.T, np.linalg.solve(factor, y)) - np.sum(np.log(np.diag(factor)))


def test_linear_algebra() -> None:
    """Value and gradient of a Kalman filter and of a Gaussian process of 200 points, 10,000 solves of 3 x 3, sorts of 100,000.

    Budgets are about three times what one thread of an AVX-512 server takes; jax.jit took 480, 1,270, 2,040 and 20,000 microseconds
    there.
    """
    rng = np.random.default_rng(0)
    filter_ = (np.eye(4) + 0.1 * rng.standard_normal((4, 4)), rng.standard_normal((2, 4)), 0.1 * np.eye(4), 0.5 * np.eye(2),
               rng.standard_normal((57, 2)))
    x = rng.standard_normal((200, 2))
    process = (np.array([0.1, -0.2, -1.0]), x, np.sin(x[:, 0]))
    solves = rng.standard_normal((10000, 3, 3)) + 3 * np.eye(3), rng.standard_normal((10000, 3, 1))
    cases: tuple[tuple[Any, tuple[Any, ...], float], ...] = (
        (bw.value_and_grad(kalman), filter_, 60e-6), (bw.value_and_grad(gaussian_process), process, 1.2e-3),
        (bw.jit(lambda a, b: np.linalg.solve(a, b)), solves, 1e-3), (bw.jit(lambda x: np.median(x)), (rng.standard_normal(100000),), 2e-3),
    )
    for function, arguments, budget in cases:
        function(*arguments)
        assert seconds(lambda function=function, arguments=arguments: function(*arguments), 50) < budget  # type: ignore[misc]


def test_first_calls_of_whole_programs() -> None:
    """Value and gradient of programs as people write them, with nothing cached: half a second of CPU time at most in the median."""
    found = {}
    for name in PROGRAMS:
        with loaded(name) as program:
            args, count = program.make(0)
            start = time.process_time()
            bw.value_and_grad(program.loss, argnums=tuple(range(count)))(*args)
            found[name] = time.process_time() - start
    assert np.median(list(found.values())) < 0.5, found
    assert max(found.values()) < 2, found
