"""The memory plan of a program: what each step touches, and where every stored value lives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bwcompiler.ir.op import Value


@dataclass
class StepUse:
    """What one step touches: values read and written (roots), the scratch it needs, and a value it may update in place.

    in_place   (operand, result): the result may take over the operand's memory if nothing reads it later.
    """

    reads: list[Value]
    writes: list[Value]
    scratch: list[int] = field(default_factory=list)
    in_place: tuple[Value, Value] | None = None


class Location(NamedTuple):
    """Memory of a value: "argument" or "result" number, or "arena" byte offset."""

    kind: str
    number: int


@dataclass
class MemoryPlan:
    """Where everything is.

    locations    per root value.
    scratch      arena offsets per step.
    in_place     positions of steps that update their operand's memory.
    copies       (value, result number): results that are another value's memory, copied at the end.
    """

    locations: dict[Value, Location] = field(default_factory=dict)
    scratch: list[Sequence[int]] = field(default_factory=list)
    in_place: set[int] = field(default_factory=set)
    copies: list[tuple[Value, int]] = field(default_factory=list)
    arena_bytes: int = 0
