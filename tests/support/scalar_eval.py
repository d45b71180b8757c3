"""A slow evaluator of scalar expressions, and of element rules at every index of their result.

It defines what the expressions of `bwcompiler.ir.scalar` mean: a select evaluates only the branch it chooses (the reads
of the other one may be out of range), and every read that is evaluated must be in range.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bwcompiler.ir import scalar as s
from bwcompiler.ir.extent import Extent, Index, evaluate
from bwcompiler.ir.op import REGISTRY, Op
from bwcompiler.ir.types import DType, TensorType, dtype_of


@dataclass(frozen=True)
class ArrayRead:
    """Operand number `position` of an element rule."""

    position: int
    array: Any

    @property
    def shape(self) -> tuple[Extent, ...]:
        return self.array.shape

    @property
    def dtype(self) -> DType:
        return dtype_of(self.array.dtype)

    def __call__(self, *index: s.IndexExpression) -> s.Scalar:
        assert len(index) == self.array.ndim, f"operand {self.position} read with {len(index)} indices"
        return s.read(self.position, self.dtype, index)


def evaluate_scalar(root: s.Scalar, environment: Mapping[Index, int], arrays: Sequence[Any]) -> Any:
    """The value of an expression whose reads are of `arrays`, under loop indices that have these values."""
    known: dict[int, Any] = {}

    def position(index: s.IndexExpression) -> int:
        return int(value(index)) if isinstance(index, s.Scalar) else evaluate(index, environment)

    def value(scalar: s.Scalar) -> Any:
        if id(scalar) not in known:
            found = compute(scalar)
            dtype = np.asarray(found).dtype
            assert dtype == scalar.dtype.numpy, f"{scalar.op} gave {dtype}: {scalar}"
            known[id(scalar)] = found
        return known[id(scalar)]

    def compute(scalar: s.Scalar) -> Any:
        match scalar.op:
            case "const":
                return scalar.dtype.numpy.type(scalar.data)
            case "index":
                return np.int64(evaluate(scalar.data, environment))
            case "in_range":
                at, low, high = (evaluate(extent, environment) for extent in scalar.data)
                return np.bool_(low <= at < high)
            case "select":
                condition, x, y = scalar.args
                return value(x) if value(condition) else value(y)
            case "cast":
                return REGISTRY["cast"].reference(value(scalar.args[0]), dtype=scalar.dtype)[()]
            case "read":
                array, index = arrays[scalar.data[0]], tuple(map(position, scalar.data[1]))
                inside = all(0 <= k < extent for k, extent in zip(index, array.shape, strict=True))
                assert inside, f"element {index} of an array of shape {array.shape} is read"
                return array[index]
        function = s.OPERATIONS.get(scalar.op) or REGISTRY[scalar.op].reference
        return np.asarray(function(*map(value, scalar.args)))[()]

    with np.errstate(all="ignore"):
        return value(root)


def affine_position(index: Index) -> s.IndexExpression:
    return index.extent()


def scalar_position(index: Index) -> s.IndexExpression:
    return s.index_value(index.extent())


def evaluate_element(op: Op, arrays: Sequence[Any], attrs: Mapping[str, Any], type_: TensorType,
                     position: Callable[[Index], s.IndexExpression] = affine_position) -> Any:
    """The result of an op by its element rule, applied once to symbolic indices and evaluated for all their values."""
    assert op.element is not None
    indices = [Index(0, max(extent - 1, 0)) for extent in type_.shape]
    reads = [ArrayRead(number, array) for number, array in enumerate(arrays)]
    root = op.element(tuple(map(position, indices)), *reads, **attrs)
    result = np.empty(type_.shape, type_.dtype.numpy)
    for at in np.ndindex(result.shape):
        result[at] = evaluate_scalar(root, dict(zip(indices, at, strict=True)), arrays)
    return result
