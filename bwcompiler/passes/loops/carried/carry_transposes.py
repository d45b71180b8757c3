"""Matrices that a loop carries, and reads or updates by columns, are carried transposed.

    loop k: a = a with more added at [:, k]          ->          t = a.T;  loop k: t = t with more added at [k];  a = t.T

A column's elements are apart in memory: they are read, and written, one by one.  Adjoints go through columns where the loop goes through
rows of a transpose (`turn_columns`), and add to them.  So do the loops inside, to which the matrix is handed on.  Every element is computed
as before.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from bwcompiler import ops
from bwcompiler.ir.extent import Extent, add_extents, element_count, scale_extent, upper
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Record, Value, input_value
from bwcompiler.passes.loops.carried.turn_columns import LEAST_ROWS, is_matrix
from bwcompiler.passes.loops.region_bodies import emit_values
from bwcompiler.passes.rewriting.rewriter import Rewriter, rebuilt
from bwcompiler.passes.rewriting.simplify_rules import RULES

TIMES = 4                      # the matrix, that at least goes through the columns: it is transposed twice
SHARE = 2                      # so much more than through the rows
AXES = (1, 0)


def carry_transposes(graph: Graph) -> Graph:
    """The graph whose loops carry such transposes, loops around before those inside; the same graph where there are none."""
    if not any(value.op.regions for value in graph.body):
        return graph
    mapping: dict[Value, Value] = {}
    record = Record()
    for value in graph.body:
        if value in mapping:
            continue
        copy = value.with_operands(tuple([mapping.get(operand, operand) for operand in value.operands]))
        if copy.op is ops.loop and (numbers := _numbers(copy)):
            items = [one for one in graph.body if one.op is ops.item and one.operands[0] is value]
            with record:
                record.source, record.forward = value.source, value.forward
                copy = _carrying(copy, numbers)
                for one in items:
                    mapping[one] = _result(copy, one.attrs["index"], numbers)
                    mapping[one].name = one.name
            continue
        copy = copy.with_regions(carry_transposes)
        if copy is not value:
            mapping[value] = copy
        record.values.append(copy)
    return rebuilt(graph, record.values, mapping)


def _carrying(loop: Value, numbers: Collection[int]) -> Value:
    """The loop that carries transposes, in the current record."""
    operands = [ops.transpose(operand, axes=AXES) if k in numbers else operand for k, operand in enumerate(loop.operands)]
    made = ops.loop(*operands, **{**loop.attrs, "body": carry_transposes(_turned(loop.attrs["body"], numbers))})
    made.name = loop.name
    return made


def _result(loop: Value, number: int, numbers: Collection[int]) -> Value:
    item = ops.item(loop, index=number)
    return ops.transpose(item, axes=AXES) if number in numbers else item


# ----- which matrices
class _Volume(NamedTuple):
    """How many elements of columns and of rows a loop goes through."""

    columns: int = 0
    rows: int = 0

    def with_part(self, shape: Sequence[Extent], runs: int) -> _Volume:
        rows, columns = [upper(extent) for extent in shape]
        if columns > 1:
            return _Volume(self.columns, self.rows + runs * rows * columns)
        return _Volume(self.columns + runs * rows, self.rows) if rows >= LEAST_ROWS else self


def _numbers(loop: Value) -> list[int]:
    """The matrices that a loop should carry transposed."""
    body, found = loop.attrs["body"], []
    for number in range(loop.attrs["carried"]):
        matrix = body.inputs[number]
        if not is_matrix(matrix) or body.outputs[number] is matrix:
            continue
        volume = _volume(body, [number], number, 1)
        if volume is not None and volume.columns >= max(TIMES * element_count(matrix.shape), SHARE * volume.rows, 1):
            found.append(number)
    return found


def _volume(body: Graph, numbers: Sequence[int], carried: int | None, around: int) -> _Volume | None:
    """What a body reads and updates of one matrix, which these inputs are; None where it does more with it than that.

    carried: the number under which it is handed to the next iteration; around: how often the loop runs.
    """
    index = body.index
    assert index is not None
    runs = around * max(upper(add_extents(index.hi, scale_extent(index.lo, -1))) + 1, 0)
    found, versions = _Volume(), {body.inputs[number] for number in numbers}
    for value in body.body:
        if value.op is ops.item:
            if _passes_on(value, versions):
                versions.add(value)
        elif versions.isdisjoint(value.operands):
            continue
        elif value.op is ops.slice:
            found = found.with_part(value.shape, runs)
        elif value.op in ops.UPDATES and value.operands[1] not in versions:
            found = found.with_part(value.operands[1].shape, runs)
            versions.add(value)
        elif value.op is ops.loop:
            for number, operand in enumerate(value.operands):
                if operand in versions:
                    inside = _volume(value.attrs["body"], [number], number if number < value.attrs["carried"] else None, runs)
                    if inside is None:
                        return None
                    found = _Volume(found.columns + inside.columns, found.rows + inside.rows)
        else:
            return None
    outputs = [number for number, output in enumerate(body.outputs) if output in versions]
    return found if outputs == ([] if carried is None else [carried]) else None


def _passes_on(item: Value, versions: Collection[Value]) -> bool:
    """Whether it is what a loop made of a version of the matrix."""
    loop, number = item.operands[0], item.attrs["index"]
    return loop.op is ops.loop and loop.operands[number] in versions


# ----- transposed
def _turned(body: Graph, numbers: Collection[int]) -> Graph:
    """The body that is given transposes in the places of these inputs."""
    inputs = [input_value(one.type.with_shape(one.shape[::-1]), one.name, one.source) if number in numbers else one
              for number, one in enumerate(body.inputs)]
    turned = {body.inputs[number]: inputs[number] for number in numbers}               # per version of a matrix its transpose
    loops: dict[Value, Value] = {}
    mapping: dict[Value, Value] = {}
    with Rewriter(RULES) as record:
        for value in body.body:
            first = value.operands[0] if value.operands else value
            record.source, record.forward = value.source, value.forward
            if value.op is ops.slice and first in turned:
                mapping[value] = ops.transpose(ops.slice(turned[first], **_turned_place(value)), axes=AXES)
            elif value.op in ops.UPDATES and first in turned:
                part = mapping.get(value.operands[1], value.operands[1])
                turned[value] = value.op(turned[first], ops.transpose(part, axes=AXES), **_turned_place(value))
            elif value.op is ops.loop and not turned.keys().isdisjoint(value.operands):
                inside = [number for number, operand in enumerate(value.operands) if operand in turned]
                operands = [turned.get(operand, mapping.get(operand, operand)) for operand in value.operands]
                loops[value] = ops.loop(*operands, **{**value.attrs, "body": _turned(value.attrs["body"], inside)})
            elif value.op is ops.item and first in loops:
                made = ops.item(loops[first], index=value.attrs["index"])
                (turned if first.operands[value.attrs["index"]] in turned else mapping)[value] = made
            else:
                emit_values([value], mapping, record)
    outputs = [turned.get(output, mapping.get(output, output)) for output in body.outputs]
    return body.replace(inputs=inputs, body=live_values(record.values, outputs), outputs=outputs)


def _turned_place(value: Value) -> dict[str, Any]:
    """The attributes of a slice or update, of the transpose."""
    return {name: attribute[::-1] for name, attribute in value.attrs.items()}
