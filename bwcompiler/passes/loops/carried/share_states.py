"""States of a loop that begin as one value, and get equal values in every iteration, are carried once.

    loop i: a = a with f(i) added at i, b = b with f(i) added at i, from a = b = zeros          ->          the same without b

This happens in derivatives: the terms of a sum have equal cotangents.  Equal states are found like equivalent states of an automaton: all
that begin alike are assumed equal, until an iteration distinguishes them; inner loops are examined in the same way, given their operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bwcompiler import ops
from bwcompiler.ir.graph import Graph, all_values, live_values
from bwcompiler.ir.op import Value
from bwcompiler.passes.loops.replaced_regions import with_regions_replaced
from bwcompiler.passes.rewriting.rewriter import Rewritten, attribute_key

Class = Any                    # the key of equal values: one of them, or what they are made of


def share_states(graph: Graph) -> Rewritten:
    """The graph whose loops carry such states once; the same graph where there are none."""
    if not _may_share(graph):
        return Rewritten(graph, {})
    return with_regions_replaced(graph, share_states, lambda value: _sharing(value) if value.op is ops.loop else None, merges=True)


def _may_share(graph: Graph) -> bool:
    """Whether a loop, here or in a body, begins with two states that are one value."""
    return any(value.op is ops.loop and len(set(value.operands[:value.attrs["carried"]])) < value.attrs["carried"]
               for value in all_values(graph))


def _sharing(loop: Value) -> list[Value] | None:
    """The results of the loop without the states that others are, in the current record; None where it has none."""
    carried, body = loop.attrs["carried"], loop.attrs["body"]
    states = loop.operands[:carried]
    if len(set(states)) == carried:
        return None
    first = _first_of(_settled(body, states, loop.operands[carried:]))
    kept = [number for number in range(carried) if first[number] == number]
    if len(kept) == carried:
        return None
    places = {number: place for place, number in enumerate(kept)}
    mapping = {body.inputs[number]: body.inputs[first[number]] for number in range(carried)}
    values = []
    for value in body.body:
        copy = value.with_operands(tuple([mapping.get(operand, operand) for operand in value.operands]))
        mapping[value] = copy
        values.append(copy)
    outputs = [mapping.get(body.outputs[number], body.outputs[number]) for number in kept]
    inputs = [*[body.inputs[number] for number in kept], *body.inputs[carried:]]
    made = share_states(body.replace(inputs=inputs, body=live_values(values, outputs), outputs=outputs)).graph
    operands = [*[states[number] for number in kept], *loop.operands[carried:]]
    shared = ops.loop(*operands, **{**loop.attrs, "carried": len(kept), "body": made})
    shared.name = loop.name
    return [ops.item(shared, index=places[first[number]]) for number in range(carried)]


def _first_of(classes: Sequence[Class]) -> list[int]:
    """Per number the first one of its class."""
    first: dict[Class, int] = {}
    return [first.setdefault(one, number) for number, one in enumerate(classes)]


def _settled(body: Graph, states: Sequence[Class], fixed: Sequence[Class]) -> list[Class]:
    """The classes of what a loop carries, given those of what it begins with and of what it reads."""
    now = _first_of(states)
    while True:
        made = _classes(body, [*[(body, number) for number in now], *[(body, "fixed", one) for one in fixed]])
        after = _first_of(list(zip(now, made, strict=True)))
        if after == now:
            return [(body, number) for number in now]
        now = after


def _classes(body: Graph, inputs: Sequence[Class]) -> list[Class]:
    """The classes of the outputs of a body, given those of its inputs."""
    known: dict[Any, Value] = {}
    found: dict[Value, Class] = dict(zip(body.inputs, inputs, strict=True))
    for value in body.body:
        operands = tuple([found[operand] for operand in value.operands])
        if value.op is ops.loop:
            carried = value.attrs["carried"]
            found[value] = (value, _settled(value.attrs["body"], operands[:carried], operands[carried:]))
        elif value.op is ops.item and value.operands[0].op is ops.loop:
            loop, states = found[value.operands[0]]
            found[value] = (loop, states[value.attrs["index"]])
        elif value.op.pure and not value.op.regions:
            found[value] = known.setdefault((value.op, operands, attribute_key(value.attrs)), value)
        else:
            found[value] = value
    return [found[output] for output in body.outputs]
