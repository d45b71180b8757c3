"""Covariances and correlations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler.frontend.numpy.linalg.linear import dot
from bwcompiler.frontend.numpy.manipulation.joining import concatenate
from bwcompiler.frontend.numpy.reductions.reductions import mean
from bwcompiler.frontend.numpy.selected.packing import selected
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.indexing.masked_selection import SELECTED
from bwcompiler.frontend.tracing.operands import as_tracer, cast, filled, reshape
from bwcompiler.frontend.tracing.promotion import common_dtype, requested
from bwcompiler.frontend.tracing.registry import implements
from bwcompiler.frontend.tracing.tracer import Tracer, fresh
from bwcompiler.ir.types import F64, DType


@implements(np.cov)
def cov(m: Any, y: Any = None, rowvar: Any = True, bias: Any = False, ddof: Any = None, fweights: Any = None, aweights: Any = None, *,
        dtype: Any = None) -> Any:
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    target = requested(dtype) or common_dtype((as_tracer(m)._type.dtype, F64 if y is None else as_tracer(y)._type.dtype, F64))
    x = _variables(m, "m", target)
    x = x if rowvar or as_tracer(m).ndim == 1 else x.T
    if not x.shape[0]:
        return fresh(filled(0.0, F64, (0, 0)))
    if y is not None:
        other = _variables(y, "y", target)
        x = concatenate([x, other if rowvar or other.shape[0] == 1 else other.T], 0)
    delta = (0 if bias else 1) if ddof is None else ddof
    counts, shares = [given if given is None else _weights(given, x.shape[1], name)
                      for given, name in ((fweights, "fweights"), (aweights, "aweights"))]
    if counts is None and shares is None:
        centred = x - mean(x, 1, keepdims=True)
        return np.squeeze(dot(centred, centred.T.conj()) * _share(float(x.shape[1] - delta)))
    weights: Any = shares if counts is None else counts if shares is None else counts * shares
    total = weights.sum()
    centred = (x - (x * weights).sum(1, keepdims=True) / total).astype(x.dtype)
    squares = total if shares is None else (weights * shares).sum()
    freedom = total - (0.0 if delta == 0 else float(delta) if shares is None else squares / total * float(delta))
    share = 1.0 / np.where(freedom <= 0.0, 0.0, freedom)                    # inf if ddof leaves none, as in NumPy
    return np.squeeze(dot(centred, (centred * weights).T.conj()) * share)


def _weights(given: Any, count: int, name: str) -> Any:
    """Weights of the observations as float64.  Weights that are known while tracing are checked as in NumPy."""
    weights: Any = as_tracer(given).astype(np.float64)
    if not isinstance(given, Tracer):
        numbers = np.asarray(given, np.float64)
        if name == "fweights" and not (numbers == np.around(numbers)).all():
            raise TypeError("fweights must be integer")
        if (numbers < 0).any():
            raise ValueError(f"{name} cannot be negative")
    if weights.ndim > 1:
        raise RuntimeError(f"cannot handle multidimensional {name}")
    if weights.shape != (count,):
        raise RuntimeError(f"incompatible numbers of samples and {name}: np.cov of {count} samples, {name} of shape {weights.shape}")
    return weights


def _share(freedom: float) -> float:
    """1 / freedom; inf where ddof leaves none, as in NumPy."""
    return 1.0 / freedom if freedom > 0 else math.inf


def _variables(m: Any, name: str, dtype: DType) -> Any:
    """One variable per row, as floats."""
    x = as_tracer(m)
    if x.ndim > 2:
        raise ValueError(f"{name} has more than 2 dimensions")
    x = fresh(cast(value_of(x), dtype))
    return x if x.ndim == 2 else fresh(reshape(value_of(x), (1, x.size)))


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: Any = True, *, dtype: Any = None) -> Any:
    return _correlation(cov(x, y, rowvar, dtype=dtype))


@selected(np.corrcoef)
def corrcoef_of_selections(x: Any, y: Any = None, rowvar: Any = True, *, dtype: Any = None) -> Any:
    return _correlation(SELECTED[np.cov](x, y, rowvar, dtype=dtype))


def _correlation(c: Any) -> Any:
    """The correlations for given covariances."""
    if c.ndim == 0:
        return c / c
    deviation = np.sqrt(np.diagonal(c).real)
    found = c / deviation[:, None] / deviation[None, :]
    if not np.iscomplexobj(found):
        return np.clip(found, -1, 1)
    found.real, found.imag = np.clip(found.real, -1, 1), np.clip(found.imag, -1, 1)
    return found
