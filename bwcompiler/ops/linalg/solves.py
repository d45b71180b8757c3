"""Factorisations and linear solves of the matrices in the last two axes; leading axes are equal batch axes.

Derivatives: M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation"
(2008).  Transposes are never conjugated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler.errors import DTypeError
from bwcompiler.ir.declaration import TRANSPOSED, OfOp, not_differentiable
from bwcompiler.ir.extent import Extent, add_extents
from bwcompiler.ir.op import Op, Value, define_op
from bwcompiler.ir.routine import InnerLoop, Native
from bwcompiler.ir.types import F16, I64, DType, TensorType
from bwcompiler.ops.broadcasting import LEADING_AXES, all_batched, broadcast
from bwcompiler.ops.creation import full, iota
from bwcompiler.ops.elementwise import cast, equal, full_like, greater_equal, less_equal, select
from bwcompiler.ops.layout import concatenate, reshape, slice_, transpose
from bwcompiler.ops.linalg.contraction import matmul, matrix_transpose
from bwcompiler.ops.rules import require


def require_factorable(name: str, dtype: DType) -> None:
    """Raise DTypeError for matrices that LAPACK does not factor; NumPy does not either."""
    if dtype is F16:
        raise DTypeError(f"array type float16 is unsupported in linalg ({name})\n  hint: convert first, x.astype(np.float32)")
    if not dtype.is_differentiable:
        raise DTypeError(f"{name} does not take {dtype.numpy}")


def _require_square(name: str, a: TensorType) -> None:
    require_factorable(name, a.dtype)
    require(a.rank >= 2 and a.shape[-1] == a.shape[-2], f"{name}: the last two axes of the array must be square", a)


def square_shape(name: str) -> Callable[..., TensorType]:
    def shape(a: TensorType) -> TensorType:
        _require_square(name, a)
        return a
    return shape


def solve_shape(name: str) -> Callable[..., TensorType]:
    def shape(a: TensorType, b: TensorType, **attrs: Any) -> TensorType:
        _require_square(name, a)
        if a.dtype is not b.dtype:
            raise DTypeError(f"{name}: operands must have one dtype, got {a.dtype}, {b.dtype}")
        fits = a.rank == b.rank and a.shape[:-1] == b.shape[:-1]
        require(fits, f"{name}: needs a[..., n, n] and b[..., n, k] with equal leading axes", a, b)
        return b
    return shape


def row_and_column(x: Value) -> tuple[Value, Value]:
    return iota(shape=x.shape, axis=x.rank - 2, dtype=I64), iota(shape=x.shape, axis=x.rank - 1, dtype=I64)


def triangle(x: Value, lower: bool) -> Value:
    """x with zeros above (lower) or below the diagonal."""
    row, column = row_and_column(x)
    kept = greater_equal(row, column) if lower else less_equal(row, column)
    return select(kept, x, full_like(x, 0.0))


def identity_like(x: Value) -> Value:
    """The identity, as often as there are matrices in x."""
    square, rank = x.shape[-2:], x.rank
    row, column = (iota(shape=square, axis=axis, dtype=I64) for axis in (0, 1))
    return broadcast(cast(equal(row, column), dtype=x.dtype), shape=x.shape, axes=(rank - 2, rank - 1))


# ----- solve
def _product(x: Value, y: Value) -> Value:
    """x yᵀ: what the cotangent of a matrix that was multiplied with y is made of."""
    return matmul(x, matrix_transpose(y))


def _difference(b: Value | None, product: Value | None) -> Value:
    if product is None:
        assert b is not None
        return b
    return -product if b is None else b - product


def _over_columns(op: Op) -> Callable[..., Value]:
    """Right-hand sides that alone are mapped over are columns: the matrix stays one, and is factored once."""
    def batch(operands: Sequence[Value], batched: Sequence[bool], size: Extent, **attrs: Any) -> Value:
        a, b = operands
        *lead, n, k = b.shape[bool(batched[1]):]
        if batched[0] or not isinstance(size, int) or not isinstance(k, int):
            return op(*all_batched(operands, batched, size), **attrs)
        rank = b.rank
        columns = transpose(b, axes=(*range(1, rank - 1), 0, rank - 1))                     # lead, n, size, k
        found = op(a, reshape(columns, shape=(*lead, n, size * k)), **attrs)
        found = reshape(found, shape=(*lead, n, size, k))
        return transpose(found, axes=(rank - 2, *range(rank - 2), rank - 1))
    return batch


RIGHT_HAND_SIDES = OfOp(_over_columns)             # the batching rule of solves


def _solve_jvp(tangents: Sequence[Value | None], out: Value, a: Value, b: Value) -> Value | None:
    # a x = b:  da x + a dx = db
    da, db = tangents
    if da is None and db is None:
        return None
    return solve(a, _difference(db, None if da is None else matmul(da, out)))


solve: Op = define_op(
    "solve", "library", core_rank=2,
    doc="x with a x = b, by LU with partial pivoting; LinAlgError if a is singular.", attributes=(),
    shape=solve_shape("solve"), vjp=(lambda ct, out, a, b: -_product(solve(matrix_transpose(a), ct), out),
                                      lambda ct, out, a, b: solve(matrix_transpose(a), ct)),
    jvp=_solve_jvp, batch=RIGHT_HAND_SIDES, reference=lambda a, b: np.linalg.solve(a, b),
    numpy="np.linalg.solve({0}, {1})", kinds="fc", cheap=False,
    library=InnerLoop(("solve",), "{}{}->{}", "(m,m),(m,n)->(m,n)", failure="Singular matrix", lapack="gesv"),
)


# ----- lu: what solve, inv, det and slogdet of one matrix share (bwcompiler.passes.rewriting.legal.factorization_rules)
def _lu_shape(a: TensorType) -> TensorType:
    _require_square("lu", a)
    return a.with_shape((*a.shape[:-2], add_extents(a.shape[-1], 1), a.shape[-1]))


def packed_lu(a: Any) -> Any:
    """L below the diagonal, U on and above it, transposed; then the row that each row was exchanged with, in order."""
    work, n = np.array(a), a.shape[-1]
    pivots = np.empty((*a.shape[:-2], 1, n), a.dtype)
    for k in range(n):
        size = np.abs(work[..., k:, k].real) + np.abs(work[..., k:, k].imag)               # as BLAS measures complex numbers
        row = np.argmax(size, -1)[..., None, None] + k if a.size else np.zeros((*a.shape[:-2], 1, 1), int)
        pivots[..., k:k + 1] = row
        found, kept = np.take_along_axis(work, row, -2), work[..., k:k + 1, :].copy()
        np.put_along_axis(work, row, kept, -2)
        work[..., k:k + 1, :] = found
        pivot = work[..., k:k + 1, k:k + 1]
        work[..., k + 1:, k:k + 1] /= np.where(pivot == 0, 1, pivot)
        work[..., k + 1:, k + 1:] -= work[..., k + 1:, k:k + 1] * work[..., k:k + 1, k + 1:]
    return np.concatenate([np.swapaxes(work, -1, -2), pivots], -2)


AFTER_DIFFERENTIATION = not_differentiable("a part of another function, made after derivatives are")


def lu_factors(packed: Value) -> tuple[Value, Value]:
    """The unit lower triangle L and U (or what a cotangent has in their places: the diagonal of L is then 1 and means nothing)."""
    rank, n = packed.rank, packed.shape[-1]
    factors = matrix_transpose(slice_(packed, starts=(0,) * rank, sizes=(*packed.shape[:-2], n, n), steps=(1,) * rank))
    upper = triangle(factors, False)
    return factors - upper + identity_like(factors), upper


def _packed(strict_lower: Value, upper: Value) -> Value:
    """A tangent or cotangent of packed factors; exchanges of rows have none."""
    factors = matrix_transpose(strict_lower + upper)
    zeros = full(value=0.0, shape=(*factors.shape[:-2], 1, factors.shape[-1]), dtype=factors.dtype)
    return concatenate(factors, zeros, axis=factors.rank - 2)


def _strictly_lower(x: Value) -> Value:
    return x - triangle(x, False)


def _lu_jvp(tangents: Sequence[Value | None], out: Value, a: Value) -> Value | None:
    # With X = L⁻¹ Pᵀ dA U⁻¹ = U A⁻¹ dA U⁻¹: dL = L lower(X), dU = upper(X) U
    if tangents[0] is None:
        return None
    lower, upper = lu_factors(out)
    moved = matmul(upper, solve(a, tangents[0]))
    x = matrix_transpose(triangular_solve(upper, matrix_transpose(moved), lower=False, transpose=True))
    return _packed(matmul(lower, _strictly_lower(x)), matmul(triangle(x, False), upper))


def _lu_vjp(ct: Value, out: Value, a: Value) -> Value:
    # The adjoint: A⁻ᵀ Uᵀ M U⁻ᵀ with M = lower(Lᵀ L̄) + upper(Ū Uᵀ)
    lower, upper = lu_factors(out)
    ct_lower, ct_upper = lu_factors(ct)
    middle = _strictly_lower(matmul(matrix_transpose(lower), _strictly_lower(ct_lower))) + triangle(_product(ct_upper, upper), False)
    divided = matrix_transpose(triangular_solve(upper, matrix_transpose(middle), lower=False, transpose=False))
    return solve(matrix_transpose(a), matmul(matrix_transpose(upper), divided))


lu: Op = define_op(
    "lu", "library", core_rank=2,
    doc="The factors of P L U = a, the unit lower triangle L and U in one matrix, transposed; in the last row the "
    "numbers of the rows that rows 0, 1, ... were exchanged with, one after the other.", attributes=(), shape=_lu_shape,
    vjp=(_lu_vjp,), jvp=_lu_jvp, batch=LEADING_AXES, reference=packed_lu, kinds="fc", cheap=False,
    library=Native("LAPACK getrf"),
)


def _lu_solve_shape(packed: TensorType, b: TensorType, *, transpose: bool) -> TensorType:
    if not packed.dtype.is_differentiable:
        raise DTypeError(f"lu_solve does not take {packed.dtype.numpy}")
    fits = packed.dtype is b.dtype and packed.rank == b.rank and packed.shape[:-2] == b.shape[:-2] and packed.shape[-1] == b.shape[-2]
    require(fits, "lu_solve: needs lu[..., n + 1, n] and b[..., n, k] of one dtype with equal leading axes", packed, b)
    return b


def solve_with_lu(packed: Any, b: Any, *, transpose: bool) -> Any:
    factors, pivots = np.swapaxes(packed[..., :-1, :], -1, -2), np.rint(packed[..., -1:, :].real).astype(int)
    n = factors.shape[-1]
    order = np.broadcast_to(np.arange(n)[:, None], (*packed.shape[:-2], n, 1)).copy()      # P: row k of Pᵀb is row order[k] of b
    for k in range(n):
        row = pivots[..., k:k + 1]
        found, kept = np.take_along_axis(order, row, -2), order[..., k:k + 1, :].copy()
        np.put_along_axis(order, row, kept, -2)
        order[..., k:k + 1, :] = found
    lower = np.tril(factors, -1) + np.eye(n, dtype=packed.dtype)
    if not transpose:
        forward = solve_triangle(lower, np.take_along_axis(b, order, -2), lower=True, transpose=False)
        return solve_triangle(factors, forward, lower=False, transpose=False)
    forward = solve_triangle(factors, b, lower=False, transpose=True)
    found = np.empty_like(b)
    np.put_along_axis(found, order, solve_triangle(lower, forward, lower=True, transpose=True), -2)
    return found


def _lu_solve_vjp_b(ct: Value, out: Value, packed: Value, b: Value, *, transpose: bool) -> Value:
    return lu_solve(packed, ct, transpose=not transpose)


def _lu_solve_vjp_packed(ct: Value, out: Value, packed: Value, b: Value, *, transpose: bool) -> Value:
    # L U x = Pᵀ b: with v = U⁻ᵀ x̄ and w = L⁻ᵀ v, L̄ = -lower(w (U x)ᵀ) and Ū = -upper(v xᵀ)
    lower, upper = lu_factors(packed)
    if not transpose:
        v = triangular_solve(upper, ct, lower=False, transpose=True)
        w = triangular_solve(lower, v, lower=True, transpose=True)
        return -_packed(_strictly_lower(_product(w, matmul(upper, out))), triangle(_product(v, out), False))
    # x = P y, Lᵀ y = z, Uᵀ z = b: with ȳ = Pᵀ x̄ = L U A⁻¹ x̄, q = L⁻¹ ȳ and p = U⁻¹ q, L̄ = -lower(y qᵀ) and Ū = -upper(z pᵀ)
    p = lu_solve(packed, ct, transpose=False)
    z = triangular_solve(upper, b, lower=False, transpose=True)
    y = triangular_solve(lower, z, lower=True, transpose=True)
    return -_packed(_strictly_lower(_product(y, matmul(upper, p))), triangle(_product(z, p), False))


lu_solve: Op = define_op(
    "lu_solve", "library", core_rank=2,
    doc="x with a x = b, or aᵀ x = b, from the factors of a; LinAlgError if a is singular.",
    attributes=("transpose",), shape=_lu_solve_shape, vjp=(_lu_solve_vjp_packed, _lu_solve_vjp_b), jvp=TRANSPOSED,
    batch=RIGHT_HAND_SIDES,
    reference=solve_with_lu, kinds="fc", cheap=False, library=Native("BLAS trsm", failure="Singular matrix"),
)


# ----- triangular_solve
def solve_triangle(a: Any, b: Any, *, lower: bool, transpose: bool) -> Any:
    a = np.tril(a) if lower else np.triu(a)
    if transpose:
        a = np.swapaxes(a, -1, -2)
    if lower == transpose:              # upper: elimination leaves it as it is, so this is back substitution
        return np.linalg.solve(a, b)
    return np.linalg.solve(a[..., ::-1, ::-1], b[..., ::-1, :])[..., ::-1, :]


def _triangular_vjp_b(ct: Value, out: Value, a: Value, b: Value, *, lower: bool, transpose: bool) -> Value:
    return triangular_solve(a, ct, lower=lower, transpose=not transpose)


def _triangular_vjp_a(ct: Value, out: Value, a: Value, b: Value, *, lower: bool, transpose: bool) -> Value:
    solved = triangular_solve(a, ct, lower=lower, transpose=not transpose)
    return -triangle(_product(out, solved) if transpose else _product(solved, out), lower)


def _triangular_jvp(tangents: Sequence[Value | None], out: Value, a: Value, b: Value, *, lower: bool,
                    transpose: bool) -> Value | None:
    da, db = tangents
    if da is None and db is None:
        return None
    moved = None
    if da is not None:
        da = triangle(da, lower)
        moved = matmul(matrix_transpose(da) if transpose else da, out)
    return triangular_solve(a, _difference(db, moved), lower=lower, transpose=transpose)


triangular_solve: Op = define_op(
    "triangular_solve", "library", core_rank=2,
    doc="x with t x = b, where t is the lower (else upper) triangle of a, or its "
    "transpose; LinAlgError if a diagonal element is zero.", attributes=("lower", "transpose"),
    shape=solve_shape("triangular_solve"), vjp=(_triangular_vjp_a, _triangular_vjp_b), jvp=_triangular_jvp,
    batch=RIGHT_HAND_SIDES, reference=solve_triangle, kinds="fc", cheap=False,
    library=Native("BLAS trsm", failure="Singular matrix"),
)


# ----- inv
def _inv_jvp(tangents: Sequence[Value | None], out: Value, a: Value) -> Value | None:
    return None if tangents[0] is None else -matmul(matmul(out, tangents[0]), out)


def _inv_vjp(ct: Value, out: Value, a: Value) -> Value:
    transposed = matrix_transpose(out)
    return -matmul(matmul(transposed, ct), transposed)


inv: Op = define_op(
    "inv", "library", core_rank=2,
    doc="The inverse of a; LinAlgError if a is singular.", attributes=(), shape=square_shape("inv"),
    vjp=(_inv_vjp,), jvp=_inv_jvp, batch=LEADING_AXES, reference=lambda a: np.linalg.inv(a),
    numpy="np.linalg.inv({0})", kinds="fc", cheap=False,
    library=InnerLoop(("inv",), "{}->{}", "(m,m)->(m,m)", failure="Singular matrix", lapack="gesv"),
)
