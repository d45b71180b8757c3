"""Helpers of passes that rewrite the bodies of region ops: which values do not change from one iteration to the next, and
copies of graphs with other inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from bwcompiler import ops
from bwcompiler.ir.extent import Affine, Extent, Index, substitute, upper
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Record, Value, input_value
from bwcompiler.ir.types import I64, TupleType


def mentions(value: Value, index: Index) -> bool:
    """Whether a type or attribute of a value, or of one in its regions, depends on a loop index."""
    return _in(value.type, index) or any(_in(attribute, index) for attribute in value.attrs.values())


def _in(thing: object, index: Index) -> bool:
    if isinstance(thing, Affine):
        return any(term[0] is index for term in thing.terms)
    if isinstance(thing, tuple):
        return any(_in(part, index) for part in thing)
    if isinstance(thing, TupleType):
        return any(_in(item, index) for item in thing.items)
    if isinstance(thing, Graph):
        bounds = () if thing.index is None else (thing.index.lo, thing.index.hi)
        return _in(bounds, index) or any(mentions(value, index) for value in thing.values())
    return _in(getattr(thing, "shape", ()), index)


class Hoisted(NamedTuple):
    """A graph without what is the same in every iteration, and that.

    graph      its inputs are those of the graph given, then one per hoisted value.
    values     what to compute before the loop, of the inputs that do not change, in order; hoisted: those of them that the graph reads.
    mapping    what stands in the graph for values that were replaced.
    """

    graph: Graph
    values: tuple[Value, ...] = ()
    hoisted: tuple[Value, ...] = ()
    mapping: Mapping[Value, Value] = {}


def hoist(graph: Graph, fixed: Iterable[Value], may_fail: bool, stays: Callable[[Value], bool] = lambda value: False) -> Hoisted:
    """Take what depends only on the inputs `fixed` out of a body; what may fail only where the body surely runs.

    Constants and moves of elements stay, since they cost nothing where they are read, unless something that is hoisted needs them; so
    do values of which `stays` says so.
    """
    same: set[Value] = set(fixed)
    for value in graph.body:
        if value.op.pure and all(operand in same for operand in value.operands) and (may_fail or _cannot_fail(value)) and (
                graph.index is None or not mentions(value, graph.index)):
            same.add(value)
    needed = {operand for value in graph.body if value not in same for operand in value.operands}.union(graph.outputs)
    worth = _worth(graph, same, needed, stays)
    if not worth:
        return Hoisted(graph)
    before = live_values([value for value in graph.body if value in same], worth)
    inputs = {value: input_value(value.type, value.label, value.source) for value in worth}
    mapping: dict[Value, Value] = dict(inputs)
    body = copied(graph.body, mapping)
    outputs = [mapping.get(output, output) for output in graph.outputs]
    made = graph.replace(inputs=[*graph.inputs, *inputs.values()], body=live_values(body, outputs), outputs=outputs)
    return Hoisted(made, tuple(before), tuple(worth), mapping)


def _cannot_fail(value: Value) -> bool:
    if value.op.kind == "library":
        routine = value.op.library
        return routine is not None and routine.failure is None and getattr(routine, "natural", None) is None
    return value.op.kind not in ("region", "item") and value.op is not ops.normalize_index


def _worth(graph: Graph, same: set[Value], needed: set[Value], stays: Callable[[Value], bool]) -> list[Value]:
    """The values to hand to the loop: what it needs and what is no constant or move; of moves, what they move."""
    found: set[Value] = set()
    pending = [value for value in graph.body if value in same and value in needed]
    seen = set(pending)
    while pending:
        value = pending.pop()
        if isinstance(value.type, TupleType):
            continue                                   # its items are handed over
        if value.op.kind in ("constant", "layout") or stays(value):
            fresh = [operand for operand in value.operands if operand.op.kind != "input" and operand not in seen]
            seen.update(fresh)
            pending += fresh
        else:
            found.add(value)
    return [value for value in graph.body if value in found]


def emit_values(values: Sequence[Value], mapping: dict[Value, Value], record: Record, extents: Mapping[Index, Extent] = {}) -> None:
    """Emit values into a record with operands replaced, and indices by other extents; adds what stands for the values to the mapping."""
    saved = record.source, record.forward
    for value in values:
        record.source, record.forward = value.source, value.forward
        operands = tuple([mapping.get(operand, operand) for operand in value.operands])
        made = _emitted_at(value, operands, extents) if any(mentions(value, index) for index in extents) else record.emit(
            value.op, operands, value.attrs, value.type)
        if made.name is None:
            made.name = value.name
        mapping[value] = made
    record.source, record.forward = saved


def _emitted_at(value: Value, operands: Sequence[Value], extents: Mapping[Index, Extent]) -> Value:
    """A value without regions that mentions indices, emitted into the current record with other extents in their places."""
    attrs = {name: _substituted(attribute, extents) for name, attribute in value.attrs.items()}
    if value.op is ops.index_value and isinstance(attrs["extent"], int):
        return ops.full(value=attrs["extent"], shape=(), dtype=I64)
    return value.op(*operands, **attrs)


def _substituted(attribute: Any, extents: Mapping[Index, Extent]) -> Any:
    if isinstance(attribute, Affine):
        return substitute(attribute, extents)
    return tuple([_substituted(part, extents) for part in attribute]) if type(attribute) is tuple else attribute


def padded(shape: Sequence[Extent]) -> tuple[int, ...]:
    """The largest extents that a shape may have."""
    return tuple([extent if isinstance(extent, int) else upper(extent) for extent in shape])


def replaced_inputs(graph: Graph, mapping: dict[Value, Value], inputs: Sequence[Value], first: Sequence[Value]) -> Graph:
    """The graph over other inputs: `mapping` says what stands for the old ones, computed by the values `first`; copies are added to it."""
    body = [*first, *copied(graph.body, mapping)]
    return graph.replace(inputs=inputs, body=body, outputs=[mapping.get(output, output) for output in graph.outputs])


def copied(values: Iterable[Value], mapping: dict[Value, Value]) -> list[Value]:
    """The values with operands replaced, but those that are replaced themselves; copies are added to the mapping."""
    body = []
    for value in values:
        if value in mapping:
            continue
        copy = value.with_operands(tuple([mapping.get(operand, operand) for operand in value.operands]))
        if copy is not value:
            mapping[value] = copy
        body.append(copy)
    return body
