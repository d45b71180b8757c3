"""Arrays captured by closure are read at each call; other Python state is read once; equal graphs are compiled once."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw

X = np.array([1.0, 2.0, 3.0])


def test_captured_array_is_read_at_each_call(compilations: list[str]) -> None:
    table = np.ones(3)
    scaled = bw.jit(lambda x: x * table)
    gradient = bw.grad(lambda x: np.sum(x * table))
    assert scaled(X).tolist() == [1.0, 2.0, 3.0]
    assert gradient(X).tolist() == [1.0, 1.0, 1.0]
    count = len(compilations)
    table[:] = [10.0, 20.0, 30.0]
    assert scaled(X).tolist() == [10.0, 40.0, 90.0]
    assert gradient(X).tolist() == [10.0, 20.0, 30.0]
    assert len(compilations) == count


def test_captured_array_of_a_program() -> None:
    table = np.ones(3)
    program = bw.compile(lambda x: np.sum(x * x * table), X)
    assert program(X) == 14.0
    table[:] = 2.0
    assert program(X) == 28.0
    assert program.backward(X)[0].tolist() == (4 * X).tolist()
    _, pullback = program.vjp(X)
    assert pullback()[0].tolist() == (4 * X).tolist()


@pytest.mark.parametrize("make", [lambda: np.ones((3, 2))[:, 0], lambda: np.ones(6)[::2], lambda: np.ones(3, ">f8"),
                                  lambda: np.ones(3, np.float32), lambda: np.ones(3, np.int64)],
                         ids=["column", "strided", "byte-swapped", "float32", "int64"])
def test_captured_array_of_any_layout(make: object) -> None:
    table = make()  # type: ignore[operator]
    scaled = bw.jit(lambda x: x * table)
    assert scaled(X).tolist() == X.tolist()
    table[1] = 5
    assert scaled(X).tolist() == [1.0, 10.0, 3.0]


def test_captured_array_is_kept_alive() -> None:
    def make():
        table = np.full(3, 7.0)
        return bw.jit(lambda x: x + table)

    add = make()
    gc.collect()
    assert add(X).tolist() == [8.0, 9.0, 10.0]
    assert add(X).tolist() == [8.0, 9.0, 10.0]


def test_the_same_array_captured_twice_is_one() -> None:
    table = np.ones(3)
    program = bw.compile(lambda x: np.sum(x * table + np.sin(x + table)), X)
    assert program.graph.captured == 1


def test_a_lambda_per_batch_costs_no_code_generation(compilations: list[str]) -> None:
    w = np.array([0.5, -0.5, 1.0])
    rng = np.random.default_rng(0)
    for _ in range(5):
        batch, target = rng.standard_normal((4, 3)), rng.standard_normal(4)
        value, gradient = bw.value_and_grad(lambda w, b=batch, t=target: np.mean((b @ w - t) ** 2))(w)
        residual = batch @ w - target
        np.testing.assert_allclose(value, np.mean(residual**2))
        np.testing.assert_allclose(gradient, batch.T @ residual / 2)
    assert len(compilations) == 1


def test_other_shapes_and_constants_are_other_programs(compilations: list[str]) -> None:
    function = bw.jit(lambda x: np.sin(x) * 3)
    function(X)
    function(X + 1)
    assert len(compilations) == 1
    function(X[:2])
    function(X.astype(np.float32))
    assert len(compilations) == 3
    bw.jit(lambda x: np.sin(x) * 4)(X)
    assert len(compilations) == 4


def test_a_lambda_per_call_is_traced_only(compilations: list[str]) -> None:
    traces = []

    def make():
        def body(x):
            traces.append(1)
            return np.sum(np.tanh(x))
        return bw.grad(body)

    for _ in range(3):
        make()(X)
    assert len(traces) == 3 and len(compilations) == 1


def test_captured_arrays_without_axes_are_read_at_each_call() -> None:
    scale = np.array(2.0)
    scaled = bw.jit(lambda x: x * scale)
    assert scaled(X).tolist() == (2 * X).tolist()
    scale[...] = 3.0
    assert scaled(X).tolist() == (3 * X).tolist()


def test_functions_that_are_dropped_are_collected() -> None:
    table = np.ones(3)
    owner = weakref.ref(table)
    scaled = bw.jit(lambda x, t=table: x * t)
    scaled(X)
    del scaled, table
    gc.collect()
    assert owner() is None


def test_arguments_are_not_kept_alive() -> None:
    scaled = bw.jit(lambda x: x * 2)
    x = np.ones(1000)
    owner = weakref.ref(x)
    scaled(x)
    del x
    gc.collect()
    assert owner() is None


def test_a_buffer_that_the_function_fills_again() -> None:
    """Each use of a concrete array sees what it held then, although it is one object."""
    def fun(x: Any) -> Any:
        buffer = np.zeros(3)
        total = x * 0
        for k in range(3):
            buffer[k] = k + 1.0
            total += x * buffer
            buffer *= 2.0
        return total

    x = np.array([1.0, -2.0, 0.5])
    np.testing.assert_array_equal(bw.jit(fun)(x), fun(x))
    np.testing.assert_array_equal(bw.grad(lambda x: fun(x).sum())(x), fun(np.ones(3)))


def test_a_large_buffer_that_changes_is_refused() -> None:
    def fun(x: Any) -> Any:
        buffer = np.zeros(1 << 22)
        first = x * buffer[:3] + np.sum(x * buffer[:, None])
        buffer[7] = 1.0
        return first + np.sum(x * buffer[:, None])

    with pytest.raises(bw.errors.UnsupportedError, match="written to afterwards"):
        bw.jit(fun)(np.ones(3))


def test_captured_nan_and_views_stay_references() -> None:
    table = np.array([[1.0, np.nan], [2.0, 3.0]])
    first = bw.jit(lambda x: x * table[:, 0] + x * table.T[0] + np.nansum(x * table[0]))
    x = np.ones(2)
    np.testing.assert_array_equal(first(x), [3.0, 5.0])
    table[0, 0] = 10.0
    np.testing.assert_array_equal(first(x), [30.0, 14.0])


@pytest.mark.parametrize("size", [2, 5], ids=["shrunk", "grown"])
@pytest.mark.parametrize("make", [bw.jit, lambda fun: bw.compile(fun, X), lambda fun: bw.grad(lambda x: np.sum(fun(x)))],
                         ids=["jit", "compile", "grad"])
def test_a_captured_array_that_was_resized_is_refused(make: Any, size: int) -> None:
    """It is not read beyond its end, natively or by way of Python."""
    table = np.arange(3.0)
    scaled = make(lambda x: x * table)
    scaled(X)
    table.resize(size, refcheck=False)
    for x in (X, X.astype(">f8"), np.arange(6.0)[::2]):
        with pytest.raises((bw.errors.SignatureError, bw.errors.ShapeError), match="shape"):
            scaled(x)
    table.resize(3, refcheck=False)
    scaled(X)
