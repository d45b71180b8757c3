"""Arrays that grow or shrink by as much in every iteration of a loop: native loops, that carry what has room for the largest."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend.tracing.trace import trace
from tests.unit.frontend.comparing import as_python

X = np.array([0.7, 0.4, 1.3, 0.2, 1.1, 0.9, 0.35, 1.7, 0.6, 0.45, 0.15, 0.25])


def binomial_tree(x):
    values = np.maximum(1.0 - x[0] * 1.1 ** np.arange(20, -1, -1) * 0.9 ** np.arange(0, 21), 0)
    for i in range(19, -1, -1):
        spot = x[0] * 1.1 ** np.arange(i, -1, -1) * 0.9 ** np.arange(0, i + 1)
        values = 0.99 * (x[1] * values[:-1] + (1 - x[1]) * values[1:])
        values = np.maximum(values, 1.0 - spot)
    return values[0]


def appended_numbers(x):
    path = np.array([1.0, 2.0])
    for k in range(10):
        path = np.append(path, path[-1] * x[k] + path[-2])
    return path[-1] + path[3] + np.sum(path)


def appended_rows(x):
    rows = np.empty((0, 2))
    for k in range(11):
        rows = np.vstack([rows, [x[k], x[k] * x[k + 1]]])
    more = np.array([[1.0, 2.0]])
    for k in range(11):
        more = np.concatenate([more, more[-1:] * x[k]])
    return np.sum(rows * rows) + np.sum(more[:, 0]) * more[3, 1]


def put_in_front(x):
    values = np.array([1.0])
    for k in range(11):
        values = np.concatenate(([x[k]], values)) * 0.5
    return values @ np.arange(12.0)


def pyramid(x):
    image, total = np.outer(x, x), 0.0
    for _ in range(10):
        image = 0.25 * (image[:-1, :-1] + image[1:, :-1] + image[:-1, 1:] + image[1:, 1:])
        total += np.sum(image)
    return total * np.sum(image)


def de_casteljau(x):
    points = x * 1.0
    while len(points) > 1:
        points = 0.7 * points[:-1] + 0.3 * points[1:]
    return points[0]


def neville(x):
    p = x * 1.0
    for k in range(1, len(x)):
        p = (p[1:] * k - p[:-1]) / (k + 1)
    return p[0]


def one_grows_one_shrinks(x):
    a, b = x * 1.0, np.zeros(0)
    for k in range(10):
        b = np.append(b, a[0])
        a = a[1:] * x[k]
    return b @ b + np.sum(a)


def integers_first(x):
    row, values = np.array([1]), np.arange(12)
    for k in range(10):
        row = np.concatenate(([1], row[1:] + row[:-1], [1]))
        values = (values[1:] + values[:-1]) * x[k]
    return np.sum(row * x[0]) + values[0]


def written_to(x):
    values = np.array([1.0])
    for k in range(11):
        before = values
        values = np.append(values, x[k])
        values[0] = before[-1]
    return np.sum(values * values)


NATIVE = [binomial_tree, appended_numbers, appended_rows, put_in_front, pyramid, de_casteljau, neville, one_grows_one_shrinks,
          integers_first, written_to]


def used_after_the_loop(x):
    values = before = x * 1.0
    for _ in range(8):
        before = values
        values = values[1:] + values[:-1]
    return np.sum(values) * np.sum(before)


def doubled(x):
    for _ in range(9):
        x = np.concatenate([x, x[:2]]) if len(x) % 2 else np.concatenate([x, x[:1]])
    return np.sum(x * np.arange(len(x)))


def assigned_to(x):
    values = x * 1.0
    for k in range(9):
        values[0] = x[k]
        values = values[1:]
        values *= 0.9
    return np.sum(values)


@pytest.mark.parametrize("program", [*NATIVE, used_after_the_loop, doubled, assigned_to], ids=lambda program: program.__name__)
def test_as_numpy(program):
    as_python(program, X, X[::-1] + 0.1)


@pytest.mark.parametrize("program", NATIVE, ids=lambda program: program.__name__)
def test_loops_are_native(program):
    assert not trace(program, (X,)).notes


def test_second_derivatives_and_tangents():
    def f(x):
        return appended_numbers(x) + neville(x * x)

    h, direction = 1e-5, np.cos(np.arange(12.0))
    gradient = bw.grad(f)
    np.testing.assert_allclose(bw.hessian(f)(X) @ direction, (gradient(X + h * direction) - gradient(X - h * direction)) / (2 * h), rtol=1e-5,
                               atol=1e-6)
    assert bw.jvp(f, (X,), (direction,))[1] == pytest.approx(gradient(X) @ direction, rel=1e-12)


def _steps_of_two(x):
    return sum([np.sum(x[np.arange(i, i + 8, 2)] * (i + 1)) for i in range(12)])


def _rounded_up(x):
    total = 0.0
    for i in range(9):
        total = total + np.sum(x[np.arange(2 * i, 2 * i + 4, 3)]) * i
    return total


def _backwards(x):
    total = 0.0
    for i in range(10):
        total = total + np.dot(x[np.arange(i + 9, i, -3)], np.arange(3.0))
    return total


def _growing(x):
    total = 0.0
    for i in range(10):
        total = total + np.sum(np.arange(0, 3 * i, 3) * x[i])
    return total


def _nothing(x):
    total = x[0]
    for i in range(10):
        total = total + np.sum(x[np.arange(i + 2, i, 2)]) * i
    return total


def _of_floats(x):
    values = np.maximum(x[:20] * x[20], 0.1)
    for step in range(18, -1, -1):                 # a lattice of prices, from its end
        prices = (1.5 + x[21]) ** np.arange(step, -step - 1, -2.0)
        values = np.maximum(0.5 * (values[:-1] + values[1:]), prices * x[22])
    return values[0]


@pytest.mark.parametrize("program", [_steps_of_two, _rounded_up, _backwards, _growing, _nothing, _of_floats], ids=lambda program: program.__name__)
def test_arange_with_steps_between_indices(program) -> None:
    x = np.cos(np.arange(24.0))
    compiled, direction = bw.value_and_grad(program), np.sin(np.arange(24.0))
    value, gradient = compiled(x)
    np.testing.assert_allclose(value, program(x), rtol=1e-13)
    h = 1e-6 if program is _of_floats else 1.0     # the others are linear
    slope = (program(x + h * direction) - program(x - h * direction)) / (2 * h)
    np.testing.assert_allclose(gradient @ direction, slope, rtol=1e-11 if h == 1.0 else 1e-7, atol=1e-12)
    assert not trace(program, (x,)).notes


def _joined_places(x):
    total, matrix = 0.0, np.outer(x, x[:12])
    for i in range(12):
        others = np.r_[0:i, i + 1:12]
        columns = np.c_[i:i + 3, i + 1:i + 4]
        total = total + np.sin(matrix[i, others]) @ x[others] * i + np.sum(x[columns]) * x[i]
    return total


def _without_one(x):
    total, matrix = 0.0, np.outer(x, x[:12])
    for i in range(12):
        total = total + np.sin(np.delete(matrix[i], i)).sum() + np.linalg.det(np.delete(np.delete(matrix[:3, :3], i // 4, 0), -1, 1))
    return total


def _without_the_least(x):
    for _ in range(12):
        x = np.delete(x * np.sin(x + 1), np.argmin(x))
    return np.sum(x ** 2)


@pytest.mark.parametrize("program", [_joined_places, _without_one, _without_the_least], ids=lambda program: program.__name__)
def test_all_places_but_one(program) -> None:
    x = np.cos(np.arange(24.0))
    compiled, direction, h = bw.value_and_grad(program), np.sin(np.arange(24.0)), 1e-6
    value, gradient = compiled(x)
    np.testing.assert_allclose(value, program(x), rtol=1e-13)
    slope = (program(x + h * direction) - program(x - h * direction)) / (2 * h)
    np.testing.assert_allclose(gradient @ direction, slope, rtol=1e-6, atol=1e-9)
    if program is not _without_the_least:
        assert not trace(program, (x,)).notes


def test_deleting_at_a_place_that_is_not_there() -> None:
    matrix = np.arange(6.0).reshape(2, 3)
    compiled = bw.jit(lambda x, k: (np.delete(x, k), np.delete(x, k, 1)))
    for k in (0, 2, -1, -3):
        for one, other in zip(compiled(matrix, k), (np.delete(matrix, k), np.delete(matrix, k, 1)), strict=True):
            np.testing.assert_array_equal(one, other)
    with pytest.raises(IndexError):
        compiled(matrix, 3)
