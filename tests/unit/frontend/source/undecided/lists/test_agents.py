"""Objects and lists of different lengths of which data say which one is used: agents, servers, nodes and their neighbours."""

import itertools
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pytest

import bwcompiler as bw


class Server:
    def __init__(self, load):
        self.load = load
        self.served = 0

    def serve(self, work):
        self.load += work
        self.served += 1
        return self.load


@dataclass
class Machine:
    load: float
    served: int = 0

    def serve(self, work):
        self.load += work
        self.served += 1
        return self.load


class Node:
    def __init__(self, value):
        self.value = value
        self.neighbours = []


def slope_of(fun, x, step=1e-7):
    return (fun(x + step) - fun(x - step)) / (2 * step)


def check(fun, x=0.37):
    value, slope = bw.value_and_grad(fun)(x)
    np.testing.assert_allclose(value, fun(x), rtol=1e-12)
    np.testing.assert_allclose(slope, slope_of(fun, x), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", [Server, Machine])
def test_an_object_that_data_choose_is_changed(kind):
    def least_loaded(x):
        servers = [kind(x), kind(1.0), kind(2.0 - x)]
        total = 0.0
        for _ in range(12):
            best = min(servers, key=lambda server: server.load)
            best.load += 0.1 * x
            total += best.serve(0.3 * x)
        return total + sum(server.load * server.served for server in servers)

    def by_number(x):
        servers = [kind(x), kind(1.0), kind(2.0 - x)]
        for _ in range(12):
            number = np.argmin([server.load for server in servers])
            servers[number].load += 0.3 * x
            servers[number].serve(0.1)
        return sum(server.load * server.served for server in servers)

    def in_a_branch(x):
        one, other = kind(x), kind(1.0)
        chosen = one if one.load < other.load else other
        chosen.load = 2.0 * chosen.load
        return one.load + 3.0 * other.load

    for fun in (least_loaded, by_number, in_a_branch):
        check(fun)


def test_neighbours_by_number():
    neighbours = {0: [1, 2], 1: [0], 2: [0, 1, 3], 3: [2, 0]}

    def walk(y):
        visits, node = np.zeros(4), 0
        for _ in range(20):
            y = 3.7 * y * (1 - y)
            node = neighbours[node][int(y * len(neighbours[node]))]
            for other in neighbours[node]:
                visits[other] += y / len(neighbours[node])
        return visits @ np.arange(4.0)

    check(walk, 0.3)


def test_neighbours_with_weights():
    edges = [[(1, 1.0), (2, 0.3)], [(2, 2.0)], [(0, 0.1), (1, 0.2), (3, 0.7)], [(0, 1.0)]]

    def shortest(x):
        distance, done = [np.inf] * 4, [False] * 4
        distance[0] = 0.0
        for _ in range(4):
            node = min((k for k in range(4) if not done[k]), key=lambda k: distance[k])
            done[node] = True
            for other, weight in edges[node]:
                if distance[node] + weight * x < distance[other]:
                    distance[other] = distance[node] + weight * x
        return distance[3] + distance[1]

    check(shortest)


def test_neighbours_by_name():
    graph = {"a": ["b", "c"], "b": ["c"], "c": ["a", "b", "d"], "d": ["a"]}
    height = {"a": 1.0, "b": 2.0, "c": 0.5, "d": 1.5}

    def walk(x):
        heights = {name: x * value for name, value in height.items()}
        node, total = "a", 0.0
        for _ in range(10):
            node = min(graph[node], key=lambda name: heights[name])
            total += heights[node]
            heights[node] += 0.4 * x
        return total

    def new_key(x):
        heights = {"a": x}
        name = "b" if x > 0 else "a"
        heights[name] = 2.0
        return heights["a"] + 3 * len(heights)

    check(walk)
    compiled = bw.jit(new_key)
    assert [compiled(x) for x in (1.0, -1.0, 1.5)] == [7.0, 5.0, 7.5]


class Mode(Enum):
    CRUISE = 1
    BRAKE = 2


def test_a_dictionary_by_members_of_an_enum():
    def drive(x):
        log, mode, v = dict.fromkeys(Mode, 0.0), Mode.CRUISE, x
        while v < 3.0:
            mode = Mode.BRAKE if v > 2.0 and mode is Mode.CRUISE else Mode.CRUISE
            v += 0.3 * x if mode is Mode.CRUISE else -0.1
            log[mode] += v
        return log[Mode.CRUISE] + 2.0 * log[Mode.BRAKE]

    check(drive)


def test_a_column_that_is_none_before():
    def best(x):
        score, column = np.inf, None
        for k in range(3):
            if np.sum(x * TABLE[:, k]) < score:
                score, column = np.sum(x * TABLE[:, k]), k
        return x * np.sum(np.exp(TABLE[:, column]))

    check(best)


TABLE = np.random.default_rng(0).normal(size=(5, 3))


def test_groups_of_sorted_things():
    def grouped(x):
        for _ in range(20):
            x = x + sum(0.1 * x * len([k for k in members if TABLE[k, 0] > 0]) * key for key, members in itertools.groupby(
                sorted(range(5), key=lambda k: k % 2), key=lambda k: k % 2))
            if x > 5.0:
                break
        return x

    check(grouped)


def test_places_of_an_array_in_a_loop():
    def descended(x):
        y = x * np.ones((2, 3))
        for _ in range(12):
            slope = np.zeros_like(y)
            for place in np.ndindex(*y.shape):
                step = np.zeros_like(y)
                step[place] = 1e-3
                slope[place] = (np.sum((y + step) ** 4) - np.sum((y - step) ** 4)) / 2e-3
            y = y - 0.01 * slope
        return y.sum()

    check(descended)
    assert "unrolled" not in bw.jit(descended).explain(0.37)


def test_many_places_in_a_long_body():
    def energy(y):
        total = 0.0
        for i, j in ((0, 1), (1, 2), (2, 3), (0, 2), (1, 3), (0, 3)):
            d = np.sqrt(np.sum((y[i] - y[j]) ** 2))
            total += np.exp(-d) * (d - 1.0) ** 2 + np.cos(d) / (1.0 + d ** 2) + np.log(1.0 + d) * np.sin(3 * d)
        return total

    def slopes(x):
        y = x * np.arange(24.0).reshape(4, 6)
        slope = np.zeros_like(y)
        for place in np.ndindex(*y.shape):
            for sign in (1, -1):
                step = np.zeros_like(y)
                step[place] = sign * 1e-3
                slope[place] += sign * energy(y + step) / 2e-3
        return np.sum(slope ** 2)

    check(slopes)


def test_objects_that_know_each_other():
    def walk(x):
        a, b, c = Node(x), Node(1.0), Node(2.0)
        a.neighbours, b.neighbours, c.neighbours = [b, c], [c], [a, b]
        node, total = a, 0.0
        for _ in range(10):
            node = min(node.neighbours, key=lambda one: one.value)
            node.value += 0.3 * x
            total += node.value + len(node.neighbours)
        return total

    check(walk)


def test_paths_of_different_lengths():
    paths = [[0, 1], [2], [0, 2, 3], [1, 3]]

    def loaded(x):
        flow = np.array([x, 1.0, 2.0 - x, 0.3])
        for _ in range(10):
            costs = [flow[path].sum() for path in paths]
            best = min(range(4), key=costs.__getitem__)
            for edge in paths[best]:
                flow[edge] += 0.2 * x
            flow[paths[np.argmax(costs)]] *= 0.9
        return flow @ flow

    check(loaded)
