"""Factorisations and linear solves."""

from __future__ import annotations

import numpy as np
import pytest

from bwcompiler.errors import DTypeError, ShapeError
from bwcompiler.ir.op import REGISTRY
from bwcompiler.ir.types import C128, F64, I64, tensor
from tests.support.gradcheck import vjp
from tests.support.opcases import case, op_tests

N = 3
A = np.cos(np.arange(18.0)).reshape(2, N, N) + 3 * np.eye(N)
B = np.sin(np.arange(12.0)).reshape(2, N, 2)
Z = A + 1j * np.sin(np.arange(18.0)).reshape(2, N, N)
NOTHING = np.zeros((0, 0))
LU = REGISTRY["lu"].reference(A)
Z = A + 1j * np.sin(np.arange(A.size) + 1.0).reshape(A.shape)
Z_LU = REGISTRY["lu"].reference(Z)

CASES = [
    case("solve", A, B), case("solve", A[0], B[0, :, :1]), case("solve", Z, B + 0.5j), case("solve", A[:0], B[:0]),
    case("solve", NOTHING, np.zeros((0, 2))), case("solve", A[0, :1, :1], B[0, :1]), case("solve", A[0], B[0, :, :0]),
    *[case("triangular_solve", a, b, lower=lower, transpose=transpose) for lower in (False, True)
      for transpose in (False, True) for a, b in ((A, B), (Z[0], B[0] * 1j), (A[0, :1, :1], B[0, :1]), (A[:0], B[:0]))],
    case("inv", A), case("inv", Z[0]), case("inv", NOTHING), case("inv", A[0, :1, :1]),
    case("lu", Z), *[case("lu_solve", Z_LU, (1 + 1j) * B, transpose=transpose) for transpose in (False, True)],
    case("lu", A), case("lu", A[0]), case("lu", np.zeros((2, 2))).but(smooth=False), case("lu", A[:0]), case("lu", NOTHING),
    *[case("lu_solve", lu, b, transpose=transpose) for transpose in (False, True)
      for lu, b in ((LU, B), (LU[0], B[0]), (LU[:0], B[:0]), (np.zeros((1, 0)), np.zeros((0, 2))))],
]
test_op = op_tests(CASES)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
def test_triangular_solve_reads_one_triangle(lower, transpose):
    triangle = np.tril(A) if lower else np.triu(A)
    x = REGISTRY["triangular_solve"].reference(A, B, lower=lower, transpose=transpose)
    product = (triangle.swapaxes(1, 2) if transpose else triangle) @ x
    np.testing.assert_allclose(product, B, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("transpose", [False, True])
def test_lu_factors_and_solves(transpose):
    factors, n = LU[:, :N].swapaxes(1, 2), N
    product = (np.tril(factors, -1) + np.eye(n)) @ np.triu(factors)
    for matrix, rows in zip(product, LU[:, N].astype(int), strict=True):
        for k in reversed(range(n)):
            matrix[[k, rows[k]]] = matrix[[rows[k], k]]
    np.testing.assert_allclose(product, A, rtol=1e-13, atol=1e-14)
    x = REGISTRY["lu_solve"].reference(LU, B, transpose=transpose)
    np.testing.assert_allclose((A.swapaxes(1, 2) if transpose else A) @ x, B, rtol=1e-12, atol=1e-14)


def test_failures_are_those_of_numpy():
    singular = np.zeros((2, 2))
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        REGISTRY["solve"].reference(singular, singular)
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        REGISTRY["triangular_solve"].reference(singular, singular, lower=True, transpose=False)
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        REGISTRY["inv"].reference(singular)


def test_complex_cholesky_has_a_hermitian_cotangent():
    a = np.array([[4.0, 1 - 1j, 0.5j], [1 + 1j, 3.0, 0.2], [-0.5j, 0.2, 2.0]])
    seed = np.tril(np.arange(9.0).reshape(3, 3) + 1j * np.arange(9.0)[::-1].reshape(3, 3))
    [bar] = vjp(case("cholesky", a).program(), [0]).run(a, seed)
    np.testing.assert_allclose(bar, bar.conj().T, atol=1e-13)
    direction = np.array([[1.0, 0.3j, 0.2], [-0.3j, 0.5, 1 - 1j], [0.2, 1 + 1j, -0.4]])
    step = 1e-6
    change = (np.linalg.cholesky(a + step * direction) - np.linalg.cholesky(a - step * direction)) / (2 * step)
    np.testing.assert_allclose(np.sum(bar * direction).real, np.sum(seed * change).real, rtol=1e-7)


SQUARE, SIDE = tensor(F64, (2, 2)), tensor(F64, (2, 3))


@pytest.mark.parametrize(("name", "types"), [
    ("solve", (SIDE, SIDE)), ("solve", (SQUARE, tensor(F64, (3, 1)))), ("solve", (SQUARE, tensor(F64, (1, 2, 1)))),
    ("solve", (SQUARE, tensor(F64, (2,)))), ("inv", (SIDE,)), ("cholesky", (tensor(F64, (2,)),)),
])
def test_shape_error(name, types):
    with pytest.raises(ShapeError):
        REGISTRY[name].shape(*types)


@pytest.mark.parametrize(("name", "types"), [
    ("solve", (SQUARE, tensor(C128, (2, 2)))), ("inv", (tensor(I64, (2, 2)),)),
])
def test_dtype_error(name, types):
    with pytest.raises(DTypeError):
        REGISTRY[name].shape(*types)
