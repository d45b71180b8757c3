"""Batching loops and branches: their bodies are mapped, with a leading axis on what varies over the batch.

What is carried varies if it does on entry or after the body.  Where the end of a loop varies, the loop runs until the last one has ended,
and what has ended keeps its values; where a predicate varies, both branches are computed and chosen from, element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bwcompiler import ops
from bwcompiler.ir.extent import Extent
from bwcompiler.ir.graph import Graph, cut, inline
from bwcompiler.ir.op import Record, Value, input_value
from bwcompiler.ir.types import BOOL, tensor

Batch = Callable[[Graph, Sequence[bool], Extent], tuple[Graph, list[bool]]]


def repeated(value: Value, flag: bool, size: Extent) -> Value:
    """The value with the batch axis, along which it is the same where it had none."""
    return value if flag else ops.broadcast(value, shape=(size, *value.shape), axes=tuple(range(1, value.rank + 1)))


def with_outputs_repeated(graph: Graph, has_axis: Sequence[bool], wanted: Sequence[bool], size: Extent) -> Graph:
    """The graph whose outputs have the axis where it is wanted."""
    record = Record()
    with record:
        outputs = [repeated(output, flag, size) if wish else output
                   for output, flag, wish in zip(graph.outputs, has_axis, wanted, strict=True)]
    return graph.replace(body=[*graph.body, *record.values], outputs=outputs)


def batched_loop(value: Value, operands: Sequence[Value], flags: Sequence[bool], size: Extent, batch: Batch) -> tuple[Value, list[bool]]:
    """A mapped `loop`, and which of its results vary."""
    carried = value.attrs["carried"]
    varies, body = _mapped_body(value.attrs["body"], carried, flags, size, batch)
    given = [repeated(operand, flag, size) if wish else operand for operand, flag, wish in zip(operands, flags, varies, strict=True)]
    return ops.loop(*given, **{**value.attrs, "body": body}), varies[:carried]


def _mapped_body(body: Graph, carried: int, flags: Sequence[bool], size: Extent, batch: Batch) -> tuple[list[bool], Graph]:
    """Which inputs of a loop's body vary, and the body mapped over these."""
    varies = list(flags)
    while True:
        mapped, has_axis = batch(body, varies, size)
        more = [k for k in range(carried) if has_axis[k] and not varies[k]]
        if not more:
            return varies, with_outputs_repeated(mapped, has_axis, varies[:carried], size)
        for k in more:
            varies[k] = True


def batched_while(value: Value, operands: Sequence[Value], flags: Sequence[bool], size: Extent, batch: Batch) -> tuple[Value, list[bool]]:
    """A mapped `while_loop`, and which of its results vary."""
    carried = value.attrs["carried"]
    varies, body = _mapped_body(value.attrs["body"], carried, flags, size, batch)
    condition, [ends_vary] = batch(value.attrs["condition"], varies, size)
    if ends_vary:
        varies = [True] * carried + list(flags[carried:])
        body = _mapped_body(value.attrs["body"], carried, varies, size, batch)[1]
        condition = batch(value.attrs["condition"], varies, size)[0]
    given = [repeated(operand, flag, size) if wish else operand for operand, flag, wish in zip(operands, flags, varies, strict=True)]
    if not ends_vary:
        return ops.while_loop(*given, carried=carried, condition=condition, body=body), varies[:carried]
    return _until_all_have_ended(given, carried, condition, body, size), [True] * carried


def _until_all_have_ended(given: Sequence[Value], carried: int, condition: Graph, body: Graph, size: Extent) -> Value:
    """The loop that also carries which elements of the batch still run."""
    fixed = given[carried:]
    mask = tensor(BOOL, (size,))
    [running] = inline(condition, given)

    def inputs() -> list[Value]:
        state = [input_value(x.type, x.name) for x in given[:carried]]
        return [*state, input_value(mask, "running"), *[input_value(x.type) for x in fixed]]

    tested = inputs()
    with Record() as record:
        some = ops.any(tested[carried], axes=(0,))
    any_runs = cut("condition", tested, record.values, [some])
    own = inputs()
    before, runs, rest = own[:carried], own[carried], own[carried + 1:]
    with Record() as record:
        found = inline(body, [*before, *rest])
        after = [ops.select(_spread(runs, new), new, old) for new, old in zip(found, before, strict=True)]
        [still] = inline(condition, [*after, *rest])
        still = ops.bitwise_and(runs, still)
    step = cut(body.name, own, record.values, [*after, still])
    looped = ops.while_loop(*given[:carried], running, *fixed, carried=carried + 1, condition=any_runs, body=step)
    return looped


def _spread(mask: Value, like: Value) -> Value:
    """A value per element of the batch, for all elements of an array."""
    return mask if like.rank == 1 else ops.broadcast(mask, shape=like.shape, axes=(0,))


def batched_cond(value: Value, operands: Sequence[Value], flags: Sequence[bool], size: Extent,
                 batch: Batch) -> tuple[Value | list[Value], list[bool]]:
    """A mapped `cond`, or the results where the predicate varies; and which of its results vary."""
    branches = [batch(value.attrs[name], flags[1:], size) for name in ("then_branch", "else_branch")]
    if flags[0]:
        chosen = []
        found = [inline(graph, operands[1:]) for graph, _ in branches]
        for one, other, *has_axis in zip(*found, *[axes for _, axes in branches], strict=True):
            one, other = repeated(one, has_axis[0], size), repeated(other, has_axis[1], size)
            chosen.append(ops.select(_spread(operands[0], one), one, other))
        return chosen, [True] * len(chosen)
    varies = [one or other for one, other in zip(branches[0][1], branches[1][1], strict=True)]
    graphs = [with_outputs_repeated(graph, has_axis, varies, size) for graph, has_axis in branches]
    return ops.cond(*operands, then_branch=graphs[0], else_branch=graphs[1]), varies


def batched_checkpoint(value: Value, operands: Sequence[Value], flags: Sequence[bool], size: Extent,
                       batch: Batch) -> tuple[Value, list[bool]]:
    """A mapped `checkpoint`, and which of its results vary."""
    body, varies = batch(value.attrs["body"], flags, size)
    return ops.checkpoint(*operands, body=body, policy=value.attrs["policy"]), varies
