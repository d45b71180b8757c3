"""Shapes of grids, and their elements in another shape."""

from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np

from bwcompiler.frontend.numpy.selected.lines import parts_of, spread
from bwcompiler.frontend.numpy.selected.packing import as_part, copied
from bwcompiler.frontend.tracing.indexing.grids import Grid, Line
from bwcompiler.frontend.tracing.indexing.masked_selection import GRIDDED, Selection, SizedByData, refuse
from bwcompiler.frontend.tracing.operands import value_as
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.types import I64


def extent_of(line: Line) -> Any:
    """How many elements there are along a line, a traced integer."""
    return fresh(value_as(np.sum(line.where) if line.count is None else line.count, I64), int)


def shape(x: Grid) -> tuple[Any, ...]:
    """x.shape: traced integers for the lines."""
    return tuple([extent_of(x.lines[axis]) if axis in x.lines else extent for axis, extent in enumerate(x.array.shape)])


def size(x: Grid) -> Any:
    """x.size."""
    return math.prod(shape(x))


HANDLERS.update(shape_of_grid=shape, size_of_grid=size)


def ndim(a: Any) -> int:
    return int(a.ndim)


def size_along(a: Grid, axis: Any = None) -> Any:
    return size(a) if axis is None else shape(a)[axis_of(a, axis)]


def axis_of(a: Grid, axis: Any) -> int:
    """An axis of a, from 0."""
    found = int(axis)
    if not -a.ndim <= found < a.ndim:
        raise np.exceptions.AxisError(found, a.ndim)
    return found % a.ndim


def copy(a: Grid, order: Any = "K", subok: Any = False) -> Any:
    return copied(a)


def transpose(a: Any, axes: Any = None) -> Any:
    order = tuple(reversed(range(a.ndim))) if axes is None else tuple([axis_of(a, one) for one in axes])
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
        view.viewed = x if x.viewed is None else x.viewed
        view.viewed.views.append(weakref.ref(view))
    elif np.ndim(view) and view._storage is not x.array._storage:
        return as_part(x, view)
    return view


GRIDDED.update({np.transpose: transpose, np.ravel: ravel, np.reshape: reshape, np.copy: copy, np.ndim: ndim, np.shape: shape,
                np.size: size_along})
