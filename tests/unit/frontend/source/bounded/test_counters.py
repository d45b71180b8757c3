"""Counters, endless iterators, chains of comparisons and texts of numbers in captured loops; operators in place of the users' own classes; setters."""

import itertools

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerError
from bwcompiler.frontend.tracing.trace import trace
from tests.unit.frontend.comparing import as_python

X = np.arange(12.0)


def counted(x):
    n, m = 0, 50
    for _ in x:
        n += 1
        m -= 2
    return np.zeros(n) + x, f"{n}".isdigit() * 2.0 + m


def until(x):
    for k in itertools.count(3, 2):
        x = x * 0.5 + 0.0 * k
        if x[1] < 1e-3:
            break
    return x, k


def numbered(x):
    for k, v in zip(itertools.count(), x, strict=False):
        x = x * 0.5 + k * v
    return x


def by_text(x):
    total = 0.0
    for k in range(12):
        if f"{k}" == "3" or str(k) in ("5", "7"):
            total = total + x[k]
    return total


def chained(x):
    total = 0.0
    for k in range(9):
        if x[k] < x[k + 1] * 0.99 < x[k + 2] <= x[-1] - x[0]:
            total = total + x[k]
    return total * (1.0 if x[0] < x[1] < x[2] else 2.0)


def chained_calls(x):
    total = 0.0
    for k in range(9):
        if x[k] < np.sin(x[k + 1]) + 0.3 < np.sum(x[k:]) - len(x[x > 1.0]) <= np.max(x) + 9.0:
            total = total + x[k]
        elif 0 < np.exp(x[k]) < 1 == 1.0:
            total = total - 0.5 * x[k]
    assert len(x[x > 90]) == len(x[x < -90]) == 0, "far away"
    return total * (1.0 if 0 < np.min(x) < 1 else 2.0)


def chained_calls_once(x):
    taken, seen = [x[0], x[1], x[2]], []

    def noted(v):
        seen.append(v)
        return v

    inside = noted(2.0) < noted(x[3]) < noted(0.0)             # in this order
    total = x[1] if x[0] - 1 < taken.pop(0) < x[0] + 1 else x[2]
    return total * len(taken) + (5.0 if inside else 1.0) * len(seen) + seen[0] * seen[1]


def enumerated(x):
    total = 0.0
    for (i, j), value in np.ndenumerate(x.reshape(3, 4)):
        total = total + (i - 2 * j) * value ** 2
    return total + sum(k * value for (k,), value in np.ndenumerate(x[:3]))


def paired(x):
    total = 0.0
    for _ in range(10):
        for i, j in itertools.combinations(range(4), 2):
            total = total + x[i] * x[j]
    return total


@pytest.mark.parametrize("function", [counted, until, numbered, by_text, chained, chained_calls, chained_calls_once, enumerated, paired])
def test_values(function):
    for one, other in zip(bw.tree.leaves(bw.jit(function)(X)), bw.tree.leaves(function(X)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)


@pytest.mark.parametrize("function", [counted, until, numbered, chained, chained_calls, paired])
def test_loops_with_these_are_captured(function):
    assert not trace(function, (X,)).notes


def test_an_endless_loop_that_cannot_be_recorded_raises():
    def endless(x):
        shapes = []
        for _k in itertools.count():
            shapes.insert(0, object())
            x = x * 0.5
            if x[1] < 1e-3:
                break
        return x

    with pytest.raises(TracerError, match="a list has 2 items after one side of it, and 1 after the other"):
        bw.jit(endless)(X)


@pytest.mark.parametrize("function", [
    lambda x: x * (2.0 if f"{x[0]:.1f}" == "0.0" else 1.0), lambda x: x * {"0.0": 2.0}[f"{x[0]}"],
    lambda x: x if str(x[0]) in ("0.0", "1.0") else -x])
def test_texts_of_traced_numbers_are_not_compared(function):
    with pytest.raises(TracerError, match="a text that a traced value stands in"):
        bw.jit(function)(X)


class Vector:
    __slots__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __iadd__(self, other):
        if self.x > 3.0:
            self.x -= 1.0
        self.x += other.x
        self.y += other.y
        return self


class Level:
    def __init__(self, level):
        self._level = level

    @property
    def level(self):
        return self._level

    @level.setter
    def level(self, value):
        self._level = np.maximum(value, 0.5)


def moved(x):
    place = Vector(x[1], x[2])
    for k in range(20):
        place += Vector(0.5, x[k % 3])
    return place.x + place.y


def refilled(x):
    shop, cost = Level(x[4]), 0.0
    for k in range(12):
        shop.level -= x[k] * 0.2
        if shop.level < 1.0:
            shop.level += 3.0
            cost += 1.0
    return shop.level + cost


@pytest.mark.parametrize("function", [moved, refilled])
def test_operators_in_place_and_setters_of_the_users_own_classes(function):
    np.testing.assert_allclose(bw.jit(function)(X), function(X), rtol=1e-14)
    assert len(trace(function, (X,)).loops) == 1


def _sums(x, n):
    """Fibonacci's numbers."""
    a, b = 1, 1
    for _ in range(n):
        a, b = b, a + b
    return x[0] * b


def _sizes(x):
    """Sets that are joined in an order that data decide."""
    size, total = [1] * 8, 0.0
    for k in range(30):
        i, j = int(np.argmax(np.sin(k * x))), int(np.argmin(np.cos(k * x)))
        if i != j:
            size[i] += size[j] % 5
            total += x[i] * size[i]
    return total


def test_sums_of_integers_in_loops_of_few_iterations():
    x = np.array([0.7, 0.3, 1.1])
    assert "unrolled" not in bw.jit(_sums).explain(x, 30)
    for n in (30, 60, 100):                        # of 64 bits, and of more
        np.testing.assert_allclose(bw.jit(_sums)(x, n), _sums(x, n), rtol=1e-15)
    as_python(_sizes, np.sqrt(np.arange(8.0) + 0.3) / 3)


def test_floats_that_powers_of_a_counter_multiply_are_no_integers():
    def averages(x):
        t, mean = 0, np.zeros(3)
        for _ in range(12):
            for k in range(10):
                t += 1
                mean = 0.9 * mean + x * k
                x = x - 0.01 * mean / (1 - 0.9 ** t)
        return np.sum(x) + t

    x = np.array([0.7, 0.3, 1.1])
    np.testing.assert_allclose(bw.jit(averages)(x), averages(x), rtol=1e-12)
    assert "unrolled" not in bw.jit(averages).explain(x)


def test_a_loop_whose_test_is_known_is_recorded_from_its_second_iteration_on():
    """The type of `gain`, which is asked for, is Python's before the first one."""
    def relaxed(x):
        gain, t, n = 0.5, x, 1
        while n < 60:
            n += 1
            t = t + 0.01 * gain * np.sin(t)
            gain = gain * 0.9 if isinstance(gain, np.float64) else np.sin(t)
        return t + gain + n

    for x in (0.3, 1.7):
        value, slope = bw.value_and_grad(relaxed)(x)
        assert value == pytest.approx(relaxed(x), rel=1e-14)
        assert slope == pytest.approx((relaxed(x + 1e-6) - relaxed(x - 1e-6)) / 2e-6, rel=1e-7)
    assert len(trace(relaxed, (0.3,)).loops) == 1
