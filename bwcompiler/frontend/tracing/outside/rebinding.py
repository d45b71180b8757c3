"""Objects outside that are replaced as a whole (`params = params._replace(...)`, `self.model = Model(...)`): what was read from the old
object is read from its replacement.

A read from such an object says where the object is found (`Read.base` is a read); of the object itself, only its class and the names
of its attributes are compared.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Sequence
from typing import Any

from bwcompiler.frontend.tracing.outside.kinds import has_own_attributes
from bwcompiler.frontend.tracing.outside.repeated import OutsideRead
from bwcompiler.ir.contracts.call_signature import OfClass, Read


def can_be_rebound(value: Any) -> bool:
    """Whether another one of its class may stand in its place: an object of the user's, a list or dictionary."""
    return type(value) in (list, dict) or has_own_attributes(value)


def rebased(reads: Sequence[OutsideRead], roots: Sequence[tuple[OutsideRead, Any]], others: Sequence[Any] = ()) -> list[OutsideRead] | None:
    """The reads, those of the roots' objects, and of what these hold, being of what is found there.

    roots: where objects are found, with the objects that the reads are of.  others: objects that are found in other ways.  None where
    an object is found in two ways: then not all of them need be replaced by one.
    """
    places = {id(value): outside.read._replace(expected=None) for outside, value in roots}
    own = {outside.read.place for outside, _ in roots}
    found = [outside._replace(read=outside.read._replace(expected=OfClass.of(value))) for outside, value in roots]
    left = [outside for outside in reads if outside.read.place not in own]
    going = len(places) == len(roots)
    while going:
        going, later = False, []
        for outside in left:
            base = places.get(id(outside.read.base))
            if base is None:
                later.append(outside)
                continue
            going, expected = True, outside.read.expected
            read = Read(outside.read.kind, base, outside.read.key, expected, outside.read.tree)
            if can_be_rebound(expected):
                if id(expected) in places:
                    return None
                places[id(expected)] = read._replace(expected=None)
                read = read._replace(expected=OfClass.of(expected))
            found.append(outside._replace(read=read))
        left = later
    elsewhere = [*[outside.read.expected for outside in left], *[outside.read.base for outside, _ in roots], *others]
    if len(places) < len(roots) or any(id(value) in places for value in elsewhere):
        return None
    return [*found, *left]


def followed(reads: list[OutsideRead], rebound: Sequence[OutsideRead], fun: Any, statics: Sequence[Any]) -> list[OutsideRead]:
    """The reads of a function, what is of objects that were seen to be replaced being of whatever stands in their place, if that can be."""
    roots = [(found, found.read.look()) for found in rebound]
    found = rebased(reads, roots, [*_held_by(fun), *statics]) if roots else None
    return reads if found is None else found


def _held_by(fun: Any) -> list[Any]:
    """Objects whose method a function is, and what it is bound to."""
    found: list[Any] = []
    while fun is not None:
        if isinstance(fun, types.MethodType | functools.partial):
            found += [getattr(fun, "__self__", None), *getattr(fun, "args", ()), *getattr(fun, "keywords", {}).values()]
        else:
            found.append(fun)
        fun = fun.func if isinstance(fun, functools.partial) else getattr(fun, "__wrapped__", None)
    return found
