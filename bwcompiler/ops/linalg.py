"""Factorisations and linear solves of the matrices in the last two axes; leading axes are equal batch axes.

Derivatives: M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation"
(2008); I. Murray, "Differentiation of the Cholesky decomposition" (2016).  Transposes are never conjugated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler.errors import DTypeError, GradientError
from bwcompiler.ir.op import Op, Value, define_op
from bwcompiler.ir.types import I64, TensorType
from bwcompiler.ops.broadcasting import LEADING_AXES
from bwcompiler.ops.contraction import matmul, matrix_transpose
from bwcompiler.ops.creation import iota
from bwcompiler.ops.elementwise import equal, full_like, greater_equal, less_equal, select
from bwcompiler.ops.rules import require


def _require_square(name: str, a: TensorType) -> None:
    if a.dtype.kind not in "fc":
        raise DTypeError(f"{name} does not take {a.dtype.numpy}")
    require(a.rank >= 2 and a.shape[-1] == a.shape[-2], f"{name}: the last two axes of the array must be square", a)


def _square_shape(name: str) -> Callable[..., TensorType]:
    def shape(a: TensorType) -> TensorType:
        _require_square(name, a)
        return a
    return shape


def _solve_shape(name: str) -> Callable[..., TensorType]:
    def shape(a: TensorType, b: TensorType, **attrs: Any) -> TensorType:
        _require_square(name, a)
        if a.dtype is not b.dtype:
            raise DTypeError(f"{name}: operands must have one dtype, got {a.dtype}, {b.dtype}")
        fits = a.rank == b.rank and a.shape[:-1] == b.shape[:-1]
        require(fits, f"{name}: needs a[..., n, n] and b[..., n, k] with equal leading axes", a, b)
        return b
    return shape


def _row_and_column(x: Value) -> tuple[Value, Value]:
    return iota(shape=x.shape, axis=x.rank - 2, dtype=I64), iota(shape=x.shape, axis=x.rank - 1, dtype=I64)


def triangle(x: Value, lower: bool) -> Value:
    """x with zeros above (lower) or below the diagonal."""
    row, column = _row_and_column(x)
    kept = greater_equal(row, column) if lower else less_equal(row, column)
    return select(kept, x, full_like(x, 0.0))


def _half_lower(x: Value) -> Value:
    """Murray's Φ: the lower triangle with the diagonal halved."""
    row, column = _row_and_column(x)
    return select(equal(row, column), x * 0.5, triangle(x, True))


def _symmetrized(x: Value) -> Value:
    """(x + xᵀ) / 2."""
    return (x + matrix_transpose(x)) * 0.5


# ----- solve
def _product(x: Value, y: Value) -> Value:
    """x yᵀ: what the cotangent of a matrix that was multiplied with y is made of."""
    return matmul(x, matrix_transpose(y))


def _difference(b: Value | None, product: Value | None) -> Value:
    if product is None:
        assert b is not None
        return b
    return -product if b is None else b - product


def _solve_jvp(tangents: Sequence[Value | None], out: Value, a: Value, b: Value) -> Value | None:
    # a x = b:  da x + a dx = db
    da, db = tangents
    if da is None and db is None:
        return None
    return solve(a, _difference(db, None if da is None else matmul(da, out)))


solve: Op = define_op(
    "solve", "library", doc="x with a x = b, by LU with partial pivoting; LinAlgError if a is singular.", attributes=(),
    shape=_solve_shape("solve"), vjp=(lambda ct, out, a, b: -_product(solve(matrix_transpose(a), ct), out),
                                      lambda ct, out, a, b: solve(matrix_transpose(a), ct)),
    jvp=_solve_jvp, batch=LEADING_AXES, reference=lambda a, b: np.linalg.solve(a, b),
    numpy="np.linalg.solve({0}, {1})", kinds="fc", cheap=False,
)


# ----- triangular_solve
def _triangular_reference(a: Any, b: Any, *, lower: bool, transpose: bool) -> Any:
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
    "triangular_solve", "library", doc="x with t x = b, where t is the lower (else upper) triangle of a, or its "
    "transpose; LinAlgError if a diagonal element is zero.", attributes=("lower", "transpose"),
    shape=_solve_shape("triangular_solve"), vjp=(_triangular_vjp_a, _triangular_vjp_b), jvp=_triangular_jvp,
    batch=LEADING_AXES, reference=_triangular_reference, kinds="fc", cheap=False,
)


# ----- inv
def _inv_jvp(tangents: Sequence[Value | None], out: Value, a: Value) -> Value | None:
    return None if tangents[0] is None else -matmul(matmul(out, tangents[0]), out)


def _inv_vjp(ct: Value, out: Value, a: Value) -> Value:
    transposed = matrix_transpose(out)
    return -matmul(matmul(transposed, ct), transposed)


inv: Op = define_op(
    "inv", "library", doc="The inverse of a; LinAlgError if a is singular.", attributes=(), shape=_square_shape("inv"),
    vjp=(_inv_vjp,), jvp=_inv_jvp, batch=LEADING_AXES, reference=lambda a: np.linalg.inv(a),
    numpy="np.linalg.inv({0})", kinds="fc", cheap=False,
)


# ----- cholesky
def _require_real(a: Value) -> None:
    if a.dtype.is_complex:
        raise GradientError("cholesky: the factor of a complex matrix is not a holomorphic function of it")


def _cholesky_vjp(ct: Value, out: Value, a: Value) -> Value:
    # Murray (2016), eq. 10: Σ̄ = ½ L⁻ᵀ (P + Pᵀ) L⁻¹ with P = Φ(Lᵀ L̄), the cotangent of a symmetric matrix.
    _require_real(a)
    middle = _symmetrized(_half_lower(matmul(matrix_transpose(out), ct)))
    left = triangular_solve(out, middle, lower=True, transpose=True)                    # L⁻ᵀ M
    return triangular_solve(out, matrix_transpose(left), lower=True, transpose=True)    # L⁻ᵀ (L⁻ᵀ M)ᵀ, M symmetric


def _cholesky_jvp(tangents: Sequence[Value | None], out: Value, a: Value) -> Value | None:
    # Murray (2016), eq. 8: dL = L Φ(L⁻¹ dΣ L⁻ᵀ)
    if tangents[0] is None:
        return None
    _require_real(a)
    left = triangular_solve(out, _symmetrized(tangents[0]), lower=True, transpose=False)
    both = triangular_solve(out, matrix_transpose(left), lower=True, transpose=False)
    return matmul(out, _half_lower(both))


cholesky: Op = define_op(
    "cholesky", "library", doc="The lower factor L with a = L Lᴴ of a positive definite matrix, of which only the "
    "lower triangle is read; the cotangent is symmetric.  LinAlgError if a is not positive definite.", attributes=(),
    shape=_square_shape("cholesky"), vjp=(_cholesky_vjp,), jvp=_cholesky_jvp, batch=LEADING_AXES,
    reference=lambda a: np.linalg.cholesky(a), numpy="np.linalg.cholesky({0})", kinds="fc", cheap=False,
)
