"""Loops and branches without what nobody reads; each rule fires, and does not where something is read after all."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend import trace
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.passes.loops.prune_regions import prune_regions
from tests.support.loop_programs import PROGRAMS, weighted

X = np.linspace(0.5, 2.0, 4)


def pruned(fun, *args):
    """The only region op that is left of a traced function (None: there is none); the results are as before."""
    traced = trace(fun, args)
    graph = prune_regions(traced.graph)
    verify(graph)
    inputs = [*args, *traced.captured]
    for one, other in zip(interpret(traced.graph, inputs), interpret(graph, inputs), strict=True):
        np.testing.assert_array_equal(one, other)
    found = [value for value in graph.body if value.op.regions]
    assert len(found) < 2
    return found[0] if found else None


def shapes(value):
    return [type_.shape for type_ in value.type.items]


def test_results_that_are_not_read_are_not_carried():
    loop = pruned(lambda x: bw.scan(lambda c, v: (c * v, (c, v * 2, np.sin(v))), 1.0, x)[1][1], X)
    assert shapes(loop) == [(4,)] and len(loop.operands) == 2
    assert "sin" not in [value.op.name for value in loop.attrs["body"].body]


def test_what_another_result_needs_stays():
    loop = pruned(lambda x: bw.fori_loop(0, 3, lambda i, c: (c[0] + c[1], c[1] * 2.0, c[2] + 1.0), (x, x, x))[0], X)
    assert shapes(loop) == [(4,), (4,)]


def test_what_does_not_change_is_not_carried():
    loop = pruned(lambda x, y: bw.fori_loop(0, 3, lambda i, c: (c[0] * c[1], c[1]), (x, y)), X, 2 * X)
    assert shapes(loop) == [(4,)] and len(loop.operands) == 2
    assert pruned(lambda x: bw.fori_loop(0, 3, lambda i, c: c, x), X) is None


def test_an_operand_that_is_there_twice_is_one():
    loop = pruned(lambda x: bw.fori_loop(0, 3, lambda i, c: (c[0] * c[1] + c[2] * x, c[1], c[2]), (x, x, x)), X)
    assert len(loop.operands) == 2


def test_while_loops_keep_what_the_condition_reads():
    def program(x):
        return bw.while_loop(lambda c: c[1] < 3, lambda c: (c[0] * 2.0, c[1] + 1, c[2] * 2.0), (x, 0, x))[0]
    assert shapes(pruned(program, X)) == [(4,), ()]


def test_a_state_that_only_its_own_result_of_a_branch_reads_is_not_carried():
    def step(i, c):
        count, total, x = c
        taken = bw.cond(x[0] < 1.0, lambda count, total: (count + 1, total + np.sin(x)), lambda count, total: (count, total * 2.0), count, total)
        return *taken, x * 1.1
    loop = pruned(lambda x: bw.fori_loop(0, 5, step, (0, x, x))[0], X)
    assert shapes(loop) == [(), (4,)]
    branch = next(value for value in loop.attrs["body"].body if value.op.regions)
    assert shapes(branch) == [()]
    assert len(branch.operands) == 2


def test_a_state_that_a_branch_and_a_loop_inside_read_for_another_stays():
    def step(i, c):
        total, x = c
        taken = bw.cond(x[0] < 1.0, lambda x: bw.fori_loop(0, 2, lambda k, y: y * 1.5 + k, x), lambda x: x + 1.0, x)
        return total + taken, x * 1.1
    assert shapes(pruned(lambda x: bw.fori_loop(0, 5, step, (x, x))[0], X)) == [(4,), (4,)]


def test_branches():
    def program(x, y):
        return bw.cond(x[0] > 0, lambda: (x * 2, y, np.sin(x)), lambda: (x + y, y, x))
    value = pruned(lambda x, y: program(x, y)[:2], X, 3 * X)
    assert shapes(value) == [(4,)]
    assert pruned(lambda x, y: program(x, y)[1], X, 3 * X) is None
    assert shapes(pruned(lambda x, y: bw.cond(x[0] > 0, lambda: (x, y), lambda: (y, x)), X, 3 * X)) == [(4,), (4,)]


def cotangents(x, ct):
    """What is stacked gets cotangents, of which the loop backwards makes zeros: nobody reads those."""
    def step(i, c):
        total, rest = c
        part = rest[i] * 1.0
        rest[i] = 0.0
        return total + part * x[i], rest
    return bw.fori_loop(0, 4, step, (0.0, ct))


def test_what_is_overwritten_and_never_read_again_is_not_carried():
    loop = pruned(lambda x, ct: cotangents(x, ct)[0], X, 2 * X)
    assert shapes(loop) == [()]


@pytest.mark.parametrize("program", [
    lambda x, ct: cotangents(x, ct),                                                            # the rest is a result
    lambda x, ct: bw.fori_loop(0, 3, lambda i, c: _step(c, i, i + 1), (0.0, ct))[0],             # what an iteration wrote is read by the next
    lambda x, ct: bw.fori_loop(0, 4, lambda i, c: _step(c, i, 0), (0.0, ct))[0],                 # another element is read
], ids=["result", "next", "other"])
def test_what_is_read_after_all_stays(program):
    assert (4,) in shapes(pruned(program, X, 2 * X))


def _step(c, i, other):
    total, rest = c
    part = rest[i] * 1.0
    rest[i] = part + 5.0
    return total + part + rest[other], rest


def taken(x, ct, place):
    """The sum of products with elements of ct, each made zero, over two loops."""
    def row(i, c):
        def step(j, c):
            total, rest = c
            part = rest[place(i, j)] * 1.0
            rest[place(i, j)] = 0.0
            return total + part * x[i] * x[j], rest
        return bw.fori_loop(0, 4, step, c)
    return bw.fori_loop(0, 4, row, (0.0, ct))[0]


def test_what_nested_loops_overwrite_and_never_read_again_is_not_carried():
    assert shapes(pruned(lambda x, ct: taken(x, ct, lambda i, j: (i, j)), X, np.ones((4, 4)))) == [()]
    assert shapes(pruned(lambda x, ct: taken(x, ct, lambda i, j: (j, 3 - i)), X, np.ones((4, 4)))) == [()]


@pytest.mark.parametrize("place, ct", [(lambda i, j: i + j, np.ones(8)), (lambda i, j: (j, 0), np.ones((4, 4))),
                                       (lambda i, j: (i, i + j), np.ones((4, 8)))], ids=["both", "inner", "one and both"])
def test_what_another_iteration_of_the_loop_around_may_read_stays(place, ct):
    loop = pruned(lambda x, ct: taken(x, ct, place), X, ct)
    assert ct.shape in shapes(loop)


def test_bodies_are_pruned_too():
    def program(x):
        def outer(i, c):
            inner = bw.scan(lambda d, v: (d * v, d), c, x)
            return inner[0]
        return bw.fori_loop(0, 2, outer, 1.0)
    loop = pruned(program, X)
    [inner] = [value for value in loop.attrs["body"].body if value.op.name == "loop"]
    assert shapes(inner) == [()]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_and_gradients_compute_the_same(name):
    program, args = PROGRAMS[name]
    numbers = tuple(k for k, arg in enumerate(args) if np.asarray(arg).dtype.kind == "f")
    for fun in (lambda *given: program(bw, *given), bw.grad(lambda *given: weighted(program, bw, *given), argnums=numbers).fun):
        traced = trace(fun, args)
        graph = prune_regions(traced.graph)
        verify(graph)
        assert prune_regions(graph) is graph
        inputs = [*[np.asarray(arg) for arg in args], *traced.captured]
        for one, other in zip(interpret(traced.graph, inputs), interpret(graph, inputs), strict=True):
            np.testing.assert_array_equal(one, other)


def sums_of_branches(x, sums):
    for k in range(30):
        j = 0
        while x[j % 4] < 3.0 and j < 7:
            if x[j % 4] > 0.5 + 0.01 * k:
                sums = sums + np.sin(x) * j
            j += 1
        x = x * 1.01
    return np.sum(sums)


def test_iterations_that_run_again_keep_no_sums():
    """For the derivative of an inner `while` its iterations run again: what a branch of them adds up has no part in what this reads."""
    sums = np.zeros((5, 4))
    adjoint = bw.grad(sums_of_branches).as_text("adjoint", X, sums)
    assert "f64[30,4]" in adjoint                              # x of each iteration
    assert "f64[30,5,4]" not in adjoint
