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


JOINED: dict[str, Any] = {
    "numbers beside narrow floats": lambda x, k, s: np.r_[x, 1.0, 2], "numbers beside narrow integers": lambda x, k, s: np.r_[k, 1, True],
    "an argument": lambda x, k, s: np.r_[s, x], "arrays and lists are of their own type": lambda x, k, s: np.r_[x, [1.0]],
    "NumPy's numbers": lambda x, k, s: np.r_[x, np.float64(2)], "ranges": lambda x, k, s: np.r_[x, 0:3], "columns": lambda x, k, s: np.c_[x, 2 * x, k],
    "complex numbers": lambda x, k, s: np.r_[x, 1j], "a number first": lambda x, k, s: np.r_[1, x[0], [x[1], 2.0]],
}


@pytest.mark.parametrize("name", JOINED)
def test_parts_that_are_joined_have_numpys_dtype(name: str) -> None:
    args = X.astype(np.float32), np.array([1, 2, 250], np.uint8), 2.5
    found, expected = bw.jit(JOINED[name])(*args), JOINED[name](*args)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(OverflowError, match="300 out of bounds for uint8"):
        bw.jit(lambda k: np.r_[k, 300])(args[1])


def test_numbers_stay_numbers() -> None:
    square = np.array([[2.0, 1.0, 0.0], [0.5, 3.0, 1.0], [0.0, 1.0, 4.0]])
    function = lambda a: (np.linalg.cond(a), np.linalg.cond(a, 1), np.linalg.cond(a[None], 1), np.imag(a[0, 0]), a[0, 0].imag, np.imag(a[0]))
    for found, expected in zip(bw.jit(function)(square), function(square), strict=True):
        assert type(found) is type(expected)
        np.testing.assert_allclose(found, expected, rtol=1e-14)
