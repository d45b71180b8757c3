"""Slices between the larger or smaller of two numbers made of indices: loops are recorded in parts in which it is known which of them it is."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.semantics.graph_interpreter import interpret
from tests.support.derivatives import check_derivatives

W = 9


def band(a, x):
    y = np.zeros(len(x))
    for i in range(len(x)):
        y[i] = np.sum(a[i, max(0, i - W):min(len(x), i + W + 1)] * x[max(0, i - W):min(len(x), i + W + 1)]) + 0.1 * y[i - 1]
    return y


def ends_of_python(a, x):
    """A slice ends where the array ends, whatever its bound says, and is empty where it would have fewer than no elements."""
    y = x.copy()
    for i in range(len(x)):
        y[max(i - W, 0):i + W] *= 1.0 + 0.1 * a[i, max(i - W, 0):i + W]
        y[i] += np.sum(x[i + W:len(x) - W])
    return y


def from_the_end(a, x):
    y = x.copy()
    for i in range(len(x) - 1, -1, -1):
        lo, hi = np.maximum(0, i - W), np.minimum(i + W, len(x))
        y[lo:hi] += 0.1 * a[i, lo:hi] * y[i]
    return y


def bounds_from_outside(a, x):
    y = np.zeros(len(x))
    for i in range(len(x)):
        lo = max(0, i - W)
        hi = max(lo, min(i + 2, len(x)))
        for j in range(9):
            y[i] += a[i, j] * np.sum(x[lo:hi] * a[j, lo:hi])
    return y


def of_two_indices(a, x):
    y = np.zeros(a.shape)
    for i in range(12):
        for j in range(len(x)):
            y[i, j] = np.sum(a[max(0, i - 2):i + 1, max(0, j - i):j + 1]) * x[j]
    return y


def patches(a, x):
    y = np.zeros((len(x), len(x)))
    for i in range(len(x)):
        for j in range(len(x)):
            y[i, j] = np.max(a[max(0, i - W):i + 1, max(0, j - W):min(len(x), j + 2)]) * x[j]
    return y


def appended(a, x):
    kept = []
    for i, v in enumerate(x):
        kept.append(v * np.sum(x[max(0, i - W):i + 1] ** 2))
    return np.array(kept) + np.array([np.sum(x[max(0, i - W):i + 1]) for i in range(len(x))])


def whiles_and_sizes(a, x):
    i, total = 0, 0.0
    while i < len(x):
        part = x[max(0, i - W):i + 1]
        total = total * 0.5 + np.sum(part) * len(part) + a[i, 0] * part.size
        i += 1
    return total * np.ones(1)


RECORDED = [band, ends_of_python, from_the_end, bounds_from_outside, of_two_indices, patches, appended, whiles_and_sizes]


def means(a, x):
    """A mean over a slice whose size moves is not recorded: in the borders the bounds are data."""
    y = np.zeros(len(x))
    for i in range(len(x)):
        y[i] = np.mean(x[max(0, i - W):i + 1]) + np.std(a[i, max(0, i - W):min(i + W, len(x))])
    return y


def until_large(a, x):
    total = 0.0
    for i in range(len(x)):
        total += np.sum(x[max(0, i - W):i + 1])
        if total > 40.0:
            break
    return total * np.ones(1)


def of_data(a, x):
    y = np.zeros(len(x))
    for i in range(len(x)):
        first = max(0, int(10 * x[i]) - 2)
        y[i] = np.sum(x[first:first + 3])
    return y


def arguments(length: int):
    rng = np.random.default_rng(5)
    return 0.1 + rng.random((length, length)), 0.1 + rng.random(length)


def sizes_are_affine(graph: Graph) -> bool:
    """Whether no slice is the whole array and a mask."""
    return all(value.op.name != "iota" and all(sizes_are_affine(value.attrs[region]) for region in value.op.regions) for value in graph.body)


@pytest.mark.parametrize("length", [12, 30])
@pytest.mark.parametrize("fun", RECORDED, ids=lambda fun: fun.__name__)
def test_bounds_are_affine(fun, length) -> None:
    args = arguments(length)
    traced = trace(fun, args)
    assert sizes_are_affine(traced.graph) and len(traced.graph.body) < 150
    np.testing.assert_allclose(interpret(traced.graph, [*args, *traced.captured])[0], fun(*args), rtol=1e-13)


@pytest.mark.parametrize("fun", [*RECORDED, means, until_large], ids=lambda fun: fun.__name__)
def test_derivatives(fun) -> None:
    check_derivatives(fun, *arguments(20), order=2 if fun is band else 1)


@pytest.mark.parametrize("length", [3, 11, 20, 33])
@pytest.mark.parametrize("fun", [*RECORDED, means, until_large, of_data], ids=lambda fun: fun.__name__)
def test_compiled(fun, length) -> None:
    if fun is of_two_indices or fun is bounds_from_outside:
        length = max(length, 12)
    args = arguments(length)
    np.testing.assert_allclose(bw.jit(fun)(*args), fun(*args), rtol=1e-12)


def test_parts_that_cannot_be_recorded_do_not_unroll_the_loop() -> None:
    graph = trace(means, arguments(40)).graph
    assert len(graph.body) < 150 and sum([value.op.name == "loop" for value in graph.body]) == 3


def test_numbers_of_elements_are_those_of_the_iteration() -> None:
    def fun(a):
        y = np.zeros((12, 3))
        for i in range(12):
            y[i] = a[:i + 1].size, a[:i + 1, i:].size + a[i:, 0].nbytes, np.size(a[:i])
        return y

    a = np.ones((12, 12))
    np.testing.assert_array_equal(bw.jit(fun)(a), fun(a))
