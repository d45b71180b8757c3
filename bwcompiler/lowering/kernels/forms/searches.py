"""argmax and argmin: sequential, or in vector lanes that are combined at the end.

The result is the first best element; a nan is better than any number, and the first nan wins.  So elements may be visited in any order, if
of two equal ones that with the lower position is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bwcompiler.ir.loop import Accumulate, Accumulator, Let, Loop
from bwcompiler.ir.types import BOOL, I64, DType
from bwcompiler.lowering.kernels.analysis.loop_bodies import Body
from bwcompiler.lowering.kernels.analysis.vector_loops import power_of_two, worthwhile
from bwcompiler.lowering.kernels.emitter.iterations import Iterations
from bwcompiler.lowering.kernels.emitter.kernel_values import Cell
from bwcompiler.lowering.kernels.emitter.registers import Register
from bwcompiler.lowering.llvm_scalars import memory_type, register_type, vector_type

SEARCHED_VECTORS = 4          # most registers of positions at a time


def search_of(emitter: Iterations, loop: Loop, body: Body) -> tuple[Accumulator, int] | None:
    """The accumulator and vector width of a loop that only searches, if no other loop feeds the same search."""
    if emitter.abreast is not None or len(body.feeds) != 1 or not isinstance(loop.extent, int):
        return None
    target, last = body.feeds[0], loop.body[-1]
    if not isinstance(last, Accumulate) or last.position is None or not all(isinstance(statement, Let) for statement in loop.body[:-1]):
        return None
    ordered = last.position.op == "index" and body.step_of(last.position.data) > 0
    once = emitter.feeds[target] == 1 and emitter.opened[target] == emitter.top
    native = emitter.emit.target.lanes(I64.bits)
    width = min(SEARCHED_VECTORS * native, power_of_two(loop.extent // 2 + 1) // 2)
    return (target, width) if ordered and once and width >= native and worthwhile(body, emitter.emit.target) else None


def search_loop(emitter: Iterations, loop: Loop, target: Accumulator, width: int) -> None:
    """Whole vectors, whose best elements are combined, then the remaining elements one by one."""
    assert isinstance(loop.extent, int)
    turns, rest = divmod(loop.extent, width)
    with _side_by_side_search(emitter, target, width), emitter.each(loop, turns, width) as first:
        emitter.vector(loop, first, width)
    if rest:
        with emitter.turns(str(rest), False) as number:
            emitter.iteration(loop, emitter.emit.put(f"add nuw nsw i64 {number}, {turns * width}"))


@contextmanager
def _side_by_side_search(emitter: Iterations, target: Accumulator, width: int) -> Iterator[None]:
    """A context in which each vector lane searches separately; the lanes are combined at its end."""
    dtype = target.dtype
    saved = emitter.cells[target], emitter.places[target]
    emitter.cells[target] = Cell(emitter.alloca(memory_type(dtype), width), width)
    emitter.places[target] = Cell(emitter.alloca("i64", width), width)
    emitter.store_cell(emitter.cells[target], dtype, emitter.load_cell(saved[0], dtype))
    emitter.store_cell(emitter.places[target], I64, emitter.load_cell(saved[1], I64))
    yield
    values, positions = emitter.load_cell(emitter.cells[target], dtype), emitter.load_cell(emitter.places[target], I64)
    while width > 1:
        width //= 2
        values, positions = _better_half(emitter, target, values, positions, width)
    emitter.cells[target], emitter.places[target] = saved
    emitter.store_cell(saved[0], dtype, values)
    emitter.store_cell(saved[1], I64, positions)


def _better_half(emitter: Iterations, target: Accumulator, values: Register, positions: Register, half: int) -> tuple[Register, Register]:
    dtype = target.dtype
    (low, high), (first, second) = _halves(emitter, values, dtype, half), _halves(emitter, positions, I64, half)
    earlier = emitter.operate("less", I64, second, first)
    better = emitter.operate("greater" if target.combine == "argmax" else "less", dtype, high, low)
    better = emitter.operate("bitwise_or", BOOL, better, emitter.both(emitter.operate("equal", dtype, high, low), earlier))
    if dtype.is_float:
        unordered = emitter.operate("isnan", dtype, high)
        better = emitter.chosen(BOOL, emitter.operate("isnan", dtype, low), emitter.both(unordered, earlier),
                             emitter.operate("bitwise_or", BOOL, better, unordered))
    return emitter.chosen(dtype, better, high, low), emitter.chosen(I64, better, second, first)


def _halves(emitter: Iterations, register: Register, dtype: DType, half: int) -> list[Register]:
    vector = vector_type(register_type(dtype), 2 * half)
    if half == 1:
        return [emitter.put(f"extractelement {vector} {register.text}, i64 {k}", emitter.top) for k in (0, 1)]
    return [emitter.picked(register, vector, range(first, first + half)) for first in (0, half)]
