"""Calls of functions with custom derivative rules.

A `custom_call` holds the traced function as `body` and a `rule`, an object made by the frontend, which traces the user's
fwd and bwd when they are first needed.  Both return a graph and the arrays it captured:

    rule.forward(types)                          primals -> outputs, then residuals
    rule.backward(residuals, outputs, primals)   residuals, then one cotangent per output -> cotangents of primals; and
                                                 which primals have one

This is a rule for cotangents (`has_cotangents`).  A rule for tangents (`has_tangents`) has `forward`, whose residuals are the primals, and

    rule.push(primals, given)                    primals, then their tangents -> tangents of the outputs; and which outputs
                                                 have one

`types`, `residuals`, `outputs` and `primals` are types.  rule.primals and rule.output_count are their numbers: further operands
of a call are arrays that its body reads from outside, which have no cotangent.  A call mapped over a batch axis is a call whose
rule is mapped (`bwcompiler.passes.batching.batch`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bwcompiler.errors import InternalError
from bwcompiler.ir.declaration import TRANSPOSED, Joint, absent
from bwcompiler.ir.graph import Graph, inline
from bwcompiler.ir.op import Value, constant, current_record, define_op
from bwcompiler.ir.types import TensorType, TupleType, dtype_of, tensor


def inline_with_captured(graph: Graph, operands: Sequence[Value], arrays: Sequence[Any]) -> list[Value]:
    """Inline a graph whose last inputs are captured arrays, which become captured inputs of the current record."""
    record = current_record()
    if record is None:
        raise InternalError("a graph is inlined outside of any record")
    hidden = [record.capture(array, tensor(dtype_of(array.dtype), array.shape)) for array in arrays]
    return inline(graph, [*operands, *hidden])


def _call_shape(*types: TensorType, body: Graph, rule: Any) -> TupleType:
    return TupleType(tuple(output.type for output in body.outputs))


EXPANDED = absent("a function with its own derivative rule is differentiated by the rule, for which passes put custom_link in its place")
MAPPED = absent("a function with its own derivative rule is mapped by the batching pass, together with the rule")


def _link_shape(*types: TensorType, rule: Any, primals: int, outputs: int) -> TupleType:
    return TupleType(types[primals:primals + outputs])


def _link_vjp(cts: Sequence[Value | None], out: Value, operands: Sequence[Value], needs: Sequence[bool], *, rule: Any,
              primals: int, outputs: int) -> list[Value | None]:
    residuals = operands[primals + outputs:]
    seeds = [constant(0.0, type_) if ct is None else ct for ct, type_ in zip(cts, out.type.items, strict=True)]
    graph, arrays, present = rule.backward([value.type for value in residuals], list(out.type.items),
                                           [value.type for value in operands[:primals]])
    found = iter(inline_with_captured(graph, [*residuals, *seeds], arrays))
    cotangents: list[Value | None] = [next(found) if there else None for there in present]
    return [*cotangents, *([None] * (len(operands) - primals))]


custom_call = define_op(
    "custom_call", "region", doc="A call of a function with a custom derivative rule.", attributes=("body", "rule"),
    shape=_call_shape, vjp=Joint(EXPANDED), jvp=EXPANDED, batch=MAPPED,
    reference=lambda *arrays, body, rule: tuple(body(arrays)), regions=("body",),
)
custom_link = define_op(
    "custom_link", "region", doc="Outputs of a custom rule's forward function, linked to primals and residuals for the backward function.",
    attributes=("rule", "primals", "outputs"), shape=_link_shape, vjp=Joint(_link_vjp), jvp=TRANSPOSED,
    batch=MAPPED,
    reference=lambda *arrays, rule, primals, outputs: arrays[primals:primals + outputs],
)
