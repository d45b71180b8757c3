"""Reverse mode of `cond`: the branch again, which also returns residuals, and the adjoint of the branch that was taken.

    forward   results, residuals = cond(p; x)                 each branch gives its own residuals, and zeros for those of the other
    adjoint   x̄ = cond(p; x̄ so far, cotangents, residuals, x)

Each branch is cut in two by `cut_body`, so values that are cheap to recompute are not kept, and operands are available anyway.  Residuals
of the two branches that have the same type share one result.  The cotangent of an array that both branches update is that of the result,
updated in place; only the parts of the array that are read are kept.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any, NamedTuple

from bwcompiler import ops
from bwcompiler.errors import InternalError
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Record, Value, current_record, input_value
from bwcompiler.ir.types import TensorType
from bwcompiler.passes.adjoints.bodies.cut_body import NOTHING, CutBody, Cutting, cut_body
from bwcompiler.passes.adjoints.loop_adjoint import or_zero, totals, zeros
from bwcompiler.passes.derivatives.activity import is_differentiable

Prepared = tuple[Graph, Sequence[Any]]         # a branch, and the arrays that are its last inputs


class Place(NamedTuple):
    """Where a residual of one branch or the other is: its type, and the number of the residual of each branch."""

    type: TensorType
    residuals: tuple[int | None, int | None]


class CondRule:
    """The reverse derivative of one cond, for `region_link`: its residuals are the shared places, then fixed operands of the branches."""

    content_key = ""
    reached: Set[int] | None = None    # the numbers of the results that depend on what is differentiated; None: all may
    backwards = None                   # restores no array

    def __init__(self, value: Value, active: Sequence[int], apart: Set[int], seeded: Sequence[int], branches: tuple[Graph, Graph],
                 masked: Set[int]) -> None:
        self.value = value
        self.active = active
        self.apart = apart
        self.seeded = seeded
        self.branches = branches
        self.masked = masked

    def __repr__(self) -> str:
        return f"adjoint of {self.value!r}"

    def pull(self, present: Sequence[Value | None], cts: Sequence[Value | None], operands: Sequence[Value], results: Sequence[Value],
             residuals: Sequence[Value], needs: Sequence[bool]) -> list[Value | None]:
        """The adjoint of the branch that was taken, added to the cotangents present."""
        given = [or_zero(cts[k], results[k]) for k in self.seeded]
        start = [or_zero(present[k + 1], operands[k + 1]) for k in self.active if k not in self.apart]
        chosen = ops.cond(operands[0], *given, *start, *residuals, then_branch=self.branches[0], else_branch=self.branches[1])
        return totals(present, [k + 1 for k in self.active], {k + 1 for k in self.apart}, chosen)


class Choice(NamedTuple):
    """What is known of a cond and its place.

    states     the numbers of the branches' inputs that are arrays which both branches update, or leave as they are.
    changed    of these, and of others that are written over later: of what lies in them, parts are kept that are read.
    masked     the outputs of whose cotangents a choice may mask parts.
    wanted     the outputs that get cotangents.
    """

    states: Set[int]
    changed: Set[int]
    masked: Set[int]
    wanted: Set[int]


def expand_cond(value: Value, operands: Sequence[Value], branches: Sequence[Prepared], flags: Sequence[bool], known: Choice) -> Value:
    """Emit the cond that gives residuals, and what ties its results to its operands.

    branches   prepared for a derivative with respect to the inputs that are flagged, with the arrays that are their last inputs.
    """
    record = current_record()
    if record is None:
        raise InternalError(f"{value!r} is expanded outside of any record")
    results, given = len(value.type.items), operands[1:]
    seeded = [k for k, output in enumerate(value.attrs["then_branch"].outputs) if k in known.wanted and is_differentiable(output)]
    apart = {place for place in known.states if flags[place]}
    how = Cutting(NOTHING, apart=apart, updated=known.changed, masked=known.masked)
    parts = [cut_body(body, 0, [*flags, *[False] * len(arrays)], seeded, how) for body, arrays in branches]
    fixed = [part.fixed_operands(given, arrays, record) for part, (_, arrays) in zip(parts, branches, strict=True)]
    captured = [values[len(given):] for values in fixed]
    places = _shared(parts)
    taken = [_giving(part, number, len(given), captured, results, places) for number, part in enumerate(parts)]
    chosen = ops.cond(*operands, *captured[0], *captured[1], then_branch=taken[0], else_branch=taken[1])
    items = [ops.item(chosen, index=k) for k in range(results + len(places))]
    kept = [[values[k] for k in part.kept] for part, values in zip(parts, fixed, strict=True)]
    adjoints = [_taking(part, number, len(apart), kept, places) for number, part in enumerate(parts)]
    rule = CondRule(value, parts[0].active, apart, seeded, (adjoints[0], adjoints[1]),
                    {k + 1 for part in parts for k in part.masked})
    return ops.region_link(*operands, *items, *kept[0], *kept[1], rule=rule, given=len(operands), results=results)


def _shared(parts: Sequence[CutBody]) -> list[Place]:
    """Places for the residuals of both branches."""
    first, second = [[value.type for value in part.stored()] for part in parts]
    waiting = list(range(len(second)))
    places = []
    for k, type_ in enumerate(first):
        partner = next((other for other in waiting if second[other] == type_), None)
        if partner is not None:
            waiting.remove(partner)
        places.append(Place(type_, (k, partner)))
    return [*places, *[Place(second[other], (None, other)) for other in waiting]]


def _giving(part: CutBody, number: int, count: int, captured: Sequence[Sequence[Value]], results: int, places: Sequence[Place]) -> Graph:
    """Branch `number` over the operands and both branches' captured arrays, with what is in the places behind its results."""
    graph, stored = part.forward, part.stored()
    inputs = list(graph.inputs[:count])
    for other, values in enumerate(captured):
        inputs += graph.inputs[count:] if other == number else [input_value(value.type) for value in values]
    with Record() as record:
        held = [zeros(place.type) if (mine := place.residuals[number]) is None else stored[mine] for place in places]
    return graph.replace(inputs=inputs, body=[*graph.body, *record.values], outputs=[*graph.outputs[:results], *held])


def _taking(part: CutBody, number: int, apart: int, kept: Sequence[Sequence[Value]], places: Sequence[Place]) -> Graph:
    """The adjoint of branch `number`, over cotangents, places, and what both adjoints read of operands."""
    graph = part.adjoint
    first = len(part.seeded) + len(part.active) - apart
    residuals, own = graph.inputs[first:first + part.residuals], graph.inputs[first + part.residuals:]
    inputs = list(graph.inputs[:first])
    for place in places:
        mine = place.residuals[number]
        inputs.append(input_value(place.type) if mine is None else residuals[mine])
    for other, values in enumerate(kept):
        inputs += own if other == number else [input_value(value.type) for value in values]
    return graph.replace(inputs=inputs)
