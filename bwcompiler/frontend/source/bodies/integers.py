"""Integers that may overflow: Python's have no limit, traced ones have 64 bits.

A captured loop may carry an integer that grows by a fixed amount in each iteration, or is kept small by a remainder.  An integer that
is multiplied (`factorial *= k`), or is the sum of two such variables (`a, b = b, a + b`), grows exponentially: such a loop is unrolled, so
that Python computes the integer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bwcompiler import ops
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import BOOL, TensorType

_BOUNDING = frozenset((ops.remainder, ops.bitwise_and, ops.floor_divide, ops.sign, ops.minimum, ops.right_shift))
_ADDING = frozenset((ops.add, ops.subtract))
_POWERS = frozenset((ops.power, ops.integer_power, ops.left_shift))
_GROWING = _POWERS | {ops.multiply}


def may_overflow(graph: Graph, numbers: Sequence[int]) -> bool:
    """Whether one of the integers that are inputs `numbers` of a body may grow faster than the iterations that there can be."""
    if any(_is_exponential(value) for value in graph.body):
        return True
    inputs = [graph.inputs[number] for number in numbers]
    return bool(inputs) and any(_grows(graph.outputs[number], inputs) for number in numbers)


def _is_exponential(value: Value) -> bool:
    """Whether a number is raised to a power, or shifted, that depends on the iteration."""
    if not isinstance(value.type, TensorType):
        return any(_is_exponential(part) for inside in _regions(value) for part in inside.body)
    return value.op in _POWERS and not value.shape and value.dtype.is_integer and (
        value.operands[-1].op.kind != "constant" or value.operands[-1].op is ops.index_value)


class _Dependence:
    """Whether values depend on some roots, or are among them; remembered."""

    def __init__(self, roots: Iterable[Value]) -> None:
        self.known = dict.fromkeys(roots, True)

    def __call__(self, value: Value) -> bool:
        stack = [value]                            # no recursion: chains of values may be long
        while stack:
            top = stack[-1]
            missing = [] if top in self.known else [operand for operand in top.operands if operand not in self.known]
            if missing:
                stack += missing
                continue
            if top not in self.known:
                self.known[top] = any(self.known[operand] for operand in top.operands)
            stack.pop()
        return self.known[value]


def _grows(value: Value, inputs: Iterable[Value]) -> bool:
    """Whether a value is more than one of the inputs and something that does not depend on any."""
    roots = set(inputs)
    dependent = _Dependence(roots)
    stack, seen = [value], set()
    while stack:
        part = stack.pop()
        if part in seen or part in roots or not dependent(part) or part.op in _BOUNDING or _is_truth(part):
            continue
        seen.add(part)
        chosen = part.operands[0] if part.op is ops.item and part.operands[0].op is ops.cond else None
        inner = [operand for operand in (part if chosen is None else chosen).operands if dependent(operand)]
        if chosen is not None:
            branches = [chosen.attrs[name] for name in chosen.op.regions]
            if any(_grows_in_branch(branch, part.attrs["index"], chosen, inner) for branch in branches):
                return True
            stack += inner
            continue
        if part.op in _GROWING or (part.op in _ADDING and len(inner) > 1):
            return True
        if part.op.kind == "region" and any(_may_grow(inside) for inside in _regions(part)):
            return True
        stack += inner
    return False


def _grows_in_branch(branch: Graph, number: int, cond: Value, inputs: Sequence[Value]) -> bool:
    """Whether a side of a choice gives more as a result than one of some operands and something that does not depend on any."""
    inside = [entry for entry, operand in zip(branch.inputs, cond.operands[1:], strict=True) if operand in inputs]
    return _grows(branch.outputs[number], inside)


def _is_truth(value: Value) -> bool:
    """Whether it is a truth value: a test on large numbers makes none."""
    return isinstance(value.type, TensorType) and value.dtype is BOOL


def _regions(value: Value) -> list[Graph]:
    return [part for part in value.attrs.values() if isinstance(part, Graph)] + [
        inside for operand in value.operands for inside in operand.attrs.values() if isinstance(inside, Graph)]


def _may_grow(graph: Graph) -> bool:
    """Whether numbers are multiplied, or added to one another, in a branch or an inner loop."""
    for value in graph.body:
        if not isinstance(value.type, TensorType) or value.shape or not value.dtype.is_integer:
            if any(_may_grow(inside) for inside in _regions(value)):
                return True
            continue
        known = [operand.op.kind == "constant" for operand in value.operands]
        if value.op in _GROWING or (value.op in _ADDING and not any(known)):
            return True
    return False
