"""Arrays of data-dependent length: np.arange(n), np.ones(n), np.linspace(a, b, n), where n is a count of selected elements.

They are allocated for an upper bound of n, which is derived from its computation (`most`), and are selections of their first n
elements; np.zeros((n, m)) is a grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import TracerIndexError, UnsupportedError
from bwcompiler.frontend.numpy.selected.lines import first, made
from bwcompiler.frontend.numpy.selected.packing import prefix, require
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.indexing.index_handle import IndexTracer
from bwcompiler.frontend.tracing.indexing.index_sides import outside
from bwcompiler.frontend.tracing.indexing.masked_selection import same_value
from bwcompiler.frontend.tracing.operands import as_tracer, known
from bwcompiler.frontend.tracing.refusals.demands import constant_number
from bwcompiler.frontend.tracing.storages.region import Region, open_region, read_contents
from bwcompiler.frontend.tracing.tracer import ScalarTracer, Tracer
from bwcompiler.ir.extent import lower, upper
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import BOOL, I64

_PARTS = (ops.slice, ops.reshape, ops.transpose, ops.broadcast, ops.flip, ops.gather, ops.cast)     # these move elements of operand 0


def is_count(x: Any) -> bool:
    """Whether it is a traced integer."""
    return isinstance(x, ScalarTracer) and not isinstance(x, IndexTracer) and x._type.dtype.is_integer and known(x) is x


def _room(count: Any, what: str = "") -> int:
    """The largest number that `count` can be."""
    most = largest(count)
    if most is None:
        raise TracerIndexError(f"a traced value as a size{what}: the number is not known while tracing, nor an upper bound of it\n"
                               "  hint: make it static (static_argnums), or np.minimum(n, 100), which is at most 100; what a mask selects "
                               "is at most as much as the mask has elements")
    return most


def largest(count: Any) -> int | None:
    """The largest number that a traced integer can be, and 0 if that is less; None if nothing is known of it."""
    high = _ends(value_of(count), open_region())[1]
    return None if high == inf else max(int(high), 0)


def settled(extent: Any) -> Any:
    """A size; the number of one that has no upper bound, where that can be had."""
    if not is_count(extent) or _ends(value_of(extent), open_region())[1] < inf:
        return extent
    number = constant_number(value_of(extent), is_size=True)
    return extent if number is None else int(number)


# ----- np.zeros, ones, empty, full
def filled_by_count(make: Callable[..., Any], shape: Any, *args: Any) -> Any:
    """make(shape, *args) for a shape with data-dependent extents; None if it has none."""
    given = list(shape) if isinstance(shape, tuple | list) else [shape]
    extents = list(map(settled, given))
    if any(one is not extent for one, extent in zip(given, extents, strict=True)):
        return make(tuple(extents), *args)
    places = [place for place, extent in enumerate(extents) if is_count(extent)]
    if not places:
        return None
    counts = {place: extents[place] for place in places}
    for place, count in counts.items():
        extents[place] = _room(count)
        require(count >= 0, ValueError("negative dimensions are not allowed"))
    array = make(tuple(extents), *args)
    return made(array, {place: first(array, place, count) for place, count in counts.items()})


def eye_by_count(make: Callable[..., Any], rows: Any, columns: Any, *args: Any) -> Any:
    """np.eye(rows, columns) of data-dependent extents; None if it has none."""
    counts = {place: extent for place, extent in enumerate(map(settled, (rows, columns))) if is_count(extent)}
    if not counts:
        return None
    array = make(*[_room(counts[place]) if place in counts else known(extent) for place, extent in enumerate((rows, columns))], *args)
    return made(array, {place: first(array, place, count) for place, count in counts.items()})


# ----- np.arange, np.linspace
def arange(*bounds: Any, dtype: Any = None) -> Any:
    """np.arange of integers, some of which are traced."""
    start, stop, step = (*bounds, 1)[:3] if len(bounds) > 1 else (0, *bounds, 1)
    start, stop, step = settled(start), settled(stop), known(step)
    if not isinstance(start, Tracer) and not isinstance(stop, Tracer):
        return np.arange(start, stop, step, dtype)  # type: ignore[call-overload]
    if not isinstance(step, int | np.integer) or isinstance(step, bool) or not all(_is_integer(bound) for bound in (start, stop)):
        raise UnsupportedError("np.arange of traced bounds: the bounds must be integers, and the step a known integer\n"
                               "  hint: start + step * np.arange(n)")
    if not step:
        raise ZeroDivisionError("division by zero")
    length, stride = stop - start if step > 0 else start - stop, abs(int(step))
    found = np.arange((_room(length, " (np.arange of a traced bound)") + stride - 1) // stride) * int(step)
    count = np.maximum((length + (stride - 1)) // stride, 0)
    return prefix(as_tracer(start + found).astype(dtype or np.int64), count, 0)


def linspace(start: Any, stop: Any, num: Any, endpoint: bool = True, retstep: bool = False, dtype: Any = None, axis: int = 0) -> Any:
    """np.linspace with a data-dependent number of elements."""
    num = settled(num)
    if not isinstance(num, Tracer):
        return np.linspace(start, stop, num, endpoint, retstep, dtype, axis)  # type: ignore[call-overload]
    if retstep or axis or np.ndim(start) or np.ndim(stop):
        raise UnsupportedError("np.linspace of a traced number of elements: with endpoint= and dtype=, between numbers")
    places = np.arange(_room(num))
    require(num >= 0, ValueError("Number of samples must be non-negative."))
    parts = num - 1 if endpoint else num
    found = places * ((stop - start) / np.maximum(parts, 1)) + start
    if endpoint:
        found = np.where(np.logical_and(places == parts, num > 1), stop, found)
    return prefix(as_tracer(found) if dtype is None else as_tracer(found).astype(dtype), num, 0)


# ----- np.repeat
def repeated(x: Any, counts: Any, axis: int) -> Any:
    """np.repeat(x, counts, axis) with traced counts: one for each element of the axis, or one for all."""
    if counts._type.dtype is not BOOL and not counts._type.dtype.is_integer:
        raise TypeError(f"Cannot cast array data from {counts.dtype!r} to dtype('int64') according to the rule 'safe'")
    length = x.shape[axis]
    if counts.size != 1 and counts.shape != (length,):
        raise ValueError(f"operands could not be broadcast together with shape {(length,)} {counts.shape}")
    counts = np.broadcast_to(np.ravel(counts), (length,)).astype(np.int64)
    low, high = _ends(value_of(counts), open_region())
    if high == inf:
        raise UnsupportedError("np.repeat with traced repeats: the number of results is not known while tracing, nor an upper bound of it\n"
                               "  hint: np.minimum(repeats, 100), of which each is at most 100; where their sum n is known: "
                               "x[np.searchsorted(np.cumsum(repeats), np.arange(n), side='right')]; for a sum, np.sum(x * repeats)")
    if low < 0:
        require(np.all(counts >= 0), ValueError("repeats may not contain negative values."))
    if not length or not high:
        return x[(slice(None),) * axis + (slice(0, 0),)]
    ends = np.cumsum(counts)
    places = np.minimum(np.searchsorted(ends, np.arange(length * int(high)), side="right"), length - 1)
    return prefix(np.take(x, places, axis), ends[-1], axis)


def _is_integer(x: Any) -> bool:
    return (isinstance(x, ScalarTracer) and x._type.dtype.is_integer) or (isinstance(x, int | np.integer) and not isinstance(x, bool))


# ----- bounds of integers
def _ends(value: Value, region: Region, depth: int = 24) -> tuple[float, float]:
    """A lower and an upper bound of an integer, or of the elements of an integer array."""
    value, region = outside(value, region)
    if value.dtype is BOOL:
        return 0, 1
    if not depth or value.dtype is not I64:        # of small dtypes, whose sums may overflow
        return -inf, inf
    if value.op is ops.full:
        return value.attrs["value"], value.attrs["value"]
    if value.op is ops.iota:
        return 0, upper(value.shape[value.attrs["axis"]]) - 1
    if value.op is ops.index_value:
        return lower(value.attrs["extent"]), upper(value.attrs["extent"])
    array = region.array_of(value)
    if array is not None and array.size:
        read_contents(array)
        return int(array.min()), int(array.max())
    if value.op in _PARTS:
        return _ends(value.operands[0], region, depth - 1)
    if value.op in _RULES:
        return _RULES[value.op](value, *[_ends(operand, region, depth - 1) for operand in value.operands])  # type: ignore[no-any-return]
    return -inf, inf


def _times(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    found = [0.0 if 0 in (x, y) else x * y for x in a for y in b]
    return min(found), max(found)


def _part(x: float, divisor: float) -> float:
    return x if math.isinf(x) else x // divisor


def _added_up(value: Value, ends: tuple[float, float], empty: bool) -> tuple[float, float]:
    """Bounds of sums of at most as many elements as an axis has."""
    count = math.prod([upper(extent) for extent in value.operands[0].shape])
    low, high = _times(ends, (count, count))
    return min(low, ends[0], 0 if empty else low), max(high, 0 if empty else ends[1])


def _chosen(value: Value, a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    """Bounds of a selection of two numbers; tighter if the condition compares them (minimum, maximum)."""
    test, x, y = value.operands
    turned = 1 if test.op in (ops.less, ops.less_equal) else -1 if test.op in (ops.greater, ops.greater_equal) else 0
    if turned and same_value(test.operands[0], y) and same_value(test.operands[1], x):
        x, y, turned = y, x, -turned
    compared = turned and same_value(test.operands[0], x) and same_value(test.operands[1], y)
    if not compared:
        return min(a[0], b[0]), max(a[1], b[1])
    return (min(a[0], b[0]), min(a[1], b[1])) if turned > 0 else (max(a[0], b[0]), max(a[1], b[1]))


_RULES: dict[Any, Any] = {
    ops.add: lambda value, a, b: (a[0] + b[0], a[1] + b[1]),
    ops.subtract: lambda value, a, b: (a[0] - b[1], a[1] - b[0]),
    ops.multiply: lambda value, a, b: _times(a, b),
    ops.negative: lambda value, a: (-a[1], -a[0]),
    ops.maximum: lambda value, a, b: (max(a[0], b[0]), max(a[1], b[1])),
    ops.minimum: lambda value, a, b: (min(a[0], b[0]), min(a[1], b[1])),
    ops.select: lambda value, _, a, b: _chosen(value, a, b),
    ops.floor_divide: lambda value, a, b: (-inf, inf) if b[0] != b[1] or b[0] <= 0 else (_part(a[0], b[0]), _part(a[1], b[0])),
    ops.sum: lambda value, a: _added_up(value, a, True),
    ops.argmax: lambda value, _: (0, upper(value.operands[0].shape[value.attrs["axes"][0]]) - 1),
    ops.argmin: lambda value, _: (0, upper(value.operands[0].shape[value.attrs["axes"][0]]) - 1),
    ops.cumsum: lambda value, a: _added_up(value, a, False),
}
