"""Products that are added to other results are added where these lie; the sums have the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.api.programs.executables import lower
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.products import BLOCK
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.passes.rewriting.add_products import add_products
from bwcompiler.passes.rewriting.simplify import simplify
from tests.support.threads import with_threads

Array = np.ndarray[Any, Any]


def added(function: Callable[..., Any], *arguments: Any) -> tuple[Graph, Graph]:
    """The graph before and after, which computes the same."""
    graph = simplify(trace(function, arguments, autoloop=False).graph).graph
    after = add_products(graph)
    verify(after)
    for found, expected in zip(interpret(after, arguments), interpret(graph, arguments), strict=True):
        np.testing.assert_array_equal(found, expected)
    return graph, after


def count(graph: Graph, name: str) -> int:
    return sum(value.op.name == name for value in graph.body)


def arrays(rng: np.random.Generator, *shapes: tuple[int, ...], dtype: str = "f8") -> list[Array]:
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


SHAPES = (50, 40), (50, 30), (40, 60), (30, 60)


def two(x: Array, y: Array, v: Array, w: Array) -> Any:
    return np.tanh(x @ v + y @ w)


def three(x: Array, y: Array, v: Array, w: Array) -> Any:
    return np.tanh(x @ v + y @ w + np.sin(y) @ w)


def summed(x: Array, y: Array, v: Array, w: Array) -> Any:
    return np.tanh(sum(part @ w for part in (y, np.sin(y), np.cos(y))))


def of_matrices_in_batches(x: Array, y: Array, v: Array, w: Array) -> Any:
    parts = np.reshape(x, (5, 10, 40)), np.reshape(y, (5, 10, 30))
    return np.tanh(parts[0] @ v + parts[1] @ w)


def scattered(x: Array, y: Array, v: Array, w: Array) -> Any:
    total = np.zeros_like(x @ v)
    np.add.at(total, np.argsort(x[:, 0]), np.sin(y @ w))
    return np.tanh(total + x @ v)


@pytest.mark.parametrize("function, number", [(two, 1), (three, 2), (summed, 2), (of_matrices_in_batches, 1), (scattered, 1)])
def test_products_are_added(function: Callable[..., Any], number: int, rng: np.random.Generator) -> None:
    arguments = arrays(rng, *SHAPES)
    before, after = added(function, *arguments)
    assert count(after, "matmul_add") == number
    assert count(after, "matmul") == count(before, "matmul") - number
    found = [with_threads(threads, bw.jit(function), *arguments) for threads in (1, 2)]
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(found[0], function(*arguments), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("function", [
    lambda x, y, v, w: (x @ v, x @ v + y @ w),
    lambda x, y, v, w: np.tanh(x @ v + np.sin(y @ w)),
    lambda x, y, v, w: (x @ v + y @ w[:, :1]),
    lambda x, y, v, w: x @ v[:, :1] + y @ w[:, :1],
    lambda x, y, v, w: x[:4, :6] @ v[:6, :8] + y[:4, :6] @ w[:6, :8],
    lambda x, y, v, w: (x.astype("c16") @ v) + (y.astype("c16") @ w),
    lambda x, y, v, w: np.sin(x @ v) + 0.0,
], ids=["returned too", "inside", "broadcast", "vectors", "written out", "complex", "of no two"])
def test_others_stay(function: Callable[..., Any], rng: np.random.Generator) -> None:
    before, after = added(function, *arrays(rng, *SHAPES))
    assert after is before


def test_sums_of_several_blocks_stay(rng: np.random.Generator) -> None:
    """Each block would be added by itself: other bits."""
    before, after = added(two, *arrays(rng, (20, BLOCK + 1), (20, BLOCK + 1), (BLOCK + 1, 20), (BLOCK + 1, 20)))
    assert after is before
    _, after = added(two, *arrays(rng, (20, BLOCK + 1), (20, BLOCK), (BLOCK + 1, 20), (BLOCK, 20)))
    assert count(after, "matmul_add") == 1


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("terms", [1, 3, 64, BLOCK])
@pytest.mark.parametrize("rows, columns", [(3, 70), (17, 33), (200, 65)])
def test_bits_are_those_of_a_product_that_is_stored(rows: int, columns: int, terms: int, dtype: str, rng: np.random.Generator) -> None:
    x, y, v, w = arrays(rng, (rows, 37), (rows, terms), (37, columns), (terms, columns), dtype=dtype)
    x[0, 0] = np.nan
    product = bw.jit(np.matmul)
    first, second = product(x, v), product(y, w)
    for threads in (1, 2):
        np.testing.assert_array_equal(with_threads(threads, bw.jit(lambda x, y, v, w: x @ v + y @ w), x, y, v, w), first + second)


def test_nothing_is_stored_for_them(rng: np.random.Generator) -> None:
    """One array for all products, and that is the one that is returned."""
    arguments = arrays(rng, (50, 40), (50, 30), (40, 60), (30, 60))
    lowered = lower(trace(lambda x, y, v, w: x @ v + y @ w + np.sin(y) @ w, arguments, autoloop=False).graph)
    assert lowered.plan.arena_bytes <= arguments[1].nbytes + 512                 # the sine, and where it begins
    assert not lowered.plan.copied and not lowered.plan.copies


def test_what_is_added_to_is_multiplied_too(rng: np.random.Generator) -> None:
    """It is read once more, so the product is added to a copy at most."""
    x, v, w = arrays(rng, (50, 40), (40, 60), (60, 60))

    def function(x: Array, v: Array, w: Array) -> Any:
        first = x @ v
        return first + first @ w

    np.testing.assert_allclose(bw.jit(function)(x, v, w), function(x, v, w), rtol=1e-12, atol=1e-12)


def test_gradients_of_a_matrix_that_is_used_again(rng: np.random.Generator) -> None:
    x, w = arrays(rng, (30, 40), (40, 40))

    def loss(w: Array, x: Array) -> Any:
        for _ in range(3):
            x = np.tanh(x @ w)
        return np.sum(x)

    text = bw.grad(loss).as_text("fused", w, x)
    assert (text.count("call matmul_add"), text.count("call matmul ")) == (2, 6)
    bw.check_grads(lambda w: loss(w, x), (w / 10,), order=2)


def test_tangents(rng: np.random.Generator) -> None:
    x, w = arrays(rng, (30, 40), (40, 50))
    graph = trace(lambda x, w: bw.jvp(np.matmul, (x, w), (np.cos(x), np.sin(w))), (x, w), autoloop=False).graph
    assert [count(lower(graph).simplified, name) for name in ("matmul", "matmul_add")] == [2, 1]


def test_in_loops(rng: np.random.Generator) -> None:
    x, h, v, w = arrays(rng, (6, 20, 30), (20, 40), (30, 40), (40, 40))

    def network(x: Array, h: Array, v: Array, w: Array) -> Any:
        for k in range(x.shape[0]):
            h = np.tanh(x[k] @ v + h @ w)
        return h

    found = [with_threads(threads, bw.jit(network), x, h, v, w) for threads in (1, 2)]
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(found[0], network(x, h, v, w), rtol=1e-10)
    bw.check_grads(lambda v, w: np.sum(network(x, h, v, w)), (v / 10, w / 10), order=1)
