"""Products and linear algebra: matmul, dot, tensordot, outer, kron, cross, solve, inv, cholesky."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import MatrixError, ShapeError
from bwcompiler.frontend.numpy.axes import normalize_axis
from bwcompiler.frontend.numpy.elementwise.ufunc_calls import delivered
from bwcompiler.frontend.tracing.operands import broadcast_shapes, cast, filled, last_axis_element, materialise, operand, reshape
from bwcompiler.frontend.tracing.promotion import common_dtype, strong
from bwcompiler.frontend.tracing.registry import implements
from bwcompiler.frontend.tracing.storages.views import broadcast_value
from bwcompiler.frontend.tracing.tracer import fresh, fresh_array
from bwcompiler.ir.extent import exact_count
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import BOOL, I64, DType
from bwcompiler.ops.complex_parts import conj
from bwcompiler.ops.linalg.contraction import matrix_transpose
from bwcompiler.ops.linalg.known_triangles import known_triangle
from bwcompiler.ops.linalg.solves import identity_like


def pair(a: Any, b: Any, dtype: DType | None = None) -> tuple[Value, Value]:
    """Two operands as values of their common dtype; Python numbers count as arrays here, as in np.dot."""
    (x, kind_x), (y, kind_y) = operand(a), operand(b)
    dtype = dtype or common_dtype((strong(kind_x), strong(kind_y)))
    return materialise(x, dtype, x.shape), materialise(y, dtype, y.shape)


def conjugated_first(both: tuple[Value, Value]) -> tuple[Value, Value]:
    """The operands, the first one conjugated if they are complex."""
    x, y = both
    return (ops.conjugate(x) if x.dtype.is_complex else x), y


def multiplied(x: Value, y: Value) -> Value:
    """x * y, element by element; for booleans: and."""
    return (ops.bitwise_and if x.dtype is BOOL else ops.multiply)(x, y)


def totalled(x: Value, axes: tuple[int, ...]) -> Value:
    """The sum over axes; for booleans: any."""
    return (ops.any if x.dtype is BOOL else ops.sum)(x, axes=axes)


def matrix_product(x: Value, y: Value) -> Value:
    """The matmul op; for booleans: any of and."""
    if x.dtype is not BOOL:
        return ops.matmul(x, y)
    count = ops.matmul(cast(x, I64), cast(y, I64))
    return ops.not_equal(count, filled(0, I64, count.shape))


def matmul_values(x: Value, y: Value) -> Value:
    """np.matmul of values of one dtype."""
    if x.rank == 0 or y.rank == 0:
        raise ShapeError("matmul: operands must have at least one axis, use * instead")
    left = x if x.rank > 1 else reshape(x, (1, *x.shape))
    right = y if y.rank > 1 else reshape(y, (*y.shape, 1))
    if left.shape[-1] != right.shape[-2]:
        raise ShapeError(f"matmul: operands of shapes {x.shape} and {y.shape} do not fit: inner extents {left.shape[-1]} and "
                         f"{right.shape[-2]} differ")
    if left.rank > 2 and right.rank == 2 and left.type.is_fixed:          # one tall product instead of many small ones
        lead = left.shape[:-1]
        tall = matrix_product(reshape(left, (exact_count(lead), left.shape[-1])), right)
        return reshape(tall, (*lead, *right.shape[-1:]) if y.rank > 1 else lead)
    batch = broadcast_shapes([left.shape[:-2], right.shape[:-2]])
    product = matrix_product(broadcast_value(left, (*batch, *left.shape[-2:])),
                                 broadcast_value(right, (*batch, *right.shape[-2:])))
    rows = left.shape[-2:-1] if x.rank > 1 else ()
    columns = right.shape[-1:] if y.rank > 1 else ()
    return reshape(product, (*batch, *rows, *columns))


@implements(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    x, y = pair(a, b)
    if x.rank == 0 or y.rank == 0:
        shape = broadcast_shapes([x.shape, y.shape])
        return delivered("dot", multiplied(broadcast_value(x, shape), broadcast_value(y, shape)), out, "no")
    if x.rank <= 2 and y.rank <= 2:
        return delivered("dot", matmul_values(x, y), out, "no")
    return delivered("dot", contract(x, y, (x.rank - 1,), (max(y.rank - 2, 0),)), out, "no")


def contract(x: Value, y: Value, axes_x: tuple[int, ...], axes_y: tuple[int, ...]) -> Value:
    """tensordot of values."""
    if [x.shape[k] for k in axes_x] != [y.shape[k] for k in axes_y]:
        raise ShapeError(f"tensordot: shapes {x.shape} and {y.shape} do not fit along axes {axes_x} and {axes_y}")
    kept_x = [k for k in range(x.rank) if k not in axes_x]
    kept_y = [k for k in range(y.rank) if k not in axes_y]
    if any(len(axes) > 1 and not _are_fixed(one, axes) for one, axes in ((x, axes_x), (x, kept_x), (y, kept_y))):
        return _summed_products(permuted(x, (*kept_x, *axes_x)), permuted(y, (*kept_y, *axes_y)), len(axes_x))
    inner = exact_count([x.shape[k] for k in axes_x])
    shape_x, shape_y = [x.shape[k] for k in kept_x], [y.shape[k] for k in kept_y]
    left = reshape(permuted(x, (*kept_x, *axes_x)), (exact_count(shape_x), inner))
    right = reshape(permuted(y, (*axes_y, *kept_y)), (inner, exact_count(shape_y)))
    return reshape(matrix_product(left, right), (*shape_x, *shape_y))


def _are_fixed(x: Value, axes: Sequence[int]) -> bool:
    """Whether no extent of these axes depends on a loop index, so that they can be merged into one."""
    return all(isinstance(x.shape[axis], int) for axis in axes)


def _summed_products(x: Value, y: Value, count: int) -> Value:
    """Sums of products over the last `count` axes, which agree; the other axes of x come before those of y."""
    kept_x, kept_y = x.shape[:x.rank - count], y.shape[:y.rank - count]
    shape = (*kept_x, *kept_y, *x.shape[x.rank - count:])
    inner = range(len(shape) - count, len(shape))
    left = ops.broadcast(x, shape=shape, axes=(*range(len(kept_x)), *inner))
    right = ops.broadcast(y, shape=shape, axes=(*range(len(kept_x), len(shape)),))
    return totalled(multiplied(left, right), tuple(inner))


def permuted(x: Value, axes: tuple[int, ...]) -> Value:
    """x transposed, unless the order is unchanged."""
    return x if axes == tuple(range(x.rank)) else ops.transpose(x, axes=axes)


@implements(np.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    x, y = pair(a, b)
    if isinstance(axes, int | np.integer):
        axes_x, axes_y = tuple(range(x.rank - axes, x.rank)), tuple(range(axes))
    else:
        first, second = axes
        axes_x = tuple([normalize_axis(k, x.rank) for k in (first if isinstance(first, tuple | list) else [first])])
        axes_y = tuple([normalize_axis(k, y.rank) for k in (second if isinstance(second, tuple | list) else [second])])
    if len(axes_x) != len(axes_y) or (isinstance(axes, int) and axes > min(x.rank, y.rank)):
        raise ShapeError(f"tensordot: axes {axes} do not fit shapes {x.shape} and {y.shape}")
    return fresh_array(contract(x, y, axes_x, axes_y))


@implements(np.vdot)
def vdot(a: Any, b: Any, /) -> Any:
    x, y = conjugated_first(pair(a, b))
    if x.shape == y.shape and not x.type.is_fixed and x.rank > 1:
        return fresh(totalled(multiplied(x, y), tuple(range(x.rank))))
    return fresh(matmul_values(reshape(x, (exact_count(x.shape),)), reshape(y, (exact_count(y.shape),))))


@implements(np.linalg.vecdot)
def vecdot(x1: Any, x2: Any, /, *, axis: Any = -1) -> Any:
    x, y = conjugated_first(pair(x1, x2))
    if not x.rank or not y.rank or x.shape[normalize_axis(axis, x.rank)] != y.shape[normalize_axis(axis, y.rank)]:
        raise ShapeError(f"np.vecdot: the vectors have different numbers of elements: shapes {x.shape} and {y.shape}, axis {axis}")
    shape = broadcast_shapes([x.shape, y.shape])
    product = multiplied(broadcast_value(x, shape), broadcast_value(y, shape))
    return fresh(totalled(product, (normalize_axis(axis, product.rank),)))


@implements(np.inner)
def inner(a: Any, b: Any, /) -> Any:
    x, y = pair(a, b)
    if x.rank == 0 or y.rank == 0:
        return dot(fresh(x), fresh(y))
    return fresh(contract(x, y, (x.rank - 1,), (y.rank - 1,)))


@implements(np.outer)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    x, y = pair(a, b)
    rows: Any = exact_count(x.shape)
    columns: Any = exact_count(y.shape)
    product = multiplied(broadcast_value(reshape(x, (rows, 1)), (rows, columns)),
                                   broadcast_value(reshape(y, (1, columns)), (rows, columns)))
    return delivered("outer", product, out)


@implements(np.kron)
def kron(a: Any, b: Any) -> Any:
    x, y = pair(a, b)
    rank = max(x.rank, y.rank)
    left, right = (1,) * (rank - x.rank) + x.shape, (1,) * (rank - y.rank) + y.shape
    shape = tuple([extent for both in zip(left, right, strict=True) for extent in both])
    spread_x = reshape(x, tuple([extent for one in left for extent in (one, 1)]))
    spread_y = reshape(y, tuple([extent for one in right for extent in (1, one)]))
    product = multiplied(broadcast_value(spread_x, shape), broadcast_value(spread_y, shape))
    return fresh(reshape(product, tuple([m * n for m, n in zip(left, right, strict=True)])))


# ----- linear algebra
def float_matrix(a: Any, name: str) -> Value:
    """A float or complex value of square matrices; integers become float64."""
    payload, kind = operand(a)
    dtype = common_dtype((kind,)) if isinstance(kind, type) else kind
    value = materialise(payload, dtype, payload.shape)
    value = value if value.dtype.is_differentiable else cast(value, common_dtype((value.dtype, float)))
    if value.rank < 2 or value.shape[-1] != value.shape[-2]:
        raise MatrixError(f"np.linalg.{name}: last two axes of shape {value.shape} must be square")
    return value


@implements(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: Any = False) -> Any:
    matrix = float_matrix(a, "cholesky")
    if not upper:
        return fresh(ops.cholesky(matrix))
    return fresh(_adjoint(ops.cholesky(_adjoint(matrix))))                      # the upper triangle is read, and a = Rᴴ R


def _adjoint(x: Value) -> Value:
    return conj(matrix_transpose(x))


@implements(np.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    matrix, right = pair(fresh(float_matrix(a, "solve")), b)
    vector = right.rank == 1
    columns = reshape(right, (*right.shape, 1)) if vector else right
    if columns.shape[-2] != matrix.shape[-1]:
        raise ShapeError(f"np.linalg.solve: shapes {matrix.shape} and {right.shape} do not fit")
    batch = broadcast_shapes([matrix.shape[:-2], columns.shape[:-2]])
    columns = broadcast_value(columns, (*batch, *columns.shape[-2:]))
    known = known_triangle(matrix)                 # only substitution, for factors and results of np.tril and np.triu
    if known is not None:
        triangle, lower, transpose = known
        triangle = broadcast_value(triangle, (*batch, *triangle.shape[-2:]))
        found = ops.triangular_solve(triangle, columns, lower=lower, transpose=transpose)
    else:
        found = ops.solve(broadcast_value(matrix, (*batch, *matrix.shape[-2:])), columns)
    return fresh(reshape(found, found.shape[:-1]) if vector else found)


@implements(np.linalg.inv)
def inv(a: Any) -> Any:
    matrix = float_matrix(a, "inv")
    known = known_triangle(matrix)
    if known is None:
        return fresh(ops.inv(matrix))
    triangle, lower, transpose = known
    return fresh(ops.triangular_solve(triangle, identity_like(matrix), lower=lower, transpose=transpose))


def matrix_power(x: Value, n: int) -> Any:
    """x multiplied with itself n > 0 times, by squaring."""
    result: Value | None = None
    while n:
        if n & 1:
            result = x if result is None else matmul_values(result, x)
        n >>= 1
        x = matmul_values(x, x) if n else x
    assert result is not None
    return fresh(result)


# ----- cross products
def cross_vectors(a: Any, b: Any, axis_a: int, axis_b: int, axis_c: int) -> Any:
    """The cross product of vectors with 3 elements, or 2 (third element 0); of two vectors with 2 elements, only the third element."""
    x, y = pair(a, b)
    if not x.rank or not y.rank:
        raise ValueError("At least one array has zero dimension")
    x, y = (moved_last(one, axis) for one, axis in ((x, axis_a), (y, axis_b)))
    if x.shape[-1] not in (2, 3) or y.shape[-1] not in (2, 3):
        raise ShapeError(f"np.cross: vectors must have 2 or 3 elements, got shapes {x.shape} and {y.shape}")
    shape = broadcast_shapes([x.shape[:-1], y.shape[:-1]])
    if x.shape[-1] == y.shape[-1] == 2:
        x, y = broadcast_value(x, (*shape, 2)), broadcast_value(y, (*shape, 2))
        products = multiplied(x, ops.concatenate(ops.slice_axis(y, y.rank - 1, 1, 1), ops.slice_axis(y, y.rank - 1, 0, 1), axis=y.rank - 1))
        return fresh(ops.subtract(last_axis_element(products, 0), last_axis_element(products, 1)))
    x, y = (one if one.shape[-1] == 3 else ops.concatenate(one, filled(0, one.dtype, (*one.shape[:-1], 1)), axis=one.rank - 1)
            for one in (x, y))
    x, y = broadcast_value(x, (*shape, 3)), broadcast_value(y, (*shape, 3))
    xs, ys = ([ops.slice_axis(one, one.rank - 1, k, 1) for k in range(3)] for one in (x, y))
    result = ops.concatenate(*[ops.subtract(multiplied(xs[k - 2], ys[k - 1]), multiplied(xs[k - 1], ys[k - 2])) for k in range(3)],
                             axis=x.rank - 1)
    last, place = result.rank - 1, normalize_axis(axis_c, result.rank)
    return fresh(permuted(result, (*range(place), last, *range(place, last))))


def moved_last(x: Value, axis: int) -> Value:
    """x with one axis moved to the end."""
    place = normalize_axis(axis, x.rank)
    return permuted(x, (*[k for k in range(x.rank) if k != place], place))


@implements(np.cross)
def cross(a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    return cross_vectors(a, b, axisa, axisb, axisc)
