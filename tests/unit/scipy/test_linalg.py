"""`bw.scipy.linalg` against SciPy: values, batches, derivatives to second order, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import bwcompiler as bw
from bwcompiler.errors import ShapeError
from tests.support.derivatives import check_derivatives
from tests.unit.frontend.comparing import run_traced

linalg = bw.scipy.linalg
rng = np.random.default_rng(12)
A = rng.normal(size=(4, 4))
SPD = A @ A.T + np.eye(4)
B, VECTOR = rng.normal(size=(4, 2)), rng.normal(size=4)
STACK = rng.normal(size=(3, 4, 4)) + 2 * np.eye(4)


def traced(fun: Any, *args: Any) -> Any:
    return run_traced(fun, *args)[0]


def same(found: Any, expected: Any, rtol: float = 1e-11) -> None:
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("trans", [0, "T"])
@pytest.mark.parametrize("unit", [False, True])
def test_triangles(lower: bool, trans: Any, unit: bool) -> None:
    for right in (B, VECTOR):
        same(traced(lambda a, b: linalg.solve_triangular(a, b, trans, lower, unit), A, right),
             scipy.linalg.solve_triangular(A, right, trans, lower, unit))
    check_derivatives(lambda a, b: linalg.solve_triangular(a, b, trans, lower, unit), A, B)


@pytest.mark.parametrize("lower", [False, True])
def test_cholesky_factors_and_solves(lower: bool) -> None:
    odd = SPD + np.triu(np.ones((4, 4)), 1) * (1 if lower else 0) + np.tril(np.ones((4, 4)), -1) * (0 if lower else 1)
    same(traced(lambda a: linalg.cholesky(a, lower), odd), scipy.linalg.cholesky(odd, lower))                # one triangle is read
    for right in (B, VECTOR):
        same(traced(lambda a, b: linalg.cho_solve(linalg.cho_factor(a, lower), b), SPD, right), np.linalg.solve(SPD, right))
    check_derivatives(lambda a, b: linalg.cho_solve(linalg.cho_factor(a @ a.T + np.eye(4), lower), b), A, B)
    same(linalg.cho_solve(scipy.linalg.cho_factor(SPD, lower), B), np.linalg.solve(SPD, B))                  # of SciPy's factor, eagerly


@pytest.mark.parametrize("trans", [0, 1])
def test_lu(trans: int) -> None:
    factors, pivots = traced(linalg.lu_factor, A)
    expected, exchanged = scipy.linalg.lu_factor(A)
    same(factors, expected)
    np.testing.assert_array_equal(pivots, exchanged)
    assert pivots.dtype == exchanged.dtype
    for right in (B, VECTOR):
        same(traced(lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b, trans), A, right), np.linalg.solve(A.T if trans else A, right))
    check_derivatives(lambda a: linalg.lu_factor(a)[0], A)
    check_derivatives(lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b, trans), A, B)
    same(bw.jit(lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b, trans))(STACK, STACK[..., :2]),
         np.linalg.solve(np.swapaxes(STACK, 1, 2) if trans else STACK, STACK[..., :2]))


def test_factors_of_lu() -> None:
    for found, expected in zip(traced(linalg.lu, A), scipy.linalg.lu(A), strict=True):
        same(found, expected)
    permutation, lower, upper = traced(linalg.lu, STACK)
    same(permutation @ lower @ upper, STACK)
    same(traced(lambda a: linalg.lu(a, permute_l=True), A)[0], scipy.linalg.lu(A, permute_l=True)[0])
    check_derivatives(lambda a: linalg.lu(a), A)


@pytest.mark.parametrize("scale", [0.0, 1e-8, 0.3, 1.0, 30.0])
def test_expm(scale: float) -> None:
    a = A * scale
    same(traced(linalg.expm, a), scipy.linalg.expm(a), rtol=1e-10 if scale < 10 else 1e-8)
    if 0 < scale < 10:
        check_derivatives(linalg.expm, a, tolerance=1e-5)
    same(traced(linalg.expm, STACK), np.stack([scipy.linalg.expm(one) for one in STACK]), rtol=1e-10)


def test_expm_at_its_ends(rng: np.random.Generator) -> None:
    assert np.isnan(traced(lambda a: linalg.expm(a, 4), A * 1e3)).all()
    assert traced(linalg.expm, np.zeros((0, 0))).shape == (0, 0)
    direction = rng.normal(size=(4, 4))
    slope = bw.jvp(linalg.expm, (A,), (direction,))[1]
    same(slope, scipy.linalg.expm_frechet(A, direction, compute_expm=False), rtol=1e-8)


def test_sqrtm() -> None:
    a = A @ A.T + 0.1 * np.eye(4) + 0.2 * np.triu(A, 1)
    same(bw.jit(linalg.sqrtm)(a), scipy.linalg.sqrtm(a).real, rtol=1e-9)
    same(bw.jit(lambda a: linalg.sqrtm(a) @ linalg.sqrtm(a))(a), a, rtol=1e-9)
    check_derivatives(linalg.sqrtm, a, tolerance=1e-5)
    assert linalg.sqrtm(np.zeros((0, 0))).shape == (0, 0)


@pytest.mark.parametrize("eigenvalues", [(-1.0, 2.0, 3.0), (-3.2, -0.7, 1.7), (-1.0, -2.0, -3.0)])
def test_sqrtm_without_a_real_root_raises(eigenvalues: tuple[float, ...]) -> None:
    """Newton's method does not converge then; SciPy's root is complex, as is that of the complex matrix."""
    q = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    a = (q * eigenvalues) @ q.T
    for function in (bw.jit(linalg.sqrtm), bw.grad(lambda a: linalg.sqrtm(a).sum())):
        with pytest.raises(ValueError, match=r"sqrtm: the matrix .* has eigenvalues on the negative real axis"):
            function(a)
    root = linalg.sqrtm(a.astype(complex))
    np.testing.assert_allclose(root @ root, a, atol=1e-9)


def test_matrix_equations(rng: np.random.Generator) -> None:
    q = rng.normal(size=(4, 3))
    b = rng.normal(size=(3, 3))
    same(traced(linalg.solve_sylvester, A, b, q), scipy.linalg.solve_sylvester(A, b, q), rtol=1e-9)
    check_derivatives(linalg.solve_sylvester, A, b, q, tolerance=1e-5)
    same(traced(linalg.solve_continuous_lyapunov, A, SPD), scipy.linalg.solve_continuous_lyapunov(A, SPD), rtol=1e-9)
    same(traced(linalg.solve_discrete_lyapunov, A / 3, SPD), scipy.linalg.solve_discrete_lyapunov(A / 3, SPD), rtol=1e-9)
    with pytest.raises(ShapeError, match="do not fit"):
        linalg.solve_sylvester(A, b, q.T)


def test_structures(rng: np.random.Generator) -> None:
    c, r, ab = rng.normal(size=4), rng.normal(size=3), rng.normal(size=(4, 6))
    for name, args in (("toeplitz", (c,)), ("toeplitz", (c, r)), ("hankel", (c,)), ("hankel", (c, r)), ("circulant", (c,)), ("companion", (c,)),
                       ("block_diag", (A, B, c, np.zeros((0, 2))))):
        ours, theirs = getattr(linalg, name), getattr(scipy.linalg, name)
        same(traced(ours, *args), theirs(*args))
        same(ours(*args), theirs(*args))
        check_derivatives(ours, *args)
    for right in (rng.normal(size=6), rng.normal(size=(6, 2))):
        same(traced(lambda ab, b: linalg.solve_banded((2, 1), ab, b), ab, right), scipy.linalg.solve_banded((2, 1), ab, right), rtol=1e-9)
    check_derivatives(lambda ab, b: linalg.solve_banded((2, 1), ab, b), ab + 2 * (np.arange(4) == 1)[:, None], rng.normal(size=6))
    same(traced(lambda c, b: linalg.solve_toeplitz((c, c[::-1]), b), c + np.arange(4)[::-1], VECTOR),
         scipy.linalg.solve_toeplitz((c + np.arange(4)[::-1], (c + np.arange(4)[::-1])[::-1]), VECTOR), rtol=1e-9)


def test_what_is_as_in_numpy() -> None:
    for ours, theirs in ((linalg.inv, scipy.linalg.inv), (linalg.det, scipy.linalg.det), (linalg.norm, scipy.linalg.norm),
                         (linalg.pinv, scipy.linalg.pinv), (linalg.svdvals, scipy.linalg.svdvals), (linalg.eigvalsh, scipy.linalg.eigvalsh)):
        same(traced(ours, SPD), theirs(SPD), rtol=1e-9)
    for assume in (None, "pos", "sym", "upper triangular"):
        same(traced(lambda a, b, assume=assume: linalg.solve(a, b, assume_a=assume), SPD, B), scipy.linalg.solve(SPD, B, assume_a=assume or "gen"))
    q, r = traced(lambda a: linalg.qr(a, mode="economic"), B)
    same(q @ r, B)


def test_generalised_eigenvalues() -> None:
    b = SPD + np.diag(np.arange(4.0))
    for lower in (True, False):
        values, vectors = traced(lambda a, b: linalg.eigh(a, b, lower), A + A.T, b)
        same(values, scipy.linalg.eigh(A + A.T, b, eigvals_only=True), rtol=1e-9)
        same(vectors.T @ b @ vectors, np.eye(4))
        same((A + A.T) @ vectors, b @ vectors * values, rtol=1e-8)
    check_derivatives(lambda a: linalg.eigh(a + a.T, a @ a.T + np.eye(4), eigvals_only=True), A, tolerance=1e-5)
