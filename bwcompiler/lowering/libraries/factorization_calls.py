"""Library ops of matrices as functions of a program: substitution and LU, by BLAS and LAPACK, or generated loops for small matrices.
Cholesky: cholesky_calls.py.

A call of BLAS or LAPACK has an overhead of a fraction of a microsecond.  So matrices of up to SMALL rows are computed by loops that are
compiled with the program, as are all matrices if this process has no BLAS.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.ir.access import ArrayView, matrix_order, whole
from bwcompiler.ir.contracts.program_interface import LINALG_ERROR
from bwcompiler.ir.op import Op, Value
from bwcompiler.lowering.function_text import FunctionText, Index, merged_axes
from bwcompiler.lowering.libraries import cholesky_calls
from bwcompiler.lowering.libraries.call_texts import CallText, Libraries, call_text, failure_lines
from bwcompiler.lowering.libraries.cblas import LEFT_OPERAND, LOWER, NON_UNIT, PLAIN, ROW_MAJOR, TRANSPOSED, UNIT, UPPER
from bwcompiler.lowering.libraries.shared_calls import grain_of
from bwcompiler.lowering.llvm_scalars import memory_type

SMALL = 16
UNROLLED = 4                   # most rows for which loops are unrolled


_CHOLESKY_DERIVATIVES = ops.cholesky_tangent, ops.cholesky_adjoint


class Triangle(NamedTuple):
    """A triangular matrix: where it starts, strides of rows and columns in elements."""

    pointer: str
    down: int
    right: int
    lower: bool
    unit: bool = False

    @property
    def transposed(self) -> Triangle:
        return Triangle(self.pointer, self.right, self.down, not self.lower, self.unit)


def is_written_out(value: Value) -> bool:
    """Whether an op is compiled as loops although there is a BLAS."""
    rows = cholesky_calls.WHOLE if value.op in _CHOLESKY_DERIVATIVES else SMALL
    return bool(value.op in _EMITTERS and not value.dtype.is_complex and value.operands[0].shape[-1] <= rows)


def _has_text(value: Value, views: Sequence[ArrayView], libraries: Libraries) -> bool:
    if value.op in _CHOLESKY_DERIVATIVES:
        return cholesky_calls.is_supported(value, views, libraries)
    return not value.dtype.is_complex or _is_by_blas(value, views, libraries)


def _is_by_blas(value: Value, views: Sequence[ArrayView], libraries: Libraries) -> bool:
    """Whether an op of complex numbers, for which there are no generated loops, can call a BLAS routine of this process."""
    if value.op is ops.lu:
        return libraries.blas("getrf", value.dtype) is not None
    n, columns = value.shape[-2:]
    routine = libraries.blas("trsv" if columns == 1 else "trsm", value.dtype)
    if value.op is ops.lu_solve:
        return routine is not None
    return value.op is ops.triangular_solve and routine is not None and matrix_order(views[0], n, n) is not None


def factorization_text(name: str, value: Value, views: Sequence[ArrayView], libraries: Libraries) -> CallText | None:
    """The function of an op that is declared as `Native`, or is small; None if this process has no address of what it would call."""
    if not _has_text(value, views, libraries):
        return None
    emit, fallible = _EMITTERS[value.op]
    function = FunctionText(name, [*[f"p{k}" for k in range(len(views))], "out"], memory_type(value.dtype), fallible)
    arrays = [*[(f"%p{k}", view) for k, view in enumerate(views)], ("%out", whole(value))]
    lead = value.shape[:-2]
    starts = [(pointer, 0, view.strides[:-2]) for pointer, view in arrays]
    axes = merged_axes(lead, [strides for _, _, strides in starts])
    lanes = axes[0][0] if axes else 1
    grain = grain_of(lanes, math.prod([extent for extent, _ in axes[1:]]) * _matrix_nanoseconds(value))
    if grain is not None:
        function.over_range()
    for pointers in function.batch(lead, starts):
        emit(function, value, views, pointers, libraries)
    return call_text(function, failure_lines(LINALG_ERROR), [*function.declares], lanes, grain)


def _matrix_nanoseconds(value: Value) -> float:
    """The estimated time of one matrix."""
    rows, columns = value.shape[-2:]
    return float((10 if is_written_out(value) else 500) + 0.3 * rows * rows * columns)


# ----- substitution
def _triangular_solve(function: FunctionText, value: Value, views: Sequence[ArrayView], pointers: Sequence[str],
                      libraries: Libraries) -> None:
    a, b, out = pointers
    n, columns = value.shape[-2:]
    down, right = views[0].strides[-2:]
    _fail_if_zero(function, n, a, down + right)
    function.copy((n, columns), b, views[1].strides[-2:], out, (columns, 1))
    triangle = Triangle(a, down, right, value.attrs["lower"])
    substitute(function, value, triangle.transposed if value.attrs["transpose"] else triangle, out, libraries)


def _fail_if_zero(function: FunctionText, n: int, diagonal: str, step: int) -> None:
    for k in function.each(0, n, n <= UNROLLED):
        element = function.load(function.at(diagonal, (k, step)))
        part = _part(function)
        if part is None:
            function.fail_if(function.let(f"fcmp oeq {function.real} {element}, 0.0"))
            continue
        parts = [function.let(f"extractvalue {function.real} {element}, {number}") for number in (0, 1)]
        zero = [function.let(f"fcmp oeq {part} {one}, 0.0") for one in parts]
        function.fail_if(function.let(f"and i1 {zero[0]}, {zero[1]}"))


def _part(function: FunctionText) -> str | None:
    """The real type of the parts of a function's complex numbers; None if its numbers are real."""
    return function.real.split()[-1].rstrip("]") if function.real.startswith("[") else None


def substitute(function: FunctionText, value: Value, triangle: Triangle, x: str, libraries: Libraries) -> None:
    """Solve T X = B in place: `x` holds B, then X, with rows and columns of value's shape."""
    n, columns = value.shape[-2:]
    routine = libraries.blas("trsv" if columns == 1 else "trsm", value.dtype)
    order = matrix_order(ArrayView(value, 0, (triangle.down, triangle.right)), n, n)
    if (n > SMALL or value.dtype.is_complex) and routine is not None and order is not None:
        _by_blas(function, triangle, n, columns, x, routine, libraries.integer, order)
        return
    unroll = n <= UNROLLED
    for i in function.each(0, n, unroll, down=not triangle.lower):
        first, last = (0, i) if triangle.lower else (function.plus(i, 1), n)
        for j in function.each(first, last, unroll):
            factor = function.load(function.at(triangle.pointer, (i, triangle.down), (j, triangle.right)))
            for c in function.each(0, columns, unroll and columns <= UNROLLED):
                function.subtract_product(function.at(x, (i, columns), (c, 1)), factor, function.at(x, (j, columns), (c, 1)))
        if not triangle.unit:
            divisor = function.load(function.at(triangle.pointer, (i, triangle.down + triangle.right)))
            for c in function.each(0, columns, unroll and columns <= UNROLLED):
                function.divide(function.at(x, (i, columns), (c, 1)), divisor)


def _by_blas(function: FunctionText, triangle: Triangle, n: int, columns: int, x: str, routine: str, integer: str,
             order: tuple[bool, int]) -> None:
    """By trsm or trsv, which take a column-major triangle as the transpose of a row-major one."""
    in_columns, leading = order
    flags = [UPPER if triangle.lower == in_columns else LOWER, TRANSPOSED if in_columns else PLAIN,
             UNIT if triangle.unit else NON_UNIT]
    matrix = [f"ptr {triangle.pointer}", f"{integer} {leading}", f"ptr {x}", f"{integer} {columns}"]
    if columns == 1:
        function.call("void", routine, ROW_MAJOR, *flags, f"{integer} {n}", *matrix)
        return
    one = f"{function.real} 1.0"
    part = _part(function)
    if part is not None:                                              # BLAS takes complex factors by address
        place = function.slot(function.real)
        function.do(f"store {function.real} [{part} 1.0, {part} 0.0], ptr {place}")
        one = f"ptr {place}"
    function.call("void", routine, ROW_MAJOR, LEFT_OPERAND, *flags, f"{integer} {n}", f"{integer} {columns}", one, *matrix)


# ----- LU
def _lu(function: FunctionText, value: Value, views: Sequence[ArrayView], pointers: Sequence[str], libraries: Libraries) -> None:
    a, out = pointers
    n = value.shape[-1]
    function.copy((n, n), a, views[0].strides[-2:], out, (1, n))         # the rows of the result are the columns of a
    pivots = function.at(out, (n, n))
    routine = libraries.blas("getrf", value.dtype)
    if (n > SMALL or value.dtype.is_complex) and routine is not None:
        _lu_by_lapack(function, n, out, pivots, routine, libraries.integer)
        return
    unroll = n <= UNROLLED
    for k in function.each(0, n, unroll):
        pivot = _largest_below(function, n, k, out, unroll)
        function.store(function.let(f"sitofp i64 {pivot} to {function.real}"), function.at(pivots, (k, 1)))
        for column in function.each(0, n, unroll):
            _exchange(function, function.at(out, (k, 1), (column, n)), function.at(out, (pivot, 1), (column, n)))
        divisor = function.load(function.at(out, (k, n + 1)))
        zero = function.let(f"fcmp oeq {function.real} {divisor}, 0.0")
        divisor = function.let(f"select i1 {zero}, {function.real} 1.0, {function.real} {divisor}")
        for i in function.each(function.plus(k, 1), n, unroll):
            function.divide(function.at(out, (i, 1), (k, n)), divisor)
        for column in function.each(function.plus(k, 1), n, unroll):
            factor = function.load(function.at(out, (k, 1), (column, n)))
            for i in function.each(function.plus(k, 1), n, unroll):
                function.subtract_product(function.at(out, (i, 1), (column, n)), factor, function.at(out, (i, 1), (k, n)))


def _lu_by_lapack(function: FunctionText, n: int, out: str, pivots: str, routine: str, integer: str) -> None:
    """getrf counts rows from 1, in integers, which are put into the last row of the result as numbers."""
    size, status, numbers = function.slot(integer), function.slot(integer), function.slot(f"[{n} x {integer}]")
    function.do(f"store {integer} {n}, ptr {size}")
    function.call("void", routine, f"ptr {size}", f"ptr {size}", f"ptr {out}", f"ptr {size}", f"ptr {numbers}", f"ptr {status}")
    for k in function.each(0, n):
        row = function.let(f"load {integer}, ptr {function.at(numbers, (k, 1), type_=integer)}")
        row = function.let(f"sub {integer} {row}, 1")
        part = _part(function)
        number = function.let(f"sitofp {integer} {row} to {part or function.real}")
        if part is not None:
            number = function.let(f"insertvalue {function.real} zeroinitializer, {part} {number}, 0")
        function.store(number, function.at(pivots, (k, 1)))


def _largest_below(function: FunctionText, n: int, k: Index, columns: str, unroll: bool) -> str:
    """The row of the element of column k, at or below the diagonal, that is largest in magnitude; the first of equals."""
    def magnitude(i: Index) -> str:
        element = function.load(function.at(columns, (i, 1), (k, n)))
        suffix = "f64" if function.real == "double" else "f32"
        return function.call(function.real, f"llvm.fabs.{suffix}", f"{function.real} {element}")

    best, where = function.slot(function.real), function.slot("i64")
    function.store(magnitude(k), best)
    function.do(f"store i64 {k}, ptr {where}")
    for i in function.each(function.plus(k, 1), n, unroll):
        found, largest = magnitude(i), function.load(best)
        larger = function.let(f"fcmp ogt {function.real} {found}, {largest}")
        function.store(function.let(f"select i1 {larger}, {function.real} {found}, {function.real} {largest}"), best)
        before = function.let(f"load i64, ptr {where}")
        function.do(f"store i64 {function.let(f'select i1 {larger}, i64 {i}, i64 {before}')}, ptr {where}")
    return function.let(f"load i64, ptr {where}")


def _exchange(function: FunctionText, x: str, y: str) -> None:
    first, second = function.load(x), function.load(y)
    function.store(second, x)
    function.store(first, y)


def _lu_solve(function: FunctionText, value: Value, views: Sequence[ArrayView], pointers: Sequence[str], libraries: Libraries) -> None:
    packed, b, out = pointers
    n, columns = value.shape[-2:]
    transpose = value.attrs["transpose"]
    _fail_if_zero(function, n, packed, n + 1)
    function.copy((n, columns), b, views[1].strides[-2:], out, (columns, 1))
    lower, upper = Triangle(packed, 1, n, True, unit=True), Triangle(packed, 1, n, False)
    pivots = function.at(packed, (n, n))
    if not transpose:                                                     # P L U x = b
        _permute(function, n, columns, pivots, out, backwards=False)
        substitute(function, value, lower, out, libraries)
        substitute(function, value, upper, out, libraries)
        return
    substitute(function, value, upper.transposed, out, libraries)         # Uᵀ Lᵀ Pᵀ x = b
    substitute(function, value, lower.transposed, out, libraries)
    _permute(function, n, columns, pivots, out, backwards=True)


def _permute(function: FunctionText, n: int, columns: int, pivots: str, x: str, backwards: bool) -> None:
    """Exchange rows k and pivots[k] of x, for every k."""
    unroll = n <= UNROLLED
    for k in function.each(0, n, unroll, down=backwards):
        number, part = function.load(function.at(pivots, (k, 1))), _part(function)
        if part is not None:
            number = function.let(f"extractvalue {function.real} {number}, 0")
        pivot = function.let(f"fptosi {part or function.real} {number} to i64")
        for c in function.each(0, columns, unroll and columns <= UNROLLED):
            _exchange(function, function.at(x, (k, columns), (c, 1)), function.at(x, (pivot, columns), (c, 1)))


# ----- op -> the function that writes it
_Emitter = Callable[[FunctionText, Value, Sequence[ArrayView], Sequence[str], Libraries], None]
_EMITTERS: dict[Op, tuple[_Emitter, bool]] = {
    ops.triangular_solve: (_triangular_solve, True), ops.lu: (_lu, False), ops.lu_solve: (_lu_solve, True),
    ops.cholesky: (cholesky_calls.cholesky, True), ops.cholesky_tangent: (cholesky_calls.cholesky_tangent, False),
    ops.cholesky_adjoint: (cholesky_calls.cholesky_adjoint, False),
}
