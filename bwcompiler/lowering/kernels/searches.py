"""argmax and argmin: sequential, or in vector lanes that are combined at the end.

The result is the first best element; a nan is better than any number, and the first nan wins.  So elements may be visited in any order, if
of two equal ones that with the lower position is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from bwcompiler.ir.loop import Accumulate, Accumulator, Buffer, Kernel, Let, Loop, Statement
from bwcompiler.ir.types import BOOL, I64, DType
from bwcompiler.lowering.kernels.accumulators import Accumulators
from bwcompiler.lowering.kernels.kernel_values import Cell
from bwcompiler.lowering.kernels.loop_bodies import Body
from bwcompiler.lowering.kernels.registers import Register
from bwcompiler.lowering.kernels.vector_loops import power_of_two, worthwhile
from bwcompiler.lowering.llvm_scalars import ScalarEmitter, memory_type, register_type, vector_type

SEARCHED_VECTORS = 4          # most registers of positions at a time


class Searches(Accumulators):
    def __init__(self, kernel: Kernel, emit: ScalarEmitter, merged: Mapping[Buffer, Buffer]) -> None:
        super().__init__(kernel, emit, merged)
        self.feeds = _feeds(kernel.body)

    def search(self, target: Accumulator, value: Register, position: Register) -> None:
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

    def searched(self, loop: Loop, body: Body) -> tuple[Accumulator, int] | None:
        """The accumulator and vector width of a loop that only searches, if no other loop feeds the same search."""
        if self.abreast is not None or len(body.feeds) != 1 or not isinstance(loop.extent, int):
            return None
        target, last = body.feeds[0], loop.body[-1]
        if not isinstance(last, Accumulate) or last.position is None or not all(isinstance(statement, Let) for statement in loop.body[:-1]):
            return None
        ordered = last.position.op == "index" and body.step_of(last.position.data) > 0
        once = self.feeds[target] == 1 and self.opened[target] == self.top
        native = self.emit.target.lanes(I64.bits)
        width = min(SEARCHED_VECTORS * native, power_of_two(loop.extent // 2 + 1) // 2)
        return (target, width) if ordered and once and width >= native and worthwhile(body, self.emit.target) else None

    @contextmanager
    def side_by_side_search(self, target: Accumulator, width: int) -> Iterator[None]:
        """A context in which each vector lane searches separately; the lanes are combined at its end."""
        dtype = target.dtype
        saved = self.cells[target], self.places[target]
        self.cells[target] = Cell(self.alloca(memory_type(dtype), width), width)
        self.places[target] = Cell(self.alloca("i64", width), width)
        self.store_cell(self.cells[target], dtype, self.load_cell(saved[0], dtype))
        self.store_cell(self.places[target], I64, self.load_cell(saved[1], I64))
        yield
        values, positions = self.load_cell(self.cells[target], dtype), self.load_cell(self.places[target], I64)
        while width > 1:
            width //= 2
            values, positions = self._better_half(target, values, positions, width)
        self.cells[target], self.places[target] = saved
        self.store_cell(saved[0], dtype, values)
        self.store_cell(saved[1], I64, positions)

    def _better_half(self, target: Accumulator, values: Register, positions: Register, half: int) -> tuple[Register, Register]:
        dtype = target.dtype
        (low, high), (first, second) = self._halves(values, dtype, half), self._halves(positions, I64, half)
        earlier = self.operate("less", I64, second, first)
        better = self.operate("greater" if target.combine == "argmax" else "less", dtype, high, low)
        better = self.operate("bitwise_or", BOOL, better, self.both(self.operate("equal", dtype, high, low), earlier))
        if dtype.is_float:
            unordered = self.operate("isnan", dtype, high)
            better = self.chosen(BOOL, self.operate("isnan", dtype, low), self.both(unordered, earlier),
                                 self.operate("bitwise_or", BOOL, better, unordered))
        return self.chosen(dtype, better, high, low), self.chosen(I64, better, second, first)

    def _halves(self, register: Register, dtype: DType, half: int) -> list[Register]:
        vector = vector_type(register_type(dtype), 2 * half)
        if half == 1:
            return [self.put(f"extractelement {vector} {register.text}, i64 {k}", self.top) for k in (0, 1)]
        return [self.picked(register, vector, range(first, first + half)) for first in (0, half)]


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
