"""Tuples of which data choose one, with texts or None in them: `event = ("up", k, x[k])` on one side, `("down", k, None)` or None on the
other one.

What a side of a branch gives is fitted to what the other one gives: in the place of a text stands a choice, with all texts that there may
be, so that all such tuples have one structure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bwcompiler import tree
from bwcompiler.frontend.source.undecided.kinds.choices import (
    ABSENT,
    VALUE,
    Choice,
    Options,
    is_known,
    is_unsure,
    joined,
    number_in,
    parts,
)
from bwcompiler.frontend.source.variables import nothing_like

MOST = 50                      # parts


class Place(NamedTuple):
    """What a place of a tuple may have: one of these things; a value, like `nothing`; a tuple of such places."""

    things: tuple[Any, ...]
    nothing: Any
    has_value: bool


class Places(NamedTuple):
    """The places of a tuple."""

    kind: type
    inside: tuple[Any, ...]


def places_of(x: Any, y: Any) -> Places | None:
    """What covers two things of which one is a tuple with known things in it, and the other one None or such a tuple, or either."""
    found = [_tuple_in(one) for one in (x, y)]
    tuples = [one for one in found if isinstance(one, tuple)]
    if not tuples or any(one is NotImplemented for one in found) or not any(map(_has_known, tuples)):
        return None
    if len(tuples) == 2 and type(x) is not Choice and type(y) is not Choice:           # both are taken apart
        return None
    if len(tuples) == 2 and tree.structure(tuples[0]) == tree.structure(tuples[1]) and not any(map(_has_bare, tuples)):
        return None
    return _places(tuples)


def signature(places: Any) -> Any:
    """Equal for places that give tuples of one structure."""
    if isinstance(places, Places):
        return places.kind, tuple(map(signature, places.inside))
    return tuple(map(repr, places.things)), places.has_value


def _tuple_in(x: Any) -> Any:
    """The tuple that something is or may be; None where it is None so far; NotImplemented of anything else."""
    if type(x) is Choice and not is_unsure(x):
        value = x.value if x.has_value else None
        return value if isinstance(value, tuple | None) else NotImplemented
    return x if x is None or isinstance(x, tuple) else NotImplemented


def _has_known(x: tuple[Any, ...]) -> bool:
    return any(_has_known(part) if isinstance(part, tuple) else is_known(part) or type(part) is Choice for part in x)


def _has_bare(x: tuple[Any, ...]) -> bool:
    return any(_has_bare(part) if isinstance(part, tuple) else is_known(part) for part in x)


def _places(tuples: Sequence[tuple[Any, ...]]) -> Places | None:
    kind, length = type(tuples[0]), len(tuples[0])
    if any(type(one) is not kind or len(one) != length for one in tuples) or length > MOST:
        return None
    inside = [_place([one[number] for one in tuples]) for number in range(length)]
    return None if any(place is None for place in inside) else Places(kind, tuple(inside))


def _place(found: Sequence[Any]) -> Any:
    if all(isinstance(one, tuple) for one in found):
        return _places(found)
    things: list[Any] = []
    values = []
    for one in found:
        known, value, is_value = parts(one)
        things += known
        values += [nothing_like(value)] if is_value else []
    leaves = [tree.leaves(value) for value in values]
    if any(len(one) != 1 or not isinstance(one[0], np.ndarray | np.generic | bool | int | float | complex) for one in leaves):
        return None
    if len({np.shape(value) for value in values}) > 1 or any(isinstance(one, Choice) and is_unsure(one) for one in found):
        return None
    ordered = sorted(Options(things).things, key=repr)             # in one order, wherever they come from
    return Place(tuple(ordered), values[0] if values else None, bool(values))


def fitted(x: Any, places: Places) -> Any:
    """What a variable holds, with choices in the places of what it knows."""
    if type(x) is Choice and isinstance(x.value, tuple):
        return joined(x.which, fitted(x.value, places), x.options, x.has_value)
    if not isinstance(x, tuple) or type(x) is not places.kind or len(x) != len(places.inside):
        return x
    found = [_fitted_part(part, place) for part, place in zip(x, places.inside, strict=True)]
    return type(x)(*found) if hasattr(type(x), "_fields") else type(x)(found)


def _fitted_part(x: Any, place: Any) -> Any:
    if isinstance(place, Places):
        return fitted(x, place)
    if not place.things:
        return x
    options = Options(place.things)
    things, value, is_value = parts(x)
    if any(options.place(thing) == ABSENT for thing in things) or (is_value and not place.has_value):
        return x                                   # it has more than was known when this was traced before
    which = np.int64(VALUE) if is_value and type(x) is not Choice else number_in(x, options)
    return joined(which, value if is_value else place.nothing, options, place.has_value)


# ----- what a loop carries
def becomes_wider(loop: Any, name: str, start: Any, end: Any) -> bool:
    """Whether a loop is to carry a tuple, or None, with more known things in its places than it began with."""
    if type(start) is not Choice or type(end) is not Choice or tree.structure(start) == tree.structure(end):
        return False
    places = places_of(start, end)
    if places is None:
        return False
    loop.entry[name] = fitted(start, places)
    loop.kinds.pop(name, None)
    return tree.structure(loop.entry[name]) != tree.structure(start)
