"""The targets that this machine can run, for tests that compare them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bwcompiler.errors import TargetError
from bwcompiler.target import Target, compiling_for

NAMES = ("x86-64-v2", "x86-64-v3", "x86-64-v4@256", "x86-64-v4@512", "znver5", "host")


def _runnable() -> dict[str, Target]:
    found: dict[str, Target] = {}
    for name in NAMES:
        try:
            target = Target.parse(name)
        except TargetError:             # not a machine with these levels
            continue
        if not target.missing() and target not in found.values():
            found[name] = target
    return found


TARGETS = _runnable()                  # by name; the host is among them, under its own name if no other has it
HOST = Target.host()


def with_fma() -> dict[str, Target]:
    """Those that are promised to give the same bits."""
    return {name: target for name, target in TARGETS.items() if target.has_fma}


def narrowest() -> Target:
    """The one with the fewest instructions: on x86-64 without FMA."""
    return next(iter(TARGETS.values()))


def on_each(run: Callable[[], Sequence[Any]], targets: Iterable[Target] = TARGETS.values()) -> dict[Target, list[np.ndarray[Any, Any]]]:
    """The arrays that `run` computes with what it compiles for each target."""
    found = {}
    for target in targets:
        with compiling_for(target):
            found[target] = [np.asarray(array) for array in run()]
    return found


def require_agreement(found: Mapping[Target, Sequence[np.ndarray[Any, Any]]], what: str) -> None:
    """The same bits on all targets that have FMA (only a nan may be another nan)."""
    same = [(target, arrays) for target, arrays in found.items() if target.has_fma]
    for target, arrays in same[1:]:
        for number, (x, y) in enumerate(zip(arrays, same[0][1], strict=True)):
            where = f"{what}: output {number}: {target} and {same[0][0]}"
            assert (x.dtype, x.shape) == (y.dtype, y.shape), where
            np.testing.assert_array_equal(x, y, where)
            if x.dtype.kind == "f":
                numbers = ~np.isnan(x)
                np.testing.assert_array_equal(np.signbit(x[numbers]), np.signbit(y[numbers]), where)
