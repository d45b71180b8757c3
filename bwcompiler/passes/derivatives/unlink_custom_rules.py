"""Before a further derivative: custom rules of those that were taken give way to what their forward computed.

A rule stands for one derivative.  That of the program which resulted differentiates what fwd, or a rule for tangents, computed in the
place of the function; where it called the function, as most do, the rule is asked again.  (As JAX has it: `np.round` with a derivative
of one has the second derivative of `np.round` where fwd computes it so.)
"""

from __future__ import annotations

from bwcompiler import ops
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Value
from bwcompiler.ops.custom import custom_link


def unlink_custom_rules(graph: Graph) -> Graph:
    """The graph with outputs in the places of what ties them to their rule, in bodies of loops too."""
    return unlink_rules_with_mapping(graph)[0]


def unlink_rules_with_mapping(graph: Graph) -> tuple[Graph, dict[Value, Value]]:
    """The graph without links, and what stands in it for values that were replaced."""
    mapping: dict[Value, Value] = {}
    if not _has_links(graph):
        return graph, mapping
    body = []
    for value in graph.body:
        if value.op is custom_link:
            continue
        if value.op is ops.item and value.operands[0].op is custom_link:
            link = value.operands[0]
            result = link.operands[link.attrs["primals"] + value.attrs["index"]]
            mapping[value] = mapping.get(result, result)
            continue
        copy = value.with_operands(tuple([mapping.get(operand, operand) for operand in value.operands])).with_regions(unlink_custom_rules)
        if copy is not value:
            copy.forward = mapping.get(value.forward, value.forward) if value.forward is not None else None
            mapping[value] = copy
        body.append(copy)
    outputs = [mapping.get(output, output) for output in graph.outputs]
    return graph.replace(body=live_values(body, outputs), outputs=outputs), mapping


def _has_links(graph: Graph) -> bool:
    return any(value.op is custom_link or any(_has_links(value.attrs[name]) for name in value.op.regions) for value in graph.body)
