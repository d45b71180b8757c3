"""Legalisation: rewrite ops into the subset that lowering accepts.

    windows(x, low, high)      -> windows(pad(x))             so that reading a window is a plain index map
    windows_add(ct, low, high) -> slice(windows_add(ct))      into the padded array
    matmul with few terms      -> multiply, add, sum           which fuse with what uses them: see narrow_products
    matmul(windows(x), column) -> sum(windows(x) * ...)      so that windows are read without being stored
    windows_add(column * row)  -> sum(windows(pad(column)) * ...)         likewise, in the other direction
    sum(matmul) over the batch -> matmul                     so that the batch of products is never stored
    (x @ y).T                  -> y.T @ x.T                   see turned_products
    rows of slices @ y         -> slices @ y, each            see sliced_products
    fft of real numbers, real(ifft) -> rfft, irfft             see half_spectra
    sum(x[i, s] * y[s, j])     -> matmul                     in derivatives
    concatenate of many pieces -> slice updates               each of which touches only its own slice
    x / 2**k                   -> x * 2**-k                   which has the same bits, and is faster; in derivatives x / any number
    A[i] = A[i] with v at k    -> A with v at (i, k)           and additions likewise: elements of a part at positions given by data
    a diagonal of zeros        -> where(j - i == offset, v, 0)          see diagonal_rules
    scatter_add of one per row -> where(j == index[i], ...)   which is read element by element, like all other values
    ct * p, unless it is nan   -> where(ct != 0, ct * p, 0)    see guard_rules
    op(halves)                 -> cast(op(cast))              see half_rules
    solve, det, qr, sort ...   -> the parts that they consist of, see factorization_rules

The values that these rules make (pads, slices, reshapes) are simplified and merged in the same walk.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import CompileError
from bwcompiler.ir.access import reshape_index
from bwcompiler.ir.extent import Affine, element_count
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Op, Value, constant, current_record, is_constant
from bwcompiler.ir.types import F16, I64, TensorType
from bwcompiler.ops.linalg.contraction import is_matrix_transpose
from bwcompiler.ops.rules import zero_of
from bwcompiler.passes.rewriting.legal.diagonal_rules import diagonal
from bwcompiler.passes.rewriting.legal.factorization_rules import FACTORIZATION_RULES
from bwcompiler.passes.rewriting.legal.guard_rules import guarded_product, number_is_equal, size_is_zero
from bwcompiler.passes.rewriting.legal.half_rules import HALF_RULES, has_halves
from bwcompiler.passes.rewriting.legal.half_spectra import use_half_spectra
from bwcompiler.passes.rewriting.legal.narrow_products import narrow_product
from bwcompiler.passes.rewriting.legal.sliced_products import split_sliced_products
from bwcompiler.passes.rewriting.legal.turned_products import turn_products
from bwcompiler.passes.rewriting.legal.window_rules import WINDOW_RULES, reshaped, windows_by_column
from bwcompiler.passes.rewriting.rewriter import Rule, Rules, rewrite
from bwcompiler.passes.rewriting.simplify_rules import RULES

LEAST_SIDE = 4                 # of the matrices that a sum of products becomes a product of,
LEAST_PRODUCTS = 1 << 12       # and how many products there are at least: fewer are a loop
NARROW_SIDE = 5                # a product with a shorter side has
NARROW_PRODUCTS = 1 << 15      # so many at least
MOST_PIECES = 8                # of a concatenation that is read element by element


def legalize(graph: Graph) -> Graph:
    """The same computation in ops that lowering accepts, simplified."""
    graph = use_half_spectra(turn_products(graph))
    return split_sliced_products(rewrite(graph, _of_halves() if has_halves(graph) else _LEGAL_AND_SIMPLE)[0])


def _product(type_: TensorType, x: Value, y: Value) -> Value | None:
    """A matrix product that is none."""
    return narrow_product(type_, x, y) or windows_by_column(type_, x, y)


def _added_product(type_: TensorType, x: Value, y: Value, start: Value) -> Value:
    """Two ops, of which `add_products` makes one again where it pays."""
    return ops.add(start, ops.matmul(x, y))


def _sum_of_products(type_: TensorType, product: Value, *, axes: tuple[int, ...]) -> Value | None:
    """sum_b x[b] @ y[b], the gradient of a matrix used for a whole batch: one product over the axes (b, k) together."""
    if product.op is not ops.matmul or not axes or axes != tuple(range(product.rank - 2)) or not type_.dtype.is_differentiable:
        return None
    x, y = product.operands
    rank = x.rank
    rows, columns = type_.shape
    inner = element_count(y.shape[:-1])
    right = reshaped(y, (inner, columns))
    turned = is_matrix_transpose(x)
    if turned is not None:                                     # its memory has (b, k) side by side already
        left = ops.transpose(reshaped(turned, (inner, rows)), axes=(1, 0))
    else:
        left = reshaped(ops.transpose(x, axes=(rank - 2, *range(rank - 2), rank - 1)), (rows, inner))
    return ops.matmul(left, right)


def _contraction(type_: TensorType, product: Value, *, axes: tuple[int, ...]) -> Value | None:
    """sum_s x[i, s] y[s, j] of arrays that are broadcast against one another: a product of matrices, of which i, s and j may be several
    axes each.  In derivatives only: forward values are the sums that were written, with their bits."""
    record = current_record()
    if product.op is not ops.multiply or record is None or record.forward is None or not type_.dtype.is_differentiable or not all(
            operand.op is ops.broadcast for operand in product.operands) or not all(isinstance(n, int) for n in product.shape):
        return None
    (x, of_x), (y, of_y) = [(operand.operands[0], operand.attrs["axes"]) for operand in product.operands]
    rows, columns = ([axis for axis in one if axis not in other] for one, other in ((of_x, of_y), (of_y, of_x)))
    if sorted((*rows, *columns, *axes)) != list(range(product.rank)):
        return None
    inner, m, n = (element_count(tuple([product.shape[axis] for axis in part])) for part in (axes, rows, columns))
    side = min(inner, m, n)
    if side < LEAST_SIDE or inner * m * n < (NARROW_PRODUCTS if side < NARROW_SIDE else LEAST_PRODUCTS):
        return None
    left = reshaped(_ordered(x, of_x, (*rows, *axes)), (m, inner))
    right = reshaped(_ordered(y, of_y, (*axes, *columns)), (inner, n))
    found = ops.reshape(ops.matmul(left, right), shape=tuple([product.shape[axis] for axis in (*rows, *columns)]))
    return _ordered(found, (*rows, *columns), tuple(sorted((*rows, *columns))))


def _ordered(x: Value, axes: Sequence[int], wanted: Sequence[int]) -> Value:
    """An array of which these are the axes, with its axes in another order."""
    order = tuple([axes.index(axis) for axis in wanted])
    return x if order == tuple(range(x.rank)) else ops.transpose(x, axes=order)


def _sum(type_: TensorType, x: Value, *, axes: tuple[int, ...]) -> Value | None:
    """A sum of products that is a matrix product."""
    return _sum_of_products(type_, x, axes=axes) or _contraction(type_, x, axes=axes)


def _pieces_in_place(type_: TensorType, *pieces: Value, axis: int) -> Value | None:
    """Many pieces side by side: each is written into its place, where an element of the whole would choose among all of them."""
    if len(pieces) <= MOST_PIECES or not all(isinstance(extent, int) for extent in type_.shape):
        return None
    whole = ops.full(value=zero_of(type_.dtype), shape=type_.shape, dtype=type_.dtype)
    start = 0
    for piece in pieces:
        starts = tuple([start if k == axis else 0 for k in range(type_.rank)])
        if piece.type.size:
            whole = ops.slice_update(whole, piece, starts=starts, steps=(1,) * type_.rank)
        start += piece.shape[axis]
    return whole


def _quotient(type_: TensorType, x: Value, y: Value) -> Value | None:
    """x / 2**k, where 2**-k is a number of the dtype too; in derivatives that are arrays x / y for any number y.

    There it may be rounded once more: nobody compares its bits with NumPy's, and a division takes several times as long as a product.
    (The reciprocal of a number that is computed later is infinite if that is below 2**-1024: then hardly a bit of it is known.)
    """
    record = current_record()
    rounds = record is not None and record.forward is not None and bool(type_.shape) and type_.dtype is not F16
    if rounds and type_.dtype.is_float and y.op is ops.broadcast and not y.operands[0].rank:
        [number] = y.operands
        return ops.multiply(x, ops.broadcast(ops.divide(constant(1.0, number.type), number), **y.attrs))
    if not is_constant(y) or not isinstance(y.attrs["value"], float) or not type_.dtype.is_float:
        return None
    if not rounds and abs(math.frexp(y.attrs["value"])[0]) != 0.5:
        return None
    kind = type_.dtype.numpy.type
    with np.errstate(all="ignore"):
        reciprocal = kind(1) / kind(y.attrs["value"])
    if not np.finfo(kind).tiny <= abs(reciprocal) < np.inf:
        return None
    return ops.multiply(x, ops.full(value=float(reciprocal), shape=y.shape, dtype=y.dtype))


def _one_per_row(type_: TensorType, x: Value, updates: Value, *indices: Value, axes: tuple[int, ...]) -> Value | None:
    """One element of each row changed, the adjoint of x[arange(n), labels]: out[i, j] = x[i, j] + updates[i] if j == labels[i].

    So it is where every axis of the indices is counted through along an axis of its own: no element gets two updates.  An x that
    lies in memory is changed there.
    """
    rank = indices[0].rank
    if x.op.kind not in ("elementwise", "constant", "layout") or not all(isinstance(extent, int) for extent in type_.shape):
        return None
    axis_of: dict[int, int] = {}                       # of the indices -> of the array
    for axis, index in zip(axes, indices, strict=True):
        counted = _counted_axis(index)
        if counted is not None and index.shape[counted] == type_.shape[axis]:
            axis_of.setdefault(counted, axis)
    places = tuple([axis_of.get(axis, -1) for axis in range(rank)])
    others = tuple([axis for axis in range(type_.rank) if axis not in axes])
    if min(places, default=-1) < 0 or list(places + others) != sorted(places + others):
        return None
    found = ops.add(x, ops.broadcast(updates, shape=type_.shape, axes=places + others))
    for axis, index in zip(axes, indices, strict=True):
        if axis not in places:
            here = ops.equal(ops.broadcast(index, shape=type_.shape, axes=places), ops.iota(shape=type_.shape, axis=axis, dtype=I64))
            found = ops.select(here, found, x)
    return found


def _elements_of_part(type_: TensorType, array: Value, part: Value, *, starts: tuple[Any, ...], steps: tuple[int, ...]) -> Value | None:
    """Elements of a part of an array, found by data, are replaced or added to where they lie: the part is not written again."""
    inner = part.operands[0] if part.op is ops.reshape else part
    if inner.op not in (ops.scatter_update, ops.scatter_add):
        return None
    before = inner.operands[0].operands[0] if inner.operands[0].op is ops.reshape else inner.operands[0]
    same = {"starts": starts, "sizes": part.shape, "steps": steps}
    if before.op is not ops.slice or before.operands[0] is not array or dict(before.attrs) != same:
        return None
    return _in_whole(array, part, inner, starts, steps)


def _add_elements_of_part(type_: TensorType, array: Value, part: Value, *, starts: tuple[Any, ...], steps: tuple[int, ...]) -> Value | None:
    """The same of the adjoint: nothing is added to the other elements of the part."""
    inner = part.operands[0] if part.op is ops.reshape else part
    if inner.op is not ops.scatter_add or not _is_zero(inner.operands[0]):
        return None
    return _in_whole(array, part, inner, starts, steps)


def _is_zero(value: Value) -> bool:
    return is_constant(value) and value.attrs["value"] == 0


def _in_whole(array: Value, part: Value, inner: Value, starts: tuple[Any, ...], steps: tuple[int, ...]) -> Value | None:
    """The scatter into a part of an array (perhaps without axes of one element) as one into the array: indices along more axes."""
    _, values, *indices = inner.operands
    axis_of = _same_axes(part.shape, inner.shape)
    if axis_of is None:
        return None
    shape, index_of = indices[0].shape, dict(zip(inner.attrs["axes"], indices, strict=True))
    places: dict[int, Value] = {}
    for axis, (start, step) in enumerate(zip(starts, steps, strict=True)):
        own = axis_of.get(axis)
        if own is not None and own not in index_of:            # all of it
            if (start, step, part.shape[axis]) != (0, 1, array.shape[axis]):
                return None
            continue
        if own is not None and step != 1:
            return None
        first = ops.index_value(extent=start) if isinstance(start, Affine) else ops.full(value=start, shape=(), dtype=I64)
        first = ops.broadcast(first, shape=shape, axes=()) if shape else first
        places[axis] = first if own is None else ops.add(index_of[own], first)
    return inner.op(array, values, *places.values(), axes=tuple(places))


def _same_axes(shape: tuple[Any, ...], inner: tuple[Any, ...]) -> dict[int, int] | None:
    """Which axes of a shape are those of one without some axes of one element; None where it is not that."""
    found: dict[int, int] = {}
    for axis, extent in enumerate(shape):
        own = len(found)
        if own < len(inner) and inner[own] == extent:
            found[axis] = own
        elif extent != 1:
            return None
    return found if len(found) == len(inner) else None


def _counted_axis(index: Value) -> int | None:
    """The axis along which an index array counts 0, 1, 2 ..., if any."""
    if index.op is ops.broadcast:
        inner = _counted_axis(index.operands[0])
        return None if inner is None else int(index.attrs["axes"][inner])
    return int(index.attrs["axis"]) if index.op is ops.iota else None


def _reshape_in_place(type_: TensorType, x: Value, *, shape: tuple[Any, ...]) -> Value | None:
    """A reshape that merges axes is the same memory in another shape: not where the elements do not lie side by side."""
    if reshape_index([0] * len(shape), x.shape, shape) is None and not all(isinstance(n, int) for n in (*x.shape[1:], *shape[1:])):
        raise CompileError(f"a reshape of {x.type} to {type_}, whose shapes move with the index of a loop, is not compiled yet\n"
                           "  hint: give the array one shape for all iterations, or index it with a loop over its rows")
    return None


def _reshape(type_: TensorType, x: Value, *, shape: tuple[Any, ...]) -> Value | None:
    """A diagonal, or the same memory in another shape."""
    return diagonal(type_, x, shape=shape) or _reshape_in_place(type_, x, shape=shape)


def _then(first: Rule, second: Rule | None) -> Rule:
    """The rule that applies the first of two that applies."""
    def apply(type_: TensorType, *operands: Value, **attrs: Any) -> Value | None:
        found = first(type_, *operands, **attrs)
        return second(type_, *operands, **attrs) if found is None and second is not None else found
    return apply


_LEGAL: dict[Op, Rule] = {
    ops.matmul: _product, ops.matmul_add: _added_product, ops.sum: _sum,
    ops.slice_update: _elements_of_part, ops.slice_add: _add_elements_of_part,
    ops.concatenate: _pieces_in_place, ops.divide: _quotient, ops.reshape: _reshape, ops.scatter_add: _one_per_row,
    ops.select: guarded_product, ops.less_equal: size_is_zero, ops.equal: number_is_equal,
    **WINDOW_RULES, **FACTORIZATION_RULES,
}
_LEGAL_AND_SIMPLE = RULES | {op: _then(rule, RULES.get(op)) for op, rule in _LEGAL.items()}


@functools.cache
def _of_halves() -> Rules:
    return _LEGAL_AND_SIMPLE | {op: _then(rule, _LEGAL_AND_SIMPLE.get(op)) for op, rule in HALF_RULES.items()}
