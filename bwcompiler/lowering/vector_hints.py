"""What LLVM's loop vectoriser is told about a loop, as metadata of its back edge.

LLVM unrolls short loops before it vectorises.  Scalars made so would stay scalars, because the SLP vectoriser is off
(`runtime/jit.py`): so loops that are to become vectors are not unrolled, or only afterwards.

    DEAR         calls mathematics: two vectors in flight
    WHOLE        elements next to each other, at least two vectors of them; the vectors may be unrolled
    copies(n)    a loop over lanes of accumulators: n vectors make it one iteration, whose accumulators stay in registers
    NONE         as LLVM thinks best
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bwcompiler.ir.loop import Accumulate, Accumulator, Let, Loop, Offset, Statement, Store
from bwcompiler.ir.reduction_tree import LANES
from bwcompiler.ir.scalar import Scalar
from bwcompiler.lowering.math.functions import FUNCTIONS
from bwcompiler.target import Target

DEAR_COPIES = 4               # of a loop body that calls mathematics, at most this many vectors at once
SHORTEST_PIECE = 4            # lanes: shorter tails are scalar

NONE, DEAR, WHOLE = "", "!1", "!2"
_COPIES = (1, 2, 4, 8, 16)
METADATA = "\n".join([
    "!1 = distinct !{!1, !3, !4}",
    "!2 = distinct !{!2, !3, !5}",
    '!3 = !{!"llvm.loop.unroll.disable"}',
    '!4 = !{!"llvm.loop.interleave.count", i32 2}',
    '!5 = !{!"llvm.loop.vectorize.followup_all", !6}',
    '!6 = !{!"llvm.loop.isvectorized", i32 1}',
    *[f'!{10 + k} = distinct !{{!{10 + k}, !3, !{20 + k}}}\n!{20 + k} = !{{!"llvm.loop.interleave.count", i32 {copies}}}'
      for k, copies in enumerate(_COPIES)],
])


def copies(count: int) -> str:
    return f"!{10 + _COPIES.index(count)}"


def loop_hint(loop: Loop, target: Target) -> str:
    """For an innermost vector loop without lanes."""
    if loop.kind != "vector":
        return NONE
    if is_dear(loop.body):
        return DEAR
    long = isinstance(loop.extent, int) and loop.extent >= 2 * loop_width(loop, target)
    return WHOLE if long and _is_contiguous(loop) else NONE


def strip_hint(loop: Loop, target: Target) -> str:
    """For a loop over all lanes."""
    count = LANES // loop_width(loop, target)
    return copies(min(count, DEAR_COPIES) if is_dear(loop.body) else count)


class Piece(NamedTuple):
    """Iterations first ... first + length of the last, incomplete strip."""

    first: int
    length: int
    hint: str


def tail_pieces(loop: Loop, target: Target, count: int) -> Iterator[Piece]:
    """Whole vectors, each piece half as long as the one before, then what is left; dear loops are not written out so often."""
    if is_dear(loop.body):
        yield Piece(0, count, DEAR)
        return
    done, piece = 0, LANES // 2
    while piece >= SHORTEST_PIECE:
        if count - done >= piece:
            yield Piece(done, piece, copies(max(piece // loop_width(loop, target), 1)))
            done += piece
        piece //= 2
    if done < count:
        yield Piece(done, count - done, NONE)


def loop_width(loop: Loop, target: Target) -> int:
    """How many iterations LLVM puts into one vector: as many as the largest element leaves room for."""
    return min(target.lanes(8 * _widest(loop.body)), LANES)


def _widest(body: list[Statement]) -> int:
    """Bytes of the largest element that a loop body loads, stores or accumulates."""
    sizes = [1]
    for statement in body:
        if isinstance(statement, Store):
            sizes.append(statement.buffer.dtype.itemsize)
        elif isinstance(statement, Accumulate):
            target = statement.target
            sizes.append((target if isinstance(target, Accumulator) else target[0]).dtype.itemsize)
        sizes += [scalar.dtype.itemsize for scalar in _scalars(statement) if scalar.op == "load"]
    return max(sizes)


def _is_contiguous(loop: Loop) -> bool:
    """Whether an iteration reads and writes next to the one before, or where it did: no gather, no step."""
    offsets: list[Offset] = []
    for statement in loop.body:
        if isinstance(statement, Store):
            offsets.append(statement.offset)
        elif isinstance(statement, Accumulate) and not isinstance(statement.target, Accumulator):
            offsets.append(statement.target[1])
        offsets += [scalar.data[1] for scalar in _scalars(statement) if scalar.op == "load"]
    return all(not offset.terms and _step(offset, loop) in (0, 1) for offset in offsets)


def _step(offset: Offset, loop: Loop) -> int:
    affine = offset.affine
    return 0 if isinstance(affine, int) else dict(affine.terms).get(loop.index, 0)


def is_dear(body: list[Statement]) -> bool:
    """Whether a loop body calls mathematics, which gains from several iterations in flight."""
    return any(scalar.op in FUNCTIONS for statement in body for scalar in _scalars(statement))


def _scalars(statement: Statement) -> Iterator[Scalar]:
    """Every scalar that a statement of a loop body computes, those of loops inside left out."""
    stack = [statement.value] if isinstance(statement, Let | Store | Accumulate) else []
    while stack:
        scalar = stack.pop()
        yield scalar
        stack += scalar.args
