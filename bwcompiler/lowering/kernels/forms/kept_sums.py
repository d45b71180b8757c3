"""Keeps sums in memory in registers while an outer loop adds to them: those of a narrow panel of columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bwcompiler.ir.extent import Affine
from bwcompiler.ir.loop import Accumulate, Accumulator, Loop
from bwcompiler.lowering.kernels.analysis.loop_bodies import Body
from bwcompiler.lowering.kernels.analysis.vector_loops import LONGEST, Piece, native_width
from bwcompiler.lowering.kernels.emitter.iterations import Iterations
from bwcompiler.lowering.kernels.emitter.kernel_values import Cell
from bwcompiler.lowering.llvm_scalars import memory_type

KEPT = 8                      # most registers for such sums
MOST_APART = 16               # most elements that the inner loop accesses one by one: these take longer than a sum in memory


@contextmanager
def kept_in_registers(emitter: Iterations, loop: Loop, body: Body) -> Iterator[None]:
    """A context for a loop: the elements that each of its iterations accumulates into are in registers inside it."""
    found = []
    for inner in loop.body:
        if emitter.abreast is None and isinstance(inner, Loop) and isinstance(inner.extent, int) and isinstance(loop.extent, int):
            found += _keep(emitter, loop, body, inner, inner.extent)
    yield
    for inner, statement, piece in found:
        assert not isinstance(statement.target, Accumulator)
        buffer, offset = statement.target
        with emitter.side_by_side(inner, str(piece.first), piece.width, piece.active):
            emitter.write(buffer, offset, emitter.load_cell(emitter.kept.pop((statement, str(piece.first))), buffer.dtype))
        emitter.kept_pieces.pop(inner, None)
        emitter.kept_along.pop(statement, None)


def _keep(emitter: Iterations, loop: Loop, body: Body, inner: Loop, extent: int) -> list[tuple[Loop, Accumulate, Piece]]:
    """Load the elements that an inner vector loop accumulates into, if there are enough registers."""
    sums = [statement for statement in inner.body if isinstance(statement, Accumulate) and _is_kept(emitter, loop, body, inner, statement)]
    inner_body = emitter.body_of(inner)
    in_lanes = any(isinstance(statement, Accumulate) and statement.target in emitter.lane_sums for statement in inner.body)
    if not sums or in_lanes or extent > KEPT * LONGEST or not emitter.is_vector(inner, inner_body):
        return []
    if inner_body.apart * extent > MOST_APART:             # registers have no index, so all iterations would be unrolled
        return []
    vectors = [Piece(piece.first + k * piece.width, piece.width, 1, piece.active)
               for piece in emitter.pieces_of(inner, inner_body) for k in range(piece.count) if not piece.clamped]
    native = native_width(inner_body, emitter.emit.target)
    if len(sums) * sum([-(-piece.width // native) for piece in vectors]) > KEPT or sum([piece.width for piece in vectors]) < extent:
        return []
    emitter.kept_pieces[inner] = vectors
    found = [(inner, statement, piece) for statement in sums for piece in vectors]
    for _, statement, piece in found:
        assert not isinstance(statement.target, Accumulator)
        buffer, offset = statement.target
        emitter.kept_along[statement] = inner.index
        with emitter.side_by_side(inner, str(piece.first), piece.width, piece.active):
            cell = emitter.kept[statement, str(piece.first)] = Cell(emitter.alloca(memory_type(buffer.dtype), piece.width), piece.width)
            before = emitter.as_register(emitter.loaded(buffer, emitter.locate(buffer, offset)), buffer.dtype)
            emitter.store_cell(cell, buffer.dtype, before)
    return found


def _is_kept(emitter: Iterations, loop: Loop, body: Body, inner: Loop, statement: Accumulate) -> bool:
    """Whether all iterations of the outer loop accumulate into the same elements, which nothing else in it reads or writes."""
    if isinstance(statement.target, Accumulator) or statement.target[1].terms:
        return False
    buffer, offset = statement.target
    indices = {index for index, _ in offset.affine.terms} if isinstance(offset.affine, Affine) else set()
    if loop.index in indices or inner.index not in indices or indices & (body.inner - {inner.index}):
        return False
    same = [access for access in body.accesses if emitter.memory_of(access.buffer) is emitter.memory_of(buffer)]
    return len(same) == 2 and all(access.buffer is buffer and access.offset is offset for access in same)
