"""Loop IR: one kernel is a tree of loops over buffers, with scalar statements.

    kernel softmax(%x: in f64[32,8], %y: out f64[32,8])
      for i in 0..32
        reduce m: f64 = maximum
        for j in 0..8 vector
          m maximum= %x[i, j]
        ...

The parameters of a kernel are its buffers and its `words`, scalar arguments.  An integer word is an `Index` that no loop of the
kernel runs over; a word that is an operand of arithmetic is a `Word`.

Statements: `Loop`, `Let` (name a scalar), `Store`, `Reduce` (open an accumulator), `Accumulate` (into an accumulator or a
buffer element), `Fill`.  Buffer positions are linear element offsets: affine in the loop indices, plus data-dependent
terms (gathers).  The value of an accumulator is read as the scalar `total`, below the loops that feed it.
Text: `loop_printer.py` and `loop_parser.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from bwcompiler.ir.extent import Extent, Index, add_extents, most, scale_extent
from bwcompiler.ir.op import Value
from bwcompiler.ir.scalar import IndexExpression, Scalar, Word, operation
from bwcompiler.ir.types import I64, DType

INPUT, OUTPUT, UPDATED, SCRATCH = "in", "out", "inout", "scratch"
COMBINES = ("add", "multiply", "maximum", "minimum", "bitwise_or", "bitwise_and", "argmax", "argmin")


class Buffer:
    """Memory of a kernel: a parameter (in, out, inout) or scratch.  origin: the graph value that it holds, if any.

    If an extent depends on the index of an enclosing loop, memory is allocated for the largest one (`extent.most`).
    """

    __slots__ = ("dtype", "name", "origin", "role", "shape", "size")

    def __init__(self, name: str, dtype: DType, shape: Sequence[Extent], role: str, origin: Value | None = None) -> None:
        self.name = name
        self.origin = origin
        self.dtype = dtype
        self.shape = most(shape)
        self.role = role
        self.size = 1
        for extent in self.shape:
            self.size *= extent

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Offset:
    """A linear element offset: an affine part, and (integer Scalar, stride) terms that depend on data."""

    affine: Extent
    terms: tuple[tuple[Scalar, int], ...] = ()


class Accumulator:
    """A reduction in progress.  combine: one of COMBINES.  origin: the graph value that it computes, if any; part: "re" or "im" of it.

    start      the initial value, the identity of combine; for sums 0.0, or -0.0, which keeps the sign of a first element -0.0.
    """

    __slots__ = ("combine", "dtype", "name", "origin", "part", "start")

    def __init__(self, name: str, combine: str, dtype: DType, origin: Value | None = None, part: str = "", start: Any = None) -> None:
        self.name = name
        self.origin = origin
        self.part = part
        self.combine = combine
        self.dtype = dtype
        self.start: Any = identity_of(combine, dtype) if start is None else complex(start, start) if dtype.is_complex else start

    def __repr__(self) -> str:
        return self.name

    def total(self) -> Scalar:
        """Its final value as a scalar."""
        return Scalar("total", (), self.dtype, self)


@dataclass(eq=False)
class Let:
    """Name a scalar; `ref()` reads it.  origin: the graph value of which it is an element, if any; part: "re" or "im" of it."""

    name: str
    value: Scalar
    origin: Value | None = None
    part: str = ""

    def ref(self) -> Scalar:
        return Scalar("local", (), self.value.dtype, self)


@dataclass(eq=False)
class Store:
    buffer: Buffer
    offset: Offset
    value: Scalar


@dataclass(eq=False)
class Reduce:
    """Open an accumulator with its start."""

    accumulator: Accumulator


@dataclass(eq=False)
class Accumulate:
    """Combine a value into an accumulator, or (buffer, offset) in memory.  position: the index of argmax/argmin."""

    target: Accumulator | tuple[Buffer, Offset]
    combine: str
    value: Scalar
    position: Scalar | None = None


@dataclass(eq=False)
class Loop:
    """for index in 0..extent.

    kind: serial; vector (innermost, with iterations that are independent except for accumulators); product (`product_loop.py`).
    """

    index: Index
    extent: Extent
    body: list[Statement] = field(default_factory=list)
    kind: str = "serial"


@dataclass(eq=False)
class Fill:
    """Set every element of a buffer to one scalar."""

    buffer: Buffer
    value: Scalar


Statement: TypeAlias = Let | Store | Reduce | Accumulate | Loop | Fill


@dataclass(eq=False)
class Kernel:
    """A loop tree with its buffers and its words, in parameter order."""

    name: str
    buffers: list[Buffer]
    body: list[Statement]
    words: list[Index | Word] = field(default_factory=list)


def load(buffer: Buffer, offset: Offset) -> Scalar:
    """The element of buffer at a linear offset."""
    return Scalar("load", offset_scalars(offset), buffer.dtype, (buffer, offset))


def offset_scalars(offset: Offset) -> tuple[Scalar, ...]:
    """The data-dependent parts of an offset (they are arguments of the load)."""
    return tuple(term for term, _ in offset.terms)


def element_strides(shape: tuple[int, ...]) -> list[int]:
    """The strides of a C-contiguous array, in elements."""
    strides, stride = [], 1
    for extent in reversed(shape):
        strides.append(stride)
        stride *= extent
    return strides[::-1]


def linear_offset(shape: Sequence[Extent], index: tuple[IndexExpression, ...]) -> Offset:
    """The element offset of an index into a C-contiguous array, laid out for the largest extents."""
    affine: Extent = 0
    terms: list[tuple[Scalar, int]] = []
    stride = 1
    for extent, entry in zip(reversed(most(shape)), reversed(index), strict=True):
        if isinstance(entry, Scalar):
            terms.append((entry if entry.dtype is I64 else operation("cast", entry), stride))
        else:
            affine = add_extents(affine, scale_extent(entry, stride))
        stride *= extent
    return Offset(affine, tuple(terms))


# The initial element of an accumulator, per combine and dtype kind.
def identity_of(combine: str, dtype: DType) -> Any:
    """The neutral element of a reduction."""
    if combine == "add" or combine == "bitwise_or":
        return False if dtype.kind == "b" else 0.0 if dtype.kind in "fc" else 0
    if combine == "multiply":
        return 1.0 if dtype.kind in "fc" else 1
    if combine == "bitwise_and":
        return dtype.kind == "b" or -1
    largest = combine in ("minimum", "argmin")
    if dtype.kind == "b":
        return largest
    if dtype.kind == "f":
        return float("inf") if largest else float("-inf")
    if dtype.kind == "c":                              # first by real parts, then by imaginary ones
        return complex("inf+infj") if largest else complex("-inf-infj")
    bits = dtype.bits
    if dtype.kind == "u":
        return (1 << bits) - 1 if largest else 0
    return (1 << (bits - 1)) - 1 if largest else -(1 << (bits - 1))
