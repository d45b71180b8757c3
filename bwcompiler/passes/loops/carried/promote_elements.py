"""If a loop writes only one element of an array, it carries the element instead of the array.

    loop k: c[i, j] += a[i, k] * b[k, j]          ->          s = c[i, j];  loop k: s += a[i, k] * b[k, j];  c[i, j] = s

The element is then a number in a register (`lowering/regions.py`), its derivative needs no undo log, and the surrounding loop may be
computed for all j at once (`vectorize_loops`).  Other parts of the array that the loop reads, if they never contain the element, are read
as they were before the loop (`a[i, j] -= a[i, k] * a[k, j]` for k < j and k < i: a factorisation in loops).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bwcompiler import ops
from bwcompiler.ir.access import section_of
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
    made, others = _with_elements(body, places)
    operands = [*loop.operands, *[_before(loop.operands[k], places[k]) for k in others]]
    for k, place in places.items():
        operands[k] = ops.slice(loop.operands[k], starts=place.starts, sizes=place.sizes, steps=place.steps)
    looped = ops.loop(*operands, **{**attrs, "body": made})
    results = [ops.item(looped, index=k) for k in range(carried)]
    for k, place in places.items():
        results[k] = ops.slice_update(loop.operands[k], results[k], starts=place.starts, steps=place.steps)
    return results


def _with_elements(body: Graph, places: Mapping[int, Section]) -> tuple[Graph, list[int]]:
    """The body with elements in the places of the arrays of these numbers, and the numbers of those that are its last inputs too."""
    inputs = list(body.inputs)
    current: dict[Value, Value] = {}                           # versions of the arrays, and their elements
    numbers: dict[Value, int] = {}
    before: dict[int, Value] = {}
    for k, place in places.items():
        inputs[k] = current[body.inputs[k]] = input_value(body.inputs[k].type.with_shape(place.sizes), body.inputs[k].name)
        numbers[body.inputs[k]] = k
    mapping: dict[Value, Value] = {}
    with Record() as record:
        for value in body.body:
            whole = value.operands[0] if value.operands else value
            record.source, record.forward = value.source, value.forward
            if whole in current and value.op is not ops.slice:
                more = mapping.get(value.operands[1], value.operands[1])
                current[value] = more if value.op is ops.slice_update else ops.add(current[whole], more)
                numbers[value] = numbers[whole]
            elif whole in current and section_of(value) == places[numbers[whole]]:
                mapping[value] = current[whole]
            else:
                for version in [operand for operand in value.operands if operand in current]:
                    made = input_value(version.type, version.name, version.source)
                    mapping[version] = before.setdefault(numbers[version], made)
                emit_values([value], mapping, record)
    outputs = [current[output] if output in current else mapping.get(output, output) for output in body.outputs]
    return body.replace(inputs=[*inputs, *before.values()], body=live_values(record.values, outputs), outputs=outputs), list(before)


def _before(array: Value, place: Section) -> Value:
    """The array before anything was written at a place, so that the loop is no reader between two updates of one array."""
    while array.op in ops.UPDATES and section_of(array) == place:
        array = array.operands[0]
    return array


def _only_element(body: Graph, number: int) -> Section | None:
    """The place of the one element of a carried array that a body writes, in the loops around; None where there is more, or where it may
    read the element in other ways."""
    index, versions, writes = body.index, {body.inputs[number]}, set()
    reads: set[tuple[Section, bool]] = set()                   # and whether in this body, or in a loop inside
    assert index is not None
    for value in body.body:
        if versions.isdisjoint(value.operands):
            continue
        if value.op in ops.UPDATES and versions.isdisjoint(value.operands[1:]) and not mentions(value, index):
            versions.add(value)
            writes.add(section_of(value))
            continue
        found = _places_read(value, versions)
        if found is None:
            return None
        reads |= {(place, value.op is ops.slice) for place in found}
    outputs = [output for output in body.outputs if output in versions]
    if len(writes) != 1 or outputs != [body.outputs[number]] or outputs == [body.inputs[number]]:
        return None
    place = writes.pop()
    if not _is_inside(place.starts, body.inputs[number].shape) or any(size != 1 for size in place.sizes):
        return None
    return place if all((read == place and here) or read.is_apart(place) for read, here in reads) else None


def _places_read(value: Value, versions: set[Value]) -> set[Section] | None:
    """What a slice, or a loop that does not change the array, reads of these versions of an array; None where that is not known."""
    if value.op is ops.slice:
        return {section_of(value)}
    if value.op is not ops.loop or not versions.isdisjoint(value.operands[:value.attrs["carried"]]):
        return None
    body, places = value.attrs["body"], set()
    inside = {mine for mine, operand in zip(body.inputs, value.operands, strict=True) if operand in versions}
    if not inside.isdisjoint(body.outputs):
        return None
    for one in body.body:
        if not inside.isdisjoint(one.operands):
            found = _places_read(one, inside)
            if found is None:
                return None
            places |= found
    return places


def _is_inside(starts: Sequence[Extent], shape: Sequence[Extent]) -> bool:
    """Whether an element is one of the array even where the loop has no iteration."""
    return all(known_le(0, start) and known_le(add_extents(start, 1), extent) for start, extent in zip(starts, shape, strict=True))
