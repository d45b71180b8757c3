"""`Sweep`: kernels that can be one, as their outermost loops run over the same axis (loop fusion with blocking).

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

Here is what may be joined; `profit.py` says when that pays, and for how many iterations at a time, and `kernel.py` makes the
joined kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from bwcompiler.ir.extent import Affine, Index, substitute
from bwcompiler.ir.loop import Buffer, Fill, Kernel, Loop, Offset, Statement
from bwcompiler.ir.op import Value
from bwcompiler.ir.product_loop import PRODUCT, LoopProduct, product_of
from bwcompiler.ir.semantics.loop_verifier import scalars, statements, targets
from bwcompiler.lowering.loops.blocks import feeds_sums_only
from bwcompiler.lowering.loops.parallel import is_independent, private_scratch, stays_apart

LEAST_BLOCKS = 16              # least iterations of a loop that is joined, and blocks of them, to divide among threads
BEFORE, INSIDE, AFTER = "before", "inside", "after"


# ----- what a kernel touches
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


# ----- what may be joined
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

    def steps(self) -> dict[Value, int]:
        """Per array the step of one iteration, in elements."""
        return {array: abs(step_of(offsets, self.index)) for array, offsets in self.offsets.items()}

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


def step_of(offsets: Sequence[Offset | None], index: Index) -> int:
    """The step of the first access between iterations, in elements; 0 if it is data-dependent."""
    first = offsets[0] if offsets else None
    return dict(first.affine.terms).get(index, 0) if first is not None and isinstance(first.affine, Affine) else 0
