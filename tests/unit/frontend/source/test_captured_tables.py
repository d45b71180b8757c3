"""Long loops over lists of numbers, pairs and objects that are known: numbers are read from tables, and the loop is recorded once."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest

import bwcompiler as bw

PAIRS = [(i, (7 * i + 3) % 12) for i in range(150)]
NAMES = ["CHON"[i % 4] for i in range(150)]
CHARGES = {"C": 1.0, "H": 2.0, "O": -1.0, "N": 0.5}
X = np.random.default_rng(5).standard_normal((150, 2))


@dataclass
class Spring:
    i: int
    j: int
    stiffness: float
    length: float

    def energy(self, x):
        d = x[self.i] - x[self.j]
        return self.stiffness * (np.sqrt(d @ d + 0.1) - self.length) ** 2


SPRINGS = [Spring(i, j, 1.0 + 0.01 * k, 0.5) for k, (i, j) in enumerate(PAIRS)]


def pairs(x):
    total = 0.0
    for n, (i, j) in enumerate(PAIRS):
        if i == j:
            continue
        d = x[i] - 2 * x[j] if i % 2 else x[i] + x[j] * n
        total += 1 / np.sqrt(d @ d + 0.1)
    return total


def objects(x):
    total = 0.0
    for spring in SPRINGS:
        total += spring.energy(x)
    return total


def forces(x):
    found = np.zeros_like(x)
    for spring in reversed(SPRINGS):
        d = x[spring.i] - x[spring.j]
        found[spring.i] += spring.stiffness * d
        found[spring.j] -= spring.stiffness * np.sin(d)
    return np.sum(found ** 2)


def texts(x):
    total = 0.0
    for (i, j), name in zip(PAIRS, NAMES, strict=True):
        d = x[i] - x[j]
        total += CHARGES[name] / np.sqrt(d @ d + 0.1)
    return total


def combinations(x):
    total = 0.0
    for i, j in itertools.combinations(range(20), 2):
        d = x[i] - x[j]
        total += 1 / np.sqrt(d @ d + 0.1)
    return total


PROGRAMS = [pairs, objects, forces, texts, combinations]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python(program) -> None:
    compiled, direction, h = bw.value_and_grad(program), np.cos(np.arange(300.0)).reshape(150, 2), 1e-6
    for x in (X, 0.5 - X):
        value, gradient = compiled(x)
        assert value == pytest.approx(program(x), rel=1e-12)
        difference = (program(x + h * direction) - program(x - h * direction)) / (2 * h)
        assert np.sum(gradient * direction) == pytest.approx(difference, rel=1e-6)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_is_one_loop(program) -> None:
    assert " iterations: it " in bw.jit(program).explain(X)


def test_short_ones_are_unrolled() -> None:
    def program(x):
        return sum(x[i] @ x[j] for i, j in ((0, 1), (1, 2), (2, 0)))

    assert " iterations: it " not in bw.jit(program).explain(X)


def test_changes_are_seen() -> None:
    weights = [(k, 1.0) for k in range(150)]

    def program(x):
        total = 0.0
        for k, weight in weights:
            d = x[k] * weight
            total += np.sqrt(d @ d + 0.1) * np.sin(d[0]) + np.exp(-d @ d) * np.cos(d[1])
        return total

    compiled = bw.jit(program)
    for place, weight in ((3, 2.0), (3, 5.0), (7, -1.0)):
        assert compiled(X) == pytest.approx(program(X), rel=1e-12)
        weights[place] = (place, weight)
    assert compiled(X) == pytest.approx(program(X), rel=1e-12)


def test_what_an_iteration_changes_of_them_is_refused_or_done() -> None:
    def program(x):
        springs = [Spring(i, j, 1.0, 0.5) for i, j in PAIRS]
        total = 0.0
        for spring in springs:
            spring.stiffness += 1.0
            total += spring.energy(x)
        return total + springs[0].stiffness + springs[149].stiffness

    assert bw.jit(program)(X) == pytest.approx(program(X), rel=1e-12)
