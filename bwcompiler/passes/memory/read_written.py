"""Values that were written to a part of an array are read from there, if other parts of the array are read beside them.

    v = f(A)                               v = f(A)
    B = A with v at s            ->        B = A with v at s
    w = v + B[t]                           w = B[s] + B[t]

An explicit time step reads the points of a grid and their neighbours.  Simplification knows that the points are what the step before has
computed, and reads this instead.  The step reads B in any case, whose memory v is computed in; v would have to be stored a second time.

A sum with a part of an array, that is the part of the array with this added, is read from there if nothing else reads the array before.

    w = A[s] + v                           B = A with v added at s
    B = A with v added at s      ->        w = B[s]
"""

from __future__ import annotations

from bwcompiler import ops
from bwcompiler.ir.access import is_virtual, section_of
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Record, Value

LEAST_BYTES = 1 << 12          # of a value: a smaller one is in the first cache wherever it is
MOST_READERS = 64              # values that are looked at to see what is beside them

_Readers = dict[Value, list[Value]]


def read_written(graph: Graph) -> Graph:
    """The graph with such values read from the arrays; the same graph if there are none."""
    if not any(value.op in ops.UPDATES for value in graph.body):
        return graph
    readers: _Readers = {}
    for value in graph.body:
        for operand in dict.fromkeys(value.operands):
            readers.setdefault(operand, []).append(value)
    position = {value: number for number, value in enumerate(graph.body)}
    read: dict[Value, Value] = {}
    for update in graph.body:
        written = _value(update, readers)
        if written is not None and _is_candidate(update, written, graph) and _is_read_beside(update, written, readers, position):
            read[update] = written
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
    outputs = [mapping.get(output, output) for output in graph.outputs]
    return graph.replace(body=live_values(body, outputs), outputs=outputs)


def _part(update: Value, original: Value) -> Value:
    """What an update has written, as a slice of its result."""
    section = section_of(original)
    with Record() as record:
        record.source, record.forward = original.source, original.forward
        return ops.slice(update, starts=section.starts, sizes=section.sizes, steps=section.steps)


def _value(update: Value, readers: _Readers) -> Value | None:
    """What an update has written: its operand, or the sum of it with what was there, if another value is that."""
    if update.op is ops.slice_update:
        return update.operands[1]
    if update.op is not ops.slice_add:
        return None
    array, term = update.operands
    parts = [reader for reader in readers[array] if reader is not update]
    if len(parts) != 1 or parts[0].op is not ops.slice or section_of(parts[0]) != section_of(update):
        return None
    sums = readers.get(parts[0], [])
    return sums[0] if len(sums) == 1 and sums[0].op is ops.add and set(sums[0].operands) == {parts[0], term} else None


def _is_candidate(update: Value, value: Value, graph: Graph) -> bool:
    return (value.op.kind == "elementwise" and not is_virtual(value) and value.dtype is update.dtype and value.type.is_fixed
            and value.type.nbytes >= LEAST_BYTES and value not in graph.outputs and update.operands[0] not in (value, *graph.outputs))


def _is_read_beside(update: Value, value: Value, readers: _Readers, position: dict[Value, int]) -> bool:
    """Whether all that reads the value does so after it was written, beside other parts of the array, before the array is updated again."""
    others = [reader for reader in readers[value] if reader is not update]
    if not others or any(position[reader] < position[update] for reader in others):
        return False
    again = min([position[reader] for reader in readers.get(update, ()) if reader.op.kind != "elementwise" and not is_virtual(reader)],
                default=len(position))
    if any(position[reader] > again for reader in others):
        return False
    if update.op is ops.slice_add:
        return True
    parts = [part for part in readers.get(update, ()) if part.op is ops.slice]
    beside = _elementwise([reader for part in parts for reader in readers.get(part, ())], readers)
    return all(not beside.isdisjoint(_elementwise([reader], readers)) for reader in others)


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
