"""The Cholesky factorisation of small matrices, and its tangent and adjoint for matrices of any size, with BLAS for large blocks.

I. Murray, "Differentiation of the Cholesky decomposition" (2016), section 4: the derivatives go through the blocked algorithm,
forwards or backwards, in 2/3 n³ operations.  For a block of columns

    L = [. .; R D; B C]     D: the diagonal block, R left of it, C below it, B left of C

everything except the diagonal block is products and substitutions, which BLAS computes.  The diagonal blocks, and small matrices as a
whole, are computed by generated loops over rows as vectors, in local memory.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bwcompiler.ir.access import ArrayView
from bwcompiler.ir.op import Value
from bwcompiler.lowering.function_text import FunctionText, Index
from bwcompiler.lowering.libraries.call_texts import Libraries
from bwcompiler.lowering.libraries.cblas import LOWER, NON_UNIT, PLAIN, RIGHT_OPERAND, ROW_MAJOR, TRANSPOSED

UNROLLED = 4                   # most rows for which the factorisation is unrolled
WHOLE = 64                     # most rows for which a derivative is computed in one block
_BLOCK, _LARGE_BLOCK, _LARGE = 32, 64, 400        # columns of a block, of matrices below and from _LARGE rows


def is_one_block(n: int) -> bool:
    """Whether the derivative of the factor of n rows needs no BLAS."""
    return n <= WHOLE


def is_supported(value: Value, views: Sequence[ArrayView], libraries: Libraries) -> bool:
    """Whether the tangent or adjoint is implemented here: real, rows contiguous, and BLAS available for large matrices."""
    routines = [libraries.blas(name, value.dtype) for name in ("gemm", "trsm")]
    by_blocks = None not in routines and views[0].strides[-1] == 1
    return not value.dtype.is_complex and (is_one_block(value.shape[-1]) or by_blocks)


# ----- the factorisation
def cholesky(function: FunctionText, value: Value, views: Sequence[ArrayView], pointers: Sequence[str], libraries: Libraries) -> None:
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
                function.subtract_product(place, function.load(function.at(out, (i, n), (k, 1))), function.at(out, (j, n), (k, 1)))
            if isinstance(i, int) and isinstance(j, int):
                if j < i:
                    function.divide(place, function.load(function.at(out, (j, n + 1))))
                continue
            for _ in function.when(function.let(f"icmp slt i64 {j}, {i}")):
                function.divide(place, function.load(function.at(out, (j, n + 1))))
        diagonal = function.at(out, (i, n + 1))
        square = function.load(diagonal)
        function.fail_if(function.let(f"fcmp ole {function.real} {square}, 0.0"))
        function.store(function.call(function.real, sqrt, f"{function.real} {square}"), diagonal)
        for j in function.each(function.plus(i, 1), n, unroll):
            function.store("0.0", function.at(out, (i, n), (j, 1)))


# ----- its derivatives
def cholesky_tangent(function: FunctionText, value: Value, views: Sequence[ArrayView], pointers: Sequence[str],
                     libraries: Libraries) -> None:
    """The result starts as the tangent of a and becomes, from the first columns to the last, that of L."""
    n, out = value.shape[-1], pointers[-1]
    if is_one_block(n):
        _by_one_block(function, n, views, pointers, _tangent_of_block)
        return
    _Columns(function, value, views, pointers, libraries).each_block(_tangent_of_columns)
    for i in function.each(0, n - 1):
        function.clear(function.at(out, (i, n + 1), (1, 1)), function.minus(n - 1, i))


def cholesky_adjoint(function: FunctionText, value: Value, views: Sequence[ArrayView], pointers: Sequence[str],
                     libraries: Libraries) -> None:
    """The result starts as the cotangent of L and becomes, from the last columns to the first, that of the lower triangle of a; at
    the end it is distributed over both triangles.
    """
    n = value.shape[-1]
    if is_one_block(n):
        _by_one_block(function, n, views, pointers, _adjoint_of_block)
    else:
        _Columns(function, value, views, pointers, libraries).each_block(_adjoint_of_columns, down=True)
    _spread(function, n, pointers[-1])


def _by_one_block(function: FunctionText, n: int, views: Sequence[ArrayView], pointers: Sequence[str],
                  write: Callable[[FunctionText, _Block], None]) -> None:
    factor, derivative, out = pointers
    block = _Block(function, n)
    block.read(factor, views[0].strides[-2:], derivative, views[1].strides[-2:])
    write(function, block)
    block.write(out, n)


def _spread(function: FunctionText, n: int, out: str) -> None:
    """Symmetrise: half of each element below the diagonal goes to both triangles."""
    for i in function.each(0, n):
        for j in function.each(0, i):
            below = function.at(out, (i, n), (j, 1))
            half = function.arithmetic("fmul", function.load(below), "0.5")
            function.store(half, below)
            function.store(half, function.at(out, (j, n), (i, 1)))


# ----- by columns
class _Part(NamedTuple):
    """A part of a matrix with the given row stride, in elements."""

    pointer: str
    lead: int


class _Columns:
    """The column blocks of L and of its derivative, and BLAS calls on their parts."""

    def __init__(self, function: FunctionText, value: Value, views: Sequence[ArrayView], pointers: Sequence[str],
                 libraries: Libraries) -> None:
        factor, given, out = pointers
        n = value.shape[-1]
        gemm, trsm = libraries.blas("gemm", value.dtype), libraries.blas("trsm", value.dtype)
        assert gemm is not None and trsm is not None
        self.function, self.n, self.integer = function, n, libraries.integer
        self.factor, self.derivative = _Part(factor, views[0].strides[-2]), _Part(out, n)
        self.gemm, self.trsm = gemm, trsm
        self.size = _BLOCK if n < _LARGE else _LARGE_BLOCK
        self.block = _Block(function, self.size)
        down, right = views[1].strides[-2:]
        if (down, right) == (n, 1):
            function.copy_elements(given, out, n * n)
        else:
            function.copy((n, n), given, (down, right), out, (n, 1))

    def each_block(self, write: Callable[[_Columns, Index, int], None], down: bool = False) -> None:
        """write(columns, first, size) for all blocks; those of fewer columns than the others are the last ones."""
        rest = self.n % self.size
        if rest and down:
            write(self, self.n - rest, rest)
        for block in self.function.each(0, self.n // self.size, down=down):
            write(self, self.function.times(block, self.size), self.size)
        if rest and not down:
            write(self, self.n - rest, rest)

    def at(self, matrix: _Part, row: Index, column: Index) -> _Part:
        return _Part(self.function.at(matrix.pointer, (row, matrix.lead), (column, 1)), matrix.lead)

    def both(self, row: Index, column: Index) -> tuple[_Part, _Part]:
        """The same part of the factor and of the derivative."""
        return self.at(self.factor, row, column), self.at(self.derivative, row, column)

    def subtract(self, target: _Part, shape: tuple[Index, Index, Index], x: _Part, y: _Part, flags: tuple[str, str]) -> None:
        """target (m, n) -= x y, k terms each; `shape` is (m, n, k)."""
        one, minus = f"{self.function.real} 1.0", f"{self.function.real} -1.0"
        extents = [self._extent(extent) for extent in shape]
        self.function.call("void", self.gemm, ROW_MAJOR, *flags, *extents, minus, *self._matrix(x), *self._matrix(y), one,
                           *self._matrix(target))

    def divide(self, target: _Part, rows: Index, diagonal: _Part, size: int, flag: str) -> None:
        """target D⁻¹ or target D⁻ᵀ."""
        one = f"{self.function.real} 1.0"
        self.function.call("void", self.trsm, ROW_MAJOR, RIGHT_OPERAND, LOWER, flag, NON_UNIT, self._extent(rows), self._extent(size), one,
                           *self._matrix(diagonal), *self._matrix(target))

    def diagonal_block(self, write: Callable[[FunctionText, _Block], None], diagonal: _Part, derivative: _Part, size: int) -> None:
        block = self.block.of(size)
        block.read(diagonal.pointer, (diagonal.lead, 1), derivative.pointer, (derivative.lead, 1))
        write(self.function, block)
        block.write(derivative.pointer, derivative.lead)

    def _matrix(self, part: _Part) -> tuple[str, str]:
        return f"ptr {part.pointer}", f"{self.integer} {part.lead}"

    def _extent(self, extent: Index) -> str:
        if isinstance(extent, str) and self.integer != "i64":
            extent = self.function.let(f"trunc i64 {extent} to {self.integer}")
        return f"{self.integer} {extent}"


def _tangent_of_columns(columns: _Columns, first: Index, size: int) -> None:
    """[dD; dC] -= [R; B] dRᵀ + [dR; dB] Rᵀ, then dD by itself, then dC = (dC - C dDᵀ) D⁻ᵀ."""
    function, n = columns.function, columns.n
    rows, next_ = function.minus(n, first), function.plus(first, size)
    below = function.minus(rows, size)
    left, change_left = columns.both(first, 0)
    diagonal, change_diagonal = columns.both(first, first)
    turned = PLAIN, TRANSPOSED
    columns.subtract(change_diagonal, (rows, size, first), left, change_left, turned)
    columns.subtract(change_diagonal, (rows, size, first), change_left, left, turned)
    columns.diagonal_block(_tangent_of_block, diagonal, change_diagonal, size)
    if below == 0:
        return
    under, change_under = columns.both(next_, first)
    columns.subtract(change_under, (below, size, size), under, change_diagonal, turned)
    columns.divide(change_under, below, diagonal, size, TRANSPOSED)


def _adjoint_of_columns(columns: _Columns, first: Index, size: int) -> None:
    function, n = columns.function, columns.n
    below, next_ = function.minus(n - size, first), function.plus(first, size)
    left, ct_left = columns.both(first, 0)
    diagonal, ct_diagonal = columns.both(first, first)
    if below != 0:
        (under, ct_under), (corner, ct_corner) = columns.both(next_, first), columns.both(next_, 0)
        plain, turned = (PLAIN, PLAIN), (TRANSPOSED, PLAIN)
        columns.divide(ct_under, below, diagonal, size, PLAIN)                                    # C̄ = C̄ D⁻¹
        columns.subtract(ct_corner, (below, first, size), ct_under, left, plain)                  # B̄ -= C̄ R
        columns.subtract(ct_diagonal, (size, size, below), ct_under, under, turned)               # D̄ -= C̄ᵀ C
        columns.subtract(ct_left, (size, first, below), ct_under, corner, turned)                 # R̄ -= C̄ᵀ B
    columns.diagonal_block(_adjoint_of_block, diagonal, ct_diagonal, size)
    both = _Part(columns.block.sum_with_transpose(size), columns.block.width)                     # R̄ -= (D̄ + D̄ᵀ) R
    columns.subtract(ct_left, (size, first, size), both, left, (PLAIN, PLAIN))


# ----- of one block
class _Block:
    """n rows of a factor and of its derivative, with zeros above the diagonal, in local memory with rows of `width` elements.

    While it is computed, elements of the derivative above the diagonal may be garbage.
    """

    def __init__(self, function: FunctionText, n: int) -> None:
        self.function, self.n = function, n
        self.width = 1 << (n - 1).bit_length() if n else 1
        self.vector = function.row(self.width)
        self.factor, self.derivative = (function.slot(f"[{n * self.width} x {function.real}], align 64") for _ in range(2))
        self.columns = [function.slot(f"{self.vector}, align 64") for _ in range(2)]

    def of(self, n: int) -> _Block:
        """The same memory for fewer rows."""
        block = copy.copy(self)
        block.n = n
        return block

    def read(self, factor: str, factor_strides: Sequence[int], derivative: str, strides: Sequence[int]) -> None:
        function = self.function
        for i in function.each(0, self.n):
            for target, source, (down, right) in ((self.factor, factor, factor_strides), (self.derivative, derivative, strides)):
                place, first = self.at(target, i, 0), function.at(source, (i, down))
                if right == 1:
                    function.copy_elements(first, place, self.n)
                else:
                    function.copy((self.n,), first, (right,), place, (1,))
                self._clear_after(place, i)

    def write(self, target: str, lead: int) -> None:
        """The derivative, into a matrix; above the diagonal are zeros."""
        function = self.function
        for i in function.each(0, self.n):
            place = self.at(self.derivative, i, 0)
            self._clear_after(place, i)
            function.copy_elements(place, function.at(target, (i, lead)), self.n)

    def _clear_after(self, row: str, column: Index) -> None:
        kept = self.before(self.load(row), self.function.plus(column, 1)) if self.width > 1 else self.load(row)
        self.function.do(f"store {self.vector} {kept}, ptr {row}, align {self.align}")

    @property
    def align(self) -> int:
        return min(64, self.width * self.function.element_bytes)

    def at(self, matrix: str, row: Index, column: Index) -> str:
        return self.function.at(matrix, (row, self.width), (column, 1))

    # ----- rows as vectors
    def row(self, matrix: str, row: Index) -> str:
        return self.load(self.at(matrix, row, 0))

    def load(self, place: str) -> str:
        return self.function.let(f"load {self.vector}, ptr {place}, align {self.align}")

    def store_row(self, value: str, matrix: str, row: Index) -> None:
        self.function.do(f"store {self.vector} {value}, ptr {self.at(matrix, row, 0)}, align {self.align}")

    def minus_scaled(self, x: str, factor: str, y: str) -> str:
        """x - factor * y, of vectors and a number."""
        product = self.function.let(f"fmul {self.vector} {self.function.row_of(factor, self.width)}, {y}")
        return self.function.let(f"fsub {self.vector} {x}, {product}")

    def before(self, x: str, column: Index) -> str:
        """The elements of a row that are left of a column, zeros elsewhere."""
        function = self.function
        if self.width == 1:                                  # a matrix of one element
            return "0.0"
        numbers = ", ".join([f"i64 {k}" for k in range(self.width)])
        kept = function.let(f"icmp slt <{self.width} x i64> <{numbers}>, {function.row_of(str(column), self.width, 'i64')}")
        return function.let(f"select <{self.width} x i1> {kept}, {self.vector} {x}, {self.vector} zeroinitializer")

    def sum_with_transpose(self, n: int) -> str:
        """D̄ + D̄ᵀ, in the memory of the factor."""
        function = self.function
        for i in function.each(0, n):
            for j in function.each(0, function.plus(i, 1)):
                element = function.load(self.at(self.derivative, i, j))
                function.store(element, self.at(self.factor, i, j))
                function.store(element, self.at(self.factor, j, i))
            place = self.at(self.factor, i, i)
            function.store(function.arithmetic("fmul", function.load(place), "2.0"), place)
        return self.factor


def _tangent_of_block(function: FunctionText, block: _Block) -> None:
    """Column by column; c is the column below the diagonal element d.  What is right of it: dX -= dc cᵀ + c dcᵀ."""
    column, change = block.columns
    for place in block.columns:
        function.do(f"store {block.vector} zeroinitializer, ptr {place}, align {block.align}")
    for j in function.each(0, block.n):
        d, dd = function.load(block.at(block.factor, j, j)), block.at(block.derivative, j, j)
        function.divide(dd, d)
        change_d = function.arithmetic("fmul", function.load(dd), "0.5")                   # dd = dx / (2 d)
        function.store(change_d, dd)
        for place in block.columns:
            function.store("0.0", function.at(place, (j, 1)))
        for i in function.each(function.plus(j, 1), block.n):                              # dc = (dx - c dd) / d
            c, place = function.load(block.at(block.factor, i, j)), block.at(block.derivative, i, j)
            function.subtract_product(place, c, dd)
            function.divide(place, d)
            function.store(c, function.at(column, (i, 1)))
            function.store(function.load(place), function.at(change, (i, 1)))
        columns = [block.load(place) for place in block.columns]
        for i in function.each(function.plus(j, 1), block.n):
            row = block.row(block.derivative, i)
            for matrix, vector in ((block.derivative, columns[0]), (block.factor, columns[1])):
                row = block.minus_scaled(row, function.load(block.at(matrix, i, j)), vector)
            block.store_row(row, block.derivative, i)


def _adjoint_of_block(function: FunctionText, block: _Block) -> None:
    """Column by column from the last; c is the column below the diagonal element d, r the row left of it, B the rows below r."""
    total = block.columns[0]
    for j in function.each(0, block.n, down=True):
        place = block.at(block.derivative, j, j)
        d = function.load(block.at(block.factor, j, j))
        for i in function.each(function.plus(j, 1), block.n):                              # c̄ = c̄ / d,  d̄ -= cᵀ c̄ / d
            below = block.at(block.derivative, i, j)
            function.divide(below, d)
            function.subtract_product(place, function.load(below), block.at(block.factor, i, j))
        function.divide(place, d)
        r = block.before(block.row(block.factor, j), j)
        function.do(f"store {block.vector} {block.row(block.derivative, j)}, ptr {total}, align {block.align}")
        for i in function.each(function.plus(j, 1), block.n):                              # r̄ -= c̄ᵀ B,  B̄ -= c̄ r
            ct_c = function.load(block.at(block.derivative, i, j))
            found = block.minus_scaled(block.load(total), ct_c, block.row(block.factor, i))
            function.do(f"store {block.vector} {found}, ptr {total}, align {block.align}")
            block.store_row(block.minus_scaled(block.row(block.derivative, i), ct_c, r), block.derivative, i)
        ct_d = function.load(place)
        block.store_row(block.minus_scaled(block.load(total), ct_d, r), block.derivative, j)               # r̄ -= d̄ r
        function.store(function.arithmetic("fmul", ct_d, "0.5"), place)
