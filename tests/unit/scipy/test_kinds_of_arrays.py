"""Functions of SciPy on arrays of several dtypes, and on empty ones: value, dtype and shape are SciPy's, through the graph's interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy
import scipy.integrate
import scipy.ndimage
import scipy.spatial
import scipy.special
import scipy.stats

import bwcompiler as bw
from tests.support.derivatives import check_derivatives
from tests.unit.frontend.comparing import run_traced

rng = np.random.default_rng(8)
X = rng.uniform(-3.0, 3.0, size=(3, 5))
POINTS = np.cumsum(rng.uniform(0.5, 1.5, size=5))
LABELS = np.arange(15).reshape(3, 5) % 4
REAL, ALL = (np.float64, np.float32, np.int64), (np.float64, np.float32, np.int64, np.complex128)
DISTANCES = "rogerstanimoto russellrao sokalsneath yule dice jaccard hamming canberra cityblock chebyshev euclidean minkowski".split()

# name -> (function of SciPy's namespace and an array, dtypes)
CASES: dict[str, tuple[Any, ...]] = {
    "trapezoid": (lambda s, x: (s.integrate.trapezoid(x), s.integrate.trapezoid(x, np.arange(5) ** 2), s.integrate.trapezoid(x, POINTS)), ALL),
    "simpson": (lambda s, x: (s.integrate.simpson(x), s.integrate.simpson(x, x=POINTS, axis=1), s.integrate.simpson(x[:, :4])), ALL),
    "cumulative trapezoid": (lambda s, x: s.integrate.cumulative_trapezoid(x, initial=0), ALL),
    "along paths": (lambda s, x: (s.integrate.trapezoid(x + 1j, x[0] * 1j), s.integrate.cumulative_trapezoid(x, x * (1 + 2j), axis=0)), ALL),
    "spherical functions": (lambda s, x: tuple(getattr(s.special, f"spherical_{kind}n")(1, abs(x), derivative)
                                               for kind in "jyik" for derivative in (False, True)), REAL),
    "descriptions": (lambda s, x: tuple(s.stats.describe(x))[1:], (np.float64, np.int64)),
    "cumulative simpson": (lambda s, x: (s.integrate.cumulative_simpson(x, x=POINTS, initial=2.0), s.integrate.cumulative_simpson(x, axis=0),
                                         s.integrate.cumulative_simpson(x[:, :2], dx=0.5), s.integrate.cumulative_simpson(x[:, :4])), ALL),
    "romb": (lambda s, x: s.integrate.romb(x, 0.5), ALL),
    "distances of vectors": (lambda s, x: tuple(getattr(s.spatial.distance, name)(x[0], x[1]) for name in DISTANCES), REAL),
    "weighted": (lambda s, x: tuple(getattr(s.spatial.distance, name)(x[0], x[1], w=POINTS) for name in DISTANCES[:5]), REAL),
    "distances of truth values": (lambda s, x: tuple(getattr(s.spatial.distance, name)(x[0] > 0, x[1] > 0) for name in DISTANCES[:7]), REAL),
    "matrices of distances": (lambda s, x: tuple(s.spatial.distance.cdist(abs(x), abs(x[:2] + 1), name) for name in [*DISTANCES, "jensenshannon"]), REAL),
    "pairs": (lambda s, x: tuple(s.spatial.distance.pdist(x, name) for name in DISTANCES[:5]), REAL),
    "squareform": (lambda s, x: s.spatial.distance.squareform(x[0, :3]), REAL),
    "powers of distances": (lambda s, x: (s.spatial.minkowski_distance(x, x[::-1], 3), s.spatial.minkowski_distance_p(x, x[::-1], 3),
                                          s.spatial.distance_matrix(x, x[::-1], 1)), REAL),
    "sums of labels": (lambda s, x: (s.ndimage.sum(x), s.ndimage.sum_labels(x, LABELS, 2), s.ndimage.sum_labels(x, LABELS, [1, 3, 9]), s.ndimage.sum(x, LABELS),
                                     s.ndimage.mean(x, LABELS, 2), s.ndimage.variance(x, LABELS, [2, 1]),
                                     s.ndimage.standard_deviation(x, LABELS)), (np.float64, np.int64)),
    "extremes of labels": (lambda s, x: (s.ndimage.maximum(x), s.ndimage.minimum(x, LABELS, [1, 9]), s.ndimage.maximum(x, LABELS)), REAL),
    "filters of transforms": (lambda s, x: (s.ndimage.fourier_gaussian(x, (1.0, 2.0)), s.ndimage.fourier_uniform(x, 2.0, 8),
                                            s.ndimage.fourier_shift(x, 0.4, axis=0)), ALL),
    "means of neighbours": (lambda s, x: s.ndimage.uniform_filter(x, 3), ALL),
    "gradients": (lambda s, x: s.ndimage.gaussian_gradient_magnitude(x, 1.0), REAL),
    "complex results": (lambda s, x: (s.ndimage.spline_filter(x), s.ndimage.convolve1d(x, [1.0, 2.0], output=np.float32)), (np.complex128,)),
    "wrapped at whole turns": (lambda s, x: tuple(s.ndimage.shift(x, shift, order=order, mode="wrap", prefilter=False)
                                                  for shift in (4, 2, -8, 1.0) for order in (0, 1)), REAL),
    "empty": (lambda s, x: (s.ndimage.gaussian_filter(x[:0], 1.0), s.ndimage.uniform_filter(x[:, :0], 3), s.ndimage.maximum_filter(x[:0], 2),
                            s.spatial.distance.cdist(x[:, :0], x[:, :0], "chebyshev"), s.ndimage.fourier_shift(x[:0], 1.0)), REAL),
}


@pytest.mark.filterwarnings("ignore:promoting specified output dtype")
@pytest.mark.parametrize("name", CASES)
def test_as_scipy(name: str) -> None:
    function, dtypes = CASES[name]
    for dtype in dtypes:
        x = (X + 1j * X[::-1]).astype(dtype) if dtype is np.complex128 else X.astype(dtype)
        with np.errstate(all="ignore"):
            found, expected = run_traced(lambda x: function(bw.scipy, x), x)[0], function(scipy, x)
        for mine, theirs in zip(*[one if isinstance(one, tuple) else (one,) for one in (found, expected)], strict=True):
            assert np.asarray(mine).dtype == np.asarray(theirs).dtype and np.shape(mine) == np.shape(theirs), (name, dtype)
            np.testing.assert_allclose(mine, theirs, rtol=2e-5 if dtype is np.float32 else 1e-10, atol=2e-5 if dtype is np.float32 else 1e-12)


def test_derivatives() -> None:
    near = X / 4
    check_derivatives(lambda x: bw.scipy.integrate.cumulative_simpson(x, x=POINTS), near)
    check_derivatives(lambda x, p: bw.scipy.integrate.cumulative_simpson(x, x=p), near[0], POINTS)
    check_derivatives(lambda x: (bw.scipy.ndimage.variance(x, LABELS, [1, 2]), bw.scipy.ndimage.maximum(x, LABELS, [1, 2])), near)
    check_derivatives(lambda x, d: bw.scipy.ndimage.fourier_shift(x, d).real, near, np.float64(0.3))
    check_derivatives(lambda x: [getattr(bw.scipy.spatial.distance, name)(x[0], x[1]) for name in DISTANCES[:5]], near)


def test_ranks_of_complex_numbers_are_refused() -> None:
    with pytest.raises(TypeError, match="Complex type not supported"):
        bw.scipy.ndimage.maximum_filter(X + 1j, 3)
