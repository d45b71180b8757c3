"""What is known of a graph's values where some inputs are not."""

from __future__ import annotations

import numpy as np

from bwcompiler import ops
from bwcompiler.ir.extent import Index
from bwcompiler.ir.graph import Graph, cut
from bwcompiler.ir.op import Record, constant, input_value, item
from bwcompiler.ir.semantics.partial_interpreter import UNKNOWN, known_outputs
from bwcompiler.ir.types import BOOL, F64, I64, tensor

SCALAR, COUNT = tensor(F64), tensor(I64)


def counting_loop(trips: int = 4) -> Graph:
    """count, total + x: of integers that are known, and of a number that is not."""
    index = Index(0, trips - 1, "i")
    count, total, x = input_value(COUNT, "count"), input_value(SCALAR, "total"), input_value(SCALAR, "x")
    with Record() as record:
        outputs = [count + ops.index_value(extent=index.extent()), total + x]
    body = cut("body", [count, total, x], record.values, outputs, index=index)
    y = input_value(SCALAR, "y")
    with Record() as record:
        looped = ops.loop(constant(0, COUNT), constant(0.0, SCALAR), y, lo=0, hi=trips - 1, step=1, carried=2, body=body)
        results = [item(looped, index=0), item(looped, index=1)]
    return cut("f", [y], record.values, results)


def test_a_loop_of_both() -> None:
    count, total = known_outputs(counting_loop(), [UNKNOWN], 100)
    assert count == 6 and total is UNKNOWN
    assert known_outputs(counting_loop(), [np.float64(0.5)], 100)[1] == 2.0


def test_what_takes_long_is_not_known() -> None:
    assert known_outputs(counting_loop(20), [UNKNOWN], 100)[0] == 190
    assert known_outputs(counting_loop(20), [UNKNOWN], 20) == [UNKNOWN, UNKNOWN]


def test_branches() -> None:
    x, flag = input_value(SCALAR, "x"), input_value(tensor(BOOL), "flag")
    sides = []
    for number in (1.0, 2.0):
        inner = input_value(SCALAR, "x")
        with Record() as record:
            outputs = [constant(number, SCALAR), inner + inner]
        sides.append(cut("side", [inner], record.values, outputs))
    with Record() as record:
        chosen = ops.cond(flag, x, then_branch=sides[0], else_branch=sides[1])
        results = [item(chosen, index=0), item(chosen, index=1)]
    graph = cut("f", [flag, x], record.values, results)
    assert known_outputs(graph, [np.bool_(False), UNKNOWN], 100) == [2.0, UNKNOWN]
    assert known_outputs(graph, [UNKNOWN, np.float64(1.0)], 100) == [UNKNOWN, UNKNOWN]


def test_what_depends_on_the_index_of_a_loop_around() -> None:
    index = Index(0, 3, "k")
    with Record() as record:
        results = [ops.index_value(extent=index.extent()), constant(2, COUNT) * constant(3, COUNT)]
    assert known_outputs(cut("f", [], record.values, results), [], 100) == [UNKNOWN, 6]
