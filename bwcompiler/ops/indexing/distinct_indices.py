"""Whether indices are known to be distinct, as in `start + step * iota`: then the order of writes does not matter.

An index array of shape B that is affine in its position has a constant step along each axis of B (`Steps`, without axes whose step
is zero).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from bwcompiler.ir.extent import upper
from bwcompiler.ir.op import Op, Value
from bwcompiler.ops.broadcasting import broadcast
from bwcompiler.ops.creation import full, iota
from bwcompiler.ops.elementwise import add, multiply, subtract
from bwcompiler.ops.indexing.indices import normalize_index, wrap_index

Steps: TypeAlias = dict[int, int]


def are_distinct(indices: Sequence[Value]) -> bool:
    """Whether no two elements of B can be at one place: along each axis one of the index arrays moves, and along no other axis."""
    lines = [_steps(index) for index in indices]
    moving = [axis for line in lines if line is not None and len(line) == 1 for axis in line]
    return all(extent == 1 or axis in moving for axis, extent in enumerate(indices[0].shape))


def _steps(index: Value) -> Steps | None:
    """None if it is not known to be affine."""
    if not index.rank:
        return {}
    if index.op in (normalize_index, wrap_index):      # distinct indices within one extent stay distinct
        steps, extent = _steps(index.operands[0]), index.attrs["extent"]
        if steps is None or not isinstance(extent, int):
            return None
        reach = sum([(upper(index.shape[axis]) - 1) * abs(step) for axis, step in steps.items()])
        return steps if reach < extent else None
    rule = _RULES.get(index.op)
    if rule is None:
        return None
    parts = [_steps(operand) for operand in index.operands]
    return rule(index, [part for part in parts if part is not None]) if None not in parts else None


def _sum(index: Value, parts: Sequence[Steps]) -> Steps:
    first, second = parts
    sign = 1 if index.op is add else -1
    total = {axis: first.get(axis, 0) + sign * second.get(axis, 0) for axis in (*first, *second)}
    return {axis: step for axis, step in total.items() if step}


def _product(index: Value, parts: Sequence[Steps]) -> Steps | None:
    for factor, steps in zip(index.operands, parts[::-1], strict=True):
        number = factor.attrs["value"] if factor.op is full else None
        if isinstance(number, int) and number:
            return {axis: step * number for axis, step in steps.items()}
    return None


_RULES: dict[Op, Callable[[Value, Sequence[Steps]], Steps | None]] = {
    full: lambda index, parts: {},
    iota: lambda index, parts: {index.attrs["axis"]: 1},
    broadcast: lambda index, parts: {index.attrs["axes"][axis]: step for axis, step in parts[0].items()},
    add: _sum,
    subtract: _sum,
    multiply: _product,
}
