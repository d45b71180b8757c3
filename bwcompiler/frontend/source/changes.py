"""Assignments in captured code: the object changed belongs to the body, or the change is recorded as a variable that its iterations carry.

Lists and dictionaries that a body creates belong to it (`own`); others become variables of it (`effects.places`), or are refused.
"""

from __future__ import annotations

import collections
from typing import Any

import numpy as np

from bwcompiler.frontend.numpy.selected.packing import copied
from bwcompiler.frontend.source.array_backed.growth import append
from bwcompiler.frontend.source.concrete.contents import read as read_contents
from bwcompiler.frontend.source.concrete.makers import Target, changed_in_loop, maker_of, require_traced, require_unseen
from bwcompiler.frontend.source.effects.doubles import refuse_double
from bwcompiler.frontend.source.effects.methods import by_methods
from bwcompiler.frontend.source.effects.places import Holder, assigned_to, refuse_change, scopes_around
from bwcompiler.frontend.source.undecided.kinds.changed import OneOf, is_one_of_objects
from bwcompiler.frontend.source.undecided.kinds.choices import Choice, refuse, whole
from bwcompiler.frontend.source.undecided.kinds.two_shapes import TwoShapes
from bwcompiler.frontend.source.undecided.kinds.two_shapes import refuse as refuse_two_shapes
from bwcompiler.frontend.source.undecided.lists.gaps import has_gaps
from bwcompiler.frontend.source.undecided.lists.gaps import refuse as refuse_gaps
from bwcompiler.frontend.source.variables import is_bounded, open_policy
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.indexing.masked_selection import SizedByData
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer, fresh_array

_COUNTING = (collections.Counter, collections.defaultdict)
VALUES = (bool, int, float, complex, str, bytes, tuple, frozenset, range, slice)       # which nobody can change


def own(container: Any) -> Any:
    """Note that a container was made in the iteration that is being traced: it may change there."""
    policy = open_policy()
    if policy is not None:
        policy.own(container)
    return container


def altered(x: Any) -> Any:
    """x, of which an attribute is assigned to."""
    HANDLERS["lend"](x)
    found = changed(x)
    return x if type(x) is np.ndarray else found


HANDLERS["altered"] = altered


def changed(x: Any) -> Any:
    """x, of which an element is assigned to."""
    policy = open_policy()
    if policy is None or isinstance(x, (Tracer, SizedByData, np.generic, *VALUES)) or x is None:
        return x
    if type(x) is Choice and is_one_of_objects(x):
        return OneOf(x)
    if type(x) is Choice:
        found = whole(x) if x.has_value else refuse(x)
        refuse_double(found)
        return found
    if type(x) is TwoShapes:
        refuse_two_shapes(x, "its elements cannot be assigned to")
    if type(x) is list:
        HANDLERS["assigned_row"](x)
    refuse_double(x)
    methods = by_methods(x)
    if methods is not None:
        return methods
    if has_gaps(x):
        HANDLERS["wish_for_stack"](x)
        refuse_gaps("assignments to elements")
    if type(x) is np.ndarray and (policy.made or policy.live):
        if policy.depth:
            changed_in_loop(x)
        require_unseen(x)
        return x if maker_of(x) is None else Target(x)
    if is_bounded(x):
        return x
    found = assigned_to(x) if policy.depth else x
    if type(x) in _COUNTING:
        return HANDLERS["asking"](x, found)
    return Holder(x) if type(found) in (dict, list) else found


def combined(x: Any) -> Any:
    """x, of which an element or an attribute is combined with something in place."""
    if type(x) is np.ndarray:
        read_contents(x)                           # as it was before
    if isinstance(x, SizedByData):
        return _PartsOf(x)
    found, policy = changed(x), open_policy()
    if found is not x or policy is None or isinstance(x, Tracer | np.ndarray):
        return found
    return Holder(x) if policy.depth or policy.made else x


def combined_attribute(x: Any) -> Any:
    """x, of which an attribute is combined with something in place."""
    return altered(x) if isinstance(x, np.ndarray | SizedByData) else combined(x)


class _PartsOf:
    """A selection of which parts are combined with something in place: copies, which are assigned again."""

    __slots__ = ("whole",)

    def __init__(self, whole: SizedByData) -> None:
        self.whole = whole

    def __getitem__(self, index: Any) -> Any:
        part = self.whole[index]
        if isinstance(part, Tracer):
            return fresh_array(value_of(part)) if part.ndim else part
        return copied(part) if isinstance(part, SizedByData) else part

    def __setitem__(self, index: Any, value: Any) -> None:
        self.whole[index] = value


def added(x: Any, value: Any) -> Any:
    """value, which an augmented assignment (`x += value`) combines with a variable."""
    policy = open_policy()
    if policy is None or isinstance(x, Tracer | SizedByData):
        return value
    read_contents(value)
    refuse_double(x)
    if type(x) is np.ndarray:
        read_contents(x)
        if policy.depth:
            changed_in_loop(x)
        require_unseen(x)
        require_traced(x, value)
    elif type(x) is list and scopes_around(x):
        append(x, *value)
        return []
    elif not is_bounded(x):
        refuse_change(x)
    return value
