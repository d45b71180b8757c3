"""Operands with lines along axes, which say where elements are: a selection has one, a grid several (`tracing/indexing/grids.py`).

Here they are taken apart, matched with those of other operands, and put together again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bwcompiler.frontend.numpy.selected.packing import aligned, fixed, merged, prefix
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.indexing.grids import Grid, Line
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection, refuse
from bwcompiler.frontend.tracing.operands import as_tracer, is_traced
from bwcompiler.frontend.tracing.refusals.demands import comes_of_integer_arrays


class Parts(NamedTuple):
    """An operand: all elements, with the lines of those of its axes of which data say how long they are."""

    array: Any
    lines: dict[int, Line]


def parts_of(x: Any) -> Parts:
    """The parts of a grid, a selection, or an array of known extents."""
    if isinstance(x, Grid):
        return Parts(x.array, x.lines)
    if isinstance(x, Selection):
        rows = merged(x)
        return Parts(rows.array, {rows.lead: Line(rows.where, rows.count)})
    return Parts(as_tracer(x) if is_traced(x) else x, {})


def made(array: Any, lines: dict[int, Line]) -> Any:
    """A grid, a selection or an array: of so many lines."""
    if len(lines) > 1:
        require_of_data(lines.values())
        return Grid(array, lines)
    return next((Selection(array, line.where, axis, line.count) for axis, line in lines.items()), array)


def require_of_data(lines: Iterable[Line]) -> None:
    """Refuse masks that arrays of integers give, which are arguments: with their contents compiled in, matrices have no more room than
    they need."""
    if all(comes_of_integer_arrays(value_of(line.where)) for line in lines):
        refuse("a matrix of what it selects")


def first(array: Any, axis: int, count: Any) -> Line:
    """The line of the first elements along an axis."""
    found = prefix(array, count, axis)
    return Line(found.where, found.count)


def along(parts: Parts, axis: int) -> Selection:
    """The array as a selection along one of its lines, which has the room of all others."""
    line = parts.lines[axis]
    return Selection(parts.array, line.where, axis, line.count)


def with_line(parts: Parts, axis: int, x: Selection) -> Parts:
    """The array of x, which is selected along an axis, in the place of another one."""
    return Parts(x.array, {**parts.lines, axis: Line(x.where, x.count)})


def without_line(parts: Parts, axis: int, array: Any) -> Parts:
    """An array of known extent along an axis."""
    return Parts(array, {place: line for place, line in parts.lines.items() if place != axis})


def matched(operands: list[Parts], axes: Sequence[int | None]) -> tuple[list[Parts], Line | None]:
    """The operands with equal lines along an axis each, those that have it; and that line, None where the extent is known."""
    holders = [place for place, axis in enumerate(axes) if axis is not None and axis in operands[place].lines]
    if not holders:
        return operands, None
    given = [(place, axis) for place, axis in enumerate(axes) if axis is not None]
    sizes = {np.shape(operands[place].array)[axis] for place, axis in given if place not in holders} - {1}
    found = list(operands)
    if sizes:                                      # as many elements as another array has
        for place, axis in given:
            if place in holders:
                found[place] = without_line(found[place], axis, fixed(along(found[place], axis), min(sizes)))
        return found, None
    chosen = [along(found[place], axis) for place, axis in given if place in holders]
    for (place, axis), x in zip([one for one in given if one[0] in holders], aligned(chosen, broadcast=True), strict=True):
        found[place] = with_line(found[place], axis, x)
    first = found[holders[0]].lines[axes[holders[0]] or 0]
    return found, first


def elementwise(function: Callable[..., Any], *inputs: Any) -> Any:
    """function(*inputs) of grids, selections and arrays, which broadcast against each other."""
    operands = [parts_of(x) for x in inputs]
    rank = max([np.ndim(one.array) for one in operands])
    lines: dict[int, Line] = {}
    for place in range(rank):
        axes = [axis if (axis := place - rank + np.ndim(one.array)) >= 0 else None for one in operands]
        operands, line = matched(operands, axes)
        if line is not None:
            lines[place] = line
    found = function(*[one.array for one in operands])
    return tuple([made(one, lines) for one in found]) if isinstance(found, tuple) else made(found, lines)


def spread(parts: Parts, axes: Sequence[int] | None = None) -> Any:
    """Where there are elements, by the lines of some axes, in the shape of all."""
    rank, found = np.ndim(parts.array), as_tracer(np.ones((), bool))
    for axis, line in parts.lines.items():
        if axes is None or axis in axes:
            found = np.logical_and(found, line.where[(*[None] * axis, slice(None), *[None] * (rank - axis - 1))])
    return np.broadcast_to(found, np.shape(parts.array))


def zeroed(parts: Parts) -> Any:
    """All elements, with 0 where there are none: what stands there may be nan, and a product would add 0 times that to cotangents."""
    return np.where(spread(parts), parts.array, np.zeros((), parts.array.dtype)[()]) if parts.lines else parts.array
