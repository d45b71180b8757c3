"""After a reverse sweep: the links between loops or branches and their adjoints are replaced by the results (`expand_regions`)."""

from __future__ import annotations

from bwcompiler import ops
from bwcompiler.ir.graph import live_values
from bwcompiler.ir.op import Value
from bwcompiler.passes.adjoints.reuse_restored import restoring_loops, reuse_restored
from bwcompiler.passes.derivatives.autodiff import JointGraph


def unlink_regions(joint: JointGraph) -> JointGraph:
    """The joint graph without links: results in the places of what was tied to operands."""
    unlinked, mapping = unlink_with_mapping(joint)
    graph = reuse_restored(unlinked.graph, restoring_loops(joint.graph, mapping))
    return unlinked if graph is unlinked.graph else unlinked._replace(graph=graph)


def unlink_with_mapping(joint: JointGraph) -> tuple[JointGraph, dict[Value, Value]]:
    """The joint graph without links, and what stands in it for values that were replaced."""
    graph = joint.graph
    if not any(value.op is ops.region_link for value in graph.body):
        return joint, {}
    mapping: dict[Value, Value] = {}
    body = []
    for value in graph.body:
        if value.op is ops.region_link:
            continue
        if value.op is ops.item and value.operands[0].op is ops.region_link:
            link = value.operands[0]
            result = link.operands[link.attrs["given"] + value.attrs["index"]]
            mapping[value] = mapping.get(result, result)
            continue
        copy = value.with_operands(tuple([mapping.get(operand, operand) for operand in value.operands]))
        if copy is not value:
            mapping[value] = copy
        body.append(copy)
    outputs = [mapping.get(output, output) for output in graph.outputs]
    origins = {mapping.get(value, value): origin for value, origin in joint.origins.items()}
    return joint._replace(graph=graph.replace(body=live_values(body, outputs), outputs=outputs), origins=origins), mapping
