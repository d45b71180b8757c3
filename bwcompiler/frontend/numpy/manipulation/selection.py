"""NumPy's functions that select and replace elements, by positions or conditions.

Positions and conditions must be known while tracing if the number of results depends on them.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import DTypeError, ShapeError, TracerArrayError, UnsupportedError
from bwcompiler.frontend.numpy.axes import normalize_axis
from bwcompiler.frontend.numpy.elementwise.ufunc_calls import store
from bwcompiler.frontend.numpy.elementwise.ufuncs import truth
from bwcompiler.frontend.numpy.manipulation.indexing import gather, getitem, setitem, take
from bwcompiler.frontend.numpy.manipulation.layout import everything, flat_view, indexed, reshaped, viewed
from bwcompiler.frontend.numpy.selected.indexing import positions
from bwcompiler.frontend.tracing.calls import call_back
from bwcompiler.frontend.tracing.handles import assign, value_of
from bwcompiler.frontend.tracing.indexing.index_handle import as_extents
from bwcompiler.frontend.tracing.indexing.index_parsing import is_mask
from bwcompiler.frontend.tracing.operands import (
    as_tracer,
    cast,
    filled,
    is_traced,
    kind_of,
    materialise,
    operand,
    reshape,
    value_as,
    wrapping,
)
from bwcompiler.frontend.tracing.promotion import asked, common_dtype, require_cast
from bwcompiler.frontend.tracing.registry import HANDLERS, implements
from bwcompiler.frontend.tracing.storages.memory_order import fixed
from bwcompiler.frontend.tracing.storages.shapes import c_strides
from bwcompiler.frontend.tracing.storages.views import NumbersView, WindowView, broadcast_value
from bwcompiler.frontend.tracing.tracer import Tracer, fresh, fresh_array, handle
from bwcompiler.ir.extent import exact_count
from bwcompiler.ir.types import I64, DType, complex_of, component_of, tensor

_UNKNOWN = ("the number of results is not known while tracing\n"
            "  hint: np.where(condition, x, 0), np.sum(x, where=condition), np.argmax, or a condition that is not traced")


# ----- results of unknown size
@implements(np.trim_zeros)
def unknown_size(*args: Any, **kwargs: Any) -> NoReturn:
    raise UnsupportedError(f"np.trim_zeros of traced arrays: {_UNKNOWN}")


implements(np.nonzero)(positions.nonzero)
implements(np.flatnonzero)(positions.flatnonzero)
implements(np.argwhere)(positions.argwhere)


# ----- selection
@implements(np.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: Any = "raise") -> Any:
    payloads, kinds = zip(*[operand(choice) for choice in choices], strict=True)
    dtype = common_dtype(tuple(kinds))
    index = value_as(a)
    if index.dtype.kind not in "iub":
        raise DTypeError(f"np.choose: the positions must be integers, got {index.dtype.numpy}")
    shape = np.broadcast_shapes(index.shape, *[payload.shape for payload in payloads])
    stacked = [reshape(materialise(wrapping(payload), dtype, shape), (1, *shape)) for payload in payloads]
    whole = stacked[0] if len(stacked) == 1 else ops.concatenate(*stacked, axis=0)
    last, count = (filled(number, I64, shape) for number in (len(payloads) - 1, len(payloads)))
    positions = broadcast_value(cast(index, I64), shape)
    if mode == "clip":
        positions = ops.minimum(ops.maximum(positions, filled(0, I64, shape)), last)
    elif mode == "wrap":
        positions = ops.remainder(positions, count)
    elif mode == "raise":
        if not isinstance(a, Tracer) and np.size(a) and not 0 <= np.min(a) <= np.max(a) < len(payloads):
            raise ValueError("invalid entry in choice array")
        #                                                              -1 is not the last element here, but out of range
        positions = ops.select(ops.less(positions, filled(0, I64, shape)), count, positions)
        positions = ops.normalize_index(positions, extent=len(payloads))
    else:
        raise ValueError(f"np.choose: mode must be 'raise', 'wrap' or 'clip', got {mode!r}")
    counters = [reshape(positions, (1, *shape))] + [ops.iota(shape=(1, *shape), axis=k + 1, dtype=I64) for k in range(len(shape))]
    found = reshape(gather(whole, counters, tuple(range(len(shape) + 1))), shape)
    if out is None:
        return fresh(found)
    store(out, found, "unsafe", "choose")
    return out


@implements(np.compress)
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    if isinstance(condition, Tracer):
        return positions.compress(condition, a, axis, out)
    if np.ndim(condition) != 1:
        raise ValueError("condition must be a 1-d array")
    return take(a, np.flatnonzero(condition), axis, out)


def compress_method(x: Tracer, condition: Any, axis: Any = None, out: Any = None) -> Any:
    """x.compress(condition)."""
    return compress(condition, x, axis, out)


@implements(np.extract)
def extract(condition: Any, arr: Any) -> Any:
    if isinstance(condition, Tracer):
        return positions.extract(condition, arr)
    return take(arr, np.flatnonzero(condition))


# ----- replacing, in place
def _target(x: Any, name: str) -> Tracer:
    if not isinstance(x, Tracer):
        raise TracerArrayError(f"np.{name} of a concrete array with traced values\n  hint: make it with np.zeros_like(x)")
    return x


def _repeated(values: Any, count: int) -> Any:
    """The elements of `values` (at least one), repeated as needed to `count`."""
    flat = reshaped(as_tracer(values), (as_tracer(values).size,))
    return flat if flat.size == count else take(flat, np.arange(count) % flat.size)


def repeated_for(line: Tracer, index: Any, values: Any) -> Any:
    """The elements that `x.flat[index] = values` stores, repeated as needed; None if nothing is selected."""
    if isinstance(index, Tracer) and is_mask(index):
        raise UnsupportedError("x.flat[mask] = values with a traced mask is not supported\n  hint: x[mask] = value, np.where")
    chosen = as_tracer(getitem(line, index))
    if not chosen.size:
        return None
    new = as_tracer(values)
    if not new.size:
        raise ValueError("Error setting single item of array.")
    return values if not new.ndim else np.reshape(_repeated(new, chosen.size), chosen.shape)


def set_flat(x: Tracer, values: Any) -> None:
    """x.flat = values."""
    setitem(flat_view(x), slice(None), values)


def _put_positions(ind: Any) -> Any:
    """The positions of np.put as integers; NumPy casts lists unsafely, arrays only safely."""
    if isinstance(ind, Tracer):
        if ind._type.dtype.kind not in "iub":
            raise DTypeError(f"np.put: the positions must be integers, got {ind.dtype}")
        return np.ravel(ind).astype(np.int64)
    if isinstance(ind, np.ndarray):
        return ind.ravel().astype(np.intp, casting="safe")
    return np.array(ind, np.intp).ravel()


@implements(np.put)
def put(a: Any, ind: Any, v: Any, mode: Any = "raise") -> None:
    line = flat_view(_target(a, "put"))
    positions: Any = _put_positions(ind)
    if not positions.size or not as_tracer(v).size:
        return
    if mode == "clip":
        positions = np.clip(positions, 0, line.size - 1)
    elif mode == "wrap":
        positions = np.remainder(positions, line.size)
    elif mode != "raise":
        raise ValueError(f"np.put: mode must be 'raise', 'wrap' or 'clip', got {mode!r}")
    setitem(line, positions, v if not np.ndim(v) else _repeated(v, positions.size))


@implements(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    target = _target(arr, "place")
    if np.size(mask) != target.size:
        raise ValueError("place: mask and data must be the same size")
    vals = fitting(vals, target)
    if isinstance(mask, Tracer):
        _require_safe(vals, target, "place")
        return _place_by_data(target, fresh(truth(value_as(mask))), as_tracer(vals))
    positions = np.flatnonzero(mask)
    if positions.size and not as_tracer(vals).size:
        raise ValueError("Cannot insert from an empty array!")
    _require_safe(vals, target, "place")
    put(target, positions, vals)


def _place_by_data(target: Tracer, mask: Any, values: Any) -> None:
    """The k-th selected element gets the k-th value; values are repeated if there are fewer."""
    if not target.size:
        return
    chosen, new = np.ravel(mask), np.ravel(values)
    if not new.size:
        HANDLERS["raise_where"](np.any(chosen), ValueError("Cannot insert from an empty array!"))
        return
    new = new if new.size == 1 else take(new, (np.cumsum(chosen) - 1) % new.size)
    set_flat(target, np.where(chosen, new.astype(target.dtype), np.ravel(target)))


def fitting(values: Any, target: Tracer) -> Any:
    """A value to store into an array: Python numbers, and lists of them, are converted to its dtype, or rejected."""
    if isinstance(values, bool | int | float | complex | list | tuple) and not is_traced(values):
        return np.asarray(values, target.dtype)
    return values


def _require_safe(values: Any, target: Tracer, name: str) -> None:
    kind = kind_of(values)
    if isinstance(kind, DType):                                            # Python numbers only have to fit
        require_cast(kind, target._type.dtype, "safe", f"np.{name}")


@implements(np.putmask)
def putmask(a: Any, mask: Any, values: Any) -> None:
    target = _target(a, "putmask")
    chosen = value_as(mask)
    if math.prod(chosen.shape) != target.size:
        raise ValueError("putmask: mask and data must be the same size")
    if not as_tracer(values).size:
        return
    if isinstance(values, list | tuple) and not is_traced(values):
        values = np.array(values).astype(target.dtype)            # sequences are taken as they are, arrays only safely
    _require_safe(values, target, "putmask")
    given = values if not np.ndim(values) else np.reshape(_repeated(values, target.size), target.shape)
    spread = materialise(operand(given)[0], target._type.dtype, target.shape)
    assign(target, ops.select(reshape(truth(chosen), target.shape), spread, value_of(target)))


# ----- repeating
@implements(np.resize)
def resize(a: Any, new_shape: Any) -> Any:
    x = as_tracer(a)
    shape = as_extents(new_shape)
    if any(extent < 0 for extent in shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    count = math.prod(shape)
    if not count or not x.size:
        return np.zeros_like(x, shape=shape)
    return np.reshape(_repeated(x, count), shape)


# ----- positions of elements
@implements(np.tril_indices_from)
def tril_indices_from(arr: Any, k: int = 0) -> Any:
    return np.tril_indices(*_matrix_shape(arr, k))


@implements(np.triu_indices_from)
def triu_indices_from(arr: Any, k: int = 0) -> Any:
    return np.triu_indices(*_matrix_shape(arr, k))


def _matrix_shape(arr: Any, k: int) -> tuple[int, int, int]:
    shape = as_tracer(arr).shape
    if len(shape) != 2:
        raise ValueError("input array must be 2-d")
    return shape[0], k, shape[1]


@implements(np.diag_indices_from)
def diag_indices_from(arr: Any) -> Any:
    x = as_tracer(arr)
    if x.ndim < 2 or len(set(x.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length, at least 2")
    return np.diag_indices(x.shape[0], x.ndim)


# ----- windows, other views
@implements(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(x: Any, window_shape: Any, axis: Any = None, *, subok: Any = False, writeable: Any = False) -> Any:
    if writeable:
        raise UnsupportedError("sliding_window_view(..., writeable=True): writes through windows that overlap are not supported on "
                               "traced arrays\n  hint: leave out writeable=True and write to x itself, which the windows see")
    array = as_tracer(x)
    sizes = tuple(window_shape) if isinstance(window_shape, tuple | list) else (window_shape,)
    if axis is None and len(sizes) != array.ndim:
        raise ValueError(f"Since axis is None, must provide window_shape for all dimensions of `x`; got {len(sizes)} window_shape "
                         f"elements and `x.ndim` is {array.ndim}.")
    axes = tuple(range(array.ndim)) if axis is None else tuple(
        [normalize_axis(one, array.ndim) for one in (axis if isinstance(axis, tuple | list) else (axis,))])
    if len(axes) != len(sizes):
        raise ValueError(f"Must provide matching length window_shape and axis; got {len(sizes)} window_shape elements and {len(axes)} axes "
                         "elements.")
    if any(size < 0 for size in sizes):
        raise ValueError("`window_shape` cannot contain negative values")
    for places in _without_repeats(axes):           # a repeated axis has windows of the remaining positions
        spans = tuple([sizes[place] for place in places])
        along = tuple([axes[place] for place in places])
        if any(array.shape[k] < size for k, size in zip(along, spans, strict=True)):
            raise ValueError("window shape cannot be larger than input array shape")
        window = WindowView(array.shape, spans, along)
        array = viewed(array, (*array._chain, window), window.shape)
    return array


def _without_repeats(axes: tuple[int, ...]) -> list[list[int]]:
    """The places in `axes`, in groups without repeated axes."""
    found: list[list[int]] = [[]]
    for place, axis in enumerate(axes):
        if axis in [axes[k] for k in found[-1]]:
            found.append([])
        found[-1].append(place)
    return found


def view(x: Tracer, dtype: Any = None, type: Any = None) -> Any:
    """x.view(): another handle of the same elements."""
    if isinstance(dtype, int | tuple | list):
        raise TypeError(f"x.view takes a dtype, not {dtype!r}\n  hint: x.reshape({dtype!r}{', ...' if isinstance(dtype, int) else ''})")
    own, target = x._type.dtype, x._type.dtype if dtype is None else asked(dtype)
    if target is own:
        return viewed(x, x._chain, x.shape)
    if own is component_of(target) or target is component_of(own):
        return _other_numbers(x, target.is_complex)
    raise UnsupportedError(f"x.view({target.numpy}) reads the bits of {own.numpy} as other numbers, which is not supported on traced "
                           "arrays\n  hint: x.astype for the same numbers in another dtype; z.view(float), x.view(complex) are supported")


def _other_numbers(x: Tracer, complex: bool) -> Tracer:
    """Complex numbers as their parts, or parts as complex numbers: a view if the last axis is contiguous."""
    if not x.ndim:
        raise ValueError("Changing the dtype of a 0d array is only supported if the itemsize is unchanged")
    *lead, size = x.shape
    if complex and size % 2:
        raise ValueError("When changing to a larger dtype, its size must be a divisor of the total size in bytes of the last axis of the "
                         "array.")
    if size != 1 and x.size and x._memory().shadow().strides[-1] != 1:
        raise ValueError("To change to a dtype of a different size, the last axis must be contiguous")
    shape = (*lead, size // 2 if complex else size * 2)
    target = (complex_of if complex else component_of)(x._type.dtype)
    return handle(x._storage, (*x._chain, NumbersView(shape, complex)), tensor(target, shape))


# ----- functions along axes
@implements(np.apply_along_axis, states_layout=True)
def apply_along_axis(func1d: Any, axis: Any, arr: Any, *args: Any, **kwargs: Any) -> Any:
    x = as_tracer(arr)
    place = normalize_axis(axis, x.ndim)
    rest = (*x.shape[:place], *x.shape[place + 1:])
    if not exact_count(rest):
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    results = []
    for position in np.ndindex(rest):
        items: list[Any] = [*position[:place], everything(x.shape[place]), *position[place:]]
        results.append(as_tracer(call_back(func1d, indexed(x, items), *args, **kwargs)))
    found = np.reshape(np.stack(results), (*rest, *results[0].shape))
    kept = len(rest)
    order = (*range(place), *range(kept, kept + results[0].ndim), *range(place, kept))
    made = fresh_array(value_as(np.transpose(found, order)))
    steps = c_strides(found.shape)                  # NumPy fills an array that has the axis last
    made._storage.layout = fixed(tuple([steps[k] for k in order]))
    return made


@implements(np.apply_over_axes, states_layout=True)
def apply_over_axes(func: Any, a: Any, axes: Any) -> Any:
    x = as_tracer(a)
    rank = x.ndim
    for axis in (axes if isinstance(axes, tuple | list) else (axes,)):
        place = normalize_axis(axis, rank)
        found = as_tracer(call_back(func, x, place))
        if found.ndim == rank - 1:
            found = as_tracer(np.expand_dims(found, place))
        if found.ndim != rank:
            raise ShapeError("np.apply_over_axes: function is not returning an array of the correct shape")
        x = found
    return x


HANDLERS.update(compress_method=compress_method, view=view, repeated_for=repeated_for, set_flat=set_flat)
