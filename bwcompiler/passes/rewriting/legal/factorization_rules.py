"""Linear algebra -> the parts that lowering has routines for, so that each matrix is factored once.

    solve(a, b), inv(a), det(a), slogdet(a)  -> of lu(a); those of aᵀ too
    qr(a)                                    -> of householder(a)
    pinv(a)                                  -> of svd(a)
    cofactors(a)                             -> of lu(a), and of svd(a) where a matrix is singular: a branch
    sort, argsort along another axis         -> along the last one

The rules run after differentiation; equal factorisations are merged as they are made.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from bwcompiler import ops
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Op, Record, Value, constant, input_value
from bwcompiler.ir.types import C128, F64, I64, TensorType
from bwcompiler.ops.complex_parts import conj
from bwcompiler.ops.linalg.contraction import is_matrix_transpose, matrix_transpose
from bwcompiler.ops.linalg.factorization import row, rows, svd_parts
from bwcompiler.ops.linalg.solves import identity_like, triangle
from bwcompiler.ops.ordering.order_statistics import swap_with_last
from bwcompiler.passes.rewriting.rewriter import Rule


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


# ----- cofactors: from the factors at hand, and from singular values where there is no inverse
def _cofactors(type_: TensorType, a: Value) -> Value | None:
    """det(a) a⁻ᵀ.  Of nearly singular matrices too: errors of the determinant and of the inverse are those of the same factors."""
    if not type_.size:
        return ops.full(value=0.0, shape=type_.shape, dtype=type_.dtype)
    determinant = ops.det(a)
    given = (a, determinant) if a.dtype.is_complex else (a, determinant, ops.lu(a))

    def regular(x: Value, factor: Value, *factors: Value) -> Value:
        inverse = ops.lu_solve(factors[0], identity_like(x), transpose=False) if factors else ops.inv(x)
        return matrix_transpose(inverse) * _per_matrix(factor, x)

    return _where_singular(determinant, given, lambda x, *rest: _cofactors_of_singular(x), regular)


def _cofactor_change(type_: TensorType, a: Value, e: Value) -> Value | None:
    """det(a) (tr(a⁻¹ e) a⁻ᵀ - (a⁻¹ e a⁻¹)ᵀ), by singular values: the two terms are large and close where a is nearly singular."""
    if not type_.size:
        return ops.full(value=0.0, shape=type_.shape, dtype=type_.dtype)
    factors = _singular(a)
    left, s, right, _ = factors
    p = ops.matmul(ops.matmul(matrix_transpose(left), e), matrix_transpose(right))
    zero, one = constant(0.0, s.type), constant(1.0, s.type)
    none = ops.equal(s, zero)
    kept, flags = ops.select(none, one, s), ops.cast(none, dtype=s.dtype)
    last = s.rank - 1
    product, zeros = ops.prod(kept, axes=(last,)), ops.sum(flags, axes=(last,))
    square = s.type.with_shape((*s.shape, s.shape[-1]))
    by_rows, by_columns, whole = tuple(range(last + 1)), (*range(last), last + 1), tuple(range(last))
    spread = functools.partial(ops.broadcast, shape=square.shape)
    others = ops.divide(spread(product, axes=whole), spread(kept, axes=by_columns) * spread(kept, axes=by_rows))
    counted = ops.equal(spread(zeros, axes=whole), spread(flags, axes=by_columns) + spread(flags, axes=by_rows))
    w = ops.select(counted, others, constant(0.0, square))
    same = _diagonal_mask(w)
    w = _as(ops.select(same, constant(0.0, square), w), a)
    on_diagonal = ops.sum(ops.select(same, p, constant(0.0, p.type)), axes=(p.rank - 1,))
    trace = ops.sum(w * spread(on_diagonal, axes=by_columns), axes=(w.rank - 1,))
    d = ops.select(same, spread(trace, axes=by_rows), -matrix_transpose(p) * w)
    return _joined(factors, d)


def _cofactors_of_singular(a: Value) -> Value:
    factors = _singular(a)
    s = factors[1]
    square = s.type.with_shape((*s.shape, s.shape[-1]))
    columns = ops.broadcast(s, shape=square.shape, axes=(*range(s.rank - 1), s.rank))
    others = ops.prod(ops.select(_diagonal_mask(columns), constant(1.0, square), columns), axes=(s.rank,))
    found = ops.select(_diagonal_mask(columns), ops.broadcast(others, shape=square.shape, axes=tuple(range(s.rank))), constant(0.0, square))
    return _joined(factors, _as(found, a))


def _singular(a: Value) -> tuple[Value, Value, Value, Value]:
    """conj(U), the singular values, conj(V)ᵀ and det(U) det(V)."""
    u, s, v = svd_parts(ops.svd(a), *a.shape[-2:])
    return conj(u), ops.real(s) if s.dtype.is_complex else s, conj(matrix_transpose(v)), ops.det(u) * ops.det(v)


def _joined(factors: tuple[Value, Value, Value, Value], middle: Value) -> Value:
    left, _, right, factor = factors
    return ops.matmul(ops.matmul(left, middle), right) * _per_matrix(factor, left)


def _as(x: Value, like: Value) -> Value:
    return x if x.dtype is like.dtype else ops.cast(x, dtype=like.dtype)


def _per_matrix(factor: Value, like: Value) -> Value:
    return ops.broadcast(factor, shape=like.shape, axes=tuple(range(factor.rank)))


def _where_singular(determinant: Value, given: Sequence[Value], *branches: Callable[..., Value]) -> Value:
    """What the first branch gives if a determinant is 0, else what the second does."""
    singular = ops.any(ops.reshape(ops.equal(determinant, constant(0.0, determinant.type)), shape=(determinant.type.size,)), axes=(0,))
    graphs = []
    for name, branch in zip(("singular", "regular"), branches, strict=True):
        inputs = [input_value(value.type) for value in given]
        with Record() as record:
            found = branch(*inputs)
        graphs.append(Graph(name, inputs, live_values(record.values, [found]), [found]))
    return ops.item(ops.cond(singular, *given, then_branch=graphs[0], else_branch=graphs[1]), index=0)


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
        return swap_with_last(sorting(swap_with_last(x, axis), axis=x.rank - 1, kind=kind), axis)
    return rule


def _for_real(rule: Rule) -> Rule:
    def of_real(type_: TensorType, *operands: Value, **attrs: Any) -> Value | None:
        return rule(type_, *operands, **attrs) if _is_real(type_) else None
    return of_real


def _if_fixed(rule: Rule) -> Rule:
    def of_fixed(type_: TensorType, *operands: Value, **attrs: Any) -> Value | None:
        return rule(type_, *operands, **attrs) if all(isinstance(extent, int) for extent in type_.shape) else None
    return of_fixed


FACTORIZATION_RULES: dict[Op, Rule] = {
    **{op: _for_real(rule) for op, rule in (
        (ops.solve, _solve), (ops.inv, _inv), (ops.det, _det), (ops.slogdet, _slogdet))},
    **{op: _if_fixed(rule) for op, rule in (
        (ops.qr, _qr), (ops.pinv, _pinv), (ops.cofactors, _cofactors), (ops.cofactor_change, _cofactor_change))},
    ops.sort: _along_last_axis(ops.sort), ops.argsort: _along_last_axis(ops.argsort),
}
