"""Variables of functions around those that loops call (`nonlocal`), properties, and tests of loops that change something: in native loops."""

import numpy as np
import pytest

from bwcompiler.frontend.tracing.trace import trace
from tests.unit.frontend.comparing import as_python

X = np.array([0.7, -0.4, 1.3, 0.2, -1.1, 0.9, 0.35, 1.7, -0.6, 0.45, 0.15, -0.25])


class Checked:
    def __init__(self):
        self._value, self.changes = 0.0, 0

    @property
    def value(self):
        return self._value

    @value.setter
    def value(self, value):
        self._value = value
        self.changes += 1


def properties(x):
    checked = Checked()
    for k in range(10):
        checked.value = checked.value + x[k]
    return checked.value * checked.changes


class Controller:
    __slots__ = ("gain", "integral", "last")

    def __init__(self, gain):
        self.gain = gain
        self.integral = 0.0
        self.last = None

    def __call__(self, error, *, limit=1.0):
        change = 0.0 if self.last is None else error - self.last
        u = self.gain * error + 0.1 * self.integral + 0.3 * change
        if u > limit:
            u = limit
        else:
            self.integral += error
        self.last = error
        return u


def called_objects(x):
    control, position = Controller(x[0] + 1.0), 0.0
    for k in range(12):
        position = position + 0.2 * control(x[k] - position, limit=0.7)
    return position + control.integral


def a_counter_by_nonlocal(x):
    calls = 0

    def counted(v):
        nonlocal calls
        calls += 1
        return v * calls

    total = 0.0
    for k in range(10):
        total += counted(x[k])
    return total + calls


def best_by_nonlocal(x):
    best, where, tried = np.inf, -1, 0

    def attempt(k, v):
        nonlocal best, where, tried
        tried += 1
        if v < best:
            best, where = v, k

    for k in range(12):
        attempt(k, x[k] ** 2 + 0.1 * k)
    return best + where + tried


def nonlocal_in_branches(x):
    accepted, rejected = 0, 0.0

    def accept():
        nonlocal accepted
        accepted += 1

    def reject(v):
        nonlocal rejected
        rejected += v

    for v in x:
        if v > 0.33:
            accept()
        else:
            reject(v * v)
    if rejected > 0.5:
        reject(1.0)
    return accepted + rejected


def nonlocal_that_the_loop_binds_too(x):
    scale = 1.0

    def halve():
        nonlocal scale
        scale = scale * 0.5

    total = 0.0
    for v in x:
        scale = scale + v
        halve()
        total += scale * v
    return total + scale


def nonlocal_of_a_helper(x):
    def summed(v):
        calls, total = 0, 0.0

        def one(w):
            nonlocal calls, total
            calls += 1
            total += w * calls

        one(v)
        if v > 0:
            one(v * v)
        return total + calls

    total = 0.0
    for v in x:
        total += summed(v)
    return total


def closures_that_count(x):
    def counter(start):
        count = start

        def step(v):
            nonlocal count
            count = count + v
            return count
        return step

    outer, total = counter(x[0]), 0.0
    for v in x:
        inner = counter(1.0)
        total += inner(v) * inner(v) + outer(v)
    return total + outer(0.0)


def nonlocal_two_functions_in(x):
    count = 0

    def outer(v):
        def inner():
            nonlocal count
            count += 1
        inner()
        return v * count

    total = 0.0
    for v in x:
        total += outer(v)
    return total + count


class Halving:
    def __init__(self, x):
        self.x = x
        self.steps = 0

    def step(self):
        self.x = self.x * 0.5
        self.steps += 1
        return abs(self.x)


def a_test_that_steps(x):
    state, inside = Halving(x[0] * 30), 0
    while state.step() > 1e-2:
        inside += 1
    return state.x * 1000 + inside + state.steps


def a_test_that_counts(x):
    calls = 0

    def residual(v):
        nonlocal calls
        calls += 1
        return v * v - 2 - x[1]

    v = 1.0 + abs(x[0])
    while abs(residual(v)) > 1e-9:
        v = v - residual(v) / (2 * v)
    return v * calls


def a_test_that_assigns(x):
    log = np.zeros(3)

    def going(v):
        log[0] += 1.0
        log[1] = v
        return log[0] * 0.13 < v

    while going(abs(x[0])):
        log[2] += x[1]
    return np.sum(log * np.arange(1.0, 4.0))


CHANGING = [called_objects, a_counter_by_nonlocal, best_by_nonlocal, nonlocal_in_branches, nonlocal_that_the_loop_binds_too, nonlocal_of_a_helper,
            closures_that_count, nonlocal_two_functions_in, a_test_that_steps, a_test_that_counts, a_test_that_assigns, properties]


@pytest.mark.parametrize("program", CHANGING, ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, X)


@pytest.mark.parametrize("program", CHANGING, ids=lambda program: program.__name__)
def test_loops_are_native(program):
    assert not trace(program, (X,)).notes
