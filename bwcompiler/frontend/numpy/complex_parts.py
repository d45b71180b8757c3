"""NumPy functions about real and imaginary parts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler import ops
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
    return fresh(filled(True, BOOL, as_tracer(x).shape))


@implements(np.iscomplex)
def iscomplex(x: Any) -> Any:
    return fresh(filled(False, BOOL, as_tracer(x).shape))


@implements(np.real_if_close)
def real_if_close(a: Any, tol: Any = 100) -> Any:
    return as_tracer(a)


@implements(np.angle)
def angle(z: Any, deg: Any = False) -> Any:
    """0 for positive numbers, pi for negative ones (and -0.0)."""
    x = value_as(z)
    x = cast(x, resolve(np.arctan2, (x.dtype, x.dtype)).outputs[0])
    turned = ops.select(ops.signbit(x), constant(180.0 if deg else math.pi, x), constant(0.0, x))
    return fresh(ops.select(ops.isnan(x), x, turned))
