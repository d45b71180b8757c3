"""The old contents of an array that a loop overwrites row by row are dropped, if no iteration reads a row before it is written.

    y[0] = b;  loop i in 1..n: y[i] = y[i - 1] * x[i]          ->          the same, with an array that is not set before

So memory that `np.zeros` or an earlier use of the array filled is not filled, copied or transposed for the loop, and the old contents have
no cotangent.  The rows that are written and read are followed through the iterations, whose number is known.  In an array filled with one
number, the first or last rows may be left out by the loop; these are set after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from bwcompiler import ops
from bwcompiler.ir.extent import Affine, Extent, Index, evaluate, upper
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value, is_constant
from bwcompiler.ops.calls.region import loop_indices
from bwcompiler.passes.loops.replaced_regions import with_regions_replaced
from bwcompiler.passes.rewriting.rewriter import Rewritten

MOST_STEPS = 1 << 16           # reads and writes in all iterations that are followed
MOST_LEFT, LEAST_WRITTEN = 2, 8        # runs of rows that may be left, and how many times as many rows there are at least


def forget_overwritten(graph: Graph) -> Rewritten:
    """The graph with such arrays unset before their loops; the same graph where there are none."""
    return with_regions_replaced(graph, forget_overwritten, lambda value: _forgetful(value) if value.op is ops.loop else None)


def _forgetful(loop: Value) -> list[Value] | None:
    """The results of the loop of arrays that are not set before, in the current record; None where it needs what they hold."""
    carried = loop.attrs["carried"]
    operands = list(loop.operands)
    behind: dict[int, tuple[list[Rows], Any]] = {}            # what is set after the loop, where it lies then
    for number in range(carried):
        updates, base = _updates(operands[number])
        left = _left(loop, number, updates, base) if base.op is not ops.unset and base.type.is_fixed else None
        if left is not None:
            array = ops.unset(shape=base.shape, dtype=base.dtype)
            if left:
                behind[number] = left, base.attrs["value"]
            for update in updates:
                array = update.op(array, update.operands[1], **update.attrs)
            operands[number] = array
    if operands == list(loop.operands):
        return None
    made = ops.loop(*operands, **loop.attrs)
    made.name = loop.name
    results = [ops.item(made, index=number) for number in range(carried)]
    for number, (rows_left, value) in behind.items():
        for rows in rows_left:
            results[number] = with_rows_filled(results[number], rows, value)
    return results


def with_rows_filled(array: Value, rows: Rows, number: Any) -> Value:
    """The array with a number in rows along an axis."""
    shape = tuple([rows.end - rows.begin if axis == rows.axis else extent for axis, extent in enumerate(array.shape)])
    starts = tuple([rows.begin if axis == rows.axis else 0 for axis in range(array.rank)])
    return ops.slice_update(array, ops.full(value=number, shape=shape, dtype=array.dtype), starts=starts, steps=(1,) * array.rank)


def _updates(array: Value) -> tuple[list[Value], Value]:
    """The writes that made an array, in order, and the array that they began with."""
    updates: list[Value] = []
    while array.op is ops.slice_update:
        updates.append(array)
        array = array.operands[0]
    return updates[::-1], array


class Rows(NamedTuple):
    """Rows of an array, from `begin` up to `end` along an axis."""

    axis: int
    begin: int
    end: int


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


def _left(loop: Value, number: int, updates: Sequence[Value], base: Value) -> list[Rows] | None:
    """The rows that are not written, in the loop or by the updates before it; None where these are many, or not of one number, and where
    an iteration reads rows before they are written."""
    steps = _steps(loop.attrs["body"], number)
    lo, hi = loop.attrs["lo"], loop.attrs["hi"]
    if not steps or not any(step.writes for step in steps) or not isinstance(lo, int) or not isinstance(hi, int):
        return None
    iterations = loop_indices(lo, hi, loop.attrs["step"])
    if len(iterations) * len(steps) > MOST_STEPS:
        return None
    index, before = loop.attrs["body"].index, [_step(update) for update in updates]
    if index is None or not all(step is not None and not any(_indices(step)) for step in before):
        return None
    if any(one is not index for step in steps for one in _indices(step)):
        return None
    first = [step for step in before if step is not None]
    for axis in range(base.rank):
        left = _left_along(base.shape, axis, index, iterations, first, steps)
        if left is not None and (not left or (is_constant(base) and _are_few(left, base.shape[axis]))):
            return left
    return None


def _are_few(left: Sequence[Rows], rows: Extent) -> bool:
    return len(left) <= MOST_LEFT and LEAST_WRITTEN * sum([part.end - part.begin for part in left]) <= upper(rows)


def _indices(step: _Step) -> Iterator[Index]:
    for extent in (*step.starts, *step.sizes):
        if isinstance(extent, Affine):
            yield from [index for index, _ in extent.terms]


def _left_along(shape: Sequence[Extent], axis: int, index: Index, iterations: range, before: Sequence[_Step],
                steps: Sequence[_Step]) -> list[Rows] | None:
    """The rows along an axis that are not written; None where some are read before, or parts of these written before the loop.  Writes that
    are less than rows do not count."""
    rows = shape[axis]
    assert isinstance(rows, int)

    def is_of_rows(step: _Step) -> bool:
        return step.steps[axis] > 0 and all(step.is_whole(other, extent) for other, extent in enumerate(shape) if other != axis)

    if not all(is_of_rows(step) for step in steps if step.writes):
        return None
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
                return None
    if any(not all(written[step.rows(axis, {})]) for step in before):
        return None
    ends = [row for row in range(rows + 1) if (row < rows and not written[row]) != (row > 0 and not written[row - 1])]
    return [Rows(axis, begin, end) for begin, end in zip(ends[::2], ends[1::2], strict=True)]


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
