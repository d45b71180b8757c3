"""Loops and branches without what nothing reads: results, values carried only for these, operands; also inside their bodies.

a result that is not read          is neither computed nor carried, unless another result needs it
c' = c                             c is not carried: its result is the operand
c' = c with v at [i], c read at [i] only, result not read
                                   c is not carried: what is written is never read (the cotangent of stacked results)
the same operand twice             becomes one operand
both branches give one operand     the result is the operand
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from bwcompiler import ops
from bwcompiler.ir.extent import Affine, Index
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Value


def prune_regions(graph: Graph) -> Graph:
    """The graph without what is not read; the same graph where all is."""
    while True:
        found = _pruned_once(graph)
        if found is graph:
            return graph
        graph = found


def _pruned_once(graph: Graph) -> Graph:
    if graph.is_settled(_pruned_once) or not any(value.op.regions for value in graph.body):
        return graph
    live = live_values(graph.body, graph.outputs)
    used: dict[Value, set[int]] = {}
    for value in live:
        if value.op is ops.item:
            used.setdefault(value.operands[0], set()).add(value.attrs["index"])
    mapping: dict[Value, Value] = {}
    pruned: dict[Value, _Pruned] = {}
    known = _Known({}, {})
    body: list[Value] = []
    for value in live:
        operands = tuple([mapping.get(operand, operand) for operand in value.operands])
        if value.op in _PRUNE:
            found = pruned[value] = _PRUNE[value.op](value.with_operands(operands), used.get(value, set()), known)
            body += [] if found.value is None else [found.value]
            continue
        if value.op is ops.item and value.operands[0] in pruned:
            mapping[value] = pruned[value.operands[0]].result(value)
            if mapping[value].op is ops.item and mapping[value].operands[0] is pruned[value.operands[0]].value:
                body.append(mapping[value])
            continue
        kept = value.with_operands(operands).with_regions(_pruned_once)
        if kept is not value:
            mapping[value] = kept
        body.append(kept)
    outputs = tuple([mapping.get(output, output) for output in graph.outputs])
    body = live_values(body, outputs)
    if tuple(body) != graph.body or outputs != graph.outputs:
        return graph.replace(body=body, outputs=outputs)
    graph.settled.append(_pruned_once)
    return graph


class _Known(NamedTuple):
    """What is known of regions: several loops may have one body.

    regions  region, inputs, outputs and twins -> what it becomes.
    reads    region and outputs -> the numbers of the inputs that these depend on.
    """

    regions: dict[tuple[Graph, tuple[int, ...], tuple[int, ...], tuple[tuple[int, int], ...]], Graph]
    reads: dict[tuple[Graph, tuple[int, ...]], set[int]]


class _Pruned(NamedTuple):
    """What is left of a region op: the op (None: nothing), per old result its new number, and operands that are results themselves."""

    value: Value | None
    numbers: dict[int, int]
    operands: dict[int, Value]

    def result(self, item: Value) -> Value:
        index = item.attrs["index"]
        if index in self.operands:
            return self.operands[index]
        assert self.value is not None
        if self.value is item.operands[0]:
            return item
        return Value(ops.item, (self.value,), {"index": self.numbers[index]}, item.type, item.name, item.source, item.forward)


def _kept(value: Value, found: Value) -> Value:
    """The value itself where what was made of it is the same."""
    same = (found.operands == value.operands and found.type == value.type
            and all(found.attrs[name] is value.attrs[name] or (name not in value.op.regions and found.attrs[name] == value.attrs[name])
                    for name in value.op.attributes))
    return value if same else found


def _made(value: Value, operands: Sequence[Value], attrs: dict[str, Any]) -> Value:
    type_ = value.op.shape(*[operand.type for operand in operands], **attrs)
    return _kept(value, Value(value.op, tuple(operands), attrs, type_, value.name, value.source, value.forward))


def _region(graph: Graph, inputs: Sequence[int], outputs: Sequence[int], merged: dict[int, int], known: _Known) -> Graph:
    """A region over some of its inputs, with some of its outputs; merged: inputs that are read in the places of others."""
    key = graph, tuple(inputs), tuple(outputs), tuple(merged.items())
    found = known.regions.get(key)
    if found is None:
        found = known.regions[key] = _cut_down(graph, inputs, outputs, merged)
    return found


def _cut_down(graph: Graph, inputs: Sequence[int], outputs: Sequence[int], merged: dict[int, int]) -> Graph:
    whole = [*inputs] == [*range(len(graph.inputs))] and [*outputs] == [*range(len(graph.outputs))] and not merged
    if whole and graph.is_settled(_pruned_once):
        return graph
    mapping = {graph.inputs[k]: graph.inputs[first] for k, first in merged.items()}
    body = []
    for value in live_values(graph.body, [graph.outputs[k] for k in outputs]):
        copy = value.with_operands(tuple([mapping.get(operand, operand) for operand in value.operands]))
        if copy is not value:
            mapping[value] = copy
        body.append(copy)
    found = graph.replace(inputs=[graph.inputs[k] for k in inputs], body=body,
                          outputs=[mapping.get(graph.outputs[k], graph.outputs[k]) for k in outputs])
    same = found.inputs == graph.inputs and found.body == graph.body and found.outputs == graph.outputs
    return _pruned_once(graph if same else found)


def _read(graph: Graph, outputs: Sequence[int], known: _Known) -> set[int]:
    """The numbers of the inputs that some outputs depend on."""
    key = graph, tuple(outputs)
    found = known.reads.get(key)
    if found is None:
        wanted = {graph.outputs[k] for k in outputs}
        results: dict[Value, set[int]] = {}                    # of regions
        for value in reversed(graph.body):
            if value.op in _PRUNE:
                wanted.update(_operands_of(value, results.get(value, set()), known))
            elif value not in wanted:
                continue
            elif value.op is ops.item and value.operands[0].op in _PRUNE:
                results.setdefault(value.operands[0], set()).add(value.attrs["index"])
            else:
                wanted.update(value.operands)
        found = known.reads[key] = {k for k, value in enumerate(graph.inputs) if value in wanted}
    return found


def _operands_of(value: Value, used: set[int], known: _Known) -> list[Value]:
    """The operands that some results of a loop or branch depend on."""
    if not used:
        return []
    if value.op is ops.cond:
        passed, outputs, inputs = _cond_parts(value, used, known)
        return [*passed.values(), *([value.operands[0]] if outputs else []), *[value.operands[k + 1] for k in inputs]]
    constant, needed, read = _loop_parts(value, used, known)
    return [value.operands[k] for k in (constant & used) | needed | read]


def _twins(operands: Sequence[Value], numbers: Sequence[int]) -> dict[int, int]:
    """Which of some operands are an earlier one again."""
    first: dict[Value, int] = {}
    return {k: first[operands[k]] for k in numbers if first.setdefault(operands[k], k) != k}


# ----- loops
def _loop_parts(value: Value, used: set[int], known: _Known) -> tuple[set[int], set[int], set[int]]:
    """The states that stay as they are, the others that some results need, and the operands that these iterations read."""
    attrs, carried = value.attrs, value.attrs["carried"]
    body: Graph = attrs["body"]
    constant = {k for k in range(carried) if body.outputs[k] is body.inputs[k]}
    if value.op is ops.loop and body.index is not None:
        constant |= {k for k in range(carried) if k not in used and _is_never_read_again(body, k, attrs["step"])}
    needed = used - constant
    while True:
        read = _read(body, sorted(needed), known)
        if value.op is ops.while_loop and needed:
            read = read | _read(attrs["condition"], [0], known)
        more = {k for k in read if k < carried} - needed - constant
        if not more:
            return constant, needed, read
        needed |= more


def _prune_loop(value: Value, used: set[int], known: _Known) -> _Pruned:
    attrs, carried, count = value.attrs, value.attrs["carried"], len(value.operands)
    constant, needed, read = _loop_parts(value, used, known)
    changing = sorted(needed)
    fixed = [k for k in range(count) if k in read and (k >= carried or k in constant)]
    twins = _twins(value.operands, fixed)
    inputs = [*changing, *[k for k in fixed if k not in twins]]
    results = {k: value.operands[k] for k in constant if k in used}
    if not changing:
        return _Pruned(None, {}, results)
    made = {**attrs, "carried": len(changing), "body": _region(attrs["body"], inputs, changing, twins, known)}
    if value.op is ops.while_loop:
        made["condition"] = _region(attrs["condition"], inputs, [0], twins, known)
    return _Pruned(_made(value, [value.operands[k] for k in inputs], made), {k: place for place, k in enumerate(changing)}, results)


def _is_never_read_again(body: Graph, number: int, step: int, around: Sequence[tuple[Index, int]] = ()) -> bool:
    """Whether an iteration only reads of a carried array what it overwrites, and no other iteration does.

    around: the indices and steps of loops that carry the array from one run of this loop to the next.
    """
    array, update = body.inputs[number], body.outputs[number]
    assert body.index is not None
    levels = [*around, (body.index, step)]
    if body.outputs.count(update) != 1 or array in body.outputs:
        return False
    if update.op is ops.item and update.operands[0].op is ops.loop:
        inner, place = update.operands[0], update.attrs["index"]
        alone = inner.operands[place] is array and not any(
            (array in value.operands and value is not inner) or update in value.operands for value in body.body)
        return alone and inner.operands.count(array) == 1 and _is_never_read_again(inner.attrs["body"], place, inner.attrs["step"], levels)
    if update.op is not ops.slice_update or update.operands[0] is not array or array is update.operands[1]:
        return False
    starts, steps, sizes = update.attrs["starts"], update.attrs["steps"], update.operands[1].shape
    if not all(_moves_on(starts, sizes, level, [index for index, _ in levels]) for level in levels):
        return False
    for value in body.body:
        if array in value.operands and value is not update:
            same = value.op is ops.slice and (value.attrs["starts"], value.attrs["sizes"], value.attrs["steps"]) == (starts, sizes, steps)
            if not same:
                return False
        if update in value.operands:
            return False
    return True


def _moves_on(starts: Sequence[object], sizes: Sequence[object], level: tuple[Index, int], indices: Sequence[Index]) -> bool:
    """Whether a part of an array is another one for each value of an index of some loops, without overlap, whatever the others are."""
    index, step = level
    for start, size in zip(starts, sizes, strict=True):
        if isinstance(start, Affine) and isinstance(size, int):
            factors = {term: factor for term, factor in start.terms if term in indices}
            if list(factors) == [index] and abs(factors[index] * step) >= size:
                return True
    return False


# ----- branches
def _cond_parts(value: Value, used: set[int], known: _Known) -> tuple[dict[int, Value], list[int], list[int]]:
    """Of some results of a branch the operands that are results themselves, the others, and the operands that these depend on."""
    branches = [value.attrs[name] for name in ("then_branch", "else_branch")]
    results: dict[int, Value] = {}
    for k in used:
        one, other = [branch.outputs[k] for branch in branches]
        if one in branches[0].inputs and other in branches[1].inputs:
            place = branches[0].inputs.index(one)
            if value.operands[place + 1] is value.operands[branches[1].inputs.index(other) + 1]:
                results[k] = value.operands[place + 1]
    outputs = sorted(used - set(results))
    return results, outputs, sorted(set[int]().union(*[_read(branch, outputs, known) for branch in branches])) if outputs else []


def _prune_cond(value: Value, used: set[int], known: _Known) -> _Pruned:
    results, outputs, read = _cond_parts(value, used, known)
    if not outputs:
        return _Pruned(None, {}, results)
    twins = _twins(value.operands[1:], read)
    inputs = [k for k in read if k not in twins]
    made = {name: _region(value.attrs[name], inputs, outputs, twins, known)
            for name in ("then_branch", "else_branch")}
    operands = [value.operands[0], *[value.operands[k + 1] for k in inputs]]
    return _Pruned(_made(value, operands, made), {k: place for place, k in enumerate(outputs)}, results)


_PRUNE = {ops.loop: _prune_loop, ops.while_loop: _prune_loop, ops.cond: _prune_cond}
