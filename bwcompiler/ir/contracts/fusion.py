"""The result of fusion: a program as an ordered list of steps, each a fusion group or a library/push/region call.

A fusion group is a set of values computed in one loop tree.  Its axes are numbered 0..n-1 in loop order; `outer` axes
are the loops of the tree, `inner` axes the passes inside them.  A member belongs to the inner level (all axes), to the
outer level (the outer axes), or is a reduction of one of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from bwcompiler.ir.access import ArrayView, root
from bwcompiler.ir.extent import Extent, Section
from bwcompiler.ir.op import Value

SHORT_ROW = 32                 # rows with at most this many elements are computed together, one per vector lane,
SHORT_ROWS = 64                # if there are at least this many rows
PANEL_COLUMNS = 64             # least columns of a panel: with fewer, many rows map to few cache sets


@dataclass
class Member:
    """A value computed by a group.

    domain   group axis of every dimension the element rule runs over (of the operand, for a reduction).
    axes     group axis of every dimension of the value itself.
    reduced  group axes a reduction sums over, else empty.
    inlined  operands that are recomputed for this member (cheap values read at shifted indices).
    update   a slice_update or slice_add that only touches its slice: it runs over operand 1 and writes into the memory of
             operand 0, which the value takes over (or gets a copy of).
    after    for an update, the members that read what it overwrites: it is stored after their last computation.
    """

    value: Value
    domain: tuple[int, ...]
    axes: tuple[int, ...]
    reduced: tuple[int, ...] = ()
    inlined: frozenset[Value] = frozenset()
    update: bool = False
    after: frozenset[Value] = frozenset()

    def renumbered(self, places: Sequence[int]) -> Member:
        """The member in a group whose axis k became axis places[k]."""
        domain, axes, reduced = [tuple([places[axis] if axis >= 0 else -1 for axis in numbers])
                                 for numbers in (self.domain, self.axes, self.reduced)]
        return replace(self, domain=domain, axes=axes, reduced=reduced)

    @property
    def is_number(self) -> bool:
        """Whether it has no axes: then it is computed outside of the group's loops."""
        return not self.update and all(axis < 0 for axis in self.domain)

    @property
    def domain_axes(self) -> frozenset[int]:
        """The group axes the member runs over (dimensions of size 1 are numbered -1 and run over none)."""
        return frozenset(axis for axis in self.domain if axis >= 0)


@dataclass
class FusionGroup:
    """One loop tree.  `inner` is None until a consumed reduction or a broadcast decides it.

    updated  per value whose memory an update of this group writes (the array before and after): the sections written so far.
    touched  per array that some update of the program writes: the sections that members of this group read (None: unknown).
             Both belong to the memory: all versions of an array share the lists.
    """

    position: int
    extents: list[Extent] = field(default_factory=list)
    inner: frozenset[int] | None = None
    members: list[Member] = field(default_factory=list)
    by_value: dict[Value, Member] = field(default_factory=dict)
    loads: set[Value] = field(default_factory=set)
    closed: bool = False
    updated: dict[Value, list[Section]] = field(default_factory=dict)
    touched: dict[Value, list[Section | None]] = field(default_factory=dict)

    def add_axes(self, places: Sequence[int], extents: Mapping[int, Extent]) -> None:
        """New axes, by their numbers, between the others: axis k becomes axis places[k]."""
        found = {**dict(zip(places, self.extents, strict=True)), **extents}
        self.extents = [found[axis] for axis in range(len(found))]
        self.members = [member.renumbered(places) for member in self.members]
        self.by_value = {member.value: member for member in self.members}

    def add(self, member: Member, in_front: bool = False) -> None:
        """A new member, computed after the others or before them."""
        self.members.insert(0 if in_front else len(self.members), member)
        self.by_value[member.value] = member

    def written_arrays(self) -> list[tuple[Value, Value]]:
        """Per array that updates of this group write: the version before the first update, and after the last."""
        first: dict[Value, Value] = {}
        last: dict[Value, Value] = {}
        for member in self.members:
            if member.update:
                before = root(member.value.operands[0])
                first[member.value] = first.get(before, before)
                last[first[member.value]] = member.value
        return list(last.items())


def starts_filled(value: Value, number: int) -> bool:
    """Whether operand `number` of a loop is a state that starts with all elements equal, or undefined: its memory is filled, or left
    uninitialised, instead of copied."""
    return number < value.attrs.get("carried", 0) and value.operands[number].op.uniform


@dataclass
class Call:
    """One value computed by a library, push, scan, check or region step, from operands that are views of stored values."""

    position: int
    value: Value
    operands: tuple[ArrayView, ...]


class Refusal(NamedTuple):
    """Why a value is not computed in a group that it could have joined.

    rule    one of fusion's rules; `bwcompiler.passes.fusion.rules` has them in words.
    about   the operands that the rule mentions.
    """

    value: Value
    group: int
    rule: str
    about: tuple[Value, ...] = ()


@dataclass
class FusedProgram:
    """Steps in execution order.

    stored   values that have memory: graph inputs, results of calls, and members that something outside reads.
    forced   values (layout ops and constants too) that fusion had to store: outputs, operands of calls.
    refusals the groups that values did not join, and why, in the order of the decisions; only if `fuse` was called with reasons.
    """

    steps: list[FusionGroup | Call]
    stored: set[Value]
    forced: set[Value]
    step_of: dict[Value, FusionGroup | Call]
    refusals: list[Refusal] = field(default_factory=list)
