"""Scans: running sums, products and extrema along an axis, from its end if `reverse`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler.errors import DTypeError
from bwcompiler.ir.declaration import LINEAR, TRANSPOSED
from bwcompiler.ir.extent import Extent, upper
from bwcompiler.ir.op import Op, Value, Vjp, define_op
from bwcompiler.ir.types import TensorType
from bwcompiler.ops import numpy_text
from bwcompiler.ops.elementwise import bitwise_and, cast, equal, full_like, select
from bwcompiler.ops.layout import displaced
from bwcompiler.ops.rules import require_axes


def _scan(name: str, combine: str, vjp: Vjp, jvp: Any, *, doc: str, numpy: str, reference: Callable[..., Any],
          kinds: str = "iufc", keeps_zero: bool = False) -> Op:
    """Declare a scan.  numpy: its name in NumPy; reference: a function of (x, axis)."""
    def shape(x: TensorType, *, axis: int, reverse: bool) -> TensorType:
        require_axes(name, (axis,), x.rank)
        if x.dtype.kind not in kinds:
            raise DTypeError(f"{name} does not take {x.dtype.numpy}")
        return x

    def batch(operands: Sequence[Value], batched: Any, size: Extent, *, axis: int, reverse: bool) -> Value:
        return op(operands[0], axis=axis + 1, reverse=reverse)

    def in_order(x: Any, *, axis: int, reverse: bool) -> Any:
        x = np.asarray(x)
        return np.flip(reference(np.flip(x, axis), axis), axis) if reverse else reference(x, axis)

    op = define_op(name, "scan", doc=doc, attributes=("axis", "reverse"), shape=shape, vjp=vjp, jvp=jvp, batch=batch,
                   reference=in_order, numpy=numpy_text.scan(numpy), combine=combine, kinds=kinds,
                   keeps_zero=keeps_zero, cheap=False)
    return op


cumsum: Op = _scan(
    "cumsum", "add", (lambda ct, out, x, *, axis, reverse: cumsum(ct, axis=axis, reverse=not reverse),), LINEAR,
    doc="The running sum along an axis, from its end if reverse.", numpy="np.cumsum", keeps_zero=True,
    reference=lambda x, axis: np.cumsum(x, axis, dtype=x.dtype),
)


def _cumprod_vjp(ct: Value, out: Value, x: Value, *, axis: int, reverse: bool) -> Value:
    # With y_i = x_0 ... x_i:  x̄_k = y_{k-1} S_k,  S_k = ct_k + x_{k+1} S_{k+1}.  No division, so zeros are fine.
    # The recurrence composes affine maps S -> b + a S, which is associative: log2(n) doubling steps.
    back = 1 if reverse else -1
    before = displaced(out, axis, -back, 1.0)
    a, b = displaced(x, axis, back, 0.0), ct
    distance = 1
    while distance < upper(x.shape[axis]):
        b = b + a * displaced(b, axis, back * distance, 0.0)
        a = a * displaced(a, axis, back * distance, 0.0)
        distance *= 2
    return before * b


cumprod = _scan(
    "cumprod", "multiply", (_cumprod_vjp,), TRANSPOSED, doc="The running product along an axis, from its end if reverse.",
    numpy="np.cumprod", reference=lambda x, axis: np.cumprod(x, axis, dtype=x.dtype),
)


# ----- running extrema: equal shares among ties, as max has it
# The running extremum y is constant along runs, and the elements that attain y_i are those of its run up to i.
def _sums_of_runs(x: Value, joined: Value, axis: int, direction: int) -> Value:
    """Running sums that start anew in every run, in log2(n) doubling steps.

    joined     whether an element belongs to the run of the one before it, in this direction (1: from the start, -1: the end).
    """
    distance = 1
    while distance < upper(x.shape[axis]):
        x = x + select(joined, displaced(x, axis, direction * distance, 0.0), full_like(x, 0.0))
        joined = bitwise_and(joined, displaced(joined, axis, direction * distance, False))
        distance *= 2
    return x


def _joined(out: Value, axis: int, direction: int) -> Value:
    return equal(out, displaced(out, axis, direction, math.nan))


def _attained(out: Value, x: Value, axis: int, direction: int) -> tuple[Value, Value]:
    """1.0 if an element attains the extremum up to it, and how many have until then.  (nan equals nothing: 0 / 0 is nan.)"""
    attained = cast(equal(x, out), dtype=x.dtype)
    return attained, _sums_of_runs(attained, _joined(out, axis, direction), axis, direction)


def _extremum_vjp(ct: Value, out: Value, x: Value, *, axis: int, reverse: bool) -> Value:
    direction = -1 if reverse else 1
    attained, count = _attained(out, x, axis, direction)
    return attained * _sums_of_runs(ct / count, _joined(out, axis, -direction), axis, -direction)


def _extremum_jvp(tangents: Sequence[Value | None], out: Value, x: Value, *, axis: int, reverse: bool) -> Value | None:
    if tangents[0] is None:
        return None
    direction = -1 if reverse else 1
    attained, count = _attained(out, x, axis, direction)
    return _sums_of_runs(tangents[0] * attained, _joined(out, axis, direction), axis, direction) / count


cummax = _scan(
    "cummax", "maximum", (_extremum_vjp,), _extremum_jvp, kinds="biufc", numpy="np.maximum.accumulate",
    doc="The largest element so far along an axis, from its end if reverse; nan from the first nan on; the gradient is shared "
    "equally by the elements so far that tie.", reference=lambda x, axis: np.maximum.accumulate(x, axis),
)
cummin = _scan(
    "cummin", "minimum", (_extremum_vjp,), _extremum_jvp, kinds="biufc", numpy="np.minimum.accumulate",
    doc="The smallest element so far along an axis, from its end if reverse; nan from the first nan on; the gradient is shared "
    "equally by the elements so far that tie.", reference=lambda x, axis: np.minimum.accumulate(x, axis),
)
