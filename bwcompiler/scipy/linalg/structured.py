"""Of `bw.scipy.linalg`: matrices with a structure, made by NumPy's own functions, on traced and on plain arrays; band matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.errors import ShapeError
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.nn.activations import number_value
from bwcompiler.scipy.linalg.factors import solve


@graph_function
def solve_banded(l_and_u: Sequence[int], ab: Any, b: Any) -> Any:
    """x with a x = b for a band matrix of l diagonals below and u above the main one, where ab[u + i - j, j] = a[i, j].

    It is solved as a dense matrix.  Raises ShapeError where these do not fit.

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
    column = np.ravel(c)
    line = np.conj(column) if r is None else np.ravel(r)
    i, j = np.indices((column.shape[0], line.shape[0]))
    return np.concatenate([column[::-1], line[1:]])[column.shape[0] - 1 - i + j]


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
    column = np.ravel(c)
    i, j = np.indices((column.shape[0],) * 2)
    return column[(i - j) % max(column.shape[0], 1)]


def companion(a: Any) -> Any:
    """The companion matrix of the polynomial with coefficients a, the highest power first.  Raises ValueError for fewer than two.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.companion(np.array([2.0, 4.0, 6.0])).tolist()
    [[-2.0, -3.0], [1.0, 0.0]]
    """
    coefficients = np.ravel(a)
    if coefficients.shape[0] < 2:
        raise ValueError("The length of `a` along the last axis must be at least 2.")
    first = -coefficients[1:] / (1.0 * coefficients[0])
    return np.concatenate([first[None], np.eye(first.shape[0] - 1, first.shape[0])])


def block_diag(*arrs: Any) -> Any:
    """The matrices along the diagonal of one with zeros elsewhere.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.block_diag(np.ones((1, 2)), np.full((1, 1), 3.0)).tolist()
    [[1.0, 1.0, 0.0], [0.0, 0.0, 3.0]]
    """
    blocks = [np.atleast_2d(one) for one in arrs] or [np.zeros((1, 0))]
    if any(one.ndim > 2 for one in blocks):
        raise ValueError("arguments in the following positions have dimension greater than 2")
    width, before, found = sum(one.shape[1] for one in blocks), 0, []
    for one in blocks:
        found.append(np.pad(one, ((0, 0), (before, width - before - one.shape[1]))))
        before += one.shape[1]
    return np.concatenate(found)


def solve_toeplitz(c_or_cr: Any, b: Any) -> Any:
    """x with toeplitz(c, r) x = b, for (c, r) or c; solved as a dense matrix.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.solve_toeplitz(np.array([2.0, 0.0]), np.array([2.0, 4.0])).tolist()
    [1.0, 2.0]
    """
    matrix = toeplitz(*c_or_cr) if isinstance(c_or_cr, tuple) else toeplitz(c_or_cr)
    return solve(matrix, b)


def leslie(f: Any, s: Any) -> Any:
    """The Leslie matrix of fecundities f (the first row) and survivals s (below the diagonal).

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.leslie(np.array([0.5, 2.0]), np.array([0.25])).tolist()
    [[0.5, 2.0], [0.25, 0.0]]
    """
    first, below = np.ravel(f), np.ravel(s)
    if below.shape[0] != first.shape[0] - 1:
        raise ValueError(f"Incorrect lengths for f and s. Got {first.shape[0]} and {below.shape[0]}")
    return np.concatenate([first[None], np.pad(np.diag(below), ((0, 0), (0, 1)))])


def fiedler(a: Any) -> Any:
    """|a[i] - a[j]|.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.fiedler(np.array([1.0, 4.0])).tolist()
    [[0.0, 3.0], [3.0, 0.0]]
    """
    numbers = np.ravel(a)
    return np.abs(numbers[:, None] - numbers)


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
    numbers = np.ravel(a)
    count = numbers.shape[0]
    if not count:
        raise ValueError("len(a) must be at least 1.")
    whole = toeplitz(np.pad(numbers, (0, n - 1)), np.pad(numbers[:1], (0, n - 1)))
    if mode == "full":
        return whole
    size = max(count, n) if mode == "same" else max(count, n) - min(count, n) + 1
    first = (min(count, n) - 1) // 2 if mode == "same" else min(count, n) - 1
    return whole[first:first + size]


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
    """toeplitz(c, r) @ x, for (c, r) or c.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.matmul_toeplitz(np.array([1.0, 2.0]), np.array([1.0, 1.0])).tolist()
    [3.0, 3.0]
    """
    return (toeplitz(*c_or_cr) if isinstance(c_or_cr, tuple) else toeplitz(c_or_cr)) @ x


@graph_function
def solve_circulant(c: Any, b: Any) -> Any:
    """x with circulant(c) x = b, of vectors or of columns b, by Fourier transforms; inf or nan where the matrix is singular.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.solve_circulant(np.array([2.0, 0.0]), np.array([2.0, 4.0])).tolist()
    [1.0, 2.0]
    """
    column: Any = fresh(number_value(c))
    right: Any = fresh(number_value(b))
    if column.ndim != 1 or right.shape[0] != column.shape[0]:
        raise ShapeError(f"solve_circulant: shapes {column.shape} and {right.shape} do not fit")
    spectrum = np.fft.fft(column)
    found = np.fft.ifft(np.fft.fft(right, axis=0) / spectrum.reshape(-1, *[1] * (right.ndim - 1)), axis=0)
    return found if column.dtype.kind == "c" or right.dtype.kind == "c" else found.real


def _hermitian_of_bands(ab: Any, lower: bool) -> Any:
    """The whole of a symmetric (Hermitian) matrix from its bands on one side."""
    bands: Any = fresh(number_value(ab))
    if bands.ndim != 2:
        raise ShapeError(f"bands of shape {bands.shape} must be a matrix")
    width, n = bands.shape
    i, j = np.indices((n, n))
    place = i - j if lower else width - 1 + i - j
    known = (i >= j) & (place < width) if lower else (i <= j) & (place >= 0)
    half = np.where(known, bands[np.clip(place, 0, width - 1), j], 0.0)
    return half + np.conj(half.T) - half * np.eye(n, dtype=half.dtype)


@graph_function
def solveh_banded(ab: Any, b: Any, lower: bool = False) -> Any:
    """x with a x = b for a positive definite band matrix, of which ab has the upper bands, or the lower ones, as in SciPy.

    It is solved as a dense matrix.  Raises LinAlgError if a is not positive definite.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.solveh_banded(np.array([[0.0, 1.0], [2.0, 2.0]]), np.array([3.0, 3.0])).round(9).tolist()
    [1.0, 1.0]
    """
    return solve(_hermitian_of_bands(ab, lower), b, assume_a="pos")


@graph_function
def eigvals_banded(a_band: Any, lower: bool = False) -> Any:
    """Eigenvalues, ascending, of a symmetric (Hermitian) band matrix; as a dense matrix.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.eigvals_banded(np.array([[0.0, 0.0], [2.0, 1.0]])).tolist()
    [1.0, 2.0]
    """
    return np.linalg.eigvalsh(_hermitian_of_bands(a_band, lower))
