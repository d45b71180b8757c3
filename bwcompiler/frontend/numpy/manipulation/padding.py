"""np.pad, with all of its modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.numpy.axes import normalize_axis
from bwcompiler.frontend.numpy.manipulation.joining import join
from bwcompiler.frontend.tracing.calls import call_back
from bwcompiler.frontend.tracing.indexing.index_handle import IndexTracer, as_extents
from bwcompiler.frontend.tracing.operands import as_tracer, cast, filled, is_traced, value_as
from bwcompiler.frontend.tracing.registry import implements
from bwcompiler.frontend.tracing.storages.views import broadcast_value
from bwcompiler.frontend.tracing.tracer import Tracer, fresh, fresh_array
from bwcompiler.ir.extent import Affine
from bwcompiler.ir.op import Value

STATISTICS: dict[str, Any] = {"maximum": np.max, "minimum": np.min, "mean": np.mean, "median": np.median}
KEYWORDS = {"constant": "constant_values", "linear_ramp": "end_values", "reflect": "reflect_type", "symmetric": "reflect_type",
            **dict.fromkeys(STATISTICS, "stat_length"), "edge": "", "wrap": "", "empty": ""}


def pairs(amounts: Any, rank: int, what: str) -> list[tuple[Any, Any]]:
    """One (before, after) per axis, from the forms that np.pad takes."""
    if isinstance(amounts, dict):
        found: list[tuple[Any, Any]] = [(0, 0)] * rank
        for axis, amount in amounts.items():
            found[normalize_axis(axis, rank)] = tuple(amount) if isinstance(amount, tuple | list) else (amount, amount)
        return found
    if isinstance(amounts, Tracer):
        raise UnsupportedError(f"np.pad: traced {what} is not supported")
    return [(pair[0].item(), pair[1].item()) for pair in np.broadcast_to(np.asarray(amounts), (rank, 2))]


@implements(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    x = value_as(array)
    widths = _widths(pad_width, x.rank)
    moving = not x.type.is_fixed or any(isinstance(amount, Affine) for pair in widths for amount in pair)
    if moving and (mode not in ("constant", "empty") or is_traced(options.get("constant_values", 0))):
        raise UnsupportedError(f"np.pad: mode={mode!r} by amounts that depend on a loop index, or of an array whose shape does, {x.shape}, "
                               "is supported only with mode='constant'\n  hint: np.concatenate")
    if callable(mode):
        return _written_by(mode, fresh_array(_constant(x, widths, 0)), widths, options)
    if mode not in KEYWORDS:
        raise ValueError(f"mode {mode!r} is not supported")
    for key in options:
        if key != KEYWORDS[mode]:
            raise ValueError(f"unsupported keyword arguments for mode {mode!r}: {{{key!r}}}")
    if mode in ("constant", "empty"):
        return fresh_array(_constant(x, widths, options.get("constant_values", 0)))
    if 0 in x.shape:
        grown = [axis for axis, pair in enumerate(widths) if x.shape[axis] == 0 and any(pair)]
        if grown:
            raise ValueError(f"can't extend empty axis {grown[0]} using modes other than 'constant' or 'empty'")
        return fresh_array(_constant(x, widths, 0))
    lengths = pairs(options["stat_length"], x.rank, "stat_length") if options.get("stat_length") is not None else [(None, None)] * x.rank
    ends = pairs(options.get("end_values", 0), x.rank, "end_values")
    for axis, (low, high) in enumerate(widths):
        if mode == "linear_ramp":
            x = _ramp(x, axis, low, high, ends[axis])
        elif mode in STATISTICS:
            x = _statistic(x, axis, low, high, STATISTICS[mode], lengths[axis])
        elif options.get("reflect_type", "even") == "odd":
            x = _odd(x, axis, low, high, mode)
        else:
            x = _repeated(x, axis, low, high, mode)
    return fresh_array(x)


def _widths(pad_width: Any, rank: int) -> list[tuple[Any, Any]]:
    """One (before, after) per axis, as extents."""
    if isinstance(pad_width, IndexTracer) or (not isinstance(pad_width, dict) and is_traced(pad_width)):
        given = pad_width if isinstance(pad_width, tuple | list) else (pad_width,)
        rows = [row if isinstance(row, tuple | list) else None for row in given]
        found = list(rows) if None not in rows else [tuple(given) if len(given) == 2 else (given[0], given[0])]
        amounts: list[Any] = [(row[0], row[-1]) for row in found if row is not None] * (rank if len(found) == 1 else 1)
        if len(amounts) != rank:
            raise ValueError(f"np.pad: {len(amounts)} pairs of widths for {rank} axes")
    else:
        amounts = pairs(pad_width, rank, "pad_width")
        if not isinstance(pad_width, dict) and np.asarray(pad_width).dtype.kind not in "iub":
            raise TypeError("`pad_width` must be of integral type.")
    widths = [as_extents(pair) for pair in amounts]
    if any(isinstance(amount, int) and amount < 0 for pair in widths for amount in pair):
        raise ValueError("index can't contain negative values")
    return widths


def _written_by(function: Callable[..., Any], padded: Any, widths: list[tuple[int, int]], options: dict[str, Any]) -> Any:
    """Call the user's function on each row of the padded array, along one axis after the other."""
    for axis, pair in enumerate(widths):
        rows = np.moveaxis(padded, axis, -1)
        for position in np.ndindex(rows.shape[:-1]):
            call_back(function, rows[(*position, slice(None))], pair, axis, options)
    return padded


def _constant(x: Value, widths: list[tuple[int, int]], constants: Any) -> Value:
    if is_traced(constants):
        return _traced_constants(x, widths, constants)
    values = pairs(constants, x.rank, "constant_values")
    if len({value for pair in values for value in pair}) <= 1:
        fill = x.dtype.numpy.type(values[0][0]).item() if values else 0
        return ops.pad(x, low=tuple([low for low, _ in widths]), high=tuple([high for _, high in widths]), value=fill)
    for axis, ((low, high), pair) in enumerate(zip(widths, values, strict=True)):
        x = _joined(filled(pair[0], x.dtype, _extent(x, axis, low)), x, filled(pair[1], x.dtype, _extent(x, axis, high)), axis)
    return x


def _traced_constants(x: Value, widths: list[tuple[int, int]], constants: Any) -> Value:
    given = np.broadcast_to(as_tracer(constants), (x.rank, 2))
    for axis, (low, high) in enumerate(widths):
        x = _joined(_filled_with(given[axis, 0], x, axis, low), x, _filled_with(given[axis, 1], x, axis, high), axis)
    return x


def _filled_with(number: Any, x: Value, axis: int, extent: int) -> Value:
    return broadcast_value(cast(value_as(number), x.dtype), _extent(x, axis, extent))


def _extent(x: Value, axis: int, extent: int) -> tuple[Any, ...]:
    """x's shape with another extent along an axis."""
    return (*x.shape[:axis], extent, *x.shape[axis + 1:])


def _joined(before: Value, x: Value, after: Value, axis: int) -> Value:
    return join([part for part in (before, x, after) if part is x or part.shape[axis]], axis)


def _repeated(x: Value, axis: int, low: int, high: int, mode: str) -> Value:
    """Modes that repeat elements of x."""
    extent: int = x.shape[axis]
    if not low and not high:
        return x
    if mode == "edge" and extent:
        before = broadcast_value(ops.slice_axis(x, axis, 0, 1), _extent(x, axis, low))
        after = broadcast_value(ops.slice_axis(x, axis, extent - 1, 1), _extent(x, axis, high))
    elif mode == "wrap" and max(low, high) <= extent:
        before, after = ops.slice_axis(x, axis, extent - low, low), ops.slice_axis(x, axis, 0, high)
    elif mode in ("reflect", "symmetric") and max(low, high) <= extent - (mode == "reflect"):
        skip = int(mode == "reflect")
        before = ops.slice_axis(x, axis, max(low - 1 + skip, 0), low, -1)
        after = ops.slice_axis(x, axis, extent - 1 - skip, high, -1)
    else:
        positions = np.pad(np.arange(extent), (low, high), mode=mode)  # type: ignore[call-overload]
        return value_as(np.take(fresh(x), positions, axis))
    return _joined(before, x, after, axis)


def _odd(x: Value, axis: int, low: int, high: int, mode: str) -> Value:
    """Reflection through the edge: 2 edge - x.  It repeats itself, so padding the positions says which multiples are added."""
    extent: int = x.shape[axis]
    if extent < 2 or not (low or high):
        return _repeated(x, axis, low, high, "edge")
    skip = int(mode == "reflect")
    if max(low, high) > extent - skip:
        return _odd_by_more(fresh(x), axis, np.arange(-low, extent + high), skip)

    def mirrored(edge: Value, part: Value) -> Value:
        twice = broadcast_value(ops.add(edge, edge), part.shape)
        return ops.subtract(twice, part)

    before = mirrored(ops.slice_axis(x, axis, 0, 1), ops.slice_axis(x, axis, max(low - 1 + skip, 0), low, -1))
    after = mirrored(ops.slice_axis(x, axis, extent - 1, 1), ops.slice_axis(x, axis, extent - 1 - skip, high, -1))
    return _joined(before, x, after, axis)


def _odd_by_more(x: Any, axis: int, places: Any, skip: int) -> Value:
    """Repeated reflection at both ends: the result is periodic, up to 2 (last - first) per period."""
    size = x.shape[axis]
    turns, rest = np.divmod(places, 2 * (size - skip))
    mirrored = rest >= size
    found = np.take(x, np.where(mirrored, 2 * size - 1 - skip - rest, rest), axis)
    along = (-1, *[1] * (x.ndim - 1 - axis))
    first, last = np.take(x, [0], axis), np.take(x, [size - 1], axis)
    found = np.where(mirrored.reshape(along), 2 * last - found, found)
    return value_as(found + (2 * (last - first) * turns.reshape(along)).astype(x.dtype) if turns.any() else found)


def _statistic(x: Value, axis: int, low: int, high: int, function: Callable[..., Any], lengths: tuple[Any, Any]) -> Value:
    """Modes that pad with a statistic of the elements next to each edge."""
    extent: int = x.shape[axis]
    parts = []
    for width, length, at_end in ((low, lengths[0], False), (high, lengths[1], True)):
        count = extent if length is None else min(int(length), extent)
        edge = ops.slice_axis(x, axis, extent - count if at_end else 0, count)
        found = value_as(function(fresh(edge), axis=axis, keepdims=True))
        if x.dtype.is_integer and found.dtype.is_float:
            found = ops.rint(found)
        parts.append(broadcast_value(cast(found, x.dtype), _extent(x, axis, width)))
    return _joined(parts[0], x, parts[1], axis)


def _ramp(x: Value, axis: int, low: int, high: int, ends: tuple[Any, Any]) -> Value:
    """From an end value to the edge in equal steps."""
    extent: int = x.shape[axis]
    parts = []
    for width, end, at_end in ((low, ends[0], False), (high, ends[1], True)):
        edge = fresh(ops.slice_axis(x, axis, extent - 1 if at_end else 0, 1))
        ramp: Any = np.linspace(end, np.squeeze(edge, axis), width, endpoint=False, dtype=x.dtype.numpy, axis=axis)
        parts.append(value_as(np.flip(ramp, axis) if at_end else ramp))
    return _joined(parts[0], x, parts[1], axis)
