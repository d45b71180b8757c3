"""Loop IR -> LLVM text: one internal function per kernel.

Loops are plain counted loops over scalar code; LLVM's vectoriser widens the innermost one.  A reduction in a vector loop
has the tree of `ir/reduction_tree.py`: the loop is cut into strips of LANES iterations, iteration j adds into lane j % LANES
of an accumulator array (which LLVM keeps in vector registers without any fast-math flag: the loop over a strip is vectorised,
and never unrolled into scalars), and the lanes are combined pairwise, as vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import NamedTuple

from bwcompiler.errors import CompileError
from bwcompiler.ir.extent import Affine, Extent, Index, add_extents, scale_extent, upper
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
    identity_of,
)
from bwcompiler.ir.reduction_tree import BLOCK, LANES, flushed_sums, in_lanes, last_feeds, total_dtype
from bwcompiler.ir.scalar import Scalar, Word
from bwcompiler.ir.types import BOOL, DType
from bwcompiler.lowering.kernel_pointers import first_elements, words_read
from bwcompiler.lowering.lanes import add_to_totals, combined, reset_lanes
from bwcompiler.lowering.library_calls import INTERRUPTED
from bwcompiler.lowering.llvm_scalars import ScalarEmitter, literal, memory_type, register_type
from bwcompiler.lowering.polls import polled, statements_work
from bwcompiler.lowering.vector_hints import NONE, loop_hint, strip_hint, tail_pieces

_NOTHING: frozenset[Buffer | Accumulator] = frozenset()


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
                   merged: Mapping[Buffer, Buffer] = MappingProxyType({}), name: str | None = None) -> KernelText:
    """The function; intrinsics and math functions it uses are noted in `emit`.

    merged: inputs that are the memory of an output; they have no parameter of their own.  name: other than the kernel's.
    """
    emitter = _KernelEmitter(kernel, emit, merged, name or kernel.name)
    text = emitter.function(linkage)
    return KernelText(text, tuple([emitter.starts.get(buffer, 0) for buffer in kernel.buffers]), tuple(emitter.words), emitter.polls)


class _KernelEmitter:
    def __init__(self, kernel: Kernel, emit: ScalarEmitter, merged: Mapping[Buffer, Buffer], name: str) -> None:
        self.kernel = kernel
        self.name = name
        self.merged = merged
        self.emit = emit
        self.entry: list[str] = []                               # allocas
        self.loops: list[str] = []                               # loop metadata names used
        self.scopes: list[dict[object, str]] = [{}]              # what is already in a register, innermost last
        self.lanes: dict[Accumulator, str] = {}
        self.cells: dict[Accumulator, str] = {}
        self.places: dict[Accumulator, str] = {}
        self.vector = in_lanes(kernel.body)                          # accumulators that have lanes
        self.flushed: set[Accumulator] = set()                       # sums over more than one block: they have block totals
        self.totals: dict[Accumulator, str] = {}
        self.lane: str | None = None
        self.polls = False
        self.memory: dict[int, frozenset[Buffer | Accumulator]] = {}
        self.perishable: list[tuple[dict[object, str], Scalar]] = []    # registers that a write may make stale, with their scope
        self.starts = first_elements(kernel)
        self.words = words_read(kernel, self.starts) if kernel.words else []

    def function(self, linkage: str) -> str:
        emit = self.emit
        outer, emit.lines = emit.lines, []
        parameters = []
        for number, buffer in enumerate(self.kernel.buffers):
            if buffer not in self.merged:
                parameters.append(f"ptr noalias {'readonly ' if buffer.role == INPUT else ''}%p{number}")
                self.scopes[0][buffer] = f"%p{number}"
        for number, word in enumerate(self.words):
            parameters.append(f"{'i64' if isinstance(word, Index) else register_type(word.dtype)} %w{number}")
            self.scopes[0][word] = f"%w{number}"
        self.scopes[0].update({source: self.scopes[0][target] for source, target in self.merged.items()})
        self._find_flushed(self.kernel.body)
        self.statements(self.kernel.body)
        body = "\n".join(emit.lines)
        emit.lines = outer
        type_, end = "void", "  ret void"
        if self.polls:
            type_, end = "i32", f"  ret i32 0\ninterrupted:\n  ret i32 {INTERRUPTED}"
        head = f"define {linkage} {type_} @{self.name}({', '.join(parameters)}) #1 {{\nentry:\n"
        return head + "\n".join([*self.entry, body]) + f"\n{end}\n}}\n"

    # ----- scopes
    @contextmanager
    def scope(self) -> Iterator[None]:
        self.scopes.append({})
        yield
        self.scopes.pop()

    def known(self, key: object) -> str | None:
        for scope in reversed(self.scopes):
            found = scope.get(key)
            if found is not None:
                return found
        return None

    def remember(self, key: object, register: str) -> str:
        self.scopes[-1][key] = register
        return register

    # ----- statements
    def statements(self, body: list[Statement]) -> None:
        last = last_feeds(body, self.vector)
        for number, statement in enumerate(body):
            if isinstance(statement, Let):
                self.remember(statement, self.scalar(statement.value))
            elif isinstance(statement, Store):
                self.store(statement.buffer, statement.offset, self.scalar(statement.value))
                self.forget(statement.buffer)
            elif isinstance(statement, Reduce):
                self.open(statement.accumulator)
                self.forget(statement.accumulator)
            elif isinstance(statement, Accumulate):
                self.accumulate(statement)
                self.forget(statement.target if isinstance(statement.target, Accumulator) else statement.target[0])
            elif isinstance(statement, Fill):
                self.fill(statement)
                self.forget(statement.buffer)
            else:
                self.forget(None)                          # what the loop writes, its next iteration must read again
                self.loop(statement)
                for accumulator in last.get(number, ()):
                    self.combine_lanes(accumulator)

    def loop(self, loop: Loop) -> None:
        if not any(isinstance(s, Accumulate) and s.target in self.vector for s in loop.body):
            with polled(self, loop.extent, statements_work(loop.body), loop_hint(loop, self.emit.target)) as index:
                self.remember(loop.index, index)
                self.statements(loop.body)
            return
        self.strip_loop(loop)

    def strip_loop(self, loop: Loop) -> None:
        """Whole strips of LANES iterations in blocks, then the tail; iteration j works on lane j % LANES."""
        extent = loop.extent
        if not isinstance(extent, int):
            self.moving_strip_loop(loop, extent)
            return
        strips, tail = divmod(extent, LANES)
        sums = flushed_sums(loop)
        blocks, rest = divmod(strips, BLOCK) if sums else (0, strips)
        work = LANES * statements_work(loop.body)
        if blocks:
            with polled(self, blocks, BLOCK * work) as block:
                first = self.emit.put(f"mul i64 {block}, {BLOCK}")
                self.strips(loop, first, BLOCK, work)
                for accumulator in sums:
                    self.flush(accumulator)
        if rest:
            self.strips(loop, str(blocks * BLOCK), rest, work)
        for piece in tail_pieces(loop, self.emit.target, tail) if tail else ():
            with self.counted(str(piece.length), piece.hint) as number:
                lane = self.emit.put(f"add i64 {number}, {piece.first}")
                self.lane_body(loop, self.emit.put(f"add i64 {lane}, {strips * LANES}"), lane)

    def moving_strip_loop(self, loop: Loop, extent: Affine) -> None:
        """The same for an extent that moves with an outer loop."""
        put = self.emit.put
        total = self.affine(extent)
        strips = put(f"sdiv i64 {total}, {LANES}")
        tail = put(f"srem i64 {total}, {LANES}")
        done = "0"
        if upper(extent) >= LANES * BLOCK:
            blocks = put(f"sdiv i64 {strips}, {BLOCK}")
            with self.counted(blocks) as block:
                first = put(f"mul i64 {block}, {BLOCK}")
                with self.counted(str(BLOCK)) as strip:
                    self.strip(loop, put(f"add i64 {first}, {strip}"))
                for accumulator in flushed_sums(loop):
                    self.flush(accumulator)
            done = put(f"mul i64 {blocks}, {BLOCK}")
        with self.counted(put(f"sub i64 {strips}, {done}")) as strip:
            self.strip(loop, put(f"add i64 {done}, {strip}"))
        with self.counted(tail) as lane:
            self.lane_body(loop, put(f"add i64 {lane}, {put(f'mul i64 {strips}, {LANES}')}"), lane)

    def strip(self, loop: Loop, number: str) -> None:
        base = self.emit.put(f"mul i64 {number}, {LANES}")
        with self.counted(str(LANES), strip_hint(loop, self.emit.target)) as lane:
            self.lane_body(loop, self.emit.put(f"add i64 {base}, {lane}"), lane)

    def strips(self, loop: Loop, first: str, count: int, work: int) -> None:
        with polled(self, count, work) as strip:
            self.strip(loop, self.emit.put(f"add i64 {strip}, {first}"))

    def lane_body(self, loop: Loop, index: str, lane: str) -> None:
        saved, self.lane = self.lane, lane
        self.remember(loop.index, index)
        self.statements(loop.body)
        self.lane = saved

    @contextmanager
    def counted(self, extent: str, hint: str = NONE) -> Iterator[str]:
        """for index in 0..extent; `hint` names metadata of `vector_hints`."""
        emit = self.emit
        number = emit.count = emit.count + 1
        index, after = f"%i{number}", f"%n{number}"
        emit.lines += [f"  br label %pre{number}", f"pre{number}:", f"  br label %head{number}", f"head{number}:",
                       f"  {index} = phi i64 [ 0, %pre{number} ], [ {after}, %latch{number} ]",
                       f"  %c{number} = icmp slt i64 {index}, {extent}",
                       f"  br i1 %c{number}, label %body{number}, label %exit{number}", f"body{number}:"]
        with self.scope():
            yield index
        emit.lines += [f"  br label %latch{number}", f"latch{number}:", f"  {after} = add nuw nsw i64 {index}, 1",
                       f"  br label %head{number}{f', !llvm.loop {hint}' if hint else ''}", f"exit{number}:"]

    def store(self, buffer: Buffer, offset: Offset, register: str) -> None:
        if buffer.dtype is BOOL:
            register = self.emit.put(f"zext i1 {register} to i8")
        pointer = self.address(buffer, offset)
        self.emit.lines.append(f"  store {memory_type(buffer.dtype)} {register}, ptr {pointer}, align {buffer.dtype.itemsize}")

    def fill(self, statement: Fill) -> None:
        buffer = statement.buffer
        value = self.scalar(statement.value)
        with polled(self, buffer.size, 1) as index:
            if buffer.dtype is BOOL:
                value = self.emit.put(f"zext i1 {value} to i8")
            pointer = self.element(buffer, index)
            self.emit.lines.append(f"  store {memory_type(buffer.dtype)} {value}, ptr {pointer}, align {buffer.dtype.itemsize}")

    # ----- reductions
    def _find_flushed(self, body: list[Statement]) -> None:
        for statement in body:
            if isinstance(statement, Loop):
                self._find_flushed(statement.body)
                if statement.kind == "vector" and upper(statement.extent) >= LANES * BLOCK:
                    self.flushed.update(flushed_sums(statement))

    def open(self, accumulator: Accumulator) -> None:
        """Reset an accumulator (its memory is allocated once, in the entry block)."""
        type_ = memory_type(accumulator.dtype)
        start = self._memory_literal(accumulator)
        if accumulator not in self.cells:
            self.cells[accumulator] = self._alloca(type_, 1)
            if accumulator in self.vector:
                self.lanes[accumulator] = self._alloca(type_, LANES)
            if accumulator in self.flushed:
                self.totals[accumulator] = self._alloca(memory_type(total_dtype(accumulator.dtype)), LANES)
            if accumulator.combine.startswith("arg"):
                self.places[accumulator] = self._alloca("i64", 1)
        if accumulator in self.lanes:
            reset_lanes(self.emit, self.lanes[accumulator], accumulator.dtype, start)
            if accumulator in self.totals:
                wide = total_dtype(accumulator.dtype)
                reset_lanes(self.emit, self.totals[accumulator], wide, literal(0.0, wide))
        self.emit.lines.append(f"  store {type_} {start}, ptr {self.cells[accumulator]}")
        if accumulator in self.places:
            self.emit.lines.append(f"  store i64 -1, ptr {self.places[accumulator]}")

    def _memory_literal(self, accumulator: Accumulator) -> str:
        value = identity_of(accumulator.combine, accumulator.dtype)
        return str(int(value)) if accumulator.dtype is BOOL else literal(value, accumulator.dtype)

    def _alloca(self, type_: str, count: int) -> str:
        self.emit.count += 1
        name = f"%a{self.emit.count}"
        self.entry.append(f"  {name} = alloca [{count} x {type_}], align 64")
        return name

    def accumulate(self, statement: Accumulate) -> None:
        value = self.scalar(statement.value)
        target = statement.target
        if not isinstance(target, Accumulator):
            buffer, offset = target
            self._combine_at(self.address(buffer, offset), statement.combine, buffer.dtype, value)
        elif statement.position is not None:
            self._search(target, value, self.scalar(statement.position))
        elif self.lane is not None and target in self.lanes:
            type_ = memory_type(target.dtype)
            pointer = self.emit.put(f"getelementptr {type_}, ptr {self.lanes[target]}, i64 {self.lane}")
            self._combine_at(pointer, statement.combine, target.dtype, value)
        else:
            self._combine_at(self.cells[target], statement.combine, target.dtype, value)

    def _combine_at(self, pointer: str, combine: str, dtype: DType, value: str) -> None:
        type_ = memory_type(dtype)
        before = self._load(pointer, dtype)
        after = self.emit.operation(combine, dtype, [before, value])
        if dtype is BOOL:
            after = self.emit.put(f"zext i1 {after} to i8")
        self.emit.lines.append(f"  store {type_} {after}, ptr {pointer}, align {dtype.itemsize}")

    def _load(self, pointer: str, dtype: DType) -> str:
        register = self.emit.put(f"load {memory_type(dtype)}, ptr {pointer}, align {dtype.itemsize}")
        return self.emit.put(f"icmp ne i8 {register}, 0") if dtype is BOOL else register

    def _search(self, target: Accumulator, value: str, position: str) -> None:
        """argmax/argmin: keep the first best; a nan is better than any number, and the first nan stays."""
        emit, dtype = self.emit, target.dtype
        best = self._load(self.cells[target], dtype)
        place = emit.put(f"load i64, ptr {self.places[target]}")
        empty = emit.put(f"icmp slt i64 {place}, 0")
        better = emit.operation("greater" if target.combine == "argmax" else "less", dtype, [value, best])
        if dtype.is_float:
            old_nan = emit.operation("isnan", dtype, [best])
            new_nan = emit.operation("isnan", dtype, [value])
            better = emit.put(f"or i1 {better}, {new_nan}")
            better = emit.put(f"select i1 {old_nan}, i1 false, i1 {better}")
        better = emit.put(f"or i1 {better}, {empty}")
        kept = emit.select(dtype, better, value, best)
        if dtype is BOOL:
            kept = emit.put(f"zext i1 {kept} to i8")
        moved = emit.put(f"select i1 {better}, i64 {position}, i64 {place}")
        emit.lines.append(f"  store {memory_type(dtype)} {kept}, ptr {self.cells[target]}")
        emit.lines.append(f"  store i64 {moved}, ptr {self.places[target]}")

    def flush(self, accumulator: Accumulator) -> None:
        """Add the lanes to the block totals and reset them."""
        lanes = self.lanes[accumulator]
        add_to_totals(self.emit, lanes, accumulator.dtype, self.totals[accumulator], total_dtype(accumulator.dtype))
        reset_lanes(self.emit, lanes, accumulator.dtype, self._memory_literal(accumulator))

    def combine_lanes(self, accumulator: Accumulator) -> None:
        """Pairwise over the lanes (or the block totals), into the accumulator's cell."""
        lanes, dtype = self.lanes[accumulator], accumulator.dtype
        if accumulator in self.totals:
            self.flush(accumulator)
            lanes, dtype = self.totals[accumulator], total_dtype(accumulator.dtype)
        value = combined(self.emit, lanes, dtype, accumulator.combine)
        if dtype is not accumulator.dtype:
            value = self.emit.cast(value, dtype, accumulator.dtype)
        self.emit.lines.append(f"  store {memory_type(accumulator.dtype)} {value}, ptr {self.cells[accumulator]}")

    # ----- scalars that read what the kernel writes
    def read_memory(self, scalar: Scalar) -> frozenset[Buffer | Accumulator]:
        """The buffers and accumulators that a scalar reads and that statements may change."""
        if scalar.op in ("const", "word", "local", "index", "in_range"):
            return _NOTHING
        found = self.memory.get(id(scalar))
        if found is None:
            found = _NOTHING
            for arg in scalar.args:
                found |= self.read_memory(arg)
            if scalar.op in ("total", "found"):
                found |= {scalar.data}
            elif scalar.op == "load" and scalar.data[0].role != INPUT:
                found |= {scalar.data[0]}
            self.memory[id(scalar)] = found
        return found

    def forget(self, written: Buffer | Accumulator | None) -> None:
        """What reads this memory (any memory, for None) has to be read again."""
        if not self.perishable:
            return
        kept = []
        for scope, scalar in self.perishable:
            if written is None or written in self.read_memory(scalar):
                scope.pop(id(scalar), None)
            else:
                kept.append((scope, scalar))
        self.perishable = kept

    # ----- scalars
    def scalar(self, scalar: Scalar) -> str:
        """The register (or literal) that holds a scalar."""
        op = scalar.op
        if op == "const":
            return literal(scalar.data, scalar.dtype)
        if op in ("local", "word"):
            found = self.known(scalar.data)
            if found is None:
                raise CompileError(f"{scalar.data.name} is read outside of its loop")
            return found
        found = self.known(id(scalar))
        if found is not None:
            return found
        register = self.remember(id(scalar), self._scalar(scalar))
        if self.read_memory(scalar):
            self.perishable.append((self.scopes[-1], scalar))
        return register

    def _scalar(self, scalar: Scalar) -> str:
        op, emit = scalar.op, self.emit
        if op == "load":
            return self._element_load(*scalar.data)
        if op == "total":
            return self._load(self.cells[scalar.data], scalar.dtype)
        if op == "found":
            return emit.put(f"load i64, ptr {self.places[scalar.data]}")
        if op == "index":
            return self.affine(scalar.data)
        if op == "in_range":
            return self._in_range(*scalar.data)
        if op == "select":
            return self._select(scalar)
        if op == "cast":
            source = scalar.args[0]
            return emit.cast(self.scalar(source), source.dtype, scalar.dtype)
        args = [self.scalar(arg) for arg in scalar.args]
        return emit.operation(op, scalar.args[0].dtype, args)

    def _in_range(self, position: Extent, low: Extent, high: Extent) -> str:
        at = self.affine(position)
        above = self.emit.put(f"icmp sge i64 {at}, {self.affine(low)}")
        below = self.emit.put(f"icmp slt i64 {at}, {self.affine(high)}")
        return self.emit.put(f"and i1 {above}, {below}")

    def _select(self, scalar: Scalar) -> str:
        condition, x, y = scalar.args
        if scalar.data != "lazy" or not (_has_loads(x) or _has_loads(y)):
            return self.emit.select(scalar.dtype, self.scalar(condition), self.scalar(x), self.scalar(y))
        # A guard of loads: elements outside of the range must not be read at all.
        emit = self.emit
        test = self.scalar(condition)
        emit.count += 1
        number = emit.count
        emit.lines += [f"  br i1 {test}, label %then{number}, label %else{number}", f"then{number}:"]
        with self.scope():
            first = self.scalar(x)
        emit.lines += [f"  br label %left{number}", f"left{number}:", f"  br label %join{number}", f"else{number}:"]
        with self.scope():
            second = self.scalar(y)
        emit.lines += [f"  br label %right{number}", f"right{number}:", f"  br label %join{number}", f"join{number}:"]
        return emit.put(f"phi {register_type(scalar.dtype)} [ {first}, %left{number} ], [ {second}, %right{number} ]")

    def _element_load(self, buffer: Buffer, offset: Offset) -> str:
        key = (buffer, offset.affine) if buffer.role == INPUT and not offset.terms else None
        if key is not None:
            found = self.known(key)
            if found is not None:
                return found
        register = self._load(self.address(buffer, offset), buffer.dtype)
        return register if key is None else self.remember(key, register)

    def address(self, buffer: Buffer, offset: Offset) -> str:
        start = self.starts.get(buffer)
        at = self.affine(offset.affine if start is None else add_extents(offset.affine, scale_extent(start, -1)))
        for term, stride in offset.terms:
            step = self.scalar(term)
            if stride != 1:
                step = self.emit.put(f"mul i64 {step}, {stride}")
            at = step if at == "0" else self.emit.put(f"add i64 {at}, {step}")
        return self.element(buffer, at)

    def element(self, buffer: Buffer, at: str) -> str:
        base = self.known(buffer)
        if at == "0":
            return str(base)
        return self.emit.put(f"getelementptr inbounds {memory_type(buffer.dtype)}, ptr {base}, i64 {at}")

    def affine(self, extent: Extent) -> str:
        """The register of an affine index expression."""
        if isinstance(extent, int):
            return str(extent)
        found = self.known(extent)
        if found is not None:
            return found
        return self.remember(extent, self._affine(extent))

    def _affine(self, extent: Affine) -> str:
        total = str(extent.constant) if extent.constant else None
        for index, coefficient in extent.terms:
            step = self._index(index)
            if coefficient != 1:
                step = self.emit.put(f"mul nsw i64 {step}, {coefficient}")
            total = step if total is None else self.emit.put(f"add nsw i64 {total}, {step}")
        return total or "0"

    def _index(self, index: Index) -> str:
        found = self.known(index)
        if found is None:
            raise CompileError(f"loop index {index} is read outside of its loop")
        return found


def _has_loads(scalar: Scalar) -> bool:
    return scalar.op == "load" or any(_has_loads(arg) for arg in scalar.args)
