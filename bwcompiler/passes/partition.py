"""Partition: a joint graph -> a forward graph that also returns residuals, and an adjoint graph that starts from them.

Adjoint values are those that depend on a seed.  What they read of the forward part is saved or recomputed: a minimum cut
between the forward inputs and the adjoint's reads, where cutting a value costs the bytes of saving it, and values that
are dear to recompute (contractions, reductions, anything not fusable) cannot lie beyond the cut.  Only values with a real
choice take part; inputs are residuals for free, constants are always recomputed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.late_base import nx
from bwcompiler.ir.op import Value, input_value
from bwcompiler.ir.types import TupleType

CUT_LIMIT = 3000                # choices the exact cut is computed for; beyond, everything read is saved


class Partition(NamedTuple):
    """forward: inputs -> outputs, then residuals.  adjoint: residuals, seeds, captured -> cotangents.

    recomputed  joint values of the forward part that the adjoint computes again, constants included.
    stands_for  adjoint value -> the joint value that it holds (residuals) or is a copy of.
    """

    forward: Graph
    adjoint: Graph
    residuals: tuple[Value, ...]
    recomputed: tuple[Value, ...] = ()
    stands_for: Mapping[Value, Value] = {}


def partition(joint: Graph, seeds: Sequence[int], outputs: int) -> Partition:
    """Split a joint graph whose inputs number `seeds` are seeds and whose first `outputs` outputs are the function's own."""
    explicit = len(joint.inputs) - joint.captured
    seed_inputs = [joint.inputs[k] for k in seeds]
    behind: set[Value] = set(seed_inputs)
    for value in joint.body:
        if any(operand in behind for operand in value.operands):
            behind.add(value)
    adjoint_body = [value for value in joint.body if value in behind]
    reads = _reads(adjoint_body, behind, joint.outputs[outputs:])
    saved, recomputed = _choose(joint, reads, behind)
    forward_inputs = [value for k, value in enumerate(joint.inputs) if k not in set(seeds)]
    forward = Graph(joint.name, forward_inputs,
                    live_values([v for v in joint.body if v not in behind], [*joint.outputs[:outputs], *saved]),
                    [*joint.outputs[:outputs], *saved], None, joint.captured)
    mapping = {value: input_value(value.type, value.name or value.op.name, value.source) for value in saved}
    residuals = list(mapping.values())
    body, cotangents = _rebuild([v for v in joint.body if v in behind or v in recomputed], joint.outputs[outputs:], mapping)
    captured = joint.inputs[explicit:]
    adjoint = Graph(f"{joint.name}.vjp", [*residuals, *seed_inputs, *captured], body, cotangents, None, len(captured))
    return Partition(forward, adjoint, tuple(saved), tuple([v for v in joint.body if v in recomputed]),
                     {copy: value for value, copy in mapping.items()})


def _reads(body: Sequence[Value], behind: set[Value], cotangents: Sequence[Value]) -> list[Value]:
    found = {operand: None for value in body for operand in value.operands if operand not in behind}
    found.update((value, None) for value in cotangents if value not in behind)
    return list(found)


def _choose(joint: Graph, reads: Sequence[Value], behind: set[Value]) -> tuple[list[Value], set[Value]]:
    """(values to save, values to recompute in the adjoint)."""
    captured = set(joint.inputs[len(joint.inputs) - joint.captured:])
    wanted = [value for value in reads if value not in captured]
    relevant = set(wanted)
    order = [value for value in joint.body if value not in behind]
    for value in reversed(order):
        if value in relevant and _cheap(value):
            relevant.update(operand for operand in value.operands if operand not in captured)
    network = nx.DiGraph()
    choices = 0
    for value in [*joint.inputs, *order]:
        if value not in relevant:
            continue
        free = _is_free(value)
        cost = 0 if free else value.type.nbytes
        if value.op.kind == "input" or not _cheap(value):
            network.add_edge("source", (value, 0), capacity=float("inf"))
        else:
            choices += 1
            for operand in value.operands:
                if operand in relevant:
                    network.add_edge((operand, 1), (value, 0), capacity=float("inf"))
        if not free:
            # saving an input is free of work but keeps it alive: it costs next to nothing
            network.add_edge((value, 0), (value, 1), capacity=1 if value.op.kind == "input" else cost + 1)
    for value in wanted:
        if not _is_free(value):
            network.add_edge((value, 1), "sink", capacity=float("inf"))
    if not network.has_node("source") or not network.has_node("sink"):
        return [], {value for value in relevant if value.op.kind != "input"}
    if choices > CUT_LIMIT:
        return [value for value in wanted if not _is_free(value)], {value for value in wanted if _is_free(value)}
    _, (reachable, _) = nx.minimum_cut(network, "source", "sink", flow_func=nx.algorithms.flow.boykov_kolmogorov)
    saved = [value for value in [*joint.inputs, *order]
             if value in relevant and (value, 0) in reachable and (value, 1) in network and (value, 1) not in reachable]
    return saved, _needed(wanted, set(saved), captured)


def _needed(wanted: Sequence[Value], saved: set[Value], captured: set[Value]) -> set[Value]:
    """Forward values the adjoint has to compute again to get from the saved ones to what it reads."""
    found: set[Value] = set()
    pending = [value for value in wanted if value not in saved]
    while pending:
        value = pending.pop()
        if value in found or value in captured:
            continue
        found.add(value)
        pending += [operand for operand in value.operands if operand not in saved]
    return found


def _is_free(value: Value) -> bool:
    return value.op.kind == "constant"


def _cheap(value: Value) -> bool:
    """Whether the adjoint may compute value again: elementwise and layout ops, which fuse into whatever reads them."""
    return not isinstance(value.type, TupleType) and value.op.pure and value.op.kind in ("elementwise", "layout", "constant")


def _rebuild(values: Sequence[Value], outputs: Sequence[Value], mapping: dict[Value, Value]) -> tuple[list[Value], list[Value]]:
    """Body and outputs with their operands mapped; adds the values it copies to the mapping."""
    body: list[Value] = []
    for value in values:
        operands = tuple(mapping.get(operand, operand) for operand in value.operands)
        copy = value
        if operands != value.operands:
            copy = Value(value.op, operands, value.attrs, value.type, value.name, value.source, value.forward)
            mapping[value] = copy
        body.append(copy)
    results = [mapping.get(output, output) for output in outputs]
    return live_values(body, results), results
