"""Loops that data ends, of whose iterations counters say all: nothing is kept, and their gradients are those of differences."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.compiler.pipeline import derive
from bwcompiler.frontend import trace
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED
from tests.support.loop_programs import check_gradients

START = np.array([0, 2, 2, 5, 6])
COLUMN = np.array([1, 3, 0, -1, 3, 2])
RNG = np.random.default_rng(3)
VALUES, VECTOR, DIAGONAL = RNG.standard_normal(6), RNG.standard_normal(4), 1.0 + RNG.random(4)


def sparse_product(bw, values, x):
    y = np.zeros(4)
    for i in range(4):
        for k in range(START[i], START[i + 1]):
            y[i] += values[k] * x[COLUMN[k]]
    return y


def sparse_product_of_arguments(bw, start, column, values, x):
    y = np.zeros(4)
    for i in range(4):
        total = 0.0
        for k in range(start[i], start[i + 1]):
            total += np.sin(values[k]) * x[column[k]]
        y[i] = total
    return y


def sparse_triangular_solve(bw, start, column, values, diagonal, b):
    """What is read of x was made by earlier iterations."""
    x = np.zeros(4)
    for i in range(4):
        total = b[i]
        for k in range(start[i], start[i + 1]):
            total -= values[k] * x[column[k]]
        x[i] = total / diagonal[i]
    return x


def steps_of_three(bw, x, n):
    """The counter begins at 2, and the bound is none of the steps."""
    return bw.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 3, c[1] + x[c[0]] * c[0]), (2, 0.0))[1]


def until_a_sum(bw, x, n):
    """The condition is no comparison of a counter: the loop counts its iterations."""
    return bw.while_loop(lambda c: c[1] * 1.0 < n, lambda c: (c[0] + x[c[1]] * c[1], c[1] + 1), (0.0, 1))


def downwards(bw, x, n):
    return bw.while_loop(lambda c: c[0] > 0, lambda c: (c[0] + -1, c[1] * 0.5 + x[c[0]]), (n, 0.0))[1]


def no_iteration(bw, x, n):
    return bw.while_loop(lambda c: c[0] < n - 8, lambda c: (c[0] + 1, c[1] + x[c[0]]), (0, x[2]))[1]


CASES = {
    sparse_product: (VALUES, VECTOR),
    sparse_product_of_arguments: (START, COLUMN, VALUES, VECTOR),
    steps_of_three: (VALUES, 6), until_a_sum: (VALUES, 5), downwards: (VALUES, 5), no_iteration: (VALUES, 6)}


@pytest.mark.parametrize("program", [*CASES, sparse_triangular_solve], ids=lambda program: program.__name__)
def test_gradients_are_those_of_differences(program):
    check_gradients(program, *CASES.get(program, (START, np.array([0, 0, 0, 1, 1, 2]), VALUES, DIAGONAL, VECTOR)))


def _whiles(graph):
    for value in graph.body:
        if value.op is ops.while_loop:
            yield value
        for region in value.op.regions:
            yield from _whiles(value.attrs[region])


@pytest.mark.parametrize("program", CASES, ids=lambda program: program.__name__)
def test_nothing_is_kept(program):
    args = CASES[program]
    wrt = [k for k, arg in enumerate(args) if np.asarray(arg).dtype.kind == "f"]
    traced = trace(lambda *given: program(bw, *given), args)
    seeds = [INPUT_SEED if output.dtype.is_float else None for output in traced.graph.outputs]
    given = {type_ for argument in traced.graph.inputs for type_ in [argument.type]}
    for loop in _whiles(derive(traced.graph, wrt, seeds).graph):
        states = loop.operands[:loop.attrs["carried"]]
        assert all(state.type in given or state.type.size == 1 for state in states), f"{loop!r} carries more than cotangents"
        assert not list(_whiles(loop.attrs["body"])), f"{loop!r} runs iterations again"


def test_what_changes_is_kept():
    """The product of the numbers before is no function of the counter."""
    def program(bw, x, n):
        return bw.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * x[c[0]]), (0, 1.0))[1]

    check_gradients(program, VALUES, 6)


def test_first_derivative_of_a_loop_without_rings_costs_about_two_loops():
    def program(x, n):
        return bw.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] + np.sin(x[c[0]])), (0, 0.0))[1]

    joint = derive(trace(program, (VALUES, 6)).graph, (0,), [INPUT_SEED])
    assert len(list(_whiles(joint.graph))) == 2
