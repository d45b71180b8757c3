"""Custom rules: replace calls of custom_vjp functions on the differentiated path by their own forward and backward.

A `custom_call` holds the traced function as `body` and a `rule` object made by the frontend, which traces the user's fwd
and bwd when they are first needed:

    rule.forward_graph(types) -> Graph    primals -> outputs, then residuals
    rule.backward_graph(types) -> Graph   residuals, then one cotangent per output -> one cotangent per primal (or absent)

Differentiating replaces the call by fwd's graph, and ties the outputs to the primals by a `custom_link` whose VJP is
bwd's graph.  Where no derivative is taken, `body` is inlined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import REGISTRY, TRANSPOSED, Joint, Record, Value, constant, define_op, emit
from bwcompiler.ir.types import TensorType, TupleType


def inline(graph: Graph, operands: Sequence[Value]) -> list[Value]:
    """Re-emit a graph's body into the current record with its inputs replaced; provenance and names are kept."""
    mapping: dict[Value, Value] = dict(zip(graph.inputs, operands, strict=True))
    for value in graph.body:
        copy = emit(value.op, tuple(mapping[operand] for operand in value.operands), value.attrs, value.type)
        if copy.name is None:
            copy.name = value.name
        if value.source is not None:
            copy.source = value.source
        mapping[value] = copy
    return [mapping[output] for output in graph.outputs]


def _call_shape(*types: TensorType, body: Graph, rule: Any) -> TupleType:
    return TupleType(tuple(output.type for output in body.outputs))


def _call_reference(*arrays: Any, body: Any, rule: Any) -> Any:
    return body(arrays)


def _link_shape(*types: TensorType, rule: Any, primals: int, outputs: int) -> TupleType:
    return TupleType(types[primals:primals + outputs])


def _link_vjp(cts: Sequence[Value | None], out: Value, operands: Sequence[Value], needs: Sequence[bool], *, rule: Any,
              primals: int, outputs: int) -> list[Value | None]:
    residuals = operands[primals + outputs:]
    seeds = [constant(0.0, type_) if ct is None else ct for ct, type_ in zip(cts, out.type.items, strict=True)]
    graph, present = rule.backward_graph([value.type for value in residuals], out.type.items,
                                         [value.type for value in operands[:primals]])
    found = iter(inline(graph, [*residuals, *seeds]))
    cotangents: list[Value | None] = [next(found) if there else None for there in present]
    return [*cotangents, *([None] * (len(operands) - primals))]


CUSTOM_CALL = define_op(
    "custom_call", "region", doc="A function with the user's own derivative rule.", attributes=("body", "rule"),
    shape=_call_shape, vjp=Joint(lambda *_: ()), jvp=TRANSPOSED, batch=None, reference=_call_reference, regions=("body",),
)
CUSTOM_LINK = define_op(
    "custom_link", "region", doc="Outputs of a custom rule's forward, tied to its primals and residuals for the backward.",
    attributes=("rule", "primals", "outputs"), shape=_link_shape, vjp=Joint(_link_vjp), jvp=TRANSPOSED, batch=None,
    reference=lambda *arrays, rule, primals, outputs: arrays[primals:primals + outputs],
)


def expand_custom_rules(graph: Graph, active: set[Value]) -> Graph:
    """Replace every custom_call that the derivative passes through by its fwd, tied to its bwd."""
    if not any(value.op is CUSTOM_CALL and value in active for value in graph.body):
        return graph
    mapping: dict[Value, Value] = {}
    record = Record()
    with record:
        for value in graph.body:
            operands = tuple(mapping.get(operand, operand) for operand in value.operands)
            if value.op is CUSTOM_CALL and value in active:
                record.source = value.source
                mapping[value] = _expand(value, operands)
            elif operands != value.operands:
                mapping[value] = Value(value.op, operands, value.attrs, value.type, value.name, value.source, value.forward)
                record.values.append(mapping[value])
            else:
                record.values.append(value)
    outputs = [mapping.get(output, output) for output in graph.outputs]
    return graph.replace(body=live_values(record.values, outputs), outputs=outputs)


def _expand(call: Value, operands: tuple[Value, ...]) -> Value:
    rule = call.attrs["rule"]
    results = inline(rule.forward_graph([operand.type for operand in operands]), operands)
    return CUSTOM_LINK(*operands, *results, rule=rule, primals=len(operands), outputs=len(call.type.items))


def inline_calls(graph: Graph) -> Graph:
    """Replace every remaining custom_call by its body and every custom_link by its outputs."""
    if not any(value.op is CUSTOM_CALL or value.op is CUSTOM_LINK for value in graph.body):
        return graph
    results: dict[Value, Sequence[Value]] = {}
    mapping: dict[Value, Value] = {}
    item = REGISTRY["item"]
    record = Record()
    with record:
        for value in graph.body:
            operands = tuple(mapping.get(operand, operand) for operand in value.operands)
            if value.op is CUSTOM_CALL:
                results[value] = inline(inline_calls(value.attrs["body"]), operands)
            elif value.op is CUSTOM_LINK:
                start = value.attrs["primals"]
                results[value] = operands[start:start + value.attrs["outputs"]]
            elif value.op is item and value.operands[0] in results:
                mapping[value] = results[value.operands[0]][value.attrs["index"]]
            elif operands != value.operands:
                mapping[value] = Value(value.op, operands, value.attrs, value.type, value.name, value.source, value.forward)
                record.values.append(mapping[value])
            else:
                record.values.append(value)
    outputs = [mapping.get(output, output) for output in graph.outputs]
    return graph.replace(body=live_values(record.values, outputs), outputs=outputs)
