"""NumPy's reductions: sum, mean, max, var, ... and running sums and products."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import DTypeError, ShapeError
from bwcompiler.frontend.numpy.axes import NOTHING, Axes, axes_in_order, normalize_axes, normalize_axis, reduction_axes, refuse_list
from bwcompiler.frontend.numpy.elementwise.ufunc_calls import operator as numpy_operator
from bwcompiler.frontend.numpy.elementwise.ufunc_calls import store
from bwcompiler.frontend.numpy.elementwise.ufuncs import truth
from bwcompiler.frontend.tracing.operands import (
    broadcast_shapes,
    cast,
    constant,
    count_value,
    filled,
    mask_as,
    materialise,
    operand,
    reshape,
    value_as,
)
from bwcompiler.frontend.tracing.promotion import common_dtype, requested, resolve_reduction
from bwcompiler.frontend.tracing.registry import implements
from bwcompiler.frontend.tracing.storages.views import broadcast_value
from bwcompiler.frontend.tracing.tracer import Tracer, fresh
from bwcompiler.ir.extent import exact_count, known_le
from bwcompiler.ir.op import Op, Value
from bwcompiler.ir.types import BOOL, F16, F32, F64, I64, DType


def reduce_value(op: Op, x: Value, axes: Axes) -> Value:
    """The core reduction; x itself if there are no axes."""
    return op(x, axes=axes) if axes or op is ops.sum else x


def keep_axes(value: Value, like: Value, axes: Axes) -> Value:
    """The reduced axes restored with extent 1."""
    return reshape(value, tuple([1 if axis in axes else extent for axis, extent in enumerate(like.shape)]))


def finished(value: Value, x: Value, axes: Axes, keepdims: Any, out: Any, name: str, casting: str = "unsafe") -> Any:
    """keepdims= and out=, which takes numbers of any dtype here, then a handle."""
    if keepdims is not NOTHING and keepdims:
        value = keep_axes(value, x, axes)
    if out is not None and out is not NOTHING:
        out = out[0] if isinstance(out, tuple) else out
        store(out, value, casting, name)
        return out
    return fresh(value)


def masked(x: Value, where: Any, neutral: Any) -> Value:
    """x with the neutral element where the mask is false."""
    if where is True or where is NOTHING:
        return x
    mask = mask_as(where, "sum")
    if broadcast_shapes([mask.shape, x.shape]) != x.shape:
        raise ShapeError(f"where= of shape {mask.shape} does not broadcast to {x.shape}")
    return ops.select(broadcast_value(mask, x.shape), x, constant(neutral, x))


_COMBINE = {ops.sum: ops.add, ops.prod: ops.multiply, ops.max: ops.maximum, ops.min: ops.minimum, ops.any: ops.bitwise_or,
            ops.all: ops.bitwise_and}


def with_initial(op: Op, value: Value, initial: Any) -> Value:
    """A reduction by op, combined with initial=."""
    if initial is NOTHING or initial is None:
        return value
    return _COMBINE[op](value, materialise(operand(initial)[0], value.dtype, value.shape))


_UFUNC = {ops.sum: np.add, ops.prod: np.multiply}
_NEUTRAL = {ops.sum: 0, ops.prod: 1}


def with_out(x: Value, out: Any) -> DType | None:
    """The dtype of a reduction with out= and without dtype=."""
    out = out[0] if isinstance(out, tuple) else out
    if out is None or out is NOTHING:
        return None
    return common_dtype((x.dtype, value_as(out).dtype))


def _accumulated(op: Op, a: Any, axis: Any, dtype: Any, out: Any, keepdims: Any, initial: Any, where: Any) -> Any:
    x = value_as(a)
    target = requested(dtype) or with_out(x, out) or resolve_reduction(_UFUNC[op], x.dtype)
    axes = reduction_axes(axis, x.rank)
    if target is BOOL:
        return _truth_reduction({ops.sum: ops.any, ops.prod: ops.all}[op], fresh(x), axis, out, keepdims, where, initial)
    x = masked(cast(x, target), where, _NEUTRAL[op])
    return finished(with_initial(op, reduce_value(op, x, axes), initial), x, axes, keepdims, out, op.name)


@implements(np.sum)
def sum_(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NOTHING, initial: Any = NOTHING,
         where: Any = NOTHING) -> Any:
    return _accumulated(ops.sum, a, axis, dtype, out, keepdims, initial, where)


@implements(np.prod)
def prod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NOTHING, initial: Any = NOTHING,
         where: Any = NOTHING) -> Any:
    return _accumulated(ops.prod, a, axis, dtype, out, keepdims, initial, where)


def _extreme(op: Op, a: Any, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any) -> Any:
    name = op.name
    x = value_as(a)
    if initial is not NOTHING and initial is not None:
        x = cast(x, with_out(x, out) or x.dtype)                   # NumPy compares with it in the dtype of both
    axes = reduction_axes(axis, x.rank)
    if where is not NOTHING and where is not True:
        if initial is NOTHING:
            raise ValueError(f"reduction operation '{name}imum' does not have an identity, so to use a where mask one has to "
                             "specify 'initial'")
        x = masked(x, where, operand(initial)[0].value)  # type: ignore[union-attr]
    if initial is NOTHING and 0 in [x.shape[axis] for axis in axes]:
        raise ValueError(f"zero-size array to reduction operation {name}imum which has no identity")
    if 0 in [x.shape[axis] for axis in axes]:
        value = filled(operand(initial)[0].value, x.dtype,  # type: ignore[union-attr]
                       tuple([extent for axis, extent in enumerate(x.shape) if axis not in axes]))
        return finished(value, x, axes, keepdims, out, name)
    of_truth = {ops.max: ops.any, ops.min: ops.all}
    reduced = reduce_value(of_truth[op] if x.dtype is BOOL else op, x, axes)
    return finished(with_initial(op, reduced, initial), x, axes, keepdims, out, name)


@implements(np.max, np.amax)
def max_(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOTHING, initial: Any = NOTHING, where: Any = NOTHING) -> Any:
    return _extreme(ops.max, a, axis, out, keepdims, initial, where)


@implements(np.min, np.amin)
def min_(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOTHING, initial: Any = NOTHING, where: Any = NOTHING) -> Any:
    return _extreme(ops.min, a, axis, out, keepdims, initial, where)


@implements(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOTHING) -> Any:
    x = value_as(a)
    axes = reduction_axes(axis, x.rank)
    largest, least = [cast(reduce_value(op, x, axes), with_out(x, out) or x.dtype) for op in (ops.max, ops.min)]
    return finished(ops.subtract(largest, least), x, axes, keepdims, out, "ptp", "same_kind")


def _truth_reduction(op: Op, a: Any, axis: Any, out: Any, keepdims: Any, where: Any, initial: Any = NOTHING) -> Any:
    x = masked(truth(value_as(a)), where, op is ops.all)
    axes = reduction_axes(axis, x.rank)
    return finished(with_initial(op, reduce_value(op, x, axes), initial), x, axes, keepdims, out, op.name)


@implements(np.any)
def any_(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOTHING, *, where: Any = NOTHING) -> Any:
    return _truth_reduction(ops.any, a, axis, out, keepdims, where)


@implements(np.all)
def all_(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOTHING, *, where: Any = NOTHING) -> Any:
    return _truth_reduction(ops.all, a, axis, out, keepdims, where)


def _position(op: Op, a: Any, axis: Any, out: Any, keepdims: Any) -> Any:
    x = value_as(a)
    axes = reduction_axes(axis if axis is None else operator.index(axis), x.rank)
    if not all(known_le(1, x.shape[axis]) for axis in axes):
        raise ValueError(f"attempt to get {op.name} of an empty sequence")
    if x.dtype is BOOL:
        x = cast(x, I64)
    value = filled(0, I64, ())
    if axes:
        line = x if len(axes) == 1 else reshape(x, (exact_count(x.shape),))
        value = op(line, axes=axes if len(axes) == 1 else (0,))
    if isinstance(out, Tracer) and not np.can_cast(out.dtype, np.int64):
        raise DTypeError(f"np.{op.name}: out= of dtype {out.dtype} cannot take positions\n  hint: an array of dtype int64")
    return finished(value, x, axes, keepdims, out, op.name)


@implements(np.argmax)
def argmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NOTHING) -> Any:
    return _position(ops.argmax, a, axis, out, keepdims)


@implements(np.argmin)
def argmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NOTHING) -> Any:
    return _position(ops.argmin, a, axis, out, keepdims)


# ----- means and moments
def _count(x: Value, axes: Axes, where: Any, dtype: DType) -> Value:
    """The number of elements per result, as a value of the result's shape."""
    shape = tuple([extent for axis, extent in enumerate(x.shape) if axis not in axes])
    if where is True or where is NOTHING:
        return count_value([x.shape[axis] for axis in axes], dtype, shape)
    mask = broadcast_value(mask_as(where, "mean"), x.shape)
    return reduce_value(ops.sum, cast(mask, dtype), axes)


def _mean_dtype(x: Value, dtype: Any) -> DType:
    return requested(dtype) or (x.dtype if x.dtype.is_differentiable else F64)


def _axes_of_mean(axis: Any, rank: int, where: Any) -> Axes:
    """Normalise axes as in NumPy: with where= it counts elements by a sum, which takes axis=0 of 0-d arrays; else it reads the extent."""
    refuse_list(axis)
    return normalize_axes(axis, rank) if where is NOTHING or where is True else reduction_axes(axis, rank)


def mean_value(x: Value, axes: Axes, where: Any = NOTHING) -> Value:
    """The mean of a float value over axes."""
    return ops.divide(reduce_value(ops.sum, masked(x, where, 0), axes), _count(x, axes, where, x.dtype))


@implements(np.mean)
def mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NOTHING, *, where: Any = NOTHING) -> Any:
    x = value_as(a)
    target = _mean_dtype(x, dtype)
    if dtype is None and x.dtype.is_differentiable:
        target = with_out(x, out) or target
    axes = _axes_of_mean(axis, x.rank, where)
    if target.is_differentiable:
        x = cast(x, F32 if x.dtype is F16 and dtype is None else target)                               # sums overflow float16
        return finished(cast(mean_value(x, axes, where), target), x, axes, keepdims, out, "mean")
    whole = cast(cast(x, BOOL), I64) if target is BOOL else cast(x, target)
    total = reduce_value(ops.sum, masked(whole, where, 0), axes)                                       # NumPy sums integers,
    count = _count(x, axes, where, F64)                                                                # then divides as floats
    return finished(cast(ops.divide(cast(total, F64), count), target), x, axes, keepdims, out, "mean")


def variance(x: Value, axes: Axes, ddof: Any, where: Any = NOTHING, given_mean: Any = NOTHING,
             nan_if_too_few: bool = False) -> Value:
    """The variance of a float or complex value over axes: the mean of |x - mean|**2."""
    if given_mean is NOTHING:
        centre = keep_axes(mean_value(x, axes, where), x, axes)
    else:
        centre = value_as(given_mean, x.dtype)
    distance = ops.subtract(x, broadcast_value(centre, x.shape))
    squares = square_of_magnitude(distance)
    total = reduce_value(ops.sum, masked(squares, where, 0), axes)
    count = _count(x, axes, where, squares.dtype)
    freedom = ops.subtract(count, constant(ddof, count)) if ddof else count
    found = ops.divide(total, ops.maximum(freedom, constant(0, freedom)) if ddof else freedom)
    if ddof and nan_if_too_few:
        found = ops.select(ops.less_equal(freedom, constant(0, freedom)), constant(np.nan, found), found)
    return found


def square_of_magnitude(x: Value) -> Value:
    """|x|**2, a real number."""
    if not x.dtype.is_complex:
        return ops.multiply(x, x)
    return ops.add(*[ops.multiply(part, part) for part in (ops.real(x), ops.imag(x))])


def root(x: Value) -> Value:
    """The square root, with derivative 0 at 0: for the norm of zeros, or the standard deviation of equal elements."""
    return flat_at_zero(ops.sqrt, x)


def flat_at_zero(function: Callable[[Value], Value], x: Value) -> Value:
    """function(x); 0 with derivative 0 where x is 0."""
    zero = ops.equal(x, constant(0, x))
    return ops.select(zero, constant(0, x), function(ops.select(zero, constant(1, x), x)))


def moment(name: str, a: Any, axis: Any, dtype: Any, out: Any, ddof: Any, keepdims: Any, where: Any, given_mean: Any,
           correction: Any, nan_if_too_few: bool = False) -> Any:
    """np.var or np.std."""
    if correction is not NOTHING and ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    x = value_as(a)
    target = _mean_dtype(x, dtype)
    if not target.is_differentiable:
        raise DTypeError(f"np.{name}: dtype={target.numpy} computes in integers, which is not supported; leave out dtype=, and "
                         f"convert the result: np.{name}(...).astype(np.{target.numpy})")
    x = cast(x, target)
    axes = _axes_of_mean(axis, x.rank, where)
    given_mean = NOTHING if given_mean is None else given_mean
    value = variance(x, axes, ddof if correction is NOTHING else correction, where, given_mean, nan_if_too_few)
    value = root(value) if name == "std" else value
    if target.is_complex and dtype is not None:                     # a real number, but with the requested dtype
        value = cast(value, target)
    return finished(value, x, axes, keepdims, out, name, "same_kind" if name == "std" else "unsafe")


@implements(np.var)
def var(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = NOTHING, *,
        where: Any = NOTHING, mean: Any = NOTHING, correction: Any = NOTHING) -> Any:
    return moment("var", a, axis, dtype, out, ddof, keepdims, where, mean, correction)


@implements(np.std)
def std(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = NOTHING, *,
        where: Any = NOTHING, mean: Any = NOTHING, correction: Any = NOTHING) -> Any:
    return moment("std", a, axis, dtype, out, ddof, keepdims, where, mean, correction)


@implements(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = NOTHING) -> Any:
    axis = tuple(axis) if isinstance(axis, list) else axis                  # the sums do not take lists
    if weights is None:
        found = mean(a, axis, keepdims=keepdims)
        x = value_as(a)
        count = count_value([x.shape[k] for k in _axes_of_mean(axis, x.rank, NOTHING)], found._type.dtype, found.shape)
        return (found, fresh(count)) if returned else found
    x, w = value_as(a), value_as(weights)
    dtype = common_dtype((x.dtype, w.dtype, F64) if x.dtype.kind in "iub" else (x.dtype, w.dtype))
    if w.shape != x.shape:
        w = _weights_along(x, w, axis)
    spread = cast(broadcast_value(w, x.shape), dtype)
    total = sum_(fresh(ops.multiply(cast(x, dtype), spread)), axis, keepdims=keepdims)
    scale = sum_(fresh(spread), axis, keepdims=keepdims)
    found = numpy_operator("divide", total, scale)
    return (found, fresh(cast(value_as(scale), found._type.dtype))) if returned else found


def _weights_along(x: Value, w: Value, axis: Any) -> Value:
    """Weights of the shape of the averaged axes, in the order they are given in, shaped to broadcast against x."""
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    given = axes_in_order(axis, x.rank)
    if w.shape != tuple([x.shape[k] for k in given]):
        raise ShapeError(f"np.average: weights of shape {w.shape} do not fit axis {axis} of shape {x.shape}")
    order = tuple(sorted(range(len(given)), key=given.__getitem__))
    if order != tuple(range(len(given))):
        w = ops.transpose(w, axes=order)
    return reshape(w, tuple([extent if k in given else 1 for k, extent in enumerate(x.shape)]))


@implements(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    return sum_(fresh(truth(value_as(a))), axis, keepdims=keepdims)


# ----- running sums, products and extrema
def running(scan: Op, ufunc: Any, a: Any, axis: Any, dtype: Any, out: Any) -> Any:
    """ufunc.accumulate by the op that does it; axis None: over all elements in C order."""
    x = value_as(a)
    target = requested(dtype) or with_out(x, out) or resolve_reduction(ufunc, x.dtype)
    x = cast(truth(x), I64) if target is BOOL else cast(x, target)             # 0 and 1: a sum stays positive, a product 0 or 1
    if axis is None or not x.rank:
        x = reshape(x, (exact_count(x.shape),))
    position = normalize_axis(0 if axis is None else axis, x.rank)
    return finished(cast(scan(x, axis=position, reverse=False), target), x, (), False, out, scan.name)


@implements(np.cumsum)
def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return running(ops.cumsum, np.add, a, axis, dtype, out)


@implements(np.cumprod)
def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return running(ops.cumprod, np.multiply, a, axis, dtype, out)


def _cumulative(handler: Callable[..., Any], first: int, name: str, x: Any, axis: Any, dtype: Any, out: Any, include_initial: Any) -> Any:
    value = value_as(x)
    if axis is None and value.rank > 1:
        raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
    place = normalize_axis(0 if axis is None else axis, max(value.rank, 1))
    found = value_as(handler(x, place, dtype))
    if include_initial:
        shape = tuple([1 if k == place else extent for k, extent in enumerate(found.shape)])
        found = ops.concatenate(filled(first, found.dtype, shape), found, axis=place)
    return finished(found, found, (), False, out, name)


@implements(np.cumulative_sum)
def cumulative_sum(x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: Any = False) -> Any:
    return _cumulative(cumsum, 0, "cumulative_sum", x, axis, dtype, out, include_initial)


@implements(np.cumulative_prod)
def cumulative_prod(x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: Any = False) -> Any:
    return _cumulative(cumprod, 1, "cumulative_prod", x, axis, dtype, out, include_initial)
