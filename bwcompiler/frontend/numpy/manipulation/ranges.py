"""np.arange between bounds that are not all known: of floats, of loop indices, of data that are a known number apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.tracing.assumed import assumed_number
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.indexing.data_windows import count_between
from bwcompiler.frontend.tracing.indexing.index_handle import extent_of
from bwcompiler.frontend.tracing.operands import as_tracer, known, value_as
from bwcompiler.frontend.tracing.promotion import requested
from bwcompiler.frontend.tracing.refusals.demands import constant_number
from bwcompiler.frontend.tracing.tracer import Tracer, fresh, fresh_array
from bwcompiler.ir.extent import add_extents, divided, known_le, scale_extent
from bwcompiler.ir.types import I64


def bounds_of(*args: Any, **named: Any) -> tuple[Any, ...]:
    """What np.arange(1, stop=5, step=2) goes over, by place; a single bound is the end."""
    if not named:
        return args
    known = {**dict(zip(("start", "stop", "step"), args, strict=False)), **named}
    if len(known) != len(args) + len(named) or known.keys() - {"start", "stop", "step"} or ("stop" not in known and (
            "start" in named or "start" not in known)):
        np.arange(*(0.0,) * len(args), **dict.fromkeys(named, 0.0))  # type: ignore[call-overload]     # which says what is wrong
        raise TypeError("arange() requires stop to be specified.")
    if "stop" not in known:
        known["stop"] = known.pop("start")
    return known.get("start", 0), known["stop"], known.get("step", 1)


def is_traced_float(x: Any) -> bool:
    return isinstance(x, Tracer) and x._type.dtype.kind == "f"


def of_floats(start: Any, stop: Any, step: Any = 1, dtype: Any = None) -> Any:
    """np.arange of traced bounds: as many elements as there are for the numbers of this call, which are known then.

    The second element is start + step, those behind it go on by the difference of the first two, as NumPy computes them.
    """
    size = assumed_number(value_of(np.ceil((as_tracer(stop) - start) / step).astype(np.int64)))
    if size is not None:
        like = np.arange(*map(_one, (start, stop, step)), dtype=dtype).dtype
        if like.kind == "f":
            return _of_places(np.arange(max(int(size), 0), dtype=like), start, step)
    bounds = [_number(one) for one in (start, stop, step)]
    if any(isinstance(one, Tracer) for one in bounds):
        raise UnsupportedError("np.arange of traced bounds: the number of elements is not known while tracing\n"
                               "  hint: start + step * np.arange(n) of a known n; or count in a loop, `while x < stop: x += step`")
    numbers = np.arange(*bounds, dtype=dtype)
    if numbers.dtype.kind != "f" or numbers.size == 0 or not (is_traced_float(start) or is_traced_float(step)):
        return numbers
    return _of_places(np.arange(numbers.size, dtype=numbers.dtype), start, step)


def _one(bound: Any) -> Any:
    """1, of the type of a bound."""
    kind = getattr(bound, "_kind", type(bound))
    return kind(1) if isinstance(kind, type) else bound.dtype.type(1)


def _of_places(places: Any, start: Any, step: Any) -> Any:
    """start + k * step, for known places."""
    if not places.size:
        return places
    first, second = [as_tracer(one).astype(places.dtype) for one in (start, start + step)]
    return np.where(places == 1, second, first + places * (second - first))


def _number(bound: Any) -> Any:
    """The number of a traced bound, where that can be had; else as it is."""
    if not is_traced_float(bound):
        return known(bound)
    flat = fresh(ops.stop_gradient(value_of(bound)))
    found = known(flat)
    number = constant_number(value_of(flat), is_size=True) if found is flat else found
    return found if number is None else number


def of_indices(*bounds: Any, dtype: Any) -> Any:
    """np.arange with bounds that are affine in loop indices."""
    if dtype is None and any(isinstance(bound, float) for bound in bounds):
        dtype = np.float64
    start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*map(_integral, bounds), 1)[:3]
    first, last = extent_of(start), extent_of(stop)
    size = None
    if first is not None and last is not None and isinstance(step, int | np.integer) and step:
        size = divided(add_extents(last, scale_extent(first, -1)), int(step))
    if size is None:
        raise UnsupportedError("np.arange with bounds that depend on loop indices takes integers, and a step that divides its growth\n"
                               "  hint: start + step * np.arange(count)")
    if isinstance(size, int):
        size = max(size, 0)
    if not known_le(0, size):
        raise UnsupportedError("np.arange with bounds that depend on loop indices: stop may be less than start\n"
                               "  hint: np.arange(max(0, stop - start))")
    counted = call(lambda: fresh_array(ops.iota(shape=(size,), axis=0, dtype=I64)))
    found = counted if step == 1 and first == 0 else start + step * counted
    return found if dtype is None else found.astype(dtype)


def known_size(start: Any, stop: Any = None, step: Any = 1) -> int | None:
    """How many elements np.arange(start, stop, step) has, where that is known though the bounds are data: np.arange(3 * i, 3 * i + 3)."""
    is_known = stop is not None and isinstance(step, int | np.integer) and step
    return count_between(start, stop, int(step)) if is_known else None


def of_size(size: int, start: Any, _stop: Any, step: Any = 1, *, dtype: Any = None) -> Any:
    return fresh_array(value_as(start + np.arange(size) * step, requested(dtype) if dtype is not None else I64))


def _integral(bound: Any) -> Any:
    """An integral float as an integer."""
    return int(bound) if isinstance(bound, float) and bound.is_integer() else bound
