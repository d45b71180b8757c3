"""Lists of numbers that grow in a loop which also reads them at varying positions: `c.append(sum(c[j] * c[k - 1 - j] for j in range(k)))`.

The old contents of the list and the appended numbers are also kept in an array with room for all of them, from which they are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler.frontend.source.effects.places import scopes_around
from bwcompiler.frontend.source.variables import Again, is_number, not_capturable
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.indexing.index_handle import index_handle
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.extent import Extent, add_extents, lower, scale_extent, upper


class History:
    """A list whose numbers are in an array, too, while a loop is traced; growth: of the list in that loop."""

    def __init__(self, growth: Any, capacity: int) -> None:
        self.growth = growth
        self.capacity = capacity
        self.array: Any = None

    def prepare(self) -> None:
        """Before each attempt: the array, in the region around the loop."""
        held = [call(as_tracer, number) for number in self.growth.entry]
        room = np.zeros(max(1, self.capacity * self.growth.each))
        self.array = np.concatenate([np.stack(held).astype(float), room]) if held else call(as_tracer, room).copy()

    def append(self, place: Extent, values: Sequence[Any], loops: int) -> None:
        """The list gets some more elements, the first of them at a place; it grows in so many loops."""
        if loops > 1:
            not_capturable("it appends in several loops to a list that it reads at places that move")
        for number, value in enumerate(values):
            if not is_float(value):
                not_capturable("it appends something else than floats to a list that it reads at places that move")
            self.array[call(index_handle, add_extents(place, number))] = value


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
    loop = next((scope.loop for scope in scopes_around(base)), None)
    if loop is None or loop.capacity is None or loop.growths.get(id(base)) is not growth:
        return None
    if not all(is_float(one) or type(one) is int for one in growth.entry):
        return None
    if id(base) not in loop.histories:
        loop.histories[id(base)] = History(growth, loop.capacity)
        raise Again(loop)
    found = loop.histories[id(base)].array[call(index_handle, place)]
    found._kind = float
    return found
