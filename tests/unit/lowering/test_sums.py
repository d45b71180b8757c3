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


# ----- sums whose length depends on a loop
def triangular(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        y[i] = (x[i] - np.dot(a[i, :i], y[:i])) / a[i, i]
    return y


def down_columns(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    y = np.zeros_like(x)
    for i in range(x.shape[0]):
        y[i] = (x[i] - np.dot(a[:i, i], y[:i] + 1.0)) / a[i, i]
    return y


@pytest.mark.parametrize("fun", [triangular, down_columns])
def test_partial_results_stay_in_registers(fun) -> None:
    """The lanes of a sum are in no memory while whole vectors are added; what is left over works on copies, if it has to."""
    a = np.tril(np.random.default_rng(0).uniform(0.5, 1.5, (100, 100))) / 100.0 + np.eye(100)
    a, x = (a, np.ones(100)) if fun is triangular else (a.T.copy(), np.ones(100))
    np.testing.assert_allclose(bw.jit(fun)(a, x), fun(a, x), rtol=1e-13)
    text = bw.jit(fun).lower(a, x).as_text("llvm-opt")
    body = text[text.index("fmul <"):]
    loop = body[:body.index("br i1")]
    assert "load <32 x double>, ptr %a" not in loop and "store <" not in loop
