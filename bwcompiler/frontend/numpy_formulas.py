"""NumPy functions that are short formulas of others: clip, round, nan_to_num, isclose, diff, cross, interp-like, ..."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler.errors import ShapeError, UnsupportedError
from bwcompiler.frontend.numpy_elementwise import UFUNCS, evaluate, operator, store
from bwcompiler.frontend.numpy_joining import concatenate, stack
from bwcompiler.frontend.numpy_layout import broadcast_to, everything, indexed, moveaxis
from bwcompiler.frontend.numpy_linear import dot, pair
from bwcompiler.frontend.numpy_reductions import all_, mean, normalize_axis, sum_
from bwcompiler.frontend.operands import (
    align,
    as_tracer,
    broadcast_shapes,
    cast,
    constant,
    filled,
    kind_of,
    materialise,
    operand,
    reshape,
    value_as,
)
from bwcompiler.frontend.promotion import common_dtype, requested
from bwcompiler.frontend.registry import implements, refuse
from bwcompiler.frontend.tracer import Tracer, fresh, value_of
from bwcompiler.frontend.views import BasicItem, Slice, broadcast_value
from bwcompiler.ir.op import REGISTRY, Value
from bwcompiler.ir.types import BOOL, F64, I64
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
    refuse("array_equal", equal_nan=(equal_nan, False))
    if as_tracer(a1).shape != as_tracer(a2).shape:
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


# ----- differences, integrals, polynomials
def _range(x: Tracer, axis: int, start: int, size: int) -> Tracer:
    items: list[BasicItem] = [everything(extent) for extent in x.shape]
    items[axis] = Slice(start, size, 1)
    return indexed(x, items)


@implements(np.diff)
def diff(a: Any, n: Any = 1, axis: Any = -1, prepend: Any = NOTHING, append: Any = NOTHING) -> Any:
    x = as_tracer(a)
    place = normalize_axis(axis, x.ndim)
    parts = [_as_slab(part, x, place) for part in (prepend, x, append) if part is not NOTHING]
    if len(parts) > 1:
        x = concatenate(parts, place)
    for _ in range(n):
        extent = x.shape[place]
        name = "not_equal" if x._type.dtype is BOOL else "subtract"
        x = operator(name, _range(x, place, 1, max(extent - 1, 0)) if extent else x, _range(x, place, 0, max(extent - 1, 0)))
    return x


def _as_slab(part: Any, x: Tracer, axis: int) -> Any:
    made = as_tracer(part)
    if made.ndim:
        return made
    return broadcast_to(made, (*x.shape[:axis], 1, *x.shape[axis + 1:]))


@implements(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    values = as_tracer(y)
    place = normalize_axis(axis, values.ndim)
    count = values.shape[place] - 1
    both = operator("add", _range(values, place, 1, count), _range(values, place, 0, count))
    if x is None:
        width: Any = dx
    else:
        steps = as_tracer(diff(x, axis=0 if as_tracer(x).ndim == 1 else axis))
        if steps.ndim == 1:
            steps = fresh(reshape(value_of(steps), tuple([count if k == place else 1 for k in range(values.ndim)])))
        width = steps
    return sum_(operator("divide", operator("multiply", width, both), 2.0), place)


@implements(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: Any = 1) -> Any:
    refuse("gradient", edge_order=(edge_order, 1))
    x = as_tracer(f)
    axes = range(x.ndim) if axis is None else [normalize_axis(k, x.ndim) for k in (axis if isinstance(axis, tuple) else (axis,))]
    spacings = list(varargs) if len(varargs) > 1 else list(varargs or (1.0,)) * len(axes)
    if any(np.ndim(spacing) for spacing in spacings):
        raise UnsupportedError("np.gradient with coordinate arrays is not supported on traced arrays; give scalar spacings")
    results = [_gradient_along(x, k, spacing) for k, spacing in zip(axes, spacings, strict=True)]
    return results[0] if len(results) == 1 else tuple(results)


def _gradient_along(x: Tracer, axis: int, spacing: Any) -> Any:
    count = x.shape[axis]
    if count < 2:
        raise ValueError("Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) elements "
                         "are required.")
    first = operator("divide", operator("subtract", _range(x, axis, 1, 1), _range(x, axis, 0, 1)), spacing)
    middle = operator("divide", operator("subtract", _range(x, axis, 2, count - 2), _range(x, axis, 0, count - 2)),
                      operator("multiply", 2.0, spacing) if isinstance(spacing, Tracer) else 2.0 * spacing)
    last = operator("divide", operator("subtract", _range(x, axis, count - 1, 1), _range(x, axis, count - 2, 1)), spacing)
    return concatenate([first, middle, last] if count > 2 else [first, last], axis)


@implements(np.polyval)
def polyval(p: Any, x: Any) -> Any:
    coefficients: Any = as_tracer(p)
    result: Any = operator("multiply", x, 0)
    for coefficient in coefficients:
        result = operator("add", operator("multiply", result, x), coefficient)
    return result


@implements(np.vander)
def vander(x: Any, N: Any = None, increasing: Any = False) -> Any:
    base = as_tracer(x)
    count = base.shape[0] if N is None else N
    powers = [operator("power", base, k) for k in range(count)]
    return stack(powers if increasing else powers[::-1], 1)


@implements(np.convolve)
def convolve(a: Any, v: Any, mode: Any = "full") -> Any:
    x, y = (as_tracer(item) for item in (a, v))
    if y.size > x.size:
        x, y = y, x
    return _slid(x, indexed(y, [Slice(y.size - 1, y.size, -1)]), mode, y.size)


@implements(np.correlate)
def correlate(a: Any, v: Any, mode: Any = "valid") -> Any:
    x, y = (as_tracer(item) for item in (a, v))
    if y.size > x.size:
        flipped = _slid(y, x, mode, x.size)
        return indexed(flipped, [Slice(flipped.size - 1, flipped.size, -1)])
    return _slid(x, y, mode, y.size)


def _slid(x: Tracer, kernel: Tracer, mode: str, width: int) -> Tracer:
    """Products of `kernel` with the windows of x."""
    low, high = {"valid": (0, 0), "full": (width - 1, width - 1), "same": (width // 2, (width - 1) // 2)}[mode]
    a, b = pair(x, kernel)
    windows = REGISTRY["windows"](a, sizes=(width,), strides=(1,), low=(low,), high=(high,), dilations=(1,))
    return dot(fresh(windows), fresh(b))  # type: ignore[no-any-return]


# ----- grids and products
@implements(np.meshgrid)
def meshgrid(*xi: Any, copy: Any = True, sparse: Any = False, indexing: Any = "xy") -> Any:
    lines = [value_as(x) for x in xi]
    rank = len(lines)
    order = [1, 0, *range(2, rank)] if indexing == "xy" and rank > 1 else list(range(rank))
    extents = [math.prod(line.shape) for line in lines]
    grid = tuple([extents[order.index(axis)] for axis in range(rank)])
    results = []
    for line, extent, axis in zip(lines, extents, order, strict=True):
        placed = reshape(line, tuple([extent if k == axis else 1 for k in range(rank)]))
        results.append(fresh(placed if sparse else broadcast_value(placed, grid)))
    return tuple(results)


@implements(np.cross)
def cross(a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = pair(a, b)
    x, y = (value_of(moveaxis(fresh(one), place, -1)) for one, place in ((x, axisa), (y, axisb)))
    if x.shape[-1] != 3 or y.shape[-1] != 3:
        raise ShapeError(f"np.cross: vectors must have 3 elements, got shapes {x.shape} and {y.shape}")
    batch = broadcast_shapes([x.shape, y.shape])
    first, second = fresh(broadcast_value(x, batch)), fresh(broadcast_value(y, batch))
    parts = []
    for i, j in ((1, 2), (2, 0), (0, 1)):
        left = operator("multiply", _component(first, i), _component(second, j))
        parts.append(operator("subtract", left, operator("multiply", _component(first, j), _component(second, i))))
    return moveaxis(stack(parts, -1), -1, axisc)


def _component(x: Tracer, k: int) -> Tracer:
    return indexed(x, [*[everything(extent) for extent in x.shape[:-1]], k])


@implements(np.linspace)
def linspace(start: Any, stop: Any, num: Any = 50, endpoint: Any = True, retstep: Any = False, dtype: Any = None,
             axis: Any = 0, *, device: Any = None) -> Any:
    refuse("linspace", retstep=(retstep, False), axis=(axis, 0))
    (first, kind_first), (last, kind_last) = operand(start), operand(stop)
    real = common_dtype((kind_first, kind_last, float))
    shape = broadcast_shapes([first.shape, last.shape])
    low, high = materialise(first, real, shape), materialise(last, real, shape)
    count = int(num)
    whole = (count, *shape)
    steps = max(count - 1 if endpoint else count, 1)
    position = ops.divide(cast(REGISTRY["iota"](shape=whole, axis=0, dtype=I64), real), filled(steps, real, whole))
    lows, highs = broadcast_value(low, whole), broadcast_value(high, whole)
    line = ops.add(ops.multiply(position, ops.subtract(highs, lows)), lows)
    return fresh(cast(line, requested(dtype) or real))


@implements(np.cov)
def cov(m: Any, y: Any = None, rowvar: Any = True, bias: Any = False, ddof: Any = None) -> Any:
    refuse("cov", y=(y, None))
    x = as_tracer(m)
    x = x if x.ndim == 2 else fresh(reshape(value_of(x), (1, x.size)))
    x = x if rowvar or x.shape[0] == 1 else x.T
    centred = operator("subtract", x, mean(x, 1, keepdims=True))
    freedom = x.shape[1] - ((0 if bias else 1) if ddof is None else ddof)
    return np.squeeze(operator("divide", dot(centred, centred.T), float(freedom)))
