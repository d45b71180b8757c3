"""Branches and tests in captured code: `if`, `and`, `or`, `not`, `is`, `in`, `assert`, and comprehensions with conditions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from types import MethodType
from typing import Any

import numpy as np

from bwcompiler.errors import TracerBoolError, at
from bwcompiler.frontend.numpy.selected.packing import guarded, merged
from bwcompiler.frontend.source.array_backed.dictionaries import tabled
from bwcompiler.frontend.source.array_backed.growth import POISON, append, is_growing, length, refuse_whole
from bwcompiler.frontend.source.bodies.branches import branch
from bwcompiler.frontend.source.bounded.dictionaries import Dictionary, is_asked, want
from bwcompiler.frontend.source.bounded.groups import Groups
from bwcompiler.frontend.source.bounded.sets import Set
from bwcompiler.frontend.source.bounded.views import View
from bwcompiler.frontend.source.changes import changed
from bwcompiler.frontend.source.concrete.contents import binary, read, user_method
from bwcompiler.frontend.source.concrete.texts import require_known
from bwcompiler.frontend.source.effects.checks import raised
from bwcompiler.frontend.source.effects.doubles import refuse_identity, refuse_identity_of_arrays
from bwcompiler.frontend.source.items import iterable
from bwcompiler.frontend.source.library.builtin_functions import truth_of
from bwcompiler.frontend.source.syntax.names import Variables
from bwcompiler.frontend.source.undecided import lookups
from bwcompiler.frontend.source.undecided.kinds.choices import Choice, contains, is_same, truth
from bwcompiler.frontend.source.undecided.kinds.orders import is_undecided
from bwcompiler.frontend.source.undecided.kinds.two_shapes import TwoShapes
from bwcompiler.frontend.source.undecided.kinds.two_shapes import truth as truth_of_two_shapes
from bwcompiler.frontend.source.undecided.lists import gaps
from bwcompiler.frontend.source.variables import Names, is_bounded, not_capturable, open_policy, parts_of
from bwcompiler.frontend.tracing.assumed import assumed_truth
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.control_flow.twins import same_array
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.refusals.demands import ask_whose_truth
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import ArrayTracer, Tracer
from bwcompiler.frontend.tracing.truths import is_pythons, pythons

TOTAL = "sum"                  # the key of a sum
NO_VARIABLES: tuple[tuple[str, ...], ...] = ((), (), ())


def decided(x: Any) -> Any:
    """The truth of a test, which data may decide."""
    if is_growing(x):
        return decided(length(x) > 0)
    refuse_whole(x)
    if is_bounded(x):
        return x.store.count > 0
    if isinstance(x, np.ndarray):
        read(x)
    if gaps.has_gaps(x):
        return gaps.length(x) > 0
    for name in ("__bool__", "__len__"):
        method = user_method(type(x), name)
        if method is not None and open_policy() is not None:
            found = HANDLERS["call_of"](MethodType(method, x))()
            return decided(found if name == "__bool__" else found > 0)
    if type(x) is TwoShapes:
        return truth_of_two_shapes(x)
    return truth(x) if type(x) is Choice else truth_of(x)


HANDLERS["truth_of"] = decided


def nothing() -> None:
    """The side of a branch that is not written."""


def if_(test: Any, then: Callable[[], Any], orelse: Callable[[], Any], variables: tuple[tuple[str, ...], ...]) -> Any:
    """if test: then() else: orelse(); what is returned is the value of a branch that ends the function."""
    found = decided(test)
    if isinstance(found, Tracer):
        policy = open_policy()
        assert policy is not None
        taken = assumed_truth(found) if policy.decides else None
        if taken is None:
            return branch(found, then, orelse, Variables(*variables), Names(then, orelse), policy)
        found = taken
    return then() if found else orelse()


def leaving(test: Any, why: str) -> Any:
    """The test of a branch by which a loop is left that keeps its form; why: the reason for that."""
    found = decided(test)
    if isinstance(found, Tracer):
        raise TracerBoolError(at(current_source(), f"a traced value decides whether a loop goes on, which cannot be recorded: {why}\n"
                                 "  hint: take that out of the loop (a test before, as `if`, for what `except` catches), or do not leave "
                                 "the loop: np.where(test, ...)"))
    return found


def is_(x: Any, y: Any) -> Any:
    """x is y."""
    if type(x) is Choice or type(y) is Choice:
        return is_same(x, y)
    if x is POISON or y is POISON:
        bool(POISON)                               # which refuses
    for one, other in ((x, y), (y, x)):
        if isinstance(one, Tracer) and isinstance(other, bool | np.bool_):
            ask_whose_truth(one)
            if type(other) is bool and is_pythons(one):
                return one if other else np.logical_not(one)
            _refuse_truth(one, other)
    if isinstance(x, ArrayTracer) and isinstance(y, ArrayTracer) and x is not y:
        found = same_array(x, y)
        if found is None:
            refuse_identity_of_arrays(x, y)
        return found if found is False else pythons(call(as_tracer, found))
    if x is not y:
        refuse_identity(x, y)
    return x is y


HANDLERS["is"] = is_


def _refuse_truth(x: Tracer, truth: Any) -> None:
    """Data decide about x, and nobody knows whether Python would have True there (a flag) or np.True_ (a comparison of numbers)."""
    if x.dtype.kind != "b" or x.ndim:
        return
    policy = open_policy()
    reason = f"it is asked whether a traced value is {truth} itself"
    hint = f"if x:, or x == {truth}, as x is {truth} fails for NumPy's {truth}"
    if policy is not None and policy.depth:
        not_capturable(reason, hint=hint)
    if policy is not None:
        policy.needed = True                       # Python alone would say that it is not
    raise TracerBoolError(at(current_source(), f"{reason}\n  hint: {hint}"))


def is_not(x: Any, y: Any) -> Any:
    """x is not y."""
    return not_(is_(x, y))


def in_(x: Any, items: Any) -> Any:
    """x in items."""
    if type(items) in (Dictionary, Groups, View, Set):
        return items.contains(x)
    items = gaps.taken(items)
    if gaps.has_gaps(items):
        return gaps.contains(items, x)
    if gaps.has_gaps(x) or (type(items) in (list, tuple) and any(map(gaps.has_gaps, items))):
        return gaps.refuse("whether another one holds it, asked")
    if type(x) is Choice and type(items) is str and not x.has_value:
        return contains(items, x)
    method = user_method(type(items), "__contains__")
    if method is not None and open_policy() is not None:
        return decided(HANDLERS["call_of"](MethodType(method, items))(x))
    in_table = tabled(items)
    if in_table is not None:
        return in_table.contains(x)
    if type(items) is not dict and is_asked(items, x):
        want(items, x, 0)
        return lookups.contains(items, x)
    if lookups.is_traced_key(items, x) or (type(items) in (set, frozenset) and (lookups.has_choices(x) or any(
            isinstance(part, Tracer) for part in parts_of(x)))):
        return lookups.contains(items, x)
    if isinstance(items, Selection) or (isinstance(items, Tracer) and items.ndim) or (
            isinstance(items, np.ndarray) and isinstance(x, Tracer)):
        return np.any(binary("eq", items, x))
    if type(x) is not Choice and not (type(items) in (list, tuple) and (is_undecided(x) or is_undecided(items))):
        read(x, items)
        require_known(x, items)
        return x in items
    found: Any = False
    for one in items:
        found = or_(found, _equal(x, one))
    return found


def _equal(x: Any, y: Any) -> Callable[[], Any]:
    return lambda: binary("eq", x, y)


def not_in(x: Any, items: Any) -> Any:
    """x not in items."""
    return not_(in_(x, items))


def elements(source: Any) -> Iterator[tuple[Any, Any]]:
    """What a comprehension goes over, each with whether it is there."""
    if isinstance(source, Selection) and not source.lead:
        rows = merged(source)
        array = guarded(rows)
        return iter([(rows.where[k], array[k]) for k in range(rows.where.shape[0])])
    if not gaps.has_gaps(source):
        return zip(itertools.repeat(True), iterable(source))
    return iter([(one.present, gaps.handed_out(one.value)) if type(one) is gaps.Maybe else (True, one) for one in source])


def kept(found: Any, element: Callable[[], Any]) -> None:
    """An element of the list that a comprehension makes, or of the sum that stands for it; of one that `extend` makes longer."""
    if type(found) is dict:
        one = element()
        changed(found)[TOTAL] = binary("add", found[TOTAL], one)
    elif is_bounded(found):
        HANDLERS["call_of"](found.append)(element())
    else:
        append(found, element())


def sifted(test: Any, then: Callable[[], None]) -> None:
    """Elements that a comprehension keeps where a test holds."""
    if_(test, then, nothing, NO_VARIABLES)


def assert_(test: Any, message: Callable[[], Any] | None = None) -> None:
    """assert test, message()."""
    def fail() -> None:
        raise raised(AssertionError() if message is None else AssertionError(message()))
    if_(test, nothing, fail, NO_VARIABLES)


def choose(test: Any, then: Callable[[], Any], orelse: Callable[[], Any]) -> Any:
    """then() if test else orelse()."""
    return if_(test, then, orelse, NO_VARIABLES)


HANDLERS["choose"] = choose


def and_(x: Any, other: Callable[[], Any], is_test: bool = False) -> Any:
    """x and other(); is_test: only whether that is true is asked."""
    found = decided(x)
    if not isinstance(found, Tracer):
        return other() if found else x
    if is_test:
        return choose(found, lambda: _known_truth(other()), lambda: False)
    return choose(found, other, lambda: False if is_bounded(x) else x)


def or_(x: Any, other: Callable[[], Any], is_test: bool = False) -> Any:
    """x or other(); is_test: only whether that is true is asked."""
    found = decided(x)
    if not isinstance(found, Tracer):
        return x if found else other()
    return choose(found, lambda: True, lambda: _known_truth(other())) if is_test else choose(found, lambda: x, other)


def _known_truth(x: Any) -> Any:
    """The truth of a part of a test; as such, where it is known."""
    found = decided(x)
    return found if isinstance(found, Tracer) else bool(found)


def not_(x: Any) -> Any:
    """not x."""
    found = decided(x)
    return np.logical_not(found) if isinstance(found, Tracer) else not found
