"""Helpers of op declarations that need no ops: shape checks, axes, arithmetic on the indices of element rules.

Families import the ops of lower families, in this order: creation, broadcasting, elementwise and layout, then all others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NoReturn, Protocol

from bwcompiler.errors import DTypeError, ShapeError
from bwcompiler.ir.extent import Extent, add_extents, scale_extent
from bwcompiler.ir.scalar import IndexExpression, Scalar, guard, in_range, index_value
from bwcompiler.ir.types import DType, TensorType

Axes = tuple[int, ...]
Extents = tuple[Extent, ...]
At = tuple[IndexExpression, ...]


class Read(Protocol):
    """An operand in an element rule: called with an index it returns that element; it has the operand's shape and dtype."""

    @property
    def shape(self) -> tuple[Extent, ...]: ...
    @property
    def dtype(self) -> DType: ...
    def __call__(self, *index: IndexExpression) -> Scalar: ...


def require(condition: bool, message: str, *types: TensorType) -> None:
    """Raise ShapeError with the operand types unless condition holds."""
    if not condition:
        refuse(message, *types)


def refuse(message: str, *types: TensorType) -> NoReturn:
    """Raise ShapeError with the operand types: for rules whose message takes longer than the condition."""
    raise ShapeError(f"{message} (operands: {', '.join(map(str, types))})" if types else message)


def require_same(name: str, *types: TensorType) -> TensorType:
    """The one type of all operands."""
    first = types[0]
    for other in types:
        if other.dtype is not first.dtype:
            raise DTypeError(f"{name}: operands must have one dtype, got {', '.join(str(t.dtype) for t in types)}")
        require(other.shape == first.shape, f"{name}: operands must have one shape", *types)
    return first


def other_axes(rank: int, axes: Axes) -> Axes:
    """The axes of an array of this rank that are not among `axes`."""
    return tuple(axis for axis in range(rank) if axis not in axes)


def shifted(axes: Axes) -> Axes:
    """The same axes after a new leading axis."""
    return tuple(axis + 1 for axis in axes)


def zero_of(dtype: DType) -> Any:
    """The Python scalar 0 of a dtype."""
    return {"b": False, "f": 0.0, "c": 0.0}.get(dtype.kind, 0)


def require_axes(name: str, axes: Axes, rank: int) -> None:
    """Raise ShapeError unless axes are distinct, sorted and exist in an array of this rank."""
    valid = all(0 <= axis < rank for axis in axes) and all(a < b for a, b in pairwise(axes))
    require(valid, f"{name}: axes {axes} must be sorted, distinct and below the rank {rank}")


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
    """low <= position < high; a guard at which loops can be split, if the position is affine."""
    if not isinstance(position, Scalar):
        return in_range(position, low, high)
    return (position >= index_value(low)) & (position < index_value(high))


def guarded(conditions: Sequence[Scalar], value: Callable[[], Scalar], otherwise: Callable[[], Scalar]) -> Scalar:
    """value where all conditions hold, else otherwise.

    The reads of `value` are in range only if the conditions hold: the branches of a select are lazy, and the
    conditions are nested, so that lowering can split one loop per condition.
    """
    if not conditions:
        return value()
    result, fallback = value(), otherwise()
    for condition in reversed(conditions):
        result = guard(condition, result, fallback)
    return result
