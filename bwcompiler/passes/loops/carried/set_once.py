"""Additions of a loop to zeros become assignments, if no element is added to twice.

    loop i: c = c with c[i] + f(i) at i, from zeros            ->          loop i: c = c with f(i) at i

So a cotangent of which every iteration computes its own row is not read, and if all rows are written it is not filled before
(`forget_overwritten`).  An iteration may add to several parts, such as a row up to the diagonal, and the diagonal.
"""

from __future__ import annotations

from bwcompiler import ops
from bwcompiler.ir.access import section_of
from bwcompiler.ir.extent import Index
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Record, Value, is_constant
from bwcompiler.passes.loops.array_parts import Part, versions_of, written_parts
from bwcompiler.passes.loops.dependence import are_apart, are_apart_later
from bwcompiler.passes.loops.replaced_regions import with_regions_replaced
from bwcompiler.passes.rewriting.rewriter import Rewritten


def set_once(graph: Graph) -> Rewritten:
    """The graph whose loops set such elements; the same graph where there are none."""
    return with_regions_replaced(graph, set_once, lambda value: _setting(value) if value.op is ops.loop else None)


def _setting(loop: Value) -> list[Value] | None:
    """The results of the loop that sets elements, in the current record; None where it adds all that it adds."""
    body, carried, step = loop.attrs["body"], loop.attrs["carried"], loop.attrs["step"]
    additions = {value for number in range(carried) if body.index is not None
                 for value in _additions(body, number, body.index, step) if _is_zero(loop.operands[number], value, body.index)}
    if not additions:
        return None
    mapping: dict[Value, Value] = {}
    values = []
    for value in body.body:
        operands = tuple([mapping.get(operand, operand) for operand in value.operands])
        if value in additions:
            with Record() as record:
                record.source, record.forward = value.source, value.forward
                mapping[value] = ops.slice_update(*operands, **value.attrs)
            mapping[value].name = value.name
            values += record.values
        else:
            copy = value.with_operands(operands)
            if copy is not value:
                mapping[value] = copy
            values.append(copy)
    made = ops.loop(*loop.operands, **{**loop.attrs, "body": body.replace(
        body=values, outputs=[mapping.get(output, output) for output in body.outputs])})
    made.name = loop.name
    return [ops.item(made, index=number) for number in range(carried)]


def _is_zero(array: Value, addition: Value, index: Index) -> bool:
    """Whether an array is zero in all places that a loop adds to: it is zeros, but for updates of others."""
    added = section_of(addition)
    while array.op in ops.UPDATES:
        if not are_apart(added, section_of(array), frozenset([index]), frozenset()):
            return False
        array = array.operands[0]
    return is_constant(array) and bool(array.attrs["value"] == 0)


def _additions(body: Graph, number: int, index: Index, step: int) -> list[Value]:
    """The additions to what is carried, to parts that nothing was written to before, in this iteration or an earlier one."""
    versions = versions_of(body.outputs[number], body.inputs[number])
    if versions is None or not any(version.op is ops.slice_add for version in versions):
        return []
    found: list[Value] = []
    written: list[Part] = []
    for version in versions[1:]:
        parts = written_parts(version)
        if parts is None:
            return []
        if version.op is ops.slice_add and all(are_apart(part.section, parts[0].section, part.inner, frozenset())
                                                 for part in written):
            found.append(version)
        written += parts

    def is_first(addition: Value) -> bool:
        section = section_of(addition)
        return all(are_apart_later(part.section, section, index, step, part.inner) for part in written)

    return [addition for addition in found if is_first(addition)]
