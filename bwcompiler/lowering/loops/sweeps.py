"""`Sweep`: joins kernels whose outermost loops run over the same axis into one kernel (loop fusion with blocking).

    for i in 0..2000                       for b in 0..500
      for j in 0..32                         for r in 0..4
        %y[i, j] = f(%x[i, :])                 for j in 0..32
                                  ->             %y.part[r, j] = f(%x[4*b + r, :])
    for i in 0..2000                         for r in 0..4
      for k in 0..64                           for k in 0..64
        %z[i, k] = g(%y[i, :])                   %z[4*b + r, k] = g(%y.part[r, :])

The second kernel reads the results of a few iterations of the first while they are in the cache; an array that no other kernel reads
shrinks to the part that these iterations write.  A fusion group has only two levels of loops, and a reader of its rows at another
depth is a separate group; a sweep joins such groups.  It is correct if no iteration of one kernel touches what a different iteration of
the other writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from bwcompiler.ir.extent import Affine, Extent, Index, add_extents, scale_extent, span, substitute
from bwcompiler.ir.loop import INPUT, OUTPUT, SCRATCH, UPDATED, Buffer, Fill, Kernel, Loop, Offset, Statement
from bwcompiler.ir.op import Value
from bwcompiler.ir.product_loop import PRODUCT, LoopProduct, product_of
from bwcompiler.ir.semantics.loop_verifier import scalars, statements, targets
from bwcompiler.ir.texts.graph_printer import TakenNames
from bwcompiler.lowering.loops.blocks import feeds_sums_only
from bwcompiler.lowering.loops.parallel import is_independent, private_scratch, stays_apart
from bwcompiler.lowering.loops.split_guards import Copy

LEAST_SHARED = 1 << 20         # least bytes of shared arrays: smaller ones are still in a cache when the next loop begins
BLOCK_BYTES = 1 << 16          # bytes that a few iterations touch; MOST_BYTES: the most for a single iteration
MOST_BYTES = 1 << 18
LEAST_ELEMENTS = 256           # least shared elements of a few iterations: with fewer, the loop overhead dominates
LEAST_BLOCKS = 16              # least blocks of iterations, to divide among threads
PRODUCT_BYTES = 3 << 17        # bytes that a few rows of matrix products touch, in the L2 cache,
LEAST_ROWS = 64                # and the least number of rows: the other matrix is read once per block of rows
MOST_KERNELS = 24
BEFORE, INSIDE, AFTER = "before", "inside", "after"


@dataclass
class Accesses:
    """The accesses of a kernel to an array.  offsets: those in its outermost loop; touched, written: which of BEFORE, INSIDE, AFTER."""

    offsets: list[Offset | None] = field(default_factory=list)
    touched: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    is_only_filled: bool = True             # before the loop


class Touch(NamedTuple):
    """A statement that reads or writes a buffer; when: BEFORE, INSIDE or AFTER the outermost loop."""

    buffer: Buffer
    offset: Offset | None
    is_write: bool
    is_fill: bool
    when: str


class OneLoop(NamedTuple):
    """A kernel with one outermost loop over `extent` iterations, and statements before and after it.

    place    the position of the loop in the kernel's body; own: the indices inside the loop.
    is_cut   whether it can be divided among threads; multiplies: whether it is a matrix product.
    """

    kernel: Kernel
    place: int
    loop: Loop
    extent: int
    own: Set[Index]
    touches: Sequence[Touch]
    is_cut: bool
    multiplies: bool


class Part(NamedTuple):
    """A `OneLoop` on arrays: per buffer its array, None for scratch."""

    of: OneLoop
    arrays: tuple[Value | None, ...]
    accesses: Mapping[Value, Accesses]


def one_loop(kernel: Kernel) -> OneLoop | None:
    """The kernel as one loop that can be part of a sweep; None if it has another form."""
    places = [number for number, statement in enumerate(kernel.body) if isinstance(statement, Loop)]
    if len(places) != 1:
        return None
    loop = kernel.body[places[0]]
    assert isinstance(loop, Loop)
    if not isinstance(loop.extent, int) or loop.extent < LEAST_BLOCKS:
        return None
    touches: list[Touch] = []
    own = {loop.index}
    for number, top in enumerate(kernel.body):
        when = INSIDE if number == places[0] else BEFORE if number < places[0] else AFTER
        for statement, _ in statements([top]):
            if isinstance(statement, Loop):
                own.add(statement.index)
            touches += _touches(statement, when)
    is_cut = is_independent(loop, private_scratch(kernel, loop)) or feeds_sums_only(kernel, loop)
    multiplies = any(isinstance(one, Loop) and one.kind == PRODUCT for one, _ in statements([loop]))
    return OneLoop(kernel, places[0], loop, loop.extent, own, touches, is_cut, multiplies)


def _touches(statement: Statement, when: str) -> Iterator[Touch]:
    for buffer, offset in targets(statement):
        yield Touch(buffer, offset, True, isinstance(statement, Fill), when)
    for scalar, _ in scalars(statement):
        if scalar.op == "load":
            buffer, offset = scalar.data
            yield Touch(buffer, offset, False, False, when)


def part_of(loop: OneLoop, arrays: Sequence[Value | None]) -> Part:
    """The kernel on these arrays."""
    array_of = dict(zip(loop.kernel.buffers, arrays, strict=True))
    accesses: dict[Value, Accesses] = {}
    for touch in loop.touches:
        array = array_of[touch.buffer]
        if array is not None:
            _note(accesses.setdefault(array, Accesses()), touch)
    return Part(loop, tuple(arrays), accesses)


def _note(accesses: Accesses, touch: Touch) -> None:
    accesses.touched.add(touch.when)
    if touch.is_write:
        accesses.written.add(touch.when)
    if touch.when == INSIDE:
        accesses.offsets.append(touch.offset)
    elif not touch.is_fill:
        accesses.is_only_filled = False


class Sweep:
    """Kernels that can be joined, in order."""

    def __init__(self, first: Part) -> None:
        self.parts = [first]
        self.index = first.of.loop.index
        self.offsets = {array: list(accesses.offsets) for array, accesses in first.accesses.items()}
        self.own = set(first.of.own)
        self.extent = first.of.extent

    def take(self, part: Part) -> bool:
        """Add a kernel if it can be joined with the others; returns whether it can."""
        if part.of.extent != self.extent or part.of.is_cut != self.parts[0].of.is_cut:
            return False
        if not all(_keeps_order(one, part) for one in self.parts):
            return False
        moved = {array: [_with_index(offset, part.of.loop.index, self.index) for offset in accesses.offsets]
                 for array, accesses in part.accesses.items()}
        own = self.own | part.of.own
        joined = {array: [*self.offsets.get(array, ()), *offsets] for array, offsets in moved.items()}
        written = {array for one in (*self.parts, part) for array, accesses in one.accesses.items() if INSIDE in accesses.written}
        shared = [array for array, offsets in moved.items() if offsets and self.offsets.get(array)]
        if not all(stays_apart(joined[array], self.index, own) for array in shared if array in written):
            return False
        self.parts.append(part)
        self.offsets.update(joined)
        self.own = own
        return True

    def pays(self) -> bool:
        """Whether the last kernel shares enough memory with the others, and the data of a few iterations stay in a cache.

        For a product, sharing an input gains little: it has to read a result of the others, or write one of their inputs.
        """
        steps, last = self._steps(), self.parts[-1]
        before = {array for one in self.parts[:-1] for array in one.accesses}
        shared = [array for array in last.accesses if array in before and steps.get(array)]
        if last.of.multiplies:
            made = {array for one in self.parts for array, accesses in one.accesses.items() if accesses.written}
            shared = [array for array in shared if array in made]
        return bool(sum([array.type.nbytes for array in shared]) >= LEAST_SHARED and self._count())

    def _steps(self) -> dict[Value, int]:
        """Per array the step of one iteration, in elements."""
        return {array: abs(_step(offsets, self.index)) for array, offsets in self.offsets.items()}

    def _count(self) -> int:
        """The number of iterations of each loop before those of the next; 0 if no number is suitable."""
        steps, laid_over = self._steps(), self.laid_over()
        one = sum([step * array.dtype.itemsize for array, step in steps.items() if array not in laid_over])
        if one > MOST_BYTES:
            return 0
        multiplies = any(part.of.loop.kind == PRODUCT for part in self.parts)
        most = max(1, min((PRODUCT_BYTES if multiplies else BLOCK_BYTES) // max(one, 1), self.extent // LEAST_BLOCKS))
        count = next(number for number in range(most, 0, -1) if self.extent % number == 0)
        if multiplies and count < LEAST_ROWS:
            return 0
        users = Counter(array for part in self.parts for array in part.accesses)
        shared = [steps.get(array, 0) for array, number in users.items() if number > 1]
        return count if count * max(shared, default=0) >= LEAST_ELEMENTS else 0

    def laid_over(self) -> dict[Value, Value]:
        """Sums of rows with a product -> the rows that it is added to, where the sum may lie: nothing reads them afterwards."""
        parts_of: dict[Value, list[int]] = {}
        for number, part in enumerate(self.parts):
            for array in part.accesses:
                parts_of.setdefault(array, []).append(number)
        found: dict[Value, Value] = {}
        for number, part in enumerate(self.parts):
            array_of = dict(zip(part.of.kernel.buffers, part.arrays, strict=True))
            for product in _sums(part.of.loop):
                assert product.start is not None
                before, after = array_of[product.start.buffer], array_of[product.c.buffer]
                if before is not None and after is not None and parts_of[before][-1] == number == parts_of[after][0]:
                    found[after] = before
        return found

    def roles(self, array: Value) -> set[str]:
        """The roles of an array in the kernels."""
        return {buffer.role for part in self.parts for buffer, one in zip(part.of.kernel.buffers, part.arrays, strict=True) if one is array}

    def kernel(self, inner: Collection[Value]) -> tuple[Kernel, list[Value | None]]:
        """The kernel, and per buffer its array; `inner` are those that nothing else reads."""
        made = _Joined(self, self._count(), {array for array in inner if self._is_inner(array)})
        return made.kernel(), made.arrays

    def _is_inner(self, array: Value) -> bool:
        """Whether only the loops write and read the array, each iteration its own part; before them it may be filled with a number."""
        found = [part.accesses[array] for part in self.parts if array in part.accesses]
        roles, offsets = self.roles(array), self.offsets.get(array, [])
        return (UPDATED not in roles and OUTPUT in roles and all(AFTER not in one.touched and one.is_only_filled for one in found)
                and stays_apart(offsets, self.index, self.own) and _step(offsets, self.index) > 0)


def _sums(loop: Loop) -> list[LoopProduct]:
    """The products in a loop that are added to an array with the layout of the result, other than their operands."""
    products = [product_of(one) for one, _ in statements([loop]) if isinstance(one, Loop) and one.kind == PRODUCT]
    return [one for one in products if one is not None and one.start is not None and one.start[1:] == one.c[1:]
            and one.start.buffer not in (one.a.buffer, one.b.buffer)]


def _keeps_order(one: Part, other: Part) -> bool:
    """Whether the statements before the other loop can run before this one, and the statements after this loop after both."""
    return not any(_meet(first, accesses, INSIDE, BEFORE) or _meet(first, accesses, AFTER, BEFORE) or _meet(first, accesses, AFTER, INSIDE)
                   for array, accesses in other.accesses.items() if (first := one.accesses.get(array)) is not None)


def _meet(one: Accesses, other: Accesses, when: str, other_when: str) -> bool:
    """Whether both touch the array in these phases, and at least one writes it."""
    return (when in one.touched and other_when in other.written) or (when in one.written and other_when in other.touched)


def _with_index(offset: Offset | None, old: Index, new: Index) -> Offset | None:
    return None if offset is None else Offset(substitute(offset.affine, {old: new.extent()}), offset.terms)


def _step(offsets: Sequence[Offset | None], index: Index) -> int:
    """The step of the first access between iterations, in elements; 0 if it is data-dependent."""
    first = offsets[0] if offsets else None
    return dict(first.affine.terms).get(index, 0) if first is not None and isinstance(first.affine, Affine) else 0


class _Joined:
    """The kernel of a sweep, `count` iterations of each loop at a time; inner: the arrays that shrink."""

    def __init__(self, sweep: Sweep, count: int, inner: Set[Value]) -> None:
        self.sweep = sweep
        self.count = count
        self.inner = inner
        self.block = Index(0, sweep.extent // count - 1, "b")
        self.taken = TakenNames()
        self.buffers: list[Buffer] = []
        self.arrays: list[Value | None] = []
        self.of_array: dict[Value, Buffer] = {}
        self.starts: dict[Buffer, Extent] = {}               # for arrays that shrink: the start of the part in the array
        self.laid_over = sweep.laid_over()

    def kernel(self) -> Kernel:
        before: list[Statement] = []
        body: list[Statement] = []
        after: list[Statement] = []
        kernels = [part.of.kernel for part in self.sweep.parts]
        for part, kernel in zip(self.sweep.parts, kernels, strict=True):
            buffers = {buffer: self._buffer(buffer, array) for buffer, array in zip(kernel.buffers, part.arrays, strict=True)}
            copy = _PartCopy(buffers, self.starts)
            for statement in copy.statements(kernel.body[:part.of.place]):
                (body if isinstance(statement, Fill) and statement.buffer in self.starts else before).append(statement)
            body += self._iterations(part.of.loop, copy)
            after += copy.statements(kernel.body[part.of.place + 1:])
        words = dict.fromkeys(word for kernel in kernels for word in kernel.words)
        loop = Loop(self.block, self.sweep.extent // self.count, body)
        return Kernel(".".join([kernel.name for kernel in kernels]), self.buffers, [*before, loop, *after], list(words))

    def _iterations(self, loop: Loop, copy: Copy) -> list[Statement]:
        first = scale_extent(self.block.extent(), self.count)
        if self.count == 1 and loop.kind == "serial":
            copy.replace[loop.index] = first
            return copy.statements(loop.body)
        row = Index(0, self.count - 1, loop.index.name)
        copy.replace[loop.index] = add_extents(first, row.extent())
        return [Loop(row, self.count, copy.statements(loop.body), loop.kind)]

    def _buffer(self, buffer: Buffer, array: Value | None) -> Buffer:
        if array is None:
            return self._new(buffer.name, buffer, buffer.shape, SCRATCH, None)
        found = self.of_array.get(array)
        if found is None:
            found = self.of_array[array] = self._new_for(buffer, array)
        return found

    def _new_for(self, buffer: Buffer, array: Value) -> Buffer:
        if array in self.inner:
            offsets = self.sweep.offsets[array]
            step = _step(offsets, self.sweep.index)
            starts = [span(add_extents(offset.affine, scale_extent(self.sweep.index.extent(), -step)), self.sweep.own)[0]
                      for offset in offsets if offset is not None]
            low = min([start for start in starts if isinstance(start, int)])
            begin = add_extents(scale_extent(self.block.extent(), step * self.count), low)
            before = self.of_array.get(self.laid_over[array]) if array in self.laid_over else None
            if before is not None and self.starts.get(before) == begin and before.shape == (step * self.count,):
                return before
            made = self._new(f"{buffer.name}.part", buffer, (step * self.count,), SCRATCH, None)
            self.starts[made] = begin
            return made
        roles = self.sweep.roles(array)
        role = next(role for role in (UPDATED, OUTPUT, INPUT) if role in roles)
        return self._new(buffer.name, buffer, buffer.shape, role, array)

    def _new(self, name: str, like: Buffer, shape: Sequence[Extent], role: str, array: Value | None) -> Buffer:
        made = Buffer(self.taken.new(name), like.dtype, shape, role, like.origin if array is not None else None)
        self.buffers.append(made)
        self.arrays.append(array)
        return made


class _PartCopy(Copy):
    """A copy on the buffers of the whole sweep."""

    def __init__(self, buffers: Mapping[Buffer, Buffer], starts: Mapping[Buffer, Extent]) -> None:
        super().__init__({})
        self.buffers = buffers
        self.starts = starts

    def fill(self, statement: Fill) -> Fill:
        return Fill(self.buffers[statement.buffer], self.scalar(statement.value))

    def place(self, buffer: Buffer, offset: Offset) -> tuple[Buffer, Offset]:
        made, moved = self.buffers[buffer], self.offset(offset)
        start = self.starts.get(made)
        return made, moved if start is None else Offset(add_extents(moved.affine, scale_extent(start, -1)), moved.terms)
