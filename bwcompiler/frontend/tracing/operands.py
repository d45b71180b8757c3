"""Operands: conversion of what the user passes to values of one dtype and shape (`cast` and `broadcast` are inserted here)."""

from __future__ import annotations

import collections
import warnings
from collections.abc import Iterable, Sequence
from numbers import Rational
from typing import Any

import numpy as np

from bwcompiler import ops, tree
from bwcompiler.errors import DTypeError, ShapeError, UnsupportedError, at
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.promotion import Kind, common_dtype, scalar_of, strong
from bwcompiler.frontend.tracing.provenance.source import levels_to_the_user
from bwcompiler.frontend.tracing.refusals.conversions import index_advice
from bwcompiler.frontend.tracing.refusals.demands import number_if_known
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.rows import are_rows, together
from bwcompiler.frontend.tracing.storages.memory_order import C_ORDER, Layout, fixed
from bwcompiler.frontend.tracing.storages.new_strides import result_strides
from bwcompiler.frontend.tracing.storages.region import active_region, open_region, shadow_of_chain
from bwcompiler.frontend.tracing.storages.shapes import fortran_strides
from bwcompiler.frontend.tracing.storages.views import broadcast_value, shadow
from bwcompiler.frontend.tracing.tracer import ScalarTracer, Tracer, fresh
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import BOOL, F64, DType, dtype_of
from bwcompiler.ops.creation import full
from bwcompiler.ops.elementwise import cast as cast_op


class Constant:
    """A scalar that takes the shape of what it meets, and its dtype: a Python number (weak) has to fit, one of NumPy is cast."""

    __slots__ = ("shape", "value", "weak")

    def __init__(self, value: Any, weak: bool = True) -> None:
        self.value = value
        self.weak = weak
        self.shape: tuple[int, ...] = ()

    def as_dtype(self, dtype: DType) -> Any:
        """The number as the dtype holds it; raises OverflowError where a Python number does not fit."""
        if self.weak or isinstance(self.value, complex):
            return scalar_of(self.value, dtype)
        with np.errstate(all="ignore"):
            return np.asarray(self.value).astype(dtype.numpy).item()


Payload = Value | Constant


def known(x: Any) -> Any:
    """The number behind a handle that depends on integer arguments alone, which are then asked for; anything else as it is."""
    if not isinstance(x, ScalarTracer) or active_region() is None:
        return x
    return number_if_known(x, value_of(x), index_advice)


def known_parts(x: Any) -> Any:
    """`known`, in tuples, lists and slices too; an array of one integer, without axes, as the integer."""
    if isinstance(x, slice):
        return slice(known(x.start), known(x.stop), known(x.step))
    if type(x) is tuple or type(x) is list:
        return type(x)([known_parts(part) for part in x])
    if isinstance(x, np.ndarray) and not x.ndim and x.dtype.kind in "iu":
        return x.item()
    return known(x)


HANDLERS["known_parts"] = known_parts


def operand(x: Any) -> tuple[Payload, Kind]:
    """What an argument is worth to an operation, and what promotion sees of it."""
    if isinstance(x, Tracer):
        return value_of(x), x._kind
    if isinstance(x, np.generic):
        return Constant(x.item(), weak=False), dtype_of(x.dtype)
    kind = type(x)
    if kind is float or kind is int or kind is complex:
        return Constant(x), kind
    if kind is bool:
        return Constant(x), BOOL
    return array_operand(x)


SEQUENCES = (list, tuple, collections.deque)       # of which NumPy makes arrays


def array_operand(x: Any) -> tuple[Payload, Kind]:
    """`operand` of arrays, sequences and everything else."""
    if isinstance(x, SEQUENCES):
        x = assembled(x)
        if isinstance(x, Tracer):
            return value_of(x), x._kind
    captured = isinstance(x, np.ndarray)                           # somebody may write to it; what is made here nobody can
    if not isinstance(x, np.ndarray):
        if isinstance(x, int | float | complex):                   # subclasses such as IntEnum
            return operand(int(x) if isinstance(x, int) else float(x) if isinstance(x, float) else complex(x))
        if isinstance(x, Rational):                                # fractions: Python floats, as NumPy's objects would be with floats
            return operand(float(x))
        if not hasattr(x, "__array__") and not isinstance(x, range):
            value = HANDLERS["unwrapped"](x)
            if value is not x:                                     # one of several things, as data decide
                return operand(value)
            hint = "\n  hint: it is an argument that was not given, or what a function without `return` gives" if x is None else ""
            raise DTypeError(f"an object of type {type(x).__name__} is not an array: {x!r}{hint}")
        x = np.asarray(x)
    require_plain(x, "")
    if x.dtype == object:
        stacked = stack_objects(x)
        return value_of(stacked), stacked._kind
    if x.ndim == 0 and not captured:
        return Constant(x.item(), weak=False), dtype_of(x.dtype)
    value = _captured(x)
    return value, value.type.dtype


def _captured(array: np.ndarray[Any, Any]) -> Value:
    """The value of a concrete array.  A transposed one is the transpose of what lies in memory, which programs read in place."""
    if array.flags.c_contiguous or array.ndim < 2:
        return open_region().capture(array)
    touched = open_region().touched
    touched[id(array)] = touched.get(id(array), 0) + 1
    order = sorted(range(array.ndim), key=lambda axis: -array.strides[axis])
    memory = array.transpose(order)
    if not memory.flags.c_contiguous:
        return open_region().capture(array)
    base = array.base                              # one array, however many views of it are used
    if type(base) is np.ndarray and (base.shape, base.dtype, base.strides) == (memory.shape, memory.dtype, memory.strides) and (
            base.ctypes.data == memory.ctypes.data):
        memory = base
    return ops.transpose(open_region().capture(memory), axes=tuple([order.index(axis) for axis in range(array.ndim)]))


def require_plain(x: np.ndarray[Any, Any], name: str) -> None:
    """Raise UnsupportedError for subclasses of ndarray that compute otherwise; `name: ` of the argument comes first."""
    if type(x) is np.ndarray:                      # np.ma is loaded when asked for
        return
    if isinstance(x, np.ma.MaskedArray):
        raise UnsupportedError(f"{name}a masked array is not supported (np.asarray would drop its mask)\n"
                               "  hint: two plain arrays, x.filled(0.0) and mask = np.ma.getmaskarray(x); then np.where(mask, 0.0, ...), "
                               "np.mean(..., where=~mask)")
    if isinstance(x, np.matrix):
        raise UnsupportedError(f"{name}a np.matrix is not supported\n  hint: np.asarray(x), and x @ y for its x * y")


def assembled(sequence: Any) -> Any:
    """np.array of a sequence that may hold tracers."""
    if not _holds_tracers(sequence):
        return np.asarray(sequence)
    items = [_part(item) for item in sequence]
    if not are_rows(items):
        columns = _columns(sequence)
        if columns is not None:
            return columns
    return stack_all(items)


def _part(item: Any) -> Any:
    """An item of a sequence: an array, or a part of one, in the place of a sequence that holds tracers."""
    if not isinstance(item, SEQUENCES):
        return item
    parts = [_part(one) for one in item] if _holds_tracers(item) else []
    rows = together(parts)
    return rows[0][0] if len(rows) == 1 and rows[0][1] else assembled(item)


def _columns(sequence: Any) -> Tracer | None:
    """The array of pairs, triples ... whose first items, second items ... are rows of arrays."""
    items = list(sequence)
    if not all(isinstance(item, tuple | list) and len(item) == len(items[0]) for item in items):
        return None
    columns = [list(column) for column in zip(*items, strict=True)]
    if not any(map(are_rows, columns)):
        return None
    stacked = value_of(stack_all([assembled(column) for column in columns]))
    return fresh(ops.transpose(stacked, axes=(1, 0, *range(2, stacked.rank))))


def is_traced(argument: Any) -> bool:
    """Whether an argument is traced, or a sequence that holds traced values."""
    return isinstance(argument, Tracer) or (isinstance(argument, SEQUENCES) and _holds_tracers(argument))


def is_tracing(*containers: Any) -> bool:
    """Whether a call with these arguments belongs to a trace: to one that is open, or by what is in them."""
    return active_region() is not None or any(isinstance(leaf, Tracer) for leaf in tree.leaves(containers))


def _holds_tracers(sequence: Any) -> bool:
    return any(isinstance(item, Tracer) or (isinstance(item, SEQUENCES) and _holds_tracers(item))
               or (isinstance(item, np.ndarray) and item.dtype == object) for item in sequence)


def stack_objects(array: np.ndarray[Any, Any]) -> Tracer:
    """The tracer for an object array whose elements are 0-d tracers and numbers.

    It remembers no dtype: `np.array([i, 1.9])` (float64) cannot be told from `y = np.array([i, j]); y[1] = 1.9` (integers).
    """
    items = list(array.ravel())
    traced = [item for item in items if isinstance(item, Tracer)]
    decimal = next((item for item in items if isinstance(item, float | np.floating)), None)
    if traced and decimal is not None and all(item._type.dtype.kind in "iub" for item in traced):
        dtype = traced[0].dtype
        raise DTypeError(f"np.array of traced {dtype} numbers and {decimal}: whether it was made so (NumPy's dtype is float64) or "
                         f"{decimal} was assigned later (NumPy keeps {dtype}) is not known\n"
                         "  hint: make it with bwcompiler.numpy.array([...]), which keeps its dtype")
    stacked = stack_all(items)
    value = value_of(stacked)
    return fresh(value if value.shape == array.shape else reshape(value, array.shape))


def stack_all(items: Sequence[Any]) -> Tracer:
    """The items, of one shape, along a new first axis."""
    parts = together(items)
    payloads, kinds = zip(*[operand(part) for part, _ in parts], strict=True)
    dtype = common_dtype(tuple([strong(kind) for kind in kinds]))      # Python numbers are not weak here, as in np.array
    shapes = [payload.shape[1:] if several else payload.shape for payload, (_, several) in zip(payloads, parts, strict=True)]
    shape = shapes[0]
    if any(other != shape for other in shapes):
        raise ShapeError(f"an array cannot be made of items of different shapes: {', '.join(sorted(set(map(str, shapes))))}")
    values = [materialise(payload, dtype, payload.shape) if several else reshape(materialise(payload, dtype, shape), (1, *shape))
              for payload, (_, several) in zip(payloads, parts, strict=True)]
    return fresh(values[0] if len(values) == 1 else ops.concatenate(*values, axis=0))


def materialise(payload: Payload, dtype: DType, shape: tuple[Any, ...]) -> Value:
    """The payload as a value of that dtype and shape."""
    if isinstance(payload, Constant):
        return full(value=payload.as_dtype(dtype), shape=shape, dtype=dtype)
    type_ = payload.type
    if type_.dtype is not dtype:
        payload = cast(payload, dtype)
    return payload if type_.shape == shape else broadcast_value(payload, shape)


def mask_as(where: Any, name: str) -> Value:
    """A where= argument; raises DTypeError as NumPy does for masks that are not boolean."""
    mask = value_as(where)
    if mask.dtype is not BOOL:
        raise DTypeError(f"np.{name}: where= must be boolean, got {mask.dtype.numpy}\n  hint: where=(mask != 0)")
    return mask


def wrapping(payload: Payload) -> Payload:
    """The payload, a Python number as one that need not fit: where NumPy makes an array of it first."""
    return Constant(payload.value, weak=False) if isinstance(payload, Constant) else payload


def value_as(x: Any, dtype: DType | None = None) -> Value:
    """Any argument as a value, of its own dtype or the given one."""
    payload, kind = operand(x)
    return materialise(payload, dtype or strong(kind), payload.shape)


def number_value(x: Any) -> Value:
    """Any argument as a value of floats or complex numbers; integers become float64."""
    value = value_as(x)
    return value if value.dtype.is_differentiable else cast(value, F64)


def real_value(x: Any) -> Value:
    """Any argument as a value of floats; integers become float64."""
    value = value_as(x)
    return value if value.dtype.is_float else cast(value, F64)


def as_tracer(x: Any) -> Tracer:
    """Any argument as a handle."""
    return x if isinstance(x, Tracer) else fresh(value_as(x))


def shadow_of(x: Any) -> np.ndarray[Any, Any]:
    """NumPy's stand-in for an operand, of which only shape and strides count; asks for the memory order."""
    if isinstance(x, Tracer):
        return shadow_of_chain(x._storage, x._chain)
    return x if isinstance(x, np.ndarray) and x.dtype != object else np.zeros(())


def is_in_c_order(x: Any) -> bool:
    """Whether an array lies in memory in C order, whatever the arguments do."""
    if not isinstance(x, Tracer):
        return bool(x.flags.c_contiguous)
    layout = x._storage.layout
    return not x._chain and (layout is None or layout is C_ORDER or (layout.settled and layout.strides() is None))


def laid_out(made: Tracer, inputs: Sequence[Any], order: Any = "K") -> Tracer:
    """A new handle, its storage laid out as NumPy would after computing it element by element from the inputs."""
    made._storage.layout = _elementwise_layout(made.shape, inputs, order)
    return made


def _elementwise_layout(shape: tuple[int, ...], inputs: Sequence[Any], order: Any) -> Layout:
    if len(shape) < 2 or 0 in shape:
        return C_ORDER
    if order in ("C", "F"):
        return fixed(fortran_strides(shape) if order == "F" else None)
    tracers = [x for x in inputs if isinstance(x, Tracer) and (order == "A" or _orders_axes(x.shape))]
    arrays = [array for array in map(_concrete, [x for x in inputs if isinstance(x, np.ndarray | list | tuple)])
              if order == "A" or _orders_axes(array.shape)]
    others = [x for x in tracers if order == "A" or x._storage.layout not in (None, C_ORDER) or not all(step.in_order for step in x._chain)]
    if not others and all(array.flags.c_contiguous for array in arrays):
        return C_ORDER
    first = others[0]._storage.layout if others and order == "K" else None
    if first is not None and len(others) == len(tracers) and not arrays and all(
            x._storage.layout is first and not x._chain and x.shape == shape for x in others):
        return first.dense(shape)
    memories = [x._memory() for x in tracers]
    layout = Layout(lambda: result_strides(shape, [*[memory.shadow() for memory in memories], *arrays], order),
                    [memory.layout for memory in memories])
    return fixed(layout.strides()) if all(memory.layout.settled for memory in memories) else layout


def _concrete(x: Any) -> np.ndarray[Any, Any]:
    """What an operand that is no handle adds to the memory order: sequences are made arrays in C order."""
    if isinstance(x, np.ndarray) and x.dtype != object:
        return x
    shape: tuple[int, ...] = x.shape if isinstance(x, np.ndarray) else ()
    while isinstance(x, list | tuple) and x:
        shape, x = (*shape, len(x)), x[0]
        shape = shape + x.shape if isinstance(x, Tracer | np.ndarray) else shape
    return shadow(shape, None, ())


def _orders_axes(shape: tuple[int, ...]) -> bool:
    """Whether an operand of that shape has two axes, of which one comes before the other in memory."""
    return len([extent for extent in shape if extent != 1]) > 1


def cast(value: Value, dtype: DType) -> Value:
    """value as dtype; raises DTypeError for complex numbers as real ones: `without_imaginary_part` where NumPy converts them."""
    if value.type.dtype is dtype:
        return value
    if value.type.dtype.is_complex and dtype.kind not in "bc":
        raise DTypeError(f"a {value.type.dtype.numpy} array is not taken as {dtype.numpy}\n  hint: take x.real, or np.abs(x)")
    return cast_op(value, dtype=dtype)


def without_imaginary_part(value: Value, dtype: DType) -> Value:
    """value to be converted to dtype, with NumPy's warning where that drops imaginary parts."""
    if not value.type.dtype.is_complex or dtype.kind in "bc":
        return value
    message = at(open_region().record.source, "Casting complex values to real discards the imaginary part")
    warnings.warn(message, np.exceptions.ComplexWarning, stacklevel=levels_to_the_user())
    return ops.real(value)


def reshape(value: Value, shape: tuple[Any, ...]) -> Value:
    """value under another shape."""
    return value if value.shape == shape else ops.reshape(value, shape=shape)


def last_axis_element(x: Value, position: int) -> Value:
    """One element of the last axis, which the result does not have."""
    return reshape(ops.slice_axis(x, x.rank - 1, position, 1), x.shape[:-1])


def constant(value: Any, like: Value) -> Value:
    """A number in every place, of like's type: a constant, or a traced number (the slope of a function, the beta of a loss)."""
    if isinstance(value, Tracer) and not value.ndim:
        number = cast(value_of(value), like.dtype)
        return ops.broadcast(number, shape=like.shape, axes=()) if like.rank else number
    return full(value=scalar_of(value, like.dtype), shape=like.shape, dtype=like.dtype)


def filled(value: Any, dtype: DType, shape: tuple[Any, ...]) -> Value:
    """A constant array."""
    return full(value=scalar_of(value, dtype), shape=shape, dtype=dtype)


def count_value(extents: Iterable[Any], dtype: DType, shape: tuple[Any, ...] = ()) -> Value:
    """How many elements axes of these extents have together, in every place of an array."""
    known, moving = 1, []
    for extent in extents:
        if isinstance(extent, int):
            known *= extent
        else:
            moving.append(extent)
    found = filled(known, dtype, () if moving else shape)
    for extent in moving:
        found = ops.multiply(found, cast(ops.index_value(extent=extent), dtype))
    return broadcast_value(found, shape)


def broadcast_shapes(shapes: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    """NumPy's broadcasting, for shapes that may hold symbolic extents."""
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    result: list[Any] = [1] * max(map(len, shapes))
    for shape in shapes:
        offset = len(result) - len(shape)
        for axis, extent in enumerate(shape):
            if extent == 1:
                continue
            if result[axis + offset] not in (1, extent):
                listed = " ".join(map(str, shapes))
                raise ShapeError(f"operands could not be broadcast together with shapes {listed}")
            result[axis + offset] = extent
    return tuple(result)


def align(xs: Sequence[Any], dtype: DType | None = None) -> list[Value]:
    """The arguments as values of their common dtype (or the given one) and broadcast shape."""
    payloads, kinds = zip(*[operand(x) for x in xs], strict=True)
    dtype = dtype or common_dtype(tuple(kinds))
    shape = broadcast_shapes([payload.shape for payload in payloads])
    return [materialise(payload, dtype, shape) for payload in payloads]


def kind_of(x: Any) -> Kind:
    """What promotion sees of an argument."""
    return x._kind if isinstance(x, Tracer) else operand(x)[1]
