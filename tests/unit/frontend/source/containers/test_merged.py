"""Copies and displays: `dict(d)`, `{**d, key: value}`, `d | e`, `[*filter(...), x]`, of what data decide; for values and derivatives."""

import collections
import copy

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerError
from tests.unit.frontend.comparing import as_python

X = np.array([1.25, 2.1, 0.5, -0.3])
PLACES = (X, np.array([-1.1, 0.3, 2.2, 0.7]), np.array([3.1, -2.2, 1.3, 1.1]))


def filled(x):
    found = {}
    for v in x:
        k = int(v > 0.6)
        found[k] = found.get(k, 0.0) + v * v
    return found


def copied(x):
    d = filled(x)
    e = dict(d)
    e[5] = x[0]
    return sum(e.values()) + len(d) * len(e)


def with_keywords(x):
    d = {}
    for v in x:
        d["p" if v > 0 else "n"] = v * v
    e = dict(d, z=x[3], p=1.0)
    return sum(e.values()) + 0.5 * sum(d.values())


def copied_by_method(x):
    d = filled(x)
    e, f = d.copy(), copy.copy(d)
    for k in e:
        e[k] = e[k] * 2
    f[1] = x[1]
    return sum(e.values()) - 0.5 * sum(d.values()) + f[1]


def of_default(x):
    d = collections.defaultdict(float)
    for v in x:
        d[int(v > 0.6)] += v * v
    e = copy.deepcopy(d)
    e[7] += x[0]
    e[int(x[1] > 1)] += 1.0
    return sum(v**2 for v in e.values()) + len(d) * x[1]


def of_counter(x):
    c = collections.Counter()
    for v in x:
        c[int(v > 0.6)] += 1
    e, plain = c.copy(), dict(c)
    e[1] += 3
    return e[1] * x[0] + c[1] * x[1] + e[9] * x[2] + sum(plain.values())


def displayed(x):
    d = filled(x)
    first, last, between = {**d, 100: x[1] * 2}, {1: x[0] * 5, 2: x[1], **d}, {1: 2.0, **d, 0: x[3]}
    return sum(v * (k + 1) for one in (first, last, between) for k, v in one.items()) + len(between)


def of_two(x):
    a, b = filled(x), {}
    for v in x:
        b[int(v > 1.0) + 1] = v
    c, d = {**a, **b}, a | b
    b.update(a)
    a |= {9: x[0]}
    return sum(v * (k + 1) for one in (a, b, c, d) for k, v in one.items())


def in_a_loop(x):
    d, total = {}, 0.0
    for i in range(20):
        k = int(x[i % 4] * (i + 1) > 2.0) + i % 3
        d = dict(d)
        d[k] = d.get(k, 0.0) + x[i % 4]
        total = total + len(d) * x[0]
    return total + sum(v**2 for v in d.values())


def displayed_in_a_loop(x):
    d = {}
    for v in x:
        d = {**d, int(v > 0.6): v * v}
    return sum(d.values())


def kept_for_later(x):
    d, states = {0: 1.0}, []
    for v in x:
        d[int(v > 0.6)] = v**2
        states.append(dict(d))
    return sum(s[0] * (i + 1) for i, s in enumerate(states))


class Inventory:
    def __init__(self, items):
        self.items = items

    def clone(self):
        return Inventory(dict(self.items))


def by_a_method(x):
    one = Inventory(filled(x))
    other = one.clone()
    if x[0] > 1:
        other.items.update({5: x[1]})
        other.items[1] = x[2]
    return 2 * sum(other.items.values()) - sum(one.items.values()) ** 2


@pytest.mark.parametrize("program", [copied, with_keywords, copied_by_method, of_default, of_counter, displayed, of_two, in_a_loop,
                                     displayed_in_a_loop, kept_for_later, by_a_method], ids=lambda one: one.__name__)
def test_dictionaries(program):
    as_python(program, *PLACES)


def in_a_list(x):
    kept = [*filter(lambda v: v > 0, x)]
    return sum(v**2 for v in kept) * len(kept)


def among_others(x):
    kept = [0.0, *(v for v in x if v > 0), *filter(lambda v: v < 1, x), x[0]]
    return sum(v * v for v in kept) + len(kept) * x[0]


def mapped(x):
    total = 0.0
    for k in range(3):
        total += sum([*map(lambda v, k=k: v * k, filter(lambda v, k=k: v > 0.1 * k, x))])
    return total


def in_a_tuple(x):
    def picked(x):
        return (*filter(lambda v: v > 0, x), x[1] * x[1])
    found = picked(x)
    return max(found) + min(found) + len(found)


def numbered(x):
    return sum(i * v for i, v in [*enumerate(filter(lambda v: v > 0, x))]) + np.array([*filter(lambda v: v > 0, x)]).sum()


def in_order(x):
    found = sorted([*filter(lambda v: v > 0, x), x[0] * 0.5])
    return found[0] * 3 + found[-1]


@pytest.mark.parametrize("program", [in_a_list, among_others, mapped, in_a_tuple, numbered, in_order], ids=lambda one: one.__name__)
def test_displays(program):
    as_python(program, *PLACES)


def until_it_stops(x):
    total = 0.0
    for v in x:
        stop, y, n = False, v, 0
        while stop is False and n < 50:
            y = y * 0.6
            n += 1
            stop = bool(abs(y) < 0.2)
        total = total + y * n
    return total


def until_an_attribute_is_true(x):
    class State:
        done = False
    state, y = State(), x[0]
    while state.done is not True:
        y = y * 0.5
        state.done = bool(np.abs(y) < 0.1)
    return y


@pytest.mark.parametrize("program", [until_it_stops, until_an_attribute_is_true], ids=lambda one: one.__name__)
def test_the_truth_of_bool_is_pythons(program):
    as_python(program, *PLACES)


def test_the_truth_of_numpys_comparison_is_not():
    def program(x):
        is_large = x[0] > 1
        known = bool(is_large)
        return x[1] * known if is_large is True else x[2]
    with pytest.raises(TracerError, match="it is asked whether a traced value is True itself"):
        bw.jit(program)(X)


def test_what_is_copied_may_differ_in_size_from_call_to_call():
    compiled = bw.jit(lambda x: dict(filled(x)))
    for x in PLACES:
        assert compiled(x) == pytest.approx(filled(x)) and list(compiled(x)) == list(filled(x))
