"""Reductions of selections: along the selected axis, elements that are not selected are excluded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler.frontend.numpy.selected.elementwise import of_selections
from bwcompiler.frontend.numpy.selected.packing import filled, lowest, merged, number, require, selected, selected_axis, with_all, zeroed
from bwcompiler.frontend.tracing.indexing.masked_selection import SELECTED, Selection, refuse, spread
from bwcompiler.frontend.tracing.operands import as_tracer, value_as
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.types import I64


def number_selected(x: Selection) -> Any:
    """The extent of the selection's axis: a traced Python integer."""
    return fresh(value_as(number(x), I64), int)


def size(x: Selection) -> Any:
    """x.size."""
    others = x.array.size // x.where.size if x.where.size else 0
    return number_selected(x) * others


HANDLERS.update(number_selected=number_selected, size_of_selection=size)


def axes_of(x: Selection, axis: Any) -> tuple[int, ...]:
    """The axes of a reduction, counted from 0."""
    if axis is None:
        return tuple(range(x.ndim))
    return tuple([selected_axis(x, one) for one in (axis if isinstance(axis, tuple) else (axis,))])


def _inner(x: Selection, axes: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of the full array that correspond to axes of the selection."""
    more = x.where.ndim - 1
    found: list[int] = []
    for axis in axes:
        found += range(axis, axis + more + 1) if axis == x.lead else [axis + more if axis > x.lead else axis]
    return tuple(found)


def along(function: Callable[..., Any], x: Selection, axis: Any, keepdims: Any, leaving_out: Callable[..., Any]) -> Any:
    """A reduction: leaving_out(x, axes) along the selected axis, else function(array, axes) of all rows."""
    if keepdims is True:
        x = merged(x)
    axes = axes_of(x, axis)
    if x.lead in axes:
        return leaving_out(x, _inner(x, axes))
    found = function(x.array, _inner(x, axes))
    return with_all(x, found, x.lead - (0 if keepdims is True else sum(one < x.lead for one in axes)))


def _reduction(function: Any) -> Callable[..., Any]:
    def handler(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, **options: Any) -> Any:
        if out is not None or "where" in options or not isinstance(a, Selection):
            refuse(f"np.{function.__name__} with out= or where=")
        if dtype is not None:
            options["dtype"] = dtype
        options["keepdims"] = bool(keepdims)
        return along(lambda array, axes: function(array, axis=axes, **options), a, axis, options["keepdims"],
                     lambda x, axes: function(x.array, axis=axes, where=spread(x), **options))
    return handler


SELECTED.update({function: _reduction(function) for function in (np.sum, np.prod, np.mean)})


def _moment(function: Any) -> Callable[..., Any]:
    plain = _reduction(function)

    def handler(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, **options: Any) -> Any:
        return plain(a, axis, dtype, out, keepdims, ddof=ddof, **options)
    return handler


def _truth(function: Any) -> Callable[..., Any]:
    plain = _reduction(function)

    def handler(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, **options: Any) -> Any:
        return plain(a, axis, None, out, keepdims, **options)
    return handler


SELECTED.update({np.var: _moment(np.var), np.std: _moment(np.std), np.any: _truth(np.any), np.all: _truth(np.all)})


def _extreme(function: Any) -> Callable[..., Any]:
    largest = function in (np.max, np.amax)

    def handler(a: Selection, axis: Any = None, out: Any = None, keepdims: Any = False, **options: Any) -> Any:
        if out is not None or "where" in options:
            refuse(f"np.{function.__name__} with out= or where=")
        initial = options.get("initial", np._NoValue)
        keepdims = bool(keepdims)

        def leaving_out(x: Selection, axes: tuple[int, ...]) -> Any:
            if initial is np._NoValue:
                require(number(x) > 0, ValueError(f"{function.__name__} of no elements: none is selected"))
            return function(filled(x, lowest(x.dtype, largest)), axis=axes, keepdims=keepdims, **options)
        return along(lambda array, axes: function(array, axis=axes, keepdims=keepdims, **options), a, axis, keepdims, leaving_out)
    return handler


SELECTED.update({one: _extreme(one) for one in (np.max, np.min, np.amax, np.amin)})


@selected(np.ptp)
def ptp(a: Selection, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    top, bottom = SELECTED[np.max](a, axis, out, keepdims), SELECTED[np.min](a, axis, out, keepdims)
    return top - bottom


@selected(np.count_nonzero)
def count_nonzero(a: Selection, axis: Any = None, *, keepdims: Any = False) -> Any:
    return SELECTED[np.sum](of_selections("not_equal", a, 0), axis, np.int64, None, keepdims)


@selected(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: Any = False, *, keepdims: Any = False) -> Any:
    keepdims = bool(keepdims)
    if weights is None and not returned:
        return SELECTED[np.mean](a, axis, None, None, keepdims)
    if weights is None:
        weights = np.ones_like(a, dtype=np.result_type(a.dtype, np.float16))
    elif np.ndim(weights) != np.ndim(a):
        weights = _weights_along(a, weights, axis)
    products = of_selections("multiply", a, weights)
    total = np.sum(weights, axis=axis, keepdims=keepdims)
    found = np.sum(products, axis=axis, keepdims=keepdims) / total
    return (found, np.zeros_like(found) + total) if returned else found


def _weights_along(a: Any, weights: Any, axis: Any) -> Any:
    """Weights of the axes that are averaged, as they broadcast against all elements."""
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    rank = int(np.ndim(a))
    axes = [int(one) % rank for one in (axis if isinstance(axis, tuple) else (axis,))]
    if np.ndim(weights) != len(axes):
        raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
    if axes != sorted(axes):
        refuse("np.average along axes in another order, with weights of them,")
    array = weights if isinstance(weights, Selection) else as_tracer(weights)
    return array[tuple([slice(None) if one in axes else None for one in range(rank)])]


def place(function: Any) -> Callable[..., Any]:
    """np.argmax or np.argmin, counted among the selected elements."""
    largest = function is np.argmax

    def handler(a: Selection, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        if out is not None or keepdims:
            refuse(f"np.{function.__name__} with out= or keepdims=")
        if axis is not None and selected_axis(a, axis) != a.lead:
            axes = _inner(a, (selected_axis(a, axis),))
            return with_all(a, function(a.array, axis=axes[0]), a.lead - (axes[0] < a.lead))
        if a.ndim != 1:
            refuse(f"np.{function.__name__} along it, of rows")
        x = merged(a)
        require(number(x) > 0, ValueError(f"{function.__name__} of no elements: none is selected"))
        best = (np.max if largest else np.min)(filled(x, lowest(x.dtype, largest)))
        hit = x.array == best
        if x.dtype.kind == "f":                    # the position of the first nan, if there is one
            hit = np.logical_or(hit, np.isnan(x.array))
        return (np.cumsum(x.where) - 1)[np.argmax(np.logical_and(x.where, hit))]
    return handler


SELECTED.update({np.argmax: place(np.argmax), np.argmin: place(np.argmin)})


@selected(np.linalg.norm)
def norm(x: Selection, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
    if ord not in (None, 1, 2, np.inf, "fro") or (ord in (2, "fro") and len(axes_of(x, axis)) > 1 and ord != "fro"):
        refuse(f"np.linalg.norm with ord={ord!r}")
    if axis is None and ord is None:
        return np.linalg.norm(zeroed(x).ravel())

    def leaving_out(y: Selection, axes: tuple[int, ...]) -> Any:
        return np.linalg.norm(zeroed(y), ord, axis=axes[0] if len(axes) == 1 else axes, keepdims=bool(keepdims))
    return along(lambda array, axes: np.linalg.norm(array, ord, axis=axes[0] if len(axes) == 1 else axes, keepdims=bool(keepdims)),
                 merged(x), axis, bool(keepdims), leaving_out)


@selected(np.histogram)
def histogram(a: Selection, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    if (range is None and np.ndim(bins) == 0) or weights is not None or density:
        refuse("np.histogram without known bins, or with weights or density,")
    counts, edges = np.histogram(filled(a, lowest(a.dtype, False)).ravel(), bins, range, weights=spread(a).ravel().astype(np.int64))
    return counts, edges


@selected(np.ndim)
def ndim(a: Selection) -> int:
    return a.ndim


@selected(np.shape)
def shape(a: Selection) -> tuple[Any, ...]:
    return a.shape


@selected(np.size)
def size_along(a: Selection, axis: Any = None) -> Any:
    return a.size if axis is None else a.shape[selected_axis(a, axis)]
