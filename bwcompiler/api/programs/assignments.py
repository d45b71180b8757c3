"""Arguments that a function assigns to: which are written back to the caller's arrays, and which cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler.errors import SignatureError
from bwcompiler.frontend.tracing.trace import TraceResult


def may_mutate(mutates: Any, number: int, names: Sequence[str]) -> bool:
    """Whether argument leaf `number` is to be written back, by the option `mutates` of `jit` and `compile`."""
    if isinstance(mutates, bool):
        return mutates
    root = names[number].split(".")[0]
    selected = (mutates,) if isinstance(mutates, int | str) else tuple(mutates)
    return root in selected or number in selected


def check_written(traced: TraceResult, leaves: Sequence[Any], captured: Sequence[Any], into: Sequence[int | None]) -> None:
    """Raise where an argument that is written back cannot be, or where another array would change with one that is assigned to."""
    names = traced.input_names
    for number in sorted(traced.written):
        target = leaves[number]
        if number in into and not isinstance(target, np.ndarray):
            raise SignatureError(f"{names[number]} is assigned to, but the argument is not an array")
        if number in into and not target.flags.writeable:
            raise ValueError(f"{names[number]} is assigned to, but the array is read-only")
        others = [*zip(leaves, names, strict=False), *[(array, "an array that the function captures") for array in captured]]
        for other, (leaf, name) in enumerate(others):
            if other != number and isinstance(leaf, np.ndarray) and np.may_share_memory(target, leaf):
                raise SignatureError(f"{names[number]} is assigned to and may share memory with {name}: the other would "
                                     f"change too\n  hint: pass a copy, {names[number]}.copy()")
