"""Arrays that a choice updates: which of its results lie where an operand lies."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.frontend import trace
from bwcompiler.passes.loops.branch_states import branch_states, changed_versions
from bwcompiler.passes.rewriting.simplify import simplify

LINE = np.linspace(0.5, 2.0, 12)


def assigned(y, x):
    y = y.copy()
    y[3] = x[0]
    return y


def patched(y, x):
    y = y.copy()
    y[1:4] += x[1:4]
    return y


def updated(y, x, k):
    return bw.cond(k > 2, assigned, patched, y, x)


def added_to(y, x, k):
    return bw.cond(k > 2, assigned, lambda y, x: x * 2.0 + (y + x), y, x)


def left_alone(y, x, k):
    return bw.cond(k > 2, lambda y, x: y, lambda y, x: y + np.sin(y), y, x)


def another(y, x, k):
    return bw.cond(k > 2, assigned, lambda y, x: y * x, y, x)


def apart(y, x, k):
    return bw.cond(k > 2, lambda y, x: y + 1.0, lambda y, x: x + 1.0, y, x)


def from_branch(fun):
    graph = simplify(trace(fun, (LINE, LINE[::-1].copy(), 1)).graph).graph
    [cond] = [value for value in graph.body if value.op is ops.cond]
    return [cond.operands[1 + place] is graph.inputs[0] for place in branch_states(cond).values()]


@pytest.mark.parametrize("fun, found", [(updated, [True]), (added_to, [True]), (left_alone, [True]), (another, []), (apart, [])])
def test_results_that_lie_where_an_operand_lies(fun, found):
    assert from_branch(fun) == found


@pytest.mark.parametrize("fun", [updated, added_to, left_alone, another, apart])
@pytest.mark.parametrize("k", [1, 5])
def test_values_and_gradients_in_a_loop(fun, k):
    def steps(y, x):
        return bw.fori_loop(0, 6, lambda i, y: fun(y, x, i + k - 3), y)

    bw.check_grads(steps, (LINE, np.cos(LINE)))


def test_versions_that_no_undo_log_restores():
    """Of what a loop carries: those of an array that choices change, and of none that only updates change."""
    def body(y, x, k):
        y = y.copy()
        y[0] = x[3]
        return updated(y, x, k), assigned(x, y)

    graph = simplify(trace(body, (LINE, LINE[::-1].copy(), 1)).graph).graph
    found = changed_versions(graph, 2, ())
    assert {graph.inputs[0], graph.outputs[0]} < found and not found & {graph.inputs[1], graph.outputs[1]}
    assert changed_versions(graph, 0, (1,)) == {graph.inputs[1], graph.outputs[1]}
    assert changed_versions(graph, 0, ()) == set()
