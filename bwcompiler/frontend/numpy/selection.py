"""NumPy's functions that choose, replace, insert and delete elements, by positions or conditions.

What selects must be known while tracing where the number of results depends on it.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import ShapeError, TracerArrayError, UnsupportedError
from bwcompiler.frontend.numpy.elementwise import store
from bwcompiler.frontend.numpy.indexing import getitem, setitem, take, where
from bwcompiler.frontend.numpy.joining import concatenate
from bwcompiler.frontend.numpy.layout import everything, flat_view, indexed, moveaxis, ordered, reshaped, viewed
from bwcompiler.frontend.numpy.reductions import normalize_axis
from bwcompiler.frontend.tracing.memory_order import fixed
from bwcompiler.frontend.tracing.operands import as_tracer, cast, reshape, value_as
from bwcompiler.frontend.tracing.promotion import common_dtype
from bwcompiler.frontend.tracing.registry import HANDLERS, implements, refuse
from bwcompiler.frontend.tracing.tracer import Tracer, call_user, fresh, fresh_array, value_of
from bwcompiler.frontend.tracing.views import broadcast_value, c_strides
from bwcompiler.ir.extent import element_count
from bwcompiler.ir.types import dtype_of

_UNKNOWN = ("the number of results is not known while tracing\n"
            "  hint: np.where(condition, x, 0), np.sum(x, where=condition), np.argmax, or a condition that is not traced")


# ----- results of unknown size
@implements(np.nonzero, np.flatnonzero, np.argwhere, np.trim_zeros)
def unknown_size(*args: Any, **kwargs: Any) -> NoReturn:
    raise UnsupportedError(f"np.nonzero, np.flatnonzero, np.argwhere, np.trim_zeros of traced arrays: {_UNKNOWN}")


# ----- choosing
@implements(np.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: Any = "raise") -> Any:
    options = [value_as(choice) for choice in choices]
    dtype = common_dtype(tuple([option.dtype for option in options]))
    index = value_as(a)
    shape = np.broadcast_shapes(index.shape, *[option.shape for option in options])
    stacked = [reshape(broadcast_value(cast(option, dtype), shape), (1, *shape)) for option in options]
    whole = stacked[0] if len(stacked) == 1 else ops.concatenate(*stacked, axis=0)
    positions: Any = fresh(broadcast_value(index, shape))
    if mode == "clip":
        positions = np.clip(positions, 0, len(options) - 1)
    elif mode == "wrap":
        positions = np.remainder(positions, len(options))
    options_of: Any = fresh(whole)
    found = np.take_along_axis(options_of, positions[None], 0)[0]
    if out is None:
        return found
    store(out, value_as(found), "same_kind", "choose")
    return out


@implements(np.compress)
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    if isinstance(condition, Tracer):
        raise UnsupportedError(f"np.compress with a traced condition: {_UNKNOWN}")
    return take(a, np.flatnonzero(condition), axis, out)


def compress_method(x: Tracer, condition: Any, axis: Any = None, out: Any = None) -> Any:
    """x.compress(condition)."""
    return compress(condition, x, axis, out)


@implements(np.extract)
def extract(condition: Any, arr: Any) -> Any:
    if isinstance(condition, Tracer):
        raise UnsupportedError(f"np.extract with a traced condition: {_UNKNOWN}")
    return take(arr, np.flatnonzero(condition))


@implements(np.piecewise, states_layout=True)
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """Every function is applied to all of x; the conditions choose.  (NumPy applies it to the elements that it is for.)"""
    whole = as_tracer(x)
    listed = list(condlist) if isinstance(condlist, list | tuple) and not np.isscalar(condlist[0]) else [condlist]
    functions = list(funclist)
    if len(functions) not in (len(listed), len(listed) + 1):
        raise ValueError(f"with {len(listed)} condition(s), either {len(listed)} or {len(listed) + 1} functions are expected")

    def piece(function: Any) -> Any:
        found = call_user(function, whole, *args, **kw) if callable(function) else function
        return fresh(cast(value_as(found), whole._type.dtype))

    result: Any = piece(functions[-1]) if len(functions) > len(listed) else np.zeros_like(whole)
    for condition, function in zip(listed, functions, strict=False):
        result = where(condition, piece(function), result)
    return ordered(result, whole, "K")


# ----- replacing, in place
def _target(x: Any, name: str) -> Tracer:
    if not isinstance(x, Tracer):
        raise TracerArrayError(f"np.{name} of a concrete array with traced values\n  hint: make it with np.zeros_like(x)")
    return x


def _repeated(values: Any, count: int) -> Any:
    """The elements of `values`, as often as needed."""
    flat = reshaped(as_tracer(values), (as_tracer(values).size,))
    if not flat.size:
        raise ValueError("cannot insert from an empty array")
    return flat if flat.size == count else take(flat, np.arange(count) % flat.size)


def _flat(x: Tracer) -> Tracer:
    """All elements of x in C order, as a view."""
    return x if x.ndim == 1 else flat_view(x)


@implements(np.put)
def put(a: Any, ind: Any, v: Any, mode: Any = "raise") -> None:
    flat = _flat(_target(a, "put"))
    positions: Any = ind if isinstance(ind, Tracer) else np.asarray(ind).ravel()
    if mode == "clip":
        positions = np.clip(positions, 0, flat.size - 1)
    elif mode == "wrap":
        positions = np.remainder(positions, flat.size)
    setitem(flat, np.ravel(positions), _repeated(v, positions.size))


@implements(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    if isinstance(mask, Tracer):
        raise UnsupportedError("np.place with a traced mask is not supported\n  hint: np.copyto(arr, values, where=mask)")
    positions = np.flatnonzero(mask)
    if positions.size:
        put(arr, positions, vals)


@implements(np.putmask)
def putmask(a: Any, mask: Any, values: Any) -> None:
    target = _target(a, "putmask")
    spread = reshape(value_as(_repeated(values, target.size)), target.shape)
    setitem(target, Ellipsis, where(mask, fresh(cast(spread, target._type.dtype)), target))


# ----- inserting and deleting
def _along(x: Tracer, axis: int, entry: Any) -> Any:
    return getitem(x, (*[slice(None)] * axis, entry))


def _known(value: Any, name: str) -> Any:
    if isinstance(value, Tracer):
        raise UnsupportedError(f"np.{name} at traced positions is not supported\n  hint: make them static (static_argnums)")
    return value


@implements(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    x = as_tracer(arr)
    if axis is None:
        x, axis = reshaped(x, (x.size,)), 0
    axis = normalize_axis(axis, x.ndim)
    extent = x.shape[axis]
    number = np.ndim(_known(obj, "insert")) == 0 and not isinstance(obj, slice)
    positions = np.arange(extent)[obj] if isinstance(obj, slice) else np.asarray(obj)
    if positions.dtype == bool:
        positions = np.flatnonzero(positions)
    positions = np.atleast_1d(positions).astype(np.int64)
    if ((positions < -extent) | (positions > extent)).any():
        raise IndexError(f"index {positions[0]} is out of bounds for axis {axis} with size {extent}")
    positions = np.where(positions < 0, positions + extent, positions)
    new = fresh(cast(value_as(values), x._type.dtype))
    if positions.size == 1:                               # a block: all of its rows go to one place
        new = _raised(new, x.ndim)
        new = moveaxis(new, 0, axis) if number else new
        positions = np.repeat(positions, new.shape[axis])
    while new.ndim > x.ndim and new.shape[0] == 1:
        new = getitem(new, 0)
    shape = tuple([positions.size if k == axis else n for k, n in enumerate(x.shape)])
    both = concatenate([x, np.broadcast_to(new, shape)], axis)
    # np.insert of positions: where the elements of both come in the result
    order = np.insert(np.arange(extent), positions, extent + np.arange(positions.size))
    return _along(both, axis, order)


def _raised(x: Tracer, rank: int) -> Tracer:
    """x with leading axes of extent 1, so that it has at least that rank."""
    return fresh(reshape(value_of(x), (1,) * max(rank - x.ndim, 0) + x.shape))


@implements(np.delete)
def delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    x = as_tracer(arr)
    if axis is None:
        x, axis = reshaped(x, (x.size,)), 0
    axis = normalize_axis(axis, x.ndim)
    return _along(x, axis, np.delete(np.arange(x.shape[axis]), _known(obj, "delete")))


@implements(np.resize)
def resize(a: Any, new_shape: Any) -> Any:
    x = as_tracer(a)
    shape = tuple(new_shape) if isinstance(new_shape, tuple | list) else (new_shape,)
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
    refuse("sliding_window_view", writeable=(writeable, False))
    array = as_tracer(x)
    sizes = tuple(window_shape) if isinstance(window_shape, tuple | list) else (window_shape,)
    if axis is None and len(sizes) != array.ndim:
        raise ValueError(f"Since axis is None, must provide window_shape for all dimensions of `x`; got {len(sizes)} window_shape "
                         f"elements and `x.ndim` is {array.ndim}.")
    axes = tuple(range(array.ndim)) if axis is None else tuple(
        [normalize_axis(one, array.ndim) for one in (axis if isinstance(axis, tuple | list) else (axis,))])
    if len(axes) != len(sizes) or len(set(axes)) != len(axes):
        raise ValueError("Must provide matching length window_shape and axis, of distinct axes")
    if any(size < 0 for size in sizes) or any(array.shape[k] < size for k, size in zip(axes, sizes, strict=True)):
        raise ValueError("window shape cannot be larger than input array shape")
    rest = [k for k in range(array.ndim) if k not in axes]
    order = (*rest, *axes)
    moved = value_of(array)
    moved = moved if order == tuple(range(array.ndim)) else ops.transpose(moved, axes=order)
    none = (0,) * len(axes)
    found = ops.windows(moved, sizes=sizes, strides=(1,) * len(axes), low=none, high=none, dilations=(1,) * len(axes))
    back = [order.index(k) for k in range(array.ndim)] + list(range(array.ndim, found.rank))
    return fresh(found if back == list(range(found.rank)) else ops.transpose(found, axes=tuple(back)))


def view(x: Tracer, dtype: Any = None, type: Any = None) -> Any:
    """x.view(): another handle of the same elements."""
    if dtype is not None and dtype_of(dtype) is not x._type.dtype:
        raise UnsupportedError(f"x.view({dtype}) reinterprets memory, which is not supported on traced arrays\n  hint: x.astype")
    return viewed(x, x._chain, x.shape)


# ----- functions along axes
@implements(np.apply_along_axis, states_layout=True)
def apply_along_axis(func1d: Any, axis: Any, arr: Any, *args: Any, **kwargs: Any) -> Any:
    x = as_tracer(arr)
    place = normalize_axis(axis, x.ndim)
    rest = (*x.shape[:place], *x.shape[place + 1:])
    if not element_count(rest):
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    results = []
    for position in np.ndindex(rest):
        items: list[Any] = [*position[:place], everything(x.shape[place]), *position[place:]]
        results.append(as_tracer(call_user(func1d, indexed(x, items), *args, **kwargs)))
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
        found = as_tracer(call_user(func, x, place))
        if found.ndim == rank - 1:
            found = as_tracer(np.expand_dims(found, place))
        if found.ndim != rank:
            raise ShapeError("np.apply_over_axes: function is not returning an array of the correct shape")
        x = found
    return x


HANDLERS.update(compress_method=compress_method, view=view)
