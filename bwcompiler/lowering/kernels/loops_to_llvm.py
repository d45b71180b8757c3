"""Loop IR -> LLVM text: one internal function per kernel.

Vector loops are written as vectors (`vector_loops.py` says of how many elements), all others as plain counted loops or, if they are
small, written out: LLVM neither makes vectors nor unrolls (`runtime/jit.py`).  A reduction in a vector loop has the tree of
`ir/semantics/reduction_tree.py`: the loop is cut into strips of LANES iterations, iteration j adds into lane j % LANES of an
accumulator, which is a vector, and the lanes are combined pairwise.  Scalars and elements: `kernel_values.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import NamedTuple

from bwcompiler.ir.contracts.program_interface import INTERRUPTED
from bwcompiler.ir.extent import Affine, Extent, Index, upper
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
from bwcompiler.ir.scalar import Word
from bwcompiler.ir.semantics.reduction_tree import BLOCK, LANES, flushed_sums, last_feeds
from bwcompiler.lowering.kernels.kernel_values import Cell
from bwcompiler.lowering.kernels.merge_loops import merge_loops
from bwcompiler.lowering.kernels.positions import Abreast
from bwcompiler.lowering.kernels.registers import Register
from bwcompiler.lowering.kernels.searches import Searches
from bwcompiler.lowering.kernels.vector_loops import (
    LONGEST,
    SMALL_BODY,
    WRITTEN_OUT,
    Body,
    Piece,
    halves,
    pieces,
    power_of_two,
    statement_size,
)
from bwcompiler.lowering.kernels.zeros import zeroed_by
from bwcompiler.lowering.llvm_scalars import ScalarEmitter, memory_type, register_type
from bwcompiler.lowering.polls import polled, statements_work

KEPT = 8                      # registers: so many may hold what a loop adds to
COPIES, LONG_BODY = 4, 64     # of the body of a loop that is no vector, at most so many, and so many operations


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

    merged: inputs that are the memory of an output; they have no parameter of their own.  name: other than the kernel's.
    may_poll: whether it may look for signals.
    """
    emitter = _KernelEmitter(kernel, emit, merged, name or kernel.name, may_poll)
    text = emitter.function(linkage)
    return KernelText(text, tuple([emitter.starts.get(buffer, 0) for buffer in kernel.buffers]), tuple(emitter.words), emitter.polls)


class _KernelEmitter(Searches):
    def __init__(self, kernel: Kernel, emit: ScalarEmitter, merged: Mapping[Buffer, Buffer], name: str,
                 may_poll: bool) -> None:
        self.name = name
        self.may_poll = may_poll
        self.outer_lines, emit.lines = emit.lines, []
        super().__init__(kernel, emit, merged)
        self.polls = False
        self.bodies: dict[Loop, Body] = {}
        self.kept_pieces: dict[Loop, list[Piece]] = {}               # the vectors of loops whose sums are kept in registers

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
        if loop.extent == 0 or not loop.body:              # all that was in it was not needed
            return
        zeroed = zeroed_by(loop) if self.abreast is None else None
        if zeroed is not None:
            self._set_to_zero(*zeroed, loop.extent)
            return
        body = self.body_of(loop)
        if any(isinstance(s, Accumulate) and s.target in self.lane_sums for s in loop.body):
            self.strip_loop(loop, body)
        elif (searched := self.searched(loop, body)) is not None:
            self.search_loop(loop, *searched)
        elif self.abreast is None and self.is_vector(loop, body):
            self.vector_loop(loop, body)
        else:
            self.plain_loop(loop, body)

    def _set_to_zero(self, buffer: Buffer, start: Extent, extent: Extent) -> None:
        """By the C library, which does not read the memory first, as vector stores would."""
        pointer, count = self.pointer(buffer, start), self.affine(extent)
        size = self.emit.put(f"mul nuw nsw i64 {count}, {buffer.dtype.itemsize}")
        self.emit.intrinsic("llvm.memset.p0.i64", "void", ("ptr", pointer.text), ("i8", "0"), ("i64", size), ("i1", "false"))
        self.forget(self.memory_of(buffer))

    def is_vector(self, loop: Loop, body: Body) -> bool:
        """Whether the iterations are written as vectors: those of a vector loop, or of a loop around very short ones."""
        if loop.kind == "vector":
            return body.worthwhile(self.emit.target) and body.independent
        return body.is_outer(self.emit.target, self.lane_sums) and body.independent

    def body_of(self, loop: Loop) -> Body:
        found = self.bodies.get(loop)
        if found is None:
            found = self.bodies[loop] = Body(loop, self.memory_of)
        return found

    def plain_loop(self, loop: Loop, body: Body) -> None:
        """One iteration after the other: several of them in one turn of the loop, if they are short."""
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
        with self.kept_in_registers(loop, body), self.each(loop, extent, 1) as index:
            self.iteration(loop, index)

    def size(self, loop: Loop) -> int:
        """How many operations one iteration is written as, where loops inside are written out."""
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

    @contextmanager
    def each(self, loop: Loop, turns: Extent, iterations: int) -> Iterator[str]:
        """Turns of a loop, of so many iterations each: the number of the first one."""
        self.forget(None)                                  # what the loop writes, its next iteration must read again
        with polled(self, turns, iterations * statements_work(loop.body)) as turn:
            yield turn if iterations == 1 else self.emit.put(f"mul nuw nsw i64 {turn}, {iterations}")
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

    def vector_loop(self, loop: Loop, body: Body) -> None:
        if not isinstance(loop.extent, int):
            self.vectors_of_unknown_number(loop, body.unit(self.emit.target))
            return
        for piece in self.kept_pieces.get(loop) or self.pieces_of(loop, body):
            self.piece(loop, piece)

    def pieces_of(self, loop: Loop, body: Body) -> list[Piece]:
        assert isinstance(loop.extent, int)
        target = self.emit.target
        return pieces(loop.extent, body.unit(target), body.pure, body.masks(target), body.dear)

    def search_loop(self, loop: Loop, target: Accumulator, width: int) -> None:
        """Whole vectors, whose best elements meet, then what is left one by one."""
        assert isinstance(loop.extent, int)
        turns, rest = divmod(loop.extent, width)
        with self.side_by_side_search(target, width), self.each(loop, turns, width) as first:
            self.vector(loop, first, width)
        if rest:
            with self.turns(str(rest), False) as number:
                self.iteration(loop, self.emit.put(f"add nuw nsw i64 {number}, {turns * width}"))

    def piece(self, loop: Loop, piece: Piece) -> None:
        body = self.body_of(loop)
        instructions = body.operations + len(body.accesses) + body.apart * piece.width
        if piece.count == 1 or (not body.dear and piece.count * instructions <= SMALL_BODY):
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
            self.abreast = Abreast(loop.index, first, width, active) if width > 1 else None
            yield
            self.abreast = None

    def vectors_of_unknown_number(self, loop: Loop, unit: int) -> None:
        """Whole vectors, then what is left: as part of a vector, or one by one.  Nothing is read where there are no iterations."""
        put, shift, body = self.emit.put, unit.bit_length() - 1, self.body_of(loop)
        extent = self.affine(loop.extent)
        masked = body.masks_any_number(self.emit.target) and not body.feeds
        if body.dear and masked:                            # once: the body is long
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

    # ----- sums in memory
    @contextmanager
    def kept_in_registers(self, loop: Loop, body: Body) -> Iterator[None]:
        """The elements that every iteration of a loop accumulates into are in registers meanwhile: those of a narrow panel of columns."""
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
        """What a vector loop inside accumulates into, loaded into registers, if there are enough of them."""
        sums = [statement for statement in inner.body if isinstance(statement, Accumulate) and self.is_kept(loop, body, inner, statement)]
        inner_body = self.body_of(inner)
        in_lanes = any(isinstance(statement, Accumulate) and statement.target in self.lane_sums for statement in inner.body)
        if not sums or in_lanes or extent > KEPT * LONGEST or not self.is_vector(inner, inner_body):
            return []
        vectors = [Piece(piece.first + k * piece.width, piece.width, 1, piece.active)
                   for piece in self.pieces_of(inner, inner_body) for k in range(piece.count) if not piece.clamped]
        native = inner_body.native(self.emit.target)
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
        """Whether all iterations of the outer loop accumulate into the same elements, and nothing else of it reads or writes these."""
        if isinstance(statement.target, Accumulator) or statement.target[1].terms:
            return False
        buffer, offset = statement.target
        indices = {index for index, _ in offset.affine.terms} if isinstance(offset.affine, Affine) else set()
        if loop.index in indices or inner.index not in indices or indices & (body.inner - {inner.index}):
            return False
        same = [access for access in body.accesses if self.memory_of(access.buffer) is self.memory_of(buffer)]
        return len(same) == 2 and all(access.buffer is buffer and access.offset is offset for access in same)

    # ----- reductions into lanes
    def strip_loop(self, loop: Loop, body: Body) -> None:
        """Whole strips of LANES iterations in blocks, then the tail; iteration j works on lane j % LANES."""
        width = min(LANES, body.unit(self.emit.target)) if body.dear else LANES
        if not (body.independent and body.worthwhile(self.emit.target)):
            width = 1
        if not isinstance(loop.extent, int):
            self.moving_strip_loop(loop, body, loop.extent, width)
            return
        strips, tail = divmod(loop.extent, LANES)
        sums = flushed_sums(loop)
        if strips >= BLOCK and sums:
            self.blocks(loop, strips, width, sums)
        elif strips == 1 and width == LANES:
            self.lane_vector(loop, "0", "0", width)
        elif strips:
            with self.each(loop, strips, LANES) as first:
                self.strip(loop, first, width)
        self.tail(loop, body, strips * LANES, tail, width)

    def moving_strip_loop(self, loop: Loop, body: Body, extent: Affine, width: int) -> None:
        """The same for an extent that moves with an outer loop."""
        put = self.emit.put
        total, done = self.affine(extent), "0"
        strips = put(f"sdiv i64 {total}, {LANES}")
        if upper(extent) >= LANES * BLOCK and flushed_sums(loop):
            blocks = put(f"sdiv i64 {strips}, {BLOCK}")
            with self.turns(blocks) as block:
                start = put(f"mul i64 {block}, {BLOCK}")
                with self.turns(str(BLOCK), False) as strip:
                    self.strip(loop, put(f"mul i64 {put(f'add i64 {start}, {strip}')}, {LANES}"), width)
                for accumulator in flushed_sums(loop):
                    self.flush(accumulator)
            done = put(f"mul i64 {blocks}, {BLOCK}")
        with self.turns(put(f"sub i64 {strips}, {done}")) as strip:
            self.strip(loop, put(f"mul i64 {put(f'add i64 {done}, {strip}')}, {LANES}"), width)
        first, tail = put(f"mul i64 {strips}, {LANES}"), put(f"srem i64 {total}, {LANES}")
        if width > 1 and body.masks_any_number(self.emit.target):
            with self.turns(put(f"sdiv i64 {put(f'add i64 {tail}, {width - 1}')}, {width}")) as number:
                lane = put(f"mul i64 {number}, {width}")
                self.lane_vector(loop, put(f"add i64 {first}, {lane}"), lane, width, put(f"sub i64 {tail}, {lane}"))
            return
        with self.turns(tail) as lane:
            self.lane_vector(loop, put(f"add i64 {first}, {lane}"), lane, 1)

    @contextmanager
    def turns(self, count: str, empty: bool = True) -> Iterator[str]:
        """A loop after which nothing that it may have written is known."""
        self.forget(None)
        with self.counted(count, empty) as index:
            yield index
        self.forget(None)

    def blocks(self, loop: Loop, strips: int, width: int, sums: list[Accumulator]) -> None:
        """Blocks of BLOCK strips, after each of which the lanes of sums are flushed; the last block may be shorter."""
        emit = self.emit
        with self.each(loop, -(-strips // BLOCK), BLOCK * LANES) as first:
            rest = emit.put(f"sub nsw i64 {strips * LANES}, {first}")
            count, whole = str(BLOCK), strips % BLOCK == 0
            if not whole:
                left = emit.put(f"lshr i64 {rest}, {LANES.bit_length() - 1}")
                count = emit.intrinsic("llvm.smin.i64", "i64", ("i64", left), ("i64", str(BLOCK)))
            with self.turns(count, False) as strip:
                at = emit.put(f"mul nuw nsw i64 {strip}, {LANES}")
                self.strip(loop, emit.put(f"add nuw nsw i64 {first}, {at}"), width)
            if whole:
                for accumulator in sums:
                    self.flush(accumulator)
                return
            full = emit.put(f"icmp eq i64 {count}, {BLOCK}")
            emit.count += 1
            number = emit.count
            emit.lines += [f"  br i1 {full}, label %flush{number}, label %on{number}", f"flush{number}:"]
            for accumulator in sums:
                self.flush(accumulator)
            emit.lines += [f"  br label %on{number}", f"on{number}:"]

    def strip(self, loop: Loop, first: str, width: int, count: int = LANES) -> None:
        """The first iterations of one strip."""
        if width == LANES:
            self.lane_vector(loop, first, "0", width)
            return
        with self.turns(str(count // width), False) as number:
            lane = self.emit.put(f"mul nuw nsw i64 {number}, {width}") if width > 1 else number
            self.lane_vector(loop, self.emit.put(f"add nuw nsw i64 {lane}, {first}"), lane, width)

    def lane_vector(self, loop: Loop, first: str, lane: str, width: int, active: int | str | None = None) -> None:
        saved, self.lane = self.lane, lane
        self.vector(loop, first, width, active)
        self.lane = saved

    def tail(self, loop: Loop, body: Body, first: int, count: int, width: int) -> None:
        """The last, incomplete strip."""
        if not count:
            return
        if body.dear and width > 1 and count > width:
            whole = count // width * width
            self.strip(loop, str(first), width, whole)
            self.rest(loop, body, first, whole, count - whole, width)
        elif width == 1:
            self.strip(loop, str(first), 1, count)
        else:
            self.rest(loop, body, first, 0, count, width)

    def rest(self, loop: Loop, body: Body, first: int, lane: int, count: int, width: int) -> None:
        whole = width if body.dear else power_of_two(count)
        if whole == count or (count > 1 and body.masks(self.emit.target)):
            self.lane_vector(loop, str(first + lane), str(lane), whole, None if whole == count else count)
            return
        for piece in halves(lane, count):
            self.lane_vector(loop, str(first + piece.first), str(piece.first), piece.width)
