"""`bw.scipy.signal` against SciPy: values over shapes and modes, derivatives to second order, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.signal

import bwcompiler as bw
from bwcompiler.errors import ShapeError
from tests.support.derivatives import check_derivatives
from tests.unit.frontend.comparing import run_traced

signal = bw.scipy.signal
rng = np.random.default_rng(21)
MODES = ["full", "same", "valid"]
PAIRS = [((4,), (2,)), ((5,), (5,)), ((3,), (6,)), ((1,), (1,)), ((4, 3), (2, 2)), ((5, 4), (3, 1)), ((3, 4, 2), (2, 2, 2)), ((2, 3), (4, 5))]


def traced(fun: Any, *args: Any) -> Any:
    return run_traced(fun, *args)[0]


def close(found: Any, expected: Any) -> None:
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["convolve", "correlate", "fftconvolve", "oaconvolve"])
def test_convolutions(name: str, mode: str, rng: np.random.Generator) -> None:
    for first, second in PAIRS:
        x, y = rng.normal(size=first), rng.normal(size=second)
        close(traced(lambda x, y: getattr(signal, name)(x, y, mode), x, y), getattr(scipy.signal, name)(x, y, mode))
    check_derivatives(lambda x, y: getattr(signal, name)(x, y, mode), rng.normal(size=(4, 3)), rng.normal(size=(2, 2)))


def test_convolutions_keep_integers(rng: np.random.Generator) -> None:
    x, y = rng.integers(-9, 9, 6), rng.integers(-9, 9, 3)
    for mode in MODES:
        found = traced(lambda x, y, mode=mode: signal.convolve(x, y, mode), x, y)
        np.testing.assert_array_equal(found, scipy.signal.convolve(x, y, mode))
        assert found.dtype == np.int64
    assert traced(signal.convolve, x.astype(np.float32), y.astype(np.float32)).dtype == np.float32
    with pytest.raises(ValueError, match="acceptable mode"):
        signal.convolve(x, y, "some")
    with pytest.raises(ValueError, match="same dimensionality"):
        signal.convolve(x, y[None])
    with pytest.raises(ValueError, match="at least as large"):
        signal.convolve(np.ones((2, 3)), np.ones((3, 2)), "valid")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("axes", [0, 1, (0, 2), (-1,)])
def test_convolutions_along_some_axes(mode: str, axes: Any, rng: np.random.Generator) -> None:
    x = rng.normal(size=(4, 5, 3))
    y = rng.normal(size=tuple(2 if k in {axis % 3 for axis in np.atleast_1d(axes)} else n for k, n in enumerate((4, 1, 3))))
    close(traced(lambda x, y: signal.fftconvolve(x, y, mode, axes), x, y), scipy.signal.fftconvolve(x, y, mode, axes))
    check_derivatives(lambda x, y: signal.fftconvolve(x, y, mode, axes), x, y, order=1)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("first", "second", "axes"), [
    ((700,), (200,), None), ((150,), (301,), None), ((30, 40), (12, 11), None), ((3, 300), (1, 130), 1), ((2, 20, 4, 9), (1, 17, 4, 9), (1, 3)),
])
def test_convolutions_of_long_arrays_by_transforms(first: Any, second: Any, axes: Any, mode: str, rng: np.random.Generator) -> None:
    x, y = rng.normal(size=first), rng.normal(size=second)

    def f(x: Any, y: Any) -> Any:
        return signal.fftconvolve(x, y, mode, axes)

    close(traced(f, x, y), scipy.signal.fftconvolve(x, y, mode, axes))
    close(traced(f, x + 1j * x[::-1], y), scipy.signal.fftconvolve(x + 1j * x[::-1], y, mode, axes))
    assert "rfft" in {value.op.name for value in bw.compile(f, x, y).graph.body}
    assert traced(f, x.astype(np.float32), y.astype(np.float32)).dtype == np.float32
    check_derivatives(f, x, y, order=1)


@pytest.mark.parametrize("method", ["auto", "direct", "fft"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sizes", [(500, 130), (130, 501)])
def test_methods(sizes: Any, mode: str, method: str, rng: np.random.Generator) -> None:
    x, y = (rng.normal(size=n) + 1j * rng.normal(size=n) for n in sizes)
    for name in ("convolve", "correlate"):
        def f(x: Any, y: Any, name: str = name) -> Any:
            return getattr(signal, name)(x, y, mode, method)

        close(traced(f, x, y), getattr(scipy.signal, name)(x, y, mode, method))
        assert ("fft" in {value.op.name for value in bw.compile(f, x, y).graph.body}) == (method != "direct")
    assert traced(lambda x: signal.convolve(x, x, mode, method), np.arange(200)).dtype == np.int64


def test_lengths_that_do_not_fit_transforms() -> None:
    with pytest.raises(ValueError, match="at least as large"):
        signal.fftconvolve(np.ones((200, 3)), np.ones((150, 4)), "valid")
    with pytest.raises(ValueError, match="acceptable mode"):
        signal.fftconvolve(np.ones(200), np.ones(200), "some")
    with pytest.raises(ValueError, match="acceptable method"):
        signal.convolve(np.ones(200), np.ones(200), method="slow")


@pytest.mark.parametrize("mode", ["valid", "full"])
def test_sums_over_further_axes(mode: str, rng: np.random.Generator) -> None:
    a, b, c = rng.normal(size=(3, 5)), rng.normal(size=(3, 4)), rng.normal(size=(3, 4, 2))
    found = traced(lambda a, b: signal.convolve(a, b, mode, axes=([1], [0])), a, b)
    np.testing.assert_allclose(found[1, 2], scipy.signal.convolve(a[1], b[:, 2], mode), rtol=1e-11)
    close(traced(lambda a, b: signal.convolve(a, b, mode, axes=([], []), dot_axes=([0], [0])), a, b), np.tensordot(a, b, ([0], [0])))
    found = traced(lambda a, c: signal.convolve(a, c, mode, axes=([1], [2]), dot_axes=([0], [0])), a, c)
    np.testing.assert_allclose(found[2], sum(scipy.signal.convolve(a[i], c[i, 2], mode) for i in range(3)), rtol=1e-11)
    swapped = traced(lambda a, c: signal.convolve(c, a, mode, axes=([2], [1]), dot_axes=([0], [0])), a, c)
    np.testing.assert_allclose(swapped, found, rtol=1e-11, atol=1e-13)
    check_derivatives(lambda a, c: signal.convolve(a, c, mode, axes=([1], [2]), dot_axes=([0], [0])), a, c)
    with pytest.raises(ShapeError, match="do not fit"):
        signal.convolve(a, np.zeros((0, 2)), "full", axes=([1], [0]))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("boundary", ["fill", "wrap", "symm"])
def test_matrices_with_boundaries(mode: str, boundary: str, rng: np.random.Generator) -> None:
    x = rng.normal(size=(5, 6))
    for shape in ((3, 3), (2, 3), (1, 4)):
        y = rng.normal(size=shape)
        for name in ("convolve2d", "correlate2d"):
            for fill in (0, 1.5):
                found = traced(lambda x, y, n=name, f=fill: getattr(signal, n)(x, y, mode, boundary, f), x, y)
                close(found, getattr(scipy.signal, name)(x, y, mode, boundary, fill))


@pytest.mark.parametrize("axis", [0, -1])
def test_filters(axis: int, rng: np.random.Generator) -> None:
    x = rng.normal(size=(6, 5))
    for b, a in (([1.0, 0.5, 0.2], [1.0]), ([0.3, 0.2], [2.0, -0.5, 0.25]), ([1.0], [1.0, -0.9]), ([2.0, 1.0, 0.5], [1.0, 0.1]), ([2.0], [4.0])):
        b, a = np.array(b), np.array(a)
        close(bw.jit(lambda b, a, x: signal.lfilter(b, a, x, axis))(b, a, x), scipy.signal.lfilter(b, a, x, axis))
    zi = rng.normal(size=(2, 5) if axis == 0 else (6, 2))
    b, a = np.array([0.3, 0.2]), np.array([2.0, -0.5, 0.25])
    for found, expected in zip(signal.lfilter(b, a, x, axis, zi), scipy.signal.lfilter(b, a, x, axis, zi), strict=True):
        close(found, expected)
    check_derivatives(lambda b, a, x: signal.lfilter(b, a, x, axis), b, a, x[:4, :3], order=1)
    check_derivatives(lambda b, x: signal.lfilter(b, np.ones(1), x, axis), b, x)


@pytest.mark.parametrize("mode", ["interp", "mirror", "constant", "nearest", "wrap"])
def test_polynomial_smoothing(mode: str, rng: np.random.Generator) -> None:
    x = rng.normal(size=(3, 12))
    for length, order, deriv in ((5, 2, 0), (7, 3, 1), (4, 1, 0)):
        if length % 2 == 0 and mode == "interp":
            continue                                       # SciPy's centre of an even window is between two elements
        options = {"deriv": deriv, "delta": 0.5, "mode": mode, "cval": 0.3}
        if length % 2:
            close(traced(lambda x, n=length, k=order, o=options: signal.savgol_filter(x, n, k, **o), x),
                  scipy.signal.savgol_filter(x, length, order, **options))
    close(traced(lambda x: signal.savgol_filter(x, 5, 2, axis=0, mode=mode), x.T), scipy.signal.savgol_filter(x.T, 5, 2, axis=0, mode=mode))
    check_derivatives(lambda x: signal.savgol_filter(x, 5, 2, mode=mode), x)
    for position, use in ((None, "conv"), (1, "dot")):
        close(signal.savgol_coeffs(7, 3, 1, 0.5, position, use), scipy.signal.savgol_coeffs(7, 3, 1, 0.5, position, use))


def test_trends(rng: np.random.Generator) -> None:
    x = rng.normal(size=(4, 9)) + np.arange(9)
    for options in ({}, {"type": "constant"}, {"axis": 0}, {"bp": [3, 6]}):
        close(traced(lambda x, o=options: signal.detrend(x, **o), x), scipy.signal.detrend(x, **options))
    check_derivatives(signal.detrend, x)


LINES = np.random.default_rng(44).normal(size=(3, 7))


@pytest.mark.parametrize("keywords", [{}, {"m": 5}, {"m": 9, "w": 0.95 * np.exp(0.3j), "a": 1.1 * np.exp(0.2j)}, {"axis": 0, "m": 4}])
def test_chirp_transforms(keywords: dict[str, Any]) -> None:
    for x in (LINES, LINES + 1j):
        np.testing.assert_allclose(bw.jit(lambda x: bw.scipy.signal.czt(x, **keywords))(x), scipy.signal.czt(x, **keywords), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("band", "keywords"), [(1.0, {}), ([0.2, 0.9], {"m": 6}), ([0.2, 0.9], {"m": 6, "endpoint": True, "fs": 3.0, "axis": 0})])
def test_spectra_between_two_frequencies(band: Any, keywords: dict[str, Any]) -> None:
    found = bw.jit(lambda x: bw.scipy.signal.zoom_fft(x, band, **keywords))(LINES)
    np.testing.assert_allclose(found, scipy.signal.zoom_fft(LINES, band, **keywords), rtol=1e-9, atol=1e-11)


TIMES, ANGULAR, SHARES = np.sort(np.random.default_rng(45).random(12) * 9), np.array([0.5, 1.0, 2.0, 3.1]), np.random.default_rng(46).random(12)


@pytest.mark.parametrize("keywords", [{}, {"normalize": True}, {"normalize": "amplitude"}, {"weights": SHARES, "floating_mean": True},
                                      {"weights": SHARES, "floating_mean": True, "normalize": True}])
def test_periodograms_of_samples_at_any_times(keywords: dict[str, Any]) -> None:
    values = np.sin(2 * TIMES) + 0.3
    found = bw.jit(lambda t, y, f: bw.scipy.signal.lombscargle(t, y, f, **keywords))(TIMES, values, ANGULAR)
    np.testing.assert_allclose(found, scipy.signal.lombscargle(TIMES, values, ANGULAR, **keywords), rtol=1e-10)


def test_derivatives_of_chirp_transforms_and_periodograms() -> None:
    check_derivatives(lambda x: np.abs(bw.scipy.signal.czt(x, m=5)), LINES, order=1)
    check_derivatives(lambda r, t: np.abs(bw.scipy.signal.czt(LINES, m=5, w=r * np.exp(1j * t))), np.array(0.9), np.array(0.4), order=1)
    check_derivatives(lambda x, f: np.abs(bw.scipy.signal.zoom_fft(x, f, m=5)), LINES, np.array([0.2, 0.9]), order=1)
    check_derivatives(lambda t, y, f: bw.scipy.signal.lombscargle(t, y, f, floating_mean=True), TIMES, np.sin(2 * TIMES), ANGULAR, order=1)
    for call in (lambda: bw.scipy.signal.czt(LINES, 0), lambda: bw.scipy.signal.lombscargle(TIMES, TIMES[:3], ANGULAR),
                 lambda: bw.scipy.signal.lombscargle(TIMES, TIMES, ANGULAR, normalize="other")):
        with pytest.raises(ValueError):
            call()


@pytest.mark.parametrize("mode", ["full", "same"])
def test_kernels_that_are_not_finite_meet_no_padding(mode: str) -> None:
    x = np.array([1.0, -2.0, 0.5, 4.0, 3.0])
    for kernel in (np.array([1.0, np.nan, 2.0]), np.array([np.inf, 1.0])):
        for function in (scipy.signal.convolve, scipy.signal.correlate):
            found = bw.jit(lambda x, y, function=function: function(x, y, mode))(x, kernel)
            np.testing.assert_allclose(found, function(x, kernel, mode, method="direct"))


def test_places_of_extrema(rng: np.random.Generator) -> None:
    def function(x: Any) -> Any:
        peaks, (rows, columns) = scipy.signal.argrelmax(x[0])[0], scipy.signal.argrelmin(x, 1, 2, "wrap")
        return peaks, x[0][peaks].sum(), rows, x[rows, columns].mean(), scipy.signal.argrelextrema(x[0], np.greater_equal, order=3)[0], len(peaks)

    x = np.round(rng.normal(size=(3, 20)), 1)
    for found, expected in zip(bw.jit(function)(x), function(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert bw.scipy.signal.argrelmax(x[0])[0].tolist() == scipy.signal.argrelmax(x[0])[0].tolist()
    np.testing.assert_array_equal(bw.grad(lambda x: np.sum(x[scipy.signal.argrelmax(x)]))(x[0]), np.isin(np.arange(20), scipy.signal.argrelmax(x[0])[0]))
    with pytest.raises(ValueError, match="Order"):
        bw.jit(lambda x: scipy.signal.argrelmax(x, order=0)[0])(x[0])
