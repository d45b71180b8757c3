"""Order statistics of arrays that are too long to be sorted for a few elements: NumPy's values, and derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.ops.ordering.order_statistics import LEAST_SELECTED
from tests.unit.frontend.comparing import compare

N = LEAST_SELECTED + 1
METHODS = ("linear", "lower", "higher", "nearest", "midpoint", "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "hazen", "weibull")
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "median": lambda x: (np.median(x), np.median(x, 0), np.median(x, 1, keepdims=True), np.median(x, (0, 1)), np.median(x[0])),
    "nanmedian": lambda x: (np.nanmedian(x), np.nanmedian(x, 0), np.nanmedian(x, 1)),
    "quantile": lambda x: (np.quantile(x, 0.3), np.quantile(x, [0.0, 0.21, 1.0], 1), np.percentile(x, [[10, 20]], 0)),
    "nanquantile": lambda x: (np.nanquantile(x, 0.3), np.nanpercentile(x, [0.0, 21, 100], axis=1)),
    "at partitions": lambda x: (np.partition(x, 5)[:, 5], np.partition(x, (N - 2, 9), 1)[:, [9, N - 2]], np.partition(x, -3, None)[-3]),
    "parts": lambda x: (np.sort(np.partition(x, 9)[:, :9], 1), np.sum(np.partition(x, 9, 1)[:, 10:]),
                        np.sort(np.partition(x.T, 9, 0)[:9], 0)),
    "positions of parts": lambda x: (np.sort(np.take_along_axis(x, np.argpartition(x, 30), 1)[:, :30], 1),
                                     np.take_along_axis(x, np.argpartition(x, -4, 1), 1)[:, -4]),
    "sorted": lambda x: (np.sort(x)[:, N // 2], np.sort(x, None)[7:12], np.sort(x, 1)[:, -1]),
}


def arrays(rng: np.random.Generator) -> dict[str, Any]:
    x = rng.standard_normal((3, N))
    holes = np.where(rng.random(x.shape) < 0.2, np.nan, x)
    holes[1] = np.nan
    holes[2] = x[2]
    return {"f8": x, "f4": x.astype(np.float32), "ties": np.round(x), "integers": (9 * x).astype(int), "nan": holes,
            "infinite": np.where(x > 0.5, np.inf, x)}


@pytest.mark.filterwarnings("ignore:All-NaN")
@pytest.mark.parametrize("kind", ["f8", "f4", "ties", "integers", "nan", "infinite"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_numpy(name: str, kind: str, rng: np.random.Generator) -> None:
    x = arrays(rng)[kind]
    if name in ("parts", "positions of parts") and kind == "nan":
        x = x[::2]                                     # nan in sums
        x = np.where(np.isnan(x), 9.0, x)
    compare(FUNCTIONS[name], x)
    compiled = bw.jit(FUNCTIONS[name])
    for values in (x, x[::-1].copy(), x[:, ::-1] * 2):
        with np.errstate(all="ignore"):
            expected = FUNCTIONS[name](values)
        for one, other in zip(compiled(values), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5 if kind == "f4" else 1e-12, atol=1e-5 if kind == "f4" else 1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_methods(method: str, rng: np.random.Generator) -> None:
    x = rng.standard_normal((2, N))
    holes = np.where(rng.random(x.shape) < 0.1, np.nan, x)
    for levels in ([0.0, 0.21, 0.5, 1.0], np.float64(0.3)):
        compare(lambda x, levels=levels: (np.quantile(x, levels, 1, method=method), np.nanquantile(x, levels, 1, method=method)), holes)
        compare(lambda x, q: (np.quantile(x, q, 1, method=method), np.nanquantile(x, q, 1, method=method)), x, np.asarray(levels))


def test_selected_elements(rng: np.random.Generator) -> None:
    x = rng.standard_normal(2 * N)
    compare(lambda x: (np.median(x[x > 0]), np.quantile(x[x > 0.3], 0.2)), x)


@pytest.mark.parametrize("levels", [0.3, 1, np.float64(0.3), np.float32(0.3), [0.3, 0.7], np.array([0.3, 0.7]), np.array(0.25, np.float32)], ids=repr)
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2"])
def test_dtypes_of_levels(dtype: str, levels: Any, rng: np.random.Generator) -> None:
    x = (10 * rng.standard_normal(31)).astype(dtype)
    for program in (lambda x: np.quantile(x, levels), lambda x: np.quantile(x[x > 0], levels), lambda x: np.percentile(x[x > 0], levels)):
        found, expected = np.asarray(bw.jit(program)(x)), np.asarray(program(x))
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=0, atol=20 * float(np.finfo(dtype).eps))        # of differences of such numbers


LOSSES: dict[str, Callable[[Any], Any]] = {
    "median": lambda x: np.median(x) * np.sum(np.median(x, 1) ** 2), "even": lambda x: np.median(x[:, :-1], 1) @ np.arange(3.0),
    "quantiles": lambda x: np.sum(np.quantile(x, [0.1, 0.77], axis=1) ** 2), "nanmedian": lambda x: np.sum(np.nanmedian(x, 1) ** 2),
    "nanquantile": lambda x: np.nanquantile(x, 0.4) ** 3, "partition": lambda x: np.sum(np.partition(x, 9)[:, :9] ** 2),
    "nearest": lambda x: np.sum(np.take_along_axis(x, np.argpartition(x ** 2, 5)[:, :5], 1) ** 2),
    "deviation": lambda x: np.median(np.abs(x - np.median(x))), "of a part": lambda x: np.median(x[x > 0.1]) ** 2,
}


@pytest.mark.parametrize("name", LOSSES)
def test_derivatives(name: str, rng: np.random.Generator) -> None:
    """As those by sorting, and as central differences; of second order, too."""
    x = rng.standard_normal((3, N))
    loss = LOSSES[name]
    gradient, product = bw.grad(loss), bw.hvp(loss)
    for values in (x, x[::-1] * 1.5):
        v, h = rng.standard_normal(x.shape), 1e-7
        slope = (loss(values + h * v) - loss(values - h * v)) / (2 * h)
        np.testing.assert_allclose(np.sum(gradient(values) * v), slope, rtol=1e-5, atol=1e-6)
        second = (gradient(values + h * v) - gradient(values - h * v)) / (2 * h)
        np.testing.assert_allclose(product(values, v), second, rtol=1e-5, atol=1e-5)
        _, tangent = bw.jvp(loss, (values,), (v,))
        np.testing.assert_allclose(tangent, slope, rtol=1e-5, atol=1e-6)


def test_the_cotangent_of_ties_goes_to_the_first_in_order() -> None:
    x = np.zeros(N)
    x[::3] = 1.0
    ones = len(x[::3])
    found = bw.grad(lambda x: np.sort(x)[N - ones + 4])(x)
    assert np.flatnonzero(found).tolist() == [12] and found[12] == 1.0
    found = bw.grad(lambda x: np.partition(x, N - 2)[N - 2])(x)
    assert np.flatnonzero(found).tolist() == [3 * (ones - 2)]


def test_rows_of_a_batch(rng: np.random.Generator) -> None:
    x = rng.standard_normal((4, N))
    np.testing.assert_array_equal(bw.jit(bw.vmap(lambda row: np.median(row)))(x), np.median(x, 1))
    expected = [bw.grad(lambda row: np.median(row))(row) for row in x]
    np.testing.assert_array_equal(bw.jit(bw.vmap(bw.grad(lambda row: np.median(row))))(x), expected)
    np.testing.assert_array_equal(bw.jit(bw.vmap(lambda row, k: np.sort(row)[k]))(x, np.arange(4)), np.sort(x, 1)[np.arange(4), np.arange(4)])
    np.testing.assert_array_equal(bw.jit(bw.vmap(lambda k: np.sort(x[0])[k]))(np.arange(4)), np.sort(x[0])[:4])


def test_wrong_places(rng: np.random.Generator) -> None:
    x = rng.standard_normal(N)
    with pytest.raises(ValueError, match=r"kth\(=700\) out of bounds"):
        bw.jit(lambda x: np.partition(x, 700))(x)
    with pytest.raises(IndexError):
        bw.jit(lambda x, k: np.sort(x)[k])(x, N)
    with pytest.raises(IndexError):
        bw.jit(lambda x, q: np.quantile(x, q))(x, 1.5)


def test_in_place(rng: np.random.Generator) -> None:
    def smallest(x: Any) -> Any:
        y = x.copy()
        y.partition(12)
        y.T.partition(1, axis=0)
        return np.sort(y[:, :12], 1)[:, 2:]
    x = rng.standard_normal((3, N))
    np.testing.assert_array_equal(bw.jit(smallest)(x)[:, -1], np.sort(x, 1)[:, 11])
