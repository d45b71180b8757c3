"""Loops of kind `product` as calls of matrix product code, with the addresses of the matrices of this iteration.

Products that are smaller than the overhead of a call are unrolled, one row of the result at a time, like those that are steps of
their own (`libraries/matrix_products.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from bwcompiler.ir.extent import Extent, Index, add_extents, scale_extent, upper
from bwcompiler.ir.loop import Loop, Offset, Store, load
from bwcompiler.ir.product_loop import LoopMatrix, LoopProduct
from bwcompiler.lowering.kernels.emitter.iterations import Iterations
from bwcompiler.lowering.kernels.emitter.registers import Register
from bwcompiler.lowering.llvm_scalars import memory_type, vector_type
from bwcompiler.lowering.loops.tiling.stage_products import is_staged
from bwcompiler.lowering.polls import leave_if_interrupted
from bwcompiler.lowering.products.call import POLL_WORK, WORDS, Shape, call_text, constant_words, declaration, needs_of, symbol

MOST_FACTORS = 64              # most elements of a matrix whose products are unrolled in the kernel


def product_call(emitter: Iterations, found: LoopProduct) -> None:
    if _is_small(found):
        _write_out(emitter, found)
    else:
        _call(emitter, found)
    emitter.forget(emitter.memory_of(found.c.buffer))


def _write_out(emitter: Iterations, found: LoopProduct) -> None:
    assert isinstance(found.rows, int) and isinstance(found.columns, int) and isinstance(found.terms, int)
    put, type_ = emitter.emit.put, memory_type(found.c.buffer.dtype)
    row = vector_type(type_, found.columns)
    rows_of_b = [_row(emitter, found.b, k, found.columns) for k in range(found.terms)]
    rows_before = [_row(emitter, found.start, i, found.columns) for i in range(found.rows)] if found.start else []
    for i in range(found.rows):
        total = ""
        for k, other in enumerate(rows_of_b):
            factor = put(f"load {type_}, {_place_in(emitter, found.a, i, k)}")
            spread = emitter.splat(Register(factor, 1, emitter.top, emitter.top), type_, found.columns) if found.columns > 1 else factor
            term = put(f"fmul {row} {other}, {spread}")
            total = put(f"fadd {row} {total}, {term}") if total else term
        if rows_before:
            total = put(f"fadd {row} {rows_before[i]}, {total}")
        emitter.emit.lines.append(f"  store {row} {total}, {_place_in(emitter, found.c, i, 0)}")


def _row(emitter: Iterations, matrix: LoopMatrix, number: int, columns: int) -> str:
    """The elements of a row as a vector; the number itself where there is one."""
    put, type_ = emitter.emit.put, memory_type(matrix.buffer.dtype)
    row = vector_type(type_, columns)
    if columns == 1 or matrix.column == 1:
        return put(f"load {row}, {_place_in(emitter, matrix, number, 0)}")
    found = "poison"
    for j in range(columns):
        element = put(f"load {type_}, {_place_in(emitter, matrix, number, j)}")
        found = put(f"insertelement {row} {found}, {type_} {element}, i64 {j}")
    return found


def _place_in(emitter: Iterations, matrix: LoopMatrix, row: int, column: int) -> str:
    """The address of an element, as an operand of a load or store."""
    dtype, start = matrix.buffer.dtype, emitter.pointer(matrix.buffer, matrix.start)
    place = row * matrix.row + column * matrix.column
    pointer = emitter.emit.put(f"getelementptr {memory_type(dtype)}, ptr {start.text}, i64 {place}") if place else start.text
    return f"ptr {pointer}, align {dtype.itemsize}"


def _call(emitter: Iterations, found: LoopProduct) -> None:
    """The call of the single-threaded product; a long one polls for signals itemitter."""
    emit = emitter.emit
    adds = found.adds or found.start is not None
    if found.start is not None:
        _copy(emitter, found.start, found)
    a, b, c = found.a, found.b, found.c
    pointers = [emitter.pointer(matrix.buffer, matrix.start).text for matrix in (a, b, c)]
    words = _told(emitter, [found.rows, found.columns, found.terms], [a.row, a.column, b.row, b.column, c.row, adds, is_staged(found), 0])
    shape = Shape(found.rows, found.columns, found.terms, (a.row, a.column), (b.row, b.column), c.row)
    dtype = c.buffer.dtype
    name = symbol(dtype, needs_of(shape, dtype, adds=adds, alone=True), alone=True)
    emit.declares[declaration(name)] = None
    status = emit.put(call_text(name, pointers, words))
    if upper(found.rows) * upper(found.columns) * upper(found.terms) >= POLL_WORK:
        emitter.polls = True
        leave_if_interrupted(emit, status)


def _copy(emitter: Iterations, start: LoopMatrix, found: LoopProduct) -> None:
    """Copy the third operand to the result, if it is not already there."""
    c = found.c
    if emitter.memory_of(start.buffer) is emitter.memory_of(c.buffer) and start[1:] == c[1:]:
        return
    i, j = Index(0, add_extents(found.rows, -1), "i"), Index(0, add_extents(found.columns, -1), "j")

    def place(matrix: LoopMatrix) -> Offset:
        row, column = scale_extent(i.extent(), matrix.row), scale_extent(j.extent(), matrix.column)
        return Offset(add_extents(add_extents(matrix.start, row), column))

    store = Store(c.buffer, place(c), load(start.buffer, place(start)))
    emitter.statements([Loop(i, found.rows, [Loop(j, found.columns, [store], "vector")])])


def _told(emitter: Iterations, extents: Sequence[Extent], numbers: Sequence[int]) -> str:
    """The address of words with these extents and numbers."""
    emit, told = emitter.emit, [*extents, *map(int, numbers)]
    constant = constant_words(told)
    if constant is not None:
        name, line = constant
        emit.declares[line] = None
        return name
    if emitter.product_words is None:
        emitter.product_words = emitter.alloca("i64", len(WORDS))
    for place, word in enumerate(map(emitter.affine, told)):
        at = emit.put(f"getelementptr i64, ptr {emitter.product_words}, i64 {place}")
        emit.lines.append(f"  store i64 {word}, ptr {at}")
    return emitter.product_words


def _is_small(found: LoopProduct) -> bool:
    """Whether a product takes less time than the overhead of a call."""
    extents = found.rows, found.columns, found.terms
    if found.adds or not all(isinstance(extent, int) for extent in extents):
        return False
    rows, columns, terms = map(upper, extents)
    return terms * max(rows, columns) <= MOST_FACTORS
