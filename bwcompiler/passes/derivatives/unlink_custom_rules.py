"""Before a further derivative: links of custom rules from earlier derivatives are replaced by what their fwd computed.

A rule defines one derivative.  The next one differentiates what fwd, or a rule for tangents, computed in place of the
function; if that calls the function, as is usual, the rule is used again.  (As in JAX: `np.round` with a custom derivative
of one has the second derivative of `np.round` if fwd computes the value with it.)
"""

from __future__ import annotations

from bwcompiler import ops
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Value
from bwcompiler.ops.calls.custom import custom_link
from bwcompiler.passes.rewriting.rewriter import Rewritten


def unlink_custom_rules(graph: Graph) -> Rewritten:
    """The graph with outputs in the places of what ties them to their rule, in bodies of loops too."""
    mapping: dict[Value, Value] = {}
    if not _has_links(graph):
        return Rewritten(graph, mapping)
    body = []
    for value in graph.body:
        if value.op is custom_link:
            continue
        if value.op is ops.item and value.operands[0].op is custom_link:
            link = value.operands[0]
            result = link.operands[link.attrs["primals"] + value.attrs["index"]]
            mapping[value] = mapping.get(result, result)
            continue
        operands = tuple([mapping.get(operand, operand) for operand in value.operands])
        copy = value.with_operands(operands).with_regions(lambda body: unlink_custom_rules(body).graph)
        if copy is not value:
            copy.forward = mapping.get(value.forward, value.forward) if value.forward is not None else None
            mapping[value] = copy
        body.append(copy)
    outputs = [mapping.get(output, output) for output in graph.outputs]
    return Rewritten(graph.replace(body=live_values(body, outputs), outputs=outputs), mapping)


def _has_links(graph: Graph) -> bool:
    return any(value.op is custom_link or any(_has_links(value.attrs[name]) for name in value.op.regions) for value in graph.body)
