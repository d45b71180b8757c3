"""Elements in the order of their size, found without sorting all others: order statistics, and partitions around some of them.

Elements are those of the last axis; the order is that of a stable sort, nan last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler.errors import DTypeError
from bwcompiler.ir.declaration import Into, not_differentiable
from bwcompiler.ir.op import Op, Value, define_op
from bwcompiler.ir.routine import Selection
from bwcompiler.ir.types import F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, TensorType
from bwcompiler.ops.broadcasting import LEADING_AXES
from bwcompiler.ops.creation import full, iota
from bwcompiler.ops.indexing.elements import gather, scatter_add
from bwcompiler.ops.layout import concatenate, transpose
from bwcompiler.ops.rules import Extents, require

SELECTED_DTYPES = (F32, F64, I8, I16, I32, I64, U8, U16, U32, U64)         # that native code compares


def along_last_axis(positions: Value) -> list[Value]:
    """Index arrays, one per axis, for positions along the last one."""
    return [*[iota(shape=positions.shape, axis=k, dtype=I64) for k in range(positions.rank - 1)], positions]


def _require_lanes(name: str, x: TensorType, *others: TensorType) -> None:
    if x.dtype not in SELECTED_DTYPES:
        raise DTypeError(f"{name} does not take {x.dtype.numpy}")
    require(x.rank > 0 and x.shape[-1] != 0, f"{name} takes at least one element", x)
    for other in others:
        require(other.rank == x.rank and other.shape[:-1] == x.shape[:-1], f"{name}: leading axes must be equal", x, other)


# ----- elements at places of the sorted array
def _statistics_shape(x: TensorType, places: TensorType) -> TensorType:
    _require_lanes("order_statistics", x, places)
    if places.dtype is not I64:
        raise DTypeError(f"order_statistics takes int64 places, got {places.dtype.numpy}")
    return x.with_shape(places.shape)


def order_statistics_reference(x: Any, places: Any) -> Any:
    """The elements at the places of the sorted last axis."""
    return np.take_along_axis(np.sort(x, -1), np.clip(places, 0, np.shape(x)[-1] - 1), -1)


def _positions_shape(x: TensorType, elements: TensorType, places: TensorType) -> TensorType:
    _require_lanes("order_positions", x, elements, places)
    require(elements.shape == places.shape, "order_positions: one place per element", elements, places)
    if elements.dtype is not x.dtype or places.dtype is not I64:
        raise DTypeError(f"order_positions takes elements of one dtype, and int64 places, got {x.dtype}, {elements.dtype}, {places.dtype}")
    return places


def order_positions_reference(x: Any, elements: Any, places: Any) -> Any:
    """The positions of the elements at the places of the sorted last axis, equal ones in their order."""
    return np.take_along_axis(np.argsort(x, -1, kind="stable"), np.clip(places, 0, np.shape(x)[-1] - 1), -1)


order_positions: Op = define_op(
    "order_positions", "library", doc="The positions of given elements, which are those at some places of the sorted last axis; equal ones "
    "are in their order.", attributes=(), shape=_positions_shape, vjp=not_differentiable("a position has no derivative"),
    batch=LEADING_AXES, reference=order_positions_reference, kinds="fiu", cheap=False, library=Selection("the positions of elements"),
)


def _statistics_vjp(acc: Value, ct: Value, out: Value, x: Value, places: Value) -> Value:
    return scatter_add(acc, ct, *along_last_axis(order_positions(x, out, places)), axes=tuple(range(x.rank)))


def _statistics_jvp(tangents: Sequence[Value | None], out: Value, x: Value, places: Value) -> Value | None:
    return None if tangents[0] is None else gather(
        tangents[0], *along_last_axis(order_positions(x, out, places)), axes=tuple(range(x.rank)))


order_statistics: Op = define_op(
    "order_statistics", "library", doc="The elements that would be at some places of the sorted last axis; nan is last.  Cotangents go "
    "back to where the elements came from, for equal ones in their order.", attributes=(), shape=_statistics_shape,
    vjp=(Into(_statistics_vjp), not_differentiable("a place has no derivative")), jvp=_statistics_jvp, batch=LEADING_AXES,
    reference=order_statistics_reference, kinds="fiu", keeps_zero=True, cheap=False, library=Selection("selection of elements"),
)


# ----- all elements, around those at some places
def _argpartition_shape(x: TensorType, elements: TensorType) -> TensorType:
    _require_lanes("argpartition", x, elements)
    if elements.dtype is not x.dtype:
        raise DTypeError(f"argpartition takes elements of {x.dtype.numpy}, got {elements.dtype.numpy}")
    return x.with_dtype(I64)


def argpartition_reference(x: Any, elements: Any) -> Any:
    """Positions: of elements below the first of `elements`, of those equal to it, of those between it and the next, ..., each in order."""
    parts = np.zeros(np.shape(x), np.int64)
    for k in range(np.shape(elements)[-1]):
        one = elements[..., k:k + 1]
        parts += np.greater_equal(x, one) | np.isnan(x)
        parts += np.greater(x, one) | (np.isnan(x) & ~np.isnan(one))
    return np.argsort(parts, -1, kind="stable")


argpartition: Op = define_op(
    "argpartition", "library", doc="The positions along the last axis of the elements below the first of `elements`, of those equal to "
    "it, of those between it and the next, and so on, each in order; nan is above all numbers.", attributes=(), shape=_argpartition_shape,
    vjp=not_differentiable("a position has no derivative"), batch=LEADING_AXES, reference=argpartition_reference, kinds="fiu", cheap=False,
    library=Selection("a distribution of positions"),
)


# ----- what uses these ops
LEAST_SELECTED = 600           # elements of an axis from which a selection takes less time than sorting it


def is_selected(x: TensorType, axis: int) -> bool:
    """Whether some elements along an axis are found sooner by selection."""
    extent = x.shape[axis]
    return x.dtype in SELECTED_DTYPES and isinstance(extent, int) and extent >= LEAST_SELECTED


def known_places(places: Sequence[int], lead: Extents) -> Value:
    """The same places in every lane."""
    columns = [full(value=place, shape=(*lead, 1), dtype=I64) for place in places]
    return columns[0] if len(columns) == 1 else concatenate(*columns, axis=len(lead))


def numbers_of(places: Value) -> list[int] | None:
    """The places of `known_places`; None for others."""
    columns = places.operands if places.op is concatenate else (places,)
    numbers = [column.attrs["value"] for column in columns if column.op is full and column.shape[-1] == 1]
    return numbers if len(numbers) == len(columns) else None


def swap_with_last(x: Value, axis: int) -> Value:
    """x with an axis and the last one exchanged."""
    if axis == x.rank - 1:
        return x
    order = list(range(x.rank))
    order[axis], order[-1] = order[-1], order[axis]
    return transpose(x, axes=tuple(order))
