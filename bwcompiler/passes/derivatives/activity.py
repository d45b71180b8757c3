"""Which values derivatives can pass through: those on a path from differentiated inputs to outputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from weakref import WeakKeyDictionary

from bwcompiler import ops
from bwcompiler.ir.declaration import NotDifferentiable
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import TupleType


def is_differentiable(value: Value) -> bool:
    """Whether it is an array of floats or complex numbers."""
    return not isinstance(value.type, TupleType) and value.type.dtype.is_differentiable


def active_values(graph: Graph, targets: Iterable[Value]) -> set[Value]:
    """The values through which an output can depend differentiably on a target; of what loops and branches give, these results alone."""
    active = set(targets)
    results: dict[Value, Set[int]] = {}
    for value in graph.body:
        if isinstance(value.op.vjp, NotDifferentiable) or active.isdisjoint(value.operands):
            continue
        reached = _reached_results(value, active)
        if reached is not None:
            results[value] = reached
            if reached:
                active.add(value)
        elif value.op is ops.item and value.operands[0] in results:
            if value.attrs["index"] in results[value.operands[0]]:
                active.add(value)
        elif isinstance(value.type, TupleType) or value.type.dtype.is_differentiable:
            active.add(value)
    return active


def _reached_results(value: Value, active: Set[Value]) -> Set[int] | None:
    """The numbers of the active results of a loop or branch, or of what stands for one; None where all results are."""
    if value.op in ops.LOOPS or value.op is ops.cond:
        return active_results(value, [operand in active for operand in value.operands])
    reached: Set[int] | None = value.attrs["rule"].reached if value.op is ops.region_link else None
    return reached


def active_results(value: Value, given: Sequence[bool]) -> set[int]:
    """The numbers of the results of a loop or branch that depend differentiably on those of its operands that are given."""
    if value.op in ops.LOOPS:
        carried = value.attrs["carried"]
        return {k for k, flag in enumerate(active_inputs(value.attrs["body"], carried, given)[:carried]) if flag}
    branches = (value.attrs["then_branch"], value.attrs["else_branch"])
    return {k for branch in branches for k in _active_outputs(branch, tuple(given[1:]))}


# Of bodies and branches, by the inputs that are given: those of loops in loops are asked for from each of the loops around.
_known: WeakKeyDictionary[Graph, dict[tuple[bool, ...], list[int]]] = WeakKeyDictionary()


def _active_outputs(graph: Graph, given: tuple[bool, ...]) -> list[int]:
    """The numbers of the outputs that depend differentiably on these inputs."""
    known = _known.setdefault(graph, {})
    found = known.get(given)
    if found is None:
        active = active_values(graph, [one for one, flag in zip(graph.inputs, given, strict=True) if flag and is_differentiable(one)])
        found = known[given] = [k for k, output in enumerate(graph.outputs) if output in active and is_differentiable(output)]
    return found


def seeded_values(graph: Graph, outputs: Iterable[int]) -> set[Value]:
    """The values that get cotangents where these outputs do: they, and what they can depend on differentiably."""
    seeded = {graph.outputs[k] for k in outputs if is_differentiable(graph.outputs[k])}
    results: dict[Value, set[int]] = {}
    for value in reversed(graph.body):
        if value not in seeded or isinstance(value.op.vjp, NotDifferentiable):
            continue
        if value.op is ops.item:
            results.setdefault(value.operands[0], set()).add(value.attrs["index"])
        given = _seeded_operands(value, results[value]) if value.op in ops.LOOPS else value.operands
        seeded.update([operand for operand in given if isinstance(operand.type, TupleType) or operand.type.dtype.is_differentiable])
    return seeded


def _seeded_operands(loop: Value, results: Set[int]) -> list[Value]:
    seeded, inside = seeded_results(loop, results)
    inputs = loop.attrs["body"].inputs
    return [operand for k, operand in enumerate(loop.operands) if k in seeded or inputs[k] in inside]


def seeded_results(loop: Value, results: Iterable[int]) -> tuple[set[int], set[Value]]:
    """What of a loop gets cotangents where these results do: by number of what it carries, and the values of its body.

    What an iteration makes for the condition alone, or to be counted, gets none.
    """
    body, carried = loop.attrs["body"], loop.attrs["carried"]
    seeded = set(results)
    while True:
        values = seeded_values(body, seeded)
        more = {k for k in range(carried) if body.inputs[k] in values} - seeded
        if not more:
            return seeded, values
        seeded |= more


def active_inputs(body: Graph, carried: int, given: Sequence[bool]) -> list[bool]:
    """Which inputs of a loop's body the results depend on what was given: carried ones also through the iteration before."""
    flags = [flag and is_differentiable(value) for flag, value in zip(given, body.inputs, strict=True)]
    while True:
        more = [k for k in _active_outputs(body, tuple(flags)) if k < carried and not flags[k]]
        if not more:
            return flags
        for k in more:
            flags[k] = True
