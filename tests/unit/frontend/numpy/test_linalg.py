"""Products, decompositions and norms: NumPy's value, dtype and shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import ShapeError
from tests.unit.frontend.comparing import compare, run_traced

rng = np.random.default_rng(11)
V = rng.normal(size=3)
F = V.astype(np.float32)
B = np.array([True, False, True])
M = rng.normal(size=(2, 3))
T = rng.normal(size=(4, 2, 3))
S = rng.normal(size=(2, 3, 3)) + 3 * np.eye(3)
SPD = S @ S.swapaxes(-1, -2)
TALL = rng.normal(size=(4, 3))
I = np.array([[2, 1, 0], [1, 3, 1], [0, 1, 2]])  # noqa: E741

EXPRESSIONS: dict[str, tuple[Any, ...]] = {
    # Python numbers and lists count as arrays in products (not as weak scalars)
    "strong numbers": (lambda x: (np.outer(2.0, x), np.dot(x, 2.0), np.inner(2, x), np.kron(2.0, x), x @ [1.0, 2.0, 3.0],
                                  np.tensordot(2.0, x, 0), np.einsum(",i->i", 2.0, x), np.vdot(x, [1, 2, 3])), F),
    "boolean": (lambda b: (b @ b, np.outer(b, b), np.dot(b, b), np.kron(b, b), np.inner(b, b), np.einsum("i,j->ij", b, b),
                           np.einsum("i,i", b, b), np.matmul(b[None], b[:, None])), B),
    "stacks of vectors": (lambda t, v: (np.vecdot(t, v), np.linalg.vecdot(t, v)), T, V),
    "stack by matrix": (lambda t, m: (t @ m.T, np.matmul(t, m[0]), np.linalg.matmul(t, m.T)), T, M),
    "linalg names": (lambda m, v: (np.linalg.tensordot(m, v, axes=1), np.linalg.outer(v, v), np.linalg.cross(v, m),
                                   np.linalg.diagonal(m), np.linalg.trace(m)), M, V),
    "cross": (lambda m, v: (np.cross(m, v), np.cross(m.T, v, axisa=0), np.cross(m.T, m.T, axis=0), np.cross(v, v)), M, V),
    "det": (lambda s: (np.linalg.det(s), np.linalg.slogdet(s), np.linalg.slogdet(-s).sign, np.linalg.slogdet(s[0]).logabsdet), S),
    "eigh": (lambda a: (np.linalg.eigh(a), np.linalg.eigh(a, "U"), np.linalg.eigvalsh(a), np.linalg.eigh(a[0]).eigenvalues), SPD),
    "eigh of one triangle": (lambda s: (np.linalg.eigh(s), np.linalg.eigh(s, "U")), S),
    "svd": (lambda s: (np.linalg.svd(s), np.linalg.svd(s, compute_uv=False), np.linalg.svdvals(s)), S),
    "svd of any shape": (lambda a: (np.linalg.svd(a, full_matrices=False), np.linalg.svd(a.T, full_matrices=False).Vh), TALL),
    "qr": (lambda a: (np.linalg.qr(a), np.linalg.qr(a.T), np.linalg.qr(a, mode="r"), np.linalg.qr(a[:3], "complete").Q), TALL),
    "pinv": (lambda a: (np.linalg.pinv(a), np.linalg.pinv(a.T, 0.1), np.linalg.pinv(a, rtol=1e-3)), TALL),
    "lstsq": (lambda a: np.linalg.lstsq(a, a[:, 0] + 1.0), TALL),
    "lstsq of several": (lambda a: np.linalg.lstsq(a, a[:, :2] + 1.0), TALL),
    "inverse tensors": (lambda a: (np.linalg.tensorinv(a.reshape(2, 2, 4), 2), np.linalg.tensorsolve(a, a[0])),
                        rng.normal(size=(4, 4))),
    "powers": (lambda s: tuple(np.linalg.matrix_power(s, n) for n in (-2, -1, 0, 1, 2, 5)), S),
    "powers of integers": (lambda i: (np.linalg.matrix_power(i, 0), np.linalg.matrix_power(i, 3), np.linalg.matrix_power(i, -1)), I),
    "matrix norms": (lambda a: tuple(np.linalg.norm(a, order) for order in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)), TALL),
    "stacked norms": (lambda t: (np.linalg.norm(t, 2, axis=(0, 1)), np.linalg.norm(t, "nuc", axis=(2, 0), keepdims=True),
                                 np.linalg.matrix_norm(t), np.linalg.vector_norm(t, axis=(0, 2)), np.linalg.vector_norm(t, ord=3)), T),
    "cond": (lambda s: tuple(np.linalg.cond(s, p) for p in (None, 2, -2, 1, np.inf, "fro")), S),
    "cond of singular matrices": (lambda s: tuple(np.linalg.cond(s * np.array([1, 0])[:, None, None], p) for p in (1, "fro", -np.inf)), S),
    "cutoffs of their own": (lambda s, c: (np.linalg.pinv(s, c), np.linalg.pinv(s, rtol=[0.0, 0.4])), S, np.array([0.3, 0.5])),
    "pinv of a lower triangle": (lambda a: np.linalg.pinv(a, hermitian=True), S + 1j * S[::-1]),
    "product of two": (lambda t, m: (np.linalg.multi_dot([t, m.T]), np.linalg.multi_dot([m[0], t[0, 0]])), T, M),
    "transforms of half precision": (lambda x: (np.fft.irfft(x), np.fft.hfft(x, 4), np.fft.irfft2(x, axes=(0,)), np.fft.irfft2(x),
                                                np.fft.rfft(x), np.fft.irfftn(x[0])), M.astype(np.float16)),
    "rank": (lambda s: (np.linalg.matrix_rank(s), np.linalg.matrix_rank(s[0] * 0), np.linalg.matrix_rank(s, 1.5)), S),
    "of integers": (lambda i: (np.linalg.det(i), np.linalg.inv(i), np.linalg.eigvalsh(i), np.linalg.norm(i, 2)), I),
    "of float32": (lambda a: (np.linalg.det(a[:3]), np.linalg.svdvals(a), np.linalg.qr(a).R, np.linalg.norm(a, "nuc")),
                   TALL.astype(np.float32)),
}
if hasattr(np, "matvec"):                # from NumPy 2.2 on
    EXPRESSIONS["vectors by matrices"] = (lambda t, v: (np.matvec(t, v), np.vecmat(v[:2], t)), T, V)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_as_numpy(name: str) -> None:
    function, *arrays = EXPRESSIONS[name]
    compare(function, *arrays)


def _through_einsum(x: Any) -> Any:
    y = x * 1
    np.einsum("ii->i", y)[:] = 7.0
    np.einsum("ij->ji", y)[0, 1] = 8.0
    product = np.zeros_like(y)
    np.linalg.multi_dot([y, x, y], out=product)
    return y, np.einsum("iij->ji", np.stack([y, x, y])), product


def test_einsum_gives_views_and_products_take_out() -> None:
    compare(_through_einsum, S[0])


@pytest.mark.parametrize("function", [
    lambda x: np.matmul(x, x, dtype=np.float32, casting="safe"), lambda x: np.einsum("ij->i", x, dtype=np.float32),
    lambda x: np.concatenate([x, x], dtype=np.int64), lambda x: np.hstack([x, x], dtype=np.float32, casting="safe"),
], ids=["matmul", "einsum", "concatenate", "hstack"])
def test_casting_is_checked(function: Callable[[Any], Any]) -> None:
    for call in (function, lambda x: run_traced(function, x)):
        with pytest.raises(TypeError, match="cast"):
            call(S[0])


REFUSED: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "square": (lambda a: np.linalg.det(a), ShapeError, "square"),
    "rank": (lambda a: np.linalg.qr(a[0]), ShapeError, "two-dimensional"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    function, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        run_traced(function, TALL)


def test_singular_matrices_raise_numpys_error() -> None:
    derivative = bw.grad(lambda a: np.linalg.slogdet(a)[1])          # of -inf
    with pytest.raises(np.linalg.LinAlgError):
        derivative(np.zeros((3, 3)))


# ----- norms where they have no derivative
FLAT = {
    "norm": np.linalg.norm, "norm 2": lambda x: np.linalg.norm(x.ravel(), 2), "norm 1": lambda x: np.linalg.norm(x.ravel(), 1),
    "norm inf": lambda x: np.linalg.norm(x.ravel(), np.inf), "norm 3": lambda x: np.linalg.norm(x.ravel(), 3),
    "fro": lambda x: np.linalg.norm(x, "fro"), "vector_norm": np.linalg.vector_norm, "matrix_norm": np.linalg.matrix_norm,
    "rows": lambda x: np.linalg.norm(x, axis=1).sum(), "hypot": lambda x: np.hypot(x[0], x[1]).sum(), "std": np.std,
    "vector_norm 1.5": lambda x: np.linalg.vector_norm(x, ord=1.5),
}


@pytest.mark.parametrize("name", FLAT)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_norms_are_flat_at_zero(name, dtype):
    zeros = np.zeros((2, 3), dtype)
    value, slope = bw.value_and_grad(FLAT[name])(zeros)
    assert value == 0 and value.dtype == dtype
    np.testing.assert_array_equal(slope, zeros)
    if dtype == np.float64 and name != "vector_norm 1.5":                   # whose second derivative is infinite
        np.testing.assert_array_equal(bw.grad(lambda x: np.sum(bw.grad(FLAT[name])(x)))(zeros), zeros)


def test_norms_beside_zero_rows():
    x = np.array([[0.0, 0.0], [3.0, 4.0]])
    np.testing.assert_allclose(bw.grad(lambda x: np.linalg.norm(x, axis=1).sum())(x), [[0, 0], [0.6, 0.8]], rtol=1e-15)
    np.testing.assert_allclose(bw.grad(lambda x: np.sum(np.hypot(x[:, 0], x[:, 1])))(x), [[0, 0], [0.6, 0.8]], rtol=1e-15)
    distances = bw.grad(lambda x: np.sum(np.linalg.norm(x[:, None] - x[None], axis=-1)))(x)
    np.testing.assert_allclose(distances, [[-1.2, -1.6], [1.2, 1.6]], rtol=1e-15)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 16, 17])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_small_cholesky_factors_are_written_out(n: int, dtype: Any, rng: np.random.Generator) -> None:
    root = rng.normal(size=(6, n, n)).astype(dtype)
    a = root @ root.transpose(0, 2, 1) + n * np.eye(n, dtype=dtype)
    a[1] += np.triu(np.ones((n, n), dtype), 1)                                     # only the lower triangle is read
    factor, tolerance = bw.jit(lambda a: np.linalg.cholesky(a)), 1e-12 if dtype is np.float64 else 1e-5
    np.testing.assert_allclose(factor(a), np.linalg.cholesky(a), rtol=tolerance, atol=tolerance)
    views = bw.jit(lambda a: np.linalg.cholesky(a.transpose(0, 2, 1)[::-2]))
    np.testing.assert_allclose(views(a), np.linalg.cholesky(a.transpose(0, 2, 1)[::-2]), rtol=tolerance, atol=tolerance)
    a[3, -1, -1] = np.nan
    np.testing.assert_array_equal(np.isnan(factor(a)), np.isnan(np.linalg.cholesky(a)))
    for wrong in (0.0, -1.0):
        a[4, 0, 0] = wrong
        with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
            factor(a)
    assert ("cholesky of small matrices" in factor.explain(a)) == (n <= 16)


def test_determinants_of_two_rows(rng: np.random.Generator) -> None:
    a = rng.normal(size=(5, 2, 2))
    np.testing.assert_allclose(bw.jit(lambda a: np.linalg.det(a))(a), np.linalg.det(a), rtol=1e-12)
    singular = np.array([[1.0, 2.0], [2.0, 4.0]])
    np.testing.assert_array_equal(bw.grad(lambda a: np.linalg.det(a))(singular), [[4.0, -2.0], [-2.0, 1.0]])
    np.testing.assert_allclose(bw.jvp(lambda a: np.linalg.det(a), (a,), (a,))[1], 2 * np.linalg.det(a), rtol=1e-12)
    complex_ = a + 1j * a[::-1]
    np.testing.assert_allclose(bw.jit(lambda a: np.linalg.det(a))(complex_), np.linalg.det(complex_), rtol=1e-12)
    bw.check_grads(lambda a: np.linalg.det(a), (a,), order=2)


def cofactors(a: np.ndarray) -> np.ndarray:
    """By their definition."""
    n = len(a)
    return np.array([[(-1.0) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(n)] for i in range(n)])


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
def test_determinants_of_singular_matrices(n: int, dtype: type, rng: np.random.Generator) -> None:
    """Their derivatives are the cofactors, of every rank; and the second ones the changes of those."""
    det = lambda a: np.linalg.det(a)
    real = np.dtype(dtype).kind == "f"
    gradient = bw.grad(det, holomorphic=not real)
    tolerance = 2e-4 if dtype is np.float32 else 1e-9
    for rank in range(n + 1):
        a = (rng.integers(-2, 3, (n, rank)) @ rng.integers(-2, 3, (rank, n))).astype(dtype)
        e = rng.standard_normal((n, n)).astype(dtype)
        if not real:
            a, e = a * (1 + 1j), e * (1 - 2j)
        np.testing.assert_allclose(gradient(a), cofactors(a), rtol=tolerance, atol=tolerance * 10)
        if dtype is not np.float32:
            h = 1e-3
            changes = (8 * (cofactors(a + h * e) - cofactors(a - h * e)) - cofactors(a + 2 * h * e) + cofactors(a - 2 * h * e)) / (12 * h)
            np.testing.assert_allclose(bw.jvp(gradient, (a,), (e,))[1], changes, rtol=1e-7, atol=1e-7)
            back = bw.vjp(gradient, a)[1](e)
            np.testing.assert_allclose(back[0] if isinstance(back, tuple) else back, changes, rtol=1e-7, atol=1e-7)


def test_determinants_of_a_stack_with_a_singular_matrix(rng: np.random.Generator) -> None:
    stack = np.stack([rng.standard_normal((4, 4)), np.arange(16.0).reshape(4, 4) % 5, np.zeros((4, 4)), np.eye(4, k=1)])
    expected = np.stack([cofactors(a) for a in stack])
    for found in (bw.grad(lambda a: np.linalg.det(a).sum())(stack), bw.vmap(bw.grad(lambda a: np.linalg.det(a)))(stack)):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    bw.check_grads(lambda a: np.linalg.det(a), (stack[0],), order=3)
    with pytest.raises(np.linalg.LinAlgError):                       # the third derivative by the inverse
        bw.hessian(lambda a: bw.grad(lambda a: np.linalg.det(a))(a)[0, 0])(stack[2])


@pytest.mark.parametrize("shape", [(1, 3), (4, 1), (2, 1, 4), (2, 3)])
def test_what_is_not_square_is_not_hermitian(shape: tuple[int, ...]) -> None:
    for function in (np.linalg.pinv, np.linalg.svd, np.linalg.matrix_rank):
        for call in (function, bw.jit(function, static_argnames="hermitian")):
            with pytest.raises(ValueError, match="must be square"):
                call(np.ones(shape), hermitian=True)


@pytest.mark.parametrize("a", [np.diag([1.0, 0.0]), np.diag([0.0, -2.0, 0.0]), np.zeros((2, 2)), np.diag([1.0, -0.0]).astype(complex)])
def test_singular_vectors_of_singular_symmetric_matrices(a: np.ndarray) -> None:
    found = bw.jit(lambda a: np.linalg.svd(a, hermitian=True))(a)
    for vectors in (found.U, found.Vh):
        np.testing.assert_allclose(vectors @ vectors.conj().T, np.eye(len(a)), atol=1e-15)
    np.testing.assert_allclose(found.U * found.S @ found.Vh, a, atol=1e-15)


def test_one_cutoff_of_a_pseudoinverse() -> None:
    with pytest.raises(ValueError, match="both"):
        bw.jit(lambda a: np.linalg.pinv(a, 0.1, rtol=0.1))(np.eye(2))


WITH_ZEROS = [[[0.0], [0.0]], [[1.0], [0.0]], [[-1.0], [0.0]], [[0.0, 2.0], [1.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]],
              [[0.3, 1.0], [0.0, -2.0], [0.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]], [[1.0, 2.0], [3.0, 5.0], [0.5, 7.0]]]


@pytest.mark.parametrize("matrix", WITH_ZEROS)
@pytest.mark.parametrize("dtype", [float, np.float32, complex])
def test_bases_are_completed_beside_columns_of_the_identity(matrix: list[list[float]], dtype: type) -> None:
    a, tolerance = np.array(matrix, dtype), 1e-5 if dtype is np.float32 else 1e-13
    q, r = bw.jit(lambda a: tuple(np.linalg.qr(a, "complete")))(a)
    np.testing.assert_allclose(q, np.linalg.qr(a, "complete")[0], atol=tolerance)
    np.testing.assert_allclose(q @ r, a, atol=tolerance)
    for b in (a, a.T):
        u, s, v = bw.jit(lambda b: tuple(np.linalg.svd(b)))(b)
        for square in (u, v):
            np.testing.assert_allclose(square @ square.conj().T, np.eye(len(square)), atol=tolerance)
        np.testing.assert_allclose(u[:, :len(s)] * s @ v[:len(s)], b, atol=tolerance)
    if np.linalg.matrix_rank(a) == a.shape[1] and dtype is float:
        turning = q.T @ bw.jvp(lambda a: np.linalg.qr(a, "complete")[0], (a,), (np.cos(np.arange(a.size)).reshape(a.shape),))[1]
        np.testing.assert_allclose(turning, -turning.T, atol=tolerance)
