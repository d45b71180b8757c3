"""Sliding windows over the last axes, the layout op that convolution, pooling and correlation are made of.

`windows` gives every window an index of its own (an im2col that is never stored: it fuses into what reads it);
`windows_add` is its adjoint: each element adds to the place it was read from.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler.errors import UnsupportedError
from bwcompiler.ir import scalar as s
from bwcompiler.ir.declaration import LINEAR
from bwcompiler.ir.extent import Extent, add_extents
from bwcompiler.ir.op import Value, define_op
from bwcompiler.ir.types import TensorType
from bwcompiler.ops.layout import require_padding
from bwcompiler.ops.rules import (
    At,
    Axes,
    Extents,
    Read,
    add_indices,
    affine_index,
    guarded,
    require,
    within,
    zero_of,
)


def _window_count(extent: Extent, size: int, stride: int, low: int, high: int, dilation: int) -> Extent:
    """(extent + low + high - dilation * (size - 1) - 1) // stride + 1."""
    room = add_extents(extent, low + high - dilation * (size - 1) - 1)
    if stride == 1:
        return add_extents(room, 1)
    if not isinstance(room, int):
        raise UnsupportedError("windows: a stride needs a constant extent")
    return room // stride + 1


def _windows_shape(x: TensorType, *, sizes: Axes, strides: Axes, low: Axes, high: Axes, dilations: Axes) -> TensorType:
    count = len(sizes)
    require(count <= x.rank, f"windows: {count} window axes", x)
    require(len(strides) == len(low) == len(high) == len(dilations) == count, "windows: one attribute per window axis")
    require(all(k >= 1 for k in (*sizes, *strides, *dilations)), "windows: sizes, strides, dilations must be positive")
    require_padding("windows", low, high)
    lead, tail = x.shape[:x.rank - count], x.shape[x.rank - count:]
    counts = tuple(map(_window_count, tail, sizes, strides, low, high, dilations))
    fits = all(not isinstance(k, int) or k >= 0 for k in counts)
    require(fits, f"windows: {sizes} is larger than the padded array", x)
    return x.with_shape((*lead, *counts, *sizes))


def _windows_vjp(ct: Value, out: Value, x: Value, **attrs: Any) -> Value:
    return windows_add(ct, shape=x.shape, **attrs)


def _windows_element(at: At, x: Read, *, sizes: Axes, strides: Axes, low: Axes, high: Axes,
                     dilations: Axes) -> s.Scalar:
    count = len(sizes)
    lead = len(at) - 2 * count
    index = list(at[:lead])
    conditions = []
    for axis in range(count):
        corner = affine_index(-low[axis], strides[axis], at[lead + axis])
        position = add_indices(corner, affine_index(0, dilations[axis], at[lead + count + axis]))
        index.append(position)
        if low[axis] or high[axis]:
            conditions.append(within(position, 0, x.shape[lead + axis]))
    return guarded(conditions, lambda: x(*index), lambda: s.const(zero_of(x.dtype), x.dtype))


def windows_reference(x: Any, *, sizes: Any, strides: Any, low: Any, high: Any, dilations: Any) -> Any:
    """Sliding windows over the last axes of the zero-padded x: axes (..., positions, inside the window)."""
    lead = np.ndim(x) - len(sizes)
    padded = np.pad(x, [(0, 0)] * lead + list(zip(low, high, strict=True))) if np.ndim(x) else np.asarray(x)
    spans = tuple(dilation * (size - 1) + 1 for size, dilation in zip(sizes, dilations, strict=True))
    counts = tuple((n - span) // stride + 1 for n, span, stride in zip(padded.shape[lead:], spans, strides, strict=True))
    if 0 in counts:
        return np.zeros((*padded.shape[:lead], *counts, *sizes), padded.dtype)
    view = np.lib.stride_tricks.sliding_window_view(padded, spans, tuple(range(lead, padded.ndim)))
    place: Any = (..., *[slice(None, None, step) for step in (*strides, *dilations)])
    return view[place]


def windows_add_reference(ct: Any, *, shape: Any, sizes: Any, strides: Any, low: Any, high: Any, dilations: Any) -> Any:
    """The adjoint of windows: every element is added to the place it was read from."""
    ct = np.asarray(ct)
    lead = len(shape) - len(sizes)
    padded = np.zeros((*shape[:lead], *[a + n + b for a, n, b in zip(low, shape[lead:], high, strict=True)]), ct.dtype)
    counts = ct.shape[lead:len(shape)]
    for inside in itertools.product(*map(range, sizes)):
        place: Any = (..., *[slice(k * d, k * d + stride * (count - 1) + 1 if count else k * d, stride)
                             for k, d, stride, count in zip(inside, dilations, strides, counts, strict=True)])
        padded[place] += ct[(..., *inside)]
    middle: Any = (..., *[slice(a, a + n) for a, n in zip(low, shape[lead:], strict=True)])
    return padded[middle]


def _windows_batch(operands: Sequence[Value], batched: Any, size: Extent, **attrs: Any) -> Value:
    return windows(operands[0], **attrs)


def _windows_add_shape(ct: TensorType, *, shape: Extents, **attrs: Any) -> TensorType:
    type_ = ct.with_shape(shape)
    require(_windows_shape(type_, **attrs) == ct, f"windows_add: the operand is not the windows of shape {shape}", ct)
    return type_


def _windows_add_vjp(ct: Value, out: Value, x: Value, *, shape: Extents, **attrs: Any) -> Value:
    return windows(ct, **attrs)


def _windows_add_batch(operands: Sequence[Value], batched: Any, size: Extent, *, shape: Extents, **attrs: Any) -> Value:
    return windows_add(operands[0], shape=(size, *shape), **attrs)


WINDOW = ("sizes", "strides", "low", "high", "dilations")
windows = define_op(
    "windows", "layout", doc="Windows of the last len(sizes) axes of the zero-padded x: element [lead, o, k] of the "
    "result is x[lead, o * stride + k * dilation - low].", attributes=WINDOW, shape=_windows_shape, vjp=(_windows_vjp,),
    jvp=LINEAR, batch=_windows_batch, reference=windows_reference, element=_windows_element, keeps_zero=True,
    virtual=True,                       # once its padding was taken out (passes/rewriting/legalize.py)
)
windows_add = define_op(
    "windows_add", "push", doc="The adjoint of windows: every element added to where it was read; shape is that of x.",
    attributes=("shape", *WINDOW), shape=_windows_add_shape, vjp=(_windows_add_vjp,), jvp=LINEAR,
    batch=_windows_add_batch, reference=windows_add_reference, combine="add", keeps_zero=True, cheap=False,
)
