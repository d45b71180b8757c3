"""Lists that grow in a loop which also reads them at varying positions: `c.append(sum(c[j] * c[k - 1 - j] for j in range(k)))`, or at
positions that data decide, `past = states[int(t / dt)]`.

The old contents of the list and what is appended are also kept in arrays with room for all of them, one for each leaf of an element, from
which they are read.  These are copies: nobody writes to what was appended (`Storage.kept`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.frontend.source.array_backed.element_forms import Form, filled, form_of, handed_out, has_form, keep_or_note, storages_of
from bwcompiler.frontend.source.effects.checks import raise_where
from bwcompiler.frontend.source.effects.places import scopes_around
from bwcompiler.frontend.source.variables import Again, is_number, not_capturable
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.control_flow.shared_arrays import is_written
from bwcompiler.frontend.tracing.indexing.index_handle import index_handle
from bwcompiler.frontend.tracing.storages.region import Region
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.extent import Extent, add_extents, lower, scale_extent, upper


class History:
    """A list whose elements are in arrays, too, while a loop is traced; growth: of the list in that loop, at most `capacity` times."""

    def __init__(self, growth: Any, loop: Any, form: Form) -> None:
        self.growth = growth
        self.loop = loop
        self.structure, self.kinds = form
        self.held = storages_of(growth.entry)
        self.arrays: list[Any] = []

    def prepare(self) -> None:
        """Before each attempt: the arrays, in the region around the loop."""
        entry = self.growth.entry
        count = len(entry) + max(1, self.loop.capacity * self.growth.each)
        columns = zip(*map(tree.leaves, entry), strict=True) if entry else [()] * len(self.kinds)
        self.arrays = [filled(kind, count, range(len(entry)), list(column)) for kind, column in zip(self.kinds, columns, strict=True)]

    def elements(self) -> Sequence[Any]:
        """What the arrays were made of."""
        return self.growth.entry  # type: ignore[no-any-return]

    def append(self, place: Any, values: Sequence[Any], loops: int) -> None:
        """The list gets some elements, the first of them at a place, a number; it grows in so many loops."""
        if loops > 1:
            not_capturable("it appends in several loops to a list that it reads at places that move")
        for number, value in enumerate(values):
            if not _fits(value, (self.structure, self.kinds)):
                not_capturable("it appends something else than floats to a list that it reads at places that move, or than arrays of one "
                               "shape")
            for array, leaf in zip(self.arrays, tree.leaves(value), strict=True):
                keep_or_note(leaf, self.loop.site)
                array[place + number] = leaf

    def end(self, region: Region) -> None:
        """After an iteration: the next one finds the old contents as they were."""
        if any(is_written(one, region) for one in self.held):
            not_capturable("it assigns to arrays of a list that grows, which it reads at places that move")

    def read(self, place: Any) -> Any:
        """The element at a place."""
        site, held = self.loop.site, self.held
        leaves = [handed_out(array[place], kind, site, held) for array, (kind, _) in zip(self.arrays, self.kinds, strict=True)]
        return tree.unflatten(self.structure, leaves)

    def numbers(self, length: Any) -> Any:
        """So many elements as an array, or all that there is room for; None where they are no numbers."""
        if self.structure != tree.structure(0.0) or self.kinds[0][1].shape:
            return None
        return self.arrays[0][:length].copy()


def is_float(x: Any) -> bool:
    """Whether it is a number that an array of floats holds as it is."""
    if isinstance(x, Tracer):
        return is_number(x) and x._type.dtype.numpy == np.float64
    return type(x) in (float, np.float64)


def _fits(x: Any, form: Form) -> bool:
    return has_form(x, form) and (not is_number(x) or is_float(x))


def from_history(base: list[Any], growth: Any, extent: Extent, length: Extent) -> Any:
    """base[extent] of a list that has `length` elements now and grows in one loop; None where it is not known to have that element."""
    place = add_extents(length, extent) if upper(extent) < 0 else extent
    if lower(place) < 0 or lower(add_extents(length, scale_extent(place, -1))) < 1:
        return None
    history = history_of(base, growth)
    return None if history is None else history.read(call(index_handle, place))


def from_end(growth: Any, place: int, length: Any) -> Any:
    """Likewise the last element for place 1, which a list that is shorter at first need not have: that is checked when the program runs."""
    history = history_of(growth.base, growth)
    if history is None:
        return None
    raise_where(length < place, IndexError("list index out of range"))
    return history.read(np.where(length < place, 0, length - place))


def at_place(base: list[Any], growth: Any, index: Any, length: Any) -> Any:
    """The same at a place that data decide, which is checked when the program runs."""
    if not isinstance(index, Tracer) or index._type.shape or not index._type.dtype.is_integer:
        return None
    history = history_of(base, growth)
    if history is None:
        return None
    raise_where(np.logical_or(index < -length, index >= length), IndexError("list index out of range"))
    return history.read(np.where(index < 0, index + length, index))


def history_of(base: list[Any], growth: Any) -> History | None:
    """The list in arrays; of a new one the loop is traced again.  None where it cannot be in arrays."""
    loop = next((scope.loop for scope in scopes_around(base)), None)
    if loop is None or loop.capacity is None or loop.growths.get(id(base)) is not growth:
        return None
    if id(base) not in loop.histories:
        known = [*growth.entry, *growth.items]
        form = form_of(known[0]) if known else form_of(0.0)
        if form is None or not all(_fits(one, form) or (type(one) is int and is_number(known[0])) for one in growth.entry):
            return None
        loop.histories[id(base)] = History(growth, loop, form)
        raise Again(loop)
    found: History = loop.histories[id(base)]
    return found
