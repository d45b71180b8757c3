"""Containers of which data say which one is changed, `buckets[k].append(x)`: for values and derivatives."""

import collections

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import UnsupportedError
from tests.unit.frontend.comparing import as_python

X = np.array([1.1, 1.6, 2.2, 3.3, 1.7, 2.6])
PLACES = (X, X[::-1].copy(), np.array([0.2, 2.1, 2.3, 2.9, 3.8, 0.4]))


def histogram(x):
    n = 3
    buckets = [[] for _ in range(n)]
    for v in x:
        k = min(max(v, 0), n - 1)
        buckets[int(k)].append(v)
    return sum(sum(b) ** 2 for b in buckets) + len(buckets[1]) * x[0]


def bucket_sort(x):
    buckets = [[] for _ in range(4)]
    for v in x:
        buckets[min(int(v), 3)].append(v)
    found = []
    for one in buckets:
        found.extend(sorted(one))
    return np.sum(np.array(found) * np.arange(len(x)) ** 2)


def quickselect(x):
    left, right = [], []
    for v in x[1:]:
        (left if v < x[0] else right).append(v * v)
    return sum(left) * 2 - sum(right) + len(left) * x[1]


def of_keys(x):
    groups = {0: [], 1: [], 2: []}
    for v in x:
        groups[int(v) % 3].append(v)
    return sum(len(g) * sum(g) for g in groups.values()) + np.sum(groups[1])


def pairs(x):
    buckets = [[] for _ in range(4)]
    for i, v in enumerate(x):
        buckets[int(v)].append((i, v))
    total = 0.0
    for k in range(4):
        for i, v in buckets[k]:
            total += i * v * (k + 1) + total * 0.1
    return total


def of_sets(x):
    seen = [set(), set()]
    for v in x:
        seen[int(v) % 2].add(int(v))
    return len(seen[0]) * x[0] + len(seen[1]) * x[1]


def the_same_list(x):
    buckets = [[]] * 2
    for v in x:
        buckets[int(v) % 2].append(v)
    return buckets[0][-1] * x[0] + len(buckets[1])


class Table:
    def __init__(self):
        self.rows = [[], []]

    def put(self, v):
        self.rows[int(v) % 2].append(v * v)


def of_an_object(x):
    table = Table()
    for v in x:
        table.put(v)
    return sum(table.rows[0]) - sum(table.rows[1]) * 2


def deques(x):
    last = [collections.deque([0.0, 0.0], maxlen=2) for _ in range(2)]
    for v in x:
        last[int(v) % 2].append(v)
    return last[0][0] * 2 + last[1][1] * x[0]


def in_a_while(x):
    buckets, k = [[], []], 0
    while k < 10 and x[k % 6] < 5:
        buckets[int(x[k % 6]) % 2].append(x[k % 6] * k)
        k += 1
    return sum(buckets[0]) - sum(buckets[1]) * x[0]


PROGRAMS = [histogram, bucket_sort, quickselect, of_keys, pairs, of_sets, the_same_list, of_an_object, deques, in_a_while]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, *PLACES)


def test_what_is_not_there():
    def of_a_list(x):
        buckets = [[], [], []]
        buckets[int(x[0]) - 3].append(x[1])
        return [len(b) for b in buckets]

    def of_a_dictionary(x):
        groups = {1: [], 2: []}
        for v in x:
            groups[int(v)].append(v)
        return len(groups[1])
    assert bw.jit(of_a_list)(X) == of_a_list(X)
    with pytest.raises(IndexError, match="list index out of range"):
        bw.jit(of_a_list)(X + 8)
    compiled = bw.jit(of_a_dictionary)
    assert compiled(X[:3]) == of_a_dictionary(X[:3])
    with pytest.raises(KeyError):
        compiled(X[1:4])


def test_a_name_of_one_of_them_is_refused():
    def program(x):
        buckets = [[], []]
        for v in x:
            row = buckets[int(v) % 2]
            row.append(v)
        return len(buckets[0])
    with pytest.raises(UnsupportedError, match=r"(?s)a list is changed, which may be another name.*buckets\[k\]\.append\(x\)"):
        bw.jit(program)(X)


def test_where_it_is_known_which_one_nothing_is_recorded():
    def program(x, first):
        one, other, rows = [x[0]], [x[1]], [[], []]
        (one if first else other).append(x[2])
        rows[1 if first else 0].append(x[3])
        return len(one), len(other), one[-1], [len(row) for row in rows]
    for first in (True, False):
        assert bw.jit(program, static_argnums=1)(X, first) == program(X, first)


def test_methods_of_items_of_other_kinds():
    """A table of arrays, an object with items of its own, and lists of what is not changed."""
    class Rows:
        def __init__(self, rows):
            self.rows = rows

        def __getitem__(self, k):
            return self.rows[k]

    def program(x):
        rows, table = Rows([[], []]), {"a": [x[0]], "b": np.zeros(3)}
        rows[1].append(x[1])
        table["a"].append(x[2])
        table["b"].fill(2.0)
        return len(rows[1]), sum(table["a"]), table["b"] * x[0]
    for one, other in zip(bw.jit(program)(X), program(X), strict=True):
        np.testing.assert_allclose(one, other)
