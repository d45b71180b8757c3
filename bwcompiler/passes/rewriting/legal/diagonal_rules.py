"""Diagonals of constant matrices: `diagonal`, reshape(slice_update(full, v, step=columns + 1)) -> where(column - row == offset, v, number).

This is the adjoint of np.diagonal and of a trace.  With an element rule that tests its own position, it is part of the loop that adds it to
something; the update of the flattened matrix would be a separate array, of almost nothing but zeros.
"""

from __future__ import annotations

from typing import Any

from bwcompiler import ops
from bwcompiler.ir.op import Value, is_constant
from bwcompiler.ir.types import I64, TensorType


def diagonal(type_: TensorType, x: Value, *, shape: tuple[Any, ...]) -> Value | None:
    """The matrices whose flattened elements are x, if these are one number but for a diagonal."""
    if x.op is not ops.slice_update or not is_constant(x.operands[0]) or len(shape) != x.rank + 1 or shape[:-2] != x.shape[:-1] or (
            not all(isinstance(extent, int) for extent in shape)):
        return None
    full, updates = x.operands
    starts, steps = x.attrs["starts"], x.attrs["steps"]
    columns = shape[-1]
    if updates.shape[:-1] != x.shape[:-1] or any(starts[:-1]) or steps[-1] != columns + 1 or not isinstance(starts[-1], int):
        return None
    row, column = divmod(starts[-1], columns)
    count = updates.shape[-1]
    if not isinstance(count, int) or not count or column + count > columns:     # one that goes on in the first column
        return None
    number, axis, first = full.attrs["value"], len(shape) - 2, row
    if count == columns:                                               # all of them
        axis, first = len(shape) - 1, 0
    lead = (0,) * (x.rank - 1)
    if count != shape[axis]:
        updates = ops.pad(updates, low=(*lead, first), high=(*lead, shape[axis] - first - count), value=number)
    distance = ops.subtract(*[ops.iota(shape=shape, axis=len(shape) - k, dtype=I64) for k in (1, 2)])
    here = ops.equal(distance, ops.full(value=column - row, shape=shape, dtype=I64))
    spread = ops.broadcast(updates, shape=shape, axes=(*range(len(lead)), axis))
    return ops.select(here, spread, ops.full(value=number, shape=shape, dtype=x.dtype))
