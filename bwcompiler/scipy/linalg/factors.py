"""Of `bw.scipy.linalg`: triangles, Cholesky and LU factors, and what is as in numpy.linalg, of matrices in the last two axes.

Of complex matrices too; ᴴ is the conjugate transpose there, the transpose of real ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler import lazy, ops
from bwcompiler.api.inside.callbacks import pure_callback
from bwcompiler.api.inside.eager import graph_function
from bwcompiler.api.programs.arguments.shapes import ShapeDtypeStruct
from bwcompiler.api.transforms.reverse import stop_gradient
from bwcompiler.errors import ShapeError, UnsupportedError
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.operands import broadcast_shapes, cast, number_value, reshape, value_as
from bwcompiler.frontend.tracing.promotion import common_dtype
from bwcompiler.frontend.tracing.registry import refuse_options
from bwcompiler.frontend.tracing.storages.views import broadcast_value
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import I32
from bwcompiler.ops.complex_parts import conj
from bwcompiler.ops.linalg.contraction import matrix_transpose
from bwcompiler.ops.linalg.factorization import row, rows

scipy_linalg = lazy.module("scipy.linalg")


# ----- triangles
def _pair(name: str, a: Any, b: Any) -> tuple[Value, Value, bool]:
    """A matrix and right sides of one dtype and batch; whether b is a vector."""
    matrix, right = number_value(a), number_value(b)
    dtype = common_dtype((matrix.dtype, right.dtype))
    matrix, right = cast(matrix, dtype), cast(right, dtype)
    vector = right.rank == 1
    columns = reshape(right, (*right.shape, 1)) if vector else right
    if matrix.rank < 2 or matrix.shape[-1] != matrix.shape[-2] or columns.shape[-2] != matrix.shape[-1]:
        raise ShapeError(f"{name}: shapes {matrix.shape} and {right.shape} do not fit")
    batch = broadcast_shapes([matrix.shape[:-2], columns.shape[:-2]])
    return (broadcast_value(matrix, (*batch, *matrix.shape[-2:])), broadcast_value(columns, (*batch, *columns.shape[-2:])), vector)


def _solution(found: Value, vector: bool) -> Any:
    return fresh(reshape(found, found.shape[:-1]) if vector else found)


def _is_transposed(trans: int | str) -> bool:
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise ValueError(f"trans must be 0, 1, 2, 'N', 'T' or 'C', got {trans!r}")
    return trans not in (0, "N")


@graph_function
def solve_triangular(a: Any, b: Any, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False,
                     overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """x with t x = b, where t is the upper (or lower) triangle of a, with trans=1 its transpose, with trans=2 tᴴ; b is (n,) or (..., n, k).

    unit_diagonal takes the diagonal for ones.  Raises ShapeError if a and b do not fit, LinAlgError for a zero on the diagonal.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.solve_triangular(np.array([[2.0, 1.0], [0.0, 4.0]]), np.array([4.0, 8.0])).tolist()
    [1.0, 2.0]
    """
    matrix, columns, vector = _pair("solve_triangular", a, b)
    if unit_diagonal:
        matrix = value_of(np.where(np.eye(matrix.shape[-1], dtype=bool), 1.0, fresh(matrix)))  # type: ignore[arg-type]
    matrix = conj(matrix) if trans in (2, "C") else matrix
    return _solution(ops.triangular_solve(matrix, columns, lower=lower, transpose=_is_transposed(trans)), vector)


@graph_function
def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The upper factor R with a = Rᴴ R, or the lower one with a = L Lᴴ, of a positive definite matrix, read in that triangle.

    Raises LinAlgError if the matrix is not positive definite.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.cholesky(np.array([[4.0, 2.0], [2.0, 2.0]])).tolist()
    [[2.0, 1.0], [0.0, 1.0]]
    """
    matrix = number_value(a)
    return fresh(ops.cholesky(matrix) if lower else _adjoint(ops.cholesky(_adjoint(matrix))))


def _adjoint(x: Value) -> Value:
    return conj(matrix_transpose(x))


def cho_factor(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, bool]:
    """The factor that `cholesky` gives, and `lower`, for `cho_solve`.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.cho_factor(np.array([[4.0]]))[0].tolist()
    [[2.0]]
    """
    return cholesky(a, lower), lower


def cho_solve(c_and_lower: tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """x with a x = b, from what `cho_factor` gives for a; b is (n,) or (..., n, k).

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.cho_solve((np.array([[2.0]]), True), np.array([8.0])).tolist()
    [2.0]
    """
    factor, lower = c_and_lower
    half = solve_triangular(factor, b, 0 if lower else 2, bool(lower))
    return solve_triangular(factor, half, 2 if lower else 0, bool(lower))


# ----- LU
def _places(x: Value) -> Value:
    """Numbers of rows, which complex factors hold as complex numbers."""
    return ops.real(x) if x.dtype.is_complex else x


@graph_function
def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """(LU, pivots): L below the diagonal and U on and above it; row k was exchanged with row pivots[k], one after the other.

    >>> import numpy as np, bwcompiler as bw
    >>> factors, pivots = bw.scipy.linalg.lu_factor(np.array([[1.0, 2.0], [4.0, 2.0]]))
    >>> factors.tolist(), pivots.tolist()
    ([[4.0, 2.0], [0.25, 1.5]], [1, 1])
    """
    packed = ops.lu(number_value(a))
    n = packed.shape[-1]
    return fresh(matrix_transpose(rows(packed, 0, n))), fresh(cast(_places(row(packed, n)), I32))


@graph_function
def _solve_factored(factors: Any, pivots: Any, b: Any, transpose: bool) -> Any:
    matrix, columns, vector = _pair("lu_solve", factors, b)
    order = broadcast_value(cast(value_as(pivots), matrix.dtype), matrix.shape[:-1])
    packed = ops.concatenate(matrix_transpose(matrix), reshape(order, (*matrix.shape[:-2], 1, matrix.shape[-1])), axis=matrix.rank - 2)
    return _solution(ops.lu_solve(packed, columns, transpose=transpose), vector)


def lu_solve(lu_and_piv: tuple[Any, Any], b: Any, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """x with a x = b, or with trans=1 aᵀ x = b, from what `lu_factor` gives for a; b is (n,) or (..., n, k).

    Raises LinAlgError if a is singular.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.lu_solve(bw.scipy.linalg.lu_factor(np.array([[0.0, 2.0], [4.0, 0.0]])), np.array([2.0, 8.0])).tolist()
    [2.0, 1.0]
    """
    return _solve_factored(*lu_and_piv, b, _is_transposed(trans))


# ----- as in numpy.linalg
@graph_function
def solve(a: Any, b: Any, lower: bool = False, overwrite_a: bool = False, overwrite_b: bool = False,
          check_finite: bool = True, assume_a: str | None = None, transposed: bool = False) -> Any:
    """x with a x = b; b is (n,) or (..., n, k).  With assume_a="pos" a is positive definite and read in one triangle.

    Raises LinAlgError if a is singular (or not positive definite).

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.solve(np.array([[0.0, 2.0], [4.0, 0.0]]), np.array([2.0, 8.0])).tolist()
    [2.0, 1.0]
    """
    matrix, columns, vector = _pair("solve", a, b)
    if assume_a in ("pos", "positive definite"):
        return _solution(value_of(cho_solve((cholesky(fresh(matrix), lower), lower), fresh(columns))), vector)
    if assume_a in ("sym", "symmetric", "her", "hermitian"):
        half: Any = np.tril(fresh(matrix)) if lower else np.triu(fresh(matrix))
        other = np.swapaxes(half if assume_a[0] == "s" else np.conj(half), -1, -2)
        matrix = value_of(half + other - half * np.eye(matrix.shape[-1], dtype=matrix.dtype.numpy))
    if assume_a in ("lower triangular", "upper triangular"):
        return _solution(ops.triangular_solve(matrix, columns, lower=assume_a[0] == "l", transpose=transposed), vector)
    return _solution(ops.solve(matrix_transpose(matrix) if transposed else matrix, columns), vector)


@graph_function
def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True, *, assume_a: str | None = None, lower: bool = False) -> Any:
    """The inverse; LinAlgError if a is singular.  assume_a and lower say what is read of a, as in `solve`.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.inv(np.array([[4.0]])).tolist()
    [[0.25]]
    """
    matrix: Any = fresh(number_value(a))
    if assume_a is None:
        return np.linalg.inv(matrix)
    return solve(matrix, np.eye(matrix.shape[-1], dtype=matrix.dtype), lower, assume_a=assume_a)


@graph_function
def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The determinants of the matrices in the last two axes, in the dtype of a (SciPy returns float64 for float32).

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.scipy.linalg.det(np.array([[4.0]])))
    4.0
    """
    return np.linalg.det(fresh(number_value(a)))


@graph_function
def norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True) -> Any:
    """numpy.linalg.norm.

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.scipy.linalg.norm(np.array([3.0, 4.0])))
    5.0
    """
    return np.linalg.norm(fresh(number_value(a)), ord, axis, keepdims)


@graph_function
def pinv(a: Any, *, atol: float | None = None, rtol: float | None = None, return_rank: bool = False, check_finite: bool = True) -> Any:
    """The Moore-Penrose inverse; singular values up to atol + rtol times the largest one count as 0 (max(shape) eps, 0 if atol is given).

    With return_rank it is (inverse, number of the others).

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.pinv(np.array([[2.0], [0.0]])).tolist()
    [[0.5, 0.0]]
    """
    matrix: Any = fresh(number_value(a))
    relative = (max(matrix.shape[-2:]) * float(np.finfo(matrix.dtype).eps) if atol is None else 0.0) if rtol is None else rtol
    values = np.linalg.svd(matrix, compute_uv=False)
    largest = values[..., :1]
    cutoff = (atol or 0.0) + relative * largest
    if atol:                                                                # relative to the largest, as numpy.linalg.pinv takes it
        found = np.linalg.pinv(matrix, rcond=np.squeeze(cutoff / np.where(largest > 0, largest, 1.0), -1))
    else:
        found = np.linalg.pinv(matrix, rcond=relative)
    return (found, np.sum(values > cutoff, -1)) if return_rank else found


@graph_function
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, overwrite_a: bool = False, check_finite: bool = True,
        lapack_driver: str = "gesdd") -> Any:
    """(U, s, Vᴴ), or s alone; as numpy.linalg.svd.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.svd(np.array([[3.0, 0.0], [0.0, 2.0]]), compute_uv=False).round(4).tolist()
    [3.0, 2.0]
    """
    matrix: Any = fresh(number_value(a))
    return tuple(np.linalg.svd(matrix, full_matrices)) if compute_uv else np.linalg.svd(matrix, compute_uv=False)


@graph_function
def svdvals(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The singular values, descending.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.svdvals(np.array([[3.0, 0.0], [0.0, 2.0]])).round(4).tolist()
    [3.0, 2.0]
    """
    return np.linalg.svd(fresh(number_value(a)), compute_uv=False)


@graph_function
def qr(a: Any, overwrite_a: bool = False, lwork: int | None = None, mode: str = "full", pivoting: bool = False,
       check_finite: bool = True) -> Any:
    """(Q, R) or R alone (mode "r"), for mode "economic", and for "full" where a has no more rows than columns.

    With pivoting there is also P last, with a[:, P] = Q R and a descending diagonal of R; SciPy finds the order when the program runs.

    >>> import numpy as np, bwcompiler as bw
    >>> abs(bw.scipy.linalg.qr(np.array([[3.0], [4.0]]), mode="economic")[1]).tolist()
    [[5.0]]
    """
    modes = {"full": "complete", "economic": "reduced", "r": "r"}
    if mode not in modes:
        raise UnsupportedError(f"qr: mode={mode!r} is not supported on traced arrays; supported: {', '.join(modes)}")
    matrix: Any = fresh(number_value(a))
    order = _order_of_columns(matrix) if pivoting else None
    if order is not None:
        matrix = np.take_along_axis(matrix, np.broadcast_to(order[..., None, :], matrix.shape), -1)
    found = np.linalg.qr(matrix, modes[mode])  # type: ignore[call-overload]
    rest = () if order is None else (order,)
    if mode != "r":
        return (*found, *rest)
    missing = matrix.shape[-2] - found.shape[-2]                              # SciPy's R has all rows of a
    return (np.pad(found, [(0, 0)] * (found.ndim - 2) + [(0, missing), (0, 0)]) if missing else found, *rest)


def _order_of_columns(matrix: Any) -> Any:
    """The columns as LAPACK's pivoting takes them."""
    def order(a: Any) -> Any:
        qr_of = scipy_linalg.qr
        found = np.empty((*a.shape[:-2], a.shape[-1]), np.int32)
        for place in np.ndindex(a.shape[:-2]):
            found[place] = qr_of(a[place], mode="r", pivoting=True)[-1]
        return found

    return pure_callback(order, ShapeDtypeStruct((*matrix.shape[:-2], matrix.shape[-1]), np.int32), stop_gradient(matrix))


@graph_function
def eigh(a: Any, b: Any = None, lower: bool = True, eigvals_only: bool = False, *, overwrite_a: bool = False, overwrite_b: bool = False,
         type: int = 1, check_finite: bool = True, subset_by_index: Sequence[int] | None = None,
         subset_by_value: Sequence[float] | None = None, driver: str | None = None) -> Any:
    """Eigenvalues, ascending, and eigenvectors of symmetric (Hermitian) matrices; with b of a v = w b v, for which vᴴ b v = 1.

    type=2 is a b v = w v, type=3 b a v = w v.  subset_by_index has the numbers of the first and the last one that are wanted.  How many
    subset_by_value would leave depends on the data: UnsupportedError.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.eigh(np.array([[2.0, 0.0], [0.0, 1.0]]), eigvals_only=True).tolist()
    [1.0, 2.0]
    """
    refuse_options("scipy.linalg.eigh", subset_by_value=(subset_by_value, None))
    if type not in (1, 2, 3):
        raise ValueError('"type" keyword only accepts 1, 2, and 3.')
    matrix: Any = fresh(number_value(a))
    triangle: Any = "L" if lower else "U"
    n = matrix.shape[-1]
    chosen = slice(None) if subset_by_index is None else slice(subset_by_index[0], subset_by_index[1] + 1)
    if subset_by_index is not None and not 0 <= subset_by_index[0] <= subset_by_index[1] < n:
        raise ValueError(f"Requested eigenvalue indices are not valid. Valid range is [0, {n - 1}] and start <= end, "
                         f"but start={subset_by_index[0]}, end={subset_by_index[1]} is given")
    inner, factor = (matrix, None) if b is None else _standard_form(matrix, b, lower, type)
    triangle = triangle if b is None else "L"
    if eigvals_only:
        return np.linalg.eigvalsh(inner, triangle)[..., chosen]
    values, vectors = np.linalg.eigh(inner, triangle)
    if factor is not None:
        vectors = np.matmul(factor, vectors) if type == 3 else solve_triangular(factor, vectors, 2, True)
    return values[..., chosen], vectors[..., chosen]


def _standard_form(matrix: Any, b: Any, lower: bool, type: int) -> tuple[Any, Any]:
    """The Hermitian matrix with the same eigenvalues, and the factor L with b = L Lᴴ."""
    half = np.tril(matrix, -1) if lower else np.triu(matrix, 1)
    diagonal = np.diagonal(matrix, 0, -2, -1).real                                # as LAPACK reads it
    whole = half + np.conj(np.swapaxes(half, -1, -2)) + diagonal[..., None] * np.eye(matrix.shape[-1], dtype=diagonal.dtype)
    factor = cholesky(b, True) if lower else np.conj(np.swapaxes(cholesky(b, False), -1, -2))
    if type != 1:
        return np.conj(np.swapaxes(factor, -1, -2)) @ whole @ factor, factor
    return solve_triangular(factor, np.conj(np.swapaxes(solve_triangular(factor, whole, 0, True), -1, -2)), 0, True), factor


@graph_function
def eigvalsh(a: Any, b: Any = None, lower: bool = True, *, overwrite_a: bool = False, overwrite_b: bool = False, type: int = 1,
             check_finite: bool = True, subset_by_index: Sequence[int] | None = None, subset_by_value: Sequence[float] | None = None,
             driver: str | None = None) -> Any:
    """`eigh` with eigvals_only.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.eigvalsh(np.array([[2.0, 0.0], [0.0, 1.0]])).tolist()
    [1.0, 2.0]
    """
    return eigh(a, b, lower, True, type=type, subset_by_index=subset_by_index, subset_by_value=subset_by_value)
