"""The order of a group's loops, if it is free: the one in which most reads and writes run along memory.

A group's axes start as the dimensions of its first value, which may have another order in memory: the result of a product seen
as (images, channels, rows, columns) has the channels last.  Loops in memory order can be vectors, and are merged into longer ones.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from bwcompiler.ir.access import contiguous_strides, section_of
from bwcompiler.ir.contracts.fusion import FusionGroup, Member
from bwcompiler.ir.extent import Affine, upper
from bwcompiler.ir.op import Value
from bwcompiler.ir.scalar import IndexExpression, Scalar
from bwcompiler.passes.fusion.attempt import Attempt, is_tall

APART_READ, APART_WRITTEN = 4.0, 6.0           # what an element apart from the last one costs, for one beside it
LINE, LINES, FAR = 8, 512, 4.0                 # elements of a line; columns of more lines than the first cache has cost so much more
ROW_COST = 8.0                                 # what starting a row costs, in such elements, per array
ADVANTAGE = 0.7                                # of the cost, at most, is worth another order
SHORT_ROW = 4                                  # elements of a row that is written out in vectors of rows, which sums stay beside
SHORT_SUM = 32                                 # terms that are written out, side by side with those of other sums
EXPENSIVE, VECTOR = 8.0, 32                    # what a mathematical function costs, and elements that it computes at once

Access = tuple[tuple[int, ...], float]         # per axis the distance in memory of two iterations; what it costs to be apart


def in_memory_order(group: FusionGroup, attempts: Mapping[Value, Attempt], stored: Collection[Value]) -> None:
    """Renumber the axes of a group whose loops may run in any order.  attempts: of its members, with what they read.

    Loops over what is summed up may be the inner ones or the outer ones, if all that is summed up is summed up over them.
    """
    count = len(group.extents)
    sums = {frozenset(member.reduced) for member in group.members if member.reduced}
    if count < 2 or group.closed or len(sums) > 1 or (group.inner is not None and {group.inner} != sums):
        return
    extents = [upper(extent) for extent in group.extents]
    if sums and (extents[-1] <= SHORT_ROW or any(count - 1 in axes and math.prod([extents[axis] for axis in axes]) <= SHORT_SUM
                                                 for axes in sums)):
        return
    found = [access for member in group.members for access in _accesses(group, member, attempts[member.value], stored)]
    accesses = [access for _, access in dict.fromkeys(found) if any(access[0])]
    own = tuple(range(count))
    orders = dict.fromkeys([own, *[order for order in [_order_of(strides) for strides, _ in accesses] if not _is_tall(group, order)]])
    expensive = sum([not member.value.op.cheap for member in group.members if member.value.op.kind == "elementwise"]) if sums else 0
    costs = {order: _cost(order, extents, accesses, not sums) + expensive * EXPENSIVE * _filled(extents[order[-1]]) for order in orders}
    best = min(orders, key=costs.__getitem__)
    if costs[best] > ADVANTAGE * costs[own]:
        best = own
    if sums:
        best = _beside_columns(best, accesses, next(iter(sums)))
    if best != own:
        places = [best.index(axis) for axis in range(count)]
        if group.inner is not None:
            group.inner = frozenset([places[axis] for axis in group.inner])
        group.add_axes(places, {})


def _beside_columns(order: tuple[int, ...], accesses: Sequence[Access], summed: frozenset[int]) -> tuple[int, ...]:
    """The order with the axis that goes along an array's memory, where the last one goes along its columns, right before the last one: so
    its lines can be read as rows of a panel, a few at a time (`lowering/loops/tiling/stage_columns.py`)."""
    last = order[-1]
    for strides, _ in accesses:
        if strides[last] < LINE or 1 not in strides:
            continue
        place = order.index(strides.index(1))
        if len({axis in summed for axis in order[place:]}) == 1:
            return (*order[:place], *order[place + 1:-1], order[place], last)
    return order


def _accesses(group: FusionGroup, member: Member, attempt: Attempt, stored: Collection[Value]) -> list[tuple[Value, Access]]:
    """What a member reads from memory, and writes to it, with the array."""
    value, count = member.value, len(group.extents)
    found = [(base, (_read_strides(base, index, attempt, member, count), APART_READ))
             for base, index in attempt.reads if base not in group.by_value]
    if member.update:
        steps = section_of(value).steps
        strides = [stride * step for stride, step in zip(contiguous_strides(value.shape), steps, strict=True)]
        found.append((value, (_by_axis(member.domain, strides, count), APART_WRITTEN)))
    elif value in stored:
        found.append((value, (_by_axis(member.axes, contiguous_strides(value.shape), count), APART_WRITTEN)))
    return found


def _by_axis(axes: Sequence[int], strides: Sequence[int], count: int) -> tuple[int, ...]:
    found = [0] * count
    for axis, stride in zip(axes, strides, strict=True):
        if axis >= 0:
            found[axis] += abs(stride)
    return tuple(found)


def _read_strides(base: Value, index: Sequence[IndexExpression], attempt: Attempt, member: Member, count: int) -> tuple[int, ...]:
    found = [0] * count
    for entry, stride in zip(index, contiguous_strides(base.shape), strict=True):
        if isinstance(entry, Scalar) or not isinstance(entry, Affine):
            continue                                       # a position that data decide, or the same in all iterations
        for own, coefficient in entry.terms:
            axis = member.domain[attempt.number[own]] if own in attempt.number else -1
            if axis >= 0:
                found[axis] += coefficient * stride
    return tuple(map(abs, found))


def _order_of(strides: Sequence[int]) -> tuple[int, ...]:
    """The axes with the largest steps first; those along which an array is repeated stay in front."""
    return tuple(sorted(range(len(strides)), key=lambda axis: (strides[axis] != 0, -strides[axis], axis)))


def _filled(extent: int) -> float:
    """How many elements vectors have, for one that counts."""
    return -(-extent // VECTOR) * VECTOR / max(1, extent)


def _is_tall(group: FusionGroup, order: Sequence[int]) -> bool:
    """Whether passes over columns would be too long for the second one to find what the first one read in a cache."""
    return group.inner is not None and order[-1] not in group.inner and is_tall(group.extents, group.inner, order[-1])


def _cost(order: Sequence[int], extents: Sequence[int], accesses: Sequence[Access], merging: bool) -> float:
    """Of one iteration of the innermost loop, with its part of what starting a row costs; merging: loops that walk through memory as one
    become one."""
    last = order[-1]
    run, merged = max(1, extents[last]), last
    for axis in reversed(order[:-1] if merging else ()):
        if any(strides[axis] != strides[merged] * extents[merged] for strides, _ in accesses):
            break
        run, merged = run * max(1, extents[axis]), axis
    far = FAR if extents[last] > LINES else 1.0
    along = sum([1.0 if strides[last] <= 1 else apart * (far if strides[last] >= LINE else 1.0) for strides, apart in accesses])
    return along + ROW_COST * len(accesses) / run
