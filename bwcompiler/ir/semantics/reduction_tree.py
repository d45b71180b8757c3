"""The order in which reductions combine elements: the loop interpreter and native code both follow it, bit for bit.

In a vector loop with at least LANES iterations, or at least SHORT for sums and products of floats, iteration j feeds lane
j % LANES.  After BLOCK strips of LANES iterations the lanes of a float sum are flushed into block totals (doubles, for f32).  Below
the last loop that feeds the accumulator, the lanes, or the totals if there are any, are combined pairwise.  All other loops combine in
order.  An extent that depends on an outer loop counts as its largest value, so the tree is the same in all iterations.
"""

from __future__ import annotations

from bwcompiler.ir.extent import upper
from bwcompiler.ir.loop import Accumulate, Accumulator, Loop, Reduce, Statement
from bwcompiler.ir.types import F32, F64, DType

LANES = 32
SHORT = 12                    # fewer numbers are added faster sequentially than in lanes
BLOCK = 64                    # strips between flushes of a sum's lanes: 2048 elements


def in_lanes(body: list[Statement], iterations: int = 0) -> set[Accumulator]:
    """The accumulators that some long vector loop feeds.  iterations: of the vector loop around the body, if there is one."""
    found: set[Accumulator] = set()
    for statement in body:
        if isinstance(statement, Loop):
            found |= in_lanes(statement.body, upper(statement.extent) if statement.kind == "vector" else 0)
        elif isinstance(statement, Accumulate) and isinstance(statement.target, Accumulator):
            rounds = statement.target.dtype.is_float and statement.combine in ("add", "multiply")
            if iterations >= (SHORT if rounds else LANES):
                found.add(statement.target)
    return found


def flushed_sums(loop: Loop) -> list[Accumulator]:
    """The accumulators whose lanes a vector loop flushes: sums of floats, whose rounding errors would add up."""
    return [statement.target for statement in loop.body if isinstance(statement, Accumulate)
            and isinstance(statement.target, Accumulator) and statement.combine == "add" and statement.target.dtype.is_float]


def total_dtype(dtype: DType) -> DType:
    """Totals of blocks are added one after the other: in double precision, where the elements are not."""
    return F64 if dtype is F32 else dtype


def last_feeds(body: list[Statement], lanes: set[Accumulator]) -> dict[int, list[Accumulator]]:
    """Those of the accumulators opened in this body, by the number of its last loop that feeds them, in order of opening."""
    last: dict[Accumulator, int] = {}
    opened = [statement.accumulator for statement in body if isinstance(statement, Reduce) and statement.accumulator in lanes]
    for number, statement in enumerate(body):
        if opened and isinstance(statement, Loop):
            last.update((accumulator, number) for accumulator in opened if feeds(statement, accumulator))
    found: dict[int, list[Accumulator]] = {}
    for accumulator in opened:
        if accumulator in last:
            found.setdefault(last[accumulator], []).append(accumulator)
    return found


def feeds(loop: Loop, accumulator: Accumulator) -> bool:
    """Whether a loop combines something into accumulator."""
    return any((isinstance(s, Accumulate) and s.target is accumulator) or (isinstance(s, Loop) and feeds(s, accumulator))
               for s in loop.body)
