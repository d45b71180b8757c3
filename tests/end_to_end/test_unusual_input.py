"""Unusual values and arrays: the right answer, as NumPy gives it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import (
    BwError,
)

X = np.array([1.0, 2.0, 3.0])
M = np.arange(6.0).reshape(2, 3)


def test_nan_and_infinity_stay_where_they_are() -> None:
    x = np.array([1.0, np.nan, np.inf, -np.inf, 0.0])
    with np.errstate(all="ignore"):
        expected = np.exp(x) + x / x
    np.testing.assert_allclose(bw.jit(lambda x: np.exp(x) + x / x)(x), expected, rtol=1e-15)
    np.testing.assert_array_equal(bw.grad(lambda x: np.sum(x * x))(x), 2 * x)
    assert np.isnan(bw.jit(np.max)(x)) and np.isnan(bw.jit(np.sum)(x))


def test_masked_branches_have_exact_zero_gradient() -> None:
    x = np.array([-1.0, 0.0, 4.0])
    gradient = bw.grad(lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0)))(x)
    assert gradient.tolist() == [0.0, 0.0, 0.25]
    gradient = bw.grad(lambda x: np.sum(np.where(x > 0, np.log(x), x)))(x)
    assert gradient.tolist() == [1.0, 1.0, 0.25]


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 3)], ids=str)
def test_empty_arrays(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape)
    assert bw.jit(lambda x: np.sin(x) + 1)(x).shape == shape
    value, gradient = bw.value_and_grad(lambda x: np.sum(x * x))(x)
    assert value == 0.0 and gradient.shape == shape
    assert bw.jit(lambda x: np.sum(x, axis=0))(x).tolist() == np.sum(x, axis=0).tolist()
    assert bw.jit(lambda x: np.concatenate([x, x]))(x).shape == np.concatenate([x, x]).shape


def test_empty_matmul() -> None:
    assert bw.jit(lambda a, b: a @ b)(np.ones((2, 0)), np.ones((0, 3))).tolist() == [[0.0] * 3] * 2
    a, b = bw.grad(lambda a, b: np.sum(a @ b), argnums=(0, 1))(np.ones((2, 0)), np.ones((0, 3)))
    assert a.shape == (2, 0) and b.shape == (0, 3)


def test_maximum_of_nothing() -> None:
    with pytest.raises(ValueError, match="zero-size|empty|no elements|identity"):
        bw.jit(lambda x: np.max(x))(np.zeros(0))


@pytest.mark.parametrize("x", [2.0, np.float64(2.0), np.array(2.0), np.array(2.0, np.float32)[()]], ids=["float", "scalar", "0-d", "f4"])
def test_numbers_and_zero_dimensional_arrays(x: Any) -> None:
    assert bw.jit(lambda x: x * x + 1)(x) == 5.0
    gradient = bw.grad(lambda x: x**3)(x)
    assert np.shape(gradient) == () and gradient == 12.0
    assert bw.jacobian(lambda x: x * np.arange(3.0))(x).tolist() == [0.0, 1.0, 2.0]


LAYOUTS = {
    "transposed": lambda a: np.asfortranarray(a),
    "strided": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "reversed": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "byte-swapped": lambda a: a.astype(a.dtype.newbyteorder()),
    "misaligned": lambda a: np.frombuffer(b"x" + a.tobytes(), np.uint8)[1:].view(a.dtype).reshape(a.shape),
    "broadcast": lambda a: np.broadcast_to(a[:1], a.shape),
    "subclass": lambda a: a.view(type("Sub", (np.ndarray,), {})),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_arguments_of_any_layout(layout: str, dtype: type, rng: np.random.Generator) -> None:
    x = LAYOUTS[layout](rng.standard_normal((4, 6)).astype(dtype))
    function = lambda x: np.sum(np.tanh(x) @ np.ones(6, dtype))
    expected = np.ascontiguousarray(x).astype(dtype)
    value, gradient = bw.value_and_grad(function)(x)
    np.testing.assert_allclose(value, function(expected), rtol=1e-5)
    np.testing.assert_allclose(gradient, 1 - np.tanh(expected) ** 2, rtol=1e-5, atol=1e-6)
    assert type(gradient) is np.ndarray and gradient.dtype == dtype
    program = bw.compile(function, expected)
    np.testing.assert_allclose(program.backward(x)[0], gradient)
    np.testing.assert_allclose(program(x), value)


def test_read_only_arguments() -> None:
    x = X.copy()
    x.flags.writeable = False
    assert bw.grad(lambda x: np.sum(x * x))(x).tolist() == [2.0, 4.0, 6.0]

    def assign(x):
        x[0] = 9.0
        return np.sum(x)

    with pytest.raises((ValueError, BwError), match="read-only"):
        bw.jit(assign)(x)
    assert bw.jit(assign, mutates=False)(x) == 14.0
    assert x.tolist() == [1.0, 2.0, 3.0]


def test_gradient_of_a_function_that_assigns_leaves_the_argument() -> None:
    def assign(x):
        x[0] = x[1] * 5
        return np.sum(x)

    x = X.copy()
    assert bw.grad(assign)(x).tolist() == [0.0, 6.0, 1.0]
    assert x.tolist() == X.tolist()


def test_same_array_for_two_arguments() -> None:
    gradients = bw.grad(lambda a, b: np.sum(a * b), argnums=(0, 1))(X, X)
    assert gradients[0].tolist() == gradients[1].tolist() == X.tolist()
