"""States of loops that an iteration mostly overwrites are written to new memory, and not over a copy of the old state.

    u = u with f(u[:-2], u[2:]) at 1:-1          ->          w = unset;  w[:1] = u[:1];  w[-1:] = u[-1:];  w[1:-1] = f(u[:-2], u[2:])

An update of most of an array is a new array made of pieces.  A piece whose elements are computed from their neighbours would first be
stored and then copied.  Here it is computed directly into the new array, and the rest of the old array, its border, is copied.
Where the piece is made of other arrays, and nothing reads the old one afterwards, it is computed into the old array as it is.  If something
is added to several parts afterwards, as in the derivative of a stencil, one loop over a new array gathers that.
"""

from __future__ import annotations

from collections.abc import Sequence

from bwcompiler import ops
from bwcompiler.ir.extent import Extent, add_extents, scale_extent
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Record, Value
from bwcompiler.passes.memory.find_updates import is_free, is_gathered, is_small_slice
from bwcompiler.passes.rewriting.rewriter import rebuilt

LEAST_ELEMENTS = 128           # of an update: small arrays are copied as fast as two loops more are begun


def write_beside(graph: Graph) -> Graph:
    """The graph whose loops write such states beside the last ones; the same graph where there are none."""
    if not any(value.op.regions for value in graph.body):
        return graph
    mapping: dict[Value, Value] = {}
    values: list[Value] = []
    for value in graph.body:
        copy = value.with_operands(tuple([mapping.get(operand, operand) for operand in value.operands])).with_regions(write_beside)
        if copy.op in ops.LOOPS:
            attributes = {**copy.attrs, "body": _written_beside(copy.attrs["body"], copy.attrs["carried"])}
            if attributes["body"] is not copy.attrs["body"]:
                copy = Value(copy.op, copy.operands, attributes, copy.type, copy.name, copy.source, copy.forward)
        if copy is not value:
            mapping[value] = copy
        values.append(copy)
    return rebuilt(graph, values, mapping)


def _written_beside(body: Graph, carried: int) -> Graph:
    """The body with its states' updates of most of an array written to new ones."""
    found = {update for number in range(carried) for update in _updates(body, number)}
    if not found:
        return body
    mapping: dict[Value, Value] = {}
    borders: dict[Value, Value] = {}
    values = [value for value in body.body if value.op.kind == "constant"]
    for update in [value for value in body.body if value in found]:        # in front: what the update reads is then read by one loop
        with Record() as record:
            record.source, record.forward = update.source, update.forward
            borders[update] = _border(update)
        values += record.values
    for value in body.body:
        if value.op.kind == "constant":
            continue
        copy = value.with_operands(tuple([mapping.get(operand, operand) for operand in value.operands]))
        if value in found:
            copy = copy.with_operands((borders[value], copy.operands[1]))
        if copy is not value:
            mapping[value] = copy
        values.append(copy)
    return rebuilt(body, values, mapping)


def _updates(body: Graph, number: int) -> list[Value]:
    """The update of most of a state, or of one number, of which nothing but further updates make the next state."""
    value = body.outputs[number]
    while value.op in ops.UPDATES and value.operands[0].op in ops.UPDATES:
        if value.op is ops.slice_add and is_gathered(value, body):
            return []
        value = value.operands[0]
    base = value.operands[0] if value.op is ops.slice_update else value
    if base.op.kind not in ("input", "constant") or base.op is ops.unset or base is value:
        return []
    is_overwritten = base.op.kind == "input" and is_free(base, value, body)
    return [value] if _is_most(value) and _is_computed(value.operands[1]) and not is_overwritten else []


def _is_most(update: Value) -> bool:
    array, part = update.operands
    if not (array.type.is_fixed and part.type.is_fixed and LEAST_ELEMENTS <= part.type.size < array.type.size):
        return False                                           # a part that is larger is one in a loop that never runs
    return not is_small_slice(part, array) and all(step == 1 for step in update.attrs["steps"])


def _is_computed(part: Value) -> bool:
    """Whether a part is made of elements of arrays, and stored for nothing else than to be written."""
    while part.op in (ops.reshape, ops.broadcast):
        part = part.operands[0]
    return part.op.kind == "elementwise"


def _border(update: Value) -> Value:
    """An array that holds what the update leaves as it is, in the current record."""
    array, part = update.operands
    made: Value = ops.unset(shape=array.shape, dtype=array.dtype)
    starts: list[Extent] = [0] * array.rank
    sizes: list[Extent] = list(array.shape)
    for axis, (begin, size) in enumerate(zip(update.attrs["starts"], part.shape, strict=True)):
        end = add_extents(begin, size)
        for start, count in ((0, begin), (end, add_extents(array.shape[axis], scale_extent(end, -1)))):
            if count != 0:
                made = _copied(made, array, [*starts[:axis], start, *starts[axis + 1:]], [*sizes[:axis], count, *sizes[axis + 1:]])
        starts[axis], sizes[axis] = begin, size
    return made


def _copied(made: Value, array: Value, starts: Sequence[Extent], sizes: Sequence[Extent]) -> Value:
    begin, steps = tuple(starts), (1,) * array.rank
    return ops.slice_update(made, ops.slice(array, starts=begin, sizes=tuple(sizes), steps=steps), starts=begin, steps=steps)
