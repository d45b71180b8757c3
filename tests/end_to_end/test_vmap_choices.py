"""vmap over numbers that decide: loops that end where an element says, and sides of branches that only some elements take.

All elements are computed together; what an element does not take must not raise for it.  Against a Python loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bwcompiler as bw

X = np.arange(1.0, 9.0).reshape(2, 4)


def sum_of_first(x: Any, n: Any) -> Any:
    total = 0.0
    for k in range(n):
        total = total + x[k] ** 2
    return total


def first_above(x: Any, level: Any) -> Any:
    k = 0
    while k < len(x) and x[k] <= level:
        k += 1
    return k


def element_or_nothing(x: Any, k: Any) -> Any:
    if k < len(x):
        found = x[k] ** 2
    else:
        found = -1.0
    return found


def while_of_data(x: Any, n: Any) -> Any:
    k, total = 0, 0.0
    while k < n:
        total += x[k] * x[2]
        k += 1
    return total


def inverse_where_asked(x: Any, k: Any) -> Any:
    matrix = np.diag(x) * (k > 0)
    if k > 0:
        found = np.linalg.solve(np.linalg.inv(matrix), x)
    else:
        found = x
    return found


def checked_where_asked(x: Any, k: Any) -> Any:
    if k < 4:
        if x[k] < 0:
            raise ValueError("negative")
        found = x[k]
    else:
        found = x[0]
    return found


def loop_inside(x: Any, k: Any) -> Any:
    found = 0.0
    if k <= 4:
        for j in range(2):
            i = k - 1
            while i >= 0:
                found = found + x[i] * x[j + i - i]
                i = i - 1
    return found


def places_of_a_side(x: Any, k: Any) -> Any:
    y = x * 2
    if k < 4:
        y[k] = 7.0 * x[k]
    return y


CASES = {"a range that ends where an element says": (sum_of_first, [4, 1]), "a branch": (element_or_nothing, [7, 2]),
         "a while loop": (while_of_data, [1, 4]), "a singular matrix": (inverse_where_asked, [0, 2]),
         "checks": (checked_where_asked, [9, 3]), "loops in a side": (loop_inside, [2, 77]), "assignments": (places_of_a_side, [-1, 5]),
         "a test of two parts": (first_above, [9.0, 6.0])}


@pytest.mark.parametrize("case", CASES)
def test_as_a_loop(case: str) -> None:
    function, numbers = CASES[case]
    given = np.array(numbers)
    expected = np.stack([function(x.copy(), number) for x, number in zip(X, numbers, strict=True)])
    for mapped in (bw.vmap(function), bw.jit(bw.vmap(function))):
        np.testing.assert_allclose(mapped(X, given), expected, rtol=1e-14)
    shared = np.stack([function(X[1].copy(), number) for number in numbers])
    np.testing.assert_allclose(bw.vmap(function, (None, 0))(X[1], given), shared, rtol=1e-14)


@pytest.mark.parametrize("case", [case for case in CASES if case != "a test of two parts"])
def test_gradients(case: str) -> None:
    function, numbers = CASES[case]
    gradient = bw.grad(lambda x, number: np.sum(function(x, number) ** 2))
    expected = np.stack([gradient(x, number) for x, number in zip(X, numbers, strict=True)])
    np.testing.assert_allclose(bw.vmap(gradient)(X, np.array(numbers)), expected, rtol=1e-12)


def test_what_is_taken_raises() -> None:
    with pytest.raises(IndexError, match="out of bounds"):
        bw.vmap(sum_of_first)(X, np.array([2, 5]))
    with pytest.raises(ValueError, match="negative"):
        bw.vmap(checked_where_asked)(-X, np.array([9, 0]))
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        bw.vmap(inverse_where_asked)(0 * X, np.array([0, 1]))


def test_sizes_that_elements_say_are_refused() -> None:
    with pytest.raises(bw.errors.TracerIndexError, match="as a size"):
        bw.vmap(lambda x, n: np.zeros(n) + x[0])(X, np.array([2, 3]))


def test_inner_transforms_of_numbers_that_data_decide() -> None:
    """An integer that a trace gets from the one around it, where it is data, ends a loop as data do."""
    def outer(x: Any, numbers: Any) -> Any:
        return bw.grad(while_of_data)(x, numbers[0]) + bw.vmap(sum_of_first, (None, 0))(x, numbers)[0]
    numbers = np.array([3, 1])
    np.testing.assert_allclose(bw.jit(outer)(X[0], numbers), bw.grad(while_of_data)(X[0], 3) + sum_of_first(X[0], 3), rtol=1e-14)
