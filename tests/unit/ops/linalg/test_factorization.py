"""Decompositions, determinants and the pseudo-inverse."""

from __future__ import annotations

import numpy as np
import pytest

from bwcompiler.errors import DTypeError, ShapeError
from bwcompiler.ir.op import REGISTRY
from bwcompiler.ir.types import F64, I64, tensor
from tests.support.gradcheck import vjp
from tests.support.opcases import case, op_tests

N = 3
A = np.cos(np.arange(18.0)).reshape(2, N, N) + np.diag([3.0, 1.0, -2.0])
SYMMETRIC = A + A.swapaxes(1, 2)
TALL = np.sin(np.arange(24.0)).reshape(2, 4, 3) + np.eye(4, 3)
WIDE = TALL.swapaxes(1, 2)
NOTHING = np.zeros((0, 0))
Z = A + 1j * np.sin(2.0 * np.arange(18.0)).reshape(2, N, N)
Z_TALL = TALL + 1j * np.cos(3.0 * np.arange(24.0)).reshape(2, 4, 3)
Z_WIDE = Z_TALL.swapaxes(1, 2)
SPIRAL = np.array([[1.0, -2.0, 0.3], [2.0, 1.0, 0.1], [0.2, -0.4, 3.0]])          # real, with complex eigenvalues

CASES = [
    *[case("eigh", a, lower=lower) for lower in (False, True) for a in (SYMMETRIC, A[0], A[0, :1, :1], A[:0], NOTHING)],
    *[case("eigvalsh", a, lower=lower) for lower in (False, True) for a in (SYMMETRIC, A[0], A[0, :1, :1], A[:0], NOTHING)],
    *[case("svdvals", a) for a in (A, A[0], TALL, WIDE, TALL[0, :, :1], A[:0])],
    *[case("householder", a) for a in (A, A[0], TALL, TALL[0, :, :1], A[:0])],
    *[case("orthonormal", REGISTRY["householder"].reference(a)).gives(np.linalg.qr(a)[0]) for a in (A, A[0], TALL, A[:0])],
    *[case("svd", a) for a in (A, A[0], TALL, WIDE, TALL[0, :, :1], A[:0])],
    *[case("qr", a) for a in (A, A[0], TALL, TALL[0, :, :1], A[:0])],
    *[case(name, a) for name in ("det", "slogdet") for a in (A, A[0], A[0, :1, :1], A[:0], NOTHING)],
    # of complex matrices: real functions of them are differentiable over the real numbers; of vectors tests/end_to_end/test_complex_linalg.py
    *[case(name, a, **attrs).but(smooth=False) for name, attrs in (("eigh", {"lower": True}), ("eigh", {"lower": False}), ("eig", {}))
      for a in (Z, Z[0], Z[0, :1, :1], Z[:0])],
    *[case(name, a).but(smooth=False) for name in ("svd", "householder") for a in (Z, Z_TALL, Z[:0])],
    case("svd", Z_WIDE).but(smooth=False),
    case("eig", SPIRAL).but(smooth=False),
    case("eig", NOTHING),
    case("orthonormal", REGISTRY["householder"].reference(Z_TALL)).but(smooth=False).gives(np.linalg.qr(Z_TALL)[0]),
    *[case("eigvalsh", Z, lower=lower).but(holomorphic=False) for lower in (False, True)],
    *[case("svdvals", a).but(holomorphic=False) for a in (Z, Z_TALL, Z_WIDE)],
    *[case("qr", a).but(holomorphic=False) for a in (Z, Z_TALL)],
    *[case("det", a) for a in (Z, Z[0, :1, :1], Z[:0])],
    *[case(name, a, *rest) for a, e in ((A, A[::-1]), (A[0], A[1]), (A[:0], A[:0]), (Z, Z[::-1]))
      for name, rest in (("cofactors", ()), ("cofactor_change", (e,)))],
    *[case("eigvals", a) for a in (Z, Z[0], Z[:0])],
    *[case("eigvals", a).but(holomorphic=False) for a in (SPIRAL, SPIRAL[:1, :1], NOTHING)],
    *[case("slogdet", a).but(holomorphic=False) for a in (Z, Z[0, :1, :1], Z[:0])],
    *[case("pinv", a, rcond=1e-8).but(holomorphic=False) for a in (Z, Z_TALL, Z_WIDE)],
    *[case("pinv", a, rcond=rcond) for rcond in (None, 1e-8) for a in (A, TALL, WIDE, A[:0])],
]
test_op = op_tests(CASES)


def test_factors_multiply_to_the_matrix():
    for a in (A, TALL, WIDE):
        packed, (m, n) = REGISTRY["svd"].reference(a), a.shape[-2:]
        u, s, v = packed[:, :m], packed[:, m], packed[:, m + 1:]
        np.testing.assert_allclose((u * s[:, None]) @ v.swapaxes(1, 2), a, rtol=1e-12, atol=1e-14)
        if m >= n:
            packed = REGISTRY["qr"].reference(a)
            np.testing.assert_allclose(packed[:, :m] @ packed[:, m:], a, rtol=1e-12, atol=1e-14)
    packed = REGISTRY["eigh"].reference(np.tril(SYMMETRIC), lower=True)
    w, v = packed[:, 0], packed[:, 1:]
    np.testing.assert_allclose((v * w[:, None]) @ v.swapaxes(1, 2), SYMMETRIC, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["eigh", "svd"])
def test_values_have_derivatives_where_they_coincide(name):
    a = 2.0 * np.eye(N)
    seed = np.zeros((N + 1, N) if name == "eigh" else (2 * N + 1, N))
    seed[0 if name == "eigh" else N] = 1.0                       # the sum of the values, which is the trace
    attrs = {"lower": True} if name == "eigh" else {}
    [bar] = vjp(case(name, a, **attrs).program(), [0]).run(a, seed)
    np.testing.assert_allclose(bar, np.eye(N), rtol=1e-12, atol=1e-14)


def test_types():
    with pytest.raises(ShapeError, match="square"):
        REGISTRY["eigh"].shape(tensor(F64, (2, 3)), lower=True)
    with pytest.raises(ShapeError, match="rows"):
        REGISTRY["qr"].shape(tensor(F64, (2, 3)))
    with pytest.raises(DTypeError, match="int64"):
        REGISTRY["svd"].shape(tensor(I64, (2, 2)))
