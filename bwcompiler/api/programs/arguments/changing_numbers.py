"""Numbers and arrays outside of a function that are rebound between calls: from the second program on they are operands.

So are the contents of outside arrays that were read while tracing, and the numbers and arrays in outside objects that are replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bwcompiler.frontend.tracing.outside.kinds import can_be_replaced, is_operand
from bwcompiler.frontend.tracing.outside.rebinding import can_be_rebound, rebased
from bwcompiler.frontend.tracing.outside.repeated import OutsideRead
from bwcompiler.ir.contracts.call_signature import OfClass, Read


class ChangingNumbers:
    """Outside numbers, arrays and contents of arrays that changed between calls.

    found    places of those that become operands; fixed: of those that tracing needs as compile-time values.
    rebound  places of objects that were replaced by others of their class.
    """

    def __init__(self) -> None:
        self.found: dict[Any, OutsideRead] = {}
        self.fixed: set[Any] = set()
        self.rebound: dict[Any, OutsideRead] = {}

    def varying(self, changed: Sequence[OutsideRead], before: Sequence[OutsideRead] = ()) -> list[OutsideRead]:
        """The reads to trace as operands, with their present values; those of kind "bytes" are arrays whose contents the program is to
        read.  before: all reads of the last trace."""
        for outside in changed:
            if _place(outside.read) not in self.fixed and _can_vary(outside.read):
                self._add(outside)
        self._follow([outside for outside in changed if _is_rebound(outside.read)], before)
        arrays = [outside for outside in self.found.values() if outside.read.kind == "bytes"]
        current = [(outside, outside.read.look()) for outside in self.found.values() if outside.read.kind != "bytes"]
        return [*arrays, *[outside._replace(read=outside.read._replace(expected=now)) for outside, now in current if is_operand(now)]]

    def _add(self, outside: OutsideRead) -> None:
        forgotten = outside.read if outside.read.kind == "bytes" else outside.read._replace(expected=None)
        self.found[_place(outside.read)] = outside._replace(read=forgotten)

    def _follow(self, objects: Sequence[OutsideRead], before: Sequence[OutsideRead]) -> None:
        """Make operands of the numbers and arrays in objects that were replaced."""
        for outside in objects:
            self.rebound[_place(outside.read)] = outside._replace(read=outside.read._replace(expected=None))
        found = rebased(before, [(outside, outside.read.expected) for outside in objects]) if objects else None
        for outside in found or ():
            read = outside.read
            if type(read.base) is Read and is_operand(read.look()) and _place(read) not in self.fixed and can_be_replaced(read):
                self._add(outside)

    def settle(self, asked: Sequence[OutsideRead], got: Sequence[OutsideRead]) -> None:
        """After tracing: never ask again for those that did not become operands."""
        for place in {_place(outside.read) for outside in asked} - {_place(outside.read) for outside in got}:
            self.found.pop(place, None)
            self.fixed.add(place)


def _can_vary(read: Read) -> bool:
    """Whether the changed value can be an operand."""
    now = read.look()
    return read.kind == "bytes" or (is_operand(now) and type(now) is type(read.expected) and can_be_replaced(read))


def _is_rebound(read: Read) -> bool:
    """Whether an object was replaced by another one of its class."""
    return (read.kind not in ("size", "keys", "items", "bytes") and type(read.expected) is not OfClass and can_be_rebound(read.expected)
            and type(read.look()) is type(read.expected) and not is_operand(read.expected))


def _place(read: Read) -> Any:
    """The key of a read: its place, or for the contents of an array the memory."""
    return read.place if read.kind != "bytes" else (read.kind, read.base.__array_interface__["data"][0], read.base.size)
