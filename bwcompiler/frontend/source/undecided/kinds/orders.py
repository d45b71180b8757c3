"""Comparisons of tuples and lists with parts that depend on data, `(i, j) == source` or `max((cost, name), best)`.

They are compared lexicographically, as in Python: a part counts only if all parts before it are equal.  Of many elements, whose parts
are in arrays, `columns` says what is compared one after the other, with numbers in the place of texts.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bwcompiler import tree
from bwcompiler.frontend.source.concrete.contents import binary, user_method
from bwcompiler.frontend.source.library.builtin_functions import choose_number
from bwcompiler.frontend.source.library.in_order import without_order
from bwcompiler.frontend.source.undecided.kinds.choices import VALUE, Choice
from bwcompiler.frontend.source.variables import is_bounded
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer


def is_undecided(x: Any) -> bool:
    """Whether data decides what a number, string or object is, or a part of a tuple or list, or whether it is there."""
    return isinstance(x, Tracer | Choice) or getattr(type(x), "may_be_missing", False) or (
        isinstance(x, tuple | list) and any(map(is_undecided, x)))


def are_undecided(x: Any, y: Any) -> bool:
    """Whether these are two tuples, or two lists, that `compared` is for."""
    alike = (isinstance(x, tuple) and isinstance(y, tuple)) or (isinstance(x, list) and isinstance(y, list))
    return alike and (is_undecided(x) or is_undecided(y))


def compared(name: str, x: Any, y: Any) -> Any:
    """An operator that compares, by its name in `operator`, of what `are_undecided`: a truth value, traced or not."""
    if name in ("eq", "ne"):
        found = _are_equal(x, y)
        return found if name == "eq" else np.logical_not(found) if isinstance(found, Tracer) else not found
    return _ordered(name, x, y, 0)


def _are_equal(x: Any, y: Any) -> Any:
    if len(x) != len(y):
        return False
    found: Any = True
    for one, other in zip(x, y, strict=True):
        equal = _truth("eq", one, other)
        if not isinstance(equal, Tracer):
            if not equal:
                return False
        else:
            found = equal if found is True else np.logical_and(found, equal)
    return found


def _ordered(name: str, x: Any, y: Any, place: int) -> Any:
    """x < y, x <= y ... of the parts from a place on."""
    if place == min(len(x), len(y)):
        return binary(name, len(x), len(y))
    one, other = x[place], y[place]
    equal = _truth("eq", one, other)
    if not isinstance(equal, Tracer):
        return _ordered(name, x, y, place + 1) if equal else _truth(name, one, other)
    return choose_number(equal, _ordered(name, x, y, place + 1), _truth(name, one, other))


def _truth(name: str, x: Any, y: Any) -> Any:
    return (name == "eq" and x is y) or HANDLERS["truth_of"](binary(name, x, y))


# ----- many elements
class Column(NamedTuple):
    """Numbers by which elements are compared.  things: elements that differ in it, which says which of these they have, have no order."""

    numbers: Any
    things: tuple[Any, ...] = ()

    def require_alike(self, are_alike: Any, require: Callable[[Any, str, type[Exception]], None]) -> None:
        """That there is an order: elements that are compared by this column have the same thing."""
        if self.things:
            require(are_alike, f"{without_order(self.things)}\n"
                    "  hint: a number before these that differs for all elements, (time, number, what)", TypeError)


def columns(value: Any) -> list[Column] | None:
    """What elements, boxed, whose parts are arrays, are compared by; None where they have no order."""
    found: list[Column] = []

    def walk(part: Any, tests: tuple[Any, ...]) -> bool:
        if type(part) is Choice:
            numbers, things = _ranks(part)
            found.append(Column(_where_counted(numbers, tests), things))
            return not part.has_value or walk(part.value, (*tests, part.which == VALUE))
        if isinstance(part, Tracer | np.ndarray):
            found.append(Column(_where_counted(part, tests)))
            return True
        if not tree.leaves(part):                  # the same for all
            return True
        items = HANDLERS["items_of_boxed"](part)
        if items is not None:
            return all(walk(one, tests) for one in items)
        kind = part.kind if is_bounded(part) else part.form.kind       # of a list that is filled in a dictionary: its key is another one
        if not found or user_method(kind, "__lt__") is not None:
            return False                           # to be compared by its methods
        found.append(Column(call(as_tracer, np.arange(found[0].numbers.shape[0])), (kind,)))
        return True
    return found if walk(value, ()) else None


def _where_counted(numbers: Any, tests: tuple[Any, ...]) -> Any:
    """Numbers, and 0 where other columns say that there is none."""
    for test in tests:
        numbers = np.where(test.reshape(test.shape + (1,) * (numbers.ndim - 1)), numbers, 0)
    return numbers


def _ranks(x: Choice) -> tuple[Any, tuple[Any, ...]]:
    """Numbers that are ordered as the things that elements have; all of these where they have no order."""
    things = list(x.options.things)
    ordered = in_order(things)
    if x.has_value or not _have_order(ordered):
        return x.which, x.options.things
    ranks = x.which
    for place, thing in enumerate(things):
        if ordered.index(thing) != place:
            ranks = np.where(x.which == place, ordered.index(thing), ranks)
    return ranks, ()


def in_order(things: list[Any]) -> list[Any]:
    """Things in the order in which they are compared; as they are where they have none."""
    if not _may_have_order(things):
        return things
    try:
        return sorted(things)
    except TypeError:
        return things


def _may_have_order(things: Sequence[Any]) -> bool:
    return len({type(thing) for thing in things}) == 1 and isinstance(things[0], str | bytes | enum.Enum)


def _have_order(things: Sequence[Any]) -> bool:
    """Whether each of some things, which are `in_order`, is less than the next one."""
    if not _may_have_order(things):
        return len(things) == 1
    try:
        return all(x < y and not y < x for x, y in itertools.pairwise(things))
    except TypeError:
        return False


HANDLERS.update(are_undecided=are_undecided, compared=compared, is_undecided=is_undecided)
