"""What a captured loop can carry from one iteration to the next as values."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.frontend.source.variables import is_number
from bwcompiler.frontend.tracing.tracer import Tracer


def can_be_carried(x: Any) -> bool:
    """Whether it is made of numbers and arrays, and no list that others may hold."""
    leaves = tree.leaves(x)
    return not isinstance(x, list | dict) and bool(leaves) and all(
        is_number(leaf) or isinstance(leaf, Tracer) or _is_array_of_numbers(leaf) for leaf in leaves)


def _is_array_of_numbers(x: Any) -> bool:
    """Also one of objects that are numbers; np.array([None, None]) stands for an array that is not there yet."""
    if not hasattr(x, "__array_interface__"):
        return False
    kind = np.asarray(x).dtype.kind
    return kind in "biufc" or (kind == "O" and all(is_number(one) or isinstance(one, Tracer) for one in x.flat))
