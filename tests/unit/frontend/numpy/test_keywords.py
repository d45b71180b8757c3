"""Less usual functions and keywords of NumPy: the same values, dtypes and shapes as NumPy's, and derivatives."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from tests.support.derivatives import check_derivatives
from tests.unit.frontend.comparing import compare, run_traced

rng = np.random.default_rng(6)
X = rng.normal(size=(5, 3))
GAPS = np.where(rng.random((5, 3)) > 0.7, np.nan, X)
GAPS[2] = np.nan
COUNTS, WEIGHTS = rng.integers(1, 5, 5), rng.uniform(0.5, 1, 5)
# Older versions of NumPy (2.1) give the first element for the quantile 0, whether it has a weight or not.
SKIPS_ZEROS = np.quantile([1.0, 2.0], 0, weights=[0.0, 1.0], method="inverted_cdf") == 2.0
SOME_ZEROS = np.array([0, 0, 1.0, 2, 0]) if SKIPS_ZEROS else WEIGHTS
MASK = np.array([True, False, True])
EDGES = np.array([-2.0, -0.5, 0.25, 1.0, 3.0])
PLACES = rng.integers(0, 60, (2, 4))

EXPRESSIONS: dict[str, tuple[Callable[..., Any], Any]] = {
    "cov fweights": (lambda x: (np.cov(x.T, fweights=COUNTS), np.cov(x.T, fweights=COUNTS, bias=True), np.cov(x.T, fweights=COUNTS, ddof=2)), X),
    "cov both": (lambda x: (np.cov(x.T, fweights=COUNTS, aweights=WEIGHTS), np.cov(x.T, fweights=COUNTS, aweights=WEIGHTS, ddof=0)), X),
    "interp period": (lambda x: (np.interp(x, [0.5, 1.0, 3.0, 2.0], [1.0, 2.0, 3.0, 5.0], period=4), np.interp(x, [0, 1], [3, 4], period=-1.5)), X),
    "nanmax": (lambda x: (np.nanmax(x, 0, initial=0.5), np.nanmax(x, 1, initial=-9.0, where=MASK), np.nanmax(x), np.nanmax(x, 1)), GAPS),
    "nanmin": (lambda x: (np.nanmin(x, 0, initial=0.5), np.nanmin(x, 1, initial=9.0, where=MASK), np.nanmin(x, 0, keepdims=True)), GAPS),
    "nanmax of integers": (lambda x: (np.nanmax(x, 0, initial=2), np.nanmin(x, 1, initial=9, where=MASK)), (X * 4).astype(int)),
    "nanmean": (lambda x: np.nanmean(x, 1, where=MASK), GAPS),
    "quantile weights": (lambda x: (np.quantile(x, [0, 0.3, 0.5, 1], axis=0, weights=WEIGHTS, method="inverted_cdf"),
                                    np.percentile(x, 30, axis=1, weights=WEIGHTS[:3], method="inverted_cdf"),
                                    np.quantile(x, 0.4, weights=np.abs(X), method="inverted_cdf"),
                                    np.quantile(x, [0, 0.5], axis=0, weights=SOME_ZEROS, method="inverted_cdf")), X),
    "svd of symmetric matrices": (lambda x: (np.linalg.svd(x @ x.T - np.eye(3), hermitian=True),
                                             np.linalg.svd(x @ x.T - np.eye(3), hermitian=True, compute_uv=False)), X[:3]),
    "pinv of symmetric matrices": (lambda x: np.linalg.pinv(x.T @ x + np.triu(x[:3]), hermitian=True), X),
    "matrix_rank": (lambda x: (np.linalg.matrix_rank(x[0] @ x[0].T, hermitian=True), np.linalg.matrix_rank(x, tol=0.5),
                               np.linalg.matrix_rank(x, rtol=np.array([0.1, 0.9])), np.linalg.matrix_rank(x, tol=np.array([0.1, 9]))),
                    np.stack([X, X * 0.1])),
    "qr complete": (lambda x: (np.linalg.qr(x, "complete"), np.linalg.qr(x[None] + 1, "complete"), np.linalg.qr(x[:, :1], "complete")), X),
    "norms of small order": (lambda x: (np.linalg.norm(x, 0.5, axis=1), np.linalg.norm(x, -2, axis=1), np.linalg.norm(x, -0.5, axis=0)),
                             X * np.array([0, 1, 1])),
    "histogram_bin_edges": (lambda x: (np.histogram_bin_edges(x, 4), np.histogram_bin_edges(x, 3, (-1, 2)), np.histogram_bin_edges(x, EDGES)), X),
    "histogram2d": (lambda x: (np.histogram2d(x[:, 0], x[:, 1], 3), np.histogram2d(x[:, 0], x[:, 1], [EDGES, 2]),
                               np.histogram2d(x[:, 0], x[:, 1], [2, 3], density=True, range=[(-2, 2), (-1, 1)])), X),
    "histogramdd": (lambda x: (np.histogramdd(x, 2), np.histogramdd(x, (EDGES, 3, EDGES)), np.histogramdd(x, 2, weights=WEIGHTS),
                               np.histogramdd((x[:, 0], x[:, 1]), 2, density=True)), X),
    "polyfit": (lambda x: (np.polyfit(x[:, 0], x[:, 1], 2), np.polyfit(x[:, 0], x, 1), np.polyfit(x[:, 0], x[:, 1], 1, w=WEIGHTS)), X),
    "poly": (lambda x: (np.poly(x[0]), np.poly(x[:, 0])), X),
    "unravel_index": (lambda i: (np.unravel_index(i, (3, 4, 5)), np.unravel_index(i, (3, 4, 5), order="F"), np.unravel_index(i, 60)), PLACES),
    "ravel_multi_index": (lambda i: (np.ravel_multi_index(np.stack([i % 3, i % 4]), (3, 4)),
                                     np.ravel_multi_index(np.stack([i % 3, i % 4]), (3, 4), order="F"),
                                     bw.numpy.ravel_multi_index((i, i - 9), (3, 4), mode=("wrap", "clip"))), PLACES),
    "clip of some": (lambda x: (np.clip(x, -0.1, 0.5, where=MASK, out=x.copy()), np.clip(x, None, 0.5, where=MASK, out=np.zeros_like(x)),
                                np.clip(x, 0, 1, dtype=np.float32, casting="unsafe")), X),
    "initial values of another dtype": (lambda i: (np.max(i, 1, np.zeros_like(i[:, 0], float), initial=58.5), np.min(i, 1, initial=0.5),
                                                   np.min(i, 1, np.zeros_like(i[:, 0], float), initial=0.5),
                                                   np.maximum.reduce(i > 99, 1, None, np.zeros_like(i[:, 0], float), initial=2.5)), PLACES),
    "segments in the dtype of out": (lambda x: np.add.reduceat(x * np.float32(1e8), [0, 2], out=np.zeros_like(x[:2], float)), X.astype(np.float32)),
    "sizes that are arrays": (lambda x: (np.resize(x, np.array([2, 4])), np.zeros_like(x, shape=np.array(3)), np.array_split(x, np.array(2)),
                                         np.roll(x, np.array(1)), np.broadcast_to(x, np.array([2, 5, 3]))), X),
    "no mean": (lambda x: (np.var(x, mean=None), np.std(x, 0, mean=None)), X),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_as_in_numpy(name: str) -> None:
    fun, x = EXPRESSIONS[name]
    compare(fun, x)


DERIVATIVES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "cov fweights": (lambda x, w: np.cov(x.T, fweights=COUNTS, aweights=w), (X, WEIGHTS)),
    "interp period": (lambda x, y: np.interp(x, [0.5, 1.0, 3.0, 2.0], y, period=4), (X, rng.normal(size=4))),
    "nanmax": (lambda x: np.nanmax(x, 0, initial=0.5), (X,)),
    "quantile weights": (lambda x: np.quantile(x, [0.3, 0.5], axis=0, weights=WEIGHTS, method="inverted_cdf"), (X,)),
    "svd of symmetric matrices": (lambda x: (lambda u, s, v: (u * s) @ v)(*np.linalg.svd(x @ x.T - np.eye(3), hermitian=True)), (X[:3],)),
    "pinv of symmetric matrices": (lambda x: np.linalg.pinv(x @ x.T + np.eye(5), hermitian=True), (X,)),
    "qr complete": (lambda x: np.linalg.qr(x, "complete"), (X,)),
    "all left vectors": (lambda x: (lambda u: u[:, 3:] @ u[:, 3:].T)(np.linalg.svd(x)[0]), (X,)),
    "all right vectors": (lambda x: (lambda v: v[3:].T @ v[3:])(np.linalg.svd(x)[2]), (X.T,)),
    "norms of small order": (lambda x: (np.linalg.norm(x, 0.5, axis=1), np.linalg.norm(x, -2, axis=1)), (X,)),
    "histogram2d": (lambda w: np.histogramdd(X[:, :2], 3, weights=w)[0], (WEIGHTS,)),
    "polyfit": (lambda x, w: np.polyfit(x[:, 0], x[:, 1], 2, w=w), (X, WEIGHTS)),
    "poly": (lambda x: np.poly(x[0]), (X,)),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name: str) -> None:
    fun, args = DERIVATIVES[name]
    check_derivatives(fun, *args, tolerance=3e-6)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 4, 2), (3, 0), (0, 2)])
def test_all_singular_vectors(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    a = rng.normal(size=shape)
    u, s, v = run_traced(lambda a: np.linalg.svd(a), a)[0]
    middle = np.zeros(shape)
    diagonal = min(shape[-2:])
    middle[..., :diagonal, :diagonal] = np.eye(diagonal) * s[..., None, :]
    np.testing.assert_allclose(u @ middle @ v, a, atol=1e-13)
    for one in (u, v):
        np.testing.assert_allclose(one @ np.swapaxes(one, -1, -2), np.broadcast_to(np.eye(one.shape[-1]), one.shape), atol=1e-13)


@pytest.mark.parametrize("order", [0.5, 1.5, 3, -0.5, -2])
def test_norms_of_zeros_have_derivative_zero(order: float) -> None:
    np.testing.assert_array_equal(run_traced(bw.grad(lambda x: np.linalg.norm(x, order)), np.zeros(3))[0], np.zeros(3))


@pytest.mark.parametrize("index", [-1, 6])
def test_positions_out_of_range(index: int) -> None:
    with pytest.raises(IndexError):
        bw.jit(lambda i: np.unravel_index(i, (2, 3)))(np.array([0, index]))
    with pytest.raises(IndexError):
        bw.jit(lambda i: bw.numpy.ravel_multi_index((i, i), (2, 3)))(np.array([0, index]))


def test_where_needs_an_initial_value() -> None:
    with pytest.raises(ValueError, match="initial"):
        run_traced(lambda x: np.nanmax(x, where=MASK), X)


@pytest.mark.parametrize("name", ["asanyarray", "ascontiguousarray", "asfortranarray"])
@pytest.mark.parametrize("turned", [False, True])
def test_arrays_in_an_order(name: str, turned: bool, rng: np.random.Generator) -> None:
    """As NumPy: what is in the order already is the array itself, else a copy."""
    def ours(x: Any) -> Any:
        y = getattr(bw.numpy, name)(x.T if turned else x)
        y[0] = 5.0
        return y * 1, x * 1

    def theirs(x: Any) -> Any:
        y = getattr(np, name)(x.T if turned else x)
        y[0] = 5.0
        return y * 1, x * 1

    for shape in ((2, 3), (4,)):
        x = rng.normal(size=shape)
        for found, expected in zip(bw.jit(ours, mutates=False)(x), theirs(x.copy()), strict=True):
            np.testing.assert_array_equal(found, expected)
    assert bw.jit(lambda x: getattr(bw.numpy, name)(x[0]))(np.ones(3)).shape == getattr(np, name)(np.float64(1)).shape
    assert getattr(bw.numpy, name)([1, 2]).dtype == np.int64


def test_items_of_an_iterator() -> None:
    found = bw.jit(lambda x: bw.numpy.fromiter((x[k] for k in range(3)), np.float32, 2))(np.arange(3.0))
    assert found.tolist() == [0.0, 1.0] and found.dtype == np.float32
    assert bw.numpy.fromiter(iter([]), int).shape == (0,)
    with pytest.raises(ValueError, match="too short"):
        bw.numpy.fromiter(iter([1]), int, 2)


@pytest.mark.parametrize("bins", [(1, 0, -1), [0.0, 2.0, 1.0]])
def test_bins_that_fall(bins: Any) -> None:
    with pytest.raises(ValueError, match="must increase monotonically"):
        run_traced(lambda x: np.histogram(x, bins), X)


@pytest.mark.parametrize(("bounds", "named"), [
    ((1,), {"stop": 5}), ((1,), {"stop": 9, "step": 3}), ((5,), {"step": 2}), ((), {"stop": 4}), ((), {"start": 1, "stop": 7, "step": 2}),
    ((0, 4), {"step": 2}), ((0.5,), {"stop": 2.0, "step": 0.25}), ((), {"start": 3}), ((1,), {"start": 2, "stop": 3}), ((), {"step": 3}),
    ((1,), {"end": 3})], ids=str)
def test_arange_with_named_bounds(bounds: tuple[Any, ...], named: dict[str, Any]) -> None:
    def ours(x: Any) -> Any:
        return x * np.arange(*bounds, **named)

    try:
        expected = ours(2.0)
    except TypeError as error:
        with pytest.raises(TypeError, match=re.escape(str(error))):
            bw.jit(ours)(2.0)
    else:
        for made in (bw.jit(ours)(2.0), bw.jit(lambda x: x * bw.numpy.arange(*bounds, **named))(2.0)):
            np.testing.assert_array_equal(made, expected)


def test_arange_to_a_named_bound_that_is_an_argument() -> None:
    def total(x: Any, n: Any) -> Any:
        return np.sum(x * np.arange(1, stop=n, step=2))

    compiled = bw.jit(total)
    for n in (9, 4, 9):
        assert compiled(2.0, n) == total(2.0, n)
