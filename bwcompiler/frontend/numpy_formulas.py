"""NumPy functions that are short formulas of others: clip, round, nan_to_num, isclose, cov, what is known while tracing, ..."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler.errors import ShapeError, UnsupportedError
from bwcompiler.frontend.numpy_elementwise import UFUNCS, evaluate, operator, store
from bwcompiler.frontend.numpy_joining import concatenate
from bwcompiler.frontend.numpy_linear import cross_vectors, dot
from bwcompiler.frontend.numpy_reductions import all_, mean, normalize_axis
from bwcompiler.frontend.operands import (
    align,
    as_tracer,
    broadcast_shapes,
    cast,
    constant,
    filled,
    kind_of,
    reshape,
    value_as,
)
from bwcompiler.frontend.promotion import common_dtype, requested
from bwcompiler.frontend.registry import implements, refuse
from bwcompiler.frontend.tracer import Tracer, fresh, value_of
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import BOOL, F64
from bwcompiler.ops import elementwise as ops

NOTHING = np._NoValue


def _delivered(name: str, value: Value, out: Any) -> Any:
    if out is None:
        return fresh(value)
    store(out, value, "same_kind", name)
    return out


# ----- element by element
@implements(np.clip)
def clip(a: Any, a_min: Any = NOTHING, a_max: Any = NOTHING, out: Any = None, *, min: Any = NOTHING, max: Any = NOTHING,
         dtype: Any = None) -> Any:
    low = min if a_min is NOTHING else a_min
    high = max if a_max is NOTHING else a_max
    low, high = (None if bound is NOTHING else bound for bound in (low, high))
    target = requested(dtype)
    if low is not None and high is not None:
        return _delivered("clip", evaluate(UFUNCS["clip"], (a, low, high), target), out)
    if low is None and high is None:
        return _delivered("clip", value_as(a), out)
    name, bound = ("maximum", low) if high is None else ("minimum", high)
    return _delivered("clip", evaluate(UFUNCS[name], (a, bound), target), out)


@implements(np.round, np.around)
def round_(a: Any, decimals: Any = 0, out: Any = None) -> Any:
    x = value_as(a)
    if not x.dtype.is_float:
        if decimals < 0:
            raise UnsupportedError("np.round of integers to negative decimals is not supported on traced arrays")
        return _delivered("round", x, out)
    if decimals == 0:
        return _delivered("round", ops.rint(x), out)
    scale = constant(10.0 ** abs(decimals), x)
    if decimals > 0:
        return _delivered("round", ops.divide(ops.rint(ops.multiply(x, scale)), scale), out)
    return _delivered("round", ops.multiply(ops.rint(ops.divide(x, scale)), scale), out)


@implements(np.fix)
def fix(x: Any, out: Any = None) -> Any:
    return _delivered("fix", evaluate(UFUNCS["trunc"], (x,)), out)


@implements(np.nan_to_num)
def nan_to_num(x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    value = value_as(x)
    if not value.dtype.is_float:
        return fresh(value)
    limits = np.finfo(value.dtype.numpy)
    high = constant(limits.max if posinf is None else posinf, value)
    low = constant(limits.min if neginf is None else neginf, value)
    infinite = ops.select(ops.greater(value, constant(0, value)), high, low)
    result = ops.select(ops.isnan(value), constant(nan, value), ops.select(ops.isinf(value), infinite, value))
    if copy or not isinstance(x, Tracer):
        return fresh(result)
    store(x, result, "same_kind", "nan_to_num")
    return x


@implements(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> Any:
    x, y = align([a, b], common_dtype((kind_of(a), kind_of(b), F64)))
    margin = ops.add(constant(atol, x), ops.multiply(constant(rtol, x), ops.absolute(y)))
    near = ops.bitwise_and(ops.less_equal(ops.absolute(ops.subtract(x, y)), margin), ops.isfinite(y))
    near = ops.bitwise_or(near, ops.equal(x, y))
    if equal_nan:
        near = ops.bitwise_or(near, ops.bitwise_and(ops.isnan(x), ops.isnan(y)))
    return fresh(near)


@implements(np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> Any:
    return all_(isclose(a, b, rtol, atol, equal_nan))


@implements(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: Any = False) -> Any:
    x, y = as_tracer(a1), as_tracer(a2)
    if x.shape != y.shape:
        return False
    same = operator("equal", x, y)
    return all_(same | (np.isnan(x) & np.isnan(y)) if equal_nan else same)


@implements(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> Any:
    try:
        broadcast_shapes([as_tracer(a1).shape, as_tracer(a2).shape])
    except ShapeError:
        return False
    return all_(operator("equal", a1, a2))


@implements(np.sinc)
def sinc(x: Any) -> Any:
    value = value_as(x)
    value = value if value.dtype.is_float else cast(value, F64)
    angle = ops.multiply(value, constant(math.pi, value))
    zero = ops.equal(angle, constant(0, value))
    safe = ops.select(zero, constant(1, value), angle)
    return fresh(ops.select(zero, constant(1, value), ops.divide(ops.sin(safe), safe)))


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
    x = x if x.dtype.is_float else cast(x, F64)
    turned = ops.select(ops.signbit(x), constant(180.0 if deg else math.pi, x), constant(0.0, x))
    return fresh(ops.select(ops.isnan(x), x, turned))


@implements(np.isneginf)
def isneginf(x: Any, out: Any = None) -> Any:
    return _delivered("isneginf", evaluate(UFUNCS["equal"], (x, -math.inf)), out)


@implements(np.isposinf)
def isposinf(x: Any, out: Any = None) -> Any:
    return _delivered("isposinf", evaluate(UFUNCS["equal"], (x, math.inf)), out)


# ----- what is known while tracing
@implements(np.shape)
def shape(a: Any) -> tuple[int, ...]:
    return as_tracer(a).shape


@implements(np.ndim)
def ndim(a: Any) -> int:
    return as_tracer(a).ndim


@implements(np.size)
def size(a: Any, axis: Any = None) -> int:
    x = as_tracer(a)
    return x.size if axis is None else x.shape[normalize_axis(axis, x.ndim)]


@implements(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    return np.result_type(*[_promotion_sample(item) for item in arrays_and_dtypes])


def _promotion_sample(item: Any) -> Any:
    if isinstance(item, Tracer):
        return item._kind(0) if isinstance(item._kind, type) else item.dtype
    return item


@implements(np.can_cast)
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    return bool(np.can_cast(_promotion_sample(from_), to, casting))


@implements(np.shares_memory, np.may_share_memory)
def shares_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    return isinstance(a, Tracer) and isinstance(b, Tracer) and a._storage is b._storage


# ----- statistics of two variables
@implements(np.cross)
def cross(a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    return cross_vectors(a, b, axisa, axisb, axisc)


@implements(np.cov)
def cov(m: Any, y: Any = None, rowvar: Any = True, bias: Any = False, ddof: Any = None, fweights: Any = None, aweights: Any = None, *,
        dtype: Any = None) -> Any:
    refuse("cov", fweights=(fweights, None))
    x = _variables(m, rowvar, dtype)
    if y is not None:
        x = concatenate([x, _variables(y, rowvar, dtype)], 0)
    delta = (0 if bias else 1) if ddof is None else ddof
    if aweights is None:
        centred = x - mean(x, 1, keepdims=True)
        return np.squeeze(dot(centred, centred.T) / float(x.shape[1] - delta))
    weights = as_tracer(aweights)
    total = weights.sum()
    centred = x - (x * weights).sum(1, keepdims=True) / total
    freedom = total if delta == 0 else total - (weights * weights).sum() / total * float(delta)
    return np.squeeze(dot(centred, (centred * weights).T) / freedom)


def _variables(m: Any, rowvar: Any, dtype: Any) -> Any:
    """One variable per row, as floats."""
    x = as_tracer(m)
    if x.ndim > 2:
        raise ValueError("m has more than 2 dimensions")
    target = requested(dtype) or (x._type.dtype if x._type.dtype.is_float else F64)
    target = target if dtype is not None else F64
    x = fresh(cast(value_of(x), target))
    x = x if x.ndim == 2 else fresh(reshape(value_of(x), (1, x.size)))
    return x if rowvar or x.shape[0] == 1 else x.T


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: Any = True, *, dtype: Any = None) -> Any:
    c: Any = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    deviation = np.sqrt(np.diagonal(c))
    return np.clip(c / deviation[:, None] / deviation[None, :], -1, 1)
