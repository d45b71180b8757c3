"""Contractions: the matrix product, alone and added to an array.  (Products over other axes are transposes and reshapes around it.)"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler.errors import DTypeError
from bwcompiler.ir.declaration import MULTILINEAR
from bwcompiler.ir.extent import Extent
from bwcompiler.ir.op import Op, Value, define_op
from bwcompiler.ir.types import TensorType
from bwcompiler.ops.broadcasting import LEADING_AXES, all_batched
from bwcompiler.ops.layout import reshape, transpose
from bwcompiler.ops.rules import require


def matrix_transpose(x: Value) -> Value:
    """x with its last two axes swapped."""
    rank = x.rank
    return transpose(x, axes=(*range(rank - 2), rank - 1, rank - 2))


def is_matrix_transpose(x: Value) -> Value | None:
    """y where x is y with its last two axes swapped, else None."""
    rank = x.rank
    swapped = x.op is transpose and x.attrs["axes"] == (*range(rank - 2), rank - 1, rank - 2)
    return x.operands[0] if swapped else None


def _matmul_shape(x: TensorType, y: TensorType) -> TensorType:
    if x.dtype is not y.dtype:
        raise DTypeError(f"matmul: operands must have one dtype, got {x.dtype}, {y.dtype}")
    require(x.rank >= 2 and x.rank == y.rank and x.shape[:-2] == y.shape[:-2],
            "matmul: operands must be matrices with equal leading axes", x, y)
    require(x.shape[-1] == y.shape[-2], f"matmul: inner extents differ: {x.shape[-1]} and {y.shape[-2]}", x, y)
    return x.with_shape((*x.shape[:-1], y.shape[-1]))


def _matmul_batch(operands: Sequence[Value], batched: Sequence[bool], size: Extent) -> Value:
    x, y = operands
    if batched[0] and not batched[1] and y.rank == 2 and isinstance(size, int) and isinstance(x.shape[1], int):
        rows = reshape(x, shape=(size * x.shape[1], x.shape[2]))      # one tall product instead of many small ones
        return reshape(matmul(rows, y), shape=(size, x.shape[1], y.shape[1]))
    if batched[1] and not batched[0] and x.rank == 2 and y.shape[2] == 1:      # (size, k, 1): rows of one product
        rows = reshape(y, shape=(y.shape[0], y.shape[1]))
        return reshape(matmul(rows, matrix_transpose(x)), shape=(y.shape[0], x.shape[0], 1))
    return matmul(*all_batched(operands, batched, size))


def _matmul_reference(x: Any, y: Any) -> Any:
    return np.matmul(x, y)


matmul: Op = define_op(
    "matmul", "library", doc="The product of matrices in the last two axes; leading axes are equal batch axes.",
    attributes=(), shape=_matmul_shape, vjp=(lambda ct, out, x, y: matmul(ct, matrix_transpose(y)),
                                             lambda ct, out, x, y: matmul(matrix_transpose(x), ct)),
    jvp=MULTILINEAR, batch=_matmul_batch, reference=_matmul_reference, numpy="{0} @ {1}", cheap=False,
)


# ----- added to an array
def _matmul_add_shape(x: TensorType, y: TensorType, start: TensorType) -> TensorType:
    product = _matmul_shape(x, y)
    if start.dtype is not product.dtype:
        raise DTypeError(f"matmul_add: operands must have one dtype, got {start.dtype}, {product.dtype}")
    require(start.shape == product.shape, "matmul_add: the product must have the shape of the array that it is added to", x, y, start)
    return product


def _matmul_add_jvp(tangents: Sequence[Value | None], out: Value, x: Value, y: Value, start: Value) -> Value | None:
    dx, dy, total = tangents
    for left, right in ((dx, y), (x, dy)):
        if left is not None and right is not None:
            total = matmul(left, right) if total is None else matmul_add(left, right, total)
    return total


def _matmul_add_reference(x: Any, y: Any, start: Any) -> Any:
    return start + np.matmul(x, y)


matmul_add: Op = define_op(
    "matmul_add", "library", doc="A matrix product added to an array: computed in place of the array if possible.",
    attributes=(), shape=_matmul_add_shape, vjp=(lambda ct, out, x, y, start: matmul(ct, matrix_transpose(y)),
                                                 lambda ct, out, x, y, start: matmul(matrix_transpose(x), ct),
                                                 lambda ct, out, x, y, start: ct),
    jvp=_matmul_add_jvp, batch=LEADING_AXES, reference=_matmul_add_reference, numpy="{2} + {0} @ {1}", cheap=False,
)
