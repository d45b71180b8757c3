"""Sparse matrices whose structure is known and whose numbers may be traced: `csr_array`, `csc_array` and `coo_array`, as in scipy.sparse.

A product gathers what the elements are multiplied with and adds it up per row; so the derivative by the data has one number per element.
`bw.scipy.sparse.linalg` solves.  In captured code the sparse arrays of SciPy become these where they meet traced values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.errors import ShapeError, TracerError
from bwcompiler.frontend.tracing.operands import cast, is_traced, value_as
from bwcompiler.frontend.tracing.promotion import common_dtype
from bwcompiler.frontend.tracing.tracer import fresh


@graph_function
def product_at(data: Any, rows: Any, columns: Any, x: Any, count: int) -> Any:
    """Σ data[k] x[columns[k]] at rows[k], of vectors x or matrices."""
    values, right = value_as(data), value_as(x)
    dtype = common_dtype((values.dtype, right.dtype))
    numbers: Any = fresh(cast(values, dtype))
    chosen: Any = fresh(cast(right, dtype))
    chosen = chosen[columns]
    terms = numbers.reshape(-1, *[1] * (chosen.ndim - 1)) * chosen
    found = np.zeros((count, *terms.shape[1:]), terms.dtype) + 0 * terms.sum(0)
    np.add.at(found, rows, terms)
    return found


@graph_function
def _dense(data: Any, rows: Any, columns: Any, shape: tuple[int, int]) -> Any:
    numbers: Any = fresh(value_as(data))
    found = np.zeros(shape, numbers.dtype) + 0 * numbers.sum()
    np.add.at(found, (rows, columns), numbers)
    return found


def _indices(name: str, *given: Any) -> list[Any]:
    if any(map(is_traced, given)):
        raise TracerError(f"{name}: rows, columns and indptr must be known while tracing, as they say which elements there are\n"
                          "  hint: trace the data, and close over the structure")
    return [np.asarray(one, np.int64) for one in given]


class SparseArray:
    """Elements data[k] at (rows[k], columns[k]); repeated places add up.  Made by `coo_array` and the others.

    There are a @ x, a.dot(x), x @ a (for vectors and matrices x), a.T, a * number, -a, a + b, a.toarray(), a.sum(axis), a.diagonal().
    """

    __array_ufunc__ = None                                   # so that NumPy's operators leave x @ a and x * a to this class
    __array_priority__ = 1000.0

    def __init__(self, data: Any, rows: Any, columns: Any, shape: tuple[int, int]) -> None:
        self.data: Any = data
        self.rows, self.columns = rows, columns
        self.shape = (int(shape[0]), int(shape[1]))
        if np.shape(data) != rows.shape or rows.shape != columns.shape or rows.ndim != 1:
            raise ShapeError(f"sparse array: data of shape {np.shape(data)} at {rows.shape} places")
        for places, extent, axis in ((rows, self.shape[0], "row"), (columns, self.shape[1], "column")):
            if places.size and (places.min() < 0 or places.max() >= extent):
                raise ValueError(f"{axis} index exceeds matrix dimensions {self.shape}")

    @property
    def T(self) -> SparseArray:
        return SparseArray(self.data, self.columns, self.rows, self.shape[::-1])

    def transpose(self) -> SparseArray:
        return self.T

    @property
    def nnz(self) -> int:
        return int(self.rows.shape[0])

    @property
    def ndim(self) -> int:
        return 2

    @property
    def dtype(self) -> Any:
        return self.data.dtype

    def __matmul__(self, x: Any) -> Any:
        if np.ndim(x) not in (1, 2) or np.shape(x)[0] != self.shape[1]:
            raise ShapeError(f"matmul: dimension mismatch with signature (n,k={self.shape[1]}),(k={np.shape(x)[:1]},m)")
        return product_at(self.data, self.rows, self.columns, x, self.shape[0])

    def dot(self, x: Any) -> Any:
        return self * x if np.ndim(x) == 0 else self @ x

    def __rmatmul__(self, x: Any) -> Any:
        if np.ndim(x) == 1:
            return self.T @ x
        return np.swapaxes(self.T @ np.swapaxes(x, 0, 1), 0, 1)

    def __mul__(self, x: Any) -> SparseArray:
        if np.ndim(x):
            raise ShapeError("a sparse array times an array is not supported\n  hint: a @ x for the product; a.toarray() * x")
        return SparseArray(self.data * x, self.rows, self.columns, self.shape)

    __rmul__ = __mul__

    def __truediv__(self, x: Any) -> SparseArray:
        return self.__mul__(1.0 / x)

    def __neg__(self) -> SparseArray:
        return SparseArray(-self.data, self.rows, self.columns, self.shape)

    def __add__(self, other: Any) -> SparseArray:
        given = other if isinstance(other, SparseArray) else converted(other)
        if given is None or given.shape != self.shape:
            raise ShapeError("a sparse array can be added to another one of its shape\n  hint: a.toarray() + x")
        both = [np.concatenate(pair) for pair in ((self.data, given.data), (self.rows, given.rows), (self.columns, given.columns))]
        return SparseArray(both[0], both[1], both[2], self.shape)

    __radd__ = __add__

    def __sub__(self, other: Any) -> SparseArray:
        return self.__add__(-1.0 * other)

    def toarray(self) -> Any:
        """The whole matrix."""
        return _dense(self.data, self.rows, self.columns, self.shape)

    todense = toarray

    def sum(self, axis: int | None = None) -> Any:
        """Of all elements, or along an axis."""
        if axis is None:
            return self.data.sum()
        turned = self if axis in (1, -1) else self.T
        return turned @ np.ones(turned.shape[1], self.data.dtype)

    def diagonal(self) -> Any:
        """The elements on the main diagonal."""
        count = min(self.shape)
        on = np.flatnonzero(self.rows == self.columns)
        return product_at(self.data[on], self.rows[on], np.zeros(on.size, np.int64), np.ones(1), count)


def _compressed(name: str, arg1: Any, shape: Any, by_rows: bool) -> SparseArray:
    if isinstance(arg1, SparseArray):
        return arg1
    known = converted(arg1)
    if known is not None:
        return known
    if isinstance(arg1, tuple) and len(arg1) == 2 and isinstance(arg1[1], tuple):
        return coo_array(arg1, shape)
    if not isinstance(arg1, tuple) or len(arg1) != 3:
        raise TracerError(f"{name} of a dense traced array: which elements are zero is not known while tracing\n"
                          f"  hint: {name}((data, indices, indptr), shape=...), with the structure of a plain array")
    indices, indptr = _indices(name, arg1[1], arg1[2])
    outer = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    if shape is None:
        inner = int(indices.max(initial=-1)) + 1
        shape = (indptr.size - 1, inner) if by_rows else (inner, indptr.size - 1)
    return SparseArray(arg1[0], outer, indices, shape) if by_rows else SparseArray(arg1[0], indices, outer, shape)


def csr_array(arg1: Any, shape: Any = None) -> SparseArray:
    """The sparse array of (data, indices, indptr), row by row, as scipy.sparse.csr_array; data may be traced.

    >>> import numpy as np, bwcompiler as bw
    >>> def f(data, x):
    ...     return bw.scipy.sparse.csr_array((data, np.array([0, 1]), np.array([0, 1, 2]))) @ x
    >>> bw.grad(lambda data: f(data, np.array([3.0, 4.0])).sum())(np.array([1.0, 2.0])).tolist()
    [3.0, 4.0]
    """
    return _compressed("csr_array", arg1, shape, True)


def csc_array(arg1: Any, shape: Any = None) -> SparseArray:
    """The sparse array of (data, indices, indptr), column by column, as scipy.sparse.csc_array; data may be traced.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.sparse.csc_array((np.array([5.0]), np.array([1]), np.array([0, 1])), shape=(2, 1)).toarray().tolist()
    [[0.0], [5.0]]
    """
    return _compressed("csc_array", arg1, shape, False)


def coo_array(arg1: Any, shape: Any = None) -> SparseArray:
    """The sparse array of (data, (rows, columns)), as scipy.sparse.coo_array; data may be traced; repeated places add up.

    >>> import numpy as np, bwcompiler as bw
    >>> (bw.scipy.sparse.coo_array((np.array([5.0]), (np.array([0]), np.array([1]))), shape=(2, 2)) @ np.array([1.0, 2.0])).tolist()
    [10.0, 0.0]
    """
    if not (isinstance(arg1, tuple) and len(arg1) == 2 and isinstance(arg1[1], tuple)):
        return _compressed("coo_array", arg1, shape, True)
    rows, columns = _indices("coo_array", *arg1[1])
    least = (int(rows.max(initial=-1)) + 1, int(columns.max(initial=-1)) + 1)
    return SparseArray(arg1[0], rows, columns, least if shape is None else shape)


csr_matrix, csc_matrix, coo_matrix = csr_array, csc_array, coo_array


def converted(of: Any) -> SparseArray | None:
    """A sparse array or matrix of SciPy's as one of these; None for anything else."""
    if not str(type(of).__module__).startswith("scipy.sparse") or not hasattr(of, "tocoo") or len(of.shape) != 2:
        return None
    found = of.tocoo()
    return SparseArray(found.data, found.row.astype(np.int64), found.col.astype(np.int64), found.shape)


def product(left: Any, right: Any) -> Any:
    """left @ right, of which one is a sparse array of SciPy's and the other traced."""
    mine, other = converted(left), converted(right)
    if mine is not None and is_traced(right):
        return mine @ right
    if other is not None and is_traced(left):
        return left @ other
    return left @ right
