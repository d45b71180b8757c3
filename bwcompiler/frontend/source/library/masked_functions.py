"""The functions of `np.ma`, and those of NumPy's that take masked arrays, for masked arrays of traced values (`masked`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler.frontend.source.library.masked import (
    NUMPY_FUNCTIONS,
    Masked,
    as_masked,
    dot,
    either,
    getdata,
    getmask,
    getmaskarray,
    of_elements,
    of_ufunc,
    operand,
    refuse,
)
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.operands import as_tracer, is_traced
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.truths import pythons


def _array(data: Any, dtype: Any = None, copy: Any = False, order: Any = None, mask: Any = False, fill_value: Any = None,
           keep_mask: Any = True, hard_mask: Any = False, shrink: Any = True, subok: Any = True, ndmin: Any = 0) -> Masked:
    if (dtype is not None and np.dtype(dtype) != getdata(data).dtype) or hard_mask or ndmin:
        refuse("np.ma.array with dtype=, hard_mask= or ndmin=")
    whole = getdata(data)
    whole = whole if isinstance(whole, np.ndarray) else call(as_tracer, whole)
    given = False if mask is False or mask is np.ma.nomask else call(as_tracer, mask) if isinstance(mask, list | tuple) else mask
    found = Masked(whole, either(getmask(data) if keep_mask else False, given), fill_value)
    return found.copy() if copy else found


def _masked_where(condition: Any, a: Any, copy: Any = True) -> Masked:
    where = np.asarray(condition) if isinstance(condition, list) else getdata(condition)
    if not copy and isinstance(a, Masked):
        refuse("copy=False")
    return Masked(np.copy(getdata(a)) if copy else getdata(a), np.copy(either(getmask(a), where)), is_own=bool(copy))


def _where_compared(name: str) -> Callable[..., Masked]:
    return lambda x, value, copy=True: _masked_where(getattr(np, name)(getdata(x), value), x, copy)


def _between(is_outside: bool) -> Callable[..., Masked]:
    def between(x: Any, v1: Any, v2: Any, copy: Any = True) -> Masked:
        data, low, high = getdata(x), np.minimum(v1, v2), np.maximum(v1, v2)
        return _masked_where(np.logical_or(data < low, data > high) if is_outside else np.logical_and(data >= low, data <= high), x,
                             copy)
    return between


def _average(a: Any, axis: Any = None, weights: Any = None, returned: Any = False, *, keepdims: Any = False) -> Any:
    x = as_masked(a)
    if weights is None:
        found, total = x.mean(axis, keepdims=keepdims), x.count(axis, keepdims) * 1.0
    else:
        given = as_masked(np.asarray(weights) if isinstance(weights, list | tuple) else weights)
        if given.shape != x.shape:
            if axis is None or np.ndim(given.data) != 1:
                refuse("np.ma.average with weights of another shape")
            shape = [1] * x.ndim
            shape[axis] = -1
            given = Masked(np.broadcast_to(given.data.reshape(shape), x.shape))
        both = Masked(given.data * 1.0, either(x.mask, given.mask))
        total = both.sum(axis, keepdims=keepdims)
        found = (x * both).sum(axis, keepdims=keepdims) / total
    return (found, total) if returned else found


def _median(a: Any, axis: Any = None) -> Any:
    x = as_masked(a)
    if axis is None:
        return np.median(x.compressed())
    ordered, count = np.sort(np.where(getmaskarray(x), np.inf, x.data), axis=axis), x.count(axis, True)
    ends = [np.take_along_axis(ordered, np.maximum(place, 0), axis) for place in ((count - 1) // 2, count // 2)]
    found, none = np.squeeze((ends[0] + ends[1]) / 2, axis), np.squeeze(count == 0, axis)
    return Masked(found) if x.mask is False else Masked(np.where(none, 0, found), none)


def _where(condition: Any, x: Any, y: Any) -> Masked:
    chosen = np.where(getdata(condition), getmaskarray(x), getmaskarray(y))
    return Masked(np.where(getdata(condition), getdata(x), getdata(y)), either(getmask(condition), chosen))


def _by_method(name: str) -> Callable[..., Any]:
    return lambda x, *args, **kwargs: getattr(as_masked(x), name)(*args, **kwargs)


def _masked_array(data: Any = None, mask: Any = False, dtype: Any = None, copy: Any = False, **options: Any) -> Masked:
    """np.ma.masked_array(data, mask): the class."""
    return _array(data, dtype, copy, mask=mask, **options)


def _masked_values(x: Any, value: Any, rtol: float = 1e-5, atol: float = 1e-8, copy: Any = True, shrink: Any = True) -> Masked:
    whole = np.copy(as_masked(x).filled(value))
    return Masked(whole, np.isclose(whole, value, rtol, atol) if whole.dtype.kind == "f" else whole == value, value, is_own=True)


def _fix_invalid(a: Any, mask: Any = False, copy: Any = True, fill_value: Any = None) -> Masked:
    if not copy:
        refuse("copy=False")
    x = _array(a, mask=mask)
    invalid = np.logical_not(np.isfinite(x.data))
    fill = x.fill_value if fill_value is None else fill_value
    return Masked(np.where(invalid, fill, x.data), either(x.mask, invalid), x._fill, is_own=True)


def _outer(a: Any, b: Any) -> Masked:
    found = np.outer(*[np.ravel(as_masked(one)._filled(0)) for one in (a, b)])
    if getmask(a) is False and getmask(b) is False:
        return Masked(found)
    there = [np.logical_not(np.ravel(getmaskarray(one))) * 1 for one in (a, b)]
    return Masked(found, np.outer(*there) == 0)


def _diff(a: Any, n: int = 1, axis: int = -1) -> Any:
    found = as_masked(a)
    for _ in range(n):
        before = (slice(None),) * (axis % found.ndim)
        found = of_ufunc(np.subtract, found[(*before, slice(1, None))], found[(*before, slice(None, -1))])
    return found


def _ordered(a: Any, axis: Any = -1) -> Masked:
    found = as_masked(a).copy()
    if axis is None:
        found, axis = found.ravel(), 0
    found.sort(axis)
    return found


def _isclose_everywhere(a: Any, b: Any, masked_equal: bool = True, rtol: float = 1e-5, atol: float = 1e-8) -> Any:
    near = np.isclose(getdata(a), getdata(b), rtol, atol)
    mask = either(getmask(a), getmask(b))
    return pythons(np.all(near if mask is False else np.where(mask, masked_equal, near)))


def _are_equal(a: Any, b: Any, fill_value: bool = True) -> Any:
    mask = either(getmask(a), getmask(b))
    same = getdata(a) == getdata(b)
    return np.all(same if mask is False else np.where(mask, fill_value, same))


def _count_masked(arr: Any, axis: Any = None) -> Any:
    return np.sum(getmaskarray(arr), axis=axis)


def _is_masked(x: Any) -> Any:
    mask = getmask(x)
    return False if mask is False else np.any(mask)


def _average_of_all(a: Any, axis: Any = None, weights: Any = None) -> Any:
    """np.average(m, weights=w): divided by the sum of all weights, those of masked elements too."""
    if weights is None:
        return as_masked(a).mean(axis)
    if isinstance(weights, Masked) or np.shape(weights) != np.shape(getdata(a)):
        refuse("np.average with masked weights, or weights of another shape")
    return of_ufunc(np.multiply, a, weights).sum(axis) / np.sum(weights, axis=axis)


def _like(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, *args, **kwargs: as_masked(a).with_data(function(as_masked(a).data, *args, **kwargs))


def _moving(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, *args, **kwargs: as_masked(a).moved(function, *args, **kwargs)


def _joining(function: Callable[..., Any]) -> Callable[..., Any]:
    """np.ma.concatenate and its like, of masks as of data."""
    def join(arrays: Any, *args: Any, **kwargs: Any) -> Masked:
        found = function([operand(one) for one in arrays], *args, **kwargs)
        if all(getmask(one) is False for one in arrays):
            return Masked(found)
        return Masked(found, function([getmaskarray(one) for one in arrays], *args, **kwargs))
    return join


def _append(a: Any, b: Any, axis: Any = None) -> Any:
    parts = [as_masked(a).ravel(), as_masked(b).ravel()] if axis is None else [a, b]
    return _joining(np.concatenate)(parts, axis=axis or 0)


def _of_data(function: Callable[..., Any]) -> Callable[..., Any]:
    """One of NumPy's functions that does not look at masks."""
    def plain(*args: Any, **kwargs: Any) -> Any:
        given = [[operand(one) for one in arg] if isinstance(arg, list | tuple) else operand(arg) for arg in args]
        return function(*given, **kwargs)
    return plain


def _unmasked(function: Callable[..., Any]) -> Callable[..., Any]:
    """One whose result is a masked array of which nothing is masked."""
    def plain(*args: Any, **kwargs: Any) -> Any:
        found = _of_data(function)(*args, **kwargs)
        return Masked(found) if np.ndim(found) else found
    return plain


_REDUCING = ("sum", "prod", "mean", "var", "std", "min", "max", "cumsum", "argmin", "argmax", "any", "all")
_CHANGING = ("clip", "round", "trace")
_MOVED = ("transpose", "ravel", "reshape", "squeeze", "swapaxes", "expand_dims", "take", "repeat", "diagonal", "atleast_1d", "atleast_2d",
          "atleast_3d")
_JOINED = ("concatenate", "stack", "hstack", "vstack", "dstack", "column_stack")
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "array": _array, "masked_array": _masked_array, "MaskedArray": _masked_array, "masked_where": _masked_where,
    "asarray": lambda a, dtype=None, order=None: _array(a, dtype), "asanyarray": lambda a, dtype=None: _array(a, dtype),
    **{f"masked_{name}": _where_compared(name) for name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")},
    "masked_inside": _between(False), "masked_outside": _between(True), "masked_values": _masked_values, "fix_invalid": _fix_invalid,
    "masked_invalid": lambda a, copy=True: _masked_where(np.logical_not(np.isfinite(getdata(a))), a, copy),
    "getdata": lambda a, subok=True: getdata(a), "getmaskarray": getmaskarray, "average": _average, "median": _median, "where": _where,
    "getmask": lambda a: np.ma.nomask if getmask(a) is False else getmask(a),
    "filled": lambda a, fill_value=None: as_masked(a).filled(fill_value) if isinstance(a, Masked) else a,
    "dot": lambda a, b, strict=False, out=None: dot(a, b) if not strict and out is None else refuse("np.ma.dot with strict= or out="),
    "inner": lambda a, b: np.inner(as_masked(a)._filled(0), as_masked(b)._filled(0)), "outer": _outer, "outerproduct": _outer,
    "diff": _diff, "sort": _ordered, "append": _append, "row_stack": _joining(np.vstack), "diag": _moving(np.diag),
    "allclose": _isclose_everywhere, "allequal": _are_equal, "count_masked": _count_masked, "is_masked": _is_masked,
    "isMaskedArray": lambda x: isinstance(x, Masked), "isMA": lambda x: isinstance(x, Masked), "isarray": lambda x: isinstance(x, Masked),
    "mask_or": lambda m1, m2, copy=False, shrink=True: either(m1, m2), "shape": lambda a: getdata(a).shape,
    "size": lambda a: getdata(a).size, "ndim": lambda a: getdata(a).ndim, "round_": lambda a, decimals=0: as_masked(a).round(decimals),
    "around": lambda a, decimals=0: as_masked(a).round(decimals),
    "set_fill_value": lambda a, fill_value: setattr(a, "fill_value", fill_value),
    **{name: _like(getattr(np, name)) for name in ("zeros_like", "ones_like", "empty_like")},
    **{name: _moving(getattr(np, name)) for name in _MOVED if name != "reshape"},
    **{name: _joining(getattr(np, name)) for name in _JOINED},
    **{name: _by_method(name) for name in (*_REDUCING, *_CHANGING, "copy", "count", "compressed", "reshape", "cumprod", "anom", "ptp",
                                           "nonzero", "argsort")},
}
NUMPY_FUNCTIONS.update({getattr(np, name): _by_method(name) for name in (*_REDUCING, *_CHANGING)})
NUMPY_FUNCTIONS.update({getattr(np, name): _moving(getattr(np, name)) for name in (
    *_MOVED, "moveaxis", "rollaxis", "flip", "flipud", "fliplr", "roll", "rot90", "tile")})
NUMPY_FUNCTIONS.update({getattr(np, name): _unmasked(getattr(np, name)) for name in (*_JOINED, "append", "dot")})
NUMPY_FUNCTIONS.update({getattr(np, name): _of_data(getattr(np, name)) for name in (
    "copy", "where", "outer", "inner", "vdot", "einsum", "interp", "shape", "size", "ndim", "count_nonzero", "polyfit", "broadcast_to")})
NUMPY_FUNCTIONS.update({getattr(np, name): _like(getattr(np, name)) for name in ("zeros_like", "ones_like", "full_like", "empty_like",
                                                                                   "real", "imag")})
NUMPY_FUNCTIONS.update({
    np.diff: _diff, np.average: _average_of_all, np.sort: _ordered, np.linalg.norm: _of_data(np.linalg.norm),
    np.amin: _by_method("min"), np.amax: _by_method("max"), np.around: _by_method("round")})


def _is_or_holds_traced(x: Any) -> bool:
    return is_traced(x) or isinstance(x, Masked) or (isinstance(x, list | tuple) and any(isinstance(one, Masked) for one in x))


def array_of(function: Any, x: Masked, dtype: Any = None, **options: Any) -> Any:
    """np.asarray(m), the array behind it; np.asanyarray(m) is m."""
    if options.keys() - {"copy"}:
        refuse(f"np.{function.__name__} with {', '.join(options)}=")
    found = x if dtype is None or np.dtype(dtype) == x.dtype else x.astype(dtype)
    if function is np.asanyarray:
        return found
    return np.copy(found.data) if options.get("copy", function is np.array) and found is x else found.data


HANDLERS["array_of_masked"] = array_of


def masked_twin(function: Any) -> Callable[..., Any] | None:
    """What is called in the place of a function or class of `numpy.ma`."""
    name = str(getattr(function, "__name__", ""))
    if getattr(np.ma, name, None) is not function:
        name = next((one for one in (name, {"amin": "min", "amax": "max", "true_divide": "divide"}.get(name, "")) if getattr(
            np.ma, one, None) is function), "")

    def chosen(*args: Any, **kwargs: Any) -> Any:
        if not any(map(_is_or_holds_traced, (*args, *kwargs.values()))):
            return function(*args, **kwargs)
        found = _FUNCTIONS.get(name)
        if found is not None:
            return found(*args, **kwargs)
        if kwargs or not name or not isinstance(getattr(np, name, None), np.ufunc):
            return refuse(f"np.ma.{name or 'a function'}()")
        return of_elements(name, *args)
    return chosen
