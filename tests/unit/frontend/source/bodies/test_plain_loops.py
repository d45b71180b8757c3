"""Loops that compute with known numbers alone run while tracing, and what they make is known: meshes, tables, dictionaries of edges."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend.tracing.trace import trace

N = 9


def mesh(n: int) -> Any:
    triangles = []
    for i in range(n - 1):
        for j in range(n - 1):
            a, b, c, d = i * n + j, (i + 1) * n + j, (i + 1) * n + j + 1, i * n + j + 1
            triangles += [(a, b, c), (a, c, d)] if (i + j) % 2 else [(a, b, d), (b, c, d)]
    return np.array(triangles)


def shared_edges(triangles: Any) -> Any:
    owner, first, second = {}, [], []
    for number, corners in enumerate(triangles):
        for k in range(3):
            edge = tuple(sorted((corners[k], corners[(k + 1) % 3])))
            if edge in owner:
                first.append(number)
                second.append(owner[edge])
            else:
                owner[edge] = number
    return np.array(first), np.array(second)


def smoothness(x: Any) -> Any:
    first, second = shared_edges(mesh(N))
    assert first.dtype == np.int64 and len(first) == len(second) > 0
    return np.sum((x[first] - x[second]) ** 2)


def boundary(x: Any) -> Any:
    counts: dict[Any, int] = {}
    for a, b, c in mesh(N):
        for edge in ((a, b), (b, c), (c, a)):
            key = (min(edge), max(edge))
            counts[key] = counts.get(key, 0) + 1
    nodes = sorted({node for edge, count in counts.items() if count == 1 for node in edge})
    return np.prod(x[nodes] + 1.0)


def colours(x: Any) -> Any:
    triangles, colour = mesh(N), np.full(2 * (N - 1) ** 2, -1)
    for number, corners in enumerate(triangles):
        taken = [colour[other] for other in range(number) if len(set(corners) & set(triangles[other])) > 0]
        colour[number] = next(c for c in range(100) if c not in taken)
    return sum(np.sum(x[colour == c]) ** 2 for c in range(colour.max() + 1))


def table_of_steps(x: Any) -> Any:
    steps = np.linspace(0.1, 1.0, 40)
    order = []
    for step in steps:
        if np.sin(7 * step) > 0:
            order.append(int(step * 100) % len(x))
    return np.sum(x[order] * np.arange(len(order)))


def halved(triangles: Any) -> Any:
    places, halves, made = {}, [], []

    def half(a: int, b: int) -> int:
        key = (min(a, b), max(a, b))
        if key not in places:
            places[key] = len(halves)
            halves.append(0.5 * (a + b))
        return places[key]

    for a, b, c in triangles:
        made += [(half(a, b), half(b, c), half(c, a))]
    return np.array(made), np.array(halves)


def subdivided(x: Any) -> Any:
    made, halves = halved(mesh(6))
    assert halves.dtype == np.float64
    return np.sum(x[made[:, 0]] * x[made[:, 1]] - x[made[:, 2]]) + np.sum(x[:len(halves)] * halves)


def groups(x: Any) -> Any:
    labels, members, longest = np.arange(30) * 7 % 5, defaultdict(list), deque([0, 0], maxlen=2)
    for number, label in enumerate(labels):
        members[label].append(number)
        longest.append(len(members[label]))
    return sum((label + 1) * np.sum(x[where]) ** 2 for label, where in sorted(members.items())) * max(longest)


def visits(x: Any) -> Any:
    rng, found = np.random.default_rng(4), []
    for number in range(12):
        count = int(rng.integers(2, 8))
        found.append((np.sort(rng.uniform(0.0, 5.0, count)), number % 2))
    return sum((1 + treated) * np.sum(np.exp(-x[0] * times)) * x[k] for k, (times, treated) in enumerate(found))


PROGRAMS = [smoothness, boundary, colours, table_of_steps, subdivided, groups, visits]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_known_numbers_stay_known(program: Any) -> None:
    compiled = bw.value_and_grad(program)
    for seed in range(2):
        x = 0.1 * np.random.default_rng(seed).standard_normal(2 * (N - 1) ** 2)
        value, gradient = compiled(x)
        np.testing.assert_allclose(value, program(x), rtol=1e-12)
        v = np.random.default_rng(9).standard_normal(x.shape)
        np.testing.assert_allclose(gradient @ v, (program(x + 1e-6 * v) - program(x - 1e-6 * v)) / 2e-6, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("program", [smoothness, boundary, table_of_steps, subdivided, groups, visits], ids=lambda one: one.__name__)
def test_nothing_is_recorded(program: Any) -> None:
    graph = trace(program, (np.ones(2 * (N - 1) ** 2),)).graph
    assert not [value.op.name for value in graph.body if value.op.regions]


@pytest.mark.parametrize("n", [20, 100])
def test_long_ones_are_recorded(n: int) -> None:
    """An iteration that runs while tracing takes longer than Python's."""
    def program(x: Any) -> Any:
        places, distances = np.linspace(0.0, 1.0, n), np.zeros((n, n))
        for i in range(n):
            for j in range(n):
                distances[i, j] = abs(places[i] - places[j])
        return np.sum(np.exp(-distances * x))
    graph = trace(program, (0.5,)).graph
    assert any(value.op.regions for value in graph.body) is (n > 54)
    assert bw.jit(program)(0.5) == pytest.approx(program(0.5))


def test_arrays_from_outside_are_read_at_every_call() -> None:
    """Data that a loop reads of variables outside are not computed with while tracing."""
    data = np.linspace(0.0, 1.0, 30)

    def program(x: Any) -> Any:
        total = 0.0
        for value in data:
            total = total + np.sin(value)
        return total * x
    compiled = bw.jit(program)
    assert compiled(2.0) == pytest.approx(program(2.0))
    data *= 2.0
    assert compiled(2.0) == pytest.approx(program(2.0))


def test_data_in_functions_that_are_called() -> None:
    """In variables of functions around, in defaults, and in what a function draws that data decide about: nothing of that is known."""
    def program(x: Any) -> Any:
        def above(k: int, limit: Any = x[1]) -> Any:
            return k * x[0] > limit
        kept = []
        for k in range(12):
            if above(k):
                kept.append(1.0 * k)
        return sum(kept) * x[0]
    compiled = bw.jit(program)
    for x in (np.array([0.5, 2.0]), np.array([0.2, 0.1]), np.array([0.5, 9.0])):
        assert compiled(x) == pytest.approx(program(x))


def test_draws_that_follow_those_of_data() -> None:
    def program(x: Any) -> Any:
        rng, total, found = np.random.default_rng(3), 0.0, []
        for k in range(10):
            if x[k] > 0.5:
                total = total + x[k] * rng.normal()
        for _ in range(10):
            found.append(rng.normal())
        return total + x[0] * sum(found)
    compiled = bw.jit(program)
    for x in (np.linspace(0.0, 1.0, 10), np.linspace(0.3, 1.4, 10), np.zeros(10)):
        assert compiled(x) == pytest.approx(program(x))


def test_library_functions_of_no_module() -> None:
    """Such as are made by exec: what they hold is not looked at, as of others of libraries."""
    made: dict[str, Any] = {}
    exec(compile("def scaled(by):\n    return lambda k: by * k", np.__file__, "exec"), made)
    double = made["scaled"](2)
    assert double.__module__ is None

    def program(x: Any) -> Any:
        places = []
        for k in range(12):
            places.append(double(k))
        return np.sum(x[places])
    x = np.linspace(0.1, 1.0, 24)
    np.testing.assert_allclose(bw.jit(program)(x), program(x))
