"""Covariances and correlations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler.errors import ShapeError
from bwcompiler.frontend.numpy.joining import concatenate
from bwcompiler.frontend.numpy.linear import dot
from bwcompiler.frontend.numpy.reductions import mean
from bwcompiler.frontend.tracing.operands import (
    as_tracer,
    cast,
    reshape,
)
from bwcompiler.frontend.tracing.promotion import requested
from bwcompiler.frontend.tracing.registry import implements
from bwcompiler.frontend.tracing.tracer import fresh, value_of
from bwcompiler.ir.types import C128, F64

NOTHING = np._NoValue


@implements(np.cov)
def cov(m: Any, y: Any = None, rowvar: Any = True, bias: Any = False, ddof: Any = None, fweights: Any = None, aweights: Any = None, *,
        dtype: Any = None) -> Any:
    x = _variables(m, rowvar, dtype)
    if y is not None:
        x = concatenate([x, _variables(y, rowvar, dtype)], 0)
    delta = (0 if bias else 1) if ddof is None else ddof
    if fweights is not None:
        return _repeated(x, as_tracer(fweights), aweights, delta)
    if aweights is None:
        centred = x - mean(x, 1, keepdims=True)
        return np.squeeze(dot(centred, centred.T.conj()) * _share(float(x.shape[1] - delta)))
    weights = as_tracer(aweights)
    total = weights.sum()
    centred = x - (x * weights).sum(1, keepdims=True) / total
    freedom = total if delta == 0 else total - (weights * weights).sum() / total * float(delta)
    return np.squeeze(dot(centred, (centred * weights).T.conj()) / freedom)


def _repeated(x: Any, counts: Any, aweights: Any, delta: Any) -> Any:
    """The covariance of observations that occur as often as counts (fweights) says."""
    if counts.ndim != 1 or counts.shape[0] != x.shape[1] or not counts._type.dtype.is_integer:
        raise ShapeError(f"np.cov: fweights must be {x.shape[1]} integers, got {counts.dtype} of shape {counts.shape}")
    weights: Any = counts * as_tracer(aweights) if aweights is not None else counts * np.ones((), x.dtype)
    total = weights.sum()
    centred = x - (x * weights).sum(1, keepdims=True) / total
    squares = total if aweights is None or delta == 0 else (weights * as_tracer(aweights)).sum() / total
    freedom = total - (delta if aweights is None else squares * float(delta) if delta else 0.0)
    return np.squeeze(dot(centred, (centred * weights).T) / freedom)


def _share(freedom: float) -> float:
    """1 / freedom; inf where ddof leaves none, as in NumPy."""
    return 1.0 / freedom if freedom > 0 else math.inf


def _variables(m: Any, rowvar: Any, dtype: Any) -> Any:
    """One variable per row, as floats."""
    x = as_tracer(m)
    if x.ndim > 2:
        raise ValueError("m has more than 2 dimensions")
    target = requested(dtype) or (C128 if x._type.dtype.is_complex else F64)
    x = fresh(cast(value_of(x), target))
    x = x if x.ndim == 2 else fresh(reshape(value_of(x), (1, x.size)))
    return x if rowvar or (x.shape[0] == 1 and as_tracer(m).ndim == 1) else x.T


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: Any = True, *, dtype: Any = None) -> Any:
    c: Any = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    deviation = np.sqrt(np.diagonal(c).real)
    found = c / deviation[:, None] / deviation[None, :]
    if not np.iscomplexobj(found):
        return np.clip(found, -1, 1)
    found.real, found.imag = np.clip(found.real, -1, 1), np.clip(found.imag, -1, 1)
    return found
