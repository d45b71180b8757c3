"""Elements at indices that are data: gather and scatter.

Indices are i64 arrays of one shape B that `normalize_index` has put in range.  The indexed axes come first, as B, in a gathered array and
in updates; the other axes follow in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler.errors import DTypeError
from bwcompiler.ir import scalar as s
from bwcompiler.ir.declaration import LINEAR, Into, OfOp
from bwcompiler.ir.extent import Extent, upper
from bwcompiler.ir.op import Op, Value, define_op
from bwcompiler.ir.types import I64, TensorType
from bwcompiler.ops import numpy_text
from bwcompiler.ops.broadcasting import add_batch_axis, all_batched, broadcast
from bwcompiler.ops.creation import full, iota
from bwcompiler.ops.elementwise import equal, full_like, select
from bwcompiler.ops.indexing.distinct_indices import are_distinct
from bwcompiler.ops.indexing.indices import INDEX
from bwcompiler.ops.layout import transpose
from bwcompiler.ops.rules import At, Axes, Read, other_axes, require, require_axes, shifted


# ----- gather
def _check_indices(name: str, x: TensorType, indices: Sequence[TensorType], axes: Axes) -> tuple[Extent, ...]:
    """The shape B + remaining axes of x."""
    require_axes(name, axes, x.rank)
    require(len(indices) == len(axes) > 0, f"{name}: one index array per axis in {axes}", x, *indices)
    for index in indices:
        if index.dtype is not I64:
            raise DTypeError(f"{name} takes int64 indices, got {index.dtype.numpy}")
        require(index.shape == indices[0].shape, f"{name}: index arrays must have one shape", *indices)
    return (*indices[0].shape, *(x.shape[axis] for axis in other_axes(x.rank, axes)))


def _gather_shape(x: TensorType, *indices: TensorType, axes: Axes) -> TensorType:
    return x.with_shape(_check_indices("gather", x, indices, axes))


def _gather_vjp(acc: Value, ct: Value, out: Value, x: Value, *indices: Value, axes: Axes) -> Value:
    return scatter_add(acc, ct, *indices, axes=axes)


def _gather_element(at: At, x: Read, *indices: Read, axes: Axes) -> s.Scalar:
    rank = len(indices[0].shape)
    rest = iter(at[rank:])
    chosen = {axis: s.as_position(index(*at[:rank])) for axis, index in zip(axes, indices, strict=True)}
    return x(*[chosen[axis] if axis in chosen else next(rest) for axis in range(len(x.shape))])


def _batch_index(indices: Sequence[Value], size: Extent) -> Value:
    """The index along a new leading axis, for indices that have that axis already."""
    return iota(shape=(size, *indices[0].shape[1:]), axis=0, dtype=I64)


def _gather_batch(operands: Sequence[Value], batched: Sequence[bool], size: Extent, *, axes: Axes) -> Value:
    x, *indices = operands
    if not any(batched[1:]):
        found = gather(x, *indices, axes=shifted(axes))          # B, batch, rest -> batch, B, rest
        rank = indices[0].rank
        return transpose(found, axes=(rank, *range(rank), *range(rank + 1, found.rank)))
    indices = all_batched(indices, batched[1:], size)
    if not batched[0]:
        return gather(x, *indices, axes=axes)
    return gather(x, _batch_index(indices, size), *indices, axes=(0, *shifted(axes)))


def _indexed_first(x: Any, axes: Axes) -> Any:
    """A view of x with the indexed axes first."""
    return x.transpose((*axes, *other_axes(x.ndim, axes)))


gather = define_op(
    "gather", "index", doc="Elements of x at the indices along `axes`; the result has the indices' shape, then the "
    "other axes of x.", attributes=("axes",), shape=_gather_shape, vjp=(Into(_gather_vjp), INDEX), jvp=LINEAR,
    batch=_gather_batch,
    reference=lambda x, *indices, axes: _indexed_first(np.asarray(x), axes)[tuple(indices)], numpy=numpy_text.gather,
    element=_gather_element,
    keeps_zero=True,
)


# ----- scatter
def _scatter_shape(x: TensorType, updates: TensorType, *indices: TensorType, axes: Axes) -> TensorType:
    expected = _check_indices("scatter", x, indices, axes)
    if updates.dtype is not x.dtype:
        raise DTypeError(f"scatter: operands must have one dtype, got {x.dtype}, {updates.dtype}")
    require(updates.shape == expected, f"scatter: updates must have shape {expected}", x, updates, *indices)
    return x


def _scatter_batch(op: Op) -> Any:
    def batch(operands: Sequence[Value], batched: Sequence[bool], size: Extent, *, axes: Axes) -> Value:
        x, updates, *indices = operands
        x = x if batched[0] else add_batch_axis(x, size)
        updates = updates if batched[1] else add_batch_axis(updates, size)
        if not any(batched[2:]):
            rank = indices[0].rank                               # batch, B, rest -> B, batch, rest
            moved = transpose(updates, axes=(*range(1, rank + 1), 0, *range(rank + 1, updates.rank)))
            return op(x, moved, *indices, axes=shifted(axes))
        indices = all_batched(indices, batched[2:], size)
        return op(x, updates, _batch_index(indices, size), *indices, axes=(0, *shifted(axes)))
    return batch


def _scatter_add_reference(x: Any, updates: Any, *indices: Any, axes: Axes) -> Any:
    out = np.array(x)
    np.add.at(_indexed_first(out, axes), tuple(indices), updates)
    return out


def _scatter_update_reference(x: Any, updates: Any, *indices: Any, axes: Axes) -> Any:
    out = np.array(x)
    _indexed_first(out, axes)[tuple(indices)] = updates          # NumPy: the last value assigned to an index wins
    return out


scatter_add: Op = define_op(
    "scatter_add", "push", doc="x with updates added at the indices along `axes`; repeated indices add up.",
    attributes=("axes",), shape=_scatter_shape,
    vjp=(lambda ct, out, x, updates, *indices, axes: ct,
         lambda ct, out, x, updates, *indices, axes: gather(ct, *indices, axes=axes), INDEX),
    jvp=LINEAR, batch=OfOp(_scatter_batch), reference=_scatter_add_reference,
    numpy=numpy_text.scatter_add, combine="add", keeps_zero=True, cheap=False,
)


def _last_writers(x: Value, indices: Sequence[Value], axes: Axes) -> Value:
    """Per element of B: whether its write wins (it is the only one at its place, or the last)."""
    shape = indices[0].shape
    position = full(value=0, shape=shape, dtype=I64)
    stride = 1
    for axis in reversed(range(len(shape))):                     # the position in C order: the order of writing
        position = position + iota(shape=shape, axis=axis, dtype=I64) * stride
        stride *= upper(shape[axis])
    table = full(value=0, shape=tuple(x.shape[axis] for axis in axes), dtype=I64)
    along = tuple(range(len(axes)))
    written = scatter_update(table, position, *indices, axes=along)
    return equal(gather(written, *indices, axes=along), position)


def _scatter_update_operand(ct: Value, out: Value, x: Value, updates: Value, *indices: Value, axes: Axes) -> Value:
    return scatter_update(ct, full_like(updates, 0.0), *indices, axes=axes)


def _scatter_update_cotangent(ct: Value, out: Value, x: Value, updates: Value, *indices: Value, axes: Axes) -> Value:
    found = gather(ct, *indices, axes=axes)
    rank = indices[0].rank
    if are_distinct(indices):
        return found
    stays = broadcast(_last_writers(x, indices, axes), shape=found.shape, axes=tuple(range(rank)))
    return select(stays, found, full_like(found, 0.0))


scatter_update: Op = define_op(
    "scatter_update", "push", doc="x with the elements at the indices along `axes` replaced by updates; of repeated "
    "indices the last one (in C order) wins, and only it gets the cotangent.", attributes=("axes",),
    shape=_scatter_shape,
    vjp=(_scatter_update_operand, _scatter_update_cotangent, INDEX), jvp=LINEAR,
    batch=OfOp(_scatter_batch), reference=_scatter_update_reference, numpy=numpy_text.scatter_update,
    keeps_zero=True, cheap=False,
)
