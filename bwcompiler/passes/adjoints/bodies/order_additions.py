"""The order in which an adjoint body adds parts to one cotangent: the largest part is added first.

    c = c with sum(x) added at [i, k]                c = c with y added at [:, k]
    c = c with y added at [:, k]          ->         c = c with sum(x) added at [i, k]

A number is the result of a loop, or exists before one.  An array is added in the loop that computes it (`passes/fusion`), unless a
number has to be added before that loop begins or after it has ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bwcompiler import ops
from bwcompiler.ir.extent import element_count
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Record, Value


def add_large_parts_first(graph: Graph, cotangents: int) -> Graph:
    """The graph whose first results, so many, are added up in that order; the same graph where they are so already."""
    users: dict[Value, int] = {}
    for value in graph.body:
        for operand in value.operands:
            users[operand] = users.get(operand, 0) + 1
    for output in graph.outputs:
        users[output] = users.get(output, 0) + 1
    outputs = list(graph.outputs)
    with Record() as record:
        for number, output in enumerate(outputs[:cotangents]):
            chain = _additions(output, users)
            ordered = sorted(chain, key=lambda value: -element_count(value.operands[1].shape))
            if ordered != chain:
                outputs[number] = _added_up(chain[0].operands[0], ordered, record)
                outputs[number].name = output.name
    if outputs == list(graph.outputs):
        return graph
    return graph.replace(body=live_values([*graph.body, *record.values], outputs), outputs=outputs)


def _additions(total: Value, users: Mapping[Value, int]) -> list[Value]:
    """The additions of parts that make a result, the first to the last, of which nothing else is read."""
    chain: list[Value] = []
    while total.op is ops.slice_add and users[total] == 1:
        chain.append(total)
        total = total.operands[0]
    return chain[::-1]


def _added_up(total: Value, additions: Sequence[Value], record: Record) -> Value:
    for value in additions:
        record.source, record.forward = value.source, value.forward
        total = ops.slice_add(total, value.operands[1], **value.attrs)
    return total
