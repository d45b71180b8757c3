"""What the sides of a branch give, made to be of one structure, so that it can be merged: numbers beside arrays (`two_shapes.py`), tuples
with texts beside others or None (`tuples.py`), lists of different lengths (`bounded/padded.py`), elements of a list beside those that may
not be there (`lists/gaps.py`).

So is what a loop carries of them, which begins with one of the two.

The sides are traced once, which shows what they give, and then again with that fitted.  Branches in sides would be traced as often as two
to the power of their depth; so it is remembered, by the text of a branch, what was fitted there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from bwcompiler.frontend.source.undecided.kinds.choices import Choice, becomes_choice
from bwcompiler.frontend.source.undecided.kinds.choices import fitted as fitted_choice
from bwcompiler.frontend.source.undecided.kinds.tuples import Places, becomes_wider, places_of, signature
from bwcompiler.frontend.source.undecided.kinds.tuples import fitted as fitted_tuple
from bwcompiler.frontend.source.undecided.kinds.two_shapes import Pattern, TwoShapes, becomes_two_shapes, pattern_of
from bwcompiler.frontend.source.undecided.kinds.two_shapes import fitted as fitted_shape
from bwcompiler.frontend.source.undecided.kinds.two_shapes import fitted_like as fitted_to_shapes
from bwcompiler.frontend.source.undecided.lists.gaps import Maybe, as_maybe, becomes_maybe
from bwcompiler.frontend.source.variables import UNBOUND, nothing_like, same
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.policy import Policy


class Fit(ABC):
    """Makes of what a side gives a variable what both sides can give."""

    of_lists = False               # of a list, before it is taken apart

    @abstractmethod
    def __call__(self, end: Any) -> Any: ...

    @abstractmethod
    def is_more_than(self, before: Fit | None) -> bool:
        """Whether this fits more than what an earlier attempt had for the variable."""


class _ToMaybe(Fit):
    def __call__(self, end: Any) -> Any:
        return as_maybe(end)

    def is_more_than(self, before: Fit | None) -> bool:
        return type(before) is not _ToMaybe


class _ToShape(Fit):
    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern

    def __call__(self, end: Any) -> Any:
        return fitted_shape(end, self.pattern)

    def is_more_than(self, before: Fit | None) -> bool:
        return type(before) is not _ToShape or self.pattern.shape != before.pattern.shape


class _ToTuple(Fit):
    def __init__(self, places: Places) -> None:
        self.places = places

    def __call__(self, end: Any) -> Any:
        return fitted_tuple(end, self.places)

    def is_more_than(self, before: Fit | None) -> bool:
        return type(before) is not _ToTuple or signature(self.places) != signature(before.places)


class Fitting:
    """What is fitted in one branch, per variable.

    padding  gives the fit of two lists, if they need one; kept: variables for whose lists there is something better.
    """

    def __init__(self, policy: Policy, sides: Sequence[Callable[[], Any]], padding: Callable[[Any, Any], Fit | None],
                 kept: Collection[str]) -> None:
        self.padding = padding
        self.kept = kept
        codes = tuple([getattr(side, "__code__", None) for side in sides])
        self.memory: dict[str, Fit] = policy.fitting.setdefault(codes, {}) if None not in codes else {}
        self.remembered = set(self.memory)
        self.how = dict(self.memory)

    def apply(self, ends: dict[str, Any]) -> None:
        """Fit what a side gives, lists apart."""
        ends.update({name: fit(ends[name]) for name, fit in self.how.items() if name in ends and not fit.of_lists})

    def of_list(self, name: str, end: Any) -> Any:
        """What a variable or part of one becomes, before it is taken apart: another list, if lists of two lengths are to be one."""
        fit = self.how.get(name)
        return fit(end) if fit is not None and fit.of_lists else end

    @property
    def pads(self) -> bool:
        """Whether there are lists that are made as long as others."""
        return any(fit.of_lists for fit in self.how.values())

    def has_to_change(self, ends: tuple[dict[str, Any], dict[str, Any]], values: tuple[Collection[str], Collection[str]]) -> bool:
        """Whether the sides have to be traced again: they give other things than they were fitted for, or need no fitting.

        values  variables that are numbers and arrays alone, on each side.
        """
        unneeded = {name for name in self.remembered & self.how.keys() if _is_known(*[end.get(name) for end in ends])}
        self.remembered -= unneeded
        fits = {name: self._fit(name, ends, values) for name in ends[0]}
        found = {name: fit for name, fit in fits.items() if fit is not None and fit.is_more_than(self.how.get(name))}
        for name in unneeded:
            del self.how[name]
        self.how |= found
        self.memory |= found
        return bool(unneeded or found)

    def _fit(self, name: str, ends: tuple[Mapping[str, Any], Mapping[str, Any]],
             values: tuple[Collection[str], Collection[str]]) -> Fit | None:
        one, other = ends[0][name], ends[1].get(name)
        if name not in ends[1] or same(one, other):
            return None
        if (type(one) is Maybe) != (type(other) is Maybe) and one is not UNBOUND and other is not UNBOUND:
            return _ToMaybe()
        pattern = pattern_of(one, other) if all(name in known for known in values) else None
        if pattern is not None:
            return _ToShape(pattern)
        places = places_of(one, other)
        if places is not None:
            return _ToTuple(places)
        return None if name in self.kept else self.padding(one, other)


def _is_there(element: Maybe) -> bool:
    """Whether an element surely is."""
    return isinstance(element.present, bool | np.bool_) and bool(element.present)


def _is_known(one: Any, other: Any) -> bool:
    """Whether it is a number on both sides, or an array; or an element that is there, or a list all of whose elements are."""
    if type(one) is type(other) is Maybe:
        return _is_there(one) and _is_there(other)
    if type(one) is type(other) and isinstance(one, list | tuple):
        return len(one) == len(other) > 0 and all(type(item) is Maybe and _is_there(item) for item in (*one, *other))
    return type(one) is type(other) is TwoShapes and isinstance(one.is_array, bool) and one.is_array is other.is_array


# ----- what loops carry
def becomes_undecided(loop: Any, name: str, start: Any, end: Any) -> bool:
    """Whether a variable of a loop, of one kind before an iteration and of another after it, is to be carried as either."""
    return becomes_maybe(loop, name, start, end) or becomes_two_shapes(loop, name, start, end) or becomes_wider(
        loop, name, start, end) or becomes_choice(loop, name, start, end, nothing_like)


def fitted_like(end: Any, start: Any) -> Any:
    """What an iteration gives the next one, of a variable that is undecided; as it is where it has more than that."""
    if type(start) is Maybe:
        return as_maybe(end)
    if type(start) is not Choice:
        return fitted_to_shapes(end, start)
    places = places_of(start, end) if isinstance(start.value, tuple) else None
    return call(fitted_choice, end if places is None else fitted_tuple(end, places), start)
