"""Capture of loops whose number of iterations is known, or given by indices of enclosing loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler import ops, tree
from bwcompiler.frontend.source.bodies.after_loops import place
from bwcompiler.frontend.source.bodies.capture import Traceable
from bwcompiler.frontend.source.bodies.integers import may_overflow
from bwcompiler.frontend.source.bodies.iteration import Elements
from bwcompiler.frontend.source.bodies.notes import note_captured
from bwcompiler.frontend.source.bodies.plain_loops import MOST, is_known_array
from bwcompiler.frontend.source.effects.places import attempted
from bwcompiler.frontend.source.syntax.names import Variables
from bwcompiler.frontend.source.variables import Divided, Names, NotCapturable, not_capturable, site_of
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.control_flow.bodies import Leaf, Outer, Traced, added, as_kind, region_graph, zeros
from bwcompiler.frontend.tracing.indexing.index_handle import IndexTracer, index_handle, index_like
from bwcompiler.frontend.tracing.indexing.index_sides import Parted
from bwcompiler.frontend.tracing.policy import Policy
from bwcompiler.frontend.tracing.promotion import strong
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.extent import Index, add_extents, lower, mentions_index, substitute, upper
from bwcompiler.ir.op import Value, input_value


def counted(body: Callable[[Any], None], variables: Variables, elements: Elements, policy: Policy,
            inner: Callable[[Any], None] | None = None, divisible: bool = False, parted: bool = False, may_peel: bool = False) -> None:
    """Record a loop over elements of which the number is an extent of at least one; `inner` is the user's body that `body` calls.

    divisible, parted   whether NotCapturable may ask for several iterations to be one, and for two parts of the loop.
    may_peel            whether it may ask for the first iteration to be another one than the others.
    """
    whole, body = body, inner or body
    names, count = Names(body), elements.count
    index = Index(0, add_extents(count, -1), variables.stored[0] if variables.stored else "i")

    def run() -> None:
        whole(elements.at(call(index_handle, index.extent())))

    traceable, mark = Traceable(names, variables, run, site_of(body), count, index, first=lambda: whole(elements.at(0))), policy.mark()
    if elements.traced is not None:
        traceable.begin_like(elements.traced)
    if divisible:
        policy.divisible.add(index)
    if parted:
        policy.parted.add(index)
    try:
        leaves, traced = attempted(lambda: traceable.traced(body.__name__), policy, traceable.scope)
        _check(traceable, leaves, traced, elements)
        if may_peel and isinstance(count, int):
            _require_types_kept(traceable, leaves, traced)
        items = call(_emit, leaves, traced, index)
    except BaseException as refused:
        traceable.restore()
        policy.forget(mark)
        if isinstance(refused, Divided) and refused.index is index:
            raise NotCapturable("a range in it begins or ends where the remainder of its index says", repeat=refused.parts) from None
        if isinstance(refused, Parted) and refused.index is index:
            raise NotCapturable("a slice in it begins or ends at the larger or smaller of two numbers made of its index",
                                end=refused.end) from None
        raise
    finally:
        policy.divisible.discard(index)
        policy.parted.discard(index)

    for tables in traceable.drawn.values():
        tables.settle()
    note_captured(traceable, traced, f"one of {count} iterations{'' if inner is None else ', each of which is several'}", policy)

    def last(found: IndexTracer) -> Any:
        return call(index_like, found, substitute(found._extent, {index: index.hi}))

    place(traceable, leaves, items, last)
    if isinstance(count, int):
        _settle_counters(traceable, traced, count)


def _check(traceable: Traceable, leaves: Sequence[Leaf], traced: Traced, elements: Elements) -> None:
    """Raise NotCapturable for a loop that is better unrolled, or that one op cannot be."""
    result = traced.result
    lifted = {handle._storage for handle in result.lifted} - {rows._storage for rows in traceable.rows}
    lifted -= {array._storage for indexed in traceable.indexed.values() for array in indexed.known_arrays()}
    carries = any(isinstance(leaf, Tracer) for name in traceable.order() for leaf in tree.leaves(traceable.entry[name]))
    is_known = upper(elements.count) <= MOST and all(map(is_known_array, result.captured))
    if not lifted and not carries and (elements.is_tried or not result.captured or is_known):
        not_capturable("")                         # computes with numbers that are known
    if may_overflow(result.graph, [number for number, leaf in enumerate(leaves) if leaf.kind is int], upper(elements.count)):
        not_capturable("it computes with an integer that may have more than 64 bits")
    if lower(elements.count) < 1 and any(result.name not in traceable.carried for result in traceable.results):
        not_capturable("the loop may have no iterations, and a variable that it binds is used after it")


def _require_types_kept(traceable: Traceable, leaves: Sequence[Leaf], traced: Traced) -> None:
    """Raise NotCapturable for a loop that carries another type than NumPy has in the first iteration, or in the others.

    What is carried is wide enough for both.  A body may give a narrower type, float32 for float64; and an array may be narrower before the
    loop, when what is made like it, or assigned to a copy of it, is rounded in the first iteration.
    """
    names = [name for name in traceable.order() for _ in traceable.kinds[name]]
    before = [leaf for name in traceable.order() for leaf in tree.leaves(traceable.entry[name])]
    for name, leaf, kind, first in zip(names, leaves, traced.kinds, before, strict=False):
        carried, after = strong(leaf.kind), strong(kind)
        is_wider = isinstance(first, Tracer | np.ndarray) and bool(first.shape) and first.dtype != carried.numpy
        if carried is not after or is_wider:
            now = first.dtype if is_wider else carried.numpy
            not_capturable(f"{name} is {now} before the first iteration and {after.numpy} after it", peel=True)


def _settle_counters(traceable: Traceable, traced: Traced, count: int) -> None:
    """After the loop integers that count its iterations are known: n += 1."""
    place = 0
    for name in traceable.order():
        start = traceable.entry[name]
        step = _step(traced.result.outputs[place], traced.result.graph.inputs[place]) if type(start) is int else None
        if step is not None and not traceable.names.is_place(name):
            traceable.names[name] = start + step * count
        place += len(traceable.kinds[name])


def _step(after: Value, before: Value) -> int | None:
    """The number that an iteration adds; None where it is not one, or something else happens."""
    if after.op is not ops.add or before not in after.operands:
        return None
    other = after.operands[0] if after.operands[1] is before else after.operands[1]
    step = other.attrs.get("value") if other.op is ops.full else None
    return step if type(step) is int else None


def _emit(leaves: Sequence[Leaf], traced: Traced, index: Index) -> list[Value]:
    """The loop op: values of what it carries, then the last ones of what is only made in it."""
    result = traced.result
    outer = Outer([result])
    carried, final, read = outer.inputs(result)
    count = len(leaves)
    made = result.outputs[count:]
    for value in made:
        if mentions_index({"shape": value.shape}):
            not_capturable(f"an array of shape {value.shape}, which depends on the iteration, is used after the loop")
    arguments, held = list(result.graph.inputs[:count]), [input_value(value.type) for value in made]
    with added() as record:
        after = as_kind(result.outputs[:count], [leaf.kind for leaf in leaves])
    graph = region_graph(result, [*arguments, *held, *carried, *read], record, [*after, *made, *final], index)
    start = [*[leaf.value for leaf in leaves], *[zeros(value) for value in made], *outer.assigned_values()]
    looped = ops.loop(*start, *outer.read_values(), lo=index.lo, hi=index.hi, step=1, carried=len(start), body=graph)
    items = [ops.item(looped, index=k) for k in range(len(start))]
    outer.assign(items[count + len(made):])
    return items[:count + len(made)]
