"""Matrix products as functions of a program: small ones are unrolled, others of floats and complex numbers call `products`.

A call costs more than a small product, which is computed one row of the result at a time, as a vector.
Operands are read in place, with any strides (`ArrayView`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.errors import CompileError, at
from bwcompiler.ir.access import ArrayView, contiguous_strides
from bwcompiler.ir.contracts.program_interface import DECLARE_PARALLEL
from bwcompiler.ir.extent import Extent, element_count, upper
from bwcompiler.ir.op import Value
from bwcompiler.ir.products import is_written_out
from bwcompiler.ir.types import DType
from bwcompiler.lowering.function_text import FunctionText, merged_axes
from bwcompiler.lowering.libraries.shared_calls import grain_of, sharing_text
from bwcompiler.lowering.llvm_scalars import memory_type
from bwcompiler.lowering.products import call

LONG_SUM = 8192                # least terms,
FEW_SUMS = 4096                # and most elements of a product whose terms are divided among threads
SMALL_COMPLEX = 512            # most multiplications of a product of complex matrices that is compiled as loops


def is_called(value: Value) -> bool:
    """Whether a matrix product that is not unrolled is a call; small complex products, and all integer ones, are loops."""
    small = value.dtype.is_complex and value.type.size * upper(value.operands[0].shape[-1]) <= SMALL_COMPLEX
    return value.dtype in call.DTYPES and not small


def is_long_sum(value: Value) -> bool:
    """Whether a product has few elements, each a sum of many terms: it can be divided among threads only by its terms."""
    extents = (*value.shape, value.operands[0].shape[-1])
    if value.rank != 2 or not value.dtype.is_float or not is_called(value) or not all(isinstance(extent, int) for extent in extents):
        return False
    rows, columns, terms = extents
    return bool(terms >= LONG_SUM and min(rows, columns) > 1 and rows * columns <= FEW_SUMS)


def product_method(value: Value) -> str:
    """How a matrix product that is not a loop is computed, in words."""
    added = ", added in place" if value.op is ops.matmul_add else ""
    return "matrix product, unrolled" if is_written_out(value) else f"matrix product in tiles{added}"


class ProductText(NamedTuple):
    """The function, its declarations, the extents that are its parameters (those that depend on a loop index), and whether it polls for
    signals and returns a status."""

    text: str
    declares: Sequence[str]
    words: Sequence[Extent]
    status: bool = False


def product_text(name: str, value: Value, views: Sequence[ArrayView]) -> ProductText:
    """`void name(a, b, c, extents)`, or i32: row-major C = A B for every batch element; C += A B for matmul_add."""
    *batch, m, n = value.shape
    if not all(isinstance(extent, int) for extent in batch):
        raise CompileError(at(value.source, f"a batch of matrix products whose size depends on a loop index ({value.type}) is not "
                              "compiled yet\n  hint: loop over the batch"))
    words = list(dict.fromkeys([extent for extent in (m, n, value.operands[0].shape[-1]) if not isinstance(extent, int)]))
    told = "".join([f", i64 %e{number}" for number in range(len(words))])
    head = f"define internal void @{name}(ptr noalias %a, ptr noalias %b, ptr noalias %c{told}) #1 {{\n"
    count = element_count(batch)
    if 0 in (m, n, value.operands[0].shape[-1], count):
        declare = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
        clear = f"  call void @llvm.memset.p0.i64(ptr %c, i8 0, i64 {value.type.nbytes}, i1 false)\n"
        return ProductText(f"{head}{clear}  ret void\n}}\n", [declare], words)
    if is_written_out(value):
        return _written_out(name, value, views)
    return _call_text(name, value, views, words)


def _call_text(name: str, value: Value, views: Sequence[ArrayView], words: Sequence[Extent]) -> ProductText:
    """A call of `products`, with all extents and strides as words."""
    numbers, axes = _numbers(value, views)
    m, n, k, a_row, a_column, b_row, b_column, c_row = numbers
    adds = value.op is ops.matmul_add
    shape = call.Shape(m, n, k, (a_row, a_column), (b_row, b_column), c_row)
    needs = call.needs_of(shape, value.dtype, math.prod([extent for extent, _ in axes]), adds)
    whole = bool(needs) and not axes and call.LARGE not in needs                            # it will not be divided among threads
    called = call.symbol(value.dtype, needs, alone=whole)
    told = {extent: f"%e{number}" for number, extent in enumerate(words)}
    rows: list[int | str] = [*[number if isinstance(number, int) else told[number] for number in numbers], int(adds), 0, len(axes)]
    for extent, steps in axes:
        rows += [extent, *steps]
    status = value.type.size * upper(value.operands[0].shape[-1]) * (4 if value.dtype.is_complex else 1) >= call.POLL_WORK
    parameters = ", ".join(["ptr noalias %a", "ptr noalias %b", "ptr noalias %c", *[f"i64 {register}" for register in told.values()]])
    lines, declares, place = list[str](), [call.declaration(called)], "%words"
    constant = call.constant_words(rows)
    if constant is not None:
        place, line = constant
        declares.append(line)
    else:
        lines.append(f"  %words = alloca [{len(rows)} x i64]")
        for number, row in enumerate(rows):
            lines += [f"  %at{number} = getelementptr i64, ptr %words, i64 {number}", f"  store i64 {row}, ptr %at{number}"]
    group = 1 if constant is None else 2           # a single call is inlined into the callers
    lines += [f"  %status = {call.call_text(called, ['%a', '%b', '%c'], place)}", f"  ret {'i32 %status' if status else 'void'}", "}", ""]
    head = f"define internal {'i32' if status else 'void'} @{name}({parameters}) #{group} {{"
    return ProductText("\n".join([head, *lines]), declares, words, status)


def _numbers(value: Value, views: Sequence[ArrayView]) -> tuple[list[Extent], list[tuple[int, tuple[int, ...]]]]:
    """Extents and strides of the matrices (`call.WORDS`, after the pointers), and (extent, strides) of the batch axes.

    A contiguous batch of matrices that are multiplied by the same one is treated as one tall matrix.
    """
    *batch, m, n = value.shape
    left, right, result = [*[view.strides for view in views], contiguous_strides(value.shape)]
    axes = merged_axes([upper(extent) for extent in batch], [left[:-2], right[:-2], result[:-2]])
    a_row, c_row = left[-2], max(upper(n), 1)
    while axes and isinstance(m, int):
        extent, (a, b, c) = axes[-1]
        if b != 0 or c != m * c_row or (m > 1 and a != m * a_row):
            break
        a_row, m = a if m == 1 else a_row, extent * m
        axes.pop()
    return [m, n, value.operands[0].shape[-1], a_row, left[-1], *right[-2:], c_row], axes


def _written_out(name: str, value: Value, views: Sequence[ArrayView]) -> ProductText:
    made = _sums_of_products(value.dtype, value.shape, value.operands[0].shape[-1], tuple([tuple(view.strides) for view in views]))
    return made._replace(text=made.text.replace(f"@{_ANY}", f"@{name}"))


_ANY = "product"                                                    # the placeholder for its name


@functools.lru_cache(maxsize=256)
def _sums_of_products(dtype: DType, shape: tuple[int, ...], inner: int, views: tuple[tuple[int, ...], ...]) -> ProductText:
    """The text, shared by equal products of a program.  The matrices, or the rows of a single one, are divided among threads."""
    *batch, rows, columns = shape
    function = FunctionText(_ANY, ["a", "b", "c"], memory_type(dtype))
    strides = [*views, contiguous_strides(shape)]
    arrays = [(f"%{letter}", 0, steps[:-2]) for letter, steps in zip("abc", strides, strict=True)]
    axes = [extent for extent, _ in merged_axes(batch, [steps for _, _, steps in arrays])]
    lanes, *others = [*axes, rows]
    grain = grain_of(lanes, math.prod(others) * _row_nanoseconds(dtype, inner, columns))
    if grain is not None:
        function.over_range()
    unroll = rows * inner <= 64
    for a, b, c in function.batch(batch, arrays):
        (down, right), (below, beside) = strides[0][-2:], strides[1][-2:]
        if columns > 1 and beside != 1:                            # packed rows of b
            packed = function.slot(f"[{inner * columns} x {function.real}]")
            function.copy((inner, columns), b, (below, beside), packed, (columns, 1))
            b, below = packed, columns
        for i in function.each("%begin", "%end") if function.ranged and not axes else function.each(0, rows, unroll):
            total = ""
            for k in range(inner):
                factor = function.load(function.at(a, (i, down), (k, right)))
                product = function.scaled_row(factor, function.at(b, (k, below)), columns)
                total = product if not total else function.let(f"fadd {function.row(columns)} {total}, {product}")
            function.do(f"store {function.row(columns)} {total}, ptr {function.at(c, (i, columns))}, align {dtype.itemsize}")
    if grain is None:
        return ProductText(function.text(), [], [])
    return ProductText(function.text() + sharing_text(function, lanes, grain), [DECLARE_PARALLEL], [])


def _row_nanoseconds(dtype: DType, inner: int, columns: int) -> float:
    """The estimated time of a row of the result."""
    return 0.5 + 0.25 * inner * max(1, columns * dtype.itemsize / 32)
