"""Whose truth values a loop carries: Python's or NumPy's (`tracing.truths`).

An iteration is assumed to get what the loop was entered with.  Where it gives another one, nobody knows; the body is traced again if
it has asked.
"""

from __future__ import annotations

from collections.abc import Sequence

from bwcompiler.frontend.tracing.control_flow.bodies import Leaf, Traced
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.frontend.tracing.truths import note_truth, of_both
from bwcompiler.ir.types import BOOL


class Truths:
    """Of one loop.  unsure: leaves, as names of variables and numbers, that are Python's in some iterations and NumPy's in others."""

    def __init__(self) -> None:
        self.unsure: set[tuple[str, int]] = set()

    def known(self, name: str, leaves: Sequence[Leaf]) -> list[Leaf]:
        """What is carried of a variable, with whose it may be in all iterations."""
        return [leaf._replace(truth=None) if (name, number) in self.unsure else leaf for number, leaf in enumerate(leaves)]

    def are_settled(self, names: Sequence[tuple[str, int]], leaves: list[Leaf], found: Traced) -> bool:
        """Whether the body was right in what it assumed, or has not asked; names: of the leaves."""
        wrong = [place for place, leaf in enumerate(leaves) if leaf.value.dtype is BOOL and (
            of_both(leaf.truth, found.truths[place]) is not leaf.truth)]
        self.unsure.update([names[place] for place in wrong])
        for place in wrong:
            leaves[place] = leaves[place]._replace(truth=None)
        return not (wrong and found.truths_asked)


def note_carried(leaves: Sequence[Leaf], handles: Sequence[Tracer]) -> None:
    """What the loop gives is what it carries."""
    for leaf, one in zip(leaves, handles, strict=True):
        if leaf.value.dtype is BOOL:
            note_truth(one, leaf.truth)
