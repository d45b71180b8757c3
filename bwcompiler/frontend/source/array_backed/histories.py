"""Lists that grow in a loop which also reads them at varying positions: `c.append(sum(c[j] * c[k - 1 - j] for j in range(k)))`, or at
positions that are data, `past = states[int((t - delay) / dt)]`.

The old contents of the list and what is appended are also kept in an array with room for all of them, from which they are read: floats, or
arrays of floats of one shape, which are copies (`carried.kept`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler.frontend.source.effects.checks import raise_where
from bwcompiler.frontend.source.effects.places import scopes_around
from bwcompiler.frontend.source.undecided.gaps import share_copy
from bwcompiler.frontend.source.variables import Again, is_number, not_capturable
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.indexing.index_handle import index_handle
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.extent import Extent, add_extents, lower, scale_extent, upper


class History:
    """A list whose elements are in an array, too, while a loop is traced; growth: of the list in that loop; shape: of the elements."""

    def __init__(self, growth: Any, loop: Any) -> None:
        self.growth = growth
        self.capacity: int = loop.capacity
        self.site = loop.site
        self.shape = _shape(growth.entry[0]) if growth.entry else ()
        self.array: Any = None

    def prepare(self) -> None:
        """Before each attempt: the array, in the region around the loop."""
        held = [call(as_tracer, element) for element in self.growth.entry]
        for element in held:
            self._keep(element)
        room = np.zeros((max(1, self.capacity * self.growth.each), *self.shape))
        self.array = np.concatenate([np.stack(held).astype(float), room]) if held else call(as_tracer, room).copy()

    def append(self, place: Extent, values: Sequence[Any], loops: int) -> None:
        """The list gets some more elements, the first of them at a place; it grows in so many loops."""
        if loops > 1:
            not_capturable("it appends in several loops to a list that it reads at places that move")
        for number, value in enumerate(values):
            if not _is_element(value, self.shape):
                not_capturable("it appends something else than floats, or arrays of them of one shape, to a list that it reads at places "
                               "that move")
            self._keep(value)
            self.array[call(index_handle, add_extents(place, number))] = value

    def _keep(self, value: Any) -> None:
        if self.shape and isinstance(value, Tracer):
            HANDLERS["keep"](value, self.site)

    def at(self, place: Any) -> Any:
        """The element at a place from the beginning."""
        found = self.array[place]
        if self.shape:
            found = found.copy()
            share_copy(found, ())
        else:
            found._kind = float
        return found


def _shape(x: Any) -> tuple[int, ...]:
    return tuple(x.shape) if isinstance(x, Tracer | np.ndarray) else ()


def _is_element(x: Any, shape: tuple[int, ...]) -> bool:
    """Whether it is a float or an array of floats, of that shape."""
    if isinstance(x, Tracer | np.ndarray) and shape:
        return x.dtype == np.float64 and tuple(x.shape) == shape
    return not shape and is_float(x)


def is_float(x: Any) -> bool:
    """Whether it is a number that an array of floats holds as it is."""
    if isinstance(x, Tracer):
        return is_number(x) and x._type.dtype.numpy == np.float64
    return type(x) in (float, np.float64)


def from_history(base: list[Any], growth: Any, extent: Extent, length: Extent) -> Any:
    """base[extent] of a list that has `length` elements now and grows in one loop; None where it is not known to have that element."""
    place = add_extents(length, extent) if upper(extent) < 0 else extent
    if lower(place) < 0 or lower(add_extents(length, scale_extent(place, -1))) < 1:
        return None
    found = _history(base, growth)
    return None if found is None else found.at(call(index_handle, place))


def from_history_at(base: list[Any], growth: Any, place: Any, length: Extent) -> Any:
    """base[place] at a place that is data; IndexError when the program runs, where there is no such element; None where that is refused."""
    if not isinstance(place, Tracer) or np.ndim(place) or place.dtype.kind not in "iu":
        return None
    history = _history(base, growth)
    if history is None:
        return None
    count = call(index_handle, length)
    raise_where(np.logical_or(place >= count, place < -count), IndexError("list index out of range"))
    return history.at(np.where(place < 0, place + count, place))


def _history(base: list[Any], growth: Any) -> History | None:
    loop = next((scope.loop for scope in scopes_around(base)), None)
    if loop is None or loop.capacity is None or loop.growths.get(id(base)) is not growth:
        return None
    shape = _shape(growth.entry[0]) if growth.entry else ()
    if not all(_is_element(one, shape) or type(one) is int for one in growth.entry):
        return None
    if id(base) not in loop.histories:
        loop.histories[id(base)] = History(growth, loop)
        raise Again(loop)
    found: History = loop.histories[id(base)]
    return found
