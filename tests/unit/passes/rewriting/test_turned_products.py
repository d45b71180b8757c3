"""Products that are read transposed are computed so; others stay."""

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
from bwcompiler.passes.rewriting.legal.turned_products import turn_products
from bwcompiler.passes.rewriting.simplify import simplify


def turned(function: Callable[..., Any], *arguments: Any) -> tuple[Graph, Graph]:
    """The graph before and after, which computes the same."""
    graph = simplify(trace(function, arguments).graph).graph
    after = turn_products(graph)
    verify(after)
    for found, expected in zip(interpret(after, arguments), interpret(graph, arguments), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    return graph, after


@pytest.mark.parametrize("dtype", ["f8", "c16", "i8"])
@pytest.mark.parametrize("lead", [(), (3,)], ids=str)
def test_a_product_that_is_read_transposed(lead: tuple[int, ...], dtype: str, rng: np.random.Generator) -> None:
    x, y = (8 * rng.standard_normal((*lead, 4, 5))).astype(dtype), (8 * rng.standard_normal((*lead, 5, 6))).astype(dtype)
    _, after = turned(lambda x, y: np.swapaxes(x @ y, -1, -2) * 2, x, y)
    [product] = [value for value in after.body if value.op.name == "matmul"]
    assert product.shape == (*lead, 6, 4)


@pytest.mark.parametrize("function", [
    lambda x, y: (x @ y, (x @ y).T),
    lambda x, y: (x @ y).T * 2 + np.sum(x @ y),
    lambda x, y: (x @ y) * 2,
])
def test_what_is_read_as_it_is_stays(function: Callable[..., Any], rng: np.random.Generator) -> None:
    before, after = turned(function, rng.standard_normal((4, 5)), rng.standard_normal((5, 6)))
    assert after is before


def test_other_axes_stay(rng: np.random.Generator) -> None:
    before, after = turned(lambda x, y: (x @ y).transpose(1, 0, 2), rng.standard_normal((3, 4, 5)), rng.standard_normal((3, 5, 6)))
    assert after is before


def test_the_gradient_of_a_linear_layer_is_not_copied(rng: np.random.Generator) -> None:
    x, w = rng.standard_normal((20, 30)), rng.standard_normal((40, 30))
    gradient = bw.grad(lambda w, x: np.sum(np.tanh(x @ w.T)))
    assert gradient.as_text("fused", w, x).count("transpose") == 0
    np.testing.assert_allclose(gradient(w, x), (1 - np.tanh(x @ w.T) ** 2).T @ x, rtol=1e-12)
