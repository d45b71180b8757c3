"""Of `bw.scipy.linalg`: matrices with a structure, made by NumPy's own functions, on traced and on plain arrays; band matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler.api.eager import graph_function
from bwcompiler.errors import ShapeError
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.nn.activations import number_value
from bwcompiler.scipy.factors import solve


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
