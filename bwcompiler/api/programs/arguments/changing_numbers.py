"""Numbers and arrays outside of a function that are bound anew between its calls: operands of its program, from the second on.

So are the contents of arrays outside, where they were read while tracing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bwcompiler.frontend.tracing.outside.kinds import can_be_replaced, is_operand
from bwcompiler.frontend.tracing.outside.repeated import OutsideRead
from bwcompiler.ir.contracts.call_signature import Read


class ChangingNumbers:
    """Numbers and arrays outside, and contents of arrays, that were seen to change: they become operands, unless the function has to
    know them."""

    def __init__(self) -> None:
        self.found: dict[Any, OutsideRead] = {}
        self.fixed: set[Any] = set()

    def varying(self, changed: Sequence[OutsideRead]) -> list[OutsideRead]:
        """What is to be traced as operands, with the values that it has now; arrays to be read by the program."""
        for outside in changed:
            if _place(outside.read) not in self.fixed and _can_vary(outside.read):
                forgotten = outside.read if outside.read.kind == "bytes" else outside.read._replace(expected=None)
                self.found[_place(outside.read)] = outside._replace(read=forgotten)
        arrays = [outside for outside in self.found.values() if outside.read.kind == "bytes"]
        current = [(outside, outside.read.look()) for outside in self.found.values() if outside.read.kind != "bytes"]
        return [*arrays, *[outside._replace(read=outside.read._replace(expected=now)) for outside, now in current if is_operand(now)]]

    def settle(self, asked: Sequence[OutsideRead], got: Sequence[OutsideRead]) -> None:
        """Those that did not become operands never will."""
        for place in {_place(outside.read) for outside in asked} - {_place(outside.read) for outside in got}:
            self.found.pop(place, None)
            self.fixed.add(place)


def _can_vary(read: Read) -> bool:
    """Whether what changed can be an operand."""
    now = read.look()
    return read.kind == "bytes" or (is_operand(now) and type(now) is type(read.expected) and can_be_replaced(read))


def _place(read: Read) -> Any:
    """What is read: of an array its memory."""
    return read.place if read.kind != "bytes" else (read.kind, read.base.__array_interface__["data"][0], read.base.size)
