"""Large parts are added to cotangents first."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.frontend import trace
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Record, input_value
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.types import F64, tensor
from bwcompiler.passes.adjoints.bodies.order_additions import add_large_parts_first

WHOLE = np.linspace(-1.0, 1.0, 20).reshape(4, 5)
PART = np.linspace(2.0, 3.0, 4).reshape(4, 1)
NUMBER = np.full((1, 1), 0.3)


def graph_of(read_between: bool) -> Graph:
    whole, number, part = [input_value(tensor(F64, array.shape)) for array in (WHOLE, NUMBER, PART)]
    with Record() as record:
        first = ops.slice_add(whole, number, starts=(1, 2), steps=(1, 1))
        last = ops.slice_add(first, part, starts=(0, 2), steps=(1, 1))
        also = ops.multiply(first, first) if read_between else whole
    return Graph("sums", [whole, number, part], record.values, [last, also])


def sizes(graph: Graph) -> list[int]:
    return [value.operands[1].type.size for value in graph.body if value.op is ops.slice_add]


def test_the_column_comes_before_the_number():
    graph = graph_of(False)
    made = add_large_parts_first(graph, 1)
    assert (sizes(graph), sizes(made)) == ([1, 4], [4, 1])
    for one, other in zip(interpret(graph, [WHOLE, NUMBER, PART]), interpret(made, [WHOLE, NUMBER, PART]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-15)
    assert add_large_parts_first(made, 1) is made


@pytest.mark.parametrize("read_between, cotangents", [(True, 1), (False, 0)])
def test_others_stay(read_between, cotangents):
    graph = graph_of(read_between)
    assert add_large_parts_first(graph, cotangents) is graph


def test_a_loop_that_adds_columns_and_numbers():
    def rank_one(c, a):
        c = c.copy()
        for i in range(9):
            for k in range(12):
                c[i, :i + 1] += a[:i + 1, k] * a[i, k]
        return c
    c, a = np.sin(np.arange(81.0)).reshape(9, 9), np.cos(np.arange(108.0)).reshape(9, 12)
    joint = trace(bw.grad(lambda c, a: np.sum(rank_one(c, a) ** 2), argnums=(0, 1)).fun, (c, a)).graph
    outer = next(value for value in joint.body if value.op is ops.loop and value.attrs["step"] == -1)
    inner = next(value for value in outer.attrs["body"].body if value.op is ops.loop)
    parts = [value.operands[1].shape for value in inner.attrs["body"].body if value.op is ops.slice_add]
    assert parts[-1] == (1, 1) and len(parts) == 2
    bw.check_grads(rank_one, (c, a), order=1)
