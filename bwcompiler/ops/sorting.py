"""Sorting, and integer functions that NumPy computes best itself: they have no derivative and are called as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler.errors import DTypeError
from bwcompiler.ir.extent import Extent
from bwcompiler.ir.op import LINEAR, Op, Value, define_op, not_differentiable
from bwcompiler.ir.types import I64, U8, DType, TensorType
from bwcompiler.ops.layout import require_axes
from bwcompiler.ops.rules import batch_elementwise, require_same


def _argsort_shape(x: TensorType, *, axis: int, kind: str | None) -> TensorType:
    require_axes("argsort", (axis,), x.rank)
    return x.with_dtype(I64)


def _argsort_batch(operands: Sequence[Value], batched: Any, size: Extent, *, axis: int, kind: str | None) -> Value:
    return argsort(operands[0], axis=axis + 1, kind=kind)


argsort: Op = define_op(
    "argsort", "library", doc="The positions along an axis in the order that sorts the elements; nan comes last.",
    attributes=("axis", "kind"), shape=_argsort_shape, vjp=not_differentiable("a position has no derivative"), jvp=LINEAR,
    batch=_argsort_batch, reference=np.argsort, cheap=False,
)


def _integer_function(name: str, reference: Callable[..., Any], doc: str, kinds: str = "iu", result: DType | None = None) -> Op:
    def shape(*types: TensorType) -> TensorType:
        type_ = require_same(name, *types)
        if type_.dtype.kind not in kinds:
            raise DTypeError(f"{name} does not take {type_.dtype.numpy}")
        return type_ if result is None else type_.with_dtype(result)

    return define_op(name, "library", doc=doc, attributes=(), shape=shape, jvp=LINEAR, batch=batch_elementwise(name),
                     vjp=not_differentiable("an integer operation has no derivative"), reference=reference, cheap=False)


gcd = _integer_function("gcd", np.gcd, "The greatest common divisor.")
lcm = _integer_function("lcm", np.lcm, "The least common multiple.")
bitwise_count = _integer_function("bitwise_count", np.bitwise_count, "The number of one bits of |x|.", result=U8)
integer_power = _integer_function("integer_power", np.power, "x to the power y; ValueError for a negative y.")
