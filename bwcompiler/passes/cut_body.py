"""A body cut in two: what runs forwards and says which values the adjoint needs, and the adjoint that starts from them.

A body (carried c, fixed v) -> c' is differentiated like any graph, and its joint graph is cut by `partition`:

    forward   c, v -> c', residuals
    adjoint   c̄', v̄, residuals, v -> c̄, v̄ + ...

What is carried costs its bytes if the adjoint reads it (it is another one in every iteration); what is fixed is there anyway, and what
can be computed of it alone is computed once, before the loop.  Branches are bodies that carry nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from bwcompiler import ops
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Record, Value, constant
from bwcompiler.ir.types import dtype_of, tensor
from bwcompiler.passes.autodiff import INPUT_SEED, differentiate
from bwcompiler.passes.partition import partition
from bwcompiler.passes.region_bodies import Hoisted, emit_values, hoist, replaced_inputs
from bwcompiler.passes.unlink_regions import unlink_regions

ALL, SAFE, NOTHING = "all", "safe", "nothing"


class CutBody(NamedTuple):
    """A body cut in two.

    forward    inputs: what is carried, what is fixed.  Outputs: those of the body, then residuals.
    adjoint    inputs: cotangents of the outputs that are `seeded`, those so far of the fixed inputs that are active, residuals, then the
               fixed inputs whose numbers are `kept`.  Outputs: cotangents of the active inputs.
    seeded     the numbers of the outputs that have cotangents.
    active     the numbers of the inputs that have: the carried ones, then the fixed ones.
    arrays     captured by rules: more fixed inputs, behind the body's own.
    inputs     the fixed inputs as the body has them; `before` is what is computed of them before the loop, and `hoisted` those of its
               values that are the last fixed inputs.
    """

    forward: Graph
    adjoint: Graph
    residuals: int
    seeded: tuple[int, ...]
    active: tuple[int, ...]
    kept: tuple[int, ...]
    arrays: tuple[Any, ...]
    inputs: tuple[Value, ...]
    before: tuple[Value, ...]
    hoisted: tuple[Value, ...]

    def stored(self) -> tuple[Value, ...]:
        """The residuals in the forward graph."""
        return self.forward.outputs[len(self.forward.outputs) - self.residuals:]

    def fixed_operands(self, operands: Sequence[Value], arrays: Sequence[Any], record: Record) -> list[Value]:
        """The values for the fixed inputs, given those of the body's own operands and arrays; emits what is computed before the loop."""
        captured = [record.capture(array, tensor(dtype_of(array.dtype), array.shape)) for array in (*arrays, *self.arrays)]
        fixed = [*operands, *captured]
        mapping = dict(zip(self.inputs, fixed, strict=True))
        emit_values(self.before, mapping, record)
        return [*fixed, *[mapping[value] for value in self.hoisted]]


def cut_body(body: Graph, carried: int, flags: Sequence[bool], seeded: Sequence[int], hoisting: str) -> CutBody:
    """Differentiate a body with respect to the inputs that are flagged, and cut the result in two.

    seeded     the numbers of the outputs that get cotangents.
    hoisting   what may be computed before the loop: ALL, where the body surely runs; SAFE, what cannot fail; or NOTHING.
    """
    fixed = [k for k in range(carried, len(body.inputs)) if flags[k]]
    active = [*[k for k in range(carried) if flags[k]], *fixed]
    seeds = [INPUT_SEED if k in seeded else None for k in range(len(body.outputs))]
    joint = unlink_regions(differentiate(body, active, seeds, started_from=fixed))
    graph = joint.graph.replace(captured=0)
    numbers = [position for position in joint.seeds if position is not None] + list(joint.started)
    taken = set(numbers).union(range(carried))
    lifted = Hoisted(graph)
    if hoisting != NOTHING:
        lifted = hoist(graph, [value for k, value in enumerate(graph.inputs) if k not in taken], hoisting == ALL)
    saved, held = _as_saved(lifted.graph, carried)
    parts = partition(saved, numbers, len(body.outputs))
    number = {value: k for k, value in enumerate(parts.forward.inputs[carried:])}
    holders = dict(zip(parts.residuals, parts.adjoint.inputs, strict=False))
    stored = [value for value in parts.residuals if value not in number]
    kept = [value for value in parts.residuals if value in number]
    found = iter(parts.adjoint.outputs)
    cotangents = [None if position is None else next(found) for position in joint.cotangents]
    forward = _without_marks(parts.forward, held, len(body.outputs), stored)
    seed_inputs = [lifted.graph.inputs[k] for k in numbers]
    adjoint = _adjoint(parts.adjoint, [*seed_inputs, *[holders[value] for value in (*stored, *kept)]], cotangents,
                       [body.inputs[k] for k in active])
    inputs = tuple([value for value in joint.graph.inputs[carried:] if value in number])
    return CutBody(forward, adjoint, len(stored), tuple(seeded), tuple(active), tuple([number[value] for value in kept]), joint.captured,
                   inputs, lifted.values, lifted.hoisted)


def _as_saved(graph: Graph, carried: int) -> tuple[Graph, dict[Value, Value]]:
    """The graph in which what is carried is a value that costs its bytes, not an argument; and what these values stand for."""
    with Record() as record:
        kept = {value: ops.barrier(value) for value in graph.inputs[:carried]}
    for value, held in kept.items():
        held.name = value.label
    return replaced_inputs(graph, kept, graph.inputs, record.values), {held: value for value, held in kept.items()}


def _without_marks(graph: Graph, held: dict[Value, Value], outputs: int, stored: Sequence[Value]) -> Graph:
    """The forward graph with the carried inputs themselves, and the residuals that are stored as its last outputs."""
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
    last = [mapping.get(output, output) for output in (*graph.outputs[:outputs], *stored)]
    return graph.replace(body=live_values(body, last), outputs=last)


def _adjoint(graph: Graph, inputs: Sequence[Value], cotangents: Sequence[Value | None], active: Sequence[Value]) -> Graph:
    """The adjoint graph over its inputs in this order, with zeros for cotangents that there are not."""
    with Record() as record:
        outputs = [constant(0.0, value.type) if found is None else found for found, value in zip(cotangents, active, strict=True)]
    return graph.replace(inputs=inputs, body=live_values([*graph.body, *record.values], outputs), outputs=outputs, captured=0)
