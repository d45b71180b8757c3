"""Loop IR -> LLVM text: one internal function per kernel.

Every loop is written in one of a few forms, which `loop` chooses: a call of a product, zeros by the C library, strips that reduce into
lanes (`strips.py`), a search, vectors, or iterations one after the other, written out where they are small (`iterations.py`): LLVM neither
makes vectors nor unrolls (`runtime/jit.py`).  `vector_loops.py` says which loops are vectors, and of how many elements, by what
`loop_bodies.py` knows of their bodies.  Scalars:
`kernel_values.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from bwcompiler.ir.contracts.program_interface import INTERRUPTED
from bwcompiler.ir.extent import Extent, Index
from bwcompiler.ir.loop import (
    INPUT,
    Accumulate,
    Accumulator,
    Buffer,
    Fill,
    Kernel,
    Let,
    Loop,
    Offset,
    Reduce,
    Statement,
    Store,
)
from bwcompiler.ir.product_loop import PRODUCT, product_of
from bwcompiler.ir.scalar import Word
from bwcompiler.ir.semantics.reduction_tree import last_feeds
from bwcompiler.lowering.kernels.analysis.loop_bodies import Body
from bwcompiler.lowering.kernels.analysis.vector_loops import (
    SMALL_BODY,
    WRITTEN_OUT,
    Piece,
    can_mask_any_number,
    statement_size,
    vector_width,
)
from bwcompiler.lowering.kernels.analysis.zeros import zeroed_by
from bwcompiler.lowering.kernels.emitter.iterations import Iterations
from bwcompiler.lowering.kernels.emitter.registers import Register
from bwcompiler.lowering.kernels.forms.kept_sums import kept_in_registers
from bwcompiler.lowering.kernels.forms.product_calls import product_call
from bwcompiler.lowering.kernels.forms.searches import search_loop, search_of
from bwcompiler.lowering.kernels.forms.strips import strip_loop
from bwcompiler.lowering.kernels.merge_loops import merge_loops
from bwcompiler.lowering.llvm_scalars import ScalarEmitter, register_type

COPIES, LONG_BODY = 4, 64     # most copies of the body of a sequential loop, and most operations of all copies


class KernelText(NamedTuple):
    """A function, and per parameter the element of its array that the pointer has to point at.

    A kernel that reads row 7 of an array and one that reads row 8 are the same function, called with other pointers.
    words: of the kernel, those that the function gets, after its pointers.
    polls: whether it looks for signals, and so returns a status.
    """

    text: str
    starts: tuple[Extent, ...]
    words: tuple[Index | Word, ...]
    polls: bool


def kernel_to_llvm(kernel: Kernel, emit: ScalarEmitter, linkage: str = "internal",
                   merged: Mapping[Buffer, Buffer] = MappingProxyType({}), name: str | None = None, may_poll: bool = True) -> KernelText:
    """The function; intrinsics and math functions it uses are noted in `emit`.

    merged: inputs that share the memory of an output and have no parameter.  name: replaces the kernel's name.
    may_poll: whether it may poll for signals.
    """
    emitter = _KernelEmitter(kernel, emit, merged, name or kernel.name, may_poll)
    text = emitter.function(linkage)
    return KernelText(text, tuple([emitter.starts.get(buffer, 0) for buffer in kernel.buffers]), tuple(emitter.words), emitter.polls)


class _KernelEmitter(Iterations):
    def __init__(self, kernel: Kernel, emit: ScalarEmitter, merged: Mapping[Buffer, Buffer], name: str, may_poll: bool) -> None:
        self.name = name
        self.outer_lines, emit.lines = emit.lines, []
        super().__init__(kernel, emit, merged, may_poll)

    def function(self, linkage: str) -> str:
        emit = self.emit
        parameters = []
        for number, buffer in enumerate(self.kernel.buffers):
            if buffer not in self.merged:
                parameters.append(f"ptr noalias {'readonly ' if buffer.role == INPUT else ''}%p{number}")
                self.pointers[buffer] = f"%p{number}"
        for number, word in enumerate(self.words):
            register = Register(f"%w{number}")
            parameters.append(f"{'i64' if isinstance(word, Index) else register_type(word.dtype)} {register.text}")
            if isinstance(word, Index):
                self.indices[word] = register
            else:
                self.remember(word, register)
        self.pointers.update({source: self.pointers[target] for source, target in self.merged.items()})
        self.statements(merge_loops(self.kernel.body, self.memory_of))
        body = "\n".join(emit.lines)
        emit.lines = self.outer_lines
        type_, end = "void", "  ret void"
        if self.polls:
            type_, end = "i32", f"  ret i32 0\ninterrupted:\n  ret i32 {INTERRUPTED}"
        head = f"define {linkage} {type_} @{self.name}({', '.join(parameters)}) #1 {{\nentry:\n"
        return head + "\n".join([*self.entry, body]) + f"\n{end}\n}}\n"

    # ----- statements
    def statements(self, body: list[Statement]) -> None:
        last = last_feeds(body, self.lane_sums)
        for number, statement in enumerate(body):
            if isinstance(statement, Let):
                self.remember(statement, self.scalar(statement.value))
            elif isinstance(statement, Store):
                self.write(statement.buffer, statement.offset, self.scalar(statement.value))
                self.forget(self.memory_of(statement.buffer))
            elif isinstance(statement, Reduce):
                self.open(statement.accumulator)
                self.forget(statement.accumulator)
            elif isinstance(statement, Accumulate):
                self.accumulate(statement)
                target = statement.target
                self.forget(target if isinstance(target, Accumulator) else self.memory_of(target[0]))
            elif isinstance(statement, Fill):
                self.fill(statement)
                self.forget(self.memory_of(statement.buffer))
            else:
                self.loop(statement)
                for accumulator in last.get(number, ()):
                    self.combine_lanes(accumulator)

    def fill(self, statement: Fill) -> None:
        buffer = statement.buffer
        index = Index(0, buffer.size - 1, "k")
        self.loop(Loop(index, buffer.size, [Store(buffer, Offset(index.extent()), statement.value)], "vector"))

    # ----- loops
    def loop(self, loop: Loop) -> None:
        if loop.extent == 0 or not loop.body:              # its statements were all removed
            return
        product = product_of(loop) if loop.kind == PRODUCT else None
        if product is not None:
            product_call(self, product)
            return
        zeroed = zeroed_by(loop) if self.abreast is None else None
        if zeroed is not None:
            self._set_to_zero(*zeroed, loop.extent)
            return
        body = self.body_of(loop)
        if any(isinstance(s, Accumulate) and s.target in self.lane_sums for s in loop.body):
            strip_loop(self, loop, body)
        elif (searched := search_of(self, loop, body)) is not None:
            search_loop(self, loop, *searched)
        elif self.abreast is None and self.is_vector(loop, body):
            self.vector_loop(loop, body)
        else:
            self.plain_loop(loop, body)

    def _set_to_zero(self, buffer: Buffer, start: Extent, extent: Extent) -> None:
        """Set memory to zero by memset, which does not read cache lines first, unlike vector stores."""
        pointer, count = self.pointer(buffer, start), self.affine(extent)
        size = self.emit.put(f"mul nuw nsw i64 {count}, {buffer.dtype.itemsize}")
        self.emit.intrinsic("llvm.memset.p0.i64", "void", ("ptr", pointer.text), ("i8", "0"), ("i64", size), ("i1", "false"))
        self.forget(self.memory_of(buffer))

    def plain_loop(self, loop: Loop, body: Body) -> None:
        """A sequential loop; short bodies are unrolled."""
        extent, size = loop.extent, self.size(loop)
        if isinstance(extent, int) and extent * size <= WRITTEN_OUT:
            for number in range(extent):
                self.iteration(loop, str(number))
            return
        copies = 1 if any(isinstance(statement, Loop) for statement in loop.body) else min(LONG_BODY // size, COPIES)
        if isinstance(extent, int) and copies > 1:
            copies = 1 << (copies.bit_length() - 1)
            turns, rest = divmod(extent, copies)
            with self.each(loop, turns, copies) as first:
                for number in range(copies):
                    self.iteration(loop, self.plus(first, number))
            for number in range(extent - rest, extent):
                self.iteration(loop, str(number))
            return
        with kept_in_registers(self, loop, body), self.each(loop, extent, 1) as index:
            self.iteration(loop, index)

    def size(self, loop: Loop) -> int:
        """The number of operations of one iteration, with inner loops unrolled."""
        total = 0
        for statement in loop.body:
            if not isinstance(statement, Loop) or not isinstance(statement.extent, int):
                total += statement_size(statement)
                continue
            body = self.body_of(statement)
            if self.abreast is None and self.is_vector(statement, body):
                cut = self.pieces_of(statement, body)
                total += sum([piece.count * (self.size(statement) + body.apart * piece.width) for piece in cut])
            else:
                total += statement.extent * self.size(statement)
        return total

    def vector_loop(self, loop: Loop, body: Body) -> None:
        if not isinstance(loop.extent, int):
            self.vectors_of_unknown_number(loop, vector_width(body, self.emit.target))
            return
        for piece in self.kept_pieces.get(loop) or self.pieces_of(loop, body):
            self.piece(loop, piece)

    def piece(self, loop: Loop, piece: Piece) -> None:
        body = self.body_of(loop)
        instructions = body.operations + len(body.accesses) + body.apart * piece.width
        if piece.count == 1 or (not body.expensive and piece.count * instructions <= SMALL_BODY):
            for number in range(piece.count):
                first = piece.first + number * piece.width
                if piece.clamped:
                    assert isinstance(loop.extent, int)
                    first = min(first, loop.extent - piece.width)
                self.vector(loop, str(first), piece.width, piece.active)
            return
        with self.each(loop, piece.count, piece.width) as first_of:
            first_of = self.plus(first_of, piece.first)
            if piece.clamped:
                assert isinstance(loop.extent, int)
                first_of = self.emit.intrinsic("llvm.smin.i64", "i64", ("i64", first_of), ("i64", str(loop.extent - piece.width)))
            self.vector(loop, first_of, piece.width, piece.active)

    def vectors_of_unknown_number(self, loop: Loop, unit: int) -> None:
        """Whole vectors, then the remainder as a masked vector or one by one.  Nothing is read if there are no iterations."""
        put, shift, body = self.emit.put, unit.bit_length() - 1, self.body_of(loop)
        extent = self.affine(loop.extent)
        masked = can_mask_any_number(body, self.emit.target) and not body.feeds
        if body.expensive and masked:                       # emitted once, as the body is long
            with self.turns(put(f"ashr i64 {put(f'add i64 {extent}, {unit - 1}')}, {shift}")) as turn:
                first = put(f"shl nuw nsw i64 {turn}, {shift}")
                self.vector(loop, first, unit, put(f"sub i64 {extent}, {first}"))
            return
        count = put(f"ashr i64 {extent}, {shift}")
        done = put(f"shl i64 {count}, {shift}")
        rest = put(f"sub i64 {extent}, {done}")
        with self.turns(count) as turn:
            self.vector(loop, put(f"shl nuw nsw i64 {turn}, {shift}"), unit)
        with self.turns(put(f"ashr i64 {put(f'add i64 {rest}, {unit - 1}')}, {shift}") if masked else rest) as turn:
            if masked:
                self.vector(loop, done, unit, rest)
            else:
                self.iteration(loop, put(f"add nsw i64 {turn}, {done}"))
