"""Updates of slices, and of elements at positions given by data, are moved as late as possible: after all readers of the old array,
directly before the first reader of the new one.

So an update can be done in place whenever some order of values allows it: the derivative of `x[i] = v` reads the cotangent of x at i
and then sets it to zero there.
"""

from __future__ import annotations

from bwcompiler import ops
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value


def delay_updates(graph: Graph) -> Graph:
    """The graph with its values in that order; the same graph where it is so already."""
    waiting: dict[Value, None] = {}
    body: list[Value] = []

    def place(value: Value) -> None:
        pending = [value]
        while pending:
            needed = next((operand for operand in pending[-1].operands if operand in waiting), None)
            if needed is not None:
                pending.append(needed)
                continue
            body.append(pending.pop())
            waiting.pop(body[-1], None)

    for value in graph.body:
        if value.op in ops.WRITES:
            waiting[value] = None
        else:
            place(value)
    for value in (*graph.outputs, *list(waiting)):
        if value in waiting:
            place(value)
    return graph if tuple(body) == graph.body else graph.replace(body=body)
