"""Arrays that are filled with a number before a loop, each of whose iterations then writes parts of one row: the loop fills them, row by
row.

    y = zeros;  loop i: y[i, :i] = f(i)          ->          y unset;  loop i: y[i, i:] = 0; y[i, :i] = f(i)

So such an array, for example the cotangent of a triangular matrix, goes through memory once: the rest of a row is filled while the row is
in the cache.  If the written parts do not begin or end at an end of the row, the whole row is filled first.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from bwcompiler import ops
from bwcompiler.ir.access import section_of
from bwcompiler.ir.extent import Affine, Extent, Section, add_extents, evaluate, scale_extent
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Record, Value, is_constant
from bwcompiler.ops.calls.region import loop_indices
from bwcompiler.passes.loops.carried.forget_overwritten import LEAST_WRITTEN, Rows, with_rows_filled
from bwcompiler.passes.loops.replaced_regions import with_regions_replaced
from bwcompiler.passes.rewriting.rewriter import Rewritten

LEAST_BYTES = 1 << 20          # of an array that would leave the caches nearest to a core
MOST_ROW = 1 << 17             # bytes of a row that stays there


def fill_rows(graph: Graph) -> Graph:
    """The graph whose loops fill such arrays; the same graph where there are none."""
    return _with_rows_filled(graph).graph


def _with_rows_filled(graph: Graph) -> Rewritten:
    return with_regions_replaced(graph, _with_rows_filled, lambda value: _filling(value) if value.op is ops.loop else None)


def _filling(loop: Value) -> list[Value] | None:
    """The results of the loop that fills rows, in the current record; None where there are no such arrays."""
    body, operands = loop.attrs["body"], list(loop.operands)
    begun: dict[Value, tuple[Section, Any]] = {}               # the first write to a row: what is filled before, and with which number
    for number in range(loop.attrs["carried"]):
        array = operands[number]
        writes = _writes(body, number) if _is_large(array) else []
        left = _left(loop, array.shape[0], writes[0].attrs["starts"][0]) if writes else None
        if left is None:
            continue
        begun[writes[0]] = _rest(writes, array.shape), array.attrs["value"]
        operands[number] = ops.unset(shape=array.shape, dtype=array.dtype)
        for rows in left:
            operands[number] = with_rows_filled(operands[number], rows, array.attrs["value"])
    if not begun:
        return None
    mapping: dict[Value, Value] = {}
    values = []
    for value in body.body:
        copy = value.with_operands(tuple([mapping.get(operand, operand) for operand in value.operands]))
        if value in begun:
            section, filling = begun[value]
            with Record() as record:
                record.source, record.forward = value.source, value.forward
                rest = ops.full(value=filling, shape=section.sizes, dtype=value.dtype)
                before = ops.slice_update(copy.operands[0], rest, starts=section.starts, steps=section.steps)
            values += record.values
            copy = copy.with_operands((before, copy.operands[1]))
        if copy is not value:
            mapping[value] = copy
        values.append(copy)
    made = ops.loop(*operands, **{**loop.attrs, "body": body.replace(
        body=values, outputs=[mapping.get(output, output) for output in body.outputs])})
    made.name = loop.name
    return [ops.item(made, index=number) for number in range(loop.attrs["carried"])]


def _is_large(array: Value) -> bool:
    """Whether an array is one number in many rows that are worth it."""
    return is_constant(array) and array.rank >= 2 and array.type.is_fixed and (
        array.type.nbytes >= LEAST_BYTES) and array.type.nbytes <= MOST_ROW * array.shape[0]


def _writes(body: Graph, number: int) -> list[Value]:
    """The updates of parts of one row that an iteration makes of a state, in order, where it does nothing else with it; else none."""
    found: list[Value] = []
    now = body.outputs[number]
    while now.op is ops.slice_update:
        found.append(now)
        now = now.operands[0]
    versions = {now, *found}
    uses = sum([value.operands.count(version) for value in body.body for version in versions])
    places = sum([body.outputs.count(version) for version in versions])
    if now is not body.inputs[number] or uses != len(found) or places != 1 or not found:
        return []
    row = found[0].attrs["starts"][0]
    is_one = all(write.attrs["starts"][0] == row and write.operands[1].shape[0] == 1 for write in found)
    return found[::-1] if is_one and not _is_whole(found[-1]) else []


def _is_whole(write: Value) -> bool:
    return bool(write.operands[1].shape[1:] == write.shape[1:])


def _left(loop: Value, rows: int, row: Extent) -> list[Rows] | None:
    """The rows that no iteration writes to; None where these are many, or some that several write to."""
    index, (lo, hi, step) = loop.attrs["body"].index, [loop.attrs[name] for name in ("lo", "hi", "step")]
    if not isinstance(row, Affine) or [term for term, _ in row.terms] != [index] or not isinstance(lo, int) or not isinstance(hi, int):
        return None
    trips = loop_indices(lo, hi, step)
    if len(trips) > rows or LEAST_WRITTEN * (rows - len(trips)) > rows:
        return None
    written = sorted({evaluate(row, {index: trip}) for trip in trips})
    edges = [-1, *written, rows]
    return [Rows(0, before + 1, after) for before, after in pairwise(edges) if after - before > 1]


def _rest(writes: Sequence[Value], shape: Sequence[Extent]) -> Section:
    """What the parts leave of a row, where they are its beginning or its end; else the row."""
    parts: Section | None = section_of(writes[0])
    for write in writes[1:]:
        parts = None if parts is None else parts.joined(section_of(write))
    row = Section((writes[0].attrs["starts"][0], *[0] * (len(shape) - 1)), (1, *shape[1:]), (1,) * len(shape))
    if parts is None:
        return row
    different = [axis for axis in range(1, len(shape)) if (parts.starts[axis], parts.sizes[axis]) != (0, shape[axis])]
    if len(different) != 1 or parts.steps[different[0]] != 1:
        return row
    axis = different[0]
    start, end = parts.starts[axis], add_extents(parts.starts[axis], parts.sizes[axis])
    if start == 0:
        begin, size = end, add_extents(shape[axis], scale_extent(end, -1))
    elif end == shape[axis]:
        begin, size = 0, start
    else:
        return row
    return row._replace(starts=(*row.starts[:axis], begin, *row.starts[axis + 1:]), sizes=(*row.sizes[:axis], size, *row.sizes[axis + 1:]))
