"""Distributions of matrices, and of counts whose probabilities are drawn, of `bw.scipy.stats`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler.errors import ShapeError
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.scipy.special.functions import multigammaln
from bwcompiler.scipy.stats.continuous import gammaln
from bwcompiler.scipy.stats.distributions import real
from bwcompiler.scipy.stats.multivariate import LOG_2_PI, Family


# ----- Wishart
def _matrices(name: str, x: Any, scale: Any) -> tuple[Any, Any]:
    """Matrices along the first two axes of x as a stack, and the scale as a matrix."""
    given, matrix = real(x), real(scale)
    if matrix.ndim < 2:
        matrix = np.reshape(matrix, (1, 1)) if matrix.ndim == 0 else np.diag(matrix)
    size = matrix.shape[-1]
    if given.ndim == 0:
        given = given * np.eye(size)
    elif given.ndim == 1:
        given = np.reshape(given, (1, 1, -1)) if size == 1 else np.diag(given)
    if given.ndim not in (2, 3) or matrix.shape != (size, size) or given.shape[:2] != (size, size):
        raise ShapeError(f"{name}: x of shape {np.shape(x)} and scale of shape {np.shape(scale)} do not fit; "
                         "x is (p, p) or (p, p, matrices)")
    return np.moveaxis(given, 2, 0) if given.ndim == 3 else given, matrix


def _log_determinant(factor: Any) -> Any:
    """That of L Lᵀ."""
    return 2.0 * np.sum(np.log(np.diagonal(factor, 0, -2, -1)), -1)


def _trace_of_quotient(a: Any, b: Any) -> Any:
    """tr(A⁻¹ B)"""
    return np.trace(np.linalg.solve(a, b), 0, -2, -1)


def _wishart_logpdf(x: Any, df: Any, scale: Any) -> Any:
    points, matrix = _matrices("wishart", x, scale)
    size, freedom = matrix.shape[-1], real(df)
    inside = (freedom - size - 1.0) * _log_determinant(np.linalg.cholesky(points)) - _trace_of_quotient(matrix, points)
    outside = freedom * (size * math.log(2.0) + _log_determinant(np.linalg.cholesky(matrix)))
    return np.where(freedom > size - 1, 0.5 * (inside - outside) - multigammaln(0.5 * freedom, size), math.nan)


def _invwishart_logpdf(x: Any, df: Any, scale: Any) -> Any:
    points, matrix = _matrices("invwishart", x, scale)
    size, freedom = matrix.shape[-1], real(df)
    inside = (freedom + size + 1.0) * _log_determinant(np.linalg.cholesky(points)) + _trace_of_quotient(points, matrix)
    outside = freedom * (_log_determinant(np.linalg.cholesky(matrix)) - size * math.log(2.0))
    return np.where(freedom > size - 1, 0.5 * (outside - inside) - multigammaln(0.5 * freedom, size), math.nan)


def _wishart_pdf(x: Any, df: Any, scale: Any) -> Any:
    return np.exp(_wishart_logpdf(x, df, scale))


def _invwishart_pdf(x: Any, df: Any, scale: Any) -> Any:
    return np.exp(_invwishart_logpdf(x, df, scale))


wishart = Family(
    "wishart", "Wishart's distribution of positive definite matrices along the first two axes of x.",
    "bw.scipy.stats.wishart.logpdf(np.eye(2), 3, np.eye(2)).round(4).item()\n-3.531",
    logpdf=_wishart_logpdf, pdf=_wishart_pdf)

invwishart = Family(
    "invwishart", "The distribution of the inverses of Wishart's matrices, along the first two axes of x.",
    "bw.scipy.stats.invwishart.logpdf(np.eye(2), 3, np.eye(2)).round(4).item()\n-3.531",
    logpdf=_invwishart_logpdf, pdf=_invwishart_pdf)


# ----- normal
def _covariance(given: Any, size: int) -> Any:
    matrix = real(given)
    return matrix if matrix.ndim == 2 else np.eye(size) * matrix


def _matrix_normal_logpdf(X: Any, mean: Any = None, rowcov: Any = 1, colcov: Any = 1) -> Any:
    points = real(X)
    if points.ndim < 2:
        raise ShapeError(f"matrix_normal: X of shape {points.shape} must have rows and columns as its last axes")
    m, n = points.shape[-2:]
    rows, columns = (np.linalg.cholesky(_covariance(one, size)) for one, size in ((rowcov, m), (colcov, n)))
    away = points if mean is None else points - mean
    whitened = np.linalg.solve(rows, away)                                  # U = L Lᵀ: L⁻¹ (X - M)
    turned = np.linalg.solve(columns, np.swapaxes(whitened, -1, -2))
    scale = m * n * LOG_2_PI + n * _log_determinant(rows) + m * _log_determinant(columns)
    return -0.5 * (scale + np.sum(turned * turned, (-2, -1)))


def _matrix_normal_pdf(X: Any, mean: Any = None, rowcov: Any = 1, colcov: Any = 1) -> Any:
    return np.exp(_matrix_normal_logpdf(X, mean, rowcov, colcov))


matrix_normal = Family(
    "matrix_normal", "The normal distribution of matrices along the last two axes of X, with covariances of rows and of columns.",
    "bw.scipy.stats.matrix_normal.logpdf(np.zeros((1, 2))).round(4).item()\n-1.8379",
    logpdf=_matrix_normal_logpdf, pdf=_matrix_normal_pdf)


# ----- counts
def _dirichlet_multinomial_logpmf(x: Any, alpha: Any, n: Any) -> Any:
    counts, weights, total = real(x), real(alpha), as_tracer(n)
    whole = np.sum(weights, -1)
    found = gammaln(whole) + gammaln(total + 1.0) - gammaln(total + whole) + np.sum(
        gammaln(counts + weights) - gammaln(weights) - gammaln(counts + 1.0), -1)
    return np.where((np.sum(counts, -1) == total) & np.all(counts >= 0, -1), found, -math.inf)


def _dirichlet_multinomial_pmf(x: Any, alpha: Any, n: Any) -> Any:
    return np.exp(_dirichlet_multinomial_logpmf(x, alpha, n))


dirichlet_multinomial = Family(
    "dirichlet_multinomial", "The counts of n draws, along the last axis of x, whose probabilities have Dirichlet's distribution.",
    "bw.scipy.stats.dirichlet_multinomial.pmf(np.array([1, 1]), np.ones(2), 2).round(4).item()\n0.3333",
    logpmf=_dirichlet_multinomial_logpmf, pmf=_dirichlet_multinomial_pmf)
