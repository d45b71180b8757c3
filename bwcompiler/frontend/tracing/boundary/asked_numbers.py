"""Arguments whose numbers a function asks for while it is traced: it is traced again with these numbers as compile-time values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler.errors import TracerError, TracerIndexError
from bwcompiler.frontend.tracing.boundary.arguments import Arguments
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.refusals.demands import number_of
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.storages.region import StaticDemand, open_region
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.source import Source
from bwcompiler.ir.types import BOOL


class AskedNumbers:
    """What was asked for in the traces of one function so far, by positions of arguments.

    demanded   those that became compile-time values, and the lines that asked.
    unknown    those that nobody can have the number of.
    floats     the numbers of those that stay operands, since there are derivatives with respect to them.
    """

    def __init__(self, arguments: Arguments) -> None:
        self.arguments = arguments
        self.demanded: dict[int, Source | None] = {}
        self.unknown: set[int] = set()
        self.floats: dict[int, Any] = {}

    def foresee(self, fun: Callable[..., Any]) -> None:
        """Make the integers compile-time values that the function surely asks for."""
        arguments = self.arguments
        integers = [position for position in arguments.dynamic if _is_integer(arguments.leaves[position])]
        names = arguments.names() if integers else []
        asked = HANDLERS["surely_asked"](fun, [names[position] for position in integers]) if integers else {}
        for position in integers:
            number = _number(arguments.leaves[position]) if names[position] in asked else None
            if number is not None:
                arguments.leaves[position] = number
                arguments.also_static([position])
                self.demanded[position] = asked[names[position]]

    def answer(self, demand: StaticDemand, keeps_floats: bool) -> None:
        """Make the leaves that were asked for compile-time values, those of an enclosing trace by asking there; or note
        that they have none.

        keeps_floats: only the numbers of floats are noted, as inside of another trace.
        """
        arguments = self.arguments
        positions = [arguments.dynamic[number] for number in demand.numbers]
        numbers = [_number(arguments.leaves[position]) for position in positions]
        without = [position for position, number in zip(positions, numbers, strict=True) if number is None]
        self.unknown.update(without)
        if without:
            return
        found = dict(zip(positions, numbers, strict=True))
        if keeps_floats:
            self.floats.update({position: number for position, number in found.items() if isinstance(number, float | np.floating)})
            found = {position: number for position, number in found.items() if position not in self.floats}
        for position in arguments.beside(positions):
            number = _number(arguments.leaves[position])
            if number is not None:
                found[position] = number
        for position, number in found.items():
            arguments.leaves[position] = number
            self.demanded[position] = demand.source
        arguments.also_static(found)


def _is_integer(leaf: Any) -> bool:
    if isinstance(leaf, Tracer):
        return leaf._type.dtype.kind in "biu" and not leaf._type.shape and not leaf._storage.writable
    return isinstance(leaf, int | np.integer | np.bool_)


def _number(leaf: Any) -> Any:
    """The number of an argument that is one; None of a handle that data decide, and of a stand-in."""
    if not isinstance(leaf, Tracer):
        return leaf if isinstance(leaf, int | float | np.integer | np.floating | np.bool_) else None
    region = open_region()
    refusal = region.refusal
    try:
        if leaf._type.dtype.kind == "f":
            return number_of(leaf, value_of(leaf), TracerIndexError, str, is_operand=True)
        return bool(leaf) if leaf._type.dtype is BOOL else int(leaf)
    except TracerError:
        region.refusal = refusal
        return None
