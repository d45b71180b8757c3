"""Functions of matrices, equations in matrices and decompositions of `bw.scipy.linalg` against SciPy, with derivatives to second order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import bwcompiler as bw
from bwcompiler.errors import ShapeError, UnsupportedError
from bwcompiler.scipy.linalg.matrix_equations import MOST_UNKNOWNS
from tests.support.derivatives import check_derivatives
from tests.unit.frontend.comparing import run_traced

linalg = bw.scipy.linalg
rng = np.random.default_rng(14)
A, B = rng.normal(size=(4, 4)), rng.normal(size=(4, 2))
POSITIVE = A @ A.T + np.eye(4) + 0.2 * rng.normal(size=(4, 4))               # no eigenvalue near the negative axis
LARGE = rng.normal(size=(10, 10)) / 5 + 2 * np.eye(10)
R = np.array([[2.0, 0.3], [0.3, 1.0]])


def traced(fun: Callable[..., Any], *args: Any) -> Any:
    return run_traced(fun, *args)[0]


def close(found: Any, expected: Any, tolerance: float = 1e-9) -> None:
    if isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            close(one, other, tolerance)
        return
    assert np.shape(found) == np.shape(expected) and np.asarray(found).dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * max(np.abs(expected).max(initial=0), 1e-3))


FUNCTIONS = {
    "logm": POSITIVE, "sqrtm": POSITIVE, "signm": A, "cosm": 0.5 * A, "sinm": 0.5 * A, "tanm": 0.5 * A, "coshm": 0.5 * A, "sinhm": 0.5 * A,
    "tanhm": 0.5 * A}


@pytest.mark.filterwarnings("ignore:logm result may be inaccurate")                  # SciPy's of float32
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    ours, theirs, a = getattr(linalg, name), getattr(scipy.linalg, name), FUNCTIONS[name]
    for x in (a, a[:1, :1] ** 2 + 1, a + 0.1j * a.T, a.astype(np.float32)):
        close(traced(ours, x), theirs(x).astype(x.dtype, copy=False), 1e-9 if x.dtype != np.float32 else 1e-3)
    check_derivatives(ours, a, tolerance=1e-5)
    assert traced(ours, np.zeros((0, 0))).shape == (0, 0)
    with pytest.raises(ShapeError):
        traced(ours, np.ones((2, 3)))


def test_powers() -> None:
    for power in (0.3, -1.5, 2, -1):
        close(traced(lambda a, power=power: linalg.fractional_matrix_power(a, power), POSITIVE), scipy.linalg.fractional_matrix_power(POSITIVE, power))
    check_derivatives(linalg.fractional_matrix_power, POSITIVE, np.array(0.4), tolerance=1e-5)
    near = np.diag([-1.0 + 0.01j, 2.0, -3.0 - 0.1j]) + np.triu(np.ones((3, 3)), 1)    # the cut, where real matrices have no real logarithm
    close(traced(linalg.logm, near), scipy.linalg.logm(near))
    close(traced(linalg.sqrtm, near), scipy.linalg.sqrtm(near))


def test_expm_frechet() -> None:
    close(traced(linalg.expm_frechet, A, POSITIVE), tuple(scipy.linalg.expm_frechet(A, POSITIVE)))
    close(traced(lambda a, e: linalg.expm_frechet(a, e, compute_expm=False), A, POSITIVE), scipy.linalg.expm_frechet(A, POSITIVE, compute_expm=False))
    close(bw.jvp(linalg.expm, (A,), (POSITIVE,))[1], scipy.linalg.expm_frechet(A, POSITIVE)[1])
    check_derivatives(lambda a, e: linalg.expm_frechet(a, e), 0.3 * A, 0.3 * POSITIVE)


@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5)], ids=str)
@pytest.mark.parametrize("side", ["right", "left"])
def test_polar(shape: tuple[int, int], side: str, rng: np.random.Generator) -> None:
    a = rng.normal(size=shape)
    close(traced(lambda a: linalg.polar(a, side), a), scipy.linalg.polar(a, side))
    check_derivatives(lambda a: linalg.polar(a, side), a, tolerance=1e-4)
    if (shape[0] >= shape[1]) == (side == "right"):
        equal = np.eye(*shape)                                                       # equal singular values: the rule needs no vectors
        assert np.isfinite(bw.grad(lambda a: linalg.polar(a, side)[0][0, 1])(equal)).all()
    close(traced(lambda a: linalg.polar(a, side), a + 1j), scipy.linalg.polar(a + 1j, side))


# ----- equations
def test_sylvester() -> None:
    for a, b, q in ((POSITIVE, R, B), (LARGE, LARGE + 1, LARGE.T.copy()), (POSITIVE + 1j, R + 0j, B * 1j), (POSITIVE, R, B.astype(np.float32))):
        close(traced(linalg.solve_sylvester, a, b, q), scipy.linalg.solve_sylvester(a, b, q))
    assert LARGE.size > MOST_UNKNOWNS
    check_derivatives(linalg.solve_sylvester, POSITIVE, R, B)
    check_derivatives(linalg.solve_sylvester, LARGE, LARGE + 1, LARGE.T.copy(), order=1)
    stack = np.stack([B, 2 * B])
    close(bw.vmap(lambda q: linalg.solve_sylvester(POSITIVE, R, q))(stack), np.stack([scipy.linalg.solve_sylvester(POSITIVE, R, q) for q in stack]))
    for bad in ((A[:3], R, B), (A, R, B.T), (A[0], R, B)):
        with pytest.raises(ShapeError):
            traced(linalg.solve_sylvester, *bad)
    with pytest.raises(np.linalg.LinAlgError):
        linalg.solve_sylvester(R, -R, R)


@pytest.mark.parametrize("matrix", [A, LARGE, A + 0.3j], ids=["small", "large", "complex"])
def test_lyapunov(matrix: Any) -> None:
    q, shrunk = np.asarray(matrix @ matrix.T), matrix * 0.2
    close(traced(linalg.solve_continuous_lyapunov, matrix, q), scipy.linalg.solve_continuous_lyapunov(matrix, q))
    for method in (None, "direct", "bilinear"):
        close(traced(lambda a, q, m=method: linalg.solve_discrete_lyapunov(a, q, m), shrunk, q), scipy.linalg.solve_discrete_lyapunov(shrunk, q), 1e-7)
    if matrix is A:
        check_derivatives(linalg.solve_continuous_lyapunov, POSITIVE, q)
        for method in ("direct", "bilinear"):
            check_derivatives(lambda a, q, m=method: linalg.solve_discrete_lyapunov(a, q, m), shrunk, q)
    with pytest.raises(ValueError, match="Unknown solver"):
        linalg.solve_discrete_lyapunov(shrunk, q, "odd")


@pytest.mark.parametrize("name", ["solve_continuous_are", "solve_discrete_are"])
def test_riccati(name: str) -> None:
    ours, q = getattr(linalg, name), A.T @ A + np.eye(4)

    def symmetric(a: Any, b: Any, q: Any, r: Any) -> Any:
        return ours(a, b, (q + q.T) / 2, (r + r.T) / 2)

    close(traced(ours, A, B, q, R), getattr(scipy.linalg, name)(A, B, q, R), 1e-8)
    close(traced(lambda r: ours(A, B[:, :1], q, r), 2.0), getattr(scipy.linalg, name)(A, B[:, :1], q, 2.0), 1e-8)
    close(traced(lambda a: ours(a, 1.0, [[3.0]], 2.0), 0.5), getattr(scipy.linalg, name)(0.5, 1.0, [[3.0]], 2.0), 1e-8)
    check_derivatives(symmetric, A, B, q, R, tolerance=1e-4)
    with pytest.raises(ShapeError, match="do not fit"):
        traced(ours, A, B.T, q, R)
    with pytest.raises(UnsupportedError, match="standard form"):
        traced(lambda a: ours(a, B, q, R, e=np.eye(4)), A)


# ----- decompositions
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (6, 4), (3, 5), (1, 3), (3, 1), (2, 4, 4), (80, 80)], ids=str)
def test_lu(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    a = rng.normal(size=shape)
    for options in ({}, {"permute_l": True}, {"p_indices": True}) if a.size > 1 else ({}, {"permute_l": True}):
        close(traced(lambda a, o=options: linalg.lu(a, **o), a), tuple(scipy.linalg.lu(a, **options)))
    if a.size < 40:
        check_derivatives(linalg.lu, a, tolerance=1e-5)
    if a.size > 1:                                                                   # whose P SciPy makes complex
        close(traced(linalg.lu, a + 1j * a[..., ::-1]), scipy.linalg.lu(a + 1j * a[..., ::-1]))


@pytest.mark.parametrize("n", [1, 5, 20])
def test_complex_lu_is_native(n: int, rng: np.random.Generator) -> None:
    a, b = rng.normal(size=(n, n)) + 1j * rng.normal(size=(n, n)), rng.normal(size=(n, 3)) + 1j
    for dtype in (np.complex128, np.complex64):
        tolerance = 1e-10 if dtype is np.complex128 else 1e-3
        factors, pivots = bw.jit(lambda a: linalg.lu_factor(a))(a.astype(dtype))
        expected, exchanged = scipy.linalg.lu_factor(a.astype(dtype))
        close(factors, expected, tolerance)
        np.testing.assert_array_equal(pivots, exchanged)
        for transposed in (0, 1):
            solve = bw.jit(lambda a, b, t=transposed: linalg.lu_solve(linalg.lu_factor(a), b, t))
            for right in (b, b[:, 0]):
                close(solve(a.astype(dtype), right.astype(dtype)), np.linalg.solve(a.T if transposed else a, right).astype(dtype), tolerance)
    program = bw.compile(lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b), a, b)
    assert "bw_zgetrf" in program.as_text("llvm") and "callback" not in program.as_text("llvm")


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_hessenberg(n: int, rng: np.random.Generator) -> None:
    a = rng.normal(size=(n, n))
    close(traced(linalg.hessenberg, a), scipy.linalg.hessenberg(a))
    close(traced(lambda a: linalg.hessenberg(a, True), a), scipy.linalg.hessenberg(a, True))
    check_derivatives(lambda a: linalg.hessenberg(a, True), a, tolerance=1e-5)


OTHERS: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    "rq": ("rq", (A,), {}), "wide rq": ("rq", (B.T.copy(),), {"mode": "economic"}), "r alone": ("rq", (A,), {"mode": "r"}),
    "pinvh": ("pinvh", (A + A.T,), {}), "procrustes": ("orthogonal_procrustes", (A, POSITIVE), {}),
    "angles": ("subspace_angles", (B, POSITIVE[:, :1]), {}), "tridiagonal": ("eigh_tridiagonal", (A[0], A[1, :3]), {"eigvals_only": True}),
    "leslie": ("leslie", (A[0], A[1, :3]), {}), "fiedler": ("fiedler", (A[0],), {}), "khatri_rao": ("khatri_rao", (A, POSITIVE[:3]), {}),
    "convolution": ("convolution_matrix", (A[0],), {"n": 3}), "valid": ("convolution_matrix", (A[0],), {"n": 3, "mode": "valid"}),
    "same": ("convolution_matrix", (A[0],), {"n": 6, "mode": "same"}), "toeplitz": ("matmul_toeplitz", (A[0], B), {}),
    "wide toeplitz": ("matmul_toeplitz", ((A[0, :2], A[1]), B), {}),
    "circulant": ("solve_circulant", (A[0], B), {}),
    "upper bands": ("solveh_banded", (np.array([[0, 0.3, 0.2, 0.1], [4, 5, 3, 2.0]]), B), {}),
    "lower bands": ("solveh_banded", (np.array([[4, 5, 3, 2.0], [0.3, 0.2, 0.1, 0]]), B), {"lower": True}),
    "band eigenvalues": ("eigvals_banded", (np.array([[0, 0.3, 0.2, 0.1], [4, 5, 3, 2.0]]),), {})}


@pytest.mark.parametrize("case", OTHERS)
def test_others(case: str) -> None:
    name, args, options = OTHERS[case]
    found = getattr(scipy.linalg, name)(*args, **options)
    close(traced(lambda *args: getattr(linalg, name)(*args, **options), *args), tuple(found) if isinstance(found, tuple) else found)

    def derived(*args: Any) -> Any:
        args = ((args[0] + args[0].T) / 2,) if name == "pinvh" else args
        return getattr(linalg, name)(*args, **options)

    check_derivatives(derived, *args, tolerance=1e-4)


def test_toeplitz_matrices_are_not_made(rng: np.random.Generator) -> None:
    c, x = rng.normal(size=300_000), rng.normal(size=300_000)                      # of which it would have 720 GB
    close(bw.jit(linalg.matmul_toeplitz)(c, x), scipy.linalg.matmul_toeplitz(c, x), 1e-6)
    close(traced(linalg.matmul_toeplitz, A[0] + 1j * A[1], B), scipy.linalg.matmul_toeplitz(A[0] + 1j * A[1], B))


def test_least_squares_and_eigenvalues(rng: np.random.Generator) -> None:
    right = rng.normal(size=(4, 3))
    x, left, rank, values = traced(linalg.lstsq, B, right)
    expected = scipy.linalg.lstsq(B, right)
    close(x, expected[0])
    close(left, expected[1])
    assert rank == expected[2]
    close(values, expected[3])
    for driver in ("gelsd", "gelsy"):
        for found, one in zip(traced(lambda b: linalg.lstsq(B, b, lapack_driver=driver), right[:, 0]),
                              scipy.linalg.lstsq(B, right[:, 0], lapack_driver=driver), strict=True):
            assert one is found is None or (np.shape(found) == np.shape(one) and np.allclose(found, one))
    close(np.sort_complex(traced(linalg.eigvals, A)), np.sort_complex(scipy.linalg.eigvals(A)))
    values, vectors = traced(linalg.eig, A)
    np.testing.assert_allclose(A @ vectors, vectors * values, atol=1e-9)
    values, left, right = traced(lambda a: linalg.eig(a, left=True), A)
    np.testing.assert_allclose(left.conj().T @ A, values[:, None] * left.conj().T, atol=1e-9)


@pytest.mark.parametrize("name", ["null_space", "orth", "schur", "qz", "ldl"])
def test_refused(name: str) -> None:
    with pytest.raises(UnsupportedError, match=f"{name} of traced values: (.*\n)*.*hint"):
        bw.jit(lambda a: getattr(scipy.linalg, name)(a))(A)


def test_captured() -> None:
    def loss(a):
        gain = scipy.linalg.solve_continuous_are(a, B, np.eye(4), R)
        return (scipy.linalg.logm(a @ a.T + np.eye(4)) ** 2).sum() + np.trace(gain) + scipy.linalg.lu(a)[2][0, 1]

    np.testing.assert_allclose(bw.jit(loss)(A), loss(A), rtol=1e-9)
    check_derivatives(loss, A, order=1, tolerance=1e-5)


# ----- eigenvalues on the negative real axis
CUT = [np.array([[1.0, 2.0], [3.0, 1.0]]), np.array([[-1.0, 2.0], [1.0, -4.0]])]


@pytest.mark.parametrize("name", ["sqrtm", "logm"])
@pytest.mark.parametrize("a", CUT)
def test_roots_and_logarithms_of_matrices_with_negative_eigenvalues(name: str, a: Any) -> None:
    with pytest.raises(ValueError, match=r"(?s)negative real axis.*astype\(complex\)"):
        bw.jit(getattr(scipy.linalg, name))(a)
    function = getattr(scipy.linalg, name)
    close(bw.jit(lambda a: function(a))(a.astype(complex)), function(a.astype(complex)))
    close(bw.jit(lambda a: scipy.linalg.fractional_matrix_power(a, 0.3))(a.astype(complex)), scipy.linalg.fractional_matrix_power(a, 0.3))
    check_derivatives(lambda b: np.real(function(a * (1 + 0.1j) + b)) + np.imag(function(a * (1 + 0.1j) + 1j * b)), np.zeros((2, 2)), order=1)


def test_roots_of_complex_diagonal_matrices() -> None:
    values = np.array([-1.0, -4.0, 2.0, 1j])
    close(bw.jit(scipy.linalg.sqrtm)(np.diag(values)), np.diag(np.sqrt(values)))
    close(bw.jit(scipy.linalg.logm)(np.diag(values)), np.diag(np.log(values)))
