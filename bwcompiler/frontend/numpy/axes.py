"""Axis arguments of NumPy's functions."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

NOTHING = np._NoValue          # a missing argument, if None has a meaning of its own
Axes = tuple[int, ...]


def normalize_axes(axis: Any, rank: int) -> Axes:
    """An axis argument (None: all) as sorted non-negative axes; raises numpy.exceptions.AxisError."""
    if axis is None or axis is NOTHING:
        return tuple(range(rank))
    axes = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    found = [normalize_axis(one, rank) for one in axes]
    if len(set(found)) != len(found):
        raise ValueError("duplicate value in 'axis'")
    return tuple(sorted(found))


def refuse_list(axis: Any) -> None:
    """Raise TypeError for a list of axes: reductions by ufuncs take tuples."""
    if isinstance(axis, list):
        raise TypeError(f"'list' object cannot be interpreted as an integer\n  hint: axis={tuple(axis)}")


def reduction_axes(axis: Any, rank: int) -> Axes:
    """Like `normalize_axes`, for reductions by ufunc.reduce, which accepts axis=0 and axis=-1 for 0-d arrays, and no lists."""
    refuse_list(axis)
    if rank == 0 and isinstance(axis, int | np.integer) and axis in (0, -1):
        return ()
    return normalize_axes(axis, rank)


def axes_in_order(axis: Any, rank: int) -> Axes:
    """Distinct axes in the given order, one or several."""
    found = tuple([normalize_axis(one, rank) for one in (axis if isinstance(axis, tuple | list) else (axis,))])
    if len(set(found)) != len(found):
        raise ValueError("repeated axis")
    return found


def normalize_axis(axis: Any, rank: int) -> int:
    """One axis, counted from the end where negative."""
    position = operator.index(axis)
    if not -rank <= position < rank:
        raise np.exceptions.AxisError(position, rank)
    return int(position) % rank if rank else 0
