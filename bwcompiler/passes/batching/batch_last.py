"""Batching with the new axis last, used for loops over small arrays (`batch_regions`), so that vectors run along the batch.

    x[3] of every element of the batch is a column of (size, 3), read every third number, and a row of (3, size).

`last_axis_rule` gives the op on operands that have the batch as last axis if they vary; `gains_by_last_axis` says for which bodies that
pays.  An op without a rule here is mapped with the axis in front, by its declaration, and so is every loop that contains one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

from bwcompiler import ops
from bwcompiler.ir.extent import Extent, upper
from bwcompiler.ir.graph import Graph, all_values
from bwcompiler.ir.op import Op, Value
from bwcompiler.ir.types import I64

Rule = Callable[..., Value]                    # (operands, which of them have the axis, its extent, **attributes) -> value
Flags = Sequence[bool]
Operands = Sequence[Value]

VECTOR = 8                                     # numbers of a vector, for the estimate
ROW_COST = 0.5                                 # what starting a row of vectors costs, in vectors
MOVE_COST = 0.25                               # what moving the axis of an array costs per number, in vectors
MOST_WRITTEN_OUT = 64                          # operations on elements in all iterations of a loop
LARGE = 1 << 13                                # bytes of what it carries
WRITTEN_OUT = 16                               # terms of a product of two matrices that vary, up to which it is summed element by element
ADVANTAGE = 0.9                                # of the work with the axis first, at most, is worth another layout


_SIMPLE = (ops.broadcast, ops.reshape, ops.slice, ops.slice_update, ops.index_value, ops.normalize_index, ops.item, ops.cond)


def last_axis_added(value: Value, size: Extent) -> Value:
    """value repeated along a new last axis."""
    return ops.broadcast(value, shape=(*value.shape, size), axes=tuple(range(value.rank)))


def moved_to_end(value: Value) -> Value:
    """The first axis last."""
    return value if value.rank < 2 else ops.transpose(value, axes=(*range(1, value.rank), 0))


def moved_to_front(value: Value) -> Value:
    """The last axis first."""
    return value if value.rank < 2 else ops.transpose(value, axes=(value.rank - 1, *range(value.rank - 1)))


def _all(operands: Operands, batched: Flags, size: Extent) -> list[Value]:
    return [operand if flag else last_axis_added(operand, size) for operand, flag in zip(operands, batched, strict=True)]


# ----- rules
def last_axis_rule(op: Op) -> Rule | None:
    """How the op is mapped over a last axis; None where that is not known."""
    if op.kind in ("elementwise", "reduction", "scan") or op is ops.normalize_index:
        return _same_attributes(op)
    return _RULES.get(op)


def _same_attributes(op: Op) -> Rule:
    """Of ops that work element by element, or along axes that they count from the front."""
    def rule(operands: Operands, batched: Flags, size: Extent, **attrs: Any) -> Value:
        return op(*_all(operands, batched, size), **attrs)
    return rule


def _broadcast(operands: Operands, batched: Flags, size: Extent, *, shape: Any, axes: Any) -> Value:
    return ops.broadcast(operands[0], shape=(*shape, size), axes=(*axes, len(shape)))


def _transpose(operands: Operands, batched: Flags, size: Extent, *, axes: Any) -> Value:
    return ops.transpose(operands[0], axes=(*axes, len(axes)))


def _reshape(operands: Operands, batched: Flags, size: Extent, *, shape: Any) -> Value:
    return ops.reshape(operands[0], shape=(*shape, size))


def _slice(operands: Operands, batched: Flags, size: Extent, *, starts: Any, sizes: Any, steps: Any) -> Value:
    return ops.slice(operands[0], starts=(*starts, 0), sizes=(*sizes, size), steps=(*steps, 1))


def _update(op: Op) -> Rule:
    def rule(operands: Operands, batched: Flags, size: Extent, *, starts: Any, steps: Any) -> Value:
        return op(*_all(operands, batched, size), starts=(*starts, 0), steps=(*steps, 1))
    return rule


def _pad(operands: Operands, batched: Flags, size: Extent, *, low: Any, high: Any, value: Any) -> Value:
    return ops.pad(operands[0], low=(*low, 0), high=(*high, 0), value=value)


def _barrier(operands: Operands, batched: Flags, size: Extent) -> Value:
    return ops.barrier(operands[0] if batched[0] else last_axis_added(operands[0], size), *operands[1:])


def _matmul(operands: Operands, batched: Flags, size: Extent) -> Value:
    """x (..., m, k), y (..., k, n) with the axis -> (..., m, n, size)."""
    x, y = operands
    if not batched[0]:
        *lead, k, n, _ = y.shape
        return _split_last(ops.matmul(x, ops.reshape(y, shape=(*lead, k, _times(n, size)))), n, size)
    *lead, m, k, _ = x.shape
    if not batched[1]:                                     # of every row: yᵀ (n, k) times (k, size)
        swapped = _swapped(y)
        shape = (*lead, m, *swapped.shape[-2:])
        axes = (*range(len(lead)), len(lead) + 1, len(lead) + 2)
        return ops.matmul(ops.broadcast(swapped, shape=shape, axes=axes), x)
    n, rank = y.shape[-2], x.rank
    if upper(k) > WRITTEN_OUT:
        return moved_to_end(ops.matmul(moved_to_front(x), moved_to_front(y)))
    shape = (*lead, m, k, n, size)
    left = ops.broadcast(x, shape=shape, axes=(*range(rank - 1), rank))
    right = ops.broadcast(y, shape=shape, axes=(*range(rank - 3), rank - 2, rank - 1, rank))
    return ops.sum(ops.multiply(left, right), axes=(rank - 2,))


def _times(n: Extent, size: Extent) -> Extent:
    assert isinstance(n, int) and isinstance(size, int)
    return n * size


def _split_last(value: Value, n: Extent, size: Extent) -> Value:
    return ops.reshape(value, shape=(*value.shape[:-1], n, size))


def _swapped(x: Value) -> Value:
    return ops.transpose(x, axes=(*range(x.rank - 2), x.rank - 1, x.rank - 2))


def _with_own_index(operands: Operands, batched: Flags, size: Extent) -> tuple[list[Value], Value]:
    """Index arrays with the axis, and the index along it."""
    indices = _all(operands, batched, size)
    return indices, ops.iota(shape=indices[0].shape, axis=indices[0].rank - 1, dtype=I64)


def _gather(operands: Operands, batched: Flags, size: Extent, *, axes: Any) -> Value:
    x, *indices = operands
    if not any(batched[1:]):
        return ops.gather(x, *indices, axes=axes)
    indices, own = _with_own_index(indices, batched[1:], size)
    if batched[0]:
        indices, axes = [*indices, own], (*axes, x.rank - 1)
    found = ops.gather(x, *indices, axes=axes)             # places, batch, other axes
    rank = own.rank
    return ops.transpose(found, axes=(*range(rank - 1), *range(rank, found.rank), rank - 1))


def _scatter(op: Op) -> Rule:
    def rule(operands: Operands, batched: Flags, size: Extent, *, axes: Any) -> Value:
        x, updates = _all(operands[:2], batched[:2], size)
        indices = list(operands[2:])
        if not any(batched[2:]):
            return op(x, updates, *indices, axes=axes)
        indices, own = _with_own_index(indices, batched[2:], size)
        rank = own.rank                                    # places, other axes, batch -> places, batch, other axes
        updates = ops.transpose(updates, axes=(*range(rank - 1), updates.rank - 1, *range(rank - 1, updates.rank - 1)))
        return op(x, updates, *indices, own, axes=(*axes, x.rank - 1))
    return rule


def _with_window_of_one(attrs: dict[str, Any]) -> dict[str, Any]:
    """Windows of one more axis, of one element each: so the axis is among those that windows slide along, which are the last."""
    return {name: (*given, 0 if name in ("low", "high") else 1) for name, given in attrs.items()}


def _windows(operands: Operands, batched: Flags, size: Extent, **attrs: Any) -> Value:
    inner = len(attrs["sizes"])
    found = ops.windows(operands[0], **_with_window_of_one(attrs))            # lead, positions, batch, inside, 1
    found = ops.reshape(found, shape=found.shape[:-1])
    batch = found.rank - inner - 1
    return ops.transpose(found, axes=(*range(batch), *range(batch + 1, found.rank), batch))


def _windows_add(operands: Operands, batched: Flags, size: Extent, *, shape: Any, **attrs: Any) -> Value:
    x, inner = operands[0], len(attrs["sizes"])
    batch = x.rank - inner - 1
    x = ops.transpose(x, axes=(*range(batch), x.rank - 1, *range(batch, x.rank - 1)))
    return ops.windows_add(ops.reshape(x, shape=(*x.shape, 1)), shape=(*shape, size), **_with_window_of_one(attrs))


_RULES: dict[Op, Rule] = {
    ops.broadcast: _broadcast, ops.transpose: _transpose, ops.reshape: _reshape, ops.flip: _same_attributes(ops.flip), ops.slice: _slice,
    ops.slice_update: _update(ops.slice_update), ops.slice_add: _update(ops.slice_add), ops.pad: _pad,
    ops.concatenate: _same_attributes(ops.concatenate), ops.barrier: _barrier, ops.matmul: _matmul, ops.gather: _gather,
    ops.scatter_add: _scatter(ops.scatter_add), ops.scatter_update: _scatter(ops.scatter_update),
    ops.windows: _windows, ops.windows_add: _windows_add,
}


# ----- where it pays
def gains_by_last_axis(body: Graph, varies: Flags, size: Extent, iterations: int, moved: int) -> bool:
    """Whether a loop's body is better mapped with the axis last.

    Vectors run along the last axis of what is cut, put together, spread or summed: along the batch, or along the last axis of one
    element's array.  What goes into the loop and comes out of it, `moved` numbers per element of the batch, is moved for that.
    """
    if not isinstance(size, int) or size < VECTOR or not has_last_axis_rules(body):
        return False
    first, last = _work(body, varies, size)
    return last <= ADVANTAGE * first and (first - last) * iterations > MOVE_COST * moved * size


def is_written_out(body: Graph, carried: int, iterations: int, size: Extent) -> bool:
    """Whether the iterations of a loop over a batch will be written out (`unroll_loops`): there are few, which do little, of much."""
    largest = max([math.prod(map(upper, (*one.shape, size))) * one.dtype.itemsize for one in body.inputs[:carried]], default=0)
    values = list(all_values(body))
    work = sum([value.op.kind == "elementwise" for value in values])
    return largest >= LARGE and work * iterations <= MOST_WRITTEN_OUT and all(map(_is_simple, values))


def _is_simple(value: Value) -> bool:
    """Whether it is a cheap operation on elements, a part at the index of the loop, or a choice that may be one of the index."""
    if value.op is ops.gather:
        indices = [index.operands[0] if index.op is ops.normalize_index else index for index in value.operands[1:]]
        return all(index.op is ops.index_value for index in indices)
    return value.op in _SIMPLE or (value.op.cheap and value.op.kind in ("elementwise", "constant"))


def has_last_axis_rules(graph: Graph) -> bool:
    """Whether a graph can be mapped with the axis last, whatever varies in it."""
    for value in graph.body:
        if value.op in (ops.loop, ops.while_loop, ops.cond):
            if not all(has_last_axis_rules(value.attrs[region]) for region in value.op.regions):
                return False
        elif value.operands and value.op is not ops.item and last_axis_rule(value.op) is None:
            return False
        elif value.op is ops.matmul and not all(isinstance(n, int) for operand in value.operands for n in operand.shape):
            return False                                   # of extents that move with a loop
    return True


def _work(body: Graph, varies: Flags, size: int) -> tuple[float, float]:
    """Vectors of one iteration with the axis first, and last."""
    mapped = {value for value, flag in zip(body.inputs, varies, strict=True) if flag}
    first = last = 0.0
    for value in body.body:
        if not any(operand in mapped for operand in value.operands):
            continue
        mapped.add(value)
        if value.op.kind == "region":
            flags = [operand in mapped for operand in value.operands]
            for region in value.op.regions:
                inner = flags[1:] if value.op is ops.cond else flags
                more = _work(value.attrs[region], inner, size)
                first, last = first + more[0], last + more[1]
            continue
        shape = _walked(value, mapped)
        if shape is not None:
            count = size
            for extent in shape:
                count *= upper(extent)
            first += _vectors(count, upper(shape[-1]) if shape else size)
            last += _vectors(count, size)
    return first, last


def _walked(value: Value, mapped: Collection[Value]) -> tuple[Extent, ...] | None:
    """The extents that an op which does not walk along memory runs over, for one element of the batch."""
    if value.op is ops.matmul:
        *lead, m, k = value.operands[0].shape
        n = value.shape[-1]
        along = n if value.operands[0] in mapped else m    # a product of all rows, or columns, with the matrix that does not vary
        return (*lead, k, m if along is n else n, along)
    if value.op in (ops.slice_update, ops.slice_add):
        return value.operands[1].shape
    if value.op.kind == "reduction":
        return value.operands[0].shape
    return value.shape if value.op.kind in ("layout", "index", "push") and value.op not in (ops.reshape, ops.barrier) else None


def _vectors(count: int, along: int) -> float:
    return 0.0 if not count else count / along * (-(-along // VECTOR) + ROW_COST)
