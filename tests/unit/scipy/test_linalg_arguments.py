"""`bw.scipy.linalg` takes SciPy's arguments: its parameters in their places, its options, and stacks of matrices."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import bwcompiler as bw
from bwcompiler.errors import UnsupportedError
from tests.support.derivatives import check_derivatives

linalg = bw.scipy.linalg
rng = np.random.default_rng(21)
A = rng.normal(size=(2, 3, 4, 4)) + 3 * np.eye(4)
COMPLEX = A[0] + 1j * rng.normal(size=(3, 4, 4))
SPD = A @ np.swapaxes(A, -1, -2) + np.eye(4)
WIDE, TALL, V = rng.normal(size=(3, 2, 4)), rng.normal(size=(3, 4, 2)), rng.normal(size=(3, 4)) + 2
BANDS = np.stack([np.r_[0, 0.5, 0.4, 0.3], np.full(4, 4.0)])
OF_VERSIONS = {"logm": {"disp"}, "signm": {"disp"}, "sqrtm": {"disp", "blocksize"}}                # which SciPy takes away
SHARED = sorted([name for name in linalg.__all__ if inspect.isfunction(getattr(scipy.linalg, name, None))])


@pytest.mark.parametrize("name", SHARED)
def test_parameters_are_those_of_scipy(name: str) -> None:
    mine, theirs = (inspect.signature(getattr(module, name)).parameters for module in (linalg, scipy.linalg))
    expected = [one for one in theirs if one not in OF_VERSIONS.get(name, ())]
    assert set(expected) <= set(mine)
    positional = [one for one in expected if theirs[one].kind is not inspect.Parameter.KEYWORD_ONLY]
    assert list(mine)[:len(positional)] == positional


def of(function: Any, *args: Any) -> Any:
    """The arrays that it returns."""
    found = function(*args)
    return [leaf for part in found for leaf in of(lambda: part)] if isinstance(found, tuple | list) else [found]


def ordered(values: Any) -> Any:
    return np.sort_complex(np.round(values, 9))


# name -> (function of (module, arrays), arrays)
CASES: dict[str, tuple[Any, ...]] = {
    "qr with pivoting": (lambda m, a: m.qr(a, pivoting=True), A),
    "qr with pivoting, economic": (lambda m, a: m.qr(a, False, None, "economic", True), TALL),
    "r of a tall matrix": (lambda m, a: m.qr(a, mode="r"), TALL[0]),
    "rq": (lambda m, a: m.rq(a), WIDE),
    "rq of tall matrices": (lambda m, a: m.rq(a, mode="economic"), TALL),
    "r of rq": (lambda m, a: m.rq(a, mode="r"), TALL),
    "pinv with rank": (lambda m, a: m.pinv(a, atol=0.5, return_rank=True), TALL),
    "pinvh with rank": (lambda m, a: m.pinvh(a, return_rank=True), SPD),
    "pinvh, complex": (lambda m, a: m.pinvh(a, lower=False), COMPLEX),
    "eigenvalues by number": (lambda m, a: m.eigvalsh(a, subset_by_index=[1, 2]), SPD),
    "eigenvalues of the second kind": (lambda m, a, b: m.eigh(a, b, type=2, eigvals_only=True), COMPLEX, SPD[0]),
    "eigenvalues of the third kind": (lambda m, a, b: m.eigvalsh(a, b, type=3, lower=False), A[0], SPD[1]),
    "eigenvectors of the third kind": (lambda m, a, b: abs(m.eigh(a, b, type=3)[1]), A[0], SPD[1]),
    "generalised eigenvalues": (lambda m, a, b: ordered(m.eigvals(a, b)), A[0], SPD[1]),
    "tridiagonal": (lambda m, d, e: m.eigvalsh_tridiagonal(d, e, "i", (0, 1)), V, V[0, 1:]),
    "bands": (lambda m, b: abs(m.eig_banded(b)[1]), BANDS),
    "Cholesky factor of bands": (lambda m, b: m.cholesky_banded(b), BANDS),
    "Cholesky factor of lower bands": (lambda m, b: m.cholesky_banded(b[::-1], lower=True), np.stack([BANDS[0, [1, 2, 3, 0]], BANDS[1]])),
    "solution by bands": (lambda m, b, v: m.cho_solve_banded((m.cholesky_banded(b), False), v), BANDS, V[0]),
    "inverse of a definite matrix": (lambda m, a: m.inv(a, assume_a="pos"), SPD),
    "hessenberg": (lambda m, a: m.hessenberg(a, True), A[0]),
    "hessenberg, complex": (lambda m, a: m.hessenberg(a, calc_q=True), COMPLEX),
    "sqrtm": (lambda m, a: m.sqrtm(a), SPD), "logm": (lambda m, a: m.logm(a), SPD), "signm": (lambda m, a: m.signm(a), A[1]),
    "power": (lambda m, a: m.fractional_matrix_power(a, 0.3), SPD[0]), "polar": (lambda m, a: m.polar(a), TALL),
    "expm_frechet": (lambda m, a, e: m.expm_frechet(a, e), A[0] / 3, A[1, 0]),
    "sylvester": (lambda m, a, b, q: m.solve_sylvester(a, b, q), SPD[0], SPD[1, 0], A[0]),
    "lyapunov": (lambda m, a, q: (m.solve_continuous_lyapunov(a, q), m.solve_discrete_lyapunov(a / 20, q)), SPD[0], SPD[1]),
    "procrustes": (lambda m, a, b: m.orthogonal_procrustes(a, b), A[0], A[1]),
    "angles": (lambda m, a, b: m.subspace_angles(a, b), TALL, TALL[0, :, :1]),
    "band matrix": (lambda m, a, b: m.solve_banded((1, 1), a, b), np.stack([V, 5 + V, V], 1), V[0]),
    "definite band matrix": (lambda m, a, b: m.solveh_banded(a, b), BANDS, V[0]),
    "least squares": (lambda m, a, b: m.lstsq(a, b), TALL, V[..., None]),
    "circulant": (lambda m, a, b: (m.circulant(a), m.solve_circulant(a, b, baxis=1, outaxis=1)), V, V + 1),
    "singular circulant": (lambda m, a: m.solve_circulant(a, a, singular="lstsq"), np.ones(4)),
    "structured": (lambda m, a: (m.toeplitz(a), m.toeplitz(a, a + 1), m.companion(a), m.fiedler(a), m.leslie(a, a[..., 1:]),
                                 m.convolution_matrix(a, 3), m.convolution_matrix(a, 3, "same"), m.block_diag(a, a[..., :2, :])), V),
    "toeplitz": (lambda m, a, b: (m.solve_toeplitz(a + 3 * np.eye(4)[0], b), m.matmul_toeplitz((a, a), b)), V, V[0]),
}


@pytest.mark.parametrize("name", CASES)
def test_as_scipy(name: str) -> None:
    function, *arrays = CASES[name]
    found, expected = of(bw.jit(lambda *xs: function(linalg, *xs)), *arrays), of(function, scipy.linalg, *arrays)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-9, strict=True)


def test_derivatives_of_batches() -> None:
    check_derivatives(lambda r, i: linalg.hessenberg(r + 1j * i).real, COMPLEX[0].real, COMPLEX[0].imag)
    check_derivatives(lambda a: linalg.qr(a, pivoting=True)[1], A[0, 0])
    check_derivatives(lambda a: linalg.sqrtm(a), SPD[0])
    check_derivatives(lambda a, b: linalg.eigvalsh(a @ np.swapaxes(a, -1, -2), b @ b.T + np.eye(4), type=3), A[0, 0], A[0, 1])
    check_derivatives(lambda b, v: linalg.cho_solve_banded((linalg.cholesky_banded(b), False), v), BANDS, V[0])


def test_what_depends_on_data_is_refused() -> None:
    for function in (lambda a: linalg.eigh(a, subset_by_value=(0, 1)), lambda a: linalg.eigvalsh_tridiagonal(a[0], a[0, 1:], "v", (0, 1))):
        with pytest.raises(UnsupportedError):
            bw.jit(function)(SPD[0, 0])
    with pytest.raises(ValueError, match="zero-size batches"):
        linalg.sqrtm(np.ones((0, 2, 2)))
