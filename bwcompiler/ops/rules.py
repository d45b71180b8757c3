"""What declarations of ops share: shape checks, batching helpers, arithmetic on the indices of element rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from bwcompiler.errors import DTypeError, ShapeError
from bwcompiler.ir.extent import Extent, add_extents, scale_extent
from bwcompiler.ir.op import REGISTRY, Value
from bwcompiler.ir.scalar import IndexExpression, Scalar, guard, in_range, index_value
from bwcompiler.ir.types import DType, TensorType


class Read(Protocol):
    """An operand in an element rule: call it with an index for that element; it knows the operand's type."""

    @property
    def shape(self) -> tuple[Extent, ...]: ...
    @property
    def dtype(self) -> DType: ...
    def __call__(self, *index: IndexExpression) -> Scalar: ...


def require(condition: bool, message: str, *types: TensorType) -> None:
    """Raise ShapeError with the operand types unless condition holds."""
    if not condition:
        raise ShapeError(f"{message} (operands: {', '.join(map(str, types))})" if types else message)


def require_same(name: str, *types: TensorType) -> TensorType:
    """The one type of all operands."""
    first = types[0]
    for other in types:
        if other.dtype is not first.dtype:
            raise DTypeError(f"{name}: operands must have one dtype, got {', '.join(str(t.dtype) for t in types)}")
        require(other.shape == first.shape, f"{name}: operands must have one shape", *types)
    return first


def add_batch_axis(value: Value, size: Extent) -> Value:
    """value repeated along a new leading axis."""
    return REGISTRY["broadcast"](value, shape=(size, *value.shape), axes=tuple(range(1, value.rank + 1)))


def all_batched(operands: Sequence[Value], batched: Sequence[bool], size: Extent) -> list[Value]:
    """The operands, each with a leading batch axis."""
    return [operand if flag else add_batch_axis(operand, size)
            for operand, flag in zip(operands, batched, strict=True)]


def batch_elementwise(name: str) -> Any:
    """Batching rule of an op that works element by element, or over any leading axes with the same attributes."""
    def rule(operands: Sequence[Value], batched: Sequence[bool], size: Extent, **attrs: Any) -> Value:
        return REGISTRY[name](*all_batched(operands, batched, size), **attrs)
    return rule


def affine_index(start: Extent, step: int, position: IndexExpression) -> IndexExpression:
    """start + step * position, for an index that is an extent or an integer scalar."""
    if isinstance(position, Scalar):
        scaled = position if step == 1 else position * step
        return scaled if start == 0 else scaled + index_value(start)
    return add_extents(start, scale_extent(position, step))


def add_indices(a: IndexExpression, b: IndexExpression) -> IndexExpression:
    """a + b."""
    if isinstance(a, Scalar) or isinstance(b, Scalar):
        return as_scalar(a) + as_scalar(b)
    return add_extents(a, b)


def as_scalar(position: IndexExpression) -> Scalar:
    """An index as an i64 scalar."""
    return position if isinstance(position, Scalar) else index_value(position)


def within(position: IndexExpression, low: Extent, high: Extent) -> Scalar:
    """low <= position < high; a splittable guard where the position is affine."""
    if not isinstance(position, Scalar):
        return in_range(position, low, high)
    return (position >= index_value(low)) & (position < index_value(high))


def guarded(conditions: Sequence[Scalar], value: Callable[[], Scalar], otherwise: Callable[[], Scalar]) -> Scalar:
    """value where all conditions hold, else otherwise.

    The reads of `value` are in range only where the conditions hold: a select is lazy in its branches, and the
    conditions are nested, so that lowering can split one loop per condition.
    """
    if not conditions:
        return value()
    result, fallback = value(), otherwise()
    for condition in reversed(conditions):
        result = guard(condition, result, fallback)
    return result
