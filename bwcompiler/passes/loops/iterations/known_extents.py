"""Integers of the graph that are computed from loop indices: the extent that a value equals, also if it is passed to a region."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bwcompiler import ops
from bwcompiler.ir.extent import Affine, Extent, add_extents, scale_extent
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import I64

Known = Mapping[Value, Extent]                     # inputs of regions that are numbers made of indices


def extent_of(value: Value, known: Known) -> Extent | None:
    """The number that a value is, where it is made of indices or constant."""
    while value.op is ops.reshape or value.op is ops.broadcast:
        value = value.operands[0]
    if value.op is ops.index_value:
        extent: Extent = value.attrs["extent"]
        return extent
    if value.op in (ops.add, ops.subtract, ops.multiply) and value.dtype == I64:
        first, second = [extent_of(operand, known) for operand in value.operands]
        if first is None or second is None:
            return None
        if value.op is ops.multiply:
            number, other = (first, second) if isinstance(first, int) else (second, first)
            return scale_extent(other, number) if isinstance(number, int) else None
        return add_extents(first, second if value.op is ops.add else scale_extent(second, -1))
    found = value.attrs["value"] if value.op is ops.full else known.get(value)
    return found if isinstance(found, int | Affine) and not isinstance(found, bool) else None


def known_in(value: Value, region: str, known: Known) -> Known:
    """The inputs of a region that are such numbers."""
    graph: Graph = value.attrs[region]
    operands: Sequence[Value] = value.operands[1:] if value.op is ops.cond else value.operands
    first = value.attrs["carried"] if value.op in ops.LOOPS else 0
    if value.op not in (ops.loop, ops.while_loop, ops.cond):
        return {}
    pairs = list(zip(graph.inputs, operands, strict=False))[first:]
    return {mine: extent for mine, operand in pairs if (extent := extent_of(operand, known)) is not None}
