"""NumPy's reductions that skip nan."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import DTypeError
from bwcompiler.frontend.numpy.axes import NOTHING, reduction_axes
from bwcompiler.frontend.numpy.reductions.reductions import (
    argmax,
    argmin,
    cumprod,
    cumsum,
    finished,
    max_,
    mean,
    min_,
    moment,
    prod,
    reduce_value,
    sum_,
)
from bwcompiler.frontend.tracing.operands import constant, value_as
from bwcompiler.frontend.tracing.promotion import requested
from bwcompiler.frontend.tracing.registry import HANDLERS, implements
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.op import Op, Value


def _without_nan(a: Any, replacement: Any) -> tuple[Value, Value | None]:
    x = value_as(a)
    if not x.dtype.is_differentiable:
        return x, None
    missing = ops.isnan(x)
    return ops.select(missing, constant(replacement, x), x), missing


@implements(np.nansum)
def nansum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NOTHING, initial: Any = NOTHING,
           where: Any = NOTHING) -> Any:
    return sum_(fresh(_without_nan(a, 0)[0]), axis, dtype, out, keepdims, initial, where)


@implements(np.nanprod)
def nanprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NOTHING, initial: Any = NOTHING,
            where: Any = NOTHING) -> Any:
    return prod(fresh(_without_nan(a, 1)[0]), axis, dtype, out, keepdims, initial, where)


@implements(np.nanmean)
def nanmean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NOTHING, *, where: Any = NOTHING) -> Any:
    x, missing = _without_nan(a, 0)
    given = requested(dtype)
    if missing is not None and given is not None and not given.is_differentiable:
        raise DTypeError(f"np.nanmean: of floats, dtype= must be a float too, got {given.numpy}")
    if missing is not None and out is not None and not value_as(out).dtype.is_differentiable:
        raise DTypeError(f"np.nanmean: of floats, out= must be an array of floats too, got {value_as(out).dtype.numpy}")
    return mean(fresh(x), axis, dtype, out, keepdims, where=_present(missing, where))


def _nan_extreme(op: Op, a: Any, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any) -> Any:
    if where is not NOTHING and where is not True and initial is NOTHING:
        raise ValueError(f"reduction operation 'f{op.name}' does not have an identity, so to use a where mask one has to specify 'initial'")
    worst = -np.inf if op is ops.max else np.inf
    x, missing = _without_nan(a, complex(worst, worst) if value_as(a).dtype.is_complex else worst)
    if missing is None or initial is not NOTHING:  # integers have no nan; with initial=, nan is skipped like elements excluded by where=
        return (max_ if op is ops.max else min_)(fresh(x), axis, out, keepdims, initial, where)
    axes = reduction_axes(axis, x.rank)
    value = reduce_value(op, x, axes)
    value = ops.select(reduce_value(ops.all, missing, axes), constant(np.nan, value), value)
    return finished(value, x, axes, keepdims, out, f"nan{op.name}")


@implements(np.nanmax)
def nanmax(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOTHING, initial: Any = NOTHING, where: Any = NOTHING) -> Any:
    return _nan_extreme(ops.max, a, axis, out, keepdims, initial, where)


@implements(np.nanmin)
def nanmin(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOTHING, initial: Any = NOTHING, where: Any = NOTHING) -> Any:
    return _nan_extreme(ops.min, a, axis, out, keepdims, initial, where)


def _present(missing: Value | None, where: Any = NOTHING) -> Any:
    """where= of the elements that count."""
    if missing is None:
        return where
    present = fresh(ops.invert(missing))
    return present if where is NOTHING or where is True else np.logical_and(present, where)


def _nan_moment(name: str, a: Any, axis: Any, dtype: Any, out: Any, ddof: Any, keepdims: Any, where: Any, mean: Any,
                correction: Any) -> Any:
    x, missing = _without_nan(a, 0)
    return moment(name, fresh(x), axis, dtype, out, ddof, keepdims, _present(missing, where), mean, correction, missing is not None)


@implements(np.nanvar)
def nanvar(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = NOTHING, *,
           where: Any = NOTHING, mean: Any = NOTHING, correction: Any = NOTHING) -> Any:
    return _nan_moment("var", a, axis, dtype, out, ddof, keepdims, where, mean, correction)


@implements(np.nanstd)
def nanstd(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = NOTHING, *,
           where: Any = NOTHING, mean: Any = NOTHING, correction: Any = NOTHING) -> Any:
    return _nan_moment("std", a, axis, dtype, out, ddof, keepdims, where, mean, correction)


def _nan_position(function: Any, a: Any, replacement: Any, axis: Any, out: Any, keepdims: Any) -> Any:
    x, missing = _without_nan(a, replacement)
    if missing is not None and 0 not in x.shape:
        axes = reduction_axes(axis if axis is None else operator.index(axis), x.rank)
        nothing = fresh(reduce_value(ops.any, reduce_value(ops.all, missing, axes), tuple(range(x.rank - len(axes)))))
        HANDLERS["raise_where"](nothing, ValueError("All-NaN slice encountered"))
    return function(fresh(x), axis, out, keepdims=keepdims)


@implements(np.nanargmax)
def nanargmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NOTHING) -> Any:
    return _nan_position(argmax, a, -np.inf, axis, out, keepdims)


@implements(np.nanargmin)
def nanargmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NOTHING) -> Any:
    return _nan_position(argmin, a, np.inf, axis, out, keepdims)


@implements(np.nancumsum)
def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return cumsum(fresh(_without_nan(a, 0)[0]), axis, dtype, out)


@implements(np.nancumprod)
def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return cumprod(fresh(_without_nan(a, 1)[0]), axis, dtype, out)
