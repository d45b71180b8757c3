"""Assignments to elements of lists with as many elements as data say: `shifted = [0.0] * len(shares)`, `shifted[k] = ...`."""

from math import ceil

import numpy as np
import pytest

import bwcompiler as bw
from tests.support.gradcheck import central_differences

INPUTS = [np.array(x) for x in ([0.55, 0.7, 0.2], [1.4, 1.3, 0.1], [0.9, 0.11, 0.12], [2.6, 0.7, 0.9], [0.55, 0.7, 0.2])]


def one_after_the_other(x):
    count = ceil(x[0])
    found = [0.0] * count
    for k in range(count):
        found[k] = x[0] * k + x[1]
    return sum(found) + found[-1] * len(found)


def shares(width):
    return [(k / width) ** 2.5 if k < width else 1.0 for k in range(1, ceil(2 * width) + 1)]


def shifted_in_place(x):
    ratios = shares(x[0])
    queue = [0.0] * len(ratios)
    total = 0.0
    for day in range(7):
        for k, ratio in enumerate(ratios):
            queue[k] = (queue[k + 1] if k + 1 < len(ratios) else 0.0) + x[1] * day * ratio
        total += queue[0] * x[2]
    return total + queue[-1]


def gone_over_in_other_loops(x):
    ratios, kept, pairs, total = shares(x[0]), [], [], 0.0
    for k in range(5):
        for j, ratio in enumerate(ratios):
            total = total * 0.9 + ratio * x[1] * (j + k)
            if k == 2 and ratio > 0.3:
                kept.append(ratio * j)
    for ratio in ratios:
        pairs.append((ratio, ratio * x[2]))
    last = 0.0
    for a, b in pairs:
        last = a * b + last * x[1]
    return total + sum(kept) + len(kept) + last + sum([a * b for a, b in pairs if b > 0.05])


def kept_by_a_filter(x):
    kept = [one for one in x if one > 0.15]
    kept[0] = kept[0] * x[1]
    kept[-1] += x[2]
    return sum([k * one for k, one in enumerate(kept, 1)])


@pytest.mark.parametrize("fun", [one_after_the_other, shifted_in_place, gone_over_in_other_loops,
                                 kept_by_a_filter], ids=lambda fun: fun.__name__)
def test_values_and_gradients(fun):
    compiled = bw.value_and_grad(fun)
    for x in INPUTS:
        value, slope = compiled(x)
        np.testing.assert_allclose(value, fun(x), rtol=1e-12)
        np.testing.assert_allclose(slope, central_differences(fun, x), rtol=1e-6, atol=1e-8)


def test_a_place_behind_the_last_raises():
    def behind(x):
        kept = [one for one in x if one > 0.15]
        kept[2] = x[0]
        return sum(kept)
    compiled = bw.jit(behind)
    assert compiled(INPUTS[0]) == behind(INPUTS[0])
    with pytest.raises(IndexError, match="assignment index out of range"):
        compiled(INPUTS[1])
