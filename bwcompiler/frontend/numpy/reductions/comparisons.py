"""NumPy's comparisons of whole arrays, and tests for infinities: isclose, allclose, array_equal, isposinf, ..."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler.errors import ShapeError
from bwcompiler.frontend.numpy.elementwise.ufunc_calls import delivered, evaluate, operator
from bwcompiler.frontend.numpy.elementwise.ufuncs import UFUNCS
from bwcompiler.frontend.numpy.reductions.reductions import all_
from bwcompiler.frontend.tracing.operands import as_tracer, broadcast_shapes, kind_of, value_as
from bwcompiler.frontend.tracing.promotion import strong
from bwcompiler.frontend.tracing.registry import implements
from bwcompiler.frontend.tracing.truths import pythons

NOTHING = np._NoValue


@implements(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> Any:
    """Tolerances may be arrays, and traced."""
    y = b if strong(kind_of(b)).is_differentiable else operator("multiply", b, 1.0)                # not as integers, because of abs(-128)
    margin = operator("add", atol, operator("multiply", rtol, np.abs(y)))
    near = (np.abs(operator("subtract", a, y)) <= margin) & np.isfinite(y) | operator("equal", a, y)
    if equal_nan:
        near = near | np.isnan(a) & np.isnan(y)
    return as_tracer(near)[()]


@implements(np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> Any:
    return pythons(all_(isclose(a, b, rtol, atol, equal_nan)))


@implements(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: Any = False) -> Any:
    x, y = as_tracer(a1), as_tracer(a2)
    if x.shape != y.shape:
        return False
    same = operator("equal", x, y)
    return pythons(all_(same | (np.isnan(x) & np.isnan(y)) if equal_nan else same))


@implements(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> Any:
    try:
        broadcast_shapes([as_tracer(a1).shape, as_tracer(a2).shape])
    except ShapeError:
        return False
    return pythons(all_(operator("equal", a1, a2)))


@implements(np.isneginf)
def isneginf(x: Any, out: Any = None) -> Any:
    return delivered("isneginf", evaluate(UFUNCS["equal"], (_ordered(x, "isneginf"), -math.inf)), out)


@implements(np.isposinf)
def isposinf(x: Any, out: Any = None) -> Any:
    return delivered("isposinf", evaluate(UFUNCS["equal"], (_ordered(x, "isposinf"), math.inf)), out)


def _ordered(x: Any, name: str) -> Any:
    """The operand; raises for dtypes without sign."""
    if value_as(x).dtype.is_complex:
        raise TypeError(f"np.{name} does not take {value_as(x).dtype.numpy}: it would be ambiguous")
    return x
