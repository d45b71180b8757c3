"""`in_tiles`: tiles loops with transposed accesses, so that each cache line is used completely while it is in the cache.

    for i in 0..n                          for b in 0..n / 8
      for j in 0..m vector                   for p in 0..m / 8
        %y[i, j] = %x[j, i]       ->           for t in 0..8
                                                 for l in 0..8 vector
                                                   %y[8*b + t, 8*p + l] = %x[8*p + l, 8*b + t]

A column of x touches one cache line per element, and the next column the same lines again.  By then they are evicted if the column is
long, or if the rows are a power of two apart and map to few sets of the cache.  A tile touches as many lines as it has rows.
The computation of each iteration is unchanged, and the iterations are independent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from bwcompiler.ir.extent import Extent, Index, add_extents, scale_extent
from bwcompiler.ir.loop import Accumulate, Accumulator, Buffer, Kernel, Let, Loop, Statement, Store
from bwcompiler.ir.semantics.loop_verifier import scalars, statements, targets
from bwcompiler.lowering.loops.split_guards import Copy

LINE_BYTES = 64                # one row of a tile
LEAST_BYTES = 1 << 14          # least bytes accessed along columns: less stays in the L1 cache anyway;
LEAST_LINES = 1 << 14          # or least bytes of lines between two accesses to one, in loops between as well


def in_tiles(kernel: Kernel) -> Kernel:
    """The kernel with column-wise nests in tiles; the kernel itself if there are none."""
    body = _tiled(kernel.body)
    if all(new is old for new, old in zip(body, kernel.body, strict=False)):
        return kernel
    return Kernel(kernel.name, kernel.buffers, body, kernel.words)


def _tiled(body: list[Statement]) -> list[Statement]:
    found: list[Statement] = []
    for statement in body:
        if not isinstance(statement, Loop):
            found.append(statement)
            continue
        nest = _nest(statement)
        across = None if nest is None else _across(nest)
        if nest is not None and across is not None:
            found += _tiles(nest, *across)
            continue
        inner = _tiled(statement.body)
        same = all(new is old for new, old in zip(inner, statement.body, strict=False))
        found.append(statement if same else Loop(statement.index, statement.extent, inner, statement.kind))
    return found


def _nest(loop: Loop) -> list[Loop] | None:
    """The loops of a perfect nest of independent iterations, from the outermost to the vector loop."""
    nest = [loop]
    while len(nest[-1].body) == 1 and isinstance(nest[-1].body[0], Loop):
        nest.append(nest[-1].body[0])
    if len(nest) < 2 or nest[-1].kind != "vector" or not all(isinstance(one.extent, int) for one in nest):
        return None
    return nest if is_elementwise(nest[-1].body) else None


def is_elementwise(body: Sequence[Statement], reading: Sequence[Statement] = ()) -> bool:
    """Whether every iteration writes what no other one reads or writes.  reading: statements beside these that write no memory."""
    written: dict[Buffer, Extent] = {}
    for statement in body:
        in_memory = isinstance(statement, Accumulate) and not isinstance(statement.target, Accumulator)
        if not in_memory and not isinstance(statement, Let | Store):
            return False
        for buffer, offset in targets(statement):
            if offset is None or offset.terms or buffer in written:
                return False
            written[buffer] = offset.affine
    for statement in (*body, *reading):
        for scalar, _ in scalars(statement):
            if scalar.op == "load" and scalar.data[0] in written and (
                    scalar.data[1].terms or scalar.data[1].affine != written[scalar.data[0]]):
                return False
    return True


def _across(nest: list[Loop]) -> tuple[int, int] | None:
    """(the number of the loop, the side of a tile) if elements are contiguous along a loop other than the innermost."""
    inner = nest[-1]
    for buffer, offset in _accesses(inner.body):
        itemsize = buffer.dtype.itemsize
        if abs(_step(offset, inner.index)) * itemsize < LINE_BYTES:
            continue
        for number, loop in enumerate(nest[:-1]):
            assert isinstance(loop.extent, int) and isinstance(inner.extent, int)
            side = LINE_BYTES // itemsize
            if abs(_step(offset, loop.index)) == 1 and min(loop.extent, inner.extent) >= side and (
                    loop.extent * inner.extent * itemsize >= LEAST_BYTES or _lines(nest, number) * LINE_BYTES >= LEAST_LINES):
                return number, side
    return None


def _lines(nest: list[Loop], number: int) -> int:
    """The lines that accesses along columns touch from one iteration of a loop to the next, which touches them again."""
    inner, loop = nest[-1], nest[number]
    count = math.prod([one.extent for one in nest[number + 1:] if isinstance(one.extent, int)])
    across = {(buffer, offset) for buffer, offset in _accesses(inner.body)
              if abs(_step(offset, loop.index)) == 1 and abs(_step(offset, inner.index)) * buffer.dtype.itemsize >= LINE_BYTES}
    return count * len(across)


def _accesses(body: list[Statement]) -> Iterator[tuple[Buffer, Extent]]:
    for statement, _ in statements(body):
        yield from [(buffer, offset.affine) for buffer, offset in targets(statement) if offset is not None]
        for scalar, _ in scalars(statement):
            if scalar.op == "load":
                yield scalar.data[0], scalar.data[1].affine


def _step(offset: Extent, index: Index) -> int:
    """The step of one iteration, in elements."""
    return 0 if isinstance(offset, int) else dict(offset.terms).get(index, 0)


def _tiles(nest: list[Loop], number: int, side: int) -> list[Statement]:
    """The nest in tiles over its loop `number` and its vector loop, and the remainders at their ends."""
    outer = nest[number]
    assert isinstance(outer.extent, int)
    whole, rest = divmod(outer.extent, side)
    block = Index(0, whole - 1, "b")
    body: list[Statement] = [Loop(block, whole, _rows(nest, number, scale_extent(block.extent(), side), side, side))]
    if rest:
        body += _rows(nest, number, whole * side, rest, side)
    for loop in reversed(nest[:number]):
        body = [Loop(loop.index, loop.extent, body)]
    return body


def _rows(nest: list[Loop], number: int, first: Extent, rows: int, side: int) -> list[Statement]:
    """The tiles of some rows: iterations of loop `number` from the first on."""
    outer, middle, inner = nest[number], nest[number + 1:-1], nest[-1]
    assert isinstance(inner.extent, int)
    whole, rest = divmod(inner.extent, side)
    between = [Index(loop.index.lo, loop.index.hi, loop.index.name) for loop in middle]
    body: list[Statement] = []
    for start, count, width in ((0, whole, side), (whole * side, 1, rest)):
        if not width:
            continue
        panel, row, lane = Index(0, count - 1, "p"), Index(0, rows - 1, "t"), Index(0, width - 1, "l")
        column = add_extents(add_extents(scale_extent(panel.extent(), width), start), lane.extent())
        replaced = {loop.index: index.extent() for loop, index in zip(middle, between, strict=True)}
        copy = Copy({**replaced, outer.index: add_extents(first, row.extent()), inner.index: column})
        tile = Loop(row, rows, [Loop(lane, width, copy.statements(inner.body), "vector")])
        body.append(Loop(panel, count, [tile]))
    for loop, index in zip(reversed(middle), reversed(between), strict=True):
        body = [Loop(index, loop.extent, body)]
    return body
