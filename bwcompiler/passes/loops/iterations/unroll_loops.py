"""Short loops over large arrays that do a little to each element are unrolled, and become one sweep over memory.

    for k in 0..12: y = y * x + c[k]          ->          y0 = y * x + c[0];  y1 = y0 * x + c[1];  ...

(As a loop, each iteration would read and write the whole array; unrolled, fusion keeps an element in registers through all of them.)
The same is done to loops that compute one column of an array from the previous ones (`y[:, k] = y[:, k - 1] * x + c[k]`), as mapped
recurrences do, with cheap operations.
"""

from __future__ import annotations

from bwcompiler import ops
from bwcompiler.ir.access import section_of
from bwcompiler.ir.extent import Section
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value, current_record
from bwcompiler.ir.types import TupleType
from bwcompiler.ops.calls.region import loop_indices
from bwcompiler.passes.loops.region_bodies import emit_values
from bwcompiler.passes.loops.replaced_regions import with_regions_replaced
from bwcompiler.passes.rewriting.rewriter import Rewritten

LEAST_BYTES = 1 << 13          # of what is carried: less stays in the first cache from one iteration to the next
LEAST_PART = 1 << 9            # of what is read of it or written into it
MOST_VALUES = 64               # operations on elements in all iterations: with their derivatives they are a few loops


def unroll_loops(graph: Graph) -> Rewritten:
    """The graph with the iterations of such loops written out; the same graph where there are none."""
    return with_regions_replaced(graph, unroll_loops, lambda value: _written_out(value) if value.op is ops.loop and _pays(value) else None)


def _iterations(loop: Value) -> range | None:
    lo, hi, step = (loop.attrs[name] for name in ("lo", "hi", "step"))
    return loop_indices(lo, hi, step) if isinstance(lo, int) and isinstance(hi, int) else None


def _pays(loop: Value) -> bool:
    """Whether what an iteration makes of what is carried is made element by element, by few operations."""
    iterations, body, carried = _iterations(loop), loop.attrs["body"], loop.attrs["carried"]
    states = [value.type for value in body.inputs[:carried]]
    if not iterations or any(not all(isinstance(extent, int) for extent in type_.shape) for type_ in states):
        return False
    if max([type_.nbytes for type_ in states], default=0) < LEAST_BYTES or _reads_neighbours(body, carried):
        return False
    carries: set[Value] = set(body.inputs[:carried])
    work, cheap, columns = 0, True, False
    for value in body.body:
        if isinstance(value.type, TupleType) or value.op.regions or not value.op.pure:
            return False
        moving = not carries.isdisjoint(value.operands)
        if moving:
            carries.add(value)
        columns |= moving and value.op is ops.slice_update
        if value.op.kind == "elementwise":
            work, cheap = work + 1, cheap and value.op.cheap
        elif value.op.kind not in ("constant", "layout", "index") or (moving and not _is_swept(value)):
            return False
    return work * len(iterations) <= MOST_VALUES and (cheap or not columns)


def _reads_neighbours(body: Graph, carried: int) -> bool:
    """Whether an element is made of others of the iteration before, as a stencil does: these have to be stored between the iterations."""
    sections: dict[Value, list[Section]] = {value: [] for value in body.inputs[:carried]}
    for value in body.body:
        if value.op is ops.slice and value.operands[0] in sections and value.type.is_fixed and value.type.nbytes >= LEAST_PART:
            sections[value.operands[0]].append(section_of(value))
    return any(one != other and not one.is_apart(other) for found in sections.values() for one in found for other in found)


def _is_swept(value: Value) -> bool:
    """Whether what is carried, or a part of it, is moved in the order in which it is computed: a column that follows from the last one."""
    if value.op in (ops.slice, ops.slice_update):
        part = value.type if value.op is ops.slice else value.operands[1].type
        return bool(part.is_fixed and part.nbytes >= LEAST_PART)
    return value.op in (ops.broadcast, ops.reshape)


def _written_out(loop: Value) -> list[Value]:
    """The results of a loop, in the current record."""
    iterations, body, carried, record = _iterations(loop), loop.attrs["body"], loop.attrs["carried"], current_record()
    assert iterations is not None and record is not None
    states, fixed = list(loop.operands[:carried]), loop.operands[carried:]
    for number in iterations:
        mapping = dict(zip(body.inputs, (*states, *fixed), strict=True))
        emit_values(body.body, mapping, record, {body.index: number})
        states = [mapping[output] for output in body.outputs]
    return states
