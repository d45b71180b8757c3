"""Lists of which an iteration leaves out elements, as data say, where they are given to functions: each element of the list that a loop
began with may then be there or not."""

import numpy as np
import pytest
from scipy.special import logsumexp

import bwcompiler as bw
from bwcompiler.errors import BwError
from tests.support.gradcheck import central_differences

INPUTS = [np.array(x) for x in ([0.9, 0.7, 0.22], [0.9, 1.3, 0.1], [0.8, 0.11, 0.12], [1.6, 0.7, 0.9], [0.9, 0.7, 0.22])]


def weighted(parts):
    return sum([w for w, _ in parts])


def renewed(parts, x):
    total = weighted(parts)
    return [(w / total * (1 + 0.1 * np.sum(v)), v * 0.9 + 0.1 * x) for w, v in parts]


def left(parts, least):
    kept = [one for one in parts if one[0] > least]
    total = weighted(kept)
    return [(w / total, v) for w, v in kept]


def in_one_iteration(x):
    parts = [(x[k], x * k) for k in range(3)]
    for it in range(9):
        parts = renewed(parts, x)
        if it == 4:
            parts = left(parts, 0.2)
    return sum([w * np.sum(v * v) for w, v in parts]) + len(parts) * x[1]


def until_it_settles(x):
    parts = [(x[k], x * k) for k in range(3)]
    before = -np.inf
    for it in range(30):
        now = sum([w * w for w, _ in parts])
        if abs(now - before) < 1e-3:
            break
        before = now
        parts = renewed(parts, x)
        if it == 2:
            parts = left(parts, 0.2)
    return sum([w * np.sum(v * v) for w, v in parts]) + len(parts) * x[1]


def while_one_is_small(x):
    parts = [(x[k], x * k) for k in range(3)]
    k = 0
    while min([w for w, _ in parts]) < 0.25 and k < 5:
        parts = left(renewed(parts, x), 0.13)
        k += 1
    return sum([w * np.sum(v * v) for w, v in parts]) * k + x[0]


def numbers_on_one_side(x):
    def some(values):
        return [one for one in values if one > 0.5]

    values = [x[0], x[1] * x[2], x[2]]
    if x[1] > 0.9:
        values = some(values)
    return sum(values) * x[0] + len(values)


def one_text_for_both(x):
    def kept(values, others):
        if x[1] > 0.9:
            values = others
        return values

    first = kept([x[0], x[1]], [one for one in x[:2] if one > 0.75])
    second = kept([x[0], x[2]], [x[2] * 2, x[1]])
    second = [one * 3 for one in second]
    return sum(first) * len(first) + sum(second) * len(second)


def by_logarithms(x):
    parts = left([(x[k], x * k) for k in range(3)], 0.15)
    table = np.empty((4, len(parts)))
    for k, (w, v) in enumerate(parts):
        table[:, k] = np.log(w) + np.arange(4.0) * v[0]
    rows = logsumexp(table, axis=1)
    return np.sum(np.exp(table - rows[:, None])[1] ** 2) + np.sum(rows * rows) + logsumexp(table) + np.sum(
        logsumexp(table, axis=0, keepdims=True)) + np.sum(logsumexp(table, axis=-1, keepdims=True))


PROGRAMS = [in_one_iteration, until_it_settles, while_one_is_small, numbers_on_one_side, one_text_for_both, by_logarithms]


@pytest.mark.parametrize("fun", PROGRAMS, ids=lambda fun: fun.__name__)
def test_values_and_gradients(fun):
    compiled = bw.value_and_grad(fun)
    for x in INPUTS:
        value, slope = compiled(x)
        np.testing.assert_allclose(value, fun(x), rtol=1e-12)
        np.testing.assert_allclose(slope, central_differences(fun, x), rtol=1e-5, atol=1e-7)


def test_the_loop_is_recorded():
    assert "unrolled" not in str(bw.jit(in_one_iteration).explain(INPUTS[0]))


def changed_in_the_next_iteration(x):
    parts = [[x[0]], [x[1]], [x[2]]]
    first, total = parts, 0.0
    for k in range(6):
        first[0][0] = first[0][0] * 0.9
        if k == 2:
            parts = [one for one in parts if one[0] > 0.5]
        total += sum([one[0] for one in parts])
    return total


def test_changes_of_elements_are_seen_or_refused():
    compiled = bw.value_and_grad(changed_in_the_next_iteration)
    for x in INPUTS:
        try:
            value, slope = compiled(x)
        except BwError:
            continue
        np.testing.assert_allclose(value, changed_in_the_next_iteration(x), rtol=1e-12)
        np.testing.assert_allclose(slope, central_differences(changed_in_the_next_iteration, x), rtol=1e-6, atol=1e-8)
