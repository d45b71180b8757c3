"""Forward mode of loops and branches: bodies that also carry tangents.

    c, ċ = loop(c, ċ; v, v̇):   c', ċ' = body and its tangents

A carried value has a tangent if it has one on entry or after the body.  The op that carries tangents also returns the primal results: it
replaces the op that is differentiated, so that no loop runs twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from bwcompiler import ops
from bwcompiler.errors import InternalError
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Op, Record, Value, constant, current_record, input_value
from bwcompiler.ir.types import dtype_of, tensor

Tangent = Value | None


class Pushed(Protocol):
    """A graph with tangents: inputs of the graph, tangents of inputs (`seeds`), captured; outputs, then `tangents` by position."""

    @property
    def graph(self) -> Graph: ...
    @property
    def tangents(self) -> tuple[int | None, ...]: ...
    @property
    def seeds(self) -> tuple[int, ...]: ...
    @property
    def captured(self) -> tuple[Any, ...]: ...


Push = Callable[[Graph, Sequence[int]], tuple[Pushed, list[Any]]]      # also arrays: inputs behind the graph's own, before the seeds


PUSHED = (ops.loop, ops.while_loop, ops.cond, ops.checkpoint)


class RegionTangents(NamedTuple):
    """The op that gives results and tangents; its first results are those of the op that it replaces."""

    value: Value
    tangents: list[Tangent]


def push_region(value: Value, tangents: Sequence[Any], push: Push) -> RegionTangents:
    """The region op with tangents, emitted into the current record, given the tangents of its operands (None: zero)."""
    return _PUSHED[value.op](value, [tangent if isinstance(tangent, Value) else None for tangent in tangents], push)


def _pushed(graph: Graph, wrt: Sequence[int], push: Push) -> tuple[Graph, dict[int, Value], tuple[Any, ...]]:
    """The graph with tangents, over its inputs, tangents of `wrt`, captured arrays; and the tangents of its outputs."""
    found, arrays = push(graph, wrt)
    inputs, own = found.graph.inputs, len(graph.inputs)
    captured = [one for k, one in enumerate(inputs) if k >= own and k not in found.seeds]
    ordered = [*inputs[:own], *[inputs[k] for k in found.seeds], *captured]
    tangents = {k: found.graph.outputs[place] for k, place in enumerate(found.tangents) if place is not None}
    made = found.graph.replace(inputs=ordered, outputs=found.graph.outputs[:len(graph.outputs)], captured=0)
    return made, tangents, (*arrays, *found.captured)


def _active(body: Graph, carried: int, given: Sequence[bool], push: Push) -> tuple[list[int], Graph, dict[int, Value], tuple[Any, ...]]:
    """Which inputs of a loop's body have tangents, and the body with tangents of these."""
    flags = list(given)
    while True:
        wrt = [k for k, flag in enumerate(flags) if flag]
        graph, tangents, arrays = _pushed(body, wrt, push)
        more = [k for k in range(carried) if k in tangents and not flags[k]]
        if not more:
            return wrt, graph, tangents, arrays
        for k in more:
            flags[k] = True


def _capture(arrays: Sequence[Any]) -> list[Value]:
    record = current_record()
    if record is None:
        raise InternalError("a loop is differentiated outside of any record")
    return [record.capture(array, tensor(dtype_of(array.dtype), array.shape)) for array in arrays]


def _or_zero(tangent: Tangent, like: Value) -> Value:
    return constant(0.0, like.type) if tangent is None else tangent


def _with_tangents(graph: Graph, wanted: Sequence[int], tangents: Mapping[int, Value], like: Sequence[Value]) -> Graph:
    """The graph that gives the wanted tangents (zero where there is none) behind its outputs."""
    with Record() as record:
        found = [tangents[k] if k in tangents else constant(0.0, like[k].type) for k in wanted]
    return graph.replace(body=[*graph.body, *record.values], outputs=[*graph.outputs, *found])


class _Doubled(NamedTuple):
    """A loop's body with tangents, its inputs in order: carried, their tangents, fixed, their tangents, captured."""

    body: Graph
    changing: list[int]
    operands: list[Value]


def _doubled(value: Value, given: Sequence[Tangent], push: Push) -> _Doubled:
    carried, operands = value.attrs["carried"], value.operands
    body: Graph = value.attrs["body"]
    wrt, graph, tangents, arrays = _active(body, carried, [tangent is not None for tangent in given], push)
    changing = [k for k in wrt if k < carried]
    count, inputs = len(body.inputs), graph.inputs
    ordered = [*inputs[:carried], *inputs[count:count + len(changing)], *inputs[carried:count], *inputs[count + len(changing):]]
    graph = _with_tangents(graph, changing, tangents, body.outputs).replace(inputs=ordered)
    start = [*operands[:carried], *[_or_zero(given[k], operands[k]) for k in changing], *operands[carried:],
             *[_or_zero(given[k], operands[k]) for k in wrt if k >= carried], *_capture(arrays)]
    return _Doubled(graph, changing, start)


def _results(value: Value, doubled: _Doubled, made: Value) -> RegionTangents:
    carried = value.attrs["carried"]
    found: list[Tangent] = [None] * carried
    for place, k in enumerate(doubled.changing, carried):
        found[k] = ops.item(made, index=place)
    return RegionTangents(made, found)


def _loop(value: Value, given: Sequence[Tangent], push: Push) -> RegionTangents:
    doubled = _doubled(value, given, push)
    carried = value.attrs["carried"] + len(doubled.changing)
    return _results(value, doubled, ops.loop(*doubled.operands, **{**value.attrs, "carried": carried, "body": doubled.body}))


def _while(value: Value, given: Sequence[Tangent], push: Push) -> RegionTangents:
    doubled = _doubled(value, given, push)
    carried, condition = value.attrs["carried"], value.attrs["condition"]
    types = [one.type for one in doubled.operands]
    middle, end = carried + len(doubled.changing), len(value.operands) + len(doubled.changing)
    inputs = [*condition.inputs[:carried], *[input_value(type_) for type_ in types[carried:middle]], *condition.inputs[carried:],
              *[input_value(type_) for type_ in types[end:]]]
    looped = ops.while_loop(*doubled.operands, carried=middle, condition=condition.replace(inputs=inputs), body=doubled.body)
    return _results(value, doubled, looped)


def _cond(value: Value, given: Sequence[Tangent], push: Push) -> RegionTangents:
    wrt = [k for k, tangent in enumerate(given[1:]) if tangent is not None]
    branches = [value.attrs[name] for name in ("then_branch", "else_branch")]
    pushed = [_pushed(branch, wrt, push) for branch in branches]
    wanted = sorted(set(pushed[0][1]) | set(pushed[1][1]))
    count = len(branches[0].inputs) + len(wrt)
    captured = [_capture(arrays) for _, _, arrays in pushed]
    graphs = []
    for number, (graph, tangents, _) in enumerate(pushed):
        inputs = list(graph.inputs[:count])
        for other, values in enumerate(captured):
            inputs += graph.inputs[count:] if other == number else [input_value(one.type) for one in values]
        graphs.append(_with_tangents(graph, wanted, tangents, branches[number].outputs).replace(inputs=inputs))
    operands = [*value.operands, *[given[k + 1] for k in wrt], *captured[0], *captured[1]]
    made = ops.cond(*[one for one in operands if one is not None], then_branch=graphs[0], else_branch=graphs[1])
    found: list[Tangent] = [None] * len(value.type.items)
    for place, k in enumerate(wanted, len(found)):
        found[k] = ops.item(made, index=place)
    return RegionTangents(made, found)


def _checkpoint(value: Value, given: Sequence[Tangent], push: Push) -> RegionTangents:
    wrt = [k for k, tangent in enumerate(given) if tangent is not None]
    body: Graph = value.attrs["body"]
    graph, tangents, arrays = _pushed(body, wrt, push)
    wanted = sorted(tangents)
    made = ops.checkpoint(*value.operands, *[one for one in given if one is not None], *_capture(arrays),
                          body=_with_tangents(graph, wanted, tangents, body.outputs), policy=value.attrs["policy"])
    found: list[Tangent] = [None] * len(body.outputs)
    for place, k in enumerate(wanted, len(found)):
        found[k] = ops.item(made, index=place)
    return RegionTangents(made, found)


_PUSHED: dict[Op, Callable[[Value, Sequence[Tangent], Push], RegionTangents]] = {
    ops.loop: _loop, ops.while_loop: _while, ops.cond: _cond, ops.checkpoint: _checkpoint}


def use_results(graph: Graph, replaced: Mapping[Value, Value]) -> Graph:
    """The graph in which results of replaced region ops are those of the ops in their places."""
    if not replaced:
        return graph
    mapping: dict[Value, Value] = {}
    body = []
    for value in graph.body:
        if value in replaced:
            continue
        operands = tuple([mapping.get(operand, operand) for operand in value.operands])
        if value.op is ops.item:
            operands = tuple([replaced.get(operand, operand) for operand in operands])
            operands = tuple([mapping.get(operand, operand) for operand in operands])
        copy = value.with_operands(operands)
        if copy is not value:
            mapping[value] = copy
        body.append(copy)
    return graph.replace(body=body, outputs=[mapping.get(output, output) for output in graph.outputs])
