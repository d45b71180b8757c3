"""Objects and containers that the iterations of a loop make, and of which the last one is read after it."""

from collections import namedtuple

import numpy as np
import pytest

import bwcompiler as bw

GIVEN = np.array([0.3, 1.4])
Pair = namedtuple("Pair", "point change")


class Trial:
    def __init__(self, point, size):
        self.point, self.size = point, size


def until_it_settles(x):
    for number in range(100):
        new = np.sin(x) + 0.1
        pair, trial = Pair(new, (new - x).sum()), Trial(new, number)
        error = np.abs(new - x).max()
        x = new
        if error < 1e-2:
            break
    return pair.point.sum() * 2 + pair.change + trial.size * trial.point[0]


def nested(x):
    for _ in range(12):
        x = np.sin(x) + 0.1
        trial = Trial(Trial(x * 2, 3.0), (x[0], "text", [x[1], 2]))
    return trial.point.point.sum() * trial.point.size + trial.size[0] + trial.size[2][0] * trial.size[2][1] + len(trial.size[1])


def other_names_of_arrays(x):
    for _ in range(12):
        x = np.sin(x) + 0.1
        y = x * 2
        trial, other = Trial(y, x), Trial(x[0], 1.0)
    y[0], x[1] = 7.0, 5.0
    return trial.point.sum() + trial.size.sum() * other.point


def of_an_object_from_before(x):
    before = Trial(x * 3, 2.0)
    for _ in range(12):
        x = np.sin(x) + 0.1
        trial = Trial(before, x[0])
    trial.point.size = 8.0
    return before.size * trial.size + trial.point.point.sum()


def in_a_loop(x):
    total = 0.0
    for _ in range(10):
        for _ in range(12):
            x = np.sin(x) + 0.1
            trial = Trial(x * 2, x[0])
        total = total + trial.size * trial.point.sum()
    return total


def with_texts_that_data_choose(x):
    for _ in range(12):
        x = np.sin(x) + 0.1
        trial, label = (Trial(x * 2, "up"), "large") if x[0] > 0.75 else (Trial(x * 3, "down"), "small")
    return trial.point.sum() * (2 if trial.size == "down" else 1) + (5.0 if label == "large" else 6.0)


def changed_after(x):
    for i in range(12):
        trial = Trial(x * i, x[0])
        same, x = trial, np.sin(x) + 0.1
    trial.size = trial.size * 2
    trial.point[0] = 5.0
    return trial.size + same.size + same.point.sum()


def in_a_list_too(x):
    trials = []
    for _ in range(12):
        x = np.sin(x) + 0.1
        trial = Trial(x * 2, x[0])
        trials.append(trial)
    trial.size = 9.0
    return trials[-1].size + sum(one.point[0] for one in trials)


def with_itself(x):
    for _ in range(12):
        x = np.sin(x) + 0.1
        trial = Trial(x * 2, x[0])
        trial.me = trial
    return trial.me.me.size + trial.point.sum()


def views_that_move(x):
    y = np.zeros(12)
    for i in range(12):
        y[i] = np.sin(x[0] * i)
        trial = Trial(y[i:i + 1], y[:i] * 2)
    return trial.point[0] + trial.size.sum() * x[1]


RECORDED = [until_it_settles, nested, other_names_of_arrays, of_an_object_from_before, in_a_loop, with_texts_that_data_choose]
UNROLLED = [changed_after, in_a_list_too, with_itself, views_that_move]


@pytest.mark.parametrize("program", [*RECORDED, *UNROLLED], ids=lambda program: program.__name__)
def test_as_python(program):
    derivative = bw.value_and_grad(program)
    value, gradient = derivative(GIVEN)
    np.testing.assert_allclose(value, program(GIVEN), rtol=1e-13)
    differences = [(program(GIVEN + step) - program(GIVEN - step)) / 2e-6 for step in 1e-6 * np.eye(2)]
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-7)
    assert ("is unrolled" in derivative.explain(GIVEN)) == (program in UNROLLED)
