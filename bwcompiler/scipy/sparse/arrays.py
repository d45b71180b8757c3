"""Sparse matrices whose structure is known and whose numbers may be traced: `csr_array`, `csc_array` and `coo_array`, as in scipy.sparse.

A product gathers what the elements are multiplied with and adds it up per row; so the derivative by the data has one number per element.
`bw.scipy.sparse.linalg` solves.  In captured code the sparse arrays of SciPy become these where they meet traced values.
"""

from __future__ import annotations

import weakref
from typing import Any, TypeVar

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.errors import ShapeError, TracerError
from bwcompiler.frontend.tracing.operands import cast, is_traced, value_as
from bwcompiler.frontend.tracing.promotion import common_dtype
from bwcompiler.frontend.tracing.refusals.demands import constant_arrays
from bwcompiler.frontend.tracing.stand_ins import KnownPart, StandIn
from bwcompiler.frontend.tracing.tracer import fresh

Sparse = TypeVar("Sparse", bound="SparseArray")


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
    """Which elements there are; loops may have made that together with the elements."""
    made = iter(constant_arrays([value_as(one) for one in given if is_traced(one)]) if any(map(is_traced, given)) else ())
    known = [next(made) if is_traced(one) else one for one in given]
    if any(one is None for one in known):
        raise TracerError(f"{name}: rows, columns and indptr must be known while tracing, as they say which elements there are\n"
                          "  hint: trace the data, and close over the structure")
    return [np.asarray(one, np.int64) for one in known]


class Structure(KnownPart):
    """Where the elements of sparse arrays are.  There is one for each: by it, a loop knows that this does not change."""

    __slots__ = ("__weakref__", "columns", "rows", "shape")

    def __init__(self, rows: Any, columns: Any, shape: tuple[int, int]) -> None:
        self.rows, self.columns, self.shape = rows, columns, shape

    @classmethod
    def of(cls, rows: Any, columns: Any, shape: tuple[int, int]) -> Structure:
        """Raises ValueError for places outside of the shape."""
        for places, extent, axis in ((rows, shape[0], "row"), (columns, shape[1], "column")):
            if places.size and (places.min() < 0 or places.max() >= extent):
                raise ValueError(f"{axis} index exceeds matrix dimensions {shape}")
        return _structures.setdefault((rows.tobytes(), columns.tobytes(), shape), cls(rows, columns, shape))


_structures: weakref.WeakValueDictionary[Any, Structure] = weakref.WeakValueDictionary()


class SparseArray(StandIn):
    """Elements data[k] at (rows[k], columns[k]); repeated places add up.  Made by `coo_array` and the others.

    There are a @ x, a.dot(x), x @ a (for vectors, matrices and sparse arrays x), a.T, a * number, -a, a + b, a.multiply(x),
    a[rows][:, columns], a.toarray(), a.sum(axis), a.diagonal(); a.tocsr() and its like are a itself.
    """

    __array_ufunc__ = None                                   # so that NumPy's operators leave x @ a and x * a to this class
    __array_priority__ = 1000.0

    def __init__(self, data: Any, rows: Any, columns: Any, shape: tuple[int, int]) -> None:
        super().__init__()
        self.data: Any = np.array(data) if isinstance(data, list | tuple) else data
        if np.shape(data) != rows.shape or rows.shape != columns.shape or rows.ndim != 1:
            raise ShapeError(f"sparse array: data of shape {np.shape(data)} at {rows.shape} places")
        self.structure = Structure.of(rows, columns, (int(shape[0]), int(shape[1])))

    @property
    def rows(self) -> Any:
        return self.structure.rows

    @property
    def columns(self) -> Any:
        return self.structure.columns

    @property
    def shape(self) -> tuple[int, int]:
        return self.structure.shape

    @property
    def T(self) -> SparseArray:
        return type(self)(self.data, self.columns, self.rows, self.shape[::-1])

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
        known = x if isinstance(x, SparseArray) else converted(x)
        if known is not None:
            return self._product(known)
        if np.ndim(x) not in (1, 2) or np.shape(x)[0] != self.shape[1]:
            raise ShapeError(f"matmul: dimension mismatch with signature (n,k={self.shape[1]}),(k={np.shape(x)[:1]},m)")
        return product_at(self.data, self.rows, self.columns, x, self.shape[0])

    def _product(self, other: SparseArray) -> SparseArray:
        if self.shape[1] != other.shape[0]:
            raise ShapeError(f"matmul: sparse arrays of shapes {self.shape} and {other.shape} do not fit")
        theirs, mine = _found_at(other.rows, self.columns)
        return type(self)(self.data[mine] * other.data[theirs], self.rows[mine], other.columns[theirs], (self.shape[0], other.shape[1]))

    def dot(self, x: Any) -> Any:
        return self * x if np.ndim(x) == 0 else self @ x

    def __rmatmul__(self, x: Any) -> Any:
        known = converted(x)
        if known is not None:
            return known @ self
        if np.ndim(x) == 1:
            return self.T @ x
        return np.swapaxes(self.T @ np.swapaxes(x, 0, 1), 0, 1)

    def __mul__(self, x: Any) -> Any:
        if np.ndim(x):
            raise ShapeError("a sparse array times an array is not supported\n"
                             "  hint: a @ x for the product; a.multiply(x); a.toarray() * x")
        return self._with(self.data * x)

    def __rmul__(self, x: Any) -> Any:
        return self * x

    def __truediv__(self, x: Any) -> SparseArray:
        return self._with(self.data / x) if np.ndim(x) == 0 else self.multiply(1.0 / x)

    def __neg__(self) -> SparseArray:
        return self._with(-self.data)

    def conjugate(self, copy: bool = True) -> SparseArray:
        return self._with(np.conj(self.data))

    conj = conjugate

    def _with(self, data: Any) -> SparseArray:
        return _with_structure(type(self), data, self.structure)

    def multiply(self, x: Any) -> SparseArray:
        """The elements times those of an array that broadcasts to the shape, or times a number."""
        if isinstance(x, SparseArray) or converted(x) is not None:
            raise ShapeError("the elements of two sparse arrays are not multiplied\n  hint: a.multiply(b.toarray())")
        return self._with(self.data * (x if np.ndim(x) == 0 else np.broadcast_to(x, self.shape)[self.rows, self.columns]))

    def __getitem__(self, key: Any) -> Any:
        """Rows and columns by slices, masks and arrays of integers that are known; an element."""
        one, other = key if isinstance(key, tuple) and len(key) == 2 else (key, slice(None))
        if is_traced(one) or is_traced(other):
            raise TracerError("a sparse array at traced places: which elements there are must be known\n  hint: a.toarray()[...]")
        rows, columns = (np.arange(extent)[place] for extent, place in zip(self.shape, (one, other), strict=True))
        if rows.ndim == columns.ndim == 0:
            return self.data[np.flatnonzero((self.rows == rows) & (self.columns == columns))].sum()
        if rows.ndim != 1 or columns.ndim != 1 or not (isinstance(one, slice) or isinstance(other, slice)):
            raise ShapeError("a sparse array has rows, then columns, by slices, masks and vectors of integers\n"
                             "  hint: a[rows][:, columns]; a.toarray()[...] for a row or for elements")
        first, new_rows = _found_at(self.rows, rows)
        second, new_columns = _found_at(self.columns[first], columns)
        return type(self)(self.data[first[second]], new_rows[second], new_columns, (rows.size, columns.size))

    def tocsr(self, copy: bool = False) -> SparseArray:
        """Itself: there is one form."""
        return self

    tocsc = tocoo = todia = tolil = tobsr = tocsr

    def asformat(self, format: Any, copy: bool = False) -> SparseArray:
        return self

    def copy(self) -> SparseArray:
        return self._with(np.copy(self.data))

    def __add__(self, other: Any) -> SparseArray:
        given = other if isinstance(other, SparseArray) else converted(other)
        if given is None or given.shape != self.shape:
            raise ShapeError("a sparse array can be added to another one of its shape\n  hint: a.toarray() + x")
        both = [np.concatenate(pair) for pair in ((self.data, given.data), (self.rows, given.rows), (self.columns, given.columns))]
        return type(self)(both[0], both[1], both[2], self.shape)

    __radd__ = __add__

    def __sub__(self, other: Any) -> SparseArray:
        return self.__add__(-1.0 * other)

    def __rsub__(self, other: Any) -> SparseArray:
        return (-self).__add__(other)

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


class SparseMatrix(SparseArray):
    """What SciPy's `csr_matrix` and its like are: `*` is the matrix product, sums along an axis keep it."""

    def __mul__(self, x: Any) -> Any:
        return super().__mul__(x) if np.ndim(x) == 0 else self @ x

    def __rmul__(self, x: Any) -> Any:
        return super().__mul__(x) if np.ndim(x) == 0 else x @ self

    def sum(self, axis: int | None = None) -> Any:
        found = super().sum(axis)
        return found if axis is None else np.expand_dims(found, axis)


def _with_structure(kind: type[Sparse], data: Any, structure: Structure) -> Sparse:
    """An array whose elements are where those of another one are, which has been checked and looked up."""
    made = object.__new__(kind)
    StandIn.__init__(made)
    made.data, made.structure = data, structure
    return made


def _found_at(places: Any, wanted: Any) -> tuple[Any, Any]:
    """The numbers of the elements whose place is wanted, once for each time it is; and the numbers of what was wanted."""
    order = np.argsort(places, kind="stable")
    first, last = (np.searchsorted(places[order], wanted, side) for side in ("left", "right"))
    counts = last - first
    numbers = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    return order[numbers], np.repeat(np.arange(wanted.size), counts)


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


def _as_matrix(found: SparseArray) -> SparseMatrix:
    return _with_structure(SparseMatrix, found.data, found.structure)


def csr_matrix(arg1: Any, shape: Any = None) -> SparseMatrix:
    """As csr_array; `*` is the matrix product.

    >>> import numpy as np, bwcompiler as bw
    >>> (bw.scipy.sparse.csr_matrix((np.array([5.0]), np.array([1]), np.array([0, 1]))) * np.array([1.0, 2.0])).tolist()
    [10.0]
    """
    return _as_matrix(csr_array(arg1, shape))


def csc_matrix(arg1: Any, shape: Any = None) -> SparseMatrix:
    """As csc_array; `*` is the matrix product.

    >>> import numpy as np, bwcompiler as bw
    >>> (bw.scipy.sparse.csc_matrix((np.array([5.0]), np.array([0]), np.array([0, 0, 1]))) * np.array([1.0, 2.0])).tolist()
    [10.0]
    """
    return _as_matrix(csc_array(arg1, shape))


def coo_matrix(arg1: Any, shape: Any = None) -> SparseMatrix:
    """As coo_array; `*` is the matrix product.

    >>> import numpy as np, bwcompiler as bw
    >>> (bw.scipy.sparse.coo_matrix((np.array([5.0]), (np.array([0]), np.array([1])))) * np.array([1.0, 2.0])).tolist()
    [10.0]
    """
    return _as_matrix(coo_array(arg1, shape))


def diags_array(diagonals: Any, *, offsets: Any = 0, shape: Any = None, format: Any = None, dtype: Any = None) -> SparseArray:
    """The sparse array of diagonals, as scipy.sparse.diags_array; these may be traced, offsets are known.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.sparse.diags_array([np.array([1.0, 2.0]), 3.0], offsets=[0, 1], shape=(2, 2)).toarray().tolist()
    [[1.0, 3.0], [0.0, 2.0]]
    """
    if np.ndim(offsets) == 0:
        diagonals = [diagonals] if np.ndim(diagonals[0]) == 0 else diagonals
    places = [int(offset) for offset in np.atleast_1d(offsets)]
    given = [np.atleast_1d(diagonal) for diagonal in diagonals]
    if len(places) != len(given):
        raise ValueError("Different number of diagonals and offsets.")
    extent = given[0].shape[0] + abs(places[0])
    m, n = (extent, extent) if shape is None else shape
    data, rows = [], []
    for number, (diagonal, offset) in enumerate(zip(given, places, strict=True)):
        length = min(m + offset, n - offset, m, n)
        if length < 0 or diagonal.shape[0] not in (1, length):
            raise ValueError(f"Diagonal length (index {number}: {diagonal.shape[0]} at offset {offset}) does not agree with array size "
                             f"({m}, {n}).")
        data.append(np.broadcast_to(diagonal, (length,)))
        rows.append(np.arange(length) + max(0, -offset))
    columns = [row + offset for row, offset in zip(rows, places, strict=True)]
    whole: Any = np.concatenate(data)
    return SparseArray(whole if dtype is None else whole.astype(dtype), np.concatenate(rows), np.concatenate(columns), (m, n))


def diags(diagonals: Any, offsets: Any = 0, shape: Any = None, format: Any = None, dtype: Any = None) -> SparseMatrix:
    """As diags_array, with offsets by position; `*` is the matrix product.

    >>> import numpy as np, bwcompiler as bw
    >>> (bw.scipy.sparse.diags([np.array([1.0, 2.0]), [3.0]], [0, 1]) * np.ones(2)).tolist()
    [4.0, 2.0]
    """
    return _as_matrix(diags_array(diagonals, offsets=offsets, shape=shape, dtype=dtype))


def kron(A: Any, B: Any, format: Any = None) -> SparseArray:
    """Kronecker's product of two sparse arrays, as scipy.sparse.kron.

    >>> import numpy as np, bwcompiler as bw
    >>> a = bw.scipy.sparse.diags_array(np.array([1.0, 2.0]))
    >>> bw.scipy.sparse.kron(a, a).toarray().diagonal().tolist()
    [1.0, 2.0, 2.0, 4.0]
    """
    one, other = [x if isinstance(x, SparseArray) else converted(x) for x in (A, B)]
    if one is None or other is None:
        raise TracerError("kron of a dense array: which elements are zero is not known while tracing\n  hint: np.kron of two dense ones")
    rows, columns = [(mine * extent + theirs).ravel() for mine, extent, theirs in (
        (one.rows[:, None], other.shape[0], other.rows), (one.columns[:, None], other.shape[1], other.columns))]
    shape = (one.shape[0] * other.shape[0], one.shape[1] * other.shape[1])
    kind = SparseMatrix if isinstance(one, SparseMatrix) and isinstance(other, SparseMatrix) else SparseArray
    return kind((one.data[:, None] * other.data).ravel(), rows, columns, shape)


def converted(of: Any) -> SparseArray | None:
    """A sparse array or matrix of SciPy's as one of these; None for anything else."""
    if not str(type(of).__module__).startswith("scipy.sparse") or not hasattr(of, "tocoo") or len(of.shape) != 2:
        return None
    found = of.tocoo()
    kind = SparseMatrix if type(of).__name__.endswith("_matrix") else SparseArray
    return kind(found.data, found.row.astype(np.int64), found.col.astype(np.int64), found.shape)


def elements_product(left: Any, right: Any) -> Any:
    """left * right, of which one is a sparse array of SciPy's and the other traced."""
    mine, other = converted(left), converted(right)
    return (left if mine is None else mine) * (right if other is None else other)


def product(left: Any, right: Any) -> Any:
    """left @ right, of which one is a sparse array of SciPy's and the other traced."""
    mine, other = converted(left), converted(right)
    if mine is not None and is_traced(right):
        return mine @ right
    if other is not None and is_traced(left):
        return left @ other
    return left @ right
