"""Calls, items and assignments in captured code: what is called instead, and what must not happen in a body that is traced once.

A body of a loop is traced once for all its iterations, so what it does besides recording values would happen once.  Calls of
which nobody here knows that they only compute, and changes of lists, dictionaries, objects and concrete arrays that were not
made in the same iteration, say that the loop has to be unrolled.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler.frontend.numpy.manipulation.sequences import c_, on_sequences, r_
from bwcompiler.frontend.source.bodies import iteration
from bwcompiler.frontend.source.carried.copying import copying
from bwcompiler.frontend.source.carried.growth import append, element, expect, is_growing, refuse_whole
from bwcompiler.frontend.source.carried.lined import is_lined, line, read
from bwcompiler.frontend.source.changes import VALUES, changed, own
from bwcompiler.frontend.source.concrete.makers import (
    MAKERS,
    METHODS,
    maker,
    noted,
    require_traced,
    shown,
)
from bwcompiler.frontend.source.concrete.writes import CHANGING, places_of
from bwcompiler.frontend.source.effects.checks import is_message, left_out
from bwcompiler.frontend.source.effects.doubles import is_double, refuse_double
from bwcompiler.frontend.source.effects.places import (
    Place,
    note_place,
    own_variables,
    scopes_around,
    short,
)
from bwcompiler.frontend.source.library.builtin_functions import BUILTINS, CONSUMING, NUMBERS, PURE, sort_list
from bwcompiler.frontend.source.library.libraries import factors_twin, scipy_twin
from bwcompiler.frontend.source.library.series import is_series, series_class, without_zeros
from bwcompiler.frontend.source.library.vectorized import vectorized
from bwcompiler.frontend.source.syntax.functions import form as form_of
from bwcompiler.frontend.source.undecided.choices import Choice, picked, table
from bwcompiler.frontend.source.undecided.choices import attribute as attribute_of_choice
from bwcompiler.frontend.source.undecided.gaps import element as element_of_gaps
from bwcompiler.frontend.source.undecided.gaps import has_gaps
from bwcompiler.frontend.source.undecided.gaps import refuse as refuse_gaps
from bwcompiler.frontend.source.undecided.lookups import element as element_at
from bwcompiler.frontend.source.undecided.lookups import get, is_traced_key, look_up
from bwcompiler.frontend.source.variables import not_capturable, open_policy
from bwcompiler.frontend.tracing.index_handle import IndexTracer
from bwcompiler.frontend.tracing.operands import known_parts
from bwcompiler.frontend.tracing.outside import is_hidden_type
from bwcompiler.frontend.tracing.registry import FUNCTIONS, HANDLERS
from bwcompiler.frontend.tracing.source import is_convertible, is_hidden, is_library
from bwcompiler.frontend.tracing.storages.region import Policy
from bwcompiler.frontend.tracing.tracer import Tracer

_READING: dict[type, frozenset[str]] = {                   # methods of Python's containers and of concrete arrays that change nothing
    list: frozenset(("copy", "count", "index")), dict: frozenset(("copy", "get", "items", "keys", "values")),
    set: frozenset(("copy", "difference", "intersection", "isdisjoint", "issubset", "issuperset", "union")),
}
_COMPUTING = frozenset(("accumulate", "outer", "reduce", "reduceat"))       # methods of ufuncs; `at` writes
_ARRAY_FUNCTION = type(np.copyto)
_PURE_MODULES = ("math", "cmath", "operator", "numpy", "scipy", "_operator", "bwcompiler", "copy", "dataclasses", "functools", "logging")


# ----- calls
def callable_for(function: Any, policy: Policy, form: Callable[[Any], Any]) -> Any:
    """What is called in the place of a function."""
    kind = type(function)
    if str(getattr(function, "__module__", "")).startswith("scipy."):
        twin = scipy_twin(function)
        if twin is not None:
            return twin
    if kind is types.MethodType and isinstance(function.__self__, Tracer) and function.__name__ in NUMBERS:
        return functools.partial(NUMBERS[function.__name__], function.__self__)
    if kind is _ARRAY_FUNCTION and function.__module__.startswith("numpy.polynomial."):           # polyval2d, polygrid2d
        function, kind = function._implementation, types.FunctionType
    if kind is types.FunctionType and str(function.__module__).startswith("numpy.polynomial."):
        twin = without_zeros(function, form)
        if twin is not None:
            return twin
    copied = copying(function)
    if copied is not None:
        return copied
    if kind is types.FunctionType or kind is types.MethodType:
        return _python(function, policy, form)
    owner = getattr(function, "__self__", None)
    if is_double(owner) and function.__name__ not in _READING.get(type(owner), frozenset()):
        refuse_double(owner)
    if type(owner) is dict and function.__name__ == "get":
        return get(owner)
    if type(owner) is list and policy.depth and scopes_around(owner):
        if function.__name__ in ("append", "extend"):
            return functools.partial(append, owner) if function.__name__ == "append" else lambda values: append(owner, *values)
        refuse_whole(owner)
    if type(owner) is list and function.__name__ == "sort" and not scopes_around(owner):
        return functools.partial(sort_list, owner)
    if kind is np.vectorize:
        return vectorized(function, form)
    if kind is functools.partial:
        inner = callable_for(function.func, policy, form)
        return function if inner is function.func else functools.partial(inner, *function.args, **function.keywords)
    if is_series(function):
        return series_class(function, form)
    if kind is type and _is_plain_class(function):
        return _instantiating(function, policy, form)
    twin = _twin(function) or factors_twin(function)
    if policy.depth and function.__class__ in (type, types.BuiltinFunctionType) and function in CONSUMING:
        return _consuming(twin or function)
    if twin is None:
        if policy.depth and is_message(function):
            return left_out(function, policy)
        method = getattr(kind, "__call__", None)  # noqa: B004  (the class's, which a call of the object calls)
        if isinstance(method, types.FunctionType) and is_convertible(method.__code__) and not isinstance(function, type):
            return _python(types.MethodType(method, function), policy, form)
        if policy.depth:
            _require_pure(function, policy)
        if type(owner) is np.ndarray and function.__name__ in METHODS:
            return _making(function)
        writing = _writing(function, function)
        if writing is not function:
            return writing
    else:
        return _writing(function, twin)
    return form(function)


def _python(function: Any, policy: Policy, form: Callable[[Any], Any]) -> Any:
    plain = getattr(function, "__func__", function)
    if policy.depth and is_message(function):
        return left_out(function, policy)
    if isinstance(plain, types.FunctionType):
        twin = _twin(plain)
        if twin is not None and plain is function:
            return twin
        if policy.depth and not (plain.__name__ == "_replace" and isinstance(getattr(function, "__self__", None), tuple)):
            if is_library(plain.__code__):
                if not is_hidden(plain.__code__) and not _is_pure_module(plain):
                    not_capturable(f"it calls {_named(function)}, of which it is not known that it only computes")
            elif not form_of(plain).is_known:
                not_capturable(f"it calls {_named(function)}, whose source is not to be had")
            elif form_of(plain).writes_globals:
                not_capturable(f"{_named(function)} assigns to variables of its module")
            else:
                _bind(plain)
        if str(plain.__module__).partition(".")[0] == "numpy" and not is_convertible(plain.__code__):
            return _of_numbers(function)
    elif policy.depth and not isinstance(plain, types.MethodType):
        _require_pure(function, policy)            # a method in machine code (np.random.Generator's)
    return form(function)


def defined(function: Any) -> None:
    """A function was defined that may bind variables of functions around it."""
    if isinstance(function, types.FunctionType):
        own_variables(function, form_of(function).binds)


def _bind(function: types.FunctionType) -> None:
    """A function is called in a body: what it binds of the functions around it are variables of the body."""
    names = form_of(function).binds
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)) if names else {}
    for name in names:
        note_place(Place(cells[name], "variable", name))


def _of_numbers(function: Any) -> Any:
    """A function of NumPy's that takes numbers, and no traced ones (`np.fft.fftfreq`)."""
    def called(*args: Any, **kwargs: Any) -> Any:
        return function(*known_parts(args), **{key: known_parts(value) for key, value in kwargs.items()})
    return called


def _is_plain_class(kind: type) -> bool:
    """Whether it is a class of the user's whose objects are made by its own `__init__` alone."""
    made = _class_function(kind)
    new: Any = kind.__new__
    init: Any = kind.__init__  # type: ignore[misc]
    mine = init is object.__init__ and not is_hidden_type(kind) if made is None else not is_library(made.__code__)
    return mine and new is object.__new__ and not issubclass(kind, BaseException)


def _class_function(kind: type) -> types.FunctionType | None:
    made = getattr(kind, "__init__", None)
    return made if isinstance(made, types.FunctionType) else None


def _instantiating(kind: type, policy: Policy, form: Callable[[Any], Any]) -> Any:
    """kind(...), with the control flow of its `__init__` captured; the object is one of this iteration's own."""
    plain = _class_function(kind)
    if plain is None:                              # without an `__init__` of its own
        def make_empty() -> Any:
            found = own(object.__new__(kind))
            policy.objects[id(found)] = found
            return found
        return make_empty
    is_generated = hasattr(kind, "__dataclass_fields__") and plain.__code__.co_filename == "<string>"
    if policy.depth and not is_generated:
        if not form_of(plain).is_known:
            not_capturable(f"it makes a {kind.__name__}, whose source is not to be had")
        if form_of(plain).writes_globals:
            not_capturable(f"{_named(plain)} assigns to variables of its module")
        _bind(plain)
    initialise = form(plain)
    begun: Any = _with_captured_end(kind) if is_generated and hasattr(kind, "__post_init__") else kind

    def make(*args: Any, **kwargs: Any) -> Any:
        found = own(object.__new__(begun))
        policy.objects[id(found)] = found
        initialise(found, *args, **kwargs)
        if begun is not kind:
            object.__setattr__(found, "__class__", kind)
        return found
    return make


@functools.cache
def _with_captured_end(kind: Any) -> type:
    """A class like a dataclass of the user's, whose generated `__init__` calls its `__post_init__` with the control flow captured."""
    def captured(self: Any, *args: Any) -> None:
        call_of = HANDLERS["call_of"]
        call_of(types.MethodType(kind.__post_init__, self))(*args)
    made: type = type(kind)(kind.__name__, (kind,), {"__slots__": (), "__post_init__": captured, "__module__": kind.__module__,
                                                     "__qualname__": kind.__qualname__})
    return made


def _is_pure_module(function: Any) -> bool:
    return _package(function) in _PURE_MODULES


def _package(function: Any) -> str:
    return str(getattr(function, "__module__", "")).partition(".")[0]


_twins: dict[Any, Any] = {}    # of NumPy's functions


def _twin(function: Any) -> Any:
    """The function of ours that takes traced values where this one does not."""
    try:
        found = BUILTINS.get(function) or _twins.get(function)
        if found is None and (function in FUNCTIONS or function in MAKERS):
            found = on_sequences(function)
            found = _twins[function] = maker(function, found) if function in MAKERS else found
    except TypeError:                              # something that cannot be hashed
        return None
    return found


def _require_pure(function: Any, policy: Policy) -> None:
    """Refuse the capture where a call may do more than compute."""
    inner = _wrapped_by_us(function)
    if inner is not function:                      # a derivative, a compiled function: as pure as what it is of
        _python(inner, policy, _as_it_is) if isinstance(inner, types.FunctionType | types.MethodType) else _require_pure(inner, policy)
        return
    owner = getattr(function, "__self__", None)
    if isinstance(owner, np.ufunc) and function.__name__ in _COMPUTING:
        return
    if owner is not None and not isinstance(owner, types.ModuleType | type):
        if isinstance(owner, (Tracer, np.generic, np.ufunc, *VALUES)) or not scopes_around(owner):
            return
        if type(owner) is np.ndarray and function.__name__ not in CHANGING:
            return
        if function.__name__ in _READING.get(type(owner), frozenset()):
            return
        if isinstance(owner, np.random.Generator | np.random.RandomState):
            not_capturable(f"it calls {_named(function)}, which draws numbers, or does not, as data decides: draw them before")
        not_capturable(f"it calls {_named(function)}, which may change {type(owner).__name__} {short(owner)}")
    if isinstance(function, np.ufunc) or _among(function, PURE) or (_is_pure_module(function) and "random" not in function.__module__):
        return
    if isinstance(function, type):
        made = function
        if issubclass(made, np.generic | BaseException) or made in VALUES or (issubclass(made, tuple) and hasattr(made, "_fields")):
            return
    not_capturable(f"it calls {_named(function)}, of which it is not known that it only computes")


def _wrapped_by_us(function: Any) -> Any:
    """The user's function inside of `bw.grad(fun)`, `bw.jit(fun)`, `bw.custom_vjp(fun)` ...; another function as it is."""
    while _package(type(function)) == "bwcompiler" or (isinstance(function, types.FunctionType) and is_library(function.__code__)):
        if not hasattr(function, "__wrapped__"):
            break
        function = function.__wrapped__
    return function


def _as_it_is(function: Any) -> Any:
    return function


def _writing(function: Any, called: Any) -> Any:
    """What is called for a function that may write into arrays: into concrete ones only what is known, and nothing in a loop's body."""
    places = places_of(function)
    if places is None:
        return called

    def checked(*args: Any, **kwargs: Any) -> Any:
        for place in places(args, kwargs):
            if type(place) is np.ndarray:
                changed(place)
                require_traced(place, *args, *kwargs.values())
        return called(*args, **kwargs)
    return checked


def _among(function: Any, known: Any) -> bool:
    """Whether a function is one of these; objects that are called need not have a hash."""
    try:
        return function in known
    except TypeError:
        return False


def _making(function: Any) -> Any:
    return lambda *args, **kwargs: noted(function(*args, **kwargs))


def _named(function: Any) -> str:
    return f"{getattr(function, '__qualname__', None) or type(function).__name__}()"


# ----- attributes
_getters: dict[tuple[type, str], Any] = {}
_GETTERS = 1 << 12


def attribute(x: Any, name: str, form: Callable[[Any], Any]) -> Any:
    """x.name, with the control flow of a property of the user's captured."""
    policy = open_policy()
    if policy is None or type(x) is types.ModuleType or isinstance(x, Tracer):
        return getattr(x, name)
    if type(x) is Choice:                          # whose own attributes are nobody's
        return attribute_of_choice(x, name)
    key = type(x), name
    if key not in _getters:
        if len(_getters) >= _GETTERS:
            _getters.clear()
        _getters[key] = _getter(*key)
    getter = _getters[key]
    return getattr(x, name) if getter is None else _python(getter, policy, form)(x)


def _getter(kind: type, name: str) -> types.FunctionType | None:
    """The function of the user's that a property runs."""
    defined: Any = next((one.__dict__[name] for one in kind.__mro__ if name in one.__dict__), None)
    found = defined.fget if type(defined) is property else None
    plain: Any = kind.__getattribute__
    if plain is not object.__getattribute__ or hasattr(kind, "__getattr__") or not isinstance(found, types.FunctionType):
        return None
    return None if is_library(found.__code__) else found


# ----- items
def indexed(array: Any, index: Any) -> Any:
    """array[index], where a concrete array, or np.r_ and np.c_, may get traced values."""
    if type(array) is list and is_growing(array):
        return element(array, index)
    if type(index) is Choice:
        return table(array, index)
    if has_gaps(array):
        return element_of_gaps(array, index)
    if is_lined(array):
        return read(line(array), index)
    if is_traced_key(array, index):
        return look_up(array, index)
    if type(array) in (list, tuple, str) and isinstance(index, Tracer):
        return _moving(array, index)
    if array is np.r_ or array is np.c_:
        return (r_ if array is np.r_ else c_)[index]
    if array is np.mgrid or array is np.ogrid:
        return noted(array[known_parts(index)])
    if type(array) is np.ndarray and open_policy() is not None and _is_traced(index):
        return shown(array)[index]
    return array[index]


HANDLERS["item_of"] = indexed


def _moving(items: Any, index: Tracer) -> Any:
    """An item of a list, tuple or string at a place that is not known."""
    string = picked(items, index)
    if string is not None:
        return string
    table = iteration.table(items)
    if table is not None:
        return table(index)
    if type(items) is list and isinstance(index, IndexTracer):
        lined = line(items)
        if lined is not None:
            return read(lined, index)
        expect(items)
    return element_at(items, index)


def _is_traced(index: Any) -> bool:
    if isinstance(index, tuple | list):
        return any(map(_is_traced, index))
    return isinstance(index, Tracer) or (isinstance(index, slice) and any(map(_is_traced, (index.start, index.stop, index.step))))


def iterable(source: Any) -> Any:
    """What a loop goes over: in a body that is traced once, nothing that is used up and comes from outside of it."""
    policy = open_policy()
    if policy is not None and policy.depth:
        if hasattr(source, "__next__") and scopes_around(source):
            not_capturable("it takes elements from an iterator that was made outside of it")
        refuse_whole(source)
    if has_gaps(source):
        refuse_gaps("a comprehension, or a loop that has to be unrolled,")
    return source


def _consuming(function: Any) -> Any:
    """One of Python's functions of iterables."""
    def checked(*args: Any, **kwargs: Any) -> Any:
        found = function(*map(iterable, args), **kwargs)
        return own(found) if hasattr(found, "__next__") else found
    return checked
