"""Calls and attributes in captured code: which function is called instead (`_RULES`), and what must not happen in a body that is traced
once.

The body of a loop is traced once for all its iterations, so any effect other than recording values would happen only once.  Calls
of functions that are not known to only compute, and changes of lists, dictionaries, objects and concrete arrays that were not
made in the same iteration, therefore cause the loop to be unrolled.
"""

from __future__ import annotations

import collections
import functools
import itertools
import random
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bwcompiler.frontend.numpy.manipulation.sequences import on_operands, on_sequences
from bwcompiler.frontend.source.array_backed.dictionaries import method_of
from bwcompiler.frontend.source.array_backed.growth import append, growing, refuse_whole
from bwcompiler.frontend.source.bounded.counting import changing as changing_dictionary
from bwcompiler.frontend.source.bounded.counting import counting
from bwcompiler.frontend.source.bounded.dictionaries import made as dictionary_made
from bwcompiler.frontend.source.bounded.sets import changing
from bwcompiler.frontend.source.changes import VALUES, altered, changed, own
from bwcompiler.frontend.source.classes import finishing, instantiating, is_plain_class, of_arrays
from bwcompiler.frontend.source.concrete.makers import MAKERS, maker, require_traced
from bwcompiler.frontend.source.concrete.methods import method_of_array
from bwcompiler.frontend.source.concrete.writes import CHANGING, places_of
from bwcompiler.frontend.source.containers.copying import copying
from bwcompiler.frontend.source.containers.queues import CHANGING_LISTS, queue_of
from bwcompiler.frontend.source.drawn.draws import drawn, is_generator
from bwcompiler.frontend.source.drawn.seeds import seeded
from bwcompiler.frontend.source.drawn.streams import drawing, stream_of
from bwcompiler.frontend.source.effects.checks import is_message, left_out, message
from bwcompiler.frontend.source.effects.doubles import is_double, refuse_double
from bwcompiler.frontend.source.effects.enclosing import bind
from bwcompiler.frontend.source.effects.packages import is_pure_module, wrapped_by_us
from bwcompiler.frontend.source.effects.places import scopes_around, short, taking_along
from bwcompiler.frontend.source.items import iterable
from bwcompiler.frontend.source.library.builtin_functions import BUILTINS, CONSUMING, NUMBERS, PURE
from bwcompiler.frontend.source.library.heaps import heap_function, in_order
from bwcompiler.frontend.source.library.in_order import sort_list
from bwcompiler.frontend.source.library.libraries import factors_twin, library_twin
from bwcompiler.frontend.source.library.positions import at_places, looking
from bwcompiler.frontend.source.library.series import at_once_of_numbers, is_series, series_class, without_zeros
from bwcompiler.frontend.source.library.vectorized import vectorized
from bwcompiler.frontend.source.library.wrappers import around_users
from bwcompiler.frontend.source.syntax.functions import form as form_of
from bwcompiler.frontend.source.undecided.kinds.choices import Choice
from bwcompiler.frontend.source.undecided.kinds.choices import attribute as attribute_of_choice
from bwcompiler.frontend.source.undecided.kinds.named import get_attribute, set_attribute
from bwcompiler.frontend.source.undecided.kinds.two_shapes import TwoShapes
from bwcompiler.frontend.source.undecided.kinds.two_shapes import attribute as attribute_of_two_shapes
from bwcompiler.frontend.source.undecided.kinds.unbound import attributes_of, sure_attribute
from bwcompiler.frontend.source.variables import among, not_capturable, open_policy
from bwcompiler.frontend.tracing.operands import known_parts
from bwcompiler.frontend.tracing.policy import Policy
from bwcompiler.frontend.tracing.provenance.source import is_convertible, is_hidden, is_library
from bwcompiler.frontend.tracing.registry import FUNCTIONS
from bwcompiler.frontend.tracing.tracer import Tracer, type_stood_for

_READING: dict[type, frozenset[str]] = {                   # methods of Python's containers and of concrete arrays that change nothing
    list: frozenset(("copy", "count", "index")), collections.deque: frozenset(("copy", "count", "index")),
    dict: frozenset(("copy", "get", "items", "keys", "values")),
    set: frozenset(("copy", "difference", "intersection", "isdisjoint", "issubset", "issuperset", "union")),
}
_READING |= dict.fromkeys((collections.defaultdict, collections.OrderedDict), _READING[dict])
_COMPUTING = frozenset(("accumulate", "outer", "reduce", "reduceat"))       # methods of ufuncs; `at` writes
_ARRAY_FUNCTION = type(np.copyto)


# ----- calls
class _Call(NamedTuple):
    """What is called: its type, and the object whose method it is; form: how the user's functions are captured."""

    function: Any
    kind: type
    owner: Any
    policy: Policy
    form: Callable[[Any], Any]

    @property
    def name(self) -> str:
        return str(self.function.__name__)


def callable_for(function: Any, policy: Policy, form: Callable[[Any], Any]) -> Any:
    """What is called in the place of a function: what the first rule gives that is about it."""
    call = _Call(function, type(function), getattr(function, "__self__", None), policy, form)
    for rule in _RULES:
        found = rule(call)
        if found is not None:
            return found
    return form(function)


def _of_library(call: _Call) -> Any:
    return library_twin(call.function)


def _of_traced_number(call: _Call) -> Any:
    """Methods of Python's numbers, which a traced one has not."""
    if call.kind is types.MethodType and isinstance(call.owner, Tracer) and call.name in NUMBERS:
        return functools.partial(NUMBERS[call.name], call.owner)
    return None


def _of_traced_array(call: _Call) -> Any:
    """Methods of traced arrays that write into another one, `x.sum(axis=0, out=y)`."""
    return _that_writes(call) if call.kind is types.MethodType and isinstance(call.owner, Tracer) else None


def _of_polynomials(call: _Call) -> Any:
    function = call.function
    if call.kind not in (types.FunctionType, _ARRAY_FUNCTION) or not str(function.__module__).startswith("numpy.polynomial."):
        return None
    if call.kind is _ARRAY_FUNCTION:                       # polyval2d, polygrid2d
        function = function._implementation
    return at_once_of_numbers(function, without_zeros(function, call.form) or _python(function, call.policy, call.form))


def _copying(call: _Call) -> Any:
    return copying(call.function)


def _of_seed(call: _Call) -> Any:
    return None if call.policy.depth else seeded(call.function)


def _of_wrapper(call: _Call) -> Any:
    return around_users(call.function, call.policy)


def _of_draws(call: _Call) -> Any:
    if not is_generator(call.owner):
        return None
    stream = stream_of(call.owner, call.policy)
    if stream is None:
        return _of_known_draws(call)
    return stream.method(call.name, lambda *args, **kwargs: (_of_known_draws(call) or call.function)(*args, **kwargs), call.policy)


def _of_library_draws(call: _Call) -> Any:
    return drawing(call.function, call.policy) if call.kind in (types.FunctionType, types.MethodType) else None


def _of_known_draws(call: _Call) -> Any:
    if call.kind is not types.MethodType or isinstance(call.owner, random.Random):
        return None
    return drawn(call.owner, call.name, _python(call.function, call.policy, call.form))


def _of_python(call: _Call) -> Any:
    return _python(call.function, call.policy, call.form) if call.kind in (types.FunctionType, types.MethodType) else None


def _of_double(call: _Call) -> Any:
    if is_double(call.owner) and call.name not in _READING.get(type(call.owner), frozenset()):
        refuse_double(call.owner)
    return None


def _of_dictionary(call: _Call) -> Any:
    return method_of(call.owner, call.name) if type(call.owner) is dict else None


def _of_list(call: _Call) -> Any:
    owner = call.owner
    if type(owner) is tuple and call.name in ("count", "index"):
        return looking(owner, call.function)
    if type(owner) is not list:
        return None
    is_outside = bool(scopes_around(owner))
    if is_outside and call.policy.depth:
        if call.name == "append":
            return functools.partial(append, owner)
        if call.name == "extend":
            return lambda values: append(owner, *values)
        if call.name in CHANGING_LISTS:
            return growing(owner, call.name, queue_of(owner, at_places(owner, call.function)))
        refuse_whole(owner)
    if call.name in ("count", "index"):
        return looking(owner, call.function)
    return None if is_outside else functools.partial(sort_list, owner) if call.name == "sort" else at_places(owner, call.function)


_CHANGING_DEQUES = frozenset((
    "append", "appendleft", "clear", "extend", "extendleft", "insert", "pop", "popleft", "remove", "reverse", "rotate"))


def _of_deque(call: _Call) -> Any:
    is_change = type(call.owner) is collections.deque and call.name in _CHANGING_DEQUES
    return taking_along(call.owner, call.function) if is_change and call.policy.depth and scopes_around(call.owner) else None


def _of_vectorize(call: _Call) -> Any:
    return vectorized(call.function, call.form) if call.kind is np.vectorize else None


def _partial(call: _Call) -> Any:
    if call.kind is not functools.partial:
        return None
    function = call.function
    inner = callable_for(function.func, call.policy, call.form)
    return function if inner is function.func else functools.partial(inner, *function.args, **function.keywords)


def _of_series(call: _Call) -> Any:
    return series_class(call.function, call.form) if is_series(call.function) else None


def _of_array_class(call: _Call) -> Any:
    is_one = call.kind is type and issubclass(call.function, np.ndarray) and (
        call.function is np.matrix or call.function.__module__.partition(".")[0] != "numpy")
    return of_arrays(call.function) if is_one else None


def _of_class(call: _Call) -> Any:
    is_class = isinstance(call.function, type) and is_plain_class(call.function)
    return instantiating(call.function, call.policy, call.form) if is_class else None


def _of_known(call: _Call) -> Any:
    """Functions of Python's and NumPy's that take traced values here."""
    function = call.function
    twin = _twin(function) or factors_twin(function)
    if function is np.ndindex:
        return _making_own(twin)
    if call.policy.depth and function.__class__ in (type, types.BuiltinFunctionType) and function in CONSUMING:
        return _consuming(twin or function)
    return None if twin is None else _writing(function, twin)


def _message(call: _Call) -> Any:
    return left_out(call.function, call.policy) if call.policy.depth and is_message(call.function) else None


def _of_object(call: _Call) -> Any:
    """Objects of the user's that are called."""
    method = getattr(call.kind, "__call__", None)  # noqa: B004  (the class's, which a call of the object calls)
    if not isinstance(method, types.FunctionType) or not is_convertible(method.__code__) or isinstance(call.function, type):
        return None
    return _python(types.MethodType(method, call.function), call.policy, call.form)


def _of_heap(call: _Call) -> Any:
    return heap_function(call.function) if getattr(call.function, "__module__", "") == "_heapq" else None


def _of_setattr(call: _Call) -> Any:
    """setattr(x, name, value) is x.name = value."""
    return (lambda x, name, value: set_attribute(altered(x), name, value)) if call.function is setattr else None


def _of_getattr(call: _Call) -> Any:
    """vars(x); and getattr(x, name, default)."""
    if call.function is vars:
        return attributes_of                       # a function that calls vars() is not rewritten
    return get_attribute if call.function is getattr else None


def _of_ufunc_method(call: _Call) -> Any:
    if not isinstance(call.owner, np.ufunc) or call.name not in _COMPUTING:
        return None
    return _writing(call.function, on_operands(call.function))


def _of_counting(call: _Call) -> Any:
    return changing_dictionary(call.owner, call.function, lambda: _of_unknown_effect(call)) or counting(call.function)


def _of_set(call: _Call) -> Any:
    return changing(call.owner, call.name, call.function, lambda: _of_unknown_effect(call)) if type(call.owner) is set else None


def _of_container_maker(call: _Call) -> Any:
    """What makes a container, of which the parts are not looked at: `d.copy()`, `dict.fromkeys(names, 0.0)`."""
    owner = call.owner
    makes = call.kind is types.BuiltinFunctionType and ((type(owner) in (list, dict, set) and call.name == "copy") or (
        owner is dict and call.name == "fromkeys"))
    if makes and dict in (owner, type(owner)):
        return lambda *args: dictionary_made(own(call.function(*args)))
    return _making_own(call.function) if makes and call.policy.depth else None


def _making_own(function: Any) -> Any:
    return lambda *args, **kwargs: own(function(*args, **kwargs))


def _of_unknown_effect(call: _Call) -> Any:
    if call.policy.depth:
        _require_pure(call.function, call.policy)
    return None


def _of_known_array(call: _Call) -> Any:
    found = method_of_array(call.function) if type(call.owner) is np.ndarray else None
    return None if found is None else _writing(call.function, found)


def _that_writes(call: _Call) -> Any:
    found = _writing(call.function, call.function)
    return None if found is call.function else found


# In this order: what is known of a function by name comes before what is known of its kind, and what must not be called after all that may.
# A rule that refuses gives nothing where it does not.
_RULES: tuple[Callable[[_Call], Any], ...] = (
    # before what is written in Python, as much of SciPy and NumPy is
    _of_library,
    _of_traced_number,
    _of_traced_array,
    _of_polynomials,
    _copying,
    _of_seed,
    _of_wrapper,
    _of_draws,
    _of_library_draws,
    _of_python,
    _of_counting,
    _of_set,
    # methods of containers, which are in machine code
    _of_double,            # refuses most of them, of an object that has a double in this body
    _of_dictionary,
    _of_list,
    _of_deque,
    # what has, or makes, a function of the user's
    _of_vectorize,
    _partial,
    _of_series,
    _of_array_class,
    _of_class,
    # functions that are known here
    _of_heap,
    _of_setattr,
    _of_getattr,
    _of_known,
    _of_ufunc_method,
    _of_container_maker,
    # others: their effects have to be known, where a body is traced once
    _message,              # left out, so it does not matter what it does
    _of_object,            # whose method is looked at instead
    _of_unknown_effect,
    _of_known_array,
    _that_writes,
)


def _python(function: Any, policy: Policy, form: Callable[[Any], Any]) -> Any:
    plain = getattr(function, "__func__", function)
    if policy.depth and is_message(function):
        return left_out(function, policy)
    if (found := message(function)) is not None:
        return found
    if isinstance(plain, types.FunctionType):
        twin = _twin(plain) or form(in_order(plain))
        if twin is not None and plain is function:
            return twin
        if (finished := finishing(function)) is not None:
            return finished
        if policy.depth and not (plain.__name__ == "_replace" and isinstance(getattr(function, "__self__", None), tuple)):
            if is_library(plain.__code__):
                if not is_hidden(plain.__code__) and not is_pure_module(plain):
                    not_capturable(f"it calls {_named(function)}, of which it is not known that it only computes")
            elif not form_of(plain).is_known:
                not_capturable(f"it calls {_named(function)}, whose source is not to be had")
            elif form_of(plain).writes_globals:
                not_capturable(f"{_named(function)} assigns to variables of its module")
            else:
                bind(plain)
        if str(plain.__module__).partition(".")[0] == "numpy" and not is_convertible(plain.__code__):
            return _of_numbers(function)
    elif policy.depth and not isinstance(plain, types.MethodType):
        _require_pure(function, policy)            # a method in machine code (np.random.Generator's)
    return form(function)


def _of_numbers(function: Any) -> Any:
    """A function of NumPy's that takes numbers, and no traced ones (`np.fft.fftfreq`)."""
    def called(*args: Any, **kwargs: Any) -> Any:
        return function(*known_parts(args), **{key: known_parts(value) for key, value in kwargs.items()})
    return called


_twins: dict[Any, Any] = {}    # of NumPy's functions


def _twin(function: Any) -> Any:
    """The function of ours that takes traced values where this one does not."""
    try:
        found = BUILTINS.get(function) or _twins.get(function)
        if found is None and (function in FUNCTIONS or function in MAKERS):
            found = on_sequences(function)
            found = _twins[function] = maker(function, found) if function in MAKERS else found
        elif found is None and isinstance(function, np.ufunc):
            found = _twins[function] = on_operands(function)
    except TypeError:                              # something that cannot be hashed
        return None
    return found


def _require_pure(function: Any, policy: Policy) -> None:
    """Refuse the capture where a call may do more than compute."""
    inner = wrapped_by_us(function)
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
    if isinstance(function, np.ufunc) or among(function, PURE) or (is_pure_module(function) and "random" not in function.__module__):
        return
    if isinstance(function, type):
        made = function
        if issubclass(made, np.generic | BaseException) or made in VALUES or (issubclass(made, tuple) and hasattr(made, "_fields")):
            return
    not_capturable(f"it calls {_named(function)}, of which it is not known that it only computes")


def _as_it_is(function: Any) -> Any:
    return function


def _writing(function: Any, called: Any) -> Any:
    """What is called for a function that may write into arrays: into concrete ones only what is known, and nothing in a loop's body."""
    places = places_of(function)
    if places is None:
        return called
    owner = getattr(function, "__self__", None)

    def checked(*args: Any, **kwargs: Any) -> Any:
        for place in places(args, kwargs):
            if type(place) is np.ndarray:
                changed(place)
                require_traced(place, owner, *args, *kwargs.values())
        return called(*args, **kwargs)
    return checked


def _consuming(function: Any) -> Any:
    """One of Python's functions of iterables."""
    def checked(*args: Any, **kwargs: Any) -> Any:
        found = function(*map(iterable, args), **kwargs)
        if function is itertools.groupby:          # whose groups are iterators, too
            found = iter([(key, own(iter(list(group)))) for key, group in found])
        return own(found) if hasattr(found, "__next__") else found
    return checked


def _named(function: Any) -> str:
    return f"{getattr(function, '__qualname__', None) or type(function).__name__}()"


# ----- attributes
_getters: dict[tuple[type, str], Any] = {}
_GETTERS = 1 << 12


def attribute(x: Any, name: str, form: Callable[[Any], Any]) -> Any:
    """x.name, with the control flow of a property of the user's captured."""
    policy = open_policy()
    if policy is None or type(x) is types.ModuleType or isinstance(x, Tracer):
        return type_stood_for(x) if name == "__class__" and isinstance(x, Tracer) else getattr(x, name)
    if name == "__dict__" and type(x) is not Choice:           # own: that of an object made there, `self.__dict__.update(options)`
        return own(attributes_of(x)) if policy.depth and not scopes_around(x) else attributes_of(x)
    if type(x) is Choice:                          # whose own attributes are nobody's
        return attribute_of_choice(x, name)
    if type(x) is TwoShapes:
        return attribute_of_two_shapes(x, name)
    key = type(x), name
    if key not in _getters:
        if len(_getters) >= _GETTERS:
            _getters.clear()
        _getters[key] = _getter(*key)
    getter = _getters[key]
    return sure_attribute(getattr(x, name), x, name) if getter is None else _python(getter, policy, form)(x)


def _getter(kind: type, name: str) -> types.FunctionType | None:
    """The function of the user's that a property runs."""
    defined: Any = next((one.__dict__[name] for one in kind.__mro__ if name in one.__dict__), None)
    found = defined.fget if type(defined) is property else None
    plain: Any = kind.__getattribute__
    if plain is not object.__getattribute__ or hasattr(kind, "__getattr__") or not isinstance(found, types.FunctionType):
        return None
    return None if is_library(found.__code__) else found
