"""Variables that are a number or an array, as data decide: on one side of a branch, in some iterations of a loop."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerError
from bwcompiler.frontend.tracing.trace import trace

X = np.array([0.7, -0.4, 1.3, 0.2, -1.1, 0.9, 0.35, 1.7, -0.6, 0.45, 0.15, -0.25])


def bisected(x):
    scales, total = np.ones((12, 1)), 0.0
    for i in range(8):
        low, high = -np.inf, np.inf
        error = np.exp(-scales[i]) - 0.3 * abs(x[i])
        for _ in range(9):
            if error > 0:
                low = scales[i].copy()
                if high == np.inf or high == -np.inf:
                    scales[i] = scales[i] * 2.0
                else:
                    scales[i] = (scales[i] + high) / 2.0
            else:
                high = scales[i].copy()
                if low == np.inf or low == -np.inf:
                    scales[i] = scales[i] / 2.0
                else:
                    scales[i] = (scales[i] + low) / 2.0
            error = np.exp(-scales[i]) - 0.3 * abs(x[i])
        total += x[i] * np.sum(scales[i]) + np.maximum(low, 0.0).sum()
    return total


def forces(x):
    total = 0.0
    for i in range(12):
        force = 0.0
        for k in range(12):
            if abs(x[k] - x[i]) < 0.52 and i != k:
                force = force + (x[k] - x[i]) * np.array([1.0, x[k], 2.0])
        total = total + np.sum(force) * np.max(force) + 0.1 * np.sum(np.exp(force))
    return total


def in_place(x):
    force, before = 0.0, 0.0
    for k in range(4):
        before = force
        if x[k] > 0.0:
            force += x[k] * x
    return np.sum(force * x) + np.sum(before)


def another_name(x):
    ones = np.ones(12)
    y = 0.0
    if x[2] > 0.0:
        y = ones
    y += x                                         # the array, where it is that
    return np.sum(ones * x) + np.sum(y ** 2)


def returned(x):
    def above(k):
        if x[k] > 0.0:
            return x * k, 1.0
        return 0.5, 2.0

    total = 0.0
    for k in range(12):
        value, weight = above(k)
        total += weight * np.sum(value)
    return total


def of_other_shapes(x):
    def found(v):
        if x[0] > 0.0:
            return v * x[1]
        return 0.5

    return np.sum(found(x)) + np.sum(found(x[:3])) + np.sum(found(x[0])) * np.ndim(found(x[0]) + x[1] + np.zeros(2))


def until(x):
    y, count = 0.0, 0
    while np.sum(y) < x[2]:
        y = y + x[:3]
        count += 1
    return np.sum(y) + count


@pytest.mark.parametrize("function", [bisected, forces, in_place, another_name, returned, of_other_shapes, until], ids=lambda f: f.__name__)
@pytest.mark.parametrize("x", [X, X[::-1].copy()], ids=["forwards", "backwards"])
def test_is_what_python_gives(function, x):
    value, gradient = bw.value_and_grad(function)(x)
    np.testing.assert_allclose(value, function(x), rtol=1e-12)
    slope = gradient @ np.cos(np.arange(12.0))
    steps = [function(x + h * np.cos(np.arange(12.0))) for h in (1e-6, -1e-6)]
    np.testing.assert_allclose(slope, (steps[0] - steps[1]) / 2e-6, rtol=1e-6)


def test_is_no_loop_of_its_own():
    assert any(value.op.kind == "region" for value in trace(forces, (X,)).graph.body)


def test_is_returned_as_what_it_is():
    def either(x):
        return x * 2.0 if x[0] > 0.0 else 1.0

    for x in (X, -X):
        found = bw.jit(either)(x)
        assert np.shape(found) == np.shape(either(x))
        np.testing.assert_array_equal(found, either(x))


def test_what_cannot_be_had_is_refused():
    def stored(x):
        y = x * 2.0 if x[0] > 0.0 else 1.0
        y[0] = 3.0
        return np.sum(y)

    def handed_out(x):
        return x * 2.0 if x[0] > 0.0 else 1.0

    with pytest.raises(TracerError, match="a number or an array of shape .12,.: its elements cannot be assigned to"):
        bw.jit(stored)(X)
    with pytest.raises(TracerError, match="a number or an array of shape"):
        bw.compile(handed_out, X)


# ----- arrays with other names
def kept_or_zero(x):
    y = x * 1.0
    b = y
    for k in range(12):
        if x[0] > 0.5 + k:
            b = 0.0
    y[0] += 1.0
    return np.sum(b * 2.0) + np.sum(y)


def kept_in_a_list(x):
    y = x * 1.0
    b = [y] * 4
    for k in range(12):
        b[k % 3] = 0.0
    y[0] += 1.0
    return sum([np.sum(v * v) for v in b]) + np.sum(y)


@pytest.mark.parametrize("program", [kept_or_zero, kept_in_a_list])
def test_what_may_still_be_the_array_from_before_sees_what_is_written_to_it(program):
    for x in (np.array([0.3, 0.5, 0.7]), np.array([0.8, 0.5, 0.7])):
        np.testing.assert_allclose(bw.jit(program)(x), program(x), rtol=1e-15)
