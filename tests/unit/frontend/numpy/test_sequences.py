"""NumPy's functions of lists, tuples and deques that hold traced values."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw

X = np.array([0.3, 0.7, 1.1])


def window(x):
    last, means = deque(maxlen=4), np.zeros(20)
    for k in range(20):
        last.append(x[k % 3] * k)
        means[k] = np.mean(last) + np.std(last)
    return means


FUNCTIONS: dict[str, Any] = {
    "array": lambda x, kind: np.array(kind([x[0], 2.0, x[1]])), "mean": lambda x, kind: np.mean(kind([x[0], x[1]])),
    "nested": lambda x, kind: np.array(kind([kind([x[0], x[1]]), kind([1.0, x[2]])])), "stack": lambda x, kind: np.stack(kind([x, 2 * x])),
    "concatenate": lambda x, kind: np.concatenate(kind([x, x[:1]])), "dot": lambda x, kind: np.dot(kind([x[0], x[1]]), kind([3.0, x[2]])),
    "multiply": lambda x, kind: np.multiply(kind([x[0], x[1]]), 2.0), "asarray": lambda x, kind: np.asarray(kind([x[0], x[2]])) ** 2,
}


@pytest.mark.parametrize("kind", [list, tuple, deque])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_sequences(name: str, kind: Any) -> None:
    function = FUNCTIONS[name]
    np.testing.assert_allclose(bw.jit(lambda x: function(x, kind))(X), function(X, kind), rtol=1e-15)


def test_a_window_that_moves_in_a_loop() -> None:
    np.testing.assert_allclose(bw.jit(window)(X), window(X), rtol=1e-14)


def test_ranges() -> None:
    function = lambda x: (np.power(range(3), x), x * np.array(range(3)), np.concatenate([x, range(2)]), np.dot(range(3), x), np.add(x, range(3)),
                          np.interp(x, range(3), [2.0, 5.0, 4.0]), np.sum(range(3)) * x, x[range(2)])
    for found, expected in zip(bw.jit(function)(X), function(X), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-15)
