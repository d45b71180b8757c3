"""`bw.scipy.stats.gaussian_kde`: the density of samples, estimated with normal kernels; its samples, weights and width may be traced."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.errors import ShapeError
from bwcompiler.frontend.tracing.operands import real_value
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.scipy.linalg import solve_triangular
from bwcompiler.scipy.special.functions import by_loop, logsumexp


@graph_function
def _estimate(dataset: Any, weights: Any, covariance: Any, points: Any, log: bool) -> Any:
    cholesky = np.linalg.cholesky(covariance)
    samples, at = (solve_triangular(cholesky, one, lower=True) for one in (dataset, points))
    energy = 0.5 * ((samples[:, :, None] - at[:, None, :]) ** 2).sum(0)
    norm = 0.5 * dataset.shape[0] * math.log(2 * math.pi) + np.log(np.diag(cholesky)).sum()
    if log:
        return logsumexp(-energy, axis=0, b=weights[:, None]) - norm
    return (weights @ np.exp(-energy)) * np.exp(-norm)


@graph_function
def _float(x: Any) -> Any:
    return fresh(real_value(x))


@graph_function
def _with_normal(dataset: Any, weights: Any, covariance: Any, mean: Any, width: Any) -> Any:
    """Σ of weights times the density of N(mean, covariance + width) at the samples."""
    return _estimate(dataset, weights, covariance + width, mean[:, None], False)[0]


@graph_function
def _between(samples: Any, weights: Any, variance: Any, low: Any, high: Any) -> Any:
    below, above = (by_loop("ndtr", (end - samples) / np.sqrt(variance)) for end in (low, high))
    return weights @ (above - below)


class gaussian_kde:
    """A density as scipy.stats.gaussian_kde(dataset, bw_method=None, weights=None), of (d, n) samples, or n.

    bw_method   "scott", "silverman", a number, or a function of the estimate; weights of the samples.
    k(points), k.pdf, k.logpdf, k.integrate_box_1d, k.integrate_gaussian, k.integrate_kde, k.set_bandwidth, k.covariance, k.factor, k.neff.

    Everything is differentiated, by points, samples, weights and width.  Raises ValueError for samples or weights that do not fit.

    >>> import numpy as np, bwcompiler as bw
    >>> k = bw.scipy.stats.gaussian_kde(np.array([0.0, 1.0, 3.0]))
    >>> k(np.array([1.0])).round(4).tolist()
    [0.2149]
    >>> bw.grad(lambda x: k.logpdf(x)[0])(np.array([1.0])).round(4).tolist()
    [-0.0632]
    """

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None) -> None:
        self.dataset: Any = np.atleast_2d(_float(dataset))
        if not self.dataset.size > 1:
            raise ValueError("`dataset` input should have multiple elements.")
        self.d, self.n = self.dataset.shape
        if self.d > self.n:
            raise ValueError("Number of dimensions is greater than number of samples. This results in a singular data covariance matrix")
        given = np.ones(self.n) if weights is None else np.atleast_1d(_float(weights))
        if given.shape != (self.n,):
            raise ValueError("`weights` input should be of length n" if given.ndim == 1 else "`weights` input should be one-dimensional.")
        self.weights: Any = given / np.sum(given)
        self.neff: Any = 1 / np.sum(self.weights**2)
        self.set_bandwidth(bw_method)

    def scotts_factor(self) -> Any:
        """Scott's factor of the width: n ** (-1 / (d + 4)), of n effective samples in d dimensions.

        >>> import numpy as np, bwcompiler as bw
        >>> density = bw.scipy.stats.gaussian_kde(np.array([0.0, 1.0, 3.0]))
        >>> float(density.scotts_factor().round(4))
        0.8027
        """
        return self.neff ** (-1.0 / (self.d + 4))

    def silverman_factor(self) -> Any:
        """Silverman's factor of the width: (n (d + 2) / 4) ** (-1 / (d + 4)).

        >>> import numpy as np, bwcompiler as bw
        >>> density = bw.scipy.stats.gaussian_kde(np.array([0.0, 1.0, 3.0]))
        >>> float(density.silverman_factor().round(4))
        0.8503
        """
        return (self.neff * (self.d + 2.0) / 4.0) ** (-1.0 / (self.d + 4))

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """The factor of the kernel's width from a method: see the class.  Raises ValueError for a name that is none.

        >>> import numpy as np, bwcompiler as bw
        >>> density = bw.scipy.stats.gaussian_kde(np.array([0.0, 1.0, 3.0]))
        >>> density.set_bandwidth(0.5)
        >>> float(density.factor)
        0.5
        """
        named: dict[str, Callable[[], Any]] = {"scott": self.scotts_factor, "silverman": self.silverman_factor}
        if bw_method is None or isinstance(bw_method, str):
            if bw_method not in (None, *named):
                raise ValueError("`bw_method` should be 'scott', 'silverman', a scalar or a callable.")
            self.factor: Any = named[bw_method or "scott"]()
        else:
            self.factor = bw_method(self) if callable(bw_method) else bw_method
        self.covariance: Any = np.atleast_2d(np.cov(self.dataset, rowvar=True, bias=False, aweights=self.weights)) * self.factor**2

    def _points(self, points: Any) -> Any:
        found: Any = np.atleast_2d(_float(points))
        if found.shape[0] != self.d:
            if found.shape != (1, self.d):
                raise ShapeError(f"points have dimension {found.shape[0]}, dataset has dimension {self.d}")
            found = found.reshape(self.d, 1)
        return found

    def evaluate(self, points: Any) -> Any:
        """The density at points of shape (d, m), or (m,) in one dimension.  Raises ShapeError for points of another dimension.

        >>> import numpy as np, bwcompiler as bw
        >>> density = bw.scipy.stats.gaussian_kde(np.array([0.0, 1.0, 3.0]))
        >>> density.evaluate(np.array([0.5, 2.0])).round(4).tolist()
        [0.2132, 0.1842]
        """
        return _estimate(self.dataset, self.weights, self.covariance, self._points(points), False)

    __call__ = pdf = evaluate

    def logpdf(self, x: Any) -> Any:
        """The logarithm of the density at points: see `evaluate`.

        >>> import numpy as np, bwcompiler as bw
        >>> density = bw.scipy.stats.gaussian_kde(np.array([0.0, 1.0, 3.0]))
        >>> density.logpdf(np.array([0.5])).round(4).tolist()
        [-1.5457]
        """
        return _estimate(self.dataset, self.weights, self.covariance, self._points(x), True)

    def integrate_box_1d(self, low: Any, high: Any) -> Any:
        """The probability between two numbers, of samples of one dimension; ValueError for others.

        >>> import numpy as np, bwcompiler as bw
        >>> density = bw.scipy.stats.gaussian_kde(np.array([0.0, 1.0, 3.0]))
        >>> float(density.integrate_box_1d(0.0, 1.0).round(4))
        0.2098
        """
        if self.d != 1:
            raise ValueError("integrate_box_1d() only handles 1D pdfs")
        return _between(self.dataset[0], self.weights, self.covariance[0, 0], low, high)

    def integrate_gaussian(self, mean: Any, cov: Any) -> Any:
        """The integral of the product with a normal density.  Raises ValueError where mean (d,) or cov (d, d) have another dimension.

        >>> import numpy as np, bwcompiler as bw
        >>> density = bw.scipy.stats.gaussian_kde(np.array([0.0, 1.0, 3.0]))
        >>> float(density.integrate_gaussian(1.0, 0.25).round(4))
        0.208
        """
        middle, width = np.atleast_1d(np.squeeze(_float(mean))), np.atleast_2d(_float(cov))
        if middle.shape != (self.d,) or width.shape != (self.d, self.d):
            raise ValueError(f"mean and covariance do not have dimension {self.d}")
        return _with_normal(self.dataset, self.weights, self.covariance, middle, width)

    def integrate_kde(self, other: Any) -> Any:
        """The integral of the product with another estimate of as many dimensions; ValueError for others.

        >>> import numpy as np, bwcompiler as bw
        >>> density = bw.scipy.stats.gaussian_kde(np.array([0.0, 1.0, 3.0]))
        >>> float(density.integrate_kde(density).round(4))
        0.1577
        """
        if other.d != self.d:
            raise ValueError("KDEs are not the same dimensionality")
        found = _estimate(self.dataset, self.weights, self.covariance + other.covariance, other.dataset, False)
        return np.sum(found * other.weights)
