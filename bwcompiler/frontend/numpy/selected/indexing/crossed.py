"""Positions that masks select, along several axes of what they are indices of: x[np.ix_(rows, columns)], x[rows[:, None], columns]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler.frontend.numpy.selected.lines import elementwise, made, parts_of, spread
from bwcompiler.frontend.tracing.indexing.grids import Grid
from bwcompiler.frontend.tracing.indexing.index_parsing import is_mask
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection, refuse
from bwcompiler.frontend.tracing.tracer import Tracer


def are_crossed(entries: list[Any], in_a_row: Callable[[Any], Any]) -> bool:
    """Whether positions lie along several axes, or stand beside arrays; in_a_row: what those along one axis, behind a new one, are without
    it, or None."""
    if any(isinstance(one, Grid) or (isinstance(one, Selection) and one.ndim > 1 and in_a_row(one) is None) for one in entries):
        return True
    arrays = [one for one in entries if isinstance(one, Tracer | np.ndarray | list) and in_a_row(one) is None and np.ndim(one)]
    return bool(arrays) and any(isinstance(one, Selection) for one in entries) and not any(map(is_mask, arrays))


def _broadcast(*arrays: Any) -> tuple[Any, ...]:
    shape = np.broadcast_shapes(*map(np.shape, arrays))
    return tuple([np.broadcast_to(array, shape) for array in arrays])


def crossed(entries: list[Any]) -> tuple[list[Any], int, Any]:
    """The entries with positions that broadcast against each other as arrays with room for all; where their axes are; one of them."""
    advanced = [place for place, entry in enumerate(entries) if not (isinstance(entry, slice) or entry is None)]
    if any((isinstance(entries[place], Tracer) and is_mask(entries[place])) or entries[place] is Ellipsis
           or parts_of(entries[place]).array.dtype.kind not in "iu" for place in advanced):
        refuse("an index of another kind beside it")
    lead = advanced[0] if advanced == list(range(advanced[0], advanced[-1] + 1)) else 0
    found, one = list(entries), None
    for place, one in zip(advanced, elementwise(_broadcast, *[entries[place] for place in advanced]), strict=True):
        given = parts_of(one)
        found[place] = np.where(spread(given), given.array, 0)
    return found, lead, one


def by_crossed(x: Any, entries: list[Any]) -> Any:
    """x[entries]."""
    positions, lead, one = crossed(entries)
    return made(x[tuple(positions)], {axis + lead: line for axis, line in parts_of(one).lines.items()})
