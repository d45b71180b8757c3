"""Collapses loop nests over contiguous memory into one loop: `for i in 0..8: for j in 0..4: y[4*i + j] = x[4*i + j]`.

Rows of 4 do not fill vectors; the whole array does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bwcompiler.ir.extent import Index, add_extents, scale_extent
from bwcompiler.ir.loop import Accumulate, Accumulator, Buffer, Loop, Reduce, Statement
from bwcompiler.ir.product_loop import PRODUCT
from bwcompiler.lowering.kernels.analysis.loop_bodies import Body
from bwcompiler.lowering.loops.split_guards import Copy
from bwcompiler.lowering.loops.tiling.join_rows import extents, is_one_walk


def merge_loops(body: Sequence[Statement], memory_of: Callable[[Buffer], Buffer]) -> list[Statement]:
    """The statements with every nest merged as far as it can be, innermost loops first.

    The order of accumulation is unchanged, and vector loops stay vector loops.  memory_of: see `Body`.
    """
    return [_merged(statement, memory_of) if isinstance(statement, Loop) else statement for statement in body]


def _merged(loop: Loop, memory_of: Callable[[Buffer], Buffer]) -> Loop:
    if loop.kind == PRODUCT:
        return loop
    body = merge_loops(loop.body, memory_of)
    if any(new is not old for new, old in zip(body, loop.body, strict=True)):
        loop = Loop(loop.index, loop.extent, body, loop.kind)
    if len(body) != 1 or not isinstance(body[0], Loop):
        return loop
    inner = body[0]
    if not isinstance(inner.extent, int) or not inner.extent or not loop.extent or _feeds_others(inner):
        return loop
    if not all(is_one_walk(extent, loop.index, inner.index, inner.extent) for extent in extents(inner.body, set())):
        return loop
    extent = scale_extent(loop.extent, inner.extent)
    index = Index(0, add_extents(extent, -1), inner.index.name)
    copy = Copy({loop.index: 0, inner.index: index.extent()}, in_place=True)
    merged = Loop(index, extent, copy.statements(inner.body), inner.kind)
    return merged if inner.kind == "serial" or Body(merged, memory_of).independent else loop


def _feeds_others(loop: Loop) -> bool:
    """Whether the loop adds to outer accumulators: the order of a reduction depends on its loops."""
    opened: set[Accumulator] = set()

    def visit(body: Sequence[Statement]) -> bool:
        for statement in body:
            if isinstance(statement, Reduce):
                opened.add(statement.accumulator)
            elif isinstance(statement, Accumulate) and isinstance(statement.target, Accumulator):
                if statement.target not in opened:
                    return True
            elif isinstance(statement, Loop) and visit(statement.body):
                return True
        return False

    return visit(loop.body)
