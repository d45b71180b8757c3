"""Building blocks of matrix products: `Tiling`, the tile sizes for a target, and `Routine`, a function under construction."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

from bwcompiler.ir.contracts.program_interface import PARALLEL, POLL
from bwcompiler.ir.products import BLOCK
from bwcompiler.ir.types import DType, component_of
from bwcompiler.lowering.function_text import FunctionText, Index
from bwcompiler.lowering.llvm_scalars import register_type
from bwcompiler.target import Target

TILE_VECTORS = 2               # vectors in a row of a tile
LOW_TILES = 7                  # tiles of 1 up to this many rows exist,
MIDDLE_TILE = 11               # and one height between these and the highest
TALL = 8                       # a product with at least this many rows of tiles is tall
STACK_BYTES = 1 << 16          # stack memory for packing in a call; the smallest blocks of all targets fit (checked in `Tiling.of`)

LINE_BYTES = 64

TABLE = "product.table"        # the table of addresses of functions that are compiled on demand: `Tiling.table`
VECTOR_FUNCTIONS = ("vector.rows", "vector.columns")
RUNTIME_FUNCTIONS = (PARALLEL, POLL)


def tile_name(height: int, vectors: int) -> str:
    """The name of the function that computes a tile of `height` rows by `vectors` vectors."""
    return f"tile.{height}x{vectors}"


class Tiling(NamedTuple):
    """How products of a dtype are computed on a target.

    A product of complex matrices is computed as one of real matrices: a as it is in memory, with (re, im) interleaved, and b with two rows
    for each row, (re, im) and below it (-im, re); the result then has the memory layout of a complex matrix.

    lanes    real numbers of a vector;    height   most rows of a tile: its sums and a row of the right matrix fill the registers
    fma      whether the target has fused multiply-add;    masks    whether it has masked vector loads and stores
    """

    dtype: DType
    lanes: int
    height: int
    fma: bool
    masks: bool

    @classmethod
    def of(cls, dtype: DType, target: Target) -> Tiling:
        height = 14 if target.registers == 32 else 6 if target.has_fma else 4
        made = cls(dtype, target.lanes(8 * component_of(dtype).itemsize), height, target.has_fma, target.has_wide_masks)
        assert (made.columns + height) * BLOCK * made.size + made.slack <= STACK_BYTES
        return made

    @property
    def real(self) -> str:
        return register_type(component_of(self.dtype))

    @property
    def parts(self) -> int:
        """The number of real numbers per element."""
        return 2 if self.dtype.is_complex else 1

    @property
    def size(self) -> int:
        """Bytes of a real number."""
        return self.dtype.itemsize // self.parts

    @property
    def vector(self) -> str:
        return f"<{self.lanes} x {self.real}>"

    @property
    def vector_bytes(self) -> int:
        return self.lanes * self.size

    @property
    def columns(self) -> int:
        """Columns of a full tile."""
        return TILE_VECTORS * self.lanes

    @property
    def heights(self) -> tuple[int, ...]:
        """The heights of existing tiles.  More heights would cost compile time on every machine, for little gain."""
        return tuple(height for height in range(1, self.height + 1) if height <= LOW_TILES or height in (MIDDLE_TILE, self.height))

    def heights_for(self, rows: int) -> set[int]:
        """The heights of the tiles for a number of rows; parts begin at multiples of the highest (`call.py`, `blocked.py`)."""
        first, found = self.first_heights(), {self.height} if rows >= 2 * self.height else set[int]()
        left = rows % self.height if rows >= TALL * self.height else rows if not found else self.height + rows % self.height
        while left:
            found.add(first[left])
            left -= first[left]
        return found

    def vectors_for(self, columns: int) -> set[int]:
        """The row widths, in vectors, of the tiles for a number of columns of real numbers."""
        full, rest = divmod(columns, self.columns)
        return ({TILE_VECTORS} if full else set()) | ({-(-rest // self.lanes)} if rest else set())

    def first_heights(self) -> tuple[int, ...]:
        """The height of the first tile, per number of rows below twice the highest: so that tiles are as few, and the lowest as high, as
        possible.  With more rows, or none, the first tile has the full height.  In tall products it also has with at least one full height
        of rows: the remainder matters little, and low tiles are compiled sooner.
        """
        return _first_heights(self.heights)

    @property
    def table(self) -> tuple[str, ...]:
        """The functions whose addresses are in the table (null if not loaded): tiles of 1 vector, of 2, and others."""
        tiles = [tile_name(height, vectors) for vectors in range(1, TILE_VECTORS + 1) for height in range(1, self.height + 1)]
        return (*tiles, *VECTOR_FUNCTIONS, *self.turning, *RUNTIME_FUNCTIONS)

    @property
    def turning(self) -> tuple[str, ...]:
        """The functions that transpose squares, by the number of vectors in a row."""
        return tuple([f"pack.turned.{number}" for number in range(1, self.groups + 1)])

    @property
    def groups(self) -> int:
        """The number of vectors that the rows of a tile fill."""
        return -(-self.height // self.lanes)

    @property
    def slack(self) -> int:
        """Bytes after packed rows that are overwritten by vectors longer than the height of a tile."""
        return self.groups * self.vector_bytes


@functools.cache
def _first_heights(heights: tuple[int, ...]) -> tuple[int, ...]:
    cuts: list[tuple[int, ...]] = [()]
    for rows in range(1, 2 * heights[-1]):
        cuts.append(min([(height, *cuts[rows - height]) for height in heights if height <= rows], key=lambda cut: (len(cut), -min(cut))))
    return tuple([max(cut, default=heights[-1]) for cut in cuts])


class Routine(FunctionText):
    """A function `result name(parameters)`, parameters as in "i64 m"; vectors are those of the tiling."""

    def __init__(self, tiling: Tiling, name: str, parameters: Sequence[str], result: str = "void") -> None:
        super().__init__(name, [], tiling.real)
        told = ", ".join([" %".join(parameter.rsplit(" ", 1)) for parameter in parameters])
        self.head = f"define {result} @{name}({told}) #1 {{\nentry:"
        self.tiling = tiling
        self.result = result

    def text(self, failure: Sequence[str] = ()) -> str:
        """The whole function."""
        last = ["  ret void"] if self.result == "void" else []
        return "\n".join([self.head, *self.slots, "  br label %start", "start:", *self.lines, *last, "}", ""])

    @property
    def declaration(self) -> str:
        """The declaration, for other modules."""
        return self.head.removesuffix(" #1 {\nentry:").replace("define", "declare", 1)

    def entry(self, name: str) -> str:
        """The address of a function in the table."""
        place = f"getelementptr ptr, ptr @{TABLE}, i64 {self.tiling.table.index(name)}"
        return self.get(self.let(place), "ptr")

    # ----- branches
    def leave_if(self, condition: str, result: str) -> None:
        """Return if the condition holds."""
        leave, go = self.fresh(), self.fresh()
        self.do(f"br i1 {condition}, label %{leave}, label %{go}")
        self.start(leave)
        self.do(f"ret {result}")
        self.start(go)

    def jump_if(self, condition: str, block: str) -> None:
        go = self.fresh()
        self.do(f"br i1 {condition}, label %{block}, label %{go}")
        self.start(go)

    # ----- memory
    def moved(self, pointer: str, step: Index) -> str:
        """The address `step` bytes further."""
        return pointer if step == 0 else self.let(f"getelementptr i8, ptr {pointer}, i64 {step}")

    def prefetch(self, address: str) -> None:
        """Prefetch a cache line; the address may be invalid."""
        self.call("void", "llvm.prefetch.p0", f"ptr {address}", "i32 0", "i32 3", "i32 1")

    # ----- vectors
    def load_vector(self, address: str, mask: str | None = None) -> str:
        """Load a vector; with a mask, inactive lanes are 0."""
        tiling = self.tiling
        if mask is None:
            return self.let(f"load {tiling.vector}, ptr {address}, align {tiling.size}")
        return self.call(tiling.vector, f"llvm.masked.load.{self._suffix}.p0", f"ptr {address}", f"i32 {tiling.size}",
                         f"{self._flags} {mask}", f"{tiling.vector} zeroinitializer")

    def store_vector(self, value: str, address: str, mask: str | None = None) -> None:
        tiling = self.tiling
        if mask is None:
            self.do(f"store {tiling.vector} {value}, ptr {address}, align {tiling.size}")
            return
        self.call("void", f"llvm.masked.store.{self._suffix}.p0", f"{tiling.vector} {value}", f"ptr {address}", f"i32 {tiling.size}",
                  f"{self._flags} {mask}")

    def first(self, count: Index) -> str:
        """The mask of the first `count` lanes of a vector (none to all)."""
        lanes = self.tiling.lanes
        narrow = self.let(f"trunc i64 {self.most(self.least(count, lanes), 0)} to i32")
        all_ = self.row_of(narrow, lanes, "i32")
        return self.let(f"icmp ult <{lanes} x i32> <{', '.join([f'i32 {k}' for k in range(lanes)])}>, {all_}")

    def splat(self, value: str) -> str:
        return self.row_of(value, self.tiling.lanes)

    def multiply_add(self, x: str, y: str, total: str, scalar: bool = False) -> str:
        """total + x y, rounded once if the target has fused multiply-add."""
        type_ = self.real if scalar else self.tiling.vector
        if not self.tiling.fma:
            return self.let(f"fadd {type_} {total}, {self.let(f'fmul {type_} {x}, {y}')}")
        suffix = f"f{8 * self.tiling.size}" if scalar else self._suffix
        return self.call(type_, f"llvm.fma.{suffix}", f"{type_} {x}", f"{type_} {y}", f"{type_} {total}")

    def call(self, result: str, symbol: str, *arguments: str) -> str:
        # The type of an argument may have spaces.
        types = ", ".join([argument.rsplit(" ", 1)[0] for argument in arguments])
        self.declares[f"declare {result} @{symbol}({types})"] = None
        text = f"call {result} @{symbol}({', '.join(arguments)})"
        if result == "void":
            self.do(text)
            return ""
        return self.let(text)

    @property
    def _suffix(self) -> str:
        return f"v{self.tiling.lanes}f{8 * self.tiling.size}"

    @property
    def _flags(self) -> str:
        return f"<{self.tiling.lanes} x i1>"
