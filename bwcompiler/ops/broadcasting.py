"""broadcast and sum, which are each other's transposes; and helpers for all families: batching rules, declaration of reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler.errors import DTypeError
from bwcompiler.ir.declaration import LINEAR, OfOp
from bwcompiler.ir.extent import Extent, known_le
from bwcompiler.ir.op import Op, Value, Vjp, define_op
from bwcompiler.ir.types import TensorType
from bwcompiler.ops import numpy_text
from bwcompiler.ops.rules import Axes, Extents, other_axes, require, require_axes, shifted


# ----- broadcast
def _broadcast_shape(x: TensorType, *, shape: Extents, axes: Axes) -> TensorType:
    require(len(axes) == x.rank, f"broadcast: axes {axes} must name one result axis per operand axis", x)
    require_axes("broadcast", axes, len(shape))
    for extent, axis in zip(x.shape, axes, strict=True):
        require(extent == shape[axis], f"broadcast: axis {axis} of the result {shape} does not have extent {extent}", x)
    return x.with_shape(shape)


def _broadcast_vjp(ct: Value, out: Value, x: Value, *, shape: Extents, axes: Axes) -> Value:
    new = other_axes(len(shape), axes)
    return reduce_sum(ct, axes=new) if new else ct


def _broadcast_batch(operands: Sequence[Value], batched: Any, size: Extent, *, shape: Extents, axes: Axes) -> Value:
    return broadcast(operands[0], shape=(size, *shape), axes=(0, *shifted(axes)))


def _broadcast_reference(x: Any, *, shape: tuple[int, ...], axes: Axes) -> Any:
    x = np.asarray(x)
    return np.broadcast_to(x.reshape([x.shape[axes.index(k)] if k in axes else 1 for k in range(len(shape))]), shape)


broadcast: Op = define_op(
    "broadcast", "layout", doc="Axis k of x becomes axis axes[k] of the result; x is repeated along the others.",
    attributes=("shape", "axes"), shape=_broadcast_shape, vjp=(_broadcast_vjp,), jvp=LINEAR, batch=_broadcast_batch,
    reference=_broadcast_reference, numpy=numpy_text.broadcast,
    element=lambda at, x, *, shape, axes: x(*[at[axis] for axis in axes]), keeps_zero=True, virtual=True,
)


# ----- batching
def add_batch_axis(value: Value, size: Extent) -> Value:
    """value repeated along a new leading axis."""
    return broadcast(value, shape=(size, *value.shape), axes=tuple(range(1, value.rank + 1)))


def all_batched(operands: Sequence[Value], batched: Sequence[bool], size: Extent) -> list[Value]:
    """The operands, each with a leading batch axis."""
    return [operand if flag else add_batch_axis(operand, size)
            for operand, flag in zip(operands, batched, strict=True)]


def _over_leading_axes(op: Op) -> Callable[..., Value]:
    def batch(operands: Sequence[Value], batched: Sequence[bool], size: Extent, **attrs: Any) -> Value:
        return op(*all_batched(operands, batched, size), **attrs)
    return batch


# The batching rule of elementwise ops, and of ops that accept any leading axes with unchanged attributes.
LEADING_AXES = OfOp(_over_leading_axes)


def _told_of_leading_axes(op: Op) -> Callable[..., Value]:
    def rule(operands: Sequence[Value], batched: Sequence[bool], size: Extent, *, batch: Extents, **attrs: Any) -> Value:
        return op(*all_batched(operands, batched, size), batch=(size, *batch), **attrs)
    return rule


# Like LEADING_AXES, for ops whose attribute `batch` has the extents of the batch axes.
LEADING_AXES_TOLD = OfOp(_told_of_leading_axes)


def _over_shifted_axes(op: Op) -> Callable[..., Value]:
    def batch(operands: Sequence[Value], batched: Any, size: Extent, *, axes: Axes) -> Value:
        return op(operands[0], axes=shifted(axes))
    return batch


# The batching rule of an op with one operand and an attribute `axes` with the axes that it works along.
SHIFTED_AXES = OfOp(_over_shifted_axes)


# ----- reductions, which remove the axes that they combine
def reduced_shape(name: str, kinds: str, has_identity: bool, x: TensorType, axes: Axes) -> tuple[Extent, ...]:
    """The shape of the result; raises if x cannot be reduced."""
    require_axes(name, axes, x.rank)
    if x.dtype.kind not in kinds:
        raise DTypeError(f"{name} does not take {x.dtype.numpy}")
    kept = tuple(x.shape[axis] for axis in other_axes(x.rank, axes))
    if not has_identity and 0 not in kept:
        require(all(known_le(1, x.shape[axis]) for axis in axes),
                f"zero-size array to reduction operation {name} which has no identity", x)
    return kept


def reduction(name: str, combine: str, vjp: Vjp, jvp: Any = None, *, doc: str, kinds: str, reference: Callable[..., Any],
              has_identity: bool = True, keeps_zero: bool = False) -> Op:
    """Declare a reduction whose result has the dtype of the operand."""
    return define_op(name, "reduction", doc=doc, attributes=("axes",), vjp=vjp, jvp=jvp, batch=SHIFTED_AXES,
                     reference=reference, numpy=numpy_text.reduction(f"np.{name}"),
                     shape=lambda x, *, axes: x.with_shape(reduced_shape(name, kinds, has_identity, x, axes)),
                     combine=combine, kinds=kinds, keeps_zero=keeps_zero, cheap=False)


def spread(value: Value, like: Value, axes: Axes) -> Value:
    """A reduced value repeated along the axes that were reduced."""
    return broadcast(value, shape=like.shape, axes=other_axes(like.rank, axes))


reduce_sum: Op = reduction(
    "sum", "add", (lambda ct, out, x, *, axes: spread(ct, x, axes),), LINEAR, doc="The sum over axes.", kinds="iufc",
    reference=lambda x, *, axes: np.sum(x, axis=axes, dtype=np.asarray(x).dtype), keeps_zero=True,
)
