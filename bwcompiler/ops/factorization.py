"""Decompositions and determinants of the matrices in the last two axes; leading axes are batch axes.

A decomposition of several factors is one array, the factors stacked as rows, since they share their columns: eigh gives
the eigenvalues over the eigenvectors, svd gives U over the singular values over V, qr gives Q over R.

Derivatives: M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation"
(2008); J. Townsend, "Differentiating the singular value decomposition" (2016); G. Golub and V. Pereyra, "The
differentiation of pseudo-inverses and nonlinear least squares problems" (1973).  Where eigenvalues or singular values
coincide, vectors have no derivative; their terms are left out, so that the derivatives of the values stay right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler.errors import DTypeError, ShapeError
from bwcompiler.ir.extent import Extent, add_extents
from bwcompiler.ir.op import LINEAR, REGISTRY, Op, Value, define_op
from bwcompiler.ir.routine import InnerLoop
from bwcompiler.ir.types import I64, TensorType
from bwcompiler.ops.contraction import matmul, matrix_transpose
from bwcompiler.ops.creation import iota
from bwcompiler.ops.elementwise import equal, full_like, select
from bwcompiler.ops.layout import broadcast, reshape, slice_
from bwcompiler.ops.linalg import AFTER_DIFFERENTIATION, inv, triangle, triangular_solve
from bwcompiler.ops.rules import batch_elementwise, require


def _require_real(name: str, a: TensorType) -> None:
    if a.dtype.kind != "f":
        raise DTypeError(f"{name} does not take {a.dtype.numpy}")
    require(a.rank >= 2, f"{name}: needs an array with at least 2 axes", a)


def _square(name: str, result: Callable[[TensorType], TensorType]) -> Callable[..., TensorType]:
    def shape(a: TensorType, **attrs: Any) -> TensorType:
        _require_real(name, a)
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


def _stacked(*parts: Value) -> Value:
    return REGISTRY["concatenate"](*parts, axis=parts[0].rank - 2)


def _as_row(x: Value) -> Value:
    return reshape(x, shape=(*x.shape[:-1], 1, x.shape[-1]))


def _per_column(x: Value, like: Value) -> Value:
    """x[..., j] at [..., i, j] of like's shape."""
    return broadcast(x, shape=like.shape, axes=(*range(like.rank - 2), like.rank - 1))


def _per_row(x: Value, like: Value) -> Value:
    """x[..., i] at [..., i, j] of like's shape."""
    return broadcast(x, shape=like.shape, axes=tuple(range(like.rank - 1)))


def _times(x: Value, y: Value) -> Value:
    """xᵀ y."""
    return matmul(matrix_transpose(x), y)


def _on_diagonal(x: Value) -> Value:
    row_number, column = (iota(shape=x.shape, axis=x.rank - k, dtype=I64) for k in (2, 1))
    return equal(row_number, column)


def _diagonal(x: Value) -> Value:
    """The diagonals of square matrices."""
    kept = select(_on_diagonal(x), x, full_like(x, 0.0))
    return REGISTRY["sum"](kept, axes=(x.rank - 1,))


def _column_products(x: Value, y: Value) -> Value:
    """The diagonals of xᵀ y."""
    return REGISTRY["sum"](x * y, axes=(x.rank - 2,))


def _with_diagonal(x: Value, diagonal: Value) -> Value:
    return x + select(_on_diagonal(x), _per_column(diagonal, x), full_like(x, 0.0))


def _inverse_or_zero(x: Value) -> Value:
    """1 / x, 0 where x is 0."""
    zero = equal(x, full_like(x, 0.0))
    return select(zero, full_like(x, 0.0), 1.0 / select(zero, full_like(x, 1.0), x))


def _inverse_gaps(values: Value, like: Value) -> Value:
    """F[i, j] = 1 / (values[j] - values[i]), 0 where they coincide."""
    return _inverse_or_zero(_per_column(values, like) - _per_row(values, like))


# ----- eigh
def packed_eigh(a: Any, *, lower: bool) -> Any:
    """Eigenvalues over eigenvectors, of the lower or upper triangle."""
    values, vectors = np.linalg.eigh(a, "L" if lower else "U")
    return np.concatenate([values[..., None, :], vectors], -2)


def _mirrored(x: Value, lower: bool) -> Value:
    """The symmetric matrix that has this triangle."""
    kept = triangle(x, lower)
    return kept + matrix_transpose(kept) - select(_on_diagonal(x), x, full_like(x, 0.0))


def _eigh_vjp(ct: Value, out: Value, a: Value, *, lower: bool) -> Value:
    # The cotangent of the symmetric matrix is G = V (diag(w̄) + F ∘ VᵀV̄) Vᵀ; an element of the triangle stands for two of it.
    n = a.shape[-1]
    vectors = rows(out, 1, n)
    inner = _times(vectors, rows(ct, 1, n))
    inner = _with_diagonal(_inverse_gaps(row(out, 0), inner) * inner, row(ct, 0))
    found = matmul(matmul(vectors, inner), matrix_transpose(vectors))
    both = found + matrix_transpose(found)
    return triangle(select(_on_diagonal(found), found, both), lower)


def _eigh_jvp(tangents: Sequence[Value | None], out: Value, a: Value, *, lower: bool) -> Value | None:
    # dw = diag(Vᵀ dA V),  dV = V (F ∘ Vᵀ dA V)
    if tangents[0] is None:
        return None
    vectors = rows(out, 1, a.shape[-1])
    inner = matmul(_times(vectors, _mirrored(tangents[0], lower)), vectors)
    return _stacked(_as_row(_diagonal(inner)), matmul(vectors, _inverse_gaps(row(out, 0), inner) * inner))


eigh: Op = define_op(
    "eigh", "library", doc="Eigenvalues (row 0, ascending) and eigenvectors (the other rows, one per column) of the symmetric "
    "matrix of which a is read in one triangle; its cotangent is 0 in the other one.", attributes=("lower",),
    shape=_square("eigh", lambda a: a.with_shape((*a.shape[:-2], add_extents(a.shape[-1], 1), a.shape[-1]))),
    vjp=(_eigh_vjp,), jvp=_eigh_jvp, batch=batch_elementwise("eigh"), reference=packed_eigh, cheap=False,
    library=InnerLoop(("eigh_lo", "eigh_up"), "{}->{}{}", "(m,m)->(m),(m,m)",
                      results=lambda out, a, lower: (row(out, 0), rows(out, 1, a.shape[-1])),
                      failure="Eigenvalues did not converge", lapack="syevd",
                      choose=lambda lower: "eigh_lo" if lower else "eigh_up"),
)


def _eigvalsh_vjp(ct: Value, out: Value, a: Value, *, lower: bool) -> Value:
    # V diag(w̄) Vᵀ; an element of the triangle stands for two of it
    vectors = rows(eigh(a, lower=lower), 1, a.shape[-1])
    found = matmul(vectors * _per_column(ct, vectors), matrix_transpose(vectors))
    return triangle(select(_on_diagonal(found), found, found * 2.0), lower)


def _eigvalsh_jvp(tangents: Sequence[Value | None], out: Value, a: Value, *, lower: bool) -> Value | None:
    if tangents[0] is None:
        return None
    vectors = rows(eigh(a, lower=lower), 1, a.shape[-1])
    return _column_products(vectors, matmul(_mirrored(tangents[0], lower), vectors))


eigvalsh: Op = define_op(
    "eigvalsh", "library", doc="The eigenvalues, ascending, of the symmetric matrix of which a is read in one triangle; its cotangent is "
    "0 in the other one.", attributes=("lower",), shape=_square("eigvalsh", lambda a: a.with_shape(a.shape[:-1])),
    vjp=(_eigvalsh_vjp,), jvp=_eigvalsh_jvp, batch=batch_elementwise("eigvalsh"),
    reference=lambda a, *, lower: np.linalg.eigvalsh(a, "L" if lower else "U"), cheap=False,
    library=InnerLoop(("eigvalsh_lo", "eigvalsh_up"), "{}->{}", "(m,m)->(m)",
                      failure="Eigenvalues did not converge", lapack="syevd",
                      choose=lambda lower: "eigvalsh_lo" if lower else "eigvalsh_up"),
)


# ----- svd
def packed_svd(a: Any) -> Any:
    """U over the singular values over V, of k = min(m, n) columns."""
    left, values, right = np.linalg.svd(a, full_matrices=False)
    return np.concatenate([left, values[..., None, :], np.swapaxes(right, -1, -2)], -2)


def _svd_shape(a: TensorType) -> TensorType:
    _require_real("svd", a)
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
    """(I - B Bᵀ) x: what of x is orthogonal to the columns of B."""
    return x - matmul(basis, _times(basis, x))


def _svd_vjp(ct: Value, out: Value, a: Value) -> Value:
    # Townsend (2016): Ā = (U (F ∘ (UᵀŪ - ŪᵀU)) S + (I - UUᵀ) Ū S⁻¹) Vᵀ + U S̄ Vᵀ + U (S (F ∘ (VᵀV̄ - V̄ᵀV)) Vᵀ + S⁻¹ V̄ᵀ (I - VVᵀ))
    m, n = a.shape[-2:]
    u, s, v = svd_parts(out, m, n)
    ct_u, ct_s, ct_v = svd_parts(ct, m, n)
    of_u, of_v = _times(u, ct_u), _times(v, ct_v)
    gaps = _inverse_gaps(s * s, of_u)
    left = gaps * (of_u - matrix_transpose(of_u)) * _per_column(s, of_u)
    right = gaps * (of_v - matrix_transpose(of_v)) * _per_row(s, of_v)
    found = matmul(matmul(u, _with_diagonal(left + right, ct_s)), matrix_transpose(v))
    inverse = _inverse_or_zero(s)
    if m > n:
        found = found + matmul(_without(u, ct_u) * _per_column(inverse, ct_u), matrix_transpose(v))
    if n > m:
        found = found + matmul(u, matrix_transpose(_without(v, ct_v) * _per_column(inverse, ct_v)))
    return found


def _svd_jvp(tangents: Sequence[Value | None], out: Value, a: Value) -> Value | None:
    # Townsend (2016): ds = diag(P), dU = U (F ∘ (P S + S Pᵀ)) + (I - UUᵀ) dA V S⁻¹ with P = Uᵀ dA V, dV likewise
    da = tangents[0]
    if da is None:
        return None
    m, n = a.shape[-2:]
    u, s, v = svd_parts(out, m, n)
    moved = matmul(da, v)
    p = _times(u, moved)
    columns, along_rows, gaps = _per_column(s, p), _per_row(s, p), _inverse_gaps(s * s, p)
    q = matrix_transpose(p)
    du = matmul(u, gaps * (p * columns + along_rows * q))
    dv = matmul(v, gaps * (along_rows * p + q * columns))
    inverse = _inverse_or_zero(s)
    if m > n:
        du = du + _without(u, moved) * _per_column(inverse, moved)
    if n > m:
        back = _times(da, u)
        dv = dv + _without(v, back) * _per_column(inverse, back)
    return _stacked(du, _as_row(_diagonal(p)), dv)


svd: Op = define_op(
    "svd", "library", doc="U (the first m rows), the singular values (one row, descending) and V (n rows) of the (m, n) matrices "
    "a = U diag(s) Vᵀ, with min(m, n) columns.", attributes=(), shape=_svd_shape, vjp=(_svd_vjp,), jvp=_svd_jvp,
    batch=batch_elementwise("svd"), reference=packed_svd, cheap=False,
    library=InnerLoop(("svd_s",), "{}->{}{}{}", "(m,n)->(m,p),(p),(p,n)", results=lambda out, a: _loop_results(out, *a.shape[-2:]),
                      failure="SVD did not converge", lapack="gesdd"),
)


def _svdvals_shape(a: TensorType) -> TensorType:
    packed = _svd_shape(a)
    return a.with_shape((*a.shape[:-2], packed.shape[-1]))


def _svdvals_vjp(ct: Value, out: Value, a: Value) -> Value:
    u, _, v = svd_parts(svd(a), *a.shape[-2:])
    return matmul(u * _per_column(ct, u), matrix_transpose(v))


def _svdvals_jvp(tangents: Sequence[Value | None], out: Value, a: Value) -> Value | None:
    if tangents[0] is None:
        return None
    u, _, v = svd_parts(svd(a), *a.shape[-2:])
    return _column_products(u, matmul(tangents[0], v))


svdvals: Op = define_op(
    "svdvals", "library", doc="The singular values, descending.", attributes=(), shape=_svdvals_shape, vjp=(_svdvals_vjp,),
    jvp=_svdvals_jvp, batch=batch_elementwise("svdvals"), reference=lambda a: np.linalg.svd(a, compute_uv=False), cheap=False,
    library=InnerLoop(("svd",), "{}->{}", "(m,n)->(p)", failure="SVD did not converge", lapack="gesdd"),
)


# ----- qr
def packed_qr(a: Any) -> Any:
    """Q over R."""
    return np.concatenate(np.linalg.qr(a), -2)


def _qr_shape(a: TensorType) -> TensorType:
    _require_real("qr", a)
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
    # Ā = (Q̄ + Q sym(M)) R⁻ᵀ with M = R R̄ᵀ - Q̄ᵀ Q, where sym copies the lower triangle to the upper one
    q, r = _qr_parts(out, a)
    ct_q, ct_r = _qr_parts(ct, a)
    middle = triangle(matmul(r, matrix_transpose(triangle(ct_r, False))) - _times(ct_q, q), True)
    middle = middle + matrix_transpose(_strictly_lower(middle))
    return _right_divided(ct_q + matmul(q, middle), r, True)


def _qr_jvp(tangents: Sequence[Value | None], out: Value, a: Value) -> Value | None:
    # With X = dA R⁻¹ and C = QᵀX: Ω = lower(C) - lower(C)ᵀ,  dQ = X - Q (C - Ω),  dR = (C - Ω) R
    if tangents[0] is None:
        return None
    q, r = _qr_parts(out, a)
    x = _right_divided(tangents[0], r, False)
    c = _times(q, x)
    lower = _strictly_lower(c)
    upper = c - lower + matrix_transpose(lower)
    return _stacked(x - matmul(q, upper), matmul(upper, r))


qr: Op = define_op(
    "qr", "library", doc="Q (the first m rows) and the upper triangle R (n rows) of the (m, n) matrices a = Q R, m >= n.",
    attributes=(), shape=_qr_shape, vjp=(_qr_vjp,), jvp=_qr_jvp, batch=batch_elementwise("qr"), reference=packed_qr, cheap=False,
)


def packed_householder(a: Any) -> Any:
    """NumPy's "raw" qr, not transposed, over the factors of the reflections."""
    h, tau = np.linalg.qr(a, "raw")
    return np.concatenate([np.swapaxes(h, -1, -2), tau[..., None, :]], -2)


def _householder_shape(a: TensorType) -> TensorType:
    return a.with_shape((*_qr_shape(a).shape[:-2], add_extents(a.shape[-2], 1), a.shape[-1]))


householder: Op = define_op(
    "householder", "library", doc="R in the upper triangle, below it the vectors v of the reflections I - t v vᵀ whose product is Q, and "
    "in the last row their t; of (m, n) matrices a = Q R, m >= n.", attributes=(), shape=_householder_shape,
    vjp=AFTER_DIFFERENTIATION, jvp=LINEAR, batch=batch_elementwise("householder"), reference=packed_householder, cheap=False,
    library=InnerLoop(("qr_r_raw",), "{}->{}", "(m,n)->(p)", results=lambda out, a: (rows(out, 0, a.shape[-2]), row(out, a.shape[-2])),
                      overwrites=True, failure="Incorrect argument found while performing QR factorization", lapack="geqrf"),
)


def orthonormal_columns(packed: Any) -> Any:
    m, n = packed.shape[-2] - 1, packed.shape[-1]
    q = np.broadcast_to(np.eye(m, n, dtype=packed.dtype), (*packed.shape[:-2], m, n)).copy()
    for k in reversed(range(n)):
        v = packed[..., :m, k:k + 1].copy()
        v[..., :k, :], v[..., k, :] = 0, 1
        q -= packed[..., m:, k:k + 1] * v * np.matmul(np.swapaxes(v, -1, -2), q)
    return q


def _orthonormal_shape(packed: TensorType) -> TensorType:
    return packed.with_shape((*packed.shape[:-2], add_extents(packed.shape[-2], -1), packed.shape[-1]))


orthonormal: Op = define_op(
    "orthonormal", "library", doc="The first n columns of Q, from the (m + 1, n) matrices that `householder` gives.", attributes=(),
    shape=_orthonormal_shape, vjp=AFTER_DIFFERENTIATION, jvp=LINEAR, batch=batch_elementwise("orthonormal"),
    reference=orthonormal_columns, cheap=False,
    library=InnerLoop(("qr_reduced",), "{}{}->{}", "(m,n),(k)->(m,k)",
                      operands=lambda out, packed: (rows(packed, 0, out.shape[-2]), row(packed, out.shape[-2])),
                      failure="Incorrect argument found while performing QR factorization", lapack="orgqr"),
)


# ----- determinants
def packed_slogdet(a: Any) -> Any:
    """The sign and the logarithm of |det a|, in the last axis."""
    return np.stack(np.linalg.slogdet(a), -1)


def _scaled_inverse(factor: Value, a: Value) -> Value:
    """factor a⁻ᵀ, per matrix."""
    inverse = matrix_transpose(inv(a))
    return inverse * broadcast(factor, shape=a.shape, axes=tuple(range(factor.rank)))


def _trace_of_product(x: Value, y: Value) -> Value:
    """tr(x y)."""
    return REGISTRY["sum"](x * matrix_transpose(y), axes=(x.rank - 2, x.rank - 1))


def _component(x: Value, k: int) -> Value:
    part = slice_(x, starts=(0,) * (x.rank - 1) + (k,), sizes=(*x.shape[:-1], 1), steps=(1,) * x.rank)
    return reshape(part, shape=x.shape[:-1])


def _slogdet_jvp(tangents: Sequence[Value | None], out: Value, a: Value) -> Value | None:
    if tangents[0] is None:
        return None
    change = _trace_of_product(inv(a), tangents[0])
    change = reshape(change, shape=(*change.shape, 1))
    return REGISTRY["concatenate"](full_like(change, 0.0), change, axis=change.rank - 1)


slogdet: Op = define_op(
    "slogdet", "library", doc="The sign of det a and log |det a|, in the last axis.", attributes=(),
    shape=_square("slogdet", lambda a: a.with_shape((*a.shape[:-2], 2))),
    vjp=(lambda ct, out, a: _scaled_inverse(_component(ct, 1), a),), jvp=_slogdet_jvp, batch=batch_elementwise("slogdet"),
    reference=packed_slogdet, cheap=False,
)


def _det_jvp(tangents: Sequence[Value | None], out: Value, a: Value) -> Value | None:
    return None if tangents[0] is None else out * _trace_of_product(inv(a), tangents[0])


det: Op = define_op(
    "det", "library", doc="The determinant; its derivative needs an invertible matrix.", attributes=(),
    shape=_square("det", lambda a: a.with_shape(a.shape[:-2])), vjp=(lambda ct, out, a: _scaled_inverse(ct * out, a),),
    jvp=_det_jvp, batch=batch_elementwise("det"), reference=np.linalg.det, cheap=False,
)


# ----- pinv
def _pinv_shape(a: TensorType, *, rcond: float | None) -> TensorType:
    _require_real("pinv", a)
    return a.with_shape((*a.shape[:-2], a.shape[-1], a.shape[-2]))


def _pinv_vjp(ct: Value, out: Value, a: Value, *, rcond: float | None) -> Value:
    # The adjoint of `_pinv_jvp`: -Pᵀ P̄ Pᵀ + (I - A P) P̄ᵀ P Pᵀ + Pᵀ P P̄ᵀ (I - P A)
    flipped, back = matrix_transpose(ct), matrix_transpose(out)
    first = matmul(matmul(back, ct), back)
    second = matmul(matmul(flipped, out), back)
    third = matmul(matmul(back, out), flipped)
    return second - matmul(a, matmul(out, second)) + third - matmul(matmul(third, out), a) - first


def _pinv_jvp(tangents: Sequence[Value | None], out: Value, a: Value, *, rcond: float | None) -> Value | None:
    # Golub and Pereyra (1973), constant rank: dP = -P dA P + P Pᵀ dAᵀ (I - A P) + (I - P A) dAᵀ Pᵀ P
    da = tangents[0]
    if da is None:
        return None
    flipped, back = matrix_transpose(da), matrix_transpose(out)
    second = matmul(matmul(out, back), flipped)
    third = matmul(flipped, matmul(back, out))
    return second - matmul(matmul(second, a), out) + third - matmul(out, matmul(a, third)) - matmul(matmul(out, da), out)


pinv: Op = define_op(
    "pinv", "library", doc="The Moore-Penrose inverse, by singular values above rcond times the largest; the derivative is that at "
    "constant rank.", attributes=("rcond",), shape=_pinv_shape, vjp=(_pinv_vjp,), jvp=_pinv_jvp,
    batch=batch_elementwise("pinv"), reference=np.linalg.pinv, cheap=False,
)
