"""Reverse mode of `loop`: the loop again, giving residuals too, and the loop backwards over them.

A body (carried c, fixed v) -> c' is differentiated like any graph; its joint graph is cut in two (`partition`).  The forward part
becomes the body of a loop that also stores what the adjoint needs of each iteration, in stacks `[trips, ...]`; the adjoint part
becomes the body of a loop in the other direction, which carries the cotangents of c and adds to those of v:

    forward   c, stacks = loop(c, zeros; v):                  c' = body(c, v), stacks[t] = residuals
    adjoint   c̄, v̄ = loop backwards(c̄', v̄; stacks, v):        c̄ = adjoint(residuals[t], v, c̄'), v̄ += ...

What is the same in every iteration is computed before the loop and not stored; linear bodies store nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from bwcompiler import ops
from bwcompiler.errors import InternalError, UnsupportedError, at
from bwcompiler.ir.extent import Extent, Index, add_extents, known_le, scale_extent, upper
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Record, Value, constant, current_record, input_value
from bwcompiler.ir.types import DType, TensorType, dtype_of, tensor
from bwcompiler.ops.rules import zero_of
from bwcompiler.passes.autodiff import INPUT_SEED, JointGraph, differentiate
from bwcompiler.passes.partition import Partition, partition
from bwcompiler.passes.region_bodies import Hoisted, emit_values, hoist, padded, replaced_inputs


class Stack(NamedTuple):
    """Where one residual of a body is kept: row `over - lo` of an array with the largest extents that its shape may have."""

    shape: tuple[Extent, ...]
    dtype: DType
    over: Index

    @property
    def type(self) -> TensorType:
        trips = upper(add_extents(add_extents(self.over.hi, scale_extent(self.over.lo, -1)), 1))
        return tensor(self.dtype, (max(trips, 0), *padded(self.shape)))

    def _place(self) -> tuple[tuple[Extent, ...], tuple[int, ...]]:
        start = add_extents(self.over.extent(), scale_extent(self.over.lo, -1))
        return (start, *[0] * len(self.shape)), (1,) * (len(self.shape) + 1)

    def empty(self) -> Value:
        """The array, of zeros."""
        type_ = self.type
        return ops.full(value=zero_of(type_.dtype), shape=type_.shape, dtype=type_.dtype)

    def put(self, stack: Value, value: Value) -> Value:
        """The array with the value of this iteration."""
        starts, steps = self._place()
        return ops.slice_update(stack, ops.reshape(value, shape=(1, *self.shape)), starts=starts, steps=steps)

    def get(self, stack: Value) -> Value:
        """The value of this iteration."""
        starts, steps = self._place()
        return ops.reshape(ops.slice(stack, starts=starts, sizes=(1, *self.shape), steps=steps), shape=self.shape)


class LoopParts(NamedTuple):
    """A loop cut in two.

    forward    its inputs: what is carried, stacks, what is fixed.  Outputs: what is carried, stacks.
    adjoint    its inputs: cotangents of what is carried and active, then of what is fixed and active, then stacks, then those of the
               fixed inputs whose numbers are `kept`.
    arrays     captured by rules: more fixed inputs, behind the loop's operands.
    inputs     of the body, those that are fixed; `before` is what is computed of them before the loop, and `hoisted` are those of its
               values that are the last fixed inputs.
    changing   the numbers of the carried operands that have cotangents; fixed: of the others.
    """

    forward: Graph
    adjoint: Graph
    stacks: tuple[Stack, ...]
    kept: tuple[int, ...]
    arrays: tuple[Any, ...]
    inputs: tuple[Value, ...]
    before: tuple[Value, ...]
    hoisted: tuple[Value, ...]
    changing: tuple[int, ...]
    fixed: tuple[int, ...]


def cut_loop(loop: Value, body: Graph, flags: Sequence[bool]) -> LoopParts:
    """Differentiate a body with respect to the inputs that are flagged, and cut the result in two."""
    if abs(loop.attrs["step"]) != 1:
        raise UnsupportedError(at(loop.source, f"the derivative of a loop in steps of {loop.attrs['step']} is not supported\n"
                               "  hint: count its iterations, and compute the index from their number"))
    carried, count = loop.attrs["carried"], len(body.inputs)
    changing = tuple([k for k in range(carried) if flags[k]])
    fixed = tuple([k for k in range(carried, count) if flags[k]])
    joint = differentiate(body, [*changing, *fixed], [INPUT_SEED if k in changing else None for k in range(carried)], started_from=fixed)
    graph = joint.graph.replace(captured=0)
    seeds = [position for position in joint.seeds if position is not None] + list(joint.started)
    taken = set(seeds).union(range(carried))
    never_empty = known_le(loop.attrs["lo"], loop.attrs["hi"]) is True
    lifted = hoist(graph, [value for k, value in enumerate(graph.inputs) if k not in taken], never_empty)
    saved, held = _as_saved(lifted.graph, carried)
    parts = partition(saved, seeds, len(body.outputs))
    return _assemble(loop, body, joint, lifted, parts, held, (changing, fixed), [lifted.graph.inputs[k] for k in seeds])


def _as_saved(graph: Graph, carried: int) -> tuple[Graph, dict[Value, Value]]:
    """The graph in which what is carried is a value that costs its bytes if the adjoint reads it, not an argument that is there anyway;
    and what these values stand for."""
    with Record() as record:
        kept = {value: ops.barrier(value) for value in graph.inputs[:carried]}
    for value, held in kept.items():
        held.name = value.label
    return replaced_inputs(graph, kept, graph.inputs, record.values), {held: value for value, held in kept.items()}


def _assemble(loop: Value, body: Graph, joint: JointGraph, lifted: Hoisted, parts: Partition, held: dict[Value, Value],
              active: tuple[tuple[int, ...], tuple[int, ...]], seeds: Sequence[Value]) -> LoopParts:
    carried, index = loop.attrs["carried"], body.index
    if index is None:
        raise InternalError(f"{loop!r} has a body without an index")
    number = {value: k for k, value in enumerate(parts.forward.inputs[carried:])}
    holders = dict(zip(parts.residuals, parts.adjoint.inputs, strict=False))
    stored = [value for value in parts.residuals if value not in number]
    kept = [value for value in parts.residuals if value in number]
    stacks = tuple([Stack(value.shape, value.dtype, index) for value in stored])
    forward = _forward_body(parts.forward, held, carried, stored, stacks)
    found = iter(parts.adjoint.outputs)
    cotangents = [None if position is None else next(found) for position in joint.cotangents]
    adjoint = _adjoint_body(parts.adjoint, seeds, [holders[value] for value in stored], stacks, [holders[value] for value in kept],
                            cotangents)
    inputs = tuple([value for value in joint.graph.inputs[carried:] if value in number])
    return LoopParts(forward, adjoint, stacks, tuple([number[value] for value in kept]), joint.captured, inputs, lifted.values,
                     lifted.hoisted, *active)


def _forward_body(graph: Graph, held: dict[Value, Value], carried: int, stored: Sequence[Value], stacks: Sequence[Stack]) -> Graph:
    """The body that also fills the stacks; what only marked the carried values goes."""
    mapping: dict[Value, Value] = {}
    body = []
    for value in graph.body:
        if value in held:
            mapping[value] = held[value]
            continue
        copy = value.with_operands(tuple([mapping.get(operand, operand) for operand in value.operands]))
        if copy is not value:
            mapping[value] = copy
        body.append(copy)
    inputs = [input_value(stack.type, f"{value.label}.stack") for stack, value in zip(stacks, stored, strict=True)]
    with Record() as record:
        filled = [stack.put(whole, mapping.get(value, value)) for stack, whole, value in zip(stacks, inputs, stored, strict=True)]
    outputs = [*[mapping.get(output, output) for output in graph.outputs[:carried]], *filled]
    return graph.replace(inputs=[*graph.inputs[:carried], *inputs, *graph.inputs[carried:]],
                         body=live_values([*body, *record.values], outputs), outputs=outputs)


def _adjoint_body(graph: Graph, seeds: Sequence[Value], stored: Sequence[Value], stacks: Sequence[Stack], kept: Sequence[Value],
                  cotangents: Sequence[Value | None]) -> Graph:
    """The body of the loop backwards: `stored` are the inputs that stand for residuals in stacks, `kept` those for fixed inputs."""
    inputs = [input_value(stack.type, f"{value.label}.stack") for stack, value in zip(stacks, stored, strict=True)]
    with Record() as record:
        mapping = {value: stack.get(whole) for stack, whole, value in zip(stacks, inputs, stored, strict=True)}
        outputs = [constant(0.0, seed.type) if found is None else found for found, seed in zip(cotangents, seeds, strict=True)]
    for value, read in mapping.items():
        read.name = value.name
    graph = graph.replace(outputs=outputs)
    made = replaced_inputs(graph, mapping, [*seeds, *inputs, *kept], record.values)
    return made.replace(body=live_values(made.body, made.outputs))


class LoopRule:
    """The reverse derivative of one loop that was cut in two, for `region_link`."""

    content_key = ""                   # what it computes is said by the loops it is made of

    def __init__(self, loop: Value, parts: LoopParts) -> None:
        self.loop = loop
        self.parts = parts

    def __repr__(self) -> str:
        return f"adjoint of {self.loop!r}"

    def pull(self, present: Sequence[Value | None], cts: Sequence[Value | None], operands: Sequence[Value], results: Sequence[Value],
             residuals: Sequence[Value], needs: Sequence[bool]) -> list[Value | None]:
        """The loop backwards: cotangents of the operands, added to those present."""
        parts, attrs = self.parts, self.loop.attrs
        start = [_or_zero(cts[k], operands[k]) for k in parts.changing] + [_or_zero(present[k], operands[k]) for k in parts.fixed]
        backwards = ops.loop(*start, *residuals, lo=attrs["lo"], hi=attrs["hi"], step=-attrs["step"], carried=len(start),
                             body=parts.adjoint)
        found = list(present)
        for place, k in enumerate((*parts.changing, *parts.fixed)):
            total = ops.item(backwards, index=place)
            before = present[k]
            found[k] = ops.add(before, total) if before is not None and k in parts.changing else total
        return found


def _or_zero(ct: Value | None, like: Value) -> Value:
    return constant(0.0, like.type) if ct is None else ct


def expand_loop(loop: Value, operands: Sequence[Value], body: Graph, arrays: Sequence[Any], flags: Sequence[bool]) -> Value:
    """Emit the loop that gives residuals, and what ties its results to its operands.

    body, its inputs behind the operands being `arrays`, is that of the loop, prepared for a derivative with respect to the inputs flagged.
    """
    record = current_record()
    if record is None:
        raise InternalError(f"{loop!r} is expanded outside of any record")
    parts, attrs = cut_loop(loop, body, flags), loop.attrs
    carried = attrs["carried"]
    captured = [record.capture(array, tensor(dtype_of(array.dtype), array.shape)) for array in (*arrays, *parts.arrays)]
    fixed = [*operands[carried:], *captured]
    mapping = dict(zip(parts.inputs, fixed, strict=True))
    emit_values(parts.before, mapping, record)
    fixed += [mapping[value] for value in parts.hoisted]
    looped = ops.loop(*operands[:carried], *[stack.empty() for stack in parts.stacks], *fixed, lo=attrs["lo"], hi=attrs["hi"],
                      step=attrs["step"], carried=carried + len(parts.stacks), body=parts.forward)
    items = [ops.item(looped, index=k) for k in range(carried + len(parts.stacks))]
    residuals = [*items[carried:], *[fixed[number] for number in parts.kept]]
    return ops.region_link(*operands, *items[:carried], *residuals, rule=LoopRule(loop, parts), given=len(operands), results=carried)
