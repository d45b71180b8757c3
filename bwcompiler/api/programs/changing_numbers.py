"""Numbers outside of a function that change between its calls: operands of its program, from the second value on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bwcompiler.frontend.tracing.outside import OutsideRead, can_be_replaced


class ChangingNumbers:
    """Numbers outside that were seen to change: they become operands, unless the function has to know them."""

    def __init__(self) -> None:
        self.found: dict[Any, OutsideRead] = {}
        self.fixed: set[Any] = set()

    def varying(self, changed: Sequence[OutsideRead]) -> list[OutsideRead]:
        """The numbers to trace as operands, with the values that they have now."""
        for outside in changed:
            now, key = outside.read.look(), outside.read.place
            if key not in self.fixed and type(now) in (int, float) and type(now) is type(outside.read.expected) and (
                    can_be_replaced(outside.read)):
                self.found[key] = outside
        current = [(outside, outside.read.look()) for outside in self.found.values()]
        return [outside._replace(read=outside.read._replace(expected=now)) for outside, now in current if type(now) in (int, float)]

    def settle(self, asked: Sequence[OutsideRead], got: Sequence[OutsideRead]) -> None:
        """Those that did not become operands never will."""
        for outside in asked:
            if outside not in got:
                self.found.pop(outside.read.place, None)
                self.fixed.add(outside.read.place)
