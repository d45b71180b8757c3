"""Stacks of transposes that are read transposed: which are turned, which stay, and that numbers are the same."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.frontend import trace
from bwcompiler.ir.extent import Index
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Record, Value, input_value
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.ir.types import F64, tensor
from bwcompiler.passes.loops.carried.turn_stacks import turn_stacks

X = np.random.default_rng(3).standard_normal((6, 9))


def stacked(read, *, extra=False, whole=False, backwards=False) -> Graph:
    """A loop that stacks transposes of a 6 x 9 matrix that it changes, and one that reads entries of the stack: what `read` makes of them."""
    x = input_value(tensor(F64, (6, 9)), "x")
    with Record() as record:
        filling = _filling(extra)
        first = ops.loop(x, ops.unset(shape=(5, 9, 6), dtype=F64), lo=0, hi=4, step=1, carried=2, body=filling)
        stack = ops.item(first, index=1)
        reading = _reading(read, backwards)
        begin = ops.full(value=0.0, shape=reading.inputs[0].shape, dtype=F64)
        second = ops.item(ops.loop(begin, stack, lo=0, hi=4, step=-1, carried=1, body=reading), index=0)
        outputs = [second, ops.item(first, index=0), *([stack] if whole else [])]
    return Graph("stacked", [x], record.values, outputs)


def _filling(extra: bool) -> Graph:
    index = Index(0, 4, "t")
    x, stack = input_value(tensor(F64, (6, 9)), "x"), input_value(tensor(F64, (5, 9, 6)), "stack")
    with Record() as record:
        turned = ops.transpose(x, axes=(1, 0))
        entry = ops.reshape(turned, shape=(1, 9, 6))
        filled = ops.slice_update(stack, entry, starts=(index.extent(), 0, 0), steps=(1, 1, 1))
        after = ops.sin(x)
        if extra:
            after = ops.transpose(ops.sin(turned), axes=(1, 0))
    return Graph("filling", [x, stack], record.values, [after, filled], index)


def _reading(read, backwards) -> Graph:
    index = Index(0, 4, "t")
    stack = input_value(tensor(F64, (5, 9, 6)), "stack")
    with Record() as record:
        start, step = (8, -1) if backwards else (0, 1)
        part = ops.slice(stack, starts=(index.extent(), start, 0), sizes=(1, 9, 6), steps=(1, step, 1))
        made = read(ops.reshape(part, shape=(9, 6)))
    total = input_value(made.type, "total")
    with record:
        result = ops.add(total, made)
    return Graph("reading", [total, stack], record.values, [result], index)


def back(entry: Value) -> Value:
    return ops.transpose(entry, axes=(1, 0))


def cosine_of_back(entry: Value) -> Value:
    return ops.cos(back(entry))


def as_it_is(entry: Value) -> Value:
    return ops.cos(entry)


def transposes(graph: Graph) -> int:
    return sum((value.op is ops.transpose) + sum([transposes(value.attrs[region]) for region in value.op.regions]) for value in graph.body)


@pytest.mark.parametrize("read, extra", [(back, False), (cosine_of_back, False), (cosine_of_back, True)])
def test_stacks_that_are_read_transposed_are_turned(read, extra):
    graph = stacked(read, extra=extra)
    verify(graph)
    made = turn_stacks(graph)
    verify(made)
    assert transposes(made) < transposes(graph)
    assert turn_stacks(made) is made
    for found, expected in zip(interpret(made, [X]), interpret(graph, [X]), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("read, arguments", [(as_it_is, {"extra": True}), (back, {"whole": True}), (back, {"backwards": True})])
def test_others_stay(read, arguments):
    graph = stacked(read, **arguments)
    assert turn_stacks(graph) is graph


def sweeps(u, lam):
    """Rows, then columns, in a loop around: what the second sweep leaves is kept transposed."""
    for _ in range(3):
        v = np.zeros_like(u)
        for i in range(1, 31):
            v[i] = (u[i] * u[i] + lam * v[i - 1]) / (1.0 + lam)
        w = np.zeros_like(u)
        for j in range(1, 31):
            w[:, j] = (v[:, j] * v[:, j] + lam * w[:, j - 1]) / (1.0 + lam)
        u = w + 0.5 * u
    return np.sum(u * u)


def test_gradients_of_sweeps_in_both_directions():
    u = np.random.default_rng(1).standard_normal((32, 32)) * 0.5
    gradient, by_lam = bw.grad(sweeps, (0, 1))(u, 0.4)
    direction = np.random.default_rng(2).standard_normal(u.shape)
    step = 1e-6
    expected = (sweeps(u + step * direction, 0.4) - sweeps(u - step * direction, 0.4)) / (2 * step)
    assert abs(np.sum(gradient * direction) - expected) < 1e-6 * abs(expected)
    expected = (sweeps(u, 0.4 + step) - sweeps(u, 0.4 - step)) / (2 * step)
    assert abs(by_lam - expected) < 1e-6 * abs(expected)


def test_graphs_of_programs_are_the_same_object_where_nothing_is_turned():
    graph = trace(lambda x: x + np.sum(x), (X,)).graph
    assert turn_stacks(graph) is graph
