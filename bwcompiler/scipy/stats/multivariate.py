"""Multivariate distributions of `bw.scipy.stats`."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.errors import ShapeError
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection, selection, takes_selections, taking_selections
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.scipy.stats.continuous import gammaln, psi, xlogy
from bwcompiler.scipy.stats.distributions import Frozen, real

Function = TypeVar("Function", bound=Callable[..., Any])
LOG_2_PI = math.log(2 * math.pi)


class Family:
    """A few functions under the name of a distribution."""

    def __init__(self, name: str, meaning: str, example: str, **functions: Any) -> None:
        self.name = name
        for method, function in functions.items():
            function.__name__, function.__qualname__ = method, f"{name}.{method}"
            function.__doc__ = f"As scipy.stats.{name}.{method}."
            made = graph_function(function)
            setattr(self, method, taking_selections(made) if takes_selections(function) else made)
        first, second = example.splitlines()
        self.__doc__ = (f"{meaning}\n\nFunctions as in scipy.stats.{name}: {', '.join(functions)}.\n\n"
                        f">>> import numpy as np, bwcompiler as bw\n>>> {first}\n{second}\n")

    def __call__(self, *args: Any, **kwargs: Any) -> Frozen:
        """The distribution with its parameters: multivariate_normal(mean, cov).logpdf(x)."""
        return Frozen(self, args, kwargs)

    def __repr__(self) -> str:
        return f"<bwcompiler.scipy.stats.{self.name}>"


def _of_points(rule: Function) -> Function:
    """A function of the vectors along the last axis of x, of which some are selected, x[mask], too."""
    @functools.wraps(rule)
    def function(x: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(x, Selection) or x.lead or x.array.ndim != x.where.ndim + 1:
            return rule(x, *args, **kwargs)
        found = rule(x.array, *args, **kwargs)
        return selection(np.reshape(found, x.where.shape), x.where)
    return taking_selections(function)  # type: ignore[return-value]


# ----- normal
def _covariance(cov: Any, mean: Any) -> tuple[Any, int]:
    """The covariance as a matrix, and its order."""
    matrix = real(cov)
    size = matrix.shape[-1] if matrix.ndim else np.shape(mean)[-1] if np.ndim(mean) else 1
    if matrix.ndim < 2:
        matrix = np.eye(size) * matrix if matrix.ndim == 0 else np.diag(matrix)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or (np.ndim(mean) and np.shape(mean) != (size,)):
        raise ShapeError(f"multivariate_normal: mean of shape {np.shape(mean)} and cov of shape {np.shape(cov)} do not fit")
    return matrix, size


def _whitened(matrix: Any, allow_singular: bool) -> tuple[Any, Any, Any]:
    """W with (x - mean) W of unit covariance, the logarithm of the (pseudo-)determinant, the rank."""
    if not allow_singular:
        factor = np.linalg.cholesky(matrix)
        inverse = np.linalg.solve(factor, np.eye(matrix.shape[-1]))
        return inverse.T, 2.0 * np.sum(np.log(np.diagonal(factor))), matrix.shape[-1]
    values, vectors = np.linalg.eigh(matrix)
    cutoff = np.max(np.abs(values)) * (1e6 if matrix.dtype == np.float64 else 1e3) * np.finfo(matrix.dtype).eps
    kept = values > cutoff
    safe = np.where(kept, values, 1.0)
    return vectors * np.where(kept, 1.0 / np.sqrt(safe), 0.0), np.sum(np.log(safe)), np.sum(kept)


@_of_points
def _normal_logpdf(x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
    points = real(x)
    matrix, size = _covariance(cov, mean)
    if points.ndim == 0:
        points = points[None]
    elif points.ndim == 1 and size == 1:
        points = points[:, None]
    if points.shape[-1] != size:
        raise ShapeError(f"multivariate_normal: x of shape {np.shape(x)} must end in the order {size} of the covariance")
    whitening, log_determinant, rank = _whitened(matrix, allow_singular)
    distance = np.matmul(points if mean is None else points - mean, whitening)
    return np.squeeze(-0.5 * (rank * LOG_2_PI + log_determinant + np.sum(distance * distance, -1)))


@_of_points
def _normal_pdf(x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
    return np.exp(_normal_logpdf(x, mean, cov, allow_singular))


def _normal_entropy(mean: Any = None, cov: Any = 1) -> Any:
    matrix, _ = _covariance(cov, mean)
    _, log_determinant, rank = _whitened(matrix, True)
    return 0.5 * (rank * (LOG_2_PI + 1.0) + log_determinant)


multivariate_normal = Family(
    "multivariate_normal", "The normal distribution of vectors along the last axis of x; cov is a matrix, a diagonal or a number.",
    "bw.scipy.stats.multivariate_normal.logpdf(np.zeros(2), np.zeros(2), np.eye(2)).round(4).item()\n-1.8379",
    logpdf=_normal_logpdf, pdf=_normal_pdf, entropy=_normal_entropy)


# ----- t
@_of_points
def _t_logpdf(x: Any, loc: Any = None, shape: Any = 1, df: Any = 1, allow_singular: bool = False) -> Any:
    points = real(x)
    matrix, size = _covariance(shape, loc)
    points = points[None] if points.ndim == 0 else points[:, None] if points.ndim == 1 and size == 1 else points
    if points.shape[-1] != size:
        raise ShapeError(f"multivariate_t: x of shape {np.shape(x)} must end in the order {size} of the shape matrix")
    whitening, log_determinant, _ = _whitened(matrix, allow_singular)
    moved = np.matmul(points if loc is None else points - loc, whitening)
    freedom = real(df)
    half = 0.5 * (freedom + size)
    scale = gammaln(half) - gammaln(0.5 * freedom) - size / 2 * np.log(freedom * math.pi) - 0.5 * log_determinant
    return np.squeeze(scale - half * np.log1p(np.sum(moved * moved, -1) / freedom))


@_of_points
def _t_pdf(x: Any, loc: Any = None, shape: Any = 1, df: Any = 1, allow_singular: bool = False) -> Any:
    return np.exp(_t_logpdf(x, loc, shape, df, allow_singular))


multivariate_t = Family(
    "multivariate_t", "Student's distribution of vectors along the last axis of x; shape is a matrix, a diagonal or a number.",
    "bw.scipy.stats.multivariate_t.logpdf(np.zeros(2), np.zeros(2), np.eye(2), 3.0).round(4).item()\n-1.8379",
    logpdf=_t_logpdf, pdf=_t_pdf)


# ----- Dirichlet
def _log_beta(alpha: Any) -> Any:
    return np.sum(gammaln(alpha), 0) - gammaln(np.sum(alpha, 0))


def _dirichlet_logpdf(x: Any, alpha: Any) -> Any:
    points, weights = real(x), real(alpha)
    if weights.ndim != 1 or points.ndim not in (1, 2) or points.shape[0] not in (weights.shape[0], weights.shape[0] - 1):
        raise ShapeError(f"dirichlet: x of shape {points.shape} and alpha of shape {weights.shape} do not fit; x is (n,) or (n, points)")
    if points.shape[0] == weights.shape[0] - 1:
        points = np.concatenate([points, 1.0 - np.sum(points, 0, keepdims=True)])
    return np.sum(xlogy(weights - 1.0, points.T), -1) - _log_beta(weights)


def _dirichlet_pdf(x: Any, alpha: Any) -> Any:
    return np.exp(_dirichlet_logpdf(x, alpha))


def _dirichlet_mean(alpha: Any) -> Any:
    weights = real(alpha)
    return weights / np.sum(weights)


def _dirichlet_var(alpha: Any) -> Any:
    weights = real(alpha)
    total = np.sum(weights)
    return weights * (total - weights) / (total * total * (total + 1.0))


def _dirichlet_entropy(alpha: Any) -> Any:
    weights = real(alpha)
    total = np.sum(weights)
    return _log_beta(weights) + (total - weights.shape[0]) * psi(total) - np.sum((weights - 1.0) * psi(weights))


dirichlet = Family(
    "dirichlet", "The distribution of numbers that sum to 1, which lie along the first axis of x; the last of them may be left out.",
    "bw.scipy.stats.dirichlet.pdf(np.array([0.5, 0.5]), np.array([1.0, 1.0])).round(4).item()\n1.0",
    logpdf=_dirichlet_logpdf, pdf=_dirichlet_pdf, mean=_dirichlet_mean, var=_dirichlet_var, entropy=_dirichlet_entropy)


# ----- multinomial
@_of_points
def _multinomial_logpmf(x: Any, n: Any, p: Any) -> Any:
    counts, probabilities, total = real(x), real(p), as_tracer(n)
    found = gammaln(total + 1.0) + np.sum(xlogy(counts, probabilities) - gammaln(counts + 1.0), -1)
    return np.where((np.sum(counts, -1) == total) & np.all(counts >= 0, -1), found, -math.inf)


@_of_points
def _multinomial_pmf(x: Any, n: Any, p: Any) -> Any:
    return np.exp(_multinomial_logpmf(x, n, p))


multinomial = Family(
    "multinomial", "The counts of n draws, which lie along the last axis of x; p are their probabilities.",
    "bw.scipy.stats.multinomial.pmf(np.array([1, 1]), 2, np.array([0.5, 0.5])).round(4).item()\n0.5",
    logpmf=_multinomial_logpmf, pmf=_multinomial_pmf)
