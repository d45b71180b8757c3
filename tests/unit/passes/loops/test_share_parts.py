"""Parts that loops inside read or fill are read and filled in the array that they are parts of."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
import bwcompiler.numpy as bnp
from bwcompiler import ops
from bwcompiler.frontend import trace
from bwcompiler.ir.op import Record
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.passes.loops.carried.share_parts import share_parts
from tests.support.loop_passes import rewritten

A = np.random.default_rng(0).uniform(0.5, 1.5, (9, 10, 11))


def filled(a):
    """The loop inside leaves a part of its row as it was: zero."""
    s = bnp.zeros((9, 10, 11))
    for i in range(9):
        r = bnp.zeros((10, 11))
        y = a[i, 0]
        for j in range(1, i + 1):
            y = y * 0.5 + a[i, j]
            r[j] = y
        s[i] = r
    return s


def filled_by_three(a):
    s = bnp.zeros((9, 10, 11))
    y = a[0, 0, 0]
    for i in range(9):
        r = bnp.zeros((10, 11))
        for j in range(10):
            q = bnp.zeros(11)
            for k in range(j + 1):
                y = y * 0.5 + a[i, j, k]
                q[k] = y
            r[j] = q
        s[8 - i] = r
    return s


def parts_handed_on(graph, inside=False):
    """How many rows of arrays loops in bodies are given, and how many arrays they fill that begin as zeros, or as nothing in particular."""
    read = filled = 0
    for value in graph.body:
        if value.op is ops.loop and inside:
            read += sum(one.op is ops.reshape and one.operands[0].op is ops.slice for one in value.operands[value.attrs["carried"]:])
            filled += sum(one.op in (ops.full, ops.unset) and one.type.size > 1 for one in value.operands[:value.attrs["carried"]])
        for name in value.op.regions:
            more = parts_handed_on(value.attrs[name], True)
            read, filled = read + more[0], filled + more[1]
    return read, filled


@pytest.mark.parametrize("fun, before", [(filled, 1), (filled_by_three, 2)], ids=lambda one: getattr(one, "__name__", ""))
def test_the_whole_is_filled(fun, before):
    graph, made = rewritten(share_parts, fun, A)
    assert (parts_handed_on(graph), parts_handed_on(made)) == ((0, before), (0, 0))
    assert share_parts(made) is made
    bw.check_grads(fun, (A,), order=1, modes=("rev",))


def sweeps(a):
    b = a[0].copy()
    for _ in range(5):
        for i in range(1, 10):
            for j in range(1, i + 1):
                b[i, j] = 0.5 * np.sin(b[i, j] * b[i - 1, j]) + 0.3 * b[i, j - 1]
    return b


def branching(a):
    """The adjoint knows which side was taken, of each of three loops."""
    b = a[0].copy()
    for _ in range(5):
        for i in range(1, 10):
            for j in range(1, i):
                if b[i, j - 1] > 1.0:
                    b[i, j] = b[i, j] * b[i, j - 1]
                b[i, j] = 0.9 * np.sin(b[i, j])
    return b


def triangles(a):
    """What a nest of three loops keeps lies in rows that grow, of a stack that is not filled before."""
    b = a[0].copy()
    for _ in range(12):
        for i in range(2, 10):
            for j in range(i):
                y = b[i, j]
                for k in range(j, i):
                    y = np.sin(y) * b[i - 1, k]
                b[i, j] = y
    return b


@pytest.mark.parametrize("fun", [sweeps, branching, triangles], ids=lambda fun: fun.__name__)
def test_what_a_nest_keeps_lies_in_one_array(fun):
    traced = trace(bw.grad(lambda a: np.sum(fun(a) * A[1])).fun, (A,))
    graph, inputs = traced.graph, [A, *traced.captured]
    made = share_parts(graph)
    verify(made)
    before, after = parts_handed_on(graph), parts_handed_on(made)
    assert before[0] > 0 and after == (0, 0)
    np.testing.assert_array_equal(interpret(made, inputs)[0], interpret(graph, inputs)[0])
    bw.check_grads(fun, (A,), order=1, modes=("rev",))


def two_rows(a):
    """Each iteration writes over the row of the one before."""
    s = bnp.zeros((9, 10, 11))
    for i in range(8):
        r = bnp.zeros((10, 11))
        y = a[i, 0]
        for j in range(1, i + 1):
            y = y * 0.5 + a[i, j]
            r[j] = y
        s[i:i + 2] = r
    return s


def begins_with_numbers(a):
    s = a * 2.0
    for i in range(9):
        r = bnp.zeros((10, 11))
        y = a[i, 0]
        for j in range(1, i + 1):
            y = y * 0.5 + a[i, j]
            r[j] = y
        s[i] = r
    return s


def one_row(a):
    s = bnp.zeros((9, 10, 11))
    for i in range(9):
        r = bnp.zeros((10, 11))
        y = a[i, 0]
        for j in range(1, i + 1):
            y = y * 0.5 + a[i, j]
            r[j] = y
        s[3] = r
    return s


def read_too(a):
    """The loop inside reads what it fills."""
    s = bnp.zeros((9, 10, 11))
    for i in range(9):
        r = bnp.zeros((10, 11))
        for j in range(1, 10):
            r[j] = r[j - 1] * 0.5 + a[i, j]
        s[i] = r
    return s


def changes(a):
    b = a.copy()
    y = a[0, 0] * 0.0
    for i in range(9):
        c = b[i]
        for j in range(10):
            y = y * 0.5 + c[j]
        b[8 - i, 0] = y
    return b


@pytest.mark.parametrize("fun", [two_rows, begins_with_numbers, one_row, read_too, changes], ids=lambda fun: fun.__name__)
def test_others_stay(fun):
    graph, made = rewritten(share_parts, fun, A)
    assert made is graph


def beginning(graph, whole, part):
    """The graph whose only array of zeros before the loop, and in it, begin as these ops say."""
    def begun(op, value):
        return op(shape=value.shape, dtype=value.dtype, **({"value": 0.0} if op is ops.full else {}))

    def changed(graph, op, inside=None):
        with Record() as record:
            mapping = {value: begun(op, value) for value in graph.body if value.op is ops.full and value.type.size > 1}
        body = list(record.values)
        for value in graph.body:
            if value in mapping:
                continue
            copy = value.with_operands(tuple([mapping.get(operand, operand) for operand in value.operands]))
            if copy.op is ops.loop and inside is not None:
                copy = copy.with_regions(lambda region: changed(region, inside))
            mapping[value] = copy
            body.append(copy)
        return graph.replace(body=body, outputs=[mapping.get(output, output) for output in graph.outputs])
    return changed(graph, whole, part)


@pytest.mark.parametrize("whole, part, is_shared", [(ops.full, ops.full, True), (ops.unset, ops.unset, True), (ops.full, ops.unset, True),
                                                    (ops.unset, ops.full, False)], ids=str)
def test_a_part_begins_as_the_whole_does_or_as_nothing_in_particular(whole, part, is_shared):
    graph = beginning(trace(filled, (A,)).graph, whole, part)
    verify(graph)
    made = share_parts(graph)
    verify(made)
    assert (made is not graph) == is_shared
    assert parts_handed_on(made) == ((0, 0) if is_shared else (0, 1))
