"""Searching and counting: np.searchsorted, digitize, interp, bincount, histograms, isin."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import ShapeError, UnsupportedError
from bwcompiler.frontend.numpy.manipulation.indexing import gather
from bwcompiler.frontend.numpy.reductions.reductions import reduce_value
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.operands import as_tracer, cast, constant, filled, is_traced, kind_of, last_axis_element, reshape, value_as
from bwcompiler.frontend.tracing.promotion import common_dtype, requested
from bwcompiler.frontend.tracing.registry import HANDLERS, implements
from bwcompiler.frontend.tracing.storages.region import read_contents
from bwcompiler.frontend.tracing.storages.views import broadcast_value
from bwcompiler.frontend.tracing.tracer import Tracer, fresh, fresh_array
from bwcompiler.ir.extent import exact_count
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import C128, F64, I64, DType


def search(a: Value, v: Value, right: bool) -> Value:
    """The number of elements of the sorted a that are less than v (right: or equal), by binary search; nan is largest."""
    count = a.shape[0]
    found = filled(0, I64, v.shape)
    if not count:
        return found
    step = 1 << (count.bit_length() - 1)
    while step:
        candidate = ops.add(found, filled(step, I64, v.shape))
        probe = gather(a, [ops.subtract(ops.minimum(candidate, filled(count, I64, v.shape)), filled(1, I64, v.shape))], (0,))
        before = ops.less_equal(probe, v) if right else ops.less(probe, v)
        if v.dtype.is_float:
            past = ops.isnan(v)
            before = ops.bitwise_or(before, past if right else ops.bitwise_and(past, ops.invert(ops.isnan(probe))))
        inside = ops.less_equal(candidate, filled(count, I64, v.shape))
        found = ops.select(ops.bitwise_and(before, inside), candidate, found)
        step //= 2
    return found


def _common(a: Any, v: Any) -> tuple[Value, Value]:
    x, y = value_as(a), value_as(v)
    dtype = requested(np.result_type(x.dtype.numpy, y.dtype.numpy))
    assert dtype is not None
    return cast(x, dtype), cast(y, dtype)


@implements(np.searchsorted)
def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    x, y = _common(a, v)
    if x.rank != 1:
        raise ShapeError(f"np.searchsorted: the sorted array must have 1 axis, got shape {x.shape}")
    if sorter is not None:
        x = value_as(np.take(fresh(x), sorter))
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got '{side}')")
    return fresh(search(x, y, side == "right"))


@implements(np.digitize)
def digitize(x: Any, bins: Any, right: Any = False) -> Any:
    if value_as(x).dtype.is_complex:
        raise TypeError("x may not be complex")
    if is_traced(bins):
        return _digitized_by_data(x, as_tracer(bins), "left" if right else "right")
    edges = np.asarray(bins)
    read_contents(edges)
    steps = np.diff(edges)
    if not ((steps >= 0).all() or (steps <= 0).all()):
        raise ValueError("bins must be monotonically increasing or decreasing")
    if (steps >= 0).all():
        return searchsorted(edges, x, "left" if right else "right")
    return len(edges) - searchsorted(edges[::-1], x, "left" if right else "right")


def _digitized_by_data(x: Any, bins: Any, side: str) -> Any:
    """Traced bins, which may increase or decrease depending on data."""
    if bins.ndim != 1:
        raise ValueError("object too deep for desired array" if bins.ndim else "object of too small depth for desired array")
    steps = bins[1:] - bins[:-1]
    increasing = np.all(steps >= 0)
    HANDLERS["raise_where"](np.logical_not(increasing | np.all(steps <= 0)), ValueError(
        "bins must be monotonically increasing or decreasing"))
    return np.where(increasing, searchsorted(bins, x, side), len(bins) - searchsorted(bins[::-1], x, side))[()]


@implements(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    if period is not None:
        return _periodic_interp(x, xp, fp, period)
    at, knots = (cast(value_as(item), F64) for item in (x, xp))
    heights = value_as(fp)
    heights = cast(heights, C128 if heights.dtype.is_complex else F64)
    count = knots.shape[0]
    if knots.rank != 1 or heights.shape != knots.shape or not count:
        raise ValueError("fp and xp are not of the same length.")
    first, last = (broadcast_value(last_axis_element(heights, k), at.shape) for k in (0, count - 1))
    below = first if left is None else broadcast_value(value_as(left, heights.dtype), at.shape)
    above = last if right is None else broadcast_value(value_as(right, heights.dtype), at.shape)
    start, end = (broadcast_value(last_axis_element(knots, k), at.shape) for k in (0, count - 1))
    inside = last
    if count > 1:
        limit = filled(count - 1, I64, at.shape)
        one = filled(1, I64, at.shape)
        upper = ops.minimum(ops.maximum(search(knots, at, True), one), limit)
        lower = ops.subtract(upper, one)
        x0, x1, y0, y1 = (gather(line, [index], (0,)) for line in (knots, heights) for index in (lower, upper))
        slope = ops.divide(ops.subtract(y1, y0), cast(ops.subtract(x1, x0), heights.dtype))
        inside, other = (ops.add(ops.multiply(slope, cast(ops.subtract(at, knot), heights.dtype)), height)
                         for knot, height in ((x0, y0), (x1, y1)))
        if not heights.dtype.is_complex:           # next to an infinite height, as in NumPy: from the other side, or the height itself
            level = ops.bitwise_or(ops.equal(at, x0), ops.bitwise_and(ops.isnan(other), ops.equal(y0, y1)))
            inside = ops.select(ops.isnan(inside), ops.select(level, y0, other), inside)
        inside = ops.select(ops.equal(at, end), last, inside)
    found = ops.select(ops.less(at, start), below, ops.select(ops.greater(at, end), above, inside))
    return fresh(found if count == 1 else ops.select(ops.isnan(at), cast(at, heights.dtype), found))        # of one knot nan is at it


def _periodic_interp(x: Any, xp: Any, fp: Any, period: Any) -> Any:
    """As in NumPy: everything modulo the period, sorted, with one more point at each end."""
    if not isinstance(period, Tracer) and period == 0:
        raise ValueError("period must be a non-zero value")
    length: Any = abs(fresh(cast(value_as(period), F64)))
    at, knots = (np.remainder(fresh(cast(value_as(item), F64)), length) for item in (x, xp))
    order = np.argsort(knots)
    values = value_as(fp)
    knots, heights = knots[order], fresh(cast(values, C128 if values.dtype.is_complex else F64))[order]
    knots = np.concatenate([knots[-1:] - length, knots, knots[:1] + length])
    return interp(at, knots, np.concatenate([heights[-1:], heights, heights[:1]]))


# ----- counting
@implements(np.bincount)
def bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> Any:
    if isinstance(x, Tracer):
        return _traced_bincount(x, weights, minlength)
    positions = np.asarray(x)
    read_contents(positions)
    size = max(int(positions.max(initial=-1)) + 1, int(minlength))
    zeros = filled(0.0, F64, (size,))
    return fresh(ops.scatter_add(zeros, cast(value_as(weights), F64), value_as(positions, I64), axes=(0,)))


def _traced_bincount(x: Tracer, weights: Any, minlength: Any) -> Any:
    """`minlength` counts; raises at run time if there is a larger number."""
    size = operator.index(minlength)
    if size < 0:
        raise ValueError("'minlength' must not be negative")
    if x.ndim != 1:
        raise ValueError(f"object {'too deep' if x.ndim else 'of too small depth'} for desired array")
    if size < 1:
        raise UnsupportedError("np.bincount of traced numbers: the number of results is not known while tracing\n"
                               "  hint: np.bincount(x, weights, minlength=n), where all numbers are less than n")
    if x._type.dtype.kind not in "iub" or x.dtype == np.uint64:
        raise TypeError(f"np.bincount takes one axis of integers, not {x.dtype} of shape {x.shape}")
    counted = filled(1, I64, x.shape) if weights is None else cast(value_as(weights), F64)
    if counted.shape != x.shape:
        raise ValueError("The weights and list don't have the same length.")
    positions: Any = fresh(value_as(x, I64))
    HANDLERS["raise_where"](np.any((positions < 0) | (positions >= size)), ValueError(
        f"np.bincount of traced numbers: the result has minlength={size} elements, but some numbers are negative or not less than that\n"
        "  hint: a larger minlength"))
    return fresh(ops.scatter_add(filled(0, counted.dtype, (size,)), counted, value_of(positions), axes=(0,)))


@implements(np.histogram)
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    x = value_as(a)
    flat = cast(reshape(x, (exact_count(x.shape),)), F64)
    if weights is not None and value_as(weights).shape != x.shape:
        raise ValueError("weights should have the same shape as a.")
    edges = _proper_edges(flat, bins, range, x.dtype)
    line = value_as(edges)
    place, inside = _bins(flat, cast(line, F64))
    given = filled(1, I64, flat.shape) if weights is None else reshape(value_as(weights), flat.shape)
    given = ops.select(inside, given, filled(0, given.dtype, given.shape))
    index = ops.select(inside, place, filled(0, I64, place.shape))
    counts: Any = fresh(ops.scatter_add(filled(0, given.dtype, (line.shape[0] - 1,)), given, index, axes=(0,)))
    if density:
        counts = counts / np.diff(edges) / counts.sum()
    return counts, edges


@implements(np.histogram_bin_edges)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    x = value_as(a)
    return _proper_edges(cast(reshape(x, (exact_count(x.shape),)), F64), bins, range, x.dtype)


@implements(np.histogram2d)
def histogram2d(x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    if len(x) != len(y):
        raise ValueError("x and y must have the same length.")
    given = bins if isinstance(bins, int | np.integer) or (isinstance(bins, list | tuple) and len(bins) == 2) else [bins, bins]
    counts, edges = histogramdd([x, y], given, range, density, weights)
    return counts, edges[0], edges[1]


@implements(np.histogramdd)
def histogramdd(sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    if isinstance(sample, list | tuple):
        columns = [fresh(value_as(one)) for one in sample]
    else:
        points: Any = np.atleast_2d(fresh(value_as(sample)))
        points = points.T if np.ndim(sample) == 1 else points
        columns = [points[:, k] for k in np.arange(points.shape[1])]
    rank, number = len(columns), columns[0].shape[0]
    each = [bins] * rank if isinstance(bins, int | np.integer) else list(bins)
    if len(each) != rank:
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    limits = [None] * rank if range is None else list(range)
    edges, places, inside = [], [], None
    dtype = common_dtype(tuple([value_as(column).dtype for column in columns]))
    dtype = dtype if dtype.is_float else F64
    for column, bin_, limit in zip(columns, each, limits, strict=True):
        flat = cast(value_as(column), F64)
        edge = _edges(flat, bin_, limit, dtype if limit is None else F64, value_as(column).dtype.is_float)
        place, within = _bins(flat, cast(value_as(edge), F64))
        edges.append(edge)
        places.append(place)
        inside = within if inside is None else ops.bitwise_and(inside, within)
    given = filled(1.0, F64, (number,)) if weights is None else cast(value_as(weights), F64)
    assert inside is not None
    counted = ops.select(inside, given, constant(0, given))
    shape = tuple([np.shape(edge)[0] - 1 for edge in edges])
    safe = [ops.select(inside, place, constant(0, place)) for place in places]
    counts: Any = fresh(ops.scatter_add(filled(0.0, F64, shape), counted, *safe, axes=tuple(np.arange(rank).tolist())))
    if density:
        total = counts.sum()
        for axis, edge in enumerate(edges):
            counts = counts / np.diff(edge).reshape([-1 if k == axis else 1 for k in np.arange(rank)])
        counts = counts / total
    return counts, tuple(edges)


def _bins(flat: Value, line: Value) -> tuple[Value, Value]:
    """The bin of every element, and whether it is in any; the last bin includes both edges."""
    count = line.shape[0] - 1
    last = filled(count, I64, flat.shape)
    at_end = ops.equal(flat, broadcast_value(last_axis_element(line, count), flat.shape))
    place = ops.select(at_end, last, search(line, flat, True))
    inside = ops.bitwise_and(ops.greater(place, filled(0, I64, place.shape)), ops.less_equal(place, last))
    return ops.subtract(place, filled(1, I64, place.shape)), inside


def _proper_edges(flat: Value, bins: Any, limits: Any, dtype: DType) -> Any:
    """The distinct edges of bins, in the common dtype of the elements and the limits."""
    common = dtype if limits is None else common_dtype((dtype, *map(kind_of, limits)))
    edges = _edges(flat, bins, limits, common if common.is_float else F64, dtype.is_float)
    if np.ndim(bins) == 0:
        _refuse(np.any(edges[:-1] >= edges[1:]), f"Too many bins for data range. Cannot create {bins} finite-sized bins.")
    return edges


def _edges(flat: Value, bins: Any, limits: Any, dtype: DType, holds_floats: bool) -> Any:
    """The edges of bins: given, or equidistant between limits or the least and greatest element."""
    if isinstance(bins, str):
        raise UnsupportedError(f"np.histogram: bins={bins!r} is not supported on traced arrays\n  hint: a number, or edges")
    if not isinstance(bins, int | np.integer):
        if np.ndim(bins) == 0:
            raise TypeError(f"`bins` must be an integer, a string, or an array, not {bins!r}")
        if isinstance(bins, Tracer):
            _refuse(np.any(bins[:-1] > bins[1:]), "`bins` must increase monotonically, when an array")
            return bins
        edges = np.asarray(bins)
        if edges.ndim == 1 and np.any(edges[:-1] > edges[1:]):
            raise ValueError("`bins` must increase monotonically, when an array")
        return edges
    if bins < 1:
        raise ValueError("`bins` must be positive, when an integer")
    given = limits is not None
    if given:
        low, high = limits
    elif not flat.shape[0]:
        low, high = 0.0, 1.0
    else:
        low, high = (fresh(cast(reduce_value(op, flat, (0,)), dtype)) for op in (ops.min, ops.max))
    if given or holds_floats:
        _require_range(low, high, given)
    widened = np.where(low == high, 0.5, 0.0)
    if isinstance(low, Tracer):
        widened = widened.astype(low.dtype)                            # the edges are made in the precision of the elements
    return np.linspace(low - widened, high + widened, bins + 1, dtype=dtype.numpy)


def _require_range(low: Any, high: Any, given: bool) -> None:
    """Raise for limits that are not finite or in the wrong order."""
    if given:
        _refuse(np.greater(low, high), "max must be larger than min in range parameter.")
    kind = "supplied" if given else "autodetected"
    limits = " " if isinstance(low, Tracer) or isinstance(high, Tracer) else f" of [{low}, {high}] "
    hint = "" if given else "\n  hint: range=(low, high), or np.isfinite before it"
    _refuse(np.logical_not(np.isfinite(low) & np.isfinite(high)), f"{kind} range{limits}is not finite{hint}")


def _refuse(failing: Any, text: str) -> None:
    """Raise the error; at run time if the condition is data-dependent."""
    if isinstance(failing, Tracer):
        HANDLERS["raise_where"](failing, ValueError(text))
    elif failing:
        raise ValueError(text)


@implements(np.isin)
def isin(element: Any, test_elements: Any, assume_unique: Any = False, invert: Any = False, *, kind: Any = None) -> Any:
    x, y = _common(element, test_elements)
    shape = (*x.shape, exact_count(y.shape))
    spread = broadcast_value(reshape(x, (*x.shape, 1)), shape)
    equal = ops.equal(spread, broadcast_value(reshape(y, (shape[-1],)), shape))
    found = reduce_value(ops.any, equal, (len(shape) - 1,))
    return fresh_array(ops.invert(found) if invert else found)
