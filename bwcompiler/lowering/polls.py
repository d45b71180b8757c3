"""Polls of long programs for signals (Ctrl-C): `bw_poll`, called about every POLL_WORK operations.

The trip counts of loops in kernels have known bounds, so the work between two polls is known at compile time: a program with less work
than that has no polls and no cost.  A long loop is cut into chunks and polls after each of them; its inner loop stays a plain counted
loop.  (Loops over bodies poll every few iterations: `regions.py`.)  `bw_poll()` returns 0, or a status with which the program returns
(`runtime/interrupts.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol
from weakref import WeakKeyDictionary

from bwcompiler.ir.contracts.program_interface import DECLARE_POLL, POLL
from bwcompiler.ir.extent import Extent, upper
from bwcompiler.ir.loop import Accumulate, Fill, Let, Loop, Statement, Store
from bwcompiler.ir.product_loop import PRODUCT, product_of
from bwcompiler.ir.scalar import Scalar
from bwcompiler.lowering.llvm_scalars import ScalarEmitter
from bwcompiler.lowering.math.functions import FUNCTIONS

# Operations, each of 1/20 ns (vectors, in cache) to 20 ns (gathers from memory): 0.05 ms to 20 ms between polls.
POLL_WORK = 1 << 20
COPY_BYTES = 16 * POLL_WORK     # bytes of one memcpy
_MATH_WORK = 8
_PRODUCT_WORK = 16              # multiply-adds of a matrix product that count as one operation


def statements_work(body: Sequence[Statement]) -> int:
    """Operations of one run of the statements."""
    return sum([_statement_work(statement) for statement in body])


def product_work(size: int, inner: int) -> int:
    """Operations of a matrix product with `size` results."""
    return size * inner // _PRODUCT_WORK


class LoopEmitter(Protocol):
    """The emitter of a kernel: `counted` emits a plain loop, `affine` the register of an extent.  `may_poll`: whether the kernel may poll
    for signals; `polls`: whether it does.
    """

    emit: ScalarEmitter
    polls: bool
    may_poll: bool

    def counted(self, extent: str, empty: bool = False) -> AbstractContextManager[str]: ...

    def affine(self, extent: Extent) -> str: ...


@contextmanager
def polled(emitter: LoopEmitter, extent: Extent, work: int) -> Iterator[str]:
    """`counted`; a long loop in chunks, with a poll for signals after each.  work: operations per iteration."""
    emit, work = emitter.emit, max(work, 1)
    expensive = work > POLL_WORK                                         # such iterations poll themselves
    if not emitter.may_poll or not isinstance(extent, int) or expensive or extent * work <= POLL_WORK:
        with emitter.counted(emitter.affine(extent), not isinstance(extent, int)) as index:
            yield index
        return
    chunk = POLL_WORK // work
    with emitter.counted(str(-(-extent // chunk))) as number:
        first = emit.put(f"mul nuw nsw i64 {number}, {chunk}")
        rest = emit.put(f"sub nuw nsw i64 {extent}, {first}")
        last = emit.put(f"icmp slt i64 {rest}, {chunk}")
        count = emit.put(f"select i1 {last}, i64 {rest}, i64 {chunk}")
        with emitter.counted(count) as at:
            yield emit.put(f"add nuw nsw i64 {first}, {at}")
        emitter.polls = True
        emit.declares[DECLARE_POLL] = None
        leave_if_interrupted(emit, emit.put(f"call i32 @{POLL}()"))


def leave_if_interrupted(emit: ScalarEmitter, status: str) -> None:
    """Branch to the return of the function if the status is not 0."""
    bad = emit.put(f"icmp ne i32 {status}, 0")
    emit.count += 1
    emit.lines += [f"  br i1 {bad}, label %interrupted, label %on{emit.count}", f"on{emit.count}:"]


def _statement_work(statement: Statement) -> int:
    if isinstance(statement, Loop):
        found = product_of(statement) if statement.kind == PRODUCT else None
        if found is not None:
            return product_work(upper(found.rows) * upper(found.columns), upper(found.terms))
        return max(upper(statement.extent), 0) * statements_work(statement.body)
    if isinstance(statement, Fill):
        return statement.buffer.size
    if not isinstance(statement, Let | Store | Accumulate):
        return 1
    work = _known.get(statement)
    if work is None:
        work = _known[statement] = 1 + _scalar_work(statement.value)
    return work


_known: WeakKeyDictionary[Statement, int] = WeakKeyDictionary()      # of computations: each loop around asks again


_FREE = frozenset(("const", "word", "local", "index"))


def _scalar_work(scalar: Scalar) -> int:
    """Each operation once, wherever its result is used."""
    work, seen, pending = 0, {id(scalar)}, [scalar]
    for found in pending:
        op = found.op
        if op in FUNCTIONS:
            work += _MATH_WORK
        elif op not in _FREE:
            work += 1
        for argument in found.args:
            if id(argument) not in seen:
                seen.add(id(argument))
                pending.append(argument)
    return work
