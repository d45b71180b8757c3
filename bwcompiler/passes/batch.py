"""Batching: a graph -> the graph with some inputs given a leading axis, mapped over it.

Values that do not depend on a batched input stay as they are, so a batch of pullbacks computes the forward part once.
"""

from __future__ import annotations

from collections.abc import Sequence

from bwcompiler.errors import UnsupportedError, at
from bwcompiler.ir.extent import Extent
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Record, Value, input_value
from bwcompiler.ir.types import tensor
from bwcompiler.passes.expand_custom_rules import inline_calls


def batch_graph(graph: Graph, batched: Sequence[bool], size: Extent) -> tuple[Graph, list[bool]]:
    """The mapped graph, and which of its outputs have the leading axis."""
    graph = inline_calls(graph)
    mapping: dict[Value, Value] = {}
    mapped: set[Value] = set()
    inputs: list[Value] = []
    for value, flag in zip(graph.inputs, batched, strict=True):
        made = input_value(tensor(value.dtype, (size, *value.shape)), value.name, value.source) if flag else value
        mapping[value] = made
        inputs.append(made)
        if flag:
            mapped.add(value)
    record = Record()
    with record:
        for value in graph.body:
            flags = [operand in mapped for operand in value.operands]
            operands = [mapping[operand] for operand in value.operands]
            record.source, record.forward = value.source, value.forward
            if not any(flags):
                record.values.append(value)
                mapping[value] = value
                continue
            if value.op.batch is None:
                raise UnsupportedError(at(value.source, f"{value.op.name} cannot be mapped over a batch axis yet"))
            made = value.op.batch(operands, flags, size, **value.attrs)
            if made.name is None:
                made.name = value.name
            mapping[value] = made
            mapped.add(value)
    outputs = [mapping[output] for output in graph.outputs]
    body = live_values(record.values, outputs)
    return Graph(graph.name, inputs, body, outputs, None, graph.captured), [output in mapped for output in graph.outputs]
