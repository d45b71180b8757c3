"""Lists of numbers that grow in a loop which also reads them as a whole."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend import trace


def extremes(x):
    log, total = [0.0], 0.0
    for k in range(30):
        log.append(np.sin(x * k))
        total += max(log) - 2 * min(log) + sum(log)
    return total


def left_early(x):
    log, total = [], 0.0
    for k in range(30):
        log.append(np.sin(x * k))
        total += np.mean(log) + np.array(log)[-1] + np.std(log)
        if total > 9.0:
            break
    return total + len(log) * x


def perhaps_empty(x):
    log, total = [], 0.0
    for k in range(30):
        total += max(log) if log else x
        if k % 3:
            total -= 0.5 * x
        log.append(np.sin(x * k))
    return total


def until(x):
    log, w = [x], 0.5 * x
    while w < 25.0:
        w = w + max(log) + np.median(log)
        log.append(np.sin(w) + 1.2)
    return w + sum(log)


@pytest.mark.parametrize("function", [extremes, left_early, perhaps_empty, until])
def test_read_as_a_whole(function):
    gradient = bw.value_and_grad(function)
    for x in (1.1, 0.37):
        value, slope = gradient(x)
        assert abs(value - function(x)) < 1e-10
        assert abs(slope - (function(x + 1e-6) - function(x - 1e-6)) / 2e-6) < 1e-5 * max(1.0, abs(slope))


def test_recorded():
    assert not trace(extremes, (1.1,)).notes


def test_none_of_an_empty_list():
    def first(x):
        log = []
        for k in range(12):
            x = x + max(log)
            log.append(x * k)
        return x
    with pytest.raises(ValueError, match="empty"):
        bw.grad(first)(1.1)


def test_the_first_of_equals():
    def tied(x, y):
        log, total = [x], 0.0
        for _ in range(12):
            log.append(y * 1.0)
            total += max(log)
        return total
    assert [float(slope) for slope in bw.grad(tied, argnums=(0, 1))(2.0, 2.0)] == [12.0, 0.0]
