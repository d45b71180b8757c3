"""The steps of a program during fusion: numbered as they are opened, and ordered at the end.

Groups and calls are the nodes of a separate graph, whose order is maintained as it grows (`StepOrder`); scheduling gives the steps
their final positions in that order.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable

from bwcompiler.ir.access import ArrayView
from bwcompiler.ir.contracts.fusion import Call, FusionGroup
from bwcompiler.ir.op import Value
from bwcompiler.passes.fusion.step_order import StepOrder

Step = FusionGroup | Call


class Steps:
    """opened  all steps, each at its position until they are scheduled; of: the step that computes a value."""

    def __init__(self) -> None:
        self.opened: list[Step] = []
        self.of: dict[Value, Step] = {}
        self.order = StepOrder()

    def open_group(self, sources: Iterable[int]) -> FusionGroup:
        """A new group, which comes after `sources`."""
        group = FusionGroup(self.order.add(sources))
        self.opened.append(group)
        return group

    def open_call(self, value: Value, operands: tuple[ArrayView, ...], sources: Iterable[int]) -> Call:
        """A new call, which computes the value and comes after `sources`."""
        call = Call(self.order.add(sources), value, operands)
        self.opened.append(call)
        self.of[value] = call
        return call

    def comes_after(self, step: int, sources: Collection[int]) -> bool:
        """Let a step come after others, if it can."""
        moved = self.order.moved_before(step, sources)
        if moved is None:
            return False
        self.order.put_after(step, sources, moved)
        return True

    def schedule(self, stored: Container[Value]) -> dict[int, int]:
        """Number the steps in the order in which they run, without groups of which all is computed again where it is read; the new
        position of each, by the old one."""
        kept = [step for step in self.opened if isinstance(step, Call) or any(member.value in stored for member in step.members)]
        self.opened = sorted(kept, key=lambda step: self.order.rank[step.position])
        place = {step.position: number for number, step in enumerate(self.opened)}
        self.of = {value: step for value, step in self.of.items() if step.position in place}
        for step in self.opened:
            step.position = place[step.position]
        return place
