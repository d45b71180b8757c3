"""What rewritten functions call (see `rewriting`): calls, items, loops and branches, which decide here how they are recorded.

Outside of any trace, and for values that are known, everything does what Python does.
"""

from __future__ import annotations

import builtins
import functools
import itertools
import operator
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from bwcompiler.errors import TracerError, at
from bwcompiler.frontend.source.bodies import iteration
from bwcompiler.frontend.source.bodies.branches import branch
from bwcompiler.frontend.source.bodies.capture import MOST_COPIES, SHORT
from bwcompiler.frontend.source.bodies.counted_loops import counted
from bwcompiler.frontend.source.bodies.data_loops import for_loop, while_loop
from bwcompiler.frontend.source.bodies.known_loops import counted_while
from bwcompiler.frontend.source.calls import attribute as attribute_of
from bwcompiler.frontend.source.calls import callable_for, defined
from bwcompiler.frontend.source.carried.growth import append, is_growing, length, refuse_whole
from bwcompiler.frontend.source.changes import added, altered, changed, combined, combined_attribute, own
from bwcompiler.frontend.source.concrete.contents import (
    as_written,
    live,
    read,
    read_index,
    read_item,
    read_items,
    reading,
    touched,
    unary,
    user_method,
)
from bwcompiler.frontend.source.concrete.contents import binary as binary_of
from bwcompiler.frontend.source.concrete.makers import computed
from bwcompiler.frontend.source.concrete.texts import asked, require_known, require_known_keys
from bwcompiler.frontend.source.decisions import (
    and_,
    assert_,
    choose,
    decided,
    elements,
    if_,
    in_,
    is_,
    is_not,
    kept,
    not_,
    not_in,
    nothing,
    or_,
    sifted,
)
from bwcompiler.frontend.source.effects.checks import Trying as trying
from bwcompiler.frontend.source.effects.checks import raised
from bwcompiler.frontend.source.items import indexed, iterable
from bwcompiler.frontend.source.library.libraries import sparse_product, sparse_times
from bwcompiler.frontend.source.library.vectorized import vectorized
from bwcompiler.frontend.source.syntax.functions import converted
from bwcompiler.frontend.source.syntax.rewriting import ITEM, Variables
from bwcompiler.frontend.source.undecided import gaps
from bwcompiler.frontend.source.undecided.choices import Choice, unwrapped
from bwcompiler.frontend.source.variables import Names, NotCapturable, open_policy, site_of
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.source import current_source, is_library
from bwcompiler.frontend.tracing.storages.region import Policy, Site, open_region
from bwcompiler.frontend.tracing.tracer import ArrayTracer, Tracer
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value

__all__ = ["altered", "and_", "assert_", "attribute", "augmented", "binary", "call", "changed", "choose", "combined", "combined_attribute",
           "computed", "defined", "elements", "for_", "header", "if_", "in_", "is_", "is_not", "item", "iterable", "kept", "made", "not_",
           "not_in", "or_", "product", "raised", "read_index", "read_items", "sifted", "slice", "trying", "unary", "unrolled", "while_"]

MOST_GUARDED = 10_000          # iterations that are traced under a condition each, of a loop whose end is data: it may have none
SHORTEST = 3                   # loops of fewer iterations are always unrolled
HEAVY = 400                    # values that the iterations of a short loop record: then it is not

slice = builtins.slice


_HEADERS = (range, enumerate, zip, reversed, map, np.arange)


def form(function: Any) -> Any:
    """What is called in the place of a function of the user's."""
    found = vectorized(function, form) if type(function) is np.vectorize else converted(function, sys.modules[__name__])
    policy = open_policy()
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
    if policy is None:
        return function
    if type(function) is Choice:
        return functools.partial(_called, function)
    found = callable_for(function, policy, form)
    plain = getattr(function, "__func__", function)
    if type(plain) is not FunctionType or is_library(plain.__code__):
        found = _of_anything(function, reading(function, found), policy)
    return _guarded(function, found) if any(scope.loop is not None and scope.loop.growths for scope in policy.scopes) else found


HANDLERS["call_of"] = call

_ASKING = frozenset((isinstance, type, print, repr, str, len, bool, hash, id, callable, getattr, hasattr))


def _computes(function: Any) -> bool:
    """Whether a function takes numbers, and keeps nothing."""
    owner = getattr(function, "__self__", None)
    if getattr(function, "__code__", None) is not None or hasattr(function, "__func__") or function in _ASKING:
        return False
    return (type(owner) not in (list, dict, set, deque) and not isinstance(function, type | functools.partial)) or function in (int, float)


def _of_anything(function: Any, found: Any, policy: Policy) -> Any:
    """A function that is not the user's, which may get choices and lists with gaps: made perhaps as its arguments are evaluated."""
    takes_functions = _among(function, _TAKING_FUNCTIONS)

    def called(*args: Any, **kwargs: Any) -> Any:
        if takes_functions:
            args, kwargs = tuple(map(_captured_when_called, args)), {key: _captured_when_called(arg) for key, arg in kwargs.items()}
        if policy.choices and _computes(function):
            args, kwargs = tuple(map(unwrapped, args)), {key: unwrapped(arg) for key, arg in kwargs.items()}
        return asked(function, args, gaps.taking(function, found) if policy.gaps else found)(*args, **kwargs)
    return called


_TAKING_FUNCTIONS = frozenset((
    map, filter, sorted, min, max, functools.reduce, itertools.accumulate, itertools.dropwhile, itertools.filterfalse, itertools.groupby,
    itertools.starmap, itertools.takewhile, np.apply_along_axis, np.apply_over_axes, np.fromfunction, np.piecewise))


def _among(function: Any, known: frozenset[Any]) -> bool:
    try:
        return function in known
    except TypeError:                              # something that cannot be hashed
        return False


def _captured_when_called(x: Any) -> Any:
    """A function of the user's that a function of others calls: with its control flow captured."""
    if not isinstance(x, FunctionType | MethodType | functools.partial):
        return x
    return lambda *args, **kwargs: call(x)(*args, **kwargs)


def _called(function: Choice, *args: Any, **kwargs: Any) -> Any:
    """A function that is chosen by data: what the one gives that it is."""
    if function.has_value:
        return call(function.value)(*args, **kwargs)
    *others, last = function.options.things

    def otherwise(places: int) -> Any:
        if places == len(others):
            return call(last)(*args, **kwargs)
        return choose(function.which == places, lambda: call(others[places])(*args, **kwargs), lambda: otherwise(places + 1))
    return otherwise(0)


def _guarded(function: Any, found: Any) -> Any:
    """A function that may get a list that grows in a loop that is being traced: only the user's own may."""
    if function is len:
        return lambda x: length(x) if is_growing(x) else found(x)
    if getattr(function, "__code__", None) is not None or hasattr(function, "__func__") or getattr(found, "func", None) is append:
        return found

    def checked(*args: Any, **kwargs: Any) -> Any:
        for arg in (*args, *kwargs.values()):
            refuse_whole(arg)
        return found(*args, **kwargs)
    return checked


def binary(name: str, x: Any, y: Any) -> Any:
    """An operator, by its name in `operator`: x + y."""
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
    method = None if type(x) in _ITEMS else user_method(type(x), f"__{name}__")
    if method is not None and open_policy() is not None:
        found = call(MethodType(method, x))(value)
        if found is not NotImplemented:
            return found
    return getattr(operator, name)(x, added(x, value))


def attribute(x: Any, name: str) -> Any:
    """x.name."""
    return attribute_of(x, name, form)


HANDLERS["attribute_of"] = attribute


def item(array: Any, index: Any) -> Any:
    """array[index]."""
    method = None if type(array) in _ITEMS else user_method(type(array), "__getitem__")
    if method is not None and open_policy() is not None:
        return call(MethodType(method, array))(index)
    array, index = live(array), live(index)
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


def made(container: Any) -> Any:
    """A list, dictionary or set that was just made."""
    return own(require_known_keys(container))


def header(function: Any, *parts: Any, **options: Any) -> Any:
    """What a loop goes over, written as range(...), enumerate(...), zip(...), reversed(...), map(...) or np.arange(...)."""
    if not any(function is one for one in _HEADERS) or open_policy() is None:
        return call(function)(*parts, **options)
    if any(map(gaps.has_gaps, parts)):
        gaps.refuse(f"{function.__name__}()")
    if function is map and len(parts) > 1:
        parts = (functools.partial(_applied, parts[0]), *parts[1:])
    require_known(*[part for part in parts if type(part) is str])
    found = iteration.header(function, parts, options)
    return call(function)(*parts, **options) if found is None else found


def _applied(function: Any, *args: Any) -> Any:
    return call(function)(*args)


def for_(source: Any, body: Callable[[Any], None], variables: tuple[tuple[str, ...], ...], flag: str | None = None) -> None:
    """for item in source: body(item); until the variable `flag` is true."""
    policy, source = open_policy(), live(source)
    require_known(*([source] if type(source) is str else []))
    elements = None if policy is None or not policy.converting else iteration.elements_of(source)
    names = Variables(*variables)
    first = True
    if policy is not None and elements is not None and _pays(elements, policy, body):
        captured = _captured(elements, body, names, flag, policy)
        if captured:
            return
        first = captured is not None               # of the rest of the iterations it is not known yet
    source = source if gaps.has_gaps(source) else read_items(iterable(source))
    held = None if flag is None else Names(body)
    tested = names._replace(results=tuple(dict.fromkeys((*names.carried, *names.results, *([] if flag is None else [flag])))))
    if policy is not None and gaps.has_gaps(source) and flag is None:
        source = _captured_blocks(source, body, names, tested, policy)
    elements_left = iter(source)
    with _unrolling(policy, elements):
        for number in itertools.count():
            done = False if held is None or flag is None else held[flag]
            if not isinstance(done, Tracer) and done:
                return
            try:
                element = next(elements_left)
            except StopIteration:
                return
            going = not_(done) if isinstance(done, Tracer) else True
            if type(element) is gaps.Maybe:
                going, element = np.logical_and(going, element.present), element.value
            if isinstance(going, Tracer) and policy is not None:
                if number == MOST_GUARDED:
                    raise _endless(policy.notes.get(site_of(body), "it goes over an iterator"))
                branch(going, functools.partial(body, element), nothing, tested, Names(body), policy)
            else:
                before = -1 if policy is None or number else len(open_region().record.values)
                body(element)
                if before >= 0 and first and elements is not None and policy is not None and _is_heavy(elements, policy, body, before):
                    first = False                  # few iterations, but long ones
            if not first:
                assert elements is not None and policy is not None
                first = True
                if _captured(elements.after_first(), body, names, flag, policy, may_peel=False):
                    return


def _endless(why: str) -> TracerError:
    return TracerError(at(current_source(open_region().outer), "the end of this loop depends on traced values, and it cannot be recorded: "
                          f"{why}\n  hint: for _ in range(n), with a `break`"))


def _captured_blocks(source: Any, body: Callable[[Any], None], names: Variables, tested: Variables, policy: Policy) -> Iterator[Any]:
    """The elements of a list; but where a loop has appended some of them, as data decided, a loop over those is recorded instead."""
    for part in gaps.segments(source):
        if not isinstance(part, gaps.Block):
            yield from part
        elif not policy.loops or site_of(body) in policy.unrolled or not _captured_block(part, body, names, tested, policy):
            yield from gaps.unpacked([part])


def _captured_block(block: gaps.Block, body: Callable[[Any], None], names: Variables, tested: Variables, policy: Policy) -> bool:
    """Whether a loop over what a loop has appended was recorded."""
    def where_there(number: Any) -> None:
        branch(block.present[number], functools.partial(body, block.row(number)), nothing, tested, Names(body), policy)
    try:
        counted(where_there, names, iteration.Elements(block.count, lambda k: k), policy, body)
    except NotCapturable as refused:
        policy.notes.setdefault(site_of(body), refused.reason)
        return False
    return True


@contextmanager
def _unrolling(policy: Policy | None, elements: iteration.Elements | None) -> Iterator[None]:
    """What runs inside is traced once per iteration: noted for the loops in it."""
    if policy is None or elements is None or not isinstance(elements.count, int):
        yield
        return
    before, policy.copies = policy.copies, policy.copies * max(1, elements.count)
    try:
        yield
    finally:
        policy.copies = before


def _size(value: Value) -> int:
    return 1 + sum(_size(part) for inside in value.attrs.values() if isinstance(inside, Graph) for part in inside.body)


def _is_heavy(elements: iteration.Elements, policy: Policy, body: Callable[..., Any], before: int) -> bool:
    """Whether a loop of few iterations, the first of which recorded what stands behind `before`, is long enough to be recorded."""
    if not isinstance(elements.count, int) or not SHORTEST < elements.count <= SHORT or not policy.loops:
        return False
    each = sum(map(_size, open_region().record.values[before:]))
    return each * elements.count > HEAVY and site_of(body) not in policy.unrolled and site_of(body) not in policy.notes


def unrolled(source: Any, reason: str) -> Any:
    """What a loop goes over that keeps its form; noted, if it is long and traced values are computed in it."""
    policy = open_policy()
    read_items(source)
    if policy is None:
        return source
    frame = sys._getframe(1)
    return _noting(source, (frame.f_code.co_filename, frame.f_lineno, 0), reason, policy)


def _noting(source: Any, site: Site, reason: str, policy: Policy) -> Iterator[Any]:
    before = len(open_region().record.values)
    for number, item in enumerate(source):
        if number == SHORT and len(open_region().record.values) > before:
            policy.notes.setdefault(site, reason)
        yield item


def _captured(elements: iteration.Elements, body: Callable[[Any], None], names: Variables, flag: str | None, policy: Policy,
              may_peel: bool = True) -> bool | None:
    """Whether a loop was recorded, None where perhaps all its iterations but the first can be; raises where it has to be, and cannot."""
    try:
        if flag is not None or isinstance(elements.count, Tracer):
            for_loop(elements, body, names, flag, policy)
        else:
            counted(body, names, elements, policy, divisible=isinstance(elements.count, int) and elements.count > iteration.MOST_PARTS * 2)
        return True
    except NotCapturable as refused:
        if refused.repeat > 1 and flag is None and isinstance(elements.count, int) and elements.count >= refused.repeat * 2:
            return _repeated(elements, body, names, policy, refused.repeat)
        if isinstance(elements.count, Tracer):
            raise TracerError(at(current_source(open_region().outer), "the number of iterations of this loop depends on traced values, and "
                                 f"it cannot be recorded: {refused.reason}\n  hint: a fixed number of iterations with np.where")) from None
        if not isinstance(elements.count, int):
            raise
        if may_peel and refused.peel and elements.count > SHORT:
            return None
        if refused.reason:
            policy.notes.setdefault(site_of(body), refused.reason)
        return False


def _repeated(elements: iteration.Elements, body: Callable[[Any], None], names: Variables, policy: Policy, period: int) -> bool:
    """A loop of which `period` iterations are recorded as one; the rest is unrolled."""
    def several(first: Any) -> None:
        for number in range(period):
            body(elements.at(first * period + number))

    whole = elements.count // period
    try:
        counted(several, names, iteration.Elements(whole, lambda k: k), policy, body)
    except NotCapturable as refused:
        policy.notes.setdefault(site_of(body), refused.reason)
        return False
    for number in range(whole * period, elements.count):
        body(elements.at(number))
    return True


def _pays(elements: iteration.Elements, policy: Policy, body: Callable[..., Any]) -> bool:
    """Whether a loop is to be captured: it is long enough, or its length is not known."""
    site = site_of(body)
    if isinstance(elements.count, int) and (not policy.loops or site in policy.unrolled):
        if site in policy.unrolled and elements.count >= SHORT:
            policy.notes.setdefault(site, policy.unrolled[site])
        return False
    if not isinstance(elements.count, int) or elements.count >= SHORT:
        return True
    return elements.count > 1 and policy.copies * elements.count * 2 ** _nested(body.__code__) > MOST_COPIES


@functools.cache
def _nested(code: CodeType) -> int:
    """How many loops stand one inside of the other in the body of a loop."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return max([_nested(one) + (one.co_varnames[:1] == (ITEM,)) for one in inner], default=0)


def while_(test: Callable[[], Any], body: Callable[..., None], variables: tuple[tuple[str, ...], ...],
           bound: Callable[[], Any] | None = None) -> None:
    """while test(): body(); bound: of the length of a list, which the test gives."""
    policy, names = open_policy(), Variables(*variables)
    for number in itertools.count():
        going = decided(test())
        if isinstance(going, Tracer):
            assert policy is not None
            while_loop(going, test, body, names, policy, None if bound is None else bound())
            return
        if not going or (number == 0 and policy is not None and policy.converting and _known(test, body, names, policy)):
            return
        body()


def _known(test: Callable[[], Any], body: Callable[..., None], names: Variables, policy: Policy) -> bool:
    """Whether a loop whose test is known was recorded as one of a number of iterations."""
    site = site_of(body)
    if not policy.loops or site in policy.unrolled or site in policy.uncounted:
        return False
    found = counted_while(test, body, names, policy)
    if found is None or found.iterations < SHORT:
        policy.uncounted.add(site)
        return False
    elements = found.elements()
    captured = _captured(elements, body, names, None, policy)
    if captured is None:
        body()
        captured = _captured(elements.after_first(), body, names, None, policy, may_peel=False)
        for _ in range(0 if captured else found.iterations - 1):
            body()
        captured = True
    if captured:
        found.settle()
    return captured
