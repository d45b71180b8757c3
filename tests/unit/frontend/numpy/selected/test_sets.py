"""np.union1d, intersect1d, setdiff1d, setxor1d of traced arrays: as many numbers as the data say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw

ARRAYS = [np.array([3.0, 1.0, 2.0, 2.0]), np.array([[1.0, 2.0], [2.0, 7.0]]), np.array([1, 2, 2]), np.array([]), np.array([np.nan, 1.0, np.nan]),
          np.array([7], np.int8), np.array([True, False]), np.array(2.5)]


@pytest.mark.parametrize("fun", [np.union1d, np.intersect1d, np.setdiff1d, np.setxor1d], ids=lambda fun: fun.__name__)
def test_sets_are_numpys(fun: Callable[[Any, Any], Any]) -> None:
    for x in ARRAYS:
        compiled = bw.jit(lambda x, y: fun(x, y))
        for y in ARRAYS:
            expected, found = fun(x, y), compiled(x, y)
            assert found.dtype == expected.dtype, (x, y)
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("fun", [
    lambda x: len(np.union1d(x[x > 1], [2.0, 9.0])), lambda x: np.setdiff1d(x, [1.0], assume_unique=True), lambda x: np.setdiff1d(x[x > 1], [3]),
    lambda x: np.setdiff1d(np.arange(5), x.astype(int)), lambda x: np.sum(np.intersect1d([2.0, 3.0], x)), lambda x: np.unique_values(x),
    lambda x: np.union1d(np.arange(3.0), x).max(),
])
def test_sets_in_programs(fun: Callable[[Any], Any]) -> None:
    np.testing.assert_array_equal(bw.jit(fun)(ARRAYS[0]), fun(ARRAYS[0]))


def test_the_gradient_of_what_is_in_both() -> None:
    both = lambda x, y: np.sum(np.intersect1d(x, y) ** 2)
    np.testing.assert_array_equal(bw.grad(both)(ARRAYS[0], np.array([2.0, 3.0, 5.0])), [6.0, 0.0, 4.0, 0.0])


def test_no_numbers_at_all() -> None:
    assert bw.jit(lambda x: (np.unique(x) > 0).sum())(np.zeros(0)) == 0


@pytest.mark.parametrize("options", ["return_counts", "return_index return_inverse return_counts"])
def test_where_and_how_often_numbers_are(options: str) -> None:
    asked = dict.fromkeys(options.split(), True)
    both = lambda x: np.unique(x, **asked) + np.unique(x[x > 1], **asked)
    for x in [*ARRAYS, np.array([5.0, -1.0, 5.0, 5.0, 2.0, -1.0, np.nan, 2.0, np.nan]), np.zeros((2, 0)), np.full((2, 3), 3)]:
        for found, expected in zip(bw.jit(both)(x), both(x), strict=True):
                assert np.asarray(found).dtype == expected.dtype, (x, options)
                np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("fun", [np.unique_all, np.unique_counts, np.unique_inverse], ids=lambda fun: fun.__name__)
def test_named_results(fun: Callable[[Any], Any]) -> None:
    for x in ARRAYS:
        found, expected = bw.jit(lambda x: fun(x))(x), fun(x)
        assert type(found) is type(expected)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_places_of_what_is_in_both() -> None:
    both = lambda x, y: np.intersect1d(x, y, return_indices=True)
    for x in ARRAYS[:3]:
        compiled = bw.jit(both)
        for y in ARRAYS[:3]:
            for found, expected in zip(compiled(x, y), both(x, y), strict=True):
                np.testing.assert_array_equal(found, expected)


def group_means(keys: Any, x: Any) -> Any:
    """By groups, whose number is data."""
    groups, which, counts = np.unique(keys, return_inverse=True, return_counts=True)
    means = np.bincount(which, weights=x, minlength=len(x))[:len(x)]
    total = 0.0
    for group, count, k in zip(groups, counts, range(len(x)), strict=False):
        total = total + group * (means[k] / count) ** 2
    return total + np.sum(np.cumsum(counts) * groups)


def test_the_gradient_by_groups(rng: np.random.Generator) -> None:
    keys, x, direction = np.array([2.0, 1.0, 2.0, 5.0, 1.0, 2.0]), rng.standard_normal(6), rng.standard_normal(6)
    assert bw.jit(group_means)(keys, x) == pytest.approx(group_means(keys, x))
    numeric = (group_means(keys, x + 1e-6 * direction) - group_means(keys, x - 1e-6 * direction)) / 2e-6
    assert bw.grad(group_means, argnums=1)(keys, x) @ direction == pytest.approx(numeric, rel=1e-6)
