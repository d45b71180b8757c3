"""States of which an iteration sets most to one number at its end: the next iteration does so where it reads them.

    loop: B = B with f(A) at s; ...; B = B with 0 at s      ->      loop: b = B with 0 at s; B = b with f(A) at s; ...
                                                                    B = B with 0 at s

A derivative ends like this: the cotangent of what a time step overwrites is zero before it.  These zeros were a pass through memory, and
another one when they were read; a loop that reads `B with 0 at s` knows where the zeros are.

The part then has no use in the state that is carried.  If one sum reads it, its other term is added there, and the sum is read from there
(`read_written`).

    c = B[s] + v; ...; B = B with 0 at s                     ->      B = B with v added at s; c = B[s]; ...
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bwcompiler import ops
from bwcompiler.ir.access import section_of
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Record, Value, is_constant
from bwcompiler.passes.loops.replaced_regions import with_regions_replaced
from bwcompiler.passes.memory.find_updates import is_small_slice
from bwcompiler.passes.rewriting.rewriter import Rewritten, attribute_key

LEAST_ELEMENTS = 128           # that are set: fewer are set as fast as they are left out


def clear_late(graph: Graph) -> Graph:
    """The graph whose loops set such parts where they read them; the same graph where there are none."""
    return _with_late_clearing(graph).graph


def _with_late_clearing(graph: Graph) -> Rewritten:
    return with_regions_replaced(graph, _with_late_clearing, lambda value: _clearing(value) if value.op is ops.loop else None)


def _clearing(loop: Value) -> list[Value] | None:
    """The results of the loop that leaves such parts as they are, in the current record; None where it has none."""
    body = loop.attrs["body"]
    cleared = {number: body.outputs[number] for number in range(loop.attrs["carried"])
               if _is_clearing(body.outputs[number], body.inputs[number]) and _is_clear(loop.operands[number], body.outputs[number])}
    if not cleared:
        return None
    with Record() as record:
        mapping = {body.inputs[number]: _cleared(body.inputs[number], last) for number, last in cleared.items()}
    sums = {total: last for last in cleared.values() if (total := _sum_of_part(body, last)) is not None}
    carried: dict[Value, Value] = {}
    values = [*record.values]
    for value in body.body:
        if value in sums:
            with Record() as record:
                record.source, record.forward = value.source, value.forward
                carried[sums[value]] = _with_term_added(mapping, value, sums[value])
            values += record.values
        copy = value.with_operands(tuple([mapping.get(operand, operand) for operand in value.operands]))
        values.append(copy)
        if copy is not value:
            mapping[value] = copy
    outputs = [mapping.get(output, output) for output in body.outputs]
    for number, last in cleared.items():
        outputs[number] = carried.get(last) or mapping.get(last.operands[0], last.operands[0])
    made = ops.loop(*loop.operands, **{**loop.attrs, "body": body.replace(
        body=live_values(values, outputs), outputs=outputs)})
    made.name = loop.name
    results = [ops.item(made, index=number) for number in range(loop.attrs["carried"])]
    for number, last in cleared.items():
        results[number] = _cleared(results[number], last)
    return results


def _is_clearing(last: Value, state: Value) -> bool:
    """Whether the next state is an array of the body, most of it set to a number."""
    if last.op is not ops.slice_update or not is_constant(last.operands[1]) or last.operands[0] is state:
        return False
    array, part = last.operands
    section = section_of(last)
    return (array.type.is_fixed and part.type.size >= LEAST_ELEMENTS and not is_small_slice(part, array)
            and all(isinstance(start, int) for start in section.starts) and all(step == 1 for step in section.steps))


def _sum_of_part(body: Graph, last: Value) -> Value | None:
    """The sum that alone reads, of an array, the part that is set afterwards."""
    array, section = last.operands[0], section_of(last)
    found: list[Value] = []
    for value in body.body:
        if array not in value.operands or value is last:
            continue
        if value.op is not ops.slice:
            return None
        if section_of(value) == section:
            found.append(value)
        elif not section_of(value).is_apart(section):
            return None
    readers = [value for value in body.body if not set(found).isdisjoint(value.operands)]
    if len(found) != 1 or len(readers) != 1 or array in body.outputs or found[0] in body.outputs:
        return None
    total = readers[0]
    return total if total.op is ops.add and total.operands[0] is not total.operands[1] and total.shape == found[0].shape else None


def _with_term_added(mapping: Mapping[Value, Value], total: Value, last: Value) -> Value:
    """The array with the other term of a sum added to the part."""
    array = last.operands[0]
    other = next(term for term in total.operands if not (term.op is ops.slice and term.operands[0] is array))
    return ops.slice_add(mapping.get(array, array), mapping.get(other, other), **last.attrs)


def _is_clear(array: Value, last: Value) -> bool:
    """Whether an array has the number in that part already."""
    section, number = section_of(last), _number(last.operands[1])
    while array.op is ops.slice_update:
        if is_constant(array.operands[1]) and _number(array.operands[1]) == number and section_of(array) == section:
            return True
        if not section_of(array).is_apart(section):
            return False
        array = array.operands[0]
    return is_constant(array) and _number(array) == number


def _number(array: Value) -> Any:
    """What an array is filled with, as a key: a zero has a sign, and nan is itself."""
    return attribute_key({"value": array.attrs["value"]})


def _cleared(array: Value, last: Value) -> Value:
    """An array with the number in that part, in the current record."""
    part = last.operands[1]
    filling = ops.full(value=part.attrs["value"], shape=part.shape, dtype=part.dtype)
    return ops.slice_update(array, filling, **last.attrs)
