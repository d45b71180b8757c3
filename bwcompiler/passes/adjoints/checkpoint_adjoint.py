"""Reverse mode of checkpointed functions: the forward values are recomputed where the adjoint needs them.

    forward   results, kept = body(x)
    adjoint   x' = barrier(x, cotangents),  x̄ = adjoint of body over x' and kept

Values computed from x' (and from `kept`, which is also behind a barrier) are not merged with values computed from x, and cannot be computed
before the cotangents exist.  So only x and what the policy keeps live from the forward to the adjoint part, in one program or in two.
An operand that only loops read, beside a state that is behind a barrier, gets no barrier, which would copy all of it.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

from bwcompiler import ops
from bwcompiler.errors import InternalError
from bwcompiler.ir.graph import Graph, inline
from bwcompiler.ir.op import Value, current_record, input_value
from bwcompiler.ir.types import TupleType, dtype_of, tensor
from bwcompiler.ops.calls.custom import inline_with_captured
from bwcompiler.passes.adjoints.unlink_regions import unlink_with_mapping
from bwcompiler.passes.derivatives.activity import is_differentiable
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED, differentiate
from bwcompiler.passes.loops.region_bodies import replaced_inputs


class CheckpointRule:
    """The reverse derivative of one checkpointed function, for `region_link`: its residuals are what the policy keeps, then captured
    arrays."""

    content_key = ""
    reached: Set[int] | None = None    # the numbers of the results that depend on what is differentiated; None: all may
    backwards = None                   # restores no array

    def __init__(self, value: Value, body: Graph, kept: Sequence[Value], active: Sequence[int], chosen: Set[int]) -> None:
        self.value = value
        self.body = body
        self.kept = kept
        self.active = active
        self.chosen = chosen
        self.masked: Set[int] = frozenset()            # known when the adjoint was made

    def __repr__(self) -> str:
        return f"adjoint of {self.value!r}"

    def pull(self, present: Sequence[Value | None], cts: Sequence[Value | None], operands: Sequence[Value], results: Sequence[Value],
             residuals: Sequence[Value], needs: Sequence[bool]) -> list[Value | None]:
        """The body again, and its adjoint: cotangents of the operands, added to those present."""
        body = self.body
        started = [k for k in self.active if present[k] is not None]
        seeds = [None if ct is None or not is_differentiable(output) else INPUT_SEED for ct, output in zip(cts, body.outputs, strict=True)]
        linked = differentiate(body, self.active, seeds, started_from=started, masked=self.chosen, inside=True)
        self.masked = frozenset([k for k, masked in zip(self.active, linked.masked, strict=True) if masked])
        joint, mapping = unlink_with_mapping(linked)
        outputs = [joint.graph.outputs[place] for place in joint.cotangents if place is not None]
        held = {mapping.get(value, value): input_value(value.type, value.name) for value in self.kept}
        count = len(joint.graph.inputs) - len(joint.captured)
        inputs = [*joint.graph.inputs[:count], *held.values(), *joint.graph.inputs[count:]]
        again = replaced_inputs(joint.graph.replace(outputs=outputs, captured=0), dict(held), inputs, [])
        given = [ct for ct, seed in zip(cts, seeds, strict=True) if ct is not None and seed is not None]
        kept = [ops.barrier(one, *given) for one in residuals[:len(self.kept)]]
        needed = _behind_barriers(body)
        fresh, arrays = [[ops.barrier(one, *given) if entry in needed else one for one, entry in zip(part, entries, strict=True)]
                         for part, entries in ((operands, body.inputs[:len(operands)]),
                                               (residuals[len(self.kept):], body.inputs[len(operands):]))]
        before = [one for k in started if (one := present[k]) is not None]
        found = iter(inline_with_captured(again, [*fresh, *arrays, *given, *before, *kept], joint.captured))
        totals = list(present)
        for k, place in zip(self.active, joint.cotangents, strict=True):
            if place is not None:
                totals[k] = next(found)
        return totals


def _behind_barriers(body: Graph) -> set[Value]:
    """The inputs that the barrier is for: all but those that only loops read, in every iteration, beside what depends on these."""
    needed = set(body.outputs)
    for value in body.body:
        if value.op is ops.loop:
            needed.update(value.operands[:value.attrs["carried"]])
        elif value.op is not ops.region_link:              # which ties a loop to all that it reads
            needed.update(value.operands)
    behind = set(needed)
    for value in body.body:
        if value.op is ops.loop and behind.isdisjoint(value.operands):
            needed.update(value.operands)
            behind.update(value.operands)
        if not behind.isdisjoint(value.operands):
            behind.add(value)
    return needed


def expand_checkpoint(value: Value, operands: Sequence[Value], body: Graph, arrays: Sequence[Any], flags: Sequence[bool],
                      masked: Set[int]) -> Value:
    """Emit the body, and what ties its results to its operands; body, its inputs behind the operands being `arrays`, is prepared; masked:
    the outputs of whose cotangents a choice may mask parts."""
    record = current_record()
    if record is None:
        raise InternalError(f"{value!r} is expanded outside of any record")
    policy = value.attrs["policy"]
    kept = [one for one in body.body if not isinstance(one.type, TupleType) and policy.kept(one)]
    captured = [record.capture(array, tensor(dtype_of(array.dtype), array.shape)) for array in arrays]
    found = inline(body.replace(outputs=[*body.outputs, *kept]), [*operands, *captured])
    rule = CheckpointRule(value, body, kept, [k for k, flag in enumerate(flags) if flag], masked)
    residuals = [*found[len(body.outputs):], *captured]
    return ops.region_link(*operands, *found[:len(body.outputs)], *residuals, rule=rule, given=len(operands), results=len(body.outputs))
