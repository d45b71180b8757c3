"""Guards of cotangents in native code: products with zeros are masked, and not asked whether they are nan; derivatives stay as they are."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.compiler.pipeline import derive
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.ir.graph import Graph
from bwcompiler.passes.derivatives.autodiff import ONE
from bwcompiler.passes.rewriting.legalize import legalize


def hidden_sums(x: Any) -> Any:
    """Of quotients, so that their rules see zeros that a choice made."""
    share = np.sum(x[:, :1] / x * x[:, 1:], axis=1)
    return np.sum(np.where(x[:, 0] > 0, share, 0.0))


def hidden_columns(x: Any) -> Any:
    """Broadcast, so that it is asked before whether a cotangent is 0."""
    scale = np.sqrt(x[:, 0])
    return np.sum(np.where(x[:, :1] > 0, x / scale[:, None], 0.0))


def hidden_twice(x: Any) -> Any:
    """Two sums of one quotient, whose cotangents are added up, with their guards."""
    share = x[:, :1] / x
    first, second = np.sum(share * x[:, 1:], axis=1), np.sum(share * share, axis=1)
    return np.sum(np.where(x[:, 0] > 0, first, 0.0)) + np.sum(np.where(x[:, 0] > 0, second, 0.0))


FUNCTIONS = [hidden_sums, hidden_columns, hidden_twice]
ROWS = np.array([[4.0, 1.0], [0.0, 0.0], [1.0, -2.0], [0.0, 0.0]])


def joint(function: Callable[..., Any], *arguments: Any) -> Graph:
    return derive(trace(function, arguments).graph, [0], [ONE]).graph


def nan_tests(graph: Graph) -> int:
    return sum(value.op.name == "equal" and value.operands[0] is value.operands[1] for value in graph.body)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_product_of_a_cotangent_is_asked_for_nan(function: Callable[..., Any]) -> None:
    graph = joint(function, ROWS)
    assert nan_tests(graph) > 0
    assert nan_tests(legalize(graph)) == 0


@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_is_hidden_has_no_derivative(function: Callable[..., Any]) -> None:
    found = bw.grad(function)(ROWS)
    alive = ROWS[:, 0] > 0
    expected = bw.grad(function)(ROWS[alive])
    np.testing.assert_allclose(found[alive], expected, rtol=1e-14)
    assert not found[~alive].any()


def test_second_derivatives_at_true_zeros_of_first_ones_stay() -> None:
    """A residual of 0 has a cotangent of 0, whose derivative is not 0."""
    def misfit(x: Any) -> Any:
        return np.sum(np.where(x > 0, np.sqrt(np.abs(x)) - 1.0, 0.0) ** 2)

    np.testing.assert_allclose(bw.hessian(misfit)(np.array([1.0, -1.0, 4.0])), np.diag([0.5, 0.0, 0.0625]), atol=1e-14)


def test_formulas_of_the_user_keep_their_bits() -> None:
    """The same form outside of derivatives: where the guard is false, the sign of a zero is the user's."""
    def formula(x: Any, y: Any) -> Any:
        product = x * y
        return np.where(~(np.abs(x) <= 0) | (product == product), product, 0.0)

    x, y = np.array([0.0, 0.0, 2.0]), np.array([-1.0, np.inf, 3.0])
    with np.errstate(all="ignore"):
        expected = formula(x, y)
    np.testing.assert_array_equal(np.signbit(bw.jit(formula)(x, y)), np.signbit(expected))


def test_conditions_made_of_one_another_take_little_time() -> None:
    """As of a program of numbers with many branches: each condition is made of the one before, twice."""
    def function(x: Any, flags: Any) -> Any:
        guard = flags[0]
        for k in range(1, 40):
            guard = np.logical_or(np.logical_and(guard, flags[k]), np.logical_and(guard, flags[k - 1]))
        return np.sum(np.where(guard, np.sqrt(x[0]) * np.log(x[1]), 0.0))

    graph = joint(function, np.ones((2, 3)), np.ones((40, 3), bool))
    began = time.process_time()
    legalize(graph)
    assert time.process_time() - began < 5
