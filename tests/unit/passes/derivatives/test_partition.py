"""Partition: what is saved and computed again, what that costs, and that the two programs give the bits of the joint graph."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.errors import CompileError
from bwcompiler.frontend import trace
from bwcompiler.ir.extent import Index
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Record, input_value
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.ir.types import F64, tensor
from bwcompiler.passes.derivatives import partition as module
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED, differentiate
from bwcompiler.passes.derivatives.partition import RULES, Costs, partition
from bwcompiler.passes.rewriting.simplify import simplify

X = np.linspace(0.1, 1.0, 48).reshape(6, 8)


def chain(x):
    for _ in range(10):
        x = np.exp(np.sin(x))
    return x


def cheap(x):
    y = (x + 1.0) * 2.0
    return np.sum(y * y * x)


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return np.sum(np.log(e / np.sum(e, axis=-1, keepdims=True)) ** 2)


def mlp(x):
    h = np.tanh(x @ x.T)
    return np.sum(np.tanh(h @ h) ** 2)


def largest(x):
    return np.sum(np.max(x * x + 1.0, axis=0) ** 2) + np.max(np.exp(x))


def updates(x):
    y = np.zeros_like(x)
    for t in range(len(x)):
        y[t] = x[t] * y[t - 1] + 1.0
    return np.sum(y * y)


def long(x):
    y = x
    for _ in range(40):
        y = y * (y * x + 0.1)
    return y


PROGRAMS = [chain, cheap, softmax, mlp, largest, updates, long]
each = pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)


def joint_of(function, x=X):
    graph = simplify(trace(function, (x,), autoloop=False).graph).graph
    return differentiate(graph, (0,), [INPUT_SEED])


def parts_of(function, **options):
    joint = joint_of(function)
    return joint, partition(joint.graph, [joint.seeds[0]], 1, **options)


def require_same(joint, parts, x=X):
    """The two programs compute what the joint graph does, bit by bit."""
    verify(parts.forward)
    verify(parts.adjoint)
    seed = np.cos(np.arange(joint.graph.outputs[0].type.size, dtype=float)).reshape(joint.graph.outputs[0].shape)
    expected = interpret(joint.graph, [x, seed])
    out, *residuals = interpret(parts.forward, [x])
    found = [out, *interpret(parts.adjoint, [*residuals, seed])]
    assert [a.tobytes() for a in found] == [b.tobytes() for b in expected]


@each
def test_both_programs_together_are_the_joint_graph(function):
    joint, parts = parts_of(function)
    require_same(joint, parts)
    assert set(parts.why) == set(parts.residuals) and set(parts.why.values()) <= set(RULES)
    assert set(parts.stands_for.values()) >= set(parts.residuals)


@each
def test_nothing_dear_is_computed_again(function):
    for value in parts_of(function)[1].recomputed:
        assert value.op.cheap or value.op.kind == "constant"


@each
@pytest.mark.parametrize("share", [0.0, 0.3, 0.7])
def test_a_limit_of_memory_is_kept(function, share):
    joint, parts = parts_of(function)
    full = saved_bytes(parts)
    if function is largest and share < 0.5:
        limit = 8 * X.nbytes                               # what is compared is never computed again
    else:
        limit = max(int(share * full), X.nbytes + 200)
    _, tight = parts_of(function, memory_limit=limit)
    assert saved_bytes(tight) <= limit
    require_same(joint, tight)


def saved_bytes(parts):
    return sum(value.type.nbytes for value in parts.residuals if value.op.kind != "input")


def test_room_within_the_limit_is_used():
    _, parts = parts_of(chain, memory_limit=10 * X.nbytes)
    assert saved_bytes(parts) == 10 * X.nbytes


def test_transcendental_functions_are_saved():
    _, parts = parts_of(chain)
    assert [value.op for value in parts.recomputed if not value.op.cheap] == []
    assert {parts.why[value] for value in parts.residuals} == {"expensive"}


def test_common_functions_of_large_arrays_are_computed_again():
    """Writing them and reading them again takes longer, where no cache holds them."""
    def function(x):
        return np.sum(np.sqrt(np.exp(x * 2.0) + 1.0) ** 3 * x)

    small, large = [bw.compile(function, np.ones((4, extent))).memory_analysis()["residual_bytes"] for extent in (100, 40000)]
    assert small > 0
    assert large < 4 * 40000 * 8 * 2


def test_cheap_chains_are_computed_again_from_arguments():
    _, parts = parts_of(cheap)
    assert [value.op.kind for value in parts.residuals] == ["input"] and parts.why[parts.residuals[0]] == "argument"
    assert {value.op for value in parts.recomputed} >= {ops.add}


def test_long_chains_are_saved_now_and_then():
    """One loop holds a chain in registers up to a length; beyond, arrays would be written all the same."""
    _, parts = parts_of(long)
    saved = [value for value in parts.residuals if value.op.kind != "input"]
    assert 2 <= len(saved) <= 40 * 3 // 8


def test_products_are_computed_again_only_if_asked():
    _, parts = parts_of(mlp)
    assert not any(value.op is ops.matmul for value in parts.recomputed)
    _, tight = parts_of(mlp, memory_limit=400)
    assert any(value.op is ops.matmul for value in tight.recomputed)


@each
@pytest.mark.parametrize("limit", [None, 3000])
def test_a_float_that_is_computed_again_is_not_compared_for_equality(function, limit):
    joint, parts = parts_of(function, memory_limit=limit)
    again = set(parts.recomputed)
    for value in joint.graph.body:
        if value.op in (ops.equal, ops.not_equal):
            assert again.isdisjoint(module._moved_floats(value.operands))


def test_values_are_computed_again_where_they_are_needed():
    _, parts = parts_of(long)
    place = {value: k for k, value in enumerate(parts.adjoint.body)}
    first = [place[value] for value in parts.adjoint.body if value.forward is None]
    assert first[-1] > len(parts.adjoint.body) // 2 > first[0]


def test_a_limit_that_cannot_be_kept_is_an_error_with_the_line():
    with pytest.raises(CompileError, match=r"(?s)test_partition.py:\d+.*memory_limit=10: the least that can be saved .* is \d+ bytes"):
        parts_of(largest, memory_limit=10)
    with pytest.raises(CompileError, match="memory_limit=10"):
        bw.compile(largest, X, memory_limit=10).vjp(X)


def test_compiled_with_a_limit(rng):
    x = rng.standard_normal((6, 8))
    value, pullback = bw.compile(softmax, x, memory_limit=100).vjp(x)
    expected, gradient = bw.value_and_grad(softmax)(x)
    np.testing.assert_allclose(value, expected, rtol=1e-14)
    np.testing.assert_allclose(pullback()[0], gradient, rtol=1e-12, atol=1e-14)


# ----- against all choices
def random_joint(seed):
    """A small graph of cheap and dear ops, and its joint graph."""
    rng = np.random.default_rng(seed)
    x = input_value(tensor(F64, (4, 3)), "x")
    values = [x]
    with Record() as record:
        for _ in range(int(rng.integers(3, 9))):
            a, b = (values[int(k)] for k in rng.integers(len(values), size=2))
            op = (ops.multiply, ops.add, ops.divide, ops.sin, ops.flip)[int(rng.integers(5))]
            values.append(op(a) if op is ops.sin else op(a, axes=(0,)) if op is ops.flip else op(a, b))
    graph = simplify(Graph("random", [x], record.values, [values[-1]])).graph
    return differentiate(graph, (0,), [INPUT_SEED])


def cost(wanted, saved, costs):
    """Of saving `saved` and computing everything else that is needed; None where something cannot be."""
    total, seen, pending = sum(costs.save(value) for value in saved), set(), list(wanted)
    while pending:
        value = pending.pop()
        if value in seen or value in saved or value.op.kind == "input":
            continue
        seen.add(value)
        again = costs.again(value)
        if again is None:
            return None
        total += again
        pending += value.operands
    return total


@pytest.mark.parametrize("seed", range(40))
def test_no_choice_is_better(seed):
    joint = random_joint(seed).graph
    behind = module._behind(joint, [joint.inputs[1]])
    before = [value for value in joint.body if value not in behind]
    wanted = module._reads([value for value in joint.body if value in behind], behind, joint.outputs[1:])
    costs = Costs(joint, asked=False)
    chosen = {value for value in module._choose(before, wanted, costs, 1) if value.op.kind != "input"}
    best = min(found for count in range(len(before) + 1) for saved in itertools.combinations(before, count)
               if (found := cost(wanted, set(saved), costs)) is not None)
    assert cost(wanted, chosen, costs) == best


@each
def test_without_time_for_a_cut_one_walk_chooses(function, monkeypatch):
    monkeypatch.setattr(module, "WORK", 0)
    joint, parts = parts_of(function)
    require_same(joint, parts)
    test_nothing_dear_is_computed_again(function)


def test_the_limit_goes_with_a_pickled_program():
    again = pickle.loads(pickle.dumps(bw.compile(softmax, X, memory_limit=100)))
    assert again.memory_limit == 100 and saved_bytes(again.halves().partition) <= 100


def test_products_whose_extents_move_with_a_loop_cost_what_the_largest_does():
    index = Index(0, 8, "i")
    costs = []
    for extent in (index.extent(), 8):
        x, y = input_value(tensor(F64, (1, extent))), input_value(tensor(F64, (extent, 1)))
        with Record():
            product = ops.matmul(x, y)
        graph = Graph("f", [x, y], [product], [product], index)
        costs.append(Costs(graph, asked=True).again(product))
    assert costs[0] == costs[1]
