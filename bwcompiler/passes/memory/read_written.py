"""Values that were written to a part of an array are read from there, if other parts of the array are read beside them.

    v = f(A)                               v = f(A)
    B = A with v at s            ->        B = A with v at s
    w = v + B[t]                           w = B[s] + B[t]

An explicit time step reads the points of a grid and their neighbours.  Simplification knows that the points are what the step before has
computed, and reads this instead.  The step reads B in any case, whose memory v is computed in; v would have to be stored a second time.
"""

from __future__ import annotations

from bwcompiler import ops
from bwcompiler.ir.access import is_virtual, section_of
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Record, Value

LEAST_BYTES = 1 << 12          # of a value: a smaller one is in the first cache wherever it is
MOST_READERS = 64              # values that are looked at to see what is beside them

_Readers = dict[Value, list[Value]]


def read_written(graph: Graph) -> Graph:
    """The graph with such values read from the arrays; the same graph if there are none."""
    if not any(value.op is ops.slice_update for value in graph.body):
        return graph
    readers: _Readers = {}
    for value in graph.body:
        for operand in dict.fromkeys(value.operands):
            readers.setdefault(operand, []).append(value)
    position = {value: number for number, value in enumerate(graph.body)}
    read = {update: update.operands[1] for update in graph.body
            if _is_candidate(update, graph) and _is_read_beside(update, readers, position)}
    if not read:
        return graph
    body: list[Value] = []
    mapping: dict[Value, Value] = {}
    for value in graph.body:
        copy = value.with_operands(tuple([mapping.get(operand, operand) for operand in value.operands]))
        if copy is not value:
            mapping[value] = copy
        body.append(copy)
        if value in read:
            body.append(_part(copy, value))
            mapping[read[value]] = body[-1]
    return graph.replace(body=body, outputs=[mapping.get(output, output) for output in graph.outputs])


def _part(update: Value, original: Value) -> Value:
    """What an update has written, as a slice of its result."""
    section = section_of(original)
    with Record() as record:
        record.source, record.forward = original.source, original.forward
        return ops.slice(update, starts=section.starts, sizes=section.sizes, steps=section.steps)


def _is_candidate(update: Value, graph: Graph) -> bool:
    if update.op is not ops.slice_update:
        return False
    value = update.operands[1]
    return (value.op.kind == "elementwise" and not is_virtual(value) and value.dtype is update.dtype and value.type.is_fixed
            and value.type.nbytes >= LEAST_BYTES and value not in graph.outputs and value is not update.operands[0])


def _is_read_beside(update: Value, readers: _Readers, position: dict[Value, int]) -> bool:
    """Whether all that reads the value does so after it was written, beside other parts of the array, before the array is updated again."""
    others = [reader for reader in readers[update.operands[1]] if reader is not update]
    if not others or any(position[reader] < position[update] for reader in others):
        return False
    again = min([position[reader] for reader in readers.get(update, ()) if reader.op.kind != "elementwise" and not is_virtual(reader)],
                default=len(position))
    parts = [part for part in readers.get(update, ()) if part.op is ops.slice]
    beside = _elementwise([reader for part in parts for reader in readers.get(part, ())], readers)
    return all(position[reader] < again and not beside.isdisjoint(_elementwise([reader], readers)) for reader in others)


def _elementwise(values: list[Value], readers: _Readers) -> set[Value]:
    """Elementwise values among these, and those that are made of them by elementwise operations: some of them, if they are many."""
    found = [value for value in values if value.op.kind == "elementwise"]
    seen = set(found)
    for value in found:                            # which grows
        for reader in readers.get(value, ()) if len(found) < MOST_READERS else ():
            if reader.op.kind == "elementwise" and reader not in seen:
                seen.add(reader)
                found.append(reader)
    return seen
