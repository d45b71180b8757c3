"""Arrays with missing elements (nan): what a program leaves out has no derivative, wherever it is left out, by nan itself, a mask or positions.

Values are NumPy's, first derivatives those of differences, second ones those of differences of the first.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.compiler.pipeline import derive
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.passes.derivatives.autodiff import ONE

T = np.linspace(0.0, 1.0, 40).reshape(8, 5)
DATA = np.sin(3 * T) + 0.1 * np.cos(9 * T)
DATA[[0, 2, 5, 5], [1, 3, 0, 1]] = np.nan
M = ~np.isnan(DATA)
ROWS = M.all(1)
K = np.nonzero(M)
FLAGS = np.where(M, 0, 3)              # of bad elements, by numbers


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)            # of NumPy, on the nan
        yield


def set_to_zero(x):
    x = x.copy()
    x[np.isnan(x)] = 0.0
    return np.sum(x ** 3)


def set_by_a_mask(x):
    y = x * x
    y[~M] = 0.0
    return np.sum(y * y)


def set_at_positions(x):
    y = np.sum(x * x, axis=1)
    y[[0, 2, 5]] = 1.0
    return np.sum(np.sqrt(y))


def filled_forward(x):
    y = x.copy()
    for j in range(1, x.shape[1]):
        y[:, j] = np.where(np.isnan(y[:, j]), y[:, j - 1], y[:, j])
    return np.sum(np.nan_to_num(y) ** 2)


def filled_with_means(x):
    x = x.copy()
    mean = np.nanmean(x, 0)
    i, j = np.where(np.isnan(x))
    x[i, j] = mean[j]
    return np.sum(np.sin(x) * x)


def asked_in_loops(x):
    total = 0.0
    for row in x:
        found = np.sum(row ** 3)
        if not np.isnan(found):
            total += found
    return total


def rows_in_a_norm(x):
    y = np.linalg.norm(x, axis=1)
    y[np.isnan(y)] = 0.0
    return np.sum(y)


def distances(x):
    d = x[:, None] - x[None]
    return np.sum(np.where(ROWS[:, None] & ROWS[None], np.sum(d * d, -1), 0.0))


OF_ARRAYS: dict[str, Callable[..., Any]] = {
    **{function.__name__: function for function in (set_to_zero, set_by_a_mask, set_at_positions, filled_forward, filled_with_means,
                                                     asked_in_loops, rows_in_a_norm, distances)},
    "where": lambda x: np.sum(np.where(np.isnan(x), 0.0, x) ** 2), "nan_to_num": lambda x: np.sum(np.nan_to_num(x, nan=0.5) ** 2),
    "nanmean": lambda x: np.sum(np.nanmean(x, 0) ** 2) + np.nanmean(x) ** 2, "nansum": lambda x: np.nansum(x * x),
    "nanvar": lambda x: np.sum(np.nanvar(x, 1)) + np.nanstd(x), "nanprod": lambda x: np.nanprod(x[:3]), "nanmax": lambda x: np.nanmax(x ** 2, 0) @ T[0],
    "nanmedian": lambda x: np.nanmedian(x ** 2) + np.sum(np.nanquantile(x ** 2, 0.3, axis=0)), "where=": lambda x: np.sum(x ** 2, where=M),
    "selected": lambda x: np.sum(x[~np.isnan(x)] ** 2), "selected later": lambda x: np.sum((x ** 2)[~np.isnan(x)]),
    "a known mask": lambda x: np.sum(np.where(M, x ** 2, 0.0)), "rows": lambda x: np.sum(np.where(ROWS, np.sum(x ** 2, 1), 0.0)),
    "rows that are nan": lambda x: np.nansum(np.sqrt(np.sum(x ** 2, 1))), "sums of rows": lambda x: np.sum(np.sum(x ** 2, 1)[ROWS]),
    "elements by a mask": lambda x: np.sum((x ** 2)[M]), "at positions": lambda x: np.sum(np.sum(x * x, 1)[[1, 3]] ** 2),
    "functions of rows": lambda x: np.sum(np.where(ROWS, np.exp(-np.sum(np.sin(x) ** 2, 1)), 0.0)),
    "products": lambda x: np.sum(np.where(ROWS, np.prod(x, 1), 0.0)), "largest": lambda x: np.sum(np.where(ROWS, np.max(x * x, 1), 0.0)),
    "variances": lambda x: np.sum(np.where(ROWS, np.var(x, 1), 0.0)), "einsum": lambda x: np.nansum(np.einsum("ij,ij->i", x, x) ** 2),
    "parts": lambda x: np.nansum((x * x).reshape(4, 10)[:, ::2]), "x != x": lambda x: np.sum(np.where(x != x, 0.0, x * x * 2)[1:]),
    "standardised": lambda x: np.nansum(((x - np.nanmean(x, 0)) / np.nanstd(x, 0)) ** 3),
}


@pytest.mark.parametrize("name", OF_ARRAYS)
def test_elements_of_the_argument_are_missing(name: str, rng: np.random.Generator) -> None:
    loss = OF_ARRAYS[name]
    gradient, product = bw.value_and_grad(loss), bw.hvp(loss)
    full = 0.3 + rng.standard_normal(DATA.shape)
    for x in (full, np.where(M, full, np.nan), np.where(M, full[::-1] * 0.7, np.nan)):
        v, missing = rng.standard_normal(x.shape), np.isnan(x)
        v = np.where(missing, 0.0, v)
        near = [np.where(missing, x, x + step * v) for step in (1e-6, -1e-6)]
        value, found = gradient(x)
        np.testing.assert_allclose(value, loss(x.copy()), rtol=1e-10)
        assert not np.any(found[missing])
        np.testing.assert_allclose(np.sum(found * v), (loss(near[0].copy()) - loss(near[1].copy())) / 2e-6, rtol=2e-5, atol=1e-6)
        second = (gradient(near[0])[1] - gradient(near[1])[1]) / 2e-6
        np.testing.assert_allclose(product(x, v), second, rtol=1e-4, atol=1e-5 * max(1.0, np.max(np.abs(second))))


def residual(p, d):
    return d - p[0] * np.sin(p[1] * T) - p[2]


def a_filter(p, d):
    """A Kalman filter that skips what is missing."""
    mean, variance, total = 0.0, 1.0, 0.0
    for k in range(5):
        variance = variance + p[0] ** 2
        e, s = d[5, k] - mean * p[1], variance + 0.1
        gain, seen = variance / s, ~np.isnan(d[5, k])
        total = total + np.where(seen, np.log(s) + e * e / s, 0.0)
        mean, variance = np.where(seen, mean + gain * e, mean), np.where(seen, (1 - gain) * variance, variance)
    return total


def set_after(p, d):
    r = residual(p, d) ** 2
    r[~M] = 0.0
    return np.sum(r)


def many_conditions(p, d):
    chosen = ROWS
    for k in range(30):
        chosen = chosen & (p[1] > 0.1 - k)
    return np.sum(np.where(chosen, np.sum(residual(p, d) ** 2, 1), 0.0))


COEFFICIENTS = np.linspace(-1.0, 1.5, 5)
KNOWN_ROWS = ~np.isnan(DATA).any(axis=1)


def regression(p, d):
    a = d[~np.isnan(d).any(axis=1)]
    return np.sum(np.tanh(a @ (p[0] * COEFFICIENTS) - p[1]) ** 2)


def regression_of_wholes(p, d):
    found = np.sin(d) @ np.outer(p[0] * COEFFICIENTS, p) + d @ np.outer(COEFFICIENTS, p)
    return np.sum(found[KNOWN_ROWS] ** 2)


def products_in_a_chain(p, d):
    hidden = np.tanh(d @ np.outer(COEFFICIENTS, p)) @ np.outer(p, p)
    return np.nansum((hidden - 1.0) ** 2)


def placed_crosswise(p, d):
    k = np.flatnonzero(~np.isnan(d).any(axis=1))
    found = np.zeros((8, 8))
    found[np.ix_(k, k)] = np.exp(-p[0] ** 2 * (d @ d.T)[np.ix_(k, k)] * 0.1)
    return np.sum(found * found) * p[1]


def filled_by_regression(p, d):
    """A step of expectation and maximisation: what is missing in rows is computed of what is there."""
    seen, filled, mean = ~np.isnan(d), np.where(np.isnan(d), 0.0, d), p[0] * COEFFICIENTS
    for row in range(8):
        o, m = np.flatnonzero(seen[row]), np.flatnonzero(~seen[row])
        filled[row, m] = mean[m] + (d[row, o] - mean[o]) @ np.ones((len(o), len(m))) * p[1]
    return np.sum(filled ** 2)


def stacked_with_others(p, d):
    return np.sum(np.concatenate([d[KNOWN_ROWS] @ (p[0] * COEFFICIENTS), p]) ** 2)


def masked_steps(p, d):
    """A recurrence that keeps its state where a row is missing."""
    state = np.zeros(3)
    for row in d:
        state = np.where(np.isnan(row).any(), state, np.tanh(np.outer(p, COEFFICIENTS) @ row + state * p))
    return np.sum(state ** 2)


OF_MODELS: dict[str, Callable[..., Any]] = {
    **{function.__name__: function for function in (a_filter, set_after, many_conditions, regression, regression_of_wholes, products_in_a_chain, placed_crosswise,
                                                    filled_by_regression, stacked_with_others, masked_steps)},
    "a mask": lambda p, d: np.sum((residual(p, d) ** 2)[M]), "a mask of the data": lambda p, d: np.sum((residual(p, d) ** 2)[~np.isnan(d)]),
    "data from outside": lambda p, d: np.sum((residual(p, DATA) ** 2)[M]), "nansum": lambda p, d: np.nansum(residual(p, d) ** 2),
    "nanmean": lambda p, d: np.nanmean(residual(p, d) ** 2), "rows": lambda p, d: np.sum(np.sum(residual(p, d) ** 2, 1)[ROWS]),
    "positions": lambda p, d: np.sum((residual(p, d) ** 2)[K[0], K[1]]), "nonzero": lambda p, d: np.sum((residual(p, d) ** 2)[np.nonzero(M)]),
    "take": lambda p, d: np.mean(np.take((residual(p, d) ** 2).ravel(), np.flatnonzero(M))),
    "compress": lambda p, d: np.sum(np.compress(M.ravel(), residual(p, d).ravel() ** 2)), "extract": lambda p, d: np.sum(np.extract(M, residual(p, d) ** 2)),
    "where": lambda p, d: np.sum(np.where(ROWS, np.sum(residual(p, d) ** 2, 1), 0.0)), "likelihood": lambda p, d: np.nansum(
        np.log(np.sum(residual(p, d) ** 2, 1))), "medians": lambda p, d: np.median(residual(p, d)[M] ** 2) + np.nanmedian(residual(p, d) ** 2),
    "extremes": lambda p, d: np.nanmin(np.sum(residual(p, d) ** 2, 1)) + np.nanmax(residual(p, d) ** 2),
    "norms": lambda p, d: np.nanmean(np.linalg.norm(residual(p, d), axis=1)), "exponentials": lambda p, d: np.sum(np.exp(-residual(p, d) ** 2)[ROWS]),
    "products": lambda p, d: np.nansum(np.sum(residual(p, d) * d, 1) ** 2),
}


def check_model(loss: Callable[..., Any], *data: Any) -> None:
    gradient, hessian = bw.value_and_grad(loss), bw.hessian(loss)
    for p in (np.array([1.1, 2.5, 0.1]), np.array([0.7, 3.5, -0.2])):
        value, found = gradient(p, *data)
        assert np.isfinite(value)
        np.testing.assert_allclose(value, loss(p.copy(), *data), rtol=1e-10)
        steps = 1e-6 * np.eye(3)
        np.testing.assert_allclose(found, [(loss(p + h, *data) - loss(p - h, *data)) / 2e-6 for h in steps], rtol=1e-5, atol=1e-6)
        second = [(gradient(p + h, *data)[1] - gradient(p - h, *data)[1]) / 2e-6 for h in steps]
        np.testing.assert_allclose(hessian(p, *data), second, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", OF_MODELS)
def test_data_are_missing(name: str) -> None:
    check_model(OF_MODELS[name], DATA)


def flags_in_loops(p, d, flags):
    r, total = np.sum(residual(p, d) ** 2, 1), 0.0
    for k in range(len(r)):
        total = total + np.where(np.max(flags[k]) < 2, np.cos(r[k] * 2), 0.0)
    return total


def flags_that_are_carried(p, d, flags):
    """Once an element is missing, those that come after it are left out."""
    total, is_good = 0.0, True
    for k in range(8):
        is_good = is_good & (flags[k, 3] == 0)
        total = total + np.where(is_good, np.cos(residual(p, d)[k, 3] ** 2), 0.0)
    return total


def branches(p, d, flags):
    r, total = residual(p, d) ** 2, 0.0
    for k in range(8):
        if np.max(flags[k]) == 0:
            total = total + np.sum(r[k])
    return total


OF_FLAGS: dict[str, Callable[..., Any]] = {
    "flags_in_loops": flags_in_loops, "branches": branches, "flags_that_are_carried": flags_that_are_carried,
    "rows": lambda p, d, flags: np.sum(np.where((flags < 2).all(1), np.sum(residual(p, d) ** 2, 1), 0.0)),
    "a part": lambda p, d, flags: np.sum(np.where(np.sum(flags & 2, 1) == 0, np.sum(residual(p, d) ** 2, 1), 0.0)),
    "selected": lambda p, d, flags: np.sum(np.sum(residual(p, d) ** 2, 1)[np.max(flags, 1) != 3]),
    "counted": lambda p, d, flags: np.sum(np.sum(residual(p, d) ** 2, 1)[np.cumsum(flags.max(1)[::-1])[::-1] == 0]),
    "set": lambda p, d, flags: set_by_flags(np.sum(residual(p, d) ** 2, 1), flags),
    "positions": lambda p, d, flags: np.sum(np.sum(residual(p, d) ** 2, 1)[1 + 2 * (flags[0, :2] // 3)]),
}


def set_by_flags(r, flags):
    r[np.any(flags > 1, 1)] = 1.0
    return np.sum(np.sqrt(r))


@pytest.mark.parametrize("name", OF_FLAGS)
def test_numbers_that_are_given_say_what_is_missing(name: str) -> None:
    check_model(OF_FLAGS[name], DATA, FLAGS)


@pytest.mark.parametrize("loss", [
    lambda x, b: np.sum((np.log(x)[x[:, 0] > 0][:, :1] @ b[:1]) ** 2), lambda x, b: np.sum(np.where(x[:, 0] > 0, np.log(x[:, :1]) @ b[:1], 0.0) ** 2),
    lambda x, b: np.sum((np.log(x[:, :2])[(x[:, 0] > 0) & (x[:, 1] > 0)] @ b[:2]) ** 2),
    lambda x, b: np.sum((np.log(x[:, :2])[x[:, :2].min(1) > 0] @ np.outer(b[:2], b)) ** 2),
], ids=["one column", "where", "two masks", "a matrix"])
def test_rows_without_a_logarithm_are_left_out_of_products(loss: Callable[..., Any]) -> None:
    x, b = np.array([[0.5, 2.0, 1.0], [-1.0, 3.0, 1.0], [0.3, -2.0, 1.0], [1.5, 0.7, 1.0]]), np.array([0.3, -0.2, 0.7])
    steps = 1e-6 * np.eye(3)
    with np.errstate(invalid="ignore"):
        expected = [(loss(x, b + h) - loss(x, b - h)) / 2e-6 for h in steps]
    np.testing.assert_allclose(bw.grad(loss, argnums=1)(x, b), expected, rtol=1e-6, atol=1e-8)


def test_what_was_read_shows() -> None:
    """nan that is not left out is the gradient's, too."""
    x = np.where(M, T, np.nan)
    found = bw.grad(lambda x: np.sum(x[:4] ** 2) + np.nansum(x[4:] ** 2))(x)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(x) & (np.arange(8)[:, None] < 4))


@pytest.mark.parametrize("loss", [
    lambda x: np.sum((np.sin(x) * x)[1:] * x[:-1]), lambda x: np.sum(x[np.array([2, 1])] ** 2), lambda x: np.sum(np.sort(x * x, 1)[:, :2]),
    lambda x: np.sum((x * x)[np.argmax(x, 0), np.arange(5)]), lambda x: np.sum(np.where(x > 0, np.sum(x * x), x)[1:]),
    lambda x: np.sum(np.where(np.tri(8, dtype=bool), np.sin(x) @ x.T, -9.0)[1:]),
], ids=["slices", "elements of an argument", "a sort", "positions made of numbers", "a choice by size", "a triangle of a product"])
def test_nothing_is_asked_of_programs_that_leave_out_nothing(loss: Callable[..., Any]) -> None:
    joint = derive(trace(loss, (T,)).graph, (0,), [ONE]).graph
    assert "absolute" not in [value.op.name for value in joint.body]
