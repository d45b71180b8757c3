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
from bwcompiler.frontend.tracing.registry import HANDLERS, TAKING
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.operators import UFUNC_NAMES, Operation, UpdatingOperators

_ALL_MASKED = ("all elements of a masked array are masked: NumPy gives np.ma.masked\n"
               "  hint: x.filled(0) and x.count(), or np.where(mask, 0, x)")
_TINY = np.finfo(float).tiny
_DIVIDING = ("divide", "true_divide", "floor_divide", "remainder", "mod", "fmod")
_PLAIN = frozenset(("add", "subtract", "multiply", "maximum", "minimum", "hypot", "arctan2", "less", "less_equal", "greater",
                    "greater_equal", "equal", "not_equal", "logical_and", "logical_or", "negative", "absolute", "fabs", "abs", "exp", "sin",
                    "cos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "floor", "ceil", "square", "expm1", "sign", "conjugate"))
_FILLS = {"log": 1.0, "log2": 1.0, "log10": 1.0, "arccosh": 1.0}        # what NumPy's own functions put there, else 0
_OUTSIDE: dict[str, Callable[[Any], Any]] = {      # where functions have no value, which NumPy masks
    "sqrt": lambda x: x < 0, "log": lambda x: x <= _TINY, "log2": lambda x: x <= _TINY, "log10": lambda x: x <= _TINY,
    "arcsin": lambda x: np.abs(x) > 1, "arccos": lambda x: np.abs(x) > 1, "arccosh": lambda x: x < 1,
    "arctanh": lambda x: np.abs(x) > 1 - 1e-15, "tan": lambda x: np.abs(np.cos(x)) < 1e-35}


def refuse(what: str) -> NoReturn:
    raise UnsupportedError(at(current_source(open_region().outer), f"{what} of a masked array of traced values is not supported\n"
                              "  hint: np.where(mask, value, x); x.filled(value), x.compressed(), x.data and x.mask are arrays"))


class _Kind:
    """The type that Python has, of a class of ours: np.ma is loaded when it is asked for."""

    def __get__(self, instance: Any, owner: Any) -> Any:
        return np.ma.MaskedArray


class Masked(UpdatingOperators):
    """data: all elements; mask: an array of the same shape, or False.

    fill_value  what `filled` puts in the place of masked elements.
    Both are assigned to in place, so views, and arrays that it was made of, see it.  Those that are no traced arrays would not: then
    assignments are refused.
    """

    __array_priority__ = 2100.0
    __hash__ = None  # type: ignore[assignment]
    stands_for = _Kind()
    is_masked = True
    hardmask = False

    def __init__(self, data: Any, mask: Any = False, fill_value: Any = None, is_own: bool = False) -> None:
        self.data = call(as_tracer, data)
        self._mask: Any = mask
        if mask is not False:
            self._mask = call(as_tracer, mask)
            if self._mask.shape != self.data.shape:
                self._mask = np.broadcast_to(self._mask, self.data.shape).copy()
        self._fill = fill_value
        self._is_copy = not is_own and (not is_traced(data) or not (mask is False or is_traced(mask)))

    @property
    def mask(self) -> Any:
        return self._mask

    @mask.setter
    def mask(self, value: Any) -> None:
        """m.mask = value: written into the mask that there is."""
        if self._is_copy:
            refuse("an assignment to its mask (its data or mask comes from outside, or holds known values alone)")
        if self._mask is False:
            self._mask = call(as_tracer, np.zeros(self.shape, bool))
        self._mask[...] = False if value is np.ma.nomask else getdata(value)

    @property
    def fill_value(self) -> Any:
        default = {"f": 1e20, "c": 1e20 + 0j, "b": True}.get(self.dtype.kind, 999999) if self._fill is None else self._fill
        return np.asarray(default).astype(self.dtype)[()]

    @fill_value.setter
    def fill_value(self, value: Any) -> None:
        self._fill = value

    shape = property(lambda self: self.data.shape)
    ndim = property(lambda self: self.data.ndim)
    size = property(lambda self: self.data.size)
    dtype = property(lambda self: self.data.dtype)
    T = property(lambda self: self.moved(np.transpose))
    real = property(lambda self: self.with_data(np.real(self.data)))
    imag = property(lambda self: self.with_data(np.imag(self.data)))

    def __len__(self) -> int:
        return len(self.data)

    def moved(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Masked:
        """Data and mask, moved alike."""
        mask = False if self.mask is False else function(self.mask, *args, **kwargs)
        found = Masked(function(self.data, *args, **kwargs), mask, self._fill)
        found._is_copy = self._is_copy
        return found

    def with_data(self, data: Any) -> Masked:
        """Other data, with a copy of the mask."""
        return Masked(data, self.mask if self.mask is False else np.copy(self.mask), self._fill)

    def reshape(self, *shape: Any) -> Masked:
        return self.moved(lambda x: x.reshape(*shape))

    def ravel(self, order: str = "C") -> Masked:
        return self.moved(np.ravel, order)

    def flatten(self, order: str = "C") -> Masked:
        return self.ravel(order).copy()

    def transpose(self, *axes: Any) -> Masked:
        return self.moved(lambda x: x.transpose(*axes))

    def squeeze(self, axis: Any = None) -> Masked:
        return self.moved(np.squeeze, axis)

    def swapaxes(self, axis1: int, axis2: int) -> Masked:
        return self.moved(np.swapaxes, axis1, axis2)

    def take(self, indices: Any, axis: Any = None) -> Masked:
        return self.moved(np.take, indices, axis)

    def repeat(self, repeats: Any, axis: Any = None) -> Masked:
        return self.moved(np.repeat, repeats, axis)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Masked:
        return self.moved(np.diagonal, offset, axis1, axis2)

    def copy(self) -> Masked:
        return self.with_data(np.copy(self.data))

    def astype(self, dtype: Any) -> Masked:
        return self.with_data(self.data.astype(dtype))

    def clip(self, a_min: Any = None, a_max: Any = None) -> Masked:
        return self.with_data(np.clip(self.data, getdata(a_min), getdata(a_max)))

    def round(self, decimals: int = 0) -> Masked:
        return self.with_data(np.round(self.data, decimals))

    def conj(self) -> Masked:
        return self.with_data(np.conj(self.data))

    conjugate = conj

    def unshare_mask(self) -> Masked:
        self._mask = self._mask if self._mask is False else np.copy(self._mask)
        return self

    def soften_mask(self) -> Masked:
        return self

    shrink_mask = soften_mask

    def __getitem__(self, index: Any) -> Any:
        index = _plain_index(index)
        found = self.moved(lambda x: x[index])
        if found.ndim or found.mask is False:
            return found if found.ndim else found.data
        return _unless_masked(found.data, found.mask)

    def __setitem__(self, index: Any, value: Any) -> None:
        if self._is_copy:
            refuse("an assignment to elements (its data or mask comes from outside, or holds known values alone)")
        keeps_mask = isinstance(index, Masked | np.ma.MaskedArray) and not isinstance(value, Masked | np.ma.MaskedArray)
        index = _plain_index(index)
        if not _is_constant(value):
            self.data[index] = getdata(value)
        if keeps_mask and self._mask is not False:
            return
        mask = True if _is_constant(value) else getmask(value)
        if self._mask is False and mask is not False:
            self._mask = call(as_tracer, np.zeros(self.shape, bool))
        if self._mask is not False:
            self._mask[index] = mask

    # ----- elements
    def filled(self, fill_value: Any = None) -> Any:
        fill_value = self.fill_value if fill_value is None else fill_value
        return self.data if self.mask is False else np.where(self.mask, np.asarray(fill_value).astype(self.dtype), self.data)

    def compressed(self) -> Any:
        return np.ravel(self.data) if self.mask is False else self.data[np.logical_not(self.mask)]

    def _operate(self, operation: Operation, *operands: Any) -> Any:
        return of_elements(UFUNC_NAMES[operation], *operands)

    def _update(self, operation: Operation, other: Any) -> Any:
        """x += y: in its memory, where neither is masked."""
        neutral = _NEUTRAL.get(operation)
        if neutral is None or _is_constant(other):
            refuse("an operator that changes it in place, but for += -= *= and /=,")
        if self._is_copy:
            refuse("an operator that changes it in place (its data or mask comes from outside, or holds known values alone)")
        given, masks = operand(other), [self.mask, getmask(other)]
        if operation is operator.truediv:
            masks.append(np.abs(self.data) * _TINY >= np.abs(given))
        mask = either(*masks)
        if mask is not False:
            given = np.where(mask, neutral, given)
            if self._mask is False:
                self._mask = call(as_tracer, np.zeros(self.shape, bool))
            self._mask[...] = mask
        self.data[...] = operation(self.data, given)
        return self

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or kwargs or ufunc.nout > 1:
            refuse(f"np.{ufunc.__name__}{'' if method == '__call__' else '.' + method}{' with ' + ', '.join(kwargs) if kwargs else ''}")
        return of_ufunc(ufunc, *inputs)

    def __array_function__(self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        found = NUMPY_FUNCTIONS.get(function)
        return refuse(f"np.{function.__name__}") if found is None else found(*args, **kwargs)

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
        return found.with_data(_root(found.data)) if isinstance(found, Masked) else _root(found)

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
        return whole.with_data(np.cumsum(whole._filled(0), axis=axis))

    def cumprod(self, axis: Any = None) -> Masked:
        whole = self.ravel() if axis is None else self
        return whole.with_data(np.cumprod(whole._filled(1), axis=axis))

    def any(self, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
        _without(out=out)
        return self._reduced(np.any(self._filled(0), axis=axis, **_kept(keepdims)), axis, keepdims)

    def all(self, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
        _without(out=out)
        return self._reduced(np.all(self._filled(1), axis=axis, **_kept(keepdims)), axis, keepdims)

    def ptp(self, axis: Any = None, out: Any = None, fill_value: Any = None, keepdims: Any = False) -> Any:
        return self.max(axis, out, fill_value, keepdims) - self.min(axis, out, fill_value, keepdims)

    def anom(self, axis: Any = None) -> Masked:
        return self - (self.mean() if axis is None else self.mean(axis, keepdims=True))  # type: ignore[no-any-return]

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
        return np.sum(self.diagonal(offset, axis1, axis2)._filled(0), axis=-1)

    def dot(self, b: Any) -> Any:
        return dot(self, b)

    def nonzero(self) -> Any:
        return np.nonzero(self._filled(0))

    def argsort(self, axis: Any = None) -> Any:
        return np.argsort(self._filled(_last(self.dtype)), axis=axis, kind="stable")

    def sort(self, axis: Any = -1) -> None:
        """In place; what is masked comes last."""
        if self._is_copy:
            refuse("sort() in place (its data or mask comes from outside, or holds known values alone)")
        order = self.argsort(axis)
        self.data[...] = np.take_along_axis(self.data, order, axis)
        if self._mask is not False:
            self._mask[...] = np.take_along_axis(self._mask, order, axis)

    def _filled(self, value: Any) -> Any:
        return self.data if self.mask is False else np.where(self.mask, np.asarray(value).astype(self.dtype), self.data)


TAKING.append(Masked)
NUMPY_FUNCTIONS: dict[Any, Callable[..., Any]] = {}            # those of NumPy's own that take masked arrays (`masked_functions`)
_NEUTRAL: dict[Operation, Any] = {operator.add: 0, operator.sub: 0, operator.mul: 1, operator.truediv: 1}


def _end(dtype: Any, sign: int) -> Any:
    if dtype.kind == "f":
        return sign * np.inf
    return np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min


def _root(x: Any) -> Any:
    """The square root, of which the derivative at 0 is 0, as that of np.std."""
    return np.where(x == 0, x, np.sqrt(x))


def _last(dtype: Any) -> Any:
    """What is behind all numbers in order."""
    return np.nan if dtype.kind == "f" else _end(dtype, 1)


def _plain_index(index: Any) -> Any:
    """An index, of whose masked arrays the data count."""
    return tuple(map(getdata, index)) if isinstance(index, tuple) else getdata(index)


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
    data, mask = list(map(operand, operands)), either(*map(getmask, operands))
    if function is None or not (name in _PLAIN or name in _OUTSIDE or name in _DIVIDING or name == "power"):
        refuse(f"np.{name}")
    found = function(*data)
    first = data[0]
    if name in _OUTSIDE:
        mask = either(mask, _OUTSIDE[name](first))
    elif name in _DIVIDING:
        mask = either(mask, np.abs(first) * _TINY >= np.abs(data[1]), np.logical_not(np.isfinite(found)))
        return Masked(np.where(mask, first, found), mask)
    elif name == "power":
        mask = either(mask, np.logical_not(np.isfinite(found)))
    if mask is False:
        return Masked(found)
    is_truth = found.dtype.kind == "b"
    is_shared = len(operands) == 1 and name not in _OUTSIDE        # NumPy gives these the mask itself
    return Masked(found if is_truth else np.where(mask, first, found), mask if is_shared else np.copy(mask))


def of_ufunc(ufunc: Any, *operands: Any) -> Any:
    """np.exp(m), which NumPy computes of all elements; those are masked where an operand is, or where the function has no value."""
    if any(map(_is_constant, operands)):
        refuse("arithmetic with np.ma.masked")
    data, mask, name = list(map(operand, operands)), either(*map(getmask, operands)), ufunc.__name__
    found = ufunc(*data)
    if name in _OUTSIDE:
        mask = either(mask, _OUTSIDE[name](data[0]))
        found = np.where(mask, _FILLS.get(name, 0.0), found)
    elif name in _DIVIDING:
        outside = np.abs(data[0]) * _TINY >= np.abs(data[1])
        found, mask = np.where(outside, 1.0, found), either(mask, outside)
    fill = next((one._fill for one in operands if isinstance(one, Masked)), None)
    is_shared = len(operands) == 1 and name not in _OUTSIDE        # NumPy gives these the mask itself
    return Masked(found, mask if mask is False or is_shared else np.copy(mask), fill)


def dot(a: Any, b: Any) -> Any:
    """np.ma.dot(a, b): 0 in the place of what is masked; masked where all products are."""
    found = np.dot(as_masked(a)._filled(0), as_masked(b)._filled(0))
    if getmask(a) is False and getmask(b) is False:
        return Masked(found) if np.ndim(found) else found
    there = [np.logical_not(getmaskarray(one)) * 1 for one in (a, b)]
    are = np.dot(*there) == 0
    return Masked(found, are) if np.ndim(found) else _unless_masked(found, are)


def operand(x: Any) -> Any:
    """What is computed with: arrays from outside are read when the program runs."""
    found = getdata(x)
    return call(as_tracer, found) if isinstance(found, np.ndarray) else found


def either(*masks: Any) -> Any:
    found: Any = False
    for mask in masks:
        if mask is not False:
            found = mask if found is False else np.logical_or(found, mask)
    return found


# ----- parts
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


def as_masked(x: Any) -> Masked:
    return x if isinstance(x, Masked) else Masked(getdata(x), getmask(x))
