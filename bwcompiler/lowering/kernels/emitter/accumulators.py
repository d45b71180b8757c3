"""Accumulators of a kernel: numbers, vectors with a number per iteration, or the lanes of `ir/semantics/reduction_tree.py`.

They are allocas, which LLVM promotes to registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from bwcompiler.ir.extent import Index, upper
from bwcompiler.ir.loop import Accumulate, Accumulator, Buffer, Kernel, Loop, Statement, identity_of
from bwcompiler.ir.semantics.reduction_tree import BLOCK, LANES, flushed_sums, in_lanes, total_dtype
from bwcompiler.ir.types import BOOL, I64, DType
from bwcompiler.lowering.kernels.emitter.kernel_values import Cell, KernelValues
from bwcompiler.lowering.kernels.emitter.lanes import add_to_totals, combined, load_lanes, reset_lanes, store_lanes
from bwcompiler.lowering.kernels.emitter.registers import Register
from bwcompiler.lowering.llvm_scalars import ScalarEmitter, literal, memory_type, register_type, vector_type


class Accumulators(KernelValues):
    """lane: the lane of the (first) iteration, in loops whose iterations have lanes.

    kept: array elements that an outer loop keeps in registers, by the number of the first; kept_along: the index of their vector loop.
    """

    def __init__(self, kernel: Kernel, emit: ScalarEmitter, merged: Mapping[Buffer, Buffer]) -> None:
        super().__init__(kernel, emit, merged)
        self.entry: list[str] = []                                   # allocas
        self.lane_sums = in_lanes(kernel.body)                       # accumulators that have lanes
        self.lane_cells: dict[Accumulator, str] = {}
        self.flushed: set[Accumulator] = set()                       # sums over more than one block: they have block totals
        self.totals: dict[Accumulator, str] = {}
        self.lane: str | None = None
        self.opened: dict[Accumulator, int] = {}                     # the level of its `Reduce`
        self.kept: dict[tuple[Accumulate, str], Cell] = {}
        self.kept_along: dict[Accumulate, Index] = {}
        self.feeds = _feeds(kernel.body)                             # the number of statements that add to each accumulator
        self._find_flushed(kernel.body)

    def _find_flushed(self, body: list[Statement]) -> None:
        for statement in body:
            if isinstance(statement, Loop):
                self._find_flushed(statement.body)
                if statement.kind == "vector" and upper(statement.extent) >= LANES * BLOCK:
                    self.flushed.update(flushed_sums(statement))

    def open(self, accumulator: Accumulator) -> None:
        """Reset an accumulator (its memory is allocated once, in the entry block)."""
        emit, dtype, width = self.emit, accumulator.dtype, self.width
        self.opened[accumulator] = self.top
        type_, start = vector_type(memory_type(dtype), width), self._memory_literal(accumulator)
        if accumulator not in self.cells or self.cells[accumulator].width != width:
            self.cells[accumulator] = Cell(self.alloca(memory_type(dtype), width), width)
            if accumulator in self.lane_sums:
                self.lane_cells[accumulator] = self.alloca(memory_type(dtype), LANES)
            if accumulator in self.flushed:
                self.totals[accumulator] = self.alloca(memory_type(total_dtype(dtype)), LANES)
            if accumulator.combine.startswith("arg"):
                self.places[accumulator] = Cell(self.alloca("i64", width), width)
        if accumulator in self.lane_cells:
            reset_lanes(emit, self.lane_cells[accumulator], dtype, start)
            if accumulator in self.totals:
                wide = total_dtype(dtype)
                reset_lanes(emit, self.totals[accumulator], wide, literal(0.0, wide))
        splat = start if width == 1 else f"splat ({memory_type(dtype)} {start})"
        emit.lines.append(f"  store {type_} {splat}, ptr {self.cells[accumulator].pointer}, align {dtype.itemsize}")
        if accumulator in self.places:
            nowhere = "-1" if width == 1 else "splat (i64 -1)"
            emit.lines.append(f"  store {vector_type('i64', width)} {nowhere}, ptr {self.places[accumulator].pointer}, align 8")

    def _memory_literal(self, accumulator: Accumulator) -> str:
        value = accumulator.start
        return str(int(value)) if accumulator.dtype is BOOL else literal(value, accumulator.dtype)

    def alloca(self, type_: str, count: int) -> str:
        self.emit.count += 1
        name = f"%a{self.emit.count}"
        self.entry.append(f"  {name} = alloca {vector_type(type_, count)}, align 64")
        return name

    def accumulate(self, statement: Accumulate) -> None:
        value = self.scalar(statement.value)
        target, combine = statement.target, statement.combine
        if not isinstance(target, Accumulator):
            buffer, offset = target
            index = self.kept_along.get(statement)
            if index is not None:
                kept = self.kept[statement, self.index(index).text]
                self.store_cell(kept, buffer.dtype, self.combine(combine, buffer.dtype, self.load_cell(kept, buffer.dtype), value))
                return
            place = self.locate(buffer, offset)
            before = self.as_register(self.loaded(buffer, place), buffer.dtype)
            apply = self.combine if self.abreast is None or place.step or place.offsets is not None else self._in_order
            self.write_at(buffer.dtype, place, apply(combine, buffer.dtype, before, value))
        elif statement.position is not None:
            self._search(target, value, self.scalar(statement.position))
        elif self.lane is not None and target in self.lane_cells:
            self._into_lane(target, combine, value)
        else:
            cell, dtype = self.cells[target], target.dtype
            combined_with = self.combine if cell.width == self.width else self._in_order
            self.store_cell(cell, dtype, combined_with(combine, dtype, self.load_cell(cell, dtype), value))

    def _search(self, target: Accumulator, value: Register, position: Register) -> None:
        """Keep the first best value, and its position."""
        dtype, cell, where = target.dtype, self.cells[target], self.places[target]
        best = self.load_cell(cell, dtype)
        place = self.load_cell(where, I64)
        empty = self.operate("less", I64, place, Register("0"))
        better = self.operate("greater" if target.combine == "argmax" else "less", dtype, value, best)
        if dtype.is_float:
            better = self.operate("bitwise_or", BOOL, better, self.operate("isnan", dtype, value))
            better = self.both(better, self.operate("equal", dtype, best, best))
        better = self.operate("bitwise_or", BOOL, better, empty)
        self.store_cell(cell, dtype, self.chosen(dtype, better, value, best))
        self.store_cell(where, I64, self.chosen(I64, better, position, place))

    def store_cell(self, cell: Cell, dtype: DType, value: Register) -> None:
        text = self.wide(value, dtype, cell.width)
        with self.emit.wide(cell.width):
            text = self.emit.to_memory(text, dtype)
        self.emit.lines.append(f"  store {vector_type(memory_type(dtype), cell.width)} {text}, ptr {cell.pointer}, align {dtype.itemsize}")

    def _into_lane(self, target: Accumulator, combine: str, value: Register) -> None:
        """Combine iteration j of the vector into lane j, counted from the first lane."""
        emit, dtype, type_ = self.emit, target.dtype, memory_type(target.dtype)
        pointer = self.lane_cells[target]
        if self.lane != "0":
            pointer = emit.put(f"getelementptr {type_}, ptr {pointer}, i64 {self.lane}")
        cell = Cell(pointer, self.width)
        if dtype is BOOL:
            self._into_bytes(cell, combine, value)
            return
        before = self.load_cell(cell, dtype)
        after = self.combine(combine, dtype, before, value)
        mask = self.active_mask()
        if mask is not None:
            after = self.chosen(dtype, Register(mask, self.width), after, before)
        self.store_cell(cell, dtype, after)

    @contextmanager
    def lanes_in_memory(self, loop: Loop) -> Iterator[None]:
        """A context in which a number may choose the lane that an iteration of the loop works on.

        It works on copies in memory; the lanes themselves stay in registers.
        """
        found = {target: self.lane_cells[target] for target in _targets(loop) if target in self.lane_cells}
        copies = {target: self.alloca(memory_type(target.dtype), LANES) for target in found}
        for target, copy in copies.items():
            store_lanes(self.emit, copy, target.dtype, load_lanes(self.emit, found[target], target.dtype))
        self.lane_cells.update(copies)
        yield
        for target, copy in copies.items():
            store_lanes(self.emit, found[target], target.dtype, load_lanes(self.emit, copy, target.dtype))
        self.lane_cells.update(found)

    def _into_bytes(self, cell: Cell, combine: str, value: Register) -> None:
        """The same for booleans, which are bytes in memory."""
        emit, type_ = self.emit, vector_type("i8", cell.width)
        with emit.wide(cell.width):
            before = emit.put(f"load {type_}, ptr {cell.pointer}, align 1")
            after = emit.combine(combine, BOOL, before, emit.to_memory(self.wide(value, BOOL, cell.width), BOOL))
            mask = self.active_mask()
            if mask is not None:
                after = emit.put(f"select {emit.flags} {mask}, {type_} {after}, {type_} {before}")
        emit.lines.append(f"  store {type_} {after}, ptr {cell.pointer}, align 1")

    def _in_order(self, combine: str, dtype: DType, before: Register, values: Register) -> Register:
        """Combine the elements of a vector into a number: in order, unless the order does not affect the result."""
        assert self.abreast is not None
        text = self.wide(values, dtype, self.width)
        if not (dtype.is_float and combine in ("add", "multiply")):
            return self._pairwise(combine, dtype, before, Register(text, self.width, self.top, self.top))
        assert not isinstance(self.abreast.active, str)
        for k in range(self.abreast.active or self.width):
            one = self.put(f"extractelement {vector_type(register_type(dtype), self.width)} {text}, i64 {k}", self.top)
            before = self.combine(combine, dtype, before, one)
        return before

    def _pairwise(self, combine: str, dtype: DType, before: Register, values: Register) -> Register:
        mask, emit = self.active_mask(), self.emit
        if mask is not None:
            neutral = Register(literal(identity_of(combine, dtype), dtype))
            values = self.chosen(dtype, Register(mask, self.width), values, neutral)
        with emit.wide(self.width):
            text = emit.to_memory(values.text, dtype)
        one = self.as_register(Register(combined(emit, text, dtype, combine, self.width), 1, self.top, self.top), dtype)
        return self.combine(combine, dtype, before, one)

    def flush(self, accumulator: Accumulator) -> None:
        """Add the lanes to the block totals and reset them."""
        lanes = self.lane_cells[accumulator]
        add_to_totals(self.emit, lanes, accumulator.dtype, self.totals[accumulator], total_dtype(accumulator.dtype))
        reset_lanes(self.emit, lanes, accumulator.dtype, self._memory_literal(accumulator))

    def combine_lanes(self, accumulator: Accumulator) -> None:
        """Pairwise over the lanes (or the block totals), into the accumulator's cell."""
        lanes, dtype = self.lane_cells[accumulator], accumulator.dtype
        if accumulator in self.totals:
            self.flush(accumulator)
            lanes, dtype = self.totals[accumulator], total_dtype(accumulator.dtype)
        value = combined(self.emit, load_lanes(self.emit, lanes, dtype), dtype, accumulator.combine)
        if dtype is not accumulator.dtype:
            value = self.emit.cast(value, dtype, accumulator.dtype)
        type_ = memory_type(accumulator.dtype)
        self.emit.lines.append(f"  store {type_} {value}, ptr {self.cells[accumulator].pointer}, align {accumulator.dtype.itemsize}")


def _targets(loop: Loop) -> list[Accumulator]:
    """The accumulators that iterations of a loop add to, themselves."""
    found = [statement.target for statement in loop.body if isinstance(statement, Accumulate) and isinstance(statement.target, Accumulator)]
    return list(dict.fromkeys(found))


def _feeds(body: list[Statement]) -> dict[Accumulator, int]:
    """The number of statements that add to each accumulator."""
    found: dict[Accumulator, int] = {}
    for statement in body:
        if isinstance(statement, Accumulate) and isinstance(statement.target, Accumulator):
            found[statement.target] = found.get(statement.target, 0) + 1
        elif isinstance(statement, Loop):
            for accumulator, count in _feeds(statement.body).items():
                found[accumulator] = found.get(accumulator, 0) + count
    return found
