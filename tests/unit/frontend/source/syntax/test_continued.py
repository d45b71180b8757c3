"""Branches whose sides leave things that are not alike: each goes on to the end of its block, where the results are."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerBoolError
from tests.support.gradcheck import central_differences

X = np.linspace(0.2, 2.0, 5)


def number_or_array(x):
    base = x[0] ** 2
    if x[1] > 1:
        base = base * x
    scaled = base * x
    return np.sum(scaled) + np.sum(base)


def shorter(x):
    if x[0] > 0.1:
        if x[1] > 1:
            part = x[:3]
        else:
            part = x
        found = part.sum() * len(part)
    else:
        found = x[0] * x.sum()
    return found + np.max(x)


def in_a_loop(x):
    total = 0.0
    for k in range(12):
        w = x[0] * k
        if w > x[2]:
            w = w * x
        total = total + np.sum(np.sin(w * x))
    return total


def with_returns(x):
    def inner(q):
        v = 1.0
        if q > x[2]:
            v = np.array([q, 2 * q])
        if q > 2 * x[1]:
            v = v * q
            return np.sum(v)
        return np.mean(v)
    return sum(inner(q) for q in x)


@pytest.mark.parametrize("function", [number_or_array, shorter, in_a_loop, with_returns])
def test_going_on(function):
    gradient = bw.value_and_grad(function)
    for x in (X, X + 0.9, X[::-1] - 0.15):
        value, slope = gradient(x)
        assert abs(value - function(x)) < 1e-12 * max(1.0, abs(value))
        np.testing.assert_allclose(slope, central_differences(function, x), rtol=1e-6, atol=1e-7)


def test_unlike_results_are_refused_as_before():
    def cut(x):
        y = x
        if x[0] > 1:
            y = x[:3]
        return y

    with pytest.raises(TracerBoolError, match=r"y has shape \(3,\) on one side and \(5,\) on the other"):
        bw.jit(cut)(X)
