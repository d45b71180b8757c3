"""NumPy's functions that move elements within one array: views and copies as in NumPy."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import ShapeError, UnsupportedError
from bwcompiler.frontend.numpy.axes import normalize_axes, normalize_axis, reduction_axes
from bwcompiler.frontend.tracing.handles import assign, value_of
from bwcompiler.frontend.tracing.indexing.index_handle import as_extents
from bwcompiler.frontend.tracing.operands import (
    as_tracer,
    broadcast_shapes,
    cast,
    laid_out,
    materialise,
    operand,
    reshape,
    shadow_of,
    value_as,
    without_imaginary_part,
)
from bwcompiler.frontend.tracing.promotion import asked, require_cast
from bwcompiler.frontend.tracing.registry import HANDLERS, implements
from bwcompiler.frontend.tracing.storages.memory_order import C_ORDER, Layout, fixed
from bwcompiler.frontend.tracing.storages.new_strides import copied_strides, result_strides
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.frontend.tracing.storages.shapes import always_viewed, fortran_strides
from bwcompiler.frontend.tracing.storages.strided_views import BasicItem, Slice
from bwcompiler.frontend.tracing.storages.undecided_views import Choice, decide_views
from bwcompiler.frontend.tracing.storages.views import BroadcastView, PartView, ReshapeRule, ReshapeView, index_chain, transpose_chain
from bwcompiler.frontend.tracing.tracer import Tracer, fresh, fresh_array, handle
from bwcompiler.ir.extent import Extent, exact_count, known_le, may_be_reshaped
from bwcompiler.ir.types import component_of, tensor


def viewed(x: Tracer, chain: Any, shape: tuple[Any, ...]) -> Tracer:
    """Another handle of x's storage; for a NumPy scalar, which has no memory to share, a new array."""
    storage = x._storage if x._storage.writable or not shape else fresh_array(value_of(x))._storage
    return handle(storage, chain, tensor(x._type.dtype, shape))


def _strings(order: Any, *allowed: str) -> str:
    if order not in allowed:
        raise ValueError(f"order must be one of {', '.join(map(repr, allowed))}, got {order!r}")
    return str(order)


# ----- transposes
def transposed(x: Tracer, axes: tuple[int, ...]) -> Tracer:
    """The transposed view."""
    shape = x.shape
    return viewed(x, transpose_chain(x._chain, shape, axes), tuple([shape[axis] for axis in axes]))


@implements(np.transpose)
def transpose(a: Any, axes: Any = None) -> Any:
    x = as_tracer(a)
    if axes is None:
        return transposed(x, tuple(reversed(range(x.ndim))))
    given = tuple(axes) if isinstance(axes, tuple | list | np.ndarray) else (axes,)
    if len(given) != x.ndim:
        raise ShapeError(f"np.transpose: axes {given} don't match an array with {x.ndim} axes")
    order = tuple([normalize_axis(axis, x.ndim) for axis in given])
    if len(set(order)) != len(order):
        raise ShapeError(f"np.transpose: repeated axis in {given}")
    return transposed(x, order)


def transpose_method(x: Tracer, *axes: Any) -> Any:
    """x.transpose(), x.transpose(0, 1), x.transpose((0, 1)), x.transpose(None)."""
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], tuple | list)):
        return transpose(x, axes[0])
    return transpose(x, axes or None)


@implements(np.matrix_transpose, np.linalg.matrix_transpose)
def matrix_transpose(x: Any, /) -> Any:
    x = as_tracer(x)
    if x.ndim < 2:
        raise ShapeError("matrix transpose needs at least 2 axes")
    return swapaxes(x, -1, -2)


@implements(np.swapaxes)
def swapaxes(a: Any, axis1: Any, axis2: Any) -> Any:
    x = as_tracer(a)
    order = list(range(x.ndim))
    first, second = normalize_axis(axis1, x.ndim), normalize_axis(axis2, x.ndim)
    order[first], order[second] = order[second], order[first]
    return transposed(x, tuple(order))


@implements(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    x = as_tracer(a)
    sources, targets = [[normalize_axis(axis, x.ndim) for axis in (axes if isinstance(axes, Iterable) else [axes])]
                        for axes in (source, destination)]
    if len(sources) != len(targets) or len(set(sources)) != len(sources) or len(set(targets)) != len(targets):
        raise ValueError("`source` and `destination` arguments must have the same number of distinct elements")
    order = [axis for axis in range(x.ndim) if axis not in sources]
    for target, axis in sorted(zip(targets, sources, strict=True)):
        order.insert(target, axis)
    return transposed(x, tuple(order))


@implements(np.rollaxis)
def rollaxis(a: Any, axis: Any, start: Any = 0) -> Any:
    x = as_tracer(a)
    axis = normalize_axis(axis, x.ndim)
    start = start + x.ndim if start < 0 else start
    if not 0 <= start <= x.ndim:
        raise np.exceptions.AxisError(f"np.rollaxis: start={start} is not between 0 and the number of axes, {x.ndim}")
    start = start - 1 if axis < start else start
    order = [k for k in range(x.ndim) if k != axis]
    order.insert(start, axis)
    return transposed(x, tuple(order))


# ----- reshapes
def complete_shape(shape: Any, old: tuple[Any, ...]) -> tuple[Any, ...]:
    """The shape with -1 replaced; raises ShapeError if the number of elements differs."""
    given = as_extents(shape)
    unknown = [axis for axis, extent in enumerate(given) if extent == -1]
    (size, moving), (known, given_moving) = _factors(old), _factors([extent for extent in given if extent != -1])
    rest = [extent for extent in moving if extent not in given_moving]
    fits = known == size if not unknown else len(unknown) == 1 and known != 0 and size % known == 0
    if not fits or any(isinstance(extent, int) and extent < -1 for extent in given):
        raise ShapeError(f"cannot reshape array of shape {old} into shape {given}")
    found = tuple([exact_count([size // known, *rest]) if extent == -1 else extent for extent in given])
    if (moving or given_moving) and not may_be_reshaped(old, found):
        raise UnsupportedError(f"reshape of an array of shape {old} into shape {found}: axes whose extents depend on a loop index have to "
                               "stay, in their order\n  hint: axes of extent 1 may come and go, x[:, None]; sums take several axes")
    return found


def _factors(shape: Iterable[Any]) -> tuple[int, list[Extent]]:
    """The product of the extents that are integers, and the others."""
    parts = list(shape)
    return math.prod([part for part in parts if isinstance(part, int)]), [part for part in parts if not isinstance(part, int)]


def reshaped(x: Tracer, shape: tuple[int, ...]) -> Tracer:
    """x.reshape(shape) in C order: a view if NumPy returns one."""
    if shape == x.shape:
        return viewed(x, x._chain, shape)
    return _reshaped(x, shape, "possible")


def _reshaped(x: Tracer, shape: tuple[int, ...], rule: ReshapeRule) -> Tracer:
    storage, chain = x._storage, x._chain
    if not storage.writable:
        return fresh_array(reshape(value_of(x), shape))
    layout, step = C_ORDER if storage.layout is None else storage.layout, ReshapeView(shape, rule)
    view = (layout is C_ORDER and not chain) or (rule == "possible" and always_viewed(x.shape, shape))
    if not view and not layout.settled:
        return _undecided(x, shape, rule)
    if not view and step.viewed(shadow_of(x)) is None:
        return fresh_array(reshape(value_of(x), shape))
    return viewed(x, (*chain, step), shape)


def _undecided(x: Tracer, shape: tuple[int, ...], rule: ReshapeRule) -> Tracer:
    """x with another shape: a view or a copy, decided when one of the two is written to."""
    value = reshape(value_of(x), shape)
    region = open_region()
    storage = x._storage
    if storage.undecided is None:
        storage.undecided = []
    step = ReshapeView(shape, rule, Choice(region, value))
    made = handle(storage, (*x._chain, step), value.type)
    made._value, made._version, made._region = value, storage.version, region
    return made


def flat_view(x: Tracer) -> Tracer:
    """A view of all elements in C order, for any memory layout: x.flat reads and writes it."""
    return viewed(x, (*x._chain, ReshapeView((x.size,), "always")), (x.size,))


def is_flat(x: Tracer) -> bool:
    """Whether this is x.flat, whose slices are copies."""
    return bool(x._chain) and isinstance(x._chain[-1], ReshapeView) and x._chain[-1].rule == "always"


def _reshape(x: Tracer, shape: Any, order: str) -> Tracer:
    target = complete_shape(shape, x.shape)
    if order == "A":
        order = "F" if shadow_of(x).flags.fnc else "C"
    if order == "C" or x.ndim == 0:
        return reshaped(x, target)
    return transpose(reshaped(transpose(x), tuple(reversed(target))))  # type: ignore[no-any-return]


@implements(np.reshape)
def reshape_(a: Any, /, shape: Any = None, order: Any = "C", *, newshape: Any = None, copy: Any = None) -> Any:
    x = as_tracer(a)
    made = _reshape(x, newshape if shape is None else shape, _strings(order, "C", "F", "A"))
    if copy:
        return fresh_array(value_of(made))
    if copy is False:
        decide_views(x._storage)
        if made._storage is not x._storage:
            raise ValueError("Unable to avoid creating a copy while reshaping.")
    return made


def reshape_method(x: Tracer, *shape: Any, order: Any = "C", copy: Any = None) -> Any:
    """x.reshape(2, 3) and x.reshape((2, 3))."""
    return reshape_(x, shape[0] if len(shape) == 1 else shape, order, copy=copy)


@implements(np.ravel)
def ravel(a: Any, order: Any = "C") -> Any:
    x = as_tracer(a)
    if _strings(order, "C", "F", "A", "K") in "AK" and len([extent for extent in x.shape if extent != 1]) < 2:
        order = "C"                                    # one axis: all orders are equal
    if order == "A":
        order = "F" if shadow_of(x).flags.fnc else "C"
    if order == "K":                                   # the order of the elements in memory
        strides = result_strides(x.shape, [shadow_of(x)])
        flat = x if strides is None else transposed(x, tuple(sorted(range(x.ndim), key=lambda axis: -strides[axis])))
    else:
        flat = x if order == "C" else transpose(x)
    return _reshaped(flat, (x.size,), "contiguous")


def flatten(x: Tracer, order: Any = "C") -> Any:
    """x.flatten(): always a copy."""
    return fresh(reshape(value_of(ravel(x, order)), (x.size,)))


def flat(x: Tracer) -> Tracer:
    """x.flat as a view of one axis."""
    return flat_view(x)


def conjugate_method(x: Tracer) -> Tracer:
    """x.conj(); for a real array x itself."""
    if x._type.dtype.is_complex:
        return laid_out(fresh(ops.conjugate(value_of(x))), [x])
    return real(x)


def indexed(x: Tracer, items: list[BasicItem]) -> Tracer:
    """The view for basic indexing with normalised items."""
    shape = []
    position = 0
    for item in items:
        if item is None:
            shape.append(1)
            continue
        if isinstance(item, Slice):
            shape.append(item.size)
        position += 1
    return viewed(x, index_chain(x._chain, x.shape, items), tuple(shape))


def everything(extent: int) -> Slice:
    """A whole axis."""
    return Slice(0, extent, 1)


@implements(np.squeeze)
def squeeze(a: Any, axis: Any = None) -> Any:
    x = as_tracer(a)
    if axis is None and not all(known_le(extent, 1) or known_le(2, extent) for extent in x.shape):
        raise UnsupportedError(f"np.squeeze of an array of shape {x.shape}: which axes have one element depends on a loop index\n"
                               "  hint: name them, axis=1")
    axes = [k for k, extent in enumerate(x.shape) if extent == 1] if axis is None else reduction_axes(axis, x.ndim)
    for k in axes:
        if x.shape[k] != 1:
            raise ShapeError(f"cannot select an axis to squeeze out which has size not equal to one: axis {k} of {x.shape}")
    return indexed(x, [0 if k in axes else everything(extent) for k, extent in enumerate(x.shape)])


@implements(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> Any:
    x = as_tracer(a)
    given = tuple(axis) if isinstance(axis, tuple | list) else (operator.index(axis),)
    count = len(given)
    axes = normalize_axes(given, x.ndim + count)
    extents = iter(x.shape)
    return indexed(x, [None if k in axes else everything(next(extents)) for k in range(x.ndim + count)])


def _at_least(rank: int, x: Tracer) -> Tracer:
    missing = rank - x.ndim
    if missing <= 0:
        return x
    kept: list[BasicItem] = [everything(extent) for extent in x.shape]
    front = 1 if rank == 3 and x.ndim == 1 else 0 if rank == 3 and x.ndim == 2 else missing
    return indexed(x, [*[None] * front, *kept, *[None] * (missing - front)])


def _at_least_function(rank: int) -> Any:
    def function(*arys: Any) -> Any:
        made = [_at_least(rank, as_tracer(x)) for x in arys]
        return made[0] if len(made) == 1 else tuple(made)
    return function


for _rank, _function in enumerate((np.atleast_1d, np.atleast_2d, np.atleast_3d), 1):
    implements(_function)(_at_least_function(_rank))


# ----- broadcasts
@implements(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: Any = False) -> Any:
    x = as_tracer(array)
    target = as_extents(shape)
    if any(isinstance(extent, int) and extent < 0 for extent in target):
        raise ValueError("all elements of broadcast shape must be non-negative")
    if broadcast_shapes([x.shape, target]) != target:
        raise ShapeError(f"np.broadcast_to: shape {x.shape} does not broadcast to {target}")
    return viewed(x, (*x._chain, BroadcastView(target)), target)


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: Any = False) -> Any:
    xs = [as_tracer(x) for x in args]
    shape = broadcast_shapes([x.shape for x in xs])
    return tuple([broadcast_to(x, shape) for x in xs])


# ----- reversals
@implements(np.flip)
def flip(m: Any, axis: Any = None) -> Any:
    x = as_tracer(m)
    axes = normalize_axes(axis, x.ndim)
    return indexed(x, [Slice(extent - 1, extent, -1) if k in axes and extent else everything(extent)
                       for k, extent in enumerate(x.shape)])


@implements(np.fliplr)
def fliplr(m: Any) -> Any:
    return flip(m, 1)


@implements(np.flipud)
def flipud(m: Any) -> Any:
    return flip(m, 0)


@implements(np.rot90)
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    x = as_tracer(m)
    if len(axes) != 2:
        raise ValueError("len(axes) must be 2.")
    first, second = [normalize_axis(axis, x.ndim) for axis in axes]
    if first == second:
        raise ValueError("Axes must be different.")
    k %= 4
    if k == 0:
        return viewed(x, x._chain, x.shape)
    if k == 2:
        return flip(x, (first, second))
    return swapaxes(flip(x, second), first, second) if k == 1 else flip(swapaxes(x, first, second), second)


# ----- copies and conversions
@implements(np.copy, states_layout=True)
def copy(a: Any, order: Any = "K", subok: Any = False) -> Any:
    return ordered(fresh_array(value_as(a)), a, order)


def ordered(made: Tracer, x: Any, order: Any) -> Tracer:
    """A copy of x in the given memory order."""
    shape, memory = made.shape, as_tracer(x)._memory()
    answers: dict[str, Callable[[], tuple[int, ...] | None]] = {
        "C": lambda: None, "F": lambda: fortran_strides(shape), "K": lambda: copied_strides(shape, memory.shadow()),
        "A": lambda: fortran_strides(shape) if memory.shadow().flags.fnc else None}
    known = _strings(order, "C", "F", "A", "K") in "CF" or (memory.layout is C_ORDER and not memory.chain)
    made._storage.layout = fixed(answers[order]()) if known else Layout(answers[order], [memory.layout])
    return made


def copy_method(x: Tracer, order: Any = "C") -> Any:
    """x.copy()."""
    made = ordered(fresh_array(value_of(x)), x, order)
    made._storage.writable = bool(x.shape) or x._storage.writable
    return made


def contiguous(x: Tracer, order: Any) -> Tracer:
    """x itself if it has the given memory order, else a copy."""
    if order is None or _strings(order, "C", "F", "A", "K") in "AK":
        return x
    return _reshaped(x, x.shape, "contiguous") if order == "C" else transpose(_reshaped(transpose(x), x.shape[::-1], "contiguous"))


def astype(x: Tracer, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: Any = True, copy: Any = True) -> Any:
    """x.astype(dtype)."""
    target = asked(dtype)
    require_cast(x._type.dtype, target, casting, "astype")
    if not copy and target is x._type.dtype:
        return contiguous(x, order)
    made = ordered(fresh(cast(without_imaginary_part(value_of(x), target), target)), x, order)
    made._storage.writable = bool(x.shape) or x._storage.writable
    return made


@implements(np.astype, states_layout=True)
def astype_function(x: Any, dtype: Any, /, *, copy: Any = True, device: Any = None) -> Any:
    return astype(as_tracer(x), dtype, copy=copy)


def real(x: Tracer) -> Tracer:
    """x.real, a view; for a real array x itself."""
    return part(x, "real") if x._type.dtype.is_complex else viewed(x, x._chain, x.shape)


def imag(x: Tracer) -> Tracer:
    """x.imag, a view; for a real array zeros, for a real number 0."""
    if x._type.dtype.is_complex:
        return part(x, "imag")
    zeros: Tracer = HANDLERS["zeros_like"](x)
    return zeros if x.shape or x._storage.writable else fresh(value_of(zeros))


def part(x: Tracer, name: Literal["real", "imag"]) -> Tracer:
    """The view of the real or imaginary parts of a complex array; for a NumPy scalar, which has no memory to share, a scalar."""
    step = PartView(x.shape, name)
    if not x._storage.writable and not x.shape:
        weak = float if x._kind is complex else None
        return fresh(step.read(value_of(x)), weak)
    return handle(x._storage, (*x._chain, step), tensor(component_of(x._type.dtype), x.shape))


def set_part(x: Tracer, name: Literal["real", "imag"], value: Any) -> None:
    """x.real = value, x.imag = value."""
    if not x._type.dtype.is_complex and name == "imag":
        raise TypeError("array does not have imaginary part to set")
    setitem = HANDLERS["setitem"]
    setitem(real(x) if name == "real" else imag(x), Ellipsis, value)


@implements(np.real)
def real_function(val: Any) -> Any:
    return real(as_tracer(val))


@implements(np.imag)
def imag_function(val: Any) -> Any:
    return imag(as_tracer(val))


def fill(x: Tracer, value: Any) -> None:
    """x.fill(value)."""
    payload = operand(value)[0]
    if payload.shape:
        raise ShapeError(f"x.fill takes a scalar, got shape {payload.shape}")
    assign(x, materialise(payload, x._type.dtype, x.shape))


HANDLERS.update(transpose_method=transpose_method, reshape_method=reshape_method, flatten=flatten, flat=flat, copy=copy_method,
                conjugate_method=conjugate_method, astype=astype, real=real, imag=imag, part=part, set_part=set_part, fill=fill)
