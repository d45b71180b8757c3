"""Poisson distributed numbers: by Knuth's products of uniform numbers for small means, by Hörmann's transformed rejection for large ones.

Hörmann, "The transformed rejection method for generating Poisson random variables", 1993.  Algorithms and bits are those of `jax.random`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.api.inside.eager import graph_function
from bwcompiler.api.inside.loops import while_loop
from bwcompiler.errors import DTypeError
from bwcompiler.frontend.tracing.calls import call_back
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.tracer import Tracer, fresh
from bwcompiler.ir.op import constant
from bwcompiler.ir.types import F32, I64, dtype_of, tensor
from bwcompiler.random.continuous import as_float, between, common_shape
from bwcompiler.random.keys import Shape, Words, key_words, random_words, split_words


@graph_function
def poisson(key: Any, lam: Any, shape: Shape | None = None, dtype: type = int) -> Any:
    """Numbers of events, of mean lam.

    >>> import bwcompiler as bw
    >>> bw.random.poisson(bw.random.key(42), 3.0, (5,)).tolist()
    [6, 2, 2, 1, 5]
    """
    kind = dtype_of(dtype)
    if not kind.is_integer:
        raise DTypeError(f"random.poisson gives integers; got dtype {kind.numpy}")
    found = common_shape(shape, "poisson", lam)
    zeros = fresh(constant(0.0, tensor(F32, found)))
    mean = zeros + as_float(lam, F32) if isinstance(lam, Tracer) else zeros + np.asarray(lam, np.float32)
    few = np.logical_or(np.isnan(mean), mean < 10)
    words = key_words(key, "poisson")
    small = call_back(_knuth, words, np.where(few, mean, np.float32(0.0)), found)
    large = call_back(_rejection, words, np.where(few, np.float32(1e5), mean), found)
    return np.where(mean == 0, 0, np.where(few, small, large)).astype(kind.numpy)


def _handles(key: Words) -> tuple[Any, Any]:
    return fresh(key[0]), fresh(key[1])


def _knuth(key: Words, mean: Any, shape: tuple[int, ...]) -> Any:
    """How many uniform numbers it takes until their product is below exp(-mean)."""
    def step(state: Any) -> Any:
        k, one, two, logs = state
        following, subkey = split_words((value_of(one), value_of(two)), 2)
        k = np.where(logs > -mean, k + 1, k)
        return k, *_handles(following), logs + np.log(between(random_words(subkey, shape), F32))

    start = fresh(constant(0, tensor(I64, shape))), *_handles(key), np.zeros_like(mean)
    return while_loop(lambda state: np.any(state[3] > -mean), step, start)[0] - 1


def _rejection(key: Words, mean: Any, shape: tuple[int, ...]) -> Any:
    """For means of 10 and more."""
    number = np.float32
    log_mean = np.log(mean)
    b = number(0.931) + number(2.53) * np.sqrt(mean)
    a = number(-0.059) + number(0.02483) * b
    inverse_alpha = number(1.1239) + number(1.1328) / (b - number(3.4))
    bound = number(0.9277) - number(3.6224) / (b - number(2))

    def step(state: Any) -> Any:
        found, accepted, one, two = state
        following, u_key, v_key = split_words((value_of(one), value_of(two)), 3)
        u = between(random_words(u_key, shape), F32) - number(0.5)
        v = between(random_words(v_key, shape), F32)
        edge = number(0.5) - np.abs(u)
        k = np.floor((number(2) * a / edge + b) * u + mean + number(0.43))
        s = np.log(v * inverse_alpha / (a / (edge * edge) + b))
        t = -mean + k * log_mean - fresh(ops.lgamma(value_of(k + number(1))))
        inside = np.logical_and(edge >= number(0.07), v <= bound)
        outside = np.logical_or(k < 0, np.logical_and(edge < number(0.013), v > edge))
        accept = np.logical_or(inside, np.logical_and(np.logical_not(outside), s <= t))
        return np.where(accept, k, found), np.logical_or(accepted, accept), *_handles(following)

    start = np.zeros_like(mean) - number(1), np.isinf(np.zeros_like(mean)), *_handles(key)
    return while_loop(lambda state: np.logical_not(np.all(state[1])), step, start)[0]
