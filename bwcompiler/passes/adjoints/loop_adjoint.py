"""Reverse mode of `loop`: the loop again, which also stores residuals, and a reverse loop over them.

    forward   c, stacks = loop(c, zeros; v):                  c', residuals = forward(c, v), stacks[t] = residuals
    adjoint   c̄, v̄ = loop backwards(c̄', v̄; stacks, v):        c̄, v̄ = adjoint(c̄', v̄, stacks[t], v)

The body is cut in two by `cut_body`; linear bodies store nothing.
"""

from __future__ import annotations

from collections.abc import Container, Sequence, Set
from typing import Any, NamedTuple

from bwcompiler import ops
from bwcompiler.errors import InternalError, UnsupportedError, at
from bwcompiler.ir.extent import Extent, Index, add_extents, known_le, scale_extent, upper
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Record, Value, constant, current_record, input_value
from bwcompiler.ir.types import DType, TensorType, tensor
from bwcompiler.ops.rules import zero_of
from bwcompiler.passes.adjoints.bodies.cut_body import ALL, SAFE, CutBody, Cutting, cut_body
from bwcompiler.passes.adjoints.late_products import Late, sum_of_products, take_products
from bwcompiler.passes.loops.region_bodies import padded, replaced_inputs


class Stack(NamedTuple):
    """Where one residual of a body is kept: row `over - lo` of an array with the largest extents that its shape may have."""

    shape: tuple[Extent, ...]
    dtype: DType
    over: Index

    @property
    def type(self) -> TensorType:
        return tensor(self.dtype, (trips_of(self.over), *padded(self.shape)))

    def _place(self) -> tuple[tuple[Extent, ...], tuple[int, ...]]:
        start = add_extents(self.over.extent(), scale_extent(self.over.lo, -1))
        return (start, *[0] * len(self.shape)), (1,) * (len(self.shape) + 1)

    def empty(self) -> Value:
        """The array before the loop: of every row, what is written is read, and nothing else."""
        return ops.unset(shape=self.type.shape, dtype=self.dtype)

    def put(self, stack: Value, value: Value) -> Value:
        """The array with the value of this iteration."""
        starts, steps = self._place()
        return ops.slice_update(stack, ops.reshape(value, shape=(1, *self.shape)), starts=starts, steps=steps)

    def get(self, stack: Value) -> Value:
        """The value of this iteration."""
        starts, steps = self._place()
        return ops.reshape(ops.slice(stack, starts=starts, sizes=(1, *self.shape), steps=steps), shape=self.shape)


def trips_of(index: Index) -> int:
    """How many values an index takes at most."""
    return max(upper(add_extents(add_extents(index.hi, scale_extent(index.lo, -1)), 1)), 0)


def zeros(type_: TensorType) -> Value:
    """An array of zeros."""
    return ops.full(value=zero_of(type_.dtype), shape=type_.shape, dtype=type_.dtype)


class LoopRule:
    """The reverse derivative of one loop, for `region_link`: its residuals are stacks and fixed operands."""

    content_key = ""                   # what it computes is said by the loops it is made of
    reached: Set[int] | None = None    # the numbers of the results that depend on what is differentiated; None: all may

    def __init__(self, loop: Value, parts: CutBody, late: Late, adjoint: Graph, extras: Sequence[Stack]) -> None:
        self.loop = loop
        self.parts = parts
        self.late = late
        self.adjoint = adjoint
        self.extras = extras
        self.backwards: Value | None = None
        self.masked = parts.masked
        self.active = [k for place, k in enumerate(parts.active) if place not in late.untouched]

    def undone(self) -> list[tuple[int, int]]:
        """Per restored array its number among what is carried, and which result of the loop backwards it is."""
        return [(number, place) for place, number in enumerate(self.parts.undone, len(self.active))]

    def __repr__(self) -> str:
        return f"adjoint of {self.loop!r}"

    def pull(self, present: Sequence[Value | None], cts: Sequence[Value | None], operands: Sequence[Value], results: Sequence[Value],
             residuals: Sequence[Value], needs: Sequence[bool]) -> list[Value | None]:
        """The loop backwards: cotangents of the operands, added to those present."""
        attrs, carried = self.loop.attrs, self.loop.attrs["carried"]
        start = [or_zero(cts[k] if k < carried else present[k], operands[k]) for k in self.active]
        start += [results[number] for number in self.parts.undone] + [stack.empty() for stack in self.extras]
        backwards = ops.loop(*start, *residuals, lo=attrs["lo"], hi=attrs["hi"], step=-attrs["step"], carried=len(start),
                             body=self.adjoint)
        self.backwards = backwards
        found = totals(present, self.active, range(carried), backwards)
        first = len(start) - len(self.extras)
        extras = [ops.item(backwards, index=place) for place in range(first, len(start))]
        for product in self.late.products:
            k = self.parts.active[product.place]
            term, before = sum_of_products(product, residuals[:self.parts.residuals], extras), found[k]
            found[k] = term if before is None else ops.add(before, term)
        return found


def or_zero(ct: Value | None, like: Value) -> Value:
    """A cotangent of a value, zero where there is none."""
    return constant(0.0, like.type) if ct is None else ct


def totals(present: Sequence[Value | None], active: Sequence[int], apart: Container[int], backwards: Value,
           first: int = 0) -> list[Value | None]:
    """The cotangents of operands: what the adjoint gave, its results from `first` on, with those present of the operands `apart`, such as
    what a loop carries; those of others have been added to already."""
    found = list(present)
    for place, k in enumerate(active, first):
        total = ops.item(backwards, index=place)
        before = present[k]
        found[k] = ops.add(before, total) if before is not None and k in apart else total
    return found


def cut_loop(loop: Value, body: Graph, flags: Sequence[bool], masked: Set[int], passed_on: Set[int], restoring: bool) -> CutBody:
    """The body of a loop, prepared for a derivative with respect to the inputs flagged, cut in two; the others: see `cut_body`."""
    carried = loop.attrs["carried"]
    hoisting = ALL if known_le(loop.attrs["lo"], loop.attrs["hi"]) else SAFE
    assert body.index is not None
    how = Cutting(hoisting, trips_of(body.index), loop.attrs["step"], passed_on, restoring=restoring, masked=masked)
    return cut_body(body, carried, flags, [k for k in range(carried) if flags[k]], how)


def expand_loop(loop: Value, operands: Sequence[Value], body: Graph, arrays: Sequence[Any], parts: CutBody) -> Value:
    """Emit the loop that gives residuals, and what ties its results to its operands.

    body, its inputs behind the operands being `arrays`, is that of the loop, prepared for a derivative, and cut in these parts.
    """
    record, attrs = current_record(), loop.attrs
    if record is None or body.index is None:
        raise InternalError(f"{loop!r} is expanded outside of any record, or has a body without an index")
    if abs(attrs["step"]) != 1:
        raise UnsupportedError(at(loop.source, f"the derivative of a loop in steps of {attrs['step']} is not supported\n"
                               "  hint: count its iterations, and compute the index from their number"))
    carried = attrs["carried"]
    stacks = [Stack(value.shape, value.dtype, body.index) for value in parts.stored()]
    fixed = parts.fixed_operands(operands[carried:], arrays, record)
    looped = ops.loop(*operands[:carried], *[stack.empty() for stack in stacks], *fixed, lo=attrs["lo"], hi=attrs["hi"],
                      step=attrs["step"], carried=carried + len(stacks), body=_storing(parts, carried, stacks))
    items = [ops.item(looped, index=k) for k in range(carried + len(stacks))]
    for item, value in zip(items[carried:], parts.stored(), strict=True):
        item.name = f"{value.label}.stack"
    residuals = [*items[carried:], *[fixed[number] for number in parts.kept], *[items[number] for number in parts.ended]]
    places = [place for place, k in enumerate(parts.active) if k >= carried]
    first = len(parts.active) + len(parts.undone)
    fixed_trips = isinstance(add_extents(attrs["hi"], scale_extent(attrs["lo"], -1)), int)
    late = Late(parts.adjoint)
    if fixed_trips:
        late = take_products(parts.adjoint, places, parts.adjoint.inputs[first:first + len(stacks)], trips_of(body.index))
    extras = [Stack(value.shape, value.dtype, body.index) for value in late.extras]
    rule = LoopRule(loop, parts, late, _reading(parts, late, stacks, extras), extras)
    return ops.region_link(*operands, *items[:carried], *residuals, rule=rule, given=len(operands), results=carried)


def stack_inputs(parts: CutBody, types: Sequence[TensorType]) -> list[Value]:
    """Inputs for the arrays in which the residuals are."""
    return [input_value(type_, f"{value.label}.stack") for type_, value in zip(types, parts.stored(), strict=True)]


def _storing(parts: CutBody, carried: int, stacks: Sequence[Stack]) -> Graph:
    """The forward body that carries the stacks behind what is carried."""
    graph = parts.forward
    inputs = stack_inputs(parts, [stack.type for stack in stacks])
    with Record() as record:
        filled = [stack.put(whole, value) for stack, whole, value in zip(stacks, inputs, parts.stored(), strict=True)]
    return graph.replace(inputs=[*graph.inputs[:carried], *inputs, *graph.inputs[carried:]], body=[*graph.body, *record.values],
                         outputs=[*graph.outputs[:carried], *filled])


def _reading(parts: CutBody, late: Late, stacks: Sequence[Stack], extras: Sequence[Stack]) -> Graph:
    """The adjoint body with stacks in the places of residuals, which stores the factors of late products and does not carry what it does
    not add to."""
    graph, first = late.graph, len(parts.active) + len(parts.undone)
    held = graph.inputs[first:first + len(stacks)]
    inputs = stack_inputs(parts, [stack.type for stack in stacks])
    with Record() as record:
        mapping = {value: stack.get(whole) for stack, whole, value in zip(stacks, inputs, held, strict=True)}
    for value, read in mapping.items():
        read.name = value.name
    carried = [one for place, one in enumerate(graph.inputs[:first]) if place not in late.untouched]
    own = [input_value(stack.type, "factors") for stack in extras]
    made = replaced_inputs(graph, mapping, [*carried, *own, *inputs, *graph.inputs[first + len(stacks):]], record.values)
    with Record() as record:
        filled = [stack.put(whole, value) for stack, whole, value in zip(extras, own, made.outputs[first:], strict=True)]
    outputs = [one for place, one in enumerate(made.outputs[:first]) if place not in late.untouched]
    body = [*made.body, *record.values]
    return made.replace(body=live_values(body, [*outputs, *filled]), outputs=[*outputs, *filled])
