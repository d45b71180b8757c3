"""Products of rows that do not lie together read them where they lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.api.programs.executables import lower
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.passes.rewriting.legal.sliced_products import split_sliced_products
from bwcompiler.passes.rewriting.simplify import simplify
from tests.support.threads import with_threads

Array = np.ndarray[Any, Any]


def products_of(function: Callable[..., Any], *arguments: Array) -> list[tuple[int, ...]]:
    graph = split_sliced_products(simplify(trace(function, arguments, autoloop=False).graph).graph)
    return [value.shape for value in graph.body if value.op.name == "matmul"]


@pytest.mark.parametrize("part, shape", [
    (lambda x: x[:, 2:42], (4, 40, 20)), (lambda x: x[1:3], (2, 50, 20)), (lambda x: x[1:3, ::2], (2, 25, 20)), (lambda x: x[:, ::-1][:, 3:], (4, 47, 20)),
    (lambda x: np.reshape(x, (2, 2, 50, 30))[:, :, 1:], (2, 2, 49, 20)),
], ids=["rows", "matrices", "every second", "backwards", "two axes"])
def test_slices_are_read_where_they_lie(part: Callable[[Array], Array], shape: tuple[int, ...], rng: np.random.Generator) -> None:
    x, w = rng.standard_normal((4, 50, 30)), rng.standard_normal((30, 20))

    def function(x: Array, w: Array) -> Any:
        return part(x) @ w

    assert products_of(function, x, w) == [shape]
    found = [with_threads(threads, bw.jit(function), x, w) for threads in (1, 2)]
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(found[0], function(x, w), rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(found[0], bw.jit(np.matmul)(np.ascontiguousarray(part(x)).reshape(-1, 30), w).reshape(found[0].shape))
    assert lower(trace(function, (x, w), autoloop=False).graph).plan.arena_bytes == 0


@pytest.mark.parametrize("part", [
    lambda x: x, lambda x: np.sin(x[:, 1:41]), lambda x: x[:, :4], lambda x: np.swapaxes(x, 0, 1)[1:].copy(),
], ids=["all", "computed", "few rows", "copied"])
def test_what_lies_together_or_is_made_is_one_product(part: Callable[[Array], Array], rng: np.random.Generator) -> None:
    x, w = rng.standard_normal((4, 50, 30)), rng.standard_normal((30, 20))
    assert [len(shape) for shape in products_of(lambda x, w: part(x) @ w, x, w)] == [2]


def test_what_is_stored_anyway_is_one_product(rng: np.random.Generator) -> None:
    """The derivative needs the rows as one matrix."""
    x, w = rng.standard_normal((4, 50, 30)), rng.standard_normal((30, 20))

    def both(x: Array, w: Array) -> Any:
        rows = np.reshape(x[:, 1:41], (160, 30))
        return rows @ w, rows.T @ np.cos(rows)

    assert [len(shape) for shape in products_of(both, x, w)] == [2, 2]


def test_taps_of_a_convolution(rng: np.random.Generator) -> None:
    """Nothing is stored but what is padded, and the sum."""
    x, w = rng.standard_normal((4, 60, 32)), rng.standard_normal((5, 32, 32))

    def convolution(x: Array, w: Array) -> Any:
        p = np.pad(x, ((0, 0), (2, 2), (0, 0)))
        return np.maximum(sum(p[:, k:k + 60] @ w[k] for k in range(5)), 0)

    lowered = lower(trace(convolution, (x, w), autoloop=False).graph)
    assert lowered.plan.arena_bytes <= 64 * 4 * 32 * 8 + x.nbytes + 2 * 512
    np.testing.assert_allclose(bw.jit(convolution)(x, w), convolution(x, w), rtol=1e-11, atol=1e-12)
    bw.check_grads(lambda x, w: np.sum(convolution(x, w) ** 2), (x, w), order=1)
