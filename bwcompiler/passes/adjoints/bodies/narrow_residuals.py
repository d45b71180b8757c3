"""Residuals of which an adjoint reads only parts: only the section that contains these parts is kept.

    for k: y[:k] += a * y[:k][::-1]          keeps y[:k] of every iteration, not all of y

A body may read several growing or shrinking parts of a carried array; keeping each of them would cost more than the array.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.ir.access import section_of
from bwcompiler.ir.extent import Extent, add_extents, element_count, known_le, scale_extent, upper
from bwcompiler.ir.op import Record, Value, input_value

LEAST = 2                      # how many times smaller a section has to be that does not move with the loop


class Narrowed(NamedTuple):
    """slices: residual -> its section, in the forward graph; held: -> the input of the adjoint that holds it; body: the adjoint's."""

    slices: Mapping[Value, Value]
    held: Mapping[Value, Value]
    body: list[Value]


class _Hull(NamedTuple):
    """The elements from `first` to `last` along each axis."""

    first: tuple[Extent, ...]
    last: tuple[Extent, ...]

    def sizes(self) -> tuple[Extent, ...]:
        return tuple([add_extents(add_extents(b, scale_extent(a, -1)), 1) for a, b in zip(self.first, self.last, strict=True)])


def narrow_residuals(body: Sequence[Value], holders: Mapping[Value, Value], outputs: Iterable[Value]) -> Narrowed | None:
    """What is kept in sections, and the adjoint's body that reads these; None where there are none.

    body     the adjoint, which reads residuals in inputs: holders, by residual.
    outputs  of the adjoint, which have to be there whole.
    """
    found = {value: hull for value, hull in _hulls(body, holders, set(outputs)).items() if _is_worth(value, hull)}
    if not found:
        return None
    slices, held = {}, {}
    with Record() as record:
        for value, hull in found.items():
            record.source = value.source
            slices[value] = ops.slice(value, starts=hull.first, sizes=hull.sizes(), steps=(1,) * value.rank)
            slices[value].name = value.label
            held[value] = input_value(slices[value].type, value.label, value.source)
    places = {holders[value]: (held[value], hull) for value, hull in found.items()}
    return Narrowed(slices, held, _reading(body, places))


def _hulls(body: Sequence[Value], holders: Mapping[Value, Value], outputs: Set[Value]) -> dict[Value, _Hull]:
    """Residual -> the section that all of its slices lie in; without those that something else than a slice reads."""
    numbers = {holder: value for value, holder in holders.items() if holder not in outputs}
    found: dict[Value, _Hull | None] = {}
    for user in body:
        for operand in user.operands:
            if operand not in numbers:
                continue
            value = numbers[operand]
            hull = _hull_of(user) if user.op is ops.slice else None
            before = found.get(value, hull)
            found[value] = None if hull is None or before is None else _joined(before, hull)
    return {value: hull for value, hull in found.items() if hull is not None}


def _hull_of(part: Value) -> _Hull:
    section = section_of(part)
    bounds = [section.bounds(axis) for axis in range(part.rank)]
    return _Hull(tuple([first for first, _ in bounds]), tuple([last for _, last in bounds]))


def _joined(one: _Hull, other: _Hull) -> _Hull | None:
    """The section around both; None where it is not known which begins first, or ends last."""
    first = [a if known_le(a, b) else b if known_le(b, a) else None for a, b in zip(one.first, other.first, strict=True)]
    last = [b if known_le(a, b) else a if known_le(b, a) else None for a, b in zip(one.last, other.last, strict=True)]
    if any(end is None for end in (*first, *last)):
        return None
    return _Hull(tuple([end for end in first if end is not None]), tuple([end for end in last if end is not None]))


def _is_worth(value: Value, hull: _Hull) -> bool:
    """Whether a section is smaller in most iterations, or much smaller."""
    if value.op.kind == "input" or hull.sizes() == value.shape:
        return False
    moves = any(not isinstance(size, int) and isinstance(whole, int) for size, whole in zip(hull.sizes(), value.shape, strict=True))
    return moves or LEAST * upper(element_count(hull.sizes())) <= upper(element_count(value.shape))


def _reading(body: Sequence[Value], places: Mapping[Value, tuple[Value, _Hull]]) -> list[Value]:
    """The body with slices of sections in the places of slices of the whole."""
    mapping: dict[Value, Value] = {}
    made: list[Value] = []
    for value in body:
        copy = value.with_operands(tuple([mapping.get(operand, operand) for operand in value.operands]))
        if value.op is ops.slice and value.operands[0] in places:
            section, hull = places[value.operands[0]]
            starts = [add_extents(start, scale_extent(first, -1)) for start, first in zip(value.attrs["starts"], hull.first, strict=True)]
            with Record() as record:
                record.source, record.forward = value.source, value.forward
                copy = ops.slice(section, **{**value.attrs, "starts": tuple(starts)})
            copy.name = value.name
        if copy is not value:
            mapping[value] = copy
        made.append(copy)
    return made
