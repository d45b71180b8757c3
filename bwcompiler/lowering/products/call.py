"""The entry points of matrix products, and their division among threads.

    i32 bw_product_T(a, b, c, words)                                      T is f32, f64, c64, c128; the status is 0 or that of `bw_poll`
    i32 bw_product_alone_T(a, b, c, words)                                one matrix, in the calling thread: some rows of a large product
    i32 product.part(call, begin, end)                                    some of the parts of a product, in a thread of the pool
    i32 product.matrix(words, a, b, c, rows, columns, call)               these rows and columns of one matrix of a batch

`words` is an array of i64, a constant of the program if all are known: WORDS, then AXIS_WORDS for each batch axis, the innermost one
last; strides are in elements, and the column stride of the result is 1; `add` is 1 if the product is added to the result, else 0;
`ready` is 1 if b need not be packed: its columns are contiguous, its rows in different cache sets, and vectors can be read at their end.
`call` is an array too (`_CALL`).  A part is a block of rows and columns of one matrix, or whole matrices.  The bits of the result do not
depend on the division.  Extents may be 0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from bwcompiler.ir.contracts.program_interface import PARALLEL, POLL
from bwcompiler.ir.extent import Extent, upper
from bwcompiler.ir.types import C64, C128, F32, F64, DType, dtype_named
from bwcompiler.lowering.function_text import Index
from bwcompiler.lowering.products.routine import VECTOR_FUNCTIONS, Routine, Tiling

DTYPES = (F32, F64, C64, C128)
WORDS = ("m", "n", "k", "a.row", "a.column", "b.row", "b.column", "c.row", "add", "ready", "axes")
AXIS_WORDS = ("extent", "a", "b", "c")
SET_STRIDE = 4096              # row stride in bytes at which all rows of a tile map to one set of the L1 cache
POLL_WORK = 1 << 24            # about the multiplications between polls for signals; smaller products do not poll

_CALL = ("words", "a", "b", "c", "row.tiles", "column.tiles", "row.parts", "column.parts", "status", "first")
_LEAST_WORK = 1 << 20          # least multiplications of a product that is divided among threads,
_PART_WORK = 1 << 18           # and of a part
_WIDE_EXTENT = 192             # rows and columns of a part for which packing takes little time;
_FEW_PARTS = 8                 # if that gives fewer parts, the longer side is divided further,
_PART_EXTENT = 48              # into parts of at least this many rows or columns
_PART_ELEMENTS = 32            # least elements of a part of a matrix-vector product
_LEAST_MATRICES = 8            # a batch of at least this many matrices is divided into matrices
_HUGE_WORK = 1 << 27           # multiplications that take longer in one thread than compiling the thread pool,
_MANY_ELEMENTS = 1 << 22       # and elements that take longer to pack one by one than compiling the transposing copy
_CHUNK_WORK = 1 << 34          # multiplications and parts of one parallel region: while it waits for other threads, the calling
_CHUNK_PARTS = 32              # thread does not poll for signals


VECTOR, TURNED, LONG, LARGE, HUGE, MANY = "vector", "turned", "long", "large", "huge", "many"      # words of `Needs`, besides "RxC"
_TOLD = ("ptr a", "ptr b", "ptr c", "ptr words")
_SYMBOL = re.compile(r"bw_product_(alone_)?([a-z]+\d+)((?:\.\w+)*)")

Needs = tuple[str, ...]
"""The parts that a product needs besides those of all products.  Empty: any part, as its sizes are known only when it is called.

    RxC      tiles for R rows and C columns                vector   the code of `vectors.py`
    turned   transposing copies, for packing               large    threads, and polls for signals
    long     transposing copies, as long rows of the result require packing of a
    huge     threads already at the first call             many     transposing copies already at the first call (`parts.later_for`)
"""


def symbol(dtype: DType, needs: Needs = (), alone: bool = False) -> str:
    """The name of the function that programs call.  alone: for loops whose iterations are already divided among threads.

    It includes the product's needs, so that a program's text shows which parts must be compiled (`parts.py`); the function is the same.
    """
    return ".".join([f"bw_product_{'alone_' if alone else ''}{dtype.name}", *needs])


def call_text(symbol: str, matrices: Sequence[str], words: str) -> str:
    """A call of such a function; the registers hold the addresses of the matrices."""
    return f"call i32 @{symbol}({', '.join([f'ptr {register}' for register in (*matrices, words)])})"


def declaration(symbol: str) -> str:
    return f"declare i32 @{symbol}({', '.join(['ptr'] * len(_TOLD))})"


def constant_words(words: Sequence[object]) -> tuple[str, str] | None:
    """The name and definition of constant words; equal words have equal names.  None if some depend on loop indices."""
    if not all(isinstance(word, int) for word in words):
        return None
    name = f"@product.words.{'.'.join(map(str, words)).replace('-', 'm')}"
    return name, f"{name} = internal constant [{len(words)} x i64] [{', '.join([f'i64 {word}' for word in words])}]"


class Named(NamedTuple):
    """The contents of such a name."""

    dtype: DType
    needs: Needs
    alone: bool


def named(symbol: str) -> Named | None:
    """The contents of the name of a product; None for other names."""
    found = _SYMBOL.fullmatch(symbol)
    return None if found is None else Named(dtype_named(found[2]), tuple(found[3].split(".")[1:]), bool(found[1]))


class Shape(NamedTuple):
    """The numbers of a product that determine its needs: extents, strides of rows and columns of a and b, and of rows of c."""

    rows: Extent
    columns: Extent
    terms: Extent
    a: tuple[Extent, Extent]
    b: tuple[Extent, Extent]
    c_row: Extent


def needs_of(shape: Shape, dtype: DType, matrices: int = 1, adds: bool = False, alone: bool = False) -> Needs:
    """The needs of a product with known numbers."""
    rows, columns, terms, a, b, c_row = shape
    if not all(isinstance(number, int) for number in (rows, columns, *a, *b, c_row)):
        return ()
    work = upper(rows) * upper(columns) * upper(terms) * matrices * (4 if dtype.is_complex else 1)
    elements = (upper(rows) + upper(columns)) * upper(terms) * matrices
    sizes = (LARGE, work, POLL_WORK if alone else _LEAST_WORK), (HUGE, work, _HUGE_WORK), (MANY, elements, _MANY_ELEMENTS)
    large = [name for name, size, least in sizes if size >= least]
    vector = a if columns == 1 and c_row == 1 else b               # as `_by_vectors` decides
    if 1 in (rows, columns) and not adds and 1 in vector and (rows == 1 or c_row == 1):
        return (VECTOR, *large)
    along = a[0] != 1 and a[1] == 1
    turned = dtype.is_complex or (b[0] == 1 and b[1] != 1) or (along and upper(a[0]) * dtype.itemsize % SET_STRIDE == 0)
    return (f"{rows}x{columns}", *([TURNED] if turned else [LONG] if along else []), *large)


def word(f: Routine, words: str, name: str) -> str:
    return f.get(f.let(f"getelementptr i64, ptr {words}, i64 {WORDS.index(name)}"))


def stride(f: Routine, name: str) -> Index:
    """In bytes: of rows of a and c from one to the next; of columns of a, and of b, per real number that they have in the product of reals
    (which is half of a complex number: steps of those are even)."""
    whole = name in ("a.row", "c.row")
    return f.times(word(f, "%words", name), f.tiling.size * (f.tiling.parts if whole else 1))


def look(f: Routine) -> str:
    """Poll for signals, also for those that another thread found; returns the status and stores it for the others."""
    place = _of_call(f, "status")
    known = f.let(f"load atomic i64, ptr {place} monotonic, align 8")
    poll = f.entry(POLL)
    asks = f.let(f"icmp ne ptr {poll}, null")
    for _ in f.when(f.let(f"and i1 {f.compare('eq', known, 0)}, {asks}")):
        found = f.let(f"call i32 {poll}()")
        for _ in f.when(f.let(f"icmp ne i32 {found}, 0")):
            f.do(f"store atomic i64 {f.let(f'zext i32 {found} to i64')}, ptr {place} monotonic, align 8")
    after = f.let(f"load atomic i64, ptr {place} monotonic, align 8")
    return f.let(f"trunc i64 {after} to i32")


def _of_call(f: Routine, name: str) -> str:
    return f.let(f"getelementptr i64, ptr %call, i64 {_CALL.index(name)}")


def call_texts(tiling: Tiling) -> list[Routine]:
    """The functions that all products need."""
    return [_matrix(tiling), _alone(tiling)]


def cutting_texts(tiling: Tiling) -> list[Routine]:
    """The functions for products that may be divided, and for batches."""
    return [_part(tiling), _entry(tiling)]


def _matrix(tiling: Tiling) -> Routine:
    """Matrix-vector products with contiguous rows or columns by `vectors.py`; others blocked."""
    f = Routine(tiling, "product.matrix", ["ptr words", "ptr a", "ptr b", "ptr c", "i64 rows", "i64 columns", "ptr call"], "i32")
    _by_vectors(f)
    status = f.let("call i32 @product.blocked(ptr %words, ptr %a, ptr %b, ptr %c, i64 %rows, i64 %columns, ptr %call)")
    f.do(f"ret i32 {status}")
    return f


def _by_vectors(f: Routine) -> None:
    """Compute a matrix-vector product and return, if it is one."""
    size, parts = f.tiling.dtype.itemsize, f.tiling.parts
    a_row, (a_column, b_row, b_column) = stride(f, "a.row"), [f.times(stride(f, name), parts) for name in ("a.column", "b.row", "b.column")]
    k = word(f, "%words", "k")
    one_column, one_row, together = [f.compare("eq", word(f, "%words", name), 1) for name in ("n", "m", "c.row")]
    one_column = f.let(f"and i1 {one_column}, {together}")
    stored = f.compare("eq", word(f, "%words", "add"), 0)
    rows, columns = [f.entry(name) for name in VECTOR_FUNCTIONS]
    stored = f.let(f"and i1 {stored}, {f.let(f'icmp ne ptr {rows}, null')}")
    for _ in f.when(f.let(f"and i1 {f.let(f'or i1 {one_column}, {one_row}')}, {stored}")):
        matrix, vector = f.pick(one_column, "%a", "%b", "ptr"), f.pick(one_column, "%b", "%a", "ptr")
        row, column = f.pick(one_column, a_row, b_column), f.pick(one_column, a_column, b_row)
        step, count = f.pick(one_column, b_row, a_column), f.pick(one_column, "%rows", f.quotient("%columns", parts))
        for _ in f.when(f.compare("eq", column, size)):
            done = f.let(f"call i1 {rows}(i64 {count}, i64 {k}, ptr {matrix}, i64 {row}, ptr {vector}, i64 {step}, ptr %c)")
            f.leave_if(done, "i32 0")
        by_columns = f.compare("eq", row, size)
        for _ in f.when(by_columns):
            f.do(f"call void {columns}(i64 {count}, i64 {k}, ptr {matrix}, i64 {column}, ptr {vector}, i64 {step}, ptr %c)")
        f.leave_if(by_columns, "i32 0")


def _part(tiling: Tiling) -> Routine:
    """Parts are numbered along rows, then columns, then matrices; consecutive parts of the same columns are one call."""

    def border(part: str, tiles: str, parts: str, unit: int, extent: Index) -> Index:
        """The border at which a part begins and the one before it ends."""
        return f.least(f.times(f.quotient(f.product(part, tiles), parts), unit), extent)

    f = Routine(tiling, "product.part", ["ptr call", "i64 begin", "i64 end"], "i32")
    words = f.get(_of_call(f, "words"), "ptr")
    f.do(f"%words = getelementptr i64, ptr {words}, i64 0")
    row_tiles, column_tiles, row_parts, column_parts = [f.get(_of_call(f, name)) for name in _CALL[4:8]]
    m, n, k = _extents(f)
    a, b, c = [f.get(_of_call(f, name), "ptr") for name in "abc"]
    a_row, b_column, c_row = [stride(f, name) for name in ("a.row", "b.column", "c.row")]
    work = f.most(f.quotient(f.product(f.product(m, n), k), f.product(row_parts, column_parts)), 1)
    is_vector = _is_vector(f, m, n)                                  # such parts do not poll for signals themselves
    most_run = f.pick(is_vector, f.most(f.quotient(POLL_WORK, work), 1), 1 << 62)
    first = f.get(_of_call(f, "first"))
    end = f.plus("%end", first)
    at, done = f.variable("i64", 0), f.variable("i64", 0)
    f.put(at, f.plus("%begin", first))
    for _ in f.repeat(lambda: f.compare("slt", f.get(at), end)):
        part = f.get(at)
        line = f.quotient(part, row_parts)
        row_part = f.minus(part, f.product(line, row_parts))
        matrix = f.quotient(line, column_parts)
        column_part = f.minus(line, f.product(matrix, column_parts))
        run = f.least(f.least(f.minus(row_parts, row_part), f.minus(end, part)), most_run)
        i, i_end = [border(str(place), row_tiles, row_parts, tiling.height, m) for place in (row_part, f.plus(row_part, run))]
        j, j_end = [border(str(place), column_tiles, column_parts, tiling.columns, n) for place in (column_part, f.plus(column_part, 1))]
        height, width = f.minus(i_end, i), f.minus(j_end, j)
        a_here, b_here, c_here = _matrix_of_batch(f, matrix, (a, b, c))
        c_here = f.moved(f.moved(c_here, f.product(c_row, i)), f.times(j, tiling.size))
        status = f.let(f"call i32 @product.matrix(ptr %words, ptr {f.moved(a_here, f.product(a_row, i))}, "
                       f"ptr {f.moved(b_here, f.product(b_column, j))}, ptr {c_here}, i64 {height}, i64 {width}, ptr %call)")
        f.leave_if(f.let(f"icmp ne i32 {status}, 0"), f"i32 {status}")
        f.put(at, f.plus(part, run))
        f.put(done, f.plus(f.get(done), f.product(work, run)))
        for _ in f.when(f.compare("sgt", f.get(done), POLL_WORK)):
            f.put(done, 0)
            seen = look(f)
            f.leave_if(f.let(f"icmp ne i32 {seen}, 0"), f"i32 {seen}")
    f.do("ret i32 0")
    return f


def _matrix_of_batch(f: Routine, number: str, pointers: tuple[str, str, str]) -> list[str]:
    """The addresses of the matrices with this batch number."""
    rest, places = f.variable("i64", number), [f.variable("ptr", pointer) for pointer in pointers]
    axes = word(f, "%words", "axes")
    for axis in f.each(0, axes, down=True):
        first = f.plus(f.times(axis, len(AXIS_WORDS)), len(WORDS))
        extent, *steps = [f.get(f.let(f"getelementptr i64, ptr %words, i64 {f.plus(first, k)}")) for k in range(len(AXIS_WORDS))]
        before = f.get(rest)
        left = f.quotient(before, extent)
        index = f.minus(before, f.product(left, extent))
        f.put(rest, left)
        for place, step in zip(places, steps, strict=True):
            f.put(place, f.moved(f.get(place, "ptr"), f.times(f.product(index, step), f.tiling.dtype.itemsize)), "ptr")
    return [f.get(place, "ptr") for place in places]


def _entry(tiling: Tiling) -> Routine:
    f = Routine(tiling, symbol(tiling.dtype), _TOLD, "i32")
    (m, n, k), axes = _extents(f), word(f, "%words", "axes")
    product = f.variable("i64", 1)
    for axis in f.each(0, axes):
        extent = f.get(f.let(f"getelementptr i64, ptr %words, i64 {f.plus(f.times(axis, len(AXIS_WORDS)), len(WORDS))}"))
        f.put(product, f.product(f.get(product), extent))
    matrices = f.get(product)
    f.do(f"%call = getelementptr i64, ptr {f.slot(f'[{len(_CALL)} x i64]')}, i64 0")
    one = f.product(f.product(m, n), k)
    large = f.compare("sge", f.product(one, matrices), _LEAST_WORK)
    row_parts, column_parts = _cut(f, m, n, one, f.let(f"and i1 {large}, {f.compare('slt', matrices, _LEAST_MATRICES)}"))
    numbers: list[Index] = [f.parts(m, tiling.height), f.parts(n, tiling.columns), row_parts, column_parts, 0, 0]
    for name in _CALL[:4]:
        f.put(_of_call(f, name), f"%{name}", "ptr")
    for name, number in zip(_CALL[4:], numbers, strict=True):
        f.put(_of_call(f, name), number)
    count = f.product(f.product(numbers[2], numbers[3]), matrices)
    parallel = f.entry(PARALLEL)
    alone = f.let(f"or i1 {f.let(f'icmp eq ptr {parallel}, null')}, {f.compare('slt', count, 2)}")
    alone = f.let(f"or i1 {f.let(f'xor i1 {large}, true')}, {alone}")
    for _ in f.when(alone):
        f.put(product, f.let(f"zext i32 {f.let(f'call i32 @product.part(ptr %call, i64 0, i64 {count})')} to i64"))
    f.leave_if(alone, f"i32 {f.let(f'trunc i64 {f.get(product)} to i32')}")
    work = f.most(f.quotient(one, f.product(row_parts, column_parts)), 1)
    grain = f.most(f.quotient(_PART_WORK, work), 1)
    chunk = f.most(f.quotient(_CHUNK_WORK, work), _CHUNK_PARTS)
    for number in f.each(0, f.parts(count, chunk)):
        first = f.product(number, chunk)
        f.put(_of_call(f, "first"), first)
        some = f.least(f.minus(count, first), chunk)
        status = f.let(f"call i32 {parallel}(ptr @product.part, ptr %call, i64 {some}, i64 {grain})")
        f.leave_if(f.let(f"icmp ne i32 {status}, 0"), f"i32 {status}")
        for _ in f.when(f.compare("sgt", number, 0)):
            seen = look(f)
            f.leave_if(f.let(f"icmp ne i32 {seen}, 0"), f"i32 {seen}")
    f.do("ret i32 0")
    return f


def _alone(tiling: Tiling) -> Routine:
    f = Routine(tiling, symbol(tiling.dtype, alone=True), _TOLD, "i32")
    m, n, _ = _extents(f)
    f.do(f"%call = getelementptr i64, ptr {f.slot(f'[{len(_CALL)} x i64]')}, i64 0")
    f.put(_of_call(f, "status"), 0)
    status = f.let(f"call i32 @product.matrix(ptr %words, ptr %a, ptr %b, ptr %c, i64 {m}, i64 {n}, ptr %call)")
    f.do(f"ret i32 {status}")
    return f


def _extents(f: Routine) -> tuple[str, Index, Index]:
    """Rows, columns and terms of the equivalent product of real matrices."""
    m, n, k = [word(f, "%words", name) for name in "mnk"]
    return m, f.times(n, f.tiling.parts), f.times(k, f.tiling.parts)


def _is_vector(f: Routine, m: Index, n: Index) -> str:
    return f.let(f"or i1 {f.compare('eq', m, 1)}, {f.compare('eq', n, f.tiling.parts)}")


def _cut(f: Routine, m: Index, n: Index, work: Index, wanted: str) -> tuple[Index, Index]:
    """The numbers of parts of rows and columns: powers of two, which most numbers of threads share evenly."""
    is_vector = _is_vector(f, m, n)
    most = f.pick(wanted, f.quotient(work, _PART_WORK), 1)
    wide, narrow = [f.pick(is_vector, _PART_ELEMENTS, extent) for extent in (_WIDE_EXTENT, _PART_EXTENT)]
    rows = _power(f, f.least(f.quotient(m, wide), most))
    columns = _power(f, f.least(f.quotient(n, wide), f.quotient(most, rows)))
    along_rows = f.compare("sge", m, n)
    longer, shorter = f.pick(along_rows, rows, columns), f.pick(along_rows, columns, rows)
    finer = f.least(f.quotient(f.most(m, n), narrow), f.quotient(f.least(most, _FEW_PARTS), shorter))
    longer = f.most(longer, _power(f, finer))
    return f.pick(along_rows, longer, shorter), f.pick(along_rows, shorter, longer)


def _power(f: Routine, number: Index) -> str:
    """The largest power of two that is at most number, or 1."""
    zeros = f.call("i64", "llvm.ctlz.i64", f"i64 {f.most(number, 1)}", "i1 false")
    return f.let(f"shl i64 1, {f.minus(63, zeros)}")
