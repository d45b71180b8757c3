"""What loops do that only Python knows, with objects, lists and generators: they are unrolled, and it is told why."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from bwcompiler.frontend.tracing.trace import trace
from tests.unit.frontend.comparing import as_python

X = np.array([0.7, -0.4, 1.3, 0.2, -1.1, 0.9, 0.35, 1.7, -0.6, 0.45, 0.15, -0.25])


@dataclass
class State:
    x: float
    v: float = 0.0
    log: dict = field(default_factory=dict)


def drawing(x):
    generator = np.random.default_rng(0)
    n, total = 0, 0.0
    while generator.random() < 0.9 and n < 40:
        total = total + x[n % 12]
        n += 1
    return total + n


def list_that_decides(x):
    waiting, total, n = [x[0]], 0.0, 0
    while waiting and n < 30:
        total = total + waiting[-1] * x[n % 12]
        n += 1
        if n < 20:
            waiting.append(total)
        else:
            waiting = []
    return total + n


def read_as_a_whole(x):
    kept, means = [], []
    for k in range(10):
        kept.append(x[k])
        means.append(sorted(kept)[0])
    return sum(means)


def asked_for_its_truth(x):
    kept = []
    total = 0.0
    for k in range(10):
        if kept:
            total = total + kept[0] * x[k]
        kept.append(x[k])
    return total


def iterated(x):
    kept = []
    total = 0.0
    for k in range(10):
        for v in kept:
            total += v * x[k]
        kept.append(x[k])
    return total


def longer_queue(x):
    queue = [x[0], x[1]]
    for k in range(10):
        queue.append(x[k] * queue.pop(0))
        queue.append(x[k])
    return sum(queue)


def objects_made_and_kept(x):
    particles = []
    for k in range(10):
        particles.append(State(x[k], k))
    return sum(p.x * p.v for p in particles)


class Vector:
    def __init__(self, data):
        self.data = data

    def __iadd__(self, other):
        self.data = self.data + other
        return self


def in_place_operators(x):
    v = Vector(x[:3])
    state = State(v)
    for k in range(10):
        v += x[k]
        state.x += 1.0
    return np.sum(v.data)


def caught_in_the_loop(x):
    total = 0.0
    values = [x, x[:3], x]
    for k in range(9):
        try:
            total += np.sum(values[k % 3] * np.ones(12))
        except ValueError:
            total -= 1.0
    return total


def shrinking(x):
    total = 0.0
    while len(x) > 1:
        x = x[1:] * x[:-1]
        total += np.sum(x)
    return total


def generated(x):
    def values():
        state = 1.0
        for k in range(12):
            state = state * x[k] + 1.0
            yield state

    return sum(values()) + sum(v * v for v in values())


def powers(x, n=6):
    return x if n == 0 else x * powers(x, n - 1) + 1.0


def recursive(x):
    total = 0.0
    for k in range(12):
        total += powers(x[k], 3)
    return total + np.sum(powers(x))


UNROLLED = [drawing, list_that_decides, read_as_a_whole, asked_for_its_truth, iterated, longer_queue, objects_made_and_kept,
            in_place_operators, caught_in_the_loop, shrinking, generated, recursive]


@pytest.mark.parametrize("program", UNROLLED, ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, X)


@pytest.mark.parametrize("program", [program for program in UNROLLED if program not in (shrinking, generated, recursive, drawing, list_that_decides)],
                         ids=lambda program: program.__name__)
def test_reasons_are_given(program):
    assert trace(program, (X,)).notes
