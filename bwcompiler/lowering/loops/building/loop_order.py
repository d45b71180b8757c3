"""The order of a kernel's loops: which axes the passes run over, and which axis vectors run along."""

from __future__ import annotations

import math
from collections.abc import Iterable

from bwcompiler import ops
from bwcompiler.ir.contracts.fusion import PANEL_COLUMNS, SHORT_ROW, SHORT_ROWS, FusionGroup
from bwcompiler.ir.extent import upper

PANEL_BYTES = 1 << 18         # bytes that one column panel may occupy in cache
PANEL_LIMITS = (PANEL_COLUMNS, 512)
MOVING_PANEL = 1 << 21        # most elements of a panel of all columns, if their number depends on an enclosing loop
EXPENSIVE_ROW = 10            # least operations per element of short rows for lanes along the outer axis, whose reads are strided;
EXPENSIVE = 20                # operations that count for a mathematical function;
EXPENSIVE_NUMBER = 30         # or longest rows with such a function per row, which otherwise is computed for one row at a time,
FEW_ROWS = 8                  # for at least this many rows;
FULL_ROW = 0.75               # not if rows fill at least this share of their vectors, and nothing is reduced per row
_VECTOR_BYTES = 64
_COSTS = {ops.divide: 4, ops.sqrt: 4}


def inner_axes(group: FusionGroup) -> frozenset[int]:
    """The axes of the passes if fusion left them open: the last one; for short rows, all reduced ones."""
    last = len(group.extents) - 1
    reduced = {member.reduced for member in group.members if member.reduced}
    if len(reduced) == 1:
        axes = frozenset(next(iter(reduced)))
        if last in axes and len(axes) <= last and _volume(group, axes) <= SHORT_ROW:
            return axes
    return frozenset((last,)) if last >= 0 else frozenset()


def lane_axis(group: FusionGroup, inner: list[int], outer: list[int]) -> int | None:
    """The outer axis that vectors run along, if any: the last one in column order, for short rows that are expensive, and for windows that
    slide by one element.

    A row of 10 elements fills no vectors, and its sum takes as long as the rest; 64 such rows side by side do.
    """
    if not outer or any(member.value.op in ops.SEARCHES for member in group.members):
        return None
    axis, extent = outer[-1], upper(group.extents[outer[-1]])
    moves = not isinstance(group.extents[axis], int)
    if axis == len(group.extents) - 1:
        return axis if extent > 0 and not (moves and extent * _volume(group, inner) > MOVING_PANEL) else None
    if moves:
        return None
    if extent >= SHORT_ROWS and _slides(group, outer):
        return axis
    volume = _volume(group, inner)
    if not 0 < volume <= SHORT_ROW or extent < FEW_ROWS or _fills_vectors(group, inner):
        return None
    elements, numbers = ([member.value.op for member in group.members if len(member.domain_axes) == rank
                          and member.value.op.kind == "elementwise" and not member.is_number] for rank in (len(group.extents), len(outer)))
    work = sum(_COSTS.get(op, 1 if op.cheap else EXPENSIVE) for op in elements)
    is_expensive = (work >= EXPENSIVE_ROW and extent >= SHORT_ROWS) or sum(not op.cheap for op in numbers) * EXPENSIVE_NUMBER >= volume
    return axis if is_expensive else None


def _slides(group: FusionGroup, outer: list[int]) -> bool:
    """Whether all reads along the passes are also contiguous, or constant, along the last outer axis: windows, and the kernels that
    they are multiplied by.
    """
    rank = len(group.extents)
    read = [operand for member in group.members if len(member.domain_axes) == rank and member.value.op.kind == "elementwise"
            for operand in member.value.operands if operand not in group.by_value]
    windows = [value for value in read if value.op is ops.windows and value.attrs["strides"][-1] == 1 and value.rank == rank
               and outer == list(range(rank - len(value.attrs["sizes"])))]
    return bool(windows) and all(value in windows or (value.op is ops.broadcast and outer[-1] not in value.attrs["axes"]) for value in read)


def _fills_vectors(group: FusionGroup, inner: Iterable[int]) -> bool:
    """Whether rows fill vectors well by themselves, and nothing is reduced per row."""
    axes = frozenset(inner)
    if any(member.reduced and axes >= frozenset(member.reduced) for member in group.members):
        return False
    size = _volume(group, axes) * min([member.value.dtype.itemsize for member in group.members if member.value.op.cheap], default=8)
    return size >= FULL_ROW * (-(-size // _VECTOR_BYTES) * _VECTOR_BYTES)


def _volume(group: FusionGroup, axes: Iterable[int]) -> int:
    return math.prod(upper(group.extents[axis]) for axis in axes)


def panel_width(group: FusionGroup, inner: Iterable[int], lane: int) -> int:
    """The number of columns, or short rows, of one panel."""
    if lane != len(group.extents) - 1:
        return SHORT_ROWS
    width = PANEL_BYTES // max(1, 8 * _volume(group, inner)) // 16 * 16
    low, high = PANEL_LIMITS
    columns = upper(group.extents[-1])
    panels = max(1, columns // max(low, min(high, width)))
    return max(16, -(-columns // (16 * panels)) * 16)              # panels of nearly equal width, in whole vectors
