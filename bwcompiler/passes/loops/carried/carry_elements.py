"""Elements that one iteration of a loop writes and the next one reads are carried, in addition to being stored in their array.

    loop j: a[j] = f(a[j - 1])          ->          c = a[j0 - 1];  loop j: c = f(c);  a[j] = c

So a recurrence over elements is a chain of numbers in registers (`lowering/regions.py`), not one of stores and loads: memory returns
what was just written later than most arithmetic takes.  An addition to an element is treated as a read, an addition and a write, so
the cotangent of a recurrence is carried as well.  All elements get the same numbers: only where they are read from changes.

An element of an array at the start of an iteration is what the previous iteration left there.  According to that iteration's updates
(`simplify_rules`), the element is read from the last version, with the index shifted by one step.  If the result is a value of the body,
or an element that is carried itself (`a[j - 2]`, where `a[j - 1]` is carried), it is carried.
"""

from __future__ import annotations

from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.ir.extent import Extent, Index, add_extents, known_le, scale_extent, substitute, upper
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Record, Value, input_value
from bwcompiler.passes.loops.region_bodies import copied
from bwcompiler.passes.rewriting.rewriter import Rewriter, rebuilt
from bwcompiler.passes.rewriting.simplify_rules import RULES

FEWEST = 4                     # iterations of a loop that are worth it


def carry_elements(graph: Graph) -> Graph:
    """The graph whose loops carry elements; the same graph where none is to be carried.  Loops in bodies stay as they are."""
    if not any(value.op is ops.loop for value in graph.body):
        return graph
    mapping: dict[Value, Value] = {}
    record = Record()
    for value in graph.body:
        operands = tuple([mapping.get(operand, operand) for operand in value.operands])
        copy = value.with_operands(operands)
        if value.op is ops.loop:
            copy = _carrying(copy, record)
        if copy is not value:
            mapping[value] = copy
        record.values.append(copy)
    return rebuilt(graph, record.values, mapping)


class _Element(NamedTuple):
    """An element of carried array `number` that is read on entry of an iteration, and what the iteration leaves for the next one there."""

    number: int
    read: Value
    left: Value


def _carrying(loop: Value, record: Record) -> Value:
    """The loop that carries what it can, its first elements read into the record; the same loop where there is nothing."""
    attrs, carried = loop.attrs, loop.attrs["carried"]
    first = _first_index(attrs["lo"], attrs["hi"], attrs["step"])
    if first is None or not _touches_elements(attrs["body"]):
        return loop
    body = _without_additions(attrs["body"])
    elements, body = _elements(body, carried, attrs["step"])
    index = body.index
    assert index is not None
    elements = _closed([one for one in elements if _is_inside(one.read, index, first)])
    if not elements:
        return loop
    inputs = [input_value(one.read.type, one.read.label) for one in elements]
    mapping = {one.read: made for one, made in zip(elements, inputs, strict=True)}
    values = copied(body.body, mapping)
    outputs = [mapping.get(value, value) for value in (*body.outputs, *[one.left for one in elements])]
    whole = [*body.inputs[:carried], *inputs, *body.inputs[carried:]]
    made = body.replace(inputs=whole, body=live_values(values, outputs), outputs=outputs)
    with record:
        record.source, record.forward = loop.source, loop.forward
        start = [_first_element(loop.operands[one.number], one.read, index, first) for one in elements]
        operands = (*loop.operands[:carried], *start, *loop.operands[carried:])
        attributes = {**attrs, "carried": carried + len(start), "body": made}
    type_ = ops.loop.shape(*[operand.type for operand in operands], **attributes)
    return Value(ops.loop, operands, attributes, type_, loop.name, loop.source, loop.forward)


def _first_index(lo: Extent, hi: Extent, step: int) -> Extent | None:
    """The index of the first iteration; None where it is not known, or where there are few."""
    span = add_extents(hi, scale_extent(lo, -1))
    if upper(span) < (FEWEST - 1) * abs(step):
        return None
    if isinstance(span, int):
        return lo if step > 0 else add_extents(lo, span // abs(step) * abs(step))
    return lo if step > 0 else hi if step == -1 else None


def _element_reads(body: Graph, carried: int) -> list[tuple[int, Value]]:
    """The single elements that are read of carried arrays that change, as they are on entry."""
    changing = {value: k for k, value in enumerate(body.inputs[:carried]) if body.outputs[k] is not value}
    return [(changing[value.operands[0]], value) for value in body.body
            if value.op is ops.slice and value.operands[0] in changing and _is_element(value)]


def _is_element(value: Value) -> bool:
    return bool(value.type.is_fixed and value.type.size == 1)


def _touches_elements(body: Graph) -> bool:
    """Whether there is anything to look at: elements that are read or added to."""
    return any(value.op in (ops.slice, ops.slice_add) and _is_element(value.operands[-1] if value.op is ops.slice_add else value)
               for value in body.body)


def _without_additions(body: Graph) -> Graph:
    """The body in which elements are added to by reading them, adding and writing."""
    rewriter = Rewriter(RULES)
    mapping: dict[Value, Value] = {}
    with rewriter:
        for value in body.body:
            operands = tuple([mapping.get(operand, operand) for operand in value.operands])
            rewriter.source, rewriter.forward = value.source, value.forward
            if value.op is ops.slice_add and _is_element(operands[1]):
                whole, more = operands
                place = {"starts": value.attrs["starts"], "steps": value.attrs["steps"]}
                found = ops.slice_update(whole, ops.add(ops.slice(whole, sizes=more.shape, **place), more), **place)
            else:
                found = rewriter.visit(value, operands)
            if found is not value:
                mapping[value] = found
    return rebuilt(body, rewriter.values, mapping)


def _elements(body: Graph, carried: int, step: int) -> tuple[list[_Element], Graph]:
    """What could be carried."""
    index = body.index
    assert index is not None
    rewriter = Rewriter(RULES)
    rewriter.learn(body.body)
    there = {*body.body, *body.inputs}
    found = []
    for number, read in _element_reads(body, carried):
        with rewriter:
            left = ops.slice(body.outputs[number], starts=_moved(read.attrs["starts"], index, add_extents(index.extent(), step)),
                             sizes=read.attrs["sizes"], steps=read.attrs["steps"])
        if left in there or left.op is ops.full:
            found.append(_Element(number, read, left))
    constants = [one.left for one in found if one.left not in there]
    return found, body.replace(body=[*dict.fromkeys(constants), *body.body]) if constants else body


def _moved(starts: tuple[Extent, ...], index: Index, to: Extent) -> tuple[Extent, ...]:
    return tuple([substitute(start, {index: to}) for start in starts])


def _closed(elements: list[_Element]) -> list[_Element]:
    """Those that are left by an iteration as something else than an element of an array as it was, unless that one is carried too."""
    while True:
        carried = {one.read for one in elements}
        kept = [one for one in elements if one.left in carried or not _is_read_on_entry(one)]
        if len(kept) == len(elements):
            return kept
        elements = kept


def _is_read_on_entry(one: _Element) -> bool:
    return one.left.op is ops.slice and one.left.operands[0] is one.read.operands[0]


def _is_inside(read: Value, index: Index, first: Extent) -> bool:
    """Whether what is read in the first iteration is an element of the array even if there is no iteration."""
    starts, shape = _moved(read.attrs["starts"], index, first), read.operands[0].shape
    return all(known_le(0, start) and known_le(add_extents(start, 1), extent) for start, extent in zip(starts, shape, strict=True))


def _first_element(array: Value, read: Value, index: Index, first: Extent) -> Value:
    return ops.slice(array, starts=_moved(read.attrs["starts"], index, first), sizes=read.attrs["sizes"], steps=read.attrs["steps"])
