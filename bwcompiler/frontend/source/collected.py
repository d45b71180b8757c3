"""Comprehensions that make dictionaries and sets: data may decide what is in them, or what the keys are.

They are made as they are written where everything is known.  Otherwise they are made again from the beginning, one element after the
other, as statements would fill them: the parts of such a comprehension only compute (`syntax.comprehensions`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bwcompiler.frontend.source.bounded.dictionaries import made as dictionary_made
from bwcompiler.frontend.source.bounded.sets import made as set_made
from bwcompiler.frontend.source.changes import changed, own
from bwcompiler.frontend.source.concrete.texts import require_known_keys
from bwcompiler.frontend.source.decisions import NO_VARIABLES, decided, if_, nothing
from bwcompiler.frontend.source.undecided.lookups import has_choices
from bwcompiler.frontend.source.variables import open_policy, parts_of
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer

_MADE: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {"dict": (dict, dictionary_made), "set": (set, set_made)}


class _Undecided(Exception):
    """Data decide whether an element is there, or what its key is."""


class _Known:
    """What is being made, as long as everything about it is known."""

    __slots__ = ("elements",)

    def __init__(self, elements: Any) -> None:
        self.elements = elements


def collected(kind: str, fill: Callable[[Any], Any]) -> Any:
    """The dictionary or set that a comprehension makes: fill(found) puts its elements into it."""
    empty, made = _MADE[kind]
    known = _Known(empty())
    try:
        fill(known)
        return made(own(require_known_keys(known.elements)))
    except _Undecided:
        found = made(own(empty()))
        fill(found)
        return found


def sifted_into(found: Any, test: Any, then: Callable[[], Any]) -> None:
    """Elements that are put into it where a test holds."""
    if type(found) is not _Known:
        if_(test, then, nothing, NO_VARIABLES)
        return
    truth = decided(test)
    if isinstance(truth, Tracer):
        raise _Undecided
    if truth:
        then()


def put(found: Any, key: Any, *value: Any) -> None:
    """An element of it; value: of that key."""
    if type(found) is not _Known:
        if value:
            changed(found)[key], = value
        else:
            HANDLERS["call_of"](found.add)(key)
        return
    if open_policy() is not None and (any(isinstance(part, Tracer) for part in parts_of(key)) or has_choices(key)):
        raise _Undecided
    if value:
        found.elements[key], = value
    else:
        found.elements.add(key)
