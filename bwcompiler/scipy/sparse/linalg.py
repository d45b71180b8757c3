"""`bw.scipy.sparse.linalg`: linear systems with sparse matrices, by SciPy's LU factors."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from bwcompiler.api.inside.callbacks import pure_callback
from bwcompiler.api.inside.eager import graph_function
from bwcompiler.api.programs.shapes import ShapeDtypeStruct
from bwcompiler.api.transforms.reverse import custom_vjp
from bwcompiler.errors import ShapeError
from bwcompiler.frontend.tracing.operands import cast, value_as
from bwcompiler.frontend.tracing.promotion import common_dtype
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.types import F64
from bwcompiler.scipy.sparse.arrays import SparseArray, converted

__all__ = ["spsolve"]


def _host_solve(data: Any, rows: Any, columns: Any, b: Any) -> Any:
    sparse, linalg = importlib.import_module("scipy.sparse"), importlib.import_module("scipy.sparse.linalg")
    n = b.shape[0]
    matrix = sparse.coo_array((data, (rows, columns)), shape=(n, n)).tocsc()
    try:
        return linalg.splu(matrix).solve(b)
    except RuntimeError as error:                                       # "Factor is exactly singular"
        raise np.linalg.LinAlgError(str(error)) from None


@custom_vjp
def _solve(data: Any, rows: Any, columns: Any, b: Any) -> Any:
    return pure_callback(_host_solve, ShapeDtypeStruct(b.shape, b.dtype), data, rows, columns, b)


def _forward(data: Any, rows: Any, columns: Any, b: Any) -> Any:
    x = _solve(data, rows, columns, b)
    return x, (data, rows, columns, x)


def _backward(saved: Any, ct: Any) -> Any:
    data, rows, columns, x = saved
    y = _solve(data, columns, rows, ct)                                 # aᵀ y = ct
    terms = y[rows] * x[columns]
    return -(terms.sum(-1) if terms.ndim == 2 else terms), None, None, y


_solve.defvjp(_forward, _backward)


@graph_function
def _solved(data: Any, rows: Any, columns: Any, b: Any) -> Any:
    values, right = value_as(data), value_as(b)
    dtype = common_dtype((values.dtype, right.dtype, F64))
    return _solve(fresh(cast(values, dtype)), rows, columns, fresh(cast(right, dtype)))


def spsolve(A: Any, b: Any, permc_spec: Any = None, use_umfpack: bool = True) -> Any:
    """x with A x = b, for a sparse A (of SciPy's or of `bw.scipy.sparse`) and a vector or matrix b; A's data and b may be traced.

    The factors are made by SciPy on the host at each call; the derivative solves with the transposed matrix, and has one number per
    element of A.  Raises ShapeError where these do not fit, LinAlgError if A is singular.

    >>> import numpy as np, bwcompiler as bw
    >>> matrix = bw.scipy.sparse.coo_array((np.array([2.0, 4.0]), (np.array([0, 1]), np.array([0, 1]))))
    >>> bw.scipy.sparse.linalg.spsolve(matrix, np.array([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    matrix = A if isinstance(A, SparseArray) else converted(A)
    if matrix is None:
        raise TypeError(f"spsolve: a sparse array is expected, got {type(A).__name__}")
    if matrix.shape[0] != matrix.shape[1] or np.shape(b)[0] != matrix.shape[0]:
        raise ShapeError(f"spsolve: shapes {matrix.shape} and {np.shape(b)} do not fit")
    return _solved(matrix.data, matrix.rows, matrix.columns, b)
