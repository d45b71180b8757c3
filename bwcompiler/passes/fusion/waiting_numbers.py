"""Numbers (values of one element), which open no groups: they wait, and are placed after everything else.

A number is computed in every group that reads it, before the group's loops, if that is cheap or the group is the only reader; otherwise
in one step before all of them, which stores it in memory.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import NamedTuple

from bwcompiler.errors import InternalError
from bwcompiler.ir.contracts.fusion import FusionGroup
from bwcompiler.ir.op import Value
from bwcompiler.passes.fusion.attempt import Attempt
from bwcompiler.passes.fusion.steps import Steps

MOST_REPEATED = 8                              # operations of a number that more than one group computes for itself


class WaitingNumber(NamedTuple):
    """sources  the steps that compute what it reads; numbers: the waiting numbers that it reads.
    work     operations to compute it, with these; expensive ones count many.
    """

    attempt: Attempt
    sources: frozenset[int]
    numbers: tuple[Value, ...]
    work: int


class Placement(NamedTuple):
    """held  the numbers that each group computes, those that read others first; kept: those that have memory."""

    held: dict[int, list[Value]]
    kept: list[Value]


class WaitingNumbers:
    """by_value  all that wait; readers: the steps that read each.  groups: those that were opened for numbers alone."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.by_value: dict[Value, WaitingNumber] = {}
        self.readers: dict[Value, dict[int, None]] = {}
        self.groups: list[int] = []

    def __contains__(self, value: object) -> bool:
        return value in self.by_value

    def add(self, attempt: Attempt, arrays: Sequence[Value], sources: Iterable[int]) -> None:
        """Let the number wait that is computed from these arrays, after these steps."""
        numbers = tuple([array for array in dict.fromkeys(arrays) if array in self.by_value])
        own = 1 if attempt.value.op.cheap else 1 + MOST_REPEATED
        work = own + sum(self.by_value[number].work for number in numbers)
        self.by_value[attempt.value] = WaitingNumber(attempt, frozenset(sources), numbers, work)

    def read(self, number: Value, step: int) -> None:
        """A step reads a waiting number."""
        self.readers.setdefault(number, {})[step] = None

    def place(self, forced: Container[Value]) -> Placement:
        """Which groups compute each number that something reads; forced: those that have memory in any case."""
        wanted: dict[Value, dict[int, None]] = {value: dict(steps) for value, steps in self.readers.items()}
        held: dict[int, list[Value]] = {}
        kept: list[Value] = []
        for value, number in reversed(self.by_value.items()):
            readers = wanted.get(value, {})
            holders = tuple(readers)
            if value in forced or (len(readers) > 1 and number.work > MOST_REPEATED):
                kept.append(value)
                holders = (self._holder(number, readers),)
            for step in holders:
                held.setdefault(step, []).append(value)
                for source in number.numbers:
                    wanted.setdefault(source, {})[step] = None
        return Placement(held, kept)

    def _holder(self, number: WaitingNumber, readers: Iterable[int]) -> int:
        """The one step that computes a number, before all that read it: the first of these groups, or one for numbers alone."""
        steps = self.steps
        groups = sorted([step for step in readers if isinstance(steps.opened[step], FusionGroup)], key=steps.order.rank.__getitem__)
        for step in (*groups[:1], *self.groups[-1:]):
            if steps.comes_after(step, number.sources) and all(steps.comes_after(reader, (step,)) for reader in readers if reader != step):
                return step
        step = steps.open_group(number.sources).position
        self.groups.append(step)
        if not all(steps.comes_after(reader, (step,)) for reader in readers):
            raise InternalError("a number cannot be computed before what reads it")
        return step
