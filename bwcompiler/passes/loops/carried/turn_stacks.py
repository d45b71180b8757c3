"""Stacks of transposes that are transposed again where they are read become stacks of the original arrays.

    loop t: s[t] = x.T;  loop t: f(s[t].T)          ->          loop t: s[t] = x;  loop t: f(s[t])

An inner loop that carries or reads transposed matrices also returns them transposed: without this pass, what is kept of them for the
derivative would be transposed twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.ir.extent import Extent
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Value, input_value
from bwcompiler.passes.loops.region_bodies import emit_values
from bwcompiler.passes.rewriting.rewriter import Rewriter, rebuilt
from bwcompiler.passes.rewriting.simplify_rules import RULES

Users = Mapping[Value, Sequence[Value | None]]


class _Turned(NamedTuple):
    """What a stack is to hold: arrays of this shape, of which transposes with these axes were stacked."""

    shape: tuple[int, ...]
    axes: tuple[int, ...]


def turn_stacks(graph: Graph) -> Graph:
    """The graph with such stacks; the same graph where there are none."""
    if not any(value.op.regions for value in graph.body):
        return graph
    users = graph.readers()
    stacks = {value: found for value in graph.body if value.op is ops.item and (found := _turned(value, users)) is not None}
    mapping: dict[Value, Value] = {}
    record = Rewriter(RULES)
    with record:
        for value in graph.body:
            record.source, record.forward = value.source, value.forward
            filled = {one.attrs["index"]: stacks[one] for one in users.get(value, ()) if one is not None and one in stacks}
            read = {number: stacks[operand] for number, operand in enumerate(value.operands) if operand in stacks}
            copy = value.with_operands(tuple([mapping.get(operand, operand) for operand in value.operands])).with_regions(turn_stacks)
            if filled or read:
                mapping[value] = _with_turned(copy, filled, read)
            elif value in stacks:
                mapping[value] = ops.item(copy.operands[0], index=value.attrs["index"])
                mapping[value].name = value.name
            else:
                if copy is not value:
                    mapping[value] = copy
                record.values.append(copy)
    return rebuilt(graph, record.values, mapping)


# ----- which stacks
def _turned(item: Value, users: Users) -> _Turned | None:
    """What a result of a loop is to be a stack of instead, if less is transposed then."""
    loop, number = item.operands[0], item.attrs["index"]
    if loop.op is not ops.loop or number >= loop.attrs["carried"] or loop.operands[number].op is not ops.unset:
        return None
    written = _written(loop.attrs["body"], number)
    if written is None:
        return None
    _, array, alone = written
    axes, gain = array.attrs["axes"], int(alone)
    for reader in users.get(item, ()):
        if reader is None or reader.op is not ops.loop or reader.operands.count(item) > 1:
            return None
        if item in reader.operands[:reader.attrs["carried"]]:
            return None
        parts = _parts(reader.attrs["body"], reader.operands.index(item), array.shape)
        if parts is None:
            return None
        gain += sum(1 if all(_undoes(user, axes) for user in found) else -1 for _, found in parts)
    return _Turned(array.operands[0].shape, axes) if gain > 0 else None


def _written(body: Graph, number: int) -> tuple[Value, Value, bool] | None:
    """The update that fills an entry of a stack with a transpose, that transpose, and whether nothing else reads this."""
    users = body.readers()
    stack, update = body.inputs[number], body.outputs[number]
    if update.op is not ops.slice_update or update.operands[0] is not stack or users[stack] != [update] or users[update] != [None]:
        return None
    entry = update.operands[1]
    array = entry.operands[0] if entry.op is ops.reshape else entry
    if array.op is not ops.transpose or 1 in array.shape or not array.type.is_fixed:
        return None
    if entry.shape != (1, *array.shape) or stack.shape[1:] != array.shape or any(start != 0 for start in update.attrs["starts"][1:]):
        return None
    return update, array, users[array] == [entry]


def _parts(body: Graph, number: int, shape: Sequence[Extent]) -> list[tuple[Value, Sequence[Value | None]]] | None:
    """The entries of a stack that a body reads, as arrays, and what reads them; None where it reads something else of it."""
    users = body.readers()
    found: list[tuple[Value, Sequence[Value | None]]] = []
    for part in users.get(body.inputs[number], ()):
        if part is None or part.op is not ops.slice or part.shape != (1, *shape) or any(start != 0 for start in part.attrs["starts"][1:]):
            return None                                        # an entry that is read backwards begins at its end
        for entry in users.get(part, ()):
            if entry is None or entry.op is not ops.reshape or entry.shape != shape:
                return None
            found.append((entry, users.get(entry, ())))
    return found


def _undoes(user: Value | None, axes: Sequence[int]) -> bool:
    """Whether a value is the transpose back."""
    return user is not None and user.op is ops.transpose and [axes[axis] for axis in user.attrs["axes"]] == sorted(axes)


# ----- turned
def _with_turned(loop: Value, filled: Mapping[int, _Turned], read: Mapping[int, _Turned]) -> Value:
    """The loop that fills and reads such stacks, in the current record."""
    body: Graph = loop.attrs["body"]
    operands, inputs = list(loop.operands), list(body.inputs)
    for number, turned in (*filled.items(), *read.items()):
        type_ = inputs[number].type.with_shape((inputs[number].shape[0], *turned.shape))
        inputs[number] = input_value(type_, inputs[number].name, inputs[number].source)
        if number in filled:
            operands[number] = ops.unset(shape=type_.shape, dtype=type_.dtype)
    updates = {body.outputs[number]: number for number in filled}
    parts = {entry: number for number, turned in read.items()
             for entry, _ in _parts(body, number, tuple([turned.shape[axis] for axis in turned.axes])) or ()}
    mapping: dict[Value, Value] = {}
    with Rewriter(RULES) as record:
        for value in body.body:
            record.source, record.forward = value.source, value.forward
            if value in updates:
                number = updates[value]
                entry = value.operands[1]
                [array] = entry.operands[0].operands
                array = mapping.get(array, array)
                mapping[value] = ops.slice_update(inputs[number], ops.reshape(array, shape=(1, *array.shape)), **value.attrs)
            elif value in parts:
                shape, axes = read[parts[value]]
                starts, steps = [value.operands[0].attrs[name] for name in ("starts", "steps")]
                part = ops.slice(inputs[parts[value]], starts=starts, sizes=(1, *shape), steps=steps)
                mapping[value] = ops.transpose(ops.reshape(part, shape=shape), axes=axes)
            elif not (value.op is ops.slice and value.operands[0] in body.inputs and body.inputs.index(value.operands[0]) in read):
                emit_values([value], mapping, record)
    outputs = [mapping.get(output, output) for output in body.outputs]
    made = body.replace(inputs=inputs, body=live_values(record.values, outputs), outputs=outputs)
    turned_loop = ops.loop(*operands, **{**loop.attrs, "body": made})
    turned_loop.name = loop.name
    return turned_loop
