"""Batching: a graph -> the graph with a leading axis on some inputs, mapped over that axis.

Values that do not depend on a batched input are unchanged, so a batch of pullbacks computes the forward part once.  A call
of a function with its own derivative becomes a call whose body and rule are both mapped (`BatchedRule`), so that
a Jacobian of a Jacobian also uses the user's derivative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bwcompiler import ops
from bwcompiler.errors import InternalError, UnsupportedError, at
from bwcompiler.ir.declaration import Absent
from bwcompiler.ir.extent import Extent
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Record, Value, input_value
from bwcompiler.ir.types import I64, TensorType, tensor
from bwcompiler.ops.calls.custom import custom_call, custom_link
from bwcompiler.passes.batching.batch_last import last_axis_rule
from bwcompiler.passes.batching.batch_regions import Mapping, batched_checkpoint, batched_cond, batched_loop, batched_while


def batch_graph(graph: Graph, batched: Sequence[bool], size: Extent, last: bool = False,
                unit: Value | None = None) -> tuple[Graph, list[bool]]:
    """The mapped graph, and which of its outputs have the leading axis.

    last  whether the axis is the last one, where all ops have a rule for that (`batch_last`).
    unit  the input, if any, whose batch is all unit vectors, in order: its products with matrices are these matrices' elements.
    """
    units = {} if unit is None else {unit: False}                  # and whether two axes were exchanged
    mapped = {value for value, flag in zip(graph.inputs, batched, strict=True) if flag}
    inputs = [input_value(_with_axis(value.type, size, last), value.name, value.source) if value in mapped else value
              for value in graph.inputs]
    mapping = dict(zip(graph.inputs, inputs, strict=True))
    regions: dict[Value, tuple[Value | list[Value], list[bool]]] = {}        # mapped loops and branches, and which results vary
    mapping_of_regions = Mapping(batch_graph, last)
    record = Record()
    with record:
        for value in graph.body:
            flags = [operand in mapped for operand in value.operands]
            operands = [mapping[operand] for operand in value.operands]
            record.source, record.forward = value.source, value.forward
            if not any(flags):
                mapping[value] = value.with_operands(tuple(operands))      # results of a mapped loop that do not vary are new values
                record.values.append(mapping[value])
                continue
            if value.op is ops.item and value.operands[0] in regions:
                results, varies = regions[value.operands[0]]
                number = value.attrs["index"]
                mapping[value] = ops.item(results, index=number) if isinstance(results, Value) else results[number]
                if varies[number]:
                    mapped.add(value)
                continue
            mapped.add(value)
            if value.op in _REGIONS:
                regions[value] = _REGIONS[value.op](value, operands, flags, size, mapping_of_regions)
                mapping[value] = value                     # only its items are read
                continue
            if value.operands[0] in units:
                units |= _still_units(value, units[value.operands[0]])
            mapping[value] = made = _product_of_units(value, operands, units, flags, last) or _mapped(value, operands, flags, size, last)
            if made.name is None:
                made.name = value.name
    outputs = [mapping[output] for output in graph.outputs]
    body = live_values(record.values, outputs)
    return Graph(graph.name, inputs, body, outputs, graph.index, graph.captured), [output in mapped for output in graph.outputs]


def _mapped(value: Value, operands: list[Value], flags: list[bool], size: Extent, last: bool) -> Value:
    if value.op is custom_call:
        return _mapped_call(value, operands, flags, size)
    if value.op is custom_link:
        return _mapped_link(value, operands, flags, size)
    rule = last_axis_rule(value.op) if last else value.op.batch
    if rule is None or isinstance(rule, Absent):
        reason = f"{value.op.name} cannot be mapped over a batch axis yet" if rule is None else rule.reason
        raise UnsupportedError(at(value.source, reason))
    made: Value = rule(operands, flags, size, **value.attrs)
    return made


def _still_units(value: Value, swapped: bool) -> dict[Value, bool]:
    """value -> whether its axes are exchanged, where a unit vector in another shape, or a matrix of one transposed, is one."""
    if value.op is ops.reshape and not swapped:
        return {value: False}
    return {value: not swapped} if value.op is ops.transpose and value.attrs["axes"] == (1, 0) else {}


def _product_of_units(value: Value, operands: list[Value], units: dict[Value, bool], flags: list[bool], last: bool) -> Value | None:
    """A product of a matrix and all unit vectors, shaped like the other operand: elements of the matrix, and zeros, also where it is
    not finite.

    x (m, k), unit y (k, n): out[(i, j), :, l] = x[:, i] where j is l;  unit x (m, k), y (k, n): out[(i, j), l, :] = y[j, :] where i is l;
    with (j, i) for the unit vector's number where its axes were exchanged, and behind the other axes where the new axis is the last.
    """
    if value.op is not ops.matmul or value.rank != 2 or all(flags) or value.operands[flags.index(True)] not in units:
        return None
    (m, k), n = value.operands[0].shape, value.shape[1]
    if not all(isinstance(extent, int) for extent in (m, k, n)):
        return None
    row, column, first, second = (0, 1, 2, 3) if last else (2, 3, 0, 1)        # axes of the result, and of the unit vector's number
    number = (m, k) if flags[0] else (k, n)
    if units[value.operands[flags.index(True)]]:
        number, first, second = number[::-1], second, first
    if flags[0]:
        elements, axes, own, count = operands[1], (second, column), (row, first), m
    else:
        elements, axes, own, count = operands[0], (row, first), (column, second), n
    if axes[0] > axes[1]:
        elements, axes = ops.transpose(elements, axes=(1, 0)), axes[::-1]
    shape = (m, n, *number) if last else (*number, m, n)
    found = ops.broadcast(elements, shape=shape, axes=axes)
    if count > 1:
        one, other = (ops.iota(shape=(count, count), axis=axis, dtype=I64) for axis in (0, 1))
        same = ops.broadcast(ops.equal(one, other), shape=shape, axes=tuple(sorted(own)))
        found = ops.select(same, found, ops.full(value=0.0, shape=shape, dtype=value.dtype))
    size = number[0] * number[1]
    return ops.reshape(found, shape=(m, n, size) if last else (size, m, n))


def _with_axis(type_: TensorType, size: Extent, last: bool) -> TensorType:
    return tensor(type_.dtype, (*type_.shape, size) if last else (size, *type_.shape))


def _without_axis(type_: TensorType, flag: bool) -> TensorType:
    return tensor(type_.dtype, type_.shape[1:]) if flag else type_


_REGIONS = {ops.loop: batched_loop, ops.while_loop: batched_while, ops.cond: batched_cond, ops.checkpoint: batched_checkpoint}
_FIRST = Mapping(batch_graph, last=False)


# ----- custom rules
def _mapped_call(value: Value, operands: list[Value], flags: list[bool], size: Extent) -> Value:
    rule = value.attrs["rule"]
    body = _all_mapped(value.attrs["body"], flags, size)
    return custom_call(*operands, body=body, rule=BatchedRule(rule, flags[:rule.primals], size))


def _mapped_link(value: Value, operands: list[Value], flags: list[bool], size: Extent) -> Value:
    rule, primals, outputs = value.attrs["rule"], value.attrs["primals"], value.attrs["outputs"]
    end = primals + outputs
    results = [_FIRST.repeated(operand, flag, size) for operand, flag in zip(operands[primals:end], flags[primals:end], strict=True)]
    mapped = BatchedRule(rule, flags[:primals], size, flags[end:])
    return custom_link(*operands[:primals], *results, *operands[end:], rule=mapped, primals=primals, outputs=outputs)


def _all_mapped(graph: Graph, flags: Sequence[bool], size: Extent) -> Graph:
    """The mapped graph, all its outputs with the batch axis."""
    return _repeat_outputs(*batch_graph(graph, flags, size), size)


def _repeat_outputs(graph: Graph, has_axis: Sequence[bool], size: Extent, count: int | None = None) -> Graph:
    """The graph, its first `count` outputs (default: all) with the batch axis."""
    record = Record()
    with record:
        outputs = [_FIRST.repeated(output, flag, size) for output, flag in zip(graph.outputs[:count], has_axis, strict=False)]
    return graph.replace(body=[*graph.body, *record.values], outputs=[*outputs, *graph.outputs[len(outputs):]])


class BatchedRule:
    """A custom rule mapped over a batch axis, in the terms of `bwcompiler.ops.calls.custom`.

    All outputs have the axis; primals and residuals where they vary.  A primal without it gets the sum of its cotangents.
    """

    content_key = ""                   # as that of any rule: what is computed is said by bodies and operands

    def __init__(self, rule: Any, primals: Sequence[bool], size: Extent, residuals: Sequence[bool] | None = None) -> None:
        self.rule = rule
        self.mapped = tuple(primals)
        self.size = size
        self.residuals = residuals         # known when fwd was traced
        self.primals: int = rule.primals
        self.has_tangents: bool = rule.has_tangents
        self.has_cotangents: bool = rule.has_cotangents

    def __repr__(self) -> str:
        return f"batched {self.rule!r}"

    def forward(self, types: Sequence[TensorType]) -> tuple[Graph, list[Any]]:
        """fwd, mapped."""
        inner = [_without_axis(type_, flag) for type_, flag in zip(types, self.mapped, strict=True)]
        graph, arrays = self.rule.forward(inner)
        count = self.rule.output_count
        mapped, has_axis = batch_graph(graph, [*self.mapped, *([False] * len(arrays))], self.size)
        self.residuals = has_axis[count:]
        return _repeat_outputs(mapped, has_axis, self.size, count), arrays

    @property
    def output_count(self) -> int:
        return int(self.rule.output_count)

    def push(self, primals: Sequence[TensorType], given: Sequence[bool]) -> tuple[Graph, list[Any], list[bool]]:
        """The rule for tangents, mapped; a tangent varies where its primal does."""
        inner = [_without_axis(type_, flag) for type_, flag in zip(primals, self.mapped, strict=True)]
        graph, arrays, present = self.rule.push(inner, given)
        tangents = [flag for flag, there in zip(self.mapped, given, strict=True) if there]
        return _all_mapped(graph, [*self.mapped, *tangents, *([False] * len(arrays))], self.size), arrays, present

    def backward(self, residuals: Sequence[TensorType], outputs: Sequence[TensorType],
                 primals: Sequence[TensorType]) -> tuple[Graph, list[Any], list[bool]]:
        """bwd, mapped; summed over the batch for primals that are the same in all of it."""
        if self.residuals is None:
            raise InternalError(f"{self!r}: bwd is asked for before fwd")
        graph, arrays, present = self.rule.backward(
            [_without_axis(type_, flag) for type_, flag in zip(residuals, self.residuals, strict=True)],
            [_without_axis(type_, True) for type_ in outputs],
            [_without_axis(type_, flag) for type_, flag in zip(primals, self.mapped, strict=True)])
        flags = [*self.residuals, *([True] * len(outputs)), *([False] * len(arrays))]
        mapped = _all_mapped(graph, flags, self.size)
        varies = [flag for flag, there in zip(self.mapped, present, strict=True) if there]
        record = Record()
        with record:
            found = [output if flag else ops.sum(output, axes=(0,)) for output, flag in zip(mapped.outputs, varies, strict=True)]
        return mapped.replace(body=[*mapped.body, *record.values], outputs=found), arrays, present
