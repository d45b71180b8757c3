"""Batching loops and branches: their bodies are mapped, with a new axis on what varies over the batch.

A carried value varies if it does on entry or after the body.  If the end of a loop varies, the loop runs until the last element of the
batch has ended, and those that have ended keep their values.  If a predicate varies, both branches are computed, and chosen from element
by element.

The axis is the first one, or inside loops over small arrays the last one (`batch_last`): a `Mapping` says which.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.ir.extent import Extent, add_extents, scale_extent, upper
from bwcompiler.ir.graph import Graph, cut, inline
from bwcompiler.ir.op import Record, Value, input_value
from bwcompiler.ir.types import BOOL, tensor
from bwcompiler.passes.batching.batch_last import gains_by_last_axis, is_written_out, last_axis_added, moved_to_end, moved_to_front
from bwcompiler.passes.batching.untaken_sides import guarded, may_fail

FEW_ITERATIONS = 8                             # of a loop of unknown length, for the estimate


class Mapping(NamedTuple):
    """How graphs are mapped: batch(graph, which inputs vary, size, last) -> mapped graph, which outputs vary; last: where the axis is."""

    batch: Callable[[Graph, Sequence[bool], Extent, bool], tuple[Graph, list[bool]]]
    last: bool

    def graph(self, graph: Graph, varies: Sequence[bool], size: Extent) -> tuple[Graph, list[bool]]:
        return self.batch(graph, varies, size, self.last)

    def repeated(self, value: Value, flag: bool, size: Extent) -> Value:
        """The value with the batch axis, along which it is the same where it had none."""
        if flag:
            return value
        return last_axis_added(value, size) if self.last else ops.broadcast(
            value, shape=(size, *value.shape), axes=tuple(range(1, value.rank + 1)))

    def all_repeated(self, values: Sequence[Value], has_axis: Sequence[bool], wanted: Sequence[bool], size: Extent) -> list[Value]:
        """The values, with the axis where it is wanted."""
        return [self.repeated(value, flag, size) if wish else value for value, flag, wish in zip(values, has_axis, wanted, strict=True)]

    def spread(self, mask: Value, like: Value) -> Value:
        """A value per element of the batch, for all elements of an array."""
        return mask if like.rank == 1 else ops.broadcast(mask, shape=like.shape, axes=(like.rank - 1 if self.last else 0,))

    def with_outputs_repeated(self, graph: Graph, has_axis: Sequence[bool], wanted: Sequence[bool], size: Extent) -> Graph:
        """The graph whose outputs have the axis where it is wanted."""
        record = Record()
        with record:
            outputs = self.all_repeated(graph.outputs, has_axis, wanted, size)
        return graph.replace(body=[*graph.body, *record.values], outputs=outputs)

    def body(self, body: Graph, carried: int, flags: Sequence[bool], size: Extent) -> tuple[list[bool], Graph]:
        """Which inputs of a loop's body vary, and the body mapped over these."""
        varies = list(flags)
        while True:
            mapped, has_axis = self.graph(body, varies, size)
            more = [k for k in range(carried) if has_axis[k] and not varies[k]]
            if not more:
                return varies, self.with_outputs_repeated(mapped, has_axis, varies[:carried], size)
            for k in more:
                varies[k] = True


Results = tuple[Value | list[Value], list[bool]]           # of a mapped region: its value, or its results; and which of these vary


def batched_loop(value: Value, operands: Sequence[Value], flags: Sequence[bool], size: Extent, mapping: Mapping) -> Results:
    """A mapped `loop`."""
    carried = value.attrs["carried"]
    varies, body = mapping.body(value.attrs["body"], carried, flags, size)
    if not mapping.last and _has_axis_last(value, varies, size):
        return _with_axis_last(batched_loop, value, operands, flags, size, mapping)
    given = mapping.all_repeated(operands, flags, varies, size)
    return ops.loop(*given, **{**value.attrs, "body": body}), varies[:carried]


def batched_while(value: Value, operands: Sequence[Value], flags: Sequence[bool], size: Extent, mapping: Mapping) -> Results:
    """A mapped `while_loop`."""
    carried = value.attrs["carried"]
    varies, body = mapping.body(value.attrs["body"], carried, flags, size)
    if not mapping.last and _has_axis_last(value, varies, size):
        return _with_axis_last(batched_while, value, operands, flags, size, mapping)
    condition, [ends_vary] = mapping.graph(value.attrs["condition"], varies, size)
    guards = ends_vary and may_fail(value.attrs["body"])                      # of what has ended, which is computed on
    if ends_vary:
        varies = [True] * carried + list(flags[carried:])
        inside = guarded(value.attrs["body"]) if guards else value.attrs["body"]
        body = mapping.body(inside, carried, [*varies, True] if guards else varies, size)[1]
        condition = mapping.graph(value.attrs["condition"], varies, size)[0]
    given = mapping.all_repeated(operands, flags, varies, size)
    if not ends_vary:
        return ops.while_loop(*given, carried=carried, condition=condition, body=body), varies[:carried]
    return _until_all_have_ended(given, carried, condition, body, guards, size, mapping), [True] * carried


def _has_axis_last(value: Value, varies: Sequence[bool], size: Extent) -> bool:
    """Whether a loop is better mapped with the axis last.  One that will be written out is a single sweep along memory anyway."""
    carried = value.attrs["carried"]
    if value.op is ops.loop and is_written_out(value.attrs["body"], carried, _iterations(value), size):
        return False
    given = [operand for operand, flag in zip(value.operands, varies, strict=True) if flag and operand.op is not ops.full]
    made = [state for state, flag in zip(value.operands[:carried], varies, strict=False) if flag]
    moved = sum(math.prod(map(upper, one.shape)) for one in (*given, *made))
    return gains_by_last_axis(value.attrs["body"], varies, size, _iterations(value), moved)


def _iterations(value: Value) -> int:
    if value.op is not ops.loop:
        return FEW_ITERATIONS
    lo, hi, step = (value.attrs[name] for name in ("lo", "hi", "step"))
    return upper(add_extents(hi, scale_extent(lo, -1))) // abs(int(step)) + 1


def _with_axis_last(batched: Callable[..., Results], value: Value, operands: Sequence[Value], flags: Sequence[bool], size: Extent,
                    mapping: Mapping) -> Results:
    """The loop with the axis last, between moves of what goes in and comes out."""
    given = [moved_to_end(operand) if flag else operand for operand, flag in zip(operands, flags, strict=True)]
    looped, varies = batched(value, given, flags, size, mapping._replace(last=True))
    assert isinstance(looped, Value)
    found = [ops.item(looped, index=number) for number in range(len(varies))]
    return [moved_to_front(one) if flag else one for one, flag in zip(found, varies, strict=True)], varies


def _until_all_have_ended(given: Sequence[Value], carried: int, condition: Graph, body: Graph, guards: bool, size: Extent,
                          mapping: Mapping) -> Value:
    """The loop that also carries which elements of the batch still run; `guards`: the body takes that, too."""
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
        found = inline(body, [*before, *rest, *([runs] if guards else [])])
        after = [ops.select(mapping.spread(runs, new), new, old) for new, old in zip(found, before, strict=True)]
        [still] = inline(condition, [*after, *rest])
        still = ops.bitwise_and(runs, still)
    step = cut(body.name, own, record.values, [*after, still])
    looped = ops.while_loop(*given[:carried], running, *fixed, carried=carried + 1, condition=any_runs, body=step)
    return looped


def batched_cond(value: Value, operands: Sequence[Value], flags: Sequence[bool], size: Extent, mapping: Mapping) -> Results:
    """A mapped `cond`, or the results where the predicate varies."""
    if flags[0]:
        chosen = []
        found, axes = zip(*[_side(value.attrs[name], taken, operands[1:], flags[1:], size, mapping) for name, taken in (
            ("then_branch", operands[0]), ("else_branch", ops.invert(operands[0])))], strict=True)
        for one, other, *has_axis in zip(*found, *axes, strict=True):
            one, other = mapping.repeated(one, has_axis[0], size), mapping.repeated(other, has_axis[1], size)
            chosen.append(ops.select(mapping.spread(operands[0], one), one, other))
        return chosen, [True] * len(chosen)
    branches = [mapping.graph(value.attrs[name], flags[1:], size) for name in ("then_branch", "else_branch")]
    varies = [one or other for one, other in zip(branches[0][1], branches[1][1], strict=True)]
    graphs = [mapping.with_outputs_repeated(graph, has_axis, varies, size) for graph, has_axis in branches]
    return ops.cond(*operands, then_branch=graphs[0], else_branch=graphs[1]), varies


def _side(branch: Graph, taken: Value, operands: Sequence[Value], flags: Sequence[bool], size: Extent,
          mapping: Mapping) -> tuple[list[Value], list[bool]]:
    """A side that some elements take, computed for all of them; which results vary."""
    if may_fail(branch):
        branch, operands, flags = guarded(branch), [*operands, taken], [*flags, True]
    graph, has_axis = mapping.graph(branch, flags, size)
    return inline(graph, operands), has_axis


def batched_checkpoint(value: Value, operands: Sequence[Value], flags: Sequence[bool], size: Extent, mapping: Mapping) -> Results:
    """A mapped `checkpoint`."""
    body, varies = mapping.graph(value.attrs["body"], flags, size)
    return ops.checkpoint(*operands, body=body, policy=value.attrs["policy"]), varies
