"""Lists and tuples of arrays that loops iterate over, or read at varying positions, without changing them.

    kept = [x0]                                     for k in reversed(range(n)):
    for k in range(n):                    then          y = kept[k] - y * w
        kept.append(f(kept[-1]))

Elements that an earlier loop has appended are rows of an array, and are read from there.  If the list has a few other elements, these are
joined with the rows before the outermost loop; what is read is then a copy, which must not be assigned to.  Lists of other arrays are not
put into one array, since that would copy all of them; but for small arrays, also in objects that a loop iterates over
(`lookups.at_places`).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler.frontend.source.concrete.makers import note_shown
from bwcompiler.frontend.source.effects.checks import raise_where
from bwcompiler.frontend.source.effects.places import scopes_around
from bwcompiler.frontend.source.variables import Again, not_capturable, open_policy
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.control_flow.shared_arrays import is_written, share
from bwcompiler.frontend.tracing.indexing.index_handle import IndexTracer, extent_of
from bwcompiler.frontend.tracing.operands import stack_all
from bwcompiler.frontend.tracing.policy import Site
from bwcompiler.frontend.tracing.rows import are_rows, together
from bwcompiler.frontend.tracing.storages.region import Region, recording_in
from bwcompiler.frontend.tracing.tracer import ArrayTracer, ScalarTracer, Tracer
from bwcompiler.ir.extent import lower, upper

MOST_PARTS = 4                 # that are joined
MOST_JOINED = 4096             # elements of small arrays that are put in one
_WHY_NOT = ": it is one of several arrays that a list holds\n  hint: write to a copy, kept[k].copy()"


class Joined:
    """A list whose elements are in an array while a loop is traced, in which nothing assigns to them.

    held    what it held when the array was made, in the region around the loop.
    site    of the loop, which is unrolled where somebody writes to what is read.
    """

    def __init__(self, items: Sequence[Any], site: Site) -> None:
        self.items = items
        self.site = site
        self.held: tuple[Any, ...] = ()
        self.array: Any = None

    def prepare(self) -> None:
        """Before each attempt."""
        if self.array is not None and all(map(operator.is_, self.held, self.items)) and len(self.held) == len(self.items):
            return
        self.held = tuple(self.items)
        for one in self.held:
            if isinstance(one, np.ndarray):
                note_shown(one)
        self.array = call(stack_all, self.held)

    def elements(self) -> Sequence[Any]:
        """What the array was made of."""
        return self.held

    def read(self, index: Any) -> Any:
        if len(self.items) != len(self.held) or any(one is not other for one, other in zip(self.items, self.held, strict=True)):
            not_capturable("it reads a list to which it assigns, at places that move")
        found, first = self.array[index], next((one for one in self.held if isinstance(one, Tracer)), self.held[0])
        if isinstance(first, Tracer) and not first._storage.writable and not first._type.shape:
            found._kind = first._kind
            return found
        found = found.copy()
        share(found, [one._storage for one in self.held if isinstance(one, Tracer)], "what a list holds", _WHY_NOT, self.site)
        return found

    def end(self, region: Region) -> None:
        """After an iteration: the next one reads the same."""
        if any(isinstance(one, Tracer) and is_written(one._storage, region) for one in self.held):
            not_capturable("it assigns to arrays that a list holds, which it reads at places that move")


def is_joined(items: Any) -> bool:
    """Whether such arrays can be found at a place that moves: rows of one array, but for a few others."""
    return type(items) in (list, tuple) and len(items) > 1 and are_rows(items) and _are_alike(items) and len(
        call(together, items)) <= MOST_PARTS


def are_small(items: Sequence[Any]) -> bool:
    """Whether all are arrays or numbers of one type, and few enough to be copied to one array."""
    kinds = {_type_of(item) for item in items}
    return len(kinds) == 1 and None not in kinds and len(items) * np.size(items[0]) <= MOST_JOINED


def _type_of(leaf: Any) -> Any:
    """What arrays and numbers have in common that can be put in one array, traced and known ones; None of those that cannot."""
    if isinstance(leaf, np.ndarray):
        return (leaf.dtype, leaf.shape, leaf.dtype, True) if leaf.dtype.kind in "biufc" else None
    if type(leaf) in (float, int):
        return np.dtype(type(leaf)), (), type(leaf), False
    if isinstance(leaf, np.number):
        return leaf.dtype, (), leaf.dtype, False
    if type(leaf) not in (ArrayTracer, ScalarTracer) or not leaf._type.is_fixed:
        return None
    kind = leaf._kind if isinstance(leaf._kind, type) else leaf._kind.numpy
    return leaf._type.dtype.numpy, leaf._type.shape, kind, leaf._storage.writable


def _are_alike(items: Sequence[Any]) -> bool:
    """Whether all are arrays of one dtype and shape."""
    first = items[0]
    return isinstance(first, Tracer) and bool(first._type.shape) and all(
        isinstance(one, Tracer) and one._type == first._type for one in items)


def element(items: Sequence[Any], index: Any, base: Any = None) -> Any:
    """items[index] of what `is_joined`, in range; base: the list that holds these elements, and grows."""
    extent = extent_of(index)
    if extent is not None and upper(extent) < 0:
        index = index + len(items)
    if is_joined(items):
        [first, *others] = call(together, items)
        if not others:
            return first[0][index]
    scopes = scopes_around(items if base is None else base)
    loop = next((scope.loop for scope in scopes if scope.loop is not None), None)
    if loop is None:
        return not_capturable("it reads a list of several arrays at places that move")
    if join(loop, items):
        raise Again(loop)
    return loop.joined[id(items)].read(index)


def join(loop: Any, items: Sequence[Any]) -> bool:
    """Put what a list holds in one array before a loop; whether the loop has to be traced again for that.

    It need not where all elements are from before the loop, whose values are those that they have there.
    """
    if id(items) in loop.joined:
        return False
    made = loop.joined[id(items)] = Joined(items, loop.site)
    if any(isinstance(one, Tracer) and not one._storage.region.encloses(loop.around) for one in items):
        return True
    with recording_in(loop.around):
        made.prepare()
    return False


def element_in_side(items: Sequence[Any], index: Any) -> Any:
    """items[index] in a side of a branch whose test may say that the index is in range, which is checked; None where that is refused."""
    policy = open_policy()
    if policy is None or not policy.scopes or policy.scopes[-1].loop is not None or not is_joined(items):
        return None
    [first, *others] = call(together, items)
    if others:
        return None
    count = len(items)
    raise_where(np.logical_or(index < -count, index >= count), IndexError("list index out of range"))
    return first[0][np.clip(np.where(index < 0, index + count, index), 0, count - 1)]


def is_read(items: Any, index: Any) -> bool:
    """Whether items[index] is at a place that moves with a loop, and surely in range, of what `is_joined` or `are_small` arrays."""
    extent = extent_of(index) if isinstance(index, IndexTracer) else None
    if extent is None or isinstance(extent, int):
        return False
    count, least, most = len(items), lower(extent), upper(extent)
    is_inside = (least >= 0 and most < count) or (-count <= least and most < 0)
    return is_inside and (is_joined(items) or (type(items) in (list, tuple) and are_small(items) and getattr(items[0], "ndim", 0) > 0))
