"""`join_rows`: merges loops of sums over several contiguous axes into one loop over long rows.

    for j in 0..20                         for k in 0..400 vector
      for k in 0..20 vector       ->         total add= %x[400*i + k]
        total add= %x[400*i + 20*j + k]

The lanes of a reduction are those of its innermost loop (`ir/semantics/reduction_tree.py`): 20 elements are too few for them, and would
be added sequentially, each waiting for the sum before it.  Loops without accumulators are merged when their text is emitted
(`kernels/merge_loops.py`); merging reductions changes the order of sums, so it is done here, for interpreter and native code alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bwcompiler.ir.extent import Extent, Index
from bwcompiler.ir.loop import Accumulate, Accumulator, Fill, Kernel, Let, Loop, Offset, Reduce, Statement, Store, identity_of
from bwcompiler.ir.scalar import Scalar
from bwcompiler.lowering.loops.split_guards import Copy
from bwcompiler.lowering.loops.tiling.tiles import is_elementwise

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
    if inner is None or not isinstance(loop.extent, int) or not _is_joined(loop, inner) or not _may_stand_outside(before, after, loop):
        return [loop]
    assert isinstance(inner.extent, int)
    extent = loop.extent * inner.extent
    index = Index(0, extent - 1, inner.index.name)
    copy = Copy({loop.index: 0, inner.index: index.extent()}, in_place=True)
    return [*before, Loop(index, extent, copy.statements(inner.body), "vector"), *after]


def _parts(body: list[Statement]) -> tuple[list[Statement], Loop | None, list[Statement]]:
    """The statements before the single loop over short rows, the loop, and the statements after it."""
    loops = [number for number, statement in enumerate(body) if isinstance(statement, Loop)]
    inner = body[loops[0]] if len(loops) == 1 else None
    if not isinstance(inner, Loop) or inner.kind != "vector" or not isinstance(inner.extent, int) or not 0 < inner.extent < LONG:
        return [], None, []
    return body[:loops[0]], inner, body[loops[0] + 1:]


def _is_joined(loop: Loop, inner: Loop) -> bool:
    """Whether the inner loop adds to accumulators, and the next iteration of the outer loop continues where it stops in memory."""
    sums = [one for one in inner.body if isinstance(one, Accumulate) and isinstance(one.target, Accumulator)]
    rest = [one for one in inner.body if one not in sums]
    if not sums or any(one.position is not None for one in sums) or not is_elementwise(rest, sums):
        return False
    assert isinstance(inner.extent, int)
    return bool(loop.extent) and all(is_one_walk(extent, loop.index, inner.index, inner.extent) for extent in extents(inner.body, set()))


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


def is_one_walk(extent: Extent, outer: Index, inner: Index, count: int) -> bool:
    """Whether one step of the outer loop moves as far as `count` steps of the inner one."""
    steps = {} if isinstance(extent, int) else dict(extent.terms)
    return steps.get(outer, 0) == count * steps.get(inner, 0)


def extents(body: Sequence[Statement], seen: set[int]) -> Iterator[Extent]:
    """All extents in the statements.  seen: ids of visited scalars."""
    for statement in body:
        if isinstance(statement, Loop):
            yield statement.extent
            yield from extents(statement.body, seen)
        elif isinstance(statement, Let | Store | Accumulate | Fill):
            yield from _of_scalar(statement.value, seen)
            if isinstance(statement, Store):
                yield from _of_offset(statement.offset, seen)
            elif isinstance(statement, Accumulate):
                if not isinstance(statement.target, Accumulator):
                    yield from _of_offset(statement.target[1], seen)
                if statement.position is not None:
                    yield from _of_scalar(statement.position, seen)


def _of_offset(offset: Offset, seen: set[int]) -> Iterator[Extent]:
    yield offset.affine
    for term, _ in offset.terms:
        yield from _of_scalar(term, seen)


def _of_scalar(scalar: Scalar, seen: set[int]) -> Iterator[Extent]:
    if id(scalar) in seen:
        return
    seen.add(id(scalar))
    if scalar.op == "index":
        yield scalar.data
    elif scalar.op == "in_range":
        yield from scalar.data
    elif scalar.op == "load":
        yield scalar.data[1].affine
    for arg in scalar.args:
        yield from _of_scalar(arg, seen)
