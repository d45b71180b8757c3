"""Where values live: what is returned is made where it is returned, and updates copy no more than they must."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.api.programs.executables import lower
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.ir.contracts.memory import StepUse, Update
from bwcompiler.ir.graph import cut
from bwcompiler.ir.op import Record, input_value
from bwcompiler.ir.types import F64, tensor
from bwcompiler.passes.memory.plan_memory import plan_memory
from bwcompiler.passes.rewriting.simplify import simplify
from tests.unit.passes.fused_programs import X as ROWS
from tests.unit.passes.fused_programs import each, lowered

N = 1000
X = np.linspace(-1, 1, N)


def updates(x):
    y = np.sin(x)
    y[0] = 1.0
    y[1:] += x[:-1]
    y[::3] = 0.5
    return y


def scattered(x):
    y = np.zeros_like(x)
    np.add.at(y, np.array([5, 3, 5]), x[:3])
    return y


def carried(x):
    y = np.zeros_like(x)
    for k in range(1, N):
        y[k] = 0.5 * y[k - 1] + x[k]
    return y


def two_results(x):
    y, z = np.exp(x), np.cos(x)
    y[0], z[1] = 0.0, 1.0
    return y, z


def gradient_of_picked(x):
    return bw.grad(lambda x: np.sum(x[np.array([2, 2, 7])] ** 2))(x)


@pytest.mark.parametrize("function", [updates, scattered, carried, two_results, gradient_of_picked])
def test_a_returned_array_is_updated_where_it_is_returned(function) -> None:
    plan = lower(simplify(trace(function, (X,)).graph).graph).plan
    assert not plan.copied and plan.arena_bytes <= X.nbytes
    for found, expected in zip(np.atleast_2d(bw.jit(function)(X)), np.atleast_2d(bw.jit(function, autoloop=False)(X)), strict=True):
        np.testing.assert_array_equal(found, expected)


def returned_before(x):
    y = np.sin(x)
    z = y.copy()
    z[0] = 1.0
    return y, z


def read_afterwards(x):
    y = np.sin(x)
    z = y.copy()
    z[0] = 1.0
    return z, np.sum(np.abs(y))


def two_updates_of_one(x):
    y = np.sin(x)
    a, b = y.copy(), y.copy()
    a[0] = 1.0
    b[1] = 2.0
    return a, b


def of_the_argument(x):
    y = x.copy()
    y[3] = 1.0
    return y


def reversed_into_itself(x):
    y = np.sin(x)
    y[1:] = y[:-1]
    y[::-1] = y.copy()
    return y


@pytest.mark.parametrize("function", [returned_before, read_afterwards, two_updates_of_one, of_the_argument, reversed_into_itself])
def test_what_must_stay_stays(function) -> None:
    program, x = bw.compile(function, X), X.copy()
    found, expected = program(x), function(x)
    for one, other in zip(found if isinstance(found, tuple) else (found,), expected if isinstance(expected, tuple) else (expected,), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)
    np.testing.assert_array_equal(x, X)


def test_an_input_that_a_body_gives_back_is_not_updated_in_place() -> None:
    """Else a gradient was counted twice, where a branch gave back the zeros that a branch in it had added to."""
    entry = input_value(tensor(F64, (3,)), "total")
    with Record() as record:
        added = ops.add(entry, entry)
        found = ops.negative(added)
    graph = cut("branch", [entry], record.values, [found, entry])
    steps = [StepUse([entry], [added], updates=[Update(entry, added, False)]), StepUse([added], [found])]
    plan = plan_memory(graph, steps, (None, 0))
    assert plan.locations[added].kind == "arena" and added in plan.copied and not plan.copies


def updated_copy(x, at, t):
    x *= 2.0
    y = x.copy()
    y[at] = t
    return np.sum(np.sin(y))


def copy_of_an_update(x, at, t):
    x[at] = t
    y = x.copy()
    np.add.at(y, at, t)
    return np.cumsum(y)[::2]


def state_of_a_loop(x, at, t):
    x *= 2.0
    y = bw.fori_loop(0, 30, lambda k, y: np.sin(y) * t, x)
    return np.sum(y)


def state_of_a_loop_that_is_left(x, at, t):
    x *= 2.0
    for k in range(30):
        if x[k] * t > 5.0:
            return x
        x = t * np.cos(x)
    return x


def update_chain_beside_another(x, at, t):
    x[at] = t
    y, z = x.copy(), x.copy()
    y[at[0]] = 2.0 * t
    z[at[1]] = 3.0 * t
    x[at[2]] = y[at[0]] + z[at[1]]
    return np.sum(y * z)


@pytest.mark.parametrize("function", [updated_copy, copy_of_an_update, state_of_a_loop, state_of_a_loop_that_is_left, update_chain_beside_another])
def test_what_was_written_to_an_argument_stays(function) -> None:
    """Steps that follow must not write over what the caller gets."""
    x, y = X.copy(), X.copy()
    at = np.array([5, 3, 700])
    expected, found = function(x, at, 1.5), bw.jit(function)(y, at, 1.5)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(y, x, rtol=1e-12)


@pytest.mark.parametrize("rows", [64, 1024])
def test_a_large_array_is_written_where_the_last_one_lies(rows: int, rng: np.random.Generator) -> None:
    """What follows a product overwrites it; a small array gets a place of its own, and one that is read again stays."""
    x, w = rng.uniform(-1, 1, (rows, 64)), rng.uniform(-1, 1, (64, 64)) / 8

    def layers(x, w):
        return np.sort(np.tanh(x @ w) * 2.0, axis=1)

    def kept(x, w):
        y = x @ w
        return np.sort(np.tanh(y), axis=1), np.sort(y - np.tanh(y), axis=1)
    places = {value.op.name: place for value, place in lower(trace(layers, (x, w), autoloop=False).graph).plan.locations.items()
              if place.kind == "arena"}
    assert (places["multiply"] == places["matmul"]) is (rows == 1024)
    for function in (layers, kept):
        for found, expected in zip(np.atleast_2d(bw.jit(function)(x, w)), np.atleast_2d(function(x, w)), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


# ----- plans of whole programs
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
    found = lowered(lambda x: (np.sin(x), np.cos(x)), ROWS, gradient=False)
    assert found.plan.arena_bytes == 0
    assert {place.kind for place in found.plan.locations.values()} == {"argument", "result"}


def test_an_argument_that_is_returned_is_copied():
    found = lowered(lambda x: (x, x * 2.0), ROWS, gradient=False)
    assert [(value.name, number) for value, number in found.plan.copies] == [("x", 0)]


def test_memory_is_used_again():
    def function(x):
        for _ in range(6):
            x = np.sin(x) @ x.T @ x
        return np.sum(x)
    one = np.ones((8, 8)).nbytes
    assert lowered(function, np.ones((8, 8)), gradient=False).plan.arena_bytes <= 4 * one


def test_small_updates_are_in_place():
    found = lowered(_filled, ROWS, gradient=False)
    assert found.plan.in_place and not found.plan.copied and found.plan.arena_bytes < 2 * ROWS.nbytes


def _filled(x):
    y = np.zeros_like(x)
    for t in range(6):
        y[t] = x[t] * 2.0
    return y * 1.5


@pytest.mark.parametrize("shape", [(64, 64), (48, 64), (128, 128), (4, 128), (60, 17, 32)])
def test_large_arrays_of_one_size_begin_in_different_sets_of_a_cache(shape: tuple[int, ...]) -> None:
    """Loops go through many arrays together, and addresses that are equal modulo 4096 share a set."""
    x = input_value(tensor(F64, shape), "x")
    with Record() as record:
        made = [ops.sin(x)]
        made += [ops.sin(made[-1]) for _ in range(39)]
        total = sum(made[1:], made[0])
    graph = cut("g", [x], record.values, [total])
    steps = [StepUse([x], [made[0]]), *[StepUse([one], [other]) for one, other in itertools.pairwise(made)], StepUse(made, [total])]
    plan = plan_memory(graph, steps)
    begins = [plan.locations[value].number for value in made]
    assert len(set(begins)) == len(made)
    assert max(Counter([begin % 4096 // 64 for begin in begins]).values()) == 1
    assert plan.arena_bytes <= len(made) * (x.type.nbytes + 512)
