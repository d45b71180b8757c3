"""The functions that rewritten code calls (see `rewriting`), for calls, items, loops and branches; they decide how these are recorded.

Outside of any trace, and for known values, everything does what Python does.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import itertools
import operator
import sys
from collections import deque
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from bwcompiler.frontend.source import asked as asked_integers  # noqa: F401  (it registers what tells them)
from bwcompiler.frontend.source.array_backed.growth import append, is_growing, length, refuse_whole
from bwcompiler.frontend.source.array_backed.wholes import with_whole
from bwcompiler.frontend.source.bodies import iteration
from bwcompiler.frontend.source.bodies.tries import try_
from bwcompiler.frontend.source.bounded.dictionaries import made as dictionary_made
from bwcompiler.frontend.source.bounded.dictionaries import merged
from bwcompiler.frontend.source.bounded.sets import made as set_made
from bwcompiler.frontend.source.bounded.stacks import handed_over
from bwcompiler.frontend.source.bounded.stacks import made as stack_made
from bwcompiler.frontend.source.calls import attribute as attribute_of
from bwcompiler.frontend.source.calls import callable_for
from bwcompiler.frontend.source.changes import added, altered, changed, combined, combined_attribute, own
from bwcompiler.frontend.source.collected import collected, put, sifted_into
from bwcompiler.frontend.source.concrete.contents import (
    as_written,
    live,
    read,
    read_item,
    read_items,
    reading,
    touched,
    unary,
    user_method,
)
from bwcompiler.frontend.source.concrete.contents import binary as binary_of
from bwcompiler.frontend.source.concrete.contents import read_index as read_places
from bwcompiler.frontend.source.concrete.foreseen import entered
from bwcompiler.frontend.source.concrete.makers import computed
from bwcompiler.frontend.source.concrete.texts import asked, require_known, require_known_keys
from bwcompiler.frontend.source.decisions import (
    and_,
    assert_,
    choose,
    if_,
    in_,
    is_,
    is_not,
    kept,
    leaving,
    not_,
    not_in,
    or_,
    sifted,
)
from bwcompiler.frontend.source.drawn.streams import lend
from bwcompiler.frontend.source.effects.checks import Trying as trying
from bwcompiler.frontend.source.effects.checks import passing, raise_where, raised, require_no_handler
from bwcompiler.frontend.source.effects.enclosing import bind, defined
from bwcompiler.frontend.source.generators import Generated
from bwcompiler.frontend.source.items import indexed, iterable
from bwcompiler.frontend.source.library.heaps import FUNCTIONS as HEAP_FUNCTIONS
from bwcompiler.frontend.source.library.libraries import sparse_product, sparse_times
from bwcompiler.frontend.source.library.vectorized import vectorized
from bwcompiler.frontend.source.loops import each, for_, listed, summed, unrolled, while_
from bwcompiler.frontend.source.recursion import is_loop
from bwcompiler.frontend.source.syntax.functions import converted, handed
from bwcompiler.frontend.source.syntax.functions import form as form_of
from bwcompiler.frontend.source.undecided import outcomes  # noqa: F401  (registers what results become)
from bwcompiler.frontend.source.undecided.kinds.choices import Choice, found_by, place_of, unwrapped, valued
from bwcompiler.frontend.source.undecided.kinds.two_shapes import TwoShapes, both, each_way, has_two_shapes, settled
from bwcompiler.frontend.source.undecided.kinds.unbound import sure
from bwcompiler.frontend.source.undecided.lists import keyed
from bwcompiler.frontend.source.undecided.lists.gaps import has_gaps, refuse, taken
from bwcompiler.frontend.source.undecided.lists.moved import positions
from bwcompiler.frontend.source.undecided.lists.searches import searched
from bwcompiler.frontend.source.undecided.lists.taking import by_test, gone_over, taking
from bwcompiler.frontend.source.undecided.lookups import changing
from bwcompiler.frontend.source.variables import among, is_bounded, open_policy
from bwcompiler.frontend.tracing.indexing.index_handle import IndexTracer
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection, SizedByData
from bwcompiler.frontend.tracing.policy import Policy
from bwcompiler.frontend.tracing.provenance.source import is_library, is_plain_python
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import ArrayTracer, Tracer

__all__ = ["altered", "and_", "assert_", "attribute", "augmented", "binary", "call", "changed", "choose", "collected", "combined",
           "combined_attribute", "computed", "defined", "each", "entered", "extended", "for_", "gathered", "generated", "handed_over",
           "header", "if_", "in_", "is_", "is_not", "item", "iterable", "kept", "leaving", "listed", "made", "merged",
           "method_of_item", "not_", "not_in", "or_", "passing", "product", "put", "raised", "read_index", "read_items",
           "searched", "sifted", "sifted_into", "slice", "spread", "summed", "sure", "taken_apart", "try_", "trying", "unary",
           "unrolled", "while_"]

slice = builtins.slice


_HEADERS = (range, enumerate, zip, reversed, map, np.arange)


def form(function: Any) -> Any:
    """What is called in the place of a function of the user's."""
    policy = open_policy()
    as_loop = policy is not None and is_loop(function, policy)
    going_on = () if policy is None else policy.going_on
    found = vectorized(function, form) if type(function) is np.vectorize else converted(function, sys.modules[__name__], as_loop, going_on)
    if found is not function and policy is not None:
        policy.met = True
    if found is function:
        as_written(function)
    return found


def given(function: Any) -> Any:
    """What is called in the place of a function that a transform is given: it may be a library's, as one that is called may be."""
    policy = open_policy()
    plain = getattr(function, "__func__", function)
    if policy is None or (type(plain) is FunctionType and not is_library(plain.__code__)):
        return form(function)
    return callable_for(function, policy, form)


HANDLERS["captured_form"] = given


def call(function: Any) -> Any:
    """What is called where the user calls a function."""
    policy = open_policy()
    if policy is None or function is read_items:   # which stands around what is taken apart in headers of loops
        return function
    if type(function) is Choice:
        return functools.partial(_called, function)
    found = callable_for(function, policy, form)
    plain = getattr(function, "__func__", function)
    if type(plain) is not FunctionType or (is_library(plain.__code__) and not is_plain_python(plain.__code__)):
        if function is breakpoint or getattr(function, "__name__", "") in _STOPPING:
            return function
        found = _of_anything(function, reading(function, found), policy)
    is_changing = any(scope.loop is not None and (scope.loop.growths or scope.loop.indexed) for scope in policy.scopes)
    return _guarded(function, found) if is_changing else found


HANDLERS["call_of"] = call


def generated(function: Any) -> Any:
    """What is called where a loop goes over the result: of a generator function of the user's, what `for_` can run the body in."""
    policy = open_policy()
    plain = getattr(function, "__func__", function)
    if policy is None or not policy.converting or type(plain) is not FunctionType or not plain.__code__.co_flags & inspect.CO_GENERATOR:
        return call(function)
    handing, until = [handed(plain, sys.modules[__name__], may_end) for may_end in (False, True)]
    if handing is None or until is None or form_of(plain).writes_globals:
        return call(function)
    if policy.depth:
        bind(plain)
    policy.met = True
    return functools.partial(Generated, function, (handing, until))

_STOPPING = ("set_trace", "embed")                 # debuggers stop where they are called from: that is to be the user's frame
_NOT_COMPUTING = HEAP_FUNCTIONS | {isinstance, type, print, repr, str, len, bool, hash, id, callable, getattr, setattr, hasattr}


def _computes(function: Any) -> bool:
    """Whether a function takes numbers, and keeps nothing."""
    owner = getattr(function, "__self__", None)
    if getattr(function, "__code__", None) is not None or hasattr(function, "__func__") or function in _NOT_COMPUTING:
        return False
    return (type(owner) not in (list, dict, set, deque) and not isinstance(function, type | functools.partial)) or function in (int, float)


def _of_anything(function: Any, found: Any, policy: Policy) -> Any:
    """A function that is not the user's, which may get choices and lists with gaps: made perhaps as its arguments are evaluated."""
    takes_functions = among(function, _TAKING_FUNCTIONS)

    def called(*args: Any, **kwargs: Any) -> Any:
        sought = found_by(function, args) if policy.choices else None
        if sought is not None:
            return sought
        if takes_functions:
            args, kwargs = tuple(map(_captured_when_called, args)), {key: _captured_when_called(arg) for key, arg in kwargs.items()}
            items = None if kwargs else by_test(function, args)
            if items is not None:
                return items
        if policy.choices and has_two_shapes((*args, *kwargs.values())) and (_computes(function) or function in (len, isinstance)):
            how = both if isinstance(function, np.ufunc) and not kwargs else each_way
            return how(_of_anything(function, found, policy), *args, **kwargs)     # not `called`: it would keep itself, and arrays, alive
        if policy.choices and _computes(function):
            values = valued if function in (min, max) else unwrapped
            args, kwargs = tuple(map(values, args)), {key: values(arg) for key, arg in kwargs.items()}
        return asked(function, args, taking(function, found) if policy.gaps else found)(*args, **kwargs)
    return called


_TAKING_FUNCTIONS = frozenset((
    map, filter, sorted, min, max, functools.reduce, itertools.accumulate, itertools.dropwhile, itertools.filterfalse, itertools.groupby,
    itertools.starmap, itertools.takewhile, np.apply_along_axis, np.apply_over_axes, np.fromfunction, np.piecewise))


def _captured_when_called(x: Any) -> Any:
    """A function that a function of others calls: with its control flow captured, or what is called for one of Python's or NumPy's."""
    if not callable(x) or isinstance(x, np.ufunc) or hasattr(type(x), "__iter__"):      # which may be what is gone over, as an Enum is
        return x
    return lambda *args, **kwargs: call(x)(*args, **kwargs)


def _called(function: Choice, *args: Any, **kwargs: Any) -> Any:
    """A function that is chosen by data: what the one gives that it is."""
    if function.has_value:
        return call(function.value)(*args, **kwargs)
    things = function.options.things
    for place, thing in enumerate(things):
        if not callable(thing):
            raise_where(function.which == place, TypeError(f"'{type(thing).__name__}' object is not callable"))
    called = [(place, thing) for place, thing in enumerate(things) if callable(thing)]
    if not called:
        return call(things[0])(*args, **kwargs)
    *others, (_, last) = called

    def otherwise(places: int) -> Any:
        if places == len(others):
            return call(last)(*args, **kwargs)
        place, thing = others[places]
        return choose(function.which == place, lambda: call(thing)(*args, **kwargs), lambda: otherwise(places + 1))
    return otherwise(0)


def _length(found: Any, x: Any) -> Any:
    if is_growing(x):
        return length(x)
    refuse_whole(x)
    return found(x)


def _guarded(function: Any, found: Any) -> Any:
    """A function that may get a list that grows in a loop that is being traced: the user's own, and those of numbers."""
    if function is len:
        return functools.partial(_length, found)
    if getattr(function, "__code__", None) is not None or hasattr(function, "__func__") or getattr(found, "func", None) is append:
        return found

    return with_whole(function, found)


_DIVIDING = frozenset(("floordiv", "mod", "truediv"))


def binary(name: str, x: Any, y: Any) -> Any:
    """An operator, by its name in `operator`: x + y."""
    if isinstance(y, IndexTracer) and name in _DIVIDING:
        require_no_handler(y)
    found = sparse_times(x, y) if name == "mul" else None
    found = binary_of(name, x, y) if found is None else found
    return own(found) if type(found) is list else found


def product(left: Any, right: Any) -> Any:
    """left @ right."""
    left, right = live(left), live(right)
    if user_method(type(left), "__matmul__") is not None or user_method(type(right), "__rmatmul__") is not None:
        return binary_of("matmul", left, right)
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        read(left, right)
    return sparse_product(left, right)


def augmented(name: str, x: Any, value: Any) -> Any:
    """What a variable holds after `x += value`, by the operator's name in `operator`."""
    x, value = (unwrapped(one) if type(one) is Choice else one for one in (x, value))
    if type(x) is TwoShapes:                       # the array is written to, the number is not
        return each_way(functools.partial(augmented, name), x, value)
    value = settled(value, x)
    if type(value) is TwoShapes:
        return each_way(functools.partial(augmented, name), x, value)
    method = None if type(x) in _ITEMS else user_method(type(x), f"__{name}__")
    if method is not None and open_policy() is not None:
        found = call(MethodType(method, x))(value)
        if found is not NotImplemented:
            return found
    plain = {"iand": "and_", "ior": "or_"}.get(name, name[1:])
    if not hasattr(type(x), f"__{name}__") and user_method(type(x), f"__{plain.strip('_')}__") is not None:
        return product(x, value) if plain == "matmul" else binary(plain, x, value)             # it stays as it is
    return getattr(operator, name)(x, added(x, value))


HANDLERS["augmented"] = augmented


def attribute(x: Any, name: str) -> Any:
    """x.name."""
    lend(x, name)
    return attribute_of(x, name, form)


HANDLERS["attribute_of"] = attribute


def method_of_item(items: Any, index: Any, name: str) -> Any:
    """What is called for items[index].name(...), of which nobody needs the result."""
    found = None if open_policy() is None else changing(items, index, name)
    return found or call(getattr(item(items, index), name))


def item(array: Any, index: Any) -> Any:
    """array[index]."""
    method = None if type(array) in _ITEMS else user_method(type(array), "__getitem__")
    if method is not None and open_policy() is not None:
        return call(MethodType(method, array))(index)
    array, index = live(array), live(index)
    if isinstance(array, np.ndarray | Tracer | SizedByData):
        index = positions(index)
    concrete = isinstance(array, np.ndarray) or isinstance(index, np.ndarray) or (
        type(index) is tuple and any(isinstance(part, np.ndarray) for part in index))
    if not concrete:
        if type(index) is str or type(array) is str or (type(index) is tuple and isinstance(array, dict)):
            require_known(array if type(array) is str else index)
        found = indexed(array, index)
        return own(found) if type(index) is slice and type(found) is list else found
    before = touched()
    found = indexed(array, index)
    read_item(array, index, before, found)
    return found


_ITEMS = (list, tuple, dict, str, np.ndarray, ArrayTracer)


def taken_apart(items: Any, before: int, behind: int) -> Any:
    """What is assigned to so many names, and behind one with a star to some more (-1 where there is none)."""
    items = taken(items)
    if isinstance(items, Selection) and behind < 0 and items.ndim and not isinstance(items.shape[0], int):
        return keyed.all_of_selection(items, before)
    return keyed.taken_apart(items, before, behind) if has_gaps(items) else items


def read_index(index: Any) -> Any:
    """What stands in brackets, where an element is assigned to."""
    return place_of(read_places(positions(index)))


def spread(items: Any) -> Any:
    """What stands behind a star in a list or tuple."""
    return taken(items)


def made(container: Any) -> Any:
    """A list, dictionary or set that was just made."""
    found = own(require_known_keys(container))
    return stack_made(found) if type(found) is list else set_made(found) if type(found) is set else dictionary_made(found)


def gathered(source: Any, kind: str) -> Any:
    """What a function takes all elements of, given by a call: those of a generator of the user's are a list."""
    if type(source) is not Generated:
        return source

    def fill(found: Any) -> None:
        each(source, lambda item: kept(found, lambda: item))
    return made((summed if kind == "summed" else listed)(fill))


def extended(function: Any, as_written: Callable[[], Any], fill: Callable[[Any], Any]) -> Any:
    """function(generator), where the name of the function is `extend`; for a list, fill(list) appends what the generator would give."""
    found, owner = call(function), getattr(function, "__self__", None)
    if open_policy() is None or (type(owner) is not list and not is_bounded(owner)):
        return found(as_written())
    fill(owner)
    return None


def header(function: Any, *parts: Any, **options: Any) -> Any:
    """What a loop goes over, written as range(...), enumerate(...), zip(...), reversed(...), map(...) or np.arange(...)."""
    if function is enumerate and type(parts[0]) is Generated:
        return parts[0].counted(*parts[1:], **options)
    parts = tuple([iter(part) if type(part) is Generated else part for part in parts])
    if not any(function is one for one in _HEADERS) or open_policy() is None:
        return call(function)(*parts, **options)
    parts = tuple(map(taken, parts))
    if any(map(has_gaps, parts)):                  # which meet the elements of the others one by one
        parts = tuple([iteration.listed(part) for part in parts])
    items = gone_over(function, parts, options)
    if items is not None:
        return items
    if any(map(has_gaps, parts)):
        refuse(f"{function.__name__}()")
    if function is map and len(parts) > 1:
        parts = (functools.partial(_applied, parts[0]), *parts[1:])
    require_known(*[part for part in parts if type(part) is str])
    found = iteration.header(function, parts, options)
    return call(function)(*parts, **options) if found is None else found


def _applied(function: Any, *args: Any) -> Any:
    return call(function)(*args)
