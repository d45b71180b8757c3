"""What must hold of fused programs and memory plans, for programs of every kind; and the plain decisions of both passes."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.compiler.pipeline import derive, lower
from bwcompiler.frontend import trace
from bwcompiler.ir.access import is_virtual, root
from bwcompiler.ir.fusion import Call, FusionGroup
from bwcompiler.passes.autodiff import INPUT_SEED

X, W = np.ones((6, 8)), np.ones((8, 5))


def network(x, w):
    hidden = np.tanh(x @ w)
    return np.sum((hidden @ hidden.T) ** 2)


def softmax(x, w):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True), w


def recurrence(x, w):
    y = np.zeros_like(x)
    for t in range(1, 6):
        y[t] = np.sin(y[t - 1]) + x[t]
    return y * np.sum(w)


def gathers(x, w):
    return x[:, np.argsort(x[0])] * 2.0, np.cumsum(w, axis=0), np.linalg.inv(w.T @ w + np.eye(5))


PROGRAMS = [network, softmax, recurrence, gathers]
each = pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)


def lowered(function, *arguments, gradient=True):
    graph = trace(function, arguments or (X, W)).graph
    if gradient:
        graph = derive(graph, range(len(graph.inputs) - graph.captured), [INPUT_SEED] * len(graph.outputs)).graph
    return lower(graph)


def values_of(step):
    return [member.value for member in step.members] if isinstance(step, FusionGroup) else [step.value]


# ----- fusion
@each
def test_every_value_is_computed_once_and_after_what_it_reads(function):
    found = lowered(function)
    inlined = {member.value: member.inlined for step in found.fused.steps if isinstance(step, FusionGroup) for member in step.members}
    place = {value: number for number, step in enumerate(found.fused.steps) for value in values_of(step)}
    assert sum(len(values_of(step)) for step in found.fused.steps) == len(place)
    for value in found.simplified.body:
        if value not in place:
            assert is_virtual(value) or root(value) is not value or value.op.name == "item" or value not in found.fused.stored
    for value, number in place.items():
        pending, seen = list(value.operands), set()
        while pending:
            operand = root(pending.pop())
            if operand in seen:
                continue
            seen.add(operand)
            if operand in place and operand not in inlined.get(value, ()):
                assert place[operand] <= number
            else:
                pending += operand.operands


def test_an_elementwise_chain_is_one_loop():
    found = lowered(lambda x: np.sin(np.exp(x) + 1.0) * x, X, gradient=False)
    [step] = found.fused.steps
    assert isinstance(step, FusionGroup) and len(step.members) == 4


def test_products_are_calls_between_loops():
    found = lowered(network, gradient=False)
    kinds = [step.value.op.name if isinstance(step, Call) else "loops" for step in found.fused.steps]
    assert kinds == ["matmul", "loops", "matmul", "loops"]


def test_different_shapes_are_different_loops():
    found = lowered(lambda x, w: (np.sin(x), np.sin(w)), gradient=False)
    assert len(found.fused.steps) == 2


# ----- numbers
def steps_of(function, *arguments, gradient=False):
    """Per step the ops of a group, or the name of a call."""
    return ops_of(lowered(function, *arguments, gradient=gradient).fused)


def ops_of(fused):
    return [[member.value.op.name for member in step.members] if isinstance(step, FusionGroup) else step.value.op.name
            for step in fused.steps]


def test_numbers_open_no_loops():
    """A step of Runge-Kutta whose step size is an argument, and one of Adam."""
    def rk4(y, h):
        k1 = -y
        k2 = -(y + h / 2 * k1)
        return y + h / 6 * (k1 + 2 * k2)

    def adam(p, g, m, v, t):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return p - 1e-3 * (m / (1 - 0.9 ** t)) / (np.sqrt(v / (1 - 0.999 ** t)) + 1e-8), m, v
    assert len(steps_of(rk4, X, 0.1)) == 1
    assert len(steps_of(adam, X, X, X, X, 3.0)) == 1


def test_a_loop_whose_values_are_computed_again_elsewhere_is_none():
    """Not even for a number that it reads from memory."""
    def pick(x):
        chosen = np.where(x[::-1], 1, x[:-1, -2, -1:])
        return np.sum(chosen[1:3, :, [2, 1]] * 2.0, axis=0)
    x = np.random.default_rng(0).random((2, 4, 3)) < 0.5
    fused = lowered(pick, x, gradient=False).fused
    assert all(any(member.value in fused.stored for member in step.members) for step in fused.steps if not isinstance(step, Call))
    assert np.array_equal(bw.jit(pick)(x), pick(x))


def test_a_dear_number_is_computed_once_and_a_cheap_one_where_it_is_read():
    def function(x, w, a):
        return np.sin(x) * np.exp(a), np.cos(w) * np.exp(a), np.tanh(x.T) * (a + 1.0), np.tanh(w.T) * (a + 1.0)
    found = [op for step in steps_of(function, X, W, 0.3) for op in step]
    assert found.count("exp") == 1 and found.count("add") > 1


def test_a_number_that_is_returned_lies_in_memory_and_is_read_from_there():
    def function(x, a):
        b = np.exp(a)
        return b, b * x
    [step] = steps_of(function, X, 0.3)
    assert step == ["exp", "multiply"]


def test_what_loops_sum_up_is_used_after_them():
    def function(x):
        return np.mean(x * x), x + 1.0
    [step] = steps_of(function, X)
    assert step == ["multiply", "sum", "divide", "add"]


def test_a_value_joins_a_loop_across_a_call_that_does_not_need_it():
    def function(x, w):
        gate = np.tanh(x[:, :5])
        return gate * (x @ w)
    assert steps_of(function, X, W) == ["matmul", ["tanh", "multiply"]]


def test_a_loss_and_its_gradient_are_one_sweep():
    def loss(x, labels):
        z = x - np.max(x, axis=1, keepdims=True)
        return -np.mean(z[np.arange(6), labels] - np.log(np.sum(np.exp(z), axis=1)))
    check, sweep = ops_of(bw.compile(loss, X, np.arange(6)).lowered().fused)
    assert check == "normalize_index" and isinstance(sweep, list)


SHAPES = {"long": (1 << 18,), "rows": (300, 40), "columns": (400, 700), "short rows": (5000, 3), "one": (1, 1), "none": (0, 4)}


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_numbers_before_and_after_loops_of_every_kind(shape, axis):
    """Against the interpreter's NumPy, on one thread and on two."""
    def function(x, a):
        scale = np.exp(a) / 3.0
        y = np.sin(x) * scale + a
        parts = np.sum(y * y, axis=axis)
        total = np.sum(parts) / x.size if x.size else np.sum(parts)
        return y, parts, total, np.sqrt(total + 1.0) * a, scale
    x = np.random.default_rng(0).normal(size=shape)
    found = []
    before = bw.get_num_threads()
    for threads in (1, 2):
        bw.set_num_threads(threads)
        try:
            found.append([np.array(result) for result in bw.jit(function)(x, 0.7)])
        finally:
            bw.set_num_threads(before)
    for one, two, wanted in zip(*found, function(x, 0.7), strict=True):
        np.testing.assert_array_equal(one, two)
        np.testing.assert_allclose(one, wanted, rtol=1e-12, atol=1e-14)


# ----- memory
@each
def test_what_lives_at_one_time_does_not_overlap(function):
    found = lowered(function)
    plan, first, last = found.plan, {}, {}
    for position, step in enumerate(found.steps):
        for value in (*step.reads, *step.writes):
            first.setdefault(value, position)
            last[value] = position
    stored = [value for value in last if plan.locations[value].kind == "arena"]
    updated = {update.result: update.operand for step in found.steps for update in step.updates if update.result in plan.in_place}
    for k, a in enumerate(stored):
        start, end = plan.locations[a].number, plan.locations[a].number + a.type.nbytes
        assert end <= plan.arena_bytes and start % 64 == 0
        for b in stored[:k]:
            there = plan.locations[b].number
            if updated.get(a) is b or updated.get(b) is a or last[b] < first[a] or last[a] < first[b]:
                continue
            if start < there + b.type.nbytes and there < end:
                assert _one_chain(a, b, updated), f"{a} and {b} share memory while both are needed"


def _one_chain(a, b, updated):
    """Versions of one array, updated in place."""
    for newer, older in ((a, b), (b, a)):
        while newer in updated:
            newer = updated[newer]
            if newer is older:
                return True
    return False


def test_results_are_written_where_they_are_returned():
    found = lowered(lambda x: (np.sin(x), np.cos(x)), X, gradient=False)
    assert found.plan.arena_bytes == 0
    assert {place.kind for place in found.plan.locations.values()} == {"argument", "result"}


def test_an_argument_that_is_returned_is_copied():
    found = lowered(lambda x: (x, x * 2.0), X, gradient=False)
    assert [(value.name, number) for value, number in found.plan.copies] == [("x", 0)]


def test_memory_is_used_again():
    def function(x):
        for _ in range(6):
            x = np.sin(x) @ x.T @ x
        return np.sum(x)
    one = np.ones((8, 8)).nbytes
    assert lowered(function, np.ones((8, 8)), gradient=False).plan.arena_bytes <= 4 * one


def test_small_updates_are_in_place():
    found = lowered(_filled, X, gradient=False)
    assert found.plan.in_place and not found.plan.copied and found.plan.arena_bytes < 2 * X.nbytes


def _filled(x):
    y = np.zeros_like(x)
    for t in range(6):
        y[t] = x[t] * 2.0
    return y * 1.5
