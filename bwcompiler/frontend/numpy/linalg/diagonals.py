"""NumPy's functions of triangles and diagonals: tril, triu, diagonal, trace, diag, fill_diagonal, ..."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import ShapeError, TracerArrayError
from bwcompiler.frontend.numpy.axes import normalize_axis
from bwcompiler.frontend.numpy.manipulation.indexing import setitem
from bwcompiler.frontend.numpy.manipulation.layout import flat_view, viewed
from bwcompiler.frontend.numpy.reductions.reductions import sum_
from bwcompiler.frontend.tracing.operands import as_tracer, filled, reshape, value_as
from bwcompiler.frontend.tracing.registry import implements
from bwcompiler.frontend.tracing.storages.views import DiagonalView, broadcast_value
from bwcompiler.frontend.tracing.tracer import Tracer, fresh
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import I64


# ----- triangles and diagonals
def _offsets(shape: tuple[Any, ...]) -> Value:
    """column - row, of the last two axes."""
    rank = len(shape)
    rows, columns = (ops.iota(shape=shape, axis=rank - 2 + k, dtype=I64) for k in (0, 1))
    return ops.subtract(columns, rows)


def _triangle(m: Any, k: int, lower: bool) -> Any:
    x = value_as(m)
    if x.rank == 1:
        x = broadcast_value(x, (x.shape[0], x.shape[0]))
    distance = _offsets(x.shape)
    compare = ops.less_equal if lower else ops.greater_equal
    keep = compare(distance, filled(k, I64, distance.shape))
    return fresh(ops.select(keep, x, filled(0, x.dtype, x.shape)))


@implements(np.tril)
def tril(m: Any, k: Any = 0) -> Any:
    return _triangle(m, k, True)


@implements(np.triu)
def triu(m: Any, k: Any = 0) -> Any:
    return _triangle(m, k, False)


def diagonal_value(x: Value, offset: int, axis1: int, axis2: int) -> Value:
    """The diagonal over two axes, as the last axis."""
    return DiagonalView(x.shape, offset, (axis1, axis2), False).read(x)


@implements(np.diagonal)
def diagonal(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
    x = as_tracer(a)
    if x.ndim < 2:
        raise ShapeError("diag requires an array of at least two dimensions")
    first, second = normalize_axis(axis1, x.ndim), normalize_axis(axis2, x.ndim)
    if first == second:
        raise ValueError("axis1 and axis2 cannot be the same")
    view = DiagonalView(x.shape, int(offset), (first, second), False)
    return viewed(x, (*x._chain, view), view.shape)


@implements(np.linalg.diagonal)
def linalg_diagonal(x: Any, /, *, offset: Any = 0) -> Any:
    return diagonal(x, offset, -2, -1)


@implements(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: Any = False) -> None:
    if not isinstance(a, Tracer):
        raise TracerArrayError("np.fill_diagonal of a concrete array with a traced value\n  hint: make it with np.zeros_like(x)")
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    step = sum(math.prod(a.shape[:axis]) for axis in range(a.ndim)) if a.ndim > 2 else a.shape[1] + 1
    end = None if wrap or a.ndim > 2 else a.shape[1] * a.shape[1]
    setitem(flat_view(a), slice(None, end, step), val)


@implements(np.trace)
def trace(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None) -> Any:
    return sum_(diagonal(a, offset, axis1, axis2), -1, dtype, out)


@implements(np.linalg.trace)
def linalg_trace(x: Any, /, *, offset: Any = 0, dtype: Any = None) -> Any:
    return trace(x, offset, -2, -1, dtype)


@implements(np.diag)
def diag(v: Any, k: Any = 0) -> Any:
    if as_tracer(v).ndim == 2:
        return diagonal(v, k)
    x = value_as(v)
    if x.rank != 1:
        raise ShapeError("Input must be 1- or 2-d.")
    offset = int(k)
    size = x.shape[0] + abs(offset)
    padded = ops.pad(x, low=(0,), high=(abs(offset),), value=x.dtype.numpy.type(0).item())
    spread = ops.broadcast(padded, shape=(size, size), axes=(0 if offset >= 0 else 1,))
    distance = _offsets((size, size))
    return fresh(ops.select(ops.equal(distance, filled(offset, I64, (size, size))), spread, filled(0, x.dtype, (size, size))))


@implements(np.diagflat)
def diagflat(v: Any, k: Any = 0) -> Any:
    x = value_as(v)
    return diag(fresh(reshape(x, (math.prod(x.shape),))), k)
