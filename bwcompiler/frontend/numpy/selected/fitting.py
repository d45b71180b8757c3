"""Least squares and covariances of selected data: rows that are not selected become zeros, which change neither the solution nor the
singular values, and observations that are not selected have weight 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler.errors import ShapeError
from bwcompiler.frontend.numpy.selected.packing import aligned, merged, number, prefix, require, selected, selected_axis, with_all, zeroed
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection, refuse


def _rows(name: str, *operands: Any) -> list[Selection]:
    """Operands whose rows are selected by the same mask."""
    if not all(isinstance(x, Selection) and not x.lead for x in operands):
        refuse(f"np.{name} of an array that has not been selected by the mask")
    return aligned([merged(x) for x in operands])


@selected(np.polyfit)
def polyfit(x: Any, y: Any, deg: Any, rcond: Any = None, full: Any = False, w: Any = None, cov: Any = False) -> Any:
    if full or cov:
        refuse("np.polyfit with full= or cov=")
    points, heights, *weights = _rows("polyfit", *([x, y] if w is None else [x, y, w]))
    if points.ndim != 1 or heights.ndim not in (1, 2):
        raise TypeError(f"np.polyfit: x and y of {points.ndim} and {heights.ndim} axes do not fit")
    require(number(points) > 0, TypeError("expected non-empty vector for x"))
    there = zeroed(weights[0]) if weights else np.where(points.where, 1.0, 0.0)
    return np.polyfit(zeroed(points), zeroed(heights), deg, rcond, w=there)


@selected(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    matrix, right = _rows("linalg.lstsq", a, b)
    if matrix.ndim != 2 or right.ndim not in (1, 2):
        raise ShapeError(f"np.linalg.lstsq: {matrix.ndim} and {right.ndim} axes do not fit")
    count, columns = number(matrix), matrix.array.shape[1]
    solution, residuals, rank, values = np.linalg.lstsq(zeroed(matrix), zeroed(right), rcond)
    if matrix.array.shape[0] > columns:            # there are no residuals with at most as many equations as unknowns
        residuals = Selection(residuals, np.broadcast_to(count > columns, residuals.shape))
    return solution, residuals, rank, prefix(values, np.minimum(count, columns), 0)


@selected(np.vander)
def vander(x: Any, N: Any = None, increasing: Any = False) -> Any:
    if N is None or np.ndim(x) != 1:
        refuse("np.vander without a number of columns, or of rows")
    x = merged(x)
    return with_all(x, np.vander(x.array, N, increasing), 0)


@selected(np.cov)
def cov(m: Any, y: Any = None, rowvar: Any = True, bias: Any = False, ddof: Any = None, fweights: Any = None, aweights: Any = None, *,
        dtype: Any = None) -> Any:
    given = [x for x in (m, y, fweights, aweights) if x is not None]
    if not all(isinstance(x, Selection) for x in given):
        refuse("np.cov of observations some of which have not been selected by the mask")
    for x in (m, y):
        if isinstance(x, Selection) and x.lead != selected_axis(x, -1 if rowvar else 0):
            refuse("np.cov of variables that are selected")
    parts = iter(aligned([merged(x) for x in given]))
    first = next(parts)
    other, counts, shares = [None if x is None else zeroed(next(parts)) for x in (y, fweights, aweights)]
    there = np.where(first.where, 1, 0) if counts is None else counts
    covariance: Any = np.cov(zeroed(first), other, rowvar, bias, ddof, there, shares, dtype=dtype)
    return covariance if dtype is None or len(given) > 1 + (y is not None) else covariance.astype(dtype)       # weights are float64
