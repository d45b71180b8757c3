"""Loops of kind `product`: products of two matrices, which native code computes by the tiles of matrix products.

    for i in 0..m product                          for k in 0..terms product
      for j in 0..n                                  for i in 0..m
        reduce t: f64 = add                            for j in 0..n
        for k in 0..terms                                %c[i, j] add= %a[k, i] * %b[k, j]
          t add= %a[i, k] * %b[k, j]
        store %c[i, j], t

The first form computes rows of the result, one per iteration; they may be added to other rows, as in `store %c[i, j],
add(%start[i, j], t)`.  The second form is a sum of outer products that is added to c; each iteration adds one term.  So a part of the
iterations is a product again, and can be in the body of a loop over blocks of rows.  Both forms have their literal meaning, except that
the order of a sum is that of the tiles (`lowering/products`): blocks of terms, added in order.
"""

from __future__ import annotations

from typing import NamedTuple

from bwcompiler.ir.extent import Affine, Extent, Index, substitute
from bwcompiler.ir.loop import Accumulate, Accumulator, Buffer, Loop, Offset, Reduce, Store
from bwcompiler.ir.scalar import Scalar
from bwcompiler.ir.types import F32, F64

PRODUCT = "product"                                # the kind of these loops


class LoopMatrix(NamedTuple):
    """Element (r, c) is at start + row * r + column * c of the buffer."""

    buffer: Buffer
    start: Extent
    row: int
    column: int


class LoopProduct(NamedTuple):
    """c = a b, c = start + a b, or c += a b (adds), of rows x terms and terms x columns elements."""

    rows: Extent
    columns: Extent
    terms: Extent
    a: LoopMatrix
    b: LoopMatrix
    c: LoopMatrix
    adds: bool
    start: LoopMatrix | None = None


def product_of(loop: Loop) -> LoopProduct | None:
    """The product that a loop of kind `product` computes; None if it has neither form."""
    found = _of_rows(loop) or _of_terms(loop)
    if found is None or found.c.column not in (0, 1) or found.a.buffer.dtype not in (F32, F64):
        return None
    return found


def _of_rows(i: Loop) -> LoopProduct | None:
    match i.body:
        case [Loop(body=[Reduce(accumulator=total), Loop(body=[Accumulate() as term]) as k, Store() as store]) as j]:
            *before, sum_ = store.value.args if store.value.op == "add" else [store.value]
            if term.target is not total or repr(total.start) != "0.0" or sum_.op != "total" or sum_.data is not total:
                return None
            found = _product(i, j, k, term, (store.buffer, store.offset), adds=False)
            return found if found is None or not before else _started(found, before[0], i, j, k)
    return None


def _started(product: LoopProduct, before: Scalar, i: Loop, j: Loop, k: Loop) -> LoopProduct | None:
    """The product, added to a loaded element."""
    start = _matrix(before.data, i, j, k) if before.op == "load" else None
    return None if start is None or start.column not in (0, 1) else product._replace(start=start)


def _of_terms(k: Loop) -> LoopProduct | None:
    match k.body:
        case [Loop(body=[Loop(body=[Accumulate() as term]) as j]) as i]:
            return None if isinstance(term.target, Accumulator) else _product(i, j, k, term, term.target, adds=True)
    return None


def _product(i: Loop, j: Loop, k: Loop, term: Accumulate, target: tuple[Buffer, Offset], adds: bool) -> LoopProduct | None:
    value = term.value
    if term.combine != "add" or value.op != "multiply" or any(factor.op != "load" for factor in value.args):
        return None
    left, right = value.args
    a, b = _matrix(left.data, i, k, j), _matrix(right.data, k, j, i)
    c = _matrix(target, i, j, k)
    if a is None or b is None or c is None or c.buffer in (a.buffer, b.buffer):
        return None
    return LoopProduct(i.extent, j.extent, k.extent, a, b, c, adds)


def _matrix(place: tuple[Buffer, Offset], row: Loop, column: Loop, other: Loop) -> LoopMatrix | None:
    """The elements that loops over rows and columns touch; None if they depend on the other loop, or on data."""
    buffer, offset = place
    steps = dict(offset.affine.terms) if isinstance(offset.affine, Affine) else {}
    if offset.terms or steps.get(other.index, 0):
        return None
    first: dict[Index, Extent] = {loop.index: 0 for loop in (row, column, other)}
    return LoopMatrix(buffer, substitute(offset.affine, first), steps.get(row.index, 0), steps.get(column.index, 0))
