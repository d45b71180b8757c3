"""Substitution, LU and the adjoint of the Cholesky factorisation, around BLAS and LAPACK; loops of our own for small matrices.

A call of BLAS or LAPACK costs a fraction of a microsecond before it computes anything: matrices of up to SMALL rows are done
by loops that are compiled with the program, and all of them where this process has no BLAS.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from bwcompiler.ir.access import ArrayView, matrix_order, whole
from bwcompiler.ir.contracts.program_interface import LINALG_ERROR
from bwcompiler.ir.op import Value
from bwcompiler.ir.routine import Fourier, InnerLoop, Sort
from bwcompiler.lowering.function_text import FunctionText, Index
from bwcompiler.lowering.libraries.fourier_calls import fourier_text
from bwcompiler.lowering.libraries.library_calls import CallText, Libraries, failure_lines, inner_loop_text, sort_text
from bwcompiler.lowering.llvm_scalars import memory_type

SMALL = 16
UNROLLED = 4                   # rows up to which loops are written out
ADJOINT_BLOCK = 32

_ROW_MAJOR, _PLAIN, _TRANSPOSED, _UPPER, _LOWER, _NON_UNIT, _UNIT, _LEFT, _RIGHT = [
    f"i32 {number}" for number in (101, 111, 112, 121, 122, 131, 132, 141, 142)]     # the enumerations of cblas


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
    """Whether an op is loops of the program itself, where there is a BLAS."""
    rows = SMALL if value.op.name != "cholesky_adjoint" else 2 * ADJOINT_BLOCK
    return bool(value.op.name in _EMITTERS and not value.dtype.is_complex and value.operands[0].shape[-1] <= rows)


def library_call_text(name: str, value: Value, views: Sequence[ArrayView], libraries: Libraries) -> CallText | None:
    """The function that computes a library op by its routine; None where this process has no address of one."""
    routine = value.op.library
    if isinstance(routine, InnerLoop) and not is_written_out(value):
        return inner_loop_text(name, value, views, libraries)
    if isinstance(routine, Sort):
        return sort_text(name, value, views, libraries)
    if isinstance(routine, Fourier):
        return fourier_text(name, value, views[0], libraries)
    if routine is None or (value.dtype.is_complex and not _is_by_blas(value, views, libraries)):
        return None
    return native_text(name, value, views, libraries)


def _is_by_blas(value: Value, views: Sequence[ArrayView], libraries: Libraries) -> bool:
    """Whether an op of complex numbers, of which there are no loops of our own, is a routine of BLAS that is there."""
    if value.op.name == "lu":
        return libraries.blas("getrf", value.dtype) is not None
    n, columns = value.shape[-2:]
    routine = libraries.blas("trsv" if columns == 1 else "trsm", value.dtype)
    if value.op.name == "lu_solve":
        return routine is not None
    return value.op.name == "triangular_solve" and routine is not None and matrix_order(views[0], n, n) is not None


def native_text(name: str, value: Value, views: Sequence[ArrayView], libraries: Libraries) -> CallText:
    """The function of an op that is declared as `Native`, or is small."""
    emit, fallible = _EMITTERS[value.op.name]
    function = FunctionText(name, [*[f"p{k}" for k in range(len(views))], "out"], memory_type(value.dtype), fallible)
    arrays = [*[(f"%p{k}", view) for k, view in enumerate(views)], ("%out", whole(value))]
    lead = value.shape[:-2]
    starts = [(pointer, 0, view.strides[:-2]) for pointer, view in arrays]
    for pointers in function.batch(lead, starts):
        emit(function, value, views, pointers, libraries)
    return CallText(function.text(failure_lines(LINALG_ERROR)), [*function.declares], fallible)


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
    """The type of the parts of the complex numbers that a function is about; None if they are real."""
    return function.real.split()[-1].rstrip("]") if function.real.startswith("[") else None


def substitute(function: FunctionText, value: Value, triangle: Triangle, x: str, libraries: Libraries) -> None:
    """Solve T X = B for the X that lies, as B, in `x`: row by row, (n, columns) of value's shape."""
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
                _subtract_product(function, function.at(x, (i, columns), (c, 1)), factor, function.at(x, (j, columns), (c, 1)))
        if not triangle.unit:
            divisor = function.load(function.at(triangle.pointer, (i, triangle.down + triangle.right)))
            for c in function.each(0, columns, unroll and columns <= UNROLLED):
                _divide(function, function.at(x, (i, columns), (c, 1)), divisor)


def _subtract_product(function: FunctionText, target: str, factor: str, other: str) -> None:
    product = function.arithmetic("fmul", factor, function.load(other))
    function.store(function.arithmetic("fsub", function.load(target), product), target)


def _divide(function: FunctionText, target: str, divisor: str) -> None:
    function.store(function.arithmetic("fdiv", function.load(target), divisor), target)


def _by_blas(function: FunctionText, triangle: Triangle, n: int, columns: int, x: str, routine: str, integer: str,
             order: tuple[bool, int]) -> None:
    """By trsm or trsv, which take a triangle that lies in columns as the transpose of one in rows."""
    in_columns, leading = order
    flags = [_UPPER if triangle.lower == in_columns else _LOWER, _TRANSPOSED if in_columns else _PLAIN,
             _UNIT if triangle.unit else _NON_UNIT]
    matrix = [f"ptr {triangle.pointer}", f"{integer} {leading}", f"ptr {x}", f"{integer} {columns}"]
    if columns == 1:
        function.call("void", routine, _ROW_MAJOR, *flags, f"{integer} {n}", *matrix)
        return
    one = f"{function.real} 1.0"
    part = _part(function)
    if part is not None:                                              # BLAS takes complex factors from memory
        place = function.slot(function.real)
        function.do(f"store {function.real} [{part} 1.0, {part} 0.0], ptr {place}")
        one = f"ptr {place}"
    function.call("void", routine, _ROW_MAJOR, _LEFT, *flags, f"{integer} {n}", f"{integer} {columns}", one, *matrix)


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
            _divide(function, function.at(out, (i, 1), (k, n)), divisor)
        for column in function.each(function.plus(k, 1), n, unroll):
            factor = function.load(function.at(out, (k, 1), (column, n)))
            for i in function.each(function.plus(k, 1), n, unroll):
                _subtract_product(function, function.at(out, (i, 1), (column, n)), factor, function.at(out, (i, 1), (k, n)))


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


# ----- the Cholesky factorisation, and its adjoint
def _cholesky(function: FunctionText, value: Value, views: Sequence[ArrayView], pointers: Sequence[str], libraries: Libraries) -> None:
    """Row by row, of the lower triangle of a: each element of a row of L is a substitution in the rows above."""
    a, out = pointers
    n = value.shape[-1]
    down, right = views[0].strides[-2:]
    unroll = n <= UNROLLED
    sqrt = f"llvm.sqrt.{'f64' if function.real == 'double' else 'f32'}"
    for i in function.each(0, n, unroll):
        for j in function.each(0, function.plus(i, 1), unroll):
            place = function.at(out, (i, n), (j, 1))
            function.store(function.load(function.at(a, (i, down), (j, right))), place)
            for k in function.each(0, j, unroll):
                _subtract_product(function, place, function.load(function.at(out, (i, n), (k, 1))), function.at(out, (j, n), (k, 1)))
            if isinstance(i, int) and isinstance(j, int):
                if j < i:
                    _divide(function, place, function.load(function.at(out, (j, n + 1))))
                continue
            for _ in function.when(function.let(f"icmp slt i64 {j}, {i}")):
                _divide(function, place, function.load(function.at(out, (j, n + 1))))
        diagonal = function.at(out, (i, n + 1))
        square = function.load(diagonal)
        function.fail_if(function.let(f"fcmp ole {function.real} {square}, 0.0"))
        function.store(function.call(function.real, sqrt, f"{function.real} {square}"), diagonal)
        for j in function.each(function.plus(i, 1), n, unroll):
            function.store("0.0", function.at(out, (i, n), (j, 1)))


def _cholesky_adjoint(function: FunctionText, value: Value, views: Sequence[ArrayView], pointers: Sequence[str],
                      libraries: Libraries) -> None:
    """Murray (2016), section 4: reverse mode through the blocked algorithm, in 2/3 n³ operations.

    The result starts as the cotangent of L and becomes, from the last columns to the first, that of the lower triangle of a; in
    the end it is spread over both triangles.
    """
    factor, ct, out = pointers
    n = value.shape[-1]
    lead, ct_strides = views[0].strides[-2], views[1].strides[-2:]
    function.copy((n, n), ct, ct_strides, out, (n, 1))
    gemm, trsm = libraries.blas("gemm", value.dtype), libraries.blas("trsm", value.dtype)
    if is_written_out(value) or gemm is None or trsm is None or views[0].strides[-1] != 1:
        _adjoint_of_block(function, n, factor, views[0].strides[-2:], out, n)
    else:
        size = max(ADJOINT_BLOCK, n // ADJOINT_BLOCK)
        routines = _Routines(gemm, trsm, libraries.integer)
        if n % size:
            _adjoint_of_columns(function, n, n - n % size, n % size, (factor, lead), out, routines)
        for block in function.each(0, n // size, down=True):
            _adjoint_of_columns(function, n, function.times(block, size), size, (factor, lead), out, routines)
    _spread(function, n, out)


class _Routines(NamedTuple):
    gemm: str
    trsm: str
    integer: str

    def extent(self, function: FunctionText, extent: Index) -> str:
        """As an argument."""
        if isinstance(extent, str) and self.integer != "i64":
            extent = function.let(f"trunc i64 {extent} to {self.integer}")
        return f"{self.integer} {extent}"


def _adjoint_of_columns(function: FunctionText, n: int, first: Index, size: int, factor: tuple[str, int], out: str,
                        routines: _Routines) -> None:
    """L = [R D; B C]: D is the diagonal block, R left of it, C below it, B left of C; the same of the cotangent."""
    below, next_ = function.minus(n - size, first), function.plus(first, size)
    one, minus = f"{function.real} 1.0", f"{function.real} -1.0"

    def part(matrix: tuple[str, int], row: Index, column: Index) -> list[str]:
        return [f"ptr {function.at(matrix[0], (row, matrix[1]), (column, 1))}", f"{routines.integer} {matrix[1]}"]

    def subtract(flag: str, shape: tuple[Index, Index, Index], x: list[str], y: list[str], target: list[str]) -> None:
        extents = [routines.extent(function, extent) for extent in shape]
        function.call("void", routines.gemm, _ROW_MAJOR, flag, _PLAIN, *extents, minus, *x, *y, one, *target)

    left, diagonal = part(factor, first, 0), part(factor, first, first)
    ct_left, ct_diagonal = part((out, n), first, 0), part((out, n), first, first)
    if below != 0:
        under, corner = part(factor, next_, first), part(factor, next_, 0)
        ct_under, ct_corner = part((out, n), next_, first), part((out, n), next_, 0)
        function.call("void", routines.trsm, _ROW_MAJOR, _RIGHT, _LOWER, _PLAIN, _NON_UNIT, routines.extent(function, below),
                      routines.extent(function, size), one, *diagonal, *ct_under)          # C̄ = C̄ D⁻¹
        subtract(_PLAIN, (below, first, size), ct_under, left, ct_corner)                  # B̄ -= C̄ R
        subtract(_TRANSPOSED, (size, size, below), ct_under, under, ct_diagonal)           # D̄ -= C̄ᵀ C
        subtract(_TRANSPOSED, (size, first, below), ct_under, corner, ct_left)             # R̄ -= C̄ᵀ B
    place = ct_diagonal[0].split()[1]
    _adjoint_of_block(function, size, diagonal[0].split()[1], (factor[1], 1), place, n)
    _scale_diagonal(function, size, place, n, "2.0")                                       # R̄ -= (D̄ + D̄ᵀ) R
    for i in function.each(0, size):
        for j in function.each(0, i):
            function.store(function.load(function.at(place, (i, n), (j, 1))), function.at(place, (j, n), (i, 1)))
    subtract(_PLAIN, (size, first, size), ct_diagonal, left, ct_left)
    _scale_diagonal(function, size, place, n, "0.5")


def _adjoint_of_block(function: FunctionText, n: int, factor: str, strides: Sequence[int], out: str, lead: int) -> None:
    """The same for one block, column by column: c is the column below the diagonal element d, r the row left of it, B below r."""
    down, right = strides
    for j in function.each(0, n, down=True):
        place = function.at(out, (j, lead + 1))
        d = function.load(function.at(factor, (j, down + right)))
        for i in function.each(function.plus(j, 1), n):                                    # d̄ -= cᵀ c̄ / d,  c̄ = c̄ / d
            below = function.at(out, (i, lead), (j, 1))
            _divide(function, below, d)
            _subtract_product(function, place, function.load(below), function.at(factor, (i, down), (j, right)))
        _divide(function, place, d)
        ct_d = function.load(place)
        for k in function.each(0, j):                                                      # r̄ -= d̄ r
            _subtract_product(function, function.at(out, (j, lead), (k, 1)), ct_d, function.at(factor, (j, down), (k, right)))
        for i in function.each(function.plus(j, 1), n):                                    # r̄ -= c̄ᵀ B,  B̄ -= c̄ r
            ct_c = function.load(function.at(out, (i, lead), (j, 1)))
            for k in function.each(0, j):
                _subtract_product(function, function.at(out, (j, lead), (k, 1)), ct_c, function.at(factor, (i, down), (k, right)))
                _subtract_product(function, function.at(out, (i, lead), (k, 1)), ct_c, function.at(factor, (j, down), (k, right)))
        function.store(function.arithmetic("fmul", ct_d, "0.5"), place)


def _scale_diagonal(function: FunctionText, n: int, place: str, lead: int, factor: str) -> None:
    for k in function.each(0, n):
        element = function.at(place, (k, lead + 1))
        function.store(function.arithmetic("fmul", function.load(element), factor), element)


def _spread(function: FunctionText, n: int, out: str) -> None:
    """Half of each element below the diagonal, there and above it."""
    for i in function.each(0, n):
        for j in function.each(0, i):
            below = function.at(out, (i, n), (j, 1))
            half = function.arithmetic("fmul", function.load(below), "0.5")
            function.store(half, below)
            function.store(half, function.at(out, (j, n), (i, 1)))


_Emitter = Callable[[FunctionText, Value, Sequence[ArrayView], Sequence[str], Libraries], None]
_EMITTERS: dict[str, tuple[_Emitter, bool]] = {
    "triangular_solve": (_triangular_solve, True), "lu": (_lu, False), "lu_solve": (_lu_solve, True),
    "cholesky": (_cholesky, True), "cholesky_adjoint": (_cholesky_adjoint, False),
}
