"""`bw.scipy.spatial.distance` against SciPy: all metrics, weights and parameters, with derivatives of those that have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import spatial
from scipy.spatial import distance as theirs

import bwcompiler as bw
from bwcompiler.errors import UnsupportedError
from tests.support.derivatives import check_derivatives
from tests.unit.frontend.comparing import run_traced

ours = bw.scipy.spatial.distance
rng = np.random.default_rng(18)
BOOLEAN = ("dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule")
PAIR = rng.normal(size=(5, 4)), rng.normal(size=(6, 4))
BITS = rng.random((5, 8)) < 0.5, rng.random((6, 8)) < 0.5


def points(metric: str) -> tuple[Any, Any]:
    if metric in BOOLEAN:
        return BITS
    if metric == "jensenshannon":
        return np.abs(PAIR[0]), np.abs(PAIR[1])
    return (np.round(PAIR[0]), np.round(PAIR[1])) if metric == "hamming" else PAIR


def close(fun: Any, other: Any, *args: Any) -> None:
    found, expected = run_traced(fun, *args)[0], other(*args)
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("metric", ours.METRICS)
def test_metrics(metric: str) -> None:
    x, y = points(metric)
    close(lambda x, y: ours.cdist(x, y, metric), lambda x, y: theirs.cdist(x, y, metric), x, y)
    close(lambda x: ours.pdist(x, metric), lambda x: theirs.pdist(x, metric), x)
    if metric not in ("seuclidean", "mahalanobis", "jensenshannon"):
        w = np.linspace(0.5, 2.0, x.shape[1])
        close(lambda x, y, w: ours.cdist(x, y, metric, w=w), lambda x, y, w: theirs.cdist(x, y, metric, w=w), x, y, w)
        close(lambda u, v: getattr(ours, metric)(u, v, w=w), lambda u, v: getattr(theirs, metric)(u, v, w=w), x[0], y[0])
    if metric not in BOOLEAN:
        check_derivatives(lambda x, y: ours.cdist(x, y, metric), x, y, order=1, tolerance=1e-5) if metric != "hamming" else None
        assert np.isfinite(bw.grad(lambda x: ours.cdist(x, x, metric).sum())(np.abs(x) + 1)).all()         # zero distances too


def test_parameters() -> None:
    variances, inverse = np.arange(1.0, 5.0), PAIR[0][:4].T @ PAIR[0][:4]
    for p in (0.5, 1, 2, 3.5, np.inf):
        close(lambda x, y, p=p: ours.cdist(x, y, "minkowski", p=p), lambda x, y, p=p: theirs.cdist(x, y, "minkowski", p=p), *PAIR)
        close(lambda u, v, p=p: ours.minkowski(u, v, p), lambda u, v, p=p: theirs.minkowski(u, v, p), PAIR[0][0], PAIR[1][0])
    close(lambda x, y, v: ours.cdist(x, y, "seuclidean", V=v), lambda x, y, v: theirs.cdist(x, y, "seuclidean", V=v), *PAIR, variances)
    close(lambda x, y, v: ours.cdist(x, y, "mahalanobis", VI=v), lambda x, y, v: theirs.cdist(x, y, "mahalanobis", VI=v), *PAIR, inverse)
    close(lambda u, v: ours.mahalanobis(u, v, inverse), lambda u, v: theirs.mahalanobis(u, v, inverse), PAIR[0][0], PAIR[1][0])
    close(lambda u, v: ours.seuclidean(u, v, variances), lambda u, v: theirs.seuclidean(u, v, variances), PAIR[0][0], PAIR[1][0])
    u, v = np.abs(PAIR[0][0]), np.abs(PAIR[1][0])
    close(lambda u, v: ours.jensenshannon(u, v, 2.0), lambda u, v: theirs.jensenshannon(u, v, 2.0), u, v)
    assert ours.jensenshannon(u, u) == 0
    for options in ({}, {"axis": 1}, {"base": 2.0, "axis": -1, "keepdims": True}):
        x, y = np.abs(PAIR[0]), np.abs(PAIR[1][:5])
        close(lambda x, y, o=options: ours.jensenshannon(x, y, **o), lambda x, y, o=options: theirs.jensenshannon(x, y, **o), x, y)
    for args in ((None, False), (u, True), (u, False)):
        close(lambda u, v, a=args: ours.correlation(u, v, *a), lambda u, v, a=args: theirs.correlation(u, v, *a), u, v)
    with pytest.raises(TypeError, match="positional"):
        ours.cosine(u, v, u, v)


def test_squareform() -> None:
    condensed = theirs.pdist(PAIR[0])
    for given in (condensed, theirs.squareform(condensed)):
        close(lambda x: ours.squareform(x), theirs.squareform, given)
    check_derivatives(lambda x: ours.squareform(ours.pdist(x, "sqeuclidean")), PAIR[0])
    with pytest.raises(ValueError, match="binomial"):
        ours.squareform(np.ones(4))


def test_captured_and_refused() -> None:
    def spread(x):
        return theirs.cdist(x, PAIR[1], theirs.cityblock).sum() + theirs.pdist(x, "cosine").sum() + theirs.euclidean(x[0], x[1])

    assert bw.jit(spread)(PAIR[0]) == pytest.approx(spread(PAIR[0]), rel=1e-12)
    check_derivatives(spread, PAIR[0], order=1)
    with pytest.raises(UnsupportedError, match=r"bw\.vmap"):
        ours.cdist(*PAIR, lambda u, v: u[0] - v[0])
    with pytest.raises(ValueError, match="Unknown Distance Metric"):
        ours.cdist(*PAIR, "odd")
    with pytest.raises(TypeError, match="unexpected keyword"):
        ours.cdist(*PAIR, "euclidean", q=2)
    with pytest.raises(ValueError, match="columns"):
        ours.cdist(PAIR[0], PAIR[1][:, :2])


def test_distances_of_scipy_spatial_in_captured_functions() -> None:
    function = lambda x, y: (spatial.distance_matrix(x, y), spatial.minkowski_distance(x[0], y, 3), spatial.minkowski_distance_p(x[0], y))
    for found, expected in zip(bw.jit(function)(*PAIR), function(*PAIR), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
