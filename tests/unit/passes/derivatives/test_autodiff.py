"""The driver of the reverse sweep: accumulation, seeds, pruning, updates into accumulators, guards.  (Rules: tests/unit/ops.)"""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.frontend import trace
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Record, input_value
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.ir.types import F64, tensor
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED, ONE, active_values, differentiate
from bwcompiler.passes.rewriting.simplify import simplify
from tests.support.gradcheck import central_differences

X, Y = np.array([0.5, -2.0, 3.0]), np.array([1.5, 0.25, -1.0])


def joint_of(function, *arguments, wrt=None, seeds=None):
    graph = simplify(trace(function, arguments).graph).graph
    joint = differentiate(graph, range(len(arguments)) if wrt is None else wrt, seeds or [INPUT_SEED] * len(graph.outputs))
    verify(joint.graph)
    return joint


def names(joint):
    return [value.op.name for value in joint.graph.body]


def cotangents(joint, *arrays):
    found = interpret(joint.graph, arrays)
    return [None if position is None else found[position] for position in joint.cotangents]


# ----- accumulation
def test_contributions_are_added():
    joint = joint_of(lambda x: np.sin(x) + x * 3.0, X)
    [ct] = cotangents(joint, X, Y)
    np.testing.assert_allclose(ct, Y * np.cos(X) + 3.0 * Y, rtol=1e-15)
    assert names(joint).count("add") == 2                  # the function's own, and one of two contributions


def test_an_operand_used_twice_has_one_cotangent():
    joint = joint_of(lambda x: x * x, X)
    np.testing.assert_array_equal(cotangents(joint, X, Y)[0], 2.0 * X * Y)
    assert names(joint) == ["multiply", "multiply", "full", "multiply"]        # x x; ct x; times 2


def test_equal_forward_values_have_one_cotangent():
    joint = joint_of(lambda w, x: np.sum(np.tanh(x @ w)) + np.sum(np.sin(x @ w)), np.ones((3, 2)), np.ones((4, 3)), wrt=(0,), seeds=[ONE])
    assert names(joint).count("matmul") == 2               # forward, and one product for both


# ----- seeds
def test_seed_one_is_a_constant():
    joint = joint_of(lambda x: np.sum(x * x), X, seeds=[ONE])
    assert joint.seeds == (None,) and len(joint.graph.inputs) == 1
    np.testing.assert_array_equal(cotangents(joint, X)[0], 2.0 * X)


def test_several_outputs_each_with_its_seed():
    def function(x, y):
        return x * y, np.sum(x), np.argmax(x)
    joint = joint_of(function, X, Y, seeds=[INPUT_SEED, INPUT_SEED, INPUT_SEED])
    assert joint.seeds == (2, 3, None)                     # integers have no cotangent
    a, b = np.array([1.0, 10.0, 100.0]), np.float64(7.0)
    dx, dy = cotangents(joint, X, Y, a, b)
    np.testing.assert_array_equal(dx, a * Y + b)
    np.testing.assert_array_equal(dy, a * X)


def test_an_output_without_seed_costs_nothing():
    joint = joint_of(lambda x: (x * 2.0, np.exp(x)), X, seeds=[INPUT_SEED, None])
    assert joint.seeds == (1, None) and names(joint).count("exp") == 1
    assert names(joint).count("multiply") == 2


def test_an_output_that_is_an_input():
    joint = joint_of(lambda x: (x, x * 2.0), X)
    assert [seed is not None for seed in joint.seeds] == [True, True]
    np.testing.assert_array_equal(cotangents(joint, X, Y, Y)[0], 3.0 * Y)


def test_the_same_output_twice():
    def function(x):
        y = np.sin(x)
        return y, y
    np.testing.assert_allclose(cotangents(joint_of(function, X), X, X, Y)[0], (X + Y) * np.cos(X), rtol=1e-15)


# ----- zero cotangents and pruning
def test_no_cotangent_where_nothing_depends():
    joint = joint_of(lambda x, y: np.sin(x), X, Y)
    assert joint.cotangents == (1, None)


@pytest.mark.parametrize("function", [lambda x: x * bw.stop_gradient(x), lambda x: x * np.floor(np.exp(x)), lambda x: x * np.sign(x),
                                      lambda x: x * (x > 0)])
def test_stopped_ways_give_the_other_part_only(function):
    joint = joint_of(function, X)
    [ct] = cotangents(joint, X, np.ones(3))
    value = interpret(joint.graph, [X, np.ones(3)])[0]
    np.testing.assert_allclose(ct, value / X, rtol=1e-15)          # functions x * c, of which c is stopped


def test_only_what_is_asked_for_is_computed():
    joint = joint_of(lambda x, y: np.exp(x) * np.sin(y), X, Y, wrt=(0,))
    assert "cos" not in names(joint)


def test_active_values_are_those_between():
    graph = trace(lambda x, y: np.sin(x) * np.exp(y) + np.floor(x), (X, Y)).graph
    active = {value.op.name for value in active_values(graph, [graph.inputs[0]])}
    assert active == {"input", "sin", "multiply", "add"}


# ----- updates into accumulators
def test_slices_are_added_into_one_accumulator():
    def function(x):
        return x[0] * 2.0 + x[1] * x[2]
    joint = joint_of(function, X, seeds=[ONE])
    np.testing.assert_array_equal(cotangents(joint, X)[0], [2.0, 3.0, -2.0])
    assert "pad" not in names(joint) and names(joint).count("slice_update") + names(joint).count("slice_add") == 3


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("parts", [(0,), (0, 1), (2,), (0, 2, 1)], ids=str)
def test_parts_are_added_to_what_the_whole_has(parts, order):
    """Whichever comes first: no array of zeros with parts in it is made, and added."""
    x, k = np.linspace(0.5, 2.0, 8), np.array([1, 6, 1])
    uses = [lambda x, k: np.sum(x[1:4] ** 2), lambda x, k: np.sum(x[2::3] ** 3), lambda x, k: np.sum(x[k] ** 2)]

    def function(x, k):
        terms = [lambda x, k: np.sum(np.sin(x)), *[uses[part] for part in parts]]
        return sum(term(x, k) for term in terms[::order])
    joint = joint_of(function, x, k, wrt=(0,), seeds=[ONE])
    [ct] = cotangents(joint, x, k)
    np.testing.assert_allclose(ct, central_differences(lambda x: function(x, k), x), rtol=1e-7, atol=1e-8)
    whole = [value for value in joint.graph.body if value.type == tensor(F64, (8,))]
    assert not [value for value in whole if value.op in (ops.add, ops.full)]


def test_overlapping_slices_and_other_uses():
    def function(x):
        return np.sum(x[:2] * x[1:]) + np.sum(x ** 2)
    np.testing.assert_allclose(cotangents(joint_of(function, X, seeds=[ONE]), X)[0],
                               [X[1] + 2 * X[0], X[0] + X[2] + 2 * X[1], X[1] + 2 * X[2]], rtol=1e-15)


# ----- guards
BAD = np.array([-1.0, 0.0, 4.0])


@pytest.mark.parametrize("function, expected", [
    (lambda x: np.where(x > 0, np.sqrt(x), 0.0), [0, 0, 0.25]),
    (lambda x: np.where(x > 0, np.log(np.sqrt(x)), x), [1, 1, 0.125]),
    (lambda x: np.where(x > 0, np.where(x < 5, 1 / x, 0.0), 0.0), [0, 0, -1 / 16]),
    (lambda x: np.where(x > 0, np.flip(np.flip(np.sqrt(x))), 0.0), [0, 0, 0.25]),
    (lambda x: np.where(x > 0, np.sqrt(x), 0.0) + np.where(x > 0, np.log(x), 0.0), [0, 0, 0.5]),
    (lambda x: np.cumsum(np.where(x > 0, np.sqrt(x), 0.0)), [0, 0, 0.25]),
], ids=["sqrt", "chain", "nested", "moved", "added", "mixed"])
def test_masked_branches_give_exact_zeros(function, expected):
    np.testing.assert_allclose(cotangents(joint_of(function, BAD), BAD, np.ones(3))[0], expected, rtol=1e-15)


def test_a_nan_on_a_way_that_is_not_masked_shows():
    [ct] = cotangents(joint_of(lambda x: np.where(x > 0, np.sqrt(x), 0.0) + np.sqrt(x), BAD), BAD, np.ones(3))
    assert np.isnan(ct[0]) and np.isinf(ct[1]) and ct[2] == 0.5


def test_no_guard_where_zero_stays_zero():
    joint = joint_of(lambda x: np.where(x > 0, -x, x), X)
    assert names(joint).count("select") == 3               # the function's, and one per branch; nothing to settle


# ----- what is kept
def test_values_know_what_they_differentiate():
    x = input_value(tensor(F64, (3,)), "x")
    with Record() as record:
        y = ops.sin(x)
    joint = differentiate(Graph("f", [x], record.values, [y]), (0,), [INPUT_SEED])
    cosine = next(value for value in joint.graph.body if value.op is ops.cos)
    assert cosine.forward is y and joint.graph.outputs[0] is y
    assert joint.graph.outputs[1].name == "x.ct" and joint.graph.inputs[1].name == "sin.ct"


def test_stopped_positions_are_reported():
    joint = joint_of(lambda x, w: np.sum(x[np.argsort(w)]), X, Y, wrt=(0, 1), seeds=[ONE])
    assert joint.cotangents[1] is None
