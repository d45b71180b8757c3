"""Ops without operands: constants and counters."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler.ir import scalar as s
from bwcompiler.ir.extent import Extent
from bwcompiler.ir.op import Value, define_op
from bwcompiler.ir.types import I64, DType, TensorType, tensor
from bwcompiler.ops import numpy_text
from bwcompiler.ops.rules import as_scalar, zero_of


def _full_element(at: tuple[Any, ...], *, value: Any, shape: Any, dtype: DType) -> s.Scalar:
    return s.const(value, dtype)


def _full_batch(operands: Any, batched: Any, size: Extent, **attrs: Any) -> Value:
    raise AssertionError("full has no operands to batch")


full = define_op(
    "full", "constant", doc="An array filled with one scalar.", attributes=("value", "shape", "dtype"),
    shape=lambda *, value, shape, dtype: tensor(dtype, shape), vjp=(), batch=_full_batch,
    reference=lambda *, value, shape, dtype: np.full(shape, value, dtype.numpy), numpy=numpy_text.full,
    element=_full_element, virtual=True, uniform=True,
)


unset = define_op(
    "unset", "constant", doc="An array whose elements are written before they are read: zeros; uninitialised if a native loop carries it.",
    attributes=("shape", "dtype"), shape=lambda *, shape, dtype: tensor(dtype, shape), vjp=(), batch=_full_batch,
    reference=lambda *, shape, dtype: np.zeros(shape, dtype.numpy), numpy=numpy_text.unset,
    element=lambda at, *, shape, dtype: s.const(zero_of(dtype), dtype), virtual=True, uniform=True,
)


def _iota_element(at: tuple[Any, ...], *, shape: Any, axis: int, dtype: DType) -> s.Scalar:
    return s.cast(as_scalar(at[axis]), dtype)


def _iota_reference(*, shape: tuple[int, ...], axis: int, dtype: DType) -> Any:
    line = np.arange(shape[axis], dtype=dtype.numpy).reshape([-1 if k == axis else 1 for k in range(len(shape))])
    return np.broadcast_to(line, shape)


def _iota_shape(*, shape: tuple[Extent, ...], axis: int, dtype: DType = I64) -> TensorType:
    return tensor(dtype, shape)


iota = define_op(
    "iota", "constant", doc="The position along one axis.", attributes=("shape", "axis", "dtype"), shape=_iota_shape,
    vjp=(), batch=_full_batch, reference=_iota_reference, numpy=numpy_text.iota, element=_iota_element, virtual=True,
)
