"""Loops whose derivative would keep much more than caches hold are differentiated in segments.

    loop k in 0..n-1: c = body(c)          ->          loop s in 0..n/K-1: checkpoint(loop k in sK..sK+K-1: c = body(c))

The values that an iteration keeps are written to memory and read back, which takes longer than recomputing a cheap iteration whose arrays
are in the cache.  So only the state at the start of each segment is kept; on the way back the iterations of the segment run again, and what
they keep then stays in the cache.  For n iterations this keeps n / K states, and what K iterations keep.  Remaining iterations are a
loop after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.ir.extent import Extent, Index, add_extents, element_count, scale_extent
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Record, Value, input_value
from bwcompiler.ir.types import TupleType
from bwcompiler.ops.calls.region import Policy
from bwcompiler.passes.adjoints.bodies.cut_body import CutBody
from bwcompiler.passes.adjoints.loop_adjoint import trips_of
from bwcompiler.passes.loops.iterations.split_loops import copy_of

LEAST = 1 << 24                # bytes that all iterations keep
ROOM = 1 << 20                 # bytes that a segment keeps
SHARE = 8                      # of a segment, what it begins with is at most 1/SHARE of what it keeps
MOST = 1 << 23                 # bytes that a segment keeps where it begins with much

# What an iteration costs, in units of 1/64 of the time in which a byte is kept: written to memory, and read from there.
NEAR, FAR = 40, 16                         # it may cost per byte that it keeps, where a segment fits into the first caches, and elsewhere
MOVED, COMPUTED, EXPENSIVE = 4, 2, 160     # per byte read or written, of a result, of one of a function
TAKEN, FLOATING = 64, 6                    # per byte of what is gathered, or scattered; per floating-point operation of a product
STEP, AROUND = 128, 1024                   # per operation, and per iteration of a loop inside


class Segments(NamedTuple):
    """A loop over segments, and what makes the loop over the iterations that are left of its results; None where none are."""

    loop: Value
    size: int
    left: int

    def rest(self, loop: Value, states: Sequence[Value], fixed: Sequence[Value]) -> Value:
        """The loop over the iterations that are left."""
        done = self.loop.attrs["body"].index.hi + 1
        return _over(loop, done * self.size, self.left, [*states, *fixed])


def segments(loop: Value, parts: CutBody) -> Segments | None:
    """A loop whose body is cut in these parts, in segments; None where that does not pay."""
    size = _size(loop, parts)
    if size is None:
        return None
    attrs = loop.attrs
    trips = trips_of(attrs["body"].index)
    index = Index(0, trips // size - 1, "segment")
    with Record():
        over = ops.loop(*loop.operands, lo=index.lo, hi=index.hi, step=1, carried=attrs["carried"], body=_segment(loop, index, size))
    over.name, over.source, over.forward = loop.name, loop.source, loop.forward
    return Segments(over, size, trips % size)


def _segment(loop: Value, index: Index, size: int) -> Graph:
    """The body of the loop over segments: one of them, which is run again where its derivative is taken."""
    body, carried = loop.attrs["body"], loop.attrs["carried"]
    outer, inner = [[input_value(value.type, value.name, value.source) for value in body.inputs] for _ in range(2)]
    with Record() as inside:
        inside.source = loop.source
        part = _over(loop, scale_extent(index.extent(), size), size, inner)
        outputs = [ops.item(part, index=k) for k in range(carried)]
    with Record() as record:
        record.source = loop.source
        run = ops.checkpoint(*outer, body=Graph(body.name, inner, inside.values, outputs), policy=Policy())
        results = [ops.item(run, index=k) for k in range(carried)]
    return Graph(body.name, outer, record.values, results, index)


def _over(loop: Value, done: Extent, count: int, operands: Sequence[Value]) -> Value:
    """The loop over `count` iterations behind the first `done`, in the current record."""
    attrs = loop.attrs
    if attrs["step"] > 0:
        lo = add_extents(attrs["lo"], done)
        hi = add_extents(lo, count - 1)
    else:
        hi = add_extents(attrs["hi"], scale_extent(done, -1))
        lo = add_extents(hi, 1 - count)
    body = copy_of(attrs["body"], Index(lo, hi, attrs["body"].index.name))
    return ops.loop(*operands, lo=lo, hi=hi, step=attrs["step"], carried=attrs["carried"], body=body)


# ----- what pays
def _size(loop: Value, parts: CutBody) -> int | None:
    """How many iterations a segment has; None where the loop is better in one piece."""
    attrs, body = loop.attrs, loop.attrs["body"]
    kept, trips = parts.kept_bytes(), trips_of(body.index)
    if trips * kept < LEAST or abs(attrs["step"]) != 1 or not all(isinstance(attrs[end], int) for end in ("lo", "hi")):
        return None
    state = _state(body, attrs["carried"])
    size = max(ROOM // kept, -(-SHARE * state // kept), 1)
    work = _work(body)
    if work is None or 2 * size > trips or size * kept > MOST:
        return None
    return size if work <= (NEAR if size * kept <= 4 * ROOM else FAR) * kept else None


def _state(body: Graph, carried: int) -> int:
    """The bytes that are carried, without arrays that are only written."""
    read = {operand for value in body.body for operand in (value.operands[1:] if value.op in ops.UPDATES else value.operands)}
    return sum([value.type.nbytes for value in body.inputs[:carried] if value in read])


def _work(body: Graph) -> int | None:
    """What computing an iteration again costs; None where it is not to be done twice."""
    costs = [_cost(value) for value in body.body]
    return None if any(cost is None for cost in costs) else sum([cost for cost in costs if cost is not None])


def _cost(value: Value) -> int | None:
    kind, moved = value.op.kind, sum([_bytes(operand) for operand in value.operands]) + _bytes(value)
    if value.op in ops.UPDATES:
        return STEP + 2 * MOVED * _bytes(value.operands[1])
    if kind in ("constant", "layout", "item"):
        return 0
    if kind == "elementwise":
        return STEP + (COMPUTED if value.op.cheap else EXPENSIVE) * _bytes(value)
    if kind in ("reduction", "scan"):
        return STEP + MOVED * moved
    if kind in ("index", "push", "check"):
        return STEP + TAKEN * moved
    if value.op is ops.matmul:
        return STEP + MOVED * moved + 2 * FLOATING * element_count(value.shape) * element_count(value.operands[0].shape[-1:])
    if value.op is ops.loop:
        inside = _work(value.attrs["body"])
        return None if inside is None else STEP + trips_of(value.attrs["body"].index) * (AROUND + inside)
    if value.op is ops.cond:
        sides = [_work(value.attrs[region]) for region in value.op.regions]
        return None if any(side is None for side in sides) else STEP + sum([side for side in sides if side is not None])
    return None


def _bytes(value: Value) -> int:
    return 0 if isinstance(value.type, TupleType) else value.type.nbytes
