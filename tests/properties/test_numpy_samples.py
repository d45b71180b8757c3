"""Samples of NumPy functions, compiled: values as NumPy's, first and second derivatives as central differences.

A sample is a function of arrays.  Every sample is run over float64 arrays away from kinks; what it returns (several arrays or
one) is weighted and summed, so that one gradient checks all of it.  The second derivative is that of the gradient's product
with a fixed direction, compared with differences of the compiled gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from tests.support.gradcheck import directional, inner

rng = np.random.default_rng(20)
X = rng.uniform(0.3, 0.9, size=(3, 4)) * np.where(rng.random((3, 4)) < 0.5, -1, 1)
P = np.abs(X)
C = rng.normal(size=(2, 3, 4))
V = rng.normal(size=4)
A = rng.normal(size=(3, 3)) + 3 * np.eye(3)
SPD = A @ A.T
N = np.where(rng.random((3, 4)) < 0.25, np.nan, X)

UNARY = """sin cos tan arctan sinh cosh tanh arcsinh arcsin arccos arctanh exp exp2 expm1 log1p square negative absolute reciprocal cbrt
    sinc nan_to_num deg2rad floor sign""".split()
BINARY = """add subtract multiply divide power float_power arctan2 hypot logaddexp logaddexp2 maximum minimum fmax fmin copysign remainder
    fmod heaviside floor_divide""".split()
REDUCTIONS = "sum prod mean var std max min ptp median".split()

Sample = Callable[..., Any]


def over_axes(function: Sample) -> Sample:
    return lambda x: (function(x), function(x, 0), function(x, axis=(0, -1), keepdims=True))


def over_an_axis(function: Sample) -> Sample:
    return lambda x: (function(x), function(x, 0))


SAMPLES: dict[str, tuple[Any, ...]] = {
    **{name: (getattr(np, name), X) for name in UNARY},
    **{f"{name} stretched": (getattr(np, name), P, P[0] + 0.1) for name in BINARY},
    **{f"{name} of axes": (over_axes(getattr(np, name)), C) for name in REDUCTIONS},
    **{f"nan{name}": (over_an_axis(getattr(np, f"nan{name}")), N)
       for name in "sum prod mean var std max min median cumsum cumprod".split()},
    "norms": (lambda x: tuple(np.linalg.norm(x, o, axis=-1) for o in (None, 1, 2, 3, 0.5, -1, np.inf, -np.inf)), X),
    "matrix norms": (lambda x: tuple(np.linalg.norm(x, o) for o in ("fro", "nuc", 1, -1, 2, -2, np.inf)), X),
    "det": (lambda a: (np.linalg.det(a), np.linalg.slogdet(a)[1], np.linalg.cond(a)), A),
    "eigh": (lambda a: [np.abs(part) for part in np.linalg.eigh(a)], SPD),
    "eigh of the upper triangle": (lambda a: np.linalg.eigh(a, "U")[0], SPD),
    "svd": (lambda a: [np.abs(part) for part in np.linalg.svd(a, full_matrices=False)], X),
    "qr": (lambda a: [*np.linalg.qr(a), *np.linalg.qr(a.T)], X),
    "solve": (np.linalg.solve, A, A[:, 0]),
    "inverses": (lambda a: (np.linalg.inv(a), np.linalg.matrix_power(a, -2)), A),
    "pinv": (lambda a: (np.linalg.pinv(a), np.linalg.lstsq(a.T, a[0])[0]), X),
    "cholesky": (lambda a: np.linalg.cholesky((a + a.T) / 2), SPD),
    "products": (lambda x, v: (x @ v, np.dot(v, x.T), np.outer(v, v), np.kron(v, x), np.inner(x, x), np.cross(x[:, :3], v[1:]),
                               np.tensordot(x, x, 2), np.einsum("ij,kj,k->i", x, x, v[:3])), X, V),
    "sorting": (lambda x: (np.sort(x), np.sort(x, 0), np.partition(x, 1)[:, 1], np.take_along_axis(x, np.argsort(x, 1), 1)), X),
    "quantiles": (lambda x: (np.quantile(x, [0.2, 0.5], 1), np.percentile(x, 35.0), np.nanquantile(x, 0.4, 0)), X),
    "interp": (lambda x, v: (np.interp(x, [-1.0, -0.1, 0.5, 2.0], v), np.interp([0.1, 0.2], np.sort(v), x[0])), X, V),
    "histogram": (lambda x: np.histogram(x, 3, (-1, 1), weights=x * x)[0], X),
    "bincount": (lambda v: np.bincount([0, 2, 2, 1], v), V),
    "searched": (lambda x: x[np.argmax(x, 0), np.arange(4)], X),
    "differences": (lambda x: (np.diff(x, 2), np.ediff1d(x), *np.gradient(x), np.gradient(x[0], np.cumsum(x[1] ** 2)),
                               np.trapezoid(x, x * x), np.gradient(x, edge_order=2, axis=1)), X),
    "polynomials": (lambda x, v: (np.polyval(v, x), np.polymul(x[0], v), np.polyint(v), np.polyder(v), np.vander(v)), X, V),
    "convolutions": (lambda x, v: (np.convolve(v, x[0, :3]), np.correlate(v, x[0, :2], "same")), X, V),
    "grids": (lambda x: (np.linspace(x[0], x[1], 4), np.logspace(x[0, 0], 1, 3), np.geomspace(x[0] ** 2, 2, 3), np.meshgrid(x[0], x[1])[0]), X),
    "scans": (lambda x: (np.cumsum(x, 1), np.cumprod(x), np.maximum.accumulate(x, 1), np.logaddexp.accumulate(x), np.cumulative_sum(x[0])), X),
    "folds": (lambda x: (np.maximum.reduce(x), np.logaddexp.reduce(x, 1), np.hypot.reduce(x), np.subtract.reduce(x), np.add.reduceat(x, [0, 2])), X),
    "at": (lambda x, v: _at(x * 1, v), X, V),
    "pads": (lambda x: [np.pad(x, 2, mode) for mode in ("edge", "reflect", "symmetric", "wrap", "mean", "maximum", "median", "linear_ramp")], X),
    "odd pads": (lambda x: np.pad(x, 2, "reflect", reflect_type="odd"), X),
    "selections": (lambda x: (np.choose([0, 2, 1, 0], x), np.compress([True, False, True], x, 0), np.insert(x, 1, x[:, 2], 1),
                              np.delete(x, 0, 1), np.resize(x, 14), np.piecewise(x, [x < 0], [np.square, np.sin]), x[True]), X),
    "written": (lambda x: _written(x * 1, x), X),
    "views": (lambda x: (np.diagonal(x), np.diag(x, 1), np.tril(x), x.T.ravel("K"), np.lib.stride_tricks.sliding_window_view(x, 2, 0)), X),
    "tied together": (lambda x: (np.apply_along_axis(lambda r: r * r.sum(), 1, x), np.apply_over_axes(np.sum, x, [0, 1]),
                                 np.average(x, 0, x[:, 0] ** 2), np.cov(x), np.corrcoef(x[0], x[1]), np.unwrap(x * 9)), X),
    "numbers": (lambda x: (np.frexp(x)[0], np.ldexp(x, 2), np.nextafter(x, 1), np.clip(x, -0.5, None), np.where(x > 0, x, x * x)), X),
    "stretched": (lambda x: (np.take_along_axis(x[:1], np.array([[0, 3], [1, 1], [2, 0]]), 1), np.average(x, 1, [1, 2, 3, 4]),
                             np.select([x > 0.4, x < -0.4], [x * x, 2 * x], 0.5), np.nanmedian(x, 1)), X),
    "flat": (lambda x: _through_flat(x * 1), X),
    "zero variance": (lambda x: np.std(x[:, :1], 1) + np.var(x, 1), X),
}


def _at(y: Any, v: Any) -> Any:
    np.add.at(y, ([0, 2, 0, 0], [1, 1, 1, 0]), v)
    np.multiply.at(y, [1, 0, 1], v)
    return y


def _through_flat(y: Any) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(y, (2, 2))
    before = y.T.flat[2:7] * 1
    y.T.flat[[0, 3, 5]] = before[:2]
    np.subtract.at(y, ([0, 0, 2], [1, 1, 3]), before[0])
    np.fill_diagonal(y[:, ::-1], before[2:], wrap=True)
    return windows * 1, y, before


def _written(y: Any, x: Any) -> Any:
    np.fill_diagonal(y, x[0, 1])
    np.put(y, [1, 5], x[1, 2:] * 2)
    y.flat[7:9] = x[2, :2]
    np.putmask(y, np.arange(12).reshape(3, 4) % 5 == 0, x * x)
    y[1].sort()
    y[:, ::2] *= y[:, 1::2]
    return y, np.diagonal(y)


def leaves(result: Any) -> list[Any]:
    return [leaf for part in result for leaf in leaves(part)] if isinstance(result, tuple | list) else [result]


def values_of(function: Sample) -> Sample:
    return lambda *arrays: tuple(leaves(function(*arrays)))


@pytest.mark.parametrize("name", SAMPLES)
def test_value(name: str) -> None:
    function, *arrays = SAMPLES[name]
    with np.errstate(all="ignore"):
        expected = leaves(function(*[x.copy() for x in arrays]))
    found = bw.jit(values_of(function))(*arrays)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert (np.asarray(one).dtype, np.shape(one)) == (np.asarray(other).dtype, np.shape(other))
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", SAMPLES)
def test_first_and_second_derivative(name: str) -> None:
    function, *arrays = SAMPLES[name]
    draw = np.random.default_rng(21)
    weights = [draw.normal(size=np.shape(part)) for part in leaves(function(*[x.copy() for x in arrays]))]
    tangents = [draw.normal(size=x.shape) for x in arrays]
    wrt = tuple(range(len(arrays)))

    def loss(*args: Any) -> Any:
        terms = [np.sum(part * weight) for part, weight in zip(leaves(function(*args)), weights, strict=True)]
        return sum(terms[1:], terms[0])

    def along(*args: Any) -> Any:
        products = [np.sum(g * t) for g, t in zip(bw.grad(loss, wrt)(*args), tangents, strict=True)]
        return sum(products[1:], products[0])

    def moved(h: float) -> list[Any]:
        return [x + h * t for x, t in zip(arrays, tangents, strict=True)]

    slope, compiled = bw.grad(loss, wrt)(*arrays), bw.jit(along)
    close(sum(inner(g, t) for g, t in zip(slope, tangents, strict=True)), directional(lambda h: loss(*moved(h))))
    curvature = bw.grad(along, wrt)(*arrays)
    close(sum(inner(g, t) for g, t in zip(curvature, tangents, strict=True)), directional(lambda h: compiled(*moved(h))))


def close(found: Any, expected: Any) -> None:
    assert abs(found - expected) <= 1e-6 * max(1.0, abs(expected)), f"{found} is not {expected}"
