"""Mapped loops and branches are what a Python loop over the batch gives, whatever varies; and so are their gradients."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend import trace
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.passes.batching.batch import batch_graph
from tests.support.loop_programs import PROGRAMS, weighted

SIZE = 3


def check_batch(fun, args, flags):
    traced = trace(fun, args)
    inputs = [*args, *traced.captured]
    flags = [*flags, *[False] * len(traced.captured)]
    mapped, has_axis = batch_graph(traced.graph, flags, SIZE)
    verify(mapped)
    rng, given = np.random.default_rng(3), []              # here: other numbers, in another order of tests, might make a loop endless
    for x, flag in zip(inputs, flags, strict=True):
        x = np.asarray(x)
        shifts = rng.standard_normal((SIZE, *x.shape)) * 0.3
        batch = x + (shifts if x.dtype.kind == "f" else np.arange(SIZE).reshape(SIZE, *[1] * x.ndim))
        given.append(batch.astype(x.dtype) if flag else x)
    found = interpret(mapped, given)
    expected = [interpret(traced.graph, [x[k] if flag else x for x, flag in zip(given, flags, strict=True)]) for k in range(SIZE)]
    for number, (actual, axis) in enumerate(zip(found, has_axis, strict=True)):
        rows = [one[number] for one in expected]
        np.testing.assert_allclose(actual, np.stack(rows) if axis else rows[0], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in ("cholesky",)])
def test_a_batch_is_a_loop_over_it(name):
    program, args = PROGRAMS[name]
    for flags in product((True, False), repeat=len(args)):
        if any(flags):
            check_batch(lambda *given: program(bw, *given), args, flags)


@pytest.mark.parametrize("name", ["recurrent_net", "nested_scans", "seidel", "while_below", "newton_in_a_scan", "branch_on_data",
                                  "branches_in_a_scan", "counted_by_data", "triangular_sums"])
def test_a_batch_of_gradients(name):
    program, args = PROGRAMS[name]
    gradient = bw.grad(lambda *given: weighted(program, bw, *given)).fun
    check_batch(gradient, args, [True] * len(args))
    check_batch(gradient, args, [True, *[False] * (len(args) - 1)])


def test_loops_whose_ends_vary():
    """Each element of the batch ends by itself; what has ended is left as it is, and the others go on."""
    def halvings(x):
        return bw.while_loop(lambda s: s[0] > 1.0, lambda s: (s[0] * 0.5, s[1] + 1), (x, 0))
    graph = trace(halvings, (np.array(1.0),)).graph
    mapped, has_axis = batch_graph(graph, [True], 4)
    values, counts = interpret(mapped, [np.array([0.5, 1.5, 100.0, 0.0])])
    assert has_axis == [True, True] and counts.tolist() == [0, 1, 7, 0] and values.tolist() == [0.5, 0.75, 0.78125, 0.0]


def test_what_does_not_vary_is_computed_once():
    """A loop over the batch's common operands stays as it is, and only what varies is carried with the axis."""
    def program(x, w):
        first, second = bw.fori_loop(0, 4, lambda i, c: (c[0] * x, c[1] @ w), (x, w))
        return first, second + 1.0
    traced = trace(program, (np.ones(2), np.eye(2)))
    mapped, has_axis = batch_graph(traced.graph, [True, False], 5)
    assert has_axis == [True, False]
    [loop] = [value for value in mapped.body if value.op.name == "loop"]
    assert [str(type_) for type_ in loop.type.items] == ["f64[5,2]", "f64[2,2]"]
