"""Of `bw.scipy.linalg`: LU with its permutation, Hessenberg form, RQ, least squares, and the decompositions that are refused."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.api.inside.eager import graph_function
from bwcompiler.api.inside.loops import fori_loop
from bwcompiler.errors import ShapeError, UnsupportedError
from bwcompiler.frontend.tracing.tracer import fresh, value_of
from bwcompiler.nn.activations import number_value
from bwcompiler.ops.contraction import matrix_transpose
from bwcompiler.ops.linalg.factorization import row, rows
from bwcompiler.scipy.linalg.factors import solve_triangular
from bwcompiler.scipy.linalg.matrix_equations import adjoint, matrices
from bwcompiler.scipy.refusals import refused


def _matrix(name: str, given: Any, square: bool = False) -> Any:
    """A float or complex array of at least two axes."""
    a: Any = fresh(number_value(given))
    if a.ndim < 2 or (square and a.shape[-1] != a.shape[-2]):
        raise ShapeError(f"{name}: shape {a.shape} is none of {'square ' if square else ''}matrices")
    return a


# ----- LU
def _exchanged(a: Any, n: int) -> tuple[Any, Any]:
    """The factors of the first n columns of a as `ops.lu` packs them, and the order of the rows after all exchanges."""
    m = a.shape[-2]
    square: Any = a[..., :n] if m == n else np.concatenate([a[..., :n], np.zeros((*a.shape[:-1], m - n), a.dtype)], -1)
    packed = ops.lu(value_of(square))
    lines = row(packed, m)
    pivots: Any = fresh(ops.real(lines) if lines.dtype.is_complex else lines)
    pivots = pivots.astype(np.int64)
    numbers = np.arange(m)

    def exchange(k: Any, order: Any) -> Any:                                # order[k] and order[pivots[k]] change places
        other = np.take_along_axis(pivots, np.broadcast_to(k, (*pivots.shape[:-1], 1)), -1)
        first = np.take_along_axis(order, np.broadcast_to(k, other.shape), -1)
        second = np.take_along_axis(order, other, -1)
        return np.where(numbers == k, second, np.where(numbers == other, first, order))

    order: Any = fori_loop(0, n, exchange, np.broadcast_to(numbers, pivots.shape) + 0 * pivots)
    return fresh(matrix_transpose(rows(packed, 0, m))), order


@graph_function
def lu(a: Any, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True, p_indices: bool = False) -> Any:
    """(P, L, U) with a = P L U, or (P L, U) with permute_l; with p_indices the rows' numbers in the place of P, a = L[p] U.

    The derivative needs the first min(m, n) columns (of P⁻¹ a the rows) to be independent.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.lu(np.array([[1.0, 2.0], [4.0, 2.0]]))[1].tolist()
    [[1.0, 0.0], [0.25, 1.0]]
    """
    matrix = _matrix("lu", a)
    m, n = matrix.shape[-2:]
    least = min(m, n)
    known = fresh(ops.stop_gradient(value_of(matrix))) if m > n else matrix
    factors, order = _exchanged(known, least)
    if m > n:                                                               # P⁻¹ a = [top; rest]: top = L U, rest = M U
        moved = np.take_along_axis(matrix, np.broadcast_to(order[..., None], matrix.shape), -2)
        factors, _ = _exchanged(moved[..., :n, :], n)
    identity = np.eye(least, dtype=matrix.dtype)
    lower, upper = np.tril(factors[..., :least, :least], -1) + identity, np.triu(factors[..., :least, :least])
    if m > n:
        under = np.swapaxes(solve_triangular(upper, np.swapaxes(moved[..., n:, :], -1, -2), "T", False), -1, -2)
        lower = np.concatenate([lower, under], -2)
    elif m < n:
        rest = np.take_along_axis(matrix[..., m:], np.broadcast_to(order[..., None], (*matrix.shape[:-1], n - m)), -2)
        upper = np.concatenate([upper, solve_triangular(lower, rest, 0, True, True)], -1)
    places = np.argsort(order, axis=-1)                                     # where each row of a went
    if p_indices and not permute_l:
        return places.astype(np.int32), lower, upper
    if permute_l:
        return np.take_along_axis(lower, np.broadcast_to(places[..., None], lower.shape), -2), upper
    return (np.arange(m)[:, None] == order[..., None, :]).astype(matrix.real.dtype), lower, upper


# ----- Hessenberg, RQ
@graph_function
def hessenberg(a: Any, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """H = Qᴴ a Q with zeros below the first diagonal under the main one, of a real matrix; or (H, Q).  By Householder's reflections.

    Complex matrices are refused (UnsupportedError).  The matrix is not balanced before.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.hessenberg(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    matrix = _matrix("hessenberg", a, square=True)
    if matrix.ndim != 2 or matrix.dtype.kind == "c":
        raise UnsupportedError("hessenberg of traced values: one real matrix is supported")
    n = matrix.shape[0]
    numbers, identity = np.arange(n), np.eye(n, dtype=matrix.dtype) + 0 * matrix
    if n < 3:
        return (matrix + 0.0, identity) if calc_q else matrix + 0.0

    def reflect(k: Any, state: Any) -> Any:
        h, q = state
        x = np.where(numbers > k, h[:, k], 0.0)
        first = x[k + 1]
        rest = np.sum(np.where(numbers > k + 1, x * x, 0.0))
        size = np.sqrt(np.where(rest > 0, first * first + rest, 1.0))
        one = np.where(numbers == k + 1, np.where(first < 0, -size, size), 0.0)
        v = np.where(rest > 0, x + one, 0.0)                                # nothing to do where the column is zero below
        scale = 2.0 / np.where(rest > 0, v @ v, 1.0)
        h = h - scale * np.outer(v, v @ h)
        h = h - scale * np.outer(h @ v, v)
        return h, q - scale * np.outer(q @ v, v)

    h, q = fori_loop(0, n - 2, reflect, (matrix, identity))
    h = np.triu(h, -1)
    return (h, q) if calc_q else h


@graph_function
def rq(a: Any, mode: str = "full") -> Any:
    """(R, Q) with a = R Q, or R alone (mode "r"), of matrices with no more rows than columns (mode "economic"), or square ones.

    >>> import numpy as np, bwcompiler as bw
    >>> abs(bw.scipy.linalg.rq(np.array([[3.0, 4.0]]), mode="economic")[0]).tolist()
    [[5.0]]
    """
    matrix = _matrix("rq", a)
    m, n = matrix.shape[-2:]
    if mode not in ("full", "economic", "r") or m > n or (mode != "economic" and m != n):
        raise UnsupportedError(f"rq of shape {matrix.shape}, mode={mode!r}: supported are square matrices, and those with fewer rows than "
                               "columns in mode 'economic'")
    q, r = np.linalg.qr(adjoint(matrix[..., ::-1, ::-1]))
    triangle, rows_ = (adjoint(one)[..., ::-1, ::-1] for one in (r, q))
    return triangle if mode == "r" else (triangle, rows_)


# ----- by other decompositions
@graph_function
def lstsq(a: Any, b: Any, cond: float | None = None) -> Any:
    """(x, sums of squares of what is left, rank, singular values): numpy.linalg.lstsq with SciPy's cutoff.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.lstsq(np.array([[1.0], [1.0]]), np.array([1.0, 3.0]))[0].round(9).tolist()
    [2.0]
    """
    matrix = _matrix("lstsq", a)
    found = np.linalg.lstsq(matrix, fresh(number_value(b)), rcond=float(np.finfo(matrix.dtype).eps) if cond is None else cond)
    return tuple(found)


@graph_function
def pinvh(a: Any, rtol: float | None = None, lower: bool = True) -> Any:
    """The Moore-Penrose inverse of a symmetric (Hermitian) matrix, by its eigenvalues.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.pinvh(np.diag([2.0, 0.0])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    matrix = _matrix("pinvh", a, square=True)
    half = np.tril(matrix) if lower else np.triu(matrix)
    whole = half + adjoint(half) - half * np.eye(matrix.shape[-1], dtype=matrix.dtype)
    return np.linalg.pinv(whole, rcond=matrix.shape[-1] * float(np.finfo(matrix.dtype).eps) if rtol is None else rtol)


@graph_function
def orthogonal_procrustes(A: Any, B: Any) -> Any:
    """(R, scale): the orthogonal R that brings A R nearest to B, and the sum of the singular values of Aᴴ B.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.orthogonal_procrustes(np.eye(2), np.eye(2)[::-1])[0].round(9).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    a, b = matrices("orthogonal_procrustes", A, B)
    if a.shape != b.shape:
        raise ValueError(f"the shapes of A and B differ ({a.shape} vs {b.shape})")
    u, s, v = np.linalg.svd(np.conj(b).T @ a)
    return adjoint(u @ v), np.sum(s)


@graph_function
def subspace_angles(A: Any, B: Any) -> Any:
    """The angles between the spaces of the columns of A and B, descending.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.subspace_angles(np.array([[1.0], [0.0]]), np.array([[1.0], [1.0]])).round(6).tolist()
    [0.785398]
    """
    a, b = matrices("subspace_angles", A, B)
    if a.shape[0] != b.shape[0]:
        raise ValueError(f"A and B must have the same number of rows, got {a.shape[0]} and {b.shape[0]}")
    one, two = np.linalg.qr(a)[0], np.linalg.qr(b)[0]
    product = adjoint(one) @ two
    cosines = np.linalg.svd(product, compute_uv=False)
    rest = two - one @ product if a.shape[1] >= b.shape[1] else one - two @ adjoint(product)
    sines = np.linalg.svd(rest, compute_uv=False)[..., ::-1][:cosines.shape[0]]
    small = cosines[::-1] ** 2 >= 0.5
    angles = np.where(small, np.arcsin(np.where(small, np.minimum(sines[::-1], 1.0), 0.0)),
                      np.arccos(np.where(small, 0.0, np.minimum(cosines[::-1], 1.0))))
    return angles


@graph_function
def eigvals(a: Any) -> Any:
    """The eigenvalues, complex always; numpy.linalg.eigvals.

    >>> import numpy as np, bwcompiler as bw
    >>> np.sort(bw.scipy.linalg.eigvals(np.diag([2.0, 1.0]))).tolist()
    [(1+0j), (2+0j)]
    """
    return np.linalg.eigvals(_matrix("eigvals", a, square=True)).astype(np.complex128)


@graph_function
def eig(a: Any, b: Any = None, left: bool = False, right: bool = True) -> Any:
    """(eigenvalues, right eigenvectors of length 1), complex always; the eigenvalues alone with right=False.

    Raises UnsupportedError for the generalised problem (b=) and for left eigenvectors.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.eig(np.array([[2.0]]))[0].tolist()
    [(2+0j)]
    """
    if b is not None or left:
        raise UnsupportedError("eig of traced values: b= and left=True are not supported\n"
                               "  hint: eig(solve(b, a)); eig(a.conj().T) for left ones")
    matrix = _matrix("eig", a, square=True)
    return tuple(np.linalg.eig(matrix)) if right else np.linalg.eigvals(matrix)


@graph_function
def eigh_tridiagonal(d: Any, e: Any, eigvals_only: bool = False) -> Any:
    """Eigenvalues, ascending, and eigenvectors of the real symmetric matrix with diagonal d and e beside it; as a dense matrix.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.eigh_tridiagonal(np.array([1.0, 2.0]), np.array([0.0]), eigvals_only=True).tolist()
    [1.0, 2.0]
    """
    diagonal: Any = fresh(number_value(d))
    beside: Any = fresh(number_value(e))
    matrix = np.diag(diagonal) + np.diag(beside, -1) + np.diag(beside, 1)
    return np.linalg.eigvalsh(matrix) if eigvals_only else tuple(np.linalg.eigh(matrix))


# ----- refused
_RANK = "how many columns it has is the rank, which depends on the data"
null_space = refused("linalg.null_space", _RANK, "np.linalg.svd(a)[2][rank:].conj().T, for a rank that you know")
orth = refused("linalg.orth", _RANK, "np.linalg.svd(a, full_matrices=False)[0][:, :rank], for a rank that you know")
schur = refused("linalg.schur", "whether blocks of real matrices have one or two rows depends on the data",
                 "eig, hessenberg; or logm, sqrtm, solve_sylvester, which are what Schur forms are used for")
qz = refused("linalg.qz", "generalised Schur forms have no derivative here", "eigvals(solve(b, a))")
ldl = refused("linalg.ldl", "whether blocks have one or two rows depends on the data",
              "cholesky for definite matrices, lu_factor for others")
