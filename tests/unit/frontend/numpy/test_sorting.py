"""Sorting, order statistics, searching, counting: NumPy's value, dtype and shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerError
from tests.support.derivatives import check_derivatives
from tests.unit.frontend.comparing import compare

rng = np.random.default_rng(12)
X = rng.normal(size=(3, 5))
F = X.astype(np.float32)
C = rng.normal(size=(2, 3, 4))
I = rng.integers(-3, 4, size=(3, 5))  # noqa: E741
N = np.where(rng.random((3, 5)) < 0.3, np.nan, X)
EDGES = np.array([-1.0, 0.0, 0.5, 2.0])
METHODS = ("linear", "lower", "higher", "nearest", "midpoint", "inverted_cdf", "averaged_inverted_cdf", "closest_observation",
           "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased", "normal_unbiased")


def _in_place(x: Any) -> Any:
    y = x * 1
    y[1].sort()
    y[:, 0].sort()
    z = x * 1
    z.sort(axis=0)
    return y, z


EXPRESSIONS: dict[str, tuple[Any, ...]] = {
    "sort": (lambda x: (np.sort(x), np.sort(x, 0), np.sort(x, None), np.sort(x, stable=True), np.sort(x[0])), X),
    "sort of integers": (lambda i: (np.sort(i), np.argsort(i, kind="stable"), np.argsort(i, 0, stable=True), np.sort(i > 0)), I),
    "sort puts nan last": (lambda x: (np.sort(x), np.argsort(x, kind="stable")), N),
    "argsort": (lambda x: (np.argsort(x), np.argsort(x, axis=None), x.argsort(0), np.take_along_axis(x, np.argsort(x, 1), 1),
                           np.argsort(x[0, 0])), X),
    "in place": (_in_place, X),
    "partition": (lambda x: (np.partition(x, 2)[:, 2], np.argpartition(x, 1, 0)[1]), X),
    "lexsort": (lambda i: (np.lexsort((i[0], i[1])), np.lexsort(i)), I),
    "median": (lambda x: (np.median(x), np.median(x, 0), np.median(x, (0, -1)), np.median(x, 1, keepdims=True)), C),
    "median of nan": (lambda x: (np.median(x), np.median(x, 1), np.nanmedian(x), np.nanmedian(x, 0)), N),
    "median of integers": (lambda i: (np.median(i), np.median(i, 0), np.nanmedian(i)), I),
    "median of complex numbers": (lambda x: (np.median(x + 1j * x[::-1], 0), np.nanmedian(x + 1j * x[::-1]), np.nanmedian(1j * x, 1)), N),
    "median of float32": (lambda x: (np.median(x), np.median(x[:2], 0)), F),
    "quantile": (lambda x: (np.quantile(x, 0.3), np.quantile(x, [0.0, 0.5, 1.0], 0), np.percentile(x, [[10, 20]], (0, 2))), C),
    "quantile keepdims": (lambda x: (np.quantile(x, [0.2, 0.7], 1, keepdims=True), np.percentile(x, 40, keepdims=True)), C),
    "quantile of float32": (lambda x: (np.quantile(x, 0.3), np.percentile(x, 30, 0), np.quantile(x, [0.3])), F),
    "quantile of integers": (lambda i: (np.quantile(i, 0.3), np.percentile(i, 30, 0, method="lower")), I),
    "quantile of nan": (lambda x: (np.quantile(x, 0.3, 1), np.nanquantile(x, 0.3), np.nanpercentile(x, [20, 90], 0)), N),
    "searchsorted": (lambda x: (np.searchsorted(EDGES, x), np.searchsorted(EDGES, x, "right"), np.searchsorted(np.sort(x[0]), 0.1)), X),
    "searchsorted ties and nan": (lambda x: tuple(np.searchsorted([0.0, 0.0, 1.0, np.nan], x, side) for side in ("left", "right")),
                                  np.array([0.0, 1.0, 2.0, -1.0, np.nan, np.inf])),
    "digitize": (lambda x: tuple(np.digitize(x, bins, right) for bins in (EDGES, EDGES[::-1]) for right in (False, True)), X),
    "interp": (lambda x: (np.interp(x, EDGES, [1.0, 3.0, 2.0, 5.0]), np.interp(x, EDGES, EDGES**2, -9.0, 9.0), np.interp(0.2, EDGES, x[0, :4]),
                          np.interp(x, [0.5], [2.0])), X),
    "interp at the knots": (lambda x: (np.interp(x, x, x**2), np.interp(np.nan, x, x)), EDGES),
    "histogram": (lambda x: (np.histogram(x), np.histogram(x, EDGES), np.histogram(x, 4, (-1, 1)), np.histogram(x, 3, density=True)), X),
    "histogram weighted": (lambda x: np.histogram(x, EDGES, weights=x * x), X),
    "bincount": (lambda x: (np.bincount([0, 3, 3, 1, 0], x[0]), np.bincount([0, 1, 1, 0, 2], x[0], minlength=5)), X),
    "isin": (lambda i: (np.isin(i, [1, 2]), np.isin(i, i[0, :2], invert=True)), I),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_as_numpy(name: str) -> None:
    function, *arrays = EXPRESSIONS[name]
    compare(function, *arrays)


@pytest.mark.parametrize("method", METHODS)
def test_quantile_methods(method: str) -> None:
    compare(lambda x: np.quantile(x, [0.0, 0.21, 0.5, 0.93, 1.0], 1, method=method), X)


@pytest.mark.parametrize("method", METHODS)
def test_nanquantile_methods(method: str) -> None:
    compare(lambda x: np.nanquantile(x, [0.0, 0.21, 0.5, 0.93, 1.0], 0, method=method), N)


def test_results_of_unknown_size_are_refused() -> None:
    for function in (np.unique_counts, lambda x: np.unique(x, return_counts=True), lambda x: np.intersect1d(x, x, return_indices=True)):
        with pytest.raises(TracerError, match="not known while tracing"):
            compare(function, X)


LEVELS = np.array([0.1, 0.5, 1.0])
LEVEL_METHODS = ["linear", "lower", "higher", "nearest", "midpoint", "hazen", "weibull", "inverted_cdf",
                 "averaged_inverted_cdf", "closest_observation"]


@pytest.mark.filterwarnings("ignore:All-NaN")
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
@pytest.mark.parametrize("method", LEVEL_METHODS)
def test_quantiles_at_traced_levels(name: str, method: str) -> None:
    """As at known ones: for several levels, one, a Python number and those of float32; with nan, of integers, over every axis."""
    x = np.random.default_rng(3).normal(size=(4, 5))
    single = np.lib.NumpyVersion(np.__version__) >= "2.3.0"             # before, NumPy promoted float32 by other rules
    for a in (x, np.where(x > 0.9, np.nan, x), (x * 9).astype(int), *[x.astype(np.float32)] * single):
        for q in (LEVELS, LEVELS[None, :2], np.float64(0.3), 0.3, *[np.float32([0.25, 0.75])] * single):
            for axis in (None, 0) if np.ndim(q) < 2 else (None,):
                compare(lambda a, q, axis=axis: getattr(np, name)(a, q, axis=axis, method=method), a, q)
    compare(lambda a, q: getattr(np, name.replace("quantile", "percentile"))(a, q * 100, axis=1, keepdims=True, method=method), x, LEVELS)


def test_derivatives_of_quantiles_at_traced_levels() -> None:
    x = np.random.default_rng(3).normal(size=(4, 5))
    check_derivatives(lambda x, q: (np.quantile(x, q, axis=0), np.nanquantile(x, q, axis=1, method="hazen")), x, np.array([0.31, 0.72]))


@pytest.mark.parametrize("method", LEVEL_METHODS)
@pytest.mark.parametrize("level", [1.5, -0.1, np.nan])
def test_no_traced_level(method: str, level: float) -> None:
    """What lies outside of 0 to 1 is an error when it runs, also of methods that would take the last element."""
    for function in (np.quantile, np.nanquantile):
        with pytest.raises(IndexError):
            bw.jit(lambda x, q, function=function: function(x, q, method=method))(np.arange(4.0), np.array([0.5, level]))


def test_weighted_quantiles_without_nan() -> None:
    rng = np.random.default_rng(3)
    x, weights = np.where(rng.random((4, 5)) > 0.7, np.nan, rng.normal(size=(4, 5))), rng.uniform(0.5, 1, (4, 5))
    compare(lambda x, w: (np.nanquantile(x, [0.2, 0.5], axis=0, weights=w, method="inverted_cdf"),
                          np.nanpercentile(x, 30, weights=w, method="inverted_cdf")), x, weights)


def test_traced_numbers_are_counted_up_to_minlength():
    def counted(x):
        bins = np.minimum((np.abs(x) * 8).astype(int), 7)
        return np.bincount(bins, minlength=10), np.bincount(bins, x, 8), np.bincount(x > 0, minlength=2)

    x = X.ravel()
    for one, other in zip(bw.jit(counted)(x), counted(x), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-15)
    bw.check_grads(lambda x: counted(x)[1], (x,))
    for numbers in ([0.1, 0.6], [0.1, -0.6]):
        with pytest.raises(ValueError, match="a larger minlength"):
            bw.jit(lambda x: np.bincount((x * 8).astype(int), minlength=3))(np.array(numbers))
