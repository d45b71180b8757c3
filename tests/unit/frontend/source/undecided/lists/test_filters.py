"""filter() and its like with tests that data decide."""

import functools
import itertools

import numpy as np
import pytest

import bwcompiler as bw
from tests.unit.frontend.comparing import as_python

STARTS = [np.array(x) for x in ([0.513, -1.017, 2.031, 0.29], [-0.527, -1.113, -2.071, -0.11], [0.531, 1.157, 2.213, -3.1])]


def of_a_list(x):
    positive = list(filter(lambda v: v > 0, [x[0], x[1], x[2]]))
    return sum(positive) * 2 + len(positive)


def of_an_array(x):
    positive = np.array(list(filter(lambda v: v > 0, x)))
    return np.sum(positive ** 2) + positive.size


def in_a_loop(x):
    s = 0.0
    for v in filter(lambda v: v > 0, [x[0], x[1] * 2, x[2]]):
        s = s * 0.5 + v
    return s


def of_their_truth(x):
    return sum(filter(None, [max(v, 0.0) for v in x])) + x[0]


def the_largest(x):
    return max(filter(lambda v: v > -1.05, list(x)), default=x[0])


def reduced(x):
    return functools.reduce(lambda a, b: a * 0.5 + b, filter(lambda v: v > 0, [x[0], x[1], x[2]]), 0.0)


def of_pairs(x):
    good = list(filter(lambda p: p[0] < p[1], [(x[0], x[1]), (x[1], x[2]), (x[2], x[0])]))
    return sum(p[0] * p[1] for p in good) + len(good)


def others(x):
    left = list(itertools.filterfalse(lambda v: v > 0, x))
    return sum(v * v for v in left) + 3 * len(left)


def up_to_one(x):
    return sum(itertools.takewhile(lambda v: v > 0, x)) + 2 * sum(itertools.dropwhile(lambda v: v > 0, x))


@pytest.mark.parametrize("program", [of_a_list, of_an_array, in_a_loop, of_their_truth, the_largest, reduced, of_pairs, others, up_to_one],
                         ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, *STARTS, STARTS[0])


def test_known_items_are_asked_as_python_asks():
    def program(x):
        asked = []
        first = next(filter(lambda k: asked.append(k) or k > 1, [1, 2, 3]))
        return x * first * len(asked)
    assert bw.jit(program)(1.5) == 6.0
