"""Extrema whose shifts cancel are stopped; others keep their derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.passes.rewriting.cancel_shifts import cancel_shifts
from bwcompiler.passes.rewriting.simplify import simplify


def stops(graph: Graph) -> int:
    """How many values are stopped, in regions too."""
    return sum([(value.op.name == "stop_gradient") + sum([stops(value.attrs[region]) for region in value.op.regions])
                for value in graph.body])


def log_sum_exp(x: Any) -> Any:
    m = np.max(x, 1)
    return np.log(np.sum(np.exp(x - m[:, None]), 1)) + m


def log_sum_exp_of_columns(x: Any) -> Any:
    m = x.max(axis=0, keepdims=True)
    return (np.log(np.sum(np.exp(x - m), axis=0, keepdims=True)) + m) ** 2


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return (e / np.sum(e, axis=-1, keepdims=True)) ** 2


def log_softmax(x: Any) -> Any:
    x = x - np.max(x, axis=-1, keepdims=True)
    return (x - np.log(np.sum(np.exp(x), axis=-1, keepdims=True)))[:, 1]


def masked_softmax(x: Any) -> Any:
    e = np.where(np.arange(4) < 3, np.exp(x - np.max(x, axis=-1, keepdims=True)), 0.0) * 2
    return np.sin(e / np.sum(e, axis=-1, keepdims=True))


def attention(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return (e @ x.T) / np.sum(e, axis=-1, keepdims=True)


def over_all(x: Any) -> Any:
    m = np.max(x)
    return m + np.log(np.mean(np.exp(x - m)))


def with_temperature(x: Any) -> Any:
    m = np.min(x, 1)
    return m - 0.5 * np.log(np.sum(np.exp(-2.0 * (x - m[:, None])), 1))


def soft_minimum(x: Any) -> Any:
    p, q, r = x[:, 0], x[:, 1], x[:, 2]
    m = np.minimum(np.minimum(p, q), r)
    return m - np.log(np.exp(m - p) + np.exp(m - q) + np.exp(m - r))


def of_finite_rows(x: Any) -> Any:
    m = np.max(x, 1)
    m = np.where(np.isfinite(m), m, 0.0)
    return np.log(np.sum(np.exp(x - m[:, None]), 1)) + m


def in_a_loop(x: Any) -> Any:
    total = np.zeros(4)
    for _ in range(40):
        shifted = total[:, None] + x[0] * np.ones((4, 4)) * np.arange(4)
        m = np.max(shifted, 0)
        total = np.tanh(np.log(np.sum(np.exp(shifted - m), 0)) + m)
    return total


CANCEL = [log_sum_exp, log_sum_exp_of_columns, softmax, log_softmax, masked_softmax, attention, over_all, with_temperature, soft_minimum,
          of_finite_rows, in_a_loop]


@pytest.mark.parametrize("function", CANCEL)
def test_shifts_that_cancel(function: Callable[..., Any], rng: np.random.Generator) -> None:
    x = rng.standard_normal((3, 4))
    traced = trace(function, (x,))
    before, arguments = simplify(traced.graph).graph, (x, *traced.captured)
    after = cancel_shifts(before).graph
    verify(after)
    assert stops(after) == 1
    np.testing.assert_array_equal(interpret(after, arguments)[0], interpret(before, arguments)[0])
    bw.check_grads(lambda x: np.sum(function(x)), (x,), order=2)


@pytest.mark.parametrize("function", CANCEL)
def test_nothing_asks_for_what_attains_the_maximum(function: Callable[..., Any], rng: np.random.Generator) -> None:
    text = bw.grad(lambda x: np.sum(function(x))).as_text("simplified", rng.standard_normal((3, 4)))
    assert "equal" not in text.replace("less_equal", "").replace("not_equal", "")


def test_rows_of_minus_infinity(rng: np.random.Generator) -> None:
    x = rng.standard_normal((3, 4))
    x[1, 2] = -np.inf
    np.testing.assert_allclose(bw.grad(lambda x: np.sum(log_sum_exp(x)))(x), np.exp(x) / np.exp(x).sum(1, keepdims=True), rtol=1e-14)


@pytest.mark.parametrize("function", [
    lambda x: np.log(np.sum(np.exp(x - np.max(x, 1)[:, None]), 1)),                                    # not added again
    lambda x: np.log(np.sum(np.exp(x - np.max(x, 1)[:, None]), 1)) + 2 * np.max(x, 1),                 # twice
    lambda x: (log_sum_exp(x), np.max(x, 1)),                                                          # a result too
    lambda x: np.log(np.sum(np.exp(x - np.max(x, 1)[:, None]), 0)) + np.max(x, 1).sum(),               # summed over its axis
    lambda x: np.log(np.sum(np.exp(x[:, :3] - np.max(x[:, :3], 1)), 1)) + np.max(x[:, :3], 1),         # along another axis
    lambda x: np.log(1 + np.sum(np.exp(x - np.max(x, 1)[:, None]), 1)) + np.max(x, 1),                 # with what is not shifted
    lambda x: np.exp(x - np.max(x, 1)[:, None]) / np.sum(np.exp(2 * (x - np.max(x, 1)[:, None])), 1)[:, None],
    lambda x: np.where(x > 0, np.exp(x - np.max(x)), 1.0) / np.sum(np.exp(x - np.max(x))),
    lambda x: np.exp(x - np.max(x, 0)).T @ np.exp(x) / np.sum(np.exp(x - np.max(x, 0))),
    lambda x: np.maximum(x, 0) + np.log(1 + np.exp(-np.abs(x))),
])
def test_other_extrema_keep_their_derivative(function: Callable[..., Any], rng: np.random.Generator) -> None:
    x = rng.standard_normal((3, 4))
    graph = simplify(trace(function, (x,)).graph).graph
    assert cancel_shifts(graph).graph is graph
    bw.check_grads(lambda x: np.sum(function(x)[0] if isinstance(function(x), tuple) else function(x)), (x,))
