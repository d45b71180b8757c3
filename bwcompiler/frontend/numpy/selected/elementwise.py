"""Elementwise computations on selections: operators, ufuncs, and other elementwise NumPy functions."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.numpy.elementwise.ufunc_calls import evaluate
from bwcompiler.frontend.numpy.elementwise.ufuncs import ufunc_named
from bwcompiler.frontend.numpy.selected import lines
from bwcompiler.frontend.numpy.selected.packing import aligned, as_view, copied, fixed, has_mask_of, selected, with_all
from bwcompiler.frontend.tracing.handles import assign, value_of
from bwcompiler.frontend.tracing.indexing.grids import Grid
from bwcompiler.frontend.tracing.indexing.masked_selection import GRIDDED, SELECTED, Selection, SizedByData, refuse
from bwcompiler.frontend.tracing.operands import as_tracer, cast, is_traced
from bwcompiler.frontend.tracing.promotion import require_cast
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import fresh


def elementwise(function: Callable[..., Any], *inputs: Any) -> Any:
    """function(*inputs) of selections, grids, and of arrays that broadcast against them."""
    behind = {_behind(x) for x in inputs if isinstance(x, Selection)}
    if any(isinstance(x, Grid) for x in inputs) or len(behind) > 1:                # x[mask][:, None] is a column
        return lines.elementwise(function, *inputs)
    found = iter(aligned([x for x in inputs if isinstance(x, Selection)], broadcast=True))
    inputs = tuple([next(found) if isinstance(x, Selection) else as_tracer(x) if is_traced(x) else x for x in inputs])
    selections = [x for x in inputs if isinstance(x, Selection)]
    first = selections[0]
    rows, = behind
    extents = {np.shape(x)[-rows - 1] for x in inputs if not isinstance(x, Selection) and np.ndim(x) > rows} - {1}
    if extents:                                    # as many elements as another array has
        size = min(extents)
        return function(*[fixed(x, size) if isinstance(x, Selection) else x for x in inputs])
    arrays = [x.array if isinstance(x, Selection) else _spread_out(x, rows, first.where.ndim) for x in inputs]
    result = function(*arrays)
    if isinstance(result, tuple):
        return tuple([with_all(first, one, one.ndim - first.where.ndim - rows) for one in result])
    return with_all(first, result, result.ndim - first.where.ndim - rows)


def _behind(x: Selection) -> int:
    return int(x.array.ndim - x.lead - x.where.ndim)


def _spread_out(x: Any, rows: int, axes: int) -> Any:
    """An array whose axis of extent 1 is broadcast against that of the selection."""
    shape = np.shape(x)
    if len(shape) <= rows or axes == 1:
        return x
    place = len(shape) - rows - 1
    return np.reshape(x, (*shape[:place], *[1] * axes, *shape[place + 1:]))


def of_selections(name: str, *inputs: Any) -> Any:
    """A ufunc."""
    def evaluated(*arrays: Any) -> Any:
        result = evaluate(ufunc_named(name), arrays)
        return tuple(map(fresh, result)) if isinstance(result, tuple) else fresh(result)
    return elementwise(evaluated, *inputs)


def require_unshared(x: Any) -> None:
    """Raise if a selection or grid that is changed in place has views."""
    if x.viewed is not None or (_has_views(x) and (gc.collect() or True) and _has_views(x)):      # views may be garbage
        raise UnsupportedError("x[mask] with a traced mask cannot be changed while it has views\n  hint: y = y + 1, which makes "
                               "a new array, or y = y[1:].copy()")


def _has_views(x: Any) -> bool:
    return any(view() is not None for view in x.views)


def in_place(name: str, x: Selection, other: Any) -> Selection:
    """`y += other` for a selection y, which is a copy, or a slice, which is a view; other names of y see the change."""
    require_unshared(x)
    found = of_selections(name, x, other)
    if not isinstance(found, Selection) and np.ndim(found) != x.ndim:
        refuse("np." + name + " in place")
    array = found.array if isinstance(found, Selection) else found                # as many elements as another array has
    require_cast(array._type.dtype, x.array._type.dtype, "same_kind", f"np.{name}: in place")
    if isinstance(found, Selection) and has_mask_of(found, x) and found.array.shape == x.array.shape and type(x) is Selection:
        assign(x.array, cast(value_of(found.array), x.array._type.dtype))
    else:                                          # by another mask, or flattened: elements are matched in order; or a part of an array
        HANDLERS["set_item_of_selection"](x, slice(None), found.astype(x.dtype))
    x.places = None
    return x


HANDLERS.update(of_selections=of_selections, selection_in_place=in_place)

# Per NumPy function that is not a ufunc: the arguments that may be selections.
_PLACES: dict[Any, int] = {np.where: 3, np.clip: 3, np.round: 1, np.around: 1, np.nan_to_num: 1, np.angle: 1,
                           np.isclose: 2, np.sinc: 1, np.fix: 1, np.digitize: 1, np.isin: 1, np.i0: 1, np.isreal: 1, np.iscomplex: 1,
                           np.zeros_like: 1, np.ones_like: 1, np.empty_like: 1, np.full_like: 1}


def _by_places(function: Any, count: int) -> Callable[..., Any]:
    def handler(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, SizedByData) for x in (*args[count:], *kwargs.values())):
            refuse(f"np.{function.__name__} with it in that place")
        return elementwise(lambda *arrays: function(*arrays, *args[count:], **kwargs), *args[:count])
    return handler


SELECTED.update({function: _by_places(function, count) for function, count in _PLACES.items()})
_where = SELECTED[np.where]


@selected(np.where)
def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    return SELECTED[np.nonzero](condition) if x is None and y is None else _where(condition, x, y)


@selected(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """Of conditions and choices that are selections, or broadcast against them."""
    count = len(condlist)
    return elementwise(lambda *inputs: np.select(list(inputs[:count]), list(inputs[count:-1]), inputs[-1]), *condlist, *choicelist, default)


@selected(np.real)
def real(val: Selection) -> Selection:
    return val if val.dtype.kind != "c" else as_view(val, elementwise(np.real, val))


@selected(np.imag)
def imag(val: Selection) -> Selection:
    return as_view(val, elementwise(np.imag, val))


@selected(np.copy)
def copy(a: Selection, order: Any = "K", subok: Any = False) -> Any:
    return copied(a)


@selected(np.polyval)
def polyval(p: Any, x: Any) -> Any:
    if isinstance(p, Selection):
        refuse("np.polyval with as many coefficients")
    return elementwise(lambda array: np.polyval(p, array), x)


@selected(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    return np.result_type(*[x.array if isinstance(x, SizedByData) else x for x in arrays_and_dtypes])


GRIDDED.update({function: SELECTED[function] for function in (*_PLACES, np.select, np.polyval, np.result_type)
                if function is not np.where})
GRIDDED[np.where] = _where
