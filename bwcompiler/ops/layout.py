"""Layout ops: they move elements and compute nothing, hence are linear and map zero cotangents to zero.

Attributes hold non-negative axes, and extents for shapes; the frontend resolves NumPy's conventions
(negative axes, -1 in reshape, stretching of size-1 axes).  Element rules read an operand outside of its range only
under a guard that is false there (`rules.guarded`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler.errors import DTypeError, InternalError
from bwcompiler.ir import scalar as s
from bwcompiler.ir.access import reshape_index
from bwcompiler.ir.declaration import LINEAR, Into, Joint, OfOp
from bwcompiler.ir.extent import Extent, add_extents, known_le, may_be_reshaped, scale_extent
from bwcompiler.ir.op import Op, Value, define_op
from bwcompiler.ir.types import TensorType
from bwcompiler.ops import numpy_text
from bwcompiler.ops.broadcasting import all_batched
from bwcompiler.ops.creation import full
from bwcompiler.ops.rules import (
    At,
    Axes,
    Extents,
    Read,
    affine_index,
    as_scalar,
    guarded,
    refuse,
    require,
    require_axes,
    shifted,
    within,
    zero_of,
)

Operands = Sequence[Value]


def inverse_permutation(axes: Axes) -> Axes:
    """The permutation that undoes `axes`."""
    inverse = [0] * len(axes)
    for position, axis in enumerate(axes):
        inverse[axis] = position
    return tuple(inverse)


# ----- transpose, reshape, flip
def _transpose_shape(x: TensorType, *, axes: Axes) -> TensorType:
    require(sorted(axes) == list(range(x.rank)), f"transpose: axes {axes} must name every axis of x once", x)
    return x.with_shape(x.shape[axis] for axis in axes)


def _transpose_batch(operands: Operands, batched: Any, size: Extent, *, axes: Axes) -> Value:
    return transpose(operands[0], axes=(0, *shifted(axes)))


transpose: Op = define_op(
    "transpose", "layout", doc="Axis k of the result is axis axes[k] of x.", attributes=("axes",),
    shape=_transpose_shape, vjp=(lambda ct, out, x, *, axes: transpose(ct, axes=inverse_permutation(axes)),),
    jvp=LINEAR, batch=_transpose_batch, reference=lambda x, *, axes: np.transpose(x, axes),
    numpy=lambda a: numpy_text.transposed(a.reads[0], a.attrs["axes"]),
    element=lambda at, x, *, axes: x(*[at[position] for position in inverse_permutation(axes)]), keeps_zero=True, virtual=True,
)


def _reshape_shape(x: TensorType, *, shape: Extents) -> TensorType:
    require(may_be_reshaped(x.shape, shape), f"reshape: cannot reshape array of shape {x.shape} into shape {shape}", x)
    return x.with_shape(shape)


def _reshape_batch(operands: Operands, batched: Any, size: Extent, *, shape: Extents) -> Value:
    return reshape(operands[0], shape=(size, *shape))


def _reshape_element(at: At, x: Read, *, shape: Extents) -> s.Scalar:
    index = reshape_index(at, x.shape, shape)
    if index is None:
        raise InternalError(f"reshape of {x.shape} to {shape} merges axes: it has no affine element rule")
    return x(*index)


reshape: Op = define_op(
    "reshape", "layout", doc="The elements of x in C order, with another shape.", attributes=("shape",),
    shape=_reshape_shape, vjp=(lambda ct, out, x, *, shape: reshape(ct, shape=x.shape),), jvp=LINEAR,
    batch=_reshape_batch, reference=lambda x, *, shape: np.reshape(x, shape), numpy=numpy_text.reshape,
    element=_reshape_element, keeps_zero=True, virtual=True, in_order=True,
)


def _flip_shape(x: TensorType, *, axes: Axes) -> TensorType:
    require_axes("flip", axes, x.rank)
    return x


def _flip_batch(operands: Operands, batched: Any, size: Extent, *, axes: Axes) -> Value:
    return flip(operands[0], axes=shifted(axes))


def _flip_element(at: At, x: Read, *, axes: Axes) -> s.Scalar:
    index = list(at)
    for axis in axes:
        index[axis] = affine_index(add_extents(x.shape[axis], -1), -1, at[axis])
    return x(*index)


flip: Op = define_op(
    "flip", "layout", doc="x with the order of elements along `axes` reversed.", attributes=("axes",),
    shape=_flip_shape, vjp=(lambda ct, out, x, *, axes: flip(ct, axes=axes),), jvp=LINEAR, batch=_flip_batch,
    reference=lambda x, *, axes: np.flip(x, axes), numpy=lambda a: f"np.flip({a.reads[0]}, {numpy_text.axes_text(a.attrs['axes'])})",
    element=_flip_element, keeps_zero=True, virtual=True,
)


# ----- slices: element k of an axis is element start + step * k of the operand's
def _is_inside(position: Extent, extent: Extent) -> bool:
    """Whether 0 <= position < extent, as far as that can be decided."""
    if isinstance(position, int) and isinstance(extent, int):
        return 0 <= position < extent
    return known_le(0, position) is not False and known_le(add_extents(position, 1), extent) is not False


def _check_slice(name: str, x: TensorType, starts: Extents, sizes: Extents, steps: Axes) -> None:
    require(len(starts) == len(sizes) == len(steps) == x.rank, f"{name}: one start, size and step per axis", x)
    for axis, (extent, start, size, step) in enumerate(zip(x.shape, starts, sizes, steps, strict=True)):
        if (isinstance(start, int) and isinstance(size, int) and isinstance(extent, int) and step and size > 0
                and 0 <= start < extent and 0 <= start + (size - 1) * step < extent):
            continue                                           # the common case, without building messages
        if not step:
            refuse(f"{name}: the step of axis {axis} is zero", x)
        if known_le(0, size) is False:
            refuse(f"{name}: the size {size} of axis {axis} is negative", x)
        if known_le(size, 0):                                  # also for an extent with an index that has only one value
            continue
        last = add_extents(start, scale_extent(add_extents(size, -1), step))
        if not (_is_inside(start, extent) and _is_inside(last, extent)):
            refuse(f"{name}: axis {axis}: {start} to {last} is not inside the extent {extent}", x)


def numpy_slices(starts: Sequence[int], sizes: Sequence[int], steps: Sequence[int]) -> tuple[slice, ...]:
    """The Python slices that select the same elements."""
    found = []
    for start, size, step in zip(starts, sizes, steps, strict=True):
        stop = start + size * step
        found.append(slice(0, 0) if size == 0 else slice(start, None if stop < 0 else stop, step))
    return tuple(found)


def _slice_shape(x: TensorType, *, starts: Extents, sizes: Extents, steps: Axes) -> TensorType:
    _check_slice("slice", x, starts, sizes, steps)
    return x.with_shape(sizes)


def _slice_vjp(acc: Value, ct: Value, out: Value, x: Value, *, starts: Extents, sizes: Extents, steps: Axes) -> Value:
    return slice_add(acc, ct, starts=starts, steps=steps)


def _slice_batch(operands: Operands, batched: Any, size: Extent, *, starts: Extents, sizes: Extents,
                 steps: Axes) -> Value:
    return slice_(operands[0], starts=(0, *starts), sizes=(size, *sizes), steps=(1, *steps))


def _slice_element(at: At, x: Read, *, starts: Extents, sizes: Extents, steps: Axes) -> s.Scalar:
    return x(*[affine_index(start, step, position) for start, step, position in zip(starts, steps, at, strict=True)])


slice_ = define_op(
    "slice", "layout", doc="Elements start, start + step, ... of every axis; steps may be negative, not zero.",
    attributes=("starts", "sizes", "steps"), shape=_slice_shape, vjp=(Into(_slice_vjp),), jvp=LINEAR,
    batch=_slice_batch, reference=lambda x, *, starts, sizes, steps: np.asarray(x)[numpy_slices(starts, sizes, steps)],
    numpy=numpy_text.slice_, element=_slice_element, keeps_zero=True, virtual=True,
)


def slice_axis(x: Value, axis: int, start: Extent, size: Extent, step: int = 1) -> Value:
    """A slice of one axis."""
    return slice_(x, starts=tuple([start if k == axis else 0 for k in range(x.rank)]),
                  sizes=tuple([size if k == axis else extent for k, extent in enumerate(x.shape)]),
                  steps=tuple([step if k == axis else 1 for k in range(x.rank)]))


def _update_shape(name: str) -> Callable[..., TensorType]:
    def shape(x: TensorType, v: TensorType, *, starts: Extents, steps: Axes) -> TensorType:
        if x.dtype is not v.dtype:
            raise DTypeError(f"{name}: operands must have one dtype, got {x.dtype}, {v.dtype}")
        _check_slice(name, x, starts, v.shape, steps)
        return x
    return shape


def _update_batch(op: Op) -> Callable[..., Value]:
    def batch(operands: Operands, batched: Sequence[bool], size: Extent, *, starts: Extents, steps: Axes) -> Value:
        return op(*all_batched(operands, batched, size), starts=(0, *starts), steps=(1, *steps))
    return batch


def _update_cotangent(ct: Value, out: Value, x: Value, v: Value, *, starts: Extents, steps: Axes) -> Value:
    return slice_(ct, starts=starts, sizes=v.shape, steps=steps)


def _update_operand_cotangent(ct: Value, out: Value, x: Value, v: Value, *, starts: Extents, steps: Axes) -> Value:
    zeros = full(value=zero_of(v.dtype), shape=v.shape, dtype=v.dtype)
    return slice_update(ct, zeros, starts=starts, steps=steps)


def _inside_slice(at: At, x: Read, v: Read, starts: Extents, steps: Axes) -> tuple[list[s.Scalar], list[Any]]:
    """Conditions for `at` to be in the slice of x, and the index into v there.

    Axes that v covers completely need no condition.  A step other than 1 or -1 needs an integer division.
    """
    conditions: list[s.Scalar] = []
    index: list[s.IndexExpression] = []
    for position, extent, size, start, step in zip(at, x.shape, v.shape, starts, steps, strict=True):
        if abs(step) == 1:
            offset = affine_index(scale_extent(start, -step), step, position)   # (position - start) / step
        else:
            distance = as_scalar(affine_index(scale_extent(start, -1), 1, position))
            offset = s.operation("floor_divide", distance, step)
            conditions.append(s.operation("remainder", distance, step).equals(0))
        if size != extent:
            conditions.append(within(offset, 0, size))
        index.append(offset)
    return conditions, index


def _slice_update_element(at: At, x: Read, v: Read, *, starts: Extents, steps: Axes) -> s.Scalar:
    conditions, index = _inside_slice(at, x, v, starts, steps)
    return guarded(conditions, lambda: v(*index), lambda: x(*at))


def _slice_add_element(at: At, x: Read, v: Read, *, starts: Extents, steps: Axes) -> s.Scalar:
    conditions, index = _inside_slice(at, x, v, starts, steps)
    return guarded(conditions, lambda: x(*at) + v(*index), lambda: x(*at))


def _slice_update_reference(x: Any, v: Any, *, starts: Sequence[int], steps: Sequence[int]) -> Any:
    out = np.array(x)
    out[numpy_slices(starts, np.shape(v), steps)] = v
    return out


def _slice_add_reference(x: Any, v: Any, *, starts: Sequence[int], steps: Sequence[int]) -> Any:
    out = np.array(x)
    out[numpy_slices(starts, np.shape(v), steps)] += v
    return out


slice_update = define_op(
    "slice_update", "layout", doc="x with the elements start + step * k replaced by v.", attributes=("starts", "steps"),
    shape=_update_shape("slice_update"), vjp=(_update_operand_cotangent, _update_cotangent), jvp=LINEAR,
    batch=OfOp(_update_batch), reference=_slice_update_reference, numpy=numpy_text.slice_write("="),
    element=_slice_update_element, keeps_zero=True,
)
slice_add = define_op(
    "slice_add", "layout", doc="x with v added to the elements start + step * k.", attributes=("starts", "steps"),
    shape=_update_shape("slice_add"), vjp=(lambda ct, out, x, v, *, starts, steps: ct, _update_cotangent), jvp=LINEAR,
    batch=OfOp(_update_batch), reference=_slice_add_reference, numpy=numpy_text.slice_write("+="),
    element=_slice_add_element, keeps_zero=True,
)


# ----- concatenate, pad
def _concatenate_shape(*types: TensorType, axis: int) -> TensorType:
    require(bool(types), "concatenate: need at least one array")
    first = types[0]
    require(0 <= axis < first.rank, f"concatenate: axis {axis} is out of bounds", *types)
    total: Extent = 0
    for type_ in types:
        if type_.dtype is not first.dtype:
            raise DTypeError(f"concatenate: operands must have one dtype, got {', '.join(str(t.dtype) for t in types)}")
        fits = type_.rank == first.rank and all(
            a == b for k, (a, b) in enumerate(zip(type_.shape, first.shape, strict=True)) if k != axis)
        require(fits, f"concatenate: extents must agree except along axis {axis}", *types)
        total = add_extents(total, type_.shape[axis])
    return first.with_shape((*first.shape[:axis], total, *first.shape[axis + 1:]))


def _concatenate_vjp(ct: Value, out: Value, operands: Operands, needs: Sequence[bool], *,
                     axis: int) -> list[Value | None]:
    found: list[Value | None] = []
    offset: Extent = 0
    for operand, needed in zip(operands, needs, strict=True):
        starts = tuple(offset if k == axis else 0 for k in range(out.rank))
        found.append(slice_(ct, starts=starts, sizes=operand.shape, steps=(1,) * out.rank) if needed else None)
        offset = add_extents(offset, operand.shape[axis])
    return found


def _concatenate_batch(operands: Operands, batched: Sequence[bool], size: Extent, *, axis: int) -> Value:
    return concatenate(*all_batched(operands, batched, size), axis=axis + 1)


def _concatenate_element(at: At, *operands: Read, axis: int) -> s.Scalar:
    parts = [x for x in operands if x.shape[axis] != 0] or [operands[0]]
    offsets: list[Extent] = [0]
    for x in parts:
        offsets.append(add_extents(offsets[-1], x.shape[axis]))

    def part(k: int) -> s.Scalar:
        moved = affine_index(scale_extent(offsets[k], -1), 1, at[axis])
        return parts[k](*at[:axis], moved, *at[axis + 1:])

    result = part(len(parts) - 1)
    for k in reversed(range(len(parts) - 1)):
        result = s.guard(within(at[axis], offsets[k], offsets[k + 1]), part(k), result)
    return result


concatenate = define_op(
    "concatenate", "layout", doc="The operands one after the other along an axis.", attributes=("axis",),
    shape=_concatenate_shape, vjp=Joint(_concatenate_vjp), jvp=LINEAR, batch=_concatenate_batch,
    reference=lambda *xs, axis: np.concatenate(xs, axis), numpy=numpy_text.concatenate, element=_concatenate_element, keeps_zero=True,
)


def require_padding(name: str, *amounts: Extents) -> None:
    """Raise ShapeError if an amount of padding is negative."""
    valid = all(known_le(0, amount) is not False for side in amounts for amount in side)
    require(valid, f"{name}: padding must not be negative, got {amounts}")


def _pad_shape(x: TensorType, *, low: Extents, high: Extents, value: Any) -> TensorType:
    require(len(low) == len(high) == x.rank, "pad: one amount per axis and side", x)
    require_padding("pad", low, high)
    return x.with_shape(add_extents(add_extents(a, extent), b) for a, extent, b in zip(low, x.shape, high, strict=True))


def _pad_vjp(ct: Value, out: Value, x: Value, *, low: Extents, high: Extents, value: Any) -> Value:
    return slice_(ct, starts=low, sizes=x.shape, steps=(1,) * x.rank)


def _pad_jvp(tangents: Sequence[Value | None], out: Value, x: Value, *, low: Extents, high: Extents,
             value: Any) -> Value | None:
    return None if tangents[0] is None else pad(tangents[0], low=low, high=high, value=zero_of(x.dtype))


def _pad_batch(operands: Operands, batched: Any, size: Extent, *, low: Extents, high: Extents, value: Any) -> Value:
    return pad(operands[0], low=(0, *low), high=(0, *high), value=value)


def _pad_element(at: At, x: Read, *, low: Extents, high: Extents, value: Any) -> s.Scalar:
    index = [affine_index(scale_extent(a, -1), 1, position) for a, position in zip(low, at, strict=True)]
    conditions = [within(position, 0, extent) for position, extent, a, b in zip(index, x.shape, low, high, strict=True)
                  if a != 0 or b != 0]
    return guarded(conditions, lambda: x(*index), lambda: s.const(value, x.dtype))


def _pad_reference(x: Any, *, low: Sequence[int], high: Sequence[int], value: Any) -> Any:
    return np.pad(x, list(zip(low, high, strict=True)), constant_values=value) if np.ndim(x) else np.asarray(x)


pad = define_op(
    "pad", "layout", doc="x with low[k] elements before and high[k] after it along axis k, filled with one scalar.",
    attributes=("low", "high", "value"), shape=_pad_shape, vjp=(_pad_vjp,), jvp=_pad_jvp, batch=_pad_batch,
    reference=_pad_reference, numpy=numpy_text.pad, element=_pad_element, keeps_zero=True,
)


def displaced(x: Value, axis: int, distance: int, fill: float) -> Value:
    """Element k of the result is element k - distance of x along an axis, or `fill` if there is none."""
    extent = x.shape[axis]
    at_axis = [0] * x.rank
    at_axis[axis] = 1
    if not isinstance(extent, int):                # the extent may be less than the distance
        low, high = (tuple([max(sign * distance, 0) * k for k in at_axis]) for sign in (1, -1))
        return slice_(pad(x, low=low, high=high, value=fill), starts=high, sizes=x.shape, steps=(1,) * x.rank)
    kept = max(extent - abs(distance), 0)
    starts = tuple(max(-distance, 0) * k if kept else 0 for k in at_axis)
    sizes = tuple(kept if k else size for k, size in zip(at_axis, x.shape, strict=True))
    moved = slice_(x, starts=starts, sizes=sizes, steps=(1,) * x.rank)
    missing = extent - kept
    return pad(moved, low=tuple(k * missing if distance > 0 else 0 for k in at_axis),
               high=tuple(k * missing if distance < 0 else 0 for k in at_axis), value=fill)
