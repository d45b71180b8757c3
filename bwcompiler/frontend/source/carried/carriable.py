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
    return not isinstance(x, list | dict) and bool(leaves) and all(is_number(leaf) or isinstance(leaf, Tracer) or hasattr(
        leaf, "__array_interface__") for leaf in leaves) and not any(map(_holds_none, leaves))


def _holds_none(leaf: Any) -> bool:
    """Whether it stands for an array that is not there yet: np.array([None, None])."""
    return isinstance(leaf, np.ndarray) and leaf.dtype == object and any(one is None for one in leaf.flat)
