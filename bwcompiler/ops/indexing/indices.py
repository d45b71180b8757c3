"""Indices counted from the start of an axis, and the checks that make them safe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler.errors import DTypeError
from bwcompiler.ir import scalar as s
from bwcompiler.ir.declaration import not_differentiable
from bwcompiler.ir.extent import Extent
from bwcompiler.ir.op import Value, define_op
from bwcompiler.ir.types import BOOL, I64, U64, TensorType, tensor
from bwcompiler.ops.broadcasting import LEADING_AXES, broadcast
from bwcompiler.ops.reduction import reduce_max
from bwcompiler.ops.rules import At, Read, require

INDEX = not_differentiable("an index has no derivative")


# ----- normalize_index
def _normalize_shape(i: TensorType, *, extent: Extent) -> TensorType:
    if i.dtype is not I64:
        raise DTypeError(f"normalize_index takes int64 indices, got {i.dtype.numpy}")
    return i


def normalize_index_reference(i: Any, *, extent: int) -> Any:
    """Negative indices counted from the end; IndexError for those out of range."""
    i = np.asarray(i)
    wrong = np.extract((i < -extent) | (i >= extent), i)
    if wrong.size:
        raise IndexError(f"index {wrong[0]} is out of bounds for axis with size {extent}")
    return np.where(i < 0, i + extent, i)


def _wrapped(index: s.Scalar, extent: Extent) -> s.Scalar:
    return s.select(index < 0, index + s.index_value(extent), index)


normalize_index = define_op(
    "normalize_index", "index", doc="Indices in [-extent, extent) wrapped to [0, extent); IndexError for any other.",
    attributes=("extent",), kinds="i", shape=_normalize_shape, vjp=INDEX, batch=LEADING_AXES,
    reference=normalize_index_reference, element=lambda at, i, *, extent: _wrapped(i(*at), extent),
)

# The same in two parts, for native code (`passes/rewriting/defer_checks.py`): one that never fails, and one that only checks.


def _from_start(index: s.Scalar, extent: Extent) -> s.Scalar:
    return s.cast(_wrapped(index, extent), U64)


def index_from_start_reference(i: Any, *, extent: int) -> Any:
    """Negative indices counted from the end, as unsigned numbers: indices out of range are at least the extent."""
    i = np.asarray(i)
    return np.where(i < 0, i + extent, i).astype(np.uint64)


index_from_start = define_op(
    "index_from_start", "index", doc="Indices in [-extent, extent) wrapped to [0, extent); a number >= extent for any other.",
    attributes=("extent",), kinds="i", shape=lambda i, *, extent: tensor(U64, _normalize_shape(i, extent=extent).shape), vjp=INDEX,
    batch=LEADING_AXES,
    reference=index_from_start_reference, element=lambda at, i, *, extent: _from_start(i(*at), extent),
)


def wrap_index_reference(i: Any, *, extent: int) -> Any:
    """Negative indices counted from the end; the last index for those that are out of range."""
    return np.minimum(index_from_start_reference(i, extent=extent), np.uint64(extent - 1)).astype(np.int64)


def _wrap_element(at: At, i: Read, *, extent: int) -> s.Scalar:
    return s.cast(s.operation("minimum", _from_start(i(*at), extent), s.cast(s.index_value(extent - 1), U64)), I64)


wrap_index = define_op(
    "wrap_index", "index", doc="Indices in [-extent, extent) wrapped to [0, extent); the last index for any other.",
    attributes=("extent",), kinds="i", shape=_normalize_shape, vjp=INDEX,
    batch=LEADING_AXES,
    reference=wrap_index_reference, element=_wrap_element,
)


def _check_range_shape(largest: TensorType, *, extent: int) -> TensorType:
    require(largest == tensor(U64), "check_range takes a number, uint64", largest)
    return tensor(BOOL)


def _check_range_batch(operands: Sequence[Value], batched: Sequence[bool], size: Extent, *, extent: int) -> Value:
    return broadcast(check_range(reduce_max(operands[0], axes=(0,)), extent=extent), shape=(size,), axes=())


def check_range_reference(largest: Any, *, extent: int) -> Any:
    """True; IndexError if the number is no less than the extent."""
    found = int(np.asarray(largest).astype(np.int64))
    normalize_index_reference(np.asarray(found - extent if found < 0 else found), extent=extent)
    return np.asarray(True)


check_range = define_op(
    "check_range", "check", doc="IndexError unless the largest of some indices, as index_from_start gives them, is below the extent.",
    attributes=("extent",), kinds="u", shape=_check_range_shape, vjp=INDEX, batch=_check_range_batch,
    reference=check_range_reference, pure=False,
)
