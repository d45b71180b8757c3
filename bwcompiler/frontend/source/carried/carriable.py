"""What a captured loop can carry from one iteration to the next as values."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.frontend.source.effects.places import new_in_loop
from bwcompiler.frontend.source.variables import UNBOUND, Names, is_number, not_capturable
from bwcompiler.frontend.tracing.tracer import Tracer


def can_be_carried(x: Any) -> bool:
    """Whether it is made of numbers and arrays, and no list that others may hold."""
    leaves = tree.leaves(x)
    return not isinstance(x, list | dict) and bool(leaves) and all(
        is_number(leaf) or isinstance(leaf, Tracer) or _is_array_of_numbers(leaf) for leaf in leaves)


def require_carriable(names: Names, name: str, start: Any, end: Any) -> None:
    """Refuse a variable that an iteration rebinds, where the next one cannot have it as a value."""
    if start is UNBOUND and names.is_attribute(name):
        new_in_loop(name)
    if start is UNBOUND or end is UNBOUND or not can_be_carried(start) or not can_be_carried(end):
        not_capturable(f"{name} is rebound, and is no array or number on entry and after an iteration",
                       peel=start is None or start is UNBOUND or can_be_carried(end))


def _is_array_of_numbers(x: Any) -> bool:
    """Also one of objects that are numbers; np.array([None, None]) stands for an array that is not there yet."""
    if not hasattr(x, "__array_interface__"):
        return False
    kind = np.asarray(x).dtype.kind
    return kind in "biufc" or (kind == "O" and all(is_number(one) or isinstance(one, Tracer) for one in x.flat))
