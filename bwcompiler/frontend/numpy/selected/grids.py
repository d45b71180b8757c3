"""Arrays of which data say how long several axes are (`tracing/indexing/grids.py`): parts, elementwise functions, reductions, shapes."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bwcompiler.frontend.numpy.selected.packing import aligned, copied, fixed, has_mask_of, lowest, merged, packed, prefix, require
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.indexing.grids import Grid, Line
from bwcompiler.frontend.tracing.indexing.masked_selection import GRIDDED, Selection, SizedByData, refuse
from bwcompiler.frontend.tracing.operands import as_tracer, is_traced, value_as
from bwcompiler.frontend.tracing.refusals.demands import comes_of_integer_arrays
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.types import I64


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


# ----- shapes
def _extent(line: Line) -> Any:
    return fresh(value_as(np.sum(line.where) if line.count is None else line.count, I64), int)


def shape(x: Grid) -> tuple[Any, ...]:
    """x.shape: traced integers for the lines."""
    return tuple([_extent(x.lines[axis]) if axis in x.lines else extent for axis, extent in enumerate(x.array.shape)])


def size(x: Grid) -> Any:
    """x.size."""
    return math.prod(shape(x))


HANDLERS.update(shape_of_grid=shape, size_of_grid=size)


def ndim(a: Any) -> int:
    return int(a.ndim)


def size_along(a: Grid, axis: Any = None) -> Any:
    return size(a) if axis is None else shape(a)[_axis(a, axis)]


def _axis(a: Grid, axis: Any) -> int:
    found = int(axis)
    if not -a.ndim <= found < a.ndim:
        raise np.exceptions.AxisError(found, a.ndim)
    return found % a.ndim


def copy(a: Grid, order: Any = "K", subok: Any = False) -> Any:
    return copied(a)


def transpose(a: Any, axes: Any = None) -> Any:
    order = tuple(reversed(range(a.ndim))) if axes is None else tuple([_axis(a, one) for one in axes])
    found = Grid(np.transpose(a.array, order), {order.index(axis): line for axis, line in a.lines.items()}, a.is_view)
    return found if a.is_view else seen_as(a, found)


def ravel(a: Any, order: Any = "C") -> Any:
    if order != "C":
        refuse("np.ravel in another order")
    parts = parts_of(a)
    return seen_as(a, Selection(np.ravel(a.array), np.ravel(spread(parts))))


def reshape(a: Any, /, shape: Any = None, order: Any = "C", **options: Any) -> Any:
    return np.reshape(ravel(a, order), shape, **options)


def seen_as(x: Grid, view: Any) -> Any:
    """A view of x, which does not follow later changes: neither must change while there are both."""
    if x.is_view and (isinstance(view, SizedByData) or np.ndim(view)):
        refuse("a view of it")
    if isinstance(view, SizedByData):
        view.viewed = x if x.viewed is None else x.viewed  # type: ignore[attr-defined]
        view.viewed.views.append(weakref.ref(view))  # type: ignore[attr-defined]
    elif np.ndim(view):
        x.is_seen = True
    return view


# ----- reductions
def _axes(a: Grid, axis: Any) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(a.ndim))
    return tuple([_axis(a, one) for one in (axis if isinstance(axis, tuple | list) else (axis,))])


def _left(a: Grid, axes: tuple[int, ...], keepdims: bool) -> dict[int, Line]:
    """The lines that are left when axes are reduced, by the axes of the result."""
    return {axis if keepdims else axis - sum(one < axis for one in axes): line for axis, line in a.lines.items() if axis not in axes}


def _reduction(function: Any) -> Callable[..., Any]:
    def handler(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, **options: Any) -> Any:
        if out is not None or "where" in options:
            refuse(f"np.{function.__name__} with out= or where=")
        if dtype is not None:
            options["dtype"] = dtype
        axes = _axes(a, axis)
        found = function(a.array, axis=axes, where=spread(parts_of(a), axes), keepdims=bool(keepdims), **options)
        return made(found, _left(a, axes, bool(keepdims)))
    return handler


def _without_dtype(function: Any) -> Callable[..., Any]:
    plain = _reduction(function)
    return lambda a, axis=None, out=None, keepdims=False, **options: plain(a, axis, None, out, keepdims, **options)


def _extreme(function: Any) -> Callable[..., Any]:
    largest = function in (np.max, np.amax)

    def handler(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, **options: Any) -> Any:
        if out is not None or options:
            refuse(f"np.{function.__name__} with out=, initial= or where=")
        axes = _axes(a, axis)
        for one in axes:
            if one in a.lines:
                require(_extent(a.lines[one]) > 0, ValueError(f"{function.__name__} of no elements: none is selected"))
        array = np.where(spread(parts_of(a), axes), a.array, lowest(a.dtype, largest))
        return made(function(array, axis=axes, keepdims=bool(keepdims)), _left(a, axes, bool(keepdims)))
    return handler


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
    axes = _axes(x, axis)
    if not (ord is None or (ord == "fro" and len(axes) == 2) or (ord == 2 and len(axes) == 1)):
        refuse(f"np.linalg.norm with ord={ord!r}")
    array = np.where(spread(parts_of(x), axes), x.array, np.zeros((), x.dtype)[()])
    if axis is None and ord is None:
        return np.linalg.norm(np.ravel(array))
    found = np.linalg.norm(array, axis=axes if len(axes) > 1 else axes[0], keepdims=bool(keepdims))
    return made(found, _left(x, axes, bool(keepdims)))


def diagonal(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
    if a.ndim != 2 or offset or {axis1 % 2, axis2 % 2} != {0, 1}:
        refuse("np.diagonal of more axes, or beside the diagonal,")
    rows, columns = square(a)
    return seen_as(a, Selection(np.diagonal(rows), columns.where, 0, columns.count))


def diag(v: Any, k: Any = 0) -> Any:
    return diagonal(v, k)


def trace(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None) -> Any:
    return np.sum(diagonal(a, offset, axis1, axis2), dtype=dtype)


def square(a: Grid) -> tuple[Any, Line]:
    """All elements of a matrix that has as many rows as columns, with one line for both."""
    rows, columns = along(Parts(a.array, a.lines), 0), Selection(np.swapaxes(a.array, 0, 1), a.lines[1].where, 0, a.lines[1].count)
    if has_mask_of(rows, columns):
        return a.array, a.lines[0]
    require(_extent(a.lines[0]) == _extent(a.lines[1]), np.linalg.LinAlgError("Last 2 dimensions of the array must be square"))
    first = packed(rows)
    both = packed(Selection(first.array, a.lines[1].where, 1, a.lines[1].count))
    room = min(both.array.shape)
    return both.array[:room, :room], Line(both.where[:room], both.count)


GRIDDED.update({function: _reduction(function) for function in (np.sum, np.prod, np.mean)})
GRIDDED.update({function: _without_dtype(function) for function in (np.any, np.all)})
GRIDDED.update({function: _reduction(function) for function in (np.var, np.std)})
GRIDDED.update({function: _extreme(function) for function in (np.max, np.min, np.amax, np.amin)})
GRIDDED.update({np.linalg.norm: norm, np.diagonal: diagonal, np.diag: diag, np.trace: trace, np.transpose: transpose, np.ravel: ravel,
                np.reshape: reshape, np.copy: copy, np.ndim: ndim, np.shape: shape, np.size: size_along})
