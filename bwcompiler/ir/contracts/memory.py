"""The memory plan of a program: the arrays that each step accesses, and the location of every stored value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bwcompiler.ir.op import Value

ALIGNMENT = 64                 # alignment in bytes of all blocks in an arena


class Update(NamedTuple):
    """result starts as operand's elements.  separate: the step also reads operand's old elements, so it needs a copy."""

    operand: Value
    result: Value
    separate: bool = False


@dataclass
class StepUse:
    """The memory accesses of one step: values read and written (roots), the scratch it needs, and the arrays it updates.

    updates    results that start as an operand's elements: they take over its memory, or get a copy of it.
    sharing    (read, written): the step may write the second into the memory of the first; for requested pairs and large arrays.
    """

    reads: list[Value] = field(default_factory=list)
    writes: list[Value] = field(default_factory=list)
    scratch: list[int] = field(default_factory=list)
    updates: list[Update] = field(default_factory=list)
    sharing: list[tuple[Value, Value]] = field(default_factory=list)


class Location(NamedTuple):
    """Memory of a value: "argument" or "result" number, or "arena" byte offset."""

    kind: str
    number: int


class Copied(NamedTuple):
    """Why an update got a copy of its operand: a rule of `bwcompiler.passes.memory.plan_memory` (RULES), and its step, if it has one."""

    operand: Value
    rule: str
    step: int | None = None


@dataclass
class MemoryPlan:
    """The locations of all values.

    locations    per root value.
    scratch      arena offsets per step.
    in_place     results that took over the memory of the operand they update.
    copied       results that got a copy of the operand they update.
    copies       (value, result number): results that are another value's memory, copied at the end.
    saved        (value, arena offset): arguments that are written to before a copy reads them, copied at the start.
    """

    locations: dict[Value, Location] = field(default_factory=dict)
    scratch: list[Sequence[int]] = field(default_factory=list)
    in_place: set[Value] = field(default_factory=set)
    copied: dict[Value, Copied] = field(default_factory=dict)
    copies: list[tuple[Value, int]] = field(default_factory=list)
    saved: list[tuple[Value, int]] = field(default_factory=list)
    arena_bytes: int = 0
