"""Shifts that cancel have no derivative: `cancel_shifts`.

    m = max(x)                                       m = stop_gradient(max(x))
    y = log(sum(exp(x - m))) + m          ->         y = log(sum(exp(x - m))) + m

Log-sum-exp and softmax, in the usual forms that do not overflow, have the same value for every m.  So the derivative with
respect to m is zero, and which elements attain the maximum need not be computed or kept.

The effect of a shift m -> m + d is followed through the values computed from m: a value is itself shifted by a multiple of d
(`Change.exponent` of a sum), or multiplied by the exponential of one (of a factor).  If everything that others read is the same for every
d, the derivative of m is stopped.  A shift varies along its own axes only, and is constant along the other axes of a value; so sums along
the latter may be formed.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from bwcompiler import ops
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Op, Record, Value, is_constant
from bwcompiler.passes.rewriting.rewriter import Rewritten

MOST = 64                      # values that a shift is followed through

_SHIFTS = (ops.max, ops.min, ops.maximum, ops.minimum, ops.select)         # the last also of what is compared before


class Change(NamedTuple):
    """What a shift d of an array does to a value: v -> v + exponent * d, or v -> v * exp(exponent * d) where it is a factor.

    axes   the axis of the value along which each axis of d lies (those of extent 1 left out).
    """

    is_factor: bool
    exponent: float
    axes: tuple[int, ...]


def cancel_shifts(graph: Graph) -> Rewritten:
    """The graph with such shifts stopped, also in the bodies of loops and branches; the same graph where there are none."""
    stopped = _cancelling(graph)
    if not stopped and not any(value.op.regions for value in graph.body):
        return Rewritten(graph, {})
    mapping: dict[Value, Value] = {}
    stops: dict[Value, Value] = {}
    body: list[Value] = []
    for value in graph.body:
        operands = tuple([stops.get(operand) or mapping.get(operand, operand) for operand in value.operands])
        copy = value.with_operands(operands).with_regions(lambda region: cancel_shifts(region).graph)
        if copy is not value:
            mapping[value] = copy
        body.append(copy)
        if value in stopped:
            with Record() as record:
                record.source, record.forward = value.source, value.forward
                stops[value] = ops.stop_gradient(copy)
            body += record.values
    if not mapping:
        return Rewritten(graph, {})
    outputs = [mapping.get(output, output) for output in graph.outputs]
    return Rewritten(graph.replace(body=live_values(body, outputs), outputs=outputs), mapping)


def _cancelling(graph: Graph) -> set[Value]:
    """The extrema whose shifts cancel in all that is made of them."""
    if not any(value.op is ops.exp for value in graph.body):
        return set()
    shifts = [value for value in graph.body if value.op in _SHIFTS and value.dtype.kind == "f"]
    if not shifts:
        return set()
    users = graph.users()
    place = {value: number for number, value in enumerate(graph.body)}
    outputs = set(graph.outputs)
    return {shift for shift in shifts if _cancels(shift, users, place, outputs)}


def _cancels(shift: Value, users: Mapping[Value, Sequence[Value]], place: Mapping[Value, int], outputs: set[Value]) -> bool:
    own = [axis for axis, extent in enumerate(shift.shape) if extent != 1]
    changes = {shift: Change(False, 1.0, tuple(own))}
    if shift in outputs:
        return False
    pending = [place[user] for user in users[shift]]
    by_place = {place[user]: user for user in users[shift]}
    heapq.heapify(pending)
    last = -1
    while pending:
        number = heapq.heappop(pending)
        if number == last:
            continue
        last = number
        value = by_place.pop(number)
        change = _change(value, changes)
        if change is None or len(changes) > MOST:
            return False
        if not change.exponent:
            continue
        if value in outputs:
            return False
        changes[value] = change
        for user in users[value]:
            if place[user] not in by_place:
                by_place[place[user]] = user
                heapq.heappush(pending, place[user])
    return len(changes) > 1


# ----- what ops do with changes
def _change(value: Value, changes: Mapping[Value, Change]) -> Change | None:
    """What the shift does to a value; None where that is neither a sum nor a factor."""
    rule = _RULES.get(value.op)
    return None if rule is None else rule(value, *[changes.get(operand) for operand in value.operands])


def _together(first: Change | None, second: Change | None, is_factor: bool, sign: int) -> Change | None:
    """The sum (or difference: sign) of two exponents, of changes along the same axes."""
    known = [change for change in (first, second) if change is not None]
    if any(change.is_factor is not is_factor or change.axes != known[0].axes for change in known):
        return None
    return Change(is_factor, (first.exponent if first else 0.0) + sign * (second.exponent if second else 0.0), known[0].axes)


def _added(sign: int) -> Callable[..., Change | None]:
    """Of shifted numbers; or of numbers that have the same factor."""
    def rule(value: Value, x: Change | None, y: Change | None) -> Change | None:
        if (x or y or _NONE).is_factor:
            return x if x == y else None
        return _together(x, y, False, sign)
    return rule


def _multiplied(sign: int) -> Callable[..., Change | None]:
    """Of factors; or of a shifted number by a constant."""
    def rule(value: Value, x: Change | None, y: Change | None) -> Change | None:
        if (x or y or _NONE).is_factor:
            return _together(x, y, True, sign)
        change, other = (x, value.operands[1]) if x else (y, value.operands[0])
        if change is None or not is_constant(other) or (sign < 0 and x is None):
            return None
        number = other.attrs["value"]
        if isinstance(number, complex) or not math.isfinite(number) or not number:
            return None
        return change._replace(exponent=change.exponent * number if sign > 0 else change.exponent / number)
    return rule


def _negative(value: Value, x: Change) -> Change:
    return x if x.is_factor else x._replace(exponent=-x.exponent)


def _exp(value: Value, x: Change) -> Change | None:
    return None if x.is_factor else x._replace(is_factor=True)


def _log(value: Value, x: Change) -> Change | None:
    return x._replace(is_factor=False) if x.is_factor else None


def _sum(value: Value, x: Change) -> Change | None:
    """A factor that is the same for all that is summed up."""
    return _without(x, value.attrs["axes"]) if x.is_factor else None


def _extremum(value: Value, x: Change) -> Change | None:
    return None if x.is_factor else _without(x, value.attrs["axes"])


def _without(x: Change, axes: Sequence[int]) -> Change | None:
    """The change where these axes are gone."""
    if not set(x.axes).isdisjoint(axes):
        return None
    return x._replace(axes=tuple([axis - sum([gone < axis for gone in axes]) for axis in x.axes]))


def _extremes(value: Value, x: Change | None, y: Change | None) -> Change | None:
    return x if x is not None and x == y and not x.is_factor else None


def _select(value: Value, condition: Change | None, x: Change | None, y: Change | None) -> Change | None:
    """Of numbers that change in the same way; zero has any factor."""
    if condition is not None or x == y:
        return None if condition is not None else x
    change, other = (x, value.operands[2]) if x else (y, value.operands[1])
    if change is None or (x and y) or not change.is_factor or not is_constant(other) or other.attrs["value"] != 0:
        return None
    return change


def _cast(value: Value, x: Change) -> Change | None:
    return x if value.dtype.kind == "f" else None


def _broadcast(value: Value, x: Change) -> Change | None:
    moved = tuple([value.attrs["axes"][axis] for axis in x.axes])
    same = all(value.shape[after] == value.operands[0].shape[axis] for axis, after in zip(x.axes, moved, strict=True))
    return x._replace(axes=moved) if same else None


def _reshape(value: Value, x: Change) -> Change | None:
    """Where only axes of extent 1 come and go."""
    before = [axis for axis, extent in enumerate(value.operands[0].shape) if extent != 1]
    after = [axis for axis, extent in enumerate(value.shape) if extent != 1]
    if [value.operands[0].shape[axis] for axis in before] != [value.shape[axis] for axis in after]:
        return None
    place = dict(zip(before, after, strict=True))
    return x._replace(axes=tuple([place[axis] for axis in x.axes]))


def _transpose(value: Value, x: Change) -> Change:
    return x._replace(axes=tuple([value.attrs["axes"].index(axis) for axis in x.axes]))


def _matmul(value: Value, x: Change | None, y: Change | None) -> Change | None:
    """Of a factor that is the same for all that is summed up, on one side."""
    change, summed = (x, value.rank - 1) if x else (y, value.rank - 2)
    if change is None or (x and y) or not change.is_factor or summed in change.axes:
        return None
    return change


_NONE = Change(False, 0.0, ())
_RULES: Mapping[Op, Callable[..., Any]] = {
    ops.add: _added(1), ops.subtract: _added(-1), ops.multiply: _multiplied(1), ops.divide: _multiplied(-1), ops.negative: _negative,
    ops.exp: _exp, ops.log: _log, ops.sum: _sum, ops.max: _extremum, ops.min: _extremum, ops.maximum: _extremes, ops.minimum: _extremes,
    ops.select: _select, ops.cast: _cast, ops.broadcast: _broadcast, ops.reshape: _reshape, ops.transpose: _transpose, ops.matmul: _matmul,
}
