"""Determinants of the matrices in the last two axes and their derivatives: leading axes are batch axes.

The derivative of det a along e is <C, e> with the cofactors C = det(a) a⁻ᵀ, which singular matrices have as well: those of matrices up to
3 x 3 are written out, and others come from the factors at hand, of singular matrices from their singular values (see
`bwcompiler.passes.rewriting.legal.factorization_rules`).  With a = U diag(s) Vᵀ, Vᵀ being what NumPy calls vh,

    C = δ conj(U) diag(w) conj(V)ᵀ                         δ = det(U) det(V),  w[i] = Π s[k], k != i
    dC = δ conj(U) D conj(V)ᵀ                              D[i, j] = -P[j, i] w[i, j],  D[i, i] = Σ P[k, k] w[i, k], k != i
                                                           P = Uᴴ da conj(V),  w[i, j] = Π s[k], k != i, j

Of the log |det a| of a singular matrix, -inf, there is no derivative: LinAlgError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler.ir.op import Op, Value, define_op
from bwcompiler.ir.routine import InnerLoop
from bwcompiler.ir.types import I64, TensorType
from bwcompiler.ops.broadcasting import LEADING_AXES, broadcast, reduce_sum
from bwcompiler.ops.complex_parts import real_part
from bwcompiler.ops.creation import iota
from bwcompiler.ops.elementwise import equal, full_like, select
from bwcompiler.ops.layout import concatenate, flip, reshape, slice_axis
from bwcompiler.ops.linalg.contraction import matmul, matrix_transpose
from bwcompiler.ops.linalg.factorization import of_square_matrices
from bwcompiler.ops.linalg.solves import inv
from bwcompiler.ops.rules import require

WRITTEN_OUT = 3                # rows of matrices whose cofactors are written out


# ----- log |det|
def packed_slogdet(a: Any) -> Any:
    """The sign and the logarithm of |det a|, in the last axis."""
    return np.stack(np.linalg.slogdet(a), -1)


def _scaled_inverse(factor: Value, a: Value) -> Value:
    """factor a⁻ᵀ, per matrix."""
    return matrix_transpose(inv(a)) * _per_matrix(factor, a)


def trace_of_product(x: Value, y: Value) -> Value:
    """tr(x y)."""
    return reduce_sum(x * matrix_transpose(y), axes=(x.rank - 2, x.rank - 1))


def _component(x: Value, k: int) -> Value:
    part = slice_axis(x, x.rank - 1, k, 1)
    return reshape(part, shape=x.shape[:-1])


def _slogdet_vjp(ct: Value, out: Value, a: Value) -> Value:
    # d log |det a| = Re tr(a⁻¹ da), d sign = i sign Im tr(a⁻¹ da)
    logarithm = real_part(_component(ct, 1))
    if a.dtype.is_complex:
        logarithm = logarithm + _imaginary(_component(ct, 0) * _component(out, 0))
    return _scaled_inverse(logarithm, a)


def _imaginary(x: Value) -> Value:
    """i Im(x)."""
    return x - real_part(x)


def _slogdet_jvp(tangents: Sequence[Value | None], out: Value, a: Value) -> Value | None:
    if tangents[0] is None:
        return None
    change = trace_of_product(inv(a), tangents[0])
    turn = _imaginary(change) * _component(out, 0) if a.dtype.is_complex else full_like(change, 0.0)
    parts = [reshape(part, shape=(*part.shape, 1)) for part in (turn, real_part(change))]
    return concatenate(*parts, axis=change.rank)


slogdet: Op = define_op(
    "slogdet", "library", core_rank=2,
    doc="The sign of det a and log |det a|, in the last axis.", attributes=(),
    shape=of_square_matrices("slogdet", lambda a: a.with_shape((*a.shape[:-2], 2))),
    vjp=(_slogdet_vjp,), jvp=_slogdet_jvp, batch=LEADING_AXES, reference=packed_slogdet, kinds="fc", cheap=False,
    library=InnerLoop(("slogdet",), "{}->{}{r}", "(m,m)->(),()", cleared=True, lapack="getrf",
                      results=lambda out, a: (_component(out, 0), _component(out, 1))),
)


# ----- cofactors
def _per_matrix(factor: Value, like: Value) -> Value:
    return broadcast(factor, shape=like.shape, axes=tuple(range(factor.rank)))


def _cofactors_of_two(a: Value) -> Value:
    turned = flip(a, axes=(a.rank - 2, a.rank - 1))
    row, column = (iota(shape=a.shape, axis=a.rank - k, dtype=I64) for k in (2, 1))
    return select(equal(row, column), turned, -turned)


def _turned(x: Value, axis: int, places: int) -> Value:
    """np.roll(x, -places, axis)."""
    return concatenate(slice_axis(x, axis, places, x.shape[axis] - places), slice_axis(x, axis, 0, places), axis=axis)


def _cofactors_of_three(a: Value) -> Value:
    # C[i, j] = a[i + 1, j + 1] a[i + 2, j + 2] - a[i + 1, j + 2] a[i + 2, j + 1], indices modulo 3
    one, two = (_turned(a, a.rank - 2, places) for places in (1, 2))
    last = a.rank - 1
    return _turned(one, last, 1) * _turned(two, last, 2) - _turned(one, last, 2) * _turned(two, last, 1)


def cofactors_of(a: Value) -> Value:
    """The derivative of the determinants of matrices by their elements."""
    size = a.shape[-1]
    if size == 1:
        return full_like(a, 1.0)
    return _cofactors_of_two(a) if size == 2 else _cofactors_of_three(a) if size == WRITTEN_OUT else cofactors(a)


def _numpy_factors(a: Any) -> tuple[Any, Any, Any, Any]:
    """conj(U), s, Vᴴ and δ."""
    u, s, vh = np.linalg.svd(a)
    return np.conj(u), s, np.conj(vh), (np.linalg.det(u) * np.linalg.det(vh))[..., None, None]


def matrices_of_cofactors(a: Any) -> Any:
    left, s, right, factor = _numpy_factors(a)
    others = np.where(np.eye(a.shape[-1], dtype=bool), 1, s[..., None, :]).prod(-1)
    return (factor * np.matmul(left * others[..., None, :], right)).astype(a.dtype)


def changes_of_cofactors(a: Any, e: Any) -> Any:
    left, s, right, factor = _numpy_factors(a)
    p = np.matmul(np.matmul(np.swapaxes(left, -1, -2), e), np.swapaxes(right, -1, -2))
    zero = s == 0
    kept = np.where(zero, 1, s)
    left_over = zero.sum(-1)[..., None, None] - zero[..., :, None] - zero[..., None, :]
    same = np.eye(a.shape[-1], dtype=bool)
    w = np.where((left_over == 0) & ~same, kept.prod(-1)[..., None, None] / (kept[..., :, None] * kept[..., None, :]), 0)
    along = np.matmul(w, np.diagonal(p, 0, -2, -1)[..., None])
    d = np.where(same, along, -np.swapaxes(p, -1, -2) * w)
    return (factor * np.matmul(np.matmul(left, d), right)).astype(a.dtype)


def _change_shape(a: TensorType, e: TensorType) -> TensorType:
    of_square_matrices("cofactor_change", lambda a: a)(a)
    require(a == e, "cofactor_change: needs two arrays of one type", a, e)
    return a


def _cofactors_vjp(ct: Value, out: Value, a: Value) -> Value:
    return cofactor_change(a, ct)                    # the second derivative of det is symmetric


def _cofactors_jvp(tangents: Sequence[Value | None], out: Value, a: Value) -> Value | None:
    return None if tangents[0] is None else cofactor_change(a, tangents[0])


def _third_derivative(a: Value, e: Value, f: Value) -> Value:
    """That of det(a) by its elements, along e and f, for an invertible a.

    With X = a⁻¹: the transpose of det(a) (t X - tr(Xf) XeX - tr(Xe) XfX + XeXfX + XfXeX), t = tr(Xe) tr(Xf) - tr(XeXf).
    """
    x = inv(a)
    xe, xf = matmul(x, e), matmul(x, f)
    trace_e, trace_f = trace_of_product(x, e), trace_of_product(x, f)
    product = matmul(xe, xf)
    second = trace_e * trace_f - trace_of_product(xe, xf)
    inner = product + matmul(xf, xe) - _per_matrix(trace_f, x) * xe - _per_matrix(trace_e, x) * xf
    found = matmul(inner, x) + _per_matrix(second, x) * x
    return matrix_transpose(_per_matrix(det(a), x) * found)


def _change_vjp_a(ct: Value, out: Value, a: Value, e: Value) -> Value:
    return _third_derivative(a, e, ct)


def _change_vjp_e(ct: Value, out: Value, a: Value, e: Value) -> Value:
    return cofactor_change(a, ct)


def _change_jvp(tangents: Sequence[Value | None], out: Value, a: Value, e: Value) -> Value | None:
    of_a = None if tangents[0] is None else _third_derivative(a, e, tangents[0])
    of_e = None if tangents[1] is None else cofactor_change(a, tangents[1])
    return of_e if of_a is None else of_a if of_e is None else of_a + of_e


cofactors: Op = define_op(
    "cofactors", "library", core_rank=2,
    doc="The cofactors det(a) a⁻ᵀ, the derivatives of det(a); of singular matrices too.", attributes=(),
    shape=of_square_matrices("cofactors", lambda a: a), vjp=(_cofactors_vjp,), jvp=_cofactors_jvp, batch=LEADING_AXES,
    reference=matrices_of_cofactors, kinds="fc", cheap=False,
)
cofactor_change: Op = define_op(
    "cofactor_change", "library", core_rank=2,
    doc="How the cofactors of a change along e, the second derivative of det(a); of singular matrices too. "
    "Its own derivative by a needs an invertible matrix.", attributes=(), shape=_change_shape,
    vjp=(_change_vjp_a, _change_vjp_e), jvp=_change_jvp, batch=LEADING_AXES, reference=changes_of_cofactors, kinds="fc", cheap=False,
)


def _det_vjp(ct: Value, out: Value, a: Value) -> Value:
    return cofactors_of(a) * _per_matrix(ct, a)


def _det_jvp(tangents: Sequence[Value | None], out: Value, a: Value) -> Value | None:
    if tangents[0] is None:
        return None
    return reduce_sum(cofactors_of(a) * tangents[0], axes=(a.rank - 2, a.rank - 1))


det: Op = define_op(
    "det", "library", core_rank=2,
    doc="The determinant.", attributes=(), shape=of_square_matrices("det", lambda a: a.with_shape(a.shape[:-2])),
    vjp=(_det_vjp,), jvp=_det_jvp, batch=LEADING_AXES, reference=np.linalg.det, kinds="fc", cheap=False,
    library=InnerLoop(("det",), "{}->{}", "(m,m)->()", lapack="getrf"),
)
