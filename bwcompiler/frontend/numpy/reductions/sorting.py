"""Sorting: np.sort, argsort, partition, lexsort.  Order statistics are in `quantiles.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.numpy.axes import normalize_axis
from bwcompiler.frontend.numpy.manipulation.indexing import gather
from bwcompiler.frontend.tracing.handles import assign, value_of
from bwcompiler.frontend.tracing.operands import cast, is_traced, reshape, value_as
from bwcompiler.frontend.tracing.registry import HANDLERS, implements, refuse_options
from bwcompiler.frontend.tracing.tracer import Tracer, fresh
from bwcompiler.ir.extent import exact_count
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import C64, C128, I64
from bwcompiler.ops.ordering.order_statistics import is_selected, known_places, swap_with_last

NOTHING = np._NoValue
_MOST_PLACES = 4               # of a partition by selection


def _kind(kind: Any, stable: Any) -> str | None:
    if kind is not None and str(kind)[:1].lower() not in ("q", "h", "m", "s"):
        raise ValueError(f"sort kind must be one of 'quick', 'heap', or 'stable' (got {kind!r})")
    return "stable" if stable not in (None, NOTHING, False) else kind


def _positions(x: Value, axis: int, kind: str | None) -> Value:
    return ops.argsort(x, axis=axis, kind=kind)


def at_positions(x: Value, positions: Value, axis: int) -> Value:
    """np.take_along_axis for positions in range."""
    counters = [positions if k == axis else ops.iota(shape=positions.shape, axis=k, dtype=I64) for k in range(x.rank)]
    return gather(x, counters, tuple(range(x.rank)))


def sorted_value(x: Value, axis: int, kind: str | None = None) -> Value:
    """x sorted along an axis; cotangents go back to the original positions."""
    return ops.sort(x, axis=axis, kind=kind)


def _line(a: Any, axis: Any) -> tuple[Value, int]:
    """The operand and the axis; axis=None flattens."""
    x = value_as(a)
    if axis is None:
        return reshape(x, (exact_count(x.shape),)), 0
    return x, normalize_axis(axis, x.rank)


@implements(np.sort)
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    refuse_options("np.sort", order=(order, None))
    x, place = _line(a, axis)
    return fresh(sorted_value(x, place, _kind(kind, stable)))


@implements(np.argsort)
def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    refuse_options("np.argsort", order=(order, None))
    x = value_as(a)
    x, place = _line(fresh(x if x.rank else reshape(x, (1,))), axis)
    return fresh(_positions(x, place, _kind(kind, stable)))


@implements(np.sort_complex)
def sort_complex(a: Any) -> Any:
    """Sorted along the last axis, and complex: integers of at most 16 bits as complex64, all else as complex128."""
    x = value_as(sort(a))
    return fresh(x if x.dtype.is_complex else cast(x, C64 if x.dtype.is_integer and x.dtype.itemsize < 4 else C128))


@implements(np.partition)
def partition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Any:
    """A few elements are sorted completely, which is one of the valid results of np.partition."""
    refuse_options("np.partition", order=(order, None))
    places = _places(a, kth, axis, "partition")
    x, place = _line(a, axis)
    return fresh(_partitioned(x, place, places))


@implements(np.argpartition)
def argpartition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Any:
    refuse_options("np.argpartition", order=(order, None))
    places = _places(a, kth, axis, "argpartition")
    x, place = _line(a, axis)
    if not _is_selected(x, place, places):
        return argsort(a, axis)
    return fresh(swap_with_last(_around(swap_with_last(x, place), places), place))


def _places(a: Any, kth: Any, axis: Any, name: str) -> list[int]:
    """The places, in order."""
    require_known(kth, name, "kth")
    x, place = _line(a, axis)
    extent = x.shape[place]
    for position in np.ravel(kth):
        if extent and not -extent <= position < extent:
            raise ValueError(f"kth(={position}) out of bounds ({extent})")
    return sorted({int(position) % extent for position in np.ravel(kth)}) if extent else []


def _is_selected(x: Value, axis: int, places: list[int]) -> bool:
    return 0 < len(places) <= _MOST_PLACES and is_selected(x.type, axis)


def _around(x: Value, places: list[int]) -> Value:
    """Positions along the last axis that put the elements around those at the places."""
    return ops.argpartition(x, ops.order_statistics(x, known_places(places, x.shape[:-1])))


def _partitioned(x: Value, axis: int, places: list[int]) -> Value:
    """x partitioned along an axis; cotangents go back to the original positions."""
    if not _is_selected(x, axis, places):
        return sorted_value(x, axis)
    lanes = swap_with_last(x, axis)
    return swap_with_last(at_positions(lanes, _around(lanes, places), lanes.rank - 1), axis)


def require_known(value: Any, name: str, argument: str) -> None:
    if is_traced(value):
        raise UnsupportedError(f"np.{name}: a traced {argument} is not supported\n  hint: make it static (static_argnums)")


def sort_method(x: Tracer, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
    """x.sort(): in place."""
    refuse_options("np.ndarray.sort", order=(order, None))
    assign(x, sorted_value(value_of(x), normalize_axis(axis, x.ndim), _kind(kind, stable)))


def partition_method(x: Tracer, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> None:
    """x.partition(kth): in place."""
    refuse_options("np.ndarray.partition", order=(order, None))
    places = _places(x, kth, axis, "partition")
    assign(x, _partitioned(value_of(x), normalize_axis(axis, x.ndim), places))


@implements(np.lexsort)
def lexsort(keys: Any, axis: Any = -1) -> Any:
    columns = [value_as(key) for key in keys]
    if len({column.shape for column in columns}) > 1:
        raise ValueError("all keys need to be the same shape")
    place = normalize_axis(axis, columns[0].rank)
    found: Value | None = None
    for column in columns:                                        # the last key is primary: stable sorts, primary key last
        ordered = column if found is None else at_positions(column, found, place)
        positions = _positions(ordered, place, "stable")
        found = positions if found is None else at_positions(found, positions, place)
    if found is None:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    return fresh(found)


HANDLERS.update(sort_method=sort_method, partition_method=partition_method)
