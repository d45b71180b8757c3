"""Long loops over lists of numbers, pairs and objects that are known: numbers are read from tables, and the loop is recorded once."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest

import bwcompiler as bw
from tests.unit.frontend.comparing import as_python

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
    as_python(program, X, 0.5 - X)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_is_one_loop(program) -> None:
    assert " iterations: it " in bw.jit(program).explain(X)


def test_short_ones_are_unrolled() -> None:
    def program(x):
        return sum(x[i] @ x[j] for i, j in ((0, 1), (1, 2), (2, 0)))

    assert " iterations: it " not in bw.jit(program).explain(X)


def overloads(x, lines=tuple(PAIRS[:30])):
    total = 0.0
    for k, (i, j) in enumerate(lines):
        flow = abs(x[i, 0] - x[j, 1])
        if flow > 0.05 * k:
            total += (flow - 0.05 * k) ** 2
    return total


def test_some_that_branch_are_recorded() -> None:
    as_python(overloads, X, 0.5 - X)
    assert "is one of 30 iterations" in bw.jit(overloads).explain(X)


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


# ----- what stands in lists and dictionaries beside numbers
def _work(v, x, a):
    return np.sin(v * x[0]) + np.exp(-v * v) * np.sin(a[1] * x[1]) + np.sqrt(np.abs(v * np.cos(a[0])) + 0.1) * np.tanh(x[1] * v) + np.cos(
        v * np.sin(x[0])) / (1 + np.exp(-v * x[1]))


def small_arrays(x):
    """Concrete ones, rows of an argument, and ones that are computed."""
    edges = [{"at": (k % 3, (k + 1) % 3), "weight": np.diag([1.0 + k, 2.0]), "seen": x[k], "computed": np.sin(x[k]) * k} for k in range(60)]
    total = 0.0
    for edge in edges:
        i, j = edge["at"]
        total += _work(edge["seen"] @ edge["weight"] @ edge["computed"] * 0.01, x[i] + x[j], edge["computed"])
    return total


def items_of_a_dictionary(x):
    table = {(k % 5, k): [np.float64(0.1 * k), x[k] * k] for k in range(60)}
    total = 0.0
    for (i, _), (weight, a) in table.items():
        total += _work(weight, x[i], a)
    return total + sum(weight for weight, _ in table.values())


def keys_of_a_dictionary(x):
    table, total = {f"a{k}": 0.1 * k for k in range(60)}, 0.0
    for name in table:
        total += _work(table[name], x[0], x[1])
    return total


def numbers_of_numpy(x):
    total = 0.0
    for (i, y), (j, z) in itertools.product(enumerate(np.linspace(0, 1, 8)), enumerate(np.linspace(-1, 1, 9))):
        total += _work(y * i + z, x[i], x[j])
    return total


@pytest.mark.parametrize("program", [small_arrays, items_of_a_dictionary, keys_of_a_dictionary, numbers_of_numpy],
                         ids=lambda program: program.__name__)
def test_small_arrays_and_dictionaries(program) -> None:
    test_as_python(program)
    text = bw.jit(program).explain(X)
    assert any(f"is one of {number} iterations: it carries total" in text for number in (59, 60, 71, 72))


def assigned_pairs(x):
    weights, total = [(k % 3, 0.1 * k) for k in range(60)], 0.0
    for k, weight in weights:
        total += _work(weight, x[k], x[1])
        weights[59] = (1, weights[59][1] + 0.01 * weight)
    return total


def assigned_items(x):
    weights, total = {k: 0.1 * k for k in range(60)}, 0.0
    for weight in weights.values():
        total += _work(weight, x[0], x[1])
        weights[59] = weights[59] + 0.01 * weight
    return total


def assigned_arrays(x):
    weights, total = [(0.1 * k, np.zeros(2), x[k] * 1.0) for k in range(60)], 0.0
    for weight, known, seen in weights:
        known[0] += 1.0
        seen[1] = 0.5
        total += _work(weight + known[0], x[0], seen)
    return total + weights[7][1][0] + weights[8][2][1] + known[0]


def later_changed(x):
    weights, total = [(0.1 * k, np.full(2, 0.5 + k)) for k in range(60)], 0.0
    for weight, known in weights:
        total += _work(weight, x[0], known)
    weights[59][1][0] = 7.0
    return total + known[0]


@pytest.mark.parametrize("program", [assigned_pairs, assigned_items, assigned_arrays, later_changed], ids=lambda program: program.__name__)
def test_what_a_loop_goes_over_changes(program) -> None:
    test_as_python(program)


# ----- loops of few long iterations
def few(x):
    total = 0.0
    for k in range(2):
        for j in range(2):
            for i in range(2):
                for weight in (0.1, 0.2, 0.3):
                    total += _work(weight, x[i + j], x[k]) * _work(weight + 1, x[i], x[j]) + _work(weight, x[i], x[i]) ** 2
    return total


def test_few_long_iterations_are_traced_once() -> None:
    test_as_python(few)
    text = bw.jit(few).explain(X)
    assert "is one of 2 iterations" in text
    assert "is unrolled" not in text
