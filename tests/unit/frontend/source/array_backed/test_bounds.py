"""Lists that grow in loops whose end is data: there is room for as many elements as the test of the loop allows, or a thousand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerError
from tests.unit.frontend.comparing import as_python, compare


def halved(x: Any) -> Any:
    kept = [x]
    while x > 1e-3:
        x = x * 0.5
        kept.append(x)
    return kept[-1], len(kept), sum(kept), max(kept), np.mean(kept), np.sum(np.array(kept) ** 2), kept[0], kept[2]


def newton(x: Any) -> Any:
    steps, z = [], x
    while True:
        step = (z**3 - x) / (3 * z**2)
        z = z - step
        steps.append(abs(step))
        if abs(step) < 1e-12:
            break
    return z, len(steps), steps[0]


def adaptive(x: Any) -> Any:
    """Heun's method with steps that are taken or not."""
    t, y, h = 0.0, np.array([x, 0.3]), 0.1
    times, states = [t], [y]
    while t < 2.0:
        h = min(h, 2.0 - t)
        slope = np.array([y[1], -np.sin(y[0])])
        other = y + h * slope
        error = np.max(np.abs(np.array([other[1], -np.sin(other[0])]) - slope)) * h / 2
        if error < 1e-2:
            y = y + h * (slope + np.array([other[1], -np.sin(other[0])])) / 2
            t = t + h
            times.append(t)
            states.append(y)
        h = h * min(2.0, max(0.3, 0.9 * np.sqrt(1e-2 / (error + 1e-30))))
    states, times = np.array(states), np.array(times)
    return states[-1], states[0, 1], np.sum(states[:, 0]), np.mean(times), times[-1], len(times)


def inside_of_a_loop(x: Any) -> Any:
    total = 0.0
    for k in range(10):
        kept, y = [], x + k
        while y > 1.0:
            y = y * 0.5
            kept.append(y)
        total = total + len(kept) + y
    return total


@pytest.mark.parametrize("function", [halved, newton, adaptive, inside_of_a_loop])
def test_values_and_gradients(function: Any) -> None:
    compare(function, 2.3)

    def number(x: Any) -> Any:
        found = function(x)
        return found[0].sum() + found[2] if isinstance(found, tuple) else found
    difference = (number(np.float64(2.3 + 1e-6)) - number(np.float64(2.3 - 1e-6))) / 2e-6
    np.testing.assert_allclose(bw.grad(number)(np.float64(2.3)), difference, rtol=1e-5)


def test_the_bound_that_the_test_gives_is_room_enough() -> None:
    def slow(x: Any, most: Any = 5000) -> Any:
        kept = [x]
        while x > 1e-100 and len(kept) < most:
            x = x * 0.9
            kept.append(x)
        return len(kept), kept[-1]

    count, last = bw.jit(slow)(1.0)
    assert (count, last) == slow(1.0) and count > 2000


def test_more_elements_than_there_is_room_for_raise() -> None:
    def endless(x: Any) -> Any:
        kept = []
        while x > 1e-300:
            x = x * 0.9
            kept.append(x)
        return len(kept)

    function = bw.jit(endless)
    assert function(1e-280) == endless(1e-280) < 1000
    with pytest.raises(TracerError, match=r"(?s)more than 1000 elements.*`while \.\.\. and len\(kept\) < 10000`"):
        function(1.0)


def test_as_much_room_as_the_loop_may_have_iterations() -> None:
    def neighbours(x: Any) -> Any:
        kept = []
        for k in np.where(np.diff(x) > 0.5)[0]:
            kept.append((k, 1 / (x[k + 1] - x[k])))
        return np.array(kept)[:, 1].sum()

    x = np.array([0.0, 1.0, 1.1, 2.0, 2.0, 4.0])
    assert bw.jit(neighbours)(x) == pytest.approx(neighbours(x))
    text = bw.jit(neighbours).as_text("forward", x)
    assert "[5,2]" in text and "1000" not in text


def test_results_of_unknown_length_are_refused_with_what_to_return() -> None:
    def whole(x: Any) -> Any:
        kept = [x]
        while x > 1e-3:
            x = x * 0.5
            kept.append(x)
        return np.array(kept)

    with pytest.raises(TracerError, match=r"(?s)a list that grew as data decided.*kept\[-1\]"):
        bw.compile(whole, 2.0)
    compiled = bw.jit(whole)
    for start in (2.0, 1e-4, 0.5):
        np.testing.assert_array_equal(compiled(start), whole(start))


@pytest.mark.parametrize("index", [0, 1, -1, -2, (-1, 1), (0, slice(1, None))])
def test_rows_of_selections(index: Any) -> None:
    x = np.arange(12.0).reshape(4, 3)
    mask = np.array([0.5, -1.0, 2.0, 3.0])
    function = lambda x, m: x[m > 0][index]
    np.testing.assert_array_equal(bw.jit(function)(x, mask), function(x, mask))
    with pytest.raises(IndexError):
        bw.jit(function)(x, mask - 9.0)
    np.testing.assert_array_equal(bw.jit(lambda x, m: x[m > 0][:, 1].sum())(x, mask), x[mask > 0][:, 1].sum())


# ----- ranges between bounds that are data, of a known number of elements
ELEMENTS = [(0, 2), (1, 3), (2, 0), (3, 1), (0, 1), (1, 2)] * 20


def _assembled(x, places):
    matrix = np.zeros((8, 8))
    for number, (i, j) in enumerate(ELEMENTS):
        at = places(i, j)
        matrix[np.ix_(at, at)] += np.outer(x, x) * (number + 1)
    return np.sum(matrix * matrix) + matrix[3, 4]


PLACES = {
    "r_": lambda i, j: np.r_[2 * i:2 * i + 2, 2 * j:2 * j + 2],
    "arange": lambda i, j: np.concatenate([np.arange(2 * i, 2 * i + 2), np.arange(2 * (j + 1) - 1, 2 * j - 1, -1)]),
    "range": lambda i, j: list(range(2 * i, 2 * i + 2)) + list(range(2 * j, 2 * j + 2)),
    "hstack": lambda i, j: np.hstack([range(2 * i, 2 * i + 2), range(2 * j, 2 * j + 4, 2)]) % 8,
}


@pytest.mark.parametrize("name", PLACES)
def test_places_of_blocks(name):
    def program(x):
        return _assembled(x, PLACES[name])

    as_python(program, np.array([0.3, 0.5, 0.7, 1.1]))
    assert "unrolled" not in bw.jit(program).explain(np.ones(4))


def test_loops_between_bounds_that_are_data():
    table = np.array(ELEMENTS)

    def program(x):
        total = 0.0
        for i, j in table:
            for k in range(2 * j + 4, 2 * j, -2):
                total = total + x[k] * i
            for k in range(i + 3, i):
                total = total + k
        return total

    as_python(program, np.linspace(0.3, 2.0, 12))
    assert "unrolled" not in bw.jit(program).explain(np.ones(12))


def test_ranges_of_data_that_are_results():
    n = np.array([5, 6])
    for program in (lambda n: np.arange(n[0], n[0] + 3), lambda n: np.arange(n[1], n[1] - 5, -2, dtype=np.float32),
                    lambda n: np.r_[n[0]:n[0] + 3, 1.5], lambda n: np.array(range(n[1], n[1] + 2)), lambda n: np.arange(n[0] + 3, n[0])):
        found, expected = bw.jit(program)(n), program(n)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def orbit(x: Any, step: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Numbers, arrays and matrices, of as many steps as data say."""
    t, y = 0.0, np.array([x, 0.3])
    numbers, states, products = [], [y], []
    while t < 1.0:
        y = y + step * np.array([y[1], -y[0]])
        t += step
        numbers.append(y[0])
        states.append(y)
        products.append(np.outer(y, np.array([1.0, 2.0, y[0]])))
    return numbers, states, products


def joined(x: Any, step: Any) -> tuple[Any, ...]:
    numbers, states, products = orbit(x, step)
    return (np.vstack(numbers), np.vstack(states), np.vstack(products), np.hstack(numbers), np.hstack(states), np.hstack(products),
            np.column_stack(numbers), np.column_stack(states), np.column_stack(products), np.stack(numbers), np.stack(states, axis=1),
            np.stack(products, axis=2), np.stack(products, -1), np.stack(products, 1), np.concatenate(states), np.concatenate(products),
            np.concatenate(products, axis=1), np.concatenate(products, axis=None), np.concatenate(products, -1), np.abs(states),
            np.maximum(numbers, 0.5), np.vstack([2 * state for state in states]))


def test_arrays_in_lists_are_joined() -> None:
    function, loss = bw.jit(joined), lambda x, step: sum([np.sum(part ** 3) for part in joined(x, step)])
    for x, step in ((0.7, 0.2), (0.4, 0.13), (0.7, 0.2)):
        for found, expected in zip(function(x, step), joined(x, step), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-13)
        near = loss(x + 1e-6, step) - loss(x - 1e-6, step)
        assert bw.grad(loss)(x, step) == pytest.approx(near / 2e-6, rel=1e-6)
