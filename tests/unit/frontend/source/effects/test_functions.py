"""Functions whose attributes loops and branches assign to: counts of their calls, what they keep."""

import numpy as np
import pytest

import bwcompiler as bw


def counted_calls(x):
    def squared(v):
        squared.calls += 1
        return v * v
    squared.calls, total = 0, 0.0
    for k in range(6):
        if x[k] > 0.5:
            total = total + squared(x[k])
    return total + squared.calls * x[0]


def kept_by_a_function(x):
    def smoothed(v):
        smoothed.last = 0.5 * smoothed.last + v
        return smoothed.last
    smoothed.last = x[0]
    if x[1] > 0.5:
        smoothed.last *= 2.0
    return sum(smoothed(x[k]) for k in range(6)) * smoothed.last


@pytest.mark.parametrize("program", [counted_calls, kept_by_a_function])
def test_attributes_of_functions(program):
    compiled = bw.value_and_grad(program)
    for x in (np.linspace(0.0, 1.0, 6), np.linspace(1.1, 0.3, 6), np.zeros(6)):
        value, gradient = compiled(x)
        assert value == pytest.approx(program(x))
        steps = 1e-6 * np.eye(6)
        np.testing.assert_allclose(gradient, [(program(x + step) - program(x - step)) / 2e-6 for step in steps], atol=1e-6)
