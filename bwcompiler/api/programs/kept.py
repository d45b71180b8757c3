"""A cache of transformed functions: `bw.grad(f)(x)` in the body of a loop is the same compiled function in each iteration.

Entries are stored on the function, so that both are freed together.  Bound methods are new objects at each access, and so are lambdas
that a loop body creates: a few of the methods used last are kept with their objects, and functions without closure, defaults or attributes
(which hold no data) are found by their code object, module and options.
"""

from __future__ import annotations

import functools
import operator
import types
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeGuard, TypeVar, cast

from bwcompiler.compiler.options import checks_finite, dump_folder
from bwcompiler.frontend.tracing.refusals.tracebacks import shows_users_frames
from bwcompiler.locks import RenewedLock
from bwcompiler.runtime.executable import CompiledFunction
from bwcompiler.target import current_target

REMEMBERED = 64                # callables without attributes
TEXTS = 16                     # functions that are found by their code: their programs and the arrays captured by these are kept alive
METHODS = 8                    # bound methods: their objects are kept alive

Transform = TypeVar("Transform", bound=Callable[..., Any])


class _Made:
    """The cached results for a function, valid as long as it has this code."""

    def __init__(self, owner: Any = None) -> None:
        self.owner = weakref.ref(owner) if isinstance(owner, types.FunctionType | CompiledFunction) else None
        self.code = _code_of(owner)
        self.things: dict[Any, Any] = {}
        _all_made.add(self)

    def is_for(self, fun: Any) -> bool:
        """Whether the function still has the code and defaults for which these were made."""
        return all(map(operator.is_, self.code, _code_of(fun)))

    def __reduce__(self) -> tuple[Any, ...]:       # functions are pickled with their attributes; this one starts empty
        return (_Made, ())


def _code_of(fun: Any) -> tuple[Any, Any, Any]:
    """The code and defaults that a call runs: both can be replaced after the definition."""
    if isinstance(fun, types.MethodType):
        fun = fun.__func__
    if not isinstance(fun, types.FunctionType):
        return (None, None, None)
    return (fun.__code__, fun.__defaults__, fun.__kwdefaults__)


_all_made: weakref.WeakSet[_Made] = weakref.WeakSet()
_elsewhere: OrderedDict[Any, _Made] = OrderedDict()
_by_text: OrderedDict[Any, tuple[types.FunctionType, Any]] = OrderedDict()
_of_methods: OrderedDict[Any, tuple[types.MethodType, _Made, Any]] = OrderedDict()
_lock = RenewedLock()
_generation = 0                # part of every key: what a thread makes while all is dropped is not found any more


# ----- per function
def made_of(fun: Callable[..., Any], key: Any, make: Callable[[], Any]) -> Any:
    """The cached result of make() for this function and key."""
    things = _things_of(fun)
    if key not in things:
        things[key] = make()
    return things[key]


def _things_of(fun: Callable[..., Any]) -> dict[Any, Any]:
    if isinstance(fun, types.FunctionType | CompiledFunction):
        made = fun.__dict__.get("__bw_made__")
        if made is None or made.owner is None or made.owner() is not fun or not made.is_for(fun):      # `functools.wraps` copies attributes
            made = fun.__dict__["__bw_made__"] = _Made(fun)
        return made.things
    try:
        found = _elsewhere.setdefault(fun, _Made(fun))
        if not found.is_for(fun):
            found = _elsewhere[fun] = _Made(fun)
    except TypeError:                              # a callable that cannot be hashed
        return {}
    _elsewhere.move_to_end(fun)
    while len(_elsewhere) > REMEMBERED:
        _elsewhere.popitem(last=False)
    return found.things


# ----- transforms
def kept(transform: Transform) -> Transform:
    """The transform, cached per function and options."""
    @shows_users_frames
    @functools.wraps(transform)
    def found(*args: Any, **kwargs: Any) -> Any:
        key = _key(transform.__name__, args[1:], kwargs)
        fun = args[0] if args else None
        if key is None or not isinstance(fun, types.FunctionType | types.MethodType | CompiledFunction):
            return transform(*args, **kwargs)
        make = functools.partial(transform, *args, **kwargs)
        if isinstance(fun, types.MethodType):
            return _made_of_method(fun, key, make)
        return made_of(fun, key, make if not _holds_nothing(fun) else functools.partial(_made_of_text, fun, key, make))
    return cast(Transform, found)


def forget() -> None:
    """Drop all cached transforms."""
    global _generation
    with _lock:
        _generation += 1
        for made in list(_all_made):
            made.things = {}                       # not cleared: another thread may look into it
        _by_text.clear()
        _of_methods.clear()
        _elsewhere.clear()


def _key(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The cache key; None if an option is not hashable, and under BW_DUMP, which shows all compilations."""
    options = (args, tuple(map(type, args)), *[(key, type(kwargs[key]), kwargs[key]) for key in sorted(kwargs)])
    key = (_generation, name, options, current_target(), checks_finite())
    if dump_folder() is not None:
        return None
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _holds_nothing(fun: Any) -> TypeGuard[types.FunctionType]:
    """Whether a function behaves like any other with its code and module."""
    return isinstance(fun, types.FunctionType) and not (
        fun.__closure__ or fun.__defaults__ or fun.__kwdefaults__ or fun.__dict__.keys() - {"__bw_made__"})


def _made_of_text(fun: types.FunctionType, key: Any, make: Callable[[], Any]) -> Any:
    place = (id(fun.__code__), id(fun.__globals__), key)           # ids of the entry's function, valid while the entry keeps that alive
    known = _by_text.get(place)
    if known is not None and known[0].__code__ is fun.__code__ and known[0].__globals__ is fun.__globals__:
        return known[1]
    return _remember(_by_text, place, (fun, make()), TEXTS)[1]


def _made_of_method(fun: types.MethodType, key: Any, make: Callable[[], Any]) -> Any:
    place = (id(fun.__self__), id(fun.__func__), key)
    known = _of_methods.get(place)
    if known is not None and known[0].__self__ is fun.__self__ and known[0].__func__ is fun.__func__ and known[1].is_for(fun):
        return known[2]
    return _remember(_of_methods, place, (fun, _Made(fun), make()), METHODS)[2]


def _remember(where: OrderedDict[Any, Any], place: Any, entry: Any, most: int) -> Any:
    with _lock:
        where[place] = entry
        where.move_to_end(place)
        while len(where) > most:
            where.popitem(last=False)
    return entry
