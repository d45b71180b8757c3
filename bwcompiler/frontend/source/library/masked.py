"""Masked arrays of traced values, `np.ma.masked_where(x < 0, x).mean()`: an array, and one that is true where its elements do not count.

A `Masked` does what `np.ma.MaskedArray` does, also to what lies behind the mask.  A reduction of all elements that may all be masked, of
which NumPy makes `np.ma.masked`, raises when the program runs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from bwcompiler.errors import TracerError, UnsupportedError, at
from bwcompiler.frontend.source.effects.checks import raise_where
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.operands import as_tracer, is_traced
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.operators import UFUNC_NAMES, Operation, Operators

_ALL_MASKED = ("all elements of a masked array are masked: NumPy gives np.ma.masked\n"
               "  hint: x.filled(0) and x.count(), or np.where(mask, 0, x)")
_TINY = np.finfo(float).tiny
_DIVIDING = ("divide", "true_divide", "floor_divide", "remainder", "mod", "fmod")
_PLAIN = frozenset(("add", "subtract", "multiply", "maximum", "minimum", "hypot", "arctan2", "less", "less_equal", "greater",
                    "greater_equal", "equal", "not_equal", "logical_and", "logical_or", "negative", "absolute", "fabs", "abs", "exp", "sin",
                    "cos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "floor", "ceil", "square", "expm1", "sign", "conjugate"))
_OUTSIDE: dict[str, Callable[[Any], Any]] = {      # where functions have no value, which NumPy masks
    "sqrt": lambda x: x < 0, "log": lambda x: x <= _TINY, "log2": lambda x: x <= _TINY, "log10": lambda x: x <= _TINY,
    "arcsin": lambda x: np.abs(x) > 1, "arccos": lambda x: np.abs(x) > 1, "arccosh": lambda x: x < 1,
    "arctanh": lambda x: np.abs(x) > 1 - 1e-15, "tan": lambda x: np.abs(np.cos(x)) < 1e-35}


def refuse(what: str) -> NoReturn:
    raise UnsupportedError(at(current_source(open_region().outer), f"{what} of a masked array of traced values is not supported\n"
                              "  hint: np.where(mask, value, x); x.filled(value), x.compressed(), x.data and x.mask are arrays"))


class Masked(Operators):
    """data: all elements; mask: an array of the same shape, or False.

    Both are assigned to in place, so views, and arrays that it was made of, see it.  Those that are no traced arrays would not: then
    assignments are refused.
    """

    __array_priority__ = 2100.0
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, data: Any, mask: Any = False) -> None:
        self.data = call(as_tracer, data)
        self.mask: Any = mask
        if mask is not False:
            self.mask = call(as_tracer, mask)
            if self.mask.shape != self.data.shape:
                self.mask = np.broadcast_to(self.mask, self.data.shape).copy()
        self._is_copy = not is_traced(data) or not (mask is False or is_traced(mask))

    shape = property(lambda self: self.data.shape)
    ndim = property(lambda self: self.data.ndim)
    size = property(lambda self: self.data.size)
    dtype = property(lambda self: self.data.dtype)
    T = property(lambda self: self._moved(np.transpose))

    def __len__(self) -> int:
        return len(self.data)

    def _moved(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Masked:
        found = Masked(function(self.data, *args, **kwargs), False if self.mask is False else function(self.mask, *args, **kwargs))
        found._is_copy = self._is_copy
        return found

    def reshape(self, *shape: Any) -> Masked:
        return self._moved(lambda x: x.reshape(*shape))

    def ravel(self) -> Masked:
        return self._moved(np.ravel)

    def copy(self) -> Masked:
        return Masked(np.copy(self.data), self.mask if self.mask is False else np.copy(self.mask))

    def __getitem__(self, index: Any) -> Any:
        found = self._moved(lambda x: x[index])
        if found.ndim or found.mask is False:
            return found if found.ndim else found.data
        return _unless_masked(found.data, found.mask)

    def __setitem__(self, index: Any, value: Any) -> None:
        if self._is_copy:
            refuse("an assignment to elements (its data or mask comes from outside, or holds known values alone)")
        if not _is_constant(value):
            self.data[index] = getdata(value)
        mask = True if _is_constant(value) else getmask(value)
        if self.mask is False and mask is not False:
            self.mask = call(as_tracer, np.zeros(self.shape, bool))
        if self.mask is not False:
            self.mask[index] = mask

    # ----- elements
    def filled(self, fill_value: Any = None) -> Any:
        if fill_value is None:
            fill_value = {"f": 1e20, "c": 1e20 + 0j, "b": True}.get(self.dtype.kind, 999999)
        return self.data if self.mask is False else np.where(self.mask, np.asarray(fill_value).astype(self.dtype), self.data)

    def compressed(self) -> Any:
        return np.ravel(self.data) if self.mask is False else self.data[np.logical_not(self.mask)]

    def _operate(self, operation: Operation, *operands: Any) -> Any:
        return of_elements(UFUNC_NAMES[operation], *operands)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or kwargs:
            refuse(f"np.{ufunc.__name__}{'' if method == '__call__' else '.' + method}{' with ' + ', '.join(kwargs) if kwargs else ''}")
        return of_elements(ufunc.__name__, *inputs)

    def __array_function__(self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = function.__name__
        if name not in _METHODS or not isinstance(args[0], Masked):
            refuse(f"np.{name}")
        return getattr(args[0], _METHODS[name])(*args[1:], **kwargs)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        refuse("an array")

    def __iter__(self) -> Any:
        return (self[k] for k in range(len(self)))

    def __bool__(self) -> bool:
        refuse("the truth")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(np.ma.MaskedArray, name):
            raise AttributeError(name)
        refuse(f"x.{name}")

    # ----- reductions
    def _reduced(self, found: Any, axis: Any, keepdims: Any) -> Any:
        """What a reduction gives: masked where all is."""
        if self.mask is False:
            return Masked(found) if np.ndim(found) else found
        are = np.all(self.mask, axis=axis, **_kept(keepdims))
        return Masked(np.where(are, 0, found), are) if np.ndim(found) else _unless_masked(found, are)

    def count(self, axis: Any = None, keepdims: Any = False) -> Any:
        there = np.ones(self.shape, bool) if self.mask is False else np.logical_not(self.mask)
        return np.sum(there, axis=axis, **_kept(keepdims))

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False) -> Any:
        _without(dtype=dtype, out=out)
        return self._reduced(np.sum(self._filled(0), axis=axis, **_kept(keepdims)), axis, keepdims)

    def prod(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False) -> Any:
        _without(dtype=dtype, out=out)
        return self._reduced(np.prod(self._filled(1), axis=axis, **_kept(keepdims)), axis, keepdims)

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False) -> Any:
        _without(dtype=dtype, out=out)
        if self.mask is False:
            return self._reduced(np.mean(self.data, axis=axis, **_kept(keepdims)), axis, keepdims)
        total = np.sum(self._filled(0), axis=axis, **_kept(keepdims))
        return self._reduced(total / np.maximum(self.count(axis, keepdims), 1), axis, keepdims)

    def var(self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False) -> Any:
        _without(dtype=dtype, out=out)
        if self.mask is False:
            return self._reduced(np.var(self.data, axis=axis, ddof=ddof, **_kept(keepdims)), axis, keepdims)
        mean = np.sum(self._filled(0), axis=axis, keepdims=True) / np.maximum(self.count(axis, True), 1)
        squares = np.where(self.mask, 0, np.abs(self.data - mean) ** 2)
        left = self.count(axis, keepdims) - ddof
        found = np.sum(squares, axis=axis, **_kept(keepdims)) / np.maximum(left, 1)
        return Masked(np.where(left <= 0, 0, found), left <= 0) if np.ndim(found) else _unless_masked(found, left <= 0)

    def std(self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False) -> Any:
        found = self.var(axis, dtype, out, ddof, keepdims)
        return np.sqrt(found)

    def min(self, axis: Any = None, out: Any = None, fill_value: Any = None, keepdims: Any = False) -> Any:
        _without(out=out, fill_value=fill_value)
        return self._reduced(np.min(self._filled(_end(self.dtype, 1)), axis=axis, **_kept(keepdims)), axis, keepdims)

    def max(self, axis: Any = None, out: Any = None, fill_value: Any = None, keepdims: Any = False) -> Any:
        _without(out=out, fill_value=fill_value)
        return self._reduced(np.max(self._filled(_end(self.dtype, -1)), axis=axis, **_kept(keepdims)), axis, keepdims)

    def argmin(self, axis: Any = None) -> Any:
        return np.argmin(self._filled(_end(self.dtype, 1)), axis=axis)

    def argmax(self, axis: Any = None) -> Any:
        return np.argmax(self._filled(_end(self.dtype, -1)), axis=axis)

    def cumsum(self, axis: Any = None) -> Masked:
        whole = self.ravel() if axis is None else self
        return Masked(np.cumsum(whole._filled(0), axis=axis), whole.mask if whole.mask is False else np.copy(whole.mask))

    def _filled(self, value: Any) -> Any:
        return self.data if self.mask is False else np.where(self.mask, np.asarray(value).astype(self.dtype), self.data)


_METHODS = {name: name for name in ("sum", "prod", "mean", "var", "std", "min", "max", "argmin", "argmax", "cumsum", "ravel", "reshape",
                                    "copy")} | {"amin": "min", "amax": "max"}


def _end(dtype: Any, sign: int) -> Any:
    if dtype.kind == "f":
        return sign * np.inf
    return np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min


def _kept(keepdims: Any) -> dict[str, Any]:
    return {"keepdims": True} if keepdims is True else {}


def _without(**options: Any) -> None:
    for name, value in options.items():
        if value is not None:
            refuse(f"{name}=")


def _unless_masked(found: Any, mask: Any) -> Any:
    """One element; raises, when the program runs, where it is masked."""
    raise_where(mask, TracerError(_ALL_MASKED))
    return found


def _is_constant(x: Any) -> bool:
    return x is np.ma.masked


# ----- element by element
def binary(name: str, x: Any, y: Any) -> Any:
    """An operator, by its name in `operator`, of a masked array of NumPy's and something traced."""
    return of_elements(UFUNC_NAMES[getattr(operator, name)], x, y)


HANDLERS["of_masked"] = binary


def of_elements(name: str, *operands: Any) -> Any:
    """A function of NumPy's, by its name: as NumPy's, masked where an operand is, or where it has no value."""
    if any(map(_is_constant, operands)):
        refuse("arithmetic with np.ma.masked")
    function = getattr(np, name, None)
    data, mask = list(map(_operand, operands)), _either(*map(getmask, operands))
    if function is None or not (name in _PLAIN or name in _OUTSIDE or name in _DIVIDING or name == "power"):
        refuse(f"np.{name}")
    found = function(*data)
    first = data[0]
    if name in _OUTSIDE:
        mask = _either(mask, _OUTSIDE[name](first))
    elif name in _DIVIDING:
        mask = _either(mask, np.abs(first) * _TINY >= np.abs(data[1]), np.logical_not(np.isfinite(found)))
        return Masked(np.where(mask, first, found), mask)
    elif name == "power":
        mask = _either(mask, np.logical_not(np.isfinite(found)))
    if mask is False:
        return Masked(found)
    is_truth = found.dtype.kind == "b"
    is_shared = len(operands) == 1 and name not in _OUTSIDE        # NumPy gives these the mask itself
    return Masked(found if is_truth else np.where(mask, first, found), mask if is_shared else np.copy(mask))


def _operand(x: Any) -> Any:
    """What is computed with: arrays from outside are read when the program runs."""
    found = getdata(x)
    return call(as_tracer, found) if isinstance(found, np.ndarray) else found


def _either(*masks: Any) -> Any:
    found: Any = False
    for mask in masks:
        if mask is not False:
            found = mask if found is False else np.logical_or(found, mask)
    return found


# ----- np.ma
def getdata(x: Any) -> Any:
    return x.data if isinstance(x, Masked) else np.ma.getdata(x) if isinstance(x, np.ma.MaskedArray) else x


def getmask(x: Any) -> Any:
    """The mask; False where there is none."""
    if isinstance(x, np.ma.MaskedArray):
        return False if x.mask is np.ma.nomask else x.mask
    return x.mask if isinstance(x, Masked) else False


def getmaskarray(x: Any) -> Any:
    mask = getmask(x)
    return np.zeros(np.shape(getdata(x)), bool) if mask is False else mask


def _array(data: Any, dtype: Any = None, copy: Any = False, order: Any = None, mask: Any = False, fill_value: Any = None,
           keep_mask: Any = True, hard_mask: Any = False, shrink: Any = True, subok: Any = True, ndmin: Any = 0) -> Masked:
    if dtype is not None or fill_value is not None or hard_mask or ndmin or not keep_mask:
        refuse("np.ma.array with dtype=, fill_value=, keep_mask=, hard_mask= or ndmin=")
    whole = getdata(data)
    whole = whole if isinstance(whole, np.ndarray) else call(as_tracer, whole)
    given = False if mask is False or mask is np.ma.nomask else call(as_tracer, mask) if isinstance(mask, list | tuple) else mask
    found = Masked(whole, _either(getmask(data), given))
    return found.copy() if copy else found


def _masked_where(condition: Any, a: Any, copy: Any = True) -> Masked:
    where = np.asarray(condition) if isinstance(condition, list) else getdata(condition)
    if not copy and isinstance(a, Masked):
        refuse("copy=False")
    return Masked(np.copy(getdata(a)) if copy else getdata(a), np.copy(_either(getmask(a), where)))


def _where_compared(name: str) -> Callable[..., Masked]:
    return lambda x, value, copy=True: _masked_where(getattr(np, name)(getdata(x), value), x, copy)


def _between(is_outside: bool) -> Callable[..., Masked]:
    def between(x: Any, v1: Any, v2: Any, copy: Any = True) -> Masked:
        data, low, high = getdata(x), np.minimum(v1, v2), np.maximum(v1, v2)
        return _masked_where(np.logical_or(data < low, data > high) if is_outside else np.logical_and(data >= low, data <= high), x,
                             copy)
    return between


def _average(a: Any, axis: Any = None, weights: Any = None, returned: Any = False, *, keepdims: Any = False) -> Any:
    x = _as_masked(a)
    if weights is None:
        found, total = x.mean(axis, keepdims=keepdims), x.count(axis, keepdims) * 1.0
    else:
        given = _as_masked(np.asarray(weights) if isinstance(weights, list | tuple) else weights)
        if given.shape != x.shape:
            if axis is None or np.ndim(given.data) != 1:
                refuse("np.ma.average with weights of another shape")
            shape = [1] * x.ndim
            shape[axis] = -1
            given = Masked(np.broadcast_to(given.data.reshape(shape), x.shape))
        both = Masked(given.data * 1.0, _either(x.mask, given.mask))
        total = both.sum(axis, keepdims=keepdims)
        found = (x * both).sum(axis, keepdims=keepdims) / total
    return (found, total) if returned else found


def _median(a: Any, axis: Any = None) -> Any:
    x = _as_masked(a)
    return np.median(x.compressed()) if axis is None else refuse("np.ma.median with axis=")


def _where(condition: Any, x: Any, y: Any) -> Masked:
    chosen = np.where(getdata(condition), getmaskarray(x), getmaskarray(y))
    return Masked(np.where(getdata(condition), getdata(x), getdata(y)), _either(getmask(condition), chosen))


def _as_masked(x: Any) -> Masked:
    return x if isinstance(x, Masked) else Masked(getdata(x), getmask(x))


def _by_method(name: str) -> Callable[..., Any]:
    return lambda x, *args, **kwargs: getattr(_as_masked(x), name)(*args, **kwargs)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "array": _array, "masked_array": _array, "MaskedArray": _array, "asarray": _array, "asanyarray": _array, "masked_where": _masked_where,
    **{f"masked_{name}": _where_compared(name) for name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")},
    "masked_inside": _between(False), "masked_outside": _between(True),
    "masked_invalid": lambda a, copy=True: _masked_where(np.logical_not(np.isfinite(getdata(a))), a, copy),
    "getdata": lambda a, subok=True: getdata(a), "getmaskarray": getmaskarray, "average": _average, "median": _median, "where": _where,
    "getmask": lambda a: np.ma.nomask if getmask(a) is False else getmask(a),
    "filled": lambda a, fill_value=None: _as_masked(a).filled(fill_value) if isinstance(a, Masked) else a,
    "dot": lambda a, b, strict=False, out=None: np.dot(_as_masked(a)._filled(0), _as_masked(b)._filled(0)),
    **{name: _by_method(name) for name in ("sum", "prod", "mean", "var", "std", "min", "max", "count", "compressed", "cumsum", "argmin",
                                           "argmax", "ravel", "copy", "reshape")},
}


def masked_twin(function: Any) -> Callable[..., Any] | None:
    """What is called in the place of a function or class of `numpy.ma`."""
    name = str(getattr(function, "__name__", ""))
    if getattr(np.ma, name, None) is not function:
        name = next((one for one in (name, {"amin": "min", "amax": "max", "true_divide": "divide"}.get(name, "")) if getattr(
            np.ma, one, None) is function), "")

    def chosen(*args: Any, **kwargs: Any) -> Any:
        if not any(is_traced(one) or isinstance(one, Masked) for one in (*args, *kwargs.values())):
            return function(*args, **kwargs)
        found = _FUNCTIONS.get(name)
        if found is not None:
            return found(*args, **kwargs)
        if kwargs or not name or not isinstance(getattr(np, name, None), np.ufunc):
            return refuse(f"np.ma.{name or 'a function'}()")
        return of_elements(name, *args)
    return chosen
