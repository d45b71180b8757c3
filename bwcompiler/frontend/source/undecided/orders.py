"""Comparisons of tuples and lists with parts that depend on data, `(i, j) == source` or `max((cost, name), best)`.

They are compared lexicographically, as in Python: a part counts only if all parts before it are equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler.frontend.source.concrete.contents import binary
from bwcompiler.frontend.source.library.builtin_functions import choose_number
from bwcompiler.frontend.source.undecided.choices import Choice
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer


def is_undecided(x: Any) -> bool:
    """Whether data decides what a number, string or object is, or a part of a tuple or list."""
    return isinstance(x, Tracer | Choice) or (isinstance(x, tuple | list) and any(map(is_undecided, x)))


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


HANDLERS.update(are_undecided=are_undecided, compared=compared, is_undecided=is_undecided)
