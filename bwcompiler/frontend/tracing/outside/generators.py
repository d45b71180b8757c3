"""States of random number generators: whether a generator was used while a function was traced."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np

from bwcompiler.frontend.tracing.outside.repeated import warn
from bwcompiler.ir.source import Source

_MERSENNE_BYTES = 4 * 624 + 4  # NumPy's mt19937_state: the key and the position in it


class Generators:
    """The generators that one trace meets, with their states then; and those that np.random and random have themselves."""

    def __init__(self) -> None:
        self._met: dict[int, tuple[Any, Any, Source | None, str]] = {}
        self._modules = _module_states()

    def note(self, value: Any, path: str, source: Source | None) -> None:
        """Something was met; if it is a generator its state is noted."""
        state = _state(value)
        if state is not None:
            self._met.setdefault(id(value), (value, state, source, path))

    def warn(self, place: Source | None) -> None:
        """Warn of generators that gave numbers since they were met; place: where the function is, for those that it does not name."""
        of_modules = False
        for generator, state, source, path in self._met.values():
            if not _is_same(_state(generator), state):
                of_modules |= _is_of_module(generator)
                warn(source, f"{path} gives random numbers while the function is traced: they are the same in every call\n"
                     "  hint: draw them outside, and pass them as an argument")
        if not of_modules and self._modules_were_asked():
            warn(place, "random numbers were drawn from np.random or random while the function was traced: they are the same in "
                 "every call\n  hint: draw them outside, and pass them as an argument")

    def _modules_were_asked(self) -> bool:
        """Whether np.random's or random's own generator gave numbers since."""
        before, now = self._modules, _module_states()
        return any(x != y for x, y in zip(now, before, strict=True) if y is not None) or (before[0] is None and _has_drawn())


def _state(value: Any) -> Any:
    """The state of a random number generator, NumPy's of either kind or Python's; None of anything else."""
    numpy, python = sys.modules.get("numpy.random"), sys.modules.get("random")
    if numpy is not None and isinstance(value, numpy.Generator):
        return value.bit_generator.state
    if numpy is not None and isinstance(value, numpy.RandomState):
        return value.get_state(legacy=False)
    return value.getstate() if python is not None and type(value) is python.Random else None


def _module_states() -> Any:
    """The states of np.random's and random's own generators, where these modules have been imported; as bytes: at every trace."""
    module = sys.modules.get("numpy.random.mtrand")
    numbers = None if module is None else ctypes.string_at(module._rand._bit_generator.ctypes.state_address, _MERSENNE_BYTES)
    python = sys.modules.get("random")
    return numbers, None if python is None else python.getstate()


def _is_of_module(generator: Any) -> bool:
    """Whether it is np.random's or random's own."""
    numpy, python = sys.modules.get("numpy.random.mtrand"), sys.modules.get("random")
    return (numpy is not None and generator is numpy._rand) or (python is not None and generator is getattr(python, "_inst", None))


def _has_drawn() -> bool:
    """Whether np.random's own generator, made since, has given numbers: NumPy imports np.random when it is first named."""
    module = sys.modules.get("numpy.random.mtrand")
    places = [] if module is None else [made.get_state(legacy=False)["state"]["pos"] for made in (module._rand, module.RandomState())]
    return len(set(places)) > 1


def _is_same(x: Any, y: Any) -> bool:
    if isinstance(x, dict):
        return all(_is_same(x[key], y[key]) for key in x)
    return bool(np.array_equal(x, y)) if isinstance(x, np.ndarray) else bool(x == y)

