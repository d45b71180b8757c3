"""Changes of an object of which data say which one of several it is: `first = min(servers, key=...); first.free_at = t`.

Each of the objects is changed in a branch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bwcompiler.frontend.source.effects.places import is_plain_object
from bwcompiler.frontend.source.undecided.kinds.choices import Choice, attribute
from bwcompiler.frontend.tracing.registry import HANDLERS

_MOST = 64                     # objects


def is_one_of_objects(x: Choice) -> bool:
    """Whether it is always one of a few objects of the user's classes."""
    things = x.options.things
    return not x.has_value and len(things) <= _MOST and all(is_plain_object(thing) for thing in things)


class OneOf:
    """One of several objects, of which an attribute is assigned to."""

    __slots__ = ("_bw_choice",)

    def __init__(self, choice: Choice) -> None:
        object.__setattr__(self, "_bw_choice", choice)

    def __getattr__(self, name: str) -> Any:
        return attribute(self._bw_choice, name)

    def __setattr__(self, name: str, value: Any) -> None:
        def side(thing: Any) -> Callable[[], None]:
            return lambda: setattr(HANDLERS["altered"](thing), name, value)
        things = self._bw_choice.options.things
        for place, thing in enumerate(things):
            if len(things) == 1:
                side(thing)()
            else:
                HANDLERS["choose"](self._bw_choice.which == place, side(thing), lambda: None)
