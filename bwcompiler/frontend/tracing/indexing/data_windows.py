"""`x[k:k + 3]` where k is data: slices of a known number of elements, at positions that are only known at run time.

The bounds are sums of the same traced numbers, and differ by a constant, the number of elements: blocks of a matrix, for example, that
are addressed by a table.  Such a slice is a view, as in NumPy.  NumPy shortens a slice that reaches beyond its axis; the program
raises IndexError instead.
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np

from bwcompiler import ops
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.indexing.index_sides import outside
from bwcompiler.frontend.tracing.indexing.masked_selection import same_value
from bwcompiler.frontend.tracing.operands import known, value_as
from bwcompiler.frontend.tracing.storages.region import Region, open_region
from bwcompiler.frontend.tracing.storages.shapes import Shape
from bwcompiler.frontend.tracing.storages.views import PickedView, Step
from bwcompiler.frontend.tracing.tracer import Tracer, fresh
from bwcompiler.ir.extent import Extent, Index, lower, upper
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import I64

_PARTS = (ops.slice, ops.gather, ops.reshape, ops.transpose, ops.broadcast, ops.cast, ops.flip)     # of the first operand


class Window(NamedTuple):
    """`size` elements of an axis in steps of `step`; the bounds are those of a slice.

    fits  whether all of them are inside of the axis, as far as the numbers in tables say at the moment.
    """

    start: Tracer
    stop: Tracer
    size: int
    step: int
    fits: bool

    def positions(self, extent: int) -> Value:
        """The places of the elements in an axis; IndexError where NumPy would take fewer, as some are not inside."""
        start, stop = value_as(self.start, I64), value_as(self.stop, I64)
        zero, beyond = ops.full(value=0, shape=(), dtype=I64), ops.full(value=extent, shape=(), dtype=I64)
        around_the_end = ops.bitwise_and(ops.less(start, zero), ops.greater_equal(stop, zero))
        first = ops.broadcast(ops.select(around_the_end, beyond, start), shape=(self.size,), axes=())
        counted = ops.iota(shape=(self.size,), axis=0, dtype=I64)
        if self.step > 1:
            counted = ops.multiply(counted, ops.full(value=self.step, shape=(self.size,), dtype=I64))
        return ops.normalize_index(ops.add(first, counted), extent=extent)


def window_of(bounds: slice, extent: Extent) -> Window | None:
    """The window that a slice with traced bounds is; None where they do not say how many elements it has."""
    start, stop, step = known(bounds.start), known(bounds.stop), 1 if bounds.step is None else known(bounds.step)
    if not (isinstance(extent, int) and isinstance(step, int | np.integer) and step > 0 and _is_integer(start) and _is_integer(stop)):
        return None
    region = open_region()
    first = _sum_of(value_of(start), region)
    distance = _difference(_sum_of(value_of(stop), region), first)
    if distance is None or not 0 < distance <= extent:
        return None
    low, high = _interval(first)
    return Window(start, stop, len(range(0, distance, int(step))), int(step), low >= 0 and high + distance <= extent)


def count_between(start: Any, stop: Any, step: int) -> int | None:
    """How many numbers range(start, stop, step) has, of which a bound is traced at least, where that is known whatever the bounds are."""
    start, stop = known(start), known(stop)
    if not (_is_integer(start) or _is_integer(stop)) or not all(_is_integer(one) or type(one) in (int, np.int64) for one in (start, stop)):
        return None
    region = open_region()
    first, last = [_sum_of(value_of(one), region) if isinstance(one, Tracer) else _Sum((), int(one)) for one in (start, stop)]
    distance = _difference(last, first)
    return None if distance is None else len(range(0, distance, step))


def _is_integer(bound: Any) -> bool:
    return isinstance(bound, Tracer) and not bound.ndim and bound._type.dtype.is_integer


class WindowsView(PickedView):
    """x[k:k + 3, :, j:j + 2]: windows of some axes of x, by the axes; all others are whole."""

    __slots__ = ("windows",)

    def __init__(self, base_shape: Shape, windows: dict[int, Window]) -> None:
        axes = tuple(windows)
        sizes = tuple([window.size for window in windows.values()])
        lines = [fresh(window.positions(base_shape[axis])) for axis, window in windows.items()]

        def positions() -> list[Value]:
            return [ops.broadcast(value_of(line), shape=sizes, axes=(place,)) for place, line in enumerate(lines)]
        super().__init__(base_shape, axes, (), positions)
        self.shape = tuple([windows[axis].size if axis in windows else extent for axis, extent in enumerate(base_shape)])
        self.windows = windows

    def _order(self) -> tuple[int, ...]:
        """Where each axis of x is in what gather gives: those of the windows come first."""
        others = [axis for axis in range(len(self.base_shape)) if axis not in self.windows]
        placed = [*self.axes, *others]
        return tuple([placed.index(axis) for axis in range(len(placed))])

    def read(self, value: Value) -> Value:
        return _transposed(super().read(value), self._order())

    def write(self, base: Value, new: Value) -> Value:
        order = self._order()
        return super().write(base, _transposed(new, tuple([order.index(axis) for axis in range(len(order))])))

    def shadow(self, base: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return base[tuple([slice(0, None if axis not in self.windows else self.windows[axis].size) for axis in range(base.ndim)])]

    def same(self, other: Step) -> bool:
        return (isinstance(other, WindowsView) and (self.base_shape, self.shape, self.axes) == (other.base_shape, other.shape, other.axes)
                and all(a.start is b.start and a.step == b.step
                        for a, b in zip(self.windows.values(), other.windows.values(), strict=True)))


def _transposed(value: Value, order: tuple[int, ...]) -> Value:
    return value if order == tuple(range(len(order))) else ops.transpose(value, axes=order)


# ----- bounds as sums
class _Term(NamedTuple):
    """A number that is not known, with the region that has it, or the index of a loop; and how often it is in the sum."""

    value: Value | Index
    region: Region
    factor: int


class _Sum(NamedTuple):
    terms: tuple[_Term, ...]
    constant: int


def _sum_of(value: Value, region: Region) -> _Sum:
    """A number as a sum of multiples of numbers."""
    value, region = outside(value, region)
    if value.op is ops.index_value or (value.op is ops.full and type(value.attrs["value"]) is int):
        extent: Extent = value.attrs["extent" if value.op is ops.index_value else "value"]
        return _Sum((), extent) if isinstance(extent, int) else _Sum(
            tuple([_Term(index, region, factor) for index, factor in extent.terms]), extent.constant)
    if value.op in (ops.add, ops.subtract, ops.multiply) and value.dtype is I64:             # sums of few bits may be other numbers
        first, second = [_sum_of(operand, region) for operand in value.operands]
        if value.op is not ops.multiply:
            return _added(first, second, 1 if value.op is ops.add else -1)
        if not second.terms:
            first, second = second, first
        if not first.terms:
            return _added(_Sum((), 0), second, first.constant)
    if value.op is ops.negative and value.dtype is I64:
        return _added(_Sum((), 0), _sum_of(value.operands[0], region), -1)
    return _Sum((_Term(value, region, 1),), 0)


def _added(first: _Sum, second: _Sum, factor: int) -> _Sum:
    terms = list(first.terms)
    for value, region, times in second.terms:
        place = next((place for place, term in enumerate(terms) if _are_alike(term.value, value)), None)
        if place is None:
            terms.append(_Term(value, region, factor * times))
        else:
            terms[place] = terms[place]._replace(factor=terms[place].factor + factor * times)
    return _Sum(tuple([term for term in terms if term.factor]), first.constant + factor * second.constant)


def _are_alike(a: Value | Index, b: Value | Index) -> bool:
    return a is b or (isinstance(a, Value) and isinstance(b, Value) and same_value(a, b))


def _difference(first: _Sum, second: _Sum) -> int | None:
    found = _added(first, second, -1)
    return None if found.terms else found.constant


# ----- between which numbers they are
def _interval(total: _Sum) -> tuple[float, float]:
    """The least and the largest number that a sum can be."""
    low = high = float(total.constant)
    for value, region, factor in total.terms:
        ends = [factor * end for end in _ends(value, region)]
        low, high = low + min(ends), high + max(ends)
    return low, high


def _ends(value: Value | Index, region: Region) -> tuple[float, float]:
    """The least and the largest one of numbers, which come from tables or count loops; without end for all others."""
    if isinstance(value, Index):
        return lower(value.extent()), upper(value.extent())
    value, region = outside(value, region)
    if value.op in _PARTS:
        return _ends(value.operands[0], region)
    array = region.array_of(value)
    if array is not None and array.size and array.dtype.kind in "iu":
        return int(array.min()), int(array.max())
    return -inf, inf
