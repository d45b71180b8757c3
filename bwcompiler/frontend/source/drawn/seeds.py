"""Functions that create or seed a generator of random numbers: an integer argument that is the seed must be known, like a size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler.frontend.source.drawn import streams
from bwcompiler.frontend.tracing.operands import known_parts

_SEEDED = frozenset((
    "Generator", "MT19937", "PCG64", "PCG64DXSM", "Philox", "Random", "RandomState", "SFC64", "SeedSequence", "default_rng", "seed"))


def seeded(function: Any) -> Callable[..., Any] | None:
    """`np.random.default_rng` and its like, taking integer arguments of the program; None for other functions.

    A program is made for each seed then.  Without this NumPy would refuse the traced number, of which it asks the type.
    """
    streams.lend(getattr(function, "__self__", None))              # its methods move it on
    if getattr(function, "__name__", None) not in _SEEDED or not str(function.__module__).startswith(("numpy.random", "random")):
        return None

    def made(*args: Any, **kwargs: Any) -> Any:
        found = function(*known_parts(args), **{name: known_parts(value) for name, value in kwargs.items()})
        is_seed = function.__name__ == "seed"
        streams.seeded(_global(function) if is_seed else found, is_seed)
        return found
    return made


def _global(seed: Any) -> Any:
    """The generator that a function seeds."""
    owner = getattr(seed, "__self__", None)
    return np.random.mtrand._rand if owner is None else owner
