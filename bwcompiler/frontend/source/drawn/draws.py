"""Methods of generators of random numbers that take traced arrays: what they draw is known, and moved, scaled or indexed with here.

The numbers are those that NumPy draws: `normal(x, 2.0)` is `x + 2.0 * standard_normal(x.shape)` there too.  That a width is not negative is
not checked.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler.frontend.tracing.operands import known_parts
from bwcompiler.frontend.tracing.tracer import Tracer


def is_generator(x: Any) -> bool:
    """Whether it is one of NumPy's or Python's; NumPy loads its own when they are first named."""
    if isinstance(x, random.Random):
        return True
    module = sys.modules.get("numpy.random")
    return module is not None and isinstance(x, module.Generator | module.RandomState)


def is_bits(x: Any) -> bool:
    """Whether it is what a generator of NumPy's has its bits from."""
    module = sys.modules.get("numpy.random")
    return module is not None and isinstance(x, module.BitGenerator)


def bits_of(x: Any) -> Any:
    """What a generator has its bits from, which others may use, too; Python's are that themselves."""
    return getattr(x, "bit_generator", None) or getattr(x, "_bit_generator", x)


def drawn(generator: Any, name: str, plain: Callable[..., Any]) -> Callable[..., Any] | None:
    """The method of a generator, for traced parameters too; `plain` is called where there are none.  None for other methods."""
    if name not in _TAKING:
        return None

    def method(*args: Any, **kwargs: Any) -> Any:
        found = moved(generator, generator, name, args, kwargs)
        return plain(*args, **kwargs) if found is None else found[0]
    return method


def moves(owner: Any, name: str) -> bool:
    """Whether numbers of such a distribution are had from those of a standard one."""
    return name in (_TAKING_OF_PYTHON if isinstance(owner, random.Random) else _TAKING)


def moved(generator: Any, owner: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any] | None:
    """Numbers for traced parameters, from those that the generator draws for known ones; None where that is not how they are drawn.

    owner: the generator itself, where `generator` is what draws from it in the program.
    """
    taking = (_TAKING_OF_PYTHON if isinstance(owner, random.Random) else _TAKING).get(name)
    is_traced = any(isinstance(part, Tracer) and part.ndim + (part.dtype.kind in "fc") for part in (*args, *kwargs.values()))
    return (taking(generator, *args, **kwargs),) if taking is not None and is_traced else None         # integers may be sizes


def _triangular(u: Any, low: Any, high: Any, mode: Any) -> Any:
    middle = 0.5 if mode is None else (mode - low) / (high - low)
    return low + (high - low) * np.where(u > middle, 1 - np.sqrt((1 - u) * (1 - middle)), np.sqrt(u * middle))


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


def _multivariate(generator: Any, mean: Any, cov: Any, size: Any = None, **options: Any) -> Any:
    return mean + generator.multivariate_normal(np.zeros(np.shape(mean)), cov, known_parts(size), **options)


def _gamma(generator: Any, shape: Any, scale: Any = 1.0, size: Any = None) -> Any:
    count = np.broadcast_shapes(np.shape(shape), np.shape(scale)) if size is None else known_parts(size)
    return scale * generator.standard_gamma(shape, count)


def _permutation(generator: Any, x: Any, axis: Any = 0) -> Any:
    return np.take(x, generator.permutation(x.shape[axis]), axis)


_TAKING: dict[str, Callable[..., Any]] = {
    "choice": _choice, "exponential": _exponential, "gamma": _gamma, "lognormal": _lognormal, "multivariate_normal": _multivariate,
    "normal": _normal, "permutation": _permutation, "uniform": _uniform,
}
_TAKING_OF_PYTHON: dict[str, Callable[..., Any]] = {
    "expovariate": lambda generator, lambd=1.0: generator.expovariate(1.0) / lambd,
    "gammavariate": lambda generator, alpha, beta: generator.gammavariate(alpha, 1.0) * beta,
    "gauss": lambda generator, mu=0.0, sigma=1.0: mu + generator.gauss(0.0, 1.0) * sigma,
    "lognormvariate": lambda generator, mu=0.0, sigma=1.0: np.exp(mu + generator.normalvariate(0.0, 1.0) * sigma),
    "normalvariate": lambda generator, mu=0.0, sigma=1.0: mu + generator.normalvariate(0.0, 1.0) * sigma,
    "triangular": lambda generator, low=0.0, high=1.0, mode=None: _triangular(generator.random(), low, high, mode),
    "uniform": lambda generator, a, b: a + (b - a) * generator.random(),
    "weibullvariate": lambda generator, alpha, beta: generator.weibullvariate(1.0, beta) * alpha,
}
