"""Long sums of float32 keep their digits, however the elements are arranged."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw


@pytest.mark.parametrize("shape", [(3_000_000,), (300_000, 10), (1000, 3000), (7, 300_001), (2048,), (2047,), (65,)], ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_error_of_a_sum(shape: tuple[int, ...], dtype: str) -> None:
    x = np.full(shape, 0.1, dtype)
    exact = x.size * float(x.flat[0])
    limit = 12 * np.finfo(dtype).eps if dtype == "f4" else 1e-12
    assert abs(float(bw.jit(np.sum)(x)) - exact) <= limit * exact
    assert abs(float(bw.jit(lambda x: np.mean(x * x))(x)) - float(x.flat[0]) ** 2) <= limit


def test_sums_along_long_rows() -> None:
    x = np.full((3, 500_000), 0.1, np.float32)
    np.testing.assert_allclose(bw.jit(lambda x: np.sum(x, axis=1))(x), 500_000 * float(np.float32(0.1)), rtol=2e-6)
    shifted = bw.jit(lambda x: x - np.mean(x, axis=1, keepdims=True))(x)
    np.testing.assert_allclose(shifted, 0.0, atol=1e-7)
