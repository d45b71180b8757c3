"""Values from outside that vary between calls: they become inputs of the graph, and while tracing the function sees handles instead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.frontend.tracing.outside.repeated import OutsideRead


class Written(BaseException):
    """The function assigns to arrays outside: to these of the leaves of what varies."""

    def __init__(self, numbers: Sequence[int]) -> None:
        super().__init__()
        self.numbers = numbers


def without(varying: Sequence[OutsideRead], numbers: Sequence[int]) -> list[OutsideRead]:
    """What varies but that to which leaves with these numbers belong."""
    kept, first = [], 0
    for found in varying:
        count = 0 if found.read.kind == "bytes" else len(tree.leaves(found.read.expected))
        if not any(first <= number < first + count for number in numbers):
            kept.append(found)
        first += count
    return kept


def narrowed(varying: Sequence[OutsideRead]) -> list[OutsideRead]:
    """What may vary where not all of it can: floating-point numbers and arrays (the others choose or count), then nothing."""
    kept = [found for found in varying if found.read.kind == "bytes" or all(
        np.asarray(leaf).dtype.kind in "fc" for leaf in tree.leaves(found.read.expected))]
    return kept if len(kept) < len(varying) else []


@contextmanager
def replaced(varying: Sequence[OutsideRead], handles: Sequence[Any]) -> Iterator[None]:
    """Put handles in the places of what is read from outside, while the function is traced."""
    try:
        for found, handle in zip(varying, handles, strict=True):
            _put(found, handle)
        yield
    finally:
        for found in varying:
            _put(found, found.read.expected)


def _put(found: OutsideRead, value: Any) -> None:
    kind, base, key = found.read.kind, found.read.owner, found.read.key
    if kind == "cell":
        base.cell_contents = value
    elif kind == "attribute" and key in getattr(base, "__dict__", {}):
        vars(base)[key] = value                    # whatever the class thinks of it
    elif kind == "attribute":
        object.__setattr__(base, key, value)       # of a slot
    else:
        base[key] = value
