"""Whether a program may be given arrays with missing elements, which are nan: `leaves_out`.

A program leaves out elements by a mask, or by positions, that it is given: inputs, parts of them, and what is made of given booleans and
integers, such as `flags == 0`.  A mask that is made of real numbers, `x > 0`, is a choice by size, of which most programs have some: no
element is missing because of that.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from bwcompiler import ops
from bwcompiler.ir.graph import Graph, all_values
from bwcompiler.ir.op import Value
from bwcompiler.passes.derivatives.masks import asks_for_nan, is_made

_COMPUTES = ("elementwise", "reduction", "scan")


def leaves_out(graph: Graph) -> bool:
    """Whether it asks for nan, or what is given says which elements are chosen, or which elements of what it computed are read or set."""
    values = [value for value in all_values(graph) if value.forward is None]        # a derivative asks for nan itself
    if any(map(asks_for_nan, values)):
        return True
    choosing = [chooser for value in values for chooser in _choosing(value)]
    return bool(choosing) and not _given(graph).isdisjoint(choosing)


def _choosing(value: Value) -> Sequence[Value]:
    """The mask or the positions by which a value leaves out elements."""
    if value.op is ops.select or value.op is ops.cond:
        return value.operands[:1]
    if value.op is ops.gather or value.op is ops.scatter_update:
        return value.operands[1 if value.op is ops.gather else 2:] if is_made(value.operands[0]) else ()
    return ()


def _given(graph: Graph) -> Set[Value]:
    """Inputs, parts of them, and what is made of booleans and integers among these; in loops and branches, too."""
    values, found, before = list(all_values(graph)), set(graph.inputs), -1
    while len(found) > before:                     # again, for what loops carry
        before = len(found)
        for value in values:
            if value.op.regions:
                found.update(_inside(value, found))
            elif _is_given(value, found):
                found.add(value)
    return found


def _inside(value: Value, given: Set[Value]) -> list[Value]:
    """The inputs of regions that are given: their operands are, or what an iteration gives the next one."""
    found = []
    for name in value.op.regions:
        inputs = value.attrs[name].inputs
        operands = value.operands[len(value.operands) - len(inputs):]
        found += [one for one, operand in zip(inputs, operands, strict=True) if operand in given]
        found += [inputs[k] for k in range(value.attrs.get("carried", 0)) if value.attrs["body"].outputs[k] in given]
    return found


def _is_given(value: Value, given: Set[Value]) -> bool:
    if value.op is ops.item:
        return any(one in given for one in _sources(value.operands[0], value.attrs["index"]))
    moves = value.op.kind in ("layout", "index") or value.op is ops.cast
    if not moves and (value.op.kind not in _COMPUTES or value.dtype.is_differentiable):
        return False
    return any(operand in given and (moves or not operand.dtype.is_differentiable) for operand in value.operands)


def _sources(value: Value, index: int) -> list[Value]:
    """What a result of a loop or branch is at its end."""
    if value.op is ops.region_link:
        return [value.operands[value.attrs["given"] + index]]
    return [value.attrs[name].outputs[index] for name in value.op.regions if name != "condition"]
