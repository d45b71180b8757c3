"""The larger and the smaller of two numbers, and of many: nans, infinities and zeros of both signs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bwcompiler as bw

SPECIAL = [0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan, 1e-40]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("count", [1, 5])
def test_two_numbers(dtype: str, count: int) -> None:
    x, y = (np.repeat(np.array(grid, dtype).ravel(), count) for grid in np.meshgrid(SPECIAL, SPECIAL))
    for function in (np.maximum, np.minimum):
        for number in SPECIAL:
            constant = x.dtype.type(number)
            for one in (lambda x: function(x, constant), lambda x: function(constant, x)):
                np.testing.assert_array_equal(bw.jit(one)(x), one(x))
        found = bw.jit(function)(x, y)
        np.testing.assert_array_equal(found, function(x, y))
        zeros = (x == 0) & (y == 0)
        np.testing.assert_array_equal(np.signbit(found)[zeros], np.signbit(y)[zeros])                   # the second of equals
    relu = bw.jit(lambda x: np.maximum(x, 0))(x)
    np.testing.assert_array_equal(np.signbit(relu[x == 0]), False)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("length", [2, 3, 17, 40, 300])
def test_zeros_of_both_signs_have_one_order_in_reductions(dtype: str, length: int, rng: np.random.Generator) -> None:
    """0.0 is larger than -0.0, wherever they stand: so the bits do not depend on how wide vectors are."""
    zeros = np.copysign(np.zeros((8, length), dtype), rng.standard_normal((8, length)))
    zeros[:, 0], zeros[:, -1] = 0.0, -0.0
    for array in (zeros, zeros[:, ::-1].copy(), -zeros):
        def largest(x: Any) -> Any:
            return np.max(x), np.max(x, 1), np.max(x.T, 0), np.maximum.accumulate(x, 1)[:, -1]

        def smallest(x: Any) -> Any:
            return np.min(x), np.min(x, 1), np.min(x.T, 0), np.minimum.accumulate(x, 1)[:, -1]

        for found in bw.jit(largest)(array):
            assert not np.signbit(found).any() and not np.any(found)
        for found in bw.jit(smallest)(array):
            assert np.signbit(found).all() and not np.any(found)


@pytest.mark.parametrize("place", [0, 7, 31, 32, 99])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_one_nan(dtype: str, place: int) -> None:
    x = np.arange(100.0).astype(dtype) - 50
    x[place] = np.nan
    for function in (np.max, np.min):
        assert np.isnan(bw.jit(function)(x)) and np.isnan(bw.jit(lambda x: function(x.reshape(4, 25), 0))(x)).sum() == 1
    scan = bw.jit(lambda x: np.maximum.accumulate(x))(x)
    np.testing.assert_array_equal(scan, np.maximum.accumulate(x))
