"""Why the gradient of an argument is None or zero: the paths from it to the results, and where derivatives stop on them.

`derivative_flow` is the traced graph as seen by derivatives.  It uses the same data as the autodiff pass: the derivative rules
of the ops, dtypes, and the operands to which a rule gave no cotangent (`JointGraph.stopped`).  Reachability and paths in this graph
are found by networkx.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from bwcompiler import ops
from bwcompiler.ir.declaration import NotDifferentiable
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.late_base import nx
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import TupleType
from bwcompiler.ops.calls.custom import custom_call

if TYPE_CHECKING:
    import networkx

Edge = tuple[Value, int]               # (value, position of an operand)


class Stop(NamedTuple):
    """Where a derivative stops: between a value and its operand."""

    operand: Value
    value: Value
    reason: str


class Flow(NamedTuple):
    """through: edges operand -> value along which derivatives flow back.  stops: edges without derivative, in graph order."""

    graph: Graph
    through: networkx.DiGraph[Value]
    stops: list[Stop]


class Ways(NamedTuple):
    """All paths from one argument.  flows: whether a derivative reaches it from a result; used: whether anything reads it.

    stops   one per value at which a derivative stops: `where(x > 0, x, -x)` compares x once.
    """

    argument: Value
    stops: list[Stop]
    flows: bool
    used: bool


def derivative_flow(graph: Graph, stopped: Collection[Edge]) -> Flow:
    """The edges of a traced graph along which derivatives flow, and those where they stop."""
    through = nx.DiGraph()
    through.add_nodes_from(graph.values())
    stops: list[Stop] = []
    for value in graph.body:
        for position, operand in enumerate(value.operands):
            reason = stop_reason(value, position, stopped)
            if reason is None:
                through.add_edge(operand, value)
            else:
                stops.append(Stop(operand, value, reason))
    return Flow(graph, through, stops)


def ways_from(flow: Flow, argument: Value) -> Ways:
    """Everything that depends on an argument, up to where its derivative stops."""
    reached = {argument, *nx.descendants(flow.through, argument)}
    stops: dict[Value, Stop] = {}
    for stop in flow.stops:
        if stop.operand in reached:
            stops.setdefault(stop.value, stop)
    used = argument in flow.graph.outputs or len(reached) > 1 or bool(stops)
    return Ways(argument, list(stops.values()), not reached.isdisjoint(flow.graph.outputs), used)


def way_to(flow: Flow, argument: Value, stop: Stop) -> list[Value]:
    """The values on the shortest path from a reader of the argument to where its derivative stops."""
    return [*nx.shortest_path(flow.through, argument, stop.operand)[1:], stop.value]


def stop_reason(value: Value, position: int, stopped: Collection[Edge]) -> str | None:
    """Why no derivative goes from a value to its operand at a position; None if one does."""
    op, type_ = value.op, value.type
    if op is ops.cast and not type_.dtype.is_differentiable:
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
        return "a function with a custom backward rule reads it from outside, and the rule covers only the function's arguments"
    if (value, position) in stopped:
        return "the function's own backward rule gives None for it" if op is custom_call else f"{op.name} gives it no derivative"
    return None
