"""Of `bw.scipy.linalg`: matrices with a structure, made by NumPy's own functions, on traced and on plain arrays; band matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.errors import ShapeError
from bwcompiler.frontend.tracing.operands import number_value
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.scipy.linalg.batches import EITHER, over_batches
from bwcompiler.scipy.linalg.decompositions import chosen_numbers
from bwcompiler.scipy.linalg.factors import cho_solve, cholesky, eigh, solve


@over_batches(ab=2, b=EITHER)
def solve_banded(l_and_u: Sequence[int], ab: Any, b: Any, overwrite_ab: bool = False, overwrite_b: bool = False,
                 check_finite: bool = True) -> Any:
    """x with a x = b for a band matrix of l diagonals below and u above the main one, where ab[u + i - j, j] = a[i, j].

    It is solved as a dense matrix.  Raises ShapeError if these do not fit.

    >>> import numpy as np, bwcompiler as bw
    >>> ab = np.array([[0.0, 1.0], [2.0, 2.0], [0.0, 0.0]])
    >>> bw.scipy.linalg.solve_banded((1, 1), ab, np.array([4.0, 2.0])).tolist()
    [1.5, 1.0]
    """
    below, above = (int(one) for one in l_and_u)
    bands: Any = fresh(number_value(ab))
    if bands.ndim != 2 or bands.shape[0] != below + above + 1:
        raise ShapeError(f"solve_banded: ab of shape {bands.shape} must have {below + above + 1} rows for l_and_u={(below, above)}")
    i, j = np.indices((bands.shape[1],) * 2)
    place = above + i - j
    dense = np.where((place >= 0) & (place <= below + above), bands[np.clip(place, 0, below + above), j], 0.0)
    return np.linalg.solve(dense, fresh(number_value(b)))


def toeplitz(c: Any, r: Any = None) -> Any:
    """The matrix with first column c and first row r (by default c, conjugated; r[0] is not used): element [i, j] depends on i - j.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.toeplitz(np.array([1, 2]), np.array([0, 3, 4])).tolist()
    [[1, 3, 4], [2, 1, 3]]
    """
    column = np.atleast_1d(c)
    line = np.conj(column) if r is None else np.atleast_1d(r)
    i, j = np.indices((column.shape[-1], line.shape[-1]))
    return _joined(column[..., ::-1], line[..., 1:])[..., column.shape[-1] - 1 - i + j]


def _joined(x: Any, y: Any) -> Any:
    """Along the last axis, batches broadcast against each other."""
    shape = np.broadcast_shapes(x.shape[:-1], y.shape[:-1])
    return np.concatenate([np.broadcast_to(one, (*shape, one.shape[-1])) for one in (x, y)], -1)


def hankel(c: Any, r: Any = None) -> Any:
    """The matrix with first column c and last row r (zeros by default; r[0] is not used): element [i, j] depends on i + j.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.hankel(np.array([1, 2]), np.array([0, 3, 4])).tolist()
    [[1, 2, 3], [2, 3, 4]]
    """
    column = np.ravel(c)
    line = np.zeros_like(column) if r is None else np.ravel(r)
    i, j = np.indices((column.shape[0], line.shape[0]))
    return np.concatenate([column, line[1:]])[i + j]


def circulant(c: Any) -> Any:
    """The matrix with first column c whose further columns are the one before moved down by one, round the end.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.circulant(np.array([1, 2, 3])).tolist()
    [[1, 3, 2], [2, 1, 3], [3, 2, 1]]
    """
    column = np.atleast_1d(c)
    i, j = np.indices((column.shape[-1],) * 2)
    return column[..., (i - j) % max(column.shape[-1], 1)]


def companion(a: Any) -> Any:
    """The companion matrix of the polynomial with coefficients a, the highest power first.  Raises ValueError for fewer than two.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.companion(np.array([2.0, 4.0, 6.0])).tolist()
    [[-2.0, -3.0], [1.0, 0.0]]
    """
    coefficients = np.atleast_1d(a)
    if coefficients.shape[-1] < 2:
        raise ValueError("The length of `a` along the last axis must be at least 2.")
    first = -coefficients[..., 1:] / (1.0 * coefficients[..., :1])
    size = first.shape[-1]
    below = np.broadcast_to(np.eye(size - 1, size, dtype=first.dtype), (*first.shape[:-1], size - 1, size))
    return np.concatenate([first[..., None, :], below], -2)


def block_diag(*arrs: Any) -> Any:
    """The matrices along the diagonal of one with zeros elsewhere.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.block_diag(np.ones((1, 2)), np.full((1, 1), 3.0)).tolist()
    [[1.0, 1.0, 0.0], [0.0, 0.0, 3.0]]
    """
    blocks = [np.atleast_2d(one) for one in arrs] or [np.zeros((1, 0))]
    batch = np.broadcast_shapes(*[one.shape[:-2] for one in blocks])
    width, before, found = sum(one.shape[-1] for one in blocks), 0, []
    for one in blocks:
        whole = np.broadcast_to(one, (*batch, *one.shape[-2:]))
        found.append(np.pad(whole, [(0, 0)] * (len(batch) + 1) + [(before, width - before - one.shape[-1])]))
        before += one.shape[-1]
    return np.concatenate(found, -2)


def solve_toeplitz(c_or_cr: Any, b: Any, check_finite: bool = True) -> Any:
    """x with toeplitz(c, r) x = b, for (c, r) or c; solved as a dense matrix.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.solve_toeplitz(np.array([2.0, 0.0]), np.array([2.0, 4.0])).tolist()
    [1.0, 2.0]
    """
    column, line = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, None)
    return _solve_toeplitz(column, line, b)


@over_batches(c=1, r=1, b=EITHER)
def _solve_toeplitz(c: Any, r: Any, b: Any) -> Any:
    return solve(toeplitz(c, r), b)


def leslie(f: Any, s: Any) -> Any:
    """The Leslie matrix of fecundities f (the first row) and survivals s (below the diagonal).

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.leslie(np.array([0.5, 2.0]), np.array([0.25])).tolist()
    [[0.5, 2.0], [0.25, 0.0]]
    """
    first, below = np.atleast_1d(f), np.atleast_1d(s)
    count = first.shape[-1]
    if below.shape[-1] != count - 1:
        raise ValueError(f"Incorrect lengths for f and s. Got {count} and {below.shape[-1]}")
    batch = np.broadcast_shapes(first.shape[:-1], below.shape[:-1])
    rest = below[..., None] * np.eye(count - 1, count, dtype=below.dtype)
    return np.concatenate([np.broadcast_to(first[..., None, :], (*batch, 1, count)), np.broadcast_to(rest, (*batch, count - 1, count))], -2)


def fiedler(a: Any) -> Any:
    """|a[i] - a[j]|.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.fiedler(np.array([1.0, 4.0])).tolist()
    [[0.0, 3.0], [3.0, 0.0]]
    """
    numbers = np.atleast_1d(a)
    return np.abs(numbers[..., :, None] - numbers[..., None, :]) if numbers.size else numbers


def convolution_matrix(a: Any, n: int, mode: str = "full") -> Any:
    """The matrix that convolves n numbers with a: convolution_matrix(a, n, mode) @ v is np.convolve(a, v, mode).

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.convolution_matrix(np.array([1, 2]), 2).tolist()
    [[1, 0], [2, 1], [0, 2]]
    """
    if n <= 0:
        raise ValueError("n must be a positive integer.")
    if mode not in ("full", "valid", "same"):
        raise ValueError("'mode' argument must be one of ('full', 'valid', 'same')")
    numbers = np.atleast_1d(a)
    count = numbers.shape[-1]
    if not count:
        raise ValueError("len(a) must be at least 1.")
    zeros = [(0, 0)] * (numbers.ndim - 1) + [(0, n - 1)]
    whole = toeplitz(np.pad(numbers, zeros), np.pad(numbers[..., :1], zeros))
    if mode == "full":
        return whole
    size = max(count, n) if mode == "same" else max(count, n) - min(count, n) + 1
    first = (min(count, n) - 1) // 2 if mode == "same" else min(count, n) - 1
    return whole[..., first:first + size, :]


def khatri_rao(a: Any, b: Any) -> Any:
    """The Kronecker products of the columns of a and b, as columns.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.khatri_rao(np.array([[1, 2]]), np.array([[3, 4], [5, 6]])).tolist()
    [[3, 8], [5, 12]]
    """
    if np.ndim(a) < 2 or np.ndim(b) < 2 or np.shape(a)[-1] != np.shape(b)[-1]:
        raise ValueError("The number of columns for both arrays should be equal.")
    found = a[..., :, None, :] * b[..., None, :, :]
    return found.reshape(*found.shape[:-3], found.shape[-3] * found.shape[-2], found.shape[-1])


def kron(a: Any, b: Any) -> Any:
    """The Kronecker product of two matrices; numpy.kron.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.kron(np.array([[1, 2]]), np.array([[3], [4]])).tolist()
    [[3, 6], [4, 8]]
    """
    return np.kron(a, b)


def matmul_toeplitz(c_or_cr: Any, x: Any, check_finite: bool = False, workers: Any = None) -> Any:
    """toeplitz(c, r) @ x, for (c, r) or c, by Fourier transforms.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.matmul_toeplitz(np.array([1.0, 2.0]), np.array([1.0, 1.0])).tolist()
    [3.0, 3.0]
    """
    column, line = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, None)
    product = _times_toeplitz(column, line, x)
    return product if product.dtype.kind in "fc" else product.astype(np.float64)


@over_batches(c=1, r=1, x=EITHER)
def _times_toeplitz(c: Any, r: Any, x: Any) -> Any:
    column, right = fresh(number_value(c)), fresh(number_value(x))
    line: Any = np.conj(column) if r is None else fresh(number_value(r))
    rows: Any = right[:, None] if right.ndim == 1 else right
    if rows.shape[0] != line.shape[0]:
        raise ShapeError(f"matmul_toeplitz: x of shape {right.shape} does not fit a matrix of {line.shape[0]} columns")
    circle: Any = np.concatenate([column, line[:0:-1]])                    # the column of a circulant matrix around it
    count, real = circle.shape[0], not any(np.iscomplexobj(one) for one in (circle, rows))
    forwards, backwards = (np.fft.rfft, np.fft.irfft) if real else (np.fft.fft, np.fft.ifft)
    spectrum: Any = forwards(circle)
    found: Any = backwards(spectrum[:, None] * forwards(rows, count, 0), count, 0)[:column.shape[0]]
    return found[:, 0] if right.ndim == 1 else found


@graph_function
def solve_circulant(c: Any, b: Any, singular: str = "raise", tol: float | None = None, caxis: int = -1, baxis: int = 0,
                    outaxis: int = 0) -> Any:
    """x with circulant(c) x = b by Fourier transforms, along axes of c, b and x; inf or nan where the matrix is singular.

    With singular="lstsq" it is the shortest of the x that come nearest; values of the spectrum up to tol count as 0 then.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.solve_circulant(np.array([2.0, 0.0]), np.array([2.0, 4.0])).tolist()
    [1.0, 2.0]
    """
    column: Any = np.moveaxis(np.atleast_1d(fresh(number_value(c))), caxis, -1)
    right: Any = np.moveaxis(np.atleast_1d(fresh(number_value(b))), baxis, -1)
    count = column.shape[-1]
    if right.shape[-1] != count:
        raise ValueError(f"Shapes of c {column.shape} and b {right.shape} are incompatible")
    if not right.size:
        return np.moveaxis(np.broadcast_to(right, np.broadcast_shapes(column.shape, right.shape)), -1, outaxis) + 0.0
    spectrum = np.fft.fft(column)
    quotient = np.fft.fft(right)
    if singular == "lstsq":
        size = np.abs(spectrum)
        least = np.max(size, -1, keepdims=True) * count * float(np.finfo(size.dtype).eps) if tol is None else tol
        quotient, spectrum = np.where(size <= least, 0.0, quotient), np.where(size <= least, 1.0, spectrum)
    found = np.fft.ifft(quotient / spectrum)
    return np.moveaxis(found if column.dtype.kind == "c" or right.dtype.kind == "c" else found.real, -1, outaxis)


def _hermitian_of_bands(ab: Any, lower: bool) -> Any:
    """The whole of a symmetric (Hermitian) matrix from its bands on one side."""
    half = _triangle_of_bands(ab, lower)
    return half + np.conj(half.T) - half * np.eye(half.shape[0], dtype=half.dtype)


def _triangle_of_bands(ab: Any, lower: bool) -> Any:
    bands: Any = fresh(number_value(ab))
    if bands.ndim != 2:
        raise ShapeError(f"bands of shape {bands.shape} must be a matrix")
    width, n = bands.shape
    i, j = np.indices((n, n))
    place = i - j if lower else width - 1 + i - j
    known = (i >= j) & (place < width) if lower else (i <= j) & (place >= 0)
    return np.where(known, bands[np.clip(place, 0, width - 1), j], 0.0)


@over_batches(ab=2, b=EITHER)
def solveh_banded(ab: Any, b: Any, overwrite_ab: bool = False, overwrite_b: bool = False, lower: bool = False,
                  check_finite: bool = True) -> Any:
    """x with a x = b for a positive definite band matrix, of which ab has the upper bands, or the lower ones, as in SciPy.

    It is solved as a dense matrix.  Raises LinAlgError if a is not positive definite.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.solveh_banded(np.array([[0.0, 1.0], [2.0, 2.0]]), np.array([3.0, 3.0])).round(9).tolist()
    [1.0, 1.0]
    """
    return solve(_hermitian_of_bands(ab, lower), b, assume_a="pos")


@graph_function
def eigvals_banded(a_band: Any, lower: bool = False, overwrite_a_band: bool = False, select: str = "a",
                   select_range: Sequence[int] | None = None, check_finite: bool = True) -> Any:
    """Eigenvalues, ascending, of a symmetric (Hermitian) band matrix; as a dense matrix.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.eigvals_banded(np.array([[0.0, 0.0], [2.0, 1.0]])).tolist()
    [1.0, 2.0]
    """
    return eig_banded(a_band, lower, True, select=select, select_range=select_range)


@over_batches(a_band=2)
def eig_banded(a_band: Any, lower: bool = False, eigvals_only: bool = False, overwrite_a_band: bool = False, select: str = "a",
               select_range: Sequence[int] | None = None, max_ev: int = 0, check_finite: bool = True) -> Any:
    """Eigenvalues, ascending, and eigenvectors of a symmetric (Hermitian) band matrix; as a dense matrix.

    With select="i" those from the number select_range[0] to select_range[1].

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.eig_banded(np.array([[0.0, 0.0], [2.0, 1.0]]), eigvals_only=True).tolist()
    [1.0, 2.0]
    """
    return eigh(_hermitian_of_bands(a_band, lower), eigvals_only=eigvals_only,
                subset_by_index=chosen_numbers("eig_banded", select, select_range))


@over_batches(ab=2)
def cholesky_banded(ab: Any, overwrite_ab: bool = False, lower: bool = False, check_finite: bool = True) -> Any:
    """The bands of the Cholesky factor of a positive definite band matrix, of which ab has the upper bands, or the lower ones.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.cholesky_banded(np.array([[0.0, 2.0], [4.0, 2.0]])).tolist()
    [[0.0, 1.0], [2.0, 1.0]]
    """
    width, n = np.shape(ab)
    factor = cholesky(_hermitian_of_bands(ab, lower), lower)
    row, column = np.indices((width, n))
    i = column + row if lower else column + row - (width - 1)
    return np.where((i >= 0) & (i < n), factor[np.clip(i, 0, n - 1), column], 0.0)


def cho_solve_banded(cb_and_lower: tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """x with a x = b, from what `cholesky_banded` gives for a, and `lower`.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.cho_solve_banded((np.array([[0.0, 1.0], [2.0, 1.0]]), False), np.array([4.0, 2.0])).tolist()
    [1.0, 0.0]
    """
    return _solve_factored_bands(*cb_and_lower, b)


@over_batches(cb=2, b=EITHER)
def _solve_factored_bands(cb: Any, lower: bool, b: Any) -> Any:
    return cho_solve((_triangle_of_bands(cb, lower), lower), b)
