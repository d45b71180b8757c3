"""`join_rows`: merges loops of sums over several contiguous axes into one loop over long rows.

    for j in 0..20                         for k in 0..400 vector
      for k in 0..20 vector       ->         total add= %x[400*i + k]
        total add= %x[400*i + 20*j + k]

The lanes of a reduction are those of its innermost loop (`ir/semantics/reduction_tree.py`): 20 elements are too few for them, and would
be added sequentially, each waiting for the sum before it.  Loops without accumulators are merged when their text is emitted
(`kernels/merge_loops.py`); merging reductions changes the order of sums, so it is done here, for interpreter and native code alike.
"""

from __future__ import annotations

from collections.abc import Sequence

from bwcompiler.ir.extent import Extent, Index
from bwcompiler.ir.loop import Accumulate, Accumulator, Kernel, Loop, Reduce, Statement, identity_of
from bwcompiler.lowering.loops.tiling.tiles import is_elementwise
from bwcompiler.lowering.loops.tiling.walks import joined

LONG = 256                     # elements of a row that fills the lanes well


def join_rows(kernel: Kernel) -> Kernel:
    """The kernel with such loops joined; the kernel itself if there are none."""
    body = _joined(kernel.body)
    if len(body) == len(kernel.body) and all(new is old for new, old in zip(body, kernel.body, strict=True)):
        return kernel
    return Kernel(kernel.name, kernel.buffers, body, kernel.words)


def _joined(body: Sequence[Statement]) -> list[Statement]:
    return [made for statement in body for made in (_loop(statement) if isinstance(statement, Loop) else [statement])]


def _loop(loop: Loop) -> list[Statement]:
    body = _joined(loop.body)
    if len(body) != len(loop.body) or any(new is not old for new, old in zip(body, loop.body, strict=True)):
        loop = Loop(loop.index, loop.extent, body, loop.kind)
    before, inner, after = _parts(body)
    if inner is None or not isinstance(loop.extent, int) or not _adds(inner) or not _may_stand_outside(before, after, loop):
        return [loop]
    made = joined(loop, inner, "vector")
    return [loop] if made is None else [*before, made, *after]


def _parts(body: list[Statement]) -> tuple[list[Statement], Loop | None, list[Statement]]:
    """The statements before the single loop over short rows, the loop, and the statements after it."""
    loops = [number for number, statement in enumerate(body) if isinstance(statement, Loop)]
    inner = body[loops[0]] if len(loops) == 1 else None
    if not isinstance(inner, Loop) or inner.kind != "vector" or not isinstance(inner.extent, int) or not 0 < inner.extent < LONG:
        return [], None, []
    return body[:loops[0]], inner, body[loops[0] + 1:]


def _adds(inner: Loop) -> bool:
    """Whether the loop adds to accumulators, and otherwise computes each element by itself."""
    sums = [one for one in inner.body if isinstance(one, Accumulate) and isinstance(one.target, Accumulator)]
    rest = [one for one in inner.body if one not in sums]
    return bool(sums) and all(one.position is None for one in sums) and is_elementwise(rest, sums)


def _may_stand_outside(before: list[Statement], after: list[Statement], loop: Loop) -> bool:
    """Whether the statements around a row only compute its sum and add it to the same total for every row: `total add= row`."""
    opened = [one.accumulator for one in before if isinstance(one, Reduce)]
    if len(opened) != len(before) or len(after) != len(opened):
        return False
    left = set(opened)
    for one in after:
        if not isinstance(one, Accumulate) or one.position is not None:
            return False
        row = one.value.args[0] if one.value.op == "cast" else one.value
        if row.op != "total" or row.data not in left or row.data.combine != one.combine:
            return False
        left.remove(row.data)
        if row.data.start != identity_of(one.combine, row.dtype):
            return False
        if one.value is not row and not (row.dtype.is_float and one.value.dtype.is_float):
            return False
        if not isinstance(one.target, Accumulator) and (one.target[1].terms or not _is_fixed(one.target[1].affine, loop.index)):
            return False
    return True


def _is_fixed(place: Extent, index: Index) -> bool:
    return isinstance(place, int) or index not in dict(place.terms)
