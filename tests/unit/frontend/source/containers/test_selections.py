"""What data select, bound anew in loops and branches: `near = x[x > 0.1 * k]`; as Python's, or refused."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import BwError
from tests.unit.frontend.comparing import as_python

X = np.array([0.317, -0.923, 1.811, 0.731, -0.419, 1.263, 0.547, 1.629, -0.753, 0.159, 1.137, 0.941])
PLACES = (-X, np.roll(X, 3) - 0.53, 0.91 * X + 0.213)


def bound_anew_on_one_side(x):
    v = x[x > 0]
    for k in range(8):
        if x[k] > 0.5:
            v = x[x > 0.2 * k]
    return np.sum(v ** 2) + len(v)


def in_a_while(x):
    v, n = x[x > -0.5], 0
    while len(v) > 1 and n < 20:
        v = v[v > np.median(v)] if n % 2 == 0 else v[:-1]
        n += 1
    return v.sum() + n


class Neighbours:
    def __init__(self):
        self.at, self.places = None, None

    def update(self, x, k):
        if self.at is not None and np.sum((x - self.at) ** 2) < 15:
            return
        self.at = x
        self.places = np.nonzero(x > 0.1 * k)[0]


def an_attribute_that_is_renewed_as_data_say(x):
    near, total = Neighbours(), 0.0
    for k in range(9):
        near.update(x * k, k)
        total += np.sum(x[near.places] ** 2) * k + len(near.places)
    return total


def positions_along_two_axes(x):
    a = np.outer(x, x)
    i, j = np.nonzero(a > 0.5)
    total = 0.0
    for k in range(8):
        total += np.sum(a[i, j])
        if total < 30:
            i, j = np.nonzero(a > 0.1 * k)
        else:
            i, j = j, i
        a = a * 0.9
    return total


def columns(x):
    v, total = np.stack([x[x > 0], x[x > 0] ** 2]), 0.0
    for k in range(8):
        v = v[:, v[0] > 0.1 * k]
        total += v[1].sum()
    return total + v.shape[1]


def _above_or_below(x, k):
    if x[k] > 0.5:
        return x[x > 0.2 * k]
    return x[x < 0.2 * k]


def returned_on_both_sides(x):
    total = 0.0
    for k in range(8):
        v = _above_or_below(x, k)
        total += v.sum() * k + len(v)
    return total


def until_few_are_left(x):
    v, total = x[x > -1], 0.0
    for _ in range(9):
        if len(v) < 3:
            break
        v = v[1:]
        total += v[0]
    return total + v.sum()


def in_a_tuple(x):
    pair = (x[x > -1], 1.0)
    for k in range(8):
        if x[k] > 0.5:
            pair = (pair[0][pair[0] > 0.1 * k], pair[1] * 0.9)
    return pair[0].sum() * pair[1]


def the_one_before(x):
    v = x[x > -1]
    old, total = v, 0.0
    for k in range(8):
        old, v = v, v[v > 0.1 * k]
        total += len(old) - len(v) + old.sum()
    return total + v.sum()


def a_copy_is_changed_in_place(x):
    v = x[x > -1]
    for k in range(8):
        if x[k] > 0.5:
            v = x[x > 0.1 * k]
        v = v + 0
        v += 0.1 * k
        v[0] = x[k]
        v.sort()
    return np.sum(v * np.arange(len(v)))


@pytest.mark.parametrize("program", [
    bound_anew_on_one_side, in_a_while, an_attribute_that_is_renewed_as_data_say, positions_along_two_axes, columns, returned_on_both_sides,
    until_few_are_left, in_a_tuple, the_one_before, a_copy_is_changed_in_place], ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, X, *PLACES, X)


def it_may_be_another_name(x):
    v = x[x > 0]
    w = v
    for k in range(8):
        if x[k] > 0.5:
            v = x[x > 0.2 * k]
    v += 1
    return np.sum(v ** 2) + np.sum(w)


def the_other_name_is_changed(x):
    v = x[x > 0]
    w = v
    for k in range(8):
        if x[k] > 0.5:
            v = x[x > 0.2 * k]
    w += 1
    return np.sum(v ** 2) + np.sum(w)


def changed_in_iterations(x):
    v = x[x > 0]
    w, total = v, 0.0
    for k in range(8):
        w *= 1.1
        total += np.sum(v)
        if x[k] > 0.5:
            v = x[x > 0.2 * k]
    return np.sum(v ** 2) + total


def asked_which_one_it_is(x):
    v = x[x > 0]
    w, total = v, 0.0
    for k in range(8):
        if x[k] > 0.5:
            v = x[x > 0.2 * k]
        if v is w:
            total += x[k]
    return np.sum(v ** 2) + total


def an_array_on_one_side(x):
    v = x
    for k in range(8):
        if x[k] > 0.5:
            v = v[v > 0.1 * k]
    return v.sum()


@pytest.mark.parametrize("program", [it_may_be_another_name, the_other_name_is_changed, changed_in_iterations, asked_which_one_it_is,
                                     an_array_on_one_side], ids=lambda program: program.__name__)
def test_refused(program):
    with pytest.raises(BwError, match="test_selections.py") as caught:
        bw.jit(program)(X)
    assert "hint" in str(caught.value)
