"""Order statistics: np.median, quantile, percentile, with or without weights, and their nan-skipping versions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.frontend.numpy.axes import normalize_axes
from bwcompiler.frontend.numpy.elementwise.ufunc_calls import store
from bwcompiler.frontend.numpy.levels import levels_of, place_dtype, quantile_dtype
from bwcompiler.frontend.numpy.manipulation.indexing import index_value
from bwcompiler.frontend.numpy.reductions.reductions import finished, keep_axes, mean, reduce_value
from bwcompiler.frontend.numpy.reductions.sorting import at_positions, require_known, sorted_value
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.operands import as_tracer, cast, constant, filled, is_traced, last_axis_element, reshape, value_as
from bwcompiler.frontend.tracing.registry import implements
from bwcompiler.frontend.tracing.tracer import Tracer, fresh, fresh_array
from bwcompiler.ir.extent import exact_count
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import F64, I64, DType
from bwcompiler.ops.ordering.order_statistics import is_selected

NOTHING = np._NoValue


def _lanes(a: Any, axis: Any) -> tuple[Value, Value, tuple[int, ...]]:
    """The operand; the operand with the reduced axes merged into one last axis; the reduced axes."""
    x = value_as(a)
    axes = normalize_axes(axis, x.rank)
    rest = [k for k in range(x.rank) if k not in axes]
    order = (*rest, *axes)
    moved = x if order == tuple(range(x.rank)) else ops.transpose(x, axes=order)
    return x, reshape(moved, (*[x.shape[k] for k in rest], exact_count([x.shape[k] for k in axes]))), axes


def _between(low: Value, high: Value, fraction: float, dtype: DType) -> Value:
    """low + (high - low) fraction in `dtype`, from the nearer end; as in NumPy, nan next to infinity even for fraction 0."""
    distance = cast(ops.subtract(high, low), dtype)
    low, high = cast(low, dtype), cast(high, dtype)
    if fraction < 0.5:
        return ops.add(low, ops.multiply(distance, constant(fraction, low)))
    return ops.subtract(high, ops.multiply(distance, constant(1.0 - fraction, low)))


def _has_nan(lanes: Value, ordered: Value) -> Value:
    """Whether a lane contains nan: after sorting it is last, but to look for it before is less than to select the last element."""
    if is_selected(lanes.type, lanes.rank - 1):
        return ops.any(ops.isnan(lanes), axes=(lanes.rank - 1,))
    return ops.isnan(last_axis_element(ordered, ordered.shape[-1] - 1))


def _nan_if_any(result: Value, lanes: Value, ordered: Value) -> Value:
    """nan for lanes that contain one."""
    if not lanes.dtype.is_differentiable:
        return result
    return ops.select(_has_nan(lanes, ordered), constant(math.nan, result), result)


@implements(np.median)
def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, keepdims: Any = False) -> Any:
    x, lanes, axes = _lanes(a, axis)
    count = lanes.shape[-1]
    if count == 0:
        return mean(fresh(x), axes, out=out, keepdims=keepdims)
    ordered = sorted_value(lanes, lanes.rank - 1)
    ordered = ordered if ordered.dtype.is_differentiable else cast(ordered, F64)
    low, high = last_axis_element(ordered, (count - 1) // 2), last_axis_element(ordered, count // 2)
    middle = low if count % 2 else ops.divide(ops.add(low, high), constant(2.0, low))
    return finished(_nan_if_any(middle, lanes, ordered), x, axes, keepdims, out, "median")


def _checked_levels(q: Any, scale: float) -> Any:
    levels = np.asarray(q, np.float64) / scale
    if not ((levels >= 0) & (levels <= 1)).all():
        raise ValueError("Percentiles must be in the range [0, 100]" if scale == 100 else "Quantiles must be in the range [0, 1]")
    return levels


def _quantile(name: str, a: Any, q: Any, axis: Any, out: Any, method: str, keepdims: Any, scale: float) -> Any:
    x, lanes, axes = _lanes(a, axis)
    if x.dtype.is_complex:
        raise TypeError("a must be an array of real numbers")
    if is_traced(q):
        q = _traced_levels(q, x, scale)
        ordered = sorted_value(lanes, lanes.rank - 1)
        missing = _has_nan(lanes, ordered) if lanes.dtype.is_float and lanes.shape[-1] else None
        count = filled(lanes.shape[-1], F64, lanes.shape[:-1])
        return _at_traced_levels(name, x, ordered, count, q, axes, out, method, keepdims, missing)
    levels = _checked_levels(q, scale)
    extent = lanes.shape[-1]
    ordered = sorted_value(lanes, lanes.rank - 1)
    if extent == 0:
        raise IndexError(f"np.{name} of no elements")
    # The position of the quantile between the sorted elements: NumPy's quantile of the elements 0, 1, 2, ...
    numpy: Any = np.quantile if scale == 1.0 else np.percentile
    places = numpy(np.arange(extent, dtype=np.float64), q, method=method)
    whole = bool((places == np.floor(places)).all()) and (
        method in _OF_ELEMENTS or _is_of_ends(q, method, scale))
    dtype = ordered.dtype if whole else quantile_dtype(ordered.dtype, q)
    results = []
    for place, level in zip(np.ravel(places), np.ravel(levels), strict=True):
        below = math.floor(place)
        below = max(below - 1, 0) if method == "averaged_inverted_cdf" and place == below else below      # comes from there
        low = last_axis_element(ordered, below)
        if whole or (place == below and ordered.dtype.is_integer):
            result = cast(low, dtype)
        else:
            before = place == 0 and method in _PLOTTING_POSITIONS and _plotting_position(extent, level, method) < 0
            above = below if before else min(below + 1, extent - 1)
            result = _between(low, last_axis_element(ordered, above), float(place) - below, dtype)
        results.append(_nan_if_any(result, lanes, ordered))
    return _collected(results, x, axes, levels, keepdims, out, name)


def _is_of_ends(q: Any, method: str, scale: float = 1.0) -> bool:
    """Whether these are levels 0 and 1 given as integers, which select the first and last elements."""
    return method == "linear" and scale == 1.0 and (q.dtype if isinstance(q, Tracer) else np.asarray(q).dtype).kind in "iub"


def _collected(results: list[Value], x: Value, axes: tuple[int, ...], levels: Any, keepdims: Any, out: Any, name: str) -> Any:
    """One result per level, along new leading axes of the levels' shape."""
    if keepdims is not NOTHING and keepdims:
        results = [keep_axes(result, x, axes) for result in results]
    if not results:
        kept = [1 if k in axes else n for k, n in enumerate(x.shape) if k not in axes or keepdims is True]
        value = filled(0.0, quantile_dtype(x.dtype, levels), (*levels.shape, *kept))
    elif levels.ndim == 0:
        value = results[0]
    else:
        rows = [reshape(result, (1, *result.shape)) for result in results]
        value = rows[0] if len(rows) == 1 else ops.concatenate(*rows, axis=0)
        value = reshape(value, (*levels.shape, *results[0].shape))
    if out is None:
        return fresh(value)
    store(out, value, "same_kind", name)
    return out


def _weighted_quantile(name: str, a: Any, q: Any, weights: Any, axis: Any, out: Any, method: str, keepdims: Any, scale: float,
                       skips_nan: bool) -> Any:
    """The first element in order at which the cumulated weights reach the share q: NumPy's "inverted_cdf"."""
    if method != "inverted_cdf":
        raise ValueError(f"Only method 'inverted_cdf' supports weights. Got: {method}.")
    require_known(q, name, "q")
    x, lanes, axes = _lanes(a, axis)
    if x.dtype.is_complex:
        raise TypeError("a must be an array of real numbers")
    if not lanes.shape[-1]:
        raise IndexError(f"np.{name} of no elements")
    given = as_tracer(weights)
    if given.shape != x.shape:
        if len(axes) != 1 or given.shape != (x.shape[axes[0]],):
            raise TypeError("Shape of weights must be consistent with shape of a along specified axis.")
        given = as_tracer(np.reshape(given, [-1 if k == axes[0] else 1 for k in range(x.rank)]))
    _, heavy, _ = _lanes(np.broadcast_to(given, x.shape), axes)
    if skips_nan and x.dtype.is_float:
        heavy = ops.select(ops.isnan(lanes), constant(0.0, heavy), heavy)
    levels = _checked_levels(q, scale)
    order = fresh(ops.argsort(lanes, axis=lanes.rank - 1, kind="stable"))
    ordered, counted = [fresh(at_positions(one, value_of(order), lanes.rank - 1)) for one in (lanes, cast(heavy, F64))]
    sums: Any = np.cumsum(counted, -1)
    sums = np.where(sums[..., -1:] > 0, sums / sums[..., -1:], np.nan)
    results = []
    for level in np.ravel(levels):
        place: Any = np.sum(sums < level, -1) if level else np.argmax(counted > 0, -1)     # elements with weight 0 are ignored
        place = np.minimum(place, lanes.shape[-1] - 1)[..., None]
        found = at_positions(value_of(ordered), value_of(place), lanes.rank - 1)
        result = last_axis_element(found, 0)
        results.append(result if skips_nan else _nan_if_any(result, lanes, value_of(ordered)))
    found_all = _collected(results, x, axes, levels, keepdims, out, name)
    return found_all if out is not None else fresh_array(value_of(found_all))


@implements(np.quantile)
def quantile(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, method: Any = "linear",
             keepdims: Any = False, *, weights: Any = None) -> Any:
    return _quantiles("quantile", a, q, axis, out, method, keepdims, weights)


@implements(np.percentile)
def percentile(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, method: Any = "linear",
               keepdims: Any = False, *, weights: Any = None) -> Any:
    return _quantiles("percentile", a, q, axis, out, method, keepdims, weights)


# ----- order statistics that skip nan: their positions depend on the number of remaining elements
def _counted(lanes: Value) -> tuple[Value, Value]:
    """The lanes sorted (nan last), and their numbers of elements that are not nan, as floats."""
    lanes = lanes if lanes.dtype.is_differentiable else cast(lanes, F64)
    present = cast(ops.invert(ops.isnan(lanes)), F64)
    return sorted_value(lanes, lanes.rank - 1), reduce_value(ops.sum, present, (lanes.rank - 1,))


def _index(place: Value) -> Value:
    """A (float) position as an index; those before the first element count as the first."""
    return cast(ops.maximum(place, constant(0.0, place)), I64)


def _at_two(ordered: Value, places: tuple[Value, Value]) -> list[Value]:
    """The elements of the last axis at (float) positions, one per lane, or several, which may be out of range: an IndexError at run time.

    Both are found together.
    """
    columns = [_index(place) for place in places]
    if columns[0].rank == ordered.rank:
        count = columns[0].shape[-1]
        index = index_value(fresh(ops.concatenate(*columns, axis=ordered.rank - 1)), ordered.shape[-1])
    else:
        count, index = 1, ops.concatenate(*[reshape(column, (*column.shape, 1)) for column in columns], axis=ordered.rank - 1)
    found = at_positions(ordered, index, ordered.rank - 1)
    return [reshape(ops.slice_axis(found, found.rank - 1, start, count), columns[0].shape) for start in (0, count)]


def _at_one(ordered: Value, place: Value) -> Value:
    """Likewise at one position per lane."""
    index = _index(place)
    if index.rank == ordered.rank:
        return at_positions(ordered, index_value(fresh(index), ordered.shape[-1]), ordered.rank - 1)
    return reshape(at_positions(ordered, reshape(index, (*index.shape, 1)), ordered.rank - 1), index.shape)


def _interpolated(ordered: Value, place: Value, count: Value, dtype: DType, method: str) -> Value:
    """The elements around (float) positions among `count`, one per lane or several, weighted; as `_between` does."""
    zero, one = constant(0.0, place), constant(1.0, place)
    before = ops.less(place, zero)
    place = ops.maximum(place, zero)
    below = ops.floor(place)
    above = ops.select(before, below, ops.minimum(ops.add(below, one), ops.subtract(count, one)))
    low, high = _at_two(ordered, (below, above))
    rest = ops.subtract(place, below)
    if method == "averaged_inverted_cdf":          # the element behind the position, or the mean of it and that at the position
        rest = ops.select(ops.equal(rest, zero), constant(0.5, rest), one)
    fraction = cast(rest, dtype)
    distance = cast(ops.subtract(high, low), dtype)
    low, high = cast(low, dtype), cast(high, dtype)
    from_low = ops.add(low, ops.multiply(distance, fraction))
    from_high = ops.subtract(high, ops.multiply(distance, ops.subtract(constant(1.0, fraction), fraction)))
    return ops.select(ops.less(fraction, constant(0.5, fraction)), from_low, from_high)


def _place_of(count: Value, level: Value, method: str) -> Value:
    """The position of the quantile, counted from 0, among `count` sorted elements."""
    last = ops.subtract(count, constant(1.0, count))
    linear = ops.multiply(last, level)
    simple = {"lower": ops.floor, "higher": ops.ceil, "nearest": ops.rint, "linear": lambda x: x}
    if method in simple:
        return simple[method](linear)  # type: ignore[no-any-return, operator]
    if method == "midpoint":
        return ops.multiply(ops.add(ops.floor(linear), ops.ceil(linear)), constant(0.5, count))
    if method == "inverted_cdf":
        above = ops.subtract(ops.ceil(ops.multiply(count, level)), constant(1.0, count))
        return ops.maximum(above, constant(0.0, count))
    if method == "closest_observation":            # of two equally near elements the one with even number, counted from 1
        half = ops.subtract(ops.multiply(count, level), constant(1.5, count))
        below = ops.floor(half)
        odd = ops.equal(ops.remainder(below, constant(2.0, count)), constant(1.0, count))
        stays = ops.bitwise_and(ops.equal(half, below), odd)
        return ops.maximum(ops.select(stays, below, ops.add(below, constant(1.0, count))), constant(0.0, count))
    if method == "averaged_inverted_cdf":
        return ops.subtract(ops.multiply(count, level), constant(1.0, count))
    if method not in _PLOTTING_POSITIONS:
        raise ValueError(f"{method!r} is not a valid method")
    alpha, beta = _PLOTTING_POSITIONS[method]
    offset = ops.add(constant(alpha, level), ops.multiply(level, constant(1.0 - alpha - beta, level)))
    return ops.minimum(ops.subtract(ops.add(ops.multiply(count, level), offset), constant(1.0, count)), last)


def _plotting_position(count: int, level: float, method: str) -> float:
    """`_place_of` for known numbers; positions below 0 become the first element."""
    alpha, beta = _PLOTTING_POSITIONS[method]
    return count * level + (alpha + level * (1.0 - alpha - beta)) - 1.0


# R. Hyndman and Y. Fan, "Sample quantiles in statistical packages" (1996): place = n q + alpha + q (1 - alpha - beta) - 1
_PLOTTING_POSITIONS = {"interpolated_inverted_cdf": (0.0, 1.0), "hazen": (0.5, 0.5), "weibull": (0.0, 0.0),
                       "median_unbiased": (1 / 3, 1 / 3), "normal_unbiased": (3 / 8, 3 / 8)}


def _traced_levels(q: Any, x: Value, scale: float) -> Any:
    q = as_tracer(q)
    return levels_of(q, x.dtype) if scale == 100.0 else q


def _at_traced_levels(name: str, x: Value, ordered: Value, count: Value, q: Tracer, axes: tuple[int, ...], out: Any, method: str,
                      keepdims: Any, missing: Value | None = None) -> Any:
    """Quantiles at traced levels among the first `count` sorted elements; an invalid level is an IndexError at run time.

    missing: the lanes whose quantiles are nan.
    """
    dtype, levels_in = quantile_dtype(ordered.dtype, q), place_dtype(q)
    lead, extent, many = ordered.shape[:-1], ordered.shape[-1], q.size
    level = ops.broadcast(reshape(cast(value_of(q), levels_in), (many,)), shape=(*lead, many), axes=(len(lead),))
    counts = ops.broadcast(cast(count, levels_in), shape=(*lead, many), axes=tuple(range(len(lead))))
    place = _place_of(counts, level, method)
    inside = ops.bitwise_and(ops.greater_equal(level, constant(0.0, level)), ops.less_equal(level, constant(1.0, level)))
    place = ops.select(inside, place, filled(extent, levels_in, place.shape))
    if method in _OF_ELEMENTS or _is_of_ends(q, method):
        found = _at_one(ordered, place)
    else:
        found = _interpolated(ordered, place, counts, dtype, method)
    if missing is not None:
        found = ops.select(ops.broadcast(missing, shape=found.shape, axes=tuple(range(len(lead)))), constant(math.nan, found), found)
    found = ops.transpose(found, axes=(found.rank - 1, *range(found.rank - 1)))
    kept = [1 if k in axes else n for k, n in enumerate(x.shape)] if keepdims is not NOTHING and keepdims else lead
    found = reshape(found, (*q.shape, *kept))
    if out is None:
        return fresh(found)
    store(out, found, "same_kind", name)
    return out


_OF_ELEMENTS = ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")          # methods that return elements


def _nan_quantile(name: str, a: Any, q: Any, axis: Any, out: Any, method: str, keepdims: Any, scale: float) -> Any:
    x, lanes, axes = _lanes(a, axis)
    if not lanes.dtype.is_float:
        return _quantile(name, a, q, axis, out, method, keepdims, scale)
    if is_traced(q):
        q = _traced_levels(q, x, scale)
        ordered, count = _counted(lanes)
        return _at_traced_levels(name, x, ordered, count, q, axes, out, method, keepdims)
    require_known(q, name, "q")
    levels = _checked_levels(q, scale)
    ordered, count = _counted(lanes)
    count = cast(count, place_dtype(q))
    dtype = quantile_dtype(lanes.dtype, q)
    of_elements = method in _OF_ELEMENTS or _is_of_ends(q, method, scale)
    results = []
    for level in np.ravel(levels):
        place = _place_of(count, constant(float(level), count), method)
        results.append(_at_one(ordered, place) if of_elements else _interpolated(ordered, place, count, dtype, method))
    return _collected(results, x, axes, levels, keepdims, out, name)


@implements(np.nanquantile)
def nanquantile(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, method: Any = "linear",
                keepdims: Any = NOTHING, *, weights: Any = None) -> Any:
    return _quantiles("nanquantile", a, q, axis, out, method, keepdims, weights, skips_nan=True)


@implements(np.nanpercentile)
def nanpercentile(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, method: Any = "linear",
                  keepdims: Any = NOTHING, *, weights: Any = None) -> Any:
    return _quantiles("nanpercentile", a, q, axis, out, method, keepdims, weights, skips_nan=True)


@implements(np.nanmedian)
def nanmedian(a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, keepdims: Any = NOTHING) -> Any:
    x, lanes, axes = _lanes(a, axis)
    if not lanes.shape[-1]:
        return mean(fresh(x), axes, out=out, keepdims=keepdims)
    ordered, count = _counted(lanes)
    middle = ops.multiply(ops.subtract(count, constant(1.0, count)), constant(0.5, count))
    low, high = _at_two(ordered, (ops.floor(middle), ops.ceil(middle)))
    average = ops.divide(ops.add(low, high), constant(2.0, low))
    whole = ops.equal(middle, ops.floor(middle))                              # an odd number of elements: inf + inf is still inf
    return finished(ops.select(whole, low, average), x, axes, keepdims, out, "nanmedian")


def _quantiles(name: str, a: Any, q: Any, axis: Any, out: Any, method: str, keepdims: Any, weights: Any, skips_nan: bool = False) -> Any:
    scale = 100.0 if name.endswith("percentile") else 1.0                  # of the level of the last element
    if skips_nan and 0 in value_as(a).shape:                               # one nan for all levels, as in NumPy
        if not is_traced(q):
            _checked_levels(q, scale)
        return mean(a, axis, out=out, keepdims=keepdims)
    if weights is not None:
        return _weighted_quantile(name, a, q, weights, axis, out, method, keepdims, scale, skips_nan)
    return (_nan_quantile if skips_nan else _quantile)(name, a, q, axis, out, method, keepdims, scale)
