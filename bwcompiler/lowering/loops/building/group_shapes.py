"""Fusion groups that differ only in numbers share one kernel, which takes the numbers as words (scalar parameters).

An unrolled loop gives one group per iteration: the same ops on other arrays, at other starts, with other constants.  `Shape` describes
a group apart from these: groups with equal keys share a kernel.  A constant or start that is the same in all of them stays
in the kernel's text; one that differs becomes a word, and so does the index of an enclosing loop.  So a program has as
many kernels as it has different steps, and its compile time does not depend on the number of iterations.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

from bwcompiler import ops
from bwcompiler.ir.access import is_leaf, root
from bwcompiler.ir.contracts.fusion import FusionGroup, Member
from bwcompiler.ir.extent import Affine, Extent, Index, add_extents
from bwcompiler.ir.loop import Kernel
from bwcompiler.ir.op import Attributes, Value
from bwcompiler.ir.scalar import Word
from bwcompiler.ir.types import DType
from bwcompiler.lowering.loops.building.build_loops import build_kernel

Number: TypeAlias = int | float
WordValue: TypeAlias = Extent | float         # the value of a word: a number, or in a loop an extent that depends on the index
_WORD_KINDS = "iuf"                      # dtype kinds of constants that may be words


class Hole(NamedTuple):
    """The place of a number: the constant of a value (position None), or one of its starts."""

    value: Value
    position: int | None


@dataclass
class Shape:
    """A group, apart from its numbers.

    key      equal for groups that share a kernel.
    values   its values; numbers: the constants and starts that are not in the key; holes: their places; indices: those of the
             enclosing loops.  All in an order that is the same for all groups with this key.
    """

    key: Hashable
    values: list[Value]
    numbers: list[Number]
    holes: list[Hole]
    indices: list[Index]


class SharedKernel(NamedTuple):
    """A kernel for groups of one shape; per group the owners of its parameters' memory, and the values of its words."""

    kernel: Kernel
    owners: list[list[Value | None]]
    words: list[list[WordValue]]


def shape_of(group: FusionGroup, stored: Set[Value], forced: Set[Value]) -> Shape:
    """The shape of a group; which values have memory (`stored`, `forced`) is part of it."""
    return _Reader(group, stored, forced).shape()


def build_shared_kernel(name: str, groups: Sequence[FusionGroup], shapes: Sequence[Shape], stored: Set[Value],
                        forced: Set[Value]) -> SharedKernel:
    """The kernel of groups whose shapes have one key."""
    first = shapes[0]
    words, replaced, told = _differences(shapes)
    pattern = _Pattern(groups[0], replaced, forced)
    mine = {member.value for member in groups[0].members}
    kernel, built = build_kernel(name, pattern.group(), {pattern.members[value] for value in mine & stored},
                                 {pattern.members.get(value, value) for value in first.values if value in forced})
    kernel.words = [*first.indices, *words]
    origin = {made: value for value, made in pattern.members.items()}
    number_of = {value: number for number, value in enumerate(first.values)}
    places = [None if owner is None else number_of[origin.get(owner, owner)] for owner in built]
    owners = [[None if place is None else shape.values[place] for place in places] for shape in shapes]
    moving: list[list[WordValue]] = [[index.extent() for index in shape.indices] for shape in shapes]
    return SharedKernel(kernel, owners, [[*indices, *numbers] for indices, numbers in zip(moving, told, strict=True)])


# ----- shapes
class _Reader:
    """One walk over the group's members and the values that they read, down to memory."""

    def __init__(self, group: FusionGroup, stored: Set[Value], forced: Set[Value]) -> None:
        self.group = group
        self.stored = stored
        self.forced = forced
        self.values: list[Value] = []
        self.numbers: list[Number] = []
        self.holes: list[Hole] = []
        self.known: dict[Value, int] = {}
        self.seen: dict[Value, int] = {}
        self.indices: dict[Index, int] = {}
        self.entries: list[Hashable] = []

    def shape(self) -> Shape:
        for member in self.group.members:
            self._member(member)
        key = (self._extents(self.group.extents), self.group.inner, tuple(self.entries))
        return Shape(key, self.values, self.numbers, self.holes, list(self.indices))

    def _member(self, member: Member) -> None:
        value, inlined = member.value, member.inlined
        local: dict[Value, int] = {} if inlined else self.known
        operands = (root(value.operands[0]), value.operands[1]) if member.update else value.operands
        reads = tuple([self._read(operand, inlined, local) for operand in operands])
        again = tuple([number for operand, number in local.items() if operand in inlined]) if inlined else ()
        self._note(self.known, value, (
            reads, again, member.domain, member.axes, member.reduced, member.update, value in self.stored, value in self.forced,
            frozenset([self.known[reader] for reader in member.after]),
            *self._declaration(value, member.update)))

    def _read(self, value: Value, inlined: Set[Value], local: dict[Value, int]) -> int:
        """The number of a value that a member reads; `inlined` are recomputed there."""
        again = value in inlined
        if not again and (value in self.group.by_value or is_leaf(value, self.forced)):
            found = self.known.get(value)
            if found is not None:
                return found
            base = root(value)
            if base is value:
                return self._note(self.known, value, (value.dtype, self._extents(value.shape)))
            return self._note(self.known, value, (self._read(base, inlined, local), self._extents(value.shape)))
        found = local.get(value)
        if found is not None:
            return found
        reads = tuple([self._read(operand, inlined, local) for operand in value.operands])
        before = self.seen.get(value)                          # already read by another member
        return self._note(local, value, (again, reads, before, *self._declaration(value, value.op is ops.slice)))

    def _note(self, known: dict[Value, int], value: Value, entry: Hashable) -> int:
        known[value] = number = len(self.values)
        self.seen.setdefault(value, number)
        self.values.append(value)
        self.entries.append(entry)
        return number

    def _declaration(self, value: Value, has_starts: bool) -> tuple[Hashable, ...]:
        """Op, type and attributes, without the numbers."""
        attrs = value.attrs
        if not attrs:
            return (value.op, value.dtype, self._extents(value.shape))
        left: Hashable = None
        if has_starts:
            left = tuple([self._start(value, position, start) for position, start in enumerate(attrs["starts"])])
            attrs = _without(attrs, "starts")
        elif value.op is ops.full and value.dtype.kind in _WORD_KINDS:
            self.numbers.append(attrs["value"])
            self.holes.append(Hole(value, None))
            attrs = _without(attrs, "value")
        return (value.op, value.dtype, self._extents(value.shape), left, *[self._attribute(entry) for entry in attrs.values()])

    def _start(self, value: Value, position: int, start: Extent) -> Hashable:
        """A start that depends on a loop index stays in the key: the index is a word of the kernel."""
        if not isinstance(start, int):
            return self._attribute(start)
        self.numbers.append(start)
        self.holes.append(Hole(value, position))
        return None

    def _extents(self, extents: Sequence[Extent]) -> Hashable:
        return tuple([extent if type(extent) is int else self._attribute(extent) for extent in extents])

    def _attribute(self, entry: Any) -> Hashable:
        """A key that is equal for equivalent attributes; indices of loops are numbered."""
        kind = type(entry)
        if kind is int or kind is str or kind is DType:
            return entry  # type: ignore[no-any-return]
        if kind is tuple or kind is list:
            return tuple([self._attribute(element) for element in entry])
        if kind is float:
            return (kind, entry.hex())
        if kind is complex:                                    # distinguishes signed zeros
            return (kind, entry.real.hex(), entry.imag.hex())
        if kind is Affine:
            return (kind, entry.constant, *[(self._index(index), factor) for index, factor in entry.terms])
        return (kind, entry)

    def _index(self, index: Index) -> Hashable:
        number = self.indices.get(index)
        if number is None:
            bounds = self._attribute(index.lo), self._attribute(index.hi)
            number = self.indices[index] = len(self.indices)
            return (number, bounds)
        return number


def _without(attrs: Attributes, name: str) -> Mapping[str, Any]:
    return {key: entry for key, entry in attrs.items() if key != name}


# ----- numbers that differ
def _differences(shapes: Sequence[Shape]) -> tuple[list[Index | Word], dict[Hole, Extent | Word], list[list[Number]]]:
    """The words for numbers that differ between the shapes, the replacements of these numbers, and per shape the words' values.

    Starts with a constant difference (those of `y[t]` and `y[t - 1]`) share one word.
    """
    words: list[Index | Word] = []
    told: list[list[Number]] = [[] for _ in shapes]
    replaced: dict[Hole, Extent | Word] = {}
    if len(shapes) == 1:
        return words, replaced, told
    known: dict[Hashable, tuple[Index | Word, Number]] = {}
    for hole, column in zip(shapes[0].holes, zip(*[shape.numbers for shape in shapes], strict=True), strict=True):
        if _all_same(column):
            continue
        first = column[0]
        constant = hole.position is None
        key: Hashable = (hole.value.dtype, *map(_exactly, column)) if constant else tuple([entry - first for entry in column])
        if key not in known:
            low, high = (0, 0) if constant else (int(min(column)), int(max(column)))
            word = Word(f"c{len(words)}", hole.value.dtype) if constant else Index(low, high, f"n{len(words)}")
            known[key] = word, first
            words.append(word)
            for values, entry in zip(told, column, strict=True):
                values.append(entry)
        word, base = known[key]
        replaced[hole] = word if isinstance(word, Word) else add_extents(word.extent(), int(first) - int(base))
    return words, replaced, told


def _all_same(column: Sequence[Number]) -> bool:
    first = column[0]
    return all(entry == first for entry in column) and len(set(map(_exactly, column))) == 1


def _exactly(number: Number) -> Hashable:
    """A key that distinguishes 0.0 from -0.0, and is equal for all nan."""
    return number.hex() if isinstance(number, float) else number


class _Pattern:
    """A group rewritten for its kernel: with words in place of the numbers that differ.

    members  value -> its rewritten value (also for unchanged ones).
    """

    def __init__(self, group: FusionGroup, replaced: Mapping[Hole, Extent | Word], forced: Set[Value]) -> None:
        self.original = group
        self.forced = forced
        self.attrs: dict[Value, Attributes] = {}
        for hole, word in replaced.items():
            self._replace(hole, word)
        self.members: dict[Value, Value] = {}

    def group(self) -> FusionGroup:
        """The rewritten group, with only the fields that building loops reads."""
        members = [self._member(member) for member in self.original.members]
        made = FusionGroup(self.original.position, self.original.extents, self.original.inner)
        for member in members:
            made.add(member)
        return made

    def _replace(self, hole: Hole, word: Extent | Word) -> None:
        value, position = hole
        attrs = self.attrs.get(value, value.attrs)
        if position is None:
            self.attrs[value] = {**attrs, "value": word}
        else:
            starts = attrs["starts"]
            self.attrs[value] = {**attrs, "starts": (*starts[:position], word, *starts[position + 1:])}

    def _member(self, member: Member) -> Member:
        if not self.attrs:
            self.members[member.value] = member.value
            return member
        local: dict[Value, Value] = {}
        made = self.members[member.value] = self._made(member.value, member.inlined, local)
        return replace(member, value=made, inlined=frozenset([local.get(value, value) for value in member.inlined]),
                       after=frozenset([self.members[value] for value in member.after]))

    def _made(self, value: Value, inlined: Set[Value], local: dict[Value, Value]) -> Value:
        """The value, rebuilt on rewritten operands."""
        operands = tuple([self._operand(operand, inlined, local) for operand in value.operands])
        attrs = self.attrs.get(value)
        if attrs is None:
            return value.with_operands(operands)
        return Value(value.op, operands, attrs, value.type, value.name, value.source, value.forward)

    def _operand(self, value: Value, inlined: Set[Value], local: dict[Value, Value]) -> Value:
        again = value in inlined
        if not again and (value in self.members or is_leaf(value, self.forced)):
            return self.members.get(value, value)
        found = local.get(value)
        if found is None:
            found = local[value] = self._made(value, inlined, local)
        return found
