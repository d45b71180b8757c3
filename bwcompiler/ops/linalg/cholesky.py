"""The Cholesky factorisation of the matrices in the last two axes, its tangent and its adjoint.

Both derivatives follow from what defines the factor, a = L Lᵀ.  With G(L, X) = L Xᵀ + X Lᵀ,

    cholesky_tangent(L, da)    the lower triangle dL with G(L, dL) = da
    cholesky_adjoint(L, L̄)     the symmetric S with <S, da> = <L̄, dL>, that is, tril(2 S L) = tril(L̄)

of which each is the transpose of the other, so that either is the derivative of both: G is linear in L, and differentiating the two
equations again gives equations of the same kind with other right-hand sides.  Source: I. Murray, "Differentiation of the Cholesky
decomposition" (2016); those of complex matrices are its formulas with triangular solves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler.ir.declaration import not_differentiable
from bwcompiler.ir.op import Op, Value, define_op
from bwcompiler.ir.routine import InnerLoop, Native
from bwcompiler.ops.broadcasting import LEADING_AXES
from bwcompiler.ops.complex_parts import conj
from bwcompiler.ops.elementwise import equal, select
from bwcompiler.ops.linalg.contraction import matmul, matrix_transpose
from bwcompiler.ops.linalg.solves import row_and_column, solve_shape, solve_triangle, square_shape, triangle, triangular_solve


def _half_lower(x: Value) -> Value:
    """Murray's Φ: the lower triangle with the diagonal halved."""
    row, column = row_and_column(x)
    return select(equal(row, column), x * 0.5, triangle(x, True))


def _hermitian_part(x: Value) -> Value:
    """(x + xᴴ) / 2: what a Hermitian matrix sees of a change."""
    return (x + conj(matrix_transpose(x))) * 0.5


def _cholesky_vjp(ct: Value, out: Value, a: Value) -> Value:
    if not out.dtype.is_complex:
        return cholesky_adjoint(out, ct)
    # With dL = L Φ(L⁻¹ dA L⁻ᴴ): L⁻ᵀ Φ(Lᵀ L̄) conj(L)⁻¹, of which a Hermitian change sees the Hermitian part
    middle = _half_lower(matmul(matrix_transpose(out), triangle(ct, True)))
    left = triangular_solve(out, middle, lower=True, transpose=True)
    both = triangular_solve(conj(out), matrix_transpose(left), lower=True, transpose=True)
    return _hermitian_part(matrix_transpose(both))


def _cholesky_jvp(tangents: Sequence[Value | None], out: Value, a: Value) -> Value | None:
    if tangents[0] is None:
        return None
    change = _hermitian_part(tangents[0])
    if not out.dtype.is_complex:
        return cholesky_tangent(out, change)
    left = triangular_solve(out, change, lower=True, transpose=False)                # Murray, eq. 8: dL = L Φ(L⁻¹ dA L⁻ᴴ)
    both = triangular_solve(out, conj(matrix_transpose(left)), lower=True, transpose=False)
    return matmul(out, _half_lower(both))


cholesky: Op = define_op(
    "cholesky", "library", core_rank=2,
    doc="The lower factor L with a = L Lᴴ of a positive definite matrix, of which only the "
    "lower triangle is read; the cotangent is symmetric (Hermitian).  LinAlgError if a is not positive definite.", attributes=(),
    shape=square_shape("cholesky"), vjp=(_cholesky_vjp,), jvp=_cholesky_jvp, batch=LEADING_AXES,
    reference=lambda a: np.linalg.cholesky(a), numpy="np.linalg.cholesky({0})", kinds="fc", cheap=False,
    library=InnerLoop(("cholesky_lo",), "{}->{}", "(m,m)->(m,m)", failure="Matrix is not positive definite", lapack="potrf"),
)


# ----- whether there is a factor
def factor_or_nan(a: Any) -> Any:
    found = np.empty_like(a)
    for index in np.ndindex(a.shape[:-2]):
        try:
            found[index] = np.linalg.cholesky(a[index])
        except np.linalg.LinAlgError:
            found[index] = np.nan
    return found


cholesky_or_nan: Op = define_op(
    "cholesky_or_nan", "library", core_rank=2,
    doc="The factor that cholesky gives; nan in all places, the upper triangle included, where a is not positive definite.",
    attributes=(), shape=square_shape("cholesky_or_nan"), vjp=not_differentiable("asked whether there is a factor"),
    batch=LEADING_AXES,
    reference=factor_or_nan, kinds="fc", cheap=False,
    library=InnerLoop(("cholesky_lo",), "{}->{}", "(m,m)->(m,m)", lapack="potrf"),
)


# ----- the tangent and the adjoint
def half_lower_of(x: Any) -> Any:
    return np.tril(x) - 0.5 * x * np.eye(x.shape[-1], dtype=x.dtype)


def symmetric_of(lower: Any) -> Any:
    """The symmetric matrix of which the lower triangle is given."""
    return np.tril(lower) + np.swapaxes(np.tril(lower, -1), -1, -2)


def tangent_of_cholesky(factor: Any, change: Any) -> Any:
    # Murray (2016), eq. 8
    left = solve_triangle(factor, symmetric_of(change), lower=True, transpose=False)
    both = solve_triangle(factor, np.swapaxes(left, -1, -2), lower=True, transpose=False)
    return np.matmul(np.tril(factor), half_lower_of(both))


def adjoint_of_cholesky(factor: Any, ct: Any) -> Any:
    # Murray (2016), eq. 10: Σ̄ = ½ L⁻ᵀ (P + Pᵀ) L⁻¹ with P = Φ(Lᵀ L̄)
    middle = half_lower_of(np.matmul(np.swapaxes(np.tril(factor), -1, -2), np.tril(ct)))
    middle = (middle + np.swapaxes(middle, -1, -2)) / 2
    left = solve_triangle(factor, middle, lower=True, transpose=True)
    return solve_triangle(factor, np.swapaxes(left, -1, -2), lower=True, transpose=True)


def _of_factor(symmetric: Value, tangent: Value) -> Value:
    """The cotangent of L from S and T = dL: G(L, T) = da, so that <S, G(dL, T)> = 2 <S T, dL>."""
    return triangle(-2.0 * matmul(symmetric, tangent), True)


def _tangent_jvp(tangents: Sequence[Value | None], out: Value, factor: Value, change: Value) -> Value | None:
    # G(L, dT) = dda - G(dL, T)
    of_factor, of_change = tangents
    found = of_change
    if of_factor is not None:
        product = matmul(out, matrix_transpose(triangle(of_factor, True)))
        product = product + matrix_transpose(product)
        found = -product if of_change is None else of_change - product
    return None if found is None else cholesky_tangent(factor, found)


def _adjoint_jvp(tangents: Sequence[Value | None], out: Value, factor: Value, ct: Value) -> Value | None:
    # tril(2 dS L) = tril(dL̄ - 2 S dL)
    of_factor, of_ct = tangents
    found = of_ct
    if of_factor is not None:
        product = 2.0 * matmul(out, triangle(of_factor, True))
        found = -product if of_ct is None else of_ct - product
    return None if found is None else cholesky_adjoint(factor, found)


cholesky_tangent: Op = define_op(
    "cholesky_tangent", "library", core_rank=2,
    doc="The tangent of the factor L of a = L Lᵀ from L and the tangent of a, which is symmetric; both are "
    "read in the lower triangle.", attributes=(), shape=solve_shape("cholesky_tangent"),
    vjp=(lambda ct, out, factor, change: _of_factor(cholesky_adjoint(factor, ct), out),
         lambda ct, out, factor, change: cholesky_adjoint(factor, ct)),
    jvp=_tangent_jvp, batch=LEADING_AXES, reference=tangent_of_cholesky, kinds="fc", cheap=False,
    library=Native("BLAS gemm and trsm, block by block"),
)
cholesky_adjoint: Op = define_op(
    "cholesky_adjoint", "library", core_rank=2,
    doc="The symmetric cotangent of a from the factor L of a = L Lᵀ and the cotangent of L, both of which "
    "are read in the lower triangle.", attributes=(), shape=solve_shape("cholesky_adjoint"),
    vjp=(lambda ct, out, factor, given: _of_factor(out, cholesky_tangent(factor, _hermitian_part(ct))),
         lambda ct, out, factor, given: cholesky_tangent(factor, _hermitian_part(ct))),
    jvp=_adjoint_jvp, batch=LEADING_AXES,
    reference=adjoint_of_cholesky, kinds="fc", cheap=False, library=Native("BLAS gemm and trsm, block by block"),
)
