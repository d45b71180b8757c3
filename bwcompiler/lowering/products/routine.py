"""What matrix products are written with: `Tiling`, the sizes that fit a target, and `Routine`, a function in the making."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bwcompiler.ir.contracts.program_interface import PARALLEL, POLL
from bwcompiler.ir.products import BLOCK
from bwcompiler.ir.types import DType, component_of
from bwcompiler.lowering.function_text import FunctionText, Index
from bwcompiler.lowering.llvm_scalars import register_type
from bwcompiler.target import Target

TILE_VECTORS = 2               # of a row of a tile
LOW_TILES = 7                  # tiles of so many rows and less are there,
MIDDLE_TILE = 11               # and one between these and the highest
TALL = 8                       # such tiles and more above one another are a tall product
STACK_BYTES = 1 << 16          # what a call packs into its own stack; the smallest blocks of all targets fit (checked in `Tiling.of`)

LINE_BYTES = 64

TABLE = "product.table"        # of the addresses of what is compiled where programs need it: `Tiling.table`
VECTOR_FUNCTIONS = ("vector.rows", "vector.columns")
RUNTIME_FUNCTIONS = (PARALLEL, POLL)


def tile_name(height: int, vectors: int) -> str:
    """Of the function that computes so many rows by so many vectors."""
    return f"tile.{height}x{vectors}"


class Tiling(NamedTuple):
    """How products of a dtype are computed on a target.

    A product of complex matrices is one of real matrices: of a as it lies in memory, (re, im) next to each other, and of b with two rows
    for each, (re, im) and below it (-im, re); so the result lies in memory as a complex matrix does.

    lanes    real numbers of a vector;    height   rows of a tile, at most: its sums and a row of the right matrix fill the registers
    fma      whether products are added with one rounding;    masks    whether parts of a vector can be loaded and stored
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
        """Real numbers of an element."""
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
        """Of the tiles that there are.  All would be compiled once more on every machine, for little: low ones are nearly as fast."""
        return tuple(height for height in range(1, self.height + 1) if height <= LOW_TILES or height in (MIDDLE_TILE, self.height))

    def heights_for(self, rows: int) -> set[int]:
        """Of the tiles that a product of so many rows takes; parts of it begin at multiples of the highest (`call.py`, `blocked.py`)."""
        first, found = self.first_heights(), {self.height} if rows >= 2 * self.height else set[int]()
        left = rows % self.height if rows >= TALL * self.height else rows if not found else self.height + rows % self.height
        while left:
            found.add(first[left])
            left -= first[left]
        return found

    def vectors_for(self, columns: int) -> set[int]:
        """Vectors in a row of the tiles that a product of so many columns, of real numbers, takes."""
        full, rest = divmod(columns, self.columns)
        return ({TILE_VECTORS} if full else set()) | ({-(-rest // self.lanes)} if rest else set())

    def first_heights(self) -> tuple[int, ...]:
        """Of the first tile, per number of rows below twice the highest: in as few tiles as can be, of which the lowest is as high
        as can be.  Of more rows, or none, the first tile is one of the highest.  In tall products that of at least one of the highest
        is, too: what is left is little, and low tiles are compiled sooner.
        """
        return _first_heights(self.heights)

    @property
    def table(self) -> tuple[str, ...]:
        """The functions of which a table has the addresses, null where there is none: tiles of 1 vector, of 2, and others."""
        tiles = [tile_name(height, vectors) for vectors in range(1, TILE_VECTORS + 1) for height in range(1, self.height + 1)]
        return (*tiles, *VECTOR_FUNCTIONS, *self.turning, *RUNTIME_FUNCTIONS)

    @property
    def turning(self) -> tuple[str, ...]:
        """The functions that turn squares, of rows of so many vectors."""
        return tuple([f"pack.turned.{number}" for number in range(1, self.groups + 1)])

    @property
    def groups(self) -> int:
        """Vectors that the rows of a tile fill."""
        return -(-self.height // self.lanes)

    @property
    def slack(self) -> int:
        """Bytes behind packed rows, into which vectors that are longer than a tile is high are written."""
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
        """For modules that have it not."""
        return self.head.removesuffix(" #1 {\nentry:").replace("define", "declare", 1)

    def entry(self, name: str) -> str:
        """The address of a function in the table."""
        place = f"getelementptr ptr, ptr @{TABLE}, i64 {self.tiling.table.index(name)}"
        return self.get(self.let(place), "ptr")

    # ----- branches
    def branches(self, condition: str) -> Iterator[bool]:
        """`for yes in f.branches(c):` writes what runs where c holds, and then what runs else."""
        for yes in (True, False):
            if yes:
                inside, otherwise, after = self.fresh(), self.fresh(), self.fresh()
                self.do(f"br i1 {condition}, label %{inside}, label %{otherwise}")
            self.start(inside if yes else otherwise)
            yield yes
            self.do(f"br label %{after}")
        self.start(after)

    def leave_if(self, condition: str, result: str) -> None:
        """Return where the condition holds."""
        leave, go = self.fresh(), self.fresh()
        self.do(f"br i1 {condition}, label %{leave}, label %{go}")
        self.start(leave)
        self.do(f"ret {result}")
        self.start(go)

    def jump_if(self, condition: str, block: str) -> None:
        go = self.fresh()
        self.do(f"br i1 {condition}, label %{block}, label %{go}")
        self.start(go)

    # ----- integers
    def compare(self, relation: str, x: Index, y: Index) -> str:
        return self.let(f"icmp {relation} i64 {x}, {y}")

    def product(self, x: Index, y: Index) -> Index:
        if isinstance(x, int) or isinstance(y, int):
            return self.times(y, x) if isinstance(x, int) else self.times(x, int(y))
        return self.let(f"mul nsw i64 {x}, {y}")

    def quotient(self, x: Index, y: Index) -> str:
        return self.let(f"sdiv i64 {x}, {y}")

    def parts(self, x: Index, y: Index) -> str:
        """x / y rounded up."""
        return self.quotient(self.minus(self.plus(x, y), 1), y)

    def least(self, x: Index, y: Index) -> str:
        return self.pick(self.compare("slt", x, y), x, y)

    def most(self, x: Index, y: Index) -> str:
        return self.pick(self.compare("sgt", x, y), x, y)

    def pick(self, condition: str, x: Index, y: Index, type_: str = "i64") -> str:
        return self.let(f"select i1 {condition}, {type_} {x}, {type_} {y}")

    # ----- memory
    def moved(self, pointer: str, step: Index) -> str:
        """The address some bytes further."""
        return pointer if step == 0 else self.let(f"getelementptr i8, ptr {pointer}, i64 {step}")

    def variable(self, type_: str, start: Index) -> str:
        slot = self.slot(type_)
        self.do(f"store {type_} {start}, ptr {slot}")
        return slot

    def get(self, slot: str, type_: str = "i64") -> str:
        return self.let(f"load {type_}, ptr {slot}")

    def put(self, slot: str, value: Index, type_: str = "i64") -> None:
        self.do(f"store {type_} {value}, ptr {slot}")

    def prefetch(self, address: str) -> None:
        """Ask for a line of memory that will be needed; any address will do."""
        self.call("void", "llvm.prefetch.p0", f"ptr {address}", "i32 0", "i32 3", "i32 1")

    # ----- vectors
    def load_vector(self, address: str, mask: str | None = None) -> str:
        """A vector of memory; where the mask says so, and 0 elsewhere."""
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
        """The mask of the first so many numbers of a vector (all, none)."""
        lanes = self.tiling.lanes
        narrow = self.let(f"trunc i64 {self.most(self.least(count, lanes), 0)} to i32")
        all_ = self.row_of(narrow, lanes, "i32")
        return self.let(f"icmp ult <{lanes} x i32> <{', '.join([f'i32 {k}' for k in range(lanes)])}>, {all_}")

    def splat(self, value: str) -> str:
        return self.row_of(value, self.tiling.lanes)

    def multiply_add(self, x: str, y: str, total: str, scalar: bool = False) -> str:
        """total + x y: rounded once where the target can."""
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
