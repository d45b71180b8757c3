"""`compute_where_read`: values that all loops that read them could compute from what they load anyway are computed there, and not stored.

    k0: d = x - y; store d; m = maximum(d, 0); store m               k0: d = x - y; store d
    k1: load d; load m; z = d * m                             ->     k1: load d; m = maximum(d, 0); z = d * m

An operation takes less than storing its result and loading it again.  So it does where d, which has memory anyway, is loaded instead of m:
one such array per value.  The backward pass of a loop that computes its iterations again reads many such pairs.  It is done when all groups
are known, since what one of them loads depends on all values in it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from bwcompiler import ops
from bwcompiler.ir.access import plain_axes, root
from bwcompiler.ir.contracts.fusion import FusionGroup, Member
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value
from bwcompiler.ir.scalar import IndexExpression
from bwcompiler.ir.types import BOOL
from bwcompiler.passes.fusion.attempt import MAX_MEMBERS, Attempt
from bwcompiler.passes.fusion.reads import Reads

MOST_IN_A_ROW = 3              # operations from what is loaded to such a value
# One or two instructions each; a division takes as long as many loads.
QUICK = frozenset((ops.absolute, ops.add, ops.maximum, ops.minimum, ops.multiply, ops.negative, ops.select, ops.subtract))


def compute_where_read(graph: Graph, groups: Sequence[FusionGroup], attempts: Mapping[Value, Attempt], reads: Reads, stored: set[Value],
                       kept: Collection[Value], written: Collection[Value]) -> None:
    """Take values out of `stored`, and add them to the groups that load them.

    attempts  what each member reads, and where.  kept: values that have memory in any case; written: arrays that are written to later.
    """
    loading: dict[Value, list[FusionGroup]] = {}
    for group in groups:
        for array in group.loads:
            loading.setdefault(array, []).append(group)
    again = _Again(attempts, reads, written, kept, stored)
    for value in graph.body:
        readers = loading.get(value)
        if readers is None or value in kept or value in written or not again.is_quick(value):
            continue
        members = [again.member(value, group) for group in readers]
        if None not in members:
            stored.discard(value)
            for group, member in zip(readers, members, strict=True):
                assert member is not None
                again.add(member, group)


class _Again:
    """added  per group what was added to it, its first members: how many operations in a row lead to each."""

    def __init__(self, attempts: Mapping[Value, Attempt], reads: Reads, written: Collection[Value], kept: Collection[Value],
                 stored: Collection[Value]) -> None:
        self.kept = kept
        self.stored = stored
        self.attempts = attempts
        self.reads = reads
        self.written = written
        self.added: dict[int, dict[Value, int]] = {}

    def is_quick(self, value: Value) -> bool:
        """Whether it is quick to compute, from arrays that stay as they are."""
        attempt = self.attempts.get(value)
        if attempt is None or attempt.update or any(root(base) in self.written for base, _ in attempt.reads):
            return False
        return value.op in QUICK or (value.op.cheap and value.op.kind == "elementwise" and value.dtype is BOOL)

    def add(self, member: Member, group: FusionGroup) -> None:
        """Let a group compute what it loads so far."""
        before = self.added.setdefault(group.position, {})
        between = member.inlined - self.attempts[member.value].inlined
        arrays = {root(base) for value in (member.value, *between) for base, _ in self.attempts[value].reads}
        group.members.insert(len(before), member)
        group.by_value[member.value] = member
        group.loads.discard(member.value)
        group.loads.update([array for array in arrays if array not in group.by_value and array in self.stored])
        before[member.value] = 1 + len(between) + max([before.get(array, 0) for array in arrays], default=0)

    def member(self, value: Value, group: FusionGroup) -> Member | None:
        """The value as a member of a group that loads it, if the group has all that it is made of, and reads it only where one of its
        iterations computes it."""
        between = self._between(value, group)
        if between is None or len(group.members) >= MAX_MEMBERS:
            return None
        found: set[tuple[int, ...]] = set()
        for member in group.members:
            for base, index in self.attempts[member.value].reads:
                if root(base) is not value:
                    continue
                axes = _axes(value, index, self.attempts[member.value], member) if base is value else None
                if axes is None or {axis for axis in axes if axis >= 0} != member.domain_axes:
                    return None
                found.add(axes)
        if len(found) != 1:
            return None
        own, inlined = next(iter(found)), self.attempts[value].inlined | between
        attempt = Attempt(value, self.reads, inlined)
        if any(base in group.by_value and (index != attempt.at or group.by_value[base].axes != own) for base, index in attempt.reads):
            return None                                        # what the group computes is there in the same iteration only
        return Member(value, own, own, (), inlined)

    def _may_take_its_place(self, array: Value, value: Value) -> bool:
        """Whether an array may be loaded instead of a value: it has memory anyway, which nothing else waits for."""
        return array in self.stored and array not in self.kept and array.op.kind != "input" and array.type.nbytes <= value.type.nbytes

    def _between(self, value: Value, group: FusionGroup) -> frozenset[Value] | None:
        """The few values between what the group loads, has been given, or loads instead, and this one; None where there is more to it."""
        added = self.added.get(group.position, {})
        found: dict[Value, None] = {}
        depth, pending, more = 0, [value], list[Value]()
        while pending:
            for base, _ in self.attempts[pending.pop()].reads:
                array = root(base)
                depth = max(depth, added.get(array, 0))
                if array in group.loads and array not in group.by_value:
                    continue
                if array is not base:                              # a view of what has no memory
                    return None
                if array in found or array in added:
                    continue
                if array in group.by_value:
                    return None
                if not more and self._may_take_its_place(array, value):
                    more.append(array)
                    continue
                if not self.is_quick(array):
                    return None
                found[array] = None
                found.update(dict.fromkeys(self.attempts[array].inlined))
                pending.append(array)
            if 1 + len(found) + depth > MOST_IN_A_ROW:
                return None
        return frozenset(found)


def _axes(value: Value, index: Sequence[IndexExpression], attempt: Attempt, member: Member) -> tuple[int, ...] | None:
    """The axis of the group along each dimension of a value that a member reads element by element, -1 for one of extent 1; None if it
    does not read it so."""
    entries, found = plain_axes(index), list[int]()
    if entries is None:
        return None
    for entry, extent in zip(entries, value.shape, strict=True):
        dimension = None if entry is None else attempt.number.get(entry.terms[0][0])
        if extent == 1:
            found.append(-1)
        elif dimension is None or attempt.shape[dimension] != extent:
            return None
        else:
            found.append(member.domain[dimension])
    return tuple(found)
