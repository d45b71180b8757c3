"""Keeps sums in memory in registers while an outer loop adds to them: those of a narrow panel of columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from bwcompiler.ir.extent import Affine
from bwcompiler.ir.loop import Accumulate, Accumulator, Buffer, Kernel, Loop
from bwcompiler.lowering.kernels.kernel_values import Cell
from bwcompiler.lowering.kernels.loop_bodies import Body
from bwcompiler.lowering.kernels.strips import Strips
from bwcompiler.lowering.kernels.vector_loops import LONGEST, Piece, native_width
from bwcompiler.lowering.llvm_scalars import ScalarEmitter, memory_type

KEPT = 8                      # most registers for such sums
MOST_APART = 16               # most elements that the inner loop accesses one by one: these take longer than a sum in memory


class KeptSums(Strips):
    """kept_pieces: the vectors of loops whose sums are kept in registers."""

    def __init__(self, kernel: Kernel, emit: ScalarEmitter, merged: Mapping[Buffer, Buffer], may_poll: bool) -> None:
        super().__init__(kernel, emit, merged, may_poll)
        self.kept_pieces: dict[Loop, list[Piece]] = {}

    @contextmanager
    def kept_in_registers(self, loop: Loop, body: Body) -> Iterator[None]:
        """A context for a loop: the elements that each of its iterations accumulates into are in registers inside it."""
        found = []
        for inner in loop.body:
            if self.abreast is None and isinstance(inner, Loop) and isinstance(inner.extent, int) and isinstance(loop.extent, int):
                found += self.keep(loop, body, inner, inner.extent)
        yield
        for inner, statement, piece in found:
            assert not isinstance(statement.target, Accumulator)
            buffer, offset = statement.target
            with self.side_by_side(inner, str(piece.first), piece.width, piece.active):
                self.write(buffer, offset, self.load_cell(self.kept.pop((statement, str(piece.first))), buffer.dtype))
            self.kept_pieces.pop(inner, None)
            self.kept_along.pop(statement, None)

    def keep(self, loop: Loop, body: Body, inner: Loop, extent: int) -> list[tuple[Loop, Accumulate, Piece]]:
        """Load the elements that an inner vector loop accumulates into, if there are enough registers."""
        sums = [statement for statement in inner.body if isinstance(statement, Accumulate) and self.is_kept(loop, body, inner, statement)]
        inner_body = self.body_of(inner)
        in_lanes = any(isinstance(statement, Accumulate) and statement.target in self.lane_sums for statement in inner.body)
        if not sums or in_lanes or extent > KEPT * LONGEST or not self.is_vector(inner, inner_body):
            return []
        if inner_body.apart * extent > MOST_APART:             # registers have no index, so all iterations would be unrolled
            return []
        vectors = [Piece(piece.first + k * piece.width, piece.width, 1, piece.active)
                   for piece in self.pieces_of(inner, inner_body) for k in range(piece.count) if not piece.clamped]
        native = native_width(inner_body, self.emit.target)
        if len(sums) * sum([-(-piece.width // native) for piece in vectors]) > KEPT or sum([piece.width for piece in vectors]) < extent:
            return []
        self.kept_pieces[inner] = vectors
        found = [(inner, statement, piece) for statement in sums for piece in vectors]
        for _, statement, piece in found:
            assert not isinstance(statement.target, Accumulator)
            buffer, offset = statement.target
            self.kept_along[statement] = inner.index
            with self.side_by_side(inner, str(piece.first), piece.width, piece.active):
                cell = self.kept[statement, str(piece.first)] = Cell(self.alloca(memory_type(buffer.dtype), piece.width), piece.width)
                self.store_cell(cell, buffer.dtype, self.as_register(self.loaded(buffer, self.locate(buffer, offset)), buffer.dtype))
        return found

    def is_kept(self, loop: Loop, body: Body, inner: Loop, statement: Accumulate) -> bool:
        """Whether all iterations of the outer loop accumulate into the same elements, which nothing else in it reads or writes."""
        if isinstance(statement.target, Accumulator) or statement.target[1].terms:
            return False
        buffer, offset = statement.target
        indices = {index for index, _ in offset.affine.terms} if isinstance(offset.affine, Affine) else set()
        if loop.index in indices or inner.index not in indices or indices & (body.inner - {inner.index}):
            return False
        same = [access for access in body.accesses if self.memory_of(access.buffer) is self.memory_of(buffer)]
        return len(same) == 2 and all(access.buffer is buffer and access.offset is offset for access in same)
