"""Jacobians through matrix products of the argument: elements of the other matrix, not products with unit vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend import trace

RNG = np.random.default_rng(5)
A, B, X, W = (RNG.standard_normal(shape) for shape in ((4, 3), (2, 5), (3, 2), (3,)))

# name: (the function, its argument, products that are left in jacfwd besides those of the function itself)
FUNCTIONS: dict[str, tuple[Any, Any, int]] = {
    "on the right": (lambda x: A @ x, X, 0),
    "on the left": (lambda x: x @ B, X, 0),
    "a vector on the right": (lambda w: A @ w, W, 0),
    "a vector on the left": (lambda w: w @ A.T, W, 0),
    "transposed on the left": (lambda x: x.T @ A.T, X, 0),
    "transposed on the right": (lambda x: B.T @ x.T, X, 0),
    "transposed twice": (lambda x: A @ x.T.T, X, 0),
    "in another shape": (lambda x: A @ x.reshape(3, 1, 2)[:, 0], X, 0),
    "transposed, in another shape": (lambda x: A @ x.T.reshape(3, 2), X, 1),
    "two layers": (lambda x: np.tanh(A @ x) @ B, X, 1),
    "itself": (lambda x: x.T @ x, X, 0),
    "a stack": (lambda x: np.stack([A, 2 * A]) @ x, X, 1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name: str) -> None:
    function, x, left = FUNCTIONS[name]
    h, plain = 1e-5, bw.jit(function)
    columns = [(plain(x + h * unit.reshape(x.shape)) - plain(x - h * unit.reshape(x.shape))) / (2 * h) for unit in np.eye(x.size)]
    expected = np.stack(columns, axis=-1).reshape(*columns[0].shape, *x.shape)
    for jacobian in (bw.jacfwd, bw.jacrev):
        np.testing.assert_allclose(jacobian(function)(x), expected, atol=1e-8)
    products = lambda f: sum(value.op.name == "matmul" for value in trace(f, (x,)).graph.body)
    own = 1 if name in ("two layers", "transposed, in another shape", "a stack") else 0
    assert products(bw.jacfwd(function)) <= left + own


def test_zeros_are_zeros_where_the_matrix_is_not_finite() -> None:
    matrix = A.copy()
    matrix[0, 0], matrix[1, 1] = np.inf, np.nan
    expected = np.zeros((4, 2, 3, 2))
    for column in range(2):
        expected[:, column, :, column] = matrix
    for jacobian in (bw.jacfwd, bw.jacrev):
        np.testing.assert_array_equal(jacobian(lambda x: matrix @ x)(X), expected)


def test_maps_over_arguments_multiply(rng: np.random.Generator) -> None:
    """Batches that are no unit vectors."""
    rows = rng.standard_normal((6, 3, 2))
    np.testing.assert_allclose(bw.vmap(lambda x: A @ x)(rows), A @ rows, rtol=1e-14, atol=1e-15)
