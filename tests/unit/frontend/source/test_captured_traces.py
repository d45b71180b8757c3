"""How often the body of a loop is traced: first calls take as long."""

import numpy as np
import pytest

from bwcompiler.frontend.source.bodies import capture
from bwcompiler.frontend.tracing.trace import trace


def arrays_until_a_time(x):
    t, y = 0, x
    while t < 5.0:
        y = y + 0.1 * np.sin(y)
        t += 0.1
    return np.sum(y)


def tuples_until_a_time(x):
    t, state = 0.0, (x, 0)
    while t < 5.0:
        state = (state[0] * 0.9, state[1] + 1)
        t += 0.1
    return np.sum(state[0]) * state[1]


class Clock:
    def __init__(self, y):
        self.t, self.y = 0, y


def places_until_a_time(x):
    clock = Clock(x)
    while clock.t < 5.0:
        clock.y = clock.y + 0.1 * np.sin(clock.y)
        clock.t += 0.1
    return np.sum(clock.y)


def counted(x):
    y, total = x, 0
    for _ in range(50):
        y = y + 0.1 * np.sin(y)
        total += y[0]
    return np.sum(y) + total


def until_data_says_so(x):
    y, t = x, 0
    while y[0] < 5.0:
        y = y + 0.1
        t += 0.1
    return np.sum(y) + t


@pytest.mark.parametrize("program, most", [(arrays_until_a_time, 3), (tuples_until_a_time, 4), (places_until_a_time, 4), (counted, 2),
                                           (until_data_says_so, 3)], ids=lambda one: getattr(one, "__name__", ""))
def test_bodies_are_traced_a_few_times(program, most, monkeypatch) -> None:
    bodies = []

    def counting(fun, *args, **kwargs):
        if getattr(fun, "__name__", "") == "_iteration":
            bodies.append(fun)
        return traced(fun, *args, **kwargs)

    traced = capture.trace_body
    monkeypatch.setattr(capture, "trace_body", counting)
    assert not trace(program, (np.ones(3),)).notes
    assert len(bodies) <= most
