"""The Cholesky factorisation and its derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.ir.op import REGISTRY
from bwcompiler.lowering.libraries.cholesky_calls import WHOLE
from tests.support.gradcheck import vjp
from tests.support.opcases import case, op_tests

N = 3
A = np.cos(np.arange(18.0)).reshape(2, N, N) + 3 * np.eye(N)
SPD = A @ A.swapaxes(1, 2)
FACTOR = np.linalg.cholesky(SPD)
SYMMETRIC = A + A.swapaxes(1, 2)
Z = A[0] + 1j * np.sin(np.arange(9.0) + 1.0).reshape(N, N)
NOTHING = np.zeros((0, 0))

CASES = [
    case("cholesky", SPD).but(symmetric=True), case("cholesky", SPD[0]).but(symmetric=True),
    case("cholesky", SPD[0, :1, :1]).but(symmetric=True), case("cholesky", NOTHING), case("cholesky", SPD[:0]),
    case("cholesky", Z @ Z.conj().T).but(smooth=False),
    case("cholesky_or_nan", np.stack([SPD[0], -SPD[1]])).but(smooth=False), case("cholesky_or_nan", SPD[0, :1, :1]).but(smooth=False),
    case("cholesky_or_nan", NOTHING), case("cholesky_or_nan", Z @ Z.conj().T).but(smooth=False),
    *[case("cholesky_tangent", factor, change).but(symmetric=True) for factor, change in (
        (FACTOR, SYMMETRIC), (FACTOR[0], SYMMETRIC[1]), (FACTOR[0, :1, :1], SYMMETRIC[0, :1, :1]), (FACTOR[:0], A[:0]), (NOTHING, NOTHING))],
    case("cholesky_adjoint", FACTOR, A), case("cholesky_adjoint", FACTOR[0], A[1]), case("cholesky_adjoint", FACTOR[0, :1, :1], A[0, :1, :1]),
    case("cholesky_adjoint", FACTOR[:0], A[:0]), case("cholesky_adjoint", NOTHING, NOTHING),
]
test_op = op_tests(CASES)


def differences(direction: Any, step: float = 1e-6) -> Any:
    """The derivative of the factor."""
    return (np.linalg.cholesky(SPD + step * direction) - np.linalg.cholesky(SPD - step * direction)) / (2 * step)


@pytest.mark.parametrize("direction", [np.eye(N), np.ones((N, N)), SPD[1]])
def test_references_are_derivatives(direction):
    change = differences(direction)
    np.testing.assert_allclose(REGISTRY["cholesky_tangent"].reference(FACTOR, direction + 0 * SPD), change, rtol=1e-6, atol=1e-9)
    adjoint = REGISTRY["cholesky_adjoint"].reference(FACTOR, A)
    np.testing.assert_allclose(np.sum(adjoint * direction, (1, 2)), np.sum(np.tril(A) * change, (1, 2)), rtol=1e-6)


def test_cholesky_reads_the_lower_triangle_and_gives_a_symmetric_cotangent():
    factor = REGISTRY["cholesky"].reference(np.tril(SPD))
    np.testing.assert_allclose(factor @ factor.swapaxes(1, 2), SPD, rtol=1e-12)
    [bar] = vjp(case("cholesky", SPD).program(), [0]).run(SPD, A)
    np.testing.assert_allclose(bar, bar.swapaxes(1, 2), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n", [1, 2, 4, 5, 16, 33, WHOLE, WHOLE + 1, 96, 131, 420])
def test_compiled_derivatives_are_the_formulas(n, dtype):
    """One block and many, the last one of fewer columns; operands in any order; a batch."""
    a = np.random.default_rng(n).standard_normal((2, n, n))
    positive, weights = a @ a.swapaxes(1, 2) / n + np.eye(n), np.sin(np.arange(2.0 * n * n)).reshape(2, n, n)
    factor = np.linalg.cholesky(positive)
    operands = [x.astype(dtype) for x in (positive, a + a.swapaxes(1, 2), weights)]

    def both(positive: Any, change: Any, weights: Any) -> Any:
        value, tangent = bw.jvp(np.linalg.cholesky, (positive,), (change.swapaxes(1, 2),))
        [cotangent] = bw.vjp(np.linalg.cholesky, positive)[1](weights.swapaxes(1, 2))
        return value, tangent, cotangent

    found = bw.jit(both)(*operands)
    tangent, cotangent = [REGISTRY[f"cholesky_{name}"].reference(factor, x) for name, x in (
        ("tangent", a + a.swapaxes(1, 2)), ("adjoint", weights.swapaxes(1, 2)))]
    for one, other in zip(found, (factor, tangent, cotangent), strict=True):
        assert one.dtype == dtype
        np.testing.assert_allclose(one, other, rtol=0, atol=(1e-3 if dtype == "f4" else 1e-12) * np.max(np.abs(other)))


@pytest.mark.parametrize("n", [3, WHOLE + 6])
def test_second_derivatives(n):
    """Forward over reverse, reverse over reverse and reverse over forward, against differences of the gradient."""
    a = np.random.default_rng(n).standard_normal((n, n))
    positive, direction = a @ a.T / n + np.eye(n), a + a.T

    def f(a: Any) -> Any:
        return np.sum(np.sin(np.linalg.cholesky(a) * np.arange(1.0, n + 1)))

    gradient, step = bw.jit(bw.grad(f)), 1e-6
    expected = (gradient(positive + step * direction) - gradient(positive - step * direction)) / (2 * step)
    products = (lambda a: bw.jvp(bw.grad(f), (a,), (direction,))[1], bw.grad(lambda a: np.sum(bw.grad(f)(a) * direction)),
                bw.grad(lambda a: bw.jvp(f, (a,), (direction,))[1]))
    for product in products:
        np.testing.assert_allclose(product(positive), expected, rtol=0, atol=1e-7 * np.max(np.abs(expected)))


def test_failures_are_those_of_numpy():
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        REGISTRY["cholesky"].reference(-np.eye(2))
