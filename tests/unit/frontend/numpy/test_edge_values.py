"""Arguments at the edge of what NumPy's functions take: extreme exponents, masks as numbers, slices of nothing, what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from tests.support.derivatives import check_derivatives
from tests.unit.frontend.comparing import compare

X = np.arange(12.0).reshape(3, 4) / 3 - 1.2
BYTES = np.array([200, 1, 0, 128], np.uint8)
EXPONENTS = np.array([2**31 - 1, -(2**31), 2000, -2000, 1074, 130, -3, 2097, 0], np.int32)


def native(function: Callable[..., Any], *args: Any) -> None:
    """NumPy's results from the graph, and from machine code."""
    compare(function, *args)
    with np.errstate(all="ignore"):
        expected = function(*args)
    for one, other in zip(bw.jit(function)(*args), expected, strict=True):
        np.testing.assert_array_equal(one, other)
        assert (np.asarray(one).dtype, np.shape(one)) == (np.asarray(other).dtype, np.shape(other))


def test_unsigned_exponents_are_never_negative() -> None:
    native(lambda u: (u**u, 2**u, np.power(np.uint64(3), u.astype(np.uint64) + np.uint64(2**63)), np.power.accumulate(u)), BYTES)
    with pytest.raises(ValueError, match="negative integer powers"):
        bw.jit(lambda i: i**i)(BYTES.astype(np.int8))


@pytest.mark.parametrize("x", [0.0, -0.0, 1.5, 1e-45, 3e38, np.inf, np.nan])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_ldexp_far_out(x: float, dtype: type) -> None:
    native(lambda i: (np.ldexp(dtype(x), i), np.ldexp(dtype(x), -i)), EXPONENTS)


def test_masks_are_numbers_where_positions_are_asked_for() -> None:
    native(lambda x: (np.take(x, [True, False, True], 0), np.take(x, np.array([False, True, False]), 0), np.take(x, x[:, 0] > 0, 0),
                      np.take(x, np.array([True, False]), 1, mode="clip")), X)


def test_reductions_compute_in_the_dtype_of_out() -> None:
    def reduced(x: Any, i: Any) -> Any:
        out = [np.zeros(4), np.zeros(4), np.zeros(4, np.int64), np.zeros(4, np.int8), np.zeros(4, np.float32), np.zeros(4)]
        np.sum(x, 0, out=out[0])
        np.mean(x, 0, out=out[1])
        np.ptp(i, 0, out=out[2])
        np.sum(i, 0, out=out[3])
        np.sum(x.astype(np.float64), 0, out=out[4])
        np.prod(i, 0, out=out[5])
        return tuple(out)
    compare(reduced, X.astype(np.float32), (X * 90).astype(np.int8))


def test_moments_without_freedom() -> None:
    with_nan = np.where(X > 2, np.nan, X)
    with np.errstate(all="ignore"), pytest.warns(RuntimeWarning, match="Degrees of freedom"):
        compare(lambda x: (np.nanvar(x, 0, ddof=3), np.nanstd(x, 0, ddof=2), np.nanvar(x, ddof=1), np.var(x, 0, ddof=3)), with_nan)


def test_positions_in_slices_of_nan() -> None:
    compare(lambda x: (np.nanargmax(x, 0), np.nanargmin(x), np.nanargmax(x[:0], 1)), np.where(X > 2, np.nan, X))
    for wrong in (lambda x: np.nanargmax(x, 1), lambda x: np.nanargmin(x * np.nan)):
        with pytest.raises(ValueError, match="All-NaN slice"):
            bw.jit(wrong)(np.where(X > 0, np.nan, X))


def test_blocks_of_arrays_with_more_axes_than_lists() -> None:
    compare(lambda x: (np.block([x[:1, :1], 1]), np.block([x, x]), np.block([[x], [x]])), X)


def test_sequences_for_putmask_are_taken_as_they_are() -> None:
    def put(x: Any) -> Any:
        x = x.copy()
        np.putmask(x, x > 0, [1.5, 2, 3])
        return x
    compare(put, X.astype(np.float32))
    compare(put, (X * 9).astype(np.uint8))


def test_traced_bins() -> None:
    edges = np.array([-1.0, 0.0, 0.0, 1.5])
    for bins in (edges, edges[::-1], edges[:1], edges[:0], edges[1:3]):
        compare(lambda x, bins: (np.digitize(x, bins), np.digitize(x[0], bins, right=True)), X, bins)
    with pytest.raises(ValueError, match="monotonically"):
        bw.jit(np.digitize)(X, np.array([0.0, 1.0, 0.5]))


def test_angles_of_small_integers() -> None:
    compare(lambda u, b: (np.deg2rad(u), np.degrees(u), np.radians(b)), BYTES, BYTES > 1)


def test_angles_of_zeros() -> None:
    """They have the sign of the parts, as in NumPy, and derivative 0."""
    zeros = np.array([complex(x, y) for x in (0.0, -0.0) for y in (0.0, -0.0)] + [1 - 1j, complex(np.nan, 0.0), complex(-1.0, -0.0)])
    for degrees in (False, True):
        found = bw.jit(lambda z, degrees=degrees: np.angle(z, deg=degrees))(zeros)
        np.testing.assert_array_equal(found, np.angle(zeros, deg=degrees))
        np.testing.assert_array_equal(np.signbit(found), np.signbit(np.angle(zeros, deg=degrees)))
    gradient = bw.grad(lambda x: np.sum(np.cos(np.angle(x[0] + 1j * x[1])) + np.angle(x[0] + 1j * x[1])))(np.array([[0.0, 3.0], [0.0, 4.0]]))
    np.testing.assert_allclose(gradient, [[0.0, -0.16 + 0.8 * 0.16], [0.0, 0.12 - 0.8 * 0.12]], rtol=1e-12)


def test_additions_of_complex_numbers_to_traced_places() -> None:
    def added(z: Any, i: Any) -> Any:
        np.add.at(y := z * 1, i, z[:2])
        np.subtract.at(y, (i, 1), 0.5)
        return y
    compare(added, X + 1j * X[::-1], np.array([2, 2]))


WRONG: dict[str, tuple[Callable[[Any], Any], type[Exception]]] = {
    "widths of floats": (lambda x: np.pad(x, 1.0), TypeError),
    "negative repeats": (lambda x: np.repeat(x, -1), ValueError),
    "one negative repeat": (lambda x: np.repeat(x, [1, -1, 2], 0), ValueError),
    "an axis twice": (lambda x: np.gradient(x, axis=(1, 1)), ValueError),
    "an unknown kind of sort": (lambda x: np.sort(x, kind="bogus"), ValueError),
    "an unknown kind of quantile": (lambda x: np.nanquantile(x, 0.5, method="bogus"), ValueError),
    "many least squares": (lambda x: np.linalg.lstsq(x[None], x[None])[0], np.linalg.LinAlgError),
    "a line of coordinates for two axes": (lambda x: np.gradient(np.sin(x), x[0]), TypeError),
    "ddof and correction": (lambda x: np.var(x, ddof=1, correction=0), ValueError),
    "an unknown mode": (lambda x: np.convolve(x[0], x[0], "f"), ValueError),
    "no mode": (lambda x: np.correlate(x[0], x[0], None), TypeError),
    "a choice out of range": (lambda x: np.choose([2, 0, -1, 0], x[:2]), ValueError),
    "less than no bins": (lambda x: np.bincount(x[0].astype(int), minlength=-1), ValueError),
    "half a bin": (lambda x: np.bincount(x[0].astype(int), minlength=1.5), TypeError),
    "bins of rows": (lambda x: np.bincount(x.astype(int), minlength=3), ValueError),
    "a fraction of bins": (lambda x: np.histogram(x, 2.4), TypeError),
    "more bins than numbers": (lambda x: np.histogram(1 + 1e-16 * np.arange(9) + 0 * x[0, 0], 10, (1.0, 1.0 + 1e-15)), ValueError),
    "edges that go back and forth": (lambda x: np.histogram(x, x[0, [0, 2, 1]]), ValueError),
    "an array to write to and a dtype": (lambda x: np.concatenate([x, x], out=np.zeros((6, 4)), dtype=float), TypeError),
    "less than no rows": (lambda x: np.broadcast_to(x, (-1, 3, 4)), ValueError),
    "no bins": (lambda x: np.histogram(x, 0), ValueError),
    "edges of no bins": (lambda x: np.histogram_bin_edges(x, -1, (0, 1)), ValueError),
    "a matrix norm of a vector": (lambda x: np.linalg.norm(x[0], "fro"), ValueError),
}


REFUSED_SINCE = {"an unknown mode": (2, 3), "more bins than numbers": (2, 2)}       # by NumPy; by us with older ones, too


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments(case: str) -> None:
    function, kind = WRONG[case]
    with pytest.raises(kind):
        bw.jit(function)(X)
    if tuple(map(int, np.__version__.split(".")[:2])) >= REFUSED_SINCE.get(case, (2, 0)):
        with pytest.raises(kind):
            function(X)


# ----- infinite and missing elements
INFINITE = [np.array([1.0, np.inf, 2.0]), np.array([1.0, 2.0, np.inf, np.inf]), -np.array([1.0, 2.0, np.inf, np.inf, 5.0]),
            np.array([np.nan, 1.0, np.inf, 2.0]), np.array([np.inf]), np.array([1.0, np.inf]), np.array([2.0, np.nan, np.inf])]


@pytest.mark.parametrize("method", ["linear", "lower", "midpoint", "hazen", "weibull"])
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_quantiles_beside_infinity(name: str, method: str) -> None:
    quantile = getattr(np, name)
    levels = np.array([0.0, 0.25, 0.5, 0.9, 1.0])
    one = 1 if np.lib.NumpyVersion(np.__version__) >= "2.4.0" else np.array(1)[None]        # for which NumPy gave nan until then
    known = bw.jit(lambda x: (quantile(x, levels, method=method), quantile(x, one, method=method), quantile(x, np.array([0, 1]), method=method)))
    traced = bw.jit(lambda x, q: quantile(x, q, method=method))
    for x in INFINITE:
        with np.errstate(all="ignore"):
            expected = [quantile(x, levels, method=method), quantile(x, one, method=method), quantile(x, np.array([0, 1]), method=method)]
        for mine, other in zip((*known(x), traced(x, levels), traced(x, np.array([0, 1]))), (*expected, expected[0], expected[2]), strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-14)


@pytest.mark.filterwarnings("ignore:Mean of empty slice")
def test_quantiles_of_nothing() -> None:
    native(lambda x: (np.nanquantile(x, [0.2, 0.5]), np.nanquantile(x, [0.2, 0.5], axis=0), np.nanpercentile(x, 5, axis=0, keepdims=True),
                      np.nanquantile(x, [0.2, 0.5], axis=1), np.nanquantile(x.astype(int), 0.5),
                      np.nanquantile(x, 0.4, axis=0, weights=np.ones(0), method="inverted_cdf")), np.zeros((0, 3)))
    with pytest.raises(IndexError):
        bw.jit(lambda x: np.quantile(x, 0.4, axis=0, weights=np.ones(0), method="inverted_cdf"))(np.zeros((0, 3)))
    with pytest.raises(ValueError, match="must be in the range"):
        bw.jit(lambda x: np.nanquantile(x, 1.5))(np.zeros((0, 3)))
    for quantile in (np.quantile, np.nanquantile):
        with pytest.raises(TypeError, match="boolean|bool"):
            bw.jit(lambda x, quantile=quantile: quantile(x, [0.0, 1.0]))(np.array([True, False]))
        with pytest.raises(TypeError, match="real numbers"):
            bw.jit(lambda x, quantile=quantile: quantile(x, 0.4, weights=np.ones(2), method="inverted_cdf"))(np.ones(2, complex))


@pytest.mark.parametrize("x", [[1.0, np.nan], [1.0, np.inf]])
def test_bins_of_what_is_not_finite(x: list[float]) -> None:
    for made in (lambda x: np.histogram(x, 3), lambda x: np.histogram_bin_edges(x, 3), lambda x: np.histogram2d(x, x, 3),
                 lambda x: np.histogram([1.0, 2.0] + 0 * x, 3, (0.0, x[1]))):
        with pytest.raises(ValueError, match="is not finite"):
            bw.jit(made)(np.array(x))
    native(lambda x: (*np.histogram(x, 3, (0, 2)), *np.histogram(x, 2, (1, 1)), *np.histogram([3, 4] + x.astype(int) * 0, 2)), np.array([1.0, 2]))


def test_geometric_sequences() -> None:
    for start in (np.array([1.0, 2.0, np.nan]), np.array(2.0)):
        for num, endpoint in ((3, True), (3, False), (1, True), (0, True)):
            found = bw.jit(lambda x, num=num, endpoint=endpoint: np.geomspace(x, 5.0, num, endpoint))(start)
            np.testing.assert_allclose(found, np.geomspace(start, 5.0, num, endpoint), rtol=1e-14)
    with pytest.raises(ValueError, match="cannot include zero"):
        bw.jit(lambda x: np.geomspace(x, 5.0, 3))(np.array([1.0, 0.0]))


# ----- places that data select
@pytest.mark.parametrize("values", [[1.0, 2.0], 7.0, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]])
def test_place_by_data(values: Any) -> None:
    def placed(x: Any) -> Any:
        y = x.copy()
        np.place(y, x > 0.3, values)
        z = x.T.copy()
        np.place(z, x.T < 0.0, x * 2)
        return y, z
    native(placed, X)
    check_derivatives(lambda x: np.sum(placed(x)[1] ** 2) + np.sum(placed(x)[0] ** 2), X)


def test_place_of_nothing() -> None:
    def placed(x: Any) -> Any:
        y = x.copy()
        np.place(y, x > 0, [])
        return (y,)
    native(placed, -np.ones(3))
    with pytest.raises(ValueError, match="empty array"):
        bw.jit(placed)(X)


# ----- axes are no lists where NumPy takes none
LISTS: dict[str, Callable[[Any], Any]] = {
    **{name: lambda x, name=name: getattr(np, name)(x, axis=[0]) for name in (
        "sum", "prod", "mean", "std", "var", "max", "min", "ptp", "any", "all", "nansum", "nanmax", "nanstd", "count_nonzero", "squeeze")},
    "norm": lambda x: np.linalg.norm(x, axis=[0, 1]), "add.reduce": lambda x: np.add.reduce(x, axis=[0])}


@pytest.mark.parametrize("name", LISTS)
def test_lists_of_axes(name: str) -> None:
    with pytest.raises(TypeError, match="hint: axis="):
        bw.jit(LISTS[name])(X)


def test_lists_of_axes_that_are_taken() -> None:
    native(lambda x: (np.median(x, axis=[0]), np.average(x, axis=[0]), np.flip(x, axis=[0]), np.quantile(x, 0.5, axis=[0, 1]),
                      np.expand_dims(x, [0])), X)


def test_interpolation_between_one_knot() -> None:
    native(lambda x: (np.interp(x, [0.5], [3.0]), np.interp(x, [0.5], [3.0], left=1.0, right=2.0), np.interp(x, [0.5, 1.0], [3.0, 4.0])),
           np.array([np.nan, 0.0, 0.5, np.inf, -np.inf]))


@pytest.mark.parametrize("heights", [[0.0, 1.0, np.inf, 3.0], [np.inf, np.inf, 1.0, 2.0], [-np.inf, 0.0, np.inf, np.nan], [1.0, np.nan, 2.0, 3.0]])
@pytest.mark.parametrize("period", [None, 3.5])
def test_interpolation_beside_infinite_heights(heights: list[float], period: float | None) -> None:
    points = np.array([-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.4, 4.0, np.nan, np.inf])
    native(lambda x, y: (np.interp(x, [0.0, 1.0, 2.0, 3.0], y, period=period),), points, np.array(heights))
    assert bw.grad(lambda x: np.interp(x, [0.0, 1.0, 2.0, 3.0], np.array(heights)))(2.5) == pytest.approx(heights[3] - heights[2], nan_ok=True)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("kernel", [[1.0, np.nan, 3.0], [np.inf, 2.0], [np.nan], [-np.inf, 1.0, 2.0, np.nan, 0.5, 1.0]])
def test_kernels_that_are_not_finite_meet_no_padding(mode: Any, kernel: list[float]) -> None:
    x, y = np.array([1.0, -2.0, 0.5, 4.0]), np.array(kernel)
    native(lambda x, y: (np.convolve(x, y, mode), np.correlate(x, y, mode), np.correlate(y, x, mode)), x, y)


@pytest.mark.parametrize("mode", ["full", "same"])
@pytest.mark.parametrize("beside", [1.0, np.nan, np.inf])
@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
def test_wide_kernels_that_are_not_finite(mode: Any, beside: float, dtype: Any, rng: np.random.Generator) -> None:
    x, y = rng.integers(-9, 9, 50).astype(dtype), rng.integers(-9, 9, 40).astype(dtype)
    y[[3, 38]] = beside
    native(lambda x, y: (np.convolve(x, y, mode), np.correlate(x, y, mode), np.correlate(y, x, mode)), x, y)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("width", [1, 2, 3, 5, 40])
def test_derivatives_of_convolutions_up_to_their_ends(mode: Any, width: int, rng: np.random.Generator) -> None:
    x, kernel = rng.normal(size=max(width, 5)), rng.normal(size=width)
    check_derivatives(lambda x, y: (np.convolve(x, y, mode), np.correlate(x, y, mode)), x, kernel)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolve_with_one_number_has_numpys_zeros(mode: str) -> None:
    for dtype in (np.float32, np.float64, np.complex128, np.int64, np.bool_):
        x = np.array([-0.0, 1.0, -1.0]).astype(dtype)
        for factor in (0.0, -0.0, 2.0):
            y = np.array([factor]).astype(dtype)
            for fun in (np.convolve, np.correlate):
                expected, found = fun(x, y, mode), bw.jit(lambda x, y, fun=fun: fun(x, y, mode))(x, y)  # type: ignore[misc]
                assert found.dtype == expected.dtype and found.tobytes() == expected.tobytes(), (dtype, factor, fun)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
def test_running_sums_are_computed_in_the_dtype_of_their_output(dtype: type) -> None:
    def summed(x: Any) -> Any:
        sums, products = np.empty(6), np.empty(6)
        return np.cumsum(x, out=sums), np.add.accumulate(x, out=products), products

    native(summed, (np.arange(6) * 25.37).astype(dtype))


def test_methods_write_into_arrays_that_the_function_makes() -> None:
    def written(x: Any) -> Any:
        highest, sums, cut, places = np.empty(4), np.zeros((2, 3)), np.empty((3, 4)), np.empty(3, int)
        x.max(axis=0, out=highest)
        x.sum(1, None, sums[1])
        x.argmax(axis=1, out=places)
        return x.clip(0, 1, out=cut), cut, highest, sums, places

    native(written, X)


def test_indices_that_are_empty_lists_of_lists() -> None:
    native(lambda x: (x[[[]]], x[[[], []]], x[[[]], 0]), X)


@pytest.mark.parametrize("values", [[1, 2], 300, [1.5, 2], [-1]])
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, bool, np.int32])
def test_python_numbers_that_are_put_into_arrays(values: Any, dtype: type) -> None:
    def placed(x: Any) -> Any:
        np.place(x, x > 0, values)
        return x, np.insert(x, 1, values)

    x = X.astype(dtype)
    try:
        expected = placed(x.copy())
    except OverflowError as error:
        with pytest.raises(OverflowError, match=str(error)):
            bw.jit(placed)(x)
        return
    for one, other in zip(bw.jit(placed)(x.copy()), expected, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


@pytest.mark.parametrize("period", [3.5, -2.7, 100.0])
def test_interpolation_around_a_period(period: float, rng: np.random.Generator) -> None:
    x, knots, heights = rng.normal(size=7) * 4, np.array([3.0, 1.0, 2.2]), rng.normal(size=3)
    native(lambda x, p: (np.interp(x, knots, heights, period=p), np.interp(x, knots, heights * 1j, period=period)), x, np.float64(period))
    check_derivatives(lambda x, k, h, p: np.interp(x, k, h, period=p), x, knots, heights, np.array(period))


def test_means_of_truth_values_and_defaults_out_of_range_and_no_columns() -> None:
    signs = np.array([[1, -1], [0, 0], [-3, 3]])
    native(lambda x: (np.mean(x, dtype=bool), np.mean(x, 1, dtype=bool), np.vander(x[0], 0), np.vander(x[0] / 2, 0)), signs)
    native(lambda u: (np.select([u > 1], [u], 300), np.select([u > 1], [u], -1)), BYTES)


# ----- grids, bit for bit
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("count", "endpoint"), [(1, True), (2, False), (8, True), (50, True), (33, False)])
def test_linspace_rounds_as_numpys(rng, dtype, count, endpoint):
    ends = dtype(rng.standard_normal()), dtype(rng.standard_normal() + 2)
    found, expected = bw.jit(lambda a, b: np.linspace(a, b, count, endpoint))(*ends), np.linspace(*ends, count, endpoint)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("bins", "scale"), [(1, 10), (7, 10), (33, 10), (4, 0)])
def test_edges_of_histograms_are_numpys(rng, dtype, bins, scale):
    x = (rng.standard_normal(50) * scale + 30).astype(dtype)
    for found, expected in zip(bw.jit(lambda x: np.histogram(x, bins))(x), np.histogram(x, bins), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "i1", "u1", "?"])
def test_what_is_close_in_the_precision_of_the_elements(dtype: str) -> None:
    with np.errstate(all="ignore"):
        x, y = (np.array([1, first, np.nan, np.inf, -127, 0, -0.0]).astype(dtype) for first in (1.0, 1.001))
    native(lambda x, y: (np.isclose(x, y), np.isclose(x, y, equal_nan=True), np.isclose(x, 1.0000001), np.isclose(1, x), np.isclose(x, y, x, 1),
                         np.isclose(x[0], 0.9999999999999998, rtol=0, atol=0), np.isclose(x, [1, 2, 3, 4, 5, 6, 7]), np.isclose(x, y, np.float64(1e-3)),
                         np.allclose(x, y), np.allclose(x[:1], x[1:2]), np.isclose(-x, -x - 1) if x.dtype != bool else x), x, y)


def test_polynomials_have_the_precision_of_their_roots() -> None:
    for dtype in ("f2", "f4", "f8", "c8", "c16", "i4"):
        native(lambda x: (np.poly(x), np.poly(x[:1])), np.array([1, -2, 3]).astype(dtype) * (1 if dtype[0] != "c" else np.complex64(1 + 2j)))


def test_modes_of_convolutions_are_numbers_too(rng: np.random.Generator) -> None:
    native(lambda x: tuple([function(x, x[:2], mode) for mode in (0, 1, 2) for function in (np.convolve, np.correlate)]), rng.integers(0, 9, 5))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "u1"])
def test_folds_of_what_a_mask_leaves(dtype: str) -> None:
    ufuncs = (np.fmax, np.fmin) if dtype[0] == "f" else (np.fmax, np.fmin, np.bitwise_and)
    native(lambda x, m: tuple([ufunc.reduce(x, initial=first, where=mask) for ufunc in ufuncs for first in (0, 3) for mask in (m, ~m & m)]
                              + ([np.bitwise_and.reduce(x, where=m)] if np.bitwise_and in ufuncs else [np.fmax.reduce(x, initial=np.nan, where=m)])),
           np.array([7, 5, 1, 13]).astype(dtype), np.array([True, True, False, True]))


def test_out_has_more_rows_than_the_masked_operand() -> None:
    def written(x: Any, m: Any) -> Any:
        y = np.ones((2, 3))
        return np.add(x, 1.0, out=y, where=m), y
    native(written, np.arange(3.0), np.array([True, False, True]))


def test_positions_of_numbers_between_bins_are_numbers() -> None:
    found = bw.jit(lambda x, edges: (np.digitize(x[0], edges), np.digitize(x[0], edges[::-1])))(np.array([0.3]), np.array([0.0, 1.0]))
    assert [(int(one), type(one)) for one in found] == [(1, np.int64), (1, np.int64)]


@pytest.mark.parametrize("dtype", ["f2", "f4", "i4"])
def test_edges_of_bins_have_the_dtype_of_elements_and_limits(dtype: str, rng: np.random.Generator) -> None:
    x, limits = rng.normal(size=(6, 2)).astype(dtype), np.array([-1, 1.5], np.float32)
    for function in (lambda x, r: (*np.histogram(x, 3), *np.histogram(x, 3, r), *np.histogram(x, 3, (-1, 2)), np.histogram_bin_edges(x, 2, r)),
                     lambda x, r: (*np.histogram2d(x[:, 0], x[:, 1], 3), *np.histogram2d(x[:, 0], r[x[:, 0].astype(bool) * 1], 2),
                                   np.histogramdd(x, 2)[1][1], np.histogramdd(x, [2, 3], [(-1, 1), None])[1][0])):
        for found, expected in zip(bw.jit(function)(x, limits), function(x, limits), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-3 if dtype == "f2" else 1e-6)
            assert found.dtype == expected.dtype


def test_segments_that_there_are_none_of() -> None:
    native(lambda x: (np.add.reduceat(x, [], axis=0), np.maximum.reduceat(x, [], axis=1), np.add.reduceat(x > 0, [], 1)), X)


@pytest.mark.parametrize("places", [(0, 2), (1,), (), (0, -1), (1, 1), (True, False, True)])
def test_places_to_delete_are_a_tuple(places: tuple[int, ...]) -> None:
    native(lambda x: (np.delete(x, places, 0), np.delete(x[:, 0], places)), X)
