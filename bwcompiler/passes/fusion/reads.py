"""The elements that an element of a value reads: index maps down to stored or computed values, found once for all readers (`Reads`)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple, TypeAlias

from bwcompiler.ir.access import element, expand, is_leaf
from bwcompiler.ir.extent import Extent, Index
from bwcompiler.ir.op import Value
from bwcompiler.ir.scalar import IndexExpression, Scalar, const

Read: TypeAlias = tuple[Value, tuple[IndexExpression, ...]]


class Dimensions(NamedTuple):
    """Those of all values of one shape.

    wide  those that take part in loops, as dimensions of size 1 do not; at: the element that an iteration computes.
    """

    indices: tuple[Index, ...]
    number: dict[Index, int]
    wide: list[int]
    at: tuple[Extent, ...]


class Reads:
    """forced  values that are stored whatever they are."""

    def __init__(self, forced: Collection[Value]) -> None:
        self.forced = forced
        self._dimensions: dict[tuple[Extent, ...], Dimensions] = {}
        self._of: dict[Value, list[Read]] = {}

    def is_leaf(self, value: Value) -> bool:
        """Whether reads of a value stop at it: it is stored, computed, or an alias of stored memory."""
        return is_leaf(value, self.forced)

    def dimensions(self, shape: tuple[Extent, ...]) -> Dimensions:
        """The dimensions of values of this shape."""
        found = self._dimensions.get(shape)
        if found is None:
            indices = tuple([Index(0, extent - 1) for extent in shape])
            found = self._dimensions[shape] = Dimensions(
                indices, {index: k for k, index in enumerate(indices)}, [k for k, extent in enumerate(shape) if extent != 1],
                tuple([0 if extent == 1 else index.extent() for index, extent in zip(indices, shape, strict=True)]))
        return found

    def of(self, value: Value) -> list[Read]:
        """What reading the element `dimensions(value.shape).at` of a value reads."""
        found = self._of.get(value)
        if found is None:
            leaves = Leaves(frozenset(), self.is_leaf)
            expand(value, self.dimensions(value.shape).at, leaves, self.is_leaf)
            found = self._of[value] = leaves.reads
        return found


class Leaves:
    """Notes what is read, and where, once each; goes on into what is computed again."""

    __slots__ = ("inlined", "is_leaf", "reads", "seen")

    def __init__(self, inlined: frozenset[Value], is_leaf: Callable[[Value], bool]) -> None:
        self.reads: list[Read] = []
        self.inlined = inlined
        self.is_leaf = is_leaf
        self.seen: set[tuple[Value, tuple[object, ...]]] = set()

    def __call__(self, value: Value, index: tuple[IndexExpression, ...]) -> Scalar:
        if value in self.inlined:
            return element(value, index, self, self.is_leaf)
        key = (value, tuple([id(entry) if isinstance(entry, Scalar) else entry for entry in index]))
        if key not in self.seen:
            self.seen.add(key)
            self.reads.append((value, index))
        return const(0, value.dtype)
