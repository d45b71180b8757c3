"""Dictionaries of lists whose keys data say: `defaultdict(list)`, `setdefault(k, [])`, `if k not in groups: groups[k] = []`."""

from collections import defaultdict

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import BwError
from tests.unit.frontend.comparing import as_python

X = np.array([1.133, 1.648, 2.266, 3.399, 1.751, 2.678])
PLACES = (X, np.array([0.202, 2.121, 2.323, 2.929, 3.838, 0.404]))


def of_a_defaultdict(x):
    groups = defaultdict(list)
    for v in x:
        groups[int(v)].append(v)
    total = 0.0
    for k, values in groups.items():
        total = total * 0.9 + (k + 1) * sum(values) * max(values) + len(values)
    return total + len(groups)


def of_setdefault(x):
    groups = {}
    for i, v in enumerate(x):
        row = groups.setdefault(int(v), [])
        row.append((i, v))
    return sum(i * v * k for k in groups for i, v in groups[k])


def of_a_test(x):
    groups = {}
    for v in x:
        k = int(v)
        if k not in groups:
            groups[k] = []
        groups[k].append(v * v)
    return sum(max(values) for values in groups.values())


def of_a_list_with_an_element(x):
    groups = {}
    for v in x:
        k = int(v)
        if k in groups:
            groups[k].append(v)
        else:
            groups[k] = [v]
    return sum(values[0] * values[-1] for values in groups.values()) + len(groups)


def pairs_as_keys_of_arrays(x):
    groups = defaultdict(list)
    for i in range(5):
        groups[int(x[i]), int(x[i + 1])].append(x[i] * x)
    return sum(np.sum(rows[0]) * a + np.sum(np.mean(rows)) * b for (a, b), rows in groups.items())


def in_order_of_the_keys(x):
    groups = defaultdict(list)
    for v in x:
        groups[int(v)].append(v)
    return sum((i + 1) * np.mean(groups[k]) for i, k in enumerate(sorted(groups)))


def only_some(x):
    groups = defaultdict(list)
    for v in x:
        if v > 1.5:
            groups[int(v * 2)].append(v)
        if v > 1e6:
            groups[0].append(v)
    return max(len(values) for values in groups.values()) * x[0] + sum(len(values) ** 2 for values in groups.values())


def read_while_filled(x):
    groups, total = defaultdict(list), 0.0
    for v in x:
        row = groups[int(v)]
        if row and row[-1] < v:
            total += row[-1] * v
        row.append(v)
    return total + (len(groups[99]) if x[0] > 0 else 1) + len(groups)


def in_nested_loops(x):
    total = 0.0
    for j in range(3):
        groups = defaultdict(list)
        for v in x:
            groups[int(v + j * 0.3) % 3].append(v * j)
        total += sum(np.sum(np.array(values) ** 2) for values in groups.values())
    return total


def in_a_loop_and_a_while(x):
    groups, t = defaultdict(list), x[0]
    for i in range(60):
        groups[int(x[i % 6] * i) % 7].append(x[i % 6] * i)
    while t < 30:
        groups[int(t) % 4] += [t, t * t]
        t = t * 1.2 + 1
    total = 0.0
    for k in range(7):
        for v in groups[k]:
            total = total * 0.99 + v
    return total


def by_another_name(x):
    """Names of lists are their keys: what one name appends the others see."""
    def put(row, v):
        row.append(v)
    groups = defaultdict(list)
    row = groups[0]
    for v in x:
        put(groups[int(v)], v)
        if v > 2:
            row = groups[int(v)] if v < 3 else groups[0]
        row.append(v * 0.5)
    first, kept = groups[int(x[0])], list(groups[int(x[0])])
    groups[int(x[0])].append(x[1])
    return sum((k + 1) * sum(values) ** 2 for k, values in groups.items()) + sum(first) * len(first) * sum(kept)


def nothing_is_appended(x):
    groups = defaultdict(list)
    for v in x:
        if v > 1e6:
            groups[int(v)].append(v)
    return sum(sum(values) for values in groups.values()) + len(groups) + x[0] + (3 in groups) + (groups[3] == [])


class Index:
    def __init__(self):
        self.rows = defaultdict(list)

    def add(self, k, v):
        if v > 3.5:
            raise ValueError("large")
        self.rows[k].append(v)


def of_an_object(x):
    index = Index()
    for v in x:
        try:
            index.add(int(v), v)
        except ValueError:
            index.rows[-1].append(1.0)
    return sum((k + 2) * sum(values) for k, values in index.rows.items())


def items_in_order(x):
    groups, total = defaultdict(list), 0.0
    for v in x:
        groups[int(v)].append(v)
    for k, values in sorted(groups.items()):
        total = 0.5 * total + (k + 1) * sum(values) ** 2
    for k, values in sorted(groups.items(), reverse=True):
        total = 0.5 * total + k * values[0]
    return total


PROGRAMS = [of_a_defaultdict, of_setdefault, of_a_test, of_a_list_with_an_element, pairs_as_keys_of_arrays, in_order_of_the_keys, items_in_order, only_some,
            read_while_filled, in_nested_loops, in_a_loop_and_a_while, by_another_name, nothing_is_appended, of_an_object]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, *PLACES)


def test_second_derivatives_and_batches():
    v, h = np.array([0.3, -0.7, 0.5, 0.2, 0.1, -0.4]), 1e-5
    _, tangent = bw.jvp(bw.grad(of_a_defaultdict), (X,), (v,))
    np.testing.assert_allclose(tangent, (bw.grad(of_a_defaultdict)(X + h * v) - bw.grad(of_a_defaultdict)(X - h * v)) / (2 * h), rtol=1e-5)
    np.testing.assert_allclose(bw.vmap(of_a_defaultdict)(np.stack(PLACES)), [of_a_defaultdict(x) for x in PLACES], rtol=1e-12)


def test_results_and_integers():
    def program(x):
        groups, counts = defaultdict(list), {}
        for v in x:
            groups[int(v)].append(v)
            counts.setdefault(int(v), []).append(int(v * 10))
        return groups, [values[0] // 3 for values in counts.values()]
    for x in PLACES:
        found, expected = bw.jit(program)(x), program(x)
        assert found == expected and type(found[0]) is defaultdict and found[0].default_factory is list


def test_keys_that_are_not_there():
    def program(x):
        groups = {}
        for v in x:
            groups.setdefault(int(v), []).append(v)
        return sum(groups[1])
    assert bw.jit(program)(X) == pytest.approx(program(X), rel=1e-12)
    with pytest.raises(KeyError):
        bw.jit(program)(PLACES[1])


def bound_anew(x):
    groups = defaultdict(list)
    for v in x:
        groups[int(v)].append(v)
        if len(groups[int(v)]) > 2:
            groups[int(v)] = []
    return sum(len(values) for values in groups.values()) * x[0]


def taken_from(x):
    groups = defaultdict(list)
    for v in x:
        groups[int(v)].append(v)
    return groups[int(x[0])].pop()


def deleted(x):
    groups = defaultdict(list)
    for v in x:
        groups[int(v)].append(v)
    del groups[int(x[0])]
    return len(groups) * x[0]


def of_arrays_that_change(x):
    groups, y = defaultdict(list), x * 1.0
    for i in range(6):
        groups[int(x[i])].append(y)
        y += 1
    return sum(np.sum(a) for values in groups.values() for a in values)


@pytest.mark.parametrize("program", [bound_anew, taken_from, deleted, of_arrays_that_change], ids=lambda program: program.__name__)
def test_what_is_refused(program):
    with pytest.raises(BwError, match=r"(?s)test_groups.py.*hint: "):
        bw.jit(program)(X)
