"""Lists that grow in front in a loop, `path.insert(0, x)`: as those that grow at their end, read from the other side."""

import numpy as np
import pytest

from bwcompiler.frontend.tracing.trace import trace
from tests.unit.frontend.comparing import as_python

X = np.array([0.31, 0.52, 0.73])


def smoother(x):
    filtered = [x * np.cos(k) for k in range(30)]
    smoothed = [filtered[-1]]
    for k in range(28, -1, -1):
        smoothed.insert(0, filtered[k] + 0.5 * (smoothed[0] - filtered[k + 1] * 0.3))
    return sum((k + 1) * np.sum(one ** 2) for k, one in enumerate(smoothed))


def numbers(x):
    made, value = [], x[0]
    for k in range(25):
        value = 0.9 * value + x[k % 3]
        made.insert(0, value)
    return np.array(made) @ np.arange(25.0) + made[3] * made[-2]


def nested(x):
    made = [x[0]]
    for i in range(10):
        for j in range(9):
            made.insert(0, made[0] * 0.95 + x[j % 3] * 0.1 * i)
    return sum(k * v for k, v in enumerate(made)) * 1e-2


def from_before(x):
    made, total = [x[0], x[1], x[2]], 0.0
    for k in range(12):
        made.insert(0, made[0] * 0.95 + x[1] * k)
        first, second = made[:2]
        total = total + made[-1] * made[-2] + second * 0.1 - first * 0.01
    return total * made[5] + made[-3]


def as_a_whole(x):
    made, total = [x[0]], 0.0
    for _ in range(10):
        made.insert(0, made[0] * 0.95 + x[1])
        total = total + np.mean(made) + np.array(made)[0]
    return total


def first_few(x):
    made, total = [x[0]], 0.0
    for _ in range(12):
        made.insert(0, made[0] * 0.95 + x[1])
        total = total + sum(made[:5]) * len(made[:3])
    return total


def at_places_that_move(x):
    made, total = [x[0]], 0.0
    for i in range(12):
        made.insert(0, made[0] * 0.95 + x[1])
        for j in range(i + 1):
            total = total + made[j] * (j + 1)
    return total


def changed(x):
    made = [x[0]]
    for _ in range(12):
        made.insert(0, made[0] * 0.95 + x[1])
        made[0] *= 0.9
    return sum(k * v for k, v in enumerate(made))


def window(x):
    last, total = [x[0], x[1], x[2]], 0.0
    for _ in range(20):
        last.insert(0, 0.5 * last[0] + 0.2 * last[-1])
        last.pop()
        total = total + last[1]
    return total * last[0]


def at_both_ends(x):
    made = [x[0]]
    for _ in range(12):
        made.insert(0, made[0] * 0.9 + x[1])
        made.append(made[-1] * 0.8 - x[2])
    return sum(i * v for i, v in enumerate(made))


def as_data_say(x):
    made = [x[0]]
    for k in range(12):
        if x[1] * k > 1.1:
            made.insert(0, made[0] * 0.95 + x[1])
    return sum(k * v for k, v in enumerate(made))


def left_early(x):
    made = [x[0]]
    for _ in range(40):
        made.insert(0, made[0] * 0.9 + x[1])
        if made[0] > 3:
            break
    return sum(k * v for k, v in enumerate(made)) + len(made)


IN_FRONT = [smoother, numbers, nested, from_before, as_a_whole, at_places_that_move, changed]


@pytest.mark.parametrize("program", [*IN_FRONT, window, at_both_ends, as_data_say, left_early, first_few], ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, X, X[::-1].copy(), X * 0.8)


@pytest.mark.parametrize("program", IN_FRONT, ids=lambda program: program.__name__)
def test_are_loops(program):
    found = trace(program, (X,))
    assert found.loops
    assert not found.notes
