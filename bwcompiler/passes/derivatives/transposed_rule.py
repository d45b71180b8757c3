"""Reverse mode of a rule for tangents: the rule is linear in them, so its derivative with respect to them is its transpose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bwcompiler.errors import GradientError
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Value, input_value
from bwcompiler.ir.types import TensorType
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED, JointGraph, differentiate
from bwcompiler.passes.derivatives.expansion import Expanded


class Regions(NamedTuple):
    """How loops and branches are differentiated, for which `passes/adjoints` is given.

    expand  (graph, inputs) -> the graph whose loops also give residuals.
    unlink  what follows the reverse sweep.
    prune   a graph -> without what loops compute and nothing reads.
    """

    expand: Callable[[Graph, Sequence[int]], Expanded]
    unlink: Callable[[JointGraph], JointGraph]
    prune: Callable[[Graph], Graph]


def transposed(graph: Graph, linear: Sequence[int], regions: Regions | None) -> JointGraph | None:
    """Of a graph that is a linear function of its inputs `linear`: cotangents of its outputs -> cotangents of these inputs alone.

    None where it is not linear: then the derivative with respect to these inputs depends on them.
    """
    looped = Expanded(graph) if regions is None else regions.expand(graph, linear)
    graph = looped.graph
    joint = differentiate(graph, linear, [INPUT_SEED] * len(graph.outputs))
    joint = joint if regions is None else regions.unlink(joint)
    positions = [position for position in joint.cotangents if position is not None]
    outputs: Sequence[Value] = [joint.graph.outputs[position] for position in positions]
    body: Sequence[Value] = live_values(joint.graph.body, outputs)
    if regions is not None:
        pruned = regions.prune(joint.graph.replace(body=body, outputs=outputs))
        body, outputs = pruned.body, pruned.outputs
    inputs = {graph.inputs[k] for k in linear}
    if not inputs.isdisjoint(outputs) or any(not inputs.isdisjoint(value.operands) for value in body):
        return None
    numbers = iter(range(len(positions)))
    found = tuple([None if position is None else next(numbers) for position in joint.cotangents])
    return joint._replace(graph=joint.graph.replace(body=body, outputs=outputs), cotangents=found,
                          captured=(*looped.arrays, *joint.captured))


class TransposedRule:
    """A rule for tangents with what reverse mode asks for, in the terms of `bwcompiler.ops.calls.custom`: the residuals are the primals."""

    content_key = ""                   # as that of any rule
    has_tangents = has_cotangents = True

    def __init__(self, rule: Any, expand: Any, regions: Regions | None) -> None:
        self.rule = rule
        self.expand = expand           # `expand_custom_rules`, which makes these objects
        self.regions = regions
        self.primals: int = rule.primals
        self.output_count: int = rule.output_count
        self.forward = rule.forward
        self.push = rule.push

    def __repr__(self) -> str:
        return repr(self.rule)

    def backward(self, residuals: Sequence[TensorType], outputs: Sequence[TensorType],
                 primals: Sequence[TensorType]) -> tuple[Graph, list[Any], list[bool]]:
        """Primals, cotangents of outputs -> cotangents of primals; captured arrays; which primals have one."""
        own = [k for k, type_ in enumerate(primals) if type_.dtype.is_differentiable]
        pushed, arrays, present = self.rule.push(primals, [k in own for k in range(len(primals))])
        linear = range(len(primals), len(primals) + len(own))
        expanded = self.expand(pushed, linear, self.regions)
        joint = transposed(expanded.graph, linear, self.regions)
        if joint is None:
            raise GradientError(f"reverse mode through {self!r}: its rule is not a linear function of the tangents (it clips them, say, or "
                                "carries them in a while loop), "
                                "so that it cannot be transposed\n  hint: use forward mode (bw.jvp, bw.jacfwd), or give the function its "
                                "rule for cotangents with bw.custom_vjp")
        seeds = iter([joint.graph.inputs[position] for position in joint.seeds if position is not None])
        cts: list[Value] = [next(seeds) if there else input_value(type_) for there, type_ in zip(present, outputs, strict=True)]
        explicit = len(joint.graph.inputs) - joint.graph.captured
        inputs = [*joint.graph.inputs[:len(primals)], *cts, *joint.graph.inputs[explicit:]]
        graph = Graph(joint.graph.name, inputs, joint.graph.body, joint.graph.outputs, captured=joint.graph.captured)
        has_cotangent = {k for k, position in zip(own, joint.cotangents, strict=True) if position is not None}
        return graph, [*arrays, *expanded.arrays, *joint.captured], [k in has_cotangent for k in range(len(primals))]
