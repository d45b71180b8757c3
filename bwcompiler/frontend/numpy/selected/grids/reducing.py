"""Reductions of grids: along the axes that are reduced, elements that are not there are excluded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler.frontend.numpy.selected.grids.shapes import axis_of, extent_of
from bwcompiler.frontend.numpy.selected.lines import made, parts_of, spread
from bwcompiler.frontend.numpy.selected.packing import lowest, require
from bwcompiler.frontend.tracing.indexing.grids import Grid, Line
from bwcompiler.frontend.tracing.indexing.masked_selection import GRIDDED, refuse


def _axes(a: Grid, axis: Any) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(a.ndim))
    return tuple([axis_of(a, one) for one in (axis if isinstance(axis, tuple | list) else (axis,))])


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
                require(extent_of(a.lines[one]) > 0, ValueError(f"{function.__name__} of no elements: none is selected"))
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


GRIDDED.update({function: _reduction(function) for function in (np.sum, np.prod, np.mean)})
GRIDDED.update({function: _without_dtype(function) for function in (np.any, np.all)})
GRIDDED.update({function: _reduction(function) for function in (np.var, np.std)})
GRIDDED.update({function: _extreme(function) for function in (np.max, np.min, np.amax, np.amin)})
GRIDDED[np.linalg.norm] = norm
