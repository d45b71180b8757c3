"""`split_complex(kernel)`: rewrites a kernel of complex numbers into one of real numbers.

A buffer of n complex numbers becomes one of 2n reals, number k at 2k and 2k + 1.  A let becomes two lets, an operation the formula of
`complex_arithmetic.py` or `complex_functions.py`.  A sum becomes two sums.  Other reductions (products, extrema, searches)
mix the parts: the accumulator becomes a cell of memory, and the loop that feeds it a serial one.
"""

from __future__ import annotations

from collections.abc import Sequence

from bwcompiler.errors import InternalError
from bwcompiler.ir.extent import Affine, Extent, Index, add_extents, scale_extent
from bwcompiler.ir.loop import (
    SCRATCH,
    Accumulate,
    Accumulator,
    Buffer,
    Fill,
    Kernel,
    Let,
    Loop,
    Offset,
    Reduce,
    Statement,
    Store,
    identity_of,
    load,
)
from bwcompiler.ir.scalar import Scalar, cast, const, select
from bwcompiler.ir.texts.graph_printer import TakenNames
from bwcompiler.ir.types import BOOL, I64, component_of
from bwcompiler.lowering.loops.complex.complex_arithmetic import ARITHMETIC, TO_REAL, Pair, better, either, truth, where
from bwcompiler.lowering.loops.complex.complex_functions import FUNCTIONS

_FORMULAS = ARITHMETIC | FUNCTIONS
_LEAVES = ("local", "const")


def split_complex(kernel: Kernel) -> Kernel:
    """The same computation on real numbers; cells of memory that it needs are scratch buffers, after the others."""
    splitter = _Splitter(kernel)
    body = splitter.statements(kernel.body)
    return Kernel(kernel.name, [*splitter.buffers.values(), *splitter.cells], body, kernel.words)


class _Splitter:
    """The replacements of the buffers, lets, accumulators and scalars of the kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self.taken = TakenNames([buffer.name for buffer in kernel.buffers])
        self.buffers = {buffer: _twin(buffer) for buffer in kernel.buffers}
        self.cells: list[Buffer] = []
        self.lets: dict[Let, Pair | Scalar] = {}
        self.sums: dict[Accumulator, tuple[Accumulator, Accumulator]] = {}
        self.cell: dict[Accumulator, Buffer] = {}
        self.place: dict[Accumulator, Buffer] = {}              # the buffer of the position of a search
        self.pairs: dict[int, tuple[Scalar, Pair]] = {}         # by id of the scalar, which is kept alive
        self.reals: dict[int, tuple[Scalar, Scalar]] = {}

    # ----- statements
    def statements(self, body: Sequence[Statement]) -> list[Statement]:
        found: list[Statement] = []
        for statement in body:
            if isinstance(statement, Let):
                found += self.let(statement)
            elif isinstance(statement, Store):
                found += self.store(statement)
            elif isinstance(statement, Fill):
                found.append(self.fill(statement))
            elif isinstance(statement, Reduce):
                found += self.reduce(statement)
            elif isinstance(statement, Accumulate):
                found += self.accumulate(statement)
            else:
                inner = self.statements(statement.body)
                kind = "serial" if any(_stays(one, statement.index) for one in inner) else statement.kind
                found.append(Loop(statement.index, statement.extent, inner, kind))
        return found

    def let(self, let: Let) -> list[Let]:
        if let.value.dtype.is_complex:
            pair = self.pair(let.value)
            made = [Let(let.name, value, let.origin, part) for part, value in zip(("re", "im"), pair, strict=True)]
            self.lets[let] = made[0].ref(), made[1].ref()
            return made
        real = Let(let.name, self.real(let.value), let.origin)
        self.lets[let] = real.ref()
        return [real]

    def store(self, statement: Store) -> list[Statement]:
        if not statement.buffer.dtype.is_complex:
            return [Store(self.buffers[statement.buffer], self.offset(statement.offset), self.real(statement.value))]
        lets, pair = self.held("stored", self.pair(statement.value))
        return [*lets, *self.stores(self.buffers[statement.buffer], statement.offset, pair)]

    def stores(self, buffer: Buffer, offset: Offset, pair: Pair) -> list[Statement]:
        return [Store(buffer, self.part(offset, number), value) for number, value in enumerate(pair)]

    def held(self, name: str, pair: Pair) -> tuple[list[Statement], Pair]:
        """Both parts as lets, computed before either is stored: they may read the element that is stored."""
        if all(value.op in _LEAVES for value in pair):
            return [], pair
        re, im = Let(name, pair[0], None, "re"), Let(name, pair[1], None, "im")
        return [re, im], (re.ref(), im.ref())

    def fill(self, fill: Fill) -> Statement:
        buffer = self.buffers[fill.buffer]
        if not fill.buffer.dtype.is_complex:
            return Fill(buffer, self.real(fill.value))
        re, im = self.pair(fill.value)
        if re.op == im.op == "const" and str(re.data) == str(im.data):                 # the sign of zero counts
            return Fill(buffer, re)
        index = Index(0, fill.buffer.size - 1, "f")
        return Loop(index, fill.buffer.size, self.stores(buffer, Offset(index.extent()), (re, im)))

    # ----- reductions
    def reduce(self, statement: Reduce) -> list[Statement]:
        accumulator = statement.accumulator
        dtype = accumulator.dtype
        if not dtype.is_complex:
            return [statement]
        real, combine = component_of(dtype), accumulator.combine
        if combine == "add":
            start = accumulator.start.real                               # the start of both parts
            made = [Accumulator(accumulator.name, combine, real, accumulator.origin, part, start) for part in ("re", "im")]
            self.sums[accumulator] = made[0], made[1]
            return [Reduce(one) for one in made]
        cell = self.cell[accumulator] = self.new_cell(f"{accumulator.name}.cell", Buffer("", real, (2,), SCRATCH))
        opened = self.stores(cell, Offset(0), self.pair(const(identity_of(combine, dtype), dtype)))
        if combine.startswith("arg"):
            place = self.place[accumulator] = self.new_cell(f"{accumulator.name}.place", Buffer("", I64, (1,), SCRATCH))
            opened.append(Store(place, Offset(0), const(-1, I64)))
        return opened

    def new_cell(self, name: str, like: Buffer) -> Buffer:
        made = Buffer(self.taken.new(name), like.dtype, like.shape, SCRATCH)
        self.cells.append(made)
        return made

    def accumulate(self, statement: Accumulate) -> list[Statement]:
        target, combine = statement.target, statement.combine
        dtype = target.dtype if isinstance(target, Accumulator) else target[0].dtype
        if not dtype.is_complex:
            position = None if statement.position is None else self.real(statement.position)
            place = target if isinstance(target, Accumulator) else (self.buffers[target[0]], self.offset(target[1]))
            return [Accumulate(place, combine, self.real(statement.value), position)]
        pair = self.pair(statement.value)
        if combine != "add":
            buffer, offset = (self.cell[target], Offset(0)) if isinstance(target, Accumulator) else (self.buffers[target[0]], target[1])
            return self.combined(statement, buffer, offset, pair)
        if isinstance(target, Accumulator):
            return [Accumulate(one, combine, value) for one, value in zip(self.sums[target], pair, strict=True)]
        lets, pair = self.held("added", pair)
        buffer = self.buffers[target[0]]
        return [*lets, *[Accumulate((buffer, self.part(target[1], number)), combine, value) for number, value in enumerate(pair)]]

    def combined(self, statement: Accumulate, buffer: Buffer, offset: Offset, value: Pair) -> list[Statement]:
        """A reduction that mixes the parts: load, combine, store."""
        before = self.loads(buffer, offset)
        value_lets, value = self.held("fed", value)
        if statement.position is None:
            lets, after = self.held("combined", _FORMULAS[statement.combine](before, value))
            return [*value_lets, *lets, *self.stores(buffer, offset, after)]
        assert isinstance(statement.target, Accumulator)
        place = self.place[statement.target]
        at = load(place, Offset(0))
        chosen = Let("better", either(better(statement.combine)(value, before), at < 0))
        found = Let("found", select(chosen.ref(), self.real(statement.position), at))
        lets, after = self.held("best", where(chosen.ref(), value, before))
        return [*value_lets, chosen, found, *lets, *self.stores(buffer, offset, after), Store(place, Offset(0), found.ref())]

    def loads(self, buffer: Buffer, offset: Offset) -> Pair:
        return load(buffer, self.part(offset, 0)), load(buffer, self.part(offset, 1))

    # ----- positions
    def part(self, offset: Offset, number: int) -> Offset:
        """The offset of the real (0) or imaginary (1) part of the complex number at an offset."""
        affine = add_extents(scale_extent(offset.affine, 2), number)
        return Offset(affine, tuple([(self.real(term), 2 * stride) for term, stride in offset.terms]))

    def offset(self, offset: Offset) -> Offset:
        if not offset.terms:
            return offset
        return Offset(offset.affine, tuple([(self.real(term), stride) for term, stride in offset.terms]))

    # ----- scalars
    def real(self, scalar: Scalar) -> Scalar:
        """The replacement of a real scalar."""
        found = self.reals.get(id(scalar))
        if found is None:
            found = self.reals[id(scalar)] = scalar, self._real(scalar)
        return found[1]

    def _real(self, scalar: Scalar) -> Scalar:
        op, args = scalar.op, scalar.args
        if op == "local":
            made = self.lets[scalar.data]
            assert isinstance(made, Scalar)
            return made
        if op == "load":
            buffer, offset = scalar.data
            return load(self.buffers[buffer], self.offset(offset))
        if op == "found" and scalar.data in self.place:
            return load(self.place[scalar.data], Offset(0))
        if args and args[0].dtype.is_complex:
            pairs = [self.pair(arg) for arg in args]
            if op == "cast":
                return truth(pairs[0]) if scalar.dtype is BOOL else cast(pairs[0][0], scalar.dtype)
            if op not in TO_REAL:
                raise InternalError(f"the scalar operation {op} has no formula for complex numbers")
            return TO_REAL[op](*pairs)
        new = tuple([self.real(arg) for arg in args])
        return scalar if all(a is b for a, b in zip(new, args, strict=True)) else Scalar(op, new, scalar.dtype, scalar.data)

    def pair(self, scalar: Scalar) -> Pair:
        """The real and the imaginary part of a complex scalar."""
        found = self.pairs.get(id(scalar))
        if found is None:
            found = self.pairs[id(scalar)] = scalar, self._pair(scalar)
        return found[1]

    def _pair(self, scalar: Scalar) -> Pair:
        op, args = scalar.op, scalar.args
        part = component_of(scalar.dtype)
        if op == "const":
            number = complex(scalar.data)
            return const(number.real, part), const(number.imag, part)
        if op == "local":
            made = self.lets[scalar.data]
            assert isinstance(made, tuple)
            return made
        if op == "load":
            return self.loads(self.buffers[scalar.data[0]], scalar.data[1])
        if op == "total":
            return self._total(scalar.data)
        if op == "select":
            condition, (x, y) = self.real(args[0]), (self.pair(args[1]), self.pair(args[2]))
            re, im = [Scalar("select", (condition, a, b), part, scalar.data) for a, b in zip(x, y, strict=True)]
            return re, im
        if op == "make_complex":
            return self.real(args[0]), self.real(args[1])
        if op == "cast":
            if not args[0].dtype.is_complex:
                return cast(self.real(args[0]), part), const(0.0, part)
            re, im = self.pair(args[0])
            return cast(re, part), cast(im, part)
        if op not in _FORMULAS:
            raise InternalError(f"the scalar operation {op} has no formula for complex numbers")
        return _FORMULAS[op](*[self.pair(arg) for arg in args])

    def _total(self, accumulator: Accumulator) -> Pair:
        if accumulator in self.sums:
            re, im = self.sums[accumulator]
            return re.total(), im.total()
        return self.loads(self.cell[accumulator], Offset(0))


def _twin(buffer: Buffer) -> Buffer:
    """The memory of a buffer as reals."""
    if not buffer.dtype.is_complex:
        return buffer
    return Buffer(buffer.name, component_of(buffer.dtype), (*buffer.shape, 2), buffer.role, buffer.origin)


def _stays(statement: Statement, index: Index) -> bool:
    """Whether all iterations of the loop over index store to the same place."""
    if not isinstance(statement, Store) or statement.offset.terms:
        return isinstance(statement, Loop)
    return not _depends(statement.offset.affine, index)


def _depends(extent: Extent, index: Index) -> bool:
    return isinstance(extent, Affine) and any(one is index for one, _ in extent.terms)
