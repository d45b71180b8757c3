"""Loops read the latest version of an array: which loops may, and that what they read is the same."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.compiler.pipeline import derive
from bwcompiler.frontend import trace
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED
from bwcompiler.passes.derivatives.inline_custom_rules import inline_custom_rules
from bwcompiler.passes.loops.carried.read_latest import read_latest
from bwcompiler.passes.loops.prune_regions import prune_regions
from tests.support.derivatives import check_derivatives

A = np.random.default_rng(4).standard_normal((40, 20))
X = np.random.default_rng(5).standard_normal(20)


def walk(a, x):
    """An array that a loop made, to read of, and to update."""
    b = a * 1.0
    for i in range(1, 38):
        b[i] = np.sin(b[i - 1]) * x
    return b


def read_again(b, c, x, begin, end):
    y = x
    for i in range(begin, end):
        y = np.sin(y) * b[i]
    return np.sum(y) + c


def last_row(a, x):
    b = walk(a, x)
    c = b.copy()
    c[38] = x
    return read_again(b, c, x, 0, 38)


def two_rows(a, x):
    b = walk(a, x)
    c = b.copy()
    c[38] = x
    c[39] += c[38]
    return read_again(b, c, x, 0, 38)


def by_a_loop(a, x):
    b = walk(a, x)
    c = b.copy()
    for i in range(20, 40):
        c[i] = np.cos(c[i - 1]) * x
    return read_again(b, c, x, 0, 20)


def row_that_is_read(a, x):
    b = walk(a, x)
    c = b.copy()
    c[37] = x
    return read_again(b, c, x, 0, 38)


def loop_that_writes_it(a, x):
    b = walk(a, x)
    c = b.copy()
    for i in range(20, 40):
        c[i] = np.cos(c[i - 1]) * x
    return read_again(b, c, x, 0, 21)


def two_versions(a, x):
    b = walk(a, x)
    c, d = b.copy(), b.copy()
    c[38] = x
    d[39] = x
    return read_again(b, c, x, 0, 38) + d


def later_one_writes_it(a, x):
    """One step would be right, and the next one would not."""
    b = walk(a, x)
    c = b.copy()
    c[38] = x
    c[3] = x
    return read_again(b, c, x, 0, 38)


def of_an_argument(a, x):
    c = a.copy()
    c[38] = x
    return read_again(a, c, x, 0, 38)


MOVED = (last_row, two_rows, by_a_loop)
STAY = (row_that_is_read, loop_that_writes_it, two_versions, later_one_writes_it, of_an_argument)


def read_at_the_end(graph: Graph):
    """The array that the last loop reads."""
    loop = [value for value in graph.body if value.op is ops.loop][-1]
    [array] = [operand for operand in loop.operands[loop.attrs["carried"]:] if operand.shape == A.shape]
    return array


@pytest.mark.parametrize("fun", MOVED, ids=lambda fun: fun.__name__)
def test_loops_read_the_latest_version(fun):
    graph = trace(fun, (A, X)).graph
    made = read_latest(graph)
    verify(made)
    assert read_at_the_end(made).source != read_at_the_end(graph).source
    assert read_latest(made) is made


@pytest.mark.parametrize("fun", STAY, ids=lambda fun: fun.__name__)
def test_others_stay(fun):
    graph = trace(fun, (A, X)).graph
    assert read_latest(graph) is graph


@pytest.mark.parametrize("fun", [*MOVED, *STAY], ids=lambda fun: fun.__name__)
def test_values_and_derivatives(fun):
    assert np.allclose(bw.jit(fun)(A, X), fun(A, X), rtol=1e-12)
    check_derivatives(fun, A, X)


def sweep_and_last_row(a, x):
    b = a * 1.0
    for i in range(1, 39):
        b[i] = 0.3 * b[i - 1] * b[i - 1] * x
    b[39] = x
    return np.sum(b * b)


def test_adjoints_read_what_was_updated_behind_the_loop():
    joint = inline_custom_rules(prune_regions(derive(trace(sweep_and_last_row, (A, X)).graph, (0, 1), [INPUT_SEED]).graph))
    assert updated_and_read(joint) and not updated_and_read(read_latest(joint))


def updated_and_read(graph: Graph) -> list[Value]:
    """The results of loops that an update is made of, and that loops read beside it."""
    updated = {value.operands[0] for value in graph.body if value.op in ops.UPDATES and value.operands[0].op is ops.item}
    return [operand for value in graph.body if value.op is ops.loop for operand in value.operands if operand in updated]
