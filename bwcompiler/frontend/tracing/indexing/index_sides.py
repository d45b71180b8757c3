"""Which of two numbers made of loop indices is larger: needed for bounds of slices such as `x[max(0, i - w):min(n, i + w + 1)]`.

If the answer is the same in all iterations, the bound is an ordinary extent.  If it changes at some index of a loop that can be
recorded in parts, `Parted` asks for this: in each part the bounds are extents, and the slices have known sizes.
"""

from __future__ import annotations

from bwcompiler import ops
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.storages.region import Region, open_region
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.extent import Extent, Index, add_extents, known_le, scale_extent
from bwcompiler.ir.op import Op, Value
from bwcompiler.ir.types import I64

# Comparisons of x and y as a difference that is at least 0 where they hold: its sign of y - x, and what is added.
_COMPARISONS: dict[Op, tuple[int, int]] = {ops.less: (1, -1), ops.less_equal: (1, 0), ops.greater: (-1, -1), ops.greater_equal: (-1, 0)}


class Parted(BaseException):
    """A number made of indices is at least 0 on one side of iteration `end` of the loop over `index` and below 0 on the other side.

    end  the last iteration of the first part.  Not an Exception, so that `except` in the user's code does not swallow it.
    """

    def __init__(self, index: Index, end: Extent) -> None:
        self.index = index
        self.end = end


def is_at_least_zero(number: Extent) -> bool | None:
    """Whether a number made of indices is at least 0; None where neither that nor the opposite is so in all iterations.

    Raises Parted where a loop can be recorded in parts in which it is known.
    """
    if known_le(0, number):
        return True
    if known_le(number, -1):
        return False
    policy = open_region().policy
    assert not isinstance(number, int)
    index, factor = number.terms[-1]                # of the innermost loop
    if policy is None or index not in policy.parted:
        return None
    rest = add_extents(number, scale_extent(index.extent(), -factor))
    if isinstance(rest, int):                      # steps of several, 70 - 16 * k: the last iteration in which it is at least 0, or below
        end: Extent = -(rest // factor) - 1 if factor > 0 else rest // -factor
    elif factor in (1, -1):
        end = add_extents(scale_extent(rest, -1), -1) if factor == 1 else rest
    else:
        return None
    if known_le(index.lo, end) and known_le(add_extents(end, 1), index.hi):
        raise Parted(index, end)
    return None


def chosen_extent(bound: Tracer) -> Extent | None:
    """The number made of indices that max, min or another choice between such numbers gives; None for all else."""
    region: Region = open_region()
    if bound._chain or bound._storage.written or bound._type.shape or (region.policy is not None and region.policy.as_data):
        return None
    return call(_extent, bound._storage.value, region)  # type: ignore[no-any-return]


def _extent(value: Value, region: Region) -> Extent | None:
    value, _ = outside(value, region)
    if value.op is ops.index_value:
        extent: Extent = value.attrs["extent"]
        return extent
    if value.op is ops.full:
        number = value.attrs["value"]
        return number if type(number) is int else None
    if value.dtype != I64 or len(value.operands) < 2:
        return None
    if value.op is ops.select:
        return _selected(value, region)
    if value.op not in (ops.add, ops.subtract, ops.maximum, ops.minimum):
        return None
    first, second = [_extent(operand, region) for operand in value.operands]
    if first is None or second is None:
        return None
    if value.op is ops.add:
        return add_extents(first, second)
    if value.op is ops.subtract:
        return add_extents(first, scale_extent(second, -1))
    return _extreme(first, second, value.op is ops.maximum)


def _extreme(first: Extent, second: Extent, is_largest: bool) -> Extent | None:
    """The larger one, or the smaller one; where they are equal, a part may have either."""
    difference = add_extents(first, scale_extent(second, -1))
    larger = is_at_least_zero(difference)
    if larger is None:
        larger = is_at_least_zero(add_extents(difference, -1))
    return None if larger is None else first if larger is is_largest else second


def _selected(value: Value, region: Region) -> Extent | None:
    """What a comparison of numbers made of indices chooses."""
    test, _ = outside(value.operands[0], region)
    if test.op not in _COMPARISONS:
        return None
    x, y, first, second = [_extent(operand, region) for operand in (*test.operands, *value.operands[1:])]
    if x is None or y is None or first is None or second is None:
        return None
    sign, more = _COMPARISONS[test.op]
    if (x, y) in ((first, second), (second, first)):
        return _extreme(first, second, (sign > 0) == (x == second))
    holds = is_at_least_zero(add_extents(scale_extent(add_extents(y, scale_extent(x, -1)), sign), more))
    return None if holds is None else first if holds else second


def outside(value: Value, region: Region) -> tuple[Value, Region]:
    """What a region was given, where it was made, and the region that made it."""
    level: Region | None = region
    while level is not None and value.op.kind == "input":
        place = next((place for place, lifted in enumerate(level.lifted_inputs) if lifted is value), None)
        if place is not None:
            if level.lifted[place].written:
                break
            value, region = level.lifted[place].value, level.lifted[place].region
        level = level.parent
    return value, region
