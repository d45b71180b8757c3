"""Of `bw.scipy.linalg`: LU with its permutation, Hessenberg form, RQ, least squares, and the decompositions that are refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.api.inside.eager import graph_function
from bwcompiler.api.inside.loops import fori_loop
from bwcompiler.errors import ShapeError, UnsupportedError
from bwcompiler.frontend.numpy.linalg.decompositions import complex_eig
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.operands import number_value
from bwcompiler.frontend.tracing.registry import refuse_options
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ops.linalg.contraction import matrix_transpose
from bwcompiler.ops.linalg.factorization import row, rows
from bwcompiler.scipy.linalg.batches import EITHER, over_batches
from bwcompiler.scipy.linalg.factors import eigh, pinv, solve, solve_triangular
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


@over_batches(a=2)
def hessenberg(a: Any, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """H = Qᴴ a Q with zeros below the first diagonal under the main one; or (H, Q).  By Householder's reflections, without balancing.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.hessenberg(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    matrix = _matrix("hessenberg", a, square=True)
    n, complex_ = matrix.shape[0], matrix.dtype.kind == "c"
    numbers, identity = np.arange(n), np.eye(n, dtype=matrix.dtype) + 0 * matrix
    if n < 3:
        return (matrix + 0.0, identity) if calc_q else matrix + 0.0

    def reflect(k: Any, state: Any) -> Any:                                 # I - τ v vᴴ, which makes the column below real and short
        h, q = state
        x = np.where(numbers > k, h[:, k], 0.0)
        first = x[k + 1]
        rest = np.sum(np.where(numbers > k + 1, np.abs(x) ** 2, 0.0)) + first.imag ** 2
        size = np.sqrt(np.where(rest > 0, first.real ** 2 + rest, 1.0))
        length = np.where(first.real < 0, size, -size)
        v = np.where(numbers == k + 1, 1.0, x / np.where(rest > 0, first - length, 1.0))
        scale = np.where(rest > 0, (length - first) / length, 0.0)          # nothing to do where the column is zero below
        h = h - np.conj(scale) * np.outer(v, np.conj(v) @ h)
        h = h - scale * np.outer(h @ v, np.conj(v))
        return h, q - scale * np.outer(q @ v, np.conj(v))

    h, q = fori_loop(0, n - 1 if complex_ else n - 2, reflect, (matrix, identity))
    h = np.triu(h, -1)
    return (h, q) if calc_q else h


@graph_function
def rq(a: Any, overwrite_a: bool = False, lwork: int | None = None, mode: str = "full", check_finite: bool = True) -> Any:
    """(R, Q) with a = R Q, or R alone (mode "r"); in mode "economic" without the rows of Q that R does not need.

    The derivative of the whole Q needs a with no fewer columns than rows, as that of `qr` does.

    >>> import numpy as np, bwcompiler as bw
    >>> abs(bw.scipy.linalg.rq(np.array([[3.0, 4.0]]), mode="economic")[0]).tolist()
    [[5.0]]
    """
    matrix = _matrix("rq", a)
    if mode not in ("full", "economic", "r"):
        raise ValueError("Mode argument should be one of ['full', 'r', 'economic']")
    q, r = np.linalg.qr(adjoint(matrix[..., ::-1, ::-1]), "reduced" if mode == "economic" else "complete")
    triangle, rows_ = (adjoint(one)[..., ::-1, ::-1] for one in (r, q))
    return triangle if mode == "r" else (triangle, rows_)


# ----- by other decompositions
@over_batches(a=2, b=EITHER)
def lstsq(a: Any, b: Any, cond: float | None = None, overwrite_a: bool = False, overwrite_b: bool = False,
          check_finite: bool = True, lapack_driver: str | None = None) -> Any:
    """(x, sums of squares of what is left, rank, singular values): numpy.linalg.lstsq with SciPy's cutoff.

    What is left is a number for one right-hand side.  With lapack_driver="gelsy" there is none, and no singular values.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.lstsq(np.array([[1.0], [1.0]]), np.array([1.0, 3.0]))[0].round(9).tolist()
    [2.0]
    """
    matrix = _matrix("lstsq", a)
    found = np.linalg.lstsq(matrix, fresh(number_value(b)), rcond=float(np.finfo(matrix.dtype).eps) if cond is None else cond)
    left, rank = found[1], found[2].astype(np.int64)
    if lapack_driver == "gelsy":
        return found[0], np.zeros(0, found[0].dtype), rank, None
    return found[0], left[0] if np.ndim(b) == 1 and np.size(left) else left, rank, found[3]


@graph_function
def pinvh(a: Any, atol: float | None = None, rtol: float | None = None, lower: bool = True, return_rank: bool = False,
          check_finite: bool = True) -> Any:
    """The Moore-Penrose inverse of a symmetric (Hermitian) matrix, read in one triangle; atol, rtol and return_rank as in `pinv`.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.pinvh(np.diag([2.0, 0.0])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    matrix = _matrix("pinvh", a, square=True)
    half = np.tril(matrix, -1) if lower else np.triu(matrix, 1)
    diagonal = np.diagonal(matrix, 0, -2, -1).real                          # as LAPACK reads it
    whole = half + adjoint(half) + diagonal[..., None] * np.eye(matrix.shape[-1], dtype=diagonal.dtype)
    return pinv(whole, atol=atol, rtol=rtol, return_rank=return_rank)


@over_batches(A=2, B=2)
def orthogonal_procrustes(A: Any, B: Any, check_finite: bool = True) -> Any:
    """(R, scale): the orthogonal R that brings A R nearest to B, and the sum of the singular values of Aᴴ B.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.orthogonal_procrustes(np.eye(2), np.eye(2)[::-1])[0].round(9).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    a, b = matrices("orthogonal_procrustes", A, B)
    if a.shape != b.shape:
        raise ValueError(f"the shapes of A and B differ ({a.shape} vs {b.shape})")
    u, s, v = np.linalg.svd(adjoint(a) @ b)
    return u @ v, np.sum(s)


@over_batches(A=2, B=2)
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
def eigvals(a: Any, b: Any = None, overwrite_a: bool = False, check_finite: bool = True, homogeneous_eigvals: bool = False) -> Any:
    """The eigenvalues, complex always; with b those of a v = w b v, for an invertible b.

    >>> import numpy as np, bwcompiler as bw
    >>> np.sort(bw.scipy.linalg.eigvals(np.diag([2.0, 1.0]))).tolist()
    [(1+0j), (2+0j)]
    """
    return eig(a, b, right=False, homogeneous_eigvals=homogeneous_eigvals)


@graph_function
def eig(a: Any, b: Any = None, left: bool = False, right: bool = True, overwrite_a: bool = False, overwrite_b: bool = False,
        check_finite: bool = True, homogeneous_eigvals: bool = False) -> Any:
    """(eigenvalues, left eigenvectors, right eigenvectors), those that are wanted: complex always, vectors of length 1.

    With b they are those of a v = w b v, for an invertible b (LinAlgError for others; SciPy has infinite eigenvalues then), and their order
    may be another than SciPy's.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.eig(np.array([[2.0]]))[0].tolist()
    [(2+0j)]
    """
    refuse_options("scipy.linalg.eig", homogeneous_eigvals=(homogeneous_eigvals, False))
    matrix = _matrix("eig", a, square=True)
    known = None if b is None else _matrix("eig", b, square=True)
    if known is not None:
        matrix = solve(known, matrix)
    if not left and not right:
        return fresh(ops.eigvals(value_of(matrix)))
    values, vectors = map(fresh, complex_eig(value_of(matrix)))
    if not left:
        return values, vectors
    rows_ = adjoint(np.linalg.inv(vectors))                                 # uᴴ a = w uᴴ; with b, u is b⁻ᴴ of that
    rows_ = rows_ if known is None else np.linalg.solve(adjoint(known), rows_)
    rows_ = rows_ / np.linalg.norm(rows_, axis=-2, keepdims=True)
    return (values, rows_, vectors) if right else (values, rows_)


@over_batches(d=1, e=1)
def eigh_tridiagonal(d: Any, e: Any, eigvals_only: bool = False, select: str = "a", select_range: Sequence[int] | None = None,
                     check_finite: bool = True, tol: float = 0.0, lapack_driver: str = "auto") -> Any:
    """Eigenvalues, ascending, and eigenvectors of the real symmetric matrix with diagonal d and e beside it; as a dense matrix.

    With select="i" those from the number select_range[0] to select_range[1].

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.eigh_tridiagonal(np.array([1.0, 2.0]), np.array([0.0]), eigvals_only=True).tolist()
    [1.0, 2.0]
    """
    diagonal: Any = fresh(number_value(d))
    beside: Any = fresh(number_value(e))
    if "c" in (diagonal.dtype.kind, beside.dtype.kind):
        raise TypeError("Only real arrays currently supported")
    if diagonal.ndim != 1 or beside.shape != (diagonal.shape[0] - 1,):
        raise ValueError(f"d ({diagonal.shape}) must have one more element than e ({beside.shape})")
    matrix = np.diag(diagonal) + np.diag(beside, -1) + np.diag(beside, 1)
    return eigh(matrix, eigvals_only=eigvals_only, subset_by_index=chosen_numbers("eigh_tridiagonal", select, select_range))


def chosen_numbers(name: str, select: str, select_range: Any) -> Any:
    """Which eigenvalues `select` chooses, as `eigh` takes it."""
    if select in ("v", "value", 1):
        raise UnsupportedError(f"scipy.linalg.{name} of traced values: how many eigenvalues lie in a range depends on the data")
    return tuple([int(one) for one in select_range]) if select in ("i", "index", 2) else None


@graph_function
def eigvalsh_tridiagonal(d: Any, e: Any, select: str = "a", select_range: Sequence[int] | None = None, check_finite: bool = True,
                         tol: float = 0.0, lapack_driver: str = "auto") -> Any:
    """`eigh_tridiagonal` with eigvals_only.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.eigvalsh_tridiagonal(np.array([1.0, 2.0]), np.array([0.0])).tolist()
    [1.0, 2.0]
    """
    return eigh_tridiagonal(d, e, True, select, select_range)


# ----- refused
_RANK = "how many columns it has is the rank, which depends on the data"
null_space = refused("linalg.null_space", _RANK, "np.linalg.svd(a)[2][rank:].conj().T, for a rank that you know")
orth = refused("linalg.orth", _RANK, "np.linalg.svd(a, full_matrices=False)[0][:, :rank], for a rank that you know")
schur = refused("linalg.schur", "whether blocks of real matrices have one or two rows depends on the data",
                 "eig, hessenberg; or logm, sqrtm, solve_sylvester, which are what Schur forms are used for")
qz = refused("linalg.qz", "generalised Schur forms have no derivative here", "eigvals(solve(b, a))")
ldl = refused("linalg.ldl", "whether blocks have one or two rows depends on the data",
              "cholesky for definite matrices, lu_factor for others")
