"""Loops that sum up products of parts which slide over an array are one operation on all of them, and no other sums are."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.passes.loops.carried.promote_elements import promote_elements
from bwcompiler.passes.loops.vectorize_loops import vectorize_loops
from tests.support.derivatives import check_derivatives
from tests.support.loop_passes import loops_in

IMAGE = np.sin(np.arange(2.0 * 28 * 19 * 3)).reshape(2, 28, 19, 3)
FILTERS = np.cos(np.arange(2.0 * 3 * 3 * 4)).reshape(2, 3, 3, 4)


def convolution(x, w):
    y = np.zeros((2, 8, 9, 4))
    for i in range(8):
        for j in range(9):
            y[:, i, j, :] = np.sum(x[:, i:i + 2, j:j + 3, :, np.newaxis] * w[np.newaxis], axis=(1, 2, 3))
    return y


def strided_convolution(x, w):
    y = np.zeros((2, 9, 8, 4))
    for i in range(9):
        for j in range(8):
            y[:, i, j, :] = np.sum(x[:, 3 * i + 1:3 * i + 3, 2 * j + 1:2 * j + 4, :, np.newaxis] * w[np.newaxis], axis=(1, 2, 3))
    return y


def every_second_part(x, w):
    y = np.ones((30, 3))
    for i in range(0, 17, 2):
        y[i + 3] = np.sum(x[0, i:i + 2, :3] * w[:, :, :, 0], axis=(0, 1))
    return y


def rows_with_one(x, w):
    y = np.zeros((28, 2))
    for i in range(28):
        y[i] = np.sum(x[:, i] * x[:, 3], axis=(1, 2))
    return y


@pytest.mark.parametrize("fun", [convolution, strided_convolution, every_second_part, rows_with_one], ids=lambda fun: fun.__name__)
def test_sums_of_products_of_parts_that_slide(fun):
    graph = trace(fun, (IMAGE, FILTERS)).graph
    made = vectorize_loops(promote_elements(graph).graph).graph
    verify(made)
    assert loops_in(graph) == loops_in(made) + 1                  # the inner loop of two
    np.testing.assert_allclose(bw.jit(fun)(IMAGE, FILTERS), fun(IMAGE, FILTERS), rtol=1e-12, atol=1e-13)
    check_derivatives(fun, IMAGE, FILTERS, order=1)
    found = bw.jit(bw.grad(lambda x, w: np.sum(np.sin(fun(x, w))), (0, 1)))(IMAGE, FILTERS)
    for k, one in enumerate(found):
        direction = np.cos(np.arange(one.size)).reshape(one.shape)
        ahead, behind = [IMAGE, FILTERS], [IMAGE, FILTERS]
        ahead[k], behind[k] = ahead[k] + 1e-6 * direction, behind[k] - 1e-6 * direction
        slope = (np.sum(np.sin(fun(*ahead))) - np.sum(np.sin(fun(*behind)))) / 2e-6
        np.testing.assert_allclose(np.sum(one * direction), slope, rtol=1e-6, atol=1e-7)


def reads_what_it_writes(x, w):
    y = x[0, :, :, 0].copy()
    for i in range(17):
        y[i + 2] = np.sum(y[i:i + 2, :] * w[:, :, 0, 0], axis=0)
    return y


def dear_terms(x, w):
    y = np.zeros((9, 3))
    for i in range(9):
        y[i] = np.sum(np.abs(x[0, i:i + 2, :3]) * w[..., 0], axis=(0, 1))
    return y


def stored_products(x, w):
    y, z = np.zeros((9, 3)), np.zeros((9, 2, 3, 3))
    for i in range(9):
        z[i] = x[0, i:i + 2, :3] * w[..., 0]
        y[i] = np.sum(z[i], axis=(0, 1))
    return y + z[:, 0, 0]


@pytest.mark.parametrize("fun", [reads_what_it_writes, dear_terms, stored_products], ids=lambda fun: fun.__name__)
def test_other_sums_of_parts_stay_loops(fun):
    """The array changes; what is summed is more than a product, or is kept: an array of all terms might have to be stored."""
    graph = trace(fun, (IMAGE[:, :, :3].copy() if fun is reads_what_it_writes else IMAGE, FILTERS)).graph
    assert loops_in(graph) == loops_in(vectorize_loops(graph).graph) == 1
