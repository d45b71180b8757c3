"""Which slice updates only touch their slice.

`y[t] = v` in a loop gives a chain of versions of y.  Recomputing all of y per version, as a fused loop over y would, is
quadratic in the length of the chain; so in a chain of small updates each one writes its slice into the memory of the
version before.  The first of a chain, and updates of most of an array, are ordinary fused values, unless the array holds nothing yet, or
is the state of a loop that nothing reads any more (`is_free`): a cotangent of something that is the same in all iterations, for example.

A sum, product or similar value that is written into an array computed only for this purpose, and that is available at the same time as the
array, is also written in place, and not by a second pass over all of the array.  So are strided slices written into such an array, or
into a constant, and slices of a transposed copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.ir.access import is_alias, is_virtual, root
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value, is_constant
from bwcompiler.passes.loops.branch_states import passed_through

CHAIN = 4                     # updates a chain has at least
LATE = ("reduction", "library", "region", "item")
GATHERED = 3                  # large additions to one array, that are done at once
TURNED = 1 << 12              # bytes of a transposed array from which on the order of its memory counts
SHARE = 2                     # an update is small where its slice is at most 1/SHARE of the array


# Why an update is computed as a new array, in words about the update.
RULES = {
    "alias": "what it updates is another array's memory in another shape",
    "large": f"it writes more than 1/{SHARE} of the array",
    "first": "it is the first of its chain of updates, which leaves the array before it as it is",
    "overlap": "it reads elements that it overwrites",
    "short": f"there are fewer than {CHAIN} updates in a row",
}


class Updates(NamedTuple):
    """values: what updates in place; arrays: what they, and writes of elements that data choose, may overwrite; passed_on: arrays that
    only one update reads."""

    values: frozenset[Value]
    arrays: frozenset[Value]
    passed_on: frozenset[Value]


def find_updates(graph: Graph, mutable: Sequence[Value] = ()) -> Updates:
    """The updates of the graph that are done in place, provided nothing reads the old version later.

    mutable: inputs that may be overwritten; a chain that begins with one may have any length, and its first update is in place.
    """
    candidates = _candidates(graph, mutable)
    scattered = frozenset([root(value.operands[0]) for value in graph.body if value.op in ops.SCATTERS])
    if not candidates:
        return Updates(frozenset(), scattered, frozenset())
    depth, length = _chains(candidates)
    begun = (_begun(graph, mutable) if mutable else set()) | _unset(candidates) | _late_patches(graph, candidates)
    values = frozenset([value for value in candidates
                        if value.operands[0] in begun or (depth[value] > 1 and length[value] >= CHAIN)])
    arrays = frozenset([value.operands[0] for value in values])
    return Updates(values, arrays | scattered, _read_once(graph, arrays))


def _begun(graph: Graph, mutable: Sequence[Value]) -> set[Value]:
    """What is made from these inputs by updates alone, in the graph, in a loop that carries it or in a branch; and these."""
    found = set(mutable)
    for value in graph.body:
        if value.op in ops.WRITES:
            before: Value | None = value.operands[0]
        elif value.op is ops.item:
            before = passed_through(value)
        else:
            continue
        if before in found:
            found.add(value)
    return found


def _unset(candidates: Sequence[Value]) -> set[Value]:
    """Arrays that hold nothing yet: what is not written of them has no value."""
    found: set[Value] = set()
    for value in candidates:
        if value.operands[0].op is ops.unset or value.operands[0] in found:
            found |= {value.operands[0], value}
    return found


def _late_patches(graph: Graph, candidates: Sequence[Value]) -> set[Value]:
    """Arrays computed for nothing else than to have what is known after other loops written into them; and these with that written."""
    readers: dict[Value, int] = {}                     # but slices, which can be read before
    late: set[Value] = set()
    for value in graph.body:
        if value.op.kind in LATE or not late.isdisjoint(value.operands):
            late.add(value)
        for operand in value.operands:
            if value.op is not ops.slice or not is_small_slice(value, operand):
                readers[operand] = readers.get(operand, 0) + 1
    outputs = set(graph.outputs)
    found: set[Value] = set()
    for value in candidates:
        array, part = value.operands
        looped = array.op is ops.item and array.operands[0].op is ops.loop          # what a loop gave lies in memory of its own
        turned = _is_turned(array)
        own = looped or turned or array in found or (array.op.kind in ("elementwise", "constant") and array not in late)
        if own and readers[array] == 1 and array not in outputs and (looped or turned or part in late or _is_stepped(value)):
            found |= {array, value}
    return found


def _is_turned(array: Value) -> bool:
    """Whether it is a transposed copy, which is made of square blocks, if nothing else is done by the same loops."""
    if array.op is not ops.transpose or is_alias(array) or not array.type.is_fixed or array.type.nbytes < TURNED:
        return False
    last = array.attrs["axes"][-1]
    return bool(last != array.rank - 1 and array.shape[-1] > 1 and array.operands[0].shape[-1] > 1)


def _is_stepped(value: Value) -> bool:
    """Whether an update leaves elements out: a walk through the whole array would divide at each of them."""
    return any(abs(step) > 1 and extent != 1 for step, extent in zip(value.attrs["steps"], value.operands[1].shape, strict=True))


def why_not_in_place(graph: Graph) -> dict[Value, str]:
    """The other updates of the graph, each with the rule (of RULES) that made it one."""
    depth, length = _chains(_candidates(graph))
    found: dict[Value, str] = {}
    patches = _late_patches(graph, list(depth)) | _unset(list(depth))
    for value in graph.body:
        if value.op not in ops.UPDATES or value.operands[0] in patches:
            continue
        if value not in depth:
            found[value] = "alias" if is_alias(value.operands[0]) else "large"
        elif length[value] < CHAIN:
            found[value] = "short"
        elif depth[value] == 1:
            found[value] = "first"
    return found


def _chains(candidates: list[Value]) -> tuple[dict[Value, int], dict[Value, int]]:
    """Per update its number in the chain of updates that it ends, and the length of the longest chain through it."""
    depth: dict[Value, int] = {}
    for value in candidates:
        depth[value] = depth.get(value.operands[0], 0) + 1
    length = dict(depth)
    for value in reversed(candidates):
        before = value.operands[0]
        if before in length:
            length[before] = max(length[before], length[value])
    return depth, length


def _candidates(graph: Graph, mutable: Sequence[Value] = ()) -> list[Value]:
    """Small updates, and all of arrays that hold nothing but what updates wrote, or are not read any more: nothing has to be copied."""
    found: list[Value] = []
    fresh: set[Value] = set()
    free: set[Value] = set(mutable)                            # states, and what updates in place have made of them
    for value in graph.body:
        if value.op is ops.unset:
            fresh.add(value)
        if value.op not in ops.UPDATES:
            continue
        array = value.operands[0]
        if array in fresh:
            fresh.add(value)
        if _is_small(value) or array in fresh or (array in free and _is_stored(value, graph) and is_free(array, value, graph)):
            found.append(value)
            if array in free:
                free.add(value)
    return found


def _is_stored(update: Value, graph: Graph) -> bool:
    """Whether a loop over the part has something to store: a constant is known where the array is read, and what is gathered is not."""
    if update.op is ops.slice_add:
        return not is_gathered(update, graph)
    return not (is_constant(update.operands[1]) and _is_read_by_loops(update, graph))


def is_gathered(addition: Value, graph: Graph) -> bool:
    """Whether one loop over the array gathers what is added to several parts of it, as in the derivative of a difference of neighbours.

    In place, each addition would go through the array.
    """
    if _is_small(addition):
        return False
    part, array = addition.operands[1], _first(addition)
    large = [value for value in graph.body if value.op is ops.slice_add and not _is_small(value)]
    return sum([value.operands[1] is part for value in large]) > 1 or sum([_first(value) is array for value in large]) >= GATHERED


def _first(update: Value) -> Value:
    """The array that an update, and those before it, were made of."""
    while update.op in ops.UPDATES:
        update = update.operands[0]
    return update


def _is_read_by_loops(array: Value, graph: Graph) -> bool:
    """Whether only the loops of kernels read an array: they find out which elements are constant when they read them."""
    readers = [value for value in graph.body if array in value.operands]
    return array not in graph.outputs and all(reader.op.kind in ("elementwise", "layout", "reduction") for reader in readers)


def is_free(state: Value, update: Value, graph: Graph) -> bool:
    """Whether an update can be done in the memory of the old state while it is computed: that is read before, and by other loops."""
    written = [value.operands[1] for value in graph.body if value.op is ops.slice_update and value is not update]
    pending, seen = [update.operands[1]], {update.operands[1], *written}       # these are read from their arrays (`read_written`)
    while pending:                                             # what the loop computes that writes the update
        for operand in pending.pop().operands:
            if operand is state:
                return False
            if operand not in seen and (operand.op.kind == "elementwise" or is_virtual(operand)):
                seen.add(operand)
                pending.append(operand)
    readers, behind = {state}, False
    for value in graph.body:
        if value is update:
            behind = True
        elif not readers.isdisjoint(value.operands):
            if behind:
                return False
            if is_virtual(value):
                readers.add(value)
    return not any(output in readers for output in graph.outputs)


def _is_small(value: Value) -> bool:
    return (value.op in ops.UPDATES and is_small_slice(value.operands[1], value.operands[0])
            and not is_alias(value.operands[0]))


def is_small_slice(part: Value, array: Value) -> bool:
    """Whether a slice is at most 1/SHARE of an array, or moves with a loop: it is then half of what it may be, on average."""
    return part.type.size * SHARE <= array.type.size or not part.type.is_fixed


def _read_once(graph: Graph, arrays: frozenset[Value]) -> frozenset[Value]:
    uses = dict.fromkeys(arrays, 0)
    for value in graph.body:
        for operand in value.operands:
            if operand in uses:
                uses[operand] += 1
    outputs = set(graph.outputs)
    return frozenset([value for value, count in uses.items() if count == 1 and value not in outputs])
