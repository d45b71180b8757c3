"""Lists that loops filled, made again where data say so: neighbour lists.  They are merged and carried as arrays, not element by element."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend.tracing.trace import trace

POINTS = 14                    # so many that pairs are found by loops
RNG = np.random.default_rng(4)
PLACES = [RNG.uniform(0.0, 4.0, POINTS) for _ in range(2)]


def neighbours(x: Any) -> Any:
    pairs = []
    for i in range(len(x) - 1):
        for j in range(i + 1, len(x)):
            if (x[i] - x[j]) ** 2 < 1.0:
                pairs.append((i, j))
    return pairs


def energy(pairs: Any, x: Any) -> Any:
    total = 0.0
    for i, j in pairs:
        total += np.exp(-((x[i] - x[j]) ** 2))
    return total


class NeighbourList:
    def __init__(self, x: Any) -> None:
        self.builds = 0
        self.build(x)

    def build(self, x: Any) -> None:
        self.pairs = neighbours(x)
        self.origin = x.copy()
        self.builds += 1

    def update(self, x: Any) -> None:
        if np.max(np.abs(x - self.origin)) > 0.15:
            self.build(x)


def of_an_object(x: Any) -> Any:
    found, total = NeighbourList(x), 0.0
    for k in range(6):
        x = x + 0.05 * np.sin(x + k)
        found.update(x)
        total += energy(found.pairs, x)
    return total + 0.1 * found.builds


def of_a_variable(x: Any) -> Any:
    pairs, origin, total = neighbours(x), x, 0.0
    for k in range(6):
        x = x + 0.05 * np.sin(x + k)
        if np.max(np.abs(x - origin)) > 0.15:
            pairs, origin = neighbours(x), x
        total += energy(pairs, x) + 0.01 * len(pairs)
    return total


def made_on_either_side(x: Any) -> Any:
    pairs = neighbours(x) if x[0] > 2.0 else neighbours(1.1 * x)
    return energy(pairs, x) + 0.01 * len(pairs) * x[1]


def with_another_length(x: Any) -> Any:
    pairs = neighbours(x)
    if x[0] > 2.0:
        pairs.append((0, 1))
    return energy(pairs, x) + energy([pair for pair in pairs if pair[0] > 3], x)


@pytest.mark.parametrize("program", [of_an_object, of_a_variable, made_on_either_side, with_another_length], ids=lambda one: one.__name__)
def test_lists_made_again(program: Any) -> None:
    compiled = bw.value_and_grad(program)
    for x in (*PLACES, 0.9 * PLACES[0], PLACES[1]):
        value, gradient = compiled(x)
        np.testing.assert_allclose(value, program(x), rtol=1e-12)
        ends = [[program(x + sign * 1e-6 * one) for sign in (1, -1)] for one in np.eye(POINTS)]
        np.testing.assert_allclose(gradient, [(high - low) / 2e-6 for high, low in ends], rtol=1e-5, atol=1e-7)


def test_a_list_is_a_few_results_of_a_branch() -> None:
    """And not several for each of the pairs that there may be."""
    graph = trace(made_on_either_side, (PLACES[0],)).graph
    branches = [value for value in graph.body if value.op.name == "cond"]
    assert branches and max(len(value.type.items) for value in branches) < 8
