"""Products that are loops rather than calls: the same numbers, and what is written around them is in the same loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.lowering.libraries.matrix_products import LONG_SUM
from bwcompiler.passes.rewriting.legal.narrow_products import TALL
from bwcompiler.passes.rewriting.legalize import legalize
from tests.support.threads import with_threads


def op_names(graph: Graph) -> list[str]:
    return [value.op.name for value in graph.body]


def legalized(function: Callable[..., Any], *arguments: Any) -> Graph:
    """The legalised graph, which gives the same numbers."""
    graph = trace(function, arguments).graph
    result = legalize(graph)
    tolerance = 1e-4 if arguments[0].dtype.itemsize == 4 else 1e-10
    for found, expected in zip(interpret(result, arguments), interpret(graph, arguments), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    return result


def test_outer_product_is_a_multiplication(rng: np.random.Generator) -> None:
    x, y = rng.standard_normal((3, 4, 1)), rng.standard_normal((3, 1, 5))
    graph = legalized(lambda x, y: x @ y, x, y)
    assert "matmul" not in op_names(graph) and "multiply" in op_names(graph)
    assert "matmul" in op_names(legalized(lambda x, y: x @ y, np.ones((4, 1), int), np.ones((1, 5), int)))
    assert "matmul" in op_names(legalized(lambda x, y: x @ y, x[..., 0], y[:, 0, :4].T))


def test_vectors_are_summed(rng: np.random.Generator) -> None:
    x, y = rng.standard_normal(9), rng.standard_normal((9, 9))
    for function in (lambda x, y: np.dot(x[::-1], y[2]), lambda x, y: y[3, 1:] @ np.flip(x[1:]), lambda x, y: x[::2] @ x[4:],
                     lambda x, y: np.dot(y[1, ::-1], x[::-1]), lambda x, y: np.dot(x[1:], y[2, :-1]), lambda x, y: y @ x[::-1]):
        assert "matmul" not in op_names(legalized(function, x, y))
        np.testing.assert_allclose(bw.jit(function)(x, y), function(x, y), rtol=1e-12)


# of the matrix: rows in memory, columns in memory
MATRICES_WITH_VECTORS = {(3, 3): (0, 0), (20, 8): (0, 0), (500, 31): (0, 1), (20, 64): (0, 0), (40, 64): (1, 0), (100, 48): (0, 0), (12, 128): (0, 0), (100, 128): (1, 1),
                         (2000, 12): (0, 0), (2000, 13): (0, 1), (2000, 49): (1, 1), (20, 2000): (0, 0)}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", MATRICES_WITH_VECTORS)
def test_small_matrices_with_vectors_are_sums(shape: tuple[int, int], dtype: str, rng: np.random.Generator) -> None:
    matrix = rng.standard_normal(shape).astype(dtype)
    for given, left in zip((matrix, np.asfortranarray(matrix)), MATRICES_WITH_VECTORS[shape], strict=True):
        for function, size in ((lambda a, v: a @ v, shape[1]), (lambda a, v: v @ a.T, shape[1])):
            turned = (lambda a, v, function=function: function(a.T, v)) if given is not matrix else function
            operands = (given.T if given is not matrix else given), rng.standard_normal(size).astype(dtype)
            assert op_names(legalized(turned, *operands)).count("matmul") == left
            np.testing.assert_allclose(bw.jit(turned)(*operands), turned(*operands), rtol=0, atol=1e-3 if dtype == "f4" else 1e-11)


@pytest.mark.parametrize("inner", [0, 1, 5])
def test_inner_products_of_a_batch_are_sums(inner: int, rng: np.random.Generator) -> None:
    x, y = rng.standard_normal((3, inner)), rng.standard_normal((3, inner))
    assert "matmul" not in op_names(legalized(bw.vmap(np.dot), x, y))
    assert "matmul" not in op_names(legalized(lambda x, y: x[:, None] @ y[..., None] * 1j, x * 1j, y * (1 + 2j)))


@pytest.mark.parametrize("formula", ["bij,bj->bi", "bij,bi->bj", "abij,abj->abi"])
def test_small_matrices_of_a_batch_with_vectors_are_sums(formula: str, rng: np.random.Generator) -> None:
    matrix, vector = formula.split("->")[0].split(",")
    extents = {"a": 2, "b": 5, "i": 3, "j": 4}
    x, y = (rng.standard_normal([extents[letter] for letter in letters]) for letters in (matrix, vector))
    assert "matmul" not in op_names(legalized(lambda x, y: np.einsum(formula, x, y), x, y))
    large = rng.standard_normal((3, 40, 40))
    assert "matmul" in op_names(legalized(lambda x, y: np.einsum("bij,bj->bi", x, y), large, large[:, 0]))


TALL_PRODUCTS = {                # (rows, inner, columns), how many products are left
    "few terms": ((TALL, 3, 8), 0), "one term": ((TALL, 1, 8), 0), "many terms": ((TALL, 20, 20), 1), "short": ((TALL - 1, 3, 8), 1),
    "with a vector": ((TALL, 12, 1), 0), "with a vector, wide": ((TALL, 49, 1), 1),
    "a vector with": ((1, TALL, 20), 0), "turned, with a vector": ((20, TALL, 1), 0),
    "turned": ((5, LONG_SUM, 7), 1), "turned, and a rest": ((5, LONG_SUM + 3, 7), 1), "turned, large result": ((70, LONG_SUM, 70), 1),
}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", TALL_PRODUCTS)
def test_tall_products(name: str, dtype: str, rng: np.random.Generator) -> None:
    """Of operands in either order of memory; the same bits for any number of threads."""
    (rows, inner, columns), left = TALL_PRODUCTS[name]
    x, y = (rng.standard_normal(shape).astype(dtype) for shape in ((rows, inner), (inner, columns)))
    for turn_x in (False, True):
        for turn_y in (False, True):
            def product(x: Any, y: Any, turn_x: bool = turn_x, turn_y: bool = turn_y) -> Any:
                return np.tanh((x.T if turn_x else x) @ (y.T if turn_y else y) + 0.5)

            operands = x.T.copy() if turn_x else x, y.T.copy() if turn_y else y
            assert op_names(legalized(product, *operands)).count("matmul") == left
            if turn_x != name.startswith("turned") or turn_y:
                continue
            compiled = bw.jit(product)
            found = [with_threads(threads, compiled, *operands) for threads in (1, 2, 3)]
            np.testing.assert_allclose(found[0], product(*operands), rtol=0, atol=1e-4 if dtype == "f4" else 1e-12)
            assert all(np.array_equal(found[0], other) for other in found[1:])


def test_layers_of_few_neurons_over_many_points_are_few_loops(rng: np.random.Generator) -> None:
    x, y = rng.standard_normal((4000, 2)), rng.standard_normal((4000, 1))
    weights = [rng.standard_normal(shape) for shape in ((2, 8), (8, 8), (8, 1))]

    def loss(first: Any, second: Any, third: Any) -> Any:
        return np.mean((np.tanh(np.tanh(x @ first) @ second) @ third - y) ** 2)

    program = bw.compile(loss, *weights)
    assert op_names(program.lowered().simplified).count("matmul") == 2          # gradients of the first two
    bw.check_grads(loss, tuple(weights), order=1)


@pytest.mark.parametrize("shape", [(2, 2, 2), (3, 4, 2), (4, 3, 4)], ids=str)
@pytest.mark.parametrize("batch", [(1,), (30,), (4, 5)], ids=str)
def test_tiny_complex_matrices_of_a_batch_are_multiplied_in_loops(batch: tuple[int, ...], shape: tuple[int, int, int],
                                                                 rng: np.random.Generator) -> None:
    rows, inner, columns = shape
    x, y = [rng.standard_normal((*batch, *sides)) + 1j * rng.standard_normal((*batch, *sides)) for sides in ((rows, inner), (inner, columns))]

    def size(x, y):
        return np.sum(np.abs(x @ y) ** 2)

    assert "matmul" not in op_names(legalized(lambda x, y: x @ y, x, y))
    np.testing.assert_allclose(bw.jit(lambda x, y: x @ y)(x, y), x @ y, rtol=1e-13)
    np.testing.assert_allclose(bw.grad(size)(x, y), 2 * np.conj((x @ y) @ np.conj(np.swapaxes(y, -1, -2))), rtol=1e-12)


def test_other_complex_matrices_are_calls() -> None:
    for x in (np.ones((2, 2), complex), np.ones((3, 5, 5), complex)):
        assert "matmul" in op_names(legalized(lambda x: x @ x, x))
