"""Which values derivatives can pass through: from inputs that are differentiated to outputs."""

from __future__ import annotations

from collections.abc import Sequence

from bwcompiler.ir.declaration import NotDifferentiable
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import TupleType


def is_differentiable(value: Value) -> bool:
    """Whether it is an array of floats or complex numbers."""
    return not isinstance(value.type, TupleType) and value.type.dtype.is_differentiable


def active_values(graph: Graph, targets: Sequence[Value]) -> set[Value]:
    """The values through which an output can depend differentiably on a target."""
    active = set(targets)
    for value in graph.body:
        if isinstance(value.op.vjp, NotDifferentiable):
            continue
        for operand in value.operands:
            if operand in active:
                type_ = value.type
                if isinstance(type_, TupleType) or type_.dtype.is_differentiable:
                    active.add(value)
                break
    return active


def active_inputs(body: Graph, carried: int, given: Sequence[bool]) -> list[bool]:
    """Which inputs of a loop's body the results depend on what was given: carried ones also through the iteration before."""
    flags = [flag and is_differentiable(value) for flag, value in zip(given, body.inputs, strict=True)]
    while True:
        active = active_values(body, [value for value, flag in zip(body.inputs, flags, strict=True) if flag])
        more = [k for k in range(carried) if not flags[k] and body.outputs[k] in active and is_differentiable(body.outputs[k])]
        if not more:
            return flags
        for k in more:
            flags[k] = True
