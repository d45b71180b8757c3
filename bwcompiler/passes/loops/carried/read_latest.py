"""Loops read the latest version of an array, if updates have left the elements that they read unchanged.

    loop: reads A[k], k < 39                           B = A with v at [39]
    B = A with v at [39]                     ->        ...
    ...; loop: reads A[k] again, k < 39                loop: reads B[k]

Otherwise A would have to exist beside B, and the update would begin with a copy of all of A.  This happens in derivatives: the results of
loops are read by their adjoints, and updated before that.  (`save_slices` does the same for single slices.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bwcompiler import ops
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value
from bwcompiler.passes.loops.array_parts import Part, read_parts, version_before, written_parts
from bwcompiler.passes.loops.dependence import are_apart


def read_latest(graph: Graph) -> Graph:
    """The graph whose loops read the latest versions; the same graph where they do."""
    if not any(value.op.regions for value in graph.body):
        return graph
    following = _following(graph)
    mapping: dict[Value, Value] = {}
    body: list[Value] = []
    placed: set[Value] = set()
    for value in graph.body:
        operands: Sequence[Value] = value.operands
        if value.op is ops.loop:
            carried = value.attrs["carried"]
            latest = {array: _latest(value, array, following, placed) for array in value.operands[carried:] if array in following}
            operands = [*operands[:carried], *[latest.get(operand, operand) for operand in operands[carried:]]]
        copy = value.with_operands(tuple([mapping.get(operand, operand) for operand in operands])).with_regions(read_latest)
        if copy is not value:
            mapping[value] = copy
        placed.add(value)
        body.append(copy)
    return graph.replace(body=body, outputs=[mapping.get(output, output) for output in graph.outputs]) if mapping else graph


def _following(graph: Graph) -> dict[Value, list[Value]]:
    """Per version of an array that is computed here those that updates, and loops, make of it."""
    found: dict[Value, list[Value]] = {}
    for value in graph.body:
        before = version_before(value)
        if before is not None and before.op.kind not in ("input", "constant"):
            found.setdefault(before, []).append(value)
    return found


def _latest(loop: Value, array: Value, following: Mapping[Value, Sequence[Value]], placed: set[Value]) -> Value:
    """The last version that is there before a loop, if none on the way changes what the loop reads of the array; else the array."""
    read = read_parts(loop, array)
    version = array
    while read is not None and (later := [one for one in following.get(version, ()) if one in placed]):
        if len(later) > 1 or not _leaves(later[0], read):
            return array
        version = later[0]
    return version


def _leaves(after: Value, read: Sequence[Part]) -> bool:
    """Whether parts of an array are in its next version what they were."""
    written = written_parts(after)
    return written is not None and all(are_apart(one.section, other.section, one.inner, other.inner) for one in read for other in written)
