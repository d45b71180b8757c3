"""The blocked product of two matrices: a block of b is packed, and tiles are computed from it.

    i32 product.blocked(words, a, b, c, rows, columns, call)
    product.block(k, a, a.row, a.column, packed.a, b, b.row, packed.b, packs.b, open, c, c.row, add, rows, columns, lowest)    a block

packed.a is null if rows of a are read in place; with at least `lowest` rows, at least one tile has the full height.

The loops go over blocks of columns, blocks of terms, and rows of tiles.  So the rows of a that a row of tiles reads stay in the L1 cache,
the block of b in the L2 cache, and c is written along its rows (the scheme of Goto and van de Geijn, "Anatomy of high-performance matrix
multiplication", 2008).  Operands are read in place if packing them costs more than it saves.  The order of additions depends neither on
the blocks of columns nor on packing.
"""

from __future__ import annotations

from collections.abc import Iterator

from bwcompiler.ir.contracts.program_interface import GIVE, TAKE
from bwcompiler.ir.products import BLOCK
from bwcompiler.lowering.function_text import Index
from bwcompiler.lowering.products.call import POLL_WORK, SET_STRIDE, look, stride, word
from bwcompiler.lowering.products.routine import STACK_BYTES, TALL, Routine, Tiling

MATRIX = ("ptr words", "ptr a", "ptr b", "ptr c", "i64 rows", "i64 columns", "ptr call")

_PACKED_BYTES = 1 << 20        # bytes of a block of b: about an L2 cache
_PACKED_TILES = 9              # b is packed for at least this many rows of tiles (or if its rows are not contiguous),
PACKED_PANELS = 16             # and rows of a for at least this many tiles in a row,
_FEW_PANELS = 4                # or this many, if all rows of a tile map to one set of the L1 cache
_POLL_TILES = 16               # rows of tiles between two polls for signals, in long products


def blocked_text(tiling: Tiling) -> Routine:
    """`product.blocked`, which loops over blocks."""
    return _Blocked(tiling).emit()


def block_texts(tiling: Tiling) -> list[Routine | str]:
    """`product.block`, and the table of tile heights."""
    first = [f"i8 {height}" for height in tiling.first_heights()]
    return [f"@tile.heights = internal constant [{len(first)} x i8] [{', '.join(first)}]\n", _block(tiling)]


_BLOCK = ("i64 k", "ptr a", "i64 a.row", "i64 a.column", "ptr packed.a", "ptr b", "i64 b.row", "ptr packed.b", "i1 packs.b", "i1 open",
          "ptr c", "i64 c.row", "i1 add", "i64 rows", "i64 columns", "i64 lowest")


def _block(tiling: Tiling) -> Routine:
    f = Routine(tiling, "product.block", _BLOCK)
    packs_a = f.let("icmp ne ptr %packed.a, null")
    for first, height in _rows_of_tiles(f):
        a, c = f.moved("%a", f.product("%a.row", first)), f.moved("%c", f.product("%c.row", first))
        for _ in f.when(packs_a):
            _pack_rows(f, height, a)
        a = f.pick(packs_a, "%packed.a", a, "ptr")
        a_row = f.pick(packs_a, tiling.size, "%a.row")
        a_column = f.pick(packs_a, f.times(height, tiling.size), "%a.column")
        for panel in f.each(0, f.parts("%columns", tiling.columns)):
            j = f.times(panel, tiling.columns)
            count = f.least(f.minus("%columns", j), tiling.columns)
            is_packed = f.let(f"or i1 %packs.b, {_is_broken(f, count, '%open')}")
            place = f.pick("%packs.b", f.product(f.times(j, tiling.size), "%k"), 0)
            b = f.pick(is_packed, f.moved("%packed.b", place), f.moved("%b", f.times(j, tiling.size)), "ptr")
            b_row = f.pick(is_packed, _spacing(f, count), "%b.row")
            f.do(f"call void @tile(i64 %k, ptr {a}, i64 {a_row}, i64 {a_column}, ptr {b}, i64 {b_row}, "
                 f"ptr {f.moved(c, f.times(j, tiling.size))}, i64 %c.row, i1 %add, i64 {height}, i64 {count})")
    return f


def _rows_of_tiles(f: Routine) -> Iterator[tuple[Index, Index]]:
    """(first row, rows) of tiles (see `Tiling.first_heights`)."""
    at = f.variable("i64", 0)
    for _ in f.repeat(lambda: f.compare("slt", f.get(at), "%rows")):
        first = f.get(at)
        left = f.minus("%rows", first)
        entry = f.pick(f.compare("slt", left, "%lowest"), left, 0)
        height = f.let(f"zext i8 {f.get(f.let(f'getelementptr i8, ptr @tile.heights, i64 {entry}'), 'i8')} to i64")
        yield first, height
        f.put(at, f.plus(first, height))


def _pack_rows(f: Routine, count: Index, source: str) -> None:
    """Pack the rows of a for one row of tiles."""
    size = f.tiling.size
    rest = f"ptr %packed.a, i64 {f.times(count, size)}"
    if not f.tiling.dtype.is_complex:
        f.do(f"call void @pack(i64 %k, i64 {count}, ptr {source}, i64 %a.row, i64 %a.column, {rest})")
        return
    for together in f.branches(f.compare("eq", "%a.column", size)):
        routine, number, step = ("pack", "%k", size) if together else ("pack.parts", f.quotient("%k", 2), f.times("%a.column", 2))
        f.do(f"call void @{routine}(i64 {number}, i64 {count}, ptr {source}, i64 %a.row, i64 {step}, {rest})")


def _spacing(f: Routine, columns: Index) -> str:
    """The row stride of a packed panel, in bytes."""
    return f.pick(f.compare("sgt", columns, f.tiling.lanes), 2 * f.tiling.vector_bytes, f.tiling.vector_bytes)


def _is_broken(f: Routine, columns: Index, is_open: str) -> str:
    """Whether a panel ends within a vector, and memory beyond it must not be read."""
    ends = f.let(f"and i1 {f.compare('ne', columns, f.tiling.columns)}, {f.compare('ne', columns, f.tiling.lanes)}")
    return f.let(f"and i1 {ends}, {is_open}")


class _Blocked:
    """The function under construction.  Registers are named after their contents; strides are in bytes (`call.stride`)."""

    def __init__(self, tiling: Tiling) -> None:
        f = self.f = Routine(tiling, "product.blocked", MATRIX, "i32")
        self.tiling = tiling
        self.k = f.times(word(f, "%words", "k"), tiling.parts)
        self.a_row, self.a_column, self.b_row, self.b_column, self.c_row = [
            stride(f, name) for name in ("a.row", "a.column", "b.row", "b.column", "c.row")]
        self.add = word(f, "%words", "add")
        many_tiles = f.compare("sgt", "%rows", (_PACKED_TILES - 1) * tiling.height)
        self.is_open = f.compare("eq", word(f, "%words", "ready"), 0)
        self.packs_b = f.let(f"or i1 {many_tiles}, {f.compare('ne', self.b_column, tiling.size)}")
        self.packs_b = f.let(f"and i1 {self.packs_b}, {self.is_open}")
        collides = f.compare("eq", f.let(f"and i64 {self.a_row}, {SET_STRIDE - 1}"), 0)
        panels = f.pick(collides, _FEW_PANELS, PACKED_PANELS)
        self.packs_a = f.compare("sgt", "%columns", f.times(f.minus(panels, 1), tiling.columns))
        if tiling.dtype.is_complex:
            self.packs_b = "true"
            self.packs_a = f.let(f"or i1 {self.packs_a}, {f.compare('ne', self.a_column, tiling.size)}")

    def emit(self) -> Routine:
        f = self.f
        self._find_memory()
        status = f.variable("i32", 0)
        polls = f.compare("sge", f.product(f.product("%rows", "%columns"), self.k), POLL_WORK)
        height = self.tiling.height
        tall = _POLL_TILES * height
        lowest = f.pick(f.compare("sge", word(f, "%words", "m"), TALL * height), height, 2 * height)
        full = f.quotient(f.most(f.minus("%rows", height), 0), tall)
        row_blocks = f.plus(full, 1)               # fewer rows than a tile are not a block of their own
        for column_block in f.each(0, f.parts("%columns", self.block_columns)):
            j0 = f.product(column_block, self.block_columns)
            columns = f.least(f.minus("%columns", j0), self.block_columns)
            for depth_block in f.each(0, f.most(f.parts(self.k, BLOCK), 1)):
                k0 = f.times(depth_block, BLOCK)
                terms = f.least(f.minus(self.k, k0), BLOCK)
                b = f.moved(f.moved("%b", f.product(self.b_column, j0)), f.product(self.b_row, k0))
                self._pack_columns(b, columns, terms)
                add = f.compare("sgt", f.plus(depth_block, self.add), 0)
                for row_block in f.each(0, row_blocks):
                    i0 = f.times(row_block, tall)
                    left = f.minus("%rows", i0)
                    rows = f.pick(f.compare("eq", f.plus(row_block, 1), row_blocks), left, tall)
                    a = f.moved(f.moved("%a", f.product(self.a_row, i0)), f.product(self.a_column, k0))
                    c = f.moved(f.moved("%c", f.product(self.c_row, i0)), f.times(j0, self.tiling.size))
                    numbers = (terms, a, self.a_row, self.a_column, self.a_packed, b, self.b_row, self.b_packed, self.packs_b, self.is_open,
                               c, self.c_row, add, rows, columns, lowest)
                    told = [f"{one.split()[0]} {number}" for one, number in zip(_BLOCK, numbers, strict=True)]
                    f.do(f"call void @product.block({', '.join(told)})")
                    for _ in f.when(polls):
                        f.put(status, look(f), "i32")
                        f.jump_if(f.let(f"icmp ne i32 {f.get(status, 'i32')}, 0"), "stopped")
        f.do("br label %stopped")
        f.start("stopped")
        taken = f.get(self.taken, "ptr")
        for _ in f.when(f.let(f"icmp ne ptr {taken}, null")):
            f.call("void", GIVE, f"ptr {taken}")
        f.do(f"ret i32 {f.get(status, 'i32')}")
        return f

    def _find_memory(self) -> None:
        """The memory for packing, and the width of blocks: if allocation fails, as narrow as fits on the stack."""
        f, tiling = self.f, self.tiling
        depth = f.least(self.k, BLOCK)
        most = _PACKED_BYTES // (BLOCK * tiling.size) // tiling.columns * tiling.columns
        wide = f.pick(self.packs_b, f.times(f.parts(f.least("%columns", most), tiling.columns), tiling.columns), tiling.columns)
        tall = f.pick(self.packs_a, tiling.height, 0)
        needed = f.plus(f.product(f.times(f.plus(wide, tall), tiling.size), depth), tiling.slack)
        stack = f.slot(f"[{STACK_BYTES} x i8], align 64")
        memory, self.taken = f.variable("ptr", stack), f.variable("ptr", "null")
        columns, packed_columns = f.variable("i64", most), f.variable("i64", wide)
        for _ in f.when(f.compare("sgt", needed, STACK_BYTES)):
            found = f.call("ptr", TAKE, f"i64 {needed}")
            f.put(self.taken, found, "ptr")
            for missing in f.branches(f.let(f"icmp eq ptr {found}, null")):
                if missing:
                    f.put(columns, tiling.columns)
                    f.put(packed_columns, tiling.columns)
                else:
                    f.put(memory, found, "ptr")
        self.block_columns = f.pick(self.packs_b, f.get(columns), f.most("%columns", 1))
        self.b_packed = f.get(memory, "ptr")
        behind = f.moved(self.b_packed, f.product(f.times(f.get(packed_columns), tiling.size), depth))
        self.a_packed = f.pick(self.packs_a, behind, "null", "ptr")

    def _pack_panel(self, terms: Index, count: Index, source: str, target: str) -> None:
        f, parts = self.f, self.tiling.parts
        routine = "pack.pairs" if self.tiling.dtype.is_complex else "pack"
        f.do(f"call void @{routine}(i64 {f.quotient(terms, parts)}, i64 {f.quotient(count, parts)}, ptr {source}, "
             f"i64 {f.times(self.b_column, parts)}, i64 {f.times(self.b_row, parts)}, ptr {target}, i64 {_spacing(f, count)})")

    def _pack_columns(self, b: str, columns: Index, terms: Index) -> None:
        """Pack all panels of a block of b, or only the last one, if its rows end within a vector."""
        f, tiling = self.f, self.tiling
        panels = f.parts(columns, tiling.columns)
        last = f.minus(panels, 1)
        rest = f.minus(columns, f.times(last, tiling.columns))
        none_or_last = f.pick(_is_broken(f, rest, self.is_open), last, panels)
        for panel in f.each(f.pick(self.packs_b, 0, none_or_last), panels):
            j = f.times(panel, tiling.columns)
            count = f.least(f.minus(columns, j), tiling.columns)
            place = f.pick(self.packs_b, f.product(f.times(j, tiling.size), terms), 0)
            self._pack_panel(terms, count, f.moved(b, f.product(self.b_column, j)), f.moved(self.b_packed, place))
