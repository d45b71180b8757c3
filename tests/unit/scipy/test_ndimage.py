"""`bw.scipy.ndimage` against SciPy over modes, sizes, origins and orders, with derivatives by arrays, weights and places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import bwcompiler as bw
from bwcompiler.errors import UnsupportedError
from tests.support.derivatives import check_derivatives
from tests.unit.frontend.comparing import run_traced

ours = bw.scipy.ndimage
rng = np.random.default_rng(16)
MODES = ["reflect", "constant", "nearest", "mirror", "wrap", "grid-constant", "grid-mirror", "grid-wrap"]
X, LINE, WHOLE = rng.normal(size=(6, 7)), rng.normal(size=40), rng.integers(0, 99, (6, 7))
CROSS = np.array([[0, 1, 0], [1, 1, 0], [0, 0, 1]], bool)


def same(function: Callable[..., Any], *args: Any, tolerance: float = 1e-9) -> None:
    """function(module, *args) of ours, traced, is that of SciPy."""
    found, expected = run_traced(lambda *args: function(ours, *args), *args)[0], function(scipy.ndimage, *args)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * max(np.abs(expected).max(initial=0), 1e-3))


FILTERS: dict[str, Callable[..., Any]] = {
    "correlate": lambda m, x, mode: m.correlate(x, np.arange(9.0).reshape(3, 3), mode=mode, cval=1.5),
    "convolve, even": lambda m, x, mode: m.convolve(x, np.arange(8.0).reshape(2, 4), mode=mode, cval=1.5),
    "large": lambda m, x, mode: m.correlate(x, np.cos(np.arange(81.0)).reshape(9, 9), mode=mode),
    "origin": lambda m, x, mode: m.convolve(x, np.arange(12.0).reshape(4, 3), mode=mode, origin=(-1, 1)),
    "one axis": lambda m, x, mode: m.convolve1d(x, np.arange(4.0), 0, mode=mode, origin=-1),
    "gaussian": lambda m, x, mode: m.gaussian_filter(x, (1.0, 0.7), order=(0, 1), mode=mode, cval=0.5),
    "gaussian, third": lambda m, x, mode: m.gaussian_filter1d(x, 1.5, 0, 3, mode=mode), "box": lambda m, x, mode: m.uniform_filter(x, (3, 4), mode=mode),
    "sobel": lambda m, x, mode: m.sobel(x, 0, mode=mode), "prewitt": lambda m, x, mode: m.prewitt(x, mode=mode),
    "laplace": lambda m, x, mode: m.laplace(x, mode=mode), "gaussian_laplace": lambda m, x, mode: m.gaussian_laplace(x, 1.0, mode=mode),
    "gradient": lambda m, x, mode: m.gaussian_gradient_magnitude(x, 1.0, mode=mode), "max": lambda m, x, mode: m.maximum_filter(x, (3, 2), mode=mode),
    "min": lambda m, x, mode: m.minimum_filter1d(x, 4, 0, mode=mode), "median": lambda m, x, mode: m.median_filter(x, (3, 2), mode=mode),
    "rank": lambda m, x, mode: m.rank_filter(x, -2, 3, mode=mode), "percentile": lambda m, x, mode: m.percentile_filter(x, 30, 3, mode=mode),
    "footprint": lambda m, x, mode: m.maximum_filter(x, footprint=CROSS, mode=mode, origin=(1, 0)),
    "dilation": lambda m, x, mode: m.grey_dilation(x, footprint=CROSS, mode=mode), "erosion": lambda m, x, mode: m.grey_erosion(x, (2, 3), mode=mode),
    "opening": lambda m, x, mode: m.grey_opening(x, 3, mode=mode), "closing": lambda m, x, mode: m.grey_closing(x, footprint=CROSS, mode=mode),
    "edges": lambda m, x, mode: m.morphological_gradient(x, (3, 2), mode=mode), "bends": lambda m, x, mode: m.morphological_laplace(x, 3, mode=mode),
    "peaks": lambda m, x, mode: m.white_tophat(x, footprint=CROSS, mode=mode), "gaps": lambda m, x, mode: m.black_tophat(x, (2, 3), mode=mode)}


@pytest.mark.parametrize("name", FILTERS)
def test_filters(name: str) -> None:
    for mode in MODES:
        same(lambda m, x, mode=mode: FILTERS[name](m, x, mode), X)
    check_derivatives(lambda x: FILTERS[name](ours, x, "mirror"), X, order=1, tolerance=1e-5)


@pytest.mark.parametrize("modes", [("reflect", "wrap"), ("constant", "nearest")])
def test_edges_of_each_axis(modes: tuple[str, str]) -> None:
    same(lambda m, x: m.gaussian_filter(x, 1.0, mode=modes), X)
    same(lambda m, x: m.laplace(x, mode=modes), X)
    same(lambda m, x: m.gaussian_laplace(x, 1.0, mode=modes), X)
    same(lambda m, x: m.gaussian_gradient_magnitude(x, (1.0, 0.6), mode=modes), X)


def test_gradients_of_nothing_have_the_derivative_0() -> None:
    for x in (np.zeros((5, 6)), np.outer([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], np.ones(9))):
        assert np.isfinite(bw.grad(lambda x: ours.gaussian_gradient_magnitude(x, 0.3).sum())(x)).all()


def test_centre_of_mass() -> None:
    for x in (X, np.abs(LINE), WHOLE):
        np.testing.assert_allclose(bw.jit(lambda x: scipy.ndimage.center_of_mass(x))(x), scipy.ndimage.center_of_mass(x), rtol=1e-12)
    check_derivatives(ours.center_of_mass, np.abs(X))
    labels = np.arange(X.size).reshape(X.shape) % 4
    for index in (None, 2, [3, 1]):
        found = bw.jit(lambda x, index=index: scipy.ndimage.center_of_mass(x, labels, index))(X)
        np.testing.assert_allclose(found, scipy.ndimage.center_of_mass(X, labels, index), rtol=1e-12)
    with pytest.raises(UnsupportedError, match="output="):
        ours.white_tophat(X, 3, output=np.zeros_like(X))


def test_sums_along_a_line_are_rounded_as_scipys() -> None:
    for x in (np.arange(0, 50, 2).reshape(5, 5), np.full((4, 9), 100), WHOLE):                 # integers are cut off afterwards
        for sigma in (0.5, 1.0, 2.0):
            same(lambda m, x, sigma=sigma: m.gaussian_filter(x, sigma), x, tolerance=0.0)
            same(lambda m, x, sigma=sigma: m.gaussian_filter1d(x, sigma, order=1), x, tolerance=0.0)
        for weights in ([0.1, 0.3, 0.1], [0.1, 0.3, 0.2], [0.1, 0.3], [0.7, 0.0, -0.7]):
            same(lambda m, x, weights=weights: m.convolve1d(x, weights), x, tolerance=0.0)


def test_a_width_that_is_an_argument_says_how_many_weights_there_are() -> None:
    """As a float that decides a size: its number is compiled in, and it has a derivative at that size."""
    def both(module, x, s):
        return module.gaussian_filter(x, [s, 2 * s], order=[0, 1]) + module.gaussian_laplace(x, np.exp(s))

    compiled = bw.jit(lambda x, s: both(scipy.ndimage, x, s))
    for s in (0.5, 1.2, 0.5):
        np.testing.assert_allclose(compiled(X, s), both(scipy.ndimage, X, s), rtol=1e-12)
    found = bw.grad(lambda s, x: np.sum(both(scipy.ndimage, x, s) ** 2))(1.2, X)
    loss = [np.sum(both(scipy.ndimage, X, 1.2 + h) ** 2) for h in (1e-6, -1e-6)]
    np.testing.assert_allclose(found, (loss[0] - loss[1]) / 2e-6, rtol=1e-7)
    narrow = bw.jit(lambda x, s: scipy.ndimage.gaussian_filter(x, s))
    for s in (0.0, 0.1):
        np.testing.assert_array_equal(narrow(X, s), scipy.ndimage.gaussian_filter(X, s))


def test_dtypes_of_filters() -> None:
    for x in (WHOLE, X.astype(np.float32), X + 1j * X[::-1], WHOLE.astype(np.uint8)):
        same(lambda m, x: m.correlate1d(x, np.array([0.3, 0.3, 0.4])), x, tolerance=1e-6)
    same(lambda m, x: m.gaussian_filter(x, 1.0, output=np.float64), WHOLE)
    same(lambda m, x: m.median_filter(x, 3), WHOLE)
    same(lambda m, x: m.gaussian_filter(x, 0.0), X)


def test_weights_and_widths_may_be_traced(rng: np.random.Generator) -> None:
    weights = rng.normal(size=(3, 2))
    same(lambda m, x, w: m.convolve(x, w, mode="nearest"), X, weights)
    check_derivatives(lambda x, w: ours.convolve(x, w, mode="nearest"), X, weights)
    check_derivatives(lambda s: ours.gaussian_filter1d(LINE, s, radius=4, order=1), np.array(1.3))
    with pytest.raises(UnsupportedError, match="radius="):
        bw.jit(lambda s: ours.gaussian_filter(X, s[0]))(np.ones(1))
    with pytest.raises(RuntimeError, match="mode"):
        ours.correlate1d(X, np.ones(3), mode="odd")
    with pytest.raises(ValueError, match="invalid origin"):
        ours.correlate1d(X, np.ones(3), origin=2)


PLACES: dict[str, Callable[..., Any]] = {
    "line": lambda m, x, order, mode: m.map_coordinates(x[0], AT, order=order, mode=mode, cval=2.0),
    "plane": lambda m, x, order, mode: m.map_coordinates(x, GRID, order=order, mode=mode),
    "shift": lambda m, x, order, mode: m.shift(x, (0.7, -1.3), order=order, mode=mode),
    "zoom": lambda m, x, order, mode: m.zoom(x, (1.7, 0.6), order=order, mode=mode),
    "affine": lambda m, x, order, mode: m.affine_transform(x, np.array([[0.9, 0.2], [-0.1, 1.1]]), np.array([0.3, 0.1]), order=order, mode=mode),
    "diagonal": lambda m, x, order, mode: m.affine_transform(x, np.array([0.9, 1.2]), 0.5, (3, 4), order=order, mode=mode)}
AT = np.concatenate([rng.uniform(-9, 16, 20), [0, 6, 3, -0.5, 6.5, 2.5, -1, 7]])[None]
GRID = rng.uniform(-2, 8, size=(2, 5, 3))


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("order", [0, 1, 2, 3, 5])
def test_places(name: str, order: int) -> None:
    modes = [mode for mode in MODES if order < 4 or mode not in ("reflect", "grid-mirror")]       # SciPy's coefficients of few elements are not exact
    for mode in modes:
        same(lambda m, x, mode=mode: PLACES[name](m, x, order, mode), X, tolerance=1e-7)


@pytest.mark.parametrize("order", [2, 3, 4, 5])
def test_coefficients(order: int) -> None:
    for mode in ("mirror", "reflect", "grid-wrap"):
        same(lambda m, x, mode=mode: m.spline_filter1d(x, order, mode=mode), LINE, tolerance=1e-6)
    same(lambda m, x: m.spline_filter(x, order), X, tolerance=1e-6)
    same(lambda m, x: m.map_coordinates(x, AT, order=order, prefilter=False, mode="mirror"), LINE)


@pytest.mark.parametrize("mode", ["nearest", "mirror", "constant"])
def test_derivatives_by_values_and_places(mode: str, rng: np.random.Generator) -> None:
    inside = rng.uniform(0.6, 4.4, size=(2, 4))
    for order in (1, 3):
        check_derivatives(lambda x, at, order=order: ours.map_coordinates(x, at, order=order, mode=mode), X, inside, order=order if order == 1 else 2,
                          tolerance=1e-5)
    check_derivatives(lambda by: ours.shift(X, by, mode=mode), np.array([0.3, -0.6]), order=1, tolerance=1e-5)
    check_derivatives(lambda m, o: ours.affine_transform(X, m, o, order=3, mode=mode), np.array([[0.91, 0.23], [-0.13, 1.17]]), np.array([0.31, 0.17]), order=1,
                      tolerance=1e-4)


def test_what_is_refused() -> None:
    assert np.isnan(bw.jit(lambda at: ours.map_coordinates(LINE, at))(np.array([[np.nan]])))
    with pytest.raises(UnsupportedError, match="shape"):
        bw.jit(lambda by: ours.zoom(X, by))(2.0)
    with pytest.raises(RuntimeError, match="order"):
        ours.shift(X, 1.0, order=6)
    with pytest.raises(RuntimeError, match="coordinate"):
        ours.map_coordinates(X, np.ones((3, 2)))


def test_captured(rng: np.random.Generator) -> None:
    def loss(x, at):
        smooth = scipy.ndimage.gaussian_filter(x, 1.0)
        return (scipy.ndimage.map_coordinates(smooth, at, order=1, mode="nearest") ** 2).sum() + scipy.ndimage.sobel(x)[2, 3]

    at = rng.uniform(0.2, 4.8, size=(2, 5))
    np.testing.assert_allclose(bw.jit(loss)(X, at), loss(X, at), rtol=1e-10)
    check_derivatives(loss, X, at, order=1)


def test_coordinates_in_a_list(rng: np.random.Generator) -> None:
    """One array per axis, some of them not traced, which broadcast to one shape."""
    def loss(x, row, column):
        at = scipy.ndimage.map_coordinates(x, [row, 2.0 * column], order=1)
        return at.sum() + (scipy.ndimage.map_coordinates(x, (row, np.array([[1.2], [3.1]]) + row), order=2, mode="nearest") ** 2).sum()

    row, column = rng.uniform(0.2, 3.8, size=(2, 5)), rng.uniform(0.2, 1.8, size=(2, 5))
    np.testing.assert_allclose(bw.jit(loss)(X, row, column), loss(X, row, column), rtol=1e-10)
    check_derivatives(loss, X, row, column, order=1)


@pytest.mark.parametrize("keywords", [{}, {"reshape": False}, {"order": 1, "mode": "nearest"}, {"order": 0}, {"axes": (0, 1), "cval": 2.0}])
def test_rotate(keywords: dict[str, Any], rng: np.random.Generator) -> None:
    image = rng.normal(size=(6, 7))
    for angle in (30.0, 90, -47.3):
        found = bw.jit(lambda x, angle=angle: bw.scipy.ndimage.rotate(x, angle, **keywords))(image)
        np.testing.assert_allclose(found, scipy.ndimage.rotate(image, angle, **keywords), atol=1e-12)


def test_rotations_of_planes_and_by_traced_angles(rng: np.random.Generator) -> None:
    stack, image = rng.normal(size=(3, 5, 6)), rng.normal(size=(6, 7))
    for keywords in ({"axes": (1, 2)}, {"axes": (0, 2)}, {"axes": (-1, 0), "reshape": False}):
        np.testing.assert_allclose(bw.jit(lambda x, k=keywords: scipy.ndimage.rotate(x, 20.0, **k))(stack), scipy.ndimage.rotate(stack, 20.0, **keywords),
                                   atol=1e-12)
    bw.check_grads(lambda x, a: bw.scipy.ndimage.rotate(x, a, reshape=False), (image, 17.0), order=1)
    with pytest.raises(UnsupportedError, match="reshape=False"):
        bw.jit(lambda a: bw.scipy.ndimage.rotate(image, a))(3.0)
    for axes in ((0, 0), (0, 2), (0,)):
        with pytest.raises(ValueError):
            bw.scipy.ndimage.rotate(image, 3.0, axes)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint16, np.int64, np.bool_])
def test_integers_between_elements_are_rounded(dtype: Any, rng: np.random.Generator) -> None:
    """As SciPy rounds them, half away from zero, and to the nearest that there is; truth values lose the fraction."""
    image = (rng.normal(size=(6, 7)) * 40).astype(dtype) if dtype is not np.bool_ else rng.random((6, 7)) > 0.4
    functions = [lambda m, x: m.shift(np.cos(np.arange(42.0)).reshape(6, 7) * 300, 0.3, output=dtype)]
    if dtype is not np.bool_:                                             # of ones and zeros there are values next to 1, on either side
        functions += [lambda m, x: m.shift(x, 0.37, order=1), lambda m, x: m.rotate(x, 30.0, order=1), lambda m, x: m.zoom(x, 1.6, order=1)]
    for fun in functions:
        found, expected = bw.jit(lambda x, fun=fun: fun(bw.scipy.ndimage, x))(image), fun(scipy.ndimage, image)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype


@pytest.mark.parametrize("name", ["correlate", "convolve", "correlate1d", "convolve1d"])
@pytest.mark.parametrize("weights", [[1.0, np.nan, 2.0], [np.nan, np.nan, np.nan], [1e-16, 1.0, 0.5], [0.0, 1.0, np.inf], [1.0, 0.0, 2.0]], ids=str)
def test_weights_that_are_left_out(name: str, weights: list[float]) -> None:
    """nan and what is next to 0, but along one axis nothing; infinite elements show which."""
    for x in (np.arange(6.0), np.array([1.0, np.inf, 3.0, 4.0, 5.0, 6.0])):
        expected = getattr(scipy.ndimage, name)(x, np.array(weights))
        found = bw.jit(lambda x: getattr(scipy.ndimage, name)(x, np.array(weights)))(x)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


HOLES = np.array([[0, 0, 0, 0, 0, 0, 0, 0], [0, 1, 1, 1, 1, 0, 1, 0], [0, 1, 0, 0, 1, 0, 0, 0], [0, 1, 0, 1, 1, 0, 1, 1], [0, 1, 1, 1, 0, 0, 1, 0]])
MASKS: dict[str, Callable[..., Any]] = {
    "dilation": lambda m, x: m.binary_dilation(x), "erosion": lambda m, x: m.binary_erosion(x, border_value=1),
    "dilation by a structure": lambda m, x: m.binary_dilation(x, CROSS, 2), "erosion with origin": lambda m, x: m.binary_erosion(x, CROSS, origin=(1, -1)),
    "even structure": lambda m, x: m.binary_dilation(x, np.ones((2, 4))), "in a mask": lambda m, x: m.binary_dilation(x, mask=HOLES[::-1] > 0),
    "until nothing changes": lambda m, x: m.binary_dilation(x, iterations=-1, mask=HOLES[:, ::-1] == 0),
    "erosions": lambda m, x: m.binary_erosion(x, iterations=0), "opening": lambda m, x: m.binary_opening(x, np.ones((2, 2))),
    "closing": lambda m, x: m.binary_closing(x, iterations=2), "propagation": lambda m, x: m.binary_propagation(x, mask=HOLES[::-1] > 0),
    "holes": lambda m, x: m.binary_fill_holes(x), "labels": lambda m, x: m.label(x)[0], "labels by corners": lambda m, x: m.label(x, np.ones((3, 3)))[0]}


@pytest.mark.parametrize("name", MASKS)
def test_masks(name: str) -> None:
    for mask in (HOLES, HOLES > 0, HOLES[::-1] * 0.5, HOLES[1:4] * 0):
        if mask.shape == HOLES.shape or ("mask" not in name and name not in ("until nothing changes", "propagation")):
            same(lambda m, x: MASKS[name](m, x), mask)


def test_masks_of_what_is_computed() -> None:
    def parts(x):
        bright = scipy.ndimage.binary_opening(x > 0.1)
        labels, count = scipy.ndimage.label(scipy.ndimage.binary_fill_holes(bright))
        return np.sum(np.where(labels == 1, x, 0.0) ** 2) + count

    for x in (X, -X):
        assert bw.jit(parts)(x) == pytest.approx(parts(x), rel=1e-12)
    check_derivatives(parts, X, order=1)


def test_masks_that_are_refused() -> None:
    with pytest.raises(RuntimeError, match="structure must not be empty"):
        ours.binary_dilation(HOLES, np.zeros((3, 3)))
    with pytest.raises(UnsupportedError, match="output="):
        ours.label(HOLES, output=np.int64)


def spread_of(window, low=0.1, power=2):
    total = 0.0
    for one in window:
        if one > low:
            total += one**power
    return total - np.median(window) * window[-1]


def second_difference(x, axis, output, mode, cval, scale=1.0):
    return scipy.ndimage.correlate1d(x, [scale, -2.0, scale], axis, output, mode, cval)


GENERIC: dict[str, Callable[..., Any]] = {
    "windows": lambda x, mode: scipy.ndimage.generic_filter(x, spread_of, (3, 2), mode=mode, cval=0.7),
    "footprint": lambda x, mode: scipy.ndimage.generic_filter(x, spread_of, footprint=CROSS, mode=mode, origin=(1, 0), extra_arguments=(0.3,),
                                                              extra_keywords={"power": 3}),
    "laplace": lambda x, mode: scipy.ndimage.generic_laplace(x, second_difference, mode=mode, cval=0.5, extra_keywords={"scale": 0.9}),
    "gradient": lambda x, mode: scipy.ndimage.generic_gradient_magnitude(x, second_difference, mode=mode)}


@pytest.mark.parametrize("mode", ["reflect", "constant", "mirror"])
@pytest.mark.parametrize("name", GENERIC)
def test_functions_of_the_users_are_called(name: str, mode: str) -> None:
    def program(x: Any) -> Any:
        return np.sum(GENERIC[name](x, mode) * np.cos(np.arange(42.0)).reshape(6, 7))
    compiled = bw.value_and_grad(program)
    for x in (X, X[::-1].copy(), -X):
        value, gradient = compiled(x)
        np.testing.assert_allclose(value, program(x), rtol=1e-12)
        direction = np.sin(np.arange(42.0)).reshape(6, 7)
        difference = (program(x + 1e-6 * direction) - program(x - 1e-6 * direction)) / 2e-6
        assert np.sum(gradient * direction) == pytest.approx(difference, rel=1e-5)


def test_a_function_that_writes_its_result_is_told_so() -> None:
    def written(x, axis, output, mode, cval):
        output[...] = 2 * x
    with pytest.raises((UnsupportedError, TypeError), match="return it|item assignment|dtype"):
        bw.jit(lambda x: scipy.ndimage.generic_laplace(x, written))(X)
    assert ours.generic_filter(WHOLE, lambda window: window.max(), 3).dtype == WHOLE.dtype
