"""Reductions (which squeeze the axes they combine) and scans.

`combine` names the scalar operation that folds elements; the order of folding is the lowering's (design.md, item 15).
The dtype of the result is that of the operand: the frontend casts where NumPy widens (sums of small integers).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler.errors import DTypeError, UnsupportedError
from bwcompiler.ir.extent import Extent
from bwcompiler.ir.op import LINEAR, TRANSPOSED, Op, Value, Vjp, constant, define_op, not_differentiable
from bwcompiler.ir.types import I64, TensorType
from bwcompiler.ops.elementwise import BOOLEAN, cast, equal
from bwcompiler.ops.layout import Axes, broadcast, other_axes, pad, require_axes, shifted, slice_
from bwcompiler.ops.rules import require


def _reduced_shape(name: str, kinds: str, has_identity: bool, x: TensorType, axes: Axes) -> tuple[Extent, ...]:
    require_axes(name, axes, x.rank)
    if x.dtype.kind not in kinds:
        raise DTypeError(f"{name} does not take {x.dtype.numpy}")
    kept = tuple(x.shape[axis] for axis in other_axes(x.rank, axes))
    if not has_identity and 0 not in kept:
        require(all(x.shape[axis] != 0 for axis in axes),
                f"zero-size array to reduction operation {name} which has no identity", x)
    return kept


def _reduction(name: str, combine: str, vjp: Vjp, jvp: Any, *, doc: str, kinds: str, reference: Callable[..., Any],
               has_identity: bool = True, keeps_zero: bool = False) -> Op:
    """Declare a reduction whose result has the dtype of the operand."""
    def batch(operands: Sequence[Value], batched: Any, size: Extent, *, axes: Axes) -> Value:
        return op(operands[0], axes=shifted(axes))

    op = define_op(name, "reduction", doc=doc, attributes=("axes",), vjp=vjp, jvp=jvp, batch=batch, reference=reference,
                   shape=lambda x, *, axes: x.with_shape(_reduced_shape(name, kinds, has_identity, x, axes)),
                   combine=combine, keeps_zero=keeps_zero, cheap=False)
    return op


def _spread(value: Value, like: Value, axes: Axes) -> Value:
    """A reduced value repeated along the axes that were reduced."""
    return broadcast(value, shape=like.shape, axes=other_axes(like.rank, axes))


# ----- sum
reduce_sum = _reduction(
    "sum", "add", (lambda ct, out, x, *, axes: _spread(ct, x, axes),), LINEAR, doc="The sum over axes.", kinds="iufc",
    reference=lambda x, *, axes: np.sum(x, axis=axes, dtype=np.asarray(x).dtype), keeps_zero=True,
)


# ----- prod: the derivative is the product of all other elements, right also where elements are zero
def _shift(x: Value, axis: int, distance: int, fill: float) -> Value:
    """Element k of the result is element k - distance of x along an axis, and `fill` where there is none."""
    extent = x.shape[axis]
    if not isinstance(extent, int):
        raise UnsupportedError("the derivative of a product over an axis whose extent depends on a loop index")
    kept = max(extent - abs(distance), 0)
    at_axis = [0] * x.rank
    at_axis[axis] = 1
    starts = tuple(max(-distance, 0) * k if kept else 0 for k in at_axis)
    sizes = tuple(kept if k else size for k, size in zip(at_axis, x.shape, strict=True))
    moved = slice_(x, starts=starts, sizes=sizes, steps=(1,) * x.rank)
    missing = extent - kept
    return pad(moved, low=tuple(k * missing if distance > 0 else 0 for k in at_axis),
               high=tuple(k * missing if distance < 0 else 0 for k in at_axis), value=fill)


def _exclusive_scan(x: Value, axis: int, direction: int) -> Value:
    """The product of the elements before (direction 1) or after (-1) each one; log2(n) doubling steps."""
    found = _shift(x, axis, direction, 1.0)
    distance = 1
    while distance < found.shape[axis]:
        found = found * _shift(found, axis, direction * distance, 1.0)
        distance *= 2
    return found


def _product_of_others(x: Value, axes: Axes) -> Value:
    """For every element the product of all other elements that are reduced with it."""
    if not axes:
        return constant(1.0, x.type)
    axis = axes[-1]                     # the last axis first: the rest is a product over the axes that remain
    others = _exclusive_scan(x, axis, 1) * _exclusive_scan(x, axis, -1)
    if len(axes) == 1:
        return others
    outer = _product_of_others(reduce_prod(x, axes=(axis,)), axes[:-1])
    return others * _spread(outer, x, (axis,))


def _prod_jvp(tangents: Sequence[Value | None], out: Value, x: Value, *, axes: Axes) -> Value | None:
    return None if tangents[0] is None else reduce_sum(tangents[0] * _product_of_others(x, axes), axes=axes)


reduce_prod = _reduction(
    "prod", "multiply", (lambda ct, out, x, *, axes: _spread(ct, x, axes) * _product_of_others(x, axes),), _prod_jvp,
    doc="The product over axes.", kinds="iufc",
    reference=lambda x, *, axes: np.prod(x, axis=axes, dtype=np.asarray(x).dtype),
)


# ----- max, min: equal shares among ties
def _share(out: Value, x: Value, axes: Axes) -> tuple[Value, Value]:
    """1.0 where an element attains the extremum, and how many do.  (nan equals nothing: 0 / 0 lets it surface.)"""
    attained = cast(equal(x, _spread(out, x, axes)), dtype=x.dtype)
    return attained, reduce_sum(attained, axes=axes)


def _extremum_vjp(ct: Value, out: Value, x: Value, *, axes: Axes) -> Value:
    attained, count = _share(out, x, axes)
    return attained * _spread(ct / count, x, axes)


def _extremum_jvp(tangents: Sequence[Value | None], out: Value, x: Value, *, axes: Axes) -> Value | None:
    if tangents[0] is None:
        return None
    attained, count = _share(out, x, axes)
    return reduce_sum(tangents[0] * attained, axes=axes) / count


reduce_max = _reduction("max", "maximum", (_extremum_vjp,), _extremum_jvp, kinds="biuf", has_identity=False,
                        doc="The largest element; nan if there is one; the gradient is shared equally by ties.",
                        reference=lambda x, *, axes: np.max(x, axis=axes))
reduce_min = _reduction("min", "minimum", (_extremum_vjp,), _extremum_jvp, kinds="biuf", has_identity=False,
                        doc="The smallest element; nan if there is one; the gradient is shared equally by ties.",
                        reference=lambda x, *, axes: np.min(x, axis=axes))
reduce_any = _reduction("any", "bitwise_or", BOOLEAN, LINEAR, doc="Whether any element is true.", kinds="b",
                        reference=lambda x, *, axes: np.any(x, axis=axes))
reduce_all = _reduction("all", "bitwise_and", BOOLEAN, LINEAR, doc="Whether all elements are true.", kinds="b",
                        reference=lambda x, *, axes: np.all(x, axis=axes))


# ----- argmax, argmin
def _position(name: str, doc: str, reference: Callable[..., Any]) -> Op:
    def shape(x: TensorType, *, axes: Axes) -> TensorType:
        require(len(axes) == 1, f"{name}: exactly one axis, got {axes}", x)
        extent = x.shape[axes[0]] if 0 <= axes[0] < x.rank else 1
        require(extent != 0, f"attempt to get {name} of an empty sequence", x)
        return x.with_shape(_reduced_shape(name, "biuf", True, x, axes)).with_dtype(I64)

    def batch(operands: Sequence[Value], batched: Any, size: Extent, *, axes: Axes) -> Value:
        return op(operands[0], axes=shifted(axes))

    op = define_op(name, "reduction", doc=doc, attributes=("axes",), shape=shape, jvp=LINEAR, batch=batch, combine=name,
                   vjp=not_differentiable("a position has no derivative"), cheap=False,
                   reference=lambda x, *, axes: reference(x, axis=axes[0]))
    return op


argmax = _position("argmax", "Position of the first largest element along one axis; nan counts as largest.", np.argmax)
argmin = _position("argmin", "Position of the first smallest element along one axis; nan counts as smallest.",
                   np.argmin)


# ----- scans
def _scan_shape(name: str) -> Callable[..., TensorType]:
    def shape(x: TensorType, *, axis: int, reverse: bool) -> TensorType:
        require_axes(name, (axis,), x.rank)
        if x.dtype.kind not in "iufc":
            raise DTypeError(f"{name} does not take {x.dtype.numpy}")
        return x
    return shape


def _scan_reference(function: Callable[..., Any]) -> Callable[..., Any]:
    def reference(x: Any, *, axis: int, reverse: bool) -> Any:
        x = np.asarray(x)
        ordered = np.flip(x, axis) if reverse else x
        found = function(ordered, axis=axis, dtype=x.dtype)
        return np.flip(found, axis) if reverse else found
    return reference


def _scan(name: str, combine: str, vjp: Vjp, jvp: Any, doc: str, function: Callable[..., Any], keeps_zero: bool) -> Op:
    def batch(operands: Sequence[Value], batched: Any, size: Extent, *, axis: int, reverse: bool) -> Value:
        return op(operands[0], axis=axis + 1, reverse=reverse)

    op = define_op(name, "scan", doc=doc, attributes=("axis", "reverse"), shape=_scan_shape(name), vjp=vjp, jvp=jvp,
                   batch=batch, reference=_scan_reference(function), combine=combine, keeps_zero=keeps_zero,
                   cheap=False)
    return op


cumsum: Op = _scan("cumsum", "add", (lambda ct, out, x, *, axis, reverse: cumsum(ct, axis=axis, reverse=not reverse),),
                   LINEAR, "The running sum along an axis, from its end if reverse.", np.cumsum, True)


def _cumprod_vjp(ct: Value, out: Value, x: Value, *, axis: int, reverse: bool) -> Value:
    # With y_i = x_0 ... x_i:  x̄_k = y_{k-1} S_k,  S_k = ct_k + x_{k+1} S_{k+1}.  No division, so zeros are fine.
    # The recurrence composes affine maps S -> b + a S, which is associative: log2(n) doubling steps.
    back = 1 if reverse else -1
    before = _shift(out, axis, -back, 1.0)
    a, b = _shift(x, axis, back, 0.0), ct
    distance = 1
    while distance < x.shape[axis]:
        b = b + a * _shift(b, axis, back * distance, 0.0)
        a = a * _shift(a, axis, back * distance, 0.0)
        distance *= 2
    return before * b


cumprod = _scan("cumprod", "multiply", (_cumprod_vjp,), TRANSPOSED,
                "The running product along an axis, from its end if reverse.", np.cumprod, False)
