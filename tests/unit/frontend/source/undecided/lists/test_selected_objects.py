"""Objects of which data say which ones are in a list, and that are changed then: `alive = [p for p in particles if p.w > 0.2]`."""

from dataclasses import dataclass

import numpy as np
import pytest

from tests.unit.frontend.comparing import as_python

PLACES = (np.array([0.37, 0.61]), np.array([0.731, 0.42]), np.array([0.213, 0.93]))


class Particle:
    def __init__(self, w, v):
        self.w, self.v, self.hits = w, v, 0

    def damp(self, factor):
        self.v *= factor
        self.hits += 1


def particles(x):
    return [Particle(x[0] * (k + 1) % 1.0, x[1] + 0.1 * k) for k in range(5)]


def again_and_again(x):
    alive = everything = particles(x)
    for _ in range(3):
        alive = [p for p in alive if p.w > 0.2]
        for p in alive:
            p.w -= 0.15 * p.v
            p.damp(0.95)
    return sum(p.v * p.w + p.hits for p in everything) + len(alive)


def ranked(x):
    everything = particles(x)
    for _ in range(3):
        good = [p for p in everything if p.w > 0.3]
        if good:
            max(good, key=lambda p: p.v).v *= 0.7
        sorted(everything, key=lambda p: p.v)[0].damp(1.3)
    everything.sort(key=lambda p: -p.w)
    for rank, p in enumerate(everything[:3]):
        p.v += 0.1 * rank
    return sum(p.v * (k + 1) + p.hits for k, p in enumerate(everything))


def pairs(x):
    @dataclass
    class Body:
        w: float
        v: float
    bodies = [Body(x[0] * (k + 1) % 1.0, x[1] + k) for k in range(4)]
    for p, q in [(p, q) for i, p in enumerate(bodies) for q in bodies[i + 1:] if abs(p.w - q.w) < 0.4]:
        m = 0.5 * (p.v + q.v)
        p.v = 0.9 * p.v + 0.1 * m
        q.v = 0.9 * q.v + 0.1 * m
    return sum(p.v * p.w for p in bodies)


def grouped(x):
    groups = {"high": [], "low": []}
    everything = particles(x)
    for p in everything:
        groups["high" if p.w > 0.5 else "low"].append(p)
    for members in groups.values():
        mean = sum(p.v for p in members) / max(1, len(members))
        for p in members:
            p.v -= 0.5 * mean
    return sum(p.v ** 2 * p.w for p in everything)


@pytest.mark.parametrize("program", [again_and_again, ranked, pairs, grouped], ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, *PLACES)
