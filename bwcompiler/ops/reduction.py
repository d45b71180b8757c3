"""Reductions, which remove the axes they combine (the sum is in `broadcasting`).

`combine` names the scalar operation that folds elements; the order of folding is that of `ir/semantics/reduction_tree.py`.
The dtype of the result is that of the operand: the frontend casts where NumPy widens (sums of small integers).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler.ir.declaration import not_differentiable
from bwcompiler.ir.op import Op, Value, constant, define_op
from bwcompiler.ir.types import I64, TensorType
from bwcompiler.ops import numpy_text
from bwcompiler.ops.broadcasting import SHIFTED_AXES, reduce_sum, reduced_shape, reduction, spread
from bwcompiler.ops.elementwise import BOOLEAN, cast, equal
from bwcompiler.ops.layout import displaced
from bwcompiler.ops.rules import Axes, require
from bwcompiler.ops.scan import cumprod


# ----- prod: the derivative is the product of all other elements, correct also if elements are zero
def _product_before(x: Value, axis: int, direction: int) -> Value:
    """The product of the elements before (direction 1) or after (-1) each one."""
    return displaced(cumprod(x, axis=axis, reverse=direction < 0), axis, direction, 1.0)


def _product_of_others(x: Value, axes: Axes) -> Value:
    """For every element the product of all other elements that are reduced with it."""
    if not axes:
        return constant(1.0, x.type)
    axis = axes[-1]                     # the last axis first: the rest is a product over the axes that remain
    others = _product_before(x, axis, 1) * _product_before(x, axis, -1)
    if len(axes) == 1:
        return others
    outer = _product_of_others(reduce_prod(x, axes=(axis,)), axes[:-1])
    return others * spread(outer, x, (axis,))


def _prod_jvp(tangents: Sequence[Value | None], out: Value, x: Value, *, axes: Axes) -> Value | None:
    return None if tangents[0] is None else reduce_sum(tangents[0] * _product_of_others(x, axes), axes=axes)


reduce_prod = reduction(
    "prod", "multiply", (lambda ct, out, x, *, axes: spread(ct, x, axes) * _product_of_others(x, axes),), _prod_jvp,
    doc="The product over axes.", kinds="iufc",
    reference=lambda x, *, axes: np.prod(x, axis=axes, dtype=np.asarray(x).dtype),
)


# ----- max, min: equal shares among ties
def _share(out: Value, x: Value, axes: Axes) -> tuple[Value, Value]:
    """1.0 if an element attains the extremum, and how many do.  (nan equals nothing, so 0 / 0 propagates it.)"""
    attained = cast(equal(x, spread(out, x, axes)), dtype=x.dtype)
    return attained, reduce_sum(attained, axes=axes)


def _extremum_vjp(ct: Value, out: Value, x: Value, *, axes: Axes) -> Value:
    attained, count = _share(out, x, axes)
    return attained * spread(ct / count, x, axes)


def _extremum_jvp(tangents: Sequence[Value | None], out: Value, x: Value, *, axes: Axes) -> Value | None:
    if tangents[0] is None:
        return None
    attained, count = _share(out, x, axes)
    return reduce_sum(tangents[0] * attained, axes=axes) / count


reduce_max = reduction("max", "maximum", (_extremum_vjp,), _extremum_jvp, kinds="biufc", has_identity=False,
                        doc="The largest element; nan if there is one; the gradient is shared equally by ties.",
                        reference=lambda x, *, axes: np.max(x, axis=axes))
reduce_min = reduction("min", "minimum", (_extremum_vjp,), _extremum_jvp, kinds="biufc", has_identity=False,
                        doc="The smallest element; nan if there is one; the gradient is shared equally by ties.",
                        reference=lambda x, *, axes: np.min(x, axis=axes))
reduce_any = reduction("any", "bitwise_or", BOOLEAN, doc="Whether any element is true.", kinds="b",
                        reference=lambda x, *, axes: np.any(x, axis=axes))
reduce_all = reduction("all", "bitwise_and", BOOLEAN, doc="Whether all elements are true.", kinds="b",
                        reference=lambda x, *, axes: np.all(x, axis=axes))


# ----- argmax, argmin
def _position(name: str, doc: str, reference: Callable[..., Any]) -> Op:
    def shape(x: TensorType, *, axes: Axes) -> TensorType:
        require(len(axes) == 1, f"{name}: exactly one axis, got {axes}", x)
        extent = x.shape[axes[0]] if 0 <= axes[0] < x.rank else 1
        require(extent != 0, f"attempt to get {name} of an empty sequence", x)
        return x.with_shape(reduced_shape(name, "biufc", True, x, axes)).with_dtype(I64)

    return define_op(name, "reduction", doc=doc, attributes=("axes",), shape=shape, batch=SHIFTED_AXES, combine=name,
                     vjp=not_differentiable("a position has no derivative"), numpy=numpy_text.reduction(f"np.{name}"),
                     reference=lambda x, *, axes: reference(x, axis=axes[0]), kinds="biufc", cheap=False)


argmax = _position("argmax", "Position of the first largest element along one axis; nan counts as largest.", np.argmax)
argmin = _position("argmin", "Position of the first smallest element along one axis; nan counts as smallest.",
                   np.argmin)
