"""An array of which a loop only reads and writes one element is not carried by the loop: the element is.

    loop k: c[i, j] += a[i, k] * b[k, j]          ->          s = c[i, j];  loop k: s += a[i, k] * b[k, j];  c[i, j] = s

The element is a number in a register then (`lowering/regions.py`), its derivative needs no undo log, and the loop around may be computed
for all j at once (`vectorize_loops`).
"""

from __future__ import annotations

from collections.abc import Sequence

from bwcompiler import ops
from bwcompiler.ir.extent import Extent, Section, add_extents, known_le
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Record, Value, input_value
from bwcompiler.passes.loops.region_bodies import emit_values, mentions
from bwcompiler.passes.rewriting.rewriter import Rewriter, Rewritten, rebuilt
from bwcompiler.passes.rewriting.simplify_rules import RULES


def promote_elements(graph: Graph) -> Rewritten:
    """The graph whose loops carry elements in the places of arrays, the inner ones first; the same graph where there are none."""
    if not any(value.op.regions for value in graph.body):
        return Rewritten(graph, {})
    mapping: dict[Value, Value] = {}
    record = Rewriter(RULES)
    with record:
        for value in graph.body:
            operands = tuple([mapping.get(operand, operand) for operand in value.operands])
            copy = value.with_operands(operands).with_regions(lambda body: promote_elements(body).graph)
            if copy.op is ops.loop:
                record.source, record.forward = value.source, value.forward
                found = _promoted(copy)
                if found is not None:
                    mapping |= {item: made for item, made in zip(_items(graph, value), found, strict=True) if item is not None}
                    continue
            if value in mapping:
                continue
            if copy is not value:
                mapping[value] = copy
            record.values.append(copy)
    return Rewritten(rebuilt(graph, record.values, mapping), mapping)


def _items(graph: Graph, loop: Value) -> list[Value | None]:
    """The results of a loop that are read, by number."""
    found = {value.attrs["index"]: value for value in graph.body if value.op is ops.item and value.operands[0] is loop}
    return [found.get(number) for number in range(loop.attrs["carried"])]


def _promoted(loop: Value) -> list[Value] | None:
    """The results of a loop that carries elements where it can, in the current record; None where it cannot."""
    attrs, carried = loop.attrs, loop.attrs["carried"]
    body: Graph = attrs["body"]
    places = {k: place for k in range(carried) if (place := _only_element(body, k)) is not None}
    if not places:
        return None
    inputs = list(body.inputs)
    operands = list(loop.operands)
    with Record() as inner:
        current: dict[Value, Value] = {}
        for k, place in places.items():
            type_ = body.inputs[k].type.with_shape(place.sizes)
            inputs[k] = current[body.inputs[k]] = input_value(type_, body.inputs[k].name)
        mapping: dict[Value, Value] = {}
        for value in body.body:
            if value.operands and value.operands[0] in current:
                before = current[value.operands[0]]
                if value.op is ops.slice:
                    mapping[value] = before
                    continue
                more = mapping.get(value.operands[1], value.operands[1])
                inner.source, inner.forward = value.source, value.forward
                current[value] = more if value.op is ops.slice_update else ops.add(before, more)
            else:
                emit_values([value], mapping, inner)
    outputs = [current[output] if output in current else mapping.get(output, output) for output in body.outputs]
    made = body.replace(inputs=inputs, body=live_values(inner.values, outputs), outputs=outputs)
    for k, place in places.items():
        operands[k] = ops.slice(loop.operands[k], starts=place.starts, sizes=place.sizes, steps=place.steps)
    looped = ops.loop(*operands, **{**attrs, "body": made})
    results = [ops.item(looped, index=k) for k in range(carried)]
    for k, place in places.items():
        results[k] = ops.slice_update(loop.operands[k], results[k], starts=place.starts, steps=place.steps)
    return results


def _only_element(body: Graph, number: int) -> Section | None:
    """The place of the one element of a carried array that a body reads and writes, in the loops around; None where there is more."""
    index, versions, places = body.index, {body.inputs[number]}, set()
    assert index is not None
    for value in body.body:
        if versions.isdisjoint(value.operands):
            continue
        if value.op not in (ops.slice, *ops.UPDATES) or not versions.isdisjoint(value.operands[1:]) or mentions(value, index):
            return None
        places.add(_place(value))
        if value.op in ops.UPDATES:
            versions.add(value)
    outputs = [output for output in body.outputs if output in versions]
    if len(places) != 1 or outputs != [body.outputs[number]] or outputs == [body.inputs[number]]:
        return None
    place = places.pop()
    inside = _is_inside(place.starts, body.inputs[number].shape)
    return place if inside and all(size == 1 for size in place.sizes) else None


def _place(value: Value) -> Section:
    sizes = value.attrs["sizes"] if value.op is ops.slice else value.operands[1].shape
    return Section(value.attrs["starts"], sizes, value.attrs["steps"])


def _is_inside(starts: Sequence[Extent], shape: Sequence[Extent]) -> bool:
    """Whether an element is one of the array even where the loop has no iteration."""
    return all(known_le(0, start) and known_le(add_extents(start, 1), extent) for start, extent in zip(starts, shape, strict=True))
