"""Random numbers as functions of keys, with JAX's names, algorithm (threefry-2x32) and bits.

    key = bw.random.key(0)
    key, subkey = bw.random.split(key)
    x = bw.random.normal(subkey, (3,))

A key is an array of two uint32 numbers.  The same key gives the same numbers, compiled or not, mapped or not, and the bits of
`jax.random` with 64-bit types; use each key once.  Continuous distributions are differentiable in their parameters: samples
are functions of them (reparameterised); those of `gamma` and of distributions composed of it by implicit differentiation.

Unless a docstring says otherwise: samples have the given shape (None: that of the broadcast parameters), and the dtype float64, or int64
for integers; `dtype` selects another one (float32, or another integer dtype).  Functions raise ShapeError (a ValueError) for keys that are
not two uint32 numbers, negative extents and parameters that do not broadcast to shape, DTypeError (a TypeError) for a dtype of another
kind, and TypeError for unknown keywords.
"""

from typing import Any

from bwcompiler import spellings
from bwcompiler.random.continuous import (
    cauchy,
    double_sided_maxwell,
    exponential,
    gumbel,
    laplace,
    logistic,
    lognormal,
    maxwell,
    normal,
    pareto,
    rayleigh,
    triangular,
    truncated_normal,
    uniform,
    wald,
    weibull_min,
)
from bwcompiler.random.counts import poisson
from bwcompiler.random.discrete import bernoulli, categorical, choice, geometric, permutation, rademacher, randint
from bwcompiler.random.keys import PRNGKey, bits, fold_in, key, split
from bwcompiler.random.positive import beta, chisquare, dirichlet, f, gamma, generalized_normal, loggamma, t
from bwcompiler.random.vectors import ball, multivariate_normal, orthogonal

__all__ = [
    "PRNGKey", "ball", "bernoulli", "beta", "bits", "categorical", "cauchy", "chisquare", "choice", "dirichlet",
    "double_sided_maxwell", "exponential", "f", "fold_in", "gamma", "generalized_normal", "geometric", "gumbel", "key",
    "laplace", "loggamma", "logistic", "lognormal", "maxwell", "multivariate_normal", "normal", "orthogonal", "pareto",
    "permutation", "poisson", "rademacher", "randint", "rayleigh", "split", "t", "triangular", "truncated_normal", "uniform",
    "wald", "weibull_min",
]


def __getattr__(name: str) -> Any:
    return spellings.missing("bw.random", name, lambda: __all__)


def __dir__() -> list[str]:
    return sorted({*__all__, *[name for name in globals() if name.startswith("__")]})
