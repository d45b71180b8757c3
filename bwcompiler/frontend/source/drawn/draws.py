"""Methods of generators of random numbers that take traced arrays: what they draw is known, and moved, scaled or indexed with here.

The numbers are those that NumPy draws: `normal(x, 2.0)` is `x + 2.0 * standard_normal(x.shape)` there too.  That a width is not negative is
not checked.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler.frontend.tracing.operands import known_parts
from bwcompiler.frontend.tracing.tracer import Tracer

GENERATORS = np.random.Generator, np.random.RandomState, random.Random


def drawn(generator: Any, name: str, plain: Callable[..., Any]) -> Callable[..., Any] | None:
    """The method of a generator, for traced parameters too; `plain` is called where there are none.  None for other methods."""
    if name not in _TAKING:
        return None

    def method(*args: Any, **kwargs: Any) -> Any:
        found = moved(generator, name, args, kwargs)
        return plain(*args, **kwargs) if found is None else found[0]
    return method


def moves(name: str) -> bool:
    """Whether numbers of such a distribution are had from those of a standard one."""
    return name in _TAKING


def moved(generator: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any] | None:
    """Numbers for traced parameters, from those that the generator draws for known ones; None where that is not how they are drawn."""
    taking = _TAKING.get(name)
    is_traced = any(isinstance(part, Tracer) and part.ndim + (part.dtype.kind in "fc") for part in (*args, *kwargs.values()))
    return (taking(generator, *args, **kwargs),) if taking is not None and is_traced else None         # integers may be sizes


def _standard(draw: Callable[..., Any], size: Any, *parameters: Any) -> Any:
    """Numbers of a standard distribution, as many as the parameters or `size` say."""
    shape = np.broadcast_shapes(*map(np.shape, parameters)) if size is None else known_parts(size)
    found = draw(shape)
    return found if np.shape(found) or isinstance(found, Tracer) else np.float64(found)


def _normal(generator: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
    return loc + scale * _standard(generator.standard_normal, size, loc, scale)


def _uniform(generator: Any, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
    return low + (high - low) * _standard(generator.random, size, low, high)


def _exponential(generator: Any, scale: Any = 1.0, size: Any = None) -> Any:
    return scale * _standard(generator.standard_exponential, size, scale)


def _choice(generator: Any, a: Any, size: Any = None, replace: Any = True, p: Any = None, axis: Any = 0, **options: Any) -> Any:
    if isinstance(a, list | tuple):
        a = np.stack(a)
    place = generator.choice(np.shape(a)[axis] if np.ndim(a) else a, known_parts(size), replace, p, **options)
    return np.take(a, place, axis) if np.ndim(a) else place


def _lognormal(generator: Any, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Any:
    return np.exp(_normal(generator, mean, sigma, size))


def _permutation(generator: Any, x: Any, axis: Any = 0) -> Any:
    return np.take(x, generator.permutation(x.shape[axis]), axis)


_TAKING: dict[str, Callable[..., Any]] = {
    "choice": _choice, "exponential": _exponential, "lognormal": _lognormal, "normal": _normal, "permutation": _permutation,
    "uniform": _uniform}
