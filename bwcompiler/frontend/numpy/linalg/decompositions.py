"""numpy.linalg beyond products and solves: decompositions, determinants, pseudo-inverses, norms and functions composed of these."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import DTypeError, MatrixError, ShapeError, UnsupportedError
from bwcompiler.frontend.numpy.axes import Axes, normalize_axes, normalize_axis
from bwcompiler.frontend.numpy.elementwise.ufuncs import magnitude, truth
from bwcompiler.frontend.numpy.linalg.generalised import matmul
from bwcompiler.frontend.numpy.linalg.linear import (
    cross_vectors,
    float_matrix,
    matmul_values,
    matrix_power,
    outer,
    permuted,
    solve,
    tensordot,
)
from bwcompiler.frontend.numpy.manipulation.creation import zeros_like
from bwcompiler.frontend.numpy.real_results import may_be_taken_for_real, taken_for_real
from bwcompiler.frontend.numpy.reductions.reductions import finished, flat_at_zero, reduce_value, root, square_of_magnitude
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.operands import as_tracer, cast, constant, filled, last_axis_element, number_value, reshape, value_as
from bwcompiler.frontend.tracing.promotion import scalar_of
from bwcompiler.frontend.tracing.registry import implements
from bwcompiler.frontend.tracing.storages.views import broadcast_value
from bwcompiler.frontend.tracing.tracer import Tracer, fresh
from bwcompiler.ir.extent import exact_count
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import F64, I32, I64
from bwcompiler.ops.complex_parts import conj
from bwcompiler.ops.linalg.contraction import matrix_transpose
from bwcompiler.ops.linalg.factorization import row, rows, svd_parts
from bwcompiler.ops.linalg.solves import identity_like

# NumPy's named tuples, for which it has no public names
EigResult: Any = type(np.linalg.eig(np.eye(1)))
EighResult: Any = type(np.linalg.eigh(np.eye(1)))
SVDResult: Any = type(np.linalg.svd(np.eye(1)))
QRResult: Any = type(np.linalg.qr(np.eye(1)))
SlogdetResult: Any = type(np.linalg.slogdet(np.eye(1)))


def _matrix(a: Any, name: str) -> Value:
    """A float or complex array of at least 2 axes."""
    value = value_as(a)
    if value.rank < 2:
        raise MatrixError(f"{value.rank}-dimensional array given. np.linalg.{name} needs an array that is at least two-dimensional")
    return value if value.dtype.is_differentiable else cast(value, F64)


def _real(x: Value) -> Value:
    """The real parts of a complex array whose values are real."""
    return ops.real(x) if x.dtype.is_complex else x


# ----- decompositions
@implements(np.linalg.eigh)
def eigh(a: Any, UPLO: Any = "L") -> Any:
    x = float_matrix(a, "eigh")
    packed = ops.eigh(x, lower=_is_lower(UPLO))
    return EighResult(fresh(_real(row(packed, 0))), fresh(rows(packed, 1, x.shape[-1])))


def _is_lower(triangle: Any) -> bool:
    if triangle.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return bool(triangle.upper() == "L")


@implements(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: Any = "L") -> Any:
    return fresh(ops.eigvalsh(float_matrix(a, "eigvalsh"), lower=_is_lower(UPLO)))


@implements(np.linalg.eig)
def eig(a: Any) -> Any:
    """Complex, or real numbers as NumPy's, if the eigenvalues may be taken for real."""
    x = float_matrix(a, "eig")
    values, vectors = complex_eig(x)
    if _are_taken_for_real(x, values):
        values, vectors = ops.real(values), ops.real(vectors)
    return EigResult(fresh(values), fresh(vectors))


def complex_eig(x: Value) -> tuple[Value, Value]:
    """The eigenvalues and eigenvectors of a matrix, complex always."""
    packed = ops.eig(x)
    return row(packed, 0), rows(packed, 1, x.shape[-1])


@implements(np.linalg.eigvals)
def eigvals(a: Any) -> Any:
    """Complex or real, like those of `eig`."""
    x = float_matrix(a, "eigvals")
    found = ops.eigvals(x)
    return fresh(ops.real(found) if _are_taken_for_real(x, found) else found)


def _are_taken_for_real(x: Value, eigenvalues: Value) -> bool:
    """Whether the eigenvalues of a real matrix are taken for real, as NumPy's are if all happen to be."""
    if x.dtype.is_complex or not may_be_taken_for_real():
        return False
    return taken_for_real(np.any(fresh(ops.imag(eigenvalues)) != 0), "eigenvalues of a real matrix are complex")


@implements(np.linalg.svd)
def svd(a: Any, full_matrices: Any = True, compute_uv: Any = True, hermitian: Any = False) -> Any:
    x = _matrix(a, "svd")
    if hermitian:
        return _symmetric_svd(x, compute_uv)
    if not compute_uv:
        return fresh(ops.svdvals(x))
    m, n = x.shape[-2:]
    u, s, v = svd_parts(ops.svd(x), m, n)
    if full_matrices and m > n:
        u = _completed(u, _signs(u))
    if full_matrices and m < n:
        v = _completed(v, _signs(v))
    return SVDResult(fresh(u), fresh(_real(s)), fresh(matrix_transpose(v)))


def _symmetric_svd(x: Value, vectors: Any) -> Any:
    """The SVD from eigenvalues and eigenvectors of symmetric matrices, of which the lower triangle is read."""
    square = fresh(x)
    if not vectors:
        return np.flip(np.sort(np.abs(np.linalg.eigvalsh(square)), -1), -1)
    values, columns = np.linalg.eigh(square)
    order: Any = np.flip(np.argsort(np.abs(values), -1), -1)
    signs = np.take_along_axis(np.copysign(1.0, values), order, -1)          # never 0: the vectors of singular matrices are some, too
    left: Any = np.take_along_axis(columns, order[..., None, :], -1)
    return SVDResult(left, np.take_along_axis(np.abs(values), order, -1), np.conj(np.swapaxes(left * signs[..., None, :], -1, -2)))


def _completed(u: Value, signs: Value | None = None) -> Value:
    """Orthonormal columns U and as many more as make a square matrix, which are a smooth function of U.

    The orthogonal (unitary) matrix I + W W₁⁻ᴴ Wᴴ with W = U S - E has U S as its first columns, where E is the first columns of I, S a
    diagonal of signs and W₁ the square part of W on top.  For the Q of Householder's method S is I but for columns of I, and this is the
    product of its reflections.
    """
    m, k = u.shape[-2:]
    whole = broadcast_value(value_as(np.eye(m - k, dtype=u.dtype.numpy)), (*u.shape[:-2], m - k, m - k))
    if not k:
        return whole
    turned = u if signs is None else ops.multiply(u, broadcast_value(reshape(signs, (*signs.shape[:-1], 1, k)), u.shape))
    top, below = rows(turned, 0, k), rows(turned, k, m - k)
    top = ops.subtract(top, identity_like(top))
    found = ops.solve(conj(matrix_transpose(top)), conj(matrix_transpose(below)))
    rest = ops.concatenate(ops.matmul(top, found), ops.add(whole, ops.matmul(below, found)), axis=u.rank - 2)
    return ops.concatenate(u, rest, axis=u.rank - 1)


def _signs(u: Value) -> Value:
    """The diagonal of R in U = Q R, of ones and minus ones: those for which W₁ of `_completed` is well-conditioned.

    Householder's method leaves a column alone that is one of I's already, whose sign would make W₁ singular: so U is moved a little.
    """
    m, k = u.shape[-2:]
    row, column = as_tracer(np.arange(m)[:, None]), np.arange(k)
    moved: Any = np.where(row >= k, np.cos(row + 1.0) * np.cos(column + 1.0), np.where(row == column, -1.0, 0.0))
    there = fresh(ops.stop_gradient(u)) + (1e-3 / math.sqrt(m) * moved).astype(u.dtype.numpy)
    upper: Any = fresh(rows(ops.qr(value_of(there)), m, k))
    return ops.stop_gradient(value_of(np.rint(np.diagonal(upper, 0, -2, -1))))


@implements(np.linalg.svdvals)
def svdvals(x: Any, /) -> Any:
    return fresh(ops.svdvals(_matrix(x, "svdvals")))


@implements(np.linalg.qr)
def qr(a: Any, mode: Any = "reduced") -> Any:
    x = _matrix(a, "qr")
    m, n = x.shape[-2:]
    if mode not in ("reduced", "r", "complete"):
        raise UnsupportedError(f"np.linalg.qr: mode={mode!r} is not supported on traced arrays; supported: 'reduced', 'r', 'complete'")
    if m >= n:
        packed = ops.qr(x)
        q, r = rows(packed, 0, m), rows(packed, m, n)
    else:                                          # A = [X Y]: Q R = X and R' = [R QᴴY]
        flipped = matrix_transpose(x)
        left, right = (matrix_transpose(rows(flipped, *part)) for part in ((0, m), (m, n - m)))
        packed = ops.qr(left)
        q = rows(packed, 0, m)
        r = ops.concatenate(rows(packed, m, m), matmul_values(conj(matrix_transpose(q)), right), axis=x.rank - 1)
    if mode == "complete" and m > n:
        q, r = _completed(q, _signs(q)), ops.pad(r, low=(0,) * r.rank, high=(*(0,) * (r.rank - 2), m - n, 0), value=0.0)
    return fresh(r) if mode == "r" else QRResult(fresh(q), fresh(r))


# ----- determinants
@implements(np.linalg.det)
def det(a: Any) -> Any:
    return fresh(ops.det(float_matrix(a, "det")))


@implements(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    packed = ops.slogdet(float_matrix(a, "slogdet"))
    sign, logarithm = [last_axis_element(packed, k) for k in (0, 1)]
    return SlogdetResult(fresh(sign), fresh(_real(logarithm)))


# ----- least squares and tensors
@implements(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: Any = False, *, rtol: Any = np._NoValue) -> Any:
    if rcond is not None and rtol is not np._NoValue:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    cutoff = rcond if rtol is np._NoValue else rtol
    x = _matrix(a, "pinv")
    if 0 in x.shape[-2:]:
        return fresh(filled(0, value_as(a).dtype, (*x.shape[:-2], x.shape[-1], x.shape[-2])))
    if hermitian:                                  # NumPy reads the lower triangle
        x = float_matrix(fresh(x), "pinv")
        below: Any = np.tril(fresh(x), -1)
        diagonal: Any = np.diagonal(fresh(x), 0, -2, -1).real
        x = value_of(below + np.conj(np.swapaxes(below, -1, -2)) + diagonal[..., None] * np.eye(x.shape[-1], dtype=diagonal.dtype))
    if isinstance(cutoff, Tracer) or (cutoff is not None and np.size(cutoff) != 1):
        u, s, v = np.linalg.svd(fresh(x), full_matrices=False)
        large: Any = s > np.expand_dims(cutoff, -1) * np.max(s, -1, keepdims=True)
        inverse = np.where(large, 1.0 / np.where(large, s, 1.0), 0.0)
        return np.conj(np.swapaxes(v, -1, -2)) @ (inverse[..., None] * np.conj(np.swapaxes(u, -1, -2)))
    return fresh(ops.pinv(x, rcond=None if cutoff is None else float(np.reshape(cutoff, ()))))


@implements(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    given = value_as(a)
    if given.rank != 2:
        raise np.linalg.LinAlgError(f"{given.rank}-dimensional array given. Array must be two-dimensional")
    matrix, right = _matrix(a, "lstsq"), value_as(b)
    m, n = matrix.shape
    if right.shape[0] != m:
        raise MatrixError(f"np.linalg.lstsq: shapes {matrix.shape} and {right.shape} do not fit")
    cutoff = np.finfo(matrix.dtype.numpy).eps * max(m, n) if rcond is None else float(rcond)
    solution = matmul(fresh(ops.pinv(matrix, rcond=float(cutoff))), fresh(right))
    distance = as_tracer(right_minus(matrix, solution, right))
    squares: Any = fresh(square_of_magnitude(value_as(distance)))
    residuals = np.sum(np.atleast_2d(squares.T).T, axis=0) if m > n else zeros_like(squares, shape=(0,))
    values = ops.svdvals(matrix)
    if not values.shape[0]:
        return solution, residuals, fresh(filled(0, I32, ())), fresh(values)
    largest = broadcast_value(reduce_value(ops.max, values, (0,)), values.shape)
    above = ops.greater(values, ops.multiply(largest, constant(cutoff, values)))
    rank = fresh(reduce_value(ops.sum, cast(above, I32), (0,)))
    return solution, residuals, rank, fresh(values)


def right_minus(matrix: Value, solution: Tracer, right: Value) -> Any:
    """b - a x."""
    return fresh(right) - matmul(fresh(matrix), solution)


@implements(np.linalg.tensorinv)
def tensorinv(a: Any, ind: Any = 2) -> Any:
    x = as_tracer(a)
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    first, second = x.shape[:ind], x.shape[ind:]
    flat = np.linalg.inv(np.reshape(x, (math.prod(first), math.prod(second))))
    return np.reshape(flat, (*second, *first))


@implements(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    x, right = as_tracer(a), as_tracer(b)
    if axes is not None:
        moved = [normalize_axis(axis, x.ndim) for axis in axes]
        x = np.transpose(x, [*[k for k in range(x.ndim) if k not in moved], *moved])  # type: ignore[assignment]
    unknown = x.shape[right.ndim:]
    flat = solve(np.reshape(x, (right.size, math.prod(unknown))), np.ravel(right))
    return np.reshape(flat, unknown)


# ----- norms
def _axes_of_norm(axis: Any, rank: int) -> Axes:
    if isinstance(axis, list):
        raise TypeError(f"'axis' must be None, an integer or a tuple of integers\n  hint: axis={tuple(axis)}")
    return normalize_axes(axis, rank)


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
    value = number_value(x)
    axes = _axes_of_norm(axis, value.rank)
    if ord is None or (len(axes) == 2 and ord == "fro") or (len(axes) == 1 and ord == 2):
        squares = reduce_value(ops.sum, square_of_magnitude(value), axes)
        return finished(root(squares), value, axes, keepdims, None, "norm")
    if len(axes) == 1:
        return finished(_vector_norm(value, ord, axes), value, axes, keepdims, None, "norm")
    if len(axes) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    given = [normalize_axis(one, value.rank) for one in axis] if isinstance(axis, tuple) else list(axes)
    return finished(_matrix_norm(value, ord, given[0], given[1]), value, axes, keepdims, None, "norm")


def _matrix_norm(x: Value, order: Any, rows_axis: int, columns_axis: int) -> Value:
    if order in (2, -2, "nuc"):
        rest = [k for k in range(x.rank) if k not in (rows_axis, columns_axis)]
        values = ops.svdvals(permuted(x, (*rest, rows_axis, columns_axis)))
        last = (values.rank - 1,)
        return _largest(values, last) if order == 2 else reduce_value(ops.sum if order == "nuc" else ops.min, values, last)
    if order not in (1, -1, np.inf, -np.inf):
        raise ValueError(f"Invalid norm order {order!r} for matrices.")
    inner, remaining = (rows_axis, columns_axis) if abs(order) == 1 else (columns_axis, rows_axis)
    sums = reduce_value(ops.sum, magnitude(x), (inner,))
    last = (remaining - (inner < remaining),)
    return _largest(sums, last) if order > 0 else reduce_value(ops.min, sums, last)


def _largest(x: Value, axes: Axes) -> Value:
    """The largest magnitude; 0 if there are no elements."""
    if 0 in [x.shape[axis] for axis in axes]:
        return filled(0.0, x.dtype, tuple([extent for axis, extent in enumerate(x.shape) if axis not in axes]))
    return reduce_value(ops.max, x, axes)


def _vector_norm(x: Value, order: Any, axes: Axes) -> Value:
    if order == 2:
        return root(reduce_value(ops.sum, square_of_magnitude(x), axes))
    x = magnitude(x)
    if order in (np.inf, -np.inf):
        return _largest(x, axes) if order > 0 else reduce_value(ops.min, x, axes)
    if order == 0:
        return reduce_value(ops.sum, cast(truth(x), x.dtype), axes)
    if order == 1:
        return reduce_value(ops.sum, x, axes)
    if isinstance(order, str | Tracer):
        raise (ValueError if isinstance(order, str) else DTypeError)(f"np.linalg.norm: invalid norm order {order!r} for vectors")
    zero = ops.equal(x, constant(0, x))                   # where |x|**p has derivative 0, for p < 1 too
    powers = ops.power(ops.select(zero, constant(1, x), x), constant(order, x))
    total = reduce_value(ops.sum, ops.select(zero, constant(0 if order > 0 else np.inf, x), powers), axes)
    exponent = scalar_of(1.0 / order, x.dtype)
    if order < 0:
        return ops.power(total, constant(exponent, total))
    return flat_at_zero(lambda x: ops.power(x, constant(exponent, x)), total)


@implements(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: Any = False, ord: Any = 2) -> Any:
    value = number_value(x)
    axes = _axes_of_norm(axis, value.rank)
    order = 2 if ord is None else ord
    flat = permuted(value, (*[k for k in range(value.rank) if k not in axes], *axes))
    lead = flat.shape[:flat.rank - len(axes)]
    flat = reshape(flat, (*lead, exact_count([value.shape[k] for k in axes])))
    return finished(_vector_norm(flat, order, (flat.rank - 1,)), value, axes, keepdims, None, "vector_norm")


@implements(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: Any = False, ord: Any = "fro") -> Any:
    return norm(x, ord, (-2, -1), keepdims)


@implements(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Any:
    value = _matrix(x, "cond")
    if 0 in value.shape[-2:]:
        raise np.linalg.LinAlgError("cond is not defined on empty arrays")
    if p in (None, 2, -2):
        values = ops.svdvals(value)
        last = values.rank - 1
        largest, smallest = (reduce_value(op, values, (last,)) for op in (ops.max, ops.min))
        return _infinite_if_nan(fresh(ops.divide(smallest, largest) if p == -2 else ops.divide(largest, smallest)), value)
    square = fresh(float_matrix(fresh(value), "cond"))
    singular: Any = np.linalg.slogdet(square)[0] == 0
    regular: Any = np.where(singular[..., None, None], np.eye(value.shape[-1]), square).astype(square.dtype)
    found: Any = norm(square, p, (-2, -1)) * norm(np.linalg.inv(regular), p, (-2, -1))
    return _infinite_if_nan(np.where(singular, np.inf, found), value)


def _infinite_if_nan(found: Any, matrix: Value) -> Any:
    """A condition number that is nan (0 / 0) is inf, unless the matrix has a nan."""
    unknown = np.isnan(fresh(matrix)).any((-2, -1))
    return fresh(value_as(np.where(np.isnan(found) & ~unknown, np.inf, found)))


@implements(np.linalg.matrix_rank)
def matrix_rank(A: Any, tol: Any = None, hermitian: Any = False, *, rtol: Any = None) -> Any:
    if as_tracer(A).ndim < 2:
        return fresh(cast(reduce_value(ops.any, truth(value_as(A)), normalize_axes(None, as_tracer(A).ndim)), I64))
    x = _matrix(A, "matrix_rank")
    values: Any = svd(fresh(x), compute_uv=False, hermitian=hermitian)
    if tol is None:
        relative: Any = max(x.shape[-2:]) * float(np.finfo(x.dtype.numpy).eps) if rtol is None else as_tracer(rtol)[..., None]
        bound = np.max(values, -1, keepdims=True, initial=0.0) * relative
    else:
        bound = as_tracer(tol)[..., None]
    return np.sum(values > bound, -1)


# ----- products under numpy.linalg's names
@implements(np.linalg.matmul)
def linalg_matmul(x1: Any, x2: Any, /) -> Any:
    return matmul(x1, x2)


@implements(np.linalg.tensordot)
def linalg_tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    return tensordot(x1, x2, axes)


@implements(np.linalg.outer)
def linalg_outer(x1: Any, x2: Any, /) -> Any:
    for x in (as_tracer(x1), as_tracer(x2)):
        if x.ndim != 1:
            raise ShapeError(f"np.linalg.outer: expected arrays with one axis, got shape {x.shape}")
    return outer(x1, x2)


@implements(np.linalg.cross)
def linalg_cross(x1: Any, x2: Any, /, *, axis: Any = -1) -> Any:
    return cross_vectors(x1, x2, axis, axis, axis)


@implements(np.linalg.matrix_power)
def power_of_matrix(a: Any, n: Any) -> Any:
    if n == 1 and isinstance(a, Tracer):
        float_matrix(a, "matrix_power")
        return a                                    # NumPy returns the operand itself, not a copy
    x = float_matrix(a, "matrix_power")
    x = x if n < 0 else value_as(a)
    if n == 0:
        return fresh(broadcast_value(value_as(np.eye(x.shape[-1], dtype=x.dtype.numpy)), x.shape))
    if n < 0:
        x = ops.inv(x)
    return matrix_power(x, abs(n))
