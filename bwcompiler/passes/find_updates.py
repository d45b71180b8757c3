"""Which slice updates only touch their slice.

`y[t] = v` in a loop gives a chain of versions of y.  Recomputing all of y per version, as a fused loop over y would, is
quadratic in the length of the chain; so in a chain of small updates each one writes its slice into the memory of the
version before.  The first of a chain, and updates of most of an array, are ordinary fused values.
"""

from __future__ import annotations

from typing import NamedTuple

from bwcompiler.ir.access import is_alias
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value

CHAIN = 4                     # updates a chain has at least
SHARE = 2                     # an update is small where its slice is at most 1/SHARE of the array


class Updates(NamedTuple):
    """values: what updates in place; arrays: what they may overwrite; passed_on: arrays that only one update reads."""

    values: frozenset[Value]
    arrays: frozenset[Value]
    passed_on: frozenset[Value]


def find_updates(graph: Graph) -> Updates:
    """The updates of the graph that are done in place, provided nothing reads the old version later."""
    candidates = [value for value in graph.body if _is_small(value)]
    if not candidates:
        return Updates(frozenset(), frozenset(), frozenset())
    depth: dict[Value, int] = {}
    for value in candidates:
        depth[value] = depth.get(value.operands[0], 0) + 1
    length = dict(depth)                                       # of the longest chain through the value
    for value in reversed(candidates):
        before = value.operands[0]
        if before in length:
            length[before] = max(length[before], length[value])
    values = frozenset([value for value in candidates if depth[value] > 1 and length[value] >= CHAIN])
    arrays = frozenset([value.operands[0] for value in values])
    return Updates(values, arrays, _read_once(graph, arrays))


def _is_small(value: Value) -> bool:
    return (value.op.name in ("slice_update", "slice_add") and value.operands[1].type.size * SHARE <= value.type.size
            and not is_alias(value.operands[0]))


def _read_once(graph: Graph, arrays: frozenset[Value]) -> frozenset[Value]:
    uses = dict.fromkeys(arrays, 0)
    for value in graph.body:
        for operand in value.operands:
            if operand in uses:
                uses[operand] += 1
    outputs = set(graph.outputs)
    return frozenset([value for value, count in uses.items() if count == 1 and value not in outputs])
