"""Collapses loop nests over contiguous memory into one loop: `for i in 0..8: for j in 0..4: y[4*i + j] = x[4*i + j]`.

Rows of 4 do not fill vectors; the whole array does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bwcompiler.ir.loop import Accumulate, Accumulator, Buffer, Loop, Reduce, Statement
from bwcompiler.ir.product_loop import PRODUCT
from bwcompiler.lowering.kernels.analysis.loop_bodies import Body
from bwcompiler.lowering.loops.tiling.walks import joined


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
    merged = None if _feeds_others(inner) else joined(loop, inner, inner.kind)
    return loop if merged is None or (inner.kind != "serial" and not Body(merged, memory_of).independent) else merged


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
