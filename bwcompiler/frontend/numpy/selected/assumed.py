"""Selections and grids as arrays of the sizes that they have for the arguments of this call (`tracing/assumed.py`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler.frontend.numpy.selected.lines import along, parts_of, without_line
from bwcompiler.frontend.numpy.selected.packing import number, packed
from bwcompiler.frontend.tracing.assumed import assumed_number
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.indexing.data_slices import DataSlice
from bwcompiler.frontend.tracing.indexing.grids import Grid
from bwcompiler.frontend.tracing.indexing.masked_selection import SizedByData
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer


def of_assumed_sizes(found: Any) -> Any:
    """What a function gives, with arrays in the place of selections whose number of elements is had, also in a tuple or list."""
    if isinstance(found, SizedByData):
        return _with_size(found)
    if not isinstance(found, tuple | list) or not any(isinstance(one, SizedByData) for one in found):
        return found
    parts = [_with_size(one) if isinstance(one, SizedByData) else one for one in found]
    return type(found)(*parts) if hasattr(found, "_fields") else type(found)(parts)


HANDLERS["of_assumed_sizes"] = of_assumed_sizes


def _with_size(x: SizedByData) -> Any:
    if isinstance(x, DataSlice):
        start, stop = _number(x.start), _number(x.stop)
        return x if start is None or stop is None else x.array[(*[slice(None)] * x.lead, slice(start, stop))]
    if isinstance(x, Grid) and x.is_view:
        return _view(x)
    parts = parts_of(x)
    for axis in parts.lines:
        selected = packed(along(parts, axis))
        size = _number(number(selected))
        if size is None:
            return x
        parts = without_line(parts, axis, selected.array[(*[slice(None)] * axis, slice(0, size))])
    return parts.array


def _view(x: Grid) -> Any:
    """a[i:j, :k], of which each line is a slice."""
    index = [slice(None)] * x.ndim
    for axis, line in x.lines.items():
        start, size = _number(np.argmax(line.where)), _number(number(along(parts_of(x), axis)))
        if start is None or size is None:
            return x
        index[axis] = slice(start, start + size)
    return x.array[tuple(index)]


def _number(count: Any) -> int | None:
    found = assumed_number(value_of(count)) if isinstance(count, Tracer) else count
    return None if found is None else int(found)
