"""What a loop adds to zeros is set, where no element is added to twice.

    loop i: c = c with c[i] + f(i) at i, from zeros            ->          loop i: c = c with f(i) at i

So a cotangent of which every iteration makes its own row is not read, and where all rows are written it is not filled before
(`forget_overwritten`).
"""

from __future__ import annotations

from bwcompiler import ops
from bwcompiler.ir.extent import Index, Section
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Record, Value, is_constant
from bwcompiler.passes.loops.dependence import are_apart_later
from bwcompiler.passes.loops.replaced_regions import with_regions_replaced
from bwcompiler.passes.rewriting.rewriter import Rewritten


def set_once(graph: Graph) -> Rewritten:
    """The graph whose loops set such elements; the same graph where there are none."""
    return with_regions_replaced(graph, set_once, lambda value: _setting(value) if value.op is ops.loop else None)


def _setting(loop: Value) -> list[Value] | None:
    """The results of the loop that sets elements, in the current record; None where it adds all that it adds."""
    body, carried, step = loop.attrs["body"], loop.attrs["carried"], loop.attrs["step"]
    additions = [body.outputs[number] for number in range(carried)
                 if is_constant(loop.operands[number]) and loop.operands[number].attrs["value"] == 0 and body.index is not None
                 and _adds_once(body, number, body.index, step)]
    if not additions:
        return None
    mapping: dict[Value, Value] = {}
    values = []
    for value in body.body:
        if value in additions:
            with Record() as record:
                record.source, record.forward = value.source, value.forward
                mapping[value] = ops.slice_update(*value.operands, **value.attrs)
            mapping[value].name = value.name
            values += record.values
        else:
            values.append(value)
    made = ops.loop(*loop.operands, **{**loop.attrs, "body": body.replace(
        body=values, outputs=[mapping.get(output, output) for output in body.outputs])})
    made.name = loop.name
    return [ops.item(made, index=number) for number in range(carried)]


def _adds_once(body: Graph, number: int, index: Index, step: int) -> bool:
    """Whether an iteration does nothing with what is carried but adding to a part of it that no other iteration adds to."""
    entry, last = body.inputs[number], body.outputs[number]
    if last.op is not ops.slice_add or last.operands[0] is not entry or body.outputs.count(last) != 1 or entry in body.outputs:
        return False
    uses = [operand for value in body.body for operand in value.operands if operand is entry or operand is last]
    section = Section(last.attrs["starts"], last.operands[1].shape, last.attrs["steps"])
    return len(uses) == 1 and are_apart_later(section, section, index, step, frozenset())
