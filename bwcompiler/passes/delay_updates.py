"""Updates of slices stand as late as they can: right before what reads them, behind what reads the array before.

So that an update can be done in place wherever the order of values allows it: the derivative of `x[i] = v` reads the cotangent of x at i
and then makes it zero there.
"""

from __future__ import annotations

from bwcompiler import ops
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value

UPDATES = (ops.slice_update, ops.slice_add)


def delay_updates(graph: Graph) -> Graph:
    """The graph with its values in that order; the same graph where it is so already."""
    waiting: dict[Value, None] = {}
    body: list[Value] = []

    def place(value: Value) -> None:
        pending = [value]
        while pending:
            needed = [operand for operand in pending[-1].operands if operand in waiting]
            if needed:
                for operand in needed:
                    del waiting[operand]
                pending += reversed(needed)
                continue
            body.append(pending.pop())

    for value in graph.body:
        if value.op in UPDATES:
            waiting[value] = None
        else:
            place(value)
    while waiting:
        first = next(iter(waiting))
        del waiting[first]
        place(first)
    return graph if tuple(body) == graph.body else graph.replace(body=body)
