"""What type checkers know of compiled functions: the parameters of the user's function, and what it returns.

mypy reads this file with the package (`[tool.mypy] files`): `assert_type` is checked there, and an unused `type: ignore` is an error,
so that a call with wrong arguments must be one.  pytest runs it: the types hold of what the calls return.
"""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
import pytest
from numpy.typing import NDArray

import bwcompiler as bw

Vector = NDArray[np.float64]
X: Vector = np.array([1.0, 2.0])


def scaled(x: Vector, factor: float = 1.0) -> Vector:
    return x * factor


def energy(x: Vector, factor: float = 1.0) -> np.float64:
    return np.float64(factor) * np.sum(x**2)


def energy_and_norm(x: Vector) -> tuple[np.float64, Vector]:
    return np.sum(x**2), x


def test_jit_keeps_parameters_and_result() -> None:
    found = assert_type(bw.jit(scaled)(X, factor=2.0), Vector)
    assert found.dtype == np.float64
    with pytest.raises(TypeError):
        bw.jit(scaled)(X, faktor=2.0)  # type: ignore[call-arg]


def test_jit_as_a_decorator() -> None:
    @bw.jit
    def plain(x: Vector) -> Vector:
        return x + 1.0

    @bw.jit(static_argnames="count")
    def with_options(x: Vector, count: int) -> Vector:
        return x * count

    assert assert_type(plain(X), Vector).tolist() == [2.0, 3.0]
    assert assert_type(with_options(X, count=2), Vector).tolist() == [2.0, 4.0]


def test_jit_of_a_method_takes_the_arguments_behind_self() -> None:
    class Model:
        rate = 2.0

        @bw.jit
        def step(self, x: Vector) -> Vector:
            return x * self.rate

    assert assert_type(Model().step(X), Vector).tolist() == [2.0, 4.0]


def test_jit_of_a_ufunc_takes_arrays() -> None:
    assert assert_type(bw.jit(np.square)(X), Any).tolist() == [1.0, 4.0]


def test_gradients_keep_parameters() -> None:
    assert bw.grad(energy)(X, factor=2.0).tolist() == [4.0, 8.0]
    value, gradient = bw.value_and_grad(energy)(X)
    assert assert_type(value, np.float64) == 5.0 and assert_type(gradient, Any).tolist() == [2.0, 4.0]
    (value, norm), _ = bw.value_and_grad(energy_and_norm, has_aux=True)(X)
    assert assert_type(value, np.float64) == 5.0 and assert_type(norm, Vector).tolist() == [1.0, 2.0]
    with pytest.raises(TypeError):
        bw.grad(energy)("no array")  # type: ignore[arg-type]


def test_transforms_of_transforms_keep_parameters() -> None:
    assert bw.jit(bw.grad(energy))(X, factor=3.0).tolist() == [6.0, 12.0]
    assert bw.jacobian(bw.grad(energy))(X, 0.5).tolist() == [[1.0, 0.0], [0.0, 1.0]] == bw.hessian(energy)(X, 0.5).tolist()
    assert assert_type(bw.checkpoint(scaled)(X, 2.0), Vector).tolist() == [2.0, 4.0]


def test_functions_with_rules_of_their_own_keep_parameters_and_result() -> None:
    @bw.custom_vjp
    def clipped(x: Vector, bound: float = 1.0) -> Vector:
        return np.clip(x, -bound, bound)

    @bw.custom_jvp
    def doubled(x: Vector) -> Vector:
        return 2.0 * x

    clipped.defvjp(lambda x, bound: (np.clip(x, -bound, bound), None), lambda residuals, ct: (ct, None))
    doubled.defjvp(lambda primals, tangents: (2.0 * primals[0], 2.0 * tangents[0]))
    assert assert_type(clipped(X), Vector).tolist() == [1.0, 1.0]
    assert bw.jacobian(clipped)(X, 0.5).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert assert_type(doubled(X), Vector).tolist() == [2.0, 4.0] == bw.grad(lambda x: np.sum(doubled(x) * X))(X).tolist()
    with pytest.raises(TypeError):
        clipped(X, bond=2.0)  # type: ignore[call-arg]


def test_methods_of_compiled_functions_are_known() -> None:
    assert "scaled" in assert_type(bw.jit(scaled).as_text("forward", X), str)
    assert assert_type(bw.jit(scaled).lower(X), bw.Program)(X).tolist() == [1.0, 2.0]
