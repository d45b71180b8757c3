"""Columns of a matrix that a loop goes through become rows of its transpose, which is made before the loop.

    loop k: y = y + a[:, k] * x[k]          ->          t = a.T;  loop k: y = y + t[k] * x[k]

The elements of a column are not contiguous: they are read one by one, from as many cache lines as there are rows.  A transpose is made in
tiles, once, before all surrounding loops that leave the matrix unchanged.  Every element is computed as before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from bwcompiler import ops
from bwcompiler.ir.extent import Affine, Index, add_extents, element_count, scale_extent, upper
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Record, Value, input_value
from bwcompiler.passes.loops.region_bodies import copied
from bwcompiler.passes.rewriting.rewriter import rebuilt

LEAST_ROWS = 16                # elements of a column, that are worth vectors
MOST_BYTES = 1 << 25           # of a matrix of which there is a second one
SHARE = 2                      # a loop reads at least 1/SHARE of it


def turn_columns(graph: Graph) -> Graph:
    """The graph whose loops read rows in the places of columns; the same graph where there are none."""
    if not any(value.op.regions for value in graph.body):
        return graph
    mapping: dict[Value, Value] = {}
    turned: dict[Value, Value] = {}                            # matrices, and their transposes
    record = Record()
    for value in graph.body:
        operands = tuple([mapping.get(operand, operand) for operand in value.operands])
        copy = value.with_operands(operands).with_regions(turn_columns)
        if copy.op is ops.loop:
            copy = _reading_rows(copy, turned, record)
        if copy is not value:
            mapping[value] = copy
        record.values.append(copy)
    return rebuilt(graph, record.values, mapping)


class _Reads(NamedTuple):
    """What a body reads of one of its inputs: columns that move with its index, and transposes that it hands to loops inside."""

    columns: list[Value]
    transposes: list[Value]


def _reading_rows(loop: Value, turned: dict[Value, Value], record: Record) -> Value:
    """The loop that is given transposes, emitted into the record unless they are there, and matrices of which it reads more than that;
    the same loop where it needs none."""
    attrs, body = loop.attrs, loop.attrs["body"]
    found = _reads(body, attrs["carried"])
    if not found:
        return loop
    operands, inputs = list(loop.operands), list(body.inputs)
    mapping: dict[Value, Value] = {}
    with Record() as inside:
        for number, reads in found.items():
            matrix = loop.operands[number]
            if matrix not in turned:
                with record:
                    record.source, record.forward = loop.source, loop.forward
                    turned[matrix] = turned_array(matrix)
            operands.append(turned[matrix])
            inputs.append(input_value(turned[matrix].type, body.inputs[number].name))
            mapping |= dict.fromkeys(reads.transposes, inputs[-1])
            for column in reads.columns:
                inside.source, inside.forward = column.source, column.forward
                mapping[column] = _row(column, inputs[-1])
    values = [*inside.values, *copied(body.body, mapping)]
    outputs = [mapping.get(output, output) for output in body.outputs]
    live = live_values(values, outputs)
    read = {*outputs, *[operand for value in live for operand in value.operands]}
    kept = [k for k, one in enumerate(inputs) if k not in found or one in read]
    made = body.replace(inputs=[inputs[k] for k in kept], body=live, outputs=outputs)
    attributes = {**attrs, "body": made}
    return Value(ops.loop, tuple([operands[k] for k in kept]), attributes, loop.type, loop.name, loop.source, loop.forward)


def _row(column: Value, transpose: Value) -> Value:
    """A column of a matrix, read from the transpose."""
    return turned_back(ops.slice(transpose, **turned_place(column)))


# ----- transposes: the last axis is the first one
def _is_turned(value: Value) -> bool:
    return value.op is ops.transpose and value.attrs["axes"] == (value.rank - 1, *range(value.rank - 1))


def turned_array(value: Value) -> Value:
    """The transpose, in the current record."""
    return ops.transpose(value, axes=(value.rank - 1, *range(value.rank - 1)))


def turned_back(value: Value) -> Value:
    """What a transpose is one of, in the current record."""
    return ops.transpose(value, axes=(*range(1, value.rank), 0))


def turned_place(value: Value) -> dict[str, Any]:
    """The attributes of a slice or update, of the transpose."""
    return {name: (attribute[-1], *attribute[:-1]) for name, attribute in value.attrs.items()}


def _reads(body: Graph, carried: int) -> Mapping[int, _Reads]:
    """Per number of an input that the loop does not change, and of which it should have the transpose, what is read of it."""
    fixed = {value: number for number, value in enumerate(body.inputs) if number >= carried and is_matrix(value)}
    handed_on = {operand for value in body.body if value.op is ops.loop for operand in value.operands[value.attrs["carried"]:]}
    found: dict[int, _Reads] = {}
    for value in body.body:
        if not value.operands or value.operands[0] not in fixed:
            continue
        reads = found.get(fixed[value.operands[0]], _Reads([], []))
        if value in handed_on and _is_turned(value):
            reads.transposes.append(value)
        elif value.op is ops.slice and body.index is not None and _is_column(value, body.index):
            reads.columns.append(value)
        else:
            continue
        found[fixed[value.operands[0]]] = reads
    return found


def is_matrix(value: Value) -> bool:
    """Whether it is a matrix, or several below each other, that may be transposed."""
    return value.rank >= 2 and value.type.is_fixed and value.shape[-1] != 1 and value.type.nbytes <= MOST_BYTES


def _is_column(value: Value, index: Index) -> bool:
    """Whether a slice is part of a column, another one in each iteration, and all of them are a good part of the matrix."""
    starts, (*rows, columns), steps = [value.attrs[name] for name in ("starts", "sizes", "steps")]
    moves = [isinstance(start, Affine) and any(term is index for term, _ in start.terms) for start in starts]
    if any(moves[:-1]) or not moves[-1] or columns != 1 or any(step != 1 for step in steps) or element_count(rows) < LEAST_ROWS:
        return False
    trips = upper(add_extents(index.hi, scale_extent(index.lo, -1))) + 1
    return trips * element_count(rows) * SHARE >= int(value.operands[0].type.size)
