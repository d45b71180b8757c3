"""The walk that `expand_custom_rules` and `expand_regions` share: it replaces some values by others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Record, Value
from bwcompiler.passes.rewriting.rewriter import rebuilt


class Expanded(NamedTuple):
    """The graph; arrays: what rules captured, its last captured inputs; mapping: what stands for values that were replaced."""

    graph: Graph
    arrays: Sequence[Any] = ()
    mapping: Mapping[Value, Value] = {}


def expanded(graph: Graph, replace: Callable[[Value, tuple[Value, ...]], Value | None]) -> Expanded:
    """The graph with replace(value, operands) in the place of each value for which that is not None.

    What `replace` emits on the way becomes part of the graph, and arrays that it captures become inputs.
    """
    mapping: dict[Value, Value] = {}
    record = Record()
    with record:
        for value in graph.body:
            operands = tuple([mapping.get(operand, operand) for operand in value.operands])
            record.source, record.forward = value.source, value.forward
            replacement = replace(value, operands)
            if replacement is not None:
                mapping[value] = replacement
                continue
            kept = value.with_operands(operands)
            if kept is not value:
                mapping[value] = kept
            record.values.append(kept)
    captured = list(record.captured.values())
    inputs = [*graph.inputs, *[value for _, value in captured]]
    made = rebuilt(graph, record.values, mapping).replace(inputs=inputs, captured=graph.captured + len(captured))
    return Expanded(made, [array for array, _ in captured], mapping)
