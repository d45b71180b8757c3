"""Ranks of numbers, and distances of the distributions of samples, which go by their order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.scipy.stats.distributions import real
from bwcompiler.scipy.stats.samples import Sample


def ranks(lines: Any, method: str) -> Any:
    """Of the numbers along the last axis, from 1; equal ones as `rankdata` says."""
    if method not in ("average", "min", "max", "dense", "ordinal"):
        raise ValueError(f'unknown method "{method}"')
    if method == "ordinal":
        return np.argsort(np.argsort(lines, -1, kind="stable"), -1, kind="stable") + 1
    others, own = lines[..., None, :], lines[..., :, None]
    if method == "dense":
        ordered = np.sort(lines, -1)
        first = np.concatenate([np.ones_like(ordered[..., :1], dtype=bool), ordered[..., 1:] != ordered[..., :-1]], -1)
        return ((ordered[..., None, :] < own) & first[..., None, :]).sum(-1) + 1
    below, equal = (others < own).sum(-1), (others == own).sum(-1)
    if method == "min":
        return below + 1
    return below + equal if method == "max" else below + (equal + 1) / 2


@graph_function
def rankdata(a: Any, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate") -> Any:
    """The ranks of numbers, from 1; equal ones have the "average", "min" or "max" of theirs, "dense" or "ordinal" ranks.

    The derivative is 0.  Along an axis; of all numbers in one axis, if that is None.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.rankdata(np.array([0.0, 2.0, 3.0, 2.0])).tolist()
    [1.0, 2.5, 4.0, 2.5]
    """
    sample = Sample("rankdata", a, axis, nan_policy)
    found = ranks(sample.lines, method)
    found = np.where(np.isnan(sample.lines).any(-1, keepdims=True), math.nan, found) if method == "average" else found
    return found if axis is None else np.moveaxis(found, -1, sample.axes[0])


# ----- distances of distributions
def _distance(name: str, u: Any, v: Any, u_weights: Any, v_weights: Any, order: int) -> Any:
    """(∫ |U - V|ᵖ)^(1/p) of the distribution functions of two samples."""
    samples = [real(one) for one in (u, v)]
    if any(one.ndim != 1 for one in samples):
        raise ValueError(f"{name}: samples have one axis")
    every = np.sort(np.concatenate(samples))
    at, gaps = every[:-1, None], every[1:] - every[:-1]
    heights = []
    for one, weights in zip(samples, (u_weights, v_weights), strict=True):
        below = one <= at
        if weights is None:
            heights.append(below.mean(-1))
        else:
            weighting = real(weights)
            if weighting.shape != one.shape:
                raise ValueError("Value and weight array-likes for the same empirical distribution must be of the same size.")
            heights.append(np.where(below, weighting, 0.0).sum(-1) / weighting.sum())
    gap = heights[0] - heights[1]
    return (abs(gap) * gaps).sum() if order == 1 else np.sqrt((gap * gap * gaps).sum())


@graph_function
def wasserstein_distance(u_values: Any, v_values: Any, u_weights: Any = None, v_weights: Any = None) -> Any:
    """The earth mover's distance of two samples of numbers, which may have weights.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.wasserstein_distance(np.array([0.0, 1.0, 3.0]), np.array([5.0, 6.0, 8.0])).round(6).tolist()
    5.0
    """
    return _distance("wasserstein_distance", u_values, v_values, u_weights, v_weights, 1)


@graph_function
def energy_distance(u_values: Any, v_values: Any, u_weights: Any = None, v_weights: Any = None) -> Any:
    """√2 times the root of the integral of the squared difference of the distribution functions of two samples.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.energy_distance(np.array([0.0]), np.array([2.0])).round(6).tolist()
    2.0
    """
    return math.sqrt(2.0) * _distance("energy_distance", u_values, v_values, u_weights, v_weights, 2)
