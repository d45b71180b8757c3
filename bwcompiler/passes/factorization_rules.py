"""Linear algebra -> the parts that lowering has routines for, so that what is asked of one matrix is factored once.

    solve(a, b), inv(a), det(a), slogdet(a)  -> of lu(a); those of aᵀ too
    qr(a)                                    -> of householder(a)
    pinv(a)                                  -> of svd(a)
    sort, argsort along another axis         -> along the last one

The rules run after differentiation; equal factorisations are merged as they are made.
"""

from __future__ import annotations

import math
from typing import Any

from bwcompiler import ops
from bwcompiler.ir.op import Op, Value, constant
from bwcompiler.ir.types import C128, F64, I64, TensorType
from bwcompiler.ops.complex_parts import conj
from bwcompiler.ops.contraction import is_matrix_transpose, matrix_transpose
from bwcompiler.ops.factorization import row, rows, svd_parts
from bwcompiler.ops.linalg import identity_like, triangle
from bwcompiler.passes.rewriting import Rule


def _is_real(type_: TensorType) -> bool:
    return type_.dtype.kind == "f" and all(isinstance(extent, int) for extent in type_.shape)


def _diagonal_mask(x: Value) -> Value:
    down, right = (ops.iota(shape=x.shape, axis=x.rank - k, dtype=I64) for k in (2, 1))
    return ops.equal(down, right)


# ----- of the LU factors
def _solve(type_: TensorType, a: Value, b: Value) -> Value:
    turned = is_matrix_transpose(a)
    return ops.lu_solve(ops.lu(a if turned is None else turned), b, transpose=turned is not None)


def _inv(type_: TensorType, a: Value) -> Value:
    turned = is_matrix_transpose(a)
    return _inverse(a) if turned is None else matrix_transpose(_inverse(turned))


def _inverse(a: Value) -> Value:
    return ops.lu_solve(ops.lu(a), identity_like(a), transpose=False)


def _sign_and_logarithm(a: Value) -> tuple[Value, Value]:
    """Of the determinant; 0 and -inf of a singular matrix, as in NumPy."""
    turned = is_matrix_transpose(a)
    a = a if turned is None else turned
    packed, n = ops.lu(a), a.shape[-1]
    factors, pivots = rows(packed, 0, n), row(packed, n)
    zeros = constant(0.0, factors.type)
    diagonal = ops.sum(ops.select(_diagonal_mask(factors), factors, zeros), axes=(a.rank - 1,))
    stays = ops.equal(pivots, ops.cast(ops.iota(shape=pivots.shape, axis=pivots.rank - 1, dtype=I64), dtype=pivots.dtype))
    zero, one, minus = (constant(number, diagonal.type) for number in (0.0, 1.0, -1.0))
    negative, singular = ops.less(diagonal, zero), ops.equal(diagonal, zero)
    signs = ops.select(singular, zero, ops.select(negative, minus, one))
    sign = ops.prod(ops.select(stays, signs, -signs), axes=(diagonal.rank - 1,))
    logarithm = ops.sum(ops.log(ops.absolute(diagonal)), axes=(diagonal.rank - 1,))
    none = ops.equal(sign, constant(0.0, sign.type))
    return sign, ops.select(none, constant(-math.inf, sign.type), logarithm)


def _det(type_: TensorType, a: Value) -> Value:
    if a.shape[-1] == 2:                                       # ad - bc, which joins the loops around it
        parts = [[_element(a, i, j) for j in (0, 1)] for i in (0, 1)]
        return ops.subtract(ops.multiply(parts[0][0], parts[1][1]), ops.multiply(parts[0][1], parts[1][0]))
    sign, logarithm = _sign_and_logarithm(a)
    return ops.multiply(sign, ops.exp(logarithm))


def _element(a: Value, i: int, j: int) -> Value:
    """Element [i, j] of each matrix."""
    found = ops.slice(a, starts=(*[0] * (a.rank - 2), i, j), sizes=(*a.shape[:-2], 1, 1), steps=(1,) * a.rank)
    return ops.reshape(found, shape=a.shape[:-2])


def _slogdet(type_: TensorType, a: Value) -> Value:
    parts = [ops.reshape(part, shape=(*part.shape, 1)) for part in _sign_and_logarithm(a)]
    return ops.concatenate(*parts, axis=type_.rank - 1)


# ----- of other factors
def _qr(type_: TensorType, a: Value) -> Value:
    """In double precision, which is the only one that NumPy has loops of."""
    wide = C128 if a.dtype.is_complex else F64
    packed = ops.householder(a if a.dtype is wide else ops.cast(a, dtype=wide))
    upper = triangle(rows(packed, 0, a.shape[-1]), False)
    found = ops.concatenate(ops.orthonormal(packed), upper, axis=a.rank - 2)
    return found if a.dtype is wide else ops.cast(found, dtype=a.dtype)


def _pinv(type_: TensorType, a: Value, *, rcond: float | None) -> Value | None:
    if not type_.size:
        return None
    u, values, v = svd_parts(ops.svd(a), *a.shape[-2:])
    s = ops.real(values) if values.dtype.is_complex else values
    last = s.rank - 1
    largest = ops.max(s, axes=(last,))
    cutoff = ops.broadcast(largest * (1e-15 if rcond is None else rcond), shape=s.shape, axes=tuple(range(last)))
    kept = ops.greater(s, cutoff)
    zero, one = (constant(number, s.type) for number in (0.0, 1.0))
    scale = ops.select(kept, ops.divide(one, ops.select(kept, s, one)), zero)
    turned = conj(matrix_transpose(u))
    scale = scale if scale.dtype is a.dtype else ops.cast(scale, dtype=a.dtype)
    return ops.matmul(conj(v), ops.broadcast(scale, shape=turned.shape, axes=tuple(range(turned.rank - 1))) * turned)


def _along_last_axis(sorting: Op) -> Rule:
    def rule(type_: TensorType, x: Value, *, axis: int, kind: str | None) -> Value | None:
        if axis == x.rank - 1:
            return None
        order = list(range(x.rank))
        order[axis], order[-1] = order[-1], order[axis]
        return ops.transpose(sorting(ops.transpose(x, axes=tuple(order)), axis=x.rank - 1, kind=kind), axes=tuple(order))
    return rule


def _for_real(rule: Rule) -> Rule:
    def of_real(type_: TensorType, *operands: Value, **attrs: Any) -> Value | None:
        return rule(type_, *operands, **attrs) if _is_real(type_) else None
    return of_real


def _if_fixed(rule: Rule) -> Rule:
    def of_fixed(type_: TensorType, *operands: Value, **attrs: Any) -> Value | None:
        return rule(type_, *operands, **attrs) if all(isinstance(extent, int) for extent in type_.shape) else None
    return of_fixed


FACTORIZATION_RULES: dict[str, Rule] = {
    **{name: _for_real(rule) for name, rule in (
        ("solve", _solve), ("inv", _inv), ("det", _det), ("slogdet", _slogdet))},
    **{name: _if_fixed(rule) for name, rule in (("qr", _qr), ("pinv", _pinv))},
    "sort": _along_last_axis(ops.sort), "argsort": _along_last_axis(ops.argsort),
}
