"""Updates that a loop may do although it reads what they write: `a[i, :] = a[i, :] * 2`, element by element.

Every iteration reads the one element that it writes, and before it does: no other iteration has written it, and none reads it again.
"""

from __future__ import annotations

from collections.abc import Mapping

from bwcompiler.ir.access import root
from bwcompiler.ir.contracts.fusion import FusionGroup, update_section
from bwcompiler.ir.op import Value
from bwcompiler.passes.fusion.attempt import Attempt, section_read


def reads_in_step(update: Attempt, group: FusionGroup, array: Value, attempts: Mapping[Value, Attempt]) -> bool:
    """Whether all that a group's members read of an array that an update would write there is so, or apart.

    attempts  of the members, with what they read.
    """
    if group.inner is not None or any(member.reduced or member.is_number for member in group.members):
        return False                                       # in more than one pass an element may be read again
    axes, written = update.axes_in(group), update_section(update.value)
    if axes is None or set(axes) - {-1} != set(range(len(group.extents))):
        return False
    own, before = update.place(update.own_element(), axes), _made_of(update, group, attempts)
    for member in group.members:
        reader = attempts[member.value]
        for base, index in reader.reads:
            if root(base) is not array:
                continue
            section = section_read(base, index, reader.number)
            if section is not None and section.is_apart(written):
                continue
            if member.value not in before or base is not array or reader.place(index, member.domain) != own:
                return False
    return True


def _made_of(update: Attempt, group: FusionGroup, attempts: Mapping[Value, Attempt]) -> set[Value]:
    """The members of a group that have to be computed before an update: the others may be where they are read."""
    found: set[Value] = set()
    waiting = [base for base, _ in update.reads]
    while waiting:
        value = waiting.pop()
        if value in group.by_value and value not in found:
            found.add(value)
            waiting += [base for base, _ in attempts[value].reads]
    return found
