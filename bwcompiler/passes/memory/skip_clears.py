"""Parts of arrays that are set to zero, and then added to, are set to what is added.

    B = B with 0 at s;  B = B with u added at r;  B = B with v added at s     ->     B = B with u added at r;  B = B with v at s

An adjoint does this: the cotangent of a part that was overwritten (`A[s] = A[s] - f(A[r])`) is zero before it, except for what comes from
its own old value.  Where this is the cotangent that was there (v = B[s]), nothing is left to be done, and nothing else has to be computed
before the part is cleared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bwcompiler import ops
from bwcompiler.ir.access import section_of
from bwcompiler.ir.extent import Section
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Record, Value, is_constant
from bwcompiler.passes.rewriting.rewriter import rebuilt
from bwcompiler.passes.rewriting.update_chains import before_updates

MOST_BETWEEN = 8               # updates of other parts


def skip_clears(graph: Graph) -> Graph:
    """The graph, and the bodies of its loops and branches, without such clears; the same graph where there are none."""
    skipped = _skipped(graph)
    if not skipped and not any(value.op.regions for value in graph.body):
        return graph
    clears = set(skipped.values())
    mapping: dict[Value, Value] = {}
    record = Record()
    for value in graph.body:
        copy = value.with_operands(tuple([mapping.get(operand, operand) for operand in value.operands])).with_regions(skip_clears)
        if value in clears:
            copy = copy.operands[0]
        elif value in skipped:
            copy = _set(copy, value, skipped[value], record)
        else:
            record.values.append(copy)
        if copy is not value:
            mapping[value] = copy
    return rebuilt(graph, record.values, mapping)


def _skipped(graph: Graph) -> Mapping[Value, Value]:
    """The additions to parts that were cleared before, with what cleared them."""
    additions = [value for value in graph.body if value.op is ops.slice_add]
    if not additions:
        return {}
    readers = graph.readers()
    found: dict[Value, Value] = {}
    for addition in additions:
        clear = _clear_of(addition, readers)
        if clear is not None:
            found[addition] = clear
    return found


def _clear_of(addition: Value, readers: Mapping[Value, Sequence[Value | None]]) -> Value | None:
    """What cleared the part that is added to, if nothing has read the array since then."""
    section, version = section_of(addition), addition.operands[0]
    for _ in range(MOST_BETWEEN):
        if version.op not in ops.UPDATES or len(readers[version]) != 1:
            return None
        if section_of(version) == section:
            zeros = version.operands[1]
            return version if version.op is ops.slice_update and is_constant(zeros) and zeros.attrs["value"] == 0 else None
        if not section.is_apart(section_of(version)):
            return None
        version = version.operands[0]
    return None


def _set(copy: Value, addition: Value, clear: Value, record: Record) -> Value:
    """The array with a part set; as it is, where it is set to what is there."""
    array, part = copy.operands
    if _is_there(addition.operands[1], clear.operands[0], section_of(addition)):
        return array
    with record:
        record.source, record.forward = addition.source, addition.forward
        made = ops.slice_update(array, part, **addition.attrs)
    made.name = made.name or addition.name
    return made


def _is_there(part: Value, array: Value, section: Section) -> bool:
    """Whether a value is a part of an array, or of a version of it before updates of others."""
    return part.op is ops.slice and section_of(part) == section and (
        part.operands[0] is array or before_updates(array, section) is before_updates(part.operands[0], section))
