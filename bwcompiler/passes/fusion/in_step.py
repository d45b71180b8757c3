"""Updates that a loop may do although it reads what they write: `a[i, :] = a[i, :] * 2`, element by element.

Every iteration reads the one element that it writes, or the surrounding loop over rows reads elements of its own row before a pass writes
them: no other iteration, or row, has written them.  Nothing may read them afterwards, so the update comes after these readers
(`Member.after`), in a later pass if they are computed again there.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from bwcompiler.ir.access import root, section_of
from bwcompiler.ir.contracts.fusion import FusionGroup, Member
from bwcompiler.ir.op import Value
from bwcompiler.passes.fusion.attempt import Attempt, section_read


def readers_in_step(update: Attempt, group: FusionGroup, versions: Set[Value],
                    attempts: Mapping[Value, Attempt]) -> frozenset[Value] | None:
    """The members of a group that read what an update would write of an array there, if it can be done behind them; else None.

    versions  of the array, which are the same where the update writes; attempts: of the members, with what they read.
    """
    axes, written = update.axes_in(group), section_of(update.value)
    if axes is None or set(axes) - {-1} != set(range(len(group.extents))):
        return None
    own = update.place(update.own_element(), axes)
    found = []
    for member in group.members:
        reader = attempts[member.value]
        for base, index in reader.reads:
            if root(base) not in versions:
                continue
            section = section_read(base, index, reader.number)
            if section is not None and section.is_apart(written):
                continue
            if own is None or base not in versions or not _is_read_before(reader.place(index, member.domain), own, member, group):
                return None
            found.append(member.value)
    return frozenset(found)


def _is_read_before(place: tuple[object, ...] | None, own: tuple[object, ...], member: Member, group: FusionGroup) -> bool:
    """Whether a member reads nothing that another iteration than the one that an update writes in, or another row, writes.

    place, own: what is read, and what is written in an iteration, in terms of the group's axes.
    """
    if place is None:
        return False
    if member.is_number and group.extents:             # computed before all loops, or behind them
        return False
    if place == own:
        return True
    inner = group.inner
    if inner is None or not inner.isdisjoint(member.domain_axes):
        return False
    return all(mine == other for mine, other in zip(place, own, strict=True) if inner.isdisjoint(_axes_of(other)))


def _axes_of(entry: object) -> frozenset[int]:
    """The axes that a place moves with, along one dimension."""
    assert isinstance(entry, tuple)
    return frozenset([axis for axis, _ in entry[1]])
