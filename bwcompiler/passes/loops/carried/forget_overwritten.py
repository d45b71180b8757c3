"""What an array holds that a loop writes anew, row by row, is forgotten where no iteration reads a row before it is written.

    y[0] = b;  loop i in 1..n: y[i] = y[i - 1] * x[i]          ->          the same, of an array that is not set before

So memory that `np.zeros` or an earlier use of the array filled is not filled, copied or transposed for the loop, and nothing of it has a
cotangent.  Which rows are written and read is followed through the iterations, whose number is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.ir.extent import Affine, Extent, Index, evaluate
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value
from bwcompiler.ops.region import loop_indices
from bwcompiler.passes.loops.replaced_regions import with_regions_replaced
from bwcompiler.passes.rewriting.rewriter import Rewritten

MOST_STEPS = 1 << 16           # reads and writes in all iterations that are followed


def forget_overwritten(graph: Graph) -> Rewritten:
    """The graph with such arrays unset before their loops; the same graph where there are none."""
    return with_regions_replaced(graph, forget_overwritten, lambda value: _forgetful(value) if value.op is ops.loop else None)


def _forgetful(loop: Value) -> list[Value] | None:
    """The results of the loop of arrays that are not set before, in the current record; None where it needs what they hold."""
    carried = loop.attrs["carried"]
    operands = list(loop.operands)
    for number in range(carried):
        updates, base = _updates(operands[number])
        if base.op is not ops.unset and base.type.is_fixed and _is_overwritten(loop, number, updates):
            array = ops.unset(shape=base.shape, dtype=base.dtype)
            for update in updates:
                array = update.op(array, update.operands[1], **update.attrs)
            operands[number] = array
    if operands == list(loop.operands):
        return None
    made = ops.loop(*operands, **loop.attrs)
    made.name = loop.name
    return [ops.item(made, index=number) for number in range(carried)]


def _updates(array: Value) -> tuple[list[Value], Value]:
    """The writes that made an array, in order, and the array that they began with."""
    updates: list[Value] = []
    while array.op is ops.slice_update:
        updates.append(array)
        array = array.operands[0]
    return updates[::-1], array


class _Step(NamedTuple):
    """A read or write of part of an array: along each axis where it begins, how many elements it has, and how far apart."""

    writes: bool
    starts: Sequence[Extent]
    sizes: Sequence[Extent]
    steps: Sequence[int]

    def is_whole(self, axis: int, extent: Extent) -> bool:
        return self.starts[axis] == 0 and self.sizes[axis] == extent and self.steps[axis] == 1

    def rows(self, axis: int, environment: dict[Index, int]) -> slice:
        start, size, step = evaluate(self.starts[axis], environment), evaluate(self.sizes[axis], environment), self.steps[axis]
        first, last = sorted([start, start + (size - 1) * step]) if size > 0 else (0, -1)
        return slice(first, last + 1, abs(step))


def _is_overwritten(loop: Value, number: int, updates: Sequence[Value]) -> bool:
    """Whether all elements are written, in the loop or by the updates before it, before an iteration reads them or the loop ends."""
    steps = _steps(loop.attrs["body"], number)
    lo, hi = loop.attrs["lo"], loop.attrs["hi"]
    if not steps or not any(step.writes for step in steps) or not isinstance(lo, int) or not isinstance(hi, int):
        return False
    iterations = loop_indices(lo, hi, loop.attrs["step"])
    if len(iterations) * len(steps) > MOST_STEPS:
        return False
    index, before = loop.attrs["body"].index, [_step(update) for update in updates]
    if index is None or not all(step is not None and not any(_indices(step)) for step in before):
        return False
    if any(one is not index for step in steps for one in _indices(step)):
        return False
    first = [step for step in before if step is not None]
    return any(_covers(loop.operands[number].shape, axis, index, iterations, first, steps) for axis in range(loop.operands[number].rank))


def _indices(step: _Step) -> Iterator[Index]:
    for extent in (*step.starts, *step.sizes):
        if isinstance(extent, Affine):
            yield from [index for index, _ in extent.terms]


def _covers(shape: Sequence[Extent], axis: int, index: Index, iterations: range, before: Sequence[_Step], steps: Sequence[_Step]) -> bool:
    """Whether rows along an axis are written in time; writes that are less than rows do not count."""
    rows = shape[axis]
    assert isinstance(rows, int)

    def is_of_rows(step: _Step) -> bool:
        return step.steps[axis] > 0 and all(step.is_whole(other, extent) for other, extent in enumerate(shape) if other != axis)

    if not all(is_of_rows(step) for step in steps if step.writes):
        return False
    written = bytearray(rows)
    for step in before:
        if is_of_rows(step):
            _write(written, step.rows(axis, {}))
    for number in iterations:
        for step in steps:
            part = step.rows(axis, {index: number})
            if step.writes:
                _write(written, part)
            elif not all(written[part]):
                return False
    return all(written)


def _write(written: bytearray, part: slice) -> None:
    written[part] = b"\1" * len(range(*part.indices(len(written))))


def _steps(body: Graph, number: int) -> list[_Step] | None:
    """What an iteration reads and writes of a state, in order; None where that is not known, or versions of it that are past are read."""
    found: list[_Step] = []
    now = body.inputs[number]
    past: set[Value] = set()
    for value in body.body:
        if past.intersection(value.operands):
            return None
        if now not in value.operands:
            continue
        step = _step(value) if value.operands.count(now) == 1 and value.operands[0] is now else None
        if step is None:
            return None
        found.append(step)
        if step.writes:
            past.add(now)
            now = value
    others = [output for place, output in enumerate(body.outputs) if place != number]
    return found if body.outputs[number] is now and not past.union([now]).intersection(others) else None


def _step(value: Value) -> _Step | None:
    """A read or write of a part; None for all else."""
    if value.op is ops.slice:
        return _Step(False, value.attrs["starts"], value.attrs["sizes"], value.attrs["steps"])
    if value.op is ops.slice_update:
        return _Step(True, value.attrs["starts"], value.operands[1].shape, value.attrs.get("steps") or (1,) * value.rank)
    return None
