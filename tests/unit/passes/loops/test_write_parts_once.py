"""Several updates of an array in one for each part: with the same elements, and only where nothing depends on their order."""

from __future__ import annotations

import numpy as np

from bwcompiler import ops
from bwcompiler.ir.graph import Graph, cut, live_values, readers_of
from bwcompiler.ir.op import Record, Value, input_value
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.types import F64, tensor
from bwcompiler.passes.loops.carried.write_parts_once import written_once

A, U, E = np.arange(10.0), np.array([0.1, 0.2, 0.3]), np.array([7.0])


def changed(*steps, read=None):
    """What becomes of updates (op, start, what is written) of an array: how many there are; its elements stay the same."""
    array, vector, element = (input_value(tensor(F64, size), name) for size, name in (((10,), "a"), ((3,), "u"), ((1,), "e")))
    inputs = [array, vector, element]
    with Record() as record:
        versions: list[Value] = [array]
        for op, start, size in steps:
            versions.append(op(versions[-1], vector if size == 3 else element, starts=(start,), steps=(1,)))
        more = [] if read is None else [ops.slice(versions[read], starts=(0,), sizes=(2,), steps=(1,))]
        last = versions[-1]
        found = written_once(array, last, readers_of(live_values(record.values, [last, *more]), [last, *more]))
    before, after = (cut("g", inputs, record.values, [one, *more]) for one in (last, found))
    for expected, got in zip(interpret(before, [A, U, E]), interpret(after, [A, U, E]), strict=True):
        np.testing.assert_array_equal(got, expected)
    return updates(after)


def updates(graph: Graph) -> list[tuple[str, object]]:
    return [(value.op.name, value.attrs["starts"][0]) for value in graph.body if value.op in ops.UPDATES]


def test_additions_to_a_part_are_one_update_and_elements_come_last():
    found = changed((ops.slice_update, 8, 1), (ops.slice_add, 0, 3), (ops.slice_update, 9, 1), (ops.slice_add, 0, 3))
    assert found == [("slice_update", 0), ("slice_update", 8), ("slice_update", 9)]


def test_one_addition_stays_one():
    assert changed((ops.slice_update, 8, 1), (ops.slice_add, 0, 3)) == [("slice_add", 0), ("slice_update", 8)]


def test_what_is_set_later_counts():
    assert changed((ops.slice_add, 0, 3), (ops.slice_update, 0, 3), (ops.slice_add, 0, 3)) == [("slice_update", 0)]


def test_parts_that_overlap_keep_their_order():
    steps = (ops.slice_add, 0, 3), (ops.slice_add, 2, 3), (ops.slice_add, 0, 3)
    assert changed(*steps) == [("slice_add", 0), ("slice_add", 2), ("slice_add", 0)]


def test_versions_that_are_read_stay():
    steps = (ops.slice_add, 0, 3), (ops.slice_update, 9, 1), (ops.slice_add, 0, 3)
    assert changed(*steps, read=1) == [("slice_add", 0), ("slice_update", 9), ("slice_add", 0)]
