"""Decompositions of the matrices in the last two axes; leading axes are batch axes.

A decomposition of several factors is one array, the factors stacked as rows, since they share their columns: eigh gives
the eigenvalues over the eigenvectors, svd gives U over the singular values over V, qr gives Q over R.  Of complex matrices all of
it is complex; what is real by its nature (eigenvalues of eigh, singular values) has imaginary parts 0, and of its cotangents
the real parts count.  Rules hold for both: `adjoint`, `conj` and `real_part` do to real values what is left of them there.

Derivatives: M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation"
(2008); J. Townsend, "Differentiating the singular value decomposition" (2016); G. Golub and V. Pereyra, "The
differentiation of pseudo-inverses and nonlinear least squares problems" (1973).  Where eigenvalues or singular values
coincide, vectors have no derivative; their terms are left out, so that the derivatives of the values stay right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler.errors import ShapeError
from bwcompiler.ir.extent import Extent, add_extents
from bwcompiler.ir.op import Op, Value, define_op
from bwcompiler.ir.routine import InnerLoop
from bwcompiler.ir.types import I64, TensorType, component_of
from bwcompiler.ops.broadcasting import LEADING_AXES, broadcast, reduce_sum
from bwcompiler.ops.complex_parts import conj, real_part
from bwcompiler.ops.creation import iota
from bwcompiler.ops.elementwise import cast, equal, full_like, select
from bwcompiler.ops.layout import concatenate, reshape, slice_
from bwcompiler.ops.linalg.contraction import matmul, matrix_transpose
from bwcompiler.ops.linalg.solves import AFTER_DIFFERENTIATION, require_factorable, triangle, triangular_solve
from bwcompiler.ops.rules import require


def _require_matrix(name: str, a: TensorType) -> None:
    require_factorable(name, a.dtype)
    require(a.rank >= 2, f"{name}: needs an array with at least 2 axes", a)


def of_square_matrices(name: str, result: Callable[[TensorType], TensorType]) -> Callable[..., TensorType]:
    """The shape rule of a function of square matrices."""
    def shape(a: TensorType, **attrs: Any) -> TensorType:
        _require_matrix(name, a)
        require(a.shape[-1] == a.shape[-2], f"{name}: the last two axes of the array must be square", a)
        return result(a)
    return shape


# ----- parts of a stack of rows
def rows(x: Value, start: Extent, count: Extent) -> Value:
    """count rows of the matrices, from row start."""
    lead = x.rank - 2
    return slice_(x, starts=(0,) * lead + (start, 0), sizes=(*x.shape[:-2], count, x.shape[-1]), steps=(1,) * x.rank)


def row(x: Value, number: Extent) -> Value:
    """One row, without its axis."""
    return reshape(rows(x, number, 1), shape=(*x.shape[:-2], x.shape[-1]))


def stacked(*parts: Value) -> Value:
    """Matrices over one another."""
    return concatenate(*parts, axis=parts[0].rank - 2)


def as_row(x: Value) -> Value:
    """Vectors as matrices of one row."""
    return reshape(x, shape=(*x.shape[:-1], 1, x.shape[-1]))


def per_column(x: Value, like: Value) -> Value:
    """x[..., j] at [..., i, j] of like's shape."""
    return broadcast(x, shape=like.shape, axes=(*range(like.rank - 2), like.rank - 1))


def per_row(x: Value, like: Value) -> Value:
    """x[..., i] at [..., i, j] of like's shape."""
    return broadcast(x, shape=like.shape, axes=tuple(range(like.rank - 1)))


def times(x: Value, y: Value) -> Value:
    """xᵀ y."""
    return matmul(matrix_transpose(x), y)


def adjoint(x: Value) -> Value:
    """xᴴ: of a real matrix xᵀ."""
    return conj(matrix_transpose(x))


def against(x: Value, y: Value) -> Value:
    """xᴴ y."""
    return matmul(adjoint(x), y)


def on_diagonal(x: Value) -> Value:
    """Which elements of matrices are on the diagonal."""
    row_number, column = (iota(shape=x.shape, axis=x.rank - k, dtype=I64) for k in (2, 1))
    return equal(row_number, column)


def diagonal(x: Value) -> Value:
    """The diagonals of square matrices."""
    kept = select(on_diagonal(x), x, full_like(x, 0.0))
    return reduce_sum(kept, axes=(x.rank - 1,))


def column_products(x: Value, y: Value) -> Value:
    """The diagonals of xᵀ y."""
    return reduce_sum(x * y, axes=(x.rank - 2,))


def with_diagonal(x: Value, added: Value) -> Value:
    """x + diag(added)."""
    return x + select(on_diagonal(x), per_column(added, x), full_like(x, 0.0))


def _inverse_or_zero(x: Value) -> Value:
    """1 / x, 0 where x is 0."""
    zero = equal(x, full_like(x, 0.0))
    return select(zero, full_like(x, 0.0), 1.0 / select(zero, full_like(x, 1.0), x))


def inverse_gaps(values: Value, like: Value) -> Value:
    """F[i, j] = 1 / (values[j] - values[i]), 0 if they coincide."""
    return _inverse_or_zero(per_column(values, like) - per_row(values, like))


# ----- svd
def packed_svd(a: Any) -> Any:
    """U over the singular values over V, of k = min(m, n) columns."""
    left, values, right = np.linalg.svd(a, full_matrices=False)
    return np.concatenate([left, values[..., None, :], np.swapaxes(right, -1, -2)], -2)


def _svd_shape(a: TensorType) -> TensorType:
    _require_matrix("svd", a)
    m, n = a.shape[-2:]
    if not isinstance(m, int) or not isinstance(n, int):
        raise ShapeError("svd: the extents of the matrices must not depend on a loop index")
    return a.with_shape((*a.shape[:-2], m + n + 1, min(m, n)))


def svd_parts(x: Value, m: Extent, n: Extent) -> tuple[Value, Value, Value]:
    """U, s, V of a stack (or their cotangents)."""
    return rows(x, 0, m), row(x, m), rows(x, add_extents(m, 1), n)


def _loop_results(out: Value, m: Extent, n: Extent) -> tuple[Value, Value, Value]:
    u, s, v = svd_parts(out, m, n)
    return u, s, matrix_transpose(v)


def _without(basis: Value, x: Value) -> Value:
    """(I - B Bᴴ) x: what of x is orthogonal to the columns of B."""
    return x - matmul(basis, against(basis, x))


def _svd_vjp(ct: Value, out: Value, a: Value) -> Value:
    # a = U diag(s) Vᵀ, so that of complex numbers V is the conjugate of the right vectors.  P = Uᴴ dA conj(V) has the cotangent inside of
    # the parentheses; their phases are fixed as JAX does: the imaginary part of diag(P) turns the columns of U.
    # Townsend (2016): Ā = (U (F ∘ (UᵀŪ - ŪᵀU)) S + (I - UUᵀ) Ū S⁻¹) Vᵀ + U S̄ Vᵀ + U (S (F ∘ (VᵀV̄ - V̄ᵀV)) Vᵀ + S⁻¹ V̄ᵀ (I - VVᵀ))
    m, n = a.shape[-2:]
    u, s, v = svd_parts(out, m, n)
    ct_u, ct_s, ct_v = svd_parts(ct, m, n)
    of_u, of_v = times(u, ct_u), times(v, ct_v)
    gaps, inverse = inverse_gaps(s * s, of_u), _inverse_or_zero(s)
    left = gaps * (of_u - adjoint(of_u)) * per_column(s, of_u)
    right = gaps * conj(of_v - adjoint(of_v)) * per_row(s, of_v)
    ct_s = real_part(ct_s)
    if a.dtype.is_complex:
        turns = diagonal(of_u)
        ct_s = ct_s + (turns - real_part(turns)) * inverse
    back_u, back_v = conj(u), conj(v)
    found = matmul(matmul(back_u, with_diagonal(left + right, ct_s)), matrix_transpose(back_v))
    if m > n:
        found = found + matmul(_without(back_u, ct_u) * per_column(inverse, ct_u), matrix_transpose(back_v))
    if n > m:
        found = found + matmul(back_u, matrix_transpose(_without(back_v, ct_v) * per_column(inverse, ct_v)))
    return found


def _svd_jvp(tangents: Sequence[Value | None], out: Value, a: Value) -> Value | None:
    # Townsend (2016): ds = diag(P), dU = U (F ∘ (P S + S Pᴴ)) + (I - UUᴴ) dA conj(V) S⁻¹ with P = Uᴴ dA conj(V), dV likewise
    da = tangents[0]
    if da is None:
        return None
    m, n = a.shape[-2:]
    u, s, v = svd_parts(out, m, n)
    moved = matmul(da, conj(v))
    p = against(u, moved)
    columns, along_rows, gaps = per_column(s, p), per_row(s, p), inverse_gaps(s * s, p)
    q, inverse, values = adjoint(p), _inverse_or_zero(s), diagonal(p)
    turned = gaps * (p * columns + along_rows * q)
    if a.dtype.is_complex:
        turned = with_diagonal(turned, (values - real_part(values)) * inverse)
    du = matmul(u, turned)
    dv = matmul(v, gaps * conj(along_rows * p + q * columns))
    if m > n:
        du = du + _without(u, moved) * per_column(inverse, moved)
    if n > m:
        back = times(da, conj(u))
        dv = dv + _without(v, back) * per_column(inverse, back)
    return stacked(du, as_row(real_part(values)), dv)


svd: Op = define_op(
    "svd", "library", core_rank=2,
    doc="U (the first m rows), the singular values (one row, descending) and V (n rows) of the (m, n) matrices "
    "a = U diag(s) Vᵀ, with min(m, n) columns.", attributes=(), shape=_svd_shape, vjp=(_svd_vjp,), jvp=_svd_jvp,
    batch=LEADING_AXES, reference=packed_svd, kinds="fc", cheap=False,
    library=InnerLoop(("svd_s",), "{}->{}{r}{}", "(m,n)->(m,p),(p),(p,n)", cleared=True,
                      results=lambda out, a: _loop_results(out, *a.shape[-2:]), failure="SVD did not converge", lapack="gesdd"),
)


def _svdvals_shape(a: TensorType) -> TensorType:
    packed = _svd_shape(a)
    return a.with_shape((*a.shape[:-2], packed.shape[-1])).with_dtype(component_of(a.dtype))


def _svdvals_vjp(ct: Value, out: Value, a: Value) -> Value:
    u, _, v = svd_parts(svd(a), *a.shape[-2:])
    return matmul(conj(u) * per_column(cast(ct, dtype=a.dtype), u), adjoint(v))


def _svdvals_jvp(tangents: Sequence[Value | None], out: Value, a: Value) -> Value | None:
    if tangents[0] is None:
        return None
    u, _, v = svd_parts(svd(a), *a.shape[-2:])
    return cast(column_products(conj(u), matmul(tangents[0], conj(v))), dtype=out.dtype)


svdvals: Op = define_op(
    "svdvals", "library", core_rank=2,
    doc="The singular values, descending.", attributes=(), shape=_svdvals_shape, vjp=(_svdvals_vjp,),
    jvp=_svdvals_jvp, batch=LEADING_AXES, reference=lambda a: np.linalg.svd(a, compute_uv=False), kinds="fc", cheap=False,
    numpy="np.linalg.svd({0}, compute_uv=False)",
    library=InnerLoop(("svd",), "{}->{r}", "(m,n)->(p)", failure="SVD did not converge", lapack="gesdd"),
)


# ----- qr
def packed_qr(a: Any) -> Any:
    """Q over R."""
    return np.concatenate(np.linalg.qr(a), -2)


def _qr_shape(a: TensorType) -> TensorType:
    _require_matrix("qr", a)
    m, n = a.shape[-2:]
    require(isinstance(m, int) and isinstance(n, int) and m >= n, "qr: needs matrices with at least as many rows as columns", a)
    return a.with_shape((*a.shape[:-2], add_extents(m, n), n))


def _qr_parts(x: Value, a: Value) -> tuple[Value, Value]:
    m, n = a.shape[-2:]
    return rows(x, 0, m), rows(x, m, n)


def _strictly_lower(x: Value) -> Value:
    return x - triangle(x, False)


def _right_divided(x: Value, r: Value, transpose: bool) -> Value:
    """x R⁻¹, or x R⁻ᵀ, for an upper triangle R."""
    return matrix_transpose(triangular_solve(r, matrix_transpose(x), lower=False, transpose=not transpose))


def _qr_vjp(ct: Value, out: Value, a: Value) -> Value:
    # Ā = (Q̄ + conj(Q) sym(M)) R⁻ᵀ with M = R R̄ᵀ - Q̄ᵀ Q, where sym copies the lower triangle to the upper one, conjugated itself
    q, r = _qr_parts(out, a)
    ct_q, ct_r = _qr_parts(ct, a)
    middle = triangle(matmul(r, matrix_transpose(triangle(ct_r, False))) - times(ct_q, q), True)
    lower = _strictly_lower(middle)
    middle = real_part(middle - lower) + conj(lower) + matrix_transpose(lower)
    return _right_divided(ct_q + matmul(conj(q), middle), r, True)


def _qr_jvp(tangents: Sequence[Value | None], out: Value, a: Value) -> Value | None:
    # With X = dA R⁻¹ and C = QᴴX: Ω = lower(C) - lower(C)ᴴ + i Im(diag(C)),  dQ = X - Q (C - Ω),  dR = (C - Ω) R; diag(R) is real
    if tangents[0] is None:
        return None
    q, r = _qr_parts(out, a)
    x = _right_divided(tangents[0], r, False)
    c = against(q, x)
    lower = _strictly_lower(c)
    upper = c - lower + adjoint(lower)
    if a.dtype.is_complex:
        upper = select(on_diagonal(upper), real_part(upper), upper)
    return stacked(x - matmul(q, upper), matmul(upper, r))


qr: Op = define_op(
    "qr", "library", core_rank=2,
    doc="Q (the first m rows) and the upper triangle R (n rows) of the (m, n) matrices a = Q R, m >= n.",
    attributes=(), shape=_qr_shape, vjp=(_qr_vjp,), jvp=_qr_jvp, batch=LEADING_AXES, reference=packed_qr, kinds="fc", cheap=False,
)


def packed_householder(a: Any) -> Any:
    """NumPy's "raw" qr, not transposed, over the factors of the reflections."""
    h, tau = np.linalg.qr(a, "raw")
    return np.concatenate([np.swapaxes(h, -1, -2), tau[..., None, :]], -2)


def _householder_shape(a: TensorType) -> TensorType:
    return a.with_shape((*_qr_shape(a).shape[:-2], add_extents(a.shape[-2], 1), a.shape[-1]))


householder: Op = define_op(
    "householder", "library", core_rank=2,
    doc="R in the upper triangle, below it the vectors v of the reflections I - t v vᴴ whose product is Q, and "
    "in the last row their t; of (m, n) matrices a = Q R, m >= n.", attributes=(), shape=_householder_shape,
    vjp=AFTER_DIFFERENTIATION, batch=LEADING_AXES, reference=packed_householder, kinds="fc", cheap=False,
    library=InnerLoop(("qr_r_raw",), "{}->{}", "(m,n)->(p)", results=lambda out, a: (rows(out, 0, a.shape[-2]), row(out, a.shape[-2])),
                      overwrites=True, failure="Incorrect argument found while performing QR factorization", lapack="geqrf"),
)


def orthonormal_columns(packed: Any) -> Any:
    m, n = packed.shape[-2] - 1, packed.shape[-1]
    q = np.broadcast_to(np.eye(m, n, dtype=packed.dtype), (*packed.shape[:-2], m, n)).copy()
    for k in reversed(range(n)):
        v = packed[..., :m, k:k + 1].copy()
        v[..., :k, :], v[..., k, :] = 0, 1
        q -= packed[..., m:, k:k + 1] * v * np.matmul(np.conj(np.swapaxes(v, -1, -2)), q)
    return q


def _orthonormal_shape(packed: TensorType) -> TensorType:
    _require_matrix("orthonormal", packed)
    return packed.with_shape((*packed.shape[:-2], add_extents(packed.shape[-2], -1), packed.shape[-1]))


orthonormal: Op = define_op(
    "orthonormal", "library", core_rank=2,
    doc="The first n columns of Q, from the (m + 1, n) matrices that `householder` gives.", attributes=(),
    shape=_orthonormal_shape, vjp=AFTER_DIFFERENTIATION, batch=LEADING_AXES,
    reference=orthonormal_columns, kinds="fc", cheap=False,
    library=InnerLoop(("qr_reduced",), "{}{}->{}", "(m,n),(k)->(m,k)",
                      operands=lambda out, packed: (rows(packed, 0, out.shape[-2]), row(packed, out.shape[-2])),
                      failure="Incorrect argument found while performing QR factorization", lapack="orgqr"),
)


# ----- pinv
def _pinv_shape(a: TensorType, *, rcond: float | None) -> TensorType:
    _require_matrix("pinv", a)
    return a.with_shape((*a.shape[:-2], a.shape[-1], a.shape[-2]))


def _pinv_vjp(ct: Value, out: Value, a: Value, *, rcond: float | None) -> Value:
    # The adjoint of `_pinv_jvp`: -Pᵀ P̄ Pᵀ + conj((I - A P) P̄ᵀ P Pᴴ + Pᴴ P P̄ᵀ (I - P A))
    flipped, back, turned = matrix_transpose(ct), adjoint(out), matrix_transpose(out)
    first = matmul(matmul(turned, ct), turned)
    second = matmul(matmul(flipped, out), back)
    third = matmul(matmul(back, out), flipped)
    return conj(second - matmul(a, matmul(out, second)) + third - matmul(matmul(third, out), a)) - first


def _pinv_jvp(tangents: Sequence[Value | None], out: Value, a: Value, *, rcond: float | None) -> Value | None:
    # Golub and Pereyra (1973), constant rank: dP = -P dA P + P Pᴴ dAᴴ (I - A P) + (I - P A) dAᴴ Pᴴ P
    da = tangents[0]
    if da is None:
        return None
    flipped, back = adjoint(da), adjoint(out)
    second = matmul(matmul(out, back), flipped)
    third = matmul(flipped, matmul(back, out))
    return second - matmul(matmul(second, a), out) + third - matmul(out, matmul(a, third)) - matmul(matmul(out, da), out)


pinv: Op = define_op(
    "pinv", "library", core_rank=2,
    doc="The Moore-Penrose inverse, by singular values above rcond times the largest; the derivative is that at "
    "constant rank.", attributes=("rcond",), shape=_pinv_shape, vjp=(_pinv_vjp,), jvp=_pinv_jvp,
    batch=LEADING_AXES, reference=np.linalg.pinv, kinds="fc", cheap=False,
)
