"""Arrays that are updated in place: who reads them, and which groups may contain an update or a read of one.

All versions of such an array share its memory.  So an update runs after all readers of the previous version, or in one loop with them
if no element belonging to two versions is read and written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bwcompiler.ir.access import root, section_of
from bwcompiler.ir.contracts.fusion import FusionGroup
from bwcompiler.ir.op import Value
from bwcompiler.ir.scalar import IndexExpression
from bwcompiler.passes.fusion.attempt import Attempt, section_read
from bwcompiler.passes.fusion.in_step import readers_in_step
from bwcompiler.passes.memory.find_updates import Updates


class Versions:
    """updates  what is written in place, and where; readers: the steps that read each array that is written to."""

    def __init__(self, updates: Updates) -> None:
        self.updates = updates
        self.readers: dict[Value, dict[int, None]] = {array: {} for array in updates.arrays}

    def are_written(self, arrays: Iterable[Value]) -> bool:
        """Whether one of these is written to later: it may be another one by then."""
        return any(array in self.readers for array in arrays)

    def called_with(self, array: Value, step: int) -> None:
        """A call reads the array."""
        if array in self.readers:
            self.readers[array][step] = None

    def read(self, base: Value, index: Sequence[IndexExpression], attempt: Attempt, group: FusionGroup) -> None:
        """A member of the group reads base[index]."""
        array = root(base) if self.readers else base
        if array in self.readers:
            group.touched.setdefault(array, []).append(section_read(base, index, attempt.number))
            self.readers[array][group.position] = None

    def update(self, value: Value, group: FusionGroup) -> None:
        """The value, a member of the group, has the memory of the array it updates, from here on."""
        array = root(value.operands[0])
        written = group.updated.setdefault(array, [])
        written.append(section_of(value))
        group.updated[value] = written
        group.touched[value] = group.touched.setdefault(array, [])

    def are_kept_apart(self, attempt: Attempt, group: FusionGroup, attempts: Mapping[Value, Attempt]) -> bool:
        """Whether in this group, with the value in it, no element is read and written that belongs to two versions of an array.

        attempts  of the members, with what they read.
        """
        if group.updated and not self._reads_are_apart(attempt, group):
            return False
        return not attempt.update or self._update_is_apart(attempt, group, attempts)

    def _reads_are_apart(self, attempt: Attempt, group: FusionGroup) -> bool:
        for base, index in attempt.reads:
            array = root(base)
            written = group.updated.get(array)
            if written is None:
                continue
            section = section_read(base, index, attempt.number)
            if array in group.by_value or section is None or not all(section.is_apart(other) for other in written):
                return False
        return True

    def _update_is_apart(self, attempt: Attempt, group: FusionGroup, attempts: Mapping[Value, Attempt]) -> bool:
        array, mine = root(attempt.value.operands[0]), section_of(attempt.value)
        made_here = array in group.by_value
        if made_here != (array in group.updated):          # made by a fused value, or another update has its memory already
            return False
        if made_here and array not in self.updates.passed_on:
            return False
        written = group.updated.get(array, [])
        if attempt.reads_what_it_writes([version for version, other in group.updated.items() if other is written]):
            return False
        if not all(mine.is_apart(section) for section in written):
            return False
        apart = all(section is not None and mine.is_apart(section) for section in group.touched.get(array, []))
        return apart or readers_in_step(attempt, group, self._versions(array, group), attempts) is not None

    def read_before(self, attempt: Attempt, group: FusionGroup, attempts: Mapping[Value, Attempt]) -> frozenset[Value]:
        """The members of a group that read what an update overwrites, which it is done behind."""
        array = root(attempt.value.operands[0])
        if array not in group.touched:
            return frozenset()
        return readers_in_step(attempt, group, self._versions(array, group), attempts) or frozenset()

    @staticmethod
    def _versions(array: Value, group: FusionGroup) -> frozenset[Value]:
        """The versions of an array that share its memory in a group: they agree but for what its updates write."""
        written = group.updated.get(array)
        return frozenset([array, *[version for version, other in group.updated.items() if other is written]])
