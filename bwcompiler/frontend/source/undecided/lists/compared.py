"""Comparisons of lists with gaps (`gaps`) with others: `kept == []`, `kept != [x, y]`."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler.frontend.source.library import plain
from bwcompiler.frontend.source.undecided.lists.gaps import has_gaps, length, refuse
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer


def have_gaps(x: Any, y: Any) -> bool:
    """Whether one of two sequences is such a list, or one of two dictionaries holds one."""
    return any(any(map(has_gaps, one.values())) if isinstance(one, dict) else has_gaps(one) for one in (x, y))


def compared(name: str, x: Any, y: Any) -> Any:
    """An operator that compares, by its name in `operator`, of two sequences."""
    if isinstance(x, dict) or isinstance(y, dict):
        refuse("a comparison of dictionaries")
    if name not in ("eq", "ne"):
        refuse("the order")
    found = _are_equal(x, y)
    if name == "eq":
        return found
    return np.logical_not(found) if isinstance(found, Tracer) else not found


def _are_equal(x: Any, y: Any) -> Any:
    if type(x) is not type(y):
        return False
    if not x or not y:
        return length(x if x else y) == 0
    return HANDLERS["call_of"](plain.are_equal)(x, y)
