"""Division of kernels among threads: `pieces` splits a kernel into parts that run in sequence, some of which can be divided.

A loop can be divided if no iteration touches memory that another one writes.  So every iteration computes the same as on one
thread, and the result has the same bits for any number of threads and any division.  A loop with an accumulator is never divided
here (`blocks.py` gives long sums an outer loop over blocks, which is).

The part becomes a kernel with two more words, the first iteration and the number of iterations; each thread has its own scratch.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from bwcompiler.ir.extent import Affine, Extent, Index, add_extents, scale_extent, span, upper
from bwcompiler.ir.loop import INPUT, SCRATCH, Accumulate, Accumulator, Buffer, Fill, Kernel, Let, Loop, Offset, Reduce, Statement, Store
from bwcompiler.ir.scalar import Scalar
from bwcompiler.ir.semantics.loop_verifier import scalars, statements, targets
from bwcompiler.lowering.loops.split_guards import with_index
from bwcompiler.lowering.polls import statements_work

LEAST_WORK = 1 << 16           # least operations of a loop that is divided: about 10 microseconds
GRAIN_WORK = 1 << 14           # least operations that a thread takes at a time
LEAST_FILLED = 1 << 21         # least bytes of a fill that is divided: fills are limited by memory bandwidth
MOST_SCRATCH = 3 << 19         # most bytes of a thread's own scratch, on its stack


class Cut(NamedTuple):
    """A loop that can be divided.

    extent  the number of iterations; work: operations of one; grain: the least number of iterations for a thread.
    first   the kernel's word for the first iteration; number: the word for the number of iterations.
    private the scratch buffers of which every thread has its own.
    """

    extent: Extent
    work: int
    grain: int
    first: Index
    number: Index
    private: frozenset[Buffer]


class Piece(NamedTuple):
    """Part of a kernel; cut: its loop that can be divided among threads, if any."""

    kernel: Kernel
    cut: Cut | None = None


def pieces(kernel: Kernel, shared: Collection[Buffer] = ()) -> list[Piece]:
    """The kernel in parts that run in sequence; only the kernel itself if nothing in it is worth several threads.

    shared  buffers that share memory with another one of the kernel: one part may overwrite what the next part reads.
    """
    body = kernel.body
    if statements_work(body) < LEAST_WORK:
        return [Piece(kernel)]
    lets: dict[Let, int] = {}                            # let -> its place in the body; each reads only earlier ones
    for statement in body:
        if isinstance(statement, Let) and _means_the_same(statement, lets, shared):
            lets[statement] = len(lets)
    found: list[Piece] = []
    rest: list[Statement] = []
    for statement in body:
        made = _cut(kernel, statement)
        if made is not None:
            if rest:
                found.append(Piece(_part(kernel, rest, len(found), lets)))
                rest = []
            found.append(Piece(_part(kernel, [made[0]], len(found), lets, made[1]), made[1]))
        elif statement not in lets:
            rest.append(statement)
    if rest:
        found.append(Piece(_part(kernel, rest, len(found), lets)))
    return found if any(piece.cut for piece in found) and all(_is_closed(piece.kernel) for piece in found) else [Piece(kernel)]


def _means_the_same(let: Let, others: Collection[Let], shared: Collection[Buffer]) -> bool:
    """Whether a let has the same value in any part of the kernel: it reads only unchanged inputs, and lets for which this holds."""
    def stays(scalar: Scalar) -> bool:
        if scalar.op == "load":
            return scalar.data[0].role == INPUT and scalar.data[0] not in shared
        return scalar.data in others if scalar.op == "local" else scalar.op not in ("total", "found")
    return all(stays(scalar) for scalar, _ in scalars(let))


def _with_lets(body: list[Statement], lets: Mapping[Let, int]) -> list[Statement]:
    """The statements, preceded by the lets of the kernel that they read.  Without recursion, as chains of lets can be very long."""
    needed: set[Let] = set()
    readers = [statement for statement, _ in statements(body)]
    while readers:
        for scalar, _ in scalars(readers.pop()):
            if scalar.op == "local" and scalar.data in lets and scalar.data not in needed:
                needed.add(scalar.data)
                readers.append(scalar.data)
    return [*sorted(needed, key=lambda let: lets[let]), *body]


def _is_closed(kernel: Kernel) -> bool:
    """Whether a part uses no let or accumulator of another part (memory is allowed)."""
    made: set[object] = set()
    read: set[object] = set()
    for statement, _ in statements(kernel.body):
        if isinstance(statement, Let):
            made.add(statement)
        elif isinstance(statement, Reduce):
            made.add(statement.accumulator)
        elif isinstance(statement, Accumulate) and isinstance(statement.target, Accumulator):
            read.add(statement.target)
        read.update(scalar.data for scalar, _ in scalars(statement) if scalar.op in ("local", "total", "found"))
    return read <= made


def _part(kernel: Kernel, body: list[Statement], number: int, lets: Mapping[Let, int], cut: Cut | None = None) -> Kernel:
    words = kernel.words if cut is None else [*kernel.words, cut.first, cut.number]
    return Kernel(f"{kernel.name}.{number}", kernel.buffers, _with_lets(body, lets), words)


def _cut(kernel: Kernel, statement: Statement) -> tuple[Loop, Cut] | None:
    """The statement as a loop from a first iteration on, where that may be cut and pays."""
    if isinstance(statement, Fill) and statement.buffer.size * statement.buffer.dtype.itemsize < LEAST_FILLED:
        return None
    loop = _as_loop(statement) if isinstance(statement, Fill) else statement
    if not isinstance(loop, Loop):
        return None
    most = upper(loop.extent)
    work = max(1, statements_work(loop.body))
    if most < 2 or most * work < LEAST_WORK:
        return None
    private = private_scratch(kernel, loop)
    if sum(buffer.size * buffer.dtype.itemsize for buffer in private) > MOST_SCRATCH or not is_independent(loop, private):
        return None
    first, number_of = Index(0, most, "first"), Index(0, most, "number")
    index = Index(0, number_of.extent() - 1, loop.index.name)
    body = with_index(loop.body, loop.index, index.extent() + first.extent())
    return Loop(index, number_of.extent(), body, loop.kind), Cut(loop.extent, work, max(1, GRAIN_WORK // work), first, number_of, private)


def _as_loop(fill: Fill) -> Loop:
    index = Index(0, fill.buffer.size - 1, "i")
    return Loop(index, fill.buffer.size, [Store(fill.buffer, Offset(index.extent()), fill.value)], "vector")


# ----- independence of iterations
def is_independent(loop: Loop, private: Set[Buffer]) -> bool:
    """Whether no iteration touches memory or an accumulator that another one writes, except private scratch."""
    inside = list(statements(loop.body))
    opened = {statement.accumulator for statement, _ in inside if isinstance(statement, Reduce)}
    if any(isinstance(s, Accumulate) and isinstance(s.target, Accumulator) and s.target not in opened for s, _ in inside):
        return False
    written = {buffer for statement, _ in inside for buffer, _ in targets(statement) if buffer not in private}
    own = {statement.index for statement, _ in inside if isinstance(statement, Loop)}
    touched: dict[Buffer, list[Offset | None]] = {}
    for buffer, offset in _touched(inside):
        if buffer in written:
            touched.setdefault(buffer, []).append(offset)
    return all(stays_apart(offsets, loop.index, own) or _interleaves(offsets, loop, own) for offsets in touched.values())


def _touched(inside: Sequence[tuple[Statement, object]]) -> Iterator[tuple[Buffer, Offset | None]]:
    for statement, _ in inside:
        yield from targets(statement)
        for scalar, _ in scalars(statement):
            if scalar.op == "load":
                yield scalar.data


def stays_apart(offsets: Sequence[Offset | None], index: Index, own: Set[Index]) -> bool:
    """Whether the elements at these offsets differ between iterations: the offsets move by more than their spread."""
    step: int | None = None
    low: Extent = 0
    high: Extent = 0
    for offset in offsets:
        if offset is None or offset.terms or not isinstance(offset.affine, Affine):
            return False
        mine = dict(offset.affine.terms).get(index, 0)
        least, most = span(add_extents(offset.affine, scale_extent(index.extent(), -mine)), own | {index})
        if step is None:
            step, low, high = mine, least, most
            continue
        below, above = add_extents(low, scale_extent(least, -1)), add_extents(most, scale_extent(high, -1))
        if mine != step or not isinstance(below, int) or not isinstance(above, int):
            return False
        low, high = least if below > 0 else low, most if above > 0 else high
    return step is not None and step != 0 and upper(add_extents(high, scale_extent(low, -1))) < abs(step)


def _interleaves(offsets: Sequence[Offset | None], loop: Loop, own: set[Index]) -> bool:
    """Whether every iteration has its own columns: `x[i, 64*p + l]`, divided along p.

    Inner loops whose step is at least that of the loop itself go over rows.  The rest of the offsets must span less than such a row step
    over all iterations, and within one iteration less than the step between iterations.
    """
    mine: int | None = None
    rows = 0
    low: Extent = 0
    high: Extent = 0
    for number, offset in enumerate(offsets):
        if offset is None or offset.terms or not isinstance(offset.affine, Affine):
            return False
        steps = dict(offset.affine.terms)
        if mine is None:
            mine = steps.get(loop.index, 0)
        if not mine or steps.get(loop.index, 0) != mine:
            return False
        over = {index: step for index, step in steps.items() if index is loop.index or (index in own and abs(step) >= abs(mine))}
        rows = math.gcd(rows, *[step for index, step in over.items() if index is not loop.index])
        rest: Extent = offset.affine
        for index, step in over.items():
            rest = add_extents(rest, scale_extent(index.extent(), -step))
        least, most = span(rest, own | {loop.index})
        if number == 0:
            low, high = least, most
            continue
        below, above = add_extents(low, scale_extent(least, -1)), add_extents(most, scale_extent(high, -1))
        if not isinstance(below, int) or not isinstance(above, int):
            return False
        low, high = least if below > 0 else low, most if above > 0 else high
    spread = upper(add_extents(high, scale_extent(low, -1)))
    return mine is not None and spread < abs(mine) and abs(mine) * (upper(loop.extent) - 1) + spread < rows


def private_scratch(kernel: Kernel, loop: Loop) -> frozenset[Buffer]:
    """Scratch that is private to iterations of a loop: no other statement of the kernel uses it."""
    return frozenset(_scratch([loop]) - _scratch([statement for statement in kernel.body if statement is not loop]))


def _scratch(body: list[Statement]) -> set[Buffer]:
    return {buffer for buffer, _ in _touched(list(statements(body))) if buffer.role == SCRATCH}
