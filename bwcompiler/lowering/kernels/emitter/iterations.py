"""Emits the iterations of a loop: in sequence, unrolled, or as vectors.

Loop bodies are emitted by `statements`; `loops_to_llvm.py` chooses the form of each loop.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from bwcompiler.ir.extent import Extent
from bwcompiler.ir.loop import Buffer, Kernel, Loop, Statement
from bwcompiler.ir.product_loop import PRODUCT
from bwcompiler.lowering.kernels.analysis.loop_bodies import Body
from bwcompiler.lowering.kernels.analysis.vector_loops import Piece, can_mask, is_outer, pieces, vector_width, worthwhile
from bwcompiler.lowering.kernels.emitter.accumulators import Accumulators
from bwcompiler.lowering.kernels.emitter.positions import Abreast
from bwcompiler.lowering.kernels.emitter.registers import Register
from bwcompiler.lowering.llvm_scalars import ScalarEmitter
from bwcompiler.lowering.polls import polled, statements_work


class Iterations(Accumulators):
    """What all forms of loops need.

    bodies         analyses of loop bodies.
    polls          whether some loop polls for signals; may_poll: whether loops may.
    kept_pieces    the vectors of loops whose sums are kept in registers (`kept_sums.py`).
    product_words  the stack memory for the words of products (`product_calls.py`), once allocated.
    """

    def __init__(self, kernel: Kernel, emit: ScalarEmitter, merged: Mapping[Buffer, Buffer], may_poll: bool) -> None:
        super().__init__(kernel, emit, merged)
        self.may_poll = may_poll
        self.polls = False
        self.bodies: dict[Loop, Body] = {}
        self.kept_pieces: dict[Loop, list[Piece]] = {}
        self.product_words: str | None = None

    @abstractmethod
    def statements(self, body: list[Statement]) -> None:
        """The text of statements, loops among them."""

    def body_of(self, loop: Loop) -> Body:
        found = self.bodies.get(loop)
        if found is None:
            found = self.bodies[loop] = Body(loop, self.memory_of)
        return found

    def is_vector(self, loop: Loop, body: Body) -> bool:
        """Whether the loop is vectorised: a vector loop, or a loop around very short ones."""
        if loop.kind == PRODUCT:
            return False
        if loop.kind == "vector":
            return worthwhile(body, self.emit.target) and body.independent
        return is_outer(body, self.emit.target, self.lane_sums) and body.independent

    def pieces_of(self, loop: Loop, body: Body) -> list[Piece]:
        assert isinstance(loop.extent, int)
        target = self.emit.target
        return pieces(loop.extent, vector_width(body, target), body.pure, can_mask(body, target), body.expensive)

    @contextmanager
    def each(self, loop: Loop, turns: Extent, iterations: int) -> Iterator[str]:
        """A loop of `turns` turns with `iterations` iterations each; yields the number of the first one of each turn."""
        self.forget(None)                                  # the next iteration must reload what the loop writes
        with polled(self, turns, iterations * statements_work(loop.body)) as turn:
            yield turn if iterations == 1 else self.emit.put(f"mul nuw nsw i64 {turn}, {iterations}")
        self.forget(None)

    @contextmanager
    def turns(self, count: str, empty: bool = True) -> Iterator[str]:
        """A counted loop, after which no loaded register is reused (the loop may have written the memory)."""
        self.forget(None)
        with self.counted(count, empty) as index:
            yield index
        self.forget(None)

    def plus(self, first: str, number: int) -> str:
        if not first.startswith("%"):
            return str(int(first) + number)
        return self.emit.put(f"add nuw nsw i64 {first}, {number}") if number else first

    def iteration(self, loop: Loop, number: str) -> None:
        with self.inside() as level:
            self.indices[loop.index] = self.index_register(number, level)
            if not number.startswith("%"):
                self.literals[loop.index] = int(number)
            self.statements(loop.body)
            self.literals.pop(loop.index, None)

    def index_register(self, number: str, level: int) -> Register:
        """The index in a copy of a loop body: what it is depends on the loop, or is a literal."""
        return Register(number, 1, level if number.startswith("%") else 0, level)

    def vector(self, loop: Loop, first: str, width: int, active: int | str | None = None) -> None:
        """`width` iterations at once."""
        if width == 1:
            self.iteration(loop, first)
            return
        with self.side_by_side(loop, first, width, active):
            self.statements(loop.body)

    @contextmanager
    def side_by_side(self, loop: Loop, first: str, width: int, active: int | str | None) -> Iterator[None]:
        with self.inside() as level:
            self.indices[loop.index] = self.index_register(first, level)
            self.abreast = Abreast(loop.index, first, width, active, self.body_of(loop).spread) if width > 1 else None
            yield
            self.abreast = None
