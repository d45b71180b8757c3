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
