"""Accumulation at positions that a mask selects, which may repeat: `np.add.at(y, labels[mask], x[mask])`, `np.bincount(labels[mask])`."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler.frontend.numpy.selected.indexing.items import focused, is_selecting, mask_of_places, write_selected
from bwcompiler.frontend.numpy.selected.packing import aligned, merged, require, selected
from bwcompiler.frontend.tracing.indexing.index_parsing import entries_of
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection, refuse
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer


def at(ufunc: Any, target: Any, index: Any, *operands: Any) -> None:
    """ufunc.at(target, index, *operands) with positions, operands or both selected by a mask."""
    entries = entries_of(index)
    if not isinstance(target, Tracer) or not any(isinstance(one, Tracer | Selection) for one in entries):
        refuse(f"np.{ufunc.__name__}.at")
    part, chosen, lead = focused(target, entries) if is_selecting(entries) else (target, [], 0)
    if chosen and not lead and mask_of_places(part, chosen) is None:
        write_selected(part, chosen, operands[0] if operands else 0,
                       lambda room, places, value: ufunc.at(room, places, *([value] if operands else [])))
    elif lead:
        refuse(f"np.{ufunc.__name__}.at such positions")
    else:                                                                       # by a mask, each element once
        target[index] = ufunc(target[index], *operands)


HANDLERS["selected_at"] = at


@selected(np.bincount)
def bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> Any:
    size = int(minlength)
    given = [one for one in (x, weights) if one is not None]
    if not all(isinstance(one, Selection) and one.ndim == 1 for one in given):
        refuse("np.bincount of numbers or weights that are not selected")
    numbers, *others = aligned([merged(one) for one in given])
    if size < 1:
        return np.bincount(numbers.array, minlength=size)                       # raises the error with the hint
    outside = np.logical_or(numbers.array < 0, numbers.array >= size)
    require(np.logical_not(np.any(np.logical_and(numbers.where, outside))),
            ValueError(f"np.bincount of traced numbers: the result has minlength={size} elements, but some numbers are negative or not "
                       "less than that\n  hint: a larger minlength"))
    places = np.where(numbers.where, numbers.array, size)                       # an extra last element receives unselected values
    added = np.where(others[0].where, others[0].array, 0) if others else None
    return np.bincount(places, added, minlength=size + 1)[:size]
