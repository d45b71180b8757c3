"""NumPy functions about real and imaginary parts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.numpy.real_results import may_be_taken_for_real, taken_for_real
from bwcompiler.frontend.tracing.operands import (
    as_tracer,
    cast,
    constant,
    filled,
    value_as,
)
from bwcompiler.frontend.tracing.promotion import resolve
from bwcompiler.frontend.tracing.registry import implements
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.types import BOOL

NOTHING = np._NoValue


@implements(np.iscomplexobj)
def iscomplexobj(x: Any) -> bool:
    return bool(as_tracer(x)._type.dtype.is_complex)


@implements(np.isrealobj)
def isrealobj(x: Any) -> bool:
    return not iscomplexobj(x)


@implements(np.isreal)
def isreal(x: Any) -> Any:
    value = value_as(x)
    if not value.dtype.is_complex:
        return fresh(filled(True, BOOL, value.shape))
    part = ops.imag(value)
    return fresh(ops.equal(part, constant(0.0, part)))


@implements(np.iscomplex)
def iscomplex(x: Any) -> Any:
    value = value_as(x)
    if not value.dtype.is_complex:
        return fresh(filled(False, BOOL, value.shape))
    part = ops.imag(value)
    return fresh(ops.not_equal(part, constant(0.0, part)))


@implements(np.real_if_close)
def real_if_close(a: Any, tol: Any = 100) -> Any:
    x = as_tracer(a)
    if not x._type.dtype.is_complex:
        return x
    if not may_be_taken_for_real():
        raise UnsupportedError("np.real_if_close: whether the imaginary parts are small, and so the dtype of the result, is not known "
                               "while tracing\n  hint: take x.real")
    limit = np.finfo(x._type.dtype.numpy).eps * tol if tol > 1 else tol
    return x.real if taken_for_real(np.any(~(np.abs(x.imag) < limit)), "the numbers given to np.real_if_close are complex") else x


@implements(np.angle)
def angle(z: Any, deg: Any = False) -> Any:
    """arctan2(imaginary part, real part), with derivative 0 at 0, as abs has; for real numbers 0, or pi for negative ones (and -0.0)."""
    x = value_as(z)
    if x.dtype.is_complex:
        real, imaginary = ops.real(x), ops.imag(x)
        zero, one = constant(0.0, real), constant(1.0, real)
        is_zero = ops.bitwise_and(ops.equal(real, zero), ops.equal(imaginary, zero))
        found = ops.arctan2(ops.select(is_zero, ops.copysign(zero, imaginary), imaginary),
                            ops.select(is_zero, ops.copysign(one, real), real))
        return fresh(ops.multiply(found, constant(180.0 / math.pi, found)) if deg else found)
    x = cast(x, resolve(np.arctan2, (int, x.dtype)).outputs[0])             # NumPy's imaginary part is the number 0
    turned = ops.select(ops.signbit(x), constant(180.0 if deg else math.pi, x), constant(0.0, x))
    return fresh(ops.select(ops.isnan(x), x, turned))
