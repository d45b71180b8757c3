"""Comparisons of tuples, and of members of enumerations, of which data decides the parts: ==, <, in, min, max, sorted."""

from enum import IntEnum

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import UnsupportedError
from tests.unit.frontend.comparing import as_python

X = np.array([0.7, -0.4, 1.3, 0.2, -1.1, 0.9, 0.35, 1.7, -0.6, 0.45, 0.15, -0.25])


class Phase(IntEnum):
    OPEN = 0
    PARTIAL = 1
    CLOSED = 2


RATES = {Phase.OPEN: 1.0, Phase.PARTIAL: 2.0, Phase.CLOSED: 0.3}


def places(x):
    source, total = (3, 4), 0.0
    for i in range(12):
        for j in range(12):
            if (i, j) == source or (i, j) in [(1, 1), (2, 2)]:
                continue
            total += x[i] * x[j]
    return total


def largest(x):
    best = (x[0], 0)
    for k in range(1, 12):
        best = max(best, (x[k], k))
    return best[0] * best[1]


def names(x):
    which = min((x[0], "a"), (x[1], "b"), (x[2], "c"))[1]
    return x[3] if which == "a" else x[4] if which == "b" else x[5] ** 2


def at_least(x):
    phase, total = Phase.OPEN, 0.0
    for k in range(12):
        if x[k] > 0.5:
            phase = Phase.CLOSED
        elif x[k] > 0:
            phase = max(phase, Phase.PARTIAL)
        else:
            phase = min(phase, Phase.PARTIAL)
        if phase >= Phase.PARTIAL:
            total += x[k]
        total += RATES[phase] * x[k]
    return total


def numbers_of_members(x):
    phase, counts, total = Phase.OPEN, np.zeros(3), 0.0
    for k in range(12):
        counts[phase] += x[k] ** 2
        total += (phase + 1) * x[k] + np.sqrt(1.0 + phase) * counts[phase]
        phase = Phase.PARTIAL if x[k] > 0.5 else Phase.CLOSED if x[k] > 0 else phase
        if phase:
            total += 2 * x[k]
    return total + counts[1] + phase


def orders(x):
    a, b = (x[0], x[1], 2), (x[0], x[2], 1)
    total = x[3] if a < b else 0.5 * x[3]
    total += 2 * x[4] if a >= b else x[4]
    total += 3 * x[5] if a != b else x[5]
    if (x[0], 1) == (x[0], 2):
        total += 100
    if [x[0], 1] <= [x[0], 1, 3]:
        total += x[6]
    return total


def cheapest(x):
    cost, k = min((xi ** 2, i) for i, xi in enumerate(x))
    return cost + k * x[k]


def nearest(x):
    return sum(distance * (i + 1) for distance, i in sorted((abs(xi), i) for i, xi in enumerate(x))[:3])


def farthest(x):
    pairs = [(x[k] > 0, x[k]) for k in range(12)]
    pairs.sort(reverse=True)
    return sum(k * value for k, (_, value) in enumerate(pairs))


def letters(x):
    text, total = "ACGGGTATACGA", 0.0
    for a, b in zip("ACGTAGCTTAGC", "AGGTCGATTACC", strict=True):
        total += x["ACGT".index(a)] * x[4 + "ACGT".find(b)]
    for i in range(12):
        total += x["ACGT".index(text[i])] * x[i] + ["A", "C", "G", "T"].index(text[i])
    return total


LOOPS = [places, largest, at_least, numbers_of_members, cheapest, letters]


@pytest.mark.parametrize("program", [*LOOPS, names, orders, nearest, farthest], ids=lambda program: program.__name__)
def test_as_python(program) -> None:
    as_python(program, X)


@pytest.mark.parametrize("program", LOOPS, ids=lambda program: program.__name__)
def test_stays_a_loop(program) -> None:
    assert "unrolled" not in bw.jit(program).explain(X)


def test_equal_keys_keep_their_order() -> None:
    def order(x):
        return [k for _, k in sorted([(x[0], 2), (x[1], 1), (x[0], 0), (x[1], 3)])]

    for x in (np.array([1.0, 1.0]), np.array([2.0, 1.0]), np.array([1.0, 2.0])):
        assert [int(k) for k in bw.jit(order)(x)] == order(x)


def test_strings_in_the_order_of_data() -> None:
    program = lambda x: sorted([(x[0], "b"), (x[1], "a"), (x[2], "a")])[0][0] + (1.0 if sorted([(x[0], "b"), (x[1], "a")])[0][1] == "a" else 2.0)
    for x in (X, X[::-1].copy(), np.zeros_like(X)):
        assert bw.jit(program)(x) == program(x)


def test_things_of_several_kinds_in_the_order_of_data_are_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"(?s)test_orders.py.*'iv'\) and .*None, 1\) are not.*static_argnums"):
        bw.jit(lambda x: sorted([(x[0], "iv"), (x[1], None, 1)], key=lambda pair: pair[0])[0][0])(X)


def test_texts_none_and_numbers_in_the_order_of_data() -> None:
    def program(x):
        ordered = sorted([(x[0], "iv", 1), (x[1], None, None), (x[2], 2.0, x[0])], key=lambda one: one[0])
        return sum((k + 1) * value * (3.0 if what == "iv" else 1.0 if what is None else what) + (0.0 if other is None else other)
                   for k, (value, what, other) in enumerate(ordered))

    as_python(program, X, X[::-1].copy(), X[[1, 0, 2, *range(3, len(X))]])


def test_strings_that_say_the_order() -> None:
    def program(x):
        return sum((k + 1) * value for k, (_, value) in enumerate(sorted({"b": x[0], "a": x[1], "c": x[2]}.items())))

    as_python(program, X)


def test_first_parts_that_say_the_order_stay_known() -> None:
    def curve(x):
        total = 0.0
        for years, rate in sorted({3: x[0], 1: x[1], 2: x[2]}.items()):
            total = total + rate * np.sum(np.arange(1, 2 * years + 1) / 2.0) * (1 + 0.1 * total)
        return total

    def downwards(x):
        return sum(rate * len("a" * years) for years, rate in sorted(zip([3, 1, 2], x[:3], strict=True), reverse=True)) * x[0]

    def of_three(x):
        rows = [(1, "b", x[0]), (1, "a", x[1]), (0, "b", x[2])]
        rows.sort()
        return sum((k + 1) * value * ord(name) for k, (_, name, value) in enumerate(rows))

    for program in (curve, downwards, of_three):
        as_python(program, X)


def test_equal_first_parts_do_not_say_the_order() -> None:
    as_python(lambda x: sum((k + 1) * v for k, (_, v) in enumerate(sorted([(1, x[0]), (1, x[1]), (0, x[2])]))), X)


def ranked_with_names(x):
    players = {"ann": x[0], "bob": x[1], "cat": x[2], "dan": x[3]}
    bonus = {"ann": 1.0, "bob": 2.0, "cat": 5.0, "dan": 0.5}
    ranking = sorted(players.items(), key=lambda item: -item[1])
    total = sum((place + 1) * value ** 2 * bonus[name] for place, (name, value) in enumerate(ranking))
    last = sorted(players, key=players.get)[0]
    return total * (2.0 if ranking[0][0] == "ann" else 3.0) + players[last] ** 3


class Weighted:
    def __init__(self, name, weight):
        self.name = name
        self.weight = weight


def ranked_objects_with_names(x):
    things = [Weighted(name, v) for name, v in zip(("oak", "elm", "oak"), x[:3], strict=True)]
    things.sort(key=lambda thing: thing.weight)
    return sum((place + 1) * thing.weight * (2.0 if thing.name == "oak" else 5.0) for place, thing in enumerate(things))


@pytest.mark.parametrize("program", [ranked_with_names, ranked_objects_with_names])
def test_names_are_put_in_an_order_that_is_data(program):
    as_python(program, np.array([0.3, 1.2, 0.7, 0.9]), np.array([0.9, 0.2, 0.7, 0.1]), np.array([1.5, 0.4, 0.8, 0.6]))
