"""Why the gradient of an argument is None or zero: the ways from it to the results, and where derivatives end on them.

`stops` follows the traced graph forwards from an argument by the same data that the autodiff pass goes by: the derivative
rules of the ops, dtypes, and the operands to which a rule gave no cotangent (`JointGraph.stopped`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from bwcompiler.ir.declaration import NotDifferentiable
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import TupleType
from bwcompiler.ops.custom import custom_call

Edge = tuple[Value, int]               # (value, position of an operand)


class Stop(NamedTuple):
    """A way from an argument on which the derivative ends.  path: the values from the argument's reader to the last one."""

    path: tuple[Value, ...]
    reason: str


class Ways(NamedTuple):
    """All ways from one argument.  flows: whether a derivative gets through to a result; used: whether anything reads it."""

    stops: list[Stop]
    flows: bool
    used: bool


def ways_from(graph: Graph, argument: Value, stopped: Collection[Edge]) -> Ways:
    """Follow everything that depends on an argument, up to where its derivative ends."""
    before: dict[Value, Value | None] = {argument: None}
    stops: list[Stop] = []
    for value in graph.body:
        for position, operand in enumerate(value.operands):
            if operand not in before:
                continue
            reason = stop_reason(value, position, stopped)
            if reason is None:
                before.setdefault(value, operand)
            else:
                stops.append(Stop((*_path(before, operand), value), reason))
    used = argument in graph.outputs or len(before) > 1 or bool(stops)
    return Ways(_without_repetition(stops), any(output in before for output in graph.outputs), used)


def stop_reason(value: Value, position: int, stopped: Collection[Edge]) -> str | None:
    """Why no derivative goes from a value to its operand at a position; None where one does."""
    op, type_ = value.op, value.type
    if op.name == "cast" and not type_.dtype.is_differentiable:
        return f"the conversion to {type_.dtype.numpy} has no derivative"
    if isinstance(op.vjp, NotDifferentiable):
        return op.vjp.reason if op.name in op.vjp.reason else f"{op.name}: {op.vjp.reason}"
    if not isinstance(type_, TupleType) and not type_.dtype.is_differentiable:
        return f"{op.name}: its result is {type_.dtype.numpy}, which has no derivative"
    if isinstance(op.vjp, tuple):
        rule = op.vjp[position] if position < len(op.vjp) else None
        if rule is None:
            return f"{op.name}: an index has no derivative"
        if isinstance(rule, NotDifferentiable):
            return f"{op.name}: {rule.reason}"
    if op is custom_call and position >= value.attrs["rule"].primals:
        return "a function with a backward rule of its own reads it from outside; the rule is about the function's arguments"
    if (value, position) in stopped:
        return "the function's own backward rule gives None for it" if op is custom_call else f"{op.name} gives it no derivative"
    return None


def _path(before: dict[Value, Value | None], value: Value) -> list[Value]:
    """The values from the argument's reader up to `value`."""
    found: list[Value] = []
    current: Value | None = value
    while current is not None:
        found.append(current)
        current = before[current]
    return found[-2::-1]


def _without_repetition(stops: list[Stop]) -> list[Stop]:
    """One stop per value it ends at: `where(x > 0, x, -x)` compares x once."""
    return list({stop.path[-1]: stop for stop in reversed(stops)}.values())[::-1]
