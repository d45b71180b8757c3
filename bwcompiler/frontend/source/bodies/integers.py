"""Integers that may overflow: Python's have no limit, traced ones have 64 bits.

A captured loop may carry an integer that grows by a fixed amount in each iteration, or is kept small by a remainder.  An integer that
is multiplied (`factorial *= k`), or is the sum of two such variables (`a, b = b, a + b`), grows exponentially: such a loop is unrolled, so
that Python computes the integer, unless it has few iterations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from bwcompiler import ops
from bwcompiler.ir.extent import add_extents, scale_extent, upper
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import BOOL, TensorType

_BOUNDING = frozenset((ops.remainder, ops.bitwise_and, ops.floor_divide, ops.sign, ops.minimum, ops.right_shift))
_ADDING = frozenset((ops.add, ops.subtract))
_POWERS = frozenset((ops.power, ops.integer_power, ops.left_shift))
_GROWING = _POWERS | {ops.multiply}
MOST_DOUBLINGS = 40            # of numbers that were small


def may_overflow(graph: Graph, numbers: Sequence[int], count: int) -> bool:
    """Whether one of the integers that are inputs `numbers` of a body may get too large in so many iterations."""
    if any(_is_exponential(value) for value in graph.body):
        return True
    inputs = dict.fromkeys([graph.inputs[number] for number in numbers], 0.0)
    if not inputs:
        return False
    found = _doublings(graph, inputs)
    return any(found.get(graph.outputs[number], 0) * count > MOST_DOUBLINGS for number in numbers)


def _is_exponential(value: Value) -> bool:
    """Whether a number is raised to a power, or shifted, that depends on the iteration."""
    if not isinstance(value.type, TensorType):
        return any(_is_exponential(part) for inside in _regions(value) for part in inside.body)
    return value.op in _POWERS and not value.shape and value.dtype.is_integer and (
        value.operands[-1].op.kind != "constant" or value.operands[-1].op is ops.index_value)


def _doublings(graph: Graph, inputs: Mapping[Value, float]) -> dict[Value, float]:
    """How often what depends on some inputs doubles, at most: a sum of two such values does once; what is multiplied any number of times.

    inputs  how often these have.  Something that does not depend on them may be added; it is small.
    """
    found = dict(inputs)
    for value in graph.body:
        inner = [operand for operand in value.operands if operand in found]
        if not inner or _is_truth(value):
            continue
        most = max([found[operand] for operand in inner])
        if value.op in _BOUNDING:
            found[value] = 0
        elif value.op is ops.item and value.operands[0].op in (ops.cond, ops.loop):
            part = (_of_choice if value.operands[0].op is ops.cond else _of_loop)(value.operands[0], value.attrs["index"], found)
            if part is not None:
                found[value] = part
        elif value.op in (ops.cond, ops.loop):
            found[value] = most                    # their results are items
        elif value.op in _GROWING or (value.op.kind == "region" and any(_may_grow(inside) for inside in _regions(value))):
            found[value] = math.inf
        else:
            found[value] = most + (value.op in _ADDING and len(inner) > 1)
    return found


def _of_choice(cond: Value, number: int, found: Mapping[Value, float]) -> float | None:
    """The same of a result of a branch: of what the sides give; None where none of these depends on the inputs."""
    parts = []
    for branch in [cond.attrs[name] for name in cond.op.regions]:
        inside = {entry: found[operand] for entry, operand in zip(branch.inputs, cond.operands[1:], strict=True) if operand in found}
        parts.append(_doublings(branch, inside).get(branch.outputs[number]))
    return max([part for part in parts if part is not None], default=None)


def _of_loop(loop: Value, number: int, found: Mapping[Value, float]) -> float | None:
    """The same of a result of a loop: what one iteration doubles, as often as there are iterations."""
    body, carried = loop.attrs["body"], range(loop.attrs["carried"])
    inside = {entry: 0.0 for entry, operand in zip(body.inputs, loop.operands, strict=False) if operand in found}
    while True:
        inner = _doublings(body, inside)
        more = [body.inputs[k] for k in carried if body.outputs[k] in inner and body.inputs[k] not in inside]
        if not more:
            break
        inside.update(dict.fromkeys(more, 0.0))
    if body.outputs[number] not in inner:
        return None
    each = max([inner.get(body.outputs[k], 0) for k in carried if body.outputs[k].dtype.is_integer], default=0)
    before = max([found[operand] for operand in loop.operands if operand in found])
    iterations = upper(add_extents(loop.attrs["hi"], scale_extent(loop.attrs["lo"], -1))) + 1
    return before + (each * iterations if each else 0)


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
