"""The dtypes of quantiles, and of their places among the sorted elements, as NumPy takes the levels q that are asked for."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from bwcompiler.frontend.tracing.promotion import common_dtype
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.types import F64, DType, dtype_of


@functools.cache
def _is_plain() -> bool:
    """Whether np.float64(0.3) is a number as 0.3 is, whose dtype does not count: in older NumPy."""
    return bool(np.quantile(np.zeros(1, np.float32), np.float64(0.5)).dtype == np.float32)


@functools.cache
def _divides_in_dtype() -> bool:
    """Whether percents are divided by a 100 of the array's dtype, as an array: in older NumPy."""
    return bool(np.percentile(np.zeros(1, np.float32), np.float64(50)).dtype != np.quantile(np.zeros(1, np.float32), np.float64(0.5)).dtype)


def levels_of(percents: Any, dtype: DType) -> Any:
    """The levels of these percents (a tracer, or known) of an array of that dtype, as NumPy divides them."""
    if isinstance(percents, Tracer):
        return percents / (dtype.numpy.type(100) if dtype.is_float and _divides_in_dtype() else 100)
    if _divides_in_dtype():
        return np.asarray(np.true_divide(percents, dtype.numpy.type(100) if dtype.is_float else 100))
    return percents / 100 if type(percents) in (int, float) else np.true_divide(percents, 100)


def _is_number(q: Any) -> bool:
    return isinstance(q._kind, type) if isinstance(q, Tracer) else type(q) in (int, float) or (isinstance(q, float) and _is_plain())


def quantile_dtype(dtype: DType, q: Any) -> DType:
    """The dtype of NumPy's interpolation: that of the array for a number q, else at least that of the array q (float64)."""
    if dtype.is_float and _is_number(q):
        return dtype
    levels = q.dtype if isinstance(q, Tracer) else np.asarray(q).dtype
    return common_dtype((dtype, dtype_of(levels) if levels.kind == "f" else F64))


def place_dtype(q: Any) -> DType:
    """The dtype of NumPy's positions: that of a float array q, else float64."""
    levels = q._kind if isinstance(q, Tracer) else dtype_of(q.dtype) if isinstance(q, np.ndarray | np.floating) else F64
    return levels if isinstance(levels, DType) and levels.is_float else F64
