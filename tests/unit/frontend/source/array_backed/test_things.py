"""Dictionaries, lists and objects that loops append to lists, and make for that."""

import abc
import copy
import dataclasses

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend.tracing.trace import trace
from tests.unit.frontend.comparing import as_python

X = np.array([0.7, -0.4, 1.3, 0.2])


class Ball:
    __slots__ = ("v", "x")

    def __init__(self, x, v):
        self.x, self.v = x, v

    def energy(self):
        return self.v ** 2 + self.x @ self.x


@dataclasses.dataclass
class Sample:
    t: float
    x: np.ndarray
    tag: str = "sample"


def of_dictionaries(x):
    history = [{"k": -1, "x": x, "sum": x.sum()}]
    for k in range(20):
        x = 0.9 * x + 0.1 * np.roll(x, 1)
        history.append({"k": k, "x": x, "sum": x.sum()})
    history[3]["x"] = 2 * history[3]["x"]
    history[-1]["new"] = x[0]
    assert list(history[4]) == ["k", "x", "sum"]
    return sum(one["k"] * one["x"][0] for one in history) + max(one["sum"] for one in history) + history[-1]["new"]


def of_objects(x):
    balls = [Ball(x, 1.0)]
    for _ in range(20):
        balls.append(Ball(balls[-1].x + 0.1 * balls[-1].v, 0.9 * balls[-1].v + 0.1 * x[0]))
    balls[2].v += 3.0
    return sum(ball.energy() for ball in balls) + np.array([ball.x for ball in balls]).sum()


def of_dataclasses(x):
    found, t = [], 0.0
    for _ in range(15):
        x = x * 0.9
        t += 0.1
        found.append(Sample(t, np.sin(t + x)))
    changed = [dataclasses.replace(one, t=2 * one.t) for one in found]
    return sum(one.t * one.x.sum() for one in changed if one.tag == "sample")


def of_lists(x):
    rows = []
    for k in range(12):
        rows.append([x[0] * k, [x[1], {"a": x[2] + k}]])
    rows[2][1][1]["a"] *= 3
    return sum(row[0] * row[1][1]["a"] for row in rows)


def with_another_name(x):
    history, last = [], None
    for k in range(20):
        last = {"x": x[0] * k}
        history.append(last)
    last["x"] = 100 * x[1]
    return sum(one["x"] for one in history)


def in_two_lists(x):
    history, others = [], []
    for k in range(20):
        one = {"x": x[0] * k}
        history.append(one)
        others.append(one)
    for one in others:
        one["x"] = one["x"] * 2
    return sum(one["x"] for one in history)


def made_before(x):
    history, one = [], {"x": x[0]}
    for k in range(20):
        one["x"] = one["x"] + k
        history.append(one)
    return sum(one["x"] for one in history)


def part_made_before(x):
    shared, history = [x[0]], []
    for k in range(20):
        history.append({"k": k, "list": shared})
    shared[0] = 5 * x[1]
    return sum(one["k"] * one["list"][0] for one in history)


def changed_later(x):
    history = []
    for k in range(20):
        history.append({"x": x[0] * k, "next": 0.0})
        if k:
            history[-2]["next"] = x[1] * k
    return sum(one["x"] * one["next"] for one in history)


def as_data_decides(x):
    history = []
    for k in range(20):
        x = 0.9 * x + 0.05 * k
        if x[0] > 1.0:
            history.append((k, x[1]))
    return sum(k * v for k, v in history)


def compared(x):
    history = []
    for k in range(20):
        history.append({"x": x[0] * k})
    again = copy.copy(history)
    return sum(one["x"] for one, other in zip(history, again, strict=True) if one is other)


def in_nested_loops(x):
    rows = []
    for i in range(9):
        cells = []
        for j in range(10):
            cells.append({"v": x[0] * i + x[1] * j})
        rows.append({"i": i, "cells": cells})
    return sum(row["i"] * row["cells"][4]["v"] for row in rows)


PROGRAMS = [of_dictionaries, of_objects, of_dataclasses, of_lists, with_another_name, in_two_lists, made_before, part_made_before,
            changed_later, as_data_decides, compared, in_nested_loops]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, X)


@pytest.mark.parametrize("program", [of_dictionaries, of_objects, of_dataclasses, of_lists, in_nested_loops],
                         ids=lambda program: program.__name__)
def test_recorded_as_a_loop(program):
    assert any(value.op.name == "loop" for value in trace(program, (X,)).graph.body)


def test_nodes_that_know_their_parents() -> None:
    class Node:
        def __init__(self, length, *children):
            self.length, self.children, self.parent = length, children, None
            for child in children:
                child.parent = self

        def nodes(self):
            return [self, *[node for child in self.children for node in child.nodes()]]

    def program(rates):
        root = Node(0.5, Node(1.0, Node(2.0), Node(0.3)), Node(0.7, Node(0.2), Node(0.1), Node(0.9)), Node(1.5))
        total = 0.0
        for rate in rates:
            for node in root.nodes():
                total = total + np.exp(-rate * node.length) * (1 if node.parent is None else node.parent.length)
        return total

    rates = np.linspace(0.5, 2.0, 10)
    assert bw.jit(program)(rates) == pytest.approx(program(rates), rel=1e-12)


class Cell:
    def __init__(self, u):
        self.u = u


def cells_by_number(x):
    cells = [Cell(x[0] * i) for i in range(9)]
    for _ in range(30):
        for i in range(len(cells)):
            cells[i].u += 0.01 * np.sin(cells[i].u)
    return sum(cell.u for cell in cells)


def lists_by_number(x):
    cells = []
    for i in range(9):
        cells.append([x[0] * i, x[1]])
    for _ in range(30):
        total = 0.0
        for i in range(len(cells)):
            total = total + cells[i][0]
        for i in range(9):
            cells[i][0] -= 0.01 * total * cells[i][1]
    return sum(cell[0] for cell in cells)


def read_before_more_are_appended(x):
    cells = [Cell(x[0] * i) for i in range(9)]
    for k in range(30):
        total = 0.0
        for i in range(9):
            total = total + cells[i].u
        cells.append(Cell(0.01 * total + k))
    return sum(cell.u for cell in cells)


@pytest.mark.parametrize("program", [cells_by_number, lists_by_number, read_before_more_are_appended], ids=lambda one: one.__name__)
def test_an_inner_loop_that_changes_them_leaves_the_outer_one_a_loop(program) -> None:
    as_python(program, X)
    assert 29 in [value.attrs["hi"] for value in trace(program, (X,)).graph.body if value.op.name == "loop"]


# ----- classes with abstract methods
class _Layer(abc.ABC):
    def __init__(self, slope):
        self.slope, self.seen = slope, []

    @abc.abstractmethod
    def forward(self, x): ...


class _Leaky(_Layer):
    def __init__(self, slope):
        super().__init__(slope)
        self.count = 0

    def forward(self, x):
        self.seen.append(x)
        if x > 0:
            self.count += 1
            return x
        return self.slope * x


def abstract_classes(x):
    layer, total = _Leaky(x[0]), 0.0
    for v in x:
        made = _Leaky(v)
        total = total + layer.forward(v) * made.forward(x[1])
    return total * layer.count + sum(layer.seen)


def test_objects_of_classes_with_abstract_methods_are_made_like_others():
    x = np.linspace(-1.0, 2.0, 9)
    as_python(abstract_classes, x, x[::-1].copy())
    told = bw.jit(abstract_classes).explain(x)
    assert "unrolled" not in told
    assert "read at every call" not in told
    with pytest.raises(TypeError, match="abstract class _Layer"):
        bw.jit(lambda x: _Layer(x).forward(x))(1.0)


class _Measured:
    def __init__(self):
        self.z, self.x = np.array([[None] * 2]).T, 0.0         # an array of objects until there is a first measurement

    def update(self, z):
        self.z = np.array([[z], [z * 0.5]])
        self.x = 0.9 * self.x + np.sum(self.z)


def arrays_of_none_at_first(x):
    one = _Measured()
    for z in x:
        one.update(z)
    return one.x * one.z[1, 0]


def test_arrays_of_objects_that_become_numbers_are_no_reason_to_unroll():
    x = np.linspace(-1.0, 2.0, 12)
    as_python(arrays_of_none_at_first, x)
    assert "unrolled" not in bw.jit(arrays_of_none_at_first).explain(x)
