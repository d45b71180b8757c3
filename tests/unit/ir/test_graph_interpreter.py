"""The meaning of graphs, with regions, symbolic extents and checked results."""

from __future__ import annotations

import numpy as np
import pytest

from bwcompiler.errors import InternalError
from bwcompiler.ir.extent import Index
from bwcompiler.ir.graph import Graph, cut
from bwcompiler.ir.op import Record, Value, input_value
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.types import F32, F64, tensor
from bwcompiler.ops.elementwise import log, negative
from bwcompiler.ops.layout import slice_
from tests.unit.ir.region_graphs import small_graph, triangular_loop


def test_small_graph():
    x, y = np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 3.0])
    (found,) = interpret(small_graph(), [x, y])
    assert found.shape == () and found == np.sum(np.tanh(x) * 2.0 + y)


def test_floating_point_warnings_are_silent():
    x = input_value(tensor(F64, (2,)), "x")
    with Record() as record:
        out = log(x)
    found = interpret(cut("f", [x], record.values, [out]), [np.array([0.0, -1.0])])[0]
    assert found[0] == -np.inf and np.isnan(found[1])


def test_environment_gives_free_indices_their_numbers():
    index = Index(0, 4)
    x = input_value(tensor(F64, (5,)), "x")
    with Record() as record:
        out = slice_(x, starts=(index.extent(),), sizes=(5 - index.extent(),), steps=(1,))
    graph = cut("f", [x], record.values, [out], index=index)
    assert list(interpret(graph, [np.arange(5.0)], {index: 3})[0]) == [3.0, 4.0]


def test_arguments_are_checked():
    with pytest.raises(InternalError, match="takes 2 arguments, got 1"):
        interpret(small_graph(), [np.zeros(3)])
    with pytest.raises(InternalError, match="the argument is float32"):
        interpret(small_graph(), [np.zeros(3, np.float32), np.zeros(3)])


def test_results_are_checked():
    x = input_value(tensor(F64, (2,)), "x")
    wrong = Value(negative, (x,), {}, tensor(F32, (2,)))
    with pytest.raises(InternalError, match="the reference of negative is float64"):
        interpret(Graph("f", [x], [wrong], [wrong]), [np.zeros(2)])


def test_loop_over_symbolic_slices():
    x = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    (found,) = interpret(triangular_loop(), [np.asarray(0.5), x])
    assert found == 0.5 + sum(x[:i].sum() * i for i in range(5))
