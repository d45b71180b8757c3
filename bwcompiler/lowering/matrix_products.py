"""Matrix products as functions of a program: small ones are written out, those of floats are calls of `products`, those of complex
numbers calls of BLAS (gemm, and gemv where one side is a vector).

Any call costs more than a small product does: such a one is a row of the result at a time, in a vector.
Operands are read where they lie (`ArrayView`): transposed, sliced, with batch axes in any order or not there at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bwcompiler.errors import CompileError, InternalError, at
from bwcompiler.ir.access import ArrayView, contiguous_strides, matrix_order
from bwcompiler.ir.extent import Extent, element_count, lower, upper
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import component_of
from bwcompiler.lowering.function_text import FunctionText, merged_axes
from bwcompiler.lowering.library_calls import Libraries, blas_symbol
from bwcompiler.lowering.llvm_scalars import memory_type
from bwcompiler.lowering.parallel_calls import DECLARE_PARALLEL, PARALLEL
from bwcompiler.lowering.polls import product_work
from bwcompiler.lowering.products import call

# BLAS runs on one thread between these (`runtime/blas_calls.py`): its own threads would fight the pool's.
ENTER_BLAS, LEAVE_BLAS = "bw_blas_enter", "bw_blas_leave"
LEAST_WORK = 1 << 15           # operations of a product that is cut among threads, counted as `product_work` does
GRAIN_WORK = 1 << 13           # of a part, at least
BATCH_PARTS = 8                # batches of so many matrices are cut into matrices
TILE = 32                      # rows and columns are cut at multiples of this

_ROW_MAJOR, _PLAIN, _TRANSPOSED = "i32 101", "i32 111", "i32 112"       # the enumerations of cblas


SMALL_COMPLEX = 512            # multiplications of a product of complex matrices for which BLAS is not called


def is_written_out(value: Value) -> bool:
    """Whether a matrix product is small enough to be computed by instructions of the program itself."""
    rows, columns = value.shape[-2:]
    inner = value.operands[0].shape[-1]
    if value.dtype.kind != "f" or not inner or not all(isinstance(extent, int) for extent in (*value.shape, inner)):
        return False
    if columns == 1:
        return bool(rows <= 8 and inner <= 8)
    return bool(columns <= 32 and (inner * columns <= 64 or (inner <= 32 and rows * inner * columns <= 4096)))


def is_called(value: Value, libraries: Libraries) -> bool:
    """Whether a matrix product that is not written out is a call; loops compute the others, among them small ones of complex numbers."""
    if value.dtype in call.DTYPES:
        return True
    if value.type.size * upper(value.operands[0].shape[-1]) <= SMALL_COMPLEX:
        return False
    return libraries.blas("gemm", value.dtype) is not None and libraries.blas("gemv", value.dtype) is not None


def product_method(value: Value) -> str:
    """How a matrix product that is no loop is computed, for people."""
    if is_written_out(value):
        return "matrix product, written out"
    return "matrix product in tiles" if value.dtype in call.DTYPES else "library call: matrix product by BLAS"


class _Matrix(NamedTuple):
    """A matrix as cblas addresses it: `pointer` to its first element, rows `leading` elements apart, maybe transposed."""

    pointer: str
    rows: Extent | str
    columns: Extent | str
    transposed: bool
    leading: int

    @property
    def flag(self) -> str:
        return _TRANSPOSED if self.transposed else _PLAIN


class ProductText(NamedTuple):
    """The function, the declarations of what it calls, the extents that it is told (those that move with a loop), and whether it looks for
    signals and returns a status."""

    text: str
    declares: Sequence[str]
    words: Sequence[Extent]
    status: bool = False


def product_text(name: str, value: Value, views: Sequence[ArrayView], libraries: Libraries) -> ProductText:
    """`void name(a, b, c, extents)`, or i32: row-major C = A B for every batch element."""
    *batch, m, n = value.shape
    if not all(isinstance(extent, int) for extent in batch):
        raise CompileError(at(value.source, f"a batch of matrix products whose number moves with the index of a loop ({value.type}) is not "
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
        return ProductText(_written_out(name, value, views), [], words)
    if value.dtype in call.DTYPES:
        return _call_text(name, value, views, words)
    product = _Product(name, value, views, libraries, words)
    return ProductText(*product.text(), words)


def _call_text(name: str, value: Value, views: Sequence[ArrayView], words: Sequence[Extent]) -> ProductText:
    """A call of `products`, which is told everything as numbers."""
    numbers, axes = _numbers(value, views)
    told = {extent: f"%e{number}" for number, extent in enumerate(words)}
    rows = ["%a", "%b", "%c", *[str(told.get(number, number)) for number in numbers], str(len(axes))]
    for extent, steps in axes:
        rows += map(str, (extent, *steps))
    status = value.type.size * upper(value.operands[0].shape[-1]) >= call.POLL_WORK
    parameters = ", ".join(["ptr noalias %a", "ptr noalias %b", "ptr noalias %c", *[f"i64 {register}" for register in told.values()]])
    lines = [f"define internal {'i32' if status else 'void'} @{name}({parameters}) #1 {{", f"  %words = alloca [{len(rows)} x i64]"]
    for number, row in enumerate(rows):
        type_ = "i64" if number >= len("abc") else "ptr"
        lines += [f"  %at{number} = getelementptr i64, ptr %words, i64 {number}", f"  store {type_} {row}, ptr %at{number}"]
    lines += [f"  %status = call i32 @{call.symbol(value.dtype)}(ptr %words)", f"  ret {'i32 %status' if status else 'void'}", "}", ""]
    return ProductText("\n".join(lines), [f"declare i32 @{call.symbol(value.dtype)}(ptr)"], words, status)


def _numbers(value: Value, views: Sequence[ArrayView]) -> tuple[list[Extent], list[tuple[int, tuple[int, ...]]]]:
    """Extents and strides of the matrices (`call.WORDS` behind the pointers), and (extent, strides) of the batch axes.

    A batch of matrices that lie below one another, and are multiplied with the same one, are one matrix.
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


class _Product:
    """The function of a product by BLAS: for large ones a function that hands parts of it to the thread pool, and one for a part.

    cut   what the parts are: some of the "batch", "rows" or "columns" of the results; None: it is not cut.
    """

    def __init__(self, name: str, value: Value, views: Sequence[ArrayView], libraries: Libraries, words: Sequence[Extent]) -> None:
        self.name = name
        self.value = value
        self.views = views
        self.libraries = libraries
        self.words = words
        self.batch = value.shape[:-2]
        self.count = element_count(self.batch)
        self.cut, self.parts, self.grain = self._cut()

    def _cut(self) -> tuple[str | None, int, int]:
        """What to cut, how many of it there are, how many at least make a part."""
        rows, columns = [upper(extent) for extent in self.value.shape[-2:]]
        work = product_work(self.value.type.size, upper(self.value.operands[0].shape[-1]))
        if work < LEAST_WORK or self.words:
            return None, 0, 0
        if self.count >= BATCH_PARTS:
            return "batch", self.count, max(1, GRAIN_WORK * self.count // work)
        kind, parts = ("rows", rows) if rows >= columns else ("columns", columns)
        grain = max(1, GRAIN_WORK * parts * self.count // work)
        return kind, parts, -(-grain // TILE) * TILE

    def text(self) -> tuple[str, list[str]]:
        """The functions, and the declarations of what they call."""
        parameters = ["ptr noalias %a", "ptr noalias %b", "ptr noalias %c", *[f"i64 %e{k}" for k in range(len(self.words))]]
        body, declares = self._calls()
        if self.words:
            declares.append("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        alone, shared = self._one_thread(declares)
        if self.cut is None:
            head = f"define internal void @{self.name}({', '.join(parameters)}) #1 {{\nentry:\n"
            return f"{head}{_clear_if_empty(self.value, self.words)}{alone}{body}{shared}  ret void\n}}\n", declares
        whole = f"""define internal void @{self.name}({', '.join(parameters)}) #1 {{
entry:
  %block = alloca [3 x ptr]
  %at1 = getelementptr ptr, ptr %block, i64 1
  %at2 = getelementptr ptr, ptr %block, i64 2
  store ptr %a, ptr %block
  store ptr %b, ptr %at1
  store ptr %c, ptr %at2
{alone}  %done = call i32 @{PARALLEL}(ptr @{self.name}.part, ptr %block, i64 {self.parts}, i64 {self.grain})
{shared}  ret void
}}

define internal i32 @{self.name}.part(ptr %block, i64 %begin, i64 %end) #1 {{
entry:
  %at1 = getelementptr ptr, ptr %block, i64 1
  %at2 = getelementptr ptr, ptr %block, i64 2
  %a.whole = load ptr, ptr %block
  %b.whole = load ptr, ptr %at1
  %c.whole = load ptr, ptr %at2
{self._part()}{body}  ret i32 0
}}
"""
        return whole, [*declares, DECLARE_PARALLEL]

    def _part(self) -> str:
        """Where the operands and the result of a part begin, and how many rows or columns it has."""
        size = self.value.dtype.itemsize
        steps = {"rows": (self.views[0].strides[-2], 0, max(upper(self.value.shape[-1]), 1)), "columns": (0, self.views[1].strides[-1], 1),
                 "batch": (0, 0, 0)}[self.cut or "batch"]
        lines = "".join([f"  %{letter}.step = mul i64 %begin, {step * size}\n  %{letter} = getelementptr i8, ptr %{letter}.whole, "
                         f"i64 %{letter}.step\n" for letter, step in zip("abc", steps, strict=True)])
        return lines + f"  %many = sub i64 %end, %begin\n  %number = {_as_integer(self.libraries)} i64 %many to {self.libraries.integer}\n"

    def _calls(self) -> tuple[str, list[str]]:
        """One call of BLAS per matrix of the batch, each on one thread; and the declarations."""
        value, libraries = self.value, self.libraries
        left, right = [_matrix(letter, view, operand) for letter, view, operand in zip("ab", self.views, value.operands, strict=True)]
        if self.cut == "rows":
            left = left._replace(rows="%number")
        elif self.cut == "columns":
            right = right._replace(columns="%number")
        told: dict[Extent | str, str] = {extent: f"%n{number}" for number, extent in enumerate(self.words)}
        casts = "".join([f"  {register} = {_as_integer(libraries)} i64 %e{number} to {libraries.integer}\n"
                         for number, register in enumerate(told.values())])
        routine, arguments = _routine(value, left, right, libraries, told)
        first, last = ("%begin", "%end") if self.cut == "batch" else ("0", str(self.count))
        places = "".join([_batch_pointer(letter, strides[:-2], self.batch, value.dtype.itemsize) for letter, strides in zip(
            "abc", (*[view.strides for view in self.views], contiguous_strides(value.shape)), strict=True)])
        declares = [f"declare void @{routine}({', '.join([argument.split()[0] for argument in arguments])})"]
        return f"""{_factors(value)}{casts}  br label %start
start:
  br label %head
head:
  %i = phi i64 [ {first}, %start ], [ %next, %head ]
{places}  call void @{routine}({', '.join(arguments)})
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, {last}
  br i1 %more, label %head, label %exit
exit:
""", declares

    def _one_thread(self, declares: list[str]) -> tuple[str, str]:
        """What runs before the calls, and after them."""
        if ENTER_BLAS not in self.libraries.symbols:
            return "", ""
        declares += [f"declare void @{ENTER_BLAS}()", f"declare void @{LEAVE_BLAS}()"]
        return f"  call void @{ENTER_BLAS}()\n", f"  call void @{LEAVE_BLAS}()\n"


def _as_integer(libraries: Libraries) -> str:
    return "trunc" if libraries.integer == "i32" else "bitcast"


def _clear_if_empty(value: Value, words: Sequence[Extent]) -> str:
    """gemv leaves the result as it was where there is nothing to sum."""
    inner = value.operands[0].shape[-1]
    if isinstance(inner, int) or lower(inner) > 0:
        return ""
    return f"""  %empty = icmp eq i64 %e{words.index(inner)}, 0
  br i1 %empty, label %clear, label %full
clear:
  call void @llvm.memset.p0.i64(ptr %c, i8 0, i64 {value.type.nbytes}, i1 false)
  ret void
full:
"""


def _written_out(name: str, value: Value, views: Sequence[ArrayView]) -> str:
    *batch, rows, columns = value.shape
    inner = value.operands[0].shape[-1]
    function = FunctionText(name, ["a", "b", "c"], memory_type(value.dtype))
    strides = [*[view.strides for view in views], contiguous_strides(value.shape)]
    arrays = [(f"%{letter}", 0, steps[:-2]) for letter, steps in zip("abc", strides, strict=True)]
    unroll = rows * inner <= 64
    for a, b, c in function.batch(batch, arrays):
        (down, right), (below, beside) = strides[0][-2:], strides[1][-2:]
        if columns > 1 and beside != 1:                            # rows of b side by side
            packed = function.slot(f"[{inner * columns} x {function.real}]")
            function.copy((inner, columns), b, (below, beside), packed, (columns, 1))
            b, below = packed, columns
        for i in function.each(0, rows, unroll):
            total = ""
            for k in range(inner):
                factor = function.load(function.at(a, (i, down), (k, right)))
                product = function.scaled_row(factor, function.at(b, (k, below)), columns)
                total = product if not total else function.let(f"fadd {function.row(columns)} {total}, {product}")
            function.do(f"store {function.row(columns)} {total}, ptr {function.at(c, (i, columns))}, align {value.dtype.itemsize}")
    return function.text()


def _matrix(letter: str, view: ArrayView, operand: Value) -> _Matrix:
    rows, columns = operand.shape[-2:]
    order = matrix_order(view, rows, columns)
    if order is None:
        raise InternalError(f"{operand} has a layout that BLAS does not take")
    return _Matrix(f"ptr %p{letter}", rows, columns, *order)


def _routine(value: Value, left: _Matrix, right: _Matrix, libraries: Libraries, words: Mapping[Extent | str, str]) -> tuple[str, list[str]]:
    """The routine for one product of the batch and its arguments; words: the registers of extents that the function is told."""
    integer = libraries.integer
    one, zero = f"{memory_type(value.dtype)} 1.0", f"{memory_type(value.dtype)} 0.0"
    if value.dtype.is_complex:
        one, zero = "ptr %one", "ptr %zero"
    if right.columns == 1 or left.rows == 1:                       # y = A x, or y = B^T x
        matrix, vector = (left, right) if right.columns == 1 else (right, left)
        flip = matrix.transposed if matrix is left else not matrix.transposed
        shape = (matrix.columns, matrix.rows) if matrix.transposed else (matrix.rows, matrix.columns)
        extents = [f"{integer} {words.get(extent, extent)}" for extent in shape]
        return blas_symbol("gemv", value.dtype), [
            _ROW_MAJOR, _TRANSPOSED if flip else _PLAIN, *extents, one, matrix.pointer,
            f"{integer} {matrix.leading}", vector.pointer, f"{integer} {_spacing(vector)}", zero, "ptr %pc", f"{integer} 1"]
    extents = [f"{integer} {words.get(extent, extent)}" for extent in (left.rows, right.columns, left.columns)]
    return blas_symbol("gemm", value.dtype), [
        _ROW_MAJOR, left.flag, right.flag, *extents, one, left.pointer, f"{integer} {left.leading}", right.pointer,
        f"{integer} {right.leading}", zero, "ptr %pc", f"{integer} {max(upper(value.shape[-1]), 1)}"]


def _factors(value: Value) -> str:
    """1 and 0 in memory, from where BLAS takes complex factors."""
    if not value.dtype.is_complex:
        return ""
    type_, part = memory_type(value.dtype), memory_type(component_of(value.dtype))
    return "".join([f"  %{name} = alloca {type_}\n  store {type_} [{part} {real}, {part} 0.0], ptr %{name}\n"
                    for name, real in (("one", "1.0"), ("zero", "0.0"))])


def _spacing(vector: _Matrix) -> int:
    """How many elements apart the entries of a vector lie."""
    along_rows = vector.columns == 1                               # a column: one entry per row
    return vector.leading if along_rows != vector.transposed else 1


def _batch_pointer(letter: str, strides: Sequence[int], batch: Sequence[int], size: int) -> str:
    """%p<letter>: where matrix number %i of a batch starts; batch axes of one common stride are one axis."""
    axes: list[tuple[int, int]] = []                      # (extent, stride), innermost first
    for extent, stride in zip(reversed(batch), reversed(strides), strict=True):
        if extent == 1:
            continue
        if axes and stride == axes[-1][0] * axes[-1][1]:
            axes[-1] = (axes[-1][0] * extent, axes[-1][1])
        else:
            axes.append((extent, stride))
    lines, rest, place = [], "%i", "0"
    for k, (extent, stride) in enumerate(axes):
        here = rest
        if k < len(axes) - 1:
            lines += [f"%{letter}{k}.index = urem i64 {rest}, {extent}", f"%{letter}{k}.rest = udiv i64 {rest}, {extent}"]
            here, rest = f"%{letter}{k}.index", f"%{letter}{k}.rest"
        lines += [f"%{letter}{k}.step = mul i64 {here}, {stride * size}", f"%{letter}{k}.at = add i64 {place}, %{letter}{k}.step"]
        place = f"%{letter}{k}.at"
    lines.append(f"%p{letter} = getelementptr i8, ptr %{letter}, i64 {place}")
    return "".join([f"  {line}\n" for line in lines])
