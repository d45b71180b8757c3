"""Concrete arrays from outside whose contents the traced code reads: numbers taken from them, results of NumPy's functions.

Such numbers are compiled into the program, so each call compares the memory that they were read from, and the function is traced
again if it has changed (`Outside.array`).  An array that is combined with traced values is read by the program itself, and taking views
of an array reads nothing.
"""

from __future__ import annotations

import dataclasses
import operator
import types
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler.frontend.source.concrete import percent
from bwcompiler.frontend.source.concrete.makers import is_live, maker_of, shown
from bwcompiler.frontend.source.concrete.texts import require_known
from bwcompiler.frontend.tracing.operands import is_traced
from bwcompiler.frontend.tracing.provenance.source import is_library
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.storages.region import active_region, read_contents
from bwcompiler.frontend.tracing.tracer import ArrayTracer, ScalarTracer, Tracer

_ASKING = frozenset((isinstance, type, print, repr, str, len, hash, id, callable, getattr, hasattr, dict, np.shape, np.ndim, np.size,
                     np.zeros_like, np.ones_like, np.empty_like, np.full_like, np.result_type, np.may_share_memory, np.shares_memory))
_TAKING = (zip, enumerate, reversed, iter, list, tuple, map, filter)       # elements, which are views if they are arrays
_FILLING = frozenset(("fill", "__setitem__", "__len__"))       # methods of arrays that do not read


def read(*arrays: Any) -> None:
    """What these hold is read, of those that are concrete arrays."""
    for array in arrays:
        if isinstance(array, np.ndarray) and maker_of(array) is None:
            read_contents(array)


HANDLERS["read_contents"] = read


def live(x: Any) -> Any:
    """An array from outside as the program reads it at every call, if its contents were seen to change between calls."""
    return shown(x) if is_live(x) else x


def read_item(array: Any, index: Any, touched: dict[int, int], found: Any) -> None:
    """found = array[index]: views read nothing; touched: of the arrays in the index, how often the program had read them before."""
    is_view = isinstance(found, np.ndarray) and found.base is not None and np.may_share_memory(found, array)
    if isinstance(array, np.ndarray) and not isinstance(found, Tracer) and not is_view:
        read(array)
    for part in index if type(index) is tuple else (index,):
        if isinstance(part, np.ndarray) and not _touched_since(part, touched):
            read(part)


def read_index(index: Any) -> Any:
    """What stands in brackets, where an element is assigned to: masks are read, and texts are keys."""
    for part in index if type(index) is tuple else (index,):
        if isinstance(part, np.ndarray) and part.dtype == bool:
            read(part)
        elif type(part) is str:
            require_known(part)
    return index


def touched() -> dict[int, int]:
    """How often the program reads arrays, until now."""
    region = active_region()
    return {} if region is None else region.touched.copy()


def _touched_since(array: Any, before: dict[int, int]) -> bool:
    region = active_region()
    return region is not None and region.touched.get(id(array), 0) > before.get(id(array), 0)


def read_items(source: Any, levels: int = 1) -> Any:
    """Elements are taken out of something, and of these again: so many times.  Those that are arrays are views."""
    if isinstance(source, np.ndarray) and source.ndim <= levels:
        read(source)
    elif type(source) is tuple and levels > 1:
        for one in source:
            read_items(one, levels - 1)
    elif type(source) is np.flatiter:
        read(source.base)
    elif type(source) is str:
        require_known(source)
    return source


def reading(function: Any, found: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is not the user's, `found` in its place: it reads arrays, but those that the program reads, and those of views."""
    if isinstance(function, Tracer) or _keeps(function):
        return found
    owner = getattr(function, "__self__", None)

    if live(owner) is not owner:
        return getattr(live(owner), function.__name__)  # type: ignore[no-any-return]

    def called(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tuple(map(live, args)), {key: live(arg) for key, arg in kwargs.items()}
        given = [*args, *kwargs.values(), *([owner] if isinstance(owner, np.ndarray) else [])]
        given += [part for one in given if type(one) in (list, tuple) for part in one]
        given += [part for one in given if str(type(one).__module__).startswith("scipy.sparse") for part in vars(one).values()]
        arrays = [one for one in given if isinstance(one, np.ndarray) and (one.ndim < 2 or function not in _TAKING)]
        functions = [one for one in given if isinstance(one, types.FunctionType)]
        if functions:
            _as_written(functions)
        if not arrays:
            return found(*args, **kwargs)
        before = touched()
        result = found(*args, **kwargs)
        read(*[one for one in arrays if not _touched_since(one, before) and not (
            isinstance(result, np.ndarray) and np.may_share_memory(one, result))])
        return result
    return called


def _keeps(function: Any) -> bool:
    """Whether a function asks nothing of arrays but what they are, or puts them into something."""
    owner = getattr(function, "__self__", None)
    if type(owner) in (list, dict, set, deque) or (isinstance(owner, np.ndarray) and function.__name__ in _FILLING):
        return True
    if isinstance(function, type) and getattr(function, "__module__", "") not in ("builtins", "numpy"):
        return True
    try:
        return function in _ASKING
    except TypeError:                              # something that cannot be hashed
        return False


def _as_written(functions: list[Any]) -> None:
    """Functions that run as they are written, as others call them (`sorted(x, key=fun)`): all arrays that they name are read."""
    region = active_region()
    if region is not None and region.observer is not None:
        for function in functions:
            if not is_library(function.__code__):
                region.observer.as_written(function)


def as_written(function: Any) -> None:
    """A function of the user's that runs as it is written."""
    plain = getattr(function, "__func__", function)
    if isinstance(plain, types.FunctionType):
        _as_written([plain])


# ----- operators
def user_method(kind: Any, name: str) -> Any:
    """The function of the user's that an operator calls, of a class; None where there is none."""
    found = getattr(kind, name, None)
    return found if isinstance(found, types.FunctionType) and not is_library(found.__code__) else None


def is_of_fields(kind: Any, name: str) -> bool:
    """Whether a comparison is the one that `dataclass` makes, of the fields one after the other."""
    method = user_method(kind, name)
    made_by = getattr(kind, "__dataclass_params__", None)
    return method is not None and method.__code__.co_filename == "<string>" and bool(made_by and (
        made_by.eq if name == "__eq__" else made_by.order and name in ("__lt__", "__le__", "__gt__", "__ge__")))


def _called(x: Any, name: str, *others: Any) -> Any:
    """What a method of the user's gives, with its control flow captured; NotImplemented where there is no such method."""
    if others and is_of_fields(type(x), name) and type(others[0]) is type(x):
        return binary(name.strip("_"), *[tuple([getattr(one, field.name) for field in dataclasses.fields(x) if field.compare])
                                         for one in (x, others[0])])
    method = user_method(type(x), name)
    return NotImplemented if method is None else HANDLERS["call_of"](types.MethodType(method, x))(*others)


_NUMBERS = (int, float, ArrayTracer, ScalarTracer, np.ndarray, bool, complex, str, np.float64)
_HOLDING = (str, tuple, list, dict)            # texts, and what may hold them
_MIRRORED = {"lt": "__gt__", "gt": "__lt__", "le": "__ge__", "ge": "__le__", "eq": "__eq__", "ne": "__ne__"}
_OPERATORS = {name: (getattr(operator, name), f"__{name.strip('_')}__", _MIRRORED.get(name, f"__r{name.strip('_')}__")) for name in (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and_", "or_", "xor", "lt", "le", "gt", "ge", "eq", "ne",
    "matmul", "neg", "pos", "abs", "invert")} | {"divmod": (divmod, "__divmod__", "__rdivmod__")}


def binary(name: str, x: Any, y: Any) -> Any:
    """An operator, by its name in `operator`: x + y."""
    function, method, mirrored = _OPERATORS[name]
    x, y = live(x), live(y)
    if name in _MIRRORED and isinstance(x, _HOLDING) and isinstance(y, _HOLDING):
        require_known(x, y)
        if HANDLERS["have_gaps"](x, y):
            return HANDLERS["compared_with_gaps"](name, x, y)
        if HANDLERS["are_undecided"](x, y):
            return HANDLERS["compared"](name, x, y)
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
        is_masked = any(type(one).__module__.startswith("numpy.ma") for one in (x, y))
        if is_masked or not (is_traced(x) or is_traced(y)):
            read(*[one for one in (x, y) if not is_traced(one)])       # a masked array may get another mask
        if is_masked and any(is_traced(one) or getattr(type(one), "is_masked", False) for one in (x, y)):
            return HANDLERS["of_masked"](name, x, y)
    elif name == "mod" and type(x) is str and percent.has_traced(y):
        return percent.formatted(x, y)
    elif name == "mul" and (type(x) is list or type(y) is list) and isinstance(x if type(y) is list else y, Tracer):
        return HANDLERS["repeated"](y, x) if type(y) is list else HANDLERS["repeated"](x, y)
    elif type(x) not in _NUMBERS or type(y) not in _NUMBERS:
        found = _called(x, method, y)
        if found is NotImplemented and type(x) is not type(y) and (type(x) in _NUMBERS or getattr(type(x), method, None) is None):
            found = _called(y, mirrored, x)
        if found is not NotImplemented:
            return found
    return function(x, y)


def unary(name: str, x: Any) -> Any:
    """An operator, by its name in `operator`: -x."""
    function, method, _ = _OPERATORS[name]
    x = live(x)
    if isinstance(x, np.ndarray):
        read(x)
    found = NotImplemented if type(x) in _NUMBERS else _called(x, method)
    return function(x) if found is NotImplemented else found
