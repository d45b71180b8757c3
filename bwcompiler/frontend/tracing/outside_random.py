"""States of random number generators: whether they gave numbers while a function was traced."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np

_MERSENNE_BYTES = 4 * 624 + 4  # NumPy's mt19937_state: the key and the position in it


def generator_state(value: Any) -> Any:
    """The state of a random number generator, NumPy's of either kind or Python's; None of anything else."""
    numpy, python = sys.modules.get("numpy.random"), sys.modules.get("random")
    if numpy is not None and isinstance(value, numpy.Generator):
        return value.bit_generator.state
    if numpy is not None and isinstance(value, numpy.RandomState):
        return value.get_state(legacy=False)
    return value.getstate() if python is not None and type(value) is python.Random else None


def legacy_state() -> Any:
    """The states of np.random's and random's own generators, where these modules have been imported; as bytes: at every trace."""
    module = sys.modules.get("numpy.random.mtrand")
    numbers = None if module is None else ctypes.string_at(module._rand._bit_generator.ctypes.state_address, _MERSENNE_BYTES)
    python = sys.modules.get("random")
    return numbers, None if python is None else python.getstate()


def has_drawn() -> bool:
    """Whether np.random's own generator, made since, has given numbers: NumPy imports np.random when it is first named."""
    module = sys.modules.get("numpy.random.mtrand")
    places = [] if module is None else [made.get_state(legacy=False)["state"]["pos"] for made in (module._rand, module.RandomState())]
    return len(set(places)) > 1


def same_state(x: Any, y: Any) -> bool:
    if isinstance(x, dict):
        return all(same_state(x[key], y[key]) for key in x)
    return bool(np.array_equal(x, y)) if isinstance(x, np.ndarray) else bool(x == y)

