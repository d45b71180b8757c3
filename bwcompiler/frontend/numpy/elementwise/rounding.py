"""NumPy functions that replace values element by element: clip, round, fix, nan_to_num, sinc, i0."""

from __future__ import annotations

import math
from importlib.util import find_spec
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.numpy.elementwise.ufunc_calls import call_ufunc, delivered, evaluate, store
from bwcompiler.frontend.numpy.elementwise.ufuncs import UFUNCS, magnitude
from bwcompiler.frontend.tracing.operands import cast, constant, number_value, value_as
from bwcompiler.frontend.tracing.promotion import requested
from bwcompiler.frontend.tracing.registry import HANDLERS, implements
from bwcompiler.frontend.tracing.storages.views import broadcast_value
from bwcompiler.frontend.tracing.tracer import Tracer, fresh
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import BOOL, F16, F32, F64, I64

NOTHING = np._NoValue


def whole_number(x: Tracer) -> Tracer:
    """round(x) of a rounded number: a Python integer."""
    HANDLERS["check_whole"](x)
    return fresh(cast(value_as(x), I64), int)


HANDLERS["whole_number"] = whole_number


# ----- element by element
@implements(np.clip)
def clip(a: Any, a_min: Any = NOTHING, a_max: Any = NOTHING, out: Any = None, *, min: Any = NOTHING, max: Any = NOTHING,
         dtype: Any = None, where: Any = True, casting: Any = "same_kind") -> Any:
    low = min if a_min is NOTHING else a_min
    high = max if a_max is NOTHING else a_max
    low, high = (None if bound is NOTHING else bound for bound in (low, high))
    target = requested(dtype)
    low, high = _unless_out_of_range(a, low, high)
    inputs = tuple([given for given in (a, low, high) if given is not None])
    name = ("positive", "maximum" if high is None else "minimum", "clip")[len(inputs) - 1]
    if where is True and casting == "same_kind":
        return delivered("clip", evaluate(UFUNCS[name], inputs, target), out)
    outs = {} if out is None else {"out": out if isinstance(out, tuple) else (out,)}
    return call_ufunc(UFUNCS[name].numpy, inputs, {"dtype": dtype, "where": where, "casting": casting, **outs})


def _unless_out_of_range(a: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """The bounds, without Python integers at or beyond the limits of a's integer dtype: they bound nothing."""
    dtype = value_as(a).dtype
    if not dtype.is_integer:
        return low, high
    limits = np.iinfo(dtype.numpy)
    return (None if type(low) is int and low <= limits.min else low, None if type(high) is int and high >= limits.max else high)


@implements(np.round, np.around)
def round_(a: Any, decimals: Any = 0, out: Any = None) -> Any:
    x = value_as(a)
    if x.dtype.is_complex:
        parts = [value_as(round_(fresh(part), decimals)) for part in (ops.real(x), ops.imag(x))]
        return delivered("round", ops.make_complex(*parts), out)
    if x.dtype is BOOL:
        if decimals:
            raise TypeError("np.round of booleans: decimals must be 0")
        return delivered("round", evaluate(UFUNCS["rint"], (a,)), out)
    if not x.dtype.is_float:                                                # NumPy computes in float64 here
        return delivered("round", x if decimals >= 0 else cast(value_as(round_(fresh(cast(x, F64)), decimals)), x.dtype), out)
    if decimals == 0:
        return delivered("round", ops.rint(x), out)
    scale = constant(10.0 ** abs(decimals), x)
    if decimals > 0:
        return delivered("round", ops.divide(ops.rint(ops.multiply(x, scale)), scale), out)
    return delivered("round", ops.multiply(ops.rint(ops.divide(x, scale)), scale), out)


@implements(np.fix)
def fix(x: Any, out: Any = None) -> Any:
    return delivered("fix", evaluate(UFUNCS["trunc"], (x,)), out)


@implements(np.nan_to_num)
def nan_to_num(x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    value = value_as(x)
    result = _finite(value, nan, posinf, neginf)
    if copy or not isinstance(x, Tracer):
        return fresh(result)
    store(x, result, "same_kind", "nan_to_num")
    return x


def _finite(value: Value, nan: Any, posinf: Any, neginf: Any) -> Value:
    """The value with nan and infinities replaced by numbers; for complex values in both parts."""
    if value.dtype.is_complex:
        return ops.make_complex(*[_finite(part, nan, posinf, neginf) for part in (ops.real(value), ops.imag(value))])
    if not value.dtype.is_float:
        return value
    limits = np.finfo(value.dtype.numpy)
    high = _put(limits.max if posinf is None else posinf, value)
    low = _put(limits.min if neginf is None else neginf, value)
    infinite = ops.select(ops.greater(value, constant(0, value)), high, low)
    return ops.select(ops.isnan(value), _put(nan, value), ops.select(ops.isinf(value), infinite, value))


def _put(given: Any, value: Value) -> Value:
    """A number or array to store into an array, traced or not, with its dtype and shape."""
    if isinstance(given, int | float):
        return constant(given, value)
    return broadcast_value(cast(value_as(given), value.dtype), value.shape)


@implements(np.sinc)
def sinc(x: Any) -> Any:
    value = number_value(x)
    angle = ops.multiply(value, constant(math.pi, value))
    size = magnitude(angle)
    near = ops.less(size, constant(0.1, size))                              # by the series there, for accurate derivatives
    square = ops.select(near, ops.multiply(angle, angle), constant(0, angle))
    series = constant(_SINC_SERIES[0], square)
    for coefficient in _SINC_SERIES[1:]:
        series = ops.add(ops.multiply(series, square), constant(coefficient, square))
    safe = ops.select(near, constant(1, angle), angle)
    return fresh(ops.select(near, series, ops.divide(ops.sin(safe), safe)))


_SINC_SERIES = (1 / 362880, -1 / 5040, 1 / 120, -1 / 6, 1.0)               # of sin(a) / a in a², up to a**8


@implements(np.i0)
def i0(x: Any) -> Any:
    value = value_as(x)
    if value.dtype.is_complex:
        raise TypeError("i0 not supported for complex values")
    if find_spec("scipy") is None:
        raise UnsupportedError("np.i0 of traced arrays is computed by SciPy's loop, and SciPy is not installed")
    dtype = value.dtype if value.dtype.is_float else F64
    computed = cast(value, F32 if dtype is F16 else dtype)
    return fresh(cast(ops.special_function(computed, name="i0", results=1), dtype))
