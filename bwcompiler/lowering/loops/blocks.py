"""`in_blocks`: splits a long outermost loop that computes reductions into blocks with partial results.

    for i in 0..n                          for b in 0..B
      total add= x[i]            ->          for j in 0..n / B
                                               partial add= x[b * (n / B) + j]
                                             store %partial[b], partial
                                           for b in 0..B
                                             total add= %partial[b]

and likewise for sums that are accumulated in memory (the gradient of a bias: a sum over rows).  The blocks can run on different threads
(`parallel.py`).  Their number depends only on the extents, so the sum has the same bits for every number of threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from bwcompiler.ir.extent import Affine, Extent, Index, add_extents
from bwcompiler.ir.loop import (
    SCRATCH,
    Accumulate,
    Accumulator,
    Buffer,
    Fill,
    Kernel,
    Loop,
    Offset,
    Reduce,
    Statement,
    Store,
    identity_of,
    load,
)
from bwcompiler.ir.scalar import const
from bwcompiler.ir.semantics.loop_verifier import scalars, statements, targets
from bwcompiler.ir.texts.graph_printer import first_free
from bwcompiler.lowering.loops.parallel import private_scratch
from bwcompiler.lowering.loops.split_guards import with_index
from bwcompiler.lowering.polls import statements_work

LEAST_WORK = 1 << 18           # least operations of a loop that is split, on doubles; twice as many on numbers of half the size
BLOCK_WORK = 1 << 16           # least operations of a block
MOST_BLOCKS = 16               # most blocks; twice as many if only blocks of equal length are possible
PARTIAL_SHARE = 8              # a block has at least so many iterations per block of partial results


class _Sums(NamedTuple):
    """The reductions that all iterations of a loop contribute to."""

    accumulators: list[Accumulator]
    buffers: dict[Buffer, str]             # -> the op that combines elements


def in_blocks(kernel: Kernel) -> Kernel:
    """The kernel with its outermost loop in blocks, if that is long and only computes reductions; else the kernel itself."""
    loops = [statement for statement in kernel.body if isinstance(statement, Loop)]
    long = [loop for loop in loops if statements_work([loop]) >= LEAST_WORK]
    extent = long[0].extent if len(long) == 1 else None
    if not isinstance(extent, int):
        return kernel
    loop = long[0]
    sums = _sums(kernel, loop)
    if sums is None or not (sums.accumulators or sums.buffers) or statements_work([loop]) < LEAST_WORK * 8 // _itemsize(loop):
        return kernel
    count = _block_count(loop, sums)
    if private_scratch(kernel, loop):                  # blocks of equal length are one loop, so its scratch stays private
        count = max(number for number in range(1, 2 * max(count, 1) + 1) if extent % number == 0)
    return kernel if count < 2 else _Blocks(kernel, loop, sums, count).kernel()


def _itemsize(loop: Loop) -> int:
    """Bytes of the largest element type that the loop reads."""
    return max([scalar.dtype.itemsize for statement, _ in statements(loop.body) for scalar, _ in scalars(statement) if scalar.op == "load"],
               default=8)


def feeds_sums_only(kernel: Kernel, loop: Loop) -> bool:
    """Whether blocks of the loop's iterations can run in parallel, with partial results of their own."""
    sums = _sums(kernel, loop)
    return sums is not None and bool(sums.accumulators or sums.buffers)


def _block_count(loop: Loop, sums: _Sums) -> int:
    """The number of blocks: at most MOST_BLOCKS, each with enough work, and partial results that are small compared to its inputs.

    A somewhat smaller number is preferred if it gives blocks of equal length: then only one loop has to be compiled.
    """
    assert isinstance(loop.extent, int)
    work = max(1, statements_work(loop.body))
    largest = max([buffer.size for buffer in sums.buffers], default=0)
    limits = [MOST_BLOCKS, loop.extent * work // BLOCK_WORK, loop.extent]
    if largest:
        limits.append(loop.extent * work // (PARTIAL_SHARE * largest))
    most = min(limits)
    return max([count for count in range(max(most - most // 4, 1), most + 1) if loop.extent % count == 0], default=most)


def _sums(kernel: Kernel, loop: Loop) -> _Sums | None:
    """The reductions of the loop; None if its iterations write anything else outside their own scratch."""
    inside = [statement for statement, _ in statements(loop.body)]
    opened = {statement.accumulator for statement in inside if isinstance(statement, Reduce)}
    private = private_scratch(kernel, loop)
    accumulators: dict[Accumulator, None] = {}
    buffers: dict[Buffer, str] = {}
    for statement in inside:
        if not isinstance(statement, Accumulate):
            continue
        target = statement.target
        if isinstance(target, Accumulator):
            if target not in opened:
                if statement.position is not None:
                    return None
                accumulators[target] = None
        elif target[0] in private or not _is_fixed(target[1], loop.index):
            continue
        elif buffers.setdefault(target[0], statement.combine) != statement.combine:
            return None
    written_otherwise = {buffer for statement in inside for buffer, offset in targets(statement) if buffer in buffers
                         and not (isinstance(statement, Accumulate) and offset is not None and _is_fixed(offset, loop.index))}
    read = {scalar.data[0] for statement in inside for scalar, _ in scalars(statement) if scalar.op == "load"}
    totals = {scalar.data for statement in inside for scalar, _ in scalars(statement) if scalar.op in ("total", "found")}
    if written_otherwise or read & set(buffers) or totals & set(accumulators):
        return None
    filled = {statement.buffer for statement in kernel.body if isinstance(statement, Fill)}
    if not set(buffers) <= filled:                     # the old contents are the start of the sum, and belong to no block
        return None
    return _Sums(list(accumulators), buffers)


def _fed_by(statement: Statement) -> set[Accumulator]:
    """The outer accumulators that a loop, or an unrolled iteration of one, adds to."""
    inside = [statement for statement, _ in statements([statement])]
    opened = {statement.accumulator for statement in inside if isinstance(statement, Reduce)}
    return {statement.target for statement in inside
            if isinstance(statement, Accumulate) and isinstance(statement.target, Accumulator)} - opened


def _is_fixed(offset: Offset, index: Index) -> bool:
    return not offset.terms and not (isinstance(offset.affine, Affine) and index in dict(offset.affine.terms))


class _Blocks:
    """The kernel with `count` blocks instead of a loop: first those with one more iteration, then the others.

    borders: per sum the other statements that add to it, each a block of its own; others: all of these statements.
    """

    def __init__(self, kernel: Kernel, loop: Loop, sums: _Sums, count: int) -> None:
        self.old = kernel
        self.loop = loop
        self.sums = sums
        self.count = count
        self.taken = {buffer.name for buffer in kernel.buffers}
        fed = {statement: _fed_by(statement) for statement in kernel.body if statement is not loop}
        self.borders = {accumulator: [statement for statement, found in fed.items() if accumulator in found]
                        for accumulator in sums.accumulators}
        self.others = {statement for feeding in self.borders.values() for statement in feeding}
        self.partial_totals = {accumulator: self._scratch(accumulator, (count + len(feeding),))
                               for accumulator, feeding in self.borders.items()}
        self.partials = {buffer: self._scratch(buffer, (count, buffer.size)) for buffer in sums.buffers}

    def _scratch(self, whole: Accumulator | Buffer, shape: tuple[int, ...]) -> Buffer:
        name = first_free(f"{whole.name}.blocks", self.taken)
        self.taken.add(name)
        return Buffer(name, whole.dtype, shape, SCRATCH)

    def kernel(self) -> Kernel:
        assert isinstance(self.loop.extent, int)
        size, longer = divmod(self.loop.extent, self.count)
        place = self.old.body.index(self.loop)
        before = self._rest([statement for statement in self.old.body[:place]
                             if not (isinstance(statement, Reduce) and statement.accumulator in self.partial_totals)])
        after = self.old.body[place + 1:]
        last = max([place for place, statement in enumerate(after, 1) if statement in self.others], default=0)
        fills: list[Statement] = [Fill(partial, const(identity_of(combine, buffer.dtype), buffer.dtype))
                                  for (buffer, combine), partial in zip(self.sums.buffers.items(), self.partials.values(), strict=True)]
        blocks = self._blocks(0, longer, size + 1, 0) + self._blocks(longer, self.count - longer, size, longer * (size + 1))
        buffers = [*self.old.buffers, *self.partial_totals.values(), *self.partials.values()]
        body = [*before, *fills, *blocks, *self._rest(after[:last]), *self._combined(), *after[last:]]
        return Kernel(self.old.name, buffers, body, self.old.words)

    def _rest(self, body: Sequence[Statement]) -> list[Statement]:
        """The other statements; loops that add to the same sums (borders of a loop that was split at guards) become blocks of their own."""
        found: list[Statement] = []
        for statement in body:
            found += self._block(statement) if statement in self.others else [statement]
        return found

    def _block(self, statement: Statement) -> list[Statement]:
        places = {accumulator: Offset(self.count + feeding.index(statement))
                  for accumulator, feeding in self.borders.items() if statement in feeding}
        own = _own(places)
        [redirected] = _Redirected(own, {}, 0).statements([statement])
        return [*[Reduce(accumulator) for accumulator in own.values()], redirected,
                *[Store(self.partial_totals[accumulator], place, own[accumulator].total()) for accumulator, place in places.items()]]

    def _blocks(self, first: int, count: int, size: int, start: int) -> list[Statement]:
        """`count` blocks of `size` iterations each, numbered from `first`, beginning at iteration `start`."""
        if not count:
            return []
        block, inner = Index(0, count - 1, "b"), Index(0, size - 1, self.loop.index.name)
        position = add_extents(block.extent() * size + inner.extent(), start)
        own = _own(self.partial_totals)
        number = block.extent() + first
        body = _Redirected(own, self.partials, number).statements(with_index(self.loop.body, self.loop.index, position))
        stores: list[Statement] = [Store(partial, Offset(number), own[accumulator].total())
                                   for accumulator, partial in self.partial_totals.items()]
        opened: list[Statement] = [Reduce(accumulator) for accumulator in own.values()]
        return [Loop(block, count, [*opened, Loop(inner, size, body, self.loop.kind), *stores])]

    def _combined(self) -> list[Statement]:
        """The partial results, combined block after block."""
        found: list[Statement] = []
        for accumulator, partial in self.partial_totals.items():
            block = Index(0, partial.size - 1, "b")
            feed = Accumulate(accumulator, accumulator.combine, load(partial, Offset(block.extent())))
            found += [Reduce(accumulator), Loop(block, partial.size, [feed])]
        for buffer, partial in self.partials.items():
            block, k = Index(0, self.count - 1, "b"), Index(0, buffer.size - 1, "k")
            element = load(partial, Offset(block.extent() * buffer.size + k.extent()))
            add = Accumulate((buffer, Offset(k.extent())), self.sums.buffers[buffer], element)
            found.append(Loop(block, self.count, [Loop(k, buffer.size, [add], "vector")]))
        return found


def _own(accumulators: Iterable[Accumulator]) -> dict[Accumulator, Accumulator]:
    """Accumulators of one block, in the place of those of the whole."""
    return {accumulator: Accumulator(accumulator.name, accumulator.combine, accumulator.dtype, accumulator.origin)
            for accumulator in accumulators}


class _Redirected:
    """Redirects statements from the sums of the whole loop to those of one block; changes them in place."""

    def __init__(self, accumulators: Mapping[Accumulator, Accumulator], partials: Mapping[Buffer, Buffer], block: Extent) -> None:
        self.accumulators = accumulators
        self.partials = partials
        self.block = block

    def statements(self, body: Sequence[Statement]) -> list[Statement]:
        for statement in body:
            if isinstance(statement, Loop):
                self.statements(statement.body)
            elif isinstance(statement, Accumulate):
                target = statement.target
                if isinstance(target, Accumulator):
                    statement.target = self.accumulators.get(target, target)
                elif target[0] in self.partials:
                    buffer, offset = target
                    place = Offset(add_extents(self.block * buffer.size, offset.affine))
                    statement.target = self.partials[buffer], place
        return list(body)
