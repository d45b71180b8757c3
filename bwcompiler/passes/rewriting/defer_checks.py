"""Indices are checked by the loops that read with them, and one comparison after these loops raises.

    j = normalize_index(i, n);  y = x[j]      ->      y = x[wrap_index(i, n)];  check_range(max(index_from_start(i, n)), n)

`normalize_index` is a separate step, which must be done before anything reads with its result: a copy of the indices, and in the body of a
loop a call in every iteration, so that the body is not one loop nest.  `wrap_index` is arithmetic: it gives an element of the array for
any index.  The largest index (as an unsigned number: a negative one that is out of range is larger than all that are in range) is found by
a reduction, which joins the loop that reads the indices.  Loops carry the first index of their bodies that is out of range; it also ends a
`while_loop`, since values read from wrong elements must not decide whether it ever ends.  `check_range` fails after all that, and then
nothing computed from wrong elements can be seen.

Branches of `cond` check at their own end.  Indices are not changed

- if the extent, or the number of indices, is not known: no indices have no largest one, and an empty array has no element to read;
- in graphs that call Python: it would get values read from wrong elements;
- in programs that write to the caller's arrays: these would have been written to when an index is found to be wrong (`pipeline.lower`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.ir.graph import Graph, all_values, live_values
from bwcompiler.ir.op import Record, Value, constant, current_record, input_value
from bwcompiler.ir.types import U64, tensor
from bwcompiler.passes.rewriting.rewriter import rebuilt

NUMBER = tensor(U64)


def defer_checks(graph: Graph) -> Graph:
    """The graph that checks its indices behind what reads with them; the same graph where there is none to be deferred."""
    values = list(all_values(graph))
    return _checked(graph) if any(map(_is_deferred, values)) and not any(map(_calls_back, values)) else graph


def _calls_back(value: Value) -> bool:
    return value.op is ops.callback or (value.op.kind == "library" and value.op.library is None)


def _is_deferred(value: Value) -> bool:
    return value.op is ops.normalize_index and value.type.is_fixed and isinstance(value.attrs["extent"], int) and value.attrs["extent"] > 0


class _Found(NamedTuple):
    """One of the indices that `value`, a `normalize_index`, had, counted from the start: one that is out of range if there is any."""

    value: Value
    worst: Value


def _checked(graph: Graph) -> Graph:
    """A graph that fails by itself."""
    values, mapping, found = _deferred(graph)
    record = Record()
    record.values = values
    with record:
        for one in found:
            record.source, record.forward = one.value.source, one.value.forward
            ops.check_range(one.worst, extent=one.value.attrs["extent"])
    return rebuilt(graph, record.values, mapping)


def _deferred(graph: Graph) -> tuple[list[Value], dict[Value, Value], list[_Found]]:
    """The values of a body that wrap indices, what stands for those that were replaced, and what is to be checked."""
    mapping: dict[Value, Value] = {}
    found: list[_Found] = []
    record = Record()
    with record:
        for value in graph.body:
            record.source, record.forward = value.source, value.forward
            copy = value.with_operands(tuple([mapping.get(operand, operand) for operand in value.operands]))
            if _is_deferred(copy):
                mapping[value] = ops.wrap_index(copy.operands[0], extent=copy.attrs["extent"])
                mapping[value].name = value.name
                if copy.type.size:
                    found.append(_Found(copy, _largest(copy)))
                continue
            inside: list[Value] = []
            if copy.op in ops.LOOPS:
                copy, inside = _carrying(copy)
            else:
                copy = copy.with_regions(_checked)
            if copy is not value:
                mapping[value] = copy
            record.values.append(copy)
            for number, one in enumerate(inside, copy.attrs.get("carried", 0) - len(inside)):
                found.append(_Found(one, ops.item(copy, index=number)))
    return record.values, mapping, found


def _largest(value: Value) -> Value:
    found = ops.index_from_start(value.operands[0], extent=value.attrs["extent"])
    return ops.max(found, axes=tuple(range(found.rank))) if found.rank else found


def _carrying(loop: Value) -> tuple[Value, list[Value]]:
    """A loop that also carries an index for each `normalize_index` in its body, last, and these; what it begins with is recorded."""
    attrs, carried = loop.attrs, loop.attrs["carried"]
    body: Graph = attrs["body"]
    values, mapping, found = _deferred(body)
    if not found:
        made = rebuilt(body, values, mapping)
        return loop.with_regions(lambda region: made if region is body else _checked(region)), []
    inputs = [input_value(NUMBER) for _ in found]
    record = Record()
    record.values = values
    ends = loop.op is ops.while_loop               # with the iteration, so that what it found is there
    with record:
        worst = [one.worst if ends else _first_worst(one, before) for one, before in zip(found, inputs, strict=True)]
    outputs = [*[mapping.get(output, output) for output in body.outputs], *worst]
    whole = [*body.inputs[:carried], *inputs, *body.inputs[carried:]]
    made = body.replace(inputs=whole, body=live_values(values, outputs), outputs=outputs)
    begin = [constant(0, NUMBER) for _ in inputs]             # an index that is in range
    operands = (*loop.operands[:carried], *begin, *loop.operands[carried:])
    attributes = {**attrs, "carried": carried + len(begin), "body": made}
    if ends:
        attributes["condition"] = _ending(_checked(attrs["condition"]), carried, found)
    type_ = loop.op.shape(*[operand.type for operand in operands], **attributes)
    return Value(loop.op, operands, attributes, type_, loop.name, loop.source, loop.forward), [one.value for one in found]


def _first_worst(one: _Found, before: Value) -> Value:
    """What an iteration carries on: what it was given, if that is out of range."""
    record = current_record()
    assert record is not None
    record.source, record.forward = one.value.source, one.value.forward
    return ops.select(_is_in_range(one, before), one.worst, before)


def _is_in_range(one: _Found, index: Value) -> Value:
    return ops.less(index, constant(one.value.attrs["extent"], NUMBER))


def _ending(condition: Graph, carried: int, found: Sequence[_Found]) -> Graph:
    """The condition of a loop that ends with the iteration in which an index is out of range."""
    inputs = [input_value(NUMBER) for _ in found]
    [holds] = condition.outputs
    record = Record()
    record.values = list(condition.body)
    with record:
        for one, index in zip(found, inputs, strict=True):
            holds = ops.bitwise_and(holds, _is_in_range(one, index))
    whole = [*condition.inputs[:carried], *inputs, *condition.inputs[carried:]]
    return condition.replace(inputs=whole, body=record.values, outputs=[holds])
