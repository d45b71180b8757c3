"""Half precision is a storage format: operations convert to single precision, compute, and round once, as in NumPy.

Ops that only move elements are unchanged, and so are those that depend on which numbers a dtype has.  Every other op on halves becomes
the op on floats between casts.
"""

from __future__ import annotations

from typing import Any

from bwcompiler import ops
from bwcompiler.errors import InternalError
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import REGISTRY, Op, Value
from bwcompiler.ir.types import F16, F32, TensorType
from bwcompiler.passes.rewriting.rewriter import Rule

_MOVING_KINDS = ("input", "item", "layout", "constant", "region", "index")
_MOVING = (ops.callback, ops.scatter_update, ops.select, ops.cast, ops.stop_gradient, ops.nextafter, ops.spacing)


def has_halves(graph: Graph) -> bool:
    """Whether a graph, or one of those that it owns, has values in half precision."""
    for value in (*graph.inputs, *graph.body):
        if isinstance(value.type, TensorType):
            if value.type.dtype is F16:
                return True
        elif any(item.dtype is F16 for item in value.type.items):
            return True
        if any(has_halves(value.attrs[region]) for region in value.op.regions):
            return True
    return False


def _in_single(op: Op) -> Rule:
    def rule(type_: Any, *operands: Value, **attrs: Any) -> Value | None:
        if all(operand.type.dtype is not F16 for operand in operands):
            return None
        wide = [ops.cast(operand, dtype=F32) if operand.dtype is F16 else operand for operand in operands]
        found = op(*wide, **attrs)
        if not isinstance(found.type, TensorType):
            raise InternalError(f"{op.name} of half precision has several results")
        return ops.cast(found, dtype=F16) if type_.dtype is F16 else found
    return rule


def _slice_add(type_: TensorType, x: Value, update: Value, *, starts: Any, steps: Any) -> Value | None:
    """Only the slice is computed with."""
    if type_.dtype is not F16:
        return None
    before = ops.slice(x, starts=starts, sizes=update.shape, steps=steps)
    return ops.slice_update(x, ops.add(before, update), starts=starts, steps=steps)


HALF_RULES: dict[Op, Rule] = {
    ops.slice_add: _slice_add,
    **{op: _in_single(op) for op in REGISTRY.values() if op.kind not in _MOVING_KINDS and op not in _MOVING}}
