"""The passes from a traced (or differentiated) graph to the one that fusion takes, in order."""

from __future__ import annotations

from typing import NamedTuple

from bwcompiler.errors import InternalError
from bwcompiler.passes.legalize import legalize
from bwcompiler.passes.pass_manager import Pass
from bwcompiler.passes.simplify import simplify

PASSES: tuple[Pass, ...] = (
    Pass("legalize", legalize, "ops that lowering does not take -> ops that it takes"),
    Pass("simplify", simplify, "algebraic identities, constant folding, common subexpressions, dead values"),
)


class Before(NamedTuple):
    """The first pass must come before the second; documents the order, never changes it."""

    first: str
    second: str
    because: str


ORDER = (
    Before("legalize", "simplify", because="what legalisation makes (pads, slices) is simplified and merged too"),
)


def check_order(passes: tuple[Pass, ...], order: tuple[Before, ...]) -> None:
    """Raise InternalError unless names are distinct and the order keeps every constraint."""
    names = [step.name for step in passes]
    if len(set(names)) != len(names):
        raise InternalError(f"two passes have one name: {names}")
    for first, second, because in order:
        if names.index(first) >= names.index(second):
            raise InternalError(f"pass {first} must come before {second}: {because}")


check_order(PASSES, ORDER)
